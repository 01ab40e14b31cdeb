#include "forward.h"

#include "forward_transfer.h"

#include <string.h>

#define HELD_MAX (1024 * 1024) /* preamble beyond this commits: SPEC.md section 5 */
#define END_GRACE_MS \
	5 /* for the end of the chunked body behind the terminal event: keeps the connection */
#define HEARTBEAT ": hb\n\n"
#define PROBE_MS 250 /* silence before a half-closed client is written to */
#define PROBES_MAX 4

/* A block of headers begins: what an earlier one had told (103, a proxy's own answer) counts no more. */
static void
begin_block(struct transfer *t, struct span line)
{
	struct span word;
	int64_t status;

	t->in_block = true;
	t->headers = (struct reset_headers){.n = 0};
	t->out->content_type = t->out->upstream_id = t->out->retry_after = (struct span){"", 0};
	t->out->status = 0;
	t->length = -1;
	if (text_token(&line, " ", &word) && text_token(&line, " ", &word) &&
	    text_i64(word, 100, 999, &status))
		t->out->status = (int)status;
}

static void
on_header(struct span line, void *arg)
{
	struct transfer *t = arg;
	size_t colon = text_find(line, SPAN(":"));
	struct span name = {line.p, colon}, value = text_trim(text_from(line, colon + 1));

	/* outside of a block stand the trailers, which speak for nobody */
	if (!t->in_block) {
		if (text_starts(line, "HTTP/") && t->out->first_byte.v == 0)
			begin_block(t, line);
		return;
	}
	t->in_block = line.n > 0;
	if (colon == line.n)
		return;
	if (text_is_fold(name, "content-type"))
		t->out->content_type = arena_copy(t->task->arena, value);
	else if (text_is_fold(name, "content-length"))
		(void)text_i64(value, 0, INT64_MAX, &t->length);
	else if (text_is_fold(name, "x-request-id") || text_is_fold(name, "request-id"))
		t->out->upstream_id = arena_copy(t->task->arena, value);
	else if (text_is_fold(name, "retry-after"))
		t->out->retry_after = arena_copy(t->task->arena, value);
	reset_keep(&t->headers, name, value, t->task->wall());
}

void
forward_relay(struct transfer *t, struct span raw)
{
	struct span clean = redact_apply(&t->redact, t->scratch, raw);

	if (raw.n == 0)
		return;
	respond_bytes(t->task->respond, clean);
	t->dirty = true;
	t->last_ends_blank =
	    text_ends(clean, "\n\n") || text_ends(clean, "\r\n\r\n") || text_ends(clean, "\r\r");
	if (clean.p != raw.p)
		arena_reset(t->scratch);
}

/* The first content is here: from now on this account's answer is the client's. */
static void
commit(struct transfer *t)
{
	struct respond_head head = {.status = t->out->status,
	    .content_type = SPAN("text/event-stream"),
	    .length = -1,
	    .retry_after_s = -1};

	t->task->respond->upstream_id = t->out->upstream_id;
	respond_head(t->task->respond, &head);
	if (t->held->n > 0)
		forward_relay(t, buf_text(t->held));
	buf_release(t->held);
	t->task->respond->committed = true;
	t->dirty = true;
}

void
forward_hold(struct transfer *t, struct span raw)
{
	if (t->gathers)
		return;
	if (forward_committed(t)) {
		forward_relay(t, raw);
		return;
	}
	buf_span(t->held, raw);
	if (t->held->over) { /* more preamble than can be held: give it out */
		t->held->over = false;
		commit(t);
		forward_relay(t, raw);
	}
}

void
forward_pass(struct transfer *t, struct span raw)
{
	if (t->out->first_content.v == 0)
		t->out->first_content = t->task->clock();
	if (t->gathers)
		return;
	if (!forward_committed(t))
		commit(t);
	forward_relay(t, raw);
}

void
forward_ending(struct transfer *t, struct span events)
{
	if (t->task->ending == NULL || events.n == 0)
		return;
	t->task->ending(t->task->ending_arg, redact_apply(&t->redact, t->task->arena, events));
}

/* What the client takes for an error: another shape would look to it like a clean end. */
static bool
has_own_shape(const struct transfer *t, const struct sse_event *event)
{
	static const char *const path = "error";
	struct scan_value error;

	if (t->flow != NULL)
		return false;
	if (t->task->convert != NULL)
		return convert_error_is_own(t->task->convert, event);
	return scan_pick(event->data, &path, &error, 1, NULL) == ERR_OK &&
	       (error.type == SCAN_OBJECT || error.type == SCAN_STRING);
}

