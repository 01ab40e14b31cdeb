#include "dialect/history.h"

#include "base/emit.h"
#include "dialect/edit.h"
#include "dialect/seal.h"

#define NAME_MAX_BYTES 512

static struct scan_value
member(struct span object, const char *name)
{
	struct scan_value value;
	struct span key;
	size_t at = 0;

	while (scan_next(object, &at, &key, &value))
		if (scan_is(key, name))
			return value;
	return (struct scan_value){.type = SCAN_ABSENT, .raw = {"", 0}};
}

static bool
is_text(const struct scan_value *value, const char *z)
{
	return value->type == SCAN_STRING && scan_is(value->raw, z);
}

/* ---- the answer ---- */

bool
history_answer(struct arena *arena, struct span response, struct history_answer *answer_out)
{
	static const char *const paths[] = {"id", "status", "output", "store"};
	struct scan_value v[NELEM(paths)];

	response = text_trim(response);
	if (scan_pick(response, paths, v, NELEM(paths), NULL) != ERR_OK)
		return false;
	if (v[0].type != SCAN_STRING || v[2].type != SCAN_ARRAY ||
	    (!is_text(&v[1], "completed") && !is_text(&v[1], "incomplete")))
		return false;
	answer_out->id = scan_string(arena, v[0].raw);
	answer_out->response = response;
	answer_out->stored = v[3].type == SCAN_TRUE;
	return answer_out->id.n > 0 && answer_out->id.n <= NAME_MAX_BYTES;
}

bool
history_events(struct arena *arena, struct span events, struct history_answer *answer_out)
{
	static const char *const paths[] = {"type", "response"};
	struct scan_value v[NELEM(paths)];
	struct sse_event event;
	struct sse sse;
	bool found = false;

	sse_init(&sse, events.n + 1);
	if (sse_feed(&sse, events, NULL) == ERR_OK)
		while (!found && sse_last(&sse, &event))
			found = event.has_data &&
			        scan_pick(event.data, paths, v, NELEM(paths), NULL) == ERR_OK &&
			        (is_text(&v[0], "response.completed") ||
			            is_text(&v[0], "response.incomplete")) &&
			        history_answer(arena, arena_copy(arena, v[1].raw), answer_out);
	sse_release(&sse);
	return found;
}

/* ---- the document ---- */

void
history_write(const struct history *history, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "channel", history->channel);
	emit_text(&e, "account", history->account);
	emit_bool(&e, "native", history->native);
	emit_bool(&e, "stored", history->stored);
	emit_raw(&e, "items", history->items);
	emit_raw(&e, "response", history->response);
	if (history->output.n > 0)
		emit_raw(&e, "output", history->output);
	emit_end(&e);
}

bool
history_read(struct arena *arena, struct span text, struct history *history_out)
{
	static const char *const paths[] = {
	    "channel", "account", "native", "items", "response", "stored", "output"};
	struct scan_value v[NELEM(paths)];

	if (scan_pick(text, paths, v, NELEM(paths), NULL) != ERR_OK)
		return false;
	if (v[0].type != SCAN_STRING || v[1].type != SCAN_STRING || v[3].type != SCAN_ARRAY ||
	    v[4].type != SCAN_OBJECT)
		return false;
	*history_out = (struct history){
	    .channel = scan_string(arena, v[0].raw),
	    .account = scan_string(arena, v[1].raw),
	    .native = v[2].type == SCAN_TRUE,
	    .stored = v[5].type == SCAN_TRUE,
	    .items = v[3].raw,
	    .response = v[4].raw,
	    .output = v[6].type == SCAN_ARRAY ? v[6].raw : (struct span){"", 0},
	};
	return true;
}

/* ---- items ---- */

/* An item without a member, or with another text for it. */
static void
copy_but(struct span item, const char *name, const struct span *instead, struct buf *out)
{
	struct scan_value value;
	struct span key;
	size_t at = 0;
	bool comma = false;

	buf_char(out, '{');
	while (scan_next(item, &at, &key, &value)) {
		bool is_it = scan_is(key, name);

		if (is_it && instead == NULL)
			continue;
		if (comma)
			buf_char(out, ',');
		comma = true;
		buf_span(out, key);
		buf_char(out, ':');
		if (is_it)
			emit_quoted(out, *instead);
		else
			buf_span(out, value.raw);
	}
	buf_char(out, '}');
}

static void
put_comma(struct buf *out)
{
	if (out->n > 0)
		buf_char(out, ',');
}

/* Reasoning, or a conversation made short: for who made it. */
static bool
is_private(struct span item)
{
	struct scan_value type = member(item, "type");

	return is_text(&type, "reasoning") || is_text(&type, "compaction");
}

