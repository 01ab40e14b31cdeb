#include "base/clock.h"
#include "base/environment.h"
#include "ctl/args.h"
#include "ctl/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 20
#define START_MS 30000
#define WORDS_MAX 12
#define SOCKET_NAME "sluice.sock"

struct plan {
	const char *listen, *workers, *mode, *program;
	char listen_room[PATH_MAX], program_room[PATH_MAX], log[PATH_MAX];
	char *words[WORDS_MAX];
	int log_fd;
	off_t log_from; /* what was there before */
};

/* Beside this program, or where `make install` puts it. */
static bool
find_program(struct ctl *ctl, struct plan *plan)
{
	static const char *const places[] = {"sluice.fcgi", "../lib/sluice/sluice.fcgi"};
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (plan->program != NULL)
		return true;
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		slash[1] = '\0';
	for (size_t i = 0; i < NELEM(places); i++) {
		snprintf(plan->program_room, sizeof plan->program_room, "%s%s", self, places[i]);
		plan->program = plan->program_room;
		if (access(plan->program, X_OK) == 0)
			return true;
	}
	fprintf(ctl->err,
	    "sluicectl: no sluice.fcgi in '%s' or '%s../lib/sluice': name it with --program\n",
	    self, self);
	return false;
}

/* The configuration's directory: known to the user, and not closed to the web server as state_dir is. */
static void
find_socket(const struct daemon *d, struct plan *plan)
{
	const char *slash = strrchr(d->path, '/');

	if (plan->listen != NULL)
		return;
	snprintf(plan->listen_room, sizeof plan->listen_room, "unix:%.*s/%s",
	    slash == NULL ? 1 : (int)(slash - d->path), slash == NULL ? "." : d->path, SOCKET_NAME);
	plan->listen = plan->listen_room;
}

static bool
open_log(struct ctl *ctl, const struct daemon *d, struct plan *plan)
{
	struct stat st;

	snprintf(plan->log, sizeof plan->log, "%s/%s", d->conf->state_dir.p, DAEMON_LOG);
	plan->log_fd = open(plan->log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (plan->log_fd < 0 || fstat(plan->log_fd, &st) != 0) {
		fprintf(ctl->err, "sluicectl: cannot open '%s': %s\n", plan->log, strerror(errno));
		return false;
	}
	plan->log_from = st.st_size;
	return true;
}

/* exec takes them as changeable, and leaves them alone. */
static char *
word(const char *text)
{
	union {
		const char *in;
		char *out;
	} same = {text};

	return same.out;
}

static void
set_words(const struct daemon *d, struct plan *plan)
{
	unsigned n = 0;

	plan->words[n++] = word(plan->program);
	plan->words[n++] = word("-c");
	plan->words[n++] = word(d->path);
	plan->words[n++] = word("--listen");
	plan->words[n++] = word(plan->listen);
	plan->words[n++] = word("--workers");
	plan->words[n++] = word(plan->workers == NULL ? "auto" : plan->workers);
	if (plan->mode != NULL) {
		plan->words[n++] = word("--socket-mode");
		plan->words[n++] = word(plan->mode);
	}
	plan->words[n] = NULL;
}

/*
 * After kill -9 of a master its workers still answer, and hold the socket, but take no request any more. The kernel knows
 * who had made it listen: if that is the last pool, its file may go.
 */
static void
clear_orphans(const struct daemon *d, const struct plan *plan)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred who;
	socklen_t n = sizeof who;
	const char *path = plan->listen + 5;
	int fd;

	if (strncmp(plan->listen, "unix:", 5) != 0 || strlen(path) >= sizeof address.sun_path ||
	    strcmp(plan->listen, d->text.listen) != 0)
		return;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid == d->text.pid)
		unlink(path);
	close(fd);
}

