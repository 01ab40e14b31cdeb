#include "crew.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 5000
#define FORK_AGAIN_MS 1000
#define FORK_LOG_MS 60000

void
crew_init(struct crew *crew, struct worker_job *job, struct board *board)
{
	*crew = (struct crew){
	    .job = job, .board = board, .private_fd = {-1, -1}, .round = 1, .fresh = -1};
}

static bool
is_free(const struct crew_place *place)
{
	return place->pid == 0 && place->start_at.v == 0;
}

/* -1: all are taken. */
static int
free_place(const struct crew *crew)
{
	for (int i = 0; i < BOARD_PLACES; i++)
		if (is_free(&crew->places[i]))
			return i;
	return -1;
}

void
crew_adopt(struct crew *crew, const struct handover *from)
{
	for (unsigned i = 0; i < from->n; i++) {
		int at = free_place(crew);

		if (at < 0)
			return;
		crew->places[at] = (struct crew_place){.pid = from->workers[i].pid,
		    .leaving = from->workers[i].state == HANDOVER_LEAVING};
		crew->board->accepted[at] = 1; /* it was up */
		board_set(crew->board, (unsigned)at,
		    from->workers[i].state == HANDOVER_IDLE ? BOARD_IDLE : BOARD_BUSY);
	}
}

void
crew_hand_over(const struct crew *crew, struct handover *to)
{
	to->n = 0;
	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		const struct crew_place *place = &crew->places[i];

		if (place->pid == 0)
			continue;
		to->workers[to->n].pid = place->pid;
		to->workers[to->n].state = place->leaving ? HANDOVER_LEAVING
		                           : board_get(crew->board, i) == BOARD_BUSY
		                               ? HANDOVER_BUSY
		                               : HANDOVER_IDLE;
		to->n++;
	}
}

struct size_view
crew_view(const struct crew *crew)
{
	struct size_view view = {0, 0, 0};

	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		const struct crew_place *place = &crew->places[i];
		enum board_state state = board_get(crew->board, i);

		if (is_free(place) || place->leaving || (int)i == crew->fresh)
			continue;
		view.alive++;
		view.idle += place->pid > 0 && state == BOARD_IDLE;
		view.starting += place->pid == 0 || state == BOARD_STARTING;
	}
	return view;
}

unsigned
crew_count(const struct crew *crew)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BOARD_PLACES; i++)
		n += crew->places[i].pid > 0;
	return n;
}

bool
crew_is_ready(const struct crew *crew)
{
	for (unsigned i = 0; i < BOARD_PLACES; i++)
		if (crew->places[i].pid > 0 && crew->places[i].round == crew->round &&
		    board_get(crew->board, i) > BOARD_STARTING)
			return true;
	return false;
}

/* In the child: what belonged to the master goes; the parent's death ends it. */
static _Noreturn void
become_worker(struct crew *crew, unsigned number, pid_t parent)
{
	struct worker_job job = *crew->job;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	for (size_t i = 0; i < NELEM(crew->private_fd); i++)
		if (crew->private_fd[i] >= 0)
			close(crew->private_fd[i]);
	job.number = number;
	job.board = crew->board;
	exit(worker_run(&job));
}

/* Logged once a minute: the pool goes on with what there is. */
static void
fork_failed(struct crew *crew, struct mono_ms now)
{
	crew->fork_again_at.v = now.v + FORK_AGAIN_MS;
	if (crew->fork_logged_at.v != 0 && now.v - crew->fork_logged_at.v < FORK_LOG_MS)
		return;
	crew->fork_logged_at = now;
	log_fields(crew->job->log, LOG_LEVEL_ERROR, clock_wall(), "fork failed",
	    LOG_Z("why", strerror(errno)), LOG_NUMBER("processes", crew_count(crew)));
}

static bool
start_at(struct crew *crew, unsigned number, struct mono_ms now)
{
	struct crew_place *place = &crew->places[number];
	pid_t parent = getpid(), pid;

	if (now.v < crew->fork_again_at.v)
		return false;
	board_set(crew->board, number, BOARD_STARTING);
	pid = fork();
	if (pid == 0)
		become_worker(crew, number, parent);
	if (pid < 0) {
		board_set(crew->board, number, BOARD_NONE);
		fork_failed(crew, now);
		return false;
	}
	*place = (struct crew_place){.pid = pid,
	    .round = crew->round,
	    .backoff_ms = place->backoff_ms,
	    .accepted_before = crew->board->accepted[number]};
	return true;
}

/* The place; -1: the system refused, or there is none. */
static int
start_one(struct crew *crew, struct mono_ms now)
{
	int at = free_place(crew);

	return at >= 0 && start_at(crew, (unsigned)at, now) ? at : -1;
}

void
crew_start(struct crew *crew, unsigned n, struct mono_ms now)
{
	while (n > 0 && start_one(crew, now) >= 0)
		n--;
}

int64_t
crew_start_due(struct crew *crew, struct mono_ms now)
{
	int64_t next = -1;

	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		struct crew_place *place = &crew->places[i];
		int64_t left = place->start_at.v - now.v;

		if (place->pid != 0 || place->start_at.v == 0)
			continue;
		if (left <= 0 && start_at(crew, i, now))
			continue;
		if (left <= 0)
			left = FORK_AGAIN_MS;
		next = next < 0 || left < next ? left : next;
	}
	return next;
}

