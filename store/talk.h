/*
 * talk - conversations that are kept for clients: the turns of each as rows, in their order.
 *
 * Rows      of `book` alone.
 *           KEY_TALK number                  -> struct talk_head, client's name (not terminated); 0: struct talk_sum
 *           KEY_TALK_NAME hash of the key    -> numbers of the conversations with that hash, 32 bytes of key each
 *           KEY_TALK_TURN number, place      -> a turn's bytes, in pieces (as kept.h) where it is large
 *           The key is a keyed hash (session.h): what a client called the conversation is not in the store.
 * Appending in one transaction: all turns or none; a reader sees whole exchanges only. Who appends holds the
 *           conversation (hold.h), so that turns of two requests do not mix.
 * Bounds    one conversation by `max_bytes`, all by `max_total_bytes`: the one that was unused longest goes first
 * Clock     used further ahead than the time to live: a clock was wrong, it has expired
 * Errors    STORE_FULL: the conversation, or the store, has no room for it; others as in env.h
 * Source    SPEC.md sections 13, 15
 */
#ifndef STORE_TALK_H
#define STORE_TALK_H

#include "store/env.h"

#define TALK_KEY_BYTES 32
#define TALK_CLIENT_MAX 255
#define TALK_TURNS_MAX 65535

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

/* Visit the turns in order, and before them the head; bytes are good during the call. Anything but STORE_OK ends it. */
typedef enum store_rc talk_turn_fn(uint32_t place, struct env_bytes turn, void *arg);
/* STORE_NONE: there is none, or it has expired. */
enum store_rc talk_read(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    struct talk_head *head_out, talk_turn_fn *fn, void *arg) STORE_MUST_CHECK;

struct talk_append {
	struct env_bytes client;
	const struct env_bytes *turns;
	size_t nturns;
	bool
	    replace_first; /* turns[0] takes the place of the first one: another system text leads */
};
enum store_rc talk_append(struct txn *book, const uint8_t *key, const struct talk_append *append,
    const struct talk_limits *limits) STORE_MUST_CHECK;

/* STORE_NONE: there is none. */
enum store_rc talk_drop(
    struct txn *book, const uint8_t *key, const struct talk_limits *limits) STORE_MUST_CHECK;
/* Visit the heads of all that have not expired, in the order of their making. */
typedef enum store_rc talk_head_fn(
    const struct talk_head *head, struct env_bytes client, void *arg);
enum store_rc talk_walk(struct txn *book, const struct talk_limits *limits, talk_head_fn *fn,
    void *arg) STORE_MUST_CHECK;
/* Remove up to `most` that have expired, or are too much. *removed_out < most: done. */
enum store_rc talk_sweep(struct txn *book, const struct talk_limits *limits, unsigned most,
    unsigned *removed_out) STORE_MUST_CHECK;

#endif
