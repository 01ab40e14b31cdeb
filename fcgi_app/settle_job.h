/*
 * settle_job - one settlement on its way through its transaction: what settle and settle_around share.
 */
#ifndef SETTLE_JOB_H
#define SETTLE_JOB_H

#include "charge.h"
#include "settle.h"

struct settle_job {
	const struct slot *slot;
	const struct pool *pool;
	const struct pick_lease *lease;
	const struct settle_outcome *outcome;
	struct wall_ms now;
	struct health_time time;
	struct settle_report report;
	/* rows */
	struct account_row row;
	struct account_stat stat;
	struct health_change change;
	struct charge charge;
	bool alone; /* the model fails, but others of the channel succeed */
	unsigned quota_crossed;
	struct queue_wake wake;
};

const struct conf_channel *settle_channel(const struct settle_job *job);

/* A row more for the journal; NULL when the report is full. */
struct journal_row *settle_event(
    struct settle_job *job, enum journal_level level, const char *cause);

/* Fills in what changed; NULL is let through. */
void settle_event_states(
    struct journal_row *event, const char *from, const char *to, int64_t old_ms, int64_t new_ms);

/* What the attempt cost and whom it is booked on. Pure. */
struct charge settle_charge(const struct settle_job *job);
/* How the model did on the channel; says whether it fails alone, which the account's row must know. */
enum store_rc settle_target(struct txn *txn, struct settle_job *job);
/* All that is not the account's own row: ledger and quotas, the channel's breaker, the session, the queue. */
enum store_rc settle_around(struct txn *txn, struct settle_job *job);
/* Of it only what the lease held. */
enum store_rc settle_aside(struct txn *txn, struct settle_job *job);

#endif
