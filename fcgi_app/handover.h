/*
 * handover - a master becomes a new program without ending: same process, same socket, the workers go on.
 *
 * The old image writes what the new one must know into one variable and calls exec; the new one takes it, believes
 * nothing of it that it cannot check, and removes it. Workers notice nothing: their parent is still the same process.
 *
 * Text      "1 PID LISTEN_FD PID_FD SERIAL" and for each worker " PID" and its state's letter
 * Source    SPEC.md section 2
 */
#ifndef HANDOVER_H
#define HANDOVER_H

#include "base/text.h"
#include "board.h"

#include <sys/types.h>

#define HANDOVER_BYTES (BOARD_PLACES * 13 + 128)

enum handover_state { HANDOVER_IDLE = 'i', HANDOVER_BUSY = 'b', HANDOVER_LEAVING = 'l' };

struct handover {
	int listen_fd, pid_fd; /* pid_fd -1 = the file is not held */
	int64_t serial;        /* of the pidfile */
	unsigned n;
	struct {
		pid_t pid;
		enum handover_state state;
	} workers[BOARD_PLACES];
};

/* `own` is the process's pid. */
void handover_print(const struct handover *handover, pid_t own, char out[HANDOVER_BYTES]);
/* False: malformed, or meant for another process. */
bool handover_parse(struct span text, pid_t own, struct handover *handover_out);

/* Take it from the environment. False: there is none, or it is not true: no listening socket, or not our children. */
bool handover_take(struct handover *handover_out);
/* Become `program`, with all signals as they are. Returns only if that failed, with errno, and all is as before. */
void handover_exec(const char *program, char **argv, const struct handover *handover);

#endif
