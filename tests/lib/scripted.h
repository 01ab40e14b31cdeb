/*
 * scripted - a provider on 127.0.0.1 that does exactly what a test says, byte by byte, and counts what it was sent.
 *
 * It is a child process that serves one connection after the other, each by its own list of steps; connections beyond the
 * last list are served by it again. What it saw lies in shared memory.
 */
#ifndef TESTS_LIB_SCRIPTED_H
#define TESTS_LIB_SCRIPTED_H

#include "lib/store_dir.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum scripted_act {
	ACT_END = 0, /* close */
	ACT_READ,    /* one request, whole */
	ACT_HEAD,    /* a request's head alone */
	ACT_SEND,
	ACT_DRIBBLE, /* byte by byte, `ms` between */
	ACT_FILL,    /* `ms` kilobytes of 'x' */
	ACT_SLEEP,
	ACT_RESET,
	ACT_LINGER, /* wait until the other side closes, then say so in `closed` */
};

struct scripted_step {
	enum scripted_act act;
	const char *bytes;
	long ms;
	size_t n; /* of bytes; 0 = strlen */
};

#define DO_END                 \
	{                      \
		.act = ACT_END \
	}
#define DO_READ                 \
	{                       \
		.act = ACT_READ \
	}
#define DO_HEAD                 \
	{                       \
		.act = ACT_HEAD \
	}
#define DO_RESET                 \
	{                        \
		.act = ACT_RESET \
	}
#define DO_LINGER                 \
	{                         \
		.act = ACT_LINGER \
	}
#define DO_SEND(z)                            \
	{                                     \
		.act = ACT_SEND, .bytes = (z) \
	}
#define DO_SEND_N(p, size)                                 \
	{                                                  \
		.act = ACT_SEND, .bytes = (p), .n = (size) \
	}
#define DO_DRIBBLE(z, gap)                                    \
	{                                                     \
		.act = ACT_DRIBBLE, .bytes = (z), .ms = (gap) \
	}
#define DO_FILL(kilobytes)                         \
	{                                          \
		.act = ACT_FILL, .ms = (kilobytes) \
	}
#define DO_SLEEP(time)                         \
	{                                      \
		.act = ACT_SLEEP, .ms = (time) \
	}

#define SCRIPTED_STEPS 12
#define SCRIPTED_HEADS 6
#define SCRIPTED_HEAD_MAX 16384

struct scripted_seen {
	volatile unsigned connections, heads, requests, closed; /* heads: begun requests */
	char head[SCRIPTED_HEADS][SCRIPTED_HEAD_MAX];
	size_t body_n[SCRIPTED_HEADS];
	uint64_t body_hash[SCRIPTED_HEADS];
};

struct scripted {
	int port;
	int listener;
	pid_t pid;
	struct scripted_seen *seen;
};

static inline void
scripted_send(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t k = send(fd, bytes, n, MSG_NOSIGNAL);

		if (k <= 0)
			return;
		bytes += k;
		n -= (size_t)k;
	}
}

/* False: nothing came. */
static inline bool
scripted_read(int fd, struct scripted_seen *seen, bool whole)
{
	static char piece[65536];
	unsigned at = seen->heads % SCRIPTED_HEADS;
	char *head = seen->head[at], *length;
	size_t n = 0, body = 0;

	memset(head, 0, SCRIPTED_HEAD_MAX);
	while (strstr(head, "\r\n\r\n") == NULL) {
		if (n == SCRIPTED_HEAD_MAX - 1 || read(fd, head + n, 1) != 1)
			return false;
		n++;
	}
	seen->heads++;
	seen->body_n[at] = 0;
	seen->body_hash[at] = key_hash(0, "", 0);
	length = strcasestr(head, "\r\nContent-Length:");
	if (length != NULL)
		body = strtoul(length + 17, NULL, 10);
	while (whole && seen->body_n[at] < body) {
		size_t left = body - seen->body_n[at];
		ssize_t k = read(fd, piece, left < sizeof piece ? left : sizeof piece);

		if (k <= 0)
			return false;
		seen->body_hash[at] = key_hash(seen->body_hash[at], piece, (uint64_t)k);
		seen->body_n[at] += (size_t)k;
	}
	seen->requests += whole;
	return true;
}

static inline bool
scripted_act(int fd, struct scripted_seen *seen, const struct scripted_step *step)
{
	size_t n = step->n > 0 ? step->n : step->bytes == NULL ? 0 : strlen(step->bytes);
	char byte;

	switch (step->act) {
	case ACT_END: return false;
	case ACT_READ: return scripted_read(fd, seen, true);
	case ACT_HEAD: return scripted_read(fd, seen, false);
	case ACT_SEND: scripted_send(fd, step->bytes, n); return true;
	case ACT_DRIBBLE:
		for (size_t i = 0; i < n; i++) {
			scripted_send(fd, step->bytes + i, 1);
			nap_ms(step->ms);
		}
		return true;
	case ACT_FILL:
		for (long i = 0; i < step->ms; i++) {
			char x[1024];

			memset(x, 'x', sizeof x);
			scripted_send(fd, x, sizeof x);
		}
		return true;
	case ACT_SLEEP: nap_ms(step->ms); return true;
	case ACT_RESET:
		setsockopt(
		    fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
		return false;
	case ACT_LINGER:
		while (read(fd, &byte, 1) > 0)
			continue;
		seen->closed++;
		return false;
	}
	return false;
}

static inline void
scripted_run(const struct scripted *s, const struct scripted_step steps[][SCRIPTED_STEPS], size_t n)
{
	for (size_t c = 0;; c++) {
		const struct scripted_step *step = steps[c < n ? c : n - 1];
		int fd = accept(s->listener, NULL, NULL);

		if (fd < 0)
			return;
		s->seen->connections++;
		for (int i = 0; i < SCRIPTED_STEPS && scripted_act(fd, s->seen, &step[i]); i++)
			continue;
		close(fd);
	}
}

/* Bind a port, before the configuration that names it is made. */
static inline void
scripted_bind(struct scripted *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;

	s->pid = 0;
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(s->listener, 16), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &n), 0);
	s->port = ntohs(at.sin_port);
	s->seen = shared_bytes(sizeof *s->seen);
}

static inline void
scripted_start(struct scripted *s, const struct scripted_step steps[][SCRIPTED_STEPS], size_t n)
{
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(30);
	scripted_run(s, steps, n);
	_exit(0);
}

static inline void
scripted_stop(struct scripted *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	close(s->listener);
	munmap(s->seen, sizeof *s->seen);
}

/* The value of a header of request `at`, or NULL; good until the next call. */
static inline const char *
scripted_header(const struct scripted *s, unsigned at, const char *name)
{
	static char value[SCRIPTED_HEAD_MAX];
	char line[128];
	const char *found, *end;

	snprintf(line, sizeof line, "\r\n%s:", name);
	found = strcasestr(s->seen->head[at], line);
	if (found == NULL)
		return NULL;
	found += strlen(line);
	found += strspn(found, " ");
	end = strstr(found, "\r\n");
	snprintf(value, sizeof value, "%.*s", (int)(end - found), found);
	return value;
}

#endif
