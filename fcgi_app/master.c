#include "master.h"

#include "base/clock.h"
#include "base/heap.h"
#include "crew.h"
#include "pidfile.h"
#include "trial.h"
#include "upstream.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_GRACE_MS 5000 /* beyond the drain, then SIGKILL */
#define LOOK_MS 200
#define DIRS_MS 1000 /* accounts_dir is looked at so often */
#define LEAVING_SLACK 8
#define PID_FD 1 /* of crew.private_fd */

struct master {
	struct worker_job *job;
	const struct master_start *start;
	struct watch watch;
	struct crew *crew;
	struct board *board;
	struct size_limits limits;
	struct size_memory memory;
	bool stopping, at_once;
	struct mono_ms kill_at;
	struct mono_ms look_at; /* at accounts_dir */
	int64_t due_ms;         /* a back-off ends; -1 = none */
	struct trial trial;     /* of the program that is to take our place */
	int pid_fd;             /* -1: not held, or not yet */
	struct pidfile_text said;
	struct heap_plug *plug; /* what workers are not to fill */
};

static unsigned
at_most(int64_t n)
{
	return (unsigned)(n < MASTER_WORKERS_MAX ? n : MASTER_WORKERS_MAX);
}

static void
take_limits(struct master *m)
{
	const struct conf *conf = m->job->conf;

	if (m->start->workers > 0)
		m->limits = (struct size_limits){m->start->workers, 0, m->start->workers};
	else
		m->limits = (struct size_limits){at_most(conf->server.workers_min),
		    at_most(conf->server.workers_spare), at_most(conf->server.workers_max)};
}

/* As many workers as are needed now. */
static void
fit(struct master *m, struct mono_ms now)
{
	struct size_view view;
	struct size_change change;
	unsigned room = BOARD_PLACES - LEAVING_SLACK - m->limits.max;

	m->due_ms = crew_start_due(m->crew, now);
	crew_roll(m->crew, now);
	view = crew_view(m->crew);
	change = size_look(&m->limits, &view, now, &m->memory);
	crew_start(m->crew, change.start, now);
	crew_dismiss(m->crew, change.stop, now);
	crew_hurry(m->crew, m->limits.max < room ? m->limits.max : room);
	view = crew_view(m->crew);
	m->board->tell_below =
	    now.v < m->crew->fork_again_at.v ? 0 : size_tell_below(&m->limits, &view);
}

static void
note_end(const struct master *m, pid_t pid, int status)
{
	bool bad = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;

	if (bad && !m->stopping)
		log_fields(m->job->log, LOG_LEVEL_WARN, clock_wall(), "a worker ended",
		    LOG_NUMBER("pid", pid),
		    LOG_NUMBER("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0),
		    LOG_NUMBER("status", WIFEXITED(status) ? WEXITSTATUS(status) : 0));
}

/* Take the pidfile as soon as it is ours, and say there what is so. */
static void
tell_people(struct master *m)
{
	const char *dir = m->job->conf->state_dir.p;

	if (m->pid_fd >= 0 && !pidfile_is_of(m->pid_fd, dir)) {
		close(m->pid_fd);
		m->pid_fd = -1;
	}
	if (m->pid_fd < 0) {
		m->pid_fd = pidfile_open(dir);
		if (m->pid_fd >= 0 && !pidfile_lock(m->pid_fd)) {
			close(m->pid_fd); /* another pool has it: we come back */
			m->pid_fd = -1;
		}
	}
	m->crew->private_fd[PID_FD] = m->pid_fd;
	if (m->pid_fd >= 0)
		pidfile_write(m->pid_fd, &m->said);
}

static void
change_state(struct master *m, enum pidfile_state state)
{
	m->said.state = state;
	tell_people(m);
}

/* The old program stays; whoever asked for the new one reads why. */
static void
not_restarted(struct master *m, const char *why)
{
	log_fields(m->job->log, LOG_LEVEL_ERROR, clock_wall(), "not restarted", LOG_Z("why", why));
	m->said.serial++;
	text_clean(m->said.why, sizeof m->said.why, text_span(why));
	tell_people(m);
}

static void
try_program(struct master *m)
{
	struct why why;

	if (m->trial.pid == 0 &&
	    !trial_begin(&m->trial, m->start->program, m->start->argv, clock_mono(), &why))
		not_restarted(m, why.text);
}

static void
become_program(struct master *m)
{
	struct handover *h = calloc(1, sizeof *h);

	if (h == NULL)
		die("no memory");
	h->listen_fd = m->job->listen_fd;
	h->pid_fd = m->pid_fd;
	h->serial = m->said.serial;
	crew_hand_over(m->crew, h);
	log_fields(m->job->log, LOG_LEVEL_INFO, clock_wall(), "restarting",
	    LOG_Z("program", m->start->program));
	handover_exec(m->start->program, m->start->argv, h);
	not_restarted(m, strerror(errno));
	free(h);
}

static void
trial_ended(struct master *m, int status)
{
	struct why why;

	if (!trial_passed(&m->trial, status, &why))
		not_restarted(m, why.text);
	else if (!m->stopping)
		become_program(m);
}

static void
reap(struct master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == m->trial.pid)
			trial_ended(m, status);
		else if (crew_ended(m->crew, pid, status, clock_mono()))
			note_end(m, pid, status);
	}
	trial_look(&m->trial, clock_mono());
}

