#include "dialect/responses_flow_read.h"

#include "dialect/value.h"

enum {
	TYPE,
	ITEM_ID,
	OUTPUT_INDEX,
	CONTENT_INDEX,
	SUMMARY_INDEX,
	DELTA,
	TEXT,
	REFUSAL,
	ARGUMENTS,
	INPUT,
	NAME,
	ANNOTATION,
	ITEM,
	RESPONSE,
	EVENT__MAX
};

static const char *const event_paths[EVENT__MAX] = {
    [TYPE] = "type",
    [ITEM_ID] = "item_id",
    [OUTPUT_INDEX] = "output_index",
    [CONTENT_INDEX] = "content_index",
    [SUMMARY_INDEX] = "summary_index",
    [DELTA] = "delta",
    [TEXT] = "text",
    [REFUSAL] = "refusal",
    [ARGUMENTS] = "arguments",
    [INPUT] = "input",
    [NAME] = "name",
    [ANNOTATION] = "annotation",
    [ITEM] = "item",
    [RESPONSE] = "response",
};

enum { ID, MODEL, STATUS, REASON, USAGE, OUTPUT, OUTPUT_TEXT, RESPONSE__MAX };

static const char *const response_paths[RESPONSE__MAX] = {
    [ID] = "id",
    [MODEL] = "model",
    [STATUS] = "status",
    [REASON] = "incomplete_details.reason",
    [USAGE] = "usage",
    [OUTPUT] = "output",
    [OUTPUT_TEXT] = "output_text",
};

/* An event, with what most of them name. */
struct event {
	struct scan_value v[EVENT__MAX];
	struct span item_id;
	int64_t index; /* output_index */
};

static int64_t
index_at(const struct event *e, size_t member, int64_t missing)
{
	int64_t index = missing;

	scan_i64(&e->v[member], 0, INT32_MAX, &index);
	return index;
}

static struct span
text_at(const struct flow_reader *r, const struct event *e, size_t member)
{
	return responses_string(r->arena, &e->v[member]);
}

static void
start(struct flow_reader *r, struct span id, struct span model)
{
	if (r->started)
		return;
	r->started = true;
	r->id = arena_copy(r->arena, id);
	r->sink(r->arg, &(struct flow){.kind = FLOW_START, .id = r->id, .model = model});
}

static bool
scan_response(const struct scan_value *object, struct scan_value v[RESPONSE__MAX])
{
	static struct scan_plan *plan;

	return object->type == SCAN_OBJECT &&
	       responses_scan(&plan, response_paths, RESPONSE__MAX, object->raw, v);
}

static void
on_head(struct flow_reader *r, const struct event *e)
{
	struct scan_value v[RESPONSE__MAX];

	if (scan_response(&e->v[RESPONSE], v)) {
		start(r, responses_string(r->arena, &v[ID]), responses_string(r->arena, &v[MODEL]));
		responses_usage(&v[USAGE], &r->usage);
	}
}

static struct responses_flow_item *
find(struct flow_reader *r, const struct event *e, enum responses_flow_kind kind)
{
	return responses_flow_find(r, kind, e->item_id, e->index);
}

/* Text and refusal: a piece, or all of it where no piece of that part came. */
static void
on_text(struct flow_reader *r, const struct event *e)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_MESSAGE);

	responses_flow_say(r, item, FLOW_TEXT, text_at(r, e, DELTA), index_at(e, CONTENT_INDEX, 0));
}

static void
on_refusal(struct flow_reader *r, const struct event *e)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_MESSAGE);

	responses_flow_say(
	    r, item, FLOW_REFUSAL, text_at(r, e, DELTA), index_at(e, CONTENT_INDEX, 0));
}

static void
on_text_done(struct flow_reader *r, const struct event *e)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_MESSAGE);
	int64_t part = index_at(e, CONTENT_INDEX, 0);

	if (item->part >= part)
		return;
	responses_flow_say(r, item, FLOW_TEXT, text_at(r, e, TEXT), part);
	responses_flow_say(r, item, FLOW_REFUSAL, text_at(r, e, REFUSAL), part);
}

/* A host gives its reasoning as summary or as content; of one that gives both, what came first. */
static struct responses_flow_item *
thinking(struct flow_reader *r, const struct event *e, bool content)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_REASONING);

	if (!item->spoken)
		item->content = content;
	return item->content == content ? item : NULL;
}

static void
on_thought(struct flow_reader *r, const struct event *e, bool content, bool whole)
{
	struct responses_flow_item *item = thinking(r, e, content);
	int64_t part = index_at(e, content ? CONTENT_INDEX : SUMMARY_INDEX, 0);

	if (item == NULL || (whole && item->part >= part))
		return;
	responses_flow_say(r, item, FLOW_THOUGHT, text_at(r, e, whole ? TEXT : DELTA), part);
}