static void
tell_to_leave(struct crew *crew, unsigned number, struct mono_ms now)
{
	struct crew_place *place = &crew->places[number];

	if (place->pid > 0) {
		kill(place->pid, SIGUSR1);
		place->leaving = true;
		place->left_at = now;
	} else {
		*place = (struct crew_place){.pid = 0};
	}
}

/* The last ones first: those that are woken least often. */
void
crew_dismiss(struct crew *crew, unsigned n, struct mono_ms now)
{
	for (unsigned i = BOARD_PLACES; i > 0 && n > 0; i--) {
		const struct crew_place *place = &crew->places[i - 1];

		if (place->pid == 0 || place->leaving || (int)i - 1 == crew->fresh ||
		    board_get(crew->board, i - 1) != BOARD_IDLE)
			continue;
		tell_to_leave(crew, i - 1, now);
		n--;
	}
}

void
crew_renew(struct crew *crew)
{
	crew->round++;
	crew->fresh = -1;
}

static bool
is_old(const struct crew *crew, unsigned number)
{
	const struct crew_place *place = &crew->places[number];

	return !is_free(place) && !place->leaving && place->round != crew->round;
}

/* Old ones that are busy, or wait for their back-off, need nobody in their place before they go. -1: no other is left. */
static int
next_old(struct crew *crew, struct mono_ms now)
{
	bool proven = crew_is_ready(crew); /* workers of this round come up */
	int found = -1;

	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		if (!is_old(crew, i))
			continue;
		if (proven && (crew->places[i].pid == 0 || board_get(crew->board, i) == BOARD_BUSY))
			tell_to_leave(crew, i, now);
		else if (found < 0 || board_get(crew->board, i) == BOARD_IDLE)
			found = (int)i;
	}
	return found;
}

/* Is the worker up that was started for an old one? One that was killed meanwhile counts no more. */
static bool
fresh_is_up(struct crew *crew)
{
	unsigned at = (unsigned)crew->fresh;

	if (is_free(&crew->places[at]))
		crew->fresh = -1;
	return crew->fresh >= 0 && crew->places[at].pid > 0 &&
	       board_get(crew->board, at) > BOARD_STARTING;
}

void
crew_roll(struct crew *crew, struct mono_ms now)
{
	int old = next_old(crew, now);
	bool was_refused;

	if (old < 0)
		crew->fresh = -1;
	while (old >= 0) {
		if (crew->fresh >= 0) {
			bool up = fresh_is_up(crew);

			if (!up && crew->fresh >= 0)
				return;
			crew->fresh = -1;
			old = next_old(crew, now);
			if (up && old >= 0) {
				tell_to_leave(crew, (unsigned)old, now);
				old = next_old(crew, now);
			}
			continue;
		}
		was_refused = now.v < crew->fork_again_at.v;
		crew->fresh = start_one(crew, now);
		if (crew->fresh < 0 && !was_refused && now.v < crew->fork_again_at.v &&
		    crew_view(crew).idle > 1) /* no process more: one that goes makes room */
			tell_to_leave(crew, (unsigned)old, now);
		return;
	}
}

void
crew_hurry(struct crew *crew, unsigned most)
{
	struct crew_place *oldest = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		struct crew_place *place = &crew->places[i];

		if (place->pid == 0 || !place->leaving || place->hurried)
			continue;
		n++;
		if (oldest == NULL || place->left_at.v < oldest->left_at.v)
			oldest = place;
	}
	if (n <= most || oldest == NULL)
		return;
	kill(oldest->pid, SIGTERM);
	oldest->hurried = true;
}

void
crew_signal(const struct crew *crew, int number)
{
	for (unsigned i = 0; i < BOARD_PLACES; i++)
		if (crew->places[i].pid > 0)
			kill(crew->places[i].pid, number);
}

/* Ended without having taken a request, and not because somebody killed it? */
static bool
failed_to_start(const struct crew *crew, unsigned number, int status)
{
	bool killed =
	    WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM ||
	                               WTERMSIG(status) == SIGINT);

	return !killed && !crew->places[number].leaving &&
	       crew->board->accepted[number] == crew->places[number].accepted_before;
}

static void
set_back(struct crew_place *place, struct mono_ms now)
{
	int64_t ms = place->backoff_ms == 0 ? BACKOFF_FIRST_MS : place->backoff_ms * 2;

	*place = (struct crew_place){
	    .round = place->round, .backoff_ms = ms < BACKOFF_MOST_MS ? ms : BACKOFF_MOST_MS};
	place->start_at.v = now.v + place->backoff_ms;
}

bool
crew_ended(struct crew *crew, pid_t pid, int status, struct mono_ms now)
{
	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		if (crew->places[i].pid != pid)
			continue;
		board_set(crew->board, i, BOARD_NONE);
		if (failed_to_start(crew, i, status))
			set_back(&crew->places[i], now);
		else
			crew->places[i] = (struct crew_place){.pid = 0};
		return true;
	}
	return false;
}
