#include "dialect/chat_tools.h"

#include "base/emit.h"
#include "dialect/chat_id.h"

#include <stdio.h>

#define WHERE_BYTES 96
#define ALLOWED_MAX 256 /* each tool is compared with each of them */

static enum err
refuse(struct chat_reader *r, const char *where, const char *text)
{
	err_why(r->why, "'%s' %s", where, text);
	return ERR_BAD_INPUT;
}

static enum err
read_switch(struct chat_reader *r, const struct scan_value *value, const char *where,
    const char *name, enum form_switch *out)
{
	if (value->type == SCAN_ABSENT)
		return ERR_OK;
	if (value->type != SCAN_TRUE && value->type != SCAN_FALSE) {
		err_why(r->why, "'%s.%s' must be true or false", where, name);
		return ERR_BAD_INPUT;
	}
	*out = value->type == SCAN_TRUE ? FORM_TRUE : FORM_FALSE;
	return ERR_OK;
}

static enum err
read_function(struct chat_reader *r, struct span object, struct span cache, const char *where)
{
	static const char *const names[] = {
	    "name", "description", "parameters", "strict", "cache_control"};
	struct scan_value v[NELEM(names)];
	struct form_tool tool = {.kind = FORM_FUNCTION, .cache_control = cache};
	enum err err;

	chat_parts_pick(r, object, names, v, NELEM(names), where);
	err = chat_parts_text(r, &v[0], where, "name", &tool.name);
	if (err == ERR_OK)
		err = chat_parts_text(r, &v[1], where, "description", &tool.description);
	if (err == ERR_OK)
		err = read_switch(r, &v[3], where, "strict", &tool.strict);
	if (err != ERR_OK)
		return err;
	if (tool.name.n == 0)
		return refuse(r, where, "has no name");
	if (v[2].type != SCAN_ABSENT && v[2].type != SCAN_OBJECT)
		return refuse(r, where, "has 'parameters' that are no object");
	if (v[2].type == SCAN_OBJECT)
		tool.schema = v[2].raw;
	if (v[4].type == SCAN_OBJECT)
		tool.cache_control = v[4].raw;
	*form_add_tool(r->arena, r->form, FORM_FUNCTION) = tool;
	return ERR_OK;
}

/* {"type":"grammar","grammar":{"syntax","definition"}} as responses has it, flat. */
static struct span
flat_format(struct chat_reader *r, struct span format)
{
	static const char *const paths[] = {"type", "grammar.syntax", "grammar.definition"};
	struct scan_value v[NELEM(paths)];
	struct buf *out = arena_buf(r->arena, format.n + 64);
	struct emit e;

	if (scan_pick(format, paths, v, NELEM(paths), NULL) != ERR_OK || v[0].type != SCAN_STRING ||
	    !scan_is(v[0].raw, "grammar"))
		return (struct span){"", 0};
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "type", "grammar");
	emit_raw(&e, "syntax", v[1].raw);
	emit_raw(&e, "definition", v[2].raw);
	emit_end(&e);
	return buf_text(out);
}

static enum err
read_custom(struct chat_reader *r, struct span object, const char *where)
{
	static const char *const names[] = {"name", "description", "format"};
	struct scan_value v[NELEM(names)];
	struct form_tool tool = {.kind = FORM_CUSTOM};
	enum err err;

	chat_parts_pick(r, object, names, v, NELEM(names), where);
	err = chat_parts_text(r, &v[0], where, "name", &tool.name);
	if (err == ERR_OK)
		err = chat_parts_text(r, &v[1], where, "description", &tool.description);
	if (err != ERR_OK)
		return err;
	if (tool.name.n == 0)
		return refuse(r, where, "has no name");
	if (v[2].type == SCAN_OBJECT)
		tool.format = flat_format(r, v[2].raw);
	*form_add_tool(r->arena, r->form, FORM_CUSTOM) = tool;
	return ERR_OK;
}