static void
on_summary(struct flow_reader *r, const struct event *e)
{
	on_thought(r, e, false, false);
}

static void
on_summary_done(struct flow_reader *r, const struct event *e)
{
	on_thought(r, e, false, true);
}

static void
on_reasoning(struct flow_reader *r, const struct event *e)
{
	on_thought(r, e, true, false);
}

static void
on_reasoning_done(struct flow_reader *r, const struct event *e)
{
	on_thought(r, e, true, true);
}

static void
on_arguments(struct flow_reader *r, const struct event *e)
{
	responses_flow_arguments(r, find(r, e, RESPONSES_FLOW_CALL), text_at(r, e, DELTA));
}

static void
on_input(struct flow_reader *r, const struct event *e)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_CALL);

	item->custom = true;
	responses_flow_arguments(r, item, text_at(r, e, DELTA));
}

static void
on_arguments_done(struct flow_reader *r, const struct event *e)
{
	struct responses_flow_item *item = find(r, e, RESPONSES_FLOW_CALL);

	if (item->name.n == 0)
		item->name = arena_copy(r->arena, text_at(r, e, NAME));
	if (!item->spoken) {
		responses_flow_arguments(r, item, text_at(r, e, ARGUMENTS));
		responses_flow_arguments(r, item, text_at(r, e, INPUT));
	}
	/* without an announcement its id comes with the end of the item */
	if (item->call_id.n > 0)
		responses_flow_call(r, item);
}

static void
on_item_added(struct flow_reader *r, const struct event *e)
{
	responses_flow_begins(r, &e->v[ITEM], e->index);
}

static void
on_item_done(struct flow_reader *r, const struct event *e)
{
	responses_flow_ends(r, &e->v[ITEM], e->index);
}

static void
on_annotation(struct flow_reader *r, const struct event *e)
{
	responses_flow_cite(r, &e->v[ANNOTATION]);
}

/* {"url","title","start_index","end_index"} of an annotation; chat's has them one level deeper. */
void
responses_flow_cite(struct flow_reader *r, const struct scan_value *annotation)
{
	static const char *const names[] = {"url", "title", "start_index", "end_index"};
	struct scan_value inner = responses_member(annotation, "url_citation");
	struct buf *out = arena_buf(r->arena, annotation->raw.n + 128);
	struct emit e;

	if (inner.type != SCAN_OBJECT)
		inner = *annotation;
	emit_init(&e, out);
	emit_object(&e, NULL);
	for (size_t i = 0; i < NELEM(names); i++) {
		struct scan_value v = responses_member(&inner, names[i]);

		if (i == 0 && v.type != SCAN_STRING)
			return;
		if (v.type != SCAN_ABSENT)
			emit_raw(&e, names[i], v.raw);
	}
	emit_end(&e);
	responses_flow_give(r, &(struct flow){.kind = FLOW_CITATION, .text = buf_text(out)});
}

static enum flow_finish
finish_of(const struct flow_reader *r, const struct scan_value v[RESPONSE__MAX])
{
	if (v[STATUS].type == SCAN_STRING && scan_is(v[STATUS].raw, "incomplete")) {
		if (v[REASON].type == SCAN_STRING && scan_is(v[REASON].raw, "content_filter"))
			return FLOW_FILTERED;
		return FLOW_LENGTH;
	}
	return r->ncalls > 0 ? FLOW_CALLS : FLOW_STOP;
}

static void
finish(struct flow_reader *r, enum flow_finish how)
{
	if (r->finished)
		return;
	start(r, (struct span){"", 0}, (struct span){"", 0});
	for (size_t n = r->nitems < RESPONSES_FLOW_OPEN ? 0 : r->nitems - RESPONSES_FLOW_OPEN;
	     n < r->nitems; n++) {
		struct responses_flow_item *item = r->items[n % RESPONSES_FLOW_OPEN];

		responses_flow_call(r, item);
		responses_flow_call_end(r, item);
	}
	if (how == FLOW_STOP && r->ncalls > 0)
		how = FLOW_CALLS;
	r->finished = true;
	r->sink(r->arg, &(struct flow){.kind = FLOW_FINISH, .finish = how});
	if (r->usage.seen)
		r->sink(r->arg, &(struct flow){.kind = FLOW_USAGE, .usage = &r->usage});
	r->sink(r->arg, &(struct flow){.kind = FLOW_END});
}

static bool
is_call(const struct scan_value *item)
{
	struct scan_value id = responses_member(item, "call_id");

	return id.type == SCAN_STRING;
}

