#include "serve.h"

#include "access.h"
#include "answer.h"
#include "attempt.h"
#include "base/clock.h"
#include "front.h"
#include "page.h"
#include "session.h"

#include <stdlib.h>

#define BODY_KEEP_BYTES 131072 /* of the body's buffer, between requests */

enum round {
	ROUND_AGAIN,
	ROUND_SERVED,
	ROUND_GONE, /* the client went away, or a committed stream broke: nothing more to say */
	ROUND_GIVE_UP,
	ROUND_STORE,
};

enum queue_end { QUEUE_LOOKS, QUEUE_LEAVES };

/* Where the plan stands now is where the next pick looks. */
static void
use_channel(struct serve_job *j)
{
	struct walk *w = &j->walk;

	w->channel = &j->s->conf->channels[w->plan.channel];
	w->wish.channel = w->plan.channel;
	w->wish.model = arena_z(j->s->arena, w->plan.model);
	w->wish.insist = PICK_ANY;
	w->overloaded = w->unexplained = 0;
	w->asked_again = false;
	w->queue_until.v = 0;
	w->session.channel = w->plan.channel;
	w->session.ours = false;
	w->session.found = (struct pick_session){.bound = false};
}

struct chain_look {
	struct serve_job *j;
	struct wall_ms now;
};

/* What the breakers of a channel's list say. An open one whose time is over is looked at when its turn comes. */
static enum store_rc
read_list(struct txn *txn, const struct chain_look *look, size_t from)
{
	const struct serve *s = look->j->s;
	const struct conf_channel *listing = &s->conf->channels[from];

	for (size_t i = 0; i < listing->nfallback; i++) {
		size_t channel = listing->fallback[i];
		struct breaker_policy policy =
		    pick_breaker_policy(&s->conf->channels[channel].policy);
		struct breaker_row row;
		enum store_rc rc = breaker_get(txn, s->pool->channels[channel].number, &row);

		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		look->j->walk.answers[channel] =
		    row.state == BREAKER_OPEN && row.until_ms <= look->now.v
		        ? BREAKER_YES
		        : breaker_admit(&row, &policy);
	}
	return STORE_OK;
}

static enum store_rc
read_answers(struct txn *txn, void *arg)
{
	const struct chain_look *look = arg;
	const struct plan *plan = &look->j->walk.plan;
	enum store_rc rc = read_list(txn, look, plan->first.channel);

	if (rc == STORE_OK && plan->channel != plan->first.channel)
		rc = read_list(txn, look, plan->channel);
	return rc;
}

/* Only channels with a fallback list pay for this. */
static void
look_at_chain(struct serve_job *j)
{
	struct chain_look look = {j, clock_wall()};
	struct walk *w = &j->walk;

	w->wish.fallback = false;
	if (j->s->conf->channels[w->plan.first.channel].nfallback == 0)
		return;
	if (env_view(j->s->env, read_answers, &look) != STORE_OK)
		log_fields(j->s->log, LOG_LEVEL_WARN, clock_wall(),
		    "the fallback channels could not be looked at", LOG_TEXT("id", j->rq.id),
		    LOG_Z("why", env_error(j->s->env)));
	w->wish.no_probe = !w->last_chance && plan_more(&w->plan, w->answers);
	w->wish.last_resort = w->last_chance;
	w->wish.fallback =
	    plan_has_fallback(j->s->conf, w->plan.channel, w->plan.wires, w->answers);
}

/* The next channel of the chain; behind its end the first one again, to try there who rests. False: all is tried. */
static bool
next_channel(struct serve_job *j)
{
	struct walk *w = &j->walk;

	if (w->attempts >= w->max_attempts || w->last_chance)
		return false;
	if (plan_next(&w->plan, w->answers)) {
		use_channel(j);
		return true;
	}
	if (w->plan.visited <= 1)
		return false;
	w->last_chance = true;
	plan_back(&w->plan);
	use_channel(j);
	return true;
}

