#include "fcgi.h"

#include "fcgi_guard.h"

#include <fcgiapp.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define IN_BYTES 16384
#define PIPE_BYTES 65536   /* Linux's default */
#define PIPE_MOST 1048576  /* the most that Linux gives by default: for large variables */
#define WRITE_BYTES 8000   /* libfcgi writes at most once for it */
#define STOP_GRACE_MS 1000 /* for the variables to come when a signal asked to end */
/* A socket takes this much without blocking: no time limit is needed. */
#define UNLIMITED_BYTES 65536
/* After an early answer the peer may still be sending, and read only then: hosting.md 5. */
#define LINGER_MS 2000
#define LINGER_LOOK_MS 100

struct fcgi {
	FCGX_Request request;
	struct exchange exchange;
	struct watch *watch;
	struct mono_ms (*clock)(void);
	int fd, listen_fd;
	int pipe[2]; /* what the guard lets pass, on its way to libfcgi */
	size_t room; /* bytes that an empty pipe surely takes */
	struct fcgi_guard guard;
	int64_t client_timeout_ms, stop_grace_ms; /* 0 = the whole drain */
	bool body_ended;                          /* all of it is in the pipe */
	int error;                                /* nor will more of it come */
	bool broken;                              /* nothing more can be written */
	bool send_limited;                        /* SO_SNDTIMEO is set */
	size_t unlimited_bytes;                   /* written before it was */
	struct buf clean;                         /* out of the guard, not in the pipe yet */
	size_t at, n;                             /* in[at..n) is not looked at yet */
	char in[IN_BYTES];
};

static struct mono_ms
later(const struct fcgi *f, int64_t ms)
{
	struct mono_ms now = f->clock();

	now.v += ms;
	return now;
}

static bool
fail_with(int error)
{
	errno = error;
	return false;
}

static bool
wait_for_bytes(struct fcgi *f, struct mono_ms until)
{
	for (;;) {
		struct mono_ms now = f->clock(), look = until;

		if (f->stop_grace_ms > 0 && until.v - now.v > f->stop_grace_ms)
			look.v = now.v + f->stop_grace_ms;
		if (watch_wait(f->watch, f->fd, POLLIN, look, f->clock))
			return true;
		if (errno != EAGAIN || look.v == until.v)
			return false;
		if (f->watch->stopping)
			return fail_with(ECANCELED);
	}
}

/* All that came before has been looked at. */
static bool
fill(struct fcgi *f, struct mono_ms until)
{
	ssize_t got;

	f->at = f->n = 0;
	for (;;) {
		got = recv(
		    f->fd, f->in, sizeof f->in < f->room ? sizeof f->in : f->room, MSG_DONTWAIT);
		if (got > 0)
			break;
		if (got == 0)
			errno = ECONNRESET;
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		if (errno == EAGAIN && !wait_for_bytes(f, until))
			return false;
	}
	f->n = (size_t)got;
	/* bytes that keep coming must not make it last */
	return f->clock().v < until.v || fail_with(EAGAIN);
}

/* Let the guard look at what came; who does not take its answer at once is not served. */
static enum fcgi_guard_rc
guard_input(struct fcgi *f, struct why *why)
{
	struct fcgi_guard *g = &f->guard;
	struct span rest = {f->in + f->at, f->n - f->at};
	enum fcgi_guard_rc rc;

	buf_clear(&f->clean);
	do {
		rc = fcgi_guard_pass(g, &rest, &f->clean, why);
		if (g->answer_n > 0 && send(f->fd, g->answer, g->answer_n,
		                           MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)g->answer_n)
			rc = FCGI_GUARD_REFUSED;
	} while (rc == FCGI_GUARD_MORE && rest.n > 0);
	f->at = f->n - rest.n;
	return rc;
}

