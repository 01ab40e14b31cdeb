/*
 * process - what a process that serves has opened for itself alone: the store, its slot, the pool, libcurl's handle.
 *
 * Opened after the fork, by a worker (worker.h) and by plain CGI (once.h). It serves without a store, too: requests get
 * 503, and process_open_store() may be tried again.
 *
 * Source    SPEC.md section 2
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "serve.h"
#include "worker.h"

struct process {
	struct worker_job *job;
	struct serve serve;
	struct watch watch;
	struct env *env;
	struct slot *slot;
	struct pool *pool;
	char store_error[512];
};

void process_log(struct process *p, enum log_level level, const char *message, const char *why);

/* Open all, with a watch that is open already. `job` outlives it. */
void process_open(struct process *p, struct worker_job *job);
/* Once more after a failure; process_connect() must follow. */
bool process_open_store(struct process *p);
/* Let the serve have what was opened, and the job's configuration. */
void process_connect(struct process *p);
/* For sluicectl, which has no other way to know which configuration is in force. */
void process_note_generation(struct process *p);
void process_close(struct process *p);

#endif
