/*
 * master - a prefork pool: keeps as many workers on one listening socket as are needed, reloads, stops.
 *
 * Opens neither the store nor a connection. Prepares what workers share by copy-on-write: libraries, configuration,
 * trust store. How many workers there are is size.h's, who they are crew.h's. SIGTERM, SIGINT: workers drain, then all
 * ends. SIGHUP: the configuration is read again, and all workers are replaced; those of the old one end after their
 * running answer. SIGUSR1: all workers are replaced in the same way. SIGRTMIN: the program on disk is tried, and if it is
 * fit, this process becomes it, with the same socket (handover.h); else all stays as it is.
 *
 * Source    SPEC.md section 2
 */
#ifndef MASTER_H
#define MASTER_H

#include "handover.h"
#include "worker.h"

#define MASTER_WORKERS_MAX 1000

struct master_start {
	unsigned workers;            /* 0: an elastic pool, by the configuration */
	const char *program;         /* absolute; what a restart runs ... */
	char **argv;                 /* ... with these words */
	const char *listen;          /* for people */
	const struct handover *from; /* what a former image of this process left, or NULL */
};

/* Run until stopped; the exit status of the process. */
int master_run(struct worker_job *job, const struct master_start *start);

#endif
