#include "dialect/messages_blocks.h"
#include "dialect/value.h"

#define TOKENS_MAX (INT64_C(1) << 40)

typedef enum err member_fn(struct messages_reader *r, const char *name, const struct scan_value *v);

static enum err
text_member(struct messages_reader *r, const char *up, const char *name, const struct scan_value *v,
    struct span *out)
{
	struct messages_place place = {NULL, up, SIZE_MAX};

	return messages_place_text(r, up == NULL ? NULL : &place, name, v, false, out);
}

static enum err
read_messages(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	(void)name;
	return messages_blocks_messages(r, v);
}

static enum err
read_nothing(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	(void)r; /* the model is the pipeline's business, the system text was read first */
	(void)name;
	(void)v;
	return ERR_OK;
}

static enum err
read_limit(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	if (v->type != SCAN_NUMBER || !scan_i64(v, 0, TOKENS_MAX, &r->form->max_output))
		return messages_place_refuse(r, NULL, name, "must be a whole number, 0 or more");
	return ERR_OK;
}

static enum err
number_into(
    struct messages_reader *r, const char *name, const struct scan_value *v, struct span *out)
{
	if (v->type != SCAN_NUMBER)
		return messages_place_refuse(r, NULL, name, "must be a number");
	*out = v->raw;
	return ERR_OK;
}

static enum err
read_temperature(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	return number_into(r, name, v, &r->form->temperature);
}

static enum err
read_top_p(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	return number_into(r, name, v, &r->form->top_p);
}

static enum err
read_top_k(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	return number_into(r, name, v, &r->form->top_k);
}

static enum err
read_stream(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	(void)name; /* its type was checked by dialect_read() */
	r->form->stream = v->type == SCAN_TRUE;
	r->form->wants_usage = true;
	return ERR_OK;
}

static enum err
read_tier(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	return text_member(r, NULL, name, v, &r->form->service_tier);
}

static enum err
read_stops(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	struct scan_value stop;
	struct span none;
	size_t at = 0, n = 0;

	if (v->type != SCAN_ARRAY)
		return messages_place_refuse(r, NULL, name, "must be an array of strings");
	while (scan_next(v->raw, &at, &none, &stop))
		n++;
	r->form->stops = arena_alloc(r->arena, (n + 1) * sizeof *r->form->stops);
	for (at = 0; scan_next(v->raw, &at, &none, &stop);) {
		struct messages_place place = {NULL, name, r->form->nstops};

		if (stop.type != SCAN_STRING)
			return messages_place_refuse(r, &place, NULL, "must be a string");
		r->form->stops[r->form->nstops++] = scan_string(r->arena, stop.raw);
	}
	return ERR_OK;
}

static enum err
read_metadata(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	static const char *const members[] = {"user_id"};
	struct scan_value id;

	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, NULL, name, "must be an object");
	messages_place_pick(r, v->raw, members, &id, 1, name);
	return text_member(r, name, "user_id", &id, &r->form->user);
}

static enum err
read_thinking(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	static const char *const members[] = {"type", "budget_tokens"};
	struct messages_place place = {NULL, name, SIZE_MAX};
	struct scan_value m[2];
	struct span type;

	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, NULL, name, "must be an object");
	messages_place_pick(r, v->raw, members, m, 2, name);
	if (messages_place_text(r, &place, "type", &m[0], true, &type) != ERR_OK)
		return ERR_BAD_INPUT;
	if (text_is(type, "disabled")) {
		r->form->effort = FORM_EFFORT_NONE;
		return ERR_OK;
	}
	if (!text_is(type, "enabled") && !text_is(type, "adaptive") &&
	    !text_is(type, "between_tools"))
		return messages_place_refuse(
		    r, &place, "type", "is no kind of thinking that is known");
	if (m[1].type != SCAN_ABSENT &&
	    (m[1].type != SCAN_NUMBER ||
	        !scan_i64(&m[1], 0, TOKENS_MAX, &r->form->thinking_budget)))
		return messages_place_refuse(
		    r, &place, "budget_tokens", "must be a whole number, 0 or more");
	if (r->form->effort == FORM_EFFORT_UNSET)
		r->form->effort = FORM_EFFORT_AUTO;
	return ERR_OK;
}

