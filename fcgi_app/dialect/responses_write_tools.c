#include "dialect/responses.h"

#include <string.h>

const struct form_extra *
responses_extra(const struct form *form, const char *name)
{
	for (size_t i = 0; i < form->nextras; i++)
		if (text_is(form->extras[i].name, name))
			return &form->extras[i];
	return NULL;
}

const char *
responses_effort(const struct form *form)
{
	static const char *const names[] = {
	    [FORM_EFFORT_UNSET] = NULL,
	    [FORM_EFFORT_NONE] = "none",
	    [FORM_EFFORT_MINIMAL] = "minimal",
	    [FORM_EFFORT_LOW] = "low",
	    [FORM_EFFORT_MEDIUM] = "medium",
	    [FORM_EFFORT_HIGH] = "high",
	    [FORM_EFFORT_XHIGH] = "xhigh",
	    [FORM_EFFORT_MAX] = "max",
	    [FORM_EFFORT_AUTO] = NULL,
	};
	/* formats.md E.7, backwards */
	static const struct {
		int64_t most;
		const char *name;
	} budgets[] = {{0, "none"}, {512, "minimal"}, {1024, "low"}, {8192, "medium"},
	    {24576, "high"}, {INT64_MAX, "xhigh"}};

	if (names[form->effort] != NULL)
		return names[form->effort];
	for (size_t i = 0; form->thinking_budget >= 0 && i < NELEM(budgets); i++)
		if (form->thinking_budget <= budgets[i].most)
			return budgets[i].name;
	return NULL;
}

/* As it is sent, noted for the way back; without `loss` as the client has it. */
static struct span
name_of(struct responses_out *o, const struct form_tool *tool)
{
	struct form_name name = {.original = tool->name, .namespace = tool->namespace};

	if (o->loss == NULL)
		return tool->name;
	name.sent = responses_tool_name(o->arena, tool->name, tool->namespace);
	if (!text_equal(name.sent, tool->name))
		form_rename(o->loss, o->arena, &name);
	return name.sent;
}

static void
emit_function(struct responses_out *o, const struct form_tool *tool)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "function");
	emit_text(&o->e, "name", name_of(o, tool));
	if (tool->description.n > 0)
		emit_text(&o->e, "description", tool->description);
	emit_raw(&o->e, "parameters",
	    tool->schema.n > 0 ? tool->schema : SPAN("{\"type\":\"object\",\"properties\":{}}"));
	/* absent it means "strict if possible" here, and "not strict" everywhere else */
	if (tool->strict != FORM_UNSET || o->form->from != FORM_RESPONSES || o->loss == NULL)
		emit_bool(&o->e, "strict", tool->strict == FORM_TRUE);
	emit_end(&o->e);
}

static void
emit_custom(struct responses_out *o, const struct form_tool *tool)
{
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "custom");
	emit_text(&o->e, "name", name_of(o, tool));
	if (tool->description.n > 0)
		emit_text(&o->e, "description", tool->description);
	if (tool->format.n > 0)
		emit_raw(&o->e, "format", tool->format);
	emit_end(&o->e);
}

/* A tool that the provider runs: its own wire's, or one that both have. */
static bool
is_possible(const struct responses_out *o, const struct form_tool *tool)
{
	return tool->kind != FORM_HOSTED || o->form->from == FORM_RESPONSES ||
	       (o->form->from == FORM_MESSAGES && text_starts(tool->hosted, "web_search"));
}

static void
emit_hosted(struct responses_out *o, const struct form_tool *tool)
{
	if (o->form->from == FORM_RESPONSES) {
		emit_raw(&o->e, NULL, tool->raw);
		return;
	}
	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "web_search");
	emit_end(&o->e);
}

static void
emit_tool(struct responses_out *o, const struct form_tool *tool)
{
	switch (tool->kind) {
	case FORM_FUNCTION: emit_function(o, tool); break;
	case FORM_CUSTOM: emit_custom(o, tool); break;
	case FORM_HOSTED: emit_hosted(o, tool); break;
	}
}

static void
drop_tool(struct responses_out *o, const struct form_tool *tool)
{
	responses_drop(o, arena_print(o->arena, "tools.%.*s",
	                      tool->hosted.n < 64 ? (int)tool->hosted.n : 64, tool->hosted.p));
}

/* To the client a name space is one again: of the tools that stand together. */
static size_t
emit_namespace(struct responses_out *o, size_t i)
{
	const struct form *f = o->form;
	struct span namespace = f->tools[i].namespace;

	emit_object(&o->e, NULL);
	emit_z(&o->e, "type", "namespace");
	emit_text(&o->e, "name", namespace);
	emit_array(&o->e, "tools");
	for (; i < f->ntools && text_equal(f->tools[i].namespace, namespace); i++)
		emit_tool(o, &f->tools[i]);
	emit_end(&o->e);
	emit_end(&o->e);
	return i;
}

