#include "lib/responses_order.h"

#include "base/scan.h"
#include "dialect/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ITEMS_MAX 64

enum {
	TYPE,
	SEQUENCE,
	ITEM_ID,
	OUTPUT_INDEX,
	CONTENT_INDEX,
	SUMMARY_INDEX,
	DELTA,
	TEXT,
	REFUSAL,
	ARGUMENTS,
	INPUT,
	PART_TEXT,
	PART_REFUSAL,
	ANNOTATION_INDEX,
	ITEM,
	ITEM_TYPE,
	ITEM_ITS_ID,
	RESPONSE,
	REASON,
	EVENT__MAX
};

static const char *const paths[EVENT__MAX] = {"type", "sequence_number", "item_id", "output_index",
    "content_index", "summary_index", "delta", "text", "refusal", "arguments", "input", "part.text",
    "part.refusal", "annotation_index", "item", "item.type", "item.id", "response",
    "response.incomplete_details.reason"};

struct order {
	struct arena *arena;
	struct buf *out, *output;
	struct scan_value v[EVENT__MAX];
	int64_t sequence;
	size_t nitems;
	bool over;
	struct item {
		struct span id;
		bool open, part, said; /* said: the part's text is whole */
		int64_t parts;
		struct buf *text; /* the pieces of the part that is open */
	} items[ITEMS_MAX];
};

static struct span
text_at(struct order *o, size_t member)
{
	return o->v[member].type == SCAN_STRING ? scan_string(o->arena, o->v[member].raw)
	                                        : (struct span){"", 0};
}

static int64_t
number_at(struct order *o, size_t member)
{
	int64_t n = -1;

	scan_i64(&o->v[member], 0, INT32_MAX, &n);
	return n;
}

static void
tell(struct order *o, const char *word)
{
	buf_print(o->out, "%s%s", o->out->n > 0 ? " " : "", word);
}

static struct item *
item_of(struct order *o)
{
	int64_t index = number_at(o, OUTPUT_INDEX);

	assert_in_range(index, 0, (int64_t)o->nitems - 1);
	assert_true(o->items[index].open);
	if (o->v[ITEM].type == SCAN_ABSENT)
		assert_true(text_equal(o->items[index].id, text_at(o, ITEM_ID)));
	else
		assert_true(text_equal(o->items[index].id, text_at(o, ITEM_ITS_ID)));
	return &o->items[index];
}

static void
on_added(struct order *o)
{
	struct item *item = &o->items[o->nitems];
	struct span type = text_at(o, ITEM_TYPE);

	assert_in_range(o->nitems, 0, ITEMS_MAX - 1);
	assert_int_equal(number_at(o, OUTPUT_INDEX), o->nitems);
	*item = (struct item){.id = text_at(o, ITEM_ITS_ID), .open = true, .parts = 0};
	assert_true(item->id.n > 0);
	for (size_t i = 0; i < o->nitems; i++)
		assert_false(text_equal(item->id, o->items[i].id));
	item->text = arena_buf(o->arena, SIZE_MAX / 4);
	buf_print(o->out, " +%zu:%.*s", o->nitems++, (int)type.n, type.p);
}

static void
on_item_done(struct order *o)
{
	struct item *item = item_of(o);

	assert_false(item->part);
	item->open = false;
	buf_print(o->out, " -%zu", (size_t)(item - o->items));
}

static int64_t
place_at(struct order *o)
{
	return o->v[SUMMARY_INDEX].type != SCAN_ABSENT ? number_at(o, SUMMARY_INDEX)
	                                               : number_at(o, CONTENT_INDEX);
}

static void
on_part_added(struct order *o)
{
	struct item *item = item_of(o);

	assert_false(item->part);
	assert_int_equal(place_at(o), item->parts);
	item->part = true;
	item->said = false;
	buf_clear(item->text);
	buf_print(o->out, " part%lld", (long long)item->parts);
}

static void
on_part_done(struct order *o)
{
	struct item *item = item_of(o);
	struct span text = text_at(o, PART_TEXT);

	assert_true(item->part && item->said);
	assert_int_equal(place_at(o), item->parts);
	assert_true(text_equal(buf_text(item->text), text.n > 0 ? text : text_at(o, PART_REFUSAL)));
	item->part = false;
	item->parts++;
	tell(o, "part.done");
}

