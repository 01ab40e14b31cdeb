#include "store/breaker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION 1
#define MILLION 1000000

/* One step on its way. */
struct step {
	struct breaker_row *row;
	const struct breaker_policy *policy;
	struct wall_ms now;
	struct breaker_change *change;
};

const char *
breaker_state_name(enum breaker_state state)
{
	static const char *const names[] = {[BREAKER_CLOSED] = "closed",
	    [BREAKER_OPEN] = "open",
	    [BREAKER_HALF_OPEN] = "half-open"};

	return names[state];
}

const char *
breaker_trigger_name(unsigned trigger)
{
	switch (trigger) {
	case BREAKER_POOL_EXHAUSTED: return "pool_exhausted";
	case BREAKER_ERROR_RATE: return "error_rate";
	case BREAKER_LATENCY: return "latency";
	case BREAKER_CONSECUTIVE_FAIL: return "consecutive_fail";
	}
	return "";
}

void
breaker_sums(const struct breaker_row *row, const struct breaker_policy *policy, struct wall_ms now,
    struct breaker_sums *sums_out)
{
	window_sum(
	    &row->errors, policy->error_window_ms, now, &sums_out->requests, &sums_out->failures);
	window_sum(&row->latency, policy->latency_window_ms, now, &sums_out->latency_n,
	    &sums_out->latency_sum_ms);
}

/* Words */

static void __attribute__((format(printf, 3, 4)))
say(const struct step *step, bool warn, const char *fmt, ...)
{
	va_list ap;

	step->change->warn = warn;
	va_start(ap, fmt);
	vsnprintf(step->change->text, sizeof step->change->text, fmt, ap);
	va_end(ap);
}

struct words {
	char text[80];
};

/* As in the configuration: "60s", "1500ms". */
static struct words
duration_words(int64_t ms)
{
	struct words words;

	if (ms % 1000 == 0)
		snprintf(words.text, sizeof words.text, "%llds", (long long)(ms / 1000));
	else
		snprintf(words.text, sizeof words.text, "%lldms", (long long)ms);
	return words;
}

/* Steps */

static void
begin(const struct step *step)
{
	enum breaker_state state = (enum breaker_state)step->row->state;

	*step->change = (struct breaker_change){
	    .from = state,
	    .to = state,
	    .trigger = step->row->trigger,
	    .old_until_ms = step->row->until_ms,
	    .until_ms = step->row->until_ms,
	};
}

static void
move(const struct step *step, enum breaker_state to, unsigned trigger, int64_t until_ms)
{
	struct breaker_row *row = step->row;

	row->state = (uint8_t)to;
	row->trigger = (uint8_t)trigger;
	row->until_ms = until_ms;
	row->since_ms = step->now.v;
	step->change->write = step->change->moved = true;
	step->change->to = to;
	step->change->until_ms = until_ms;
	if (trigger != 0)
		step->change->trigger = (uint8_t)trigger;
}

static int64_t
budget_of(const struct breaker_policy *policy)
{
	return policy->half_open_requests < 1 ? 1 : policy->half_open_requests;
}

/* Never more than can be sent: the channel could not close. */
static int64_t
needs_of(const struct breaker_policy *policy)
{
	int64_t budget = budget_of(policy);

	if (policy->half_open_success < 1)
		return 1;
	return policy->half_open_success < budget ? policy->half_open_success : budget;
}

unsigned
breaker_triggers(const struct breaker_row *row, const struct breaker_policy *policy)
{
	return row->overridden ? row->triggers : policy->triggers & BREAKER_TRIGGERS;
}

void
breaker_override(struct breaker_row *row, unsigned triggers)
{
	row->overridden = 1;
	row->triggers = (uint8_t)(triggers & BREAKER_TRIGGERS);
}

void
breaker_follow(struct breaker_row *row)
{
	row->overridden = row->triggers = 0;
}

static bool
too_many_errors(
    const struct breaker_sums *sums, const struct breaker_policy *policy, struct words *why)
{
	if (sums->failures == 0 || sums->requests < (uint64_t)policy->error_min_requests ||
	    sums->failures * MILLION < sums->requests * (uint64_t)policy->error_rate_micros)
		return false;
	snprintf(why->text, sizeof why->text, "%.1f%% >= %g%%",
	    100.0 * (double)sums->failures / (double)sums->requests,
	    (double)policy->error_rate_micros * 100 / MILLION);
	return true;
}

static bool
too_slow(const struct breaker_sums *sums, const struct breaker_policy *policy, struct words *why)
{
	int64_t mean_ms;

	if (sums->latency_n == 0)
		return false;
	mean_ms = (int64_t)(sums->latency_sum_ms / sums->latency_n);
	if (mean_ms < policy->latency_ms)
		return false;
	if (policy->latency_ms % 1000 == 0)
		snprintf(why->text, sizeof why->text, "%.1fs >= %llds", (double)mean_ms / 1000,
		    (long long)policy->latency_ms / 1000);
	else
		snprintf(why->text, sizeof why->text, "%lldms >= %lldms", (long long)mean_ms,
		    (long long)policy->latency_ms);
	return true;
}

