/*
 * sticky - which account a session is bound to, on one channel.
 *
 * A binding ends by itself after a time without use. A session has one on each channel that it uses: coming back from a
 * fallback channel it finds its old account. All of this works inside the caller's write transaction, so a first
 * binding is atomic: look, choose, bind in one.
 *
 * Rows      KEY_STICKY hash of session and channel -> struct sticky_row; TALLY_SESSIONS counts them
 *           KEY_BOUND channel, number / STICKY_SHARD -> u32 counts: bindings by account, kept exact by every change here.
 *           A binding that has expired counts until it is swept or replaced.
 * Limits    STICKY_MAX rows; beyond it a new one takes the place of the least recently used of a few neighbours
 * Renewal   at most 64 times in a ttl, so that a busy session does not write a page for each request: a binding may end
 *           ttl/64 early
 * Clock     last used more than an hour ahead of `now`: a clock was wrong, the binding has expired
 * Source    SPEC.md section 11; store.md decision 6; cases.md STICK-*
 */
#ifndef STORE_STICKY_H
#define STORE_STICKY_H

#include "store/env.h"

#define STICKY_MAX 1000000
#define STICKY_KEY_BYTES 32
#define STICKY_SHARD 496 /* u32 counts to a row: 1,984 bytes lie inside a leaf page */

struct sticky_row {
	uint8_t version, spare;
	uint16_t channel;
	uint32_t account;
	uint8_t key[STICKY_KEY_BYTES]; /* of the session: a keyed hash, never its name */
	int64_t bound_ms, expires_ms, last_used_ms;
};
_Static_assert(sizeof(struct sticky_row) == 64, "sticky_row has no padding");

/* A session on a channel, at a moment. */
struct sticky_id {
	const uint8_t *key; /* STICKY_KEY_BYTES */
	uint16_t channel;
	struct wall_ms now;
	int64_t ttl_ms;
};

/* STORE_NONE: not bound, or it has expired. */
enum store_rc sticky_get(
    struct txn *txn, const struct sticky_id *id, struct sticky_row *row_out) STORE_MUST_CHECK;
/* Bind to `account`, or move there, or renew what is bound to it. */
enum store_rc sticky_put(
    struct txn *txn, const struct sticky_id *id, uint32_t account) STORE_MUST_CHECK;
/* As sticky_put(), but without an effect when another request has moved it away from `from` meanwhile. */
enum store_rc sticky_move(
    struct txn *txn, const struct sticky_id *id, uint32_t from, uint32_t to) STORE_MUST_CHECK;
/* End it, if it is (still) bound to `from`. */
enum store_rc sticky_drop(
    struct txn *txn, const struct sticky_id *id, uint32_t from) STORE_MUST_CHECK;
/* End it. STORE_OK also when there is none. */
enum store_rc sticky_del(struct txn *txn, const struct sticky_id *id) STORE_MUST_CHECK;

/* Bindings of accounts 0 .. top-1 of a channel. For the choice of a session that has none. */
enum store_rc sticky_bound(
    struct txn *txn, uint16_t channel, uint32_t top, uint32_t *counts_out) STORE_MUST_CHECK;

/* Return false to stop. Expired ones are shown, too. */
typedef bool sticky_fn(const struct sticky_row *row, void *arg);
enum store_rc sticky_walk(struct txn *txn, sticky_fn *fn, void *arg) STORE_MUST_CHECK;
bool sticky_expired(const struct sticky_row *row, struct wall_ms now);

/*
 * Delete expired rows among the next `most` after `from` (0 = the first). *next_out is where to go on, in another
 * transaction; 0 when all were seen.
 */
enum store_rc sticky_sweep(struct txn *txn, struct wall_ms now, unsigned most, uint64_t from,
    uint64_t *next_out) STORE_MUST_CHECK;

/* Why the bound account did not serve. */
enum sticky_trouble {
	STICKY_FINE = 0,    /* it could be used */
	STICKY_SHORT = 1,   /* full, server, network, overload */
	STICKY_RESTING = 2, /* cooling, stated or guessed: `rest_left_ms` tells for how long */
	STICKY_LASTING =
	    3, /* everything else: disabled, out of credit, gone, lacks the model ... */
};

enum sticky_served {
	STICKY_BY_NOBODY = 0,
	STICKY_BY_BOUND = 1, /* the account it is bound to */
	STICKY_BY_OTHER = 2,
};

enum sticky_step {
	STICKY_KEEP = 0,  /* a detour, or nothing happened: leave the binding as it is */
	STICKY_RENEW = 1, /* its time starts anew: sticky_put() to the same account */
	STICKY_MOVE = 2,  /* bind to the account that served: sticky_move() */
	STICKY_DROP = 3,  /* sticky_drop() */
};

struct sticky_turn {
	bool bound; /* before this request; a binding that this request made itself is none */
	enum sticky_trouble trouble;
	int64_t rest_left_ms;
	bool unbind; /* sticky.on_trouble: no detours */
	int64_t detour_max_ms;
	enum sticky_served served;
};
enum sticky_step sticky_decide(const struct sticky_turn *turn);

#endif