static void
on_error_event(struct transfer *t, const struct sse_event *event)
{
	size_t n = event->data.n < ERROR_BODY_MAX ? event->data.n : ERROR_BODY_MAX;

	buf_add(t->error_event, event->data.p, n);
	t->stop = STOP_ERROR;
	/* the API's own shape passes as it came; another one is put into ours when the stream is ended */
	if (forward_committed(t) && has_own_shape(t, event)) {
		forward_relay(t, event->raw);
		t->error_relayed = true;
	}
}

static void
on_end_event(struct transfer *t, const struct sse_event *event)
{
	if (!forward_committed(t) && !t->out->tap.content && !t->out->tap.finished) {
		t->stop = STOP_EMPTY;
		return;
	}
	if (t->flow != NULL) {
		forward_event(t, event, PART_END);
	} else {
		forward_ending(t, event->raw);
		forward_pass(t, event->raw);
	}
	t->out->tap.ended = true;
	t->stop = STOP_END;
}

static void
on_event(struct transfer *t, const struct sse_event *event)
{
	unsigned invalid = t->out->tap.invalid;
	enum dialect_part part = t->task->dialect->event(event, &t->out->tap);

	if (t->flow != NULL && t->out->tap.invalid > invalid) {
		t->stop = STOP_GRAMMAR;
		return;
	}
	if (t->flow != NULL && part != PART_ERROR && part != PART_END) {
		forward_event(t, event, part);
		return;
	}
	if (t->flow == NULL)
		forward_note(t, event, part);
	switch (part) {
	case PART_NOTHING:
	case PART_PREAMBLE: forward_hold(t, event->raw); break;
	case PART_CONTENT:
	case PART_FINISH: forward_pass(t, event->raw); break;
	case PART_USAGE:
		if (t->task->wants_usage)
			forward_hold(t, event->raw);
		break;
	case PART_ERROR: on_error_event(t, event); break;
	case PART_END: on_end_event(t, event); break;
	}
}

static void
feed_events(struct transfer *t, struct span bytes)
{
	struct sse_event event;

	if (sse_feed(&t->sse, bytes, NULL) != ERR_OK)
		t->stop = STOP_TOO_BIG;
	while (t->stop == STOP_NOT && sse_next(&t->sse, &event))
		on_event(t, &event);
	if (t->dirty && t->stop != STOP_END && t->stop != STOP_ERROR) {
		respond_flush(t->task->respond); /* once for all that arrived together */
		t->dirty = false;
		t->last_sent = t->task->clock();
	}
	if (t->task->respond->gone)
		t->stop = STOP_CLIENT;
}

/* Where no stream was asked for, only what is surely one is taken for it. MODE_OPEN: the next byte may tell. */
static enum mode
unasked_mode(const struct transfer *t, struct span text)
{
	static const char *const starts[] = {
	    "data:", "event:", "id:", "retry:", ":", "\xef\xbb\xbf"};

	if (!forward_converts(t))
		return MODE_PLAIN;
	for (size_t i = 0; i < NELEM(starts); i++) {
		struct span start = text_span(starts[i]);
		size_t n = text.n < start.n ? text.n : start.n;

		if (memcmp(text.p, start.p, n) == 0)
			return n == start.n ? MODE_EVENTS : MODE_OPEN;
	}
	return MODE_PLAIN;
}

/* JSON and HTML start differently from events, whatever the Content-Type says. */
static enum mode
mode_of(struct transfer *t)
{
	struct span text = text_from(buf_text(t->body), t->blanks);

	if (!forward_is_success(t))
		return MODE_PLAIN;
	while (text.n > 0 &&
	       (text.p[0] == ' ' || text.p[0] == '\t' || text.p[0] == '\r' || text.p[0] == '\n')) {
		t->blanks++;
		text = text_from(text, 1);
	}
	if (text.n == 0)
		return MODE_OPEN;
	if (!t->task->call->stream)
		return unasked_mode(t, text);
	return text.p[0] == '{' || text.p[0] == '[' || text.p[0] == '<' ? MODE_PLAIN : MODE_EVENTS;
}