/* What each worker would do, and copy, for itself is done once. */
static void
share(struct master *m)
{
	upstream_warm();
	trust_warm(m->job->trust);
	m->plug = heap_plug();
}

static void
reload(struct master *m)
{
	struct conf *conf = NULL;
	struct trust *trust = NULL;
	struct conf_report report = {.n = 0};
	struct why why;
	enum err err;

	heap_unplug(&m->plug);
	err = conf_load(m->job->conf_path, &conf, &report, &why);
	conf_report_release(&report);
	if (err == ERR_OK)
		err = trust_load(conf, &trust, &why);
	if (err != ERR_OK) {
		trust_free(&trust);
		conf_free(&conf);
		if (strcmp(m->board->conf_error, why.text) != 0)
			log_fields(m->job->log, LOG_LEVEL_ERROR, clock_wall(),
			    "the configuration was not reloaded", LOG_Z("why", why.text));
		text_clean(m->board->conf_error, sizeof m->board->conf_error, text_span(why.text));
		m->plug = heap_plug();
		return;
	}
	trust_free(&m->job->trust);
	conf_free(&m->job->conf);
	m->job->conf = conf;
	m->job->trust = trust;
	m->job->generation++;
	m->job->loaded_at = clock_wall();
	m->watch.drain_ms = conf->server.drain_timeout_ms;
	m->board->conf_error[0] = '\0';
	take_limits(m);
	share(m);
	crew_renew(m->crew);
	log_fields(m->job->log, LOG_LEVEL_INFO, clock_wall(), "configuration reloaded",
	    LOG_NUMBER("generation", (int64_t)m->job->generation));
}

static void
begin_stop(struct master *m)
{
	m->stopping = true;
	m->at_once = m->watch.at_once;
	m->kill_at.v = m->watch.stop_by.v + KILL_GRACE_MS;
	crew_signal(m->crew, m->at_once ? SIGQUIT : SIGTERM);
	change_state(m, PIDFILE_STOPPING);
}

/* Neither their answer nor the drain's end has ended them. */
static void
kill_all(struct master *m)
{
	if (m->said.killed == 0)
		m->said.killed = crew_count(m->crew);
	crew_signal(m->crew, SIGKILL);
}

