#include "dialect/responses.h"

#include "dialect/value.h"

#include <string.h>

enum {
	TYPE,
	ERROR,
	MESSAGE,
	DELTA,
	TEXT,
	REFUSAL,
	ARGUMENTS,
	INPUT,
	CODE,
	PART_OF_TEXT,
	PART_OF_REFUSAL,
	ITEM,
	RESPONSE,
	EVENT__MAX
};

static const char *const event_paths[EVENT__MAX] = {
    [TYPE] = "type",
    [ERROR] = "error",
    [MESSAGE] = "message",
    [DELTA] = "delta",
    [TEXT] = "text",
    [REFUSAL] = "refusal",
    [ARGUMENTS] = "arguments",
    [INPUT] = "input",
    [CODE] = "code",
    [PART_OF_TEXT] = "part.text",
    [PART_OF_REFUSAL] = "part.refusal",
    [ITEM] = "item",
    [RESPONSE] = "response",
};

enum { OBJECT, STATUS, REASON, MODEL, USAGE, OUTPUT, FAILURE, RESPONSE__MAX };

static const char *const response_paths[RESPONSE__MAX] = {
    [OBJECT] = "object",
    [STATUS] = "status",
    [REASON] = "incomplete_details.reason",
    [MODEL] = "model",
    [USAGE] = "usage",
    [OUTPUT] = "output",
    [FAILURE] = "error",
};

/* What an event of a type can be; all that is not here tells nothing of the answer. */
static const struct type {
	const char *name;
	enum { HEAD, ITEM_BEGINS, ITEM_ENDS, PIECE, WHOLE, TERMINAL, FAILED } kind;
} types[] = {
    {"response.output_text.delta", PIECE},
    {"response.function_call_arguments.delta", PIECE},
    {"response.reasoning_summary_text.delta", PIECE},
    {"response.reasoning_text.delta", PIECE},
    {"response.custom_tool_call_input.delta", PIECE},
    {"response.refusal.delta", PIECE},
    {"response.mcp_call_arguments.delta", PIECE},
    {"response.code_interpreter_call_code.delta", PIECE},
    {"response.audio.delta", PIECE},
    {"response.audio.transcript.delta", PIECE},
    {"response.output_text.done", WHOLE},
    {"response.refusal.done", WHOLE},
    {"response.content_part.added", WHOLE},
    {"response.content_part.done", WHOLE},
    {"response.reasoning_summary_part.added", WHOLE},
    {"response.reasoning_summary_part.done", WHOLE},
    {"response.reasoning_summary_text.done", WHOLE},
    {"response.reasoning_text.done", WHOLE},
    {"response.function_call_arguments.done", WHOLE},
    {"response.custom_tool_call_input.done", WHOLE},
    {"response.output_item.added", ITEM_BEGINS},
    {"response.output_item.done", ITEM_ENDS},
    {"response.created", HEAD},
    {"response.queued", HEAD},
    {"response.in_progress", HEAD},
    {"response.completed", TERMINAL},
    {"response.incomplete", TERMINAL},
    {"response.done", TERMINAL},
    {"response.failed", FAILED},
    {"response.cancelled", FAILED},
    {"response.error", FAILED},
    {"error", FAILED},
};

static const struct type *
find_type(struct span name)
{
	for (size_t i = 0; i < NELEM(types); i++)
		if (text_is(name, types[i].name))
			return &types[i];
	return NULL;
}

static size_t
texts_of_list(const struct scan_value *list)
{
	static const char *const names[] = {"text", "refusal"};
	struct scan_value part;
	struct span none;
	size_t at = 0, bytes = 0;

	if (list->type == SCAN_ARRAY)
		while (scan_next(list->raw, &at, &none, &part))
			for (size_t i = 0; i < NELEM(names); i++) {
				struct scan_value text = responses_member(&part, names[i]);

				bytes += value_bytes(&text);
			}
	return bytes;
}

/* Bytes of text in an item. True: it is more than the announcement of a text to come. */
static bool
read_item(const struct scan_value *item, size_t *bytes)
{
	static const char *const texts[] = {"name", "arguments", "input"};
	static const char *const lists[] = {"content", "summary"};
	struct scan_value type = responses_member(item, "type");

	for (size_t i = 0; i < NELEM(texts); i++) {
		struct scan_value v = responses_member(item, texts[i]);

		*bytes += value_bytes(&v);
	}
	for (size_t i = 0; i < NELEM(lists); i++) {
		struct scan_value v = responses_member(item, lists[i]);

		*bytes += texts_of_list(&v);
	}
	if (type.type != SCAN_STRING)
		return *bytes > 0;
	return *bytes > 0 || !(scan_is(type.raw, "message") || scan_is(type.raw, "reasoning"));
}

/* Texts in the list of items: of a host that gave no pieces, or not all. */
static void
read_output(const struct scan_value *output, struct dialect_tap *tap)
{
	struct scan_value item;
	struct span none;
	size_t at = 0, bytes = 0;
	bool content = false;

	if (output->type == SCAN_ARRAY)
		while (scan_next(output->raw, &at, &none, &item)) {
			size_t n = 0;

			content |= read_item(&item, &n);
			bytes += n;
		}
	tap->content |= content;
	if (bytes > tap->content_bytes)
		tap->content_bytes = bytes;
}

static bool
is_word(const struct scan_value *v, const char *word)
{
	return v->type == SCAN_STRING && scan_is(v->raw, word);
}

