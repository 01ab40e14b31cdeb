#include "dialect/messages_writer.h"

#include "dialect/messages.h"

#include "dialect/value.h"

#define WEB_SEARCH "web_search_20250305"

static bool
is_allowed(const struct form *form, const struct form_tool *tool)
{
	if (form->allowed == NULL)
		return true;
	for (size_t i = 0; i < form->nallowed; i++)
		if (text_equal(form->allowed[i], tool->name) ||
		    text_equal(form->allowed[i], tool->hosted))
			return true;
	return false;
}

static bool
is_search(const struct messages_writer *w, const struct form_tool *tool)
{
	return w->form->from == FORM_RESPONSES && w->model->hosted &&
	       text_starts(tool->hosted, "web_search");
}

static bool
is_kept(const struct messages_writer *w, const struct form_tool *tool)
{
	if (!is_allowed(w->form, tool))
		return false;
	if (tool->kind != FORM_HOSTED)
		return true;
	return w->form->from == FORM_MESSAGES || is_search(w, tool);
}

/* A tool of the provider's own that this one does not have. */
static void
drop_hosted(struct messages_writer *w, const struct form_tool *tool)
{
	form_drop(w->loss, w->arena,
	    text_span(
	        arena_join(w->arena, (const struct span[]){SPAN("tools."), tool->hosted}, 2)));
}

static void
write_search(struct messages_writer *w, const struct form_tool *tool)
{
	struct scan_value raw = {SCAN_OBJECT, tool->raw};
	struct scan_value place = value_member(&raw, "user_location");
	struct scan_value filters = value_member(&raw, "filters");
	struct scan_value size = value_member(&raw, "search_context_size");
	struct scan_value domains = value_member(&filters, "allowed_domains");

	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", WEB_SEARCH);
	emit_z(&w->e, "name", "web_search");
	if (domains.type == SCAN_ARRAY)
		emit_raw(&w->e, "allowed_domains", domains.raw);
	if (place.type == SCAN_OBJECT)
		emit_raw(&w->e, "user_location", place.raw);
	if (value_says(&size))
		messages_writer_drop(w, "tools.search_context_size");
	emit_end(&w->e);
}

/* What a custom tool takes is any text; its grammar can only be described. */
static void
write_custom(struct messages_writer *w, const struct form_tool *tool)
{
	struct span grammar = tool->format, parts[3] = {tool->description};
	struct scan_value format = {SCAN_OBJECT, grammar};
	size_t n = 1;

	if (grammar.n > 0) {
		struct scan_value definition = value_member(&format, "definition");

		if (definition.type == SCAN_STRING)
			grammar = scan_string(w->arena, definition.raw);
		parts[n++] = SPAN("\n\nThe input must follow this grammar:\n");
		parts[n++] = grammar;
		messages_writer_drop_one(w, "tools.custom.format", "tools.format", NULL);
	}
	emit_z(&w->e, "description", arena_join(w->arena, parts, n));
	emit_raw(&w->e, "input_schema",
	    SPAN("{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},"
	         "\"required\":[\"input\"]}"));
}

static void
write_tool(struct messages_writer *w, const struct form_tool *tool)
{
	if (tool->kind == FORM_HOSTED) {
		if (w->form->from == FORM_MESSAGES)
			emit_raw(&w->e, NULL, tool->raw);
		else
			write_search(w, tool);
		return;
	}
	emit_object(&w->e, NULL);
	emit_text(&w->e, "name",
	    messages_writer_tool(w, tool->name, tool->namespace, tool->kind == FORM_CUSTOM));
	if (tool->kind == FORM_CUSTOM) {
		write_custom(w, tool);
	} else {
		if (tool->description.n > 0)
			emit_text(&w->e, "description", tool->description);
		if (messages_schema_write(w, tool->schema))
			messages_writer_drop_one(w, "tools.function.parameters.anyOf",
			    "tools.parameters.anyOf", "tools.input_schema.anyOf");
	}
	if (tool->strict == FORM_TRUE && w->model->structured)
		emit_bool(&w->e, "strict", true);
	else if (tool->strict == FORM_TRUE)
		messages_writer_drop_one(w, "tools.function.strict", "tools.strict", NULL);
	messages_writer_cache(w, tool->cache_control);
	emit_end(&w->e);
}

