#include "dialect/responses_read.h"

#include "dialect/value.h"

#include <stdio.h>

#define TOKENS_MAX (INT64_C(1) << 40)

enum {
	INPUT,
	INSTRUCTIONS,
	TOOLS,
	TOOL_CHOICE,
	PARALLEL,
	MAX_OUTPUT,
	TEMPERATURE,
	TOP_P,
	TOP_LOGPROBS,
	TEXT,
	REASONING,
	INCLUDE,
	STREAM,
	USER,
	SAFETY,
	SERVICE_TIER,
	CACHE_KEY,
	BACKGROUND,
	PROMPT,
	CONVERSATION,
	/* not of the form, and no loss: another part's, or the same for every wire */
	MODEL,
	STORE,
	PREVIOUS,
	TOP__MAX
};

static const char *const top_paths[TOP__MAX] = {
    [INPUT] = "input",
    [INSTRUCTIONS] = "instructions",
    [TOOLS] = "tools",
    [TOOL_CHOICE] = "tool_choice",
    [PARALLEL] = "parallel_tool_calls",
    [MAX_OUTPUT] = "max_output_tokens",
    [TEMPERATURE] = "temperature",
    [TOP_P] = "top_p",
    [TOP_LOGPROBS] = "top_logprobs",
    [TEXT] = "text",
    [REASONING] = "reasoning",
    [INCLUDE] = "include",
    [STREAM] = "stream",
    [USER] = "user",
    [SAFETY] = "safety_identifier",
    [SERVICE_TIER] = "service_tier",
    [CACHE_KEY] = "prompt_cache_key",
    [BACKGROUND] = "background",
    [PROMPT] = "prompt",
    [CONVERSATION] = "conversation",
    [MODEL] = "model",
    [STORE] = "store",
    [PREVIOUS] = "previous_response_id",
};

enum err
responses_read_refuse(struct responses_reader *r, const char *fmt, ...)
{
	char text[sizeof r->why->text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	err_why(r->why, "%s", text);
	return ERR_BAD_INPUT;
}

static bool
is_absent(const struct scan_value *v)
{
	return v->type == SCAN_ABSENT || v->type == SCAN_NULL;
}

/* A decoded string; null is like absent. */
static enum err
read_string(
    struct responses_reader *r, const struct scan_value *v, const char *name, struct span *out)
{
	if (is_absent(v))
		return ERR_OK;
	if (v->type != SCAN_STRING)
		return responses_read_refuse(r, "'%s' must be a string", name);
	*out = scan_string(r->arena, v->raw);
	return ERR_OK;
}

static enum err
read_number(
    struct responses_reader *r, const struct scan_value *v, const char *name, struct span *out)
{
	if (is_absent(v))
		return ERR_OK;
	if (v->type != SCAN_NUMBER)
		return responses_read_refuse(r, "'%s' must be a number", name);
	*out = v->raw;
	return ERR_OK;
}

static enum err
read_switch(
    struct responses_reader *r, const struct scan_value *v, const char *name, enum form_switch *out)
{
	if (is_absent(v))
		return ERR_OK;
	if (v->type != SCAN_TRUE && v->type != SCAN_FALSE)
		return responses_read_refuse(r, "'%s' must be true or false", name);
	*out = v->type == SCAN_TRUE ? FORM_TRUE : FORM_FALSE;
	return ERR_OK;
}

static enum err
read_scalars(struct responses_reader *r, const struct scan_value v[TOP__MAX])
{
	struct form *f = r->form;
	const struct {
		size_t member;
		struct span *out;
		bool number;
	} scalars[] = {
	    {TEMPERATURE, &f->temperature, true},
	    {TOP_P, &f->top_p, true},
	    {TOP_LOGPROBS, &f->top_logprobs, true},
	    {USER, &f->user, false},
	    {SAFETY, &f->user, false}, /* the newer name counts */
	    {SERVICE_TIER, &f->service_tier, false},
	    {CACHE_KEY, &f->prompt_cache_key, false},
	};
	enum err err = ERR_OK;

	for (size_t i = 0; i < NELEM(scalars) && err == ERR_OK; i++) {
		const char *name = top_paths[scalars[i].member];
		const struct scan_value *value = &v[scalars[i].member];

		err = scalars[i].number ? read_number(r, value, name, scalars[i].out)
		                        : read_string(r, value, name, scalars[i].out);
	}
	if (err == ERR_OK)
		err = read_switch(r, &v[PARALLEL], top_paths[PARALLEL], &f->parallel);
	if (err == ERR_OK && !is_absent(&v[MAX_OUTPUT]) &&
	    !scan_i64(&v[MAX_OUTPUT], 1, TOKENS_MAX, &f->max_output))
		return responses_read_refuse(r, "'max_output_tokens' must be a positive number");
	f->stream = v[STREAM].type == SCAN_TRUE;
	return err;
}

/* A member's member that the form has no place for. */
static void
keep(struct responses_reader *r, const char *parent, struct span name, struct span raw)
{
	const struct span parts[] = {text_span(parent), SPAN("."), name};

	form_add_extra(r->arena, r->form, text_span(arena_join(r->arena, parts, 3)), raw);
}

static void
read_effort(struct responses_reader *r, const struct scan_value *v)
{
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
	};

	if (v->type == SCAN_STRING)
		for (size_t i = 0; i < NELEM(efforts); i++)
			if (scan_is(v->raw, efforts[i].name)) {
				r->form->effort = efforts[i].effort;
				return;
			}
	keep(r, "reasoning", SPAN("effort"), v->raw);
}

