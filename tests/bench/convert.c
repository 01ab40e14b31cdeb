/*
 * convert - what an answer costs inside a worker: cutting, judging, redacting, and converting it, without any transfer.
 *
 * One line for each pair of APIs, the provider's first: CPU time for each event of a stream, of about 100 bytes (or the
 * shortest that its API allows) and of 4 kB; for a plain answer of 1 kB; the memory that a stream of 1000 short events
 * holds at its end; and one event of 6 MB, and how many times that one of 24 MB takes (4 is linear). The same API on
 * both sides passes through.
 */
#include "base/secret.h"
#include "bench/measure.h"
#include "dialect/gather.h"
#include "redact.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5
#define SHORT_EVENTS 20000
#define LONG_EVENTS 2000
#define PLAINS 3000
#define READ_BYTES ((size_t)16384)
#define HUGE_BYTES ((size_t)6 << 20)
#define ARENA_BYTES ((size_t)1 << 31)
#define EVENT_BYTES ((size_t)64 << 20)

static const char *const names[FORM_WIRE__MAX] = {"chat", "messages", "responses"};

/* An answer in one API: what comes before the content, an event of it around its text, and what comes after. */
struct shape {
	const char *first, *before, *after, *last, *plain_before, *plain_after;
};

#define DATA(name, json) "event: " name "\ndata: {\"type\":\"" name "\"," json "}\n\n"
#define RESPONSE(status, output, usage)                                                            \
	"\"response\":{\"id\":\"r\",\"object\":\"response\",\"created_at\":1,\"status\":\"" status \
	"\",\"model\":\"m\",\"output\":[" output "],\"usage\":" usage "}"
#define RS_USAGE "{\"input_tokens\":9,\"output_tokens\":9,\"total_tokens\":18}"

