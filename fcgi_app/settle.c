#include "settle.h"

#include "rest.h"
#include "settle_job.h"
#include "store/cooldown.h"
#include "store/tally.h"

#include <stdio.h>
#include <string.h>

const struct conf_channel *
settle_channel(const struct settle_job *job)
{
	return &job->pool->conf->channels[job->lease->channel];
}

struct journal_row *
settle_event(struct settle_job *job, enum journal_level level, const char *cause)
{
	const struct conf_channel *channel = settle_channel(job);
	struct journal_row *event;

	if (job->report.n == SETTLE_EVENTS_MAX)
		return NULL;
	event = &job->report.events[job->report.n++];
	*event = (struct journal_row){
	    .level = (uint8_t)level,
	    .status = (uint16_t)job->outcome->finding->status,
	    .at_ms = job->now.v,
	};
	text_clean(event->channel, sizeof event->channel, channel->name);
	text_clean(
	    event->account, sizeof event->account, channel->accounts[job->lease->account].id);
	snprintf(event->cause, sizeof event->cause, "%s", cause);
	if (job->outcome->finding->rule != NULL)
		text_clean(event->rule, sizeof event->rule, text_span(job->outcome->finding->rule));
	return event;
}

void
settle_event_states(
    struct journal_row *event, const char *from, const char *to, int64_t old_ms, int64_t new_ms)
{
	if (event == NULL)
		return;
	snprintf(event->from, sizeof event->from, "%s", from);
	snprintf(event->to, sizeof event->to, "%s", to);
	event->old_until_ms = old_ms;
	event->new_until_ms = new_ms;
}

/* Texts for people: why it rests, why it is disabled. */
static enum store_rc
write_note(struct txn *txn, const struct settle_job *job, bool disabled)
{
	const struct classify_finding *finding = job->outcome->finding;
	struct account_note note;
	enum store_rc rc = account_note_get(txn, job->lease->ref, &note);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	snprintf(note.reason, sizeof note.reason, "%.*s", (int)sizeof note.reason - 1,
	    finding->message[0] != '\0' ? finding->message : verdict_table[finding->verdict].name);
	if (!finding->reset.stated && verdict_table[finding->verdict].rate_limited &&
	    finding->message[0] == '\0')
		snprintf(note.reason, sizeof note.reason, "no hint");
	snprintf(note.rule, sizeof note.rule, "%.*s", (int)sizeof note.rule - 1,
	    finding->rule == NULL ? "" : finding->rule);
	/* the one that a recovery probe asks for */
	snprintf(note.model, sizeof note.model, "%s",
	    strlen(job->outcome->model) < sizeof note.model ? job->outcome->model : "");
	if (disabled)
		snprintf(note.disabled_reason, sizeof note.disabled_reason, "%s: %.*s",
		    verdict_table[finding->verdict].name, 120, note.reason);
	return account_note_put(txn, job->lease->ref, &note);
}

/* One model on this account rests. */
static enum store_rc
rest_model(struct txn *txn, struct settle_job *job, const struct rest *rest)
{
	const struct classify_finding *finding = job->outcome->finding;
	struct cooldown_pair pair;
	int64_t old_ms = 0;
	enum store_rc rc;

	if (job->outcome->model[0] == '\0')
		return STORE_OK;
	rc = cooldown_get(txn, job->lease->ref, job->outcome->model, &pair);
	if (rc == STORE_OK)
		old_ms = pair.row.until_ms;
	else if (rc != STORE_NONE)
		return rc;
	if (rest->until.v <= old_ms)
		return STORE_OK;
	memset(&pair, 0, sizeof pair);
	pair.row = (struct cooldown_row){
	    .kind = (uint8_t)finding->verdict,
	    .guessed = rest->guessed,
	    .status = (uint16_t)finding->status,
	    .set_txn = job->time.settled,
	    .until_ms = rest->until.v,
	    .reset_at_ms = rest->reset_at.v,
	};
	text_clean(pair.row.reason, sizeof pair.row.reason, text_span(finding->message));
	text_clean(pair.model, sizeof pair.model, text_span(job->outcome->model));
	job->row.flags |= ACCOUNT_MODELS;
	if (old_ms <= job->now.v) {
		struct journal_row *event =
		    settle_event(job, JOURNAL_INFO, verdict_table[finding->verdict].name);

		settle_event_states(event, "active", "cooling", old_ms, rest->until.v);
		if (event != NULL)
			text_clean(event->model, sizeof event->model, text_span(pair.model));
	}
	return cooldown_put(txn, job->lease->ref, &pair);
}

