/*
 * pick - choose an account and take the lease, in one write transaction.
 *
 * Between processes there is no check-then-act: rows are read, judged, scored and the slot taken under the writer lock.
 * A full account whose leases belong to dead workers is freed on the way.
 *
 * Order     an eligible account by score.h; else, where somebody is only full, PICK_FULL; else one probe at a time of
 *           the earliest guessed cooldown or breaker (pool.all_cooling); else the reason why nobody can be had
 * Errors    ERR_STORE with the store's text; ERR_TIMEOUT the front lock was not had in time
 * Source    SPEC.md section 7
 */
#ifndef PICK_H
#define PICK_H

#include "pool.h"
#include "score.h"

#define PICK_TRIED_MAX 32
#define PICK_ANY SIZE_MAX

struct pick_wish {
	const struct pool *pool;
	size_t channel;    /* index in the configuration */
	const char *model; /* as the upstream knows it; "" = none */
	struct span realm; /* "" = any */
	size_t
	    insist; /* this account although it rests (overload asks the first one again), or PICK_ANY */
	uint64_t random;
	unsigned ntried;
	struct {
		size_t channel, account;
	} tried[PICK_TRIED_MAX];
};

/* Taken once, settled once (settle.h). */
struct pick_lease {
	bool taken, settled;
	size_t channel, account;
	struct account_ref ref;
	uint32_t txn; /* number of the transaction that took it */
	enum slot_kind kind;
	struct wall_ms at;
};

enum pick_result {
	PICK_TAKEN,
	PICK_FULL,    /* somebody is only full */
	PICK_COOLING, /* somebody comes back at `earliest` */
	PICK_MISSING, /* everybody lacks this model */
	PICK_TRIED,   /* who is left was tried in this request */
	PICK_NOBODY,  /* nothing comes back by itself */
};

struct pick_reason {
	enum pick_result result;
	struct wall_ms earliest;
	unsigned out[SCORE__MAX]; /* accounts by reason */
	unsigned freed;           /* leases of dead workers */
};

enum err pick_take(struct env *env, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_lease *lease_out, struct pick_reason *reason_out,
    struct why *why) MUST_CHECK;

/* Without taking anything: the reason and the number of accounts that could be had (healthz, models). */
enum store_rc pick_look(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_reason *reason_out) STORE_MUST_CHECK;

#endif