static enum err
read_tool(struct chat_reader *r, const struct scan_value *value, const char *where)
{
	static const char *const names[] = {"type", "function", "custom", "cache_control"};
	struct scan_value v[NELEM(names)];
	size_t nextras = r->form->nextras;
	struct form_tool *tool;
	struct span type;
	enum err err;

	if (value->type != SCAN_OBJECT)
		return refuse(r, where, "must be an object");
	chat_parts_pick(r, value->raw, names, v, NELEM(names), where);
	err = chat_parts_text(r, &v[0], where, "type", &type);
	if (err != ERR_OK)
		return err;
	if (v[1].type == SCAN_OBJECT && (type.n == 0 || text_is(type, "function")))
		return read_function(
		    r, v[1].raw, v[3].type == SCAN_OBJECT ? v[3].raw : (struct span){"", 0}, where);
	if (v[2].type == SCAN_OBJECT && text_is(type, "custom"))
		return read_custom(r, v[2].raw, where);
	if (type.n == 0 || text_is(type, "function") || text_is(type, "custom"))
		return refuse(r, where, "has no 'function'");
	r->form->nextras = nextras; /* its members stay with it */
	tool = form_add_tool(r->arena, r->form, FORM_HOSTED);
	tool->hosted = type;
	tool->raw = value->raw;
	return ERR_OK;
}

enum err
chat_tools_read(struct chat_reader *r, const struct scan_value *tools)
{
	char where[WHERE_BYTES];
	struct scan_value value;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (tools->type != SCAN_ARRAY)
		return refuse(r, "tools", "must be an array");
	for (size_t i = 0; err == ERR_OK && scan_next(tools->raw, &at, &none, &value); i++) {
		snprintf(where, sizeof where, "tools[%zu]", i);
		err = read_tool(r, &value, where);
	}
	return err;
}

enum err
chat_tools_functions(struct chat_reader *r, const struct scan_value *functions)
{
	char where[WHERE_BYTES];
	struct scan_value value;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (functions->type != SCAN_ARRAY)
		return refuse(r, "functions", "must be an array");
	for (size_t i = 0; err == ERR_OK && scan_next(functions->raw, &at, &none, &value); i++) {
		snprintf(where, sizeof where, "functions[%zu]", i);
		if (value.type != SCAN_OBJECT)
			return refuse(r, where, "must be an object");
		err = read_function(r, value.raw, (struct span){"", 0}, where);
	}
	return err;
}

static const struct {
	const char *name;
	enum form_choice choice;
} choices[] = {
    {"none", FORM_CHOICE_NONE}, {"auto", FORM_CHOICE_AUTO}, {"required", FORM_CHOICE_REQUIRED},
    {"any", FORM_CHOICE_REQUIRED}, /* Mistral's clients */
};

static enum err
read_word(struct chat_reader *r, struct span raw, const char *where)
{
	for (size_t i = 0; i < NELEM(choices); i++)
		if (scan_is(raw, choices[i].name)) {
			r->form->choice = choices[i].choice;
			return ERR_OK;
		}
	return refuse(r, where, "must be 'none', 'auto', 'required' or name a tool");
}

static struct scan_value
first_string(const struct scan_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].type == SCAN_STRING && v[i].raw.n > 2)
			return v[i];
	return (struct scan_value){.type = SCAN_ABSENT};
}

static enum err
read_allowed(struct chat_reader *r, const struct scan_value *mode, const struct scan_value *tools)
{
	static const char *const paths[] = {"function.name", "custom.name", "name"};
	struct scan_value value, v[NELEM(paths)];
	struct span none;
	size_t at = 0;

	if (tools->type != SCAN_ARRAY || mode->type != SCAN_STRING)
		return refuse(r, "tool_choice.allowed_tools", "needs 'mode' and 'tools'");
	r->form->allowed = arena_alloc(r->arena, ALLOWED_MAX * sizeof *r->form->allowed);
	while (scan_next(tools->raw, &at, &none, &value)) {
		struct scan_value name;

		if (scan_pick(value.raw, paths, v, NELEM(paths), NULL) != ERR_OK)
			return refuse(r, "tool_choice.allowed_tools", "names a tool twice");
		name = first_string(v, NELEM(v));
		if (name.type == SCAN_ABSENT)
			return refuse(
			    r, "tool_choice.allowed_tools", "holds a tool without a name");
		if (r->form->nallowed == ALLOWED_MAX)
			return refuse(r, "tool_choice.allowed_tools", "holds too many tools");
		r->form->allowed[r->form->nallowed++] = scan_string(r->arena, name.raw);
	}
	return read_word(r, mode->raw, "tool_choice.allowed_tools.mode");
}

