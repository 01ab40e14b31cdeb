#include "dialect/responses.h"

#include "dialect/seal.h"

#define ERROR_PREFIX "Error: "
#define LOOK_MAX 256

struct span
responses_instructions(struct arena *arena, const struct form *form)
{
	struct buf *out = NULL;
	struct span only = {"", 0};
	size_t n = 0;

	for (size_t i = 0; i < form->nturns; i++) {
		const struct form_turn *turn = &form->turns[i];

		if (turn->at != SIZE_MAX)
			continue;
		for (size_t j = 0; j < turn->nparts; j++) {
			if (turn->parts[j].kind != FORM_TEXT)
				continue;
			if (n++ == 0) {
				only = turn->parts[j].text;
				continue;
			}
			if (out == NULL) {
				out = arena_buf(arena, SIZE_MAX / 4);
				buf_span(out, only);
			}
			buf_z(out, "\n\n");
			buf_span(out, turn->parts[j].text);
		}
	}
	return out == NULL ? only : buf_text(out);
}

static const char *
place_of(const struct responses_out *o, const struct form_turn *turn)
{
	const char *list = form_place_list(o->form);

	if (turn->at == FORM_AT_KEPT)
		return list;
	return turn->at == SIZE_MAX ? "system" : arena_print(o->arena, "%s[%zu]", list, turn->at);
}

static void
emit_data(struct responses_out *o, const char *key, const struct form_media *media)
{
	emit_text(&o->e, key,
	    text_span(arena_join(o->arena,
	        (const struct span[]){
	            SPAN("data:"), media->media_type, SPAN(";base64,"), media->data},
	        4)));
}

static void
refuse(struct responses_out *o, const struct form_part *part, const char *text)
{
	char where[FORM_PLACE_BYTES];

	form_place(o->form, part, FORM_FIELD_MEDIA, where, sizeof where);
	responses_refuse(o, "'%s' %s", where, text);
}

/* Another provider's files are no files here. */
static bool
has_foreign_file(struct responses_out *o, const struct form_part *part)
{
	if (part->media.file_id.n == 0 || o->form->from != FORM_MESSAGES)
		return false;
	refuse(o, part, "names a file that only its own provider has");
	return true;
}

static void
emit_image(struct responses_out *o, const struct form_part *part)
{
	const struct form_media *m = &part->media;

	if (has_foreign_file(o, part))
		return;
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "input_image");
	if (m->url.n > 0)
		emit_text(&o->e, "image_url", m->url);
	else if (m->data.n > 0)
		emit_data(o, "image_url", m);
	else
		emit_text(&o->e, "file_id", m->file_id);
	if (m->detail.n > 0)
		emit_text(&o->e, "detail", m->detail);
	emit_end(&o->e);
}

static void
emit_input_text(struct responses_out *o, struct span text)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "input_text");
	emit_text(&o->e, "text", text);
	emit_end(&o->e);
}

static void
emit_document(struct responses_out *o, const struct form_part *part)
{
	const struct form_media *m = &part->media;

	if (has_foreign_file(o, part))
		return;
	if (m->plain.n > 0) {
		emit_input_text(o, m->plain);
		return;
	}
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "input_file");
	if (m->url.n > 0) {
		emit_text(&o->e, "file_url", m->url);
	} else if (m->data.n > 0) {
		emit_text(&o->e, "filename", m->title.n > 0 ? m->title : SPAN("document.pdf"));
		emit_data(o, "file_data", m);
	} else {
		emit_text(&o->e, "file_id", m->file_id);
	}
	emit_end(&o->e);
}

static void
emit_input_part(struct responses_out *o, const struct form_turn *turn, const struct form_part *part)
{
	if (part->cache_control.n > 0)
		responses_drop(o, "cache_control");
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL: emit_input_text(o, part->text); break;
	case FORM_IMAGE: emit_image(o, part); break;
	case FORM_DOCUMENT: emit_document(o, part); break;
	case FORM_AUDIO:
		refuse(o, part, "is sound, which this model's provider does not take");
		break;
	case FORM_OPAQUE:
		responses_drop(o, arena_print(o->arena, "%s.content", place_of(o, turn)));
		break;
	case FORM_THOUGHT:
	case FORM_CALL:
	case FORM_RESULT: break;
	}
}

