/*
 * crew - the master's workers: starts them, knows what each is doing, replaces and dismisses them.
 *
 * A worker belongs to a round. After crew_renew() all are of an old one. When the first of the new round is up, busy
 * ones are told to end after their answer; idle ones are replaced one after the other, each told when the new one is up,
 * so that never fewer are ready.
 * A worker that ends by itself before its first request is started anew with a back-off (100 ms doubling to 5 s); any
 * other leaves its place to whoever counts next (size.h).
 *
 * Source    SPEC.md section 2
 */
#ifndef CREW_H
#define CREW_H

#include "board.h"
#include "handover.h"
#include "size.h"
#include "worker.h"

#include <sys/types.h>

struct crew_place {
	pid_t pid; /* 0 = none */
	bool leaving, hurried;
	uint64_t round;
	struct mono_ms start_at; /* in back-off: not before; 0 = no back-off */
	int64_t backoff_ms;
	struct mono_ms left_at;
	uint32_t accepted_before; /* the board's counter when it was started */
};

struct crew {
	struct worker_job *job;
	struct board *board;
	int private_fd[2]; /* of the master, closed in workers; -1 = none */
	uint64_t round;
	int fresh; /* place of the worker that is started for an old one and is not yet up; -1 = none */
	struct mono_ms fork_again_at, fork_logged_at; /* the system refused a process */
	struct crew_place places[BOARD_PLACES];
};

void crew_init(struct crew *crew, struct worker_job *job, struct board *board);
/* Those that a former image of this process has started are of an old round. */
void crew_adopt(struct crew *crew, const struct handover *from);
/* Fill in `workers` and `n`. */
void crew_hand_over(const struct crew *crew, struct handover *to);

/* Without the one that is to take the place of an old one, and is not yet up. */
struct size_view crew_view(const struct crew *crew);
/* Processes, those that are leaving too. */
unsigned crew_count(const struct crew *crew);
/* Some worker of this round is up. */
bool crew_is_ready(const struct crew *crew);

/* Start up to `n`; as many as the system gives. */
void crew_start(struct crew *crew, unsigned n, struct mono_ms now);
/* Start those whose back-off is over. Returns the milliseconds until the next one, -1 = none. */
int64_t crew_start_due(struct crew *crew, struct mono_ms now);
/* Tell up to `n` idle ones to end. One that takes a request in that moment still serves it. */
void crew_dismiss(struct crew *crew, unsigned n, struct mono_ms now);
/* All are of an old round now. */
void crew_renew(struct crew *crew);
/* The next steps of a renewal, as far as they are possible now. */
void crew_roll(struct crew *crew, struct mono_ms now);
/* Of more than `most` that are leaving the oldest must end within their drain. */
void crew_hurry(struct crew *crew, unsigned most);
void crew_signal(const struct crew *crew, int number);
/* False: not one of us. */
bool crew_ended(struct crew *crew, pid_t pid, int status, struct mono_ms now);

#endif