size_t
responses_emit_tools(struct responses_out *o)
{
	const struct form *f = o->form;
	size_t n = 0;

	for (size_t i = 0; i < f->ntools;) {
		const struct form_tool *tool = &f->tools[i];

		if (!is_possible(o, tool)) {
			drop_tool(o, tool);
			i++;
			continue;
		}
		if (n++ == 0)
			emit_array(&o->e, "tools");
		if (o->loss == NULL && tool->namespace.n > 0) {
			i = emit_namespace(o, i);
			continue;
		}
		emit_tool(o, tool);
		i++;
	}
	if (n > 0)
		emit_end(&o->e);
	return n;
}

static const struct form_tool *
find_tool(const struct form *form, struct span name)
{
	for (size_t i = 0; i < form->ntools; i++) {
		const struct form_tool *tool = &form->tools[i];

		if (text_equal(tool->kind == FORM_HOSTED ? tool->hosted : tool->name, name))
			return tool;
	}
	return NULL;
}

/* {"type","name"}, by which a choice names a tool. */
static void
emit_reference(struct responses_out *o, const char *key, struct span name)
{
	const struct form_tool *tool = find_tool(o->form, name);
	struct form_tool function = {.kind = FORM_FUNCTION, .name = name};

	if (tool == NULL)
		tool = &function;
	emit_object(&o->e, key);
	if (tool->kind == FORM_HOSTED) {
		emit_text(&o->e, "type",
		    o->form->from == FORM_MESSAGES ? SPAN("web_search") : tool->hosted);
	} else {
		emit_z(&o->e, "type", tool->kind == FORM_CUSTOM ? "custom" : "function");
		emit_text(&o->e, "name", name_of(o, tool));
	}
	emit_end(&o->e);
}

static void
emit_allowed(struct responses_out *o)
{
	const struct form *f = o->form;

	emit_object(&o->e, "tool_choice");
	emit_z(&o->e, "type", "allowed_tools");
	emit_z(&o->e, "mode", f->choice == FORM_CHOICE_REQUIRED ? "required" : "auto");
	emit_array(&o->e, "tools");
	for (size_t i = 0; i < f->nallowed; i++)
		emit_reference(o, NULL, f->allowed[i]);
	emit_end(&o->e);
	emit_end(&o->e);
}

void
responses_emit_choice(struct responses_out *o)
{
	const struct form *f = o->form;

	if (f->allowed != NULL && f->choice != FORM_CHOICE_NONE) {
		emit_allowed(o);
		return;
	}
	switch (f->choice) {
	case FORM_CHOICE_UNSET:
		if (o->loss == NULL)
			emit_z(&o->e, "tool_choice", "auto");
		break;
	case FORM_CHOICE_NONE: emit_z(&o->e, "tool_choice", "none"); break;
	case FORM_CHOICE_AUTO: emit_z(&o->e, "tool_choice", "auto"); break;
	case FORM_CHOICE_REQUIRED: emit_z(&o->e, "tool_choice", "required"); break;
	case FORM_CHOICE_NAMED: emit_reference(o, "tool_choice", f->choice_name); break;
	}
}

static void
emit_schema(struct responses_out *o)
{
	const struct form *f = o->form;
	enum form_switch strict = f->schema_strict;

	emit_z(&o->e, "type", "json_schema");
	emit_text(&o->e, "name", f->schema_name.n > 0 ? f->schema_name : SPAN("output"));
	if (f->schema_description.n > 0)
		emit_text(&o->e, "description", f->schema_description);
	emit_raw(&o->e, "schema", f->schema.n > 0 ? f->schema : SPAN("{}"));
	if (strict == FORM_UNSET && f->from == FORM_MESSAGES)
		strict = FORM_TRUE; /* there it always is */
	if (strict != FORM_UNSET)
		emit_bool(&o->e, "strict", strict == FORM_TRUE);
}

void
responses_emit_text(struct responses_out *o)
{
	const struct form *f = o->form;

	if (f->shape == FORM_SHAPE_UNSET && f->verbosity.n == 0 && o->loss != NULL)
		return;
	emit_object(&o->e, "text");
	if (f->shape != FORM_SHAPE_UNSET || o->loss == NULL) {
		emit_object(&o->e, "format");
		switch (f->shape) {
		case FORM_SHAPE_UNSET:
		case FORM_SHAPE_TEXT: emit_z(&o->e, "type", "text"); break;
		case FORM_SHAPE_OBJECT: emit_z(&o->e, "type", "json_object"); break;
		case FORM_SHAPE_SCHEMA: emit_schema(o); break;
		}
		emit_end(&o->e);
	}
	if (f->verbosity.n > 0)
		emit_text(&o->e, "verbosity", f->verbosity);
	emit_end(&o->e);
}
