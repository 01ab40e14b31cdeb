/*
 * attempt - one try on one account: the request's bytes for it, the call, the settlement, the log of what it changed.
 *
 * Source    SPEC.md section 5
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "serve_job.h"

/* Use the lease up: it is settled when this returns. j->walk.outcome tells how it went. */
void attempt_run(struct serve_job *j, struct pick_lease *lease);
/* The log lines of what a pick or a settlement changed. */
void attempt_log(struct serve_job *j, const struct journal_row *events, unsigned n);
void attempt_log_breaker(
    struct serve_job *j, const struct conf_channel *channel, const struct breaker_change *change);

#endif
