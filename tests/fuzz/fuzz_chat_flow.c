/*
 * fuzz_chat_flow - bytes of an upstream's stream, read into steps and written again: every event is
 * JSON, the steps keep their order, and a plain body gives a plain answer.
 */
#include "dialect/flow.h"
#include "dialect/gather.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct state {
	struct flow_writer *writer;
	struct buf *out;
	struct gather *gather;
	size_t calls;
	bool started, finished, ended;
	bool over[4096]; /* calls that ended */
};

static void
check_call(struct state *s, const struct flow *step)
{
	if (step->kind == FLOW_CALL) {
		if (step->call != s->calls++ || step->id.n == 0 || step->name.n == 0)
			abort();
	} else if (step->call >= s->calls || s->over[step->call]) {
		abort();
	}
	if (step->kind == FLOW_CALL_END)
		s->over[step->call] = true;
}

static void
take(void *arg, const struct flow *step)
{
	struct state *s = arg;

	if (s->ended || (step->kind == FLOW_START) == s->started)
		abort();
	if (s->finished && step->kind != FLOW_USAGE && step->kind != FLOW_END)
		abort();
	s->started = true;
	if (step->kind == FLOW_CALL || step->kind == FLOW_ARGUMENTS || step->kind == FLOW_CALL_END)
		check_call(s, step);
	if (step->kind == FLOW_FINISH)
		for (size_t i = 0; i < s->calls; i++)
			if (!s->over[i])
				abort();
	s->finished |= step->kind == FLOW_FINISH;
	s->ended |= step->kind == FLOW_END;
	flow_write_chat.step(s->writer, step, s->out);
	gather_step(s->gather, step);
}

static void
check_events(struct span bytes)
{
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, bytes.n + 1);
	if (sse_feed(&sse, bytes, NULL) != ERR_OK)
		abort();
	while (sse_next(&sse, &event))
		if (!text_is(event.data, "[DONE]") &&
		    scan_pick(event.data, NULL, NULL, 0, NULL) != ERR_OK)
			abort();
	if (sse_rest(&sse).n > 0)
		abort();
	sse_release(&sse);
}

static struct state
begin(const struct flow_job *job)
{
	return (struct state){.writer = flow_write_chat.begin(job),
	    .out = arena_buf(job->arena, (size_t)1 << 26),
	    .gather = gather_begin(job->arena)};
}

static void
end(const struct flow_job *job, struct state *s)
{
	struct buf *whole = arena_buf(job->arena, (size_t)1 << 26);

	if (!s->ended || !s->finished)
		abort();
	check_events(buf_text(s->out));
	flow_answer_chat(job, gather_answer(s->gather), whole);
	if (scan_pick(buf_text(whole), NULL, NULL, 0, NULL) != ERR_OK)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct form_name name = {
	    .sent = {"f", 1}, .original = {"custom", 6}, .custom = true};
	static const struct form_loss loss = {.names = &name, .nnames = 1};
	struct arena *arena = arena_new((size_t)1 << 28);
	struct span text = {(const char *)bytes, n};
	struct flow_job job = {.arena = arena,
	    .model = SPAN("m"),
	    .id = SPAN("r"),
	    .wants_usage = n % 2 == 0,
	    .loss = &loss};
	struct state s = begin(&job);
	struct flow_reader *r = flow_read_chat.begin(arena, SPAN("ch"));
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, n + 1);
	if (sse_feed(&sse, text, NULL) != ERR_OK)
		abort();
	while (sse_next(&sse, &event))
		flow_read_chat.event(r, &event, take, &s);
	while (sse_last(&sse, &event))
		flow_read_chat.event(r, &event, take, &s);
	flow_read_chat.end(r, take, &s);
	sse_release(&sse);
	end(&job, &s);

	s = begin(&job);
	flow_read_chat.body(flow_read_chat.begin(arena, SPAN("ch")), text, take, &s);
	end(&job, &s);
	arena_free(&arena);
	return 0;
}
