#include "dialect/form.h"

#include <stdio.h>
#include <string.h>

/* How each API calls its lists and members; NULL: an item of its own, not in a list. */
static const struct wire {
	const char *list, *system, *calls, *content, *results, *outputs;
	const char *fields[FORM_FIELD__MAX], *media[FORM_AUDIO + 1];
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
            [FORM_FIELD_RESULT_ID] = "tool_call_id"},
        .media =
            {[FORM_IMAGE] = "image_url", [FORM_DOCUMENT] = "file", [FORM_AUDIO] = "input_audio"}},
    [FORM_MESSAGES] = {.list = "messages",
        .system = "system",
        .calls = "content",
        .content = "content",
        .results = "content",
        .outputs = "content",
        .fields = {[FORM_FIELD_CONTENT] = "content",
            [FORM_FIELD_CALL_ID] = "id",
            [FORM_FIELD_CALL_NAME] = "name",
            [FORM_FIELD_ARGUMENTS] = "input",
            [FORM_FIELD_RESULT_ID] = "tool_use_id"},
        .media = {[FORM_IMAGE] = "source", [FORM_DOCUMENT] = "source", [FORM_AUDIO] = "source"}},
    [FORM_RESPONSES] = {.list = "input",
        .system = "instructions",
        .content = "content",
        .outputs = "output",
        .fields = {[FORM_FIELD_CONTENT] = "content",
            [FORM_FIELD_CALL_ID] = "call_id",
            [FORM_FIELD_CALL_NAME] = "name",
            [FORM_FIELD_ARGUMENTS] = "arguments",
            [FORM_FIELD_RESULT_ID] = "call_id"},
        .media = {[FORM_IMAGE] = "image_url",
            [FORM_DOCUMENT] = "file_url",
            [FORM_AUDIO] = "input_audio"}},
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

/* Calls from before there were tools: flat, and without an id. */
static bool
is_old_call(const struct form *form, const struct form_part *part)
{
	return form->from == FORM_CHAT && part->kind == FORM_CALL && part->in == SIZE_MAX &&
	       part->at != FORM_AT_KEPT;
}

static const char *
field_name(const struct wire *wire, const struct form_part *part, enum form_field field)
{
	if (field != FORM_FIELD_MEDIA)
		return wire->fields[field];
	return part->kind <= FORM_AUDIO ? wire->media[part->kind] : NULL;
}

struct span
form_place(const struct form *form, const struct form_part *part, enum form_field field, char *dst,
    size_t cap)
{
	const struct wire *wire = &wires[form->from];
	const char *name = field_name(wire, part, field);
	struct where w = {.dst = dst, .cap = cap};

	if (part->at == FORM_AT_KEPT)
		add_name(&w, "(kept)");
	else if (part->at == SIZE_MAX)
		add_name(&w, wire->system);
	else
		add_index(&w, wire->list, part->at);
	if (is_old_call(form, part)) {
		add_name(&w, "function_call");
		if (name != NULL && text_starts(text_span(name), "function."))
			name += strlen("function.");
	} else if (part->of != SIZE_MAX) {
		add_index(&w, wire->results, part->of);
		add_index(&w, wire->outputs, part->in);
	} else {
		add_index(&w, part->kind == FORM_CALL ? wire->calls : wire->content, part->in);
	}
	if (name != NULL)
		add_name(&w, name);
	return (struct span){dst, w.n};
}