/* An account that fails on while the probes of others pass would open the channel again and again. */
static void
learn_base(const struct step *step, uint32_t consecutive)
{
	struct breaker_row *row = step->row;

	if (!row->relearn && consecutive >= row->consecutive_base)
		return;
	row->relearn = 0;
	row->consecutive_base = consecutive < UINT16_MAX ? (uint16_t)consecutive : UINT16_MAX;
	step->change->write = true;
}

static bool
too_many_in_a_row(const struct step *step, const struct breaker_facts *facts, struct words *why)
{
	if (facts->consecutive < step->policy->consecutive_fail ||
	    facts->consecutive <= step->row->consecutive_base)
		return false;
	snprintf(why->text, sizeof why->text, "%u >= %lld", (unsigned)facts->consecutive,
	    (long long)step->policy->consecutive_fail);
	return true;
}

/* The trigger that holds, or 0. */
static unsigned
trigger_of(const struct step *step, const struct breaker_facts *facts, struct words *why)
{
	unsigned on = breaker_triggers(step->row, step->policy);
	struct breaker_sums sums;

	breaker_sums(step->row, step->policy, step->now, &sums);
	if ((on & BREAKER_ERROR_RATE) && too_many_errors(&sums, step->policy, why))
		return BREAKER_ERROR_RATE;
	if ((on & BREAKER_LATENCY) && too_slow(&sums, step->policy, why))
		return BREAKER_LATENCY;
	if ((on & BREAKER_CONSECUTIVE_FAIL) && too_many_in_a_row(step, facts, why))
		return BREAKER_CONSECUTIVE_FAIL;
	if ((on & BREAKER_POOL_EXHAUSTED) && !facts->active && facts->fallback) {
		*why = (struct words){"no account active"};
		return BREAKER_POOL_EXHAUSTED;
	}
	return 0;
}

static void
look_closed(const struct step *step, const struct breaker_facts *facts)
{
	struct words why;
	unsigned trigger;

	learn_base(step, facts->consecutive);
	trigger = trigger_of(step, facts, &why);
	if (trigger == 0)
		return;
	move(step, BREAKER_OPEN, trigger, step->now.v + step->policy->recovery_timeout_ms);
	say(step, true, "open: %s (%s)", breaker_trigger_name(trigger), why.text);
}

static void
close_early(const struct step *step, const char *why)
{
	move(step, BREAKER_CLOSED, 0, 0);
	say(step, false, "closed: %s", why);
}

static void
begin_round(const struct step *step)
{
	struct breaker_row *row = step->row;

	row->round++;
	row->sent = row->ok = row->failed = 0;
	move(step, BREAKER_HALF_OPEN, row->trigger, 0);
	say(step, false, "half-open: recovery time over (needs %lld/%lld)",
	    (long long)needs_of(step->policy), (long long)budget_of(step->policy));
}

/* A time further ahead than any setting allows was written by a wrong clock, or the setting has changed. */
static void
clamp_until(const struct step *step)
{
	const struct breaker_policy *p = step->policy;
	int64_t most =
	    p->recovery_timeout_ms > p->reopen_ms ? p->recovery_timeout_ms : p->reopen_ms;

	if (step->row->until_ms - step->now.v <= most)
		return;
	step->row->until_ms = step->change->until_ms = step->now.v + most;
	step->change->write = true;
	say(step, true, "open: its time lay too far ahead, next try in %s",
	    duration_words(most).text);
}

static void
look_open(const struct step *step, const struct breaker_facts *facts)
{
	struct breaker_row *row = step->row;

	if ((breaker_triggers(row, step->policy) & row->trigger) == 0) {
		close_early(step, "its trigger was switched off");
		return;
	}
	if (row->trigger == BREAKER_POOL_EXHAUSTED && (facts->active || !facts->fallback)) {
		close_early(step, facts->active ? "an account is active" : "no fallback is usable");
		return;
	}
	clamp_until(step);
	if (row->until_ms > step->now.v)
		return;
	if (facts->active) {
		begin_round(step);
		return;
	}
	row->until_ms = step->change->until_ms = step->now.v + step->policy->reopen_ms;
	step->change->write = true;
}

