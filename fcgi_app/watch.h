/*
 * watch - what may happen while a worker waits: the client goes away, a signal asks it to end.
 *
 * Signals are blocked and read from a descriptor, so nothing is interrupted. One watch lives as long as its worker; the
 * client is set for each request.
 *
 * Source    hosting.md 3, 10, 12
 */
#ifndef WATCH_H
#define WATCH_H

#include "store/types.h"

struct watch {
	int signal_fd;
	int client_fd;       /* -1 = none or not to be watched */
	bool client_gone;
	bool stopping;       /* a signal asked to end: no further request is taken */
	bool reload;         /* SIGHUP came (without a master) */
	struct mono_ms stop_by; /* while stopping: running answers end then */
	int64_t drain_ms;
};

/*
 * SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are blocked and come by signal_fd; -1 on failure. SIGUSR1 ends the worker
 * after the running answer however long it takes, SIGTERM and SIGINT within the drain.
 */
int watch_open(struct watch *watch, int64_t drain_ms);
/* Let SIGCHLD come by signal_fd, too (it must be blocked). */
int watch_children(struct watch *watch);
/* Take what signals are pending. */
void watch_signals(struct watch *watch, struct mono_ms now);
/* Is the client's side closed? To be called when client_fd polls readable. */
void watch_client(struct watch *watch);
/* Wait, but not longer than until the client has gone or the drain is over. */
void watch_sleep(struct watch *watch, int64_t ms, struct mono_ms (*clock)(void));
/* The drain is over: running answers must end now. */
bool watch_must_end(const struct watch *watch, struct mono_ms now);

#endif
