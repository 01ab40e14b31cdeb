/*
 * health - what success and failure do to an account's hot row. Pure: no store, no clock.
 *
 * Leases and settlements are ordered by the numbers of their transactions. A failure of a lease taken before the account's last counted failure is the
 * same incident: it may extend a deadline but raises neither streak nor breaker count.
 *
 * Rules     a deadline never moves earlier except by success, balance refresh, probe success or an operator
 * Source    SPEC.md sections 6 and 8
 */
#ifndef STORE_HEALTH_H
#define STORE_HEALTH_H

#include "store/account.h"

enum health_state { HEALTH_ACTIVE, HEALTH_COOLING, HEALTH_DISABLED };

struct health_policy {
	int64_t threshold;         /* fails that open the account breaker */
	const int64_t *backoff_ms; /* its steps; the last repeats */
	size_t nbackoff;
	int64_t disable_after; /* consecutive failures, 0 = never */
	int64_t session_dead_after, auth_failed_after;
};

/* What a step did, for the journal. */
struct health_change {
	bool new_incident;
	bool breaker_opened;
	bool disabled;
	bool cool_ended; /* a success ended a guessed cooldown or the breaker */
	bool cool_set;   /* the deadline moved later */
	int64_t old_until_ms;
};

enum health_state health_state(const struct account_row *row, struct wall_ms now);
const char *health_state_name(enum health_state state);
/* When the account can be picked again: the later of cooldown and breaker; 0 = now. */
int64_t health_until_ms(const struct account_row *row, struct wall_ms now);

/* When a lease was taken and when it is settled. */
struct health_time {
	uint32_t taken, settled; /* transactions */
	struct wall_ms now;
};

void health_success(
    struct account_row *row, const struct health_time *time, struct health_change *change);

/* A counted failure. `network` tells whether a free probe may undo a breaker that it opens. */
void health_failure(struct account_row *row, const struct health_time *time,
    const struct health_policy *policy, bool network, struct health_change *change);

/* One more of a kind that disables after so many in a row. */
void health_session_dead(
    struct account_row *row, const struct health_policy *policy, struct health_change *change);
void health_auth_failed(
    struct account_row *row, const struct health_policy *policy, struct health_change *change);

/* Rest until then. `kind` is the caller's; `guessed`: nobody stated it; `txn`: the transaction that says so. */
struct health_rest {
	uint8_t kind;
	bool guessed;
	int64_t until_ms;
	uint32_t txn;
};
void health_rest(
    struct account_row *row, const struct health_rest *rest, struct health_change *change);
/*
 * Was transaction `a` after `b`? Both were before `now` or are it: what counts is their age, since the numbers wrap and a
 * mark may be older than half of them.
 */
bool health_after(uint32_t now, uint32_t a, uint32_t b);

/* What an operator may do. */
enum health_order { HEALTH_ENABLE, HEALTH_DISABLE, HEALTH_REVIVE, HEALTH_CLEAR };
void health_order(struct account_row *row, enum health_order order);

#endif
