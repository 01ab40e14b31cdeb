#include "dialect/messages.h"
#include "dialect/messages_writer.h"
#include "dialect/seal.h"

#define FILLER "Continue." /* where the API wants a user's message and there is none */
#define SYSTEM_TAG "<system>\n"
#define SYSTEM_END "\n</system>"
#define NO_OUTPUT "(no output)" /* a failed call must say something */
#define REORDER_MAX 1024        /* results put into the order of their calls */

static bool
is_blank(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != ' ' && (text.p[i] < '\t' || text.p[i] > '\r'))
			return false;
	return true;
}

/* What of a thought may go to this channel. */
static bool
open_seal(const struct form *form, const struct form_target *target, const struct form_part *part,
    struct span *payload)
{
	if (seal_fits(part->thought.seal, FORM_MESSAGES, target->channel, payload))
		return payload->n > 0;
	if (form->from != FORM_MESSAGES || seal_open(part->thought.seal).marked)
		return false;
	*payload = part->thought.seal; /* the client had it from such a host itself */
	return payload->n > 0;
}

static bool
is_kept_for(const struct form *form, const struct form_target *target, const struct form_part *part)
{
	struct span payload;

	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL: return !is_blank(part->text);
	case FORM_THOUGHT: return open_seal(form, target, part, &payload);
	case FORM_OPAQUE: return form->from == FORM_MESSAGES;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO:
	case FORM_CALL:
	case FORM_RESULT: break;
	}
	return true;
}

static bool
is_kept(const struct messages_writer *w, const struct form_part *part)
{
	return is_kept_for(w->form, w->target, part);
}

static const struct form_part *
first_kept(const struct form *form, const struct form_target *target, const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (is_kept_for(form, target, &turn->parts[i]))
			return &turn->parts[i];
	return NULL;
}

bool
messages_may_think(const struct form *form, const struct form_target *target)
{
	const struct form_turn *turns = form->turns;
	const struct form_part *first = NULL;
	size_t last = form->nturns;

	while (last > 0 && turns[last - 1].role != FORM_ASSISTANT)
		last--;
	if (last == 0 || last == form->nturns || turns[last].role != FORM_TOOL)
		return true;
	/* what stands together becomes one message: its first part counts */
	for (; last > 0 && turns[last - 1].role == FORM_ASSISTANT; last--) {
		const struct form_part *kept = first_kept(form, target, &turns[last - 1]);

		first = kept != NULL ? kept : first;
	}
	return first != NULL && first->kind == FORM_THOUGHT;
}

static void
write_text(struct messages_writer *w, struct span text, struct span cache_control)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "text");
	emit_text(&w->e, "text", text);
	messages_writer_cache(w, cache_control);
	emit_end(&w->e);
}

static void
close_message(struct messages_writer *w)
{
	if (!w->in_message)
		return;
	emit_end(&w->e);
	emit_end(&w->e);
	w->in_message = false;
}

/* Messages alternate, and the first one is a user's. */
static void
open_message(struct messages_writer *w, enum form_role role)
{
	bool first = !w->in_message && !w->target->piece;

	if (w->in_message && w->role == role)
		return;
	close_message(w);
	if (first && role == FORM_ASSISTANT) {
		open_message(w, FORM_USER);
		write_text(w, SPAN(FILLER), (struct span){"", 0});
		close_message(w);
	}
	emit_object(&w->e, NULL);
	emit_z(&w->e, "role", role == FORM_ASSISTANT ? "assistant" : "user");
	emit_array(&w->e, "content");
	w->in_message = true;
	w->role = role;
}

static void
write_thought(struct messages_writer *w, const struct form_part *part)
{
	struct span payload;

	if (!open_seal(w->form, w->target, part, &payload))
		return;
	emit_object(&w->e, NULL);
	if (part->thought.redacted) {
		emit_z(&w->e, "type", "redacted_thinking");
		emit_text(&w->e, "data", payload);
	} else {
		emit_z(&w->e, "type", "thinking");
		emit_text(&w->e, "thinking", part->text);
		emit_text(&w->e, "signature", payload);
	}
	emit_end(&w->e);
}

/* As its call is called, which stands in the turn before. */
static struct span
result_id(const struct messages_writer *w, const struct form_part *part, size_t turn)
{
	return turn > 0 ? messages_ids_of(w->arena, &w->ids, turn - 1, part->result.id)
	                : form_id(w->arena, FORM_MESSAGES, part->result.id);
}

