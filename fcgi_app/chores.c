#include "chores.h"

#include "alert.h"
#include "balance.h"
#include "base/clock.h"
#include "context_store.h"
#include "errand.h"
#include "probe_run.h"
#include "recall_store.h"
#include "store/book.h"
#include "store/cooldown.h"
#include "store/job.h"
#include "store/ledger.h"
#include "store/price.h"
#include "store/sticky.h"
#include "store/tally.h"
#include "store/told.h"

#include <stdio.h>

#define SWEEP_ROWS 256
#define SWEEP_TALKS 16 /* each of many rows */
#define COOLDOWN_SWEEP_MS 10000
#define LEDGER_SWEEP_MS 600000
#define KEPT_SWEEP_MS 60000
#define BALANCE_LOOK_MS 10000
#define ALERT_LOOK_MS 1000

/* One job on its way; the claim's cursor is kept for its next run. */
struct chore_run {
	struct serve *s;
	struct wall_ms now;
	struct job_claim claim;
	int64_t period_ms;
	bool more; /* a part of the work is left: due again at once */
};

static enum store_rc
sweep_cooldowns(struct txn *txn, void *arg)
{
	const struct chore_run *run = arg;

	return cooldown_sweep(txn, run->now, SWEEP_ROWS);
}

static enum store_rc
sweep_sessions(struct txn *txn, void *arg)
{
	struct chore_run *run = arg;

	return sticky_sweep(txn, run->now, SWEEP_ROWS, run->claim.cursor, &run->claim.cursor);
}

static enum store_rc
sweep_told(struct txn *txn, void *arg)
{
	struct chore_run *run = arg;

	return told_sweep(txn, run->now, SWEEP_ROWS, run->claim.cursor, &run->claim.cursor);
}

static enum store_rc
sweep_ledger(struct txn *txn, void *arg)
{
	struct chore_run *run = arg;
	const struct conf *conf = run->s->conf;
	unsigned removed;
	enum store_rc rc = ledger_sweep(txn, ledger_day(run->now), SWEEP_ROWS, &removed);

	for (size_t c = 0; c < conf->nchannels && rc == STORE_OK; c++)
		rc = price_sweep(txn, run->s->pool->channels[c].number,
		    conf->channels[c].policy.pool.cost_ttl_ms, run->now, SWEEP_ROWS);
	return rc;
}

/* Small batches, each its own transaction, so that nobody waits long for the lock. */
static void
run_in_store(struct chore_run *run, env_fn *fn)
{
	if (env_update(run->s->env, fn, run) != STORE_OK)
		log_fields(run->s->log, LOG_LEVEL_WARN, run->now, "housekeeping failed",
		    LOG_Z("job", job_table[run->claim.id].name),
		    LOG_Z("why", env_error(run->s->env)));
}

static void
run_cooldowns(struct chore_run *run)
{
	run_in_store(run, sweep_cooldowns);
}

static void
run_sessions(struct chore_run *run)
{
	/* bindings first, then what is known of the conversations; a run begins where the last one ended */
	bool told = told_is_place(run->claim.cursor);

	for (unsigned batch = 0; batch < 64; batch++) {
		run_in_store(run, told ? sweep_told : sweep_sessions);
		if (run->claim.cursor != 0)
			continue;
		if (told)
			break;
		told = true;
	}
}

static void
run_kept(struct chore_run *run)
{
	bool responses = true, talks = true;

	for (unsigned batch = 0; batch < 16 && (responses || talks); batch++) {
		responses = responses && recall_store_sweep(run->s, run->now, SWEEP_ROWS);
		talks = talks && context_store_sweep(run->s, run->now, SWEEP_TALKS);
	}
}

static void
run_ledger(struct chore_run *run)
{
	run_in_store(run, sweep_ledger);
}

static void
run_recover(struct chore_run *run)
{
	run->more = probe_run(run->s, PROBE_RECOVERY, &run->claim.cursor);
}

static void
run_active(struct chore_run *run)
{
	run->more = probe_run(run->s, PROBE_ACTIVE, &run->claim.cursor);
}

static void
run_balance(struct chore_run *run)
{
	run->more = balance_run(run->s, &run->claim.cursor);
}

static void
run_alert(struct chore_run *run)
{
	run->more = alert_run(run->s, &run->claim.cursor);
}

static void
tell_book(struct serve *s, enum store_rc rc, bool news, struct wall_ms now)
{
	if (rc != STORE_OK && news)
		log_fields(s->log, LOG_LEVEL_ERROR, now,
		    "requests go on, but a power cut would lose what happens now: saving failed, it is "
		    "tried again",
		    LOG_Z("why", env_error(s->env)));
	else if (news)
		log_fields(
		    s->log, LOG_LEVEL_INFO, now, "saving works again", LOG_Z("what", "book"));
}