static bool
has_content(const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind != FORM_OPAQUE)
			return true;
	return false;
}

static void
drop_parts(struct responses_out *o, const struct form_turn *turn)
{
	if (turn->nparts > 0)
		responses_drop(o, arena_print(o->arena, "%s.content", place_of(o, turn)));
}

static void
emit_message(struct responses_out *o, const struct form_turn *turn, const char *role)
{
	if (!has_content(turn)) { /* an empty list is refused */
		drop_parts(o, turn);
		return;
	}
	if (turn->name.n > 0)
		responses_drop(o, arena_print(o->arena, "%s.name", place_of(o, turn)));
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "message");
	emit_z(&o->e, "role", role);
	emit_array(&o->e, "content");
	for (size_t i = 0; i < turn->nparts; i++)
		emit_input_part(o, turn, &turn->parts[i]);
	emit_end(&o->e);
	emit_end(&o->e);
}

/* Texts and refusals that stand together are one message. */
static size_t
emit_said(struct responses_out *o, const struct form_turn *turn, size_t i)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "message");
	emit_z(&o->e, "role", "assistant");
	emit_array(&o->e, "content");
	for (; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (part->kind != FORM_TEXT && part->kind != FORM_REFUSAL)
			break;
		if (part->cache_control.n > 0)
			responses_drop(o, "cache_control");
		emit_object(&o->e, NULL);
		emit_z(&o->e, "type", part->kind == FORM_TEXT ? "output_text" : "refusal");
		emit_text(&o->e, part->kind == FORM_TEXT ? "text" : "refusal", part->text);
		emit_end(&o->e);
	}
	emit_end(&o->e);
	emit_end(&o->e);
	return i;
}

/* Goes back to who made it, whole, or not at all. */
static void
emit_thought(struct responses_out *o, const struct form_part *part)
{
	struct span payload;

	if (!seal_fits(part->thought.seal, FORM_RESPONSES, o->target->channel, &payload)) {
		responses_drop(o, "reasoning");
		return;
	}
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "reasoning");
	emit_array(&o->e, "summary");
	if (part->text.n > 0) {
		emit_object(&o->e, NULL);
		emit_z(&o->e, "type", "summary_text");
		emit_text(&o->e, "text", part->text);
		emit_end(&o->e);
	}
	emit_end(&o->e);
	emit_text(&o->e, "encrypted_content", payload);
	emit_end(&o->e);
}

static void
emit_call(struct responses_out *o, const struct form_call *call)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", call->custom ? "custom_tool_call" : "function_call");
	emit_text(&o->e, "call_id", form_id(o->arena, FORM_RESPONSES, call->id));
	emit_text(&o->e, "name", responses_tool_name(o->arena, call->name, call->namespace));
	emit_text(&o->e, call->custom ? "input" : "arguments", call->arguments);
	emit_end(&o->e);
}

static void
emit_assistant(struct responses_out *o, const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts;) {
		const struct form_part *part = &turn->parts[i];

		switch (part->kind) {
		case FORM_TEXT:
		case FORM_REFUSAL: i = emit_said(o, turn, i); continue;
		case FORM_THOUGHT: emit_thought(o, part); break;
		case FORM_CALL: emit_call(o, &part->call); break;
		case FORM_OPAQUE:
			if (o->form->from == FORM_RESPONSES)
				emit_raw(&o->e, NULL, part->text);
			else
				responses_drop(
				    o, arena_print(o->arena, "%s.content", place_of(o, turn)));
			break;
		case FORM_IMAGE:
		case FORM_DOCUMENT:
		case FORM_AUDIO:
			responses_drop(o, arena_print(o->arena, "%s.content", place_of(o, turn)));
			break;
		case FORM_RESULT: break;
		}
		i++;
	}
}

