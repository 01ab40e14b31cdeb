/*
 * pool - one configuration joined with the store: which row belongs to which configured account.
 *
 * Made once per process and configuration, by enrolling every channel and account (a write transaction only when
 * something is new or a key changed). The pipeline holds a pool, never numbers.
 *
 * Errors    ERR_STORE with the store's text
 */
#ifndef POOL_H
#define POOL_H

#include "conf/conf.h"
#include "store/health.h"
#include "store/slot.h"
#include "store/target.h"

/* What a pick asks of an account's settings, dense and by account number: scanned for every request. */
struct pool_seat {
	uint32_t index; /* in conf_channel.accounts; UINT32_MAX: not configured */
	uint32_t limit; /* in flight; 0 = none */
	struct span id;
	int64_t priority;
	double weight;
	int64_t credits_micros; /* as configured; ACCOUNT_NO_CREDITS: not said */
	bool off;               /* enabled: false */
	bool picky;             /* has patterns for models */
	bool weightless;
	bool metered; /* has a quota */
};

#define POOL_NO_CHANNEL UINT16_MAX /* the store has not seen it: no row has this number */

struct pool_channel {
	uint16_t number;
	uint32_t naccounts;
	uint32_t *numbers;       /* [index in conf_channel.accounts] -> account number */
	uint32_t top;            /* largest number + 1 */
	struct pool_seat *seats; /* [account number] */
	struct health_policy health;
	bool picky;          /* some account has patterns for models */
	bool unweighted;     /* every account has weight 0: all are equal */
	uint8_t *judged;     /* scratch of a pick, per configured account: enum score_out */
	uint16_t *in_flight; /* scratch of a pick, per account number; all zero between picks */
	int32_t *smooth;     /* scratch of a pick: standings of the smooth round robin */
	uint32_t *bound;     /* scratch of a pick: sessions bound to each account */
};

struct pool {
	const struct conf *conf;
	struct pool_channel *channels; /* [index in conf.channels] */
	struct slot_list *slots;       /* scratch of a pick: large, so not on the stack */
};

/* `create` false (sluicectl, status): names that are missing in the store get no number (UINT32_MAX). */
enum err pool_open(struct env *env, const struct conf *conf, bool create, struct pool **pool_out,
    struct why *why) MUST_CHECK;
void pool_free(struct pool **pool);

struct account_ref pool_ref(const struct pool *pool, size_t channel, size_t account);
/* Number of the channel's day, in its timezone: for counters that start anew. */
uint32_t pool_day(const struct conf_channel *channel, struct wall_ms now);
/* When the channel's next day begins. */
struct wall_ms pool_next_day(const struct conf_channel *channel, struct wall_ms now);
/* Has it a row in the store? */
bool pool_has(const struct pool *pool, size_t channel, size_t account);

/* By what a model on a channel is judged: the same for all. */
struct target_policy pool_target_policy(const struct conf *conf);
struct target_ref pool_target(const struct pool *pool, size_t channel, struct span model);

#endif
