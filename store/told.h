/*
 * told - what kind of work a conversation is, as somebody told us; kept so that he is asked once.
 *
 * Rows      KEY_TASK, home of the session's key, way -> struct told_row. TOLD_HOMES homes with TOLD_WAYS ways each bound
 *           the whole; where a home is full the oldest row gives way.
 * Limits    names of TOLD_NAME_BYTES at most; none (n = 0) says that nobody could tell
 * Expiry    ttl after it was told or renewed. Told more than an hour ahead of `now`: a clock was wrong, it has expired.
 * Source    SPEC.md section 12
 */
#ifndef STORE_TOLD_H
#define STORE_TOLD_H

#include "store/env.h"

#define TOLD_HOMES 16384
#define TOLD_WAYS 8
#define TOLD_KEY_BYTES 32
#define TOLD_NAME_BYTES 64

struct told_row {
	uint8_t version, n;
	uint8_t spare[6];
	uint8_t key[TOLD_KEY_BYTES]; /* of the session: a keyed hash, never its name */
	char name[TOLD_NAME_BYTES];  /* n bytes of it */
	int64_t told_ms, expires_ms;
};
_Static_assert(sizeof(struct told_row) == 120, "told_row has no padding");

/* STORE_NONE: not told, or it has expired. `key` has TOLD_KEY_BYTES, here and below. */
enum store_rc told_get(struct txn *txn, const uint8_t *key, struct wall_ms now,
    struct told_row *row_out) STORE_MUST_CHECK;
/* What was told before is replaced. A name that is too long is cut. */
enum store_rc told_put(struct txn *txn, const uint8_t *key, struct env_bytes name,
    struct wall_ms now, int64_t ttl_ms) STORE_MUST_CHECK;
/* Half of its time is over: a put of the same name lets a conversation that goes on keep it. */
bool told_fades(const struct told_row *row, struct wall_ms now);

/*
 * Delete expired rows among the next `most` from `from` on (0 = the first). *next_out is where to go on, in another
 * transaction; 0 when all were seen.
 */
enum store_rc told_sweep(struct txn *txn, struct wall_ms now, unsigned most, uint64_t from,
    uint64_t *next_out) STORE_MUST_CHECK;
/* Is `from` a place in these rows? For a cursor that goes over several kinds. */
bool told_is_place(uint64_t from);

#endif