static bool
is_text_only(const struct form_result *result)
{
	for (size_t i = 0; i < result->nparts; i++)
		if (result->parts[i].kind != FORM_TEXT)
			return false;
	return true;
}

/* Whether the mark of a failure must be put before the text. */
static bool
wants_prefix(const struct form_result *result)
{
	if (!result->is_error)
		return false;
	return result->nparts == 0 || result->parts[0].kind != FORM_TEXT ||
	       !text_starts_fold(result->parts[0].text, "error");
}

static struct span
joined(struct responses_out *o, const struct form_result *result)
{
	struct buf *out;

	if (result->nparts == 1 && !wants_prefix(result))
		return result->parts[0].text;
	out = arena_buf(o->arena, SIZE_MAX / 4);
	if (wants_prefix(result))
		buf_z(out, ERROR_PREFIX);
	for (size_t i = 0; i < result->nparts; i++) {
		if (i > 0)
			buf_char(out, '\n');
		buf_span(out, result->parts[i].text);
	}
	return buf_text(out);
}

static void
emit_result(struct responses_out *o, const struct form_turn *turn, const struct form_result *result,
    bool custom)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", custom ? "custom_tool_call_output" : "function_call_output");
	emit_text(&o->e, "call_id", form_id(o->arena, FORM_RESPONSES, result->id));
	if (is_text_only(result)) {
		emit_text(&o->e, "output", joined(o, result));
	} else {
		emit_array(&o->e, "output");
		if (wants_prefix(result))
			emit_input_text(o, SPAN(ERROR_PREFIX));
		for (size_t i = 0; i < result->nparts; i++)
			emit_input_part(o, turn, &result->parts[i]);
		emit_end(&o->e);
	}
	emit_end(&o->e);
}

/* Calls and results stand in the same order nearly always: one look finds it, and many are not worth it. */
static bool
is_custom(const struct form_turn *calls, const struct form_result *result, size_t *at)
{
	if (result->custom || calls == NULL)
		return result->custom;
	for (size_t n = 0; n < calls->nparts && n < LOOK_MAX; n++) {
		const struct form_part *part = &calls->parts[(*at + n) % calls->nparts];

		if (part->kind == FORM_CALL && text_equal(part->call.id, result->id)) {
			*at = (*at + n + 1) % calls->nparts;
			return part->call.custom;
		}
	}
	return false;
}

static void
emit_results(struct responses_out *o, const struct form_turn *calls, const struct form_turn *turn)
{
	size_t at = 0;

	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_result *result = &turn->parts[i].result;

		if (turn->parts[i].cache_control.n > 0)
			responses_drop(o, "cache_control");
		if (turn->parts[i].kind == FORM_RESULT)
			emit_result(o, turn, result, is_custom(calls, result, &at));
	}
}

static void
emit_turn(struct responses_out *o, size_t i)
{
	const struct form_turn *turn = &o->form->turns[i];
	const char *system = o->target->developer_as_system ? "system" : "developer";

	switch (turn->role) {
	case FORM_SYSTEM:
	case FORM_DEVELOPER:
		if (turn->at != SIZE_MAX)
			emit_message(o, turn, system);
		else
			for (size_t j = 0; j < turn->nparts; j++)
				if (turn->parts[j].cache_control.n > 0)
					responses_drop(o, "cache_control");
		break;
	case FORM_USER: emit_message(o, turn, "user"); break;
	case FORM_ASSISTANT: emit_assistant(o, turn); break;
	case FORM_TOOL: emit_results(o, i > 0 ? turn - 1 : NULL, turn); break;
	}
}

void
responses_emit_input(struct responses_out *o)
{
	emit_array(&o->e, "input");
	for (size_t i = 0; i < o->form->nturns; i++)
		emit_turn(o, i);
	emit_end(&o->e);
}
