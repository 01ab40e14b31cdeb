#include "dialect/messages.h"
#include "dialect/messages_flow.h"
#include "dialect/value.h"

enum {
	TYPE,
	INDEX,
	BLOCK,
	DELTA_TYPE,
	TEXT,
	THINKING,
	JSON,
	SIGNATURE,
	CITATION,
	STOP,
	STOP_TEXT,
	USAGE,
	START_ID,
	START_MODEL,
	START_CONTENT,
	START_USAGE,
	EVENT__MAX
};

static const char *const event_paths[EVENT__MAX] = {
    [TYPE] = "type",
    [INDEX] = "index",
    [BLOCK] = "content_block",
    [DELTA_TYPE] = "delta.type",
    [TEXT] = "delta.text",
    [THINKING] = "delta.thinking",
    [JSON] = "delta.partial_json",
    [SIGNATURE] = "delta.signature",
    [CITATION] = "delta.citation",
    [STOP] = "delta.stop_reason",
    [STOP_TEXT] = "delta.stop_sequence",
    [USAGE] = "usage",
    [START_ID] = "message.id",
    [START_MODEL] = "message.model",
    [START_CONTENT] = "message.content",
    [START_USAGE] = "message.usage",
};

static void
free_scratch(void *arena)
{
	struct arena *a = arena;

	arena_free(&a);
}

static struct flow_reader *
begin(struct arena *arena, struct span channel)
{
	struct flow_reader *r = arena_alloc(arena, sizeof *r);
	struct dialect_tap tap;

	dialect_tap_init(&tap);
	r->arena = arena;
	r->scratch = arena_new(SIZE_MAX / 4);
	arena_defer(arena, free_scratch, r->scratch);
	r->channel = arena_copy(arena, channel);
	r->usage = tap.usage;
	r->id = arena_buf(arena, MESSAGES_FLOW_MAX);
	r->signature = arena_buf(arena, MESSAGES_FLOW_MAX);
	r->citations = arena_buf(arena, MESSAGES_FLOW_MAX);
	return r;
}

static void
start_late(struct flow_reader *r)
{
	const struct scan_value none = {.type = SCAN_ABSENT};

	messages_flow_start(r, &none, &none);
}

/* A second start is a host that began again: its blocks are others. */
static void
on_start(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	if (r->started)
		messages_flow_end_all(r);
	messages_usage(&v[START_USAGE], &r->usage);
	messages_flow_start(r, &v[START_ID], &v[START_MODEL]);
	messages_flow_whole(r, &v[START_CONTENT]);
}

static void
on_block(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	struct messages_block *before, *b;

	start_late(r);
	before = r->cap > 0 ? &r->blocks[r->current] : NULL;
	if (before != NULL && before->kind != MESSAGES_CALL)
		messages_flow_end(r, before, false);
	b = messages_flow_block(r, &v[INDEX]);
	messages_flow_end(r, b, false);
	messages_flow_begin(r, b, &v[BLOCK]);
}

static void
on_delta(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	struct messages_block *b = messages_flow_block(r, &v[INDEX]);

	start_late(r);
	if (b->kind == MESSAGES_OTHER)
		return;
	messages_flow_words(r, messages_flow_text(r, &v[TEXT]));
	messages_flow_thought(r, messages_flow_text(r, &v[THINKING]));
	messages_flow_signature(r, &v[SIGNATURE]);
	if (b->kind == MESSAGES_NONE && v[TEXT].type == SCAN_STRING)
		b->kind = MESSAGES_PLAIN;
	if (b->kind == MESSAGES_NONE && (v[THINKING].type == SCAN_STRING || r->signature->n > 0))
		b->kind = MESSAGES_THOUGHT;
	if (b->kind == MESSAGES_CALL && !b->given)
		messages_flow_arguments(r, b, messages_flow_text(r, &v[JSON]));
	if (v[CITATION].type == SCAN_OBJECT) {
		buf_char(r->citations, r->citations->n == 0 ? '[' : ',');
		buf_span(r->citations, v[CITATION].raw);
	}
}

static void
on_block_stop(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	messages_flow_end(r, messages_flow_block(r, &v[INDEX]), true);
}

static const struct {
	const char *name;
	enum flow_finish finish;
} reasons[] = {
    {"end_turn", FLOW_STOP},
    {"tool_use", FLOW_CALLS},
    {"max_tokens", FLOW_LENGTH},
    {"model_context_window_exceeded", FLOW_LENGTH},
    {"stop_sequence", FLOW_STOP_TEXT},
    {"pause_turn", FLOW_PAUSED},
    {"refusal", FLOW_FILTERED},
    {"sensitive", FLOW_FILTERED},
};

