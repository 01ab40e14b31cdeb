#include "pick.h"

#include "choose.h"

#include <string.h>

struct breaker_policy
pick_breaker_policy(const struct conf_policy *p)
{
	return (struct breaker_policy){
	    .triggers = p->channel_breaker.triggers,
	    .error_rate_micros = (int64_t)(p->channel_breaker.error_rate * 1e6 + 0.5),
	    .error_window_ms = p->channel_breaker.error_window_ms,
	    .error_min_requests = p->channel_breaker.error_min_requests,
	    .latency_ms = p->channel_breaker.latency_ms,
	    .latency_window_ms = p->channel_breaker.latency_window_ms,
	    .consecutive_fail = p->channel_breaker.consecutive_fail,
	    .recovery_timeout_ms = p->channel_breaker.recovery_timeout_ms,
	    .reopen_ms = p->channel_breaker.reopen_ms,
	    .half_open_requests = p->channel_breaker.half_open_requests,
	    .half_open_success = p->channel_breaker.half_open_success,
	};
}

/* Requests that may use the same accounts wait in one line. */
static uint32_t
wants_of(const struct choose *c)
{
	const struct pick_wish *wish = c->j.wish;
	uint64_t h = key_hash(0, wish->realm.p, wish->realm.n);

	if (wish->realm.n == 0 && wish->ntried == 0 && !c->j.pc->picky)
		return 0;
	for (unsigned i = 0; i < wish->ntried; i++)
		h = key_hash(h, &wish->tried[i].account, sizeof wish->tried[i].account);
	if (c->j.pc->picky)
		h = key_hash(h, wish->model, strlen(wish->model));
	return (uint32_t)(h ^ h >> 32) | 1;
}

static struct queue_who
who_of(const struct choose *c)
{
	return (struct queue_who){c->j.slot, c->j.pc->number, wants_of(c)};
}

/* Would we be let in? As queue_join(), without standing there. */
static enum store_rc
look_at_end(struct txn *txn, const struct queue_who *who, unsigned size, unsigned *before_out)
{
	enum store_rc rc = queue_count(txn, who, before_out);

	return rc == STORE_OK && *before_out >= size ? STORE_FULL : rc;
}

/* Whoever came before goes first; who finds nobody free stands at the end, or only `looks` at it. */
static enum store_rc
obey_queue(struct choose *c, bool looks)
{
	unsigned size = (unsigned)c->j.channel->policy.pool.queue_size, before;
	struct queue_who who = who_of(c);
	bool may = true;
	enum store_rc rc = STORE_OK;

	if (c->j.reason.result == PICK_TAKEN) {
		rc = (looks ? queue_look : queue_may_take)(c->j.txn, &who, &may);
		if (rc != STORE_OK || may)
			return rc;
		c->j.reason.result = PICK_FULL;
	}
	if (c->j.reason.result != PICK_FULL) /* who waited has nothing to wait for any more */
		return looks ? rc : queue_leave(c->j.txn, &who, &c->j.reason.wake);
	if (!c->j.wish->may_queue)
		return rc;
	rc = (looks ? look_at_end : queue_join)(c->j.txn, &who, size, &before);
	if (rc == STORE_OK)
		c->j.reason.result = PICK_WAITING;
	return rc == STORE_FULL ? STORE_OK : rc;
}

static enum store_rc
reserve_quota(struct choose *c, const struct choose_one *choice, struct pick_lease *lease)
{
	const struct conf_account *account = &c->j.channel->accounts[choice->account];
	struct quota_limits limits = judge_limits(account);
	struct quota_row row;
	enum store_rc rc;

	if (!quota_is_set(&limits))
		return STORE_OK;
	rc = quota_get(c->j.txn, lease->ref, &row);
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	quota_reserve(
	    &row, c->j.wish->tokens, judge_quota_time(c->j.channel, c->j.now), &lease->hold);
	lease->has_quota = true;
	return quota_put(c->j.txn, lease->ref, &row);
}

/* A first binding is made with the lease, so that two requests of one session cannot bind it twice. */
static enum store_rc
bind_session(struct choose *c, uint32_t number)
{
	const struct pick_wish *wish = c->j.wish;
	struct sticky_id id = {
	    wish->session, c->j.pc->number, c->j.now, wish->pool->conf->sticky.ttl_ms};

	if (wish->session == NULL || c->j.reason.session.bound)
		return STORE_OK;
	return sticky_put(c->j.txn, &id, number);
}

static enum store_rc
take_slot(struct choose *c, const struct choose_one *choice, struct pick_lease *lease)
{
	struct judge *j = &c->j;
	struct slot_row slot_row = {
	    .kind = (uint8_t)choice->kind,
	    .channel = lease->ref.channel,
	    .account = lease->ref.number,
	    .started_ms = j->now.v,
	    .taken_txn = lease->txn,
	    .round = c->breaker.round,
	    .tokens = lease->has_quota ? lease->hold.tokens : 0,
	    .model_hash = key_hash(0, j->wish->model, strlen(j->wish->model)),
	};

	return slot_take(j->txn, j->slot, &slot_row);
}

