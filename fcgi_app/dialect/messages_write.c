#include "dialect/messages.h"
#include "dialect/messages_writer.h"
#include "dialect/openai.h"

#define DEFAULT_MAX_TOKENS 32000 /* formats.md E.1 */
#define USER_MAX_BYTES 256       /* of metadata.user_id: formats.md C.2 */
#define ONE_MICROS 1000000

static int64_t
micros_of(struct span number)
{
	struct scan_value v = {SCAN_NUMBER, number};
	int64_t micros;

	if (openai_micros(&v, &micros))
		return micros;
	return text_starts(number, "-") ? -1 : INT64_MAX; /* too large to be counted */
}

/* What must not be left out, as the answer would be another one. */
static enum err
check_extras(struct messages_writer *w)
{
	static const char *const refused[] = {
	    "n", "audio", "modalities", "prompt", "conversation", "previous_response_id"};
	const struct form *form = w->form;

	for (size_t i = 0; i < form->nextras && form->from != FORM_MESSAGES; i++) {
		const struct form_extra *extra = &form->extras[i];
		bool bad = text_is(extra->name, "background") && text_is(extra->value, "true");

		for (size_t k = 0; k < NELEM(refused); k++)
			bad |= text_is(extra->name, refused[k]);
		if (text_is(extra->name, "n") && text_is(extra->value, "1"))
			bad = false;
		if (bad) {
			err_why(w->why, "'%.*s' is not possible with the provider of this model",
			    (int)(extra->name.n < 80 ? extra->name.n : 80), extra->name.p);
			return ERR_BAD_INPUT;
		}
	}
	return ERR_OK;
}

static void
write_extras(struct messages_writer *w)
{
	const struct form *form = w->form;

	for (size_t i = 0; i < form->nextras; i++) {
		const struct form_extra *extra = &form->extras[i];
		bool top = text_find(extra->name, SPAN(".")) == extra->name.n;

		if (form->from == FORM_MESSAGES && top)
			emit_raw(&w->e, arena_z(w->arena, extra->name), extra->value);
		else if (!text_is(extra->name, "n"))
			form_drop(w->loss, w->arena, extra->name);
	}
}

/* The limit, and how to think within it. */
static void
plan_tokens(struct messages_writer *w)
{
	const struct form *form = w->form;
	int64_t cap = w->target->max_output;
	bool given = form->max_output >= 0;

	if (cap < 0 && w->model->max_output > 0)
		cap = w->model->max_output;
	w->max_tokens = given ? form->max_output : DEFAULT_MAX_TOKENS;
	if (!given && w->target->max_output >= 0)
		w->max_tokens = w->target->max_output;
	if (cap >= 0 && w->max_tokens > cap)
		w->max_tokens = cap;
	w->thinking = messages_model_think(w->model, form, given, cap, &w->max_tokens);
	if (w->thinking.kind == MESSAGES_BUDGET && !messages_may_think(w->form, w->target))
		w->thinking = (struct messages_thinking){.lost = true};
	if (w->thinking.lost)
		messages_writer_drop_one(w, "reasoning_effort", "reasoning.effort", "thinking");
}

static void
write_thinking(struct messages_writer *w)
{
	static const char *const types[] = {[MESSAGES_UNSAID] = NULL,
	    [MESSAGES_OFF] = "disabled",
	    [MESSAGES_BUDGET] = "enabled",
	    [MESSAGES_ADAPTIVE] = "adaptive"};

	if (types[w->thinking.kind] == NULL)
		return;
	emit_object(&w->e, "thinking");
	emit_z(&w->e, "type", types[w->thinking.kind]);
	if (w->thinking.kind == MESSAGES_BUDGET)
		emit_i64(&w->e, "budget_tokens", w->thinking.budget);
	emit_end(&w->e);
}

static void
plan_shape(struct messages_writer *w)
{
	const struct form *form = w->form;
	bool strict = form->shape == FORM_SHAPE_SCHEMA && form->schema_strict == FORM_TRUE;

	/* schemas that are not strict may hold what this API refuses: they are asked for in words */
	w->ask_for_json = form->shape == FORM_SHAPE_OBJECT ||
	                  (form->shape == FORM_SHAPE_SCHEMA && !(strict && w->model->structured));
	if (strict && w->ask_for_json)
		messages_writer_drop_one(w, "response_format.json_schema.strict",
		    "text.format.strict", "output_config.format");
}

static void
write_output_config(struct messages_writer *w)
{
	bool format = w->form->shape == FORM_SHAPE_SCHEMA && !w->ask_for_json;

	if (!format && w->thinking.effort == NULL)
		return;
	emit_object(&w->e, "output_config");
	if (w->thinking.effort != NULL)
		emit_z(&w->e, "effort", w->thinking.effort);
	if (format) {
		emit_object(&w->e, "format");
		emit_z(&w->e, "type", "json_schema");
		emit_raw(&w->e, "schema", w->form->schema);
		emit_end(&w->e);
	}
	emit_end(&w->e);
}

