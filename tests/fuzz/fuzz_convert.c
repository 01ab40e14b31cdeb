/*
 * fuzz_convert - bytes taken as a request, a stream and a plain answer of each API, and converted to each other one:
 * what comes out is accepted by that API's own readers.
 */
#include "dialect/gather.h"
#include "dialect/read.h"

#include <stdlib.h>

#define OUT_BYTES ((size_t)1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const providers[FORM_WIRE__MAX] = {"deepseek", "anthropic", "openai"};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
write_request(struct arena *arena, const struct form *form, enum form_wire wire)
{
	struct form_target target = {.wire = wire,
	    .model = SPAN("m"),
	    .channel = SPAN("c"),
	    .provider = providers[wire],
	    .max_tokens_name = SPAN(""),
	    .stream = form->stream,
	    .max_output = -1};
	struct buf *out = arena_buf(arena, OUT_BYTES);
	struct form_loss loss = {.names = NULL};
	struct dialect_request request;
	struct why why = {""};
	struct form again;

	if (flow_wires[wire].write(arena, form, &target, out, &loss, &why) != ERR_OK) {
		must(why.text[0] != '\0');
		return;
	}
	must(dialect_read(flow_wires[wire].dialect, buf_text(out), &request, &why) == ERR_OK);
	must(flow_wires[wire].read(arena, buf_text(out), &again, &why) == ERR_OK);
}

static void
requests(struct span body, enum form_wire wire)
{
	struct arena *arena = arena_new((size_t)1 << 30);
	struct dialect_request request;
	struct why why = {""};
	struct form form;

	if (dialect_read(flow_wires[wire].dialect, body, &request, NULL) == ERR_OK &&
	    flow_wires[wire].read(arena, body, &form, &why) == ERR_OK &&
	    form_check(&form, &why) == ERR_OK)
		for (int to = 0; to < FORM_WIRE__MAX; to++)
			if ((enum form_wire)to != wire)
				write_request(arena, &form, (enum form_wire)to);
	arena_free(&arena);
}

/* An answer on its way to the client. */
struct way {
	enum form_wire client;
	struct flow_job job;
	struct flow_writer *writer;
	struct gather *gather;
	struct buf *out;
};

static void
take(void *arg, const struct flow *step)
{
	struct way *w = arg;

	flow_wires[w->client].writer->step(w->writer, step, w->out);
	gather_step(w->gather, step);
}

static void
check_stream(enum form_wire client, struct span bytes)
{
	const struct dialect *dialect = flow_wires[client].dialect;
	struct dialect_tap tap;
	struct sse_event event;
	struct sse sse;

	dialect_tap_init(&tap);
	sse_init(&sse, bytes.n + 1);
	must(sse_feed(&sse, bytes, NULL) == ERR_OK);
	while (sse_next(&sse, &event)) {
		must(text_is(event.data, "[DONE]") || event.comment ||
		     scan_pick(event.data, NULL, NULL, 0, NULL) == ERR_OK);
		must(dialect->event(&event, &tap) != PART_ERROR);
	}
	must(sse_rest(&sse).n == 0 && tap.ended && tap.invalid == 0 && text_utf8(bytes));
	sse_release(&sse);
}

static struct way
begin(struct arena *arena, enum form_wire client)
{
	static const struct form form = {.max_output = -1, .thinking_budget = -1};
	static const struct form_loss loss = {.names = NULL};
	struct way w = {.client = client,
	    .job = {.arena = arena,
	        .model = SPAN("m"),
	        .id = SPAN("req_1"),
	        .wants_usage = true,
	        .wants_seals = true,
	        .form = &form,
	        .loss = &loss,
	        .channel = SPAN("c")},
	    .gather = gather_begin(arena),
	    .out = arena_buf(arena, OUT_BYTES)};

	w.writer = flow_wires[client].writer->begin(&w.job);
	return w;
}

static void
check_whole(struct way *w)
{
	struct buf *whole = arena_buf(w->job.arena, OUT_BYTES);
	struct dialect_tap tap;

	check_stream(w->client, buf_text(w->out));
	flow_wires[w->client].answer(&w->job, gather_answer(w->gather), whole);
	dialect_tap_init(&tap);
	must(text_utf8(buf_text(whole)));
	must(flow_wires[w->client].dialect->answer(buf_text(whole), &tap));
}

/* As the pipeline does it: what is an error ends the answer, what comes after the end is nothing. */
static bool
feed(struct way *w, enum form_wire host, struct flow_reader *r, struct sse *sse)
{
	const struct flow_wire *up = &flow_wires[host];
	struct dialect_tap tap;
	struct sse_event event;

	dialect_tap_init(&tap);
	while (!tap.ended && (sse_next(sse, &event) || sse_last(sse, &event))) {
		if (up->dialect->event(&event, &tap) == PART_ERROR || tap.invalid > 0)
			return false;
		up->reader->event(r, &event, take, w);
	}
	return tap.ended || tap.finished;
}

static void
streams(struct span bytes, enum form_wire host, enum form_wire client)
{
	struct arena *arena = arena_new((size_t)1 << 30);
	struct way w = begin(arena, client);
	struct flow_reader *r = flow_wires[host].reader->begin(arena, w.job.channel);
	struct sse sse;

	sse_init(&sse, bytes.n + 1);
	must(sse_feed(&sse, bytes, NULL) == ERR_OK);
	if (feed(&w, host, r, &sse)) {
		flow_wires[host].reader->end(r, take, &w);
		check_whole(&w);
	}
	sse_release(&sse);
	arena_free(&arena);
}

static void
bodies(struct span bytes, enum form_wire host, enum form_wire client)
{
	struct arena *arena = arena_new((size_t)1 << 30);
	struct way w = begin(arena, client);
	struct flow_reader *r = flow_wires[host].reader->begin(arena, w.job.channel);
	struct dialect_tap tap;

	dialect_tap_init(&tap);
	if (flow_wires[host].dialect->answer(bytes, &tap)) {
		flow_wires[host].reader->body(r, bytes, take, &w);
		flow_wires[host].reader->end(r, take, &w);
		check_whole(&w);
	}
	arena_free(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct span text = {(const char *)bytes, n};

	for (int wire = 0; wire < FORM_CLIENT_WIRES; wire++)
		requests(text, (enum form_wire)wire);
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++)
		for (int client = 0; client < FORM_WIRE__MAX; client++) {
			streams(text, (enum form_wire)wire, (enum form_wire)client);
			bodies(text, (enum form_wire)wire, (enum form_wire)client);
		}
	return 0;
}