static void
write_call(struct messages_writer *w, const struct form_part *part, size_t turn)
{
	const struct form_call *call = &part->call;

	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "tool_use");
	emit_text(&w->e, "id", messages_ids_of(w->arena, &w->ids, turn, call->id));
	emit_text(
	    &w->e, "name", messages_writer_tool(w, call->name, call->namespace, call->custom));
	if (call->custom) {
		emit_object(&w->e, "input");
		emit_text(&w->e, "input", call->arguments);
		emit_end(&w->e);
	} else {
		emit_raw(&w->e, "input", text_trim(call->arguments));
	}
	messages_writer_cache(w, part->cache_control);
	emit_end(&w->e);
}

static size_t
count_kept(const struct messages_writer *w, const struct form_result *result)
{
	size_t n = 0;

	for (size_t i = 0; i < result->nparts; i++)
		n += is_kept(w, &result->parts[i]);
	return n;
}

/* A single plain text is a string: every clone takes that. */
static bool
is_plain(const struct messages_writer *w, const struct form_result *result)
{
	return result->nparts == 1 && result->parts[0].kind == FORM_TEXT &&
	       result->parts[0].cache_control.n == 0 && is_kept(w, &result->parts[0]);
}

static enum err
write_result(struct messages_writer *w, const struct form_part *part, size_t turn)
{
	const struct form_result *result = &part->result;
	bool empty = count_kept(w, result) == 0;
	enum err err = ERR_OK;

	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "tool_result");
	emit_text(&w->e, "tool_use_id", result_id(w, part, turn));
	if (is_plain(w, result)) {
		emit_text(&w->e, "content", result->parts[0].text);
	} else if (empty && result->is_error) {
		emit_z(&w->e, "content", NO_OUTPUT);
	} else if (!empty) {
		emit_array(&w->e, "content");
		for (size_t i = 0; i < result->nparts && err == ERR_OK; i++) {
			const struct form_part *p = &result->parts[i];

			if (!is_kept(w, p))
				continue;
			if (p->kind == FORM_TEXT || p->kind == FORM_REFUSAL)
				write_text(w, p->text, p->cache_control);
			else
				err = messages_media_write(w, p);
		}
		emit_end(&w->e);
	}
	if (result->is_error)
		emit_bool(&w->e, "is_error", true);
	messages_writer_cache(w, part->cache_control);
	emit_end(&w->e);
	return err;
}

static struct span
without_end(struct span text)
{
	while (text.n > 0 && is_blank(text_from(text, text.n - 1)))
		text.n--;
	return text;
}

static void
drop_part(struct messages_writer *w, const struct form_part *part)
{
	if (part->kind == FORM_THOUGHT && part->text.n + part->thought.seal.n > 0)
		messages_writer_drop_one(
		    w, "messages.reasoning_content", "input.reasoning", "messages.thinking");
	else if (part->kind == FORM_OPAQUE)
		messages_writer_drop_one(w, "messages.content", "input", NULL);
}

static enum err
write_part(struct messages_writer *w, const struct form_part *part, const struct form_turn *turn)
{
	size_t at = (size_t)(turn - w->form->turns);

	if (!is_kept(w, part)) {
		drop_part(w, part);
		return ERR_OK;
	}
	open_message(w, turn->role == FORM_ASSISTANT ? FORM_ASSISTANT : FORM_USER);
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL:
		write_text(w, part == w->final ? without_end(part->text) : part->text,
		    part->cache_control);
		return ERR_OK;
	case FORM_THOUGHT: write_thought(w, part); return ERR_OK;
	case FORM_CALL: write_call(w, part, at); return ERR_OK;
	case FORM_RESULT: return write_result(w, part, at);
	case FORM_OPAQUE: emit_raw(&w->e, NULL, part->text); return ERR_OK;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO: break;
	}
	return messages_media_write(w, part);
}

static const struct form_part *
find_result(const struct form_turn *turn, struct span id, size_t *from)
{
	for (size_t n = 0; n < turn->nparts; n++) {
		size_t i = (*from + n) % turn->nparts;

		if (turn->parts[i].kind == FORM_RESULT &&
		    text_equal(turn->parts[i].result.id, id)) {
			*from = i + 1;
			return &turn->parts[i];
		}
	}
	return NULL;
}

/* In the order of the calls, which usually is theirs. */
static enum err
write_results(
    struct messages_writer *w, const struct form_turn *turn, const struct form_turn *calls)
{
	size_t from = 0;
	enum err err = ERR_OK;

	for (size_t i = 0; i < calls->nparts && err == ERR_OK; i++) {
		const struct form_part *result = NULL;

		if (calls->parts[i].kind == FORM_CALL)
			result = find_result(turn, calls->parts[i].call.id, &from);
		if (result != NULL)
			err = write_part(w, result, turn);
	}
	return err;
}

