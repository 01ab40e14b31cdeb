#include "explain.h"

#include "base/emit.h"
#include "conf/options.h"
#include "explain_way.h"
#include "status.h"
#include "store/price.h"

#include <stdlib.h>
#include <string.h>

struct job {
	const struct explain *x;
	struct txn *txn;
	struct emit emit;
	struct walk *walk; /* a copy */
	/* the channel at hand */
	struct pick_view view;
	struct pick_seen *seen;
	size_t nseen;
	bool decided; /* what follows is only shown */
	struct decision {
		size_t channel, account;
		struct span model;
		enum pick_result result;
		bool by_session;
		enum slot_kind kind;
		double share;
	} decision;
};

static const char *
result_name(enum pick_result result)
{
	static const char *const names[] = {
	    [PICK_TAKEN] = "taken",
	    [PICK_OPEN] = "open",
	    [PICK_WAITING] = "waits",
	    [PICK_FULL] = "full",
	    [PICK_COOLING] = "cooling",
	    [PICK_MISSING] = "model missing",
	    [PICK_TRIED] = "tried",
	    [PICK_NOBODY] = "nobody",
	};

	return names[result];
}

static const char *
trouble_name(enum sticky_trouble trouble)
{
	static const char *const names[] = {
	    [STICKY_FINE] = "none",
	    [STICKY_SHORT] = "short",
	    [STICKY_RESTING] = "resting",
	    [STICKY_LASTING] = "lasting",
	};

	return names[trouble];
}

static void
gather(const struct pick_seen *seen, void *arg)
{
	struct job *job = arg;

	job->seen[job->nseen++] = *seen;
}

static int
larger_first(double a, double b)
{
	return (a < b) - (a > b);
}

/* Who may be drawn first, by chance; then those that the score left out; then the others as they are configured. */
static int
seen_order(const void *x, const void *y)
{
	const struct pick_seen *a = x, *b = y;
	int order = (b->out == SCORE_IN) - (a->out == SCORE_IN);

	if (order == 0)
		order = (b->candidate.id.n > 0) - (a->candidate.id.n > 0);
	if (order == 0)
		order = larger_first(a->share, b->share);
	if (order == 0)
		order = larger_first(a->terms.weight, b->terms.weight);
	if (order == 0)
		order = larger_first(b->candidate.rank, a->candidate.rank);
	return order != 0 ? order : (a->account > b->account) - (a->account < b->account);
}

static void
put_terms(struct emit *e, const struct conf_channel *channel, const struct pick_seen *seen)
{
	const struct score_candidate *c = &seen->candidate;

	emit_real(e, "share", seen->share, 4);
	if (channel->policy.pool.strategy == CONF_ADAPTIVE) {
		emit_real(e, "score", seen->terms.weight, 4);
		emit_object(e, "terms");
		emit_real(e, "credits", seen->terms.credits, 4);
		emit_real(e, "idle", seen->terms.idle, 4);
		emit_real(e, "success", seen->terms.success, 4);
		emit_end(e);
	} else {
		emit_real(e, "rank", c->rank, 4);
	}
	emit_real(e, "weight", c->weight, 4);
	emit_real(e, "factor", c->factor, 2);
	if (channel->policy.pool.cost_tiers)
		emit_z(e, "cost_tier", price_tier_name((enum price_tier)c->cost_tier));
	else
		emit_null(e, "cost_tier");
	emit_bool(e, "has_sessions", c->bound);
	emit_time(e, "last_picked", c->picked);
}

static void
put_account(struct job *job, const struct conf_channel *channel, const struct pick_seen *seen)
{
	const struct conf_account *account = &channel->accounts[seen->account];
	struct emit *e = &job->emit;

	emit_object(e, NULL);
	emit_text(e, "id", account->id);
	emit_z(e, "out", seen->out == SCORE_IN ? NULL : score_out_name(seen->out));
	emit_time(e, "until", (struct wall_ms){seen->until_ms});
	emit_i64(e, "priority", account->priority);
	emit_i64(e, "in_flight", seen->in_flight);
	emit_i64(e, "max_in_flight", account->max_in_flight);
	if (seen->candidate.id.n > 0)
		put_terms(e, channel, seen);
	emit_end(e);
}

