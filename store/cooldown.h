/*
 * cooldown - until when an account, or one model on one account, rests.
 *
 * The first part is arithmetic: which deadline follows from a stated reset, a streak and the policy. The second keeps
 * the pairs: the rest of one model on one account, under a hash with the full key in the row.
 *
 * Rules     a stated reset is kept as it was and its effect capped; a guess doubles with each incident in a row up to
 *           its maximum; a deadline never moves earlier here
 * Row       KEY_PAIR hash -> struct cooldown_row and the model's name; at most COOLDOWN_PAIRS_MAX rows
 * Source    SPEC.md sections 6 and 8
 */
#ifndef STORE_COOLDOWN_H
#define STORE_COOLDOWN_H

#include "store/env.h"

#define COOLDOWN_PAIRS_MAX 20000 /* caller-chosen model names must not fill the store */
#define COOLDOWN_MODEL_MAX 255

/* One guess: `base`, doubled for every incident before this one, at most `max`. streak is 1 at the first. */
int64_t cooldown_guess_ms(int64_t base_ms, int64_t max_ms, unsigned streak);

/* The effective deadline of a stated reset: capped, and false when it says nothing usable (past or now). */
bool cooldown_stated(
    struct wall_ms reset_at, int64_t cap_ms, struct wall_ms now, struct wall_ms *until_out);

/* A stored deadline further ahead than any setting allows is a clock that was wrong: give the clamp. */
int64_t cooldown_clamp_ms(int64_t until_ms, int64_t most_ms, struct wall_ms now);

struct cooldown_row {
	uint8_t version, kind, guessed, model_n;
	uint16_t status, channel;
	uint32_t account, set_txn; /* number of the transaction that set it */
	int64_t until_ms, reset_at_ms;
	char reason[96];
};
_Static_assert(sizeof(struct cooldown_row) == 128, "cooldown_row has no padding");

struct cooldown_pair {
	struct cooldown_row row;
	char model[COOLDOWN_MODEL_MAX + 1];
};

enum store_rc cooldown_get(struct txn *txn, struct account_ref ref, const char *model,
    struct cooldown_pair *pair_out) STORE_MUST_CHECK;
/* Replaces the pair's row. STORE_OK without an effect when the table is full (a rest is a kindness, not a promise). */
enum store_rc cooldown_put(
    struct txn *txn, struct account_ref ref, const struct cooldown_pair *pair) STORE_MUST_CHECK;
enum store_rc cooldown_del(
    struct txn *txn, struct account_ref ref, const char *model) STORE_MUST_CHECK;
/* Delete every pair of an account. */
enum store_rc cooldown_del_all(struct txn *txn, struct account_ref ref) STORE_MUST_CHECK;

typedef void cooldown_fn(const struct cooldown_pair *pair, void *arg);
enum store_rc cooldown_walk(struct txn *txn, cooldown_fn *fn, void *arg) STORE_MUST_CHECK;
/* Delete up to `most` pairs that ended before `now`. */
enum store_rc cooldown_sweep(struct txn *txn, struct wall_ms now, unsigned most) STORE_MUST_CHECK;

#endif
