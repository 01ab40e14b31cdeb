/*
 * fuzz_messages_flow - a stream, cut into events, through the reader of Messages answers into their
 * own writer: order and numbers of the steps hold, what is written is a whole stream of that API,
 * and reading it again gives as many calls.
 */
#include "dialect/flow.h"
#include "dialect/gather.h"

#include <stdlib.h>

#define LIMIT (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct watch {
	struct flow_writer *writer;
	struct gather *gather;
	struct buf out;
	size_t calls, arguments;
	bool started, finished, ended;
};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
look(void *arg, const struct flow *step)
{
	struct watch *w = arg;

	must(!w->ended && (step->kind == FLOW_START) == !w->started);
	must(!w->finished || step->kind == FLOW_USAGE || step->kind == FLOW_END);
	w->started = true;
	w->finished |= step->kind == FLOW_FINISH;
	w->ended |= step->kind == FLOW_END;
	if (step->kind == FLOW_CALL) {
		must(step->call == w->calls++ && step->id.n > 0 && step->name.n > 0);
	} else if (step->kind == FLOW_ARGUMENTS || step->kind == FLOW_CALL_END) {
		must(step->call < w->calls);
	}
	flow_write_messages.step(w->writer, step, &w->out);
	gather_step(w->gather, step);
}

static void
run(struct arena *arena, struct span stream, bool plain, struct watch *w)
{
	struct flow_job job = {.arena = arena, .model = SPAN("m"), .id = SPAN("r")};
	struct flow_reader *r = flow_read_messages.begin(arena, SPAN("an"));
	struct sse_event e;
	struct sse s;

	*w = (struct watch){
	    .writer = flow_write_messages.begin(&job), .gather = gather_begin(arena)};
	buf_init(&w->out, SIZE_MAX / 4);
	sse_init(&s, LIMIT);
	if (plain) {
		flow_read_messages.body(r, stream, look, w);
	} else if (sse_feed(&s, stream, NULL) == ERR_OK) {
		while (sse_last(&s, &e))
			flow_read_messages.event(r, &e, look, w);
	}
	flow_read_messages.end(r, look, w);
	sse_release(&s);
	must(w->started && w->finished && w->ended);
}

/* Every event is JSON, and the dialect takes the stream for whole. */
static void
check_stream(struct span stream)
{
	struct dialect_tap tap;
	struct sse_event e;
	struct sse s;

	dialect_tap_init(&tap);
	sse_init(&s, SIZE_MAX / 4);
	must(sse_feed(&s, stream, NULL) == ERR_OK);
	while (sse_next(&s, &e)) {
		must(scan_pick(e.data, NULL, NULL, 0, NULL) == ERR_OK);
		must(dialect_messages.event(&e, &tap) != PART_ERROR);
	}
	must(sse_rest(&s).n == 0 && tap.ended && tap.finished);
	sse_release(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct span text = {(const char *)bytes, n};
	struct arena *arena;
	struct watch first, second;
	struct flow_job job;
	struct buf body;
	bool plain = n > 0 && bytes[0] == '{';

	/* a plain body comes only after the dialect took it for an answer */
	if (n > LIMIT || (plain && scan_pick(text, NULL, NULL, 0, NULL) != ERR_OK))
		return 0;
	arena = arena_new(SIZE_MAX / 4);
	run(arena, text, plain, &first);
	check_stream(buf_text(&first.out));
	run(arena, buf_text(&first.out), false, &second);
	must(first.calls == second.calls);
	job = (struct flow_job){.arena = arena, .model = SPAN("m"), .id = SPAN("r")};
	buf_init(&body, SIZE_MAX / 4);
	flow_answer_messages(&job, gather_answer(first.gather), &body);
	must(scan_pick(buf_text(&body), NULL, NULL, 0, NULL) == ERR_OK);
	buf_release(&body);
	buf_release(&first.out);
	buf_release(&second.out);
	arena_free(&arena);
	return 0;
}