static void
gather(struct transfer *t, struct span bytes)
{
	size_t max = t->body->max;

	if (!forward_is_success(t) && max > ERROR_KEEP_MAX)
		max = ERROR_KEEP_MAX;
	if (bytes.n > max - t->body->n) {
		bytes.n = max - t->body->n;
		t->stop = STOP_TOO_BIG;
	}
	buf_span(t->body, bytes);
}

static bool
on_body(struct span bytes, void *arg)
{
	struct transfer *t = arg;

	t->last_byte = t->task->clock();
	if (t->out->first_byte.v == 0)
		t->out->first_byte = t->last_byte;
	if (t->mode == MODE_OPEN) {
		gather(t, bytes);
		t->mode = t->task->dialect->media ? forward_media_mode(t) : mode_of(t);
		if (t->mode == MODE_EVENTS) {
			forward_begin_flow(t);
			feed_events(t, buf_text(t->body));
			buf_clear(t->body);
		} else if (t->mode == MODE_RAW) {
			forward_media(t, buf_text(t->body));
			buf_clear(t->body);
		}
	} else if (t->mode == MODE_RAW) {
		forward_media(t, bytes);
	} else if (t->mode == MODE_PLAIN) {
		gather(t, bytes);
	} else {
		feed_events(t, bytes);
	}
	return t->stop == STOP_NOT || t->stop == STOP_END;
}

static int64_t
first_byte_limit_ms(const struct transfer *t)
{
	return t->task->call->stream ? t->policy->upstream.first_byte_timeout_ms
	                             : t->policy->upstream.plain_timeout_ms;
}

/* How long until the next of our own time-outs; 0 or less = one is over, named by t->timeout_text. */
static int64_t
until_timeout(struct transfer *t, struct mono_ms now)
{
	int64_t left, content;

	if (t->out->first_byte.v == 0) {
		t->timeout_text = "no answer in time";
		return t->out->started.v + first_byte_limit_ms(t) - now.v;
	}
	t->timeout_text = "the answer stalled";
	left = t->policy->upstream.idle_timeout_ms - now.v;
	/* an error is short: one that only trickles must not keep the client from the next account */
	left += forward_is_success(t) ? t->last_byte.v : t->out->first_byte.v;
	if (!t->task->call->stream || t->out->first_content.v != 0 || forward_committed(t))
		return left;
	content = t->out->started.v + t->policy->upstream.first_content_timeout_ms - now.v;
	if (content < left) {
		t->timeout_text = "no content in time";
		left = content;
	}
	return left;
}

/* How long a committed stream may be silent; 0 = for ever. */
static int64_t
heartbeat_ms(const struct transfer *t)
{
	if (t->task->watch->half_closed && t->probes < PROBES_MAX)
		return PROBE_MS;
	return t->policy->upstream.heartbeat_ms;
}

static void
beat(struct transfer *t, struct mono_ms now)
{
	if (!forward_committed(t) || t->mode == MODE_RAW || heartbeat_ms(t) <= 0 ||
	    now.v - t->last_sent.v < heartbeat_ms(t))
		return;
	t->probes += t->task->watch->half_closed;
	respond_bytes(t->task->respond, SPAN(HEARTBEAT));
	respond_flush(t->task->respond);
	t->last_sent = now;
	if (t->task->respond->gone)
		t->stop = STOP_CLIENT;
}

static int64_t
wait_ms(const struct transfer *t, int64_t left, struct mono_ms now)
{
	const struct watch *watch = t->task->watch;

	if (forward_committed(t) && heartbeat_ms(t) > 0) {
		int64_t next = t->last_sent.v + heartbeat_ms(t) - now.v;

		if (next < left)
			left = next;
	}
	if (watch->stopping && watch->stop_by.v - now.v < left)
		left = watch->stop_by.v - now.v;
	if (watch->half_closed && !forward_committed(t) && left > WATCH_HALF_CLOSED_MS / 4)
		left = WATCH_HALF_CLOSED_MS / 4;
	left = watch_within(watch, left, now);
	return left < 1 ? 1 : left > 60000 ? 60000 : left;
}