static void
open_pipe(struct fcgi *f)
{
	int size;

	if (pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		die("no pipe");
	size = fcntl(f->pipe[1], F_GETPIPE_SZ);
	/* less than PIPE_BYTES where the user has too many */
	f->room = (size > 0 ? (size_t)size : 4096) - FCGI_GUARD_HEAD_BYTES;
}

static void
close_pipe(struct fcgi *f)
{
	close(f->pipe[0]);
	close(f->pipe[1]);
}

/* Nothing of this request is left for the next one. */
static void
empty_pipe(struct fcgi *f)
{
	while (read(f->pipe[0], f->in, sizeof f->in) > 0)
		continue;
	if (fcntl(f->pipe[1], F_GETPIPE_SZ) > PIPE_BYTES &&
	    fcntl(f->pipe[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		return; /* it stays large */
}

static bool
hand_over(struct fcgi *f, struct why *why)
{
	const char *p = f->clean.p;
	size_t n = f->clean.n;

	for (bool grown = false; n > 0; grown = true) {
		ssize_t put = write(f->pipe[1], p, n);

		if (put > 0) {
			p += put;
			n -= (size_t)put;
		}
		if (n == 0)
			break;
		if (grown || fcntl(f->pipe[1], F_SETPIPE_SZ, PIPE_MOST) < 0) {
			err_why(why, "variables of more than %d bytes", FCGI_GUARD_PARAMS_BYTES);
			return fail_with(EPROTO);
		}
	}
	return true;
}

/* The variables are in the pipe, whole and well-formed. */
static bool
accept_request(struct fcgi *f)
{
	f->request.ipcFd = f->pipe[0];
	f->request.keepConnection = 1; /* or libfcgi closes the descriptor before it reads */
	if (FCGX_Accept_r(&f->request) == 0 && FCGX_GetError(f->request.in) == 0) {
		f->request.ipcFd = f->fd;
		return true;
	}
	/* a failure has closed the pipe */
	if (f->request.in != NULL)
		FCGX_Free(&f->request, 1);
	f->request.ipcFd = -1;
	close(f->pipe[1]);
	open_pipe(f);
	return fail_with(EPROTO);
}

/* More of it for libfcgi. */
static bool
feed(struct fcgi *f, struct mono_ms until)
{
	if (f->at == f->n && !fill(f, until))
		return false;
	switch (guard_input(f, NULL)) {
	case FCGI_GUARD_MORE: break;
	case FCGI_GUARD_END:
		f->body_ended = true;
		/* only an abort can follow, and once it is read nobody else would see it */
		f->error = f->at < f->n ? ECONNABORTED : 0;
		break;
	case FCGI_GUARD_ABORTED: f->error = ECONNABORTED; break;
	case FCGI_GUARD_HEAD:
	case FCGI_GUARD_REFUSED: f->error = EPROTO; break;
	}
	return hand_over(f, NULL);
}

/* What libfcgi has of it: it reads from the pipe, and writes to the peer. */
static int
pull(struct fcgi *f, char *dst, size_t n)
{
	FCGX_Stream *in = f->request.in;
	int got, error;

	f->request.ipcFd = f->pipe[0];
	got = FCGX_GetStr(dst, (int)n, in);
	f->request.ipcFd = f->fd;
	error = FCGX_GetError(in);
	if (error == EAGAIN) { /* the pipe is empty; the stream goes on where it was */
		FCGX_ClearError(in);
		in->isClosed = 0;
	} else if (error != 0 && f->error == 0) {
		f->error = EPROTO;
	}
	return got;
}

static ssize_t
read_body(void *io, char *dst, size_t n)
{
	struct fcgi *f = io;
	struct mono_ms until = later(f, f->client_timeout_ms);

	for (;;) {
		int got = pull(f, dst, n);

		if (got > 0)
			return got;
		errno = f->error;
		if (f->error != 0)
			return -1;
		if (f->body_ended)
			return 0;
		if (!feed(f, until)) {
			f->error = errno == EAGAIN ? 0 : errno;
			return -1;
		}
	}
}

static void
limit_sending(struct fcgi *f, size_t n)
{
	int64_t ms = f->client_timeout_ms;
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	f->unlimited_bytes += n;
	if (f->send_limited || f->unlimited_bytes < UNLIMITED_BYTES)
		return;
	f->send_limited = true;
	/* for a socket that is ready and blocks all the same */
	if (setsockopt(f->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv) != 0)
		return;
}

static bool
may_write(struct fcgi *f, size_t n)
{
	limit_sending(f, n);
	if (f->send_limited && !f->broken)
		f->broken =
		    !watch_wait(f->watch, f->fd, POLLOUT, later(f, f->client_timeout_ms), f->clock);
	return !f->broken;
}

static bool
write_bytes(void *io, const char *bytes, size_t n)
{
	struct fcgi *f = io;

	while (n > 0 && !f->broken) {
		size_t some = n < WRITE_BYTES ? n : WRITE_BYTES;

		if (may_write(f, some))
			f->broken = FCGX_PutStr(bytes, (int)some, f->request.out) < 0;
		bytes += some;
		n -= some;
	}
	return !f->broken;
}

static bool
flush(void *io)
{
	struct fcgi *f = io;

	if (may_write(f, 0))
		f->broken = FCGX_FFlush(f->request.out) < 0;
	return !f->broken;
}

/* An empty record of the error stream: nothing to a peer that reads, a reset from one that is gone (TCP). */
static void
probe(void *io)
{
	const struct fcgi *f = io;
	unsigned id = (unsigned)f->request.requestId;
	unsigned char record[8] = {
	    1, 7, (unsigned char)(id >> 8 & 0xff), (unsigned char)(id & 0xff)};

	if (!f->broken && send(f->fd, record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* the next poll shows it */
}

struct fcgi *
fcgi_new(struct watch *watch, struct mono_ms (*clock)(void), int listen_fd)
{
	struct fcgi *f = calloc(1, sizeof *f);

	if (f == NULL || FCGX_InitRequest(&f->request, -1, 0) != 0)
		die("libfcgi does not start");
	/* never wait for the peer to close: linger() does that better */
	FCGX_Detach(&f->request);
	f->request.ipcFd = f->fd = -1;
	f->watch = watch;
	f->clock = clock;
	f->listen_fd = listen_fd;
	open_pipe(f);
	buf_init(&f->clean, IN_BYTES + FCGI_GUARD_HEAD_BYTES);
	f->exchange = (struct exchange){.client_fd = -1,
	    .io = f,
	    .read = read_body,
	    .write = write_bytes,
	    .flush = flush,
	    .probe = probe};
	return f;
}

void
fcgi_free(struct fcgi **f)
{
	if (*f != NULL) {
		close_pipe(*f);
		buf_release(&(*f)->clean);
	}
	free(*f);
	*f = NULL;
}

static bool
read_head(struct fcgi *f, struct mono_ms until, struct why *why)
{
	for (;;) {
		if (!fill(f, until))
			return false;
		switch (guard_input(f, why)) {
		case FCGI_GUARD_MORE: break;
		case FCGI_GUARD_HEAD: return hand_over(f, why) && accept_request(f);
		case FCGI_GUARD_ABORTED: return fail_with(ECONNABORTED);
		case FCGI_GUARD_END:
		case FCGI_GUARD_REFUSED: return fail_with(EPROTO);
		}
		if (!hand_over(f, why))
			return false;
	}
}

static void
explain(const struct fcgi *f, struct why *why)
{
	bool silent = f->guard.id == 0 && f->guard.head_n == 0;

	if (why->text[0] != '\0' || errno == ECONNABORTED || errno == ECANCELED)
		return;
	if (errno == EPROTO)
		err_why(why, "no FastCGI");
	else if (errno == EAGAIN)
		err_why(why, silent ? "silence" : "a request that does not come whole");
	else if (!silent)
		err_why(why, "a request that broke off");
}

static void
close_down(struct fcgi *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = f->request.ipcFd = -1;
	empty_pipe(f);
	f->exchange.params = NULL;
	f->exchange.client_fd = -1;
}

struct exchange *
fcgi_begin(struct fcgi *f, int fd, int64_t client_timeout_ms, struct why *why)
{
	fcgi_guard_init(&f->guard);
	f->fd = fd;
	f->at = f->n = 0;
	f->body_ended = f->broken = f->send_limited = false;
	f->error = 0;
	f->unlimited_bytes = 0;
	f->client_timeout_ms = client_timeout_ms;
	f->stop_grace_ms = STOP_GRACE_MS;
	why->text[0] = '\0';
	if (!read_head(f, later(f, FCGI_HEAD_MS), why)) {
		explain(f, why);
		close_down(f);
		return NULL;
	}
	f->stop_grace_ms = 0;
	f->exchange.params = f->request.envp;
	f->exchange.client_fd = fd;
	f->exchange.cut = false;
	return &f->exchange;
}

static bool
somebody_waits(const struct fcgi *f)
{
	struct pollfd p = {.fd = f->listen_fd, .events = POLLIN};

	return f->watch->stopping || (f->listen_fd >= 0 && poll(&p, 1, 0) > 0);
}

/* Closed with the body unread, a connection is reset, and the answer may be lost with it. */
static void
linger(struct fcgi *f)
{
	struct mono_ms end = later(f, LINGER_MS);
	bool more;

	shutdown(f->fd, SHUT_WR);
	do {
		if (f->at == f->n && !fill(f, later(f, LINGER_LOOK_MS)) && errno != EAGAIN)
			return;
		more = f->at == f->n || guard_input(f, NULL) == FCGI_GUARD_MORE;
	} while (more && !somebody_waits(f) && f->clock().v < end.v);
}

void
fcgi_end(struct fcgi *f)
{
	if (f->broken || f->exchange.cut)
		shutdown(f->fd, SHUT_RDWR); /* or libfcgi would still try */
	FCGX_ClearError(f->request.in);
	f->request.keepConnection = 1; /* closed here, unless its end cannot be written */
	FCGX_Finish_r(&f->request);
	FCGX_Detach(&f->request);
	if (f->request.ipcFd < 0)
		f->fd = -1;
	else if (!f->body_ended && f->error == 0 && !f->broken)
		linger(f);
	close_down(f);
}