static bool
nobody_waits(const struct serve_job *j)
{
	return j->s->watch->client_gone || j->s->watch->stopping;
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

/* Stand in the queue until woken, or for as long as pool.queue_timeout allows. */
static enum round
stand_in_queue(struct serve_job *j, uint32_t mark, struct why *why)
{
	struct walk *w = &j->walk;

	if (w->queue_until.v == 0)
		w->queue_until.v = clock_mono().v + w->channel->policy.pool.queue_timeout_ms;
	if (wait_turn(j, mark, w->queue_until) == QUEUE_LOOKS)
		return ROUND_AGAIN;
	if (pick_leave(j->s->env, j->s->slot, &w->wish, why) != ERR_OK)
		return ROUND_STORE;
	w->exhausted = true;
	w->reason.result = PICK_FULL;
	if (j->s->watch->client_gone)
		return ROUND_GONE;
	return !j->s->watch->stopping && next_channel(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
}

/* A failed attempt: this channel once more, the next one, or none. */
static enum round
after_failure(struct serve_job *j, const struct pick_lease *lease)
{
	struct walk *w = &j->walk;
	enum walk_next next = walk_next(w);

	if (verdict_table[w->outcome.finding.verdict].next == NEXT_NEVER ||
	    (next == WALK_STOP && w->unexplained >= 2))
		return ROUND_GIVE_UP;
	if (next == WALK_STOP || lease->kind == SLOT_PERMIT ||
	    !plan_may_try(&w->plan, w->answers, w->attempts, w->max_attempts))
		return next_channel(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
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
	return next_channel(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
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

static enum round
one_round(struct serve_job *j, struct why *why)
{
	struct walk *w = &j->walk;
	uint32_t mark = queue_mark(j->s->env, j->s->slot);
	struct pick_lease lease;

	if (j->s->watch->client_gone)
		return ROUND_GONE;
	look_at_chain(j);
	w->wish.random = serve_job_random(j->s);
	w->wish.may_queue = w->channel->policy.pool.queue_timeout_ms > 0 && !j->s->watch->stopping;
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

static struct span
realm_of(const struct serve_job *j, const struct route *route)
{
	struct span realm =
	    exchange_param(j->x, "SLUICE_REALM"); /* the web server's word is final */

	if (realm.n == 0)
		realm = exchange_param(j->x, "HTTP_X_SLUICE_REALM");
	return realm.n == 0 && route->entry != NULL ? route->entry->realm : realm;
}

/* Tokens that the request may take, for quotas: what it says, and a guess of its prompt. */
static uint64_t
estimate_tokens(const struct request *rq)
{
	int64_t most = 0;

	if (!scan_i64(&rq->read.max_completion_tokens, 0, INT32_MAX, &most) &&
	    !scan_i64(&rq->read.max_tokens, 0, INT32_MAX, &most))
		most = 0;
	return (uint64_t)(most + dialect_guess_tokens(rq->read.body.n));
}

static void
begin_walk(struct serve_job *j, const struct route *route)
{
	struct session_source source = {j->s->conf, j->x, &j->rq.read, j->rq.client};
	struct session_key *key = arena_alloc(j->s->arena, sizeof *key);
	struct walk *w = &j->walk;

	plan_begin(&w->plan, j->s->conf, route, PLAN_WIRE(WIRE_CHAT));
	w->answers = arena_alloc(j->s->arena, (j->s->conf->nchannels + 1) * sizeof *w->answers);
	w->max_attempts = j->s->conf->channels[route->channel].policy.upstream.max_attempts;
	w->wish.pool = j->s->pool;
	w->wish.realm = realm_of(j, route);
	w->wish.tokens = estimate_tokens(&j->rq);
	if (j->s->conf->sticky.enabled && j->s->has_secret) {
		session_key(&j->s->secret, &source, j->s->arena, key);
		if (key->kind != SESSION_NONE)
			w->wish.session = w->session.key = key->hash;
		j->record.session = key->brief;
	}
	if (!plan_next(&w->plan, w->answers))
		die("a route leads to no channel");
	use_channel(j);
}

/* A session whose account is lost and whom nobody served is free again. */
static void
drop_session(struct serve_job *j)
{
	struct why why;

	if (j->walk.session.key != NULL &&
	    settle_unserved(j->s->env, j->s->pool, &j->walk.session, clock_wall(), &why) != ERR_OK)
		log_fields(j->s->log, LOG_LEVEL_WARN, clock_wall(), "a session was not settled",
		    LOG_TEXT("id", j->rq.id), LOG_Z("why", why.text));
}

static void
forward(struct serve_job *j)
{
	struct why why = {""};
	struct route route;
	enum round round;

	if (!route_find(j->s->conf, j->rq.model, WIRE_CHAT, &route)) {
		answer_refuse(j, 404, "model_not_found",
		    arena_print(j->s->arena, "no channel serves the model '%.*s'",
		        (int)(j->rq.model.n < 128 ? j->rq.model.n : 128), j->rq.model.p));
		return;
	}
	begin_walk(j, &route);
	do
		round = one_round(j, &why);
	while (round == ROUND_AGAIN);
	switch (round) {
	case ROUND_AGAIN:
	case ROUND_SERVED: answer_deliver(j); break;
	case ROUND_GONE:
		j->record.outcome =
		    j->s->watch->client_gone || j->respond.gone ? "cancelled" : "broken";
		break;
	case ROUND_GIVE_UP:
		drop_session(j);
		answer_give_up(j);
		break;
	case ROUND_STORE: answer_store_failed(j, &why); break;
	}
}

static void
read_and_forward(struct serve_job *j)
{
	struct why why = {""};
	enum err err;

	buf_clear(&j->s->body);
	j->s->body.max = (size_t)j->s->conf->server.max_body_bytes + 2 * BODY_KEEP_BYTES;
	err = request_body(
	    &j->rq, j->x, j->s->arena, j->s->conf->server.max_body_bytes, &j->s->body, &why);
	switch (err) {
	case ERR_OK: break;
	case ERR_TOO_BIG: answer_refuse(j, 413, "request_too_large", why.text); return;
	case ERR_TIMEOUT: answer_refuse(j, 408, "request_timeout", why.text); return;
	case ERR_IO:
		j->record.outcome = "cancelled";
		j->respond.gone = true;
		return;
	case ERR_BAD_INPUT:
	case ERR_NOT_FOUND:
	case ERR_CONFIG:
	case ERR_STORE: answer_refuse(j, 400, "invalid_request_error", why.text); return;
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
	record_request(s->log, &j.record, &j.rq, &j.respond, clock_wall(), clock_mono());
	watch_begin(s->watch, -1);
	buf_shrink(&s->body, BODY_KEEP_BYTES);
	arena_reset(s->arena);
}
