/*
 * settle - what an outcome does to the store, in one transaction: the lease is released, counters, cooldowns, breakers,
 * session, queue, ledger and journal follow the verdict's row (verdict.h).
 *
 * A lease is settled once; a second time is a broken program and ends it.
 *
 * Models    what answers of a model did is kept of (channel, model), too (store/target.h). A server or network failure of a
 *           model that fails alone, while another one of the channel succeeds, is an error of the account and no more:
 *           neither fails nor consecutive failures, breaker, or its window; a stated time is that model's on the account.
 *           The channel's windows count it as ever.
 *
 * Errors    ERR_STORE: nothing was written; the lease still stands and settle_release() takes it away
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
	const struct dialect_usage *usage;      /* NULL: nothing is known of it */
	const char *model;                      /* as the upstream knows it */
	const char *client;                     /* "" = nobody is told apart */
	int64_t latency_ms;                     /* of the whole attempt */
	int64_t first_content_ms;               /* -1 = there was none */
	bool sent;                              /* the request reached the upstream */
	bool aside; /* a question that is no work: the lease is given back, and nothing is learnt */
	bool target; /* an answer of a model: chat, messages, responses */
	uint64_t
	    estimated; /* tokens of the prompt as we counted them, uncorrected; 0 = nobody did */
	const struct settle_session *session; /* NULL = none */
};

/* The conversation of a request and what its pick found. */
struct settle_session {
	const uint8_t *key;
	size_t channel;
	struct pick_session found;
	bool ours; /* the binding was made by this request */
};

/* What changed, for the log: the same rows that went into the journal. */
#define SETTLE_EVENTS_MAX 6
struct settle_report {
	unsigned n;
	struct journal_row events[SETTLE_EVENTS_MAX];
	struct breaker_change breaker; /* what it did to the channel's breaker */
	bool hard; /* a fact that must outlive a power cut was made: book_save_now() */
};

enum err settle_lease(struct env *env, const struct slot *slot, const struct pool *pool,
    struct pick_lease *lease, const struct settle_outcome *outcome, struct wall_ms now,
    struct settle_report *report_out, struct why *why) MUST_CHECK;

/* Free the lease and no more, which needs less room than the whole. False: the store takes not even that now. */
bool settle_release(struct env *env, const struct slot *slot) MUST_CHECK;

/* Nobody served: a binding that will not come back by itself ends. */
enum err settle_unserved(struct env *env, const struct pool *pool,
    const struct settle_session *session, struct wall_ms now, struct why *why) MUST_CHECK;

#endif
