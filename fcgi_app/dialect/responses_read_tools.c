#include "dialect/responses_read.h"

#include <stdio.h>

#define WHERE_BYTES 96
#define ALLOWED_MAX 256 /* each tool is compared with each of them */

/* A tool, and where it stands. */
struct place {
	struct responses_reader *r;
	const char *where;
	struct span namespace;
};

static enum err
member_text(
    const struct place *p, const struct scan_value *tool, const char *name, struct span *out)
{
	struct scan_value v = responses_member(tool, name);

	if (v.type == SCAN_ABSENT)
		return ERR_OK;
	if (v.type != SCAN_STRING)
		return responses_read_refuse(p->r, "'%s.%s' must be a string", p->where, name);
	*out = scan_string(p->r->arena, v.raw);
	return ERR_OK;
}

/* The members that functions and custom tools share. */
static enum err
begin_tool(const struct place *p, const struct scan_value *v, enum form_tool_kind kind,
    struct form_tool **tool_out)
{
	struct form_tool *tool = form_add_tool(p->r->arena, p->r->form, kind);
	enum err err = member_text(p, v, "name", &tool->name);

	if (err == ERR_OK)
		err = member_text(p, v, "description", &tool->description);
	if (err == ERR_OK && tool->name.n == 0)
		err = responses_read_refuse(p->r, "'%s.name' is missing", p->where);
	tool->namespace = p->namespace;
	*tool_out = tool;
	return err;
}

static enum err
read_function(const struct place *p, const struct scan_value *v)
{
	struct scan_value schema = responses_member(v, "parameters");
	struct scan_value strict = responses_member(v, "strict");
	struct form_tool *tool;
	enum err err = begin_tool(p, v, FORM_FUNCTION, &tool);

	if (err != ERR_OK)
		return err;
	if (schema.type != SCAN_ABSENT && schema.type != SCAN_OBJECT)
		return responses_read_refuse(p->r, "'%s.parameters' must be an object", p->where);
	if (schema.type == SCAN_OBJECT)
		tool->schema = schema.raw;
	if (strict.type == SCAN_TRUE || strict.type == SCAN_FALSE)
		tool->strict = strict.type == SCAN_TRUE ? FORM_TRUE : FORM_FALSE;
	return ERR_OK;
}

static enum err
read_custom(const struct place *p, const struct scan_value *v)
{
	struct scan_value format = responses_member(v, "format");
	struct form_tool *tool;
	enum err err = begin_tool(p, v, FORM_CUSTOM, &tool);

	if (err == ERR_OK && format.type == SCAN_OBJECT)
		tool->format = format.raw;
	return err;
}

static void
read_hosted(const struct place *p, const struct scan_value *v, struct span type)
{
	struct form_tool *tool = form_add_tool(p->r->arena, p->r->form, FORM_HOSTED);

	tool->hosted = type;
	tool->raw = v->raw;
}

static enum err
tool_type(const struct place *p, const struct scan_value *v, struct span *type)
{
	enum err err;

	*type = (struct span){"", 0};
	if (v->type != SCAN_OBJECT)
		return responses_read_refuse(p->r, "'%s' must be a tool object", p->where);
	err = member_text(p, v, "type", type);
	if (err == ERR_OK && type->n == 0)
		err = responses_read_refuse(p->r, "'%s.type' is missing", p->where);
	return err;
}

/* Tools of a name space stand in no name space of their own. */
static enum err
read_inner(const struct place *p, const struct scan_value *v)
{
	struct span type;
	enum err err = tool_type(p, v, &type);

	if (err != ERR_OK)
		return err;
	if (text_is(type, "function"))
		return read_function(p, v);
	if (text_is(type, "custom"))
		return read_custom(p, v);
	return responses_read_refuse(
	    p->r, "'%s.type' must be \"function\" or \"custom\" here", p->where);
}

static enum err
read_namespace(const struct place *p, const struct scan_value *v)
{
	struct scan_value tools = responses_member(v, "tools"), tool;
	struct place inner = *p;
	char where[2 * WHERE_BYTES];
	struct span none;
	size_t at = 0;
	enum err err = member_text(p, v, "name", &inner.namespace);

	if (err == ERR_OK && inner.namespace.n == 0)
		err = responses_read_refuse(p->r, "'%s.name' is missing", p->where);
	if (err == ERR_OK && tools.type != SCAN_ARRAY)
		err = responses_read_refuse(p->r, "'%s.tools' must be an array", p->where);
	inner.where = where;
	for (size_t i = 0; err == ERR_OK && scan_next(tools.raw, &at, &none, &tool); i++) {
		snprintf(where, sizeof where, "%s.tools[%zu]", p->where, i);
		err = read_inner(&inner, &tool);
	}
	return err;
}

