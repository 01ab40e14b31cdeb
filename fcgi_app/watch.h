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

#define WATCH_HALF_CLOSED_MS 1000 /* for an answer to begin */

struct watch {
	int signal_fd;
	int client_fd; /* -1 = none or not to be watched */
	bool client_gone;
	/* Its sending side is closed: it has gone, or only said that it is done sending. */
	bool half_closed;
	struct mono_ms half_closed_at;
	/* Plain CGI: client_fd is only written to, and a signal to end says that the client has gone. */
	bool by_hangup;
	bool stopping; /* a signal asked to end: no further request is taken */
	bool at_once;  /* and running answers have no time */
	bool reload;   /* SIGHUP came */
	bool replace;  /* SIGUSR1: a worker ends after its running answer, a master replaces all */
	bool restart;  /* SIGRTMIN: a master becomes the program on disk */
	struct mono_ms stop_by; /* while stopping: running answers end then */
	int64_t drain_ms;
	/* Of a question of our own (ask.h) on the client's behalf: the end of the time for it; 0 = none is asked. */
	struct mono_ms deadline;
};

/*
 * SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 and SIGRTMIN are blocked, no others, and come by signal_fd; -1 on
 * failure. SIGTERM and SIGINT end a running answer within the drain, SIGQUIT at once.
 */
int watch_open(struct watch *watch, int64_t drain_ms);
/* Let SIGCHLD come by signal_fd, too (it must be blocked). */
int watch_children(struct watch *watch);
/* Take what signals are pending. */
void watch_signals(struct watch *watch, struct mono_ms now);
/*
 * Look at the client's connection. A whole close (and a reset, an abort record) is "gone"; one of the sending side only
 * cannot be told from a client that half-closed and still reads, so it is `half_closed`: the caller gives it
 * WATCH_HALF_CLOSED_MS before the first byte, and finds out by writing afterwards. Where it is only written to
 * (`by_hangup`) nothing but a whole close is seen.
 */
void watch_client(struct watch *watch, struct mono_ms now);
/* What to poll client_fd for; 0 = look by watch_client() after each wait. */
short watch_client_events(const struct watch *watch);
/* A new client, or -1 for none. */
void watch_begin(struct watch *watch, int client_fd);
/* Wait, but not longer than until the client has gone, the drain or the time for a question is over. */
void watch_sleep(struct watch *watch, int64_t ms, struct mono_ms (*clock)(void));
/*
 * Wait until `fd` is ready for `events` (poll's), taking signals. False with errno: EAGAIN it is `until`, ECANCELED the
 * drain is over.
 */
bool watch_wait(
    struct watch *watch, int fd, short events, struct mono_ms until, struct mono_ms (*clock)(void));
/* The time for a question of our own is over. */
bool watch_is_late(const struct watch *watch, struct mono_ms now);
/* What is left of `ms` before that. */
int64_t watch_within(const struct watch *watch, int64_t ms, struct mono_ms now);
/* The drain is over: running answers must end now. */
bool watch_must_end(const struct watch *watch, struct mono_ms now);

#endif