static void
write_temperature(struct messages_writer *w)
{
	struct span t = w->form->temperature;
	int64_t micros = t.n > 0 ? micros_of(t) : 0;

	if (t.n == 0)
		return;
	if (w->model->no_sampling || messages_writer_thinks(w)) {
		if (micros != ONE_MICROS) /* which is what it will be */
			messages_writer_drop(w, "temperature");
		return;
	}
	if (micros > ONE_MICROS || micros < 0)
		messages_writer_drop(w, "temperature");
	if (micros > ONE_MICROS)
		t = SPAN("1");
	emit_raw(&w->e, "temperature", micros < 0 ? SPAN("0") : t);
}

static void
write_top(struct messages_writer *w)
{
	const struct form *form = w->form;
	bool both = form->temperature.n > 0 && w->model->one_of_two;
	bool thinks = messages_writer_thinks(w);

	/* who thinks takes a top_p of 0.95 and more, and no temperature beside it */
	if (form->top_p.n > 0) {
		bool high = micros_of(form->top_p) >= ONE_MICROS / 100 * 95;

		if (w->model->no_sampling || (thinks ? !high : both))
			messages_writer_drop(w, "top_p");
		else
			emit_raw(&w->e, "top_p", form->top_p);
	}
	if (form->top_k.n > 0) {
		if (w->model->no_sampling || thinks)
			messages_writer_drop(w, "top_k");
		else
			emit_raw(&w->e, "top_k", form->top_k);
	}
}

static void
write_stops(struct messages_writer *w)
{
	const struct form *form = w->form;
	size_t kept = 0;

	for (size_t i = 0; i < form->nstops; i++)
		kept += text_trim(form->stops[i]).n > 0;
	if (kept < form->nstops) /* this API takes no blank ones */
		messages_writer_drop_one(w, "stop", "stop", "stop_sequences");
	if (kept == 0)
		return;
	emit_array(&w->e, "stop_sequences");
	for (size_t i = 0; i < form->nstops; i++)
		if (text_trim(form->stops[i]).n > 0)
			emit_text(&w->e, NULL, form->stops[i]);
	emit_end(&w->e);
}

static void
write_user(struct messages_writer *w)
{
	const struct form *form = w->form;
	struct span user = form->user.n > 0 ? form->user : form->prompt_cache_key;

	if (form->user.n > 0 && form->prompt_cache_key.n > 0)
		messages_writer_drop(w, "prompt_cache_key");
	if (user.n == 0)
		return;
	if (user.n > USER_MAX_BYTES)
		user = form_id(w->arena, FORM_RESPONSES, user);
	emit_object(&w->e, "metadata");
	emit_text(&w->e, "user_id", user);
	emit_end(&w->e);
}

static void
write_tier(struct messages_writer *w)
{
	struct span tier = w->form->service_tier;

	if (tier.n == 0)
		return;
	if (text_is(tier, "auto") || text_is(tier, "standard_only"))
		emit_text(&w->e, "service_tier", tier);
	else if (text_is(tier, "default"))
		emit_z(&w->e, "service_tier", "standard_only");
	else
		messages_writer_drop(w, "service_tier");
}

/* Members of the form that this API has no counterpart of. */
static void
drop_others(struct messages_writer *w)
{
	const struct form *form = w->form;
	const struct {
		const char *name;
		struct span value;
	} rows[] = {
	    {"seed", form->seed},
	    {"top_logprobs", form->top_logprobs},
	    {"verbosity", form->verbosity},
	};

	for (size_t i = 0; i < NELEM(rows); i++)
		if (rows[i].value.n > 0)
			messages_writer_drop(w, rows[i].name);
	/* a penalty of 0 is none */
	if (form->frequency_penalty.n > 0 && micros_of(form->frequency_penalty) != 0)
		messages_writer_drop(w, "frequency_penalty");
	if (form->presence_penalty.n > 0 && micros_of(form->presence_penalty) != 0)
		messages_writer_drop(w, "presence_penalty");
}

enum err
form_write_messages(struct arena *arena, const struct form *form, const struct form_target *target,
    struct buf *out, struct form_loss *loss, struct why *why)
{
	struct messages_writer w = {.arena = arena,
	    .form = form,
	    .target = target,
	    .model = messages_model_of(target->model),
	    .loss = loss,
	    .why = why};

	emit_init(&w.e, out);
	if (check_extras(&w) != ERR_OK)
		return ERR_BAD_INPUT;
	plan_tokens(&w);
	plan_shape(&w);
	emit_object(&w.e, NULL);
	emit_text(&w.e, "model", target->model);
	emit_i64(&w.e, "max_tokens", w.max_tokens);
	if (messages_parts_write(&w) != ERR_OK || messages_tools_write(&w) != ERR_OK)
		return ERR_BAD_INPUT;
	write_thinking(&w);
	write_output_config(&w);
	write_temperature(&w);
	write_top(&w);
	write_stops(&w);
	write_user(&w);
	write_tier(&w);
	drop_others(&w);
	write_extras(&w);
	if (target->stream)
		emit_bool(&w.e, "stream", true);
	emit_end(&w.e);
	return ERR_OK;
}
