#include "dialect/form.h"

#include <stdio.h>
#include <string.h>

/* How each API calls its lists and members; NULL: an item of its own, not in a list. */
static const struct wire {
	const char *list, *system, *calls, *content, *outputs;
	const char *fields[FORM_FIELD__MAX];
} wires[FORM_WIRE__MAX] = {
    [FORM_CHAT] = {.list = "messages",
        .system = "messages",
        .calls = "tool_calls",
        .content = "content",
        .outputs = "content",
        .fields = {[FORM_FIELD_CONTENT] = "content",
            [FORM_FIELD_CALL_ID] = "id",
            [FORM_FIELD_CALL_NAME] = "function.name",
            [FORM_FIELD_ARGUMENTS] = "function.arguments",
            [FORM_FIELD_RESULT_ID] = "tool_call_id",
            [FORM_FIELD_IMAGE] = "image_url",
            [FORM_FIELD_DOCUMENT] = "file"}},
    [FORM_MESSAGES] = {.list = "messages",
        .system = "system",
        .calls = "content",
        .content = "content",
        .outputs = "content",
        .fields = {[FORM_FIELD_CONTENT] = "content",
            [FORM_FIELD_CALL_ID] = "id",
            [FORM_FIELD_CALL_NAME] = "name",
            [FORM_FIELD_ARGUMENTS] = "input",
            [FORM_FIELD_RESULT_ID] = "tool_use_id",
            [FORM_FIELD_IMAGE] = "source",
            [FORM_FIELD_DOCUMENT] = "source"}},
    [FORM_RESPONSES] = {.list = "input",
        .system = "instructions",
        .content = "content",
        .outputs = "output",
        .fields = {[FORM_FIELD_CONTENT] = "content",
            [FORM_FIELD_CALL_ID] = "call_id",
            [FORM_FIELD_CALL_NAME] = "name",
            [FORM_FIELD_ARGUMENTS] = "arguments",
            [FORM_FIELD_RESULT_ID] = "call_id",
            [FORM_FIELD_IMAGE] = "image_url",
            [FORM_FIELD_DOCUMENT] = "file_url"}},
};

struct where {
	char *dst;
	size_t cap, n;
};

static void
add_name(struct where *w, const char *name)
{
	int n = snprintf(w->dst + w->n, w->cap - w->n, "%s%s", w->n > 0 ? "." : "", name);

	w->n = n > 0 && (size_t)n < w->cap - w->n ? w->n + (size_t)n : w->cap - 1;
}

static void
add_index(struct where *w, const char *name, size_t index)
{
	int n;

	if (name == NULL || index == SIZE_MAX)
		return;
	add_name(w, name);
	n = snprintf(w->dst + w->n, w->cap - w->n, "[%zu]", index);
	w->n = n > 0 && (size_t)n < w->cap - w->n ? w->n + (size_t)n : w->cap - 1;
}

const char *
form_place_list(const struct form *form)
{
	return wires[form->from].list;
}

struct span
form_place(const struct form *form, const struct form_part *result, const struct form_part *part,
    enum form_field field, char *dst, size_t cap)
{
	const struct wire *wire = &wires[form->from];
	const struct form_part *outer = result != NULL ? result : part;
	const char *name = wire->fields[field];
	struct where w = {.dst = dst, .cap = cap};

	if (outer->at == SIZE_MAX)
		add_name(&w, wire->system);
	else
		add_index(&w, wire->list, outer->at);
	if (outer->kind == FORM_CALL && form->from == FORM_CHAT && outer->in == SIZE_MAX) {
		add_name(&w, "function_call"); /* from before there were tools: flat, without id */
		name = text_from(text_span(name), strlen("function.")).p;
	} else {
		add_index(&w, outer->kind == FORM_CALL ? wire->calls : wire->content, outer->in);
	}
	if (result != NULL)
		add_index(&w, wire->outputs, part->in);
	add_name(&w, name);
	return (struct span){dst, w.n};
}