static void
obey_signals(struct master *m)
{
	if (m->watch.reload && !m->watch.stopping)
		reload(m);
	else if (m->watch.replace && !m->watch.stopping)
		crew_renew(m->crew);
	if (m->watch.restart && !m->watch.stopping)
		try_program(m);
	m->watch.reload = m->watch.replace = m->watch.restart = false;
	if (m->watch.stopping && (!m->stopping || m->watch.at_once != m->at_once))
		begin_stop(m);
	if (m->stopping && clock_mono().v >= m->kill_at.v)
		kill_all(m);
}

/* Once a second. accounts_dir is watched without a signal; a broken file there is reported once. */
static void
look_around(struct master *m)
{
	struct mono_ms now = clock_mono();

	if (m->said.state == PIDFILE_STARTING && crew_is_ready(m->crew))
		change_state(m, PIDFILE_READY);
	if (m->stopping || now.v < m->look_at.v)
		return;
	m->look_at.v = now.v + DIRS_MS;
	if (m->pid_fd < 0 || !pidfile_is_of(m->pid_fd, m->job->conf->state_dir.p))
		tell_people(m);
	if (conf_dirs_changed(m->job->conf))
		reload(m);
}

/* Until a signal comes, a worker tells something, or something is due. */
static void
wait_for_news(struct master *m)
{
	struct pollfd p[] = {{.fd = m->watch.signal_fd, .events = POLLIN},
	    {.fd = m->board->tell_fd, .events = POLLIN}, {.fd = m->trial.fd, .events = POLLIN}};
	int64_t ms = m->stopping ? LOOK_MS : DIRS_MS;

	if (!m->stopping && m->due_ms >= 0 && m->due_ms < ms)
		ms = m->due_ms;
	poll(p, NELEM(p), (int)ms);
	board_heard(m->board);
	watch_signals(&m->watch, clock_mono());
}

static bool
prepare(struct master *m)
{
	sigset_t child;

	m->board = board_new();
	if (m->board == NULL)
		return false;
	m->crew = calloc(1, sizeof *m->crew);
	if (m->crew == NULL)
		die("no memory");
	crew_init(m->crew, m->job, m->board);
	take_limits(m);
	if (m->start->from != NULL) {
		crew_adopt(m->crew, m->start->from);
		m->pid_fd = m->crew->private_fd[PID_FD] = m->start->from->pid_fd;
		m->said.serial = m->start->from->serial + 1;
	}
	if (watch_open(&m->watch, m->job->conf->server.drain_timeout_ms) < 0)
		return false;
	m->crew->private_fd[0] = m->watch.signal_fd;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &child, NULL) == 0 && watch_children(&m->watch) >= 0;
}

static void
say_started(const struct master *m)
{
	log_fields(m->job->log, LOG_LEVEL_INFO, clock_wall(), "started",
	    LOG_Z("version", SLUICE_VERSION), LOG_NUMBER("workers", m->limits.min),
	    LOG_NUMBER("most", m->limits.max));
}

int
master_run(struct worker_job *job, const struct master_start *start)
{
	struct master m = {.job = job,
	    .start = start,
	    .trial = {.fd = -1},
	    .pid_fd = -1,
	    .said = {.pid = getpid(), .version = SLUICE_VERSION}};

	if (!prepare(&m)) {
		log_fields(job->log, LOG_LEVEL_ERROR, clock_wall(), "the master cannot start",
		    LOG_Z("why", strerror(errno)));
		return 1;
	}
	text_clean(m.said.program, sizeof m.said.program, text_span(start->program));
	text_clean(m.said.listen, sizeof m.said.listen, text_span(start->listen));
	say_started(&m);
	share(&m);
	while (!m.stopping || crew_count(m.crew) > 0) {
		if (!m.stopping)
			fit(&m, clock_mono());
		wait_for_news(&m);
		obey_signals(&m);
		look_around(&m);
		reap(&m);
	}
	change_state(&m, PIDFILE_STOPPED);
	heap_unplug(&m.plug);
	free(m.crew);
	log_fields(
	    job->log, LOG_LEVEL_INFO, clock_wall(), "stopped", LOG_Z("version", SLUICE_VERSION));
	return 0;
}
