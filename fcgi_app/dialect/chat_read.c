#include "dialect/form.h"

#include "dialect/chat_tools.h"
#include "dialect/chat_turns.h"

#define TOKENS_MAX (INT64_C(1) << 40)

/* What is settled when all members of the request were seen. */
struct request {
	struct chat_reader r;
	struct form *form;
	int64_t max_tokens, max_completion_tokens;
	struct span safety, user, metadata_user;
	bool has_choice;
};

static enum err
refuse(struct request *q, const char *name, const char *text)
{
	err_why(q->r.why, "'%s' %s", name, text);
	return ERR_BAD_INPUT;
}

static void
keep(struct request *q, const char *name, const struct scan_value *v)
{
	form_add_extra(q->r.arena, q->form, text_span(name), v->raw);
}

static enum err
read_nothing(struct request *q, const struct scan_value *v, const char *name)
{
	(void)q, (void)v, (void)name;
	return ERR_OK;
}

static enum err
read_messages(struct request *q, const struct scan_value *v, const char *name)
{
	(void)name;
	return chat_turns_read(&q->r, v);
}

static enum err
read_tools(struct request *q, const struct scan_value *v, const char *name)
{
	(void)name;
	return chat_tools_read(&q->r, v);
}

static enum err
read_functions(struct request *q, const struct scan_value *v, const char *name)
{
	(void)name;
	return chat_tools_functions(&q->r, v);
}

static enum err
read_choice(struct request *q, const struct scan_value *v, const char *name)
{
	/* the old one counts only where the new one is not there */
	if (q->has_choice && text_is(text_span(name), "function_call"))
		return ERR_OK;
	q->has_choice |= text_is(text_span(name), "tool_choice");
	q->form->allowed = NULL;
	q->form->nallowed = 0;
	return chat_tools_choice(&q->r, v);
}

/* Numbers of the form, as they stand. */
static struct span *
number_of(struct form *form, const char *name)
{
	const struct {
		const char *name;
		struct span *out;
	} numbers[] = {
	    {"temperature", &form->temperature},
	    {"top_p", &form->top_p},
	    {"top_k", &form->top_k},
	    {"frequency_penalty", &form->frequency_penalty},
	    {"presence_penalty", &form->presence_penalty},
	    {"seed", &form->seed},
	    {"top_logprobs", &form->top_logprobs},
	};

	for (size_t i = 0; i < NELEM(numbers); i++)
		if (text_is(text_span(name), numbers[i].name))
			return numbers[i].out;
	die("no number '%s' in a form", name);
}

static enum err
read_number(struct request *q, const struct scan_value *v, const char *name)
{
	if (v->type != SCAN_NUMBER)
		return refuse(q, name, "must be a number");
	*number_of(q->form, name) = v->raw;
	return ERR_OK;
}

static enum err
read_max(struct request *q, const struct scan_value *v, const char *name)
{
	int64_t *out =
	    text_is(text_span(name), "max_tokens") ? &q->max_tokens : &q->max_completion_tokens;

	if (v->type != SCAN_NUMBER || !scan_i64(v, 1, TOKENS_MAX, out))
		return refuse(q, name, "must be a whole number of at least 1");
	return ERR_OK;
}

static enum err
read_n(struct request *q, const struct scan_value *v, const char *name)
{
	int64_t n;

	if (v->type != SCAN_NUMBER || !scan_i64(v, 1, INT32_MAX, &n))
		return refuse(q, name, "must be a whole number of at least 1");
	if (n > 1)
		keep(q, name, v);
	return ERR_OK;
}

static enum err
read_stop(struct request *q, const struct scan_value *v, const char *name)
{
	struct span none;
	struct scan_value item;
	size_t at = 0, n = 0;

	if (v->type == SCAN_STRING) {
		q->form->stops = arena_alloc(q->r.arena, sizeof *q->form->stops);
		q->form->stops[0] = scan_string(q->r.arena, v->raw);
		q->form->nstops = 1;
		return ERR_OK;
	}
	if (v->type != SCAN_ARRAY)
		return refuse(q, name, "must be a string or an array of strings");
	for (; scan_next(v->raw, &at, &none, &item); n++)
		if (item.type != SCAN_STRING)
			return refuse(q, name, "must be a string or an array of strings");
	q->form->stops = arena_alloc(q->r.arena, (n + 1) * sizeof *q->form->stops);
	q->form->nstops = n;
	at = 0;
	for (n = 0; scan_next(v->raw, &at, &none, &item); n++)
		q->form->stops[n] = scan_string(q->r.arena, item.raw);
	return ERR_OK;
}

static enum err
read_flag(struct request *q, const struct scan_value *v, const char *name, bool *out)
{
	if (v->type != SCAN_TRUE && v->type != SCAN_FALSE)
		return refuse(q, name, "must be true or false");
	*out = v->type == SCAN_TRUE;
	return ERR_OK;
}

static enum err
read_stream(struct request *q, const struct scan_value *v, const char *name)
{
	return read_flag(q, v, name, &q->form->stream);
}

