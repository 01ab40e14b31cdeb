#include "dialect/messages_writer.h"

#define NAME_MAX_BYTES 128 /* of a tool: formats.md C.5 */

void
messages_writer_drop(struct messages_writer *w, const char *name)
{
	form_drop(w->loss, w->arena, text_span(name));
}

void
messages_writer_drop_one(
    struct messages_writer *w, const char *chat, const char *responses, const char *messages)
{
	const char *name = chat;

	switch (w->form->from) {
	case FORM_RESPONSES: name = responses; break;
	case FORM_MESSAGES: name = messages; break;
	case FORM_CHAT:
	case FORM_WIRE__MAX: break;
	}
	messages_writer_drop(w, name == NULL ? chat : name);
}

struct span
messages_writer_tool(
    struct messages_writer *w, struct span name, struct span namespace, bool custom)
{
	struct form_name sent = {.original = name, .namespace = namespace, .custom = custom};
	struct span whole = name;

	if (namespace.n > 0)
		whole = text_span(
		    arena_join(w->arena, (const struct span[]){namespace, SPAN("__"), name}, 3));
	sent.sent = form_tool_name(w->arena, whole, NAME_MAX_BYTES);
	if (custom || namespace.n > 0 || !text_equal(sent.sent, name))
		form_rename(w->loss, w->arena, &sent);
	return sent.sent;
}

enum err
messages_writer_refuse(struct messages_writer *w, const struct form_part *part, const char *text)
{
	char where[FORM_PLACE_BYTES];

	form_place(w->form, part, FORM_FIELD_MEDIA, where, sizeof where);
	err_why(w->why, "'%s' %s", where, text);
	return ERR_BAD_INPUT;
}

bool
messages_writer_thinks(const struct messages_writer *w)
{
	return w->thinking.kind == MESSAGES_BUDGET || w->thinking.kind == MESSAGES_ADAPTIVE ||
	       w->model->always;
}

void
messages_writer_cache(struct messages_writer *w, struct span cache_control)
{
	if (cache_control.n > 0)
		emit_raw(&w->e, "cache_control", cache_control);
}
