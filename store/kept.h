/*
 * kept - texts that are kept for a client under a name, for a time: what conversations left behind.
 *
 * Rows      of `book` alone: `live`, and saving it, never see them.
 *           KEY_KEPT 0            -> struct shelf_sum
 *           KEY_KEPT number       -> struct kept_age, in the order of their making
 *           KEY_KEPT_NAME hashed  -> struct kept_name, client, name; 16 keys to a hash
 *           KEY_KEPT_TEXT number, piece -> bytes (shelf.h)
 * Bounds    by bytes of pages; what is oldest goes first
 * Clock     made further ahead than the time to live: a clock was wrong, it has expired
 * Errors    as in env.h
 * Source    SPEC.md sections 13, 15; store.md decision 1
 */
#ifndef STORE_KEPT_H
#define STORE_KEPT_H

#include "store/shelf.h"

#define KEPT_NAME_MAX 512                 /* bytes of a client's name, and of a text's */
#define KEPT_TEXT_MAX (UINT64_C(1) << 31) /* far below SHELF_PIECES_MAX */

struct kept_key {
	struct env_bytes client, name;
};

struct kept_limits {
	struct wall_ms now;
	int64_t ttl_ms;
	uint64_t max_bytes; /* of all texts */
};

/* Keep it; another of the same name goes. STORE_FULL: too large for the limits, or no room in the store. */
enum store_rc kept_put(struct txn *book, const struct kept_key *key, struct env_bytes text,
    const struct kept_limits *limits) STORE_MUST_CHECK;

/* Where to copy a text of n bytes; may be asked again when the transaction runs again. */
typedef char *kept_room_fn(size_t n, void *arg);
/* STORE_NONE: there is none, or it has expired. */
enum store_rc kept_get(struct txn *book, const struct kept_key *key,
    const struct kept_limits *limits, kept_room_fn *room, void *arg) STORE_MUST_CHECK;

/* STORE_NONE: there is none, or it has expired. */
enum store_rc kept_del(struct txn *book, const struct kept_key *key,
    const struct kept_limits *limits) STORE_MUST_CHECK;

/* Remove up to `most` that have expired, or are too much. *removed_out < most: done. */
enum store_rc kept_sweep(struct txn *book, const struct kept_limits *limits, unsigned most,
    unsigned *removed_out) STORE_MUST_CHECK;

enum store_rc kept_sums(struct txn *book, struct shelf_sum *sum_out) STORE_MUST_CHECK;

#endif
