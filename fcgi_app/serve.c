#include "serve.h"

#include "access.h"
#include "answer.h"
#include "attempt.h"
#include "base/clock.h"
#include "count.h"
#include "front.h"
#include "page.h"
#include "run_job.h"
#include "serve_aim.h"

#define BODY_KEEP_BYTES 131072 /* of the body's buffer, between requests */

enum round {
	ROUND_AGAIN,
	ROUND_SERVED,
	ROUND_GONE, /* the client went away, or a committed stream broke: nothing more to say */
	ROUND_GIVE_UP,
	ROUND_STORE,
};

enum queue_end { QUEUE_LOOKS, QUEUE_LEAVES };

static bool
nobody_waits(const struct serve_job *j)
{
	return j->s->watch->client_gone || j->s->watch->stopping ||
	       watch_is_late(j->s->watch, clock_mono());
}

/* Until woken, until it is time to look again, or until the time is up. */
static enum queue_end
wait_turn(struct serve_job *j, uint32_t mark, struct mono_ms until)
{
	struct mono_ms now = clock_mono(), look = {now.v + QUEUE_LOOK_MS};

	while (now.v < until.v && now.v < look.v) {
		watch_signals(j->s->watch, now);
		watch_client(j->s->watch, now);
		if (nobody_waits(j))
			return QUEUE_LEAVES;
		if (queue_wait(j->s->env, j->s->slot, mark, until.v - now.v))
			return QUEUE_LOOKS;
		now = clock_mono();
	}
	return now.v < until.v ? QUEUE_LOOKS : QUEUE_LEAVES;
}

static struct mono_ms
within_deadline(const struct serve_job *j, struct mono_ms until)
{
	struct mono_ms now = clock_mono();

	return (struct mono_ms){now.v + watch_within(j->s->watch, until.v - now.v, now)};
}