static void
on_piece(struct order *o, bool of_part)
{
	struct item *item = item_of(o);
	struct span delta = text_at(o, DELTA);

	assert_int_equal(item->part, of_part);
	assert_false(item->said);
	assert_true(delta.n > 0);
	if (of_part)
		assert_int_equal(place_at(o), item->parts);
	buf_span(item->text, delta);
	buf_z(o->out, " '");
	for (size_t i = 0; i < delta.n; i++)
		if (delta.p[i] == '\n')
			buf_z(o->out, "\\n");
		else
			buf_char(o->out, delta.p[i]);
	buf_char(o->out, '\'');
}

static void
on_whole(struct order *o, size_t member, const char *word)
{
	struct item *item = item_of(o);

	assert_false(item->said);
	assert_true(text_equal(buf_text(item->text), text_at(o, member)));
	item->said = true;
	tell(o, word);
}

static void
on_terminal(struct order *o, const char *word)
{
	struct span reason = text_at(o, REASON);

	for (size_t i = 0; i < o->nitems; i++)
		assert_false(o->items[i].open);
	tell(o, word);
	if (reason.n > 0)
		buf_print(o->out, ":%.*s", (int)reason.n, reason.p);
	o->over = true;
	responses_order_output(o->v[RESPONSE].raw, o->output);
}

static void
on_annotation(struct order *o)
{
	assert_true(item_of(o)->part);
	buf_print(o->out, " annotation%lld", (long long)number_at(o, ANNOTATION_INDEX));
}

static void
on_event(struct order *o, struct span type)
{
	if (text_is(type, "response.created") || text_is(type, "response.in_progress"))
		tell(o, type.p[9] == 'c' ? "created" : "in_progress");
	else if (text_is(type, "response.output_item.added"))
		on_added(o);
	else if (text_is(type, "response.output_item.done"))
		on_item_done(o);
	else if (text_ends(type, "part.added"))
		on_part_added(o);
	else if (text_ends(type, "part.done"))
		on_part_done(o);
	else if (text_ends(type, "arguments.delta") || text_ends(type, "input.delta"))
		on_piece(o, false);
	else if (text_ends(type, ".delta"))
		on_piece(o, true);
	else if (text_ends(type, "arguments.done"))
		on_whole(o, ARGUMENTS, "args.done");
	else if (text_ends(type, "input.done"))
		on_whole(o, INPUT, "args.done");
	else if (text_ends(type, "refusal.done"))
		on_whole(o, REFUSAL, "refusal.done");
	else if (text_ends(type, "text.done"))
		on_whole(o, TEXT, "text.done");
	else if (text_ends(type, "annotation.added"))
		on_annotation(o);
	else if (text_is(type, "response.completed") || text_is(type, "response.incomplete"))
		on_terminal(o, type.p[9] == 'c' ? "completed" : "incomplete");
	else
		fail_msg("an event that is not known: %.*s", (int)type.n, type.p);
}

void
responses_order(
    struct arena *arena, struct span stream, struct buf *order_out, struct buf *output_out)
{
	struct order o = {.arena = arena, .out = order_out, .output = output_out};
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, SIZE_MAX / 4);
	assert_int_equal(sse_feed(&sse, stream, NULL), ERR_OK);
	while (sse_next(&sse, &event)) {
		struct span type;

		assert_false(o.over);
		assert_int_equal(scan_pick(event.data, paths, o.v, EVENT__MAX, NULL), ERR_OK);
		type = text_at(&o, TYPE);
		assert_true(text_equal(type, event.name));
		assert_int_equal(number_at(&o, SEQUENCE), o.sequence++);
		/* its spans go with the event */
		for (size_t i = 0; i < EVENT__MAX; i++)
			o.v[i].raw = arena_copy(arena, o.v[i].raw);
		on_event(&o, type);
	}
	assert_true(o.over);
	assert_int_equal(sse_rest(&sse).n, 0);
	sse_release(&sse);
	buf_char(order_out, '\0');
	order_out->n--;
}

void
responses_order_output(struct span response, struct buf *output_out)
{
	static const char *const path = "output";
	struct scan_value output;
	struct span rest;

	assert_int_equal(scan_pick(response, &path, &output, 1, NULL), ERR_OK);
	rest = output.raw;
	while (rest.n > 0) {
		size_t at = text_find(rest, SPAN("{\"id\":\""));
		size_t end = at == rest.n ? at : at + 7;

		while (end < rest.n && rest.p[end] != '_')
			end++;
		end += end < rest.n;
		buf_span(output_out, (struct span){rest.p, end});
		while (end < rest.n && rest.p[end] != '"')
			end++;
		rest = text_from(rest, end);
	}
}