static void
put_accounts(struct job *job, const struct conf_channel *channel)
{
	const struct pool *pool = job->walk->wish.pool;
	struct emit *e = &job->emit;

	qsort(job->seen, job->nseen, sizeof *job->seen, seen_order);
	emit_array(e, "accounts");
	for (size_t i = 0; i < job->nseen; i++)
		put_account(job, channel, &job->seen[i]);
	for (size_t i = 0; i < channel->naccounts; i++) {
		if (pool_has(pool, channel->index, i))
			continue;
		emit_object(e, NULL);
		emit_text(e, "id", channel->accounts[i].id);
		emit_z(e, "out", "not seen by the gateway yet");
		emit_end(e);
	}
	emit_end(e);
}

static void
put_session(struct job *job, const struct conf_channel *channel)
{
	const struct pick_session *session = &job->view.reason.session;
	const struct pool_channel *pc = &job->walk->wish.pool->channels[channel->index];
	uint32_t index = session->bound && session->account < pc->top
	                     ? pc->seats[session->account].index
	                     : UINT32_MAX;
	struct emit *e = &job->emit;

	if (!session->bound) {
		emit_null(e, "session");
		return;
	}
	emit_object(e, "session");
	if (index == UINT32_MAX)
		emit_null(e, "account");
	else
		emit_text(e, "account", channel->accounts[index].id);
	emit_z(e, "trouble", trouble_name(session->trouble));
	if (session->trouble == STICKY_RESTING && session->rest_left_ms != INT64_MAX)
		emit_i64(e, "rest_left_s", (session->rest_left_ms + 999) / 1000);
	else
		emit_null(e, "rest_left_s");
	emit_end(e);
}

static const char *
strategy_name(int strategy)
{
	for (size_t i = 0; i < options_count; i++)
		if (strcmp(options_table[i].path, "pool.strategy") == 0)
			return options_table[i].choices[strategy];
	return NULL;
}

static void
put_channel(struct job *job, unsigned waiting)
{
	const struct walk *w = job->walk;
	const struct conf_channel *channel = w->channel;
	struct breaker_policy policy = pick_breaker_policy(&channel->policy);
	const struct pick_view *v = &job->view;
	struct emit *e = &job->emit;

	emit_object(e, NULL);
	emit_text(e, "channel", channel->name);
	emit_z(e, "model", w->wish.model);
	emit_bool(e, "last_chance", w->last_chance);
	emit_z(e, "result", result_name(v->reason.result));
	emit_time(e, "earliest",
	    v->reason.result == PICK_COOLING || v->reason.result == PICK_OPEN
	        ? v->reason.earliest
	        : (struct wall_ms){0});
	status_breaker(e, &v->breaker, &policy);
	emit_z(
	    e, "breaker_news", v->reason.breaker.text[0] == '\0' ? NULL : v->reason.breaker.text);
	emit_z(e, "strategy", strategy_name(channel->policy.pool.strategy));
	put_session(job, channel);
	emit_bool(e, "prefers_unbound", v->only_unbound);
	emit_bool(e, "explores", v->explores);
	emit_i64(e, "waiting", waiting);
	put_accounts(job, channel);
	emit_end(e);
}

/* Of several that may be drawn the likeliest stands for them. */
static void
decide(struct job *job)
{
	const struct pick_view *v = &job->view;
	struct decision *d = &job->decision;

	*d = (struct decision){.channel = job->walk->channel->index,
	    .model = job->walk->plan.model,
	    .account = v->account,
	    .result = v->reason.result,
	    .by_session = v->by_session,
	    .kind = v->kind,
	    .share = 1};
	for (size_t i = 0; v->by_draw && i < job->nseen; i++)
		if (i == 0 || job->seen[i].share > d->share) {
			d->account = job->seen[i].account;
			d->share = job->seen[i].share;
		}
	job->decided = true;
}

