#include "dialect/form.h"

#include "base/digest.h"
#include "dialect/chat_offer.h"
#include "dialect/openai.h"

#define USER_MAX 64
#define MILLION 1000000

/* A parameter as the client calls it. */
struct names {
	const char *of[FORM_WIRE__MAX];
};

/* clang-format off */
#define NAMES(chat, messages, responses) \
	((struct names){{[FORM_CHAT] = (chat), [FORM_MESSAGES] = (messages), [FORM_RESPONSES] = (responses)}})
/* clang-format on */

static void
drop(struct chat_writer *w, const char *name)
{
	form_drop(w->loss, w->arena, text_span(name));
}

static void
drop_as(struct chat_writer *w, struct names names)
{
	drop(w, names.of[w->form->from]);
}

static enum err
write_max(struct chat_writer *w)
{
	static const struct names names = {{"max_tokens", "max_tokens", "max_output_tokens"}};
	int64_t n = w->form->max_output;
	struct span name = w->target->max_tokens_name;

	if (n < 0)
		return ERR_OK;
	if (n == 0) {
		err_why(w->why, "'%s' must be at least 1", names.of[w->form->from]);
		return ERR_BAD_INPUT;
	}
	if (w->target->max_output >= 0 && n > w->target->max_output) {
		n = w->target->max_output;
		drop_as(w, names);
	}
	emit_i64(&w->e,
	    text_is(name, "max_tokens") || text_is(name, "max_completion_tokens")
	        ? arena_z(w->arena, name)
	        : w->host->max_tokens,
	    n);
	return ERR_OK;
}

static int64_t
bounded(int64_t value, int64_t min, int64_t max)
{
	if (max > 0 && value > max)
		return max;
	return value < min ? min : value;
}

/* A number as it stands, or the bound that it passes. */
static void
write_bounded(struct chat_writer *w, const char *name, struct span raw, int64_t min, int64_t max)
{
	struct scan_value value = {SCAN_NUMBER, raw};
	int64_t given = 0, v;

	if (raw.n == 0)
		return;
	if (!openai_micros(&value, &given))
		given = text_starts(raw, "-") ? -1 : INT64_MAX; /* too large to be counted */
	v = min > 0 || max > 0 ? bounded(given, min, max) : given;
	if (v == given) {
		emit_raw(&w->e, name, raw);
		return;
	}
	emit_real(&w->e, name, (double)v / MILLION, v % MILLION == 0 ? 0 : 2);
	drop(w, name);
}

static bool
is_one(struct span raw)
{
	struct scan_value value = {SCAN_NUMBER, raw};
	int64_t v;

	return scan_i64(&value, 1, 1, &v);
}

static void
write_number(struct chat_writer *w, const char *name, struct span raw, bool known)
{
	if (raw.n > 0 && known)
		emit_raw(&w->e, name, raw);
	else if (raw.n > 0)
		drop(w, name);
}

static void
write_sampling(struct chat_writer *w)
{
	const struct form *f = w->form;
	const struct chat_host *h = w->host;
	bool reasoner = chat_host_is_reasoner(h, w->target, f);

	/* they take the default and nothing else */
	if (reasoner && f->temperature.n > 0 && !is_one(f->temperature))
		drop(w, "temperature");
	else
		write_bounded(
		    w, "temperature", f->temperature, h->temperature_min, h->temperature_max);
	if (reasoner && f->top_p.n > 0 && !is_one(f->top_p))
		drop(w, "top_p");
	else
		write_bounded(w, "top_p", f->top_p, h->top_p_min, h->top_p_max);
	write_number(w, "top_k", f->top_k, h->top_k || f->from == FORM_CHAT);
	write_number(w, "frequency_penalty", f->frequency_penalty, !reasoner);
	write_number(w, "presence_penalty", f->presence_penalty, !reasoner);
	write_number(w, "seed", f->seed, true);
	if (f->top_logprobs.n > 0 && !text_is(f->top_logprobs, "0")) {
		if (f->from != FORM_CHAT)
			emit_bool(&w->e, "logprobs", true);
		emit_raw(&w->e, "top_logprobs", f->top_logprobs);
	}
}

static void
write_stops(struct chat_writer *w)
{
	static const struct names names = {{"stop", "stop_sequences", "stop"}};
	size_t n = 0;

	for (size_t i = 0; i < w->form->nstops; i++)
		n += w->form->stops[i].n > 0;
	if (n == 0)
		return;
	if (chat_host_is_reasoner(w->host, w->target, w->form)) {
		drop_as(w, names);
		return;
	}
	if (w->host->stops > 0 && n > w->host->stops) {
		n = w->host->stops;
		drop_as(w, names);
	}
	emit_array(&w->e, "stop");
	for (size_t i = 0; i < w->form->nstops && n > 0; i++) {
		if (w->form->stops[i].n == 0)
			continue;
		emit_text(&w->e, NULL, w->form->stops[i]);
		n--;
	}
	emit_end(&w->e);
}

