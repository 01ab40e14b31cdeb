#include "dialect/chat_offer.h"

#define GRAMMAR "\n\nThe input must follow this grammar:\n"

static void
drop(struct chat_writer *w, const char *name)
{
	form_drop(w->loss, w->arena, text_span(name));
}

static bool
is_allowed(const struct form *form, struct span name)
{
	if (form->allowed == NULL)
		return true;
	for (size_t i = 0; i < form->nallowed; i++)
		if (text_equal(form->allowed[i], name))
			return true;
	return false;
}

/* What a hosted tool of the client's own wire is, the host knows. */
static bool
is_sent(const struct chat_writer *w, const struct form_tool *tool)
{
	if (tool->kind == FORM_HOSTED)
		return w->form->from == FORM_CHAT;
	return w->host->openai || is_allowed(w->form, tool->name);
}

static bool
has_member(struct span object, const char *name)
{
	struct scan_value value;
	struct span key;
	size_t at = 0;

	while (scan_next(object, &at, &key, &value))
		if (scan_is(key, name))
			return true;
	return false;
}

/* Some hosts refuse an object schema without "properties". */
static void
write_schema(struct chat_writer *w, struct span schema)
{
	struct span inside = text_trim(text_from(text_trim(schema), 1));

	if (schema.n == 0) {
		emit_raw(&w->e, "parameters", SPAN("{\"type\":\"object\",\"properties\":{}}"));
	} else if (text_is(inside, "}")) {
		emit_raw(&w->e, "parameters", SPAN("{\"type\":\"object\",\"properties\":{}}"));
	} else if (has_member(schema, "properties") || !has_member(schema, "type")) {
		emit_raw(&w->e, "parameters", schema);
	} else {
		emit_raw(&w->e, "parameters",
		    text_span(arena_join(
		        w->arena, (const struct span[]){SPAN("{\"properties\":{},"), inside}, 2)));
	}
}

static void
write_function(struct chat_writer *w, const struct form_tool *tool)
{
	emit_z(&w->e, "type", "function");
	emit_object(&w->e, "function");
	emit_text(&w->e, "name", chat_say_name(w, tool->name, tool->namespace, false));
	if (tool->description.n > 0)
		emit_text(&w->e, "description", tool->description);
	if (tool->schema.n > 0 || w->form->from != FORM_CHAT)
		write_schema(w, tool->schema);
	if (tool->strict != FORM_UNSET && w->host->strict)
		emit_bool(&w->e, "strict", tool->strict == FORM_TRUE);
	else if (tool->strict == FORM_TRUE)
		drop(w, "strict");
	emit_end(&w->e);
}

static struct span
grammar_of(struct chat_writer *w, const struct form_tool *tool)
{
	static const char *const paths[] = {"definition"};
	struct scan_value v;

	if (tool->format.n == 0 || scan_pick(tool->format, paths, &v, 1, NULL) != ERR_OK ||
	    v.type != SCAN_STRING)
		return (struct span){"", 0};
	return scan_string(w->arena, v.raw);
}

/* Free text as the one member of a function's arguments; the grammar goes into the description. */
static void
write_wrapped(struct chat_writer *w, const struct form_tool *tool)
{
	struct span grammar = grammar_of(w, tool);
	struct span text[] = {tool->description, SPAN(GRAMMAR), grammar};

	emit_z(&w->e, "type", "function");
	emit_object(&w->e, "function");
	emit_text(&w->e, "name", chat_say_name(w, tool->name, tool->namespace, true));
	if (grammar.n > 0)
		emit_text(&w->e, "description", text_span(arena_join(w->arena, text, 3)));
	else if (tool->description.n > 0)
		emit_text(&w->e, "description", tool->description);
	emit_raw(&w->e, "parameters",
	    SPAN("{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},"
	         "\"required\":[\"input\"],\"additionalProperties\":false}"));
	emit_end(&w->e);
}

static void
write_custom(struct chat_writer *w, const struct form_tool *tool)
{
	static const char *const paths[] = {"syntax", "definition"};
	struct scan_value v[NELEM(paths)];

	emit_z(&w->e, "type", "custom");
	emit_object(&w->e, "custom");
	emit_text(&w->e, "name", chat_say_name(w, tool->name, tool->namespace, true));
	if (tool->description.n > 0)
		emit_text(&w->e, "description", tool->description);
	if (tool->format.n > 0 && scan_pick(tool->format, paths, v, NELEM(paths), NULL) == ERR_OK) {
		emit_object(&w->e, "format");
		emit_z(&w->e, "type", "grammar");
		emit_object(&w->e, "grammar");
		emit_raw(&w->e, "syntax", v[0].raw);
		emit_raw(&w->e, "definition", v[1].raw);
		emit_end(&w->e);
		emit_end(&w->e);
	}
	emit_end(&w->e);
}

static void
write_tool(struct chat_writer *w, const struct form_tool *tool)
{
	if (tool->kind == FORM_HOSTED) {
		emit_raw(&w->e, NULL, tool->raw);
		return;
	}
	if (tool->cache_control.n > 0)
		drop(w, "cache_control");
	emit_object(&w->e, NULL);
	if (tool->kind == FORM_FUNCTION)
		write_function(w, tool);
	else if (chat_say_custom(w))
		write_custom(w, tool);
	else
		write_wrapped(w, tool);
	emit_end(&w->e);
}

