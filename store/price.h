/*
 * price - what one model costs on one account: smoothed over its answers, forgotten after a while.
 *
 * The first part is arithmetic. The second keeps the prices so that a pick, which asks for one model on every account
 * of a channel, reads neighbours: one model's prices lie in an array by account number.
 *
 * Rows      KEY_PRICE channel, hash of the model (26 bits), 0        -> the model's full name
 *           KEY_PRICE channel, hash of the model, 1 + number / 120   -> 120 x struct price_entry
 *           KEY_PRICE channel, all ones                              -> struct price_channel
 *           At most PRICE_MODELS_MAX models a channel; a model gets its rows with its first success.
 * Units     *_micros millionths of the account's currency for 1,000 tokens; alpha_ppm millionths; *_ms wall, 0 = never
 * Errors    where there is no room for a model its price is not kept and STORE_OK is returned
 * Source    SPEC.md sections 7 and 14
 */
#ifndef STORE_PRICE_H
#define STORE_PRICE_H

#include "store/env.h"

#include <string.h>

#define PRICE_MODELS_MAX 512 /* a channel; caller-chosen names must not fill the store */
#define PRICE_MODEL_MAX 255  /* bytes; longer names are not kept */
#define PRICE_SHARD 120
#define PRICE_NONE (-1)                   /* no observation */
#define PRICE_MOST INT64_C(1000000000000) /* a million for 1,000 tokens */

/* The best tier that is not empty stays in a pick. The order is the meaning. */
enum price_tier {
	PRICE_FREE = 0,
	PRICE_UNMEASURED = 1, /* never, or longer than cost_ttl ago */
	PRICE_PAID = 2,
	PRICE_TIER__MAX
};

struct price_entry {
	int64_t micros;
	int64_t at_ms; /* the newest observation */
};
_Static_assert(sizeof(struct price_entry) == 16, "price entries are 16 bytes");

/* "free", "unmeasured", "paid" */
const char *price_tier_name(enum price_tier tier);

/*
 * One request's price for 1,000 tokens. PRICE_NONE when the cost is unknown (negative). What cost anything is never
 * rounded to free. A cost without tokens counts as that of 1,000.
 */
int64_t price_unit(int64_t cost_micros, uint64_t tokens);

/* One step of smoothing, rounded towards the observation, so that equal observations are reached: paid never becomes
 * free by rounding, and free observations make it free in the end. */
int64_t price_smooth(int64_t old_micros, int64_t observed_micros, uint32_t alpha_ppm);

/* Is it time that one pick goes to an unmeasured account although a free one is there? explore_ms 0 = never. */
bool price_explores(int64_t last_explore_ms, int64_t explore_ms, struct wall_ms now);

struct price_rule {
	uint32_t alpha_ppm;
	int64_t ttl_ms;
};

/* Smooth an observation into the price; starts anew where the old one has expired. PRICE_NONE: nothing to do. */
enum store_rc price_observe(struct txn *txn, struct account_ref ref, const char *model,
    int64_t unit_micros, const struct price_rule *rule, struct wall_ms now) STORE_MUST_CHECK;

/* STORE_NONE: never measured. Expired ones are given too. */
enum store_rc price_get(struct txn *txn, struct account_ref ref, const char *model,
    struct price_entry *entry_out) STORE_MUST_CHECK;

/*
 * A pick's look at one model on one channel. Reads rows where they lie in the map, so it is good until the next write of
 * this transaction. Ask in the order of account numbers.
 */
struct price_view {
	struct txn *txn;
	uint64_t key;               /* of the model's first row; 0 = nothing is known of it */
	uint64_t valid_ms, ttl2_ms; /* an entry's time is valid from here, for so long */
	uint64_t first;             /* the number that entries[0] is of */
	unsigned n;
	const unsigned char *entries;
};
enum store_rc price_open(struct txn *txn, uint16_t channel, const char *model, int64_t ttl_ms,
    struct wall_ms now, struct price_view *view_out) STORE_MUST_CHECK;
/* For price_tier() alone: load the entries around `number`. Is that one among them? */
bool price_load(struct price_view *view, uint32_t number);

static inline enum price_tier
price_tier(struct price_view *view, uint32_t number)
{
	struct price_entry entry;

	if (view->key == 0 || (number - view->first >= view->n && !price_load(view, number)))
		return PRICE_UNMEASURED;
	memcpy(&entry, view->entries + (number - view->first) * sizeof entry, sizeof entry);
	if ((uint64_t)entry.at_ms - view->valid_ms > view->ttl2_ms)
		return PRICE_UNMEASURED;
	return entry.micros == 0 ? PRICE_FREE : PRICE_PAID;
}

/* When a pick of the channel last went exploring, 0 = never; read only where cost_explore is set. */
enum store_rc price_explored_get(
    struct txn *txn, uint16_t channel, int64_t *last_ms_out) STORE_MUST_CHECK;
enum store_rc price_explored_put(
    struct txn *txn, uint16_t channel, struct wall_ms now) STORE_MUST_CHECK;

struct price_seen {
	struct account_ref ref;
	const char *model;
	struct price_entry entry;
};
/* `fn` returns false to stop. */
typedef bool price_fn(const struct price_seen *seen, void *arg);
enum store_rc price_walk(struct txn *txn, price_fn *fn, void *arg) STORE_MUST_CHECK;

/* Forget up to `most` models of the channel that have no price from within `ttl_ms`. */
enum store_rc price_sweep(struct txn *txn, uint16_t channel, int64_t ttl_ms, struct wall_ms now,
    unsigned most) STORE_MUST_CHECK;

#endif