static enum err
check_system(struct messages_writer *w, const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind != FORM_TEXT && turn->parts[i].kind != FORM_REFUSAL)
			return messages_writer_refuse(w, &turn->parts[i],
			    "stands in a system message, which may hold text alone");
	return ERR_OK;
}

/* In its place, so that what stands before it does not change from turn to turn. */
static enum err
write_late_system(struct messages_writer *w, const struct form_turn *turn)
{
	if (check_system(w, turn) != ERR_OK)
		return ERR_BAD_INPUT;
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (!is_kept(w, part))
			continue;
		open_message(w, FORM_USER);
		write_text(w,
		    text_span(arena_join(w->arena,
		        (const struct span[]){SPAN(SYSTEM_TAG), part->text, SPAN(SYSTEM_END)}, 3)),
		    part->cache_control);
	}
	return ERR_OK;
}

static enum err
write_turn(struct messages_writer *w, const struct form_turn *turn)
{
	enum err err = ERR_OK;

	if (form_is_system(turn))
		return write_late_system(w, turn);
	if (turn->name.n > 0)
		messages_writer_drop(w, "messages.name");
	if (turn->role == FORM_TOOL && turn > w->form->turns && turn->nparts <= REORDER_MAX)
		return write_results(w, turn, turn - 1);
	for (size_t i = 0; i < turn->nparts && err == ERR_OK; i++)
		err = write_part(w, &turn->parts[i], turn);
	return err;
}

/* The text that the conversation ends with, if it is the assistant's. */
static const struct form_part *
find_final(const struct messages_writer *w)
{
	for (size_t at = w->target->piece ? 0 : w->form->nturns; at > 0; at--) {
		const struct form_turn *turn = &w->form->turns[at - 1];

		if (turn->role != FORM_ASSISTANT)
			return NULL;
		for (size_t i = turn->nparts; i > 0; i--)
			if (is_kept(w, &turn->parts[i - 1]))
				return &turn->parts[i - 1];
	}
	return NULL;
}

static void
ask_for_json(struct messages_writer *w)
{
	static const char plain[] =
	    "Answer with one JSON object and nothing else: no text before or after it, no code "
	    "fence.";
	const struct form *form = w->form;

	if (form->shape == FORM_SHAPE_OBJECT) {
		write_text(w, SPAN(plain), (struct span){"", 0});
		return;
	}
	write_text(w,
	    text_span(arena_join(w->arena,
	        (const struct span[]){SPAN(plain), SPAN(" It must follow this JSON Schema"),
	            form->schema_description.n > 0 ? SPAN(" (") : SPAN(""),
	            form->schema_description, form->schema_description.n > 0 ? SPAN(")") : SPAN(""),
	            SPAN(":\n"), form->schema},
	        7)),
	    (struct span){"", 0});
}

/* What leads; nothing does in a piece, unless it is all of it. */
static size_t
count_leading(const struct messages_writer *w)
{
	size_t n = form_leading(w->form);

	return w->target->piece && n < w->form->nturns ? 0 : n;
}

/* Returns the number of leading system turns through *n_out. */
static enum err
write_system(struct messages_writer *w, size_t *n_out)
{
	const struct form *form = w->form;
	size_t leading = count_leading(w), n = 0, texts = 0;

	for (; n < leading; n++) {
		if (check_system(w, &form->turns[n]) != ERR_OK)
			return ERR_BAD_INPUT;
		texts += first_kept(form, w->target, &form->turns[n]) != NULL;
	}
	*n_out = n;
	if (texts == 0 && !w->ask_for_json)
		return ERR_OK;
	emit_array(&w->e, "system");
	for (size_t at = 0; at < n; at++)
		for (size_t i = 0; i < form->turns[at].nparts; i++) {
			const struct form_part *part = &form->turns[at].parts[i];

			if (is_kept(w, part))
				write_text(w, part->text, part->cache_control);
		}
	if (w->ask_for_json)
		ask_for_json(w);
	emit_end(&w->e);
	return ERR_OK;
}

enum err
messages_parts_write(struct messages_writer *w)
{
	size_t at;
	enum err err = write_system(w, &at);
	bool alone;

	if (err != ERR_OK)
		return err;
	w->final = find_final(w);
	w->ids = messages_ids_find(w->arena, w->form);
	emit_array(&w->e, "messages");
	for (; at < w->form->nturns && err == ERR_OK; at++)
		err = write_turn(w, &w->form->turns[at]);
	alone = w->in_message && w->role == FORM_ASSISTANT &&
	        (w->model->no_prefill || messages_writer_thinks(w));
	if ((!w->in_message || alone) && !w->target->piece) {
		open_message(w, FORM_USER);
		write_text(w, SPAN(FILLER), (struct span){"", 0});
	}
	close_message(w);
	emit_end(&w->e);
	return err;
}