static void
finish(struct flow_reader *r, const struct scan_value *reason, const struct scan_value *stop)
{
	struct flow step = {.kind = FLOW_FINISH, .stop = messages_flow_text(r, stop)};

	if (r->finished)
		return;
	start_late(r);
	messages_flow_end_all(r);
	r->finished = true;
	step.finish = r->ncalls > 0 ? FLOW_CALLS : FLOW_STOP;
	for (size_t i = 0; reason->type == SCAN_STRING && i < NELEM(reasons); i++)
		if (scan_is(reason->raw, reasons[i].name))
			step.finish = reasons[i].finish;
	messages_flow_give(r, step);
}

static void
give_usage(struct flow_reader *r)
{
	if (r->finished && r->usage.seen)
		messages_flow_give(r, (struct flow){.kind = FLOW_USAGE, .usage = &r->usage});
}

static void
give_end(struct flow_reader *r)
{
	const struct scan_value none = {.type = SCAN_ABSENT};

	if (r->ended)
		return;
	if (!r->finished) {
		finish(r, &none, &none);
		give_usage(r);
	}
	r->ended = true;
	messages_flow_give(r, (struct flow){.kind = FLOW_END});
}

static void
on_message_delta(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	messages_usage(&v[USAGE], &r->usage);
	if (v[STOP].type == SCAN_STRING && v[STOP].raw.n > 2)
		finish(r, &v[STOP], &v[STOP_TEXT]);
	give_usage(r);
}

static void
on_stop(struct flow_reader *r, const struct scan_value v[EVENT__MAX])
{
	(void)v;
	give_end(r);
}

static const struct {
	const char *type;
	void (*read)(struct flow_reader *r, const struct scan_value v[EVENT__MAX]);
	bool late; /* has a meaning after the finish, too */
} kinds[] = {
    {"content_block_delta", on_delta, false},
    {"content_block_start", on_block, false},
    {"content_block_stop", on_block_stop, false},
    {"message_start", on_start, false},
    {"message_delta", on_message_delta, true},
    {"message_stop", on_stop, true},
};

static bool
run_plan(struct span text, struct scan_value v[EVENT__MAX])
{
	static struct scan_plan *plan;

	if (plan == NULL) {
		plan = scan_plan_new(event_paths, EVENT__MAX);
		scan_plan_lax(plan);
	}
	return scan_run(plan, text, v, NULL) == ERR_OK;
}

static void
event(struct flow_reader *r, const struct sse_event *e, flow_sink_fn *sink, void *arg)
{
	struct scan_value v[EVENT__MAX];
	struct span data = text_trim(e->data);

	if (r->ended || data.n == 0 || !run_plan(data, v))
		return;
	r->sink = sink;
	r->arg = arg;
	for (size_t i = 0; i < NELEM(kinds); i++) {
		bool is = v[TYPE].type == SCAN_STRING ? scan_is(v[TYPE].raw, kinds[i].type)
		                                      : text_is(e->name, kinds[i].type);

		if (!is)
			continue;
		if (!r->finished || kinds[i].late)
			kinds[i].read(r, v);
		break;
	}
	arena_reset(r->scratch);
}

static void
body(struct flow_reader *r, struct span text, flow_sink_fn *sink, void *arg)
{
	struct scan_value whole = {SCAN_OBJECT, text_trim(text)};
	struct scan_value id = value_member(&whole, "id"), model = value_member(&whole, "model");
	struct scan_value content = value_member(&whole, "content");
	struct scan_value reason = value_member(&whole, "stop_reason");
	struct scan_value stop = value_member(&whole, "stop_sequence");
	struct scan_value usage = value_member(&whole, "usage");

	r->sink = sink;
	r->arg = arg;
	messages_usage(&usage, &r->usage);
	messages_flow_start(r, &id, &model);
	messages_flow_whole(r, &content);
	finish(r, &reason, &stop);
	give_usage(r);
	give_end(r);
	arena_reset(r->scratch);
}

static void
end(struct flow_reader *r, flow_sink_fn *sink, void *arg)
{
	r->sink = sink;
	r->arg = arg;
	give_end(r);
	arena_reset(r->scratch);
}

const struct flow_reader_kind flow_read_messages = {
    .begin = begin, .event = event, .body = body, .end = end};