static enum err
read_tool(const struct place *p, const struct scan_value *v)
{
	struct span type;
	enum err err = tool_type(p, v, &type);

	if (err != ERR_OK)
		return err;
	if (text_is(type, "namespace"))
		return read_namespace(p, v);
	if (text_is(type, "function"))
		return read_function(p, v);
	if (text_is(type, "custom"))
		return read_custom(p, v);
	read_hosted(p, v, type);
	return ERR_OK;
}

enum err
responses_read_tools(struct responses_reader *r, const struct scan_value *tools, const char *where)
{
	char place[WHERE_BYTES];
	struct place p = {.r = r, .where = place};
	struct scan_value tool;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (tools->type == SCAN_ABSENT || tools->type == SCAN_NULL)
		return ERR_OK;
	if (tools->type != SCAN_ARRAY)
		return responses_read_refuse(r, "'%s' must be an array of tools", where);
	for (size_t i = 0; err == ERR_OK && scan_next(tools->raw, &at, &none, &tool); i++) {
		snprintf(place, sizeof place, "%s[%zu]", where, i);
		err = read_tool(&p, &tool);
	}
	return err;
}

static bool
read_mode(struct responses_reader *r, const struct scan_value *v)
{
	static const struct {
		const char *name;
		enum form_choice choice;
	} modes[] = {
	    {"none", FORM_CHOICE_NONE},
	    {"auto", FORM_CHOICE_AUTO},
	    {"required", FORM_CHOICE_REQUIRED},
	};

	if (v->type != SCAN_STRING)
		return false;
	for (size_t i = 0; i < NELEM(modes); i++)
		if (scan_is(v->raw, modes[i].name)) {
			r->form->choice = modes[i].choice;
			return true;
		}
	return false;
}

/* {"type":"allowed_tools","mode","tools":[{"type","name"}]}; hosted ones have only a type. */
static enum err
read_allowed(struct responses_reader *r, const struct scan_value *choice)
{
	struct scan_value mode = responses_member(choice, "mode");
	struct scan_value tools = responses_member(choice, "tools"), tool;
	struct span none;
	size_t at = 0, n = 0;

	if (!read_mode(r, &mode))
		return responses_read_refuse(
		    r, "'tool_choice.mode' must be \"auto\" or \"required\"");
	if (tools.type != SCAN_ARRAY)
		return responses_read_refuse(r, "'tool_choice.tools' must be an array");
	while (scan_next(tools.raw, &at, &none, &tool))
		n++;
	if (n > ALLOWED_MAX)
		return responses_read_refuse(
		    r, "'tool_choice.tools' must hold at most %d tools", ALLOWED_MAX);
	r->form->allowed = arena_alloc(r->arena, (n + 1) * sizeof *r->form->allowed);
	at = 0;
	while (scan_next(tools.raw, &at, &none, &tool)) {
		struct scan_value name = responses_member(&tool, "name");

		if (name.type != SCAN_STRING)
			name = responses_member(&tool, "type");
		if (name.type != SCAN_STRING)
			return responses_read_refuse(
			    r, "'tool_choice.tools' must hold tools with a 'name'");
		r->form->allowed[r->form->nallowed++] = scan_string(r->arena, name.raw);
	}
	return ERR_OK;
}

enum err
responses_read_choice(struct responses_reader *r, const struct scan_value *choice)
{
	struct scan_value type, name;

	if (choice->type == SCAN_ABSENT || choice->type == SCAN_NULL || read_mode(r, choice))
		return ERR_OK;
	type = responses_member(choice, "type");
	if (type.type != SCAN_STRING)
		return responses_read_refuse(r,
		    "'tool_choice' must be \"none\", \"auto\", \"required\" or an object with a type");
	if (scan_is(type.raw, "allowed_tools"))
		return read_allowed(r, choice);
	name = responses_member(choice, "name");
	if (name.type != SCAN_STRING &&
	    (scan_is(type.raw, "function") || scan_is(type.raw, "custom")))
		return responses_read_refuse(r, "'tool_choice.name' is missing");
	if (name.type != SCAN_STRING)
		name = type; /* of a hosted tool */
	r->form->choice = FORM_CHOICE_NAMED;
	r->form->choice_name = scan_string(r->arena, name.raw);
	return ERR_OK;
}