static const struct form_tool *
named_tool(const struct messages_writer *w)
{
	const struct form *form = w->form;

	for (size_t i = 0; i < form->ntools; i++)
		if (is_kept(w, &form->tools[i]) &&
		    (text_equal(form->tools[i].name, form->choice_name) ||
		        text_equal(form->tools[i].hosted, form->choice_name)))
			return &form->tools[i];
	return NULL;
}

static enum err
check_choice(struct messages_writer *w)
{
	if (w->form->choice != FORM_CHOICE_NAMED || named_tool(w) != NULL)
		return ERR_OK;
	err_why(w->why,
	    "'tool_choice' names a tool that is not among 'tools', or that the provider of this "
	    "model does not have");
	return ERR_BAD_INPUT;
}

static const char *
choice_type(struct messages_writer *w)
{
	bool free = !messages_writer_thinks(w);

	switch (w->form->choice) {
	case FORM_CHOICE_UNSET: return w->form->parallel == FORM_FALSE ? "auto" : NULL;
	case FORM_CHOICE_NONE: return "none";
	case FORM_CHOICE_AUTO: return "auto";
	case FORM_CHOICE_REQUIRED:
		if (free)
			return "any";
		break;
	case FORM_CHOICE_NAMED:
		if (free)
			return "tool";
		break;
	}
	/* who thinks cannot be forced: formats.md C.5 */
	messages_writer_drop(w, "tool_choice");
	return "auto";
}

static void
write_choice(struct messages_writer *w)
{
	const char *type = choice_type(w);
	const struct form_tool *tool = named_tool(w);

	if (type == NULL)
		return;
	emit_object(&w->e, "tool_choice");
	emit_z(&w->e, "type", type);
	if (*type == 't' && tool != NULL && tool->kind == FORM_HOSTED)
		emit_text(
		    &w->e, "name", is_search(w, tool) ? SPAN("web_search") : w->form->choice_name);
	else if (*type == 't' && tool != NULL)
		emit_text(&w->e, "name",
		    messages_writer_tool(
		        w, tool->name, tool->namespace, tool->kind == FORM_CUSTOM));
	if (w->form->parallel == FORM_FALSE && *type != 'n')
		emit_bool(&w->e, "disable_parallel_tool_use", true);
	emit_end(&w->e);
}

bool
messages_wants_tool(const struct form_turn *turns, size_t nturns)
{
	for (size_t i = 0; i < nturns; i++)
		for (size_t p = 0; p < turns[i].nparts; p++)
			if (turns[i].parts[p].kind == FORM_CALL ||
			    turns[i].parts[p].kind == FORM_RESULT)
				return true;
	return false;
}

static void
write_none(struct messages_writer *w)
{
	if (w->form->choice == FORM_CHOICE_REQUIRED)
		messages_writer_drop(w, "tool_choice");
	if (w->target->piece || !messages_wants_tool(w->form->turns, w->form->nturns))
		return;
	emit_raw(&w->e, "tools", SPAN(MESSAGES_TOOL));
	emit_raw(&w->e, "tool_choice", SPAN(MESSAGES_TOOL_CHOICE));
}

enum err
messages_tools_write(struct messages_writer *w)
{
	const struct form *form = w->form;
	size_t kept = 0;

	for (size_t i = 0; i < form->ntools; i++) {
		kept += is_kept(w, &form->tools[i]);
		if (!is_kept(w, &form->tools[i]) && is_allowed(form, &form->tools[i]))
			drop_hosted(w, &form->tools[i]);
	}
	if (check_choice(w) != ERR_OK)
		return ERR_BAD_INPUT;
	if (kept == 0) {
		write_none(w);
		return ERR_OK;
	}
	emit_array(&w->e, "tools");
	for (size_t i = 0; i < form->ntools; i++)
		if (is_kept(w, &form->tools[i]))
			write_tool(w, &form->tools[i]);
	emit_end(&w->e);
	write_choice(w);
	return ERR_OK;
}