static void
carry_private(struct arena *arena, const struct history *history, struct span item, struct buf *out)
{
	struct scan_value content = member(item, "encrypted_content");
	struct span seal;

	if (!history->native) {
		put_comma(out);
		buf_span(out, item);
		return;
	}
	if (content.type != SCAN_STRING)
		return;
	seal = scan_string(arena, content.raw);
	if (!seal_open(seal).marked)
		seal = seal_make(arena, FORM_RESPONSES, history->channel, seal);
	put_comma(out);
	copy_but(item, "encrypted_content", &seal, out);
}

static bool
has_own_id(struct span item)
{
	static const char *const types[] = {"message", "function_call", "custom_tool_call"};
	struct scan_value type = member(item, "type");

	for (size_t i = 0; i < NELEM(types); i++)
		if (is_text(&type, types[i]))
			return true;
	return false;
}

static struct span
inside(struct span array)
{
	return text_trim((struct span){array.p + 1, array.n - 2});
}

struct span
history_carry(struct arena *arena, const struct history *history)
{
	struct span output =
	    history->output.n > 0 ? history->output : member(history->response, "output").raw;
	struct buf *out = arena_buf(arena, history->items.n + output.n * 2 + 256);
	struct scan_value item;
	struct span none;
	size_t at = 0;

	buf_span(out, inside(history->items));
	while (scan_next(output, &at, &none, &item)) {
		if (item.type != SCAN_OBJECT)
			continue;
		if (is_private(item.raw)) {
			carry_private(arena, history, item.raw, out);
			continue;
		}
		put_comma(out);
		if (has_own_id(item.raw))
			copy_but(item.raw, "id", NULL, out);
		else
			buf_span(out, item.raw);
	}
	return buf_text(out);
}

struct span
history_own(struct arena *arena, const struct dialect_request *request)
{
	if (request->input.type == SCAN_ARRAY)
		return inside(request->input.raw);
	if (request->input.type != SCAN_STRING)
		return (struct span){"", 0};
	return text_span(arena_join(arena,
	    (const struct span[]){
	        SPAN("{\"role\":\"user\",\"content\":"), request->input.raw, SPAN("}")},
	    3));
}

struct span
history_join(struct arena *arena, struct span a, struct span b)
{
	if (a.n == 0 || b.n == 0)
		return a.n == 0 ? b : a;
	return text_span(arena_join(arena, (const struct span[]){a, SPAN(","), b}, 3));
}

/* False: it is not for this channel. */
static bool
fit_private(
    struct arena *arena, struct span item, bool native, struct span channel, struct buf *out)
{
	struct scan_value content = member(item, "encrypted_content");
	struct span seal = {"", 0}, payload;

	if (content.type == SCAN_STRING)
		seal = scan_string(arena, content.raw);
	if (native && seal_fits(seal, FORM_RESPONSES, channel, &payload)) {
		put_comma(out);
		copy_but(item, "encrypted_content", &payload, out);
		return true;
	}
	/* another API's writer knows what to do with the words, and with seals of its own */
	if (native || (seal_open(seal).marked && seal_open(seal).wire == FORM_RESPONSES))
		return false;
	put_comma(out);
	buf_span(out, item);
	return true;
}

struct span
history_fit(struct arena *arena, struct span carried, bool native, struct span channel)
{
	struct span list =
	    text_span(arena_join(arena, (const struct span[]){SPAN("["), carried, SPAN("]")}, 3));
	struct buf *out = arena_buf(arena, carried.n * 2 + 256);
	struct scan_value item;
	struct span none;
	size_t at = 0;

	while (scan_next(list, &at, &none, &item)) {
		if (item.type == SCAN_OBJECT && is_private(item.raw)) {
			(void)fit_private(arena, item.raw, native, channel, out);
			continue;
		}
		put_comma(out);
		buf_span(out, item.raw);
	}
	return buf_text(out);
}

struct span
history_body(struct arena *arena, const struct dialect_request *request, struct span items)
{
	struct span list =
	    text_span(arena_join(arena, (const struct span[]){SPAN("["), items, SPAN("]")}, 3));
	struct edit edits[2];
	size_t n = 0;
	struct buf *out = arena_buf(arena, request->body.n + list.n + 64);

	if (request->input.type != SCAN_ABSENT)
		edits[n++] = (struct edit){request->input.raw, list};
	else /* a stored prompt brings its own; there is a model at least, so a comma follows */
		edits[n++] = (struct edit){{text_trim(request->body).p + 1, 0},
		    text_span(arena_join(
		        arena, (const struct span[]){SPAN("\"input\":"), list, SPAN(",")}, 3))};
	if (edit_remove(request->body, "previous_response_id", &edits[n]))
		n++;
	edit_apply(request->body, edits, n, out);
	return buf_text(out);
}
