/*
 * account - what is remembered of one account: the hot row that every pick reads, totals, and texts for people.
 *
 * Rows      KEY_HOT   channel, number / 31 -> 31 x struct account_row (64 bytes, version 1)
 *           KEY_STAT  channel, number      -> struct account_stat
 *           KEY_NOTE  channel, number      -> struct account_note, only once something happened
 * Units     *_ms wall milliseconds, 0 = never; credits in millionths
 * Errors    STORE_NONE no such row: the getters then give an empty one with the version set
 * Source    SPEC.md sections 7, 8, 14, 17; store.md decision 6
 */
#ifndef STORE_ACCOUNT_H
#define STORE_ACCOUNT_H

#include "store/env.h"

#include <string.h>

#define ACCOUNT_SHARD 31
#define ACCOUNT_NO_CREDITS INT64_MIN

enum account_flag {
	ACCOUNT_DISABLED = 1,
	ACCOUNT_GUESSED = 2,      /* the cooldown has no stated reset */
	ACCOUNT_MODELS = 4,       /* some model on it may be cooling: look at the pairs */
	ACCOUNT_BY_FAILURES = 8,  /* disabled by disable_after: a probe may bring it back */
	ACCOUNT_BREAKER_NET = 16, /* the breaker was opened by network or auth failures only */
	ACCOUNT_PICKED = 32,      /* was picked at least once */
	ACCOUNT_BY_OPERATOR = 64, /* disabled by a person: a new key does not enable it */
};

/* Read where it lies in the map (account_shard()), and there it lies at any even address. */
struct __attribute__((packed, aligned(2))) account_row {
	uint8_t version, flags;
	uint8_t cool_kind; /* an enumerator the caller chose: the verdict; 0 = none */
	uint8_t soft_streak, breaker_step, session_dead, auth_failed;
	uint8_t spare1;
	uint16_t fails, consecutive;
	uint32_t success, errors;
	/* numbers of write transactions (txn_number()), compared by difference */
	uint32_t picked_txn; /* the last lease that was settled was taken */
	uint32_t
	    failed_txn; /* the last counted failure was settled: leases from before it are the same incident */
	uint32_t cool_txn; /* the cooldown was set */
	int64_t cool_until_ms, breaker_until_ms, picked_ms;
	int64_t credits_micros;
};
_Static_assert(sizeof(struct account_row) == 64, "account rows are 64 bytes");

#define ACCOUNT_WINDOW 256 /* requests remembered as bits */

struct account_stat {
	uint8_t version, last_kind;
	uint8_t balance_tries; /* failed ones since balance_at_ms */
	uint8_t probe_result;  /* an enumerator the caller chose; 0 = never probed */
	uint16_t last_status, cool_status;
	uint8_t fingerprint[8];
	uint64_t calls, rate_limited;
	uint64_t prompt, completion, cached, reasoning; /* tokens; prompt includes cached */
	uint64_t latency_total_ms, latency_max_ms;
	int64_t last_error_ms, reset_at_ms, probe_at_ms;
	int64_t balance_at_ms;                     /* the credits were asked for */
	uint64_t failed_bits[ACCOUNT_WINDOW / 64]; /* newest request in bit 0 of word 0 */
	uint32_t window_n;
	uint32_t today;                     /* day number that the two counters below are of */
	uint32_t today_requests, latency_n; /* successes with a latency */
	uint64_t today_tokens;
};
_Static_assert(sizeof(struct account_stat) == 168, "account_stat has no padding");

struct account_note {
	uint8_t version, spare[7];
	char reason[160]; /* the upstream's words, cleaned */
	char rule[64];    /* what decided */
	char disabled_reason[160];
	char model[128]; /* that was asked for then; "" = none, or a name too long */
};

enum store_rc account_get(
    struct txn *txn, struct account_ref ref, struct account_row *row_out) STORE_MUST_CHECK;
enum store_rc account_put(
    struct txn *txn, struct account_ref ref, const struct account_row *row) STORE_MUST_CHECK;
enum store_rc account_stat_get(
    struct txn *txn, struct account_ref ref, struct account_stat *stat_out) STORE_MUST_CHECK;
enum store_rc account_stat_put(
    struct txn *txn, struct account_ref ref, const struct account_stat *stat) STORE_MUST_CHECK;
enum store_rc account_note_get(
    struct txn *txn, struct account_ref ref, struct account_note *note_out) STORE_MUST_CHECK;
enum store_rc account_note_put(
    struct txn *txn, struct account_ref ref, const struct account_note *note) STORE_MUST_CHECK;

/*
 * The rows of one shard as they lie in the map: good until the next write of this transaction; see
 * account_at() and account_copy(). *n_out is 0 where the shard is missing. For scanning a channel.
 */
enum store_rc account_shard(struct txn *txn, uint16_t channel, uint32_t shard,
    const char **rows_out, unsigned *n_out) STORE_MUST_CHECK;

/* Aligned as the row's type says, which is how LMDB lays values out. */
static inline const struct account_row *
account_at(const char *rows, unsigned at)
{
	return (const struct account_row *)(const void *)(rows + at * sizeof(struct account_row));
}

static inline void
account_copy(struct account_row *row_out, const char *rows, unsigned at)
{
	memcpy(row_out, rows + at * sizeof *row_out, sizeof *row_out);
}

void account_window_add(struct account_stat *stat, bool failed);
/* Requests and failures among the last `n` (at most ACCOUNT_WINDOW). */
void account_window(
    const struct account_stat *stat, unsigned n, unsigned *calls_out, unsigned *failures_out);

#endif
