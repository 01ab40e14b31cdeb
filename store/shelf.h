/*
 * shelf - what kept.h and talk.h have in common: rows of `book` in an order, the sums of all, and texts in pieces.
 *
 * Rows      kind 0 -> struct shelf_sum; kind number -> a row of whoever uses it, the first ones go first.
 *           Numbers come from sum.next and are never used again.
 *           Large texts lie in pieces, so that no piece needs many free pages beside each other:
 *           kind number, piece (16 bits) -> up to SHELF_PIECE bytes
 * Bounds    by bytes of pages
 * Errors    as in env.h
 */
#ifndef STORE_SHELF_H
#define STORE_SHELF_H

#include "store/env.h"

#define SHELF_PIECE (16 * 4096 - 16 - 8) /* a run of whole pages, with LMDB's head and the seal */
#define SHELF_PIECES_MAX 65536           /* of one number */

struct shelf_sum {
	uint8_t version, spare[7];
	uint64_t next, rows, bytes;
};
_Static_assert(sizeof(struct shelf_sum) == 32, "shelf_sum has no padding");

uint64_t shelf_key(enum key_kind kind, uint64_t number);
/* Zero where there is none yet. */
enum store_rc shelf_sums(
    struct txn *book, enum key_kind kind, struct shelf_sum *sum_out) STORE_MUST_CHECK;
enum store_rc shelf_sums_put(
    struct txn *book, enum key_kind kind, const struct shelf_sum *sum) STORE_MUST_CHECK;
/* A row of `bytes` is gone. */
void shelf_sums_less(struct shelf_sum *sum, uint64_t bytes);

/* Is a thing of that time over? So is one of a time further ahead than it may live: a clock was wrong. */
bool shelf_is_past(int64_t at_ms, struct wall_ms now, int64_t ttl_ms);

/* Bytes of pages for a text. */
uint64_t shelf_room(uint64_t n);

struct shelf_place {
	enum key_kind kind;
	uint64_t number, piece; /* the first one */
};
enum store_rc shelf_put(
    struct txn *book, struct shelf_place at, struct env_bytes text) STORE_MUST_CHECK;
/* STORE_BAD: there are not n bytes. */
enum store_rc shelf_copy(
    struct txn *book, struct shelf_place at, size_t n, char *dst) STORE_MUST_CHECK;
/* The bytes of one piece, as of txn_get(). */
enum store_rc shelf_get(
    struct txn *book, struct shelf_place at, struct env_bytes *piece_out) STORE_MUST_CHECK;
/* An empty piece. */
enum store_rc shelf_put_end(struct txn *book, struct shelf_place at) STORE_MUST_CHECK;
/* Visit the pieces from `at` on, before that of number `end`. */
enum store_rc shelf_walk(struct txn *book, struct shelf_place at, uint64_t end, env_row_fn *fn,
    void *arg) STORE_MUST_CHECK;
enum store_rc shelf_del(struct txn *book, struct shelf_place at, uint64_t pieces) STORE_MUST_CHECK;

/* Take the thing of that number off, with its sums, if it is over or `too_much`. STORE_NONE: it stays. */
typedef enum store_rc shelf_drop_fn(
    struct txn *book, uint64_t number, bool too_much, struct shelf_sum *sum, const void *limits);
struct shelf_eviction {
	enum key_kind kind;
	uint64_t most_bytes; /* that may be left */
	unsigned most;       /* to remove */
	shelf_drop_fn *drop;
	const void *limits;
};
/* From the first on, until one stays. The sums are the caller's to write. */
enum store_rc shelf_evict(struct txn *book, const struct shelf_eviction *eviction,
    struct shelf_sum *sum, unsigned *removed_out) STORE_MUST_CHECK;
/* The same by itself, with the sums. */
enum store_rc shelf_sweep(struct txn *book, const struct shelf_eviction *eviction,
    unsigned *removed_out) STORE_MUST_CHECK;

#endif