static enum err
read_stream_options(struct request *q, const struct scan_value *v, const char *name)
{
	static const char *const names[] = {"include_usage", "include_obfuscation"};
	struct scan_value found[NELEM(names)];

	if (v->type != SCAN_OBJECT)
		return refuse(q, name, "must be an object");
	chat_parts_pick(&q->r, v->raw, names, found, NELEM(names), name);
	q->form->wants_usage = found[0].type == SCAN_TRUE;
	return ERR_OK;
}

static enum err
read_parallel(struct request *q, const struct scan_value *v, const char *name)
{
	bool on;
	enum err err = read_flag(q, v, name, &on);

	if (err == ERR_OK)
		q->form->parallel = on ? FORM_TRUE : FORM_FALSE;
	return err;
}

static const struct {
	const char *name;
	enum form_effort effort;
} efforts[] = {
    {"none", FORM_EFFORT_NONE},
    {"minimal", FORM_EFFORT_MINIMAL},
    {"low", FORM_EFFORT_LOW},
    {"medium", FORM_EFFORT_MEDIUM},
    {"high", FORM_EFFORT_HIGH},
    {"xhigh", FORM_EFFORT_XHIGH},
    {"max", FORM_EFFORT_MAX},
    {"ultra", FORM_EFFORT_MAX},
    {"default", FORM_EFFORT_UNSET},
};

static enum err
read_effort(struct request *q, const struct scan_value *v, const char *name)
{
	for (size_t i = 0; v->type == SCAN_STRING && i < NELEM(efforts); i++)
		if (scan_is(v->raw, efforts[i].name)) {
			q->form->effort = efforts[i].effort;
			return ERR_OK;
		}
	return refuse(q, name, "must be none, minimal, low, medium, high, xhigh or max");
}

/* A host's own switch; an effort that is named counts more. */
static void
switch_thinking(struct request *q, bool on)
{
	if (q->form->effort == FORM_EFFORT_UNSET || !on)
		q->form->effort = on ? FORM_EFFORT_AUTO : FORM_EFFORT_NONE;
}

/* DeepSeek, Zhipu, Moonshot: {"type":"enabled"} */
static enum err
read_thinking(struct request *q, const struct scan_value *v, const char *name)
{
	static const char *const names[] = {"type", "budget_tokens"};
	struct scan_value found[NELEM(names)];

	if (v->type != SCAN_OBJECT)
		return refuse(q, name, "must be an object");
	chat_parts_pick(&q->r, v->raw, names, found, NELEM(names), name);
	if (found[0].type == SCAN_STRING)
		switch_thinking(q, !scan_is(found[0].raw, "disabled"));
	(void)scan_i64(&found[1], 0, TOKENS_MAX, &q->form->thinking_budget);
	return ERR_OK;
}

/* DashScope */
static enum err
read_enable_thinking(struct request *q, const struct scan_value *v, const char *name)
{
	bool on;
	enum err err = read_flag(q, v, name, &on);

	if (err == ERR_OK)
		switch_thinking(q, on);
	return err;
}

static enum err
read_budget(struct request *q, const struct scan_value *v, const char *name)
{
	if (!scan_i64(v, 0, TOKENS_MAX, &q->form->thinking_budget))
		return refuse(q, name, "must be a whole number");
	return ERR_OK;
}

/* OpenRouter, Together: {"effort","max_tokens","enabled"} */
static enum err
read_reasoning(struct request *q, const struct scan_value *v, const char *name)
{
	static const char *const names[] = {"effort", "max_tokens", "enabled"};
	struct scan_value found[NELEM(names)];

	if (v->type != SCAN_OBJECT)
		return refuse(q, name, "must be an object");
	chat_parts_pick(&q->r, v->raw, names, found, NELEM(names), name);
	(void)scan_i64(&found[1], 0, TOKENS_MAX, &q->form->thinking_budget);
	if (found[0].type != SCAN_ABSENT)
		return read_effort(q, &found[0], "reasoning.effort");
	if (found[2].type != SCAN_ABSENT)
		switch_thinking(q, found[2].type == SCAN_TRUE);
	return ERR_OK;
}

static enum err
read_schema(struct request *q, struct span object)
{
	static const char *const names[] = {"name", "description", "schema", "strict"};
	static const char where[] = "response_format.json_schema";
	struct scan_value v[NELEM(names)];
	struct form *form = q->form;

	chat_parts_pick(&q->r, object, names, v, NELEM(names), where);
	if (chat_parts_text(&q->r, &v[0], where, "name", &form->schema_name) != ERR_OK ||
	    chat_parts_text(&q->r, &v[1], where, "description", &form->schema_description) !=
	        ERR_OK)
		return ERR_BAD_INPUT;
	if (v[2].type != SCAN_OBJECT)
		return refuse(q, where, "has no 'schema'");
	form->schema = v[2].raw;
	if (v[3].type == SCAN_TRUE || v[3].type == SCAN_FALSE)
		form->schema_strict = v[3].type == SCAN_TRUE ? FORM_TRUE : FORM_FALSE;
	form->shape = FORM_SHAPE_SCHEMA;
	return ERR_OK;
}