enum err
chat_tools_choice(struct chat_reader *r, const struct scan_value *choice)
{
	static const char *const paths[] = {"type", "allowed_tools.mode", "allowed_tools.tools",
	    "function.name", "custom.name", "name"};
	struct scan_value v[NELEM(paths)], name;

	if (choice->type == SCAN_STRING)
		return read_word(r, choice->raw, "tool_choice");
	if (choice->type != SCAN_OBJECT ||
	    scan_pick(choice->raw, paths, v, NELEM(paths), NULL) != ERR_OK)
		return refuse(
		    r, "tool_choice", "must be 'none', 'auto', 'required' or name a tool");
	if (v[0].type == SCAN_STRING && scan_is(v[0].raw, "allowed_tools"))
		return read_allowed(r, &v[1], &v[2]);
	name = first_string(v + 3, 3);
	if (name.type == SCAN_ABSENT)
		return refuse(r, "tool_choice", "does not name a tool");
	r->form->choice = FORM_CHOICE_NAMED;
	r->form->choice_name = scan_string(r->arena, name.raw);
	return ERR_OK;
}

/* A string; some clients write the object itself. Nothing, blanks and null are the empty object. */
static enum err
read_arguments(
    struct chat_reader *r, const struct scan_value *value, const char *where, struct span *out)
{
	if (value->type == SCAN_STRING)
		*out = text_trim(scan_string(r->arena, value->raw));
	else if (value->type == SCAN_OBJECT)
		*out = value->raw;
	else if (value->type != SCAN_ABSENT)
		return refuse(r, where, "must have 'arguments' that are a string of JSON");
	if (out->n == 0 || text_is(*out, "null"))
		*out = SPAN("{}");
	return ERR_OK;
}

/* {"name","arguments"}, or {"name","input"} of a custom tool. */
static enum err
read_body(struct chat_reader *r, struct span object, const char *where, struct form_call *call)
{
	static const char *const names[] = {"name", "arguments", "input"};
	struct scan_value v[NELEM(names)];
	enum err err;

	chat_parts_pick(r, object, names, v, NELEM(names), where);
	err = chat_parts_text(r, &v[0], where, "name", &call->name);
	if (err != ERR_OK)
		return err;
	if (call->name.n == 0)
		return refuse(r, where, "has no 'name'");
	if (call->custom)
		return chat_parts_text(r, &v[2], where, "input", &call->arguments);
	return read_arguments(r, &v[1], where, &call->arguments);
}

static enum err
read_call(struct chat_reader *r, const struct scan_value *value, const char *where,
    struct form_turn *turn)
{
	static const char *const names[] = {"id", "type", "function", "custom", "index"};
	struct scan_value v[NELEM(names)];
	struct form_call call = {.custom = false};
	char inner[WHERE_BYTES];
	enum err err;

	if (value->type != SCAN_OBJECT)
		return refuse(r, where, "must be an object");
	chat_parts_pick(r, value->raw, names, v, NELEM(names), where);
	err = chat_parts_text(r, &v[0], where, "id", &call.id);
	if (err != ERR_OK)
		return err;
	if (call.id.n == 0)
		return refuse(r, where, "has no 'id'");
	call.custom = v[2].type != SCAN_OBJECT && v[3].type == SCAN_OBJECT;
	if (!call.custom && v[2].type != SCAN_OBJECT)
		return refuse(r, where, "has no 'function'");
	snprintf(inner, sizeof inner, "%.60s.%s", where, call.custom ? "custom" : "function");
	err = read_body(r, v[call.custom ? 3 : 2].raw, inner, &call);
	if (err == ERR_OK)
		form_add_part(r->arena, turn, FORM_CALL)->call = call;
	return err;
}

enum err
chat_tools_calls(struct chat_reader *r, const struct scan_value *calls, struct form_turn *turn)
{
	char where[WHERE_BYTES];
	struct scan_value value;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	snprintf(where, sizeof where, "messages[%zu].tool_calls", r->at);
	if (calls->type != SCAN_ARRAY)
		return refuse(r, where, "must be an array");
	for (size_t i = 0; err == ERR_OK && scan_next(calls->raw, &at, &none, &value); i++) {
		snprintf(where, sizeof where, "messages[%zu].tool_calls[%zu]", r->at, i);
		err = read_call(r, &value, where, turn);
		if (err == ERR_OK)
			turn->parts[turn->nparts - 1].in = i;
	}
	return err;
}

enum err
chat_tools_old_call(struct chat_reader *r, const struct scan_value *value, struct form_turn *turn)
{
	struct form_call call = {.custom = false};
	char where[WHERE_BYTES];
	enum err err;

	snprintf(where, sizeof where, "messages[%zu].function_call", r->at);
	if (value->type != SCAN_OBJECT)
		return refuse(r, where, "must be an object");
	err = read_body(r, value->raw, where, &call);
	if (err != ERR_OK)
		return err;
	call.id = chat_id_make(r->arena, SPAN("function_call"), r->at, call.name);
	form_add_part(r->arena, turn, FORM_CALL)->call = call;
	return ERR_OK;
}