static void
name_hosted(struct chat_writer *w)
{
	for (size_t i = 0; i < w->form->ntools; i++) {
		const struct form_tool *tool = &w->form->tools[i];

		if (tool->kind == FORM_HOSTED && !is_sent(w, tool))
			form_drop(w->loss, w->arena,
			    text_span(arena_join(
			        w->arena, (const struct span[]){SPAN("tools."), tool->hosted}, 2)));
	}
}

static const struct form_tool *
named_tool(const struct chat_writer *w)
{
	for (size_t i = 0; i < w->form->ntools; i++) {
		const struct form_tool *tool = &w->form->tools[i];

		if (tool->kind != FORM_HOSTED && text_equal(tool->name, w->form->choice_name))
			return tool;
	}
	return NULL;
}

static enum err
check_forced(struct chat_writer *w, size_t sent)
{
	bool named = w->form->choice == FORM_CHOICE_NAMED;

	if ((!named || named_tool(w) != NULL) &&
	    (w->form->choice != FORM_CHOICE_REQUIRED || sent > 0))
		return ERR_OK;
	if (named)
		err_why(w->why,
		    "'tool_choice' wants the tool '%.*s', which this model's provider cannot be "
		    "given",
		    (int)text_cut(w->form->choice_name, 80), w->form->choice_name.p);
	else
		err_why(w->why, "'tool_choice' wants a tool, but there is none that this model's "
		                "provider can be given");
	return ERR_BAD_INPUT;
}

static void
write_named(struct chat_writer *w)
{
	const struct form_tool *tool = named_tool(w);
	bool custom = tool->kind == FORM_CUSTOM && chat_say_custom(w);

	emit_object(&w->e, "tool_choice");
	emit_z(&w->e, "type", custom ? "custom" : "function");
	emit_object(&w->e, custom ? "custom" : "function");
	emit_text(&w->e, "name",
	    chat_say_name(w, tool->name, tool->namespace, tool->kind == FORM_CUSTOM));
	emit_end(&w->e);
	emit_end(&w->e);
}

static void
write_allowed(struct chat_writer *w)
{
	emit_object(&w->e, "tool_choice");
	emit_z(&w->e, "type", "allowed_tools");
	emit_object(&w->e, "allowed_tools");
	emit_z(&w->e, "mode", w->form->choice == FORM_CHOICE_REQUIRED ? "required" : "auto");
	emit_array(&w->e, "tools");
	for (size_t i = 0; i < w->form->ntools; i++) {
		const struct form_tool *tool = &w->form->tools[i];
		bool custom = tool->kind == FORM_CUSTOM;

		if (tool->kind == FORM_HOSTED || !is_allowed(w->form, tool->name))
			continue;
		emit_object(&w->e, NULL);
		emit_z(&w->e, "type", custom && chat_say_custom(w) ? "custom" : "function");
		emit_object(&w->e, custom && chat_say_custom(w) ? "custom" : "function");
		emit_text(&w->e, "name", chat_say_name(w, tool->name, tool->namespace, custom));
		emit_end(&w->e);
		emit_end(&w->e);
	}
	emit_end(&w->e);
	emit_end(&w->e);
	emit_end(&w->e);
}

static void
write_choice(struct chat_writer *w)
{
	enum form_choice choice = w->form->choice;
	bool forced = choice == FORM_CHOICE_REQUIRED || choice == FORM_CHOICE_NAMED;

	if (forced && (w->host->choice == CHAT_CHOICE_AUTO ||
	                  (w->host->choice == CHAT_CHOICE_UNFORCED &&
	                      chat_host_thinks(w->host, w->target, w->form)))) {
		drop(w, "tool_choice");
		emit_z(&w->e, "tool_choice", "auto");
		return;
	}
	if (w->form->allowed != NULL && w->host->openai) {
		write_allowed(w);
		return;
	}
	switch (choice) {
	case FORM_CHOICE_UNSET: break;
	case FORM_CHOICE_NONE: emit_z(&w->e, "tool_choice", "none"); break;
	case FORM_CHOICE_AUTO: emit_z(&w->e, "tool_choice", "auto"); break;
	case FORM_CHOICE_REQUIRED: emit_z(&w->e, "tool_choice", "required"); break;
	case FORM_CHOICE_NAMED: write_named(w); break;
	}
}

enum err
chat_offer_tools(struct chat_writer *w)
{
	size_t sent = 0;

	name_hosted(w);
	for (size_t i = 0; i < w->form->ntools; i++)
		sent += is_sent(w, &w->form->tools[i]);
	if (check_forced(w, sent) != ERR_OK)
		return ERR_BAD_INPUT;
	/* where "none" is not known, it must not become "auto" */
	if (sent == 0 ||
	    (w->form->choice == FORM_CHOICE_NONE && w->host->choice == CHAT_CHOICE_AUTO))
		return ERR_OK;
	emit_array(&w->e, "tools");
	for (size_t i = 0; i < w->form->ntools; i++)
		if (is_sent(w, &w->form->tools[i]))
			write_tool(w, &w->form->tools[i]);
	emit_end(&w->e);
	write_choice(w);
	if (w->form->parallel == FORM_FALSE && !w->host->parallel)
		drop(w, "parallel_tool_calls");
	else if (w->form->parallel != FORM_UNSET && w->host->parallel)
		emit_bool(&w->e, "parallel_tool_calls", w->form->parallel == FORM_TRUE);
	return ERR_OK;
}