static const struct shape shapes[FORM_WIRE__MAX] = {
    [FORM_CHAT] =
        {
            .first = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{"
                     "\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            .before = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
            .after = "\"}}]}\n\n",
            .last =
                "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
                "\"stop\"}]}\n\ndata: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":"
                "9,\"completion_tokens\":9,\"total_tokens\":18}}\n\ndata: [DONE]\n\n",
            .plain_before = "{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":"
                            "\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                            "\"content\":\"",
            .plain_after = "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,"
                           "\"completion_tokens\":9,\"total_tokens\":18}}",
        },
    [FORM_MESSAGES] =
        {
            .first = DATA("message_start",
                "\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
                "\"m\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}")
                DATA("content_block_start",
                    "\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}"),
            .before =
                "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"
                "0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
            .after = "\"}}\n\n",
            .last = DATA("content_block_stop", "\"index\":0") DATA("message_delta",
                "\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{"
                "\"output_tokens\":9}") "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            .plain_before = "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
                            "\"m\",\"content\":[{\"type\":\"text\",\"text\":\"",
            .plain_after = "\"}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{"
                           "\"input_tokens\":9,\"output_tokens\":9}}",
        },
    [FORM_RESPONSES] =
        {
            .first = DATA("response.created", RESPONSE("in_progress", "", "null")) DATA(
                "response.output_item.added",
                "\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\",\"role\":"
                "\"assistant\",\"status\":\"in_progress\",\"content\":[]}")
                DATA("response.content_part.added",
                    "\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":"
                    "\"output_text\",\"text\":\"\",\"annotations\":[]}"),
            .before = "event: response.output_text.delta\ndata: {\"type\":"
                      "\"response.output_text.delta\",\"item_id\":\"i\",\"output_index\":0,"
                      "\"content_index\":0,\"delta\":\"",
            .after = "\"}\n\n",
            .last = DATA("response.output_item.done",
                "\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\",\"role\":"
                "\"assistant\",\"status\":\"completed\",\"content\":[]}")
                DATA("response.completed", RESPONSE("completed", "", RS_USAGE)),
            .plain_before = "{\"id\":\"r\",\"object\":\"response\",\"created_at\":1,\"status\":"
                            "\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\","
                            "\"id\":\"i\",\"role\":\"assistant\",\"status\":\"completed\","
                            "\"content\":[{\"type\":\"output_text\",\"text\":\"",
            .plain_after = "\",\"annotations\":[]}]}],\"usage\":" RS_USAGE "}",
        },
};

/* As a model writes: words, an escape in each line. */
static void
put_text(struct buf *out, size_t n)
{
	static const char words[] =
	    "the quick brown fox jumps over the lazy dog, again and again \\n";
	size_t whole = sizeof words - 1;

	for (; n >= whole; n -= whole)
		buf_add(out, words, whole);
	buf_add(out, words, n < whole - 2 ? n : whole - 2);
}

static void
put_event(struct buf *out, enum form_wire wire, size_t bytes)
{
	const struct shape *s = &shapes[wire];
	size_t around = strlen(s->before) + strlen(s->after);

	buf_z(out, s->before);
	put_text(out, bytes > around + 4 ? bytes - around : 4);
	buf_z(out, s->after);
}

static void
put_stream(struct buf *out, enum form_wire wire, size_t events, size_t bytes)
{
	buf_clear(out);
	buf_z(out, shapes[wire].first);
	for (size_t i = 0; i < events; i++)
		put_event(out, wire, bytes);
	buf_z(out, shapes[wire].last);
}

struct run {
	enum form_wire host, client;
	struct arena *arena, *scratch;
	struct redact redact;
	struct flow_job job;
	struct form form;
	struct form_loss loss;
	struct flow_reader *reader;
	struct flow_writer *writer;
	struct gather *gather;
	struct dialect_tap tap;
	struct buf *made;
	size_t given; /* bytes for the client */
};

static void
begin(struct run *r, enum form_wire host, enum form_wire client)
{
	*r = (struct run){.host = host,
	    .client = client,
	    .arena = arena_new(ARENA_BYTES),
	    .scratch = arena_new(ARENA_BYTES)};
	r->form = (struct form){.from = client, .max_output = -1, .thinking_budget = -1};
	r->redact.forms[0] = SPAN("sk-a-key-that-does-not-occur-0001");
	r->redact.forms[1] = SPAN("c2stYS1rZXktdGhhdC1kb2VzLW5vdC1vY2N1ci0wMDAx");
	r->redact.n = 2;
	r->made = arena_buf(r->arena, ARENA_BYTES);
	r->job = (struct flow_job){.arena = r->arena,
	    .model = SPAN("m"),
	    .id = SPAN("req_1"),
	    .created_s = 1700000000,
	    .wants_usage = true,
	    .form = &r->form,
	    .loss = &r->loss,
	    .channel = SPAN("c")};
	r->reader = flow_wires[host].reader->begin(r->arena, r->job.channel);
	r->writer = flow_wires[client].writer->begin(&r->job);
	r->gather = gather_begin(r->arena);
	dialect_tap_init(&r->tap);
}

static void
end(struct run *r)
{
	arena_free(&r->arena);
	arena_free(&r->scratch);
}

/* A flow_sink_fn. */
static void
take(void *arg, const struct flow *step)
{
	struct run *r = arg;

	flow_wires[r->client].writer->step(r->writer, step, r->made);
}

static void
event(struct run *r, const struct sse_event *event)
{
	struct sse_event clean = *event;

	(void)flow_wires[r->host].dialect->event(event, &r->tap);
	buf_clear(r->made);
	if (r->host == r->client) {
		buf_span(r->made, redact_apply(&r->redact, r->scratch, event->raw));
	} else {
		clean.data = redact_apply(&r->redact, r->scratch, event->data);
		flow_wires[r->host].reader->event(r->reader, &clean, take, r);
		(void)redact_apply(&r->redact, r->scratch, buf_text(r->made));
	}
	r->given += r->made->n;
}

/* A whole stream through the worker's code; its CPU time. */
static double
stream(struct run *r, struct span bytes)
{
	double begun = measure_us(CLOCK_PROCESS_CPUTIME_ID);
	struct sse_event one;
	struct sse sse;

	sse_init(&sse, EVENT_BYTES);
	for (size_t at = 0; at < bytes.n; at += READ_BYTES) {
		size_t n = bytes.n - at < READ_BYTES ? bytes.n - at : READ_BYTES;

		if (sse_feed(&sse, (struct span){bytes.p + at, n}, NULL) != ERR_OK)
			die("an event is too large");
		while (sse_next(&sse, &one))
			event(r, &one);
	}
	if (r->host != r->client)
		flow_wires[r->host].reader->end(r->reader, take, r);
	sse_release(&sse);
	if (!r->tap.ended || r->tap.invalid > 0 || r->given < bytes.n / 4)
		die("%s to %s: no whole answer", names[r->host], names[r->client]);
	return measure_us(CLOCK_PROCESS_CPUTIME_ID) - begun;
}

/* The least of several rounds: what else runs only adds. */
static double
least(enum form_wire host, enum form_wire client, struct span bytes)
{
	double best = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct run r;
		double us;

		begin(&r, host, client);
		us = stream(&r, bytes);
		end(&r);
		best = i == 0 || us < best ? us : best;
	}
	return best;
}