/* A session of its own, no terminal, no directory held, signals as usual. */
static int
spawn(const struct plan *plan, pid_t *pid_out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, plan->log_fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, plan->log_fd, STDERR_FILENO);
	posix_spawn_file_actions_addchdir_np(&actions, "/");
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(
	    &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	/* started from a CGI script it would take itself for one */
	environment_forget("REQUEST_METHOD");
	rc = posix_spawn(pid_out, plan->program, &actions, &attributes, plan->words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* What it has said since. */
static void
print_log(struct ctl *ctl, const struct plan *plan)
{
	char bytes[4096];
	off_t at = plan->log_from;
	ssize_t n;

	while ((n = pread(plan->log_fd, bytes, sizeof bytes, at)) > 0) {
		fwrite(bytes, 1, (size_t)n, ctl->err);
		at += n;
	}
}

/* The usual place of the socket may be one that only root writes to. */
static const char *
hint(const struct plan *plan)
{
	char dir[sizeof plan->listen_room];
	char *slash;

	if (plan->listen != plan->listen_room)
		return "";
	memcpy(dir, plan->listen_room, sizeof dir);
	slash = strrchr(dir, '/');
	if (slash != NULL)
		*slash = '\0';
	return access(dir + strlen("unix:"), W_OK) == 0
	           ? ""
	           : "; try --listen unix:/run/sluice/sluice.sock";
}

static int
wait_ready(struct ctl *ctl, struct daemon *d, const struct plan *plan, pid_t child)
{
	struct mono_ms begin = clock_mono();
	int status;

	while (clock_mono().v - begin.v < START_MS) {
		if (daemon_pid(d) == child && d->text.pid == child &&
		    d->text.state == PIDFILE_READY) {
			daemon_say(ctl, d, "started", true);
			return CTL_DONE;
		}
		if (waitpid(child, &status, WNOHANG) == child) {
			print_log(ctl, plan);
			fprintf(ctl->err, "sluicectl: not started%s\n", hint(plan));
			return CTL_FAILED;
		}
		poll(NULL, 0, LOOK_MS);
	}
	print_log(ctl, plan);
	fprintf(ctl->err, "sluicectl: pid %d is not ready after %d s; see %s\n", (int)child,
	    START_MS / 1000, plan->log);
	return CTL_FAILED;
}

static int
start_it(struct ctl *ctl, struct daemon *d, struct plan *plan)
{
	pid_t child;
	int rc;

	if (!find_program(ctl, plan) || !open_log(ctl, d, plan))
		return CTL_FAILED;
	find_socket(d, plan);
	set_words(d, plan);
	clear_orphans(d, plan);
	rc = spawn(plan, &child);
	if (rc == 0) {
		rc = wait_ready(ctl, d, plan, child);
	} else {
		fprintf(ctl->err, "sluicectl: cannot run '%s': %s\n", plan->program, strerror(rc));
		rc = CTL_FAILED;
	}
	close(plan->log_fd);
	return rc;
}

/* One that is about to end is waited for. */
static bool
is_running(struct ctl *ctl, struct daemon *d)
{
	pid_t pid = daemon_pid(d);

	if (pid > 0 && d->text.state == PIDFILE_STOPPING)
		daemon_wait_gone(ctl, d, pid, d->conf->server.drain_timeout_ms + START_MS);
	return daemon_pid(d) > 0;
}

int
daemon_start_run(struct ctl *ctl, int argc, char **argv)
{
	struct plan plan = {.listen = NULL};
	const struct args_option options[] = {{.name = "--listen", .text = &plan.listen},
	    {.name = "--workers", .text = &plan.workers},
	    {.name = "--socket-mode", .text = &plan.mode},
	    {.name = "--program", .text = &plan.program}};
	struct daemon d;
	int status;

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (!daemon_open(ctl, &d, true))
		return CTL_FAILED;
	if (!pidfile_lock_start(d.fd)) {
		fprintf(ctl->err, "sluicectl: cannot lock '%s/%s': %s\n", d.conf->state_dir.p,
		    PIDFILE_NAME, strerror(errno));
		status = CTL_FAILED;
	} else if (is_running(ctl, &d)) {
		daemon_say(ctl, &d, "already running", false);
		if (!ctl->json && plan.listen != NULL && strcmp(plan.listen, d.text.listen) != 0)
			fprintf(ctl->out, "not on %s: stop it first\n", plan.listen);
		status = CTL_DONE;
	} else if (daemon_is_foreign(ctl, &d)) {
		status = CTL_FAILED;
	} else {
		status = start_it(ctl, &d, &plan);
	}
	daemon_close(&d);
	return status;
}