static void
run_book(struct chore_run *run)
{
	struct book_report report;
	enum store_rc rc = book_save(run->s->env, &report);

	tell_book(run->s, rc, report.news, run->now);
}

void
chores_save_hard(struct serve *s, struct wall_ms now)
{
	struct book_report report;
	enum store_rc rc;

	if (!s->hard_facts || s->env == NULL)
		return;
	rc = s->nhard <= SERVE_HARD_MAX ? book_save_now(s->env, s->hard, s->nhard, &report)
	                                : book_save(s->env, &report);
	s->hard_facts = false;
	s->nhard = 0;
	tell_book(s, rc, report.news, now);
}

static int64_t
every_book(const struct conf *conf)
{
	(void)conf;
	return BOOK_PERIOD_MS;
}

static int64_t
every_cooldowns(const struct conf *conf)
{
	(void)conf;
	return COOLDOWN_SWEEP_MS;
}

static int64_t
every_sessions(const struct conf *conf)
{
	return conf->sticky.gc_interval_ms;
}

static int64_t
every_ledger(const struct conf *conf)
{
	(void)conf;
	return LEDGER_SWEEP_MS;
}

static int64_t
every_kept(const struct conf *conf)
{
	(void)conf;
	return KEPT_SWEEP_MS;
}

static int64_t
every_recover(const struct conf *conf)
{
	return conf->probe.recover_every_ms;
}

static int64_t
every_active(const struct conf *conf)
{
	return conf->probe.active_every_ms;
}

static int64_t
every_balance(const struct conf *conf)
{
	return balance_is_wanted(conf) ? BALANCE_LOOK_MS : 0;
}

static int64_t
every_alert(const struct conf *conf)
{
	return alert_is_wanted(conf) ? ALERT_LOOK_MS : 0;
}

static const struct chore {
	enum job_id id;
	int64_t (*every_ms)(const struct conf *conf); /* 0 = never */
	void (*run)(struct chore_run *run);
	bool calls; /* providers or people */
	/* Nothing to be done although it is due: asked without the writer's lock. */
	enum store_rc (*idle)(
	    struct txn *txn, const struct serve *s, uint64_t cursor, bool *idle_out);
} table[] = {
    {JOB_BOOK_SAVE, every_book, run_book, false, NULL},
    {JOB_SWEEP_COOLDOWNS, every_cooldowns, run_cooldowns, false, NULL},
    {JOB_SWEEP_SESSIONS, every_sessions, run_sessions, false, NULL},
    {JOB_LEDGER_SWEEP, every_ledger, run_ledger, false, NULL},
    {JOB_SWEEP_KEPT, every_kept, run_kept, false, NULL},
    {JOB_ALERT, every_alert, run_alert, true, alert_idle},
    {JOB_BALANCE, every_balance, run_balance, true, NULL},
    {JOB_RECOVER, every_recover, run_recover, true, NULL},
    {JOB_ACTIVE, every_active, run_active, true, NULL},
};

/* A look without the writer's lock: usually nothing is due. */
struct due_look {
	const struct serve *s;
	struct wall_ms now;
	bool due[NELEM(table)];
};

static enum store_rc
look(struct txn *txn, void *arg)
{
	struct due_look *l = arg;

	for (size_t i = 0; i < NELEM(table); i++) {
		int64_t every = table[i].every_ms(l->s->conf);
		bool idle = false;
		struct job_row row;
		enum store_rc rc = job_get(txn, table[i].id, &row);

		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		l->due[i] = every > 0 && (rc == STORE_NONE || row.due_ms <= l->now.v ||
		                             row.due_ms > l->now.v + every);
		if (!l->due[i] || table[i].idle == NULL)
			continue;
		rc = table[i].idle(txn, l->s, row.cursor, &idle);
		l->due[i] = !idle;
		if (rc != STORE_OK)
			return rc;
	}
	return STORE_OK;
}

static enum store_rc
claim(struct txn *txn, void *arg)
{
	struct chore_run *run = arg;

	return job_claim(txn, run->claim.id, run->now, run->period_ms, &run->claim);
}

static enum store_rc
done(struct txn *txn, void *arg)
{
	const struct chore_run *run = arg;
	enum store_rc rc = job_done(txn, &run->claim, run->now);

	if (rc == STORE_OK && run->more)
		rc = job_hurry(txn, run->claim.id, run->now);
	return rc == STORE_NONE ? STORE_OK : rc;
}

