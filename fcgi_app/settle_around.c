#include "settle_job.h"

#include <stdio.h>

/* What is no request of the channel's window says nothing of it either: the permit goes back. */
static enum breaker_probe
probe_result(enum verdict verdict)
{
	if (!verdict_table[verdict].channel_requests)
		return BREAKER_PROBE_NEUTRAL;
	return verdict == VERDICT_OK ? BREAKER_PROBE_OK : BREAKER_PROBE_FAILED;
}

static void
breaker_event(struct settle_job *job)
{
	const struct breaker_change *change = &job->report.breaker;
	struct journal_row *event;

	if (!change->moved)
		return;
	event = settle_event(job, change->warn ? JOURNAL_WARN : JOURNAL_INFO, "channel breaker");
	settle_event_states(event, breaker_state_name(change->from), breaker_state_name(change->to),
	    change->old_until_ms, change->until_ms);
	if (event == NULL)
		return;
	event->account[0] = '\0';
	event->status = 0;
	text_clean(event->rule, sizeof event->rule, text_span(change->text));
	if (change->trigger != 0)
		snprintf(
		    event->cause, sizeof event->cause, "%s", breaker_trigger_name(change->trigger));
}

/* The channel's windows and half-open probes. */
static enum store_rc
feed_breaker(struct txn *txn, struct settle_job *job)
{
	const struct verdict_row *row = &verdict_table[job->outcome->finding->verdict];
	struct breaker_policy policy = pick_breaker_policy(&settle_channel(job)->policy);
	struct breaker_outcome outcome = {
	    .requests = row->channel_requests,
	    .failed = row->channel_counts,
	    .first_content_ms = job->outcome->first_content_ms,
	    .permit = job->lease->kind == SLOT_PERMIT,
	    .probe = probe_result(job->outcome->finding->verdict),
	    .round = job->lease->round,
	};
	struct breaker_row breaker;
	enum store_rc rc = breaker_get(txn, job->lease->ref.channel, &breaker);

	job->report.breaker = (struct breaker_change){.write = false};
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	breaker_result(&breaker, &outcome, &policy, job->now, &job->report.breaker);
	breaker_event(job);
	return job->report.breaker.write ? breaker_put(txn, job->lease->ref.channel, &breaker)
	                                 : STORE_OK;
}

static struct sticky_turn
turn_of(const struct conf *conf, const struct settle_session *session, enum sticky_served served)
{
	return (struct sticky_turn){
	    .bound = session->found.bound && !session->ours,
	    .trouble = session->found.trouble,
	    .rest_left_ms = session->found.rest_left_ms,
	    .unbind = conf->sticky.on_trouble == CONF_TROUBLE_UNBIND,
	    .detour_max_ms = conf->sticky.detour_max_ms,
	    .served = served,
	};
}

/* Who served decides about the binding: it stays, its time starts anew, or it moves. */
static enum store_rc
settle_session(struct txn *txn, const struct settle_job *job)
{
	const struct settle_session *session = job->outcome->session;
	const struct conf *conf = job->pool->conf;
	uint32_t served = job->lease->ref.number;
	struct sticky_id id;
	struct sticky_turn turn;

	if (session == NULL || job->outcome->finding->verdict != VERDICT_OK)
		return STORE_OK;
	id = (struct sticky_id){
	    session->key, job->lease->ref.channel, job->now, conf->sticky.ttl_ms};
	if (!session->found.bound)
		return STORE_OK; /* bound with this very lease */
	turn = turn_of(
	    conf, session, served == session->found.account ? STICKY_BY_BOUND : STICKY_BY_OTHER);
	switch (sticky_decide(&turn)) {
	case STICKY_KEEP: break;
	case STICKY_RENEW: return sticky_put(txn, &id, served);
	case STICKY_MOVE: return sticky_move(txn, &id, session->found.account, served);
	case STICKY_DROP: return sticky_drop(txn, &id, session->found.account);
	}
	return STORE_OK;
}

