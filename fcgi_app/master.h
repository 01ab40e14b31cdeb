/*
 * master - a prefork pool: starts workers on one listening socket, replaces those that end, reloads, stops.
 *
 * Opens neither the store nor a connection. Prepares what workers share by copy-on-write: libraries, configuration,
 * trust store. SIGTERM, SIGINT: workers drain, then all ends. SIGHUP: the configuration is read again; workers of the
 * old one end after their running answer. SIGUSR1: all workers are replaced in the same way. A worker that ends before its first request is replaced with a back-off
 * (100 ms doubling to 5 s), any other at once.
 *
 * Source    SPEC.md section 2
 */
#ifndef MASTER_H
#define MASTER_H

#include "worker.h"

#define MASTER_WORKERS_MAX 1000

/* Run until stopped; the exit status of the process. */
int master_run(struct worker_job *job, unsigned workers);

#endif
