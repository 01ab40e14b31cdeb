/*
 * slot - who is using an account right now.
 *
 * A lease is the slot of one worker, alive while the worker holds its byte of `slots.lock` (an OFD lock, POSIX where
 * OFD is missing): a worker that dies leaves the row behind, and whoever needs the account next frees it. Never by
 * time. In-flight is counted from the slots, never stored, so it cannot drift.
 *
 * Row       shard -> 31 x struct slot_row (64 bytes, version 1)
 * Caveats   one slot per process, opened after fork; never fork without exec while holding one (the child would keep
 *           it alive); slots.lock must not be deleted while in use
 * Errors    STORE_BUSY all 1,024 slots are held; others as in env.h
 * Memory    rows are copied into the caller's structs
 * Source    SPEC.md section 7; store.md decision 4
 */
#ifndef STORE_SLOT_H
#define STORE_SLOT_H

#include "store/env.h"

#define SLOT_MAX 1024

enum slot_kind {
	SLOT_FREE = 0,
	SLOT_REQUEST = 1,
	SLOT_PERMIT = 2, /* half-open permit of a channel breaker, together with the request */
	SLOT_PROBE = 3,  /* the one request that tries a cooling account */
};

struct slot_row {
	uint8_t version, kind;
	uint16_t channel;
	uint32_t account;
	uint64_t generation; /* grows with each take of this slot */
	int64_t started_ms;  /* wall */
	uint64_t model_hash;
	uint64_t tokens;    /* reserved quota; 0 = none */
	uint32_t pid;       /* for people only, never for liveness */
	uint32_t taken_txn; /* number of the transaction that took it */
	uint32_t round;     /* of the channel's breaker */
	uint8_t spare[12];
};
_Static_assert(sizeof(struct slot_row) == 64, "slot rows are 64 bytes");

struct slot; /* this process's own slot */

/* Claim the lowest free slot number for this process's life, and free what a dead former owner left there. */
enum store_rc slot_open(
    struct env *env, struct slot **slot_out, struct store_why *why) STORE_MUST_CHECK;
/* The lease that a dead former owner of our number had, as slot_open() found and freed it. False: none. */
bool slot_left(const struct slot *slot, struct slot_row *row_out);
/* Gives the number back; a row still in it is reaped like that of a dead process. */
void slot_close(struct slot **slot);
/* SLOT_MAX for a slot from slot_watch(). */
unsigned slot_number(const struct slot *slot);

/* Inside a transaction: write `row` into our slot (kind, channel, account ... filled in by the caller; version,
 * generation and pid are filled in here). Replaces what was in it. STORE_NONE: this slot only watches. */
enum store_rc slot_take(
    struct txn *txn, const struct slot *slot, const struct slot_row *row) STORE_MUST_CHECK;
/* Free our slot. STORE_NONE when it was free already. */
enum store_rc slot_free(struct txn *txn, const struct slot *slot) STORE_MUST_CHECK;

/* All busy slots whose row is in the store, dead or alive. At most SLOT_MAX. */
struct slot_list {
	unsigned n;
	struct slot_seen {
		unsigned number;
		struct slot_row row;
	} seen[SLOT_MAX];
};
enum store_rc slot_walk(struct txn *txn, struct slot_list *list_out) STORE_MUST_CHECK;

/* Is the holder of slot `number` alive? One's own slot is. When it cannot be told (`own` is NULL, the system refuses
 * to answer) the answer is yes: a live lease is never taken away. */
bool slot_lives(const struct slot *own, unsigned number);

/* Free every slot of (channel, account) whose holder is dead. Returns how many by *freed_out. */
enum store_rc slot_reap(struct txn *txn, const struct slot *own, struct account_ref account,
    unsigned *freed_out) STORE_MUST_CHECK;

/* For a process that only looks (sluicectl): a slot that owns no number but can test the others. */
enum store_rc slot_watch(
    struct env *env, struct slot **slot_out, struct store_why *why) STORE_MUST_CHECK;

#endif