static enum store_rc
look_at_channel(struct job *job)
{
	struct walk *w = job->walk;
	struct queue_who who = {job->x->slot, w->wish.pool->channels[w->channel->index].number, 0};
	unsigned waiting = 0;
	enum store_rc rc;

	job->nseen = 0;
	walk_note_answers(w);
	w->wish.may_queue = w->channel->policy.pool.queue_timeout_ms > 0;
	rc = pick_explain(job->txn, job->x->slot, &w->wish, job->x->now, gather, job, &job->view);
	if (rc == STORE_OK)
		rc = queue_count(job->txn, &who, &waiting);
	if (rc != STORE_OK)
		return rc;
	put_channel(job, waiting);
	w->reason = job->view.reason;
	if (!job->decided && (w->reason.result == PICK_TAKEN || w->reason.result == PICK_WAITING))
		decide(job);
	walk_note_reason(w);
	return STORE_OK;
}

/* Of several that may be chosen the likeliest stands for them. */
static enum store_rc
elect(struct job *job, struct walk_elect *e)
{
	*e = (struct walk_elect){
	    .walk = job->walk,
	    .slot = job->x->slot,
	    .arena = job->x->arena,
	    .size = job->x->size,
	    .now = job->x->now,
	    .rule = walk_rule(job->walk, 0),
	    .every = true,
	};
	e->rule.likeliest = true;
	return walk_elect(job->txn, e);
}

static enum store_rc
go_on(struct job *job, bool *more_out)
{
	struct walk *w = job->walk;
	struct walk_elect e = {.target = ELECT_NOBODY};
	enum store_rc rc = w->candidates == NULL || w->last_chance ? STORE_OK : elect(job, &e);

	if (rc != STORE_OK)
		return rc;
	*more_out = e.target != ELECT_NOBODY;
	if (*more_out)
		walk_take(w, e.target, job->x->arena);
	else
		*more_out = walk_next_channel(w, job->x->arena);
	return STORE_OK;
}

/* Where it begins, and where it could go. */
static enum store_rc
put_way(struct job *job)
{
	struct walk *w = job->walk;
	struct walk_elect e = {.target = ELECT_NOBODY};
	enum store_rc rc = w->candidates == NULL ? STORE_OK : elect(job, &e);

	if (rc != STORE_OK)
		return rc;
	explain_way_targets(&job->emit, w, &e.rule, job->x->task);
	if (e.target != ELECT_NOBODY)
		walk_take(w, e.target, job->x->arena);
	rc = pick_chain(job->txn, w->wish.pool, w->plan.first.channel, job->x->now, w->answers);
	if (rc != STORE_OK)
		return rc;
	explain_way_chain(&job->emit, w);
	if (w->plan.visited == 0 && walk_largest_window(w) == 0)
		(void)walk_next_channel(w, job->x->arena);
	return STORE_OK;
}

/* The way of a request on which nobody serves; behind the decision it goes on only to show the other channels. */
static enum store_rc
put_channels(struct job *job)
{
	struct walk *w = job->walk;
	struct pick_reason last = w->reason; /* of no pick, if there is no channel to look at */
	enum store_rc rc = STORE_OK;
	bool more = w->plan.visited > 0;

	emit_array(&job->emit, "channels");
	while (more && rc == STORE_OK && !(w->last_chance && job->decided)) {
		rc = look_at_channel(job);
		last = w->reason;
		if (rc == STORE_OK)
			rc = go_on(job, &more);
	}
	emit_end(&job->emit);
	w->reason = last;
	return rc;
}

static void
put_head(struct job *job)
{
	const struct explain *x = job->x;
	struct emit *e = &job->emit;

	emit_text(e, "model", x->model);
	emit_some(e, "client", x->client);
	emit_some(e, "realm", job->walk->wish.realm);
	emit_z(e, "session", x->session == NULL || x->session[0] == '\0' ? NULL : x->session);
	emit_time(e, "now", x->now);
	emit_bool(e, "degraded", x->degraded);
}

