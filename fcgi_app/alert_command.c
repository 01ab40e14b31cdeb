#include "alert.h"

#include "base/clock.h"
#include "base/date.h"
#include "errand.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 20
#define ENTRIES_MAX 20
#define ENTRY_MAX 512
#define DEFAULT_PATH "PATH=/usr/local/bin:/usr/bin:/bin"

/* What it is started with. */
struct start {
	char entries[ENTRIES_MAX][ENTRY_MAX];
	char *env[ENTRIES_MAX + 1];
	unsigned n;
	int in; /* its standard input: the whole event is in the pipe before it starts */
};

static void __attribute__((format(printf, 2, 3))) add(struct start *st, const char *fmt, ...)
{
	va_list args;

	if (st->n == ENTRIES_MAX)
		die("too many variables for a command");
	va_start(args, fmt);
	vsnprintf(st->entries[st->n], ENTRY_MAX, fmt, args);
	va_end(args);
	st->env[st->n] = st->entries[st->n];
	st->n++;
}

/* Our own environment may hold keys: only what any command needs. */
static void
add_ours(struct start *st)
{
	static const char *const names[] = {"PATH", "HOME", "LANG", "TZ"};

	for (size_t i = 0; i < NELEM(names); i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && strlen(value) < ENTRY_MAX - 8)
			add(st, "%s=%s", names[i], value);
		else if (i == 0)
			add(st, "%s", DEFAULT_PATH);
	}
}

static void
add_event(struct start *st, uint64_t sequence, const struct journal_row *event)
{
	char at[DATE_TEXT], until[DATE_TEXT] = "", line[256];

	date_print((struct wall_ms){event->at_ms}, at);
	if (event->new_until_ms != 0)
		date_print((struct wall_ms){event->new_until_ms}, until);
	alert_line(event, line, sizeof line);
	add(st, "SLUICE_SEQUENCE=%llu", (unsigned long long)sequence);
	add(st, "SLUICE_AT=%s", at);
	add(st, "SLUICE_TEXT=%s", line);
	add(st, "SLUICE_CHANNEL=%s", event->channel);
	add(st, "SLUICE_ACCOUNT=%s", event->account);
	add(st, "SLUICE_MODEL=%s", event->model);
	add(st, "SLUICE_FROM=%s", event->from);
	add(st, "SLUICE_TO=%s", event->to);
	add(st, "SLUICE_CAUSE=%s", event->cause);
	add(st, "SLUICE_RULE=%s", event->rule);
	add(st, "SLUICE_STATUS=%u", event->status);
	add(st, "SLUICE_UNTIL=%s", until);
}

/* A pipe with the event in it. */
static bool
fill_pipe(struct start *st, uint64_t sequence, const struct journal_row *event)
{
	struct buf json;
	int fds[2];
	bool ok;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	buf_init(&json, PIPE_BUF); /* so much goes into an empty pipe at once */
	alert_json(sequence, event, &json);
	buf_char(&json, '\n');
	ok = !json.over && fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0 &&
	     write(fds[1], json.p, json.n) == (ssize_t)json.n;
	buf_release(&json);
	close(fds[1]);
	if (ok)
		st->in = fds[0];
	else
		close(fds[0]);
	return ok;
}

/* A process group of its own, so that all of it can be ended; signals and descriptors as in a shell. */
static int
spawn(const struct start *st, const char *command, pid_t *pid_out)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, NULL, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	char *copy = strdup(command);
	int rc;

	if (copy == NULL)
		die("no memory");
	argv[2] = copy;
	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attributes) != 0)
		die("no memory");
	posix_spawnattr_setflags(
	    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawn_file_actions_adddup2(&actions, st->in, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	rc = posix_spawn(pid_out, "/bin/sh", &actions, &attributes, argv, st->env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(copy);
	return rc;
}

bool
alert_begin(struct serve *s, uint64_t sequence, const struct journal_row *event, struct why *why)
{
	struct start *st = arena_alloc(s->arena, sizeof *st);
	pid_t pid;
	int rc;

	add_ours(st);
	add_event(st, sequence, event);
	if (!fill_pipe(st, sequence, event)) {
		err_why(why, "no pipe for its input");
		return false;
	}
	rc = spawn(st, s->conf->alerts.command.p, &pid);
	close(st->in);
	if (rc != 0) {
		err_why(why, "%s", strerror(rc));
		return false;
	}
	s->alert_pid = pid;
	s->alert_until.v = clock_mono().v + ALERT_COMMAND_MS;
	return true;
}

static void
log_end(const struct serve *s, int status, bool late)
{
	char why[64] = "";

	if (late)
		snprintf(why, sizeof why, "not done within %d s", ALERT_COMMAND_MS / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		snprintf(why, sizeof why, "exit status %d", WEXITSTATUS(status));
	if (why[0] != '\0')
		log_fields(s->log, LOG_LEVEL_WARN, clock_wall(), "alerts.command failed",
		    LOG_Z("why", why));
}

bool
alert_runs(struct serve *s)
{
	bool late = clock_mono().v >= s->alert_until.v;
	int status = 0;
	pid_t pid;

	if (s->alert_pid == 0)
		return false;
	if (late)
		kill(-s->alert_pid, SIGKILL);
	do
		pid = waitpid(s->alert_pid, &status, late ? 0 : WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return true;
	s->alert_pid = 0;
	log_end(s, status, late);
	return false;
}

void
alert_wait(struct serve *s)
{
	while (alert_runs(s) && !errand_must_return(s))
		poll(NULL, 0, LOOK_MS);
}
