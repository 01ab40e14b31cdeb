#include "trial.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child all signals do what they usually do: ours are blocked. */
static void
set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(attributes, &none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int
spawn(pid_t *pid_out, int out, const char *program, char **argv)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc;

	posix_spawn_file_actions_init(&actions);
	/* not the listening socket; /dev may be missing */
	posix_spawn_file_actions_adddup2(&actions, out, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	set_signals(&attributes);
	rc = posix_spawn(pid_out, program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* The same words and --test; to be freed. */
static char **
with_test(char **argv)
{
	static char option[] = "--test";
	size_t n = 0;
	char **longer;

	while (argv[n] != NULL)
		n++;
	longer = calloc(n + 2, sizeof *longer);
	if (longer == NULL)
		die("no memory");
	memcpy(longer, argv, n * sizeof *longer);
	longer[n] = option;
	return longer;
}

bool
trial_begin(
    struct trial *trial, const char *program, char **argv, struct mono_ms now, struct why *why)
{
	char **words;
	int pipe_fd[2], rc;

	*trial = (struct trial){.fd = -1, .until = {now.v + TRIAL_LIMIT_MS}};
	if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
		err_why(why, "no pipe: %s", strerror(errno));
		return false;
	}
	words = with_test(argv);
	rc = spawn(&trial->pid, pipe_fd[1], program, words);
	free(words);
	close(pipe_fd[1]);
	if (rc != 0) {
		close(pipe_fd[0]);
		trial->pid = 0;
		err_why(why, "cannot run '%.300s': %s", program, strerror(rc));
		return false;
	}
	fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
	trial->fd = pipe_fd[0];
	return true;
}

static void
drain(struct trial *trial)
{
	char bytes[1024];
	ssize_t n;

	while (trial->fd >= 0 && (n = read(trial->fd, bytes, sizeof bytes)) != 0) {
		size_t room = sizeof trial->output - trial->n;

		if (n < 0)
			return;
		if ((size_t)n < room)
			room = (size_t)n;
		memcpy(trial->output + trial->n, bytes, room);
		trial->n += room;
	}
	if (trial->fd >= 0)
		close(trial->fd);
	trial->fd = -1;
}

void
trial_look(struct trial *trial, struct mono_ms now)
{
	drain(trial);
	if (trial->pid == 0 || now.v < trial->until.v || trial->late)
		return;
	kill(trial->pid, SIGKILL);
	trial->late = true;
}

bool
trial_passed(struct trial *trial, int status, struct why *why)
{
	struct span said, line;

	drain(trial);
	if (trial->fd >= 0)
		close(trial->fd); /* a child of its own still has it */
	trial->fd = -1;
	trial->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	said = (struct span){trial->output, trial->n};
	if (trial->late)
		err_why(why, "--test took longer than %d s", TRIAL_LIMIT_MS / 1000);
	else if (text_token(&said, "\n", &line))
		err_why(why, "%.*s", (int)(line.n < 400 ? line.n : 400), line.p);
	else if (WIFSIGNALED(status))
		err_why(why, "--test ended by signal %d", WTERMSIG(status));
	else
		err_why(why, "--test ended with status %d", WEXITSTATUS(status));
	return false;
}
