/*
 * master - a prefork pool: keeps as many workers on one listening socket as are needed, reloads, stops.
 *
 * Opens neither the store nor a connection. Prepares what workers share by copy-on-write: libraries, configuration,
 * trust store. How many workers there are is size.h's, who they are crew.h's. SIGTERM, SIGINT: workers drain, then all
 * ends. SIGHUP: the configuration is read again, and all workers are replaced; those of the old one end after their
 * running answer. SIGUSR1: all workers are replaced in the same way.
 *
 * Source    SPEC.md section 2
 */
#ifndef MASTER_H
#define MASTER_H

#include "worker.h"

#define MASTER_WORKERS_MAX 1000

/* Run until stopped; the exit status of the process. `workers` 0: an elastic pool, by the configuration. */
int master_run(struct worker_job *job, unsigned workers);

#endif