static enum err
read_effort(
    struct messages_reader *r, const struct messages_place *place, const struct scan_value *v)
{
	static const struct {
		const char *name;
		enum form_effort effort;
	} rows[] = {
	    {"low", FORM_EFFORT_LOW},
	    {"medium", FORM_EFFORT_MEDIUM},
	    {"high", FORM_EFFORT_HIGH},
	    {"xhigh", FORM_EFFORT_XHIGH},
	    {"max", FORM_EFFORT_MAX},
	};

	if (v->type == SCAN_ABSENT)
		return ERR_OK;
	for (size_t i = 0; v->type == SCAN_STRING && i < NELEM(rows); i++) {
		if (!scan_is(v->raw, rows[i].name))
			continue;
		/* no thinking at all is the stronger word */
		if (r->form->effort != FORM_EFFORT_NONE)
			r->form->effort = rows[i].effort;
		return ERR_OK;
	}
	return messages_place_refuse(
	    r, place, "effort", "must be 'low', 'medium', 'high', 'xhigh' or 'max'");
}

static enum err
read_format(
    struct messages_reader *r, const struct messages_place *place, const struct scan_value *v)
{
	static const char *const members[] = {"type", "schema"};
	struct scan_value m[2];

	if (v->type == SCAN_ABSENT)
		return ERR_OK;
	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, place, "format", "must be an object");
	messages_place_pick(r, v->raw, members, m, 2, "output_config.format");
	if (m[0].type != SCAN_STRING || !scan_is(m[0].raw, "json_schema"))
		return messages_place_refuse(r, place, "format.type", "must be 'json_schema'");
	if (m[1].type != SCAN_OBJECT)
		return messages_place_refuse(r, place, "format.schema", "must be an object");
	r->form->shape = FORM_SHAPE_SCHEMA;
	r->form->schema = m[1].raw;
	r->form->schema_name = SPAN("output");
	r->form->schema_strict = FORM_TRUE;
	return ERR_OK;
}

static enum err
read_output(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	static const char *const members[] = {"effort", "format"};
	struct messages_place place = {NULL, name, SIZE_MAX};
	struct scan_value m[2];
	enum err err;

	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, NULL, name, "must be an object");
	messages_place_pick(r, v->raw, members, m, 2, name);
	err = read_effort(r, &place, &m[0]);
	return err == ERR_OK ? read_format(r, &place, &m[1]) : err;
}

enum { TYPE, NAME, DESCRIPTION, SCHEMA, STRICT, CACHE, TOOL__MAX };

static const char *const tool_names[TOOL__MAX] = {
    [TYPE] = "type",
    [NAME] = "name",
    [DESCRIPTION] = "description",
    [SCHEMA] = "input_schema",
    [STRICT] = "strict",
    [CACHE] = "cache_control",
};

/* A tool that the client runs. */
static enum err
read_function(struct messages_reader *r, const struct messages_place *place, struct span raw,
    struct form_tool *tool)
{
	struct scan_value m[TOOL__MAX];

	messages_place_pick(r, raw, tool_names, m, TOOL__MAX, "tools");
	if (messages_place_text(
	        r, place, "description", &m[DESCRIPTION], false, &tool->description) != ERR_OK)
		return ERR_BAD_INPUT;
	if (tool->name.n == 0)
		return messages_place_refuse(r, place, "name", "is missing");
	if (m[SCHEMA].type != SCAN_OBJECT && m[SCHEMA].type != SCAN_ABSENT)
		return messages_place_refuse(r, place, "input_schema", "must be an object");
	tool->schema = m[SCHEMA].raw;
	if (m[STRICT].type == SCAN_TRUE || m[STRICT].type == SCAN_FALSE)
		tool->strict = m[STRICT].type == SCAN_TRUE ? FORM_TRUE : FORM_FALSE;
	return ERR_OK;
}

