/*
 * breaker - the three-state breaker of a channel: closed, open, half-open.
 *
 * Looked at when a request picks (breaker_look, breaker_admit, breaker_permit), fed when one is settled
 * (breaker_result). The first part is pure: no store, no clock; what must be said of a transition is put into the
 * change, in words, for the log and the journal.
 *
 * Rounds    each half-open time is a round with its own number. A lease remembers the round it was admitted in: what an
 *           older round's lease brings home counts neither as probe nor in the windows. Probes that pass empty the
 *           windows, and what any account had in consecutive failures by then is no news.
 * Permits   in flight are not stored but counted from the slots, so that a dead worker's permit comes back by itself;
 *           probes sent = ok + failed + in flight, at most policy.half_open_requests
 * Windows   as in window.h; only fed while the trigger that reads it is on
 * Closing   from pool_exhausted as soon as an account is active, or no fallback is usable; from half-open by probes; from
 *           open when its trigger was switched off
 * Order     where several triggers hold, those that ask for probes go before pool_exhausted
 * Row       KEY_BREAKER channel -> struct breaker_row
 * Errors    STORE_NONE no such row, or of another version: the getter then gives a closed one
 * Source    SPEC.md section 9
 */
#ifndef STORE_BREAKER_H
#define STORE_BREAKER_H

#include "store/env.h"
#include "store/window.h"

/* The numbers are part of the format. */
enum breaker_state { BREAKER_CLOSED = 0, BREAKER_OPEN = 1, BREAKER_HALF_OPEN = 2 };

/* Bits, the same as in the configuration. */
enum breaker_trigger {
	BREAKER_POOL_EXHAUSTED = 1,
	BREAKER_ERROR_RATE = 2,
	BREAKER_LATENCY = 4,
	BREAKER_CONSECUTIVE_FAIL = 8,
};
#define BREAKER_TRIGGERS 15 /* all of them */

struct breaker_row {
	uint8_t version, state;
	uint8_t trigger; /* the bit that opened it; 0 = closed */
	/* switched at run time: these instead of the policy's */
	uint8_t overridden, triggers;
	uint8_t relearn;           /* closed by probes: learn consecutive_base at the next look */
	uint16_t consecutive_base; /* so many consecutive failures are no news */
	uint32_t round;            /* grows with each half-open time */
	uint32_t sent, ok, failed; /* probes of this round */
	int64_t until_ms;          /* open: when to look for half-open; else 0 */
	int64_t since_ms;          /* of this state */
	struct window errors;      /* n requests, sum failures */
	struct window latency;     /* n times to first content, sum milliseconds */
};
_Static_assert(sizeof(struct breaker_row) == 456, "breaker_row has no padding");

struct breaker_policy {
	unsigned triggers;         /* bits of enum breaker_trigger */
	int64_t error_rate_micros; /* millionths: 0.5 is 500000 */
	int64_t error_window_ms, error_min_requests;
	int64_t latency_ms, latency_window_ms;
	int64_t consecutive_fail;
	int64_t recovery_timeout_ms, reopen_ms;
	int64_t half_open_requests, half_open_success;
};

/* What the caller knows of the channel at a pick. */
struct breaker_facts {
	bool active;          /* some account is (health.h) */
	bool fallback;        /* some channel of its fallback list is not open */
	uint32_t consecutive; /* largest consecutive failures of any account */
	/* slots of kind SLOT_PERMIT of this channel, taken in row->round, whose holder lives */
	uint32_t permits;
};

/* What a step did. `text` goes into the log behind "channel [name] "; empty: nothing to say. */
struct breaker_change {
	bool write; /* the row must be put back */
	bool moved; /* to another state: an event row */
	bool warn;  /* level of the line: WARN, else INFO */
	enum breaker_state from, to;
	uint8_t trigger; /* that opened it, also where it closes now */
	int64_t old_until_ms, until_ms;
	char text[160];
};

/* A permit's lease is taken with breaker_permit(). */
enum breaker_answer {
	BREAKER_YES = 0,
	BREAKER_PERMIT = 1, /* half-open: go, as a probe */
	BREAKER_SPENT = 2,  /* half-open: no, all probes are sent */
	BREAKER_NO = 3,     /* open */
};

/* Bring the row up to date. To be called before breaker_admit(), in the same transaction. */
void breaker_look(struct breaker_row *row, const struct breaker_facts *facts,
    const struct breaker_policy *policy, struct wall_ms now, struct breaker_change *change);

/* May one more request go there? Changes nothing. */
enum breaker_answer breaker_admit(
    const struct breaker_row *row, const struct breaker_policy *policy);

/* A lease was taken on BREAKER_PERMIT (kind SLOT_PERMIT, row->round beside it): put the row back. */
void breaker_permit(struct breaker_row *row);

/* How a probe ended. Neutral gives the permit back: cancelled, or the caller is to blame. */
enum breaker_probe { BREAKER_PROBE_NEUTRAL, BREAKER_PROBE_OK, BREAKER_PROBE_FAILED };

struct breaker_outcome {
	bool requests;            /* counts as a request of the channel's window */
	bool failed;              /* ... and as a failure in it */
	int64_t first_content_ms; /* -1 = there was none */
	bool permit;              /* its lease was a permit */
	enum breaker_probe probe; /* where it was */
	uint32_t round;           /* row->round when the lease was taken, whether permit or not */
};

/* A request was settled. */
void breaker_result(struct breaker_row *row, const struct breaker_outcome *outcome,
    const struct breaker_policy *policy, struct wall_ms now, struct breaker_change *change);

/* The triggers in force: those of the policy unless switched at run time. */
unsigned breaker_triggers(const struct breaker_row *row, const struct breaker_policy *policy);
/* Switch them at run time; breaker_follow() goes back to the policy's. An open channel whose trigger is switched off
 * closes at the next look. */
void breaker_override(struct breaker_row *row, unsigned triggers);
void breaker_follow(struct breaker_row *row);

/* What the windows hold now. */
struct breaker_sums {
	uint64_t requests, failures, latency_n, latency_sum_ms;
};
void breaker_sums(const struct breaker_row *row, const struct breaker_policy *policy,
    struct wall_ms now, struct breaker_sums *sums_out);

/* "closed", "open", "half-open"; "pool_exhausted" and so on, "" for what is no trigger. */
const char *breaker_state_name(enum breaker_state state);
const char *breaker_trigger_name(unsigned trigger);

enum store_rc breaker_get(
    struct txn *txn, uint16_t channel, struct breaker_row *row_out) STORE_MUST_CHECK;
enum store_rc breaker_put(
    struct txn *txn, uint16_t channel, const struct breaker_row *row) STORE_MUST_CHECK;

#endif