/* A guessed rest of this model that was set before the lease ends with its success. */
static enum store_rc
free_model(struct txn *txn, const struct settle_job *job)
{
	struct cooldown_pair pair;
	enum store_rc rc;

	if ((job->row.flags & ACCOUNT_MODELS) == 0 || job->outcome->model[0] == '\0')
		return STORE_OK;
	rc = cooldown_get(txn, job->lease->ref, job->outcome->model, &pair);
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (!pair.row.guessed ||
	    !health_after(job->time.settled, job->time.taken, pair.row.set_txn))
		return STORE_OK;
	return cooldown_del(txn, job->lease->ref, job->outcome->model);
}

static uint64_t
positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

/* Tokens in all, and those of the channel's day. */
static void
count_usage(struct settle_job *job)
{
	const struct dialect_usage *usage = job->outcome->usage;
	struct account_stat *stat = &job->stat;
	uint32_t today = pool_day(settle_channel(job), job->now);

	if (stat->today != today) {
		stat->today = today;
		stat->today_requests = 0;
		stat->today_tokens = 0;
	}
	stat->today_requests++;
	if (usage == NULL)
		return;
	stat->prompt += positive(usage->prompt);
	stat->completion += positive(usage->completion);
	stat->cached += positive(usage->cached);
	stat->reasoning += positive(usage->reasoning);
	stat->today_tokens += positive(usage->prompt) + positive(usage->completion);
}

static enum store_rc
apply_success(struct txn *txn, struct settle_job *job)
{
	uint64_t ms = job->outcome->latency_ms > 0 ? (uint64_t)job->outcome->latency_ms : 0;

	health_success(&job->row, &job->time, &job->change);
	account_window_add(&job->stat, false);
	job->stat.latency_total_ms += ms;
	job->stat.latency_n++;
	if (ms > job->stat.latency_max_ms)
		job->stat.latency_max_ms = ms;
	if (job->change.cool_ended)
		settle_event_states(settle_event(job, JOURNAL_INFO, "success"), "cooling", "active",
		    job->change.old_until_ms, 0);
	return free_model(txn, job);
}

static void
note_failure(struct settle_job *job, const struct verdict_row *row)
{
	const struct classify_finding *finding = job->outcome->finding;

	if (row->error || row->counts || row->channel_counts) {
		job->stat.last_error_ms = job->now.v;
		job->stat.last_kind = (uint8_t)finding->verdict;
		job->stat.last_status = (uint16_t)finding->status;
	}
	if (row->rate_limited)
		job->stat.rate_limited++;
}

/* breaker.ratio: that share of the last requests failed. */
static void
heed_ratio(struct settle_job *job)
{
	const struct conf_policy *policy = &settle_channel(job)->policy;
	unsigned calls, failures, n = ACCOUNT_WINDOW; /* more are not remembered */

	if (policy->breaker.ratio_requests < n)
		n = (unsigned)policy->breaker.ratio_requests;
	if (policy->breaker.ratio <= 0 || job->change.breaker_opened || !job->change.new_incident)
		return;
	account_window(&job->stat, n, &calls, &failures);
	if (calls >= n && failures >= policy->breaker.ratio * calls)
		health_open(&job->row, &job->pool->channels[job->lease->channel].health, job->now,
		    &job->change);
}