static enum err
read_reasoning(struct responses_reader *r, const struct scan_value *reasoning)
{
	struct scan_value v;
	struct span name;
	size_t at = 0;

	if (is_absent(reasoning))
		return ERR_OK;
	if (reasoning->type != SCAN_OBJECT)
		return responses_read_refuse(r, "'reasoning' must be an object");
	while (scan_next(reasoning->raw, &at, &name, &v)) {
		if (v.type == SCAN_NULL)
			continue;
		if (scan_is(name, "effort"))
			read_effort(r, &v);
		else
			keep(r, "reasoning", scan_string(r->arena, name), v.raw);
	}
	return ERR_OK;
}

static enum err
read_schema(struct responses_reader *r, const struct scan_value *format)
{
	struct scan_value schema = responses_member(format, "schema");
	struct scan_value name = responses_member(format, "name");
	struct scan_value description = responses_member(format, "description");
	struct scan_value strict = responses_member(format, "strict");
	enum err err;

	if (schema.type != SCAN_OBJECT)
		return responses_read_refuse(r, "'text.format.schema' must be an object");
	r->form->shape = FORM_SHAPE_SCHEMA;
	r->form->schema = schema.raw;
	err = read_string(r, &name, "text.format.name", &r->form->schema_name);
	if (err == ERR_OK)
		err = read_string(
		    r, &description, "text.format.description", &r->form->schema_description);
	if (err == ERR_OK)
		err = read_switch(r, &strict, "text.format.strict", &r->form->schema_strict);
	return err;
}

static enum err
read_format(struct responses_reader *r, const struct scan_value *format)
{
	struct scan_value type = responses_member(format, "type");

	if (type.type == SCAN_STRING && scan_is(type.raw, "text"))
		r->form->shape = FORM_SHAPE_TEXT;
	else if (type.type == SCAN_STRING && scan_is(type.raw, "json_object"))
		r->form->shape = FORM_SHAPE_OBJECT;
	else if (type.type == SCAN_STRING && scan_is(type.raw, "json_schema"))
		return read_schema(r, format);
	else
		return responses_read_refuse(
		    r, "'text.format.type' must be \"text\", \"json_object\" or \"json_schema\"");
	return ERR_OK;
}