static enum err
read_format(struct request *q, const struct scan_value *v, const char *name)
{
	static const char *const names[] = {"type", "json_schema"};
	struct scan_value found[NELEM(names)];

	if (v->type != SCAN_OBJECT)
		return refuse(q, name, "must be an object");
	chat_parts_pick(&q->r, v->raw, names, found, NELEM(names), name);
	if (found[0].type == SCAN_STRING && scan_is(found[0].raw, "text"))
		q->form->shape = FORM_SHAPE_TEXT;
	else if (found[0].type == SCAN_STRING && scan_is(found[0].raw, "json_object"))
		q->form->shape = FORM_SHAPE_OBJECT;
	else if (found[0].type == SCAN_STRING && scan_is(found[0].raw, "json_schema") &&
	         found[1].type == SCAN_OBJECT)
		return read_schema(q, found[1].raw);
	else
		return refuse(q, name, "must be of type text, json_object or json_schema");
	return ERR_OK;
}

static enum err
read_metadata(struct request *q, const struct scan_value *v, const char *name)
{
	struct scan_value value;
	struct span member;
	size_t at = 0;

	while (v->type == SCAN_OBJECT && scan_next(v->raw, &at, &member, &value))
		if (scan_is(member, "user_id") && value.type == SCAN_STRING)
			q->metadata_user = scan_string(q->r.arena, value.raw);
	if (v->type != SCAN_OBJECT || text_trim((struct span){v->raw.p + 1, v->raw.n - 2}).n > 0)
		keep(q, name, v);
	return ERR_OK;
}

static enum err
read_modalities(struct request *q, const struct scan_value *v, const char *name)
{
	struct scan_value value;
	struct span none;
	size_t at = 0;

	while (v->type == SCAN_ARRAY && scan_next(v->raw, &at, &none, &value))
		if (!scan_is(value.raw, "text")) {
			keep(q, name, v);
			break;
		}
	return ERR_OK;
}

static enum err
read_text(struct request *q, const struct scan_value *v, const char *name)
{
	const struct {
		const char *name;
		struct span *out;
	} texts[] = {
	    {"user", &q->user},
	    {"user_id", &q->user},
	    {"safety_identifier", &q->safety},
	    {"verbosity", &q->form->verbosity},
	    {"service_tier", &q->form->service_tier},
	    {"prompt_cache_key", &q->form->prompt_cache_key},
	};

	for (size_t i = 0; i < NELEM(texts); i++)
		if (text_is(text_span(name), texts[i].name))
			return chat_parts_text(&q->r, v, "", name, texts[i].out);
	die("no text '%s' in a form", name);
}

static const struct member {
	const char *name;
	enum err (*read)(struct request *q, const struct scan_value *v, const char *name);
} members[] = {
    {"model", read_nothing},
    {"messages", read_messages},
    {"tools", read_tools},
    {"tool_choice", read_choice},
    {"parallel_tool_calls", read_parallel},
    {"functions", read_functions},
    {"function_call", read_choice},
    {"max_tokens", read_max},
    {"max_completion_tokens", read_max},
    {"temperature", read_number},
    {"top_p", read_number},
    {"top_k", read_number},
    {"frequency_penalty", read_number},
    {"presence_penalty", read_number},
    {"seed", read_number},
    {"top_logprobs", read_number},
    {"n", read_n},
    {"stop", read_stop},
    {"stream", read_stream},
    {"stream_options", read_stream_options},
    {"reasoning_effort", read_effort},
    {"thinking", read_thinking},
    {"enable_thinking", read_enable_thinking},
    {"thinking_budget", read_budget},
    {"reasoning", read_reasoning},
    {"response_format", read_format},
    {"metadata", read_metadata},
    {"modalities", read_modalities},
    {"user", read_text},
    {"user_id", read_text},
    {"safety_identifier", read_text},
    {"verbosity", read_text},
    {"service_tier", read_text},
    {"prompt_cache_key", read_text},
};

static enum err
read_member(struct request *q, struct span name, const struct scan_value *value)
{
	for (size_t i = 0; i < NELEM(members); i++)
		if (scan_is(name, members[i].name))
			return members[i].read(q, value, members[i].name);
	form_add_extra(q->r.arena, q->form, scan_string(q->r.arena, name), value->raw);
	return ERR_OK;
}

enum err
form_read_chat(struct arena *arena, struct span body, struct form *out, struct why *why)
{
	struct request q = {.r = {.arena = arena, .form = out, .why = why},
	    .form = out,
	    .max_tokens = -1,
	    .max_completion_tokens = -1};
	struct scan_value value;
	struct span name;
	size_t at = 0;

	*out = (struct form){
	    .from = FORM_CHAT, .max_output = -1, .thinking_budget = -1, .wants_seals = true};
	body = text_trim(body);
	while (scan_next(body, &at, &name, &value))
		if (value.type != SCAN_NULL && read_member(&q, name, &value) != ERR_OK)
			return ERR_BAD_INPUT;
	out->max_output = q.max_completion_tokens >= 0 ? q.max_completion_tokens : q.max_tokens;
	out->user = q.safety.n > 0 ? q.safety : q.user.n > 0 ? q.user : q.metadata_user;
	return ERR_OK;
}
