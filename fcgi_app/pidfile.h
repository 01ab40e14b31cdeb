/*
 * pidfile - state_dir/pool.pid: which pool runs here, and how its last restart went.
 *
 * Held by the master's POSIX lock of its first byte, so whether a pool runs is exact even after kill -9, and the kernel
 * tells the pid. The lock outlives an exec and is not inherited by workers. The second byte is locked by a `sluicectl
 * start`, so that two do not start at once. The file is never removed: without a lock it tells of the last pool.
 *
 * Text      lines of a word, a blank and the value, "end" last
 * Caveats   a process that holds it must not open the file elsewhere: any close would let go of the lock
 * Source    SPEC.md section 2
 */
#ifndef PIDFILE_H
#define PIDFILE_H

#include "base/text.h"

#include <sys/types.h>

#define PIDFILE_NAME "pool.pid"
#define PIDFILE_BYTES 4096
#define PIDFILE_PATH 1024 /* longer ones are cut: they are for people */

enum pidfile_state { PIDFILE_STARTING, PIDFILE_READY, PIDFILE_STOPPING, PIDFILE_STOPPED };

struct pidfile_text {
	int64_t pid;
	enum pidfile_state state;
	int64_t serial; /* grows with each restart, also with one that failed */
	int64_t killed; /* workers that had to be killed at the end */
	char version[32];
	char program[PIDFILE_PATH], listen[PIDFILE_PATH];
	char why[512]; /* of a restart that failed, else "" */
};

/* Padded with blank lines to PIDFILE_BYTES, so that it is written in one piece. */
void pidfile_print(const struct pidfile_text *text, char out[PIDFILE_BYTES]);
/* False: not such a text, or not whole. */
bool pidfile_parse(struct span bytes, struct pidfile_text *text_out);

/* Open the file in this state_dir, make it where it is missing; -1 with errno. */
int pidfile_open(const char *state_dir);
/* The master's lock. False: another one holds it. */
bool pidfile_lock(int fd);
/* Is this open file still the one in state_dir? */
bool pidfile_is_of(int fd, const char *state_dir);
/* False with errno. */
bool pidfile_write(int fd, const struct pidfile_text *text);

/* Wait until nobody else starts a pool here; ends with the process. False with errno. */
bool pidfile_lock_start(int fd);
/*
 * The pid of the pool that runs, 0 = none, -1 = somebody holds the file who has no pid here (another container or machine,
 * or a lock of another kind). *text_out, also of the last one: pid 0 in it = nothing is known.
 */
pid_t pidfile_holder(int fd, struct pidfile_text *text_out);

#endif