static bool
scan_response(struct span raw, struct scan_value r[RESPONSE__MAX])
{
	static struct scan_plan *plan;

	return responses_scan(&plan, response_paths, RESPONSE__MAX, raw, r);
}

static bool
has_failed(const struct scan_value r[RESPONSE__MAX])
{
	return is_word(&r[STATUS], "failed") || is_word(&r[STATUS], "cancelled") ||
	       value_says(&r[FAILURE]);
}

static void
read_head(const struct scan_value r[RESPONSE__MAX], struct dialect_tap *tap)
{
	if (tap->model[0] == '\0')
		value_copy(tap->model, sizeof tap->model, &r[MODEL]);
	responses_usage(&r[USAGE], &tap->usage);
}

static void
read_finish(const struct scan_value r[RESPONSE__MAX], struct dialect_tap *tap)
{
	const struct scan_value *word = is_word(&r[STATUS], "incomplete") ? &r[REASON] : &r[STATUS];

	tap->finished = true;
	value_copy(tap->finish, sizeof tap->finish, word);
	if (tap->finish[0] == '\0')
		memcpy(tap->finish, "completed", sizeof "completed");
	read_output(&r[OUTPUT], tap);
}

static enum dialect_part
terminal(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	struct scan_value r[RESPONSE__MAX] = {0};

	if (v[RESPONSE].type == SCAN_OBJECT && scan_response(v[RESPONSE].raw, r)) {
		if (has_failed(r))
			return PART_ERROR;
		read_head(r, tap);
	}
	read_finish(r, tap);
	tap->ended = true;
	return PART_END;
}

/* Text that came whole: counted where no piece of it came before. */
static enum dialect_part
whole(size_t bytes, bool content, struct dialect_tap *tap)
{
	if (!content)
		return PART_PREAMBLE;
	if (!tap->content)
		tap->content_bytes += bytes;
	tap->content = true;
	return PART_CONTENT;
}

static enum dialect_part
whole_text(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	static const size_t places[] = {
	    TEXT, REFUSAL, ARGUMENTS, INPUT, PART_OF_TEXT, PART_OF_REFUSAL};
	size_t bytes = 0;

	for (size_t i = 0; i < NELEM(places); i++)
		bytes += value_bytes(&v[places[i]]);
	return whole(bytes, bytes > 0, tap);
}

static enum dialect_part
item_event(const struct scan_value *item, bool begins, struct dialect_tap *tap)
{
	size_t bytes = 0;
	bool content = read_item(item, &bytes);

	/* the name of a call comes with its beginning, and again with its end */
	if (begins && content && tap->content)
		tap->content_bytes += bytes;
	return whole(bytes, content, tap);
}

/* Of no type that is known: an error in another shape, or nothing of the answer. */
static enum dialect_part
other(const struct scan_value v[EVENT__MAX], struct span type)
{
	if (value_says(&v[ERROR]))
		return PART_ERROR;
	if (type.n == 0 && v[RESPONSE].type == SCAN_ABSENT && value_says(&v[MESSAGE]))
		return PART_ERROR;
	return PART_PREAMBLE;
}

static enum dialect_part
judge(struct span name, const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	const struct type *type = find_type(name);
	struct scan_value r[RESPONSE__MAX];

	if (type == NULL)
		return other(v, name);
	switch (type->kind) {
	case HEAD:
		if (v[RESPONSE].type == SCAN_OBJECT && scan_response(v[RESPONSE].raw, r))
			read_head(r, tap);
		return PART_PREAMBLE;
	case ITEM_BEGINS: return item_event(&v[ITEM], true, tap);
	case ITEM_ENDS: return item_event(&v[ITEM], false, tap);
	case PIECE:
		if (!value_says(&v[DELTA]))
			return PART_PREAMBLE;
		tap->content_bytes += value_bytes(&v[DELTA]);
		tap->content = true;
		return PART_CONTENT;
	case WHOLE: return whole_text(v, tap);
	case TERMINAL: return terminal(v, tap);
	case FAILED: return PART_ERROR;
	}
	return PART_PREAMBLE;
}

enum dialect_part
responses_event(const struct sse_event *event, struct dialect_tap *tap)
{
	static struct scan_plan *plan;
	struct scan_value v[EVENT__MAX];
	struct span data = text_trim(event->data), name = event->name;

	if (tap->ended)
		return PART_NOTHING;
	if (text_is(name, "error"))
		return PART_ERROR;
	if (data.n == 0 || text_is(data, "[DONE]"))
		return PART_NOTHING;
	if (!responses_scan(&plan, event_paths, EVENT__MAX, data, v)) {
		tap->invalid++;
		tap->content = true;
		return PART_CONTENT;
	}
	if (v[TYPE].type == SCAN_STRING)
		name = (struct span){v[TYPE].raw.p + 1, v[TYPE].raw.n - 2};
	return judge(name, v, tap);
}

bool
responses_answer(struct span body, struct dialect_tap *tap)
{
	struct scan_value r[RESPONSE__MAX];

	if (!scan_response(body, r) || r[OUTPUT].type != SCAN_ARRAY || has_failed(r))
		return false;
	if (r[OBJECT].type == SCAN_STRING && !scan_is(r[OBJECT].raw, "response"))
		return false;
	read_head(r, tap);
	read_finish(r, tap);
	return true;
}
