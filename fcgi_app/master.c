#include "master.h"

#include "base/clock.h"
#include "base/heap.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 5000
#define KILL_GRACE_MS 5000 /* beyond the drain, then SIGKILL */
#define LOOK_MS 200
#define DIRS_MS 1000 /* accounts_dir is looked at so often */

struct member {
	pid_t pid; /* 0 = none */
	uint64_t generation;
	struct mono_ms start_at; /* not before */
	int64_t backoff_ms;
	uint32_t accepted_before; /* board's counter when it was started */
};

struct master {
	struct worker_job *job;
	struct watch watch;
	struct worker_board *board;
	unsigned n;
	struct member *members; /* [0..n): the pool of the present configuration */
	struct member *leaving; /* [0..n): the one before, if it still answers */
	bool stopping;
	struct mono_ms kill_at;
	struct mono_ms look_at; /* at accounts_dir */
	struct heap_plug *plug;
};

/* In the child: what belonged to the master goes; the parent's death ends it. */
static _Noreturn void
become_worker(struct master *m, unsigned number, pid_t parent)
{
	struct worker_job job = *m->job;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	close(m->watch.signal_fd);
	job.number = number;
	job.board = m->board;
	exit(worker_run(&job));
}

static void
start(struct master *m, unsigned number)
{
	struct member *member = &m->members[number];
	pid_t parent = getpid(), pid;

	if (m->plug == NULL)
		m->plug = heap_plug();
	pid = fork();
	if (pid == 0)
		become_worker(m, number, parent);
	if (pid < 0) {
		member->start_at.v = clock_mono().v + BACKOFF_MOST_MS;
		log_fields(m->job->log, LOG_LEVEL_ERROR, clock_wall(), "fork failed",
		    LOG_Z("why", strerror(errno)));
		return;
	}
	member->pid = pid;
	member->generation = m->job->generation;
	member->accepted_before = m->board->accepted[number];
}

static void
start_due(struct master *m)
{
	struct mono_ms now = clock_mono();

	for (unsigned i = 0; i < m->n && !m->stopping; i++)
		if (m->members[i].pid == 0 && now.v >= m->members[i].start_at.v)
			start(m, i);
}

/* Ended without having taken a request, and not because somebody killed it? */
static bool
failed_to_start(const struct master *m, unsigned number, int status)
{
	bool killed =
	    WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM ||
	                               WTERMSIG(status) == SIGINT);

	return !killed && m->board->accepted[number] == m->members[number].accepted_before;
}

static void
note_end(struct master *m, pid_t pid, int status)
{
	bool bad = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;

	if (bad && !m->stopping)
		log_fields(m->job->log, LOG_LEVEL_WARN, clock_wall(), "a worker ended",
		    LOG_NUMBER("pid", pid),
		    LOG_NUMBER("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0),
		    LOG_NUMBER("status", WIFEXITED(status) ? WEXITSTATUS(status) : 0));
}

static void
member_ended(struct master *m, unsigned number, int status)
{
	struct member *member = &m->members[number];

	member->pid = 0;
	member->start_at.v = 0;
	if (!failed_to_start(m, number, status)) {
		member->backoff_ms = 0;
		return;
	}
	member->backoff_ms = member->backoff_ms == 0 ? BACKOFF_FIRST_MS : member->backoff_ms * 2;
	if (member->backoff_ms > BACKOFF_MOST_MS)
		member->backoff_ms = BACKOFF_MOST_MS;
	member->start_at.v = clock_mono().v + member->backoff_ms;
}

static void
reap(struct master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		note_end(m, pid, status);
		for (unsigned i = 0; i < m->n; i++) {
			if (m->members[i].pid == pid)
				member_ended(m, i, status);
			if (m->leaving[i].pid == pid)
				m->leaving[i].pid = 0;
		}
	}
}

static void
signal_all(const struct master *m, int number)
{
	for (unsigned i = 0; i < m->n; i++) {
		if (m->members[i].pid > 0)
			kill(m->members[i].pid, number);
		if (m->leaving[i].pid > 0)
			kill(m->leaving[i].pid, number);
	}
}

