/*
 * pick - choose an account and take the lease, in one write transaction.
 *
 * Between processes there is no check-then-act: rows are read, judged, scored, and breaker, session, queue, quota, cursor
 * and slot written under the writer lock. A full account whose leases belong to dead workers is freed on the way.
 *
 * Order     the channel's breaker; the session's account; an eligible account by score.h; else, where somebody is only
 *           full, a place in the queue; else one probe at a time of the earliest guessed cooldown or breaker
 *           (pool.all_cooling), unless the caller has a fallback channel to try first; else the reason why nobody can be had
 * Errors    ERR_STORE with the store's text; ERR_TIMEOUT the front lock was not had in time
 * Source    SPEC.md sections 7, 9, 11
 */
#ifndef PICK_H
#define PICK_H

#include "pool.h"
#include "score.h"

#include "store/breaker.h"
#include "store/journal.h"
#include "store/queue.h"
#include "store/quota.h"
#include "store/sticky.h"

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
	uint64_t tokens;        /* estimated, for quotas */
	const uint8_t *session; /* its 32-byte key, or NULL */
	bool fallback;          /* some channel of the fallback list can be used: for the breaker */
	bool no_probe;          /* try nobody who rests: a fallback channel comes first */
	bool last_resort;       /* the chain is used up: an exhausted channel may be tried */
	bool may_queue;
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
	uint32_t txn;   /* number of the transaction that took it */
	uint32_t round; /* of the channel's breaker */
	enum slot_kind kind;
	struct wall_ms at;
	bool has_quota;
	struct quota_hold hold;
};

enum pick_result {
	PICK_TAKEN,
	PICK_OPEN,    /* the channel's breaker is open, or all its probes are sent */
	PICK_WAITING, /* somebody is only full, and we stand in the queue */
	PICK_FULL,    /* somebody is only full, and the queue is too, or the caller does not wait */
	PICK_COOLING, /* somebody comes back at `earliest` */
	PICK_MISSING, /* everybody lacks this model */
	PICK_TRIED,   /* who is left was tried in this request */
	PICK_NOBODY,  /* nothing comes back by itself */
};

/* The session's binding as the pick found it. */
struct pick_session {
	bool bound;
	uint32_t account; /* number */
	enum sticky_trouble trouble;
	int64_t rest_left_ms;
};

#define PICK_EVENTS_MAX 2
struct pick_reason {
	enum pick_result result;
	struct wall_ms earliest;  /* PICK_COOLING, PICK_OPEN */
	unsigned out[SCORE__MAX]; /* accounts by reason */
	unsigned freed;           /* leases of dead workers */
	struct pick_session session;
	struct breaker_change breaker; /* what the look at the channel's breaker did */
	unsigned nevents;
	struct journal_row events[PICK_EVENTS_MAX];
	struct queue_wake wake; /* whom pick_take() and pick_leave() wake once they are committed */
};

enum err pick_take(struct env *env, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_lease *lease_out, struct pick_reason *reason_out,
    struct why *why) MUST_CHECK;

/* Leave the channel's queue without a lease. */
enum err pick_leave(struct env *env, const struct slot *slot, const struct pick_wish *wish,
    struct why *why) MUST_CHECK;

/* Without taking anything: the reason, and in its out[] how many accounts could be had. */
enum store_rc pick_look(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_reason *reason_out) STORE_MUST_CHECK;

/* An account as a pick sees it. Those that the store has not seen yet are not shown. */
struct pick_seen {
	size_t account;
	enum score_out out;
	/* zero unless out is SCORE_IN or a filter of the score */
	struct score_candidate candidate;
	struct score_terms terms; /* in the adaptive way */
	double share;             /* the chance of being drawn */
	unsigned in_flight;       /* living leases */
	int64_t until_ms;         /* of a rest, or until there is room in its quota; 0 = none */
};
typedef void pick_seen_fn(const struct pick_seen *seen, void *arg);

/* What pick_take() would do now. */
struct pick_view {
	struct pick_reason reason;  /* result, and what it rests on */
	struct breaker_row breaker; /* brought up to date */
	bool by_session;            /* PICK_TAKEN: its own account, not a drawn one */
	bool by_draw;               /* PICK_TAKEN: one of those with a share */
	size_t account; /* PICK_TAKEN: who; with by_draw, who would be for wish->random */
	enum slot_kind kind;
	bool explores;     /* for a price: the unmeasured tier comes first this time */
	bool only_unbound; /* accounts without sessions come first */
};
/* Calls `fn` for each account, in the order of their numbers. Writes nothing: good for env_view(). */
enum store_rc pick_explain(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, pick_seen_fn *fn, void *arg, struct pick_view *view_out) STORE_MUST_CHECK;

/*
 * What the breakers of a channel's fallback list say, into answers[] at the channels' indexes. An open one whose time is
 * over is looked at when its turn comes.
 */
enum store_rc pick_chain(struct txn *txn, const struct pool *pool, size_t channel,
    struct wall_ms now, enum breaker_answer *answers) STORE_MUST_CHECK;

/* The breaker's numbers out of a channel's settings. */
struct breaker_policy pick_breaker_policy(const struct conf_policy *policy);

#endif