/* A client that is done sending gets a moment; while a question of our own is asked it cannot have an answer yet. */
static void
look_at_half_closed(struct transfer *t, struct mono_ms now)
{
	struct watch *watch = t->task->watch;

	if (!watch->half_closed)
		return;
	if (!t->probed && t->task->respond->x->probe != NULL) {
		t->probed = true;
		t->task->respond->x->probe(t->task->respond->x->io);
	}
	if (!forward_committed(t) && watch->deadline.v == 0 &&
	    now.v - watch->half_closed_at.v >= WATCH_HALF_CLOSED_MS)
		watch->client_gone = true;
}

/* What ends it from our side, looked at once a turn. */
static void
look_around(struct transfer *t, struct mono_ms now)
{
	if (t->stop != STOP_NOT)
		return;
	look_at_half_closed(t, now);
	if (t->task->watch->client_gone)
		t->stop = STOP_CLIENT;
	else if (watch_must_end(t->task->watch, now))
		t->stop = STOP_DRAIN;
	else if (watch_is_late(t->task->watch, now))
		t->stop = STOP_LATE;
	else if (until_timeout(t, now) <= 0)
		t->stop = STOP_TIMEOUT;
	else
		beat(t, now);
}

static void
pump(struct transfer *t)
{
	enum upstream_step step = upstream_turn(t->task->up, t->task->watch, 0, t->out->started);

	while (step == UPSTREAM_RUNNING) {
		struct mono_ms now = t->task->clock();

		look_around(t, now);
		if (t->stop != STOP_NOT)
			break;
		step = upstream_turn(
		    t->task->up, t->task->watch, wait_ms(t, until_timeout(t, now), now), now);
	}
	if (step == UPSTREAM_RUNNING && t->stop == STOP_END)
		upstream_turn(t->task->up, t->task->watch, END_GRACE_MS, t->task->clock());
}

/* What is left without its empty line counts when it is complete in itself. */
static void
take_last(struct transfer *t)
{
	struct sse_event event;

	while (t->mode == MODE_EVENTS && t->stop == STOP_NOT && sse_last(&t->sse, &event)) {
		if (event.has_data && !text_is(event.data, "[DONE]") &&
		    scan_pick(event.data, NULL, NULL, 0, NULL) != ERR_OK)
			return;
		on_event(t, &event);
	}
}

static void
transfer_init(struct transfer *t, const struct forward_task *task, struct forward_outcome *out)
{
	struct mono_ms now = task->clock();
	size_t max = (size_t)task->call->channel->policy.upstream.max_event_bytes;

	memset(out, 0, sizeof *out);
	out->started = now;
	out->content_type = out->body = out->upstream_id = out->retry_after = (struct span){"", 0};
	dialect_tap_init(&out->tap);
	memset(t, 0, sizeof *t);
	t->task = task;
	t->out = out;
	t->policy = &task->call->channel->policy;
	t->last_byte = t->last_sent = now;
	t->last_ends_blank = true;
	t->scratch = arena_new(max * 4 + 65536);
	t->body = arena_buf(task->arena, max);
	t->held = arena_buf(task->arena, HELD_MAX);
	t->made = arena_buf(task->arena, max * 8 + HELD_MAX);
	t->trail = (struct convert_error_trail){.sequence = -1, .id = {"", 0}};
	t->error_event = arena_buf(task->arena, ERROR_BODY_MAX);
	redact_init(&t->redact, task->arena, &task->call->account->key);
	sse_init(&t->sse, max);
}

void
forward_send(const struct forward_task *task, struct forward_outcome *outcome_out)
{
	struct upstream_call call = *task->call;
	struct upstream_end end = {.transport = TRANSPORT_CONNECT};
	struct transfer t;

	transfer_init(&t, task, outcome_out);
	call.on_header = on_header;
	call.on_body = on_body;
	call.arg = &t;
	if (upstream_begin(task->up, task->arena, &call, NULL) == ERR_OK) {
		pump(&t);
		end = upstream_finish(task->up);
	}
	outcome_out->transport = end.transport;
	outcome_out->written_whole = end.written_whole;
	outcome_out->connected = end.connected;
	take_last(&t);
	forward_conclude(&t, &end);
	forward_end_flow(&t);
	forward_close(&t);
	outcome_out->body = outcome_out->finding.verdict == VERDICT_OK
	                        ? redact_apply(&t.redact, task->arena, buf_text(t.body))
	                        : redact_all(task->conf, task->arena, buf_text(t.body));
	forward_convert_body(&t);
	outcome_out->ended = task->clock();
	sse_release(&t.sse);
	arena_free(&t.scratch);
}
