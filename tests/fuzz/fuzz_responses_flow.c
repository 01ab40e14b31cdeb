/*
 * fuzz_responses_flow - a stream, cut into events, through the reader of Responses answers into the
 * writers of all wires: order and numbers of the steps hold, all data written is JSON, and reading our
 * own stream again gives as many calls and as much text. Also as a plain body.
 */
#include "dialect/flow.h"
#include "dialect/gather.h"

#include <stdlib.h>

#define LIMIT ((size_t)1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct watch {
	struct gather *gather;
	struct flow_writer *writers[FORM_WIRE__MAX];
	struct buf *out[FORM_WIRE__MAX];
	size_t calls, ends, text;
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
	w->ended = step->kind == FLOW_END;
	if (step->kind == FLOW_CALL) {
		must(step->call == w->calls++);
		must(step->id.n > 0 && step->name.n > 0);
	}
	if (step->kind == FLOW_ARGUMENTS || step->kind == FLOW_CALL_END)
		must(step->call < w->calls);
	w->ends += step->kind == FLOW_CALL_END;
	if (step->kind == FLOW_FINISH)
		must(w->ends == w->calls);
	if (step->kind == FLOW_TEXT)
		w->text += step->text.n;
	if (step->kind == FLOW_CITATION)
		must(scan_pick(step->text, NULL, NULL, 0, NULL) == ERR_OK);
	gather_step(w->gather, step);
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++)
		if (w->writers[wire] != NULL)
			flow_wires[wire].writer->step(w->writers[wire], step, w->out[wire]);
}

static void
begin(struct watch *w, const struct flow_job *job, bool write)
{
	*w = (struct watch){.gather = gather_begin(job->arena)};
	for (int wire = 0; write && wire < FORM_WIRE__MAX; wire++) {
		w->writers[wire] = flow_wires[wire].writer->begin(job);
		w->out[wire] = arena_buf(job->arena, LIMIT);
	}
}

/* Feed a stream. True: it went without an error. */
static bool
feed(struct arena *arena, struct span bytes, struct watch *w, bool own)
{
	struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));
	struct dialect_tap tap;
	struct sse_event event;
	struct sse sse;
	bool good = true;

	dialect_tap_init(&tap);
	sse_init(&sse, LIMIT);
	must(sse_feed(&sse, bytes, NULL) == ERR_OK);
	while (good && (sse_next(&sse, &event) || sse_last(&sse, &event))) {
		good = dialect_responses.event(&event, &tap) != PART_ERROR;
		if (good)
			flow_read_responses.event(r, &event, look, w);
	}
	sse_release(&sse);
	must(!own || (good && tap.ended && w->ended));
	if (good)
		flow_read_responses.end(r, look, w);
	must(!good || w->ended);
	return good;
}

/* Each event's data is JSON, or the end marker. */
static void
check_stream(struct span bytes)
{
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, LIMIT);
	must(sse_feed(&sse, bytes, NULL) == ERR_OK);
	while (sse_next(&sse, &event))
		must(!event.has_data || text_is(event.data, "[DONE]") ||
		     scan_pick(event.data, NULL, NULL, 0, NULL) == ERR_OK);
	must(sse_rest(&sse).n == 0);
	sse_release(&sse);
}

static void
check_answers(const struct flow_job *job, const struct watch *w)
{
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++) {
		struct buf *body = arena_buf(job->arena, LIMIT);
		struct dialect_tap tap;

		dialect_tap_init(&tap);
		flow_wires[wire].answer(job, gather_answer(w->gather), body);
		must(scan_pick(buf_text(body), NULL, NULL, 0, NULL) == ERR_OK);
		must(flow_wires[wire].dialect->answer(buf_text(body), &tap));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct arena *arena = arena_new((size_t)1 << 28);
	struct span text = {(const char *)bytes, n};
	struct flow_job job = {.arena = arena,
	    .model = SPAN("m"),
	    .id = SPAN("req"),
	    .wants_seals = n % 2 == 0,
	    .channel = SPAN("ch")};
	struct watch w, again;
	struct dialect_tap tap;

	begin(&w, &job, true);
	if (feed(arena, text, &w, false)) {
		for (int wire = 0; wire < FORM_WIRE__MAX; wire++)
			check_stream(buf_text(w.out[wire]));
		check_answers(&job, &w);
		begin(&again, &job, false);
		feed(arena, buf_text(w.out[FORM_RESPONSES]), &again, true);
		must(again.calls == w.calls && again.text == w.text);
	}
	dialect_tap_init(&tap);
	if (dialect_responses.answer(text, &tap)) {
		struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));

		begin(&w, &job, false);
		flow_read_responses.body(r, text, look, &w);
		must(w.ended);
		check_answers(&job, &w);
	}
	arena_free(&arena);
	return 0;
}
