/*
 * quota - how much of what its owner set an account has used: requests and tokens of this minute and day, tokens in all.
 *
 * A request reserves what it is estimated to take, together with its lease; settling replaces that by what it took.
 * The first part is pure; the second keeps rows, only for accounts that have a quota.
 *
 * Windows   the clock minute and the caller's day (local to the channel's timezone), each counted from zero. Fixed, not
 *           sliding: it is told exactly when there is room again, and one request a minute stays one a minute. A request
 *           counts in the windows in which it was reserved; what it takes beyond its reservation, or after those windows
 *           have ended, is charged to the current ones. So no window exceeds a limit except by wrong estimates.
 * Clock     a time one minute or day before the row's counts as the row's (processes read the clock before they wait for
 *           the lock); one further back was a wrong clock and starts a new window.
 * Rows      KEY_QUOTA channel, number / 40 -> 40 x struct quota_row (48 bytes, version 1)
 * Source    SPEC.md sections 7 and 10
 */
#ifndef STORE_QUOTA_H
#define STORE_QUOTA_H

#include "store/env.h"

#include <string.h>

#define QUOTA_SHARD 40
#define QUOTA_HIGH_PERMILLE 900 /* from here on the weight is halved and an event raised */

/* 0 = no limit. */
struct quota_limits {
	int64_t total_tokens, rpm, rpd, tpm, tpd;
};

/* Which limit a request would break. The later one has room again, the larger the number. */
enum quota_limit {
	QUOTA_FITS = 0,
	QUOTA_RPM = 1,
	QUOTA_TPM = 2,
	QUOTA_RPD = 3,
	QUOTA_TPD = 4,
	QUOTA_TOTAL = 5
};

/* When there is room again. */
enum quota_frees {
	QUOTA_NOW,
	QUOTA_NEXT_MINUTE,
	QUOTA_NEXT_DAY,
	QUOTA_NEVER /* not before the limit is raised: used up, or the request alone is too large */
};

struct quota_fit {
	enum quota_limit hit;
	enum quota_frees frees;
};

struct quota_time {
	uint32_t minute; /* since 1970: wall ms / 60,000 */
	uint32_t day;    /* since 1970, local to the channel's timezone */
};

struct quota_row {
	uint8_t version, told; /* bits of enum quota_window already reported */
	uint16_t spare;
	uint32_t minute, day;
	uint32_t minute_requests, day_requests, spare2;
	uint64_t minute_tokens, day_tokens, total_tokens; /* used and reserved */
};
_Static_assert(sizeof(struct quota_row) == 48, "quota rows are 48 bytes");

enum quota_window { QUOTA_MINUTE = 1, QUOTA_DAY = 2, QUOTA_LIFE = 4 };

/* What a lease reserved: the worker keeps it; of a dead worker's, tokens and time are in its slot. */
struct quota_hold {
	struct quota_time at;
	uint64_t tokens;
};

/* Is any limit set? */
bool quota_is_set(const struct quota_limits *limits);

/* Would a request of `tokens` fit? Changes nothing. */
struct quota_fit quota_fits(const struct quota_row *row, const struct quota_limits *limits,
    uint64_t tokens, struct quota_time now);

/* Count one request of `tokens`, whether it fits or not; *hold_out is for settling it. */
void quota_reserve(
    struct quota_row *row, uint64_t tokens, struct quota_time now, struct quota_hold *hold_out);

/* The request took `tokens`. `sent` false: it never reached the upstream and counts as no request. A dead worker's
 * reservation is given back with 0 tokens, as sent. */
void quota_settle(struct quota_row *row, const struct quota_hold *hold, uint64_t tokens, bool sent,
    struct quota_time now);

/* Largest used share of all limits, in thousandths, at most 1,000. 0 without limits. */
unsigned quota_used_permille(
    const struct quota_row *row, const struct quota_limits *limits, struct quota_time now);

/* What is left under each limit, for people and for the strategy `quota`; -1 = no limit. */
struct quota_limits quota_left(
    const struct quota_row *row, const struct quota_limits *limits, struct quota_time now);

/* What counts against each limit now, reservations included; also where there is no limit. */
struct quota_limits quota_used(const struct quota_row *row, struct quota_time now);

/* Windows (bits of enum quota_window) that have passed QUOTA_HIGH_PERMILLE and were not yet reported; marks them as
 * reported in the row. Call after reserving or settling, before the row is put. */
unsigned quota_crossed(
    struct quota_row *row, const struct quota_limits *limits, struct quota_time now);

/* STORE_NONE: nothing used yet, an empty row is given. */
enum store_rc quota_get(
    struct txn *txn, struct account_ref ref, struct quota_row *row_out) STORE_MUST_CHECK;
enum store_rc quota_put(
    struct txn *txn, struct account_ref ref, const struct quota_row *row) STORE_MUST_CHECK;

/* A pick's look at a channel's rows, as price_view: in the order of numbers, until the next write. */
struct quota_view {
	struct txn *txn;
	uint16_t channel;
	uint32_t shard;
	unsigned n;
	const unsigned char *rows;
};
void quota_open(struct txn *txn, uint16_t channel, struct quota_view *view_out);
/* The account's row, empty when nothing was used yet. */
void quota_at(struct quota_view *view, uint32_t number, struct quota_row *row_out);

#endif