static enum err
read_tool(struct messages_reader *r, const struct messages_place *place, const struct scan_value *v)
{
	struct scan_value m[TOOL__MAX];
	struct form_tool tool = {.kind = FORM_FUNCTION};
	struct span type;
	enum err err = ERR_OK;

	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, place, NULL, "must be a tool object");
	messages_place_pick(r, v->raw, tool_names, m, TOOL__MAX, NULL);
	if (messages_place_text(r, place, "type", &m[TYPE], false, &type) != ERR_OK ||
	    messages_place_text(r, place, "name", &m[NAME], false, &tool.name) != ERR_OK)
		return ERR_BAD_INPUT;
	if (m[CACHE].type == SCAN_OBJECT)
		tool.cache_control = m[CACHE].raw;
	if (type.n > 0 && !text_is(type, "custom")) {
		tool.kind = FORM_HOSTED;
		tool.raw = v->raw;
		tool.hosted = type;
	} else {
		err = read_function(r, place, v->raw, &tool);
	}
	if (err == ERR_OK)
		*form_add_tool(r->arena, r->form, tool.kind) = tool;
	return err;
}

static enum err
read_tools(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	struct scan_value tool;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (v->type != SCAN_ARRAY)
		return messages_place_refuse(r, NULL, name, "must be an array of tools");
	for (size_t i = 0; err == ERR_OK && scan_next(v->raw, &at, &none, &tool); i++) {
		struct messages_place place = {NULL, name, i};

		err = read_tool(r, &place, &tool);
	}
	return err;
}

static enum err
read_choice(struct messages_reader *r, const char *name, const struct scan_value *v)
{
	static const char *const members[] = {"type", "name", "disable_parallel_tool_use"};
	static const struct {
		const char *name;
		enum form_choice choice;
	} rows[] = {
	    {"auto", FORM_CHOICE_AUTO},
	    {"any", FORM_CHOICE_REQUIRED},
	    {"none", FORM_CHOICE_NONE},
	    {"tool", FORM_CHOICE_NAMED},
	};
	struct messages_place place = {NULL, name, SIZE_MAX};
	struct scan_value m[3];

	if (v->type != SCAN_OBJECT)
		return messages_place_refuse(r, NULL, name, "must be an object");
	messages_place_pick(r, v->raw, members, m, 3, name);
	for (size_t i = 0; m[0].type == SCAN_STRING && i < NELEM(rows); i++)
		if (scan_is(m[0].raw, rows[i].name))
			r->form->choice = rows[i].choice;
	if (r->form->choice == FORM_CHOICE_UNSET)
		return messages_place_refuse(
		    r, &place, "type", "must be 'auto', 'any', 'tool' or 'none'");
	if (m[2].type == SCAN_TRUE)
		r->form->parallel = FORM_FALSE;
	return messages_place_text(
	    r, &place, "name", &m[1], r->form->choice == FORM_CHOICE_NAMED, &r->form->choice_name);
}

static const struct {
	const char *name;
	member_fn *read;
} rows[] = {
    {"model", read_nothing},
    {"messages", read_messages},
    {"system", read_nothing},
    {"max_tokens", read_limit},
    {"temperature", read_temperature},
    {"top_p", read_top_p},
    {"top_k", read_top_k},
    {"stream", read_stream},
    {"stop_sequences", read_stops},
    {"metadata", read_metadata},
    {"service_tier", read_tier},
    {"thinking", read_thinking},
    {"output_config", read_output},
    {"tools", read_tools},
    {"tool_choice", read_choice},
};

static enum err
read_member(struct messages_reader *r, struct span key, const struct scan_value *v)
{
	for (size_t i = 0; i < NELEM(rows); i++)
		if (scan_is(key, rows[i].name))
			return rows[i].read(r, rows[i].name, v);
	form_add_extra(r->arena, r->form, scan_string(r->arena, key), v->raw);
	return ERR_OK;
}

enum err
form_read_messages(struct arena *arena, struct span body, struct form *out, struct why *why)
{
	struct messages_reader r = {.arena = arena, .form = out, .why = why};
	struct scan_value whole = {SCAN_OBJECT, text_trim(body)}, v;
	struct scan_value system = value_member(&whole, "system");
	struct span key;
	size_t at = 0;
	enum err err = ERR_OK;

	*out = (struct form){.from = FORM_MESSAGES,
	    .max_output = -1,
	    .thinking_budget = -1,
	    .wants_usage = true,
	    .wants_seals = true};
	/* it stands before the messages, wherever it is in the body */
	if (system.type != SCAN_ABSENT && system.type != SCAN_NULL)
		err = messages_blocks_system(&r, &system);
	while (err == ERR_OK && scan_next(whole.raw, &at, &key, &v))
		if (v.type != SCAN_NULL)
			err = read_member(&r, key, &v);
	return err;
}