static void
quota_event(struct settle_job *job)
{
	struct journal_row *event;

	if (job->quota_crossed == 0)
		return;
	event = settle_event(job, JOURNAL_WARN, "quota");
	settle_event_states(event, "active", "active", 0, 0);
	if (event != NULL)
		snprintf(event->rule, sizeof event->rule, "90%% of the quota%s%s%s used",
		    job->quota_crossed & QUOTA_MINUTE ? " of the minute" : "",
		    job->quota_crossed & QUOTA_DAY ? " of the day" : "",
		    job->quota_crossed & QUOTA_LIFE ? " in all" : "");
}

static const struct dialect_usage none = {
    .prompt = -1, .completion = -1, .cached = -1, .cache_write = -1, .reasoning = -1, .total = -1};

struct charge
settle_charge(const struct settle_job *job)
{
	const struct dialect_usage *usage = job->outcome->usage;
	struct charge c = {
	    .conf = job->pool->conf,
	    .lease = job->lease,
	    .verdict = job->outcome->finding->verdict,
	    .usage = usage == NULL ? &none : usage,
	    .client = job->outcome->client,
	    .model = job->outcome->model,
	    .sent = job->outcome->sent,
	    .now = job->now,
	};

	c.cost_micros = charge_cost(&c);
	return c;
}

static enum store_rc
charge(struct txn *txn, struct settle_job *job)
{
	enum store_rc rc = charge_apply(txn, &job->charge, &job->quota_crossed);

	quota_event(job);
	return rc;
}

enum store_rc
settle_around(struct txn *txn, struct settle_job *job)
{
	struct queue_who who = {job->slot, job->lease->ref.channel, 0};
	enum store_rc rc = charge(txn, job);

	if (rc == STORE_OK)
		rc = feed_breaker(txn, job);
	if (rc == STORE_OK)
		rc = settle_session(txn, job);
	return rc == STORE_OK ? queue_next(txn, &who, &job->wake) : rc;
}

enum store_rc
settle_aside(struct txn *txn, struct settle_job *job)
{
	struct queue_who who = {job->slot, job->lease->ref.channel, 0};
	struct charge c = {
	    .conf = job->pool->conf, .lease = job->lease, .usage = &none, .now = job->now};
	enum store_rc rc = charge_nothing(txn, &c);

	if (rc == STORE_OK)
		rc = feed_breaker(txn, job);
	return rc == STORE_OK ? queue_next(txn, &who, &job->wake) : rc;
}

struct unserved {
	const struct pool *pool;
	const struct settle_session *session;
	struct wall_ms now;
};

/* The account could be used when it was picked, and failed since: for how long is it lost? */
static enum store_rc
look_again(struct txn *txn, const struct unserved *u, struct settle_session *session)
{
	struct account_ref ref = {
	    u->pool->channels[session->channel].number, session->found.account};
	struct account_row row;
	enum store_rc rc = account_get(txn, ref, &row);
	int64_t until;

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	until = health_until_ms(&row, u->now);
	if (row.flags & ACCOUNT_DISABLED) {
		session->found.trouble = STICKY_LASTING;
	} else if (until != 0) {
		session->found.trouble = STICKY_RESTING;
		session->found.rest_left_ms = until - u->now.v;
	}
	return STORE_OK;
}

static enum store_rc
unserved_in(struct txn *txn, void *arg)
{
	const struct unserved *u = arg;
	struct settle_session session = *u->session;
	struct sticky_id id = {session.key, u->pool->channels[session.channel].number, u->now,
	    u->pool->conf->sticky.ttl_ms};
	struct sticky_turn turn;
	enum store_rc rc = STORE_OK;

	if (session.found.bound && session.found.trouble == STICKY_FINE)
		rc = look_again(txn, u, &session);
	turn = turn_of(u->pool->conf, &session, STICKY_BY_NOBODY);
	if (rc != STORE_OK || sticky_decide(&turn) != STICKY_DROP)
		return rc;
	return session.ours ? sticky_del(txn, &id) : sticky_drop(txn, &id, session.found.account);
}

enum err
settle_unserved(struct env *env, const struct pool *pool, const struct settle_session *session,
    struct wall_ms now, struct why *why)
{
	struct unserved u = {pool, session, now};

	if (!session->found.bound && !session->ours)
		return ERR_OK;
	if (env_update(env, unserved_in, &u) == STORE_OK)
		return ERR_OK;
	err_why(why, "store: %s", env_error(env));
	return ERR_STORE;
}
