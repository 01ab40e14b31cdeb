#include "dialect/responses.h"

#include "base/digest.h"
#include "dialect/seal.h"

#include <stdio.h>

#define OUTPUT_MIN_TOKENS 16 /* formats.md B.1 */
#define KEY_MAX_BYTES 64     /* of user, safety_identifier, prompt_cache_key: A.1 */

void
responses_drop(struct responses_out *o, const char *name)
{
	if (o->loss != NULL)
		form_drop(o->loss, o->arena, text_span(name));
}

void
responses_refuse(struct responses_out *o, const char *fmt, ...)
{
	char text[sizeof o->why->text];
	va_list args;

	if (o->err != ERR_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	err_why(o->why, "%s", text);
	o->err = ERR_BAD_INPUT;
}

static bool
is_thinking(const struct form *f)
{
	return f->thinking_budget > 0 ||
	       (f->effort != FORM_EFFORT_UNSET && f->effort != FORM_EFFORT_NONE);
}

static void
emit_reasoning(struct responses_out *o)
{
	const struct form *f = o->form;
	const struct form_extra *summary = responses_extra(f, "reasoning.summary");
	const char *effort = responses_effort(f);
	/* who asks for thinking there is shown it */
	bool shown = f->from == FORM_MESSAGES && is_thinking(f);

	if (f->from != FORM_RESPONSES)
		summary = NULL;
	if (effort == NULL && summary == NULL && !shown)
		return;
	emit_object(&o->e, "reasoning");
	if (effort != NULL)
		emit_z(&o->e, "effort", effort);
	if (summary != NULL)
		emit_raw(&o->e, "summary", summary->value);
	else if (shown)
		emit_z(&o->e, "summary", "auto");
	emit_end(&o->e);
}

static bool
has_own_thoughts(const struct responses_out *o)
{
	struct span payload;

	for (size_t i = 0; i < o->form->nturns; i++) {
		const struct form_turn *turn = &o->form->turns[i];

		for (size_t j = 0; j < turn->nparts; j++)
			if (turn->parts[j].kind == FORM_THOUGHT &&
			    seal_fits(turn->parts[j].thought.seal, FORM_RESPONSES,
			        o->target->channel, &payload))
				return true;
	}
	return false;
}

/* Models that do not reason answer 400 to it: who has not named it must at least ask for thinking. */
static void
emit_include(struct responses_out *o)
{
	const struct form *f = o->form;
	bool asked = f->wants_seals && (f->from == FORM_RESPONSES || is_thinking(f));

	if (!asked && !has_own_thoughts(o))
		return;
	emit_array(&o->e, "include");
	emit_z(&o->e, NULL, "reasoning.encrypted_content");
	emit_end(&o->e);
}

static void
emit_limit(struct responses_out *o)
{
	int64_t tokens = o->form->max_output;

	if (tokens < 0)
		return;
	if (tokens == 0) { /* only to warm a cache, which is not to be paid for as an answer */
		responses_refuse(o, "'%s' must be at least 1",
		    o->form->from == FORM_RESPONSES ? "max_output_tokens" : "max_tokens");
		return;
	}
	if (o->target->max_output > 0 && tokens > o->target->max_output)
		tokens = o->target->max_output;
	if (tokens < OUTPUT_MIN_TOKENS)
		tokens = OUTPUT_MIN_TOKENS;
	emit_i64(&o->e, "max_output_tokens", tokens);
}

static void
emit_numbers(struct responses_out *o)
{
	const struct form *f = o->form;
	const struct {
		const char *name;
		const struct span *value;
		bool known;
	} numbers[] = {
	    {"temperature", &f->temperature, true}, {"top_p", &f->top_p, true},
	    {"top_k", &f->top_k, false}, {"frequency_penalty", &f->frequency_penalty, false},
	    {"presence_penalty", &f->presence_penalty, false}, {"seed", &f->seed, false},
	    {"top_logprobs", &f->top_logprobs, false}, /* answers would lose them on the way back */
	};

	for (size_t i = 0; i < NELEM(numbers); i++) {
		if (numbers[i].value->n == 0)
			continue;
		if (numbers[i].known)
			emit_raw(&o->e, numbers[i].name, *numbers[i].value);
		else
			responses_drop(o, numbers[i].name);
	}
	if (f->nstops > 0)
		responses_drop(o, f->from == FORM_MESSAGES ? "stop_sequences" : "stop");
}

/* Itself, or where it is too long its hash. */
static struct span
short_key(struct responses_out *o, struct span key)
{
	char *out;

	if (key.n <= KEY_MAX_BYTES)
		return key;
	out = arena_alloc(o->arena, KEY_MAX_BYTES);
	digest_hex(key, KEY_MAX_BYTES, out);
	return (struct span){out, KEY_MAX_BYTES};
}

static void
emit_keys(struct responses_out *o)
{
	const struct form *f = o->form;
	struct span key = f->prompt_cache_key;

	if (f->user.n > 0)
		emit_text(&o->e, "user", short_key(o, f->user));
	/* there it holds the session */
	if (key.n == 0 && f->from == FORM_MESSAGES)
		key = f->user;
	if (key.n > 0)
		emit_text(&o->e, "prompt_cache_key", short_key(o, key));
	if (text_is(f->service_tier, "standard_only"))
		emit_z(&o->e, "service_tier", "default");
	else if (f->service_tier.n > 0)
		emit_text(&o->e, "service_tier", f->service_tier);
}

/* Says the same as nothing. */
static bool
is_default(const struct form_extra *extra)
{
	static const struct {
		const char *name, *value;
	} defaults[] = {
	    {"n", "1"},
	    {"logprobs", "false"},
	    {"store", "false"},
	};

	for (size_t i = 0; i < NELEM(defaults); i++)
		if (text_is(extra->name, defaults[i].name) &&
		    text_is(extra->value, defaults[i].value))
			return true;
	return false;
}

/* Those that this API knows by the same name and in the same shape, and from whom. */
static bool
is_known(const struct responses_out *o, const struct form_extra *extra)
{
	static const struct {
		const char *name;
		bool chat; /* chat has it, too */
	} known[] = {
	    {"metadata", true},
	    {"prompt_cache_retention", true},
	    {"prompt_cache_options", true},
	    {"moderation", true},
	    {"truncation", false},
	    {"max_tool_calls", false},
	};

	for (size_t i = 0; i < NELEM(known); i++)
		if (text_is(extra->name, known[i].name))
			return o->form->from == FORM_RESPONSES ||
			       (known[i].chat && o->form->from == FORM_CHAT);
	return false;
}

static void
emit_extras(struct responses_out *o)
{
	const struct form *f = o->form;

	for (size_t i = 0; i < f->nextras; i++) {
		const struct form_extra *extra = &f->extras[i];

		if (is_default(extra) ||
		    (f->from == FORM_RESPONSES && text_is(extra->name, "reasoning.summary")))
			continue;
		if (text_is(extra->name, "n") || text_is(extra->name, "audio") ||
		    text_is(extra->name, "modalities")) {
			responses_refuse(o,
			    "'%.*s' is not possible with the provider of this model",
			    (int)extra->name.n, extra->name.p);
		} else if (is_known(o, extra)) {
			emit_raw(&o->e, arena_z(o->arena, extra->name), extra->value);
		} else {
			form_drop(o->loss, o->arena, extra->name);
		}
	}
}

static void
emit_all_tools(struct responses_out *o)
{
	const struct form *f = o->form;

	if (responses_emit_tools(o) == 0) {
		if (f->choice == FORM_CHOICE_REQUIRED || f->choice == FORM_CHOICE_NAMED)
			responses_drop(o, "tool_choice");
		return;
	}
	responses_emit_choice(o);
	if (f->parallel != FORM_UNSET)
		emit_bool(&o->e, "parallel_tool_calls", f->parallel == FORM_TRUE);
}

enum err
form_write_responses(struct arena *arena, const struct form *form, const struct form_target *target,
    struct buf *out, struct form_loss *loss, struct why *why)
{
	struct responses_out o = {
	    .arena = arena, .form = form, .loss = loss, .why = why, .target = target};
	struct span instructions = responses_instructions(arena, form);

	emit_init(&o.e, out);
	emit_object(&o.e, NULL);
	emit_text(&o.e, "model", target->model);
	if (instructions.n > 0)
		emit_text(&o.e, "instructions", instructions);
	responses_emit_input(&o);
	emit_all_tools(&o);
	emit_limit(&o);
	emit_numbers(&o);
	emit_reasoning(&o);
	responses_emit_text(&o);
	emit_include(&o);
	emit_keys(&o);
	emit_extras(&o);
	emit_bool(&o.e, "store", false);
	if (target->stream)
		emit_bool(&o.e, "stream", true);
	emit_end(&o.e);
	return o.err;
}