static void
write_shape(struct chat_writer *w)
{
	static const struct names names = {
	    {"response_format", "output_config.format", "text.format"}};
	const struct form *f = w->form;
	enum form_switch strict = f->schema_strict;

	if (f->shape == FORM_SHAPE_UNSET || f->shape == FORM_SHAPE_TEXT)
		return;
	if (f->shape == FORM_SHAPE_SCHEMA && strict == FORM_UNSET && f->from == FORM_MESSAGES)
		strict = FORM_TRUE; /* there it always is */
	emit_object(&w->e, "response_format");
	if (f->shape == FORM_SHAPE_OBJECT || !w->host->schema) {
		if (f->shape == FORM_SHAPE_SCHEMA)
			drop_as(w, names);
		emit_z(&w->e, "type", "json_object");
	} else {
		emit_z(&w->e, "type", "json_schema");
		emit_object(&w->e, "json_schema");
		emit_text(&w->e, "name", f->schema_name.n > 0 ? f->schema_name : SPAN("output"));
		if (f->schema_description.n > 0)
			emit_text(&w->e, "description", f->schema_description);
		emit_raw(&w->e, "schema", f->schema);
		if (strict != FORM_UNSET)
			emit_bool(&w->e, "strict", strict == FORM_TRUE);
		emit_end(&w->e);
	}
	emit_end(&w->e);
}

/* Hosts bound its length; who the user is must stay one value, so a long one is hashed. */
static void
write_user(struct chat_writer *w)
{
	static const struct names names = {{"user", "metadata.user_id", "user"}};
	char hex[2 * DIGEST_BYTES];

	if (w->form->user.n == 0)
		return;
	if (w->host->user == NULL) {
		drop_as(w, names);
		return;
	}
	if (w->form->user.n <= USER_MAX) {
		emit_text(&w->e, w->host->user, w->form->user);
		return;
	}
	digest_hex(w->form->user, sizeof hex, hex);
	emit_text(&w->e, w->host->user, (struct span){hex, sizeof hex});
}

static void
write_openai_text(struct chat_writer *w, const char *name, struct span text, bool known)
{
	if (text.n > 0 && known && w->host->openai)
		emit_text(&w->e, name, text);
	else if (text.n > 0)
		drop(w, name);
}

/* Extras that must not be left out. */
static enum err
check_extra(struct chat_writer *w, const struct form_extra *extra)
{
	static const char *const refused[] = {
	    "n", "audio", "modalities", "prompt", "conversation", "previous_response_id"};
	bool background = text_is(extra->name, "background") && text_is(extra->value, "true");

	for (size_t i = 0; i < NELEM(refused); i++)
		if (background || text_is(extra->name, refused[i])) {
			err_why(w->why,
			    "'%.*s' cannot be kept for this model, whose provider is asked in "
			    "another way",
			    (int)text_cut(extra->name, 80), extra->name.p);
			return ERR_BAD_INPUT;
		}
	return ERR_OK;
}

static bool
is_for_openai(struct span name)
{
	static const char *const names[] = {"store", "metadata", "prompt_cache_options",
	    "prompt_cache_retention", "moderation", "prediction"};

	for (size_t i = 0; i < NELEM(names); i++)
		if (text_is(name, names[i]))
			return true;
	return false;
}

/* What another wire's client means by the name is its own affair, metadata being the same. */
static bool
is_kept(const struct chat_writer *w, const struct form_extra *extra)
{
	bool top = text_find(extra->name, SPAN(".")) == extra->name.n &&
	           !text_is(extra->name, "reasoning_details");

	if (w->form->from == FORM_RESPONSES)
		return w->host->openai && text_is(extra->name, "metadata");
	return w->form->from == FORM_CHAT && top &&
	       (w->host->openai || !is_for_openai(extra->name));
}

static enum err
write_extras(struct chat_writer *w)
{
	for (size_t i = 0; i < w->form->nextras; i++) {
		const struct form_extra *extra = &w->form->extras[i];

		if (check_extra(w, extra) != ERR_OK)
			return ERR_BAD_INPUT;
		if (is_kept(w, extra))
			emit_raw(&w->e, arena_z(w->arena, extra->name), extra->value);
		else
			form_drop(w->loss, w->arena, extra->name);
	}
	return ERR_OK;
}

static void
write_stream(struct chat_writer *w)
{
	if (!w->target->stream)
		return;
	emit_bool(&w->e, "stream", true);
	if (w->target->no_stream_options)
		return;
	emit_object(&w->e, "stream_options");
	emit_bool(&w->e, "include_usage", true);
	emit_end(&w->e);
}

enum err
form_write_chat(struct arena *arena, const struct form *form, const struct form_target *target,
    struct buf *out, struct form_loss *loss, struct why *why)
{
	struct chat_writer w = {.arena = arena,
	    .form = form,
	    .target = target,
	    .host = chat_host_of(target->provider),
	    .loss = loss,
	    .why = why};

	emit_init(&w.e, out);
	emit_object(&w.e, NULL);
	emit_text(&w.e, "model", target->model);
	if (chat_say_turns(&w) != ERR_OK || chat_offer_tools(&w) != ERR_OK ||
	    write_max(&w) != ERR_OK)
		return ERR_BAD_INPUT;
	write_sampling(&w);
	write_stops(&w);
	write_shape(&w);
	if (!chat_host_thinking(w.host, target, form, &w.e))
		drop_as(&w, NAMES("reasoning_effort", "thinking", "reasoning.effort"));
	write_user(&w);
	write_openai_text(&w, "verbosity", form->verbosity, true);
	write_openai_text(&w, "service_tier", form->service_tier, form->from != FORM_MESSAGES);
	write_openai_text(&w, "prompt_cache_key", form->prompt_cache_key, true);
	write_stream(&w);
	if (write_extras(&w) != ERR_OK)
		return ERR_BAD_INPUT;
	emit_end(&w.e);
	return ERR_OK;
}
