/*
 * job - periodic work that exactly one process does when it is due.
 *
 * A process that is alive looks once a second and claims what is due in a write transaction. While it runs nobody else
 * can claim it, at most for the job's lease: then its runner is taken for dead. A runner that needs longer renews.
 *
 * Row       KEY_JOB id -> struct job_row
 * Clock     a due time or a lease further ahead than the period or the lease was made by a wrong clock: due now
 * Source    SPEC.md section 2 ("Periodic work")
 */
#ifndef STORE_JOB_H
#define STORE_JOB_H

#include "store/env.h"

/* The numbers are part of the format: add at the end. */
enum job_id {
	JOB_BOOK_SAVE = 0,
	JOB_SWEEP_SESSIONS = 1,
	JOB_SWEEP_COOLDOWNS = 2,
	JOB_RECOVER = 3,
	JOB_ACTIVE = 4,
	JOB_BALANCE = 5,
	JOB_READERS = 6,
	JOB_LEDGER_SWEEP = 7,
	JOB_ALERT = 8,
	JOB_SWEEP_KEPT = 9,
	JOB__MAX
};

struct job_kind {
	const char *name, *help;
	int64_t lease_ms; /* how long a run may be silent */
};
extern const struct job_kind job_table[JOB__MAX];

struct job_row {
	uint8_t version, running, spare[2];
	uint32_t run; /* grows with each claim */
	int64_t due_ms, lease_until_ms, started_ms, done_ms;
	uint64_t cursor; /* where the work goes on; belongs to who does it */
};
_Static_assert(sizeof(struct job_row) == 48, "job_row has no padding");

struct job_claim {
	enum job_id id;
	bool claimed;
	uint32_t run;
	uint64_t
	    cursor; /* as the last run left it; give it back to job_done() as it should be kept */
};

/* A new job is due at once. A period of 0 is never due. When claimed, the next is due a period after `now`. */
enum store_rc job_claim(struct txn *txn, enum job_id id, struct wall_ms now, int64_t period_ms,
    struct job_claim *claim_out) STORE_MUST_CHECK;
/* Still at work. STORE_NONE: the lease was over and another process has claimed it: stop. */
enum store_rc job_renew(
    struct txn *txn, const struct job_claim *claim, struct wall_ms now) STORE_MUST_CHECK;
/* Done. STORE_NONE as for job_renew(): nothing is changed. */
enum store_rc job_done(
    struct txn *txn, const struct job_claim *claim, struct wall_ms now) STORE_MUST_CHECK;
/* Make it due now, unless it runs (sluicectl, SIGHUP). */
enum store_rc job_hurry(struct txn *txn, enum job_id id, struct wall_ms now) STORE_MUST_CHECK;
/* For people. STORE_NONE: never claimed. */
enum store_rc job_get(struct txn *txn, enum job_id id, struct job_row *row_out) STORE_MUST_CHECK;

#endif
