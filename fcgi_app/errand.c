#include "errand.h"

#include "base/clock.h"
#include "redact.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TURN_MS 100  /* between looks at the socket */
#define OTHERS_MS 20 /* an idle worker takes a connection within this time */

struct errand {
	struct serve *s;
	struct errand_answer *answer;
	struct buf *body;
};

bool
errand_must_return(const struct serve *s)
{
	struct pollfd p = {.fd = s->listen_fd, .events = POLLIN};

	if (s->watch->stopping || s->watch->replace)
		return true;
	if (s->listen_fd < 0 || clock_mono().v - s->away_since.v < ERRAND_AWAY_MS)
		return false;
	if (poll(&p, 1, 0) <= 0)
		return false;
	poll(NULL, 0, OTHERS_MS);
	return poll(&p, 1, 0) > 0;
}

static void
on_header(struct span line, void *arg)
{
	struct errand *e = arg;
	size_t colon = text_find(line, SPAN(":"));
	struct span name = {line.p, colon}, value = text_trim(text_from(line, colon + 1));
	struct span rest = line, word;
	int64_t status = 0;

	if (text_starts(line, "HTTP/")) {
		if (text_token(&rest, " ", &word) && text_token(&rest, " ", &word) &&
		    !text_i64(word, 100, 999, &status))
			status = 0;
		e->answer->status = (int)status;
		e->answer->content_type = (struct span){"", 0};
		e->answer->headers = (struct reset_headers){.n = 0};
		return;
	}
	if (colon == line.n)
		return;
	if (text_is_fold(name, "content-type"))
		e->answer->content_type = arena_copy(e->s->arena, value);
	reset_keep(&e->answer->headers, name, value, clock_wall());
}

static bool
on_body(struct span bytes, void *arg)
{
	struct errand *e = arg;
	size_t room = ERRAND_BODY_MAX - e->body->n;

	e->answer->cut = bytes.n > room;
	buf_add(e->body, bytes.p, bytes.n < room ? bytes.n : room);
	return !e->answer->cut;
}

/* Move bytes until it is over, or given up. False: out of time. */
static bool
turn(struct errand *e)
{
	struct serve *s = e->s;
	struct mono_ms now = clock_mono(), end = {now.v + ERRAND_LIMIT_MS};
	enum upstream_step step = upstream_turn(s->up, s->watch, 0, now);

	while (step == UPSTREAM_RUNNING) {
		now = clock_mono();
		if (now.v >= end.v)
			return false;
		e->answer->interrupted = errand_must_return(s);
		if (e->answer->interrupted)
			return true;
		step = upstream_turn(
		    s->up, s->watch, end.v - now.v < TURN_MS ? end.v - now.v : TURN_MS, now);
	}
	return true;
}

/* Away from the socket, a worker is as good as busy. */
static bool
pump(struct errand *e)
{
	bool in_time;

	board_busy(e->s->board, e->s->place);
	in_time = turn(e);
	board_idle(e->s->board, e->s->place);
	return in_time;
}

static void
run_once(struct serve *s, const struct upstream_call *call, struct errand_answer *answer_out)
{
	struct errand e = {s, answer_out, arena_buf(s->arena, ERRAND_BODY_MAX + 1)};
	struct upstream_call own = *call;
	struct upstream_end end;

	*answer_out = (struct errand_answer){
	    .transport = TRANSPORT_CONNECT, .content_type = SPAN(""), .body = SPAN("")};
	own.on_header = on_header;
	own.on_body = on_body;
	own.arg = &e;
	if (upstream_begin(s->up, s->arena, &own, NULL) != ERR_OK)
		return;
	if (!pump(&e)) {
		upstream_finish(s->up);
		answer_out->transport = TRANSPORT_TIMEOUT;
		snprintf(answer_out->text, sizeof answer_out->text, "no answer within %d s",
		    ERRAND_LIMIT_MS / 1000);
		return;
	}
	end = upstream_finish(s->up);
	answer_out->transport = answer_out->cut ? TRANSPORT_OK : end.transport;
	answer_out->body = buf_text(e.body);
	memcpy(answer_out->text, end.text, sizeof answer_out->text);
}

void
errand_run(struct serve *s, const struct upstream_call *call, struct errand_answer *answer_out)
{
	run_once(s, call, answer_out);
	if (answer_out->transport == TRANSPORT_REUSED && !answer_out->interrupted)
		run_once(s, call, answer_out);
}

void
errand_classify(struct serve *s, const struct upstream_call *call,
    const struct errand_answer *answer, struct span model, struct classify_finding *finding_out)
{
	struct classify_answer question = {
	    .transport = answer->transport,
	    .status = answer->status,
	    .content_type = answer->content_type,
	    .body = redact_all(s->conf, s->arena, answer->body),
	    .in_band = answer->status >= 200 && answer->status < 300,
	    .headers = &answer->headers,
	    .judged = true,
	    .model = model,
	};

	classify_answer(s->arena, call->channel, &question, clock_wall(), finding_out);
	if (finding_out->message[0] == '\0')
		text_clean(
		    finding_out->message, sizeof finding_out->message, text_span(answer->text));
}
