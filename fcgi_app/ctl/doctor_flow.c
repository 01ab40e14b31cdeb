#include "ctl/doctor_flow.h"

#include "base/emit.h"
#include "base/json.h"
#include "doctor_ask.h"

#include <stdio.h>

#define EVENTS 10
#define GAP_MS 100
#define BODY_BYTES 1200000 /* beyond the limits of mod_fcgid and nginx, 128 kB and 1 MB */
#define SLACK_MS 30000     /* beyond the silence */

/* "1,010 ms" */
#define MS_TEXT 32
static const char *
ms_text(int64_t ms, char out[MS_TEXT])
{
	if (ms >= 1000)
		snprintf(
		    out, MS_TEXT, "%lld,%03lld ms", (long long)ms / 1000, (long long)ms % 1000);
	else
		snprintf(out, MS_TEXT, "%lld ms", (long long)ms);
	return out;
}

static void
measure_arrivals(struct doctor *d, const struct doctor_answer *a)
{
	struct emit e;

	emit_init(&e, &d->measured);
	emit_object(&e, NULL);
	emit_i64(&e, "status", a->status);
	emit_array(&e, "arrivals_ms");
	for (size_t i = 0; i < a->nevents; i++)
		emit_i64(&e, NULL, a->arrived[i]);
	emit_end(&e);
	emit_i64(&e, "end_ms", a->end_ms);
	emit_z(&e, "encoding", a->encoding[0] == '\0' ? NULL : a->encoding);
	emit_z(&e, "cache_control", a->cache_control[0] == '\0' ? NULL : a->cache_control);
	emit_z(&e, "x_accel_buffering", a->accel[0] == '\0' ? NULL : a->accel);
	emit_bool(&e, "whole", a->done && a->fault == DOCTOR_FAULT_NONE);
	emit_end(&e);
}

static enum doctor_flow
run_stream(struct doctor *d, bool compressed, struct doctor_answer *a, int64_t *late_out)
{
	struct doctor_call call = {
	    .path = "/v1/doctor?do=stream&n=10&gap=100", .compressed = compressed};
	int64_t sent[EVENTS];
	struct doctor_arrivals arrivals = {
	    .sent = sent, .wanted = EVENTS, .gap_ms = GAP_MS, .came = a->arrived};

	doctor_ask(d, &call, a);
	arrivals.n = doctor_judge_sent(buf_text(&a->body), sent, EVENTS);
	if (arrivals.n > a->nevents || !a->done || a->status != 200)
		arrivals.n = 0;
	measure_arrivals(d, a);
	doctor_call_release(a);
	return doctor_judge_flow(&arrivals, late_out);
}

void
doctor_flow_stream(struct doctor *d)
{
	char outcome[DOCTOR_OUTCOME], ms[MS_TEXT];
	struct doctor_answer a;
	int64_t late;
	enum doctor_flow flow = run_stream(d, false, &a, &late);

	d->collected = flow != DOCTOR_STREAMS;
	switch (flow) {
	case DOCTOR_STREAMS:
		doctor_ok(d, "%d events, %d ms apart, came one by one", EVENTS, GAP_MS);
		break;
	case DOCTOR_AT_ONCE:
		doctor_problem(d, DOCTOR_COLLECTED,
		    "no stream: all %d events came at once after %s", EVENTS,
		    ms_text(a.arrived[0], ms));
		break;
	case DOCTOR_LUMPS:
		doctor_problem(d, DOCTOR_COLLECTED,
		    "the stream comes in lumps: an event lay about for %s", ms_text(late, ms));
		break;
	case DOCTOR_CUT:
		doctor_outcome(&a, outcome);
		doctor_problem(d, DOCTOR_COLLECTED,
		    "the stream was cut: %zu of %d events after %s, %s", a.nevents, EVENTS,
		    ms_text(a.end_ms, ms), outcome);
		break;
	}
}

void
doctor_flow_compressed(struct doctor *d)
{
	struct doctor_answer a;
	int64_t late;
	enum doctor_flow flow;

	if (d->collected) {
		doctor_note(d, DOCTOR_NO_TROUBLE, "not looked at: the stream does not stream");
		return;
	}
	flow = run_stream(d, true, &a, &late);
	if (flow == DOCTOR_STREAMS && a.encoding[0] == '\0')
		doctor_ok(d, "a stream is not compressed, also when a client would take that");
	else if (flow == DOCTOR_STREAMS)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "a stream is compressed (%s) and streams all the same", a.encoding);
	else
		doctor_problem(d, DOCTOR_COMPRESSED,
		    "a stream is collected when the client takes compressed answers (Content-Encoding: %s)",
		    a.encoding[0] == '\0' ? "none" : a.encoding);
}