static unsigned
count_alive(const struct master *m)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < m->n; i++)
		alive += (unsigned)(m->members[i].pid > 0) + (unsigned)(m->leaving[i].pid > 0);
	return alive;
}

/* Workers of the old configuration end after their running answer; new ones take their place at once. */
static void
replace_all(struct master *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct member old = m->members[i];

		m->members[i] = (struct member){.pid = 0};
		start(m, i);
		if (old.pid <= 0)
			continue;
		kill(old.pid, SIGUSR1);
		if (m->leaving[i].pid > 0)
			kill(m->leaving[i].pid, SIGTERM); /* two reloads old: its drain begins */
		m->leaving[i] = old;
	}
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
	replace_all(m);
	log_fields(m->job->log, LOG_LEVEL_INFO, clock_wall(), "configuration reloaded",
	    LOG_NUMBER("generation", (int64_t)m->job->generation));
}

static void
obey_signals(struct master *m)
{
	if (m->watch.reload && !m->watch.stopping)
		reload(m);
	else if (m->watch.replace && !m->watch.stopping)
		replace_all(m);
	m->watch.reload = m->watch.replace = false;
	if (m->watch.stopping && !m->stopping) {
		m->stopping = true;
		m->kill_at.v = m->watch.stop_by.v + KILL_GRACE_MS;
		signal_all(m, SIGTERM);
	}
	if (m->stopping && clock_mono().v >= m->kill_at.v)
		signal_all(m, SIGKILL);
}

/* accounts_dir is watched without a signal. A broken file there is reported once. */
static void
watch_dirs(struct master *m)
{
	struct mono_ms now = clock_mono();

	if (m->stopping || now.v < m->look_at.v)
		return;
	m->look_at.v = now.v + DIRS_MS;
	if (conf_dirs_changed(m->job->conf))
		reload(m);
}

/* The next moment at which something is due without a signal. */
static int
wait_ms(const struct master *m)
{
	if (m->stopping)
		return LOOK_MS;
	for (unsigned i = 0; i < m->n; i++)
		if (m->members[i].pid == 0)
			return LOOK_MS / 4;
	return DIRS_MS;
}

static bool
prepare(struct master *m)
{
	sigset_t child;

	m->board =
	    mmap(NULL, sizeof *m->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (m->board == MAP_FAILED)
		return false;
	m->members = calloc(m->n, sizeof *m->members);
	m->leaving = calloc(m->n, sizeof *m->leaving);
	if (m->members == NULL || m->leaving == NULL)
		die("no memory");
	if (watch_open(&m->watch, m->job->conf->server.drain_timeout_ms) < 0)
		return false;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &child, NULL) == 0 && watch_children(&m->watch) >= 0;
}

int
master_run(struct worker_job *job, unsigned workers)
{
	struct master m = {.job = job, .n = workers};

	if (!prepare(&m)) {
		log_fields(job->log, LOG_LEVEL_ERROR, clock_wall(), "the master cannot start",
		    LOG_Z("why", strerror(errno)));
		return 1;
	}
	log_fields(job->log, LOG_LEVEL_INFO, clock_wall(), "started",
	    LOG_Z("version", SLUICE_VERSION), LOG_NUMBER("workers", workers));
	while (!m.stopping || count_alive(&m) > 0) {
		struct pollfd p = {.fd = m.watch.signal_fd, .events = POLLIN};

		start_due(&m);
		poll(&p, 1, wait_ms(&m));
		watch_signals(&m.watch, clock_mono());
		obey_signals(&m);
		watch_dirs(&m);
		reap(&m);
	}
	heap_unplug(&m.plug);
	free(m.members);
	free(m.leaving);
	log_fields(
	    job->log, LOG_LEVEL_INFO, clock_wall(), "stopped", LOG_Z("version", SLUICE_VERSION));
	return 0;
}