static const char *
way_name(const struct decision *d)
{
	if (d->result == PICK_WAITING)
		return "queue";
	if (d->kind == SLOT_PROBE)
		return "probe";
	return d->by_session ? "session" : "draw";
}

static void
put_decision(struct job *job)
{
	const struct conf_channel *channel =
	    &job->walk->wish.pool->conf->channels[job->decision.channel];
	const struct decision *d = &job->decision;
	struct emit *e = &job->emit;

	if (!job->decided) {
		emit_null(e, "would");
		return;
	}
	emit_object(e, "would");
	emit_text(e, "channel", channel->name);
	emit_text(e, "model", d->model);
	if (d->result == PICK_WAITING)
		emit_null(e, "account");
	else
		emit_text(e, "account", channel->accounts[d->account].id);
	emit_z(e, "by", way_name(d));
	emit_bool(e, "permit", d->kind == SLOT_PERMIT);
	emit_real(e, "share", d->share, 4);
	emit_end(e);
}

static void
put_refusal(struct job *job)
{
	struct emit *e = &job->emit;
	struct walk_end end;

	if (job->decided) {
		emit_null(e, "refusal");
		return;
	}
	job->walk->exhausted = true;
	end = walk_end(job->walk, job->x->now);
	if (walk_largest_window(job->walk) > 0)
		end = (struct walk_end){400, "context_length_exceeded",
		    "the prompt is larger than the window of any target", -1, false};
	emit_object(e, "refusal");
	emit_i64(e, "status", end.status);
	emit_z(e, "code", end.code);
	emit_z(e, "message", end.message);
	if (end.retry_after_s < 0)
		emit_null(e, "retry_after_s");
	else
		emit_i64(e, "retry_after_s", end.retry_after_s);
	emit_end(e);
}

struct look {
	struct job *job;
	struct buf *out;
};

static enum store_rc
explain_in(struct txn *txn, void *arg)
{
	struct look *look = arg;
	struct job *job = look->job;
	const struct walk *given = job->x->walk;
	size_t nchannels = given->wish.pool->conf->nchannels;
	enum store_rc rc;

	job->txn = txn;
	job->decided = false;
	*job->walk = *given;
	walk_part(job->walk, job->x->arena);
	job->walk->answers =
	    arena_alloc(job->x->arena, (nchannels + 1) * sizeof *job->walk->answers);
	buf_clear(look->out);
	emit_init(&job->emit, look->out);
	emit_object(&job->emit, NULL);
	put_head(job);
	rc = put_way(job);
	if (rc != STORE_OK)
		return rc;
	rc = put_channels(job);
	put_decision(job);
	put_refusal(job);
	emit_end(&job->emit);
	return rc;
}

/* Not in the arena: how many accounts there are has nothing to do with how large a request may be. */
static struct pick_seen *
seen_new(const struct conf *conf)
{
	size_t most = 1;
	struct pick_seen *seen;

	for (size_t i = 0; i < conf->nchannels; i++)
		if (conf->channels[i].naccounts > most)
			most = conf->channels[i].naccounts;
	seen = calloc(most, sizeof *seen);
	if (seen == NULL)
		die("no memory for %zu accounts", most);
	return seen;
}

enum err
explain_json(const struct explain *explain, struct buf *out, struct why *why)
{
	struct job job = {
	    .x = explain,
	    .walk = arena_alloc(explain->arena, sizeof *job.walk),
	    .seen = seen_new(explain->walk->wish.pool->conf),
	};
	struct look look = {&job, out};
	enum store_rc rc = env_view(explain->env, explain_in, &look);

	free(job.seen);
	if (rc == STORE_OK)
		return ERR_OK;
	err_why(why, "store: %s", env_error(explain->env));
	return ERR_STORE;
}