/* As long as what web servers refuse, unless the gateway itself takes less. */
static struct span
long_body(struct doctor *d)
{
	int64_t most = d->a.conf == NULL ? BODY_BYTES : d->a.conf->server.max_body_bytes;
	size_t n = most < BODY_BYTES ? (size_t)most : BODY_BYTES;
	char *bytes = arena_alloc(d->arena, n);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)('a' + i % 23);
	return (struct span){bytes, n};
}

/* Did the gateway get these bytes? */
static bool
is_swallowed(struct doctor *d, const struct doctor_answer *a, struct span body)
{
	const struct json *doc;
	struct span sum;
	struct why why;
	int64_t bytes;
	char want[17];

	snprintf(want, sizeof want, "%016llx",
	    (unsigned long long)doctor_ask_sum(DOCTOR_SUM_SEED, body));
	return a->status == 200 && json_parse(d->arena, buf_text(&a->body), &doc, &why) == ERR_OK &&
	       json_i64(doc, "bytes", &bytes) && bytes == (int64_t)body.n &&
	       json_text(doc, "sum", &sum) && text_is(sum, want);
}

/* The limit that this set-up is known for. */
static const char *
body_limit(enum doctor_setup setup, int status)
{
	if (setup == DOCTOR_FCGID || setup == DOCTOR_FCGID_HTACCESS)
		return ": FcgidMaxRequestLen is 128 kB unless set";
	if (setup == DOCTOR_NGINX && status == 413)
		return ": client_max_body_size is 1 MB unless set";
	if (status == 413)
		return ": above a limit of the web server";
	return status == 411 ? ": it wants a Content-Length" : "";
}

static void
try_body(struct doctor *d, bool chunked)
{
	struct doctor_call call = {
	    .path = "/v1/doctor?do=swallow", .chunked = chunked, .body = long_body(d)};
	char outcome[DOCTOR_OUTCOME];
	const char *how = chunked ? "without a length (chunked)" : "with their length";
	struct doctor_answer a;

	doctor_ask(d, &call, &a);
	doctor_outcome(&a, outcome);
	if (is_swallowed(d, &a, call.body))
		doctor_ok(d, "%zu bytes arrived whole, sent %s", call.body.n, how);
	else if (a.status == 413 && a.ours)
		doctor_problem(d, DOCTOR_CONFIG,
		    "%zu bytes are refused by the gateway: its server.max_body is smaller",
		    call.body.n);
	else
		doctor_problem(d, chunked ? DOCTOR_CHUNKED : DOCTOR_BODY,
		    "%zu bytes, sent %s, did not arrive: %s%s", call.body.n, how, outcome,
		    body_limit(d->setup, a.status));
	doctor_call_release(&a);
}

void
doctor_flow_body(struct doctor *d)
{
	try_body(d, false);
}

void
doctor_flow_chunked(struct doctor *d)
{
	if (d->peer.http2)
		doctor_note(d, DOCTOR_NO_TROUBLE, "not looked at: HTTP/2 has no chunked bodies");
	else
		try_body(d, true);
}

static void
try_silence(struct doctor *d, const char *query, enum doctor_trouble trouble, const char *where)
{
	struct doctor_call call = {.limit_ms = d->silence_ms + SLACK_MS};
	char path[128], outcome[DOCTOR_OUTCOME], ms[MS_TEXT];
	struct doctor_answer a;

	snprintf(
	    path, sizeof path, "/v1/doctor?do=stream&%s=%lld", query, (long long)d->silence_ms);
	call.path = path;
	doctor_ask(d, &call, &a);
	doctor_outcome(&a, outcome);
	measure_arrivals(d, &a);
	doctor_call_release(&a);
	if (a.status == 200 && a.done && a.fault == DOCTOR_FAULT_NONE)
		doctor_ok(
		    d, "a silence of %lld s %s passes", (long long)d->silence_ms / 1000, where);
	else
		doctor_problem(d, trouble, "silence %s is cut, noticed after %s: %s", where,
		    ms_text(a.end_ms, ms),
		    a.status == 200 && a.fault == DOCTOR_FAULT_NONE
		        ? "the web server ended the answer as if it were whole"
		        : outcome);
}

void
doctor_flow_first(struct doctor *d)
{
	try_silence(d, "n=1&first", DOCTOR_SILENT_FIRST, "before the first byte");
}

void
doctor_flow_between(struct doctor *d)
{
	try_silence(d, "n=2&gap", DOCTOR_SILENT_BETWEEN, "between two events");
}