static enum store_rc
take(struct choose *c, const struct choose_one *choice, struct pick_lease *lease)
{
	struct judge *j = &c->j;
	struct queue_who who = who_of(c);
	enum store_rc rc;

	*lease = (struct pick_lease){
	    .taken = true,
	    .channel = j->wish->channel,
	    .account = choice->account,
	    .ref = {j->pc->number, j->pc->numbers[choice->account]},
	    .txn = txn_number(j->txn),
	    .round = c->breaker.round,
	    .kind = choice->kind,
	    .at = j->now,
	};
	rc = reserve_quota(c, choice, lease);
	if (rc == STORE_OK)
		rc = take_slot(c, choice, lease);
	if (rc == STORE_OK)
		rc = choose_remember(c, choice, lease->ref.number);
	if (rc == STORE_OK)
		rc = bind_session(c, lease->ref.number);
	return rc == STORE_OK ? queue_leave(j->txn, &who, &j->reason.wake) : rc;
}

struct job {
	const struct slot *slot;
	const struct pick_wish *wish;
	struct wall_ms now;
	struct pick_lease lease;
	struct pick_reason reason;
};

static enum store_rc
pick_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct choose_one choice;
	struct choose c;
	enum store_rc rc = choose_open(&c, txn, job->slot, job->wish, job->now);

	job->lease = (struct pick_lease){.taken = false};
	if (rc == STORE_OK)
		rc = choose_account(&c, &choice);
	if (rc == STORE_OK)
		rc = judge_free_dead(&c.j);
	if (rc == STORE_OK && c.j.nstrange > 0)
		rc = judge_mend(&c.j);
	if (rc == STORE_OK)
		rc = obey_queue(&c, false);
	if (rc == STORE_OK && c.j.reason.result == PICK_TAKEN)
		rc = take(&c, &choice, &job->lease);
	if (rc == STORE_OK)
		rc = choose_write(&c);
	judge_close(&c.j);
	job->reason = c.j.reason;
	return rc;
}

enum err
pick_take(struct env *env, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_lease *lease_out, struct pick_reason *reason_out,
    struct why *why)
{
	struct job job = {.slot = slot, .wish = wish, .now = now};
	enum store_rc rc = env_update(env, pick_in, &job);

	if (rc != STORE_OK) {
		err_why(why, "store: %s", env_error(env));
		return rc == STORE_BUSY ? ERR_TIMEOUT : ERR_STORE;
	}
	queue_wake(env, &job.reason.wake);
	*lease_out = job.lease;
	*reason_out = job.reason;
	return ERR_OK;
}

static enum store_rc
leave_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct choose c;
	struct queue_who who;

	c.j.wish = job->wish;
	c.j.slot = job->slot;
	c.j.pc = &job->wish->pool->channels[job->wish->channel];
	who = who_of(&c);
	return queue_leave(txn, &who, &job->reason.wake);
}

enum err
pick_leave(struct env *env, const struct slot *slot, const struct pick_wish *wish, struct why *why)
{
	struct job job = {.slot = slot, .wish = wish};

	if (env_update(env, leave_in, &job) != STORE_OK) {
		err_why(why, "store: %s", env_error(env));
		return ERR_STORE;
	}
	queue_wake(env, &job.reason.wake);
	return ERR_OK;
}

enum store_rc
pick_look(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_reason *reason_out)
{
	struct choose c;
	enum store_rc rc = choose_open(&c, txn, slot, wish, now);

	if (rc == STORE_OK)
		rc = choose_look(&c);
	judge_close(&c.j);
	*reason_out = c.j.reason;
	return rc;
}

enum store_rc
pick_explain(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, pick_seen_fn *fn, void *arg, struct pick_view *view_out)
{
	struct choose c;
	struct choose_one choice = {PICK_ANY, SLOT_FREE};
	enum store_rc rc = choose_open(&c, txn, slot, wish, now);

	if (rc == STORE_OK)
		rc = choose_account(&c, &choice);
	if (rc == STORE_OK)
		rc = choose_show(&c, fn, arg);
	if (rc == STORE_OK)
		rc = obey_queue(&c, true);
	judge_close(&c.j);
	*view_out = (struct pick_view){
	    .reason = c.j.reason,
	    .breaker = c.breaker,
	    .by_session = c.by_session,
	    .by_draw = !c.by_session && choice.kind != SLOT_PROBE,
	    .account = choice.account,
	    .kind = choice.kind,
	    .explores = c.explore,
	    .only_unbound = c.board.only_unbound,
	};
	return rc;
}

enum store_rc
pick_chain(struct txn *txn, const struct pool *pool, size_t channel, struct wall_ms now,
    enum breaker_answer *answers)
{
	const struct conf_channel *first = &pool->conf->channels[channel];

	for (size_t i = 0; i < first->nfallback; i++) {
		size_t at = first->fallback[i];
		struct breaker_policy policy =
		    pick_breaker_policy(&pool->conf->channels[at].policy);
		struct breaker_row row;
		enum store_rc rc = breaker_get(txn, pool->channels[at].number, &row);

		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		answers[at] = row.state == BREAKER_OPEN && row.until_ms <= now.v
		                  ? BREAKER_YES
		                  : breaker_admit(&row, &policy);
	}
	return STORE_OK;
}
