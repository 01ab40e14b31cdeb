/*
 * talk - conversations that are kept for clients: the turns of each as rows, in their order.
 *
 * Rows      of `book` alone; shelf.h has the sums and the pieces.
 *           KEY_TALK place            -> struct talk_row, client's name (not terminated); in the order of their last use,
 *                                        so that what was unused longest stands first; 0: sums
 *           KEY_TALK_NAME hash        -> struct talk_name of each conversation whose key has that hash
 *           KEY_TALK_TURN number, piece -> bytes of a turn; one that is shorter than a whole piece, and may be empty,
 *                                        ends its turn. The first turn has room before it.
 *           The key is a keyed hash (session.h): what a client called the conversation is not in the store.
 * Appending in one transaction: all turns or none; a reader sees whole exchanges only. Who appends holds the
 *           conversation (hold.h), so that turns of two requests do not mix. It may go meanwhile, dropped, expired or
 *           evicted: what was to be added would be a half of one, so who appends says how many turns it goes on with.
 * Bounds    one conversation by `max_bytes` of its turns, all by `max_total_bytes` of pages: the one that was unused
 *           longest goes first
 * Clock     used further ahead than the time to live: a clock was wrong, it has expired
 * Errors    STORE_FULL: the conversation, or the store, has no room for it; STORE_NONE: it has not the turns that it was
 *           to be continued from; others as in env.h
 * Source    SPEC.md sections 13, 15
 */
#ifndef STORE_TALK_H
#define STORE_TALK_H

#include "store/shelf.h"

#define TALK_KEY_BYTES 32
#define TALK_CLIENT_MAX 255
#define TALK_TURNS_MAX 60000

struct talk_head {
	uint8_t version, spare[3];
	uint32_t turns;
	uint64_t bytes; /* of turns */
	int64_t created_ms, used_ms;
	uint8_t key[TALK_KEY_BYTES];
};
_Static_assert(sizeof(struct talk_head) == 64, "talk_head has no padding");

struct talk_limits {
	struct wall_ms now;
	int64_t ttl_ms;
	uint64_t max_bytes, max_total_bytes;
};

/* Where the turns go: `room` gives a place for the bytes of all of them, and is asked again when the transaction runs
 * again, which begins anew; then `turn` gets each of them there, in their order. Not STORE_OK ends it. */
struct talk_reader {
	char *(*room)(const struct talk_head *head, void *arg);
	enum store_rc (*turn)(uint32_t place, struct env_bytes turn, void *arg);
	void *arg;
};
/* STORE_NONE: there is none, or it has expired. */
enum store_rc talk_read(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    const struct talk_reader *reader) STORE_MUST_CHECK;

/* The head alone; likewise. */
enum store_rc talk_find(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    struct talk_head *head_out) STORE_MUST_CHECK;

enum talk_first {
	TALK_APPEND,  /* all turns go to the end */
	TALK_REPLACE, /* turns[0] takes the place of the first one: another system text leads */
	TALK_PREPEND, /* turns[0] goes before the first one: a system text leads where none did */
};
struct talk_append {
	struct env_bytes client; /* who it is of, for people; for a new one alone */
	const struct env_bytes *turns;
	size_t nturns; /* at least one */
	uint32_t had;  /* turns that were there when it was read; 0 = there was none */
	enum talk_first first;
};
enum store_rc talk_append(struct txn *book, const uint8_t *key, const struct talk_append *append,
    const struct talk_limits *limits) STORE_MUST_CHECK;

/* STORE_NONE: there is none. */
enum store_rc talk_drop(
    struct txn *book, const uint8_t *key, const struct talk_limits *limits) STORE_MUST_CHECK;
/* Visit the heads of all that have not expired; the one that was unused longest comes first. */
typedef enum store_rc talk_head_fn(
    const struct talk_head *head, struct env_bytes client, void *arg);
enum store_rc talk_walk(struct txn *book, const struct talk_limits *limits, talk_head_fn *fn,
    void *arg) STORE_MUST_CHECK;
/* Remove up to `most` that have expired, or are too much. *removed_out < most: done. */
enum store_rc talk_sweep(struct txn *book, const struct talk_limits *limits, unsigned most,
    unsigned *removed_out) STORE_MUST_CHECK;
enum store_rc talk_sums(struct txn *book, struct shelf_sum *sum_out) STORE_MUST_CHECK;

#endif