static double
plain(enum form_wire host, enum form_wire client, struct span body)
{
	double begun = measure_us(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; i < PLAINS; i++) {
		struct run r;

		begin(&r, host, client);
		if (!flow_wires[host].dialect->answer(body, &r.tap))
			die("%s: not an answer", names[host]);
		(void)redact_apply(&r.redact, r.scratch, body);
		if (host != client) {
			flow_wires[host].reader->body(r.reader, body, gather_step, r.gather);
			flow_wires[client].answer(&r.job, gather_answer(r.gather), r.made);
			(void)redact_apply(&r.redact, r.scratch, buf_text(r.made));
			if (r.made->n < 1000)
				die("%s to %s: no whole answer", names[host], names[client]);
		}
		end(&r);
	}
	return (measure_us(CLOCK_PROCESS_CPUTIME_ID) - begun) / PLAINS;
}

/* What a stream of this many short events holds when it ends. */
static size_t
held(enum form_wire host, enum form_wire client, struct span bytes)
{
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, after;
	struct run r;

	begin(&r, host, client);
	(void)stream(&r, bytes);
	after = mallinfo2().uordblks + mallinfo2().hblkhd;
	end(&r);
	return after - before;
}

static void
measure(enum form_wire host, enum form_wire client, struct buf *text)
{
	double quick, slow, once, large, small;
	size_t memory;

	put_stream(text, host, SHORT_EVENTS, 100);
	quick = least(host, client, buf_text(text)) / SHORT_EVENTS;
	put_stream(text, host, LONG_EVENTS, 4096);
	slow = least(host, client, buf_text(text)) / LONG_EVENTS;
	put_stream(text, host, 1000, 100);
	memory = held(host, client, buf_text(text));
	put_stream(text, host, 1, HUGE_BYTES);
	small = least(host, client, buf_text(text));
	put_stream(text, host, 1, 4 * HUGE_BYTES);
	large = least(host, client, buf_text(text));
	buf_clear(text);
	buf_z(text, shapes[host].plain_before);
	put_text(text, 1024);
	buf_z(text, shapes[host].plain_after);
	once = plain(host, client, buf_text(text));
	printf("%-9s %-9s %9.2f %9.2f %9.1f %10.0f %9.1f %6.1fx\n", names[host], names[client],
	    quick, slow, once, (double)memory / 1024, small / 1e3, large / small);
	fflush(stdout);
}

int
main(void)
{
	struct buf text;

	/* memory once touched is used again: fresh pages would be what large events are measured by */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	buf_init(&text, ARENA_BYTES);
	printf("== an answer inside a worker, CPU us\n%-9s %-9s %9s %9s %9s %10s %9s %7s\n",
	    "provider", "client", "100 B", "4 kB", "plain", "1000: kB", "6 MB, ms", "24 MB");
	for (size_t host = 0; host < FORM_WIRE__MAX; host++)
		for (size_t client = 0; client < FORM_WIRE__MAX; client++)
			measure((enum form_wire)host, (enum form_wire)client, &text);
	buf_release(&text);
	return 0;
}