/* The items that did not come before: all of them, or the calls. */
static void
read_output(struct flow_reader *r, const struct scan_value v[RESPONSE__MAX])
{
	bool all = r->nspoken == 0, calls = r->ncalls == 0;
	struct scan_value item;
	struct span none;
	size_t at = 0;

	if (v[OUTPUT].type == SCAN_ARRAY && (all || calls))
		for (int64_t i = 0; scan_next(v[OUTPUT].raw, &at, &none, &item); i++)
			if (all || is_call(&item))
				responses_flow_ends(r, &item, i);
	if (r->nspoken == 0 && value_says(&v[OUTPUT_TEXT]))
		responses_flow_say(r,
		    responses_flow_add(r, RESPONSES_FLOW_MESSAGE, (struct span){"", 0}, -1),
		    FLOW_TEXT, responses_string(r->arena, &v[OUTPUT_TEXT]), 0);
}

/* Of a host that gave no items before it, the answer stands here. */
static void
on_terminal(struct flow_reader *r, const struct event *e)
{
	struct scan_value v[RESPONSE__MAX] = {0};

	on_head(r, e);
	if (scan_response(&e->v[RESPONSE], v)) {
		start(r, (struct span){"", 0}, (struct span){"", 0});
		read_output(r, v);
	}
	finish(r, finish_of(r, v));
}

static const struct type {
	const char *name;
	void (*read)(struct flow_reader *r, const struct event *e);
} types[] = {
    {"response.output_text.delta", on_text},
    {"response.function_call_arguments.delta", on_arguments},
    {"response.reasoning_summary_text.delta", on_summary},
    {"response.reasoning_text.delta", on_reasoning},
    {"response.custom_tool_call_input.delta", on_input},
    {"response.refusal.delta", on_refusal},
    {"response.output_text.done", on_text_done},
    {"response.refusal.done", on_text_done},
    {"response.reasoning_summary_text.done", on_summary_done},
    {"response.reasoning_text.done", on_reasoning_done},
    {"response.function_call_arguments.done", on_arguments_done},
    {"response.custom_tool_call_input.done", on_arguments_done},
    {"response.output_item.added", on_item_added},
    {"response.output_item.done", on_item_done},
    {"response.output_text.annotation.added", on_annotation},
    {"response.created", on_head},
    {"response.queued", on_head},
    {"response.in_progress", on_head},
    {"response.completed", on_terminal},
    {"response.incomplete", on_terminal},
    {"response.done", on_terminal},
};

static struct flow_reader *
begin(struct arena *arena, struct span channel)
{
	struct flow_reader *r = arena_alloc(arena, sizeof *r);
	struct dialect_tap tap;

	dialect_tap_init(&tap);
	r->arena = arena;
	r->channel = channel;
	r->usage = tap.usage;
	r->id = (struct span){"", 0};
	return r;
}

static void
read_event(struct flow_reader *r, const struct sse_event *event, flow_sink_fn *sink, void *arg)
{
	static struct scan_plan *plan;
	struct span data = text_trim(event->data), name = event->name;
	struct event e;

	if (r->finished || data.n == 0 ||
	    !responses_scan(&plan, event_paths, EVENT__MAX, data, e.v))
		return;
	r->sink = sink;
	r->arg = arg;
	if (e.v[TYPE].type == SCAN_STRING)
		name = (struct span){e.v[TYPE].raw.p + 1, e.v[TYPE].raw.n - 2};
	e.item_id = text_at(r, &e, ITEM_ID);
	e.index = index_at(&e, OUTPUT_INDEX, -1);
	for (size_t i = 0; i < NELEM(types); i++) {
		if (!text_is(name, types[i].name))
			continue;
		if (types[i].read != on_head && types[i].read != on_terminal)
			start(r, (struct span){"", 0}, (struct span){"", 0});
		types[i].read(r, &e);
		return;
	}
}

static void
read_body(struct flow_reader *r, struct span body, flow_sink_fn *sink, void *arg)
{
	struct scan_value object = {.type = SCAN_OBJECT, .raw = text_trim(body)};
	struct scan_value v[RESPONSE__MAX] = {0};

	r->sink = sink;
	r->arg = arg;
	if (!r->finished && scan_response(&object, v)) {
		start(r, responses_string(r->arena, &v[ID]), responses_string(r->arena, &v[MODEL]));
		responses_usage(&v[USAGE], &r->usage);
		read_output(r, v);
	}
	finish(r, finish_of(r, v));
}

static void
read_end(struct flow_reader *r, flow_sink_fn *sink, void *arg)
{
	r->sink = sink;
	r->arg = arg;
	finish(r, FLOW_STOP);
}

const struct flow_reader_kind flow_read_responses = {
    .begin = begin,
    .event = read_event,
    .body = read_body,
    .end = read_end,
};