/* Enough probes passed, or too few remain: the round is over. */
static void
judge_round(const struct step *step)
{
	struct breaker_row *row = step->row;
	int64_t needs = needs_of(step->policy), budget = budget_of(step->policy);

	if (row->ok >= needs) {
		window_clear(&row->errors);
		window_clear(&row->latency);
		row->relearn = 1;
		move(step, BREAKER_CLOSED, 0, 0);
		say(step, false, "closed: probes passed (%u/%lld)", (unsigned)row->ok,
		    (long long)budget);
	} else if (row->failed > budget - needs) {
		move(step, BREAKER_OPEN, row->trigger, step->now.v + step->policy->reopen_ms);
		say(step, true, "open: probes failed, next try in %s",
		    duration_words(step->policy->reopen_ms).text);
	}
}

void
breaker_look(struct breaker_row *row, const struct breaker_facts *facts,
    const struct breaker_policy *policy, struct wall_ms now, struct breaker_change *change)
{
	struct step step = {row, policy, now, change};

	begin(&step);
	switch ((enum breaker_state)row->state) {
	case BREAKER_CLOSED: look_closed(&step, facts); break;
	case BREAKER_OPEN: look_open(&step, facts); break;
	case BREAKER_HALF_OPEN: judge_round(&step); break;
	}
	if (row->state == BREAKER_HALF_OPEN)
		row->sent = row->ok + row->failed +
		            (change->from == BREAKER_HALF_OPEN ? facts->permits : 0);
}

enum breaker_answer
breaker_admit(const struct breaker_row *row, const struct breaker_policy *policy)
{
	switch ((enum breaker_state)row->state) {
	case BREAKER_CLOSED: return BREAKER_YES;
	case BREAKER_HALF_OPEN:
		return row->sent < budget_of(policy) ? BREAKER_PERMIT : BREAKER_SPENT;
	case BREAKER_OPEN: break;
	}
	return BREAKER_NO;
}

void
breaker_permit(struct breaker_row *row)
{
	row->sent++;
}

static void
count_probe(const struct step *step, enum breaker_probe probe)
{
	struct breaker_row *row = step->row;

	step->change->write = true;
	switch (probe) {
	case BREAKER_PROBE_NEUTRAL: row->sent -= row->sent > row->ok + row->failed; return;
	case BREAKER_PROBE_OK: row->ok++; break;
	case BREAKER_PROBE_FAILED: row->failed++; break;
	}
	if (row->sent < row->ok + row->failed)
		row->sent = row->ok + row->failed;
	say(step, false, "probe %s (%u/%lld ok, %u/%lld sent)",
	    probe == BREAKER_PROBE_OK ? "ok" : "failed", (unsigned)row->ok,
	    (long long)needs_of(step->policy), (unsigned)row->sent,
	    (long long)budget_of(step->policy));
	judge_round(step);
}

void
breaker_result(struct breaker_row *row, const struct breaker_outcome *outcome,
    const struct breaker_policy *policy, struct wall_ms now, struct breaker_change *change)
{
	struct step step = {row, policy, now, change};
	unsigned on = breaker_triggers(row, policy);

	begin(&step);
	if (outcome->round != row->round)
		return;
	if (outcome->requests && (on & BREAKER_ERROR_RATE)) {
		window_add(&row->errors, policy->error_window_ms, now, outcome->failed);
		change->write = true;
	}
	if (outcome->first_content_ms >= 0 && (on & BREAKER_LATENCY)) {
		window_add(&row->latency, policy->latency_window_ms, now,
		    (uint64_t)outcome->first_content_ms);
		change->write = true;
	}
	if (outcome->permit && row->state == BREAKER_HALF_OPEN)
		count_probe(&step, outcome->probe);
}

/* Rows */

static bool
is_time(int64_t bucket)
{
	return bucket >= 0 && bucket <= WINDOW_LATEST;
}

/* What no version of ours writes must not reach an index or a switch. */
static bool
is_sane(const struct breaker_row *row)
{
	return row->version == VERSION && row->state <= BREAKER_HALF_OPEN &&
	       is_time(row->errors.newest) && is_time(row->latency.newest) &&
	       is_time(row->until_ms) && is_time(row->since_ms);
}

enum store_rc
breaker_get(struct txn *txn, uint16_t channel, struct breaker_row *row_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_BREAKER, channel, 0), &bytes);

	if (rc == STORE_OK && bytes.n == sizeof *row_out)
		memcpy(row_out, bytes.p, sizeof *row_out);
	if (rc == STORE_OK && bytes.n == sizeof *row_out && is_sane(row_out))
		return STORE_OK;
	*row_out = (struct breaker_row){.version = VERSION};
	return rc == STORE_OK ? STORE_NONE : rc;
}

enum store_rc
breaker_put(struct txn *txn, uint16_t channel, const struct breaker_row *row)
{
	struct breaker_row copy = *row;

	copy.version = VERSION;
	return txn_put(txn, key_of(KEY_BREAKER, channel, 0), &copy, sizeof copy);
}