/* A counted failure of the account. */
static void
count_against(struct settle_job *job, const struct health_policy *policy)
{
	enum verdict verdict = job->outcome->finding->verdict;
	bool network = verdict == VERDICT_NETWORK || verdict == VERDICT_AUTH_FAILED;
	struct health_time time = job->time;

	/* a probe made while resting never escalates: it is part of the incident it probes */
	if (job->lease->kind == SLOT_PROBE)
		time.taken = job->row.failed_txn;
	health_failure(&job->row, &time, policy, network, &job->change);
	account_window_add(&job->stat, true);
	heed_ratio(job);
}

static void
count_failure(struct settle_job *job, const struct verdict_row *row)
{
	enum verdict verdict = job->outcome->finding->verdict;
	const struct health_policy *policy = &job->pool->channels[job->lease->channel].health;

	note_failure(job, row);
	if (row->counts && !job->alone)
		count_against(job, policy);
	else if (row->error)
		job->row.errors++;
	if (verdict == VERDICT_SESSION_DEAD && job->change.new_incident)
		health_session_dead(&job->row, policy, &job->change);
	if (verdict == VERDICT_AUTH_FAILED && job->change.new_incident)
		health_auth_failed(&job->row, policy, &job->change);
	if (verdict == VERDICT_SOFT_RATE && job->change.new_incident &&
	    job->row.soft_streak < UINT8_MAX)
		job->row.soft_streak++;
}

/* The journal's view of an account that changed state, or of a deadline that moved. */
static void
report_change(struct settle_job *job, enum health_state before, int64_t until_before)
{
	enum health_state after = health_state(&job->row, job->now);
	int64_t until = health_until_ms(&job->row, job->now);
	const char *kind = verdict_table[job->outcome->finding->verdict].name;
	const char *from = health_state_name(before), *to = health_state_name(after);

	if (job->change.disabled)
		settle_event_states(
		    settle_event(job, JOURNAL_ALERT, kind), from, "disabled", until_before, 0);
	if (job->change.breaker_opened)
		settle_event_states(settle_event(job, JOURNAL_WARN, "breaker"), from, to,
		    job->change.old_until_ms, job->row.breaker_until_ms);
	if (job->change.cool_set && !job->change.breaker_opened)
		settle_event_states(
		    settle_event(job,
		        job->outcome->finding->verdict == VERDICT_HARD_CREDIT ? JOURNAL_WARN
		                                                              : JOURNAL_INFO,
		        kind),
		    from, to, until_before, until);
}

static enum store_rc
apply_failure(struct txn *txn, struct settle_job *job)
{
	const struct classify_finding *finding = job->outcome->finding;
	const struct verdict_row *row = &verdict_table[finding->verdict];
	enum health_state before = health_state(&job->row, job->now);
	int64_t until_before = health_until_ms(&job->row, job->now);
	struct rest rest;
	enum store_rc rc = STORE_OK;

	count_failure(job, row);
	rest = rest_after(finding->verdict, finding->status, &finding->reset,
	    &settle_channel(job)->policy, job->row.soft_streak, job->now);
	if (rest.rests && (row->rest == REST_MODEL || (job->alone && row->counts))) {
		rc = rest_model(txn, job, &rest);
	} else if (rest.rests) {
		struct health_rest account_rest = {
		    (uint8_t)finding->verdict, rest.guessed, rest.until.v, job->time.settled};

		health_rest(&job->row, &account_rest, &job->change);
		if (job->change.cool_set) {
			job->stat.reset_at_ms = rest.reset_at.v;
			job->stat.cool_status = (uint16_t)finding->status;
		}
	}
	report_change(job, before, until_before);
	if (rc == STORE_OK &&
	    (job->change.cool_set || job->change.disabled || job->change.breaker_opened))
		rc = write_note(txn, job, job->change.disabled);
	return rc;
}

static enum store_rc
write_events(struct txn *txn, const struct settle_report *report)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < report->n && rc == STORE_OK; i++)
		rc = journal_add(txn, &report->events[i]);
	return rc;
}

