#include "handover.h"

#include "base/environment.h"
#include "base/err.h"
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "SLUICE_HANDOVER"
#define FORMAT 1

void
handover_print(const struct handover *handover, pid_t own, char out[HANDOVER_BYTES])
{
	size_t at = (size_t)snprintf(out, HANDOVER_BYTES, "%d %d %d %d %lld", FORMAT, (int)own,
	    handover->listen_fd, handover->pid_fd, (long long)handover->serial);

	for (unsigned i = 0; i < handover->n; i++)
		at += (size_t)snprintf(out + at, HANDOVER_BYTES - at, " %d%c",
		    (int)handover->workers[i].pid, (int)handover->workers[i].state);
}

static bool
take_number(struct span *rest, int64_t min, int64_t max, int64_t *out)
{
	struct span token;

	return text_token(rest, " ", &token) && text_i64(token, min, max, out);
}

static bool
take_worker(struct span token, struct handover *handover)
{
	int64_t pid;
	char state = token.n == 0 ? '\0' : token.p[token.n - 1];

	if (handover->n == BOARD_PLACES ||
	    (state != HANDOVER_IDLE && state != HANDOVER_BUSY && state != HANDOVER_LEAVING) ||
	    !text_i64((struct span){token.p, token.n - 1}, 2, INT_MAX, &pid))
		return false;
	handover->workers[handover->n].pid = (pid_t)pid;
	handover->workers[handover->n].state = (enum handover_state)state;
	handover->n++;
	return true;
}

bool
handover_parse(struct span text, pid_t own, struct handover *handover_out)
{
	int64_t format, pid, listen_fd, pid_fd, serial;
	struct span token;

	if (!take_number(&text, FORMAT, FORMAT, &format) || !take_number(&text, own, own, &pid) ||
	    !take_number(&text, 0, INT_MAX, &listen_fd) ||
	    !take_number(&text, -1, INT_MAX, &pid_fd) ||
	    !take_number(&text, 0, INT64_MAX - 1, &serial))
		return false;
	*handover_out =
	    (struct handover){.listen_fd = (int)listen_fd, .pid_fd = (int)pid_fd, .serial = serial};
	while (text_token(&text, " ", &token))
		if (!take_worker(token, handover_out))
			return false;
	return true;
}

static bool
is_our_child(pid_t pid)
{
	siginfo_t found;

	return waitid(P_PID, (id_t)pid, &found, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool
is_true(const struct handover *handover)
{
	if (!listen_is(handover->listen_fd) ||
	    (handover->pid_fd >= 0 && fcntl(handover->pid_fd, F_GETFD) < 0))
		return false;
	for (unsigned i = 0; i < handover->n; i++)
		if (!is_our_child(handover->workers[i].pid))
			return false;
	return true;
}

static void
keep_over_exec(int fd, bool keep)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, keep || fd <= STDERR_FILENO ? 0 : FD_CLOEXEC);
}

bool
handover_take(struct handover *handover_out)
{
	const char *value = getenv(VARIABLE);
	bool good = value != NULL && handover_parse(text_span(value), getpid(), handover_out) &&
	            is_true(handover_out);

	if (value != NULL)
		environment_forget(VARIABLE);
	if (good) {
		keep_over_exec(handover_out->listen_fd, false);
		keep_over_exec(handover_out->pid_fd, false);
	}
	return good;
}

void
handover_exec(const char *program, char **argv, const struct handover *handover)
{
	char *variable = malloc(sizeof VARIABLE + HANDOVER_BYTES);
	size_t n = 0;
	char **env;
	int why;

	while (environ[n] != NULL)
		n++;
	env = calloc(n + 2, sizeof *env);
	if (variable == NULL || env == NULL)
		die("no memory");
	memcpy(env, environ, n * sizeof *env);
	memcpy(variable, VARIABLE "=", sizeof VARIABLE);
	handover_print(handover, getpid(), variable + sizeof VARIABLE);
	env[n] = variable;
	keep_over_exec(handover->listen_fd, true);
	keep_over_exec(handover->pid_fd, true);
	execve(program, argv, env);
	why = errno;
	keep_over_exec(handover->listen_fd, false);
	keep_over_exec(handover->pid_fd, false);
	free(env);
	free(variable);
	errno = why;
}
