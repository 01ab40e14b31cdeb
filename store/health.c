#include "store/health.h"

enum health_state
health_state(const struct account_row *row, struct wall_ms now)
{
	if (row->flags & ACCOUNT_DISABLED)
		return HEALTH_DISABLED;
	return health_until_ms(row, now) != 0 ? HEALTH_COOLING : HEALTH_ACTIVE;
}

const char *
health_state_name(enum health_state state)
{
	static const char *const names[] = {[HEALTH_ACTIVE] = "active",
	    [HEALTH_COOLING] = "cooling",
	    [HEALTH_DISABLED] = "disabled"};

	return names[state];
}

int64_t
health_until_ms(const struct account_row *row, struct wall_ms now)
{
	int64_t until = row->cool_until_ms;

	if (row->breaker_until_ms > until)
		until = row->breaker_until_ms;
	return until > now.v ? until : 0;
}

bool
health_after(uint32_t now, uint32_t a, uint32_t b)
{
	return now - a < now - b;
}

static void
end_cooldown(struct account_row *row)
{
	row->cool_until_ms = 0;
	row->cool_kind = 0;
	row->flags &= (uint8_t)~ACCOUNT_GUESSED;
}

void
health_success(
    struct account_row *row, const struct health_time *time, struct health_change *change)
{
	int64_t before = health_until_ms(row, time->now);

	row->success++;
	row->fails = row->consecutive = 0;
	row->session_dead = row->auth_failed = 0;
	if (!health_after(time->settled, time->taken, row->failed_txn))
		return;
	row->breaker_step = row->soft_streak = 0;
	row->breaker_until_ms = 0;
	row->flags &= (uint8_t)~ACCOUNT_BREAKER_NET;
	if ((row->flags & ACCOUNT_GUESSED) &&
	    health_after(time->settled, time->taken, row->cool_txn))
		end_cooldown(row);
	change->old_until_ms = before;
	change->cool_ended = before != 0 && health_until_ms(row, time->now) == 0;
}

static void
open_breaker(struct account_row *row, const struct health_policy *policy, struct wall_ms now,
    struct health_change *change)
{
	size_t step =
	    row->breaker_step < policy->nbackoff ? row->breaker_step : policy->nbackoff - 1;
	int64_t until = now.v + policy->backoff_ms[step];

	change->breaker_opened = true;
	change->old_until_ms = row->breaker_until_ms;
	if (until > row->breaker_until_ms)
		row->breaker_until_ms = until;
	if (row->breaker_step < UINT8_MAX)
		row->breaker_step++;
	row->fails = 0;
}

void
health_failure(struct account_row *row, const struct health_time *time,
    const struct health_policy *policy, bool network, struct health_change *change)
{
	row->errors++;
	change->new_incident = health_after(time->settled, time->taken, row->failed_txn);
	if (!change->new_incident)
		return;
	row->failed_txn = time->settled;
	if (row->consecutive < UINT16_MAX)
		row->consecutive++;
	if (row->fails < UINT16_MAX)
		row->fails++;
	if (policy->disable_after > 0 && row->consecutive >= policy->disable_after &&
	    (row->flags & ACCOUNT_DISABLED) == 0) {
		row->flags |= ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES;
		change->disabled = true;
	}
	if (row->fails == 1)
		row->flags |= ACCOUNT_BREAKER_NET;
	if (!network)
		row->flags &= (uint8_t)~ACCOUNT_BREAKER_NET;
	if (row->fails >= policy->threshold && policy->nbackoff > 0)
		open_breaker(row, policy, time->now, change);
}

static void
disable_at(struct account_row *row, uint8_t *count, int64_t limit, struct health_change *change)
{
	if (*count < UINT8_MAX)
		(*count)++;
	if (limit > 0 && *count >= limit && (row->flags & ACCOUNT_DISABLED) == 0) {
		row->flags |= ACCOUNT_DISABLED;
		change->disabled = true;
	}
}

void
health_session_dead(
    struct account_row *row, const struct health_policy *policy, struct health_change *change)
{
	disable_at(row, &row->session_dead, policy->session_dead_after, change);
}

void
health_auth_failed(
    struct account_row *row, const struct health_policy *policy, struct health_change *change)
{
	disable_at(row, &row->auth_failed, policy->auth_failed_after, change);
}

void
health_rest(struct account_row *row, const struct health_rest *rest, struct health_change *change)
{
	change->old_until_ms = row->cool_until_ms;
	if (rest->until_ms <= row->cool_until_ms)
		return;
	row->cool_until_ms = rest->until_ms;
	row->cool_kind = rest->kind;
	row->cool_txn = rest->txn;
	row->flags &= (uint8_t)~ACCOUNT_GUESSED;
	if (rest->guessed)
		row->flags |= ACCOUNT_GUESSED;
	change->cool_set = true;
}

void
health_order(struct account_row *row, enum health_order order)
{
	if (order == HEALTH_DISABLE) {
		row->flags |= ACCOUNT_DISABLED | ACCOUNT_BY_OPERATOR;
		return;
	}
	if (order == HEALTH_CLEAR || order == HEALTH_REVIVE) {
		end_cooldown(row);
		row->soft_streak = 0;
		row->flags &= (uint8_t)~ACCOUNT_MODELS;
	}
	if (order == HEALTH_REVIVE) {
		row->breaker_until_ms = 0;
		row->breaker_step = 0;
		row->fails = row->consecutive = 0;
	}
	if (order == HEALTH_ENABLE || order == HEALTH_REVIVE) {
		row->flags &= (uint8_t) ~(ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES |
		                          ACCOUNT_BY_OPERATOR | ACCOUNT_BREAKER_NET);
		row->session_dead = row->auth_failed = 0;
	}
}
