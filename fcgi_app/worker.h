/*
 * worker - one process that serves requests one at a time: the accept loop and the second's housekeeping.
 *
 * Everything that belongs to one process alone is opened here, after the fork: the store, its slot, libcurl's handles.
 *
 * Source    SPEC.md section 2; hosting.md 6, 10, 12, 13
 */
#ifndef WORKER_H
#define WORKER_H

#include "base/log.h"
#include "board.h"
#include "conf/conf.h"
#include "trust.h"

struct worker_job {
	int listen_fd;
	const char *conf_path;
	struct conf *conf;
	struct trust *trust;
	struct log *log;
	uint64_t generation;
	struct wall_ms loaded_at; /* when this configuration came into force */
	unsigned number;          /* of this worker: its place on the board */
	struct board *board;      /* NULL: no master; the worker watches the file itself */
};

/* Serve until told to end or `server.max_requests` are done; the exit status of the process. */
int worker_run(struct worker_job *job);

#endif