static enum err
read_text(struct responses_reader *r, const struct scan_value *text)
{
	struct scan_value v;
	struct span name;
	size_t at = 0;
	enum err err = ERR_OK;

	if (is_absent(text))
		return ERR_OK;
	if (text->type != SCAN_OBJECT)
		return responses_read_refuse(r, "'text' must be an object");
	while (err == ERR_OK && scan_next(text->raw, &at, &name, &v)) {
		if (v.type == SCAN_NULL)
			continue;
		if (scan_is(name, "format"))
			err = read_format(r, &v);
		else if (scan_is(name, "verbosity"))
			err = read_string(r, &v, "text.verbosity", &r->form->verbosity);
		else
			keep(r, "text", scan_string(r->arena, name), v.raw);
	}
	return err;
}

static enum err
read_include(struct responses_reader *r, const struct scan_value *include)
{
	struct scan_value v;
	struct span none;
	size_t at = 0;

	if (is_absent(include))
		return ERR_OK;
	if (include->type != SCAN_ARRAY)
		return responses_read_refuse(r, "'include' must be an array of strings");
	while (scan_next(include->raw, &at, &none, &v)) {
		if (v.type != SCAN_STRING)
			return responses_read_refuse(r, "'include' must be an array of strings");
		if (scan_is(v.raw, "reasoning.encrypted_content"))
			r->form->wants_seals = true;
		else
			keep(r, "include", scan_string(r->arena, v.raw), v.raw);
	}
	return ERR_OK;
}

static enum err
read_instructions(struct responses_reader *r, const struct scan_value *v)
{
	struct form_turn *turn;

	if (!value_says(v))
		return ERR_OK;
	turn = form_add_turn(r->arena, r->form, FORM_SYSTEM, SIZE_MAX);
	return responses_read_parts(r, turn, v, "instructions");
}

/* What would change the answer's meaning if it were left out. */
static enum err
refuse_unkept(struct responses_reader *r, const struct scan_value v[TOP__MAX])
{
	static const size_t members[] = {BACKGROUND, PROMPT, CONVERSATION};

	for (size_t i = 0; i < NELEM(members); i++)
		if (value_says(&v[members[i]]))
			return responses_read_refuse(r,
			    "'%s' is not possible with the provider of this model",
			    top_paths[members[i]]);
	return ERR_OK;
}

static void
read_extras(struct responses_reader *r, struct span body)
{
	struct scan_value v;
	struct span name;
	size_t at = 0, i;

	while (scan_next(body, &at, &name, &v)) {
		for (i = 0; i < TOP__MAX && !scan_is(name, top_paths[i]); i++)
			continue;
		if (i < TOP__MAX || v.type == SCAN_NULL ||
		    (v.type == SCAN_OBJECT && !value_says(&v)))
			continue;
		form_add_extra(r->arena, r->form, scan_string(r->arena, name), v.raw);
	}
}

enum err
form_read_responses(struct arena *arena, struct span body, struct form *out, struct why *why)
{
	static struct scan_plan *plan;
	struct responses_reader r = {.arena = arena, .form = out, .why = why};
	struct scan_value v[TOP__MAX];
	enum err err;

	*out = (struct form){
	    .from = FORM_RESPONSES, .max_output = -1, .thinking_budget = -1, .wants_usage = true};
	if (plan == NULL)
		plan = scan_plan_new(top_paths, TOP__MAX);
	body = text_trim(body);
	err = scan_run(plan, body, v, why);
	if (err == ERR_OK)
		err = refuse_unkept(&r, v);
	if (err == ERR_OK)
		err = read_scalars(&r, v);
	if (err == ERR_OK)
		err = read_reasoning(&r, &v[REASONING]);
	if (err == ERR_OK)
		err = read_text(&r, &v[TEXT]);
	if (err == ERR_OK)
		err = read_include(&r, &v[INCLUDE]);
	if (err == ERR_OK)
		err = responses_read_tools(&r, &v[TOOLS], "tools");
	if (err == ERR_OK)
		err = read_instructions(&r, &v[INSTRUCTIONS]);
	if (err == ERR_OK)
		err = responses_read_input(&r, &v[INPUT]);
	/* after the input, which may bring tools */
	if (err == ERR_OK)
		err = responses_read_choice(&r, &v[TOOL_CHOICE]);
	if (err == ERR_OK)
		read_extras(&r, body);
	return err;
}
