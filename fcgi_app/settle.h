/*
 * settle - what an outcome does to the store, in one transaction: the lease is released, counters, cooldowns, breaker
 * and journal follow the verdict's row (verdict.h).
 *
 * A lease is settled once; a second time is a broken program and ends it.
 *
 * Errors    ERR_STORE: nothing was written; the lease stays taken and is freed with the next take or this process's end
 * Source    SPEC.md sections 5, 6, 8
 */
#ifndef SETTLE_H
#define SETTLE_H

#include "classify.h"
#include "dialect/dialect.h"
#include "pick.h"

#include "store/journal.h"

struct settle_outcome {
	const struct classify_finding *finding; /* verdict, reset, rule, message */
	const struct dialect_usage *usage;
	const char *model;  /* as the upstream knows it */
	int64_t latency_ms; /* of the whole attempt */
};

/* What changed, for the log: the same rows that went into the journal. */
#define SETTLE_EVENTS_MAX 4
struct settle_report {
	unsigned n;
	struct journal_row events[SETTLE_EVENTS_MAX];
};

enum err settle_lease(struct env *env, const struct slot *slot, const struct pool *pool,
    struct pick_lease *lease, const struct settle_outcome *outcome, struct wall_ms now,
    struct settle_report *report_out, struct why *why) MUST_CHECK;

#endif