static bool
run_one(struct serve *s, const struct chore *chore, struct wall_ms now)
{
	struct chore_run run = {
	    .s = s, .now = now, .claim = {.id = chore->id}, .period_ms = chore->every_ms(s->conf)};

	if (env_update(s->env, claim, &run) != STORE_OK || !run.claim.claimed)
		return false;
	chore->run(&run);
	run.now = clock_wall();
	return env_update(s->env, done, &run) == STORE_OK;
}

static unsigned
run_due(struct serve *s, struct wall_ms now, bool may_call)
{
	struct due_look l = {.s = s, .now = now};
	unsigned n = 0;

	if (s->env == NULL || env_view(s->env, look, &l) != STORE_OK)
		return 0;
	for (size_t i = 0; i < NELEM(table) && !errand_must_return(s); i++)
		if (l.due[i] && (may_call || !table[i].calls))
			n += run_one(s, &table[i], clock_wall());
	return n;
}

unsigned
chores_run(struct serve *s, struct wall_ms now)
{
	s->away_since = clock_mono();
	alert_runs(s);
	return run_due(s, now, true);
}

unsigned
chores_run_stored(struct serve *s, struct wall_ms now)
{
	return run_due(s, now, false);
}

struct census {
	struct serve *s;
	struct wall_ms now;
	uint64_t order, was;
	unsigned accounts, active;
	bool degraded;
	struct journal_row event;
};

static enum store_rc
count_accounts(struct txn *txn, struct census *census)
{
	const struct conf *conf = census->s->conf;

	census->accounts = census->active = 0;
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t a = 0; a < conf->channels[c].naccounts; a++) {
			struct account_row row;

			if (!pool_has(census->s->pool, c, a) ||
			    account_get(txn, pool_ref(census->s->pool, c, a), &row) != STORE_OK)
				continue;
			census->accounts++;
			census->active += conf->channels[c].accounts[a].enabled &&
			                  health_state(&row, census->now) == HEALTH_ACTIVE;
		}
	return STORE_OK;
}

/* Accounts are counted only where it matters: every worker comes here once a second. */
static enum store_rc
judge_pool(struct txn *txn, void *arg)
{
	struct census *census = arg;
	double below = census->s->conf->degrade.below;
	enum store_rc rc = tally_get(txn, TALLY_DEGRADE, &census->order);

	if (rc == STORE_OK)
		rc = tally_get(txn, TALLY_DEGRADED, &census->was);
	census->degraded = census->order == TALLY_DEGRADE_ON;
	if (rc != STORE_OK || census->order != TALLY_DEGRADE_AUTO || below <= 0)
		return rc;
	rc = count_accounts(txn, census);
	census->degraded = census->accounts > 0 && census->active < below * census->accounts;
	return rc;
}

/* One process writes the change down. */
static enum store_rc
write_change(struct txn *txn, void *arg)
{
	struct census *census = arg;
	struct journal_row *event = &census->event;
	bool by_hand = census->order != TALLY_DEGRADE_AUTO;
	uint64_t was = 0;
	enum store_rc rc = tally_get(txn, TALLY_DEGRADED, &was);

	event->level = 0;
	if (rc != STORE_OK || (was != 0) == census->degraded)
		return rc;
	*event = (struct journal_row){
	    .level = census->degraded && !by_hand ? JOURNAL_ALERT : JOURNAL_WARN,
	    .at_ms = census->now.v,
	    .cause = "degrade",
	};
	snprintf(event->from, sizeof event->from, "%s", census->degraded ? "normal" : "degraded");
	snprintf(event->to, sizeof event->to, "%s", census->degraded ? "degraded" : "normal");
	if (by_hand)
		snprintf(event->rule, sizeof event->rule, "sluicectl degrade");
	else
		snprintf(event->rule, sizeof event->rule, "%u of %u accounts active",
		    census->active, census->accounts);
	rc = tally_set(txn, TALLY_DEGRADED, census->degraded);
	return rc == STORE_OK ? journal_add(txn, event) : rc;
}

bool
chores_degraded(struct serve *s, struct wall_ms now)
{
	struct census census = {.s = s, .now = now};

	if (s->env == NULL || env_view(s->env, judge_pool, &census) != STORE_OK)
		return false;
	if ((census.was != 0) != census.degraded &&
	    env_update(s->env, write_change, &census) == STORE_OK && census.event.level != 0)
		log_fields(s->log, LOG_LEVEL_WARN, now,
		    census.degraded ? "degraded: requests get degrade.message"
		                    : "no longer degraded: requests are served",
		    LOG_Z("why", census.event.rule));
	return census.degraded;
}