/* The lease becomes part of the account's row only now: a pick writes its slot alone. */
static void
note_pick(struct settle_job *job)
{
	struct account_row *row = &job->row;

	if ((row->flags & ACCOUNT_PICKED) == 0 ||
	    health_after(job->time.settled, job->lease->txn, row->picked_txn)) {
		row->flags |= ACCOUNT_PICKED;
		row->picked_txn = job->lease->txn;
		row->picked_ms = job->lease->at.v;
	}
}

/* What is not there yet reads as empty. */
static enum store_rc
read_rows(struct txn *txn, struct settle_job *job)
{
	enum store_rc rc = account_get(txn, job->lease->ref, &job->row);

	if (rc == STORE_OK || rc == STORE_NONE)
		rc = account_stat_get(txn, job->lease->ref, &job->stat);
	return rc == STORE_NONE ? STORE_OK : rc;
}

static enum store_rc
settle_in(struct txn *txn, void *arg)
{
	struct settle_job *job = arg;
	enum store_rc rc = slot_free(txn, job->slot);

	job->report.n = 0;
	job->change = (struct health_change){.old_until_ms = 0};
	if (rc == STORE_OK || rc == STORE_NONE)
		rc = read_rows(txn, job);
	if (rc != STORE_OK)
		return rc;
	job->time = (struct health_time){job->lease->txn, txn_number(txn), job->now};
	note_pick(job);
	job->stat.calls++;
	count_usage(job);
	rc = settle_target(txn, job);
	if (rc != STORE_OK)
		return rc;
	rc = job->outcome->finding->verdict == VERDICT_OK ? apply_success(txn, job)
	                                                  : apply_failure(txn, job);
	if (rc == STORE_OK)
		rc = account_put(txn, job->lease->ref, &job->row);
	if (rc == STORE_OK)
		rc = account_stat_put(txn, job->lease->ref, &job->stat);
	if (rc == STORE_OK)
		rc = settle_around(txn, job);
	/* counters that are sums over accounts are not kept twice: every row more costs each request a page */
	if (rc == STORE_OK && job->outcome->finding->verdict == VERDICT_CANCELLED)
		rc = tally_add(txn, TALLY_CANCELLED, 1);
	return rc == STORE_OK ? write_events(txn, &job->report) : rc;
}

static enum store_rc
aside_in(struct txn *txn, void *arg)
{
	struct settle_job *job = arg;
	enum store_rc rc = slot_free(txn, job->slot);

	job->report.n = 0;
	job->change = (struct health_change){.old_until_ms = 0};
	return rc == STORE_OK || rc == STORE_NONE ? settle_aside(txn, job) : rc;
}

enum err
settle_lease(struct env *env, const struct slot *slot, const struct pool *pool,
    struct pick_lease *lease, const struct settle_outcome *outcome, struct wall_ms now,
    struct settle_report *report_out, struct why *why)
{
	struct settle_job job = {
	    .slot = slot, .pool = pool, .lease = lease, .outcome = outcome, .now = now};
	enum store_rc rc;

	if (!lease->taken || lease->settled)
		die("a lease was settled twice");
	job.charge = settle_charge(&job);
	rc = env_update(env, outcome->aside ? aside_in : settle_in, &job);
	lease->settled = true;
	report_out->n = 0;
	if (rc != STORE_OK) {
		err_why(why, "store: %s", env_error(env));
		return ERR_STORE;
	}
	queue_wake(env, &job.wake);
	job.report.hard = job.change.disabled || job.change.breaker_opened ||
	                  outcome->finding->verdict == VERDICT_HARD_CREDIT ||
	                  job.report.breaker.moved;
	*report_out = job.report;
	return ERR_OK;
}

static enum store_rc
release_in(struct txn *txn, void *arg)
{
	const struct slot *const *slot = arg;
	enum store_rc rc = slot_free(txn, *slot);

	return rc == STORE_NONE ? STORE_OK : rc;
}

bool
settle_release(struct env *env, const struct slot *slot)
{
	return env_update(env, release_in, &slot) == STORE_OK;
}