/* Stand in the queue until woken, or for as long as pool.queue_timeout allows. */
static enum round
stand_in_queue(struct serve_job *j, uint32_t mark, struct why *why)
{
	struct walk *w = &j->walk;

	if (w->queue_until.v == 0)
		w->queue_until.v = clock_mono().v + w->channel->policy.pool.queue_timeout_ms;
	if (wait_turn(j, mark, within_deadline(j, w->queue_until)) == QUEUE_LOOKS)
		return ROUND_AGAIN;
	if (pick_leave(j->s->env, j->s->slot, &w->wish, why) != ERR_OK)
		return ROUND_STORE;
	w->exhausted = true;
	w->reason.result = PICK_FULL;
	if (j->s->watch->client_gone)
		return ROUND_GONE;
	return !j->s->watch->stopping && serve_aim_next(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
}

/* A failed attempt: this place once more, the next one, or none. */
static enum round
after_failure(struct serve_job *j, const struct pick_lease *lease)
{
	struct walk *w = &j->walk;
	enum walk_next next = walk_next(w);

	if (verdict_table[w->outcome.finding.verdict].next == NEXT_NEVER ||
	    (next == WALK_STOP && w->unexplained >= 2))
		return ROUND_GIVE_UP;
	if (next == WALK_STOP || lease->kind == SLOT_PERMIT || w->trial ||
	    !plan_may_try(&w->plan, w->answers, w->attempts, w->max_attempts))
		return serve_aim_next(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
	if (next == WALK_WAIT)
		watch_sleep(j->s->watch, walk_backoff_ms(w, serve_job_random(j->s)), clock_mono);
	return ROUND_AGAIN;
}

/* What follows from an attempt. */
static enum round
after_attempt(struct serve_job *j, const struct pick_lease *lease)
{
	const struct walk *w = &j->walk;

	if (w->outcome.finding.verdict == VERDICT_OK)
		return ROUND_SERVED;
	if (j->respond.committed || j->s->watch->client_gone || j->respond.gone)
		return ROUND_GONE;
	return w->outcome.stopped ? ROUND_GIVE_UP : after_failure(j, lease);
}

/* Nobody could be had on this channel. */
static enum round
after_refusal(struct serve_job *j)
{
	struct walk *w = &j->walk;

	w->exhausted = true;
	walk_note_reason(w);
	return serve_aim_next(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
}

static void
note_session(struct walk *w)
{
	if (w->session.key == NULL)
		return;
	if (!w->reason.session.bound)
		w->session.ours = true; /* bound with this lease */
	w->session.found = w->reason.session;
}

/* Nobody wants the answer any more; a place in the queue may still be held, whose turn has just come. */
static enum round
leave(struct serve_job *j, struct why *why)
{
	struct walk *w = &j->walk;

	if (w->reason.result == PICK_WAITING &&
	    pick_leave(j->s->env, j->s->slot, &w->wish, why) != ERR_OK)
		return ROUND_STORE;
	return ROUND_GONE;
}

static enum round
one_round(struct serve_job *j, struct why *why)
{
	struct walk *w = &j->walk;
	uint32_t mark = queue_mark(j->s->env, j->s->slot);
	struct pick_lease lease;

	if (j->s->watch->client_gone || watch_is_late(j->s->watch, clock_mono()))
		return leave(j, why);
	serve_aim_look(j);
	w->wish.random = serve_job_random(j->s);
	w->wish.may_queue = w->channel->policy.pool.queue_timeout_ms > 0 &&
	                    !j->s->watch->stopping && !walk_has_other(w);
	if (pick_take(j->s->env, j->s->slot, &w->wish, clock_wall(), &lease, &w->reason, why) !=
	    ERR_OK)
		return ROUND_STORE;
	attempt_log(j, w->reason.events, w->reason.nevents);
	attempt_log_breaker(j, w->channel, &w->reason.breaker);
	if (w->reason.result == PICK_WAITING)
		return stand_in_queue(j, mark, why);
	if (!lease.taken)
		return after_refusal(j);
	note_session(w);
	attempt_run(j, &lease);
	return after_attempt(j, &lease);
}

/* A session whose account is lost and whom nobody served is free again. */
static void
drop_session(struct serve_job *j)
{
	struct why why;

	if (j->walk.session.key != NULL &&
	    settle_unserved(j->s->env, j->s->pool, &j->walk.session, clock_wall(), &why) != ERR_OK)
		serve_job_log(j, LOG_LEVEL_WARN, "a session was not settled", why.text);
}

static void
finish(struct serve_job *j, enum round round, const struct why *why)
{
	switch (round) {
	case ROUND_AGAIN:
	case ROUND_SERVED:
		recall_keep_plain(j);
		context_keep(j);
		answer_deliver(j);
		break;
	case ROUND_GONE:
		j->record.outcome =
		    j->s->watch->client_gone || j->respond.gone ? "cancelled" : "broken";
		break;
	case ROUND_GIVE_UP:
		drop_session(j);
		if (!count_instead(j, clock_mono()))
			answer_give_up(j);
		break;
	case ROUND_STORE: answer_store_failed(j, why); break;
	}
}

static void
forward(struct serve_job *j)
{
	struct why why = {""};
	enum round round;

	if (!run_job_begin(j) || !serve_aim_begin(j) || !context_begin(j) || !recall_begin(j) ||
	    !serve_aim_first(j) || count_here(j, clock_mono()))
		return;
	recall_bind(j);
	if (!serve_aim_body(j))
		return;
	if (j->explain) {
		answer_explain(j);
		return;
	}
	do
		round = one_round(j, &why);
	while (round == ROUND_AGAIN);
	finish(j, round, &why);
}

void
serve_job_log(const struct serve_job *j, enum log_level level, const char *message, const char *why)
{
	log_fields(
	    j->s->log, level, clock_wall(), message, LOG_TEXT("id", j->rq.id), LOG_Z("why", why));
}

void
serve_job_run(struct serve_job *j)
{
	forward(j);
}

static void
refuse_late(struct serve_job *j, const char *why)
{
	if (watch_must_end(j->s->watch, clock_mono()))
		answer_refuse(j, 503, "restarting", why);
	else
		answer_refuse(j, 408, "request_timeout", why);
}

static void
read_and_forward(struct serve_job *j)
{
	const struct request_limits limits = {.max_bytes = j->s->conf->server.max_body_bytes,
	    .stall_ms = j->s->conf->server.client_timeout_ms,
	    .spool_dir = j->s->conf->state_dir.p,
	    .clock = clock_mono};
	struct why why = {""};
	enum err err;

	buf_clear(&j->s->body);
	j->s->body.max = (size_t)limits.max_bytes + 2 * BODY_KEEP_BYTES;
	err = request_body(&j->rq, j->x, j->s->arena, &limits, &j->s->body, &why);
	switch (err) {
	case ERR_OK: break;
	case ERR_TOO_BIG: answer_refuse(j, 413, "request_too_large", why.text); return;
	case ERR_TIMEOUT: refuse_late(j, why.text); return;
	case ERR_STORE: answer_refuse(j, 503, "store_unavailable", why.text); return;
	case ERR_IO:
		j->record.outcome = "cancelled";
		j->respond.gone = true;
		return;
	case ERR_BAD_INPUT:
	case ERR_NOT_FOUND:
	case ERR_CONFIG: answer_refuse(j, 400, "invalid_request_error", why.text); return;
	}
	/* only now is everything read, so that a readable connection means: closed */
	watch_begin(j->s->watch, j->x->client_fd);
	forward(j);
}

static struct span
fresh_id(struct serve *s)
{
	char id[] = "req_000000000000000000000000";
	uint64_t a = serve_job_random(s), b = serve_job_random(s);

	for (size_t i = 4; i < sizeof id - 1; i++) {
		id[i] = "0123456789abcdef"[a & 15];
		a = a >> 4 | b << 60;
		b >>= 4;
	}
	return arena_copy(s->arena, (struct span){id, sizeof id - 1});
}

void
serve_exchange(struct serve *s, struct exchange *x)
{
	struct serve_job j = {.s = s, .x = x};

	watch_begin(s->watch, -1); /* until the body is read, bytes on it mean nothing */
	j.record.arrived = clock_mono();
	request_head(&j.rq, x, s->conf, fresh_id(s));
	j.respond = (struct respond){
	    .x = x,
	    .arena = s->arena,
	    .dialect = j.rq.endpoint != NULL ? j.rq.endpoint->dialect : &dialect_chat,
	    .request_id = j.rq.id,
	    .origin = access_origin(s->conf, x),
	    .head_only = text_is(j.rq.method, "HEAD"),
	};
	if (front_admit(&j)) {
		if (j.rq.endpoint->work == ENDPOINT_FORWARD)
			read_and_forward(&j);
		else
			page_serve(s, &j.rq, &j.respond);
	}
	context_end(&j);
	count_for_log(&j);
	record_request(s->log, &j.record, &j.rq, &j.respond, clock_wall(), clock_mono());
	watch_begin(s->watch, -1);
	buf_shrink(&s->body, BODY_KEEP_BYTES);
	arena_reset(s->arena);
}
