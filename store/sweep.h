/*
 * sweep - finds rows of a kind that are over, some at a time. A walk must not write, so removing them is the caller's.
 *
 * Clock     begun more than an hour ahead of `now`: a clock was wrong, it is over
 */
#ifndef STORE_SWEEP_H
#define STORE_SWEEP_H

#include "store/env.h"

#define SWEEP_FOUND_MAX 256 /* to be removed in one transaction */

/* Is a row over that counts from one time to another? */
bool sweep_has_expired(int64_t begun_ms, int64_t expires_ms, struct wall_ms now);

typedef bool sweep_fn(struct env_bytes row, struct wall_ms now);

struct sweep {
	enum key_kind kind;
	sweep_fn *is_over;
	struct wall_ms now;
	/* found, in their order */
	unsigned n;
	uint64_t key[SWEEP_FOUND_MAX];
};

/*
 * Look at up to `most` rows from `from` on, or from the first where it is no place of this kind. *next_out is where to go
 * on, in another transaction; 0 when all were seen.
 */
enum store_rc sweep_find(struct txn *txn, struct sweep *sweep, unsigned most, uint64_t from,
    uint64_t *next_out) STORE_MUST_CHECK;

#endif
