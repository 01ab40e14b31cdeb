/*
 * chores - periodic work without a daemon: one table of what is due when, run by whichever process claims it first.
 *
 * A worker looks once a second; `sluicectl tick` runs whatever is due, for plain CGI.
 *
 * Source    SPEC.md sections 2 ("Periodic work"), 10
 */
#ifndef CHORES_H
#define CHORES_H

#include "serve.h"

/* Run what is due, as long as nobody waits for this worker (errand.h). Returns how many jobs were run. */
unsigned chores_run(struct serve *s, struct wall_ms now);

/* The same, but only jobs that touch nothing but the store: for a process that should end soon. */
unsigned chores_run_stored(struct serve *s, struct wall_ms now);

/* Put what must outlive a power cut into the book, once the client has its answer. */
void chores_save_hard(struct serve *s, struct wall_ms now);

/* Is the share of active accounts below degrade.below, or did an operator say so? */
bool chores_degraded(struct serve *s, struct wall_ms now);

#endif
