#include "cgi.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLD_BYTES 16384 /* of the answer, before it is written without being asked to */
#define POLL_MAX_MS 60000

struct cgi {
	struct cgi_side side;
	struct exchange exchange;
	struct buf held;
	int64_t left;    /* bytes of the body still to come; -1 = as many as there are */
	bool body_ended; /* nothing of the body is left in the input */
	bool gone;       /* nothing can be written any more */
	bool is_socket;
};

enum wait { WAIT_READY, WAIT_LATE, WAIT_GONE };

static enum wait
wait_for(struct cgi *c, int fd, short events, int64_t ms)
{
	struct watch *watch = c->side.watch;
	struct mono_ms now = c->side.clock(), end = {now.v + ms};

	while (now.v < end.v && !watch->client_gone) {
		struct pollfd p[2] = {
		    {.fd = watch->signal_fd, .events = POLLIN}, {.fd = fd, .events = events}};
		int64_t left = end.v - now.v;

		if (poll(p, 2, (int)(left < POLL_MAX_MS ? left : POLL_MAX_MS)) > 0) {
			if (p[0].revents == 0)
				return WAIT_READY;
			watch_signals(watch, c->side.clock());
		}
		now = c->side.clock();
	}
	return watch->client_gone ? WAIT_GONE : WAIT_LATE;
}

static ssize_t
read_within(struct cgi *c, char *dst, size_t n, int64_t ms)
{
	ssize_t got;

	if (c->body_ended || c->left == 0) {
		c->body_ended = true;
		return 0;
	}
	if (c->left > 0 && n > (size_t)c->left)
		n = (size_t)c->left;
	switch (wait_for(c, c->side.in, POLLIN, ms)) {
	case WAIT_READY: break;
	case WAIT_LATE: errno = EAGAIN; return -1;
	case WAIT_GONE: errno = ECONNRESET; return -1;
	}
	got = read(c->side.in, dst, n);
	if (got < 0 && errno == EAGAIN)
		errno = EPROTO; /* not late */
	if (got == 0)
		c->body_ended = true;
	if (got > 0 && c->left > 0)
		c->left -= got;
	return got;
}

static ssize_t
read_body(void *io, char *dst, size_t n)
{
	struct cgi *c = io;

	return read_within(c, dst, n, c->side.client_timeout_ms);
}

/* Take away what the server still wants to hand over. */
static void
drain(struct cgi *c)
{
	struct mono_ms end = {c->side.clock().v + CGI_DRAIN_MS};
	size_t most = CGI_DRAIN_BYTES;
	char trash[HOLD_BYTES];

	while (!c->body_ended && most > 0) {
		int64_t ms = end.v - c->side.clock().v;
		ssize_t got = read_within(c, trash, sizeof trash,
		    ms < c->side.client_timeout_ms ? ms : c->side.client_timeout_ms);

		if (got <= 0)
			break;
		most -= (size_t)got < most ? (size_t)got : most;
	}
	c->body_ended = true;
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking, whoever else shares it. */
static ssize_t
write_some(const struct cgi *c, const char *bytes, size_t n)
{
	if (c->is_socket)
		return send(c->side.out, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(c->side.out, bytes, n < PIPE_BUF ? n : PIPE_BUF);
}

static bool
write_out(struct cgi *c, const char *bytes, size_t n)
{
	if (!c->body_ended)
		drain(c);
	while (n > 0 && !c->gone) {
		ssize_t put = -1;

		if (wait_for(c, c->side.out, POLLOUT, c->side.client_timeout_ms) == WAIT_READY)
			put = write_some(c, bytes, n);
		else
			errno = EPIPE;
		if (put < 0) {
			c->gone = errno != EAGAIN && errno != EINTR;
			continue;
		}
		bytes += put;
		n -= (size_t)put;
	}
	return !c->gone;
}

static bool
flush(void *io)
{
	struct cgi *c = io;
	bool ok = write_out(c, c->held.p, c->held.n);

	buf_clear(&c->held);
	return ok;
}

static bool
write_bytes(void *io, const char *bytes, size_t n)
{
	struct cgi *c = io;

	if (c->gone)
		return false;
	if (c->held.n + n <= HOLD_BYTES) {
		buf_add(&c->held, bytes, n);
		return true;
	}
	return flush(io) && write_out(c, bytes, n);
}

static bool
has_no_body(const struct exchange *x)
{
	struct span method = exchange_param(x, "REQUEST_METHOD");

	return exchange_length(x) < 0 && exchange_param(x, "HTTP_TRANSFER_ENCODING").n == 0 &&
	       !text_is(method, "POST") && !text_is(method, "PUT") && !text_is(method, "PATCH");
}

struct exchange *
cgi_begin(struct cgi **cgi_out, const struct cgi_side *side)
{
	struct cgi *c = calloc(1, sizeof *c);
	struct stat st;

	if (c == NULL)
		die("no memory");
	c->side = *side;
	c->exchange = (struct exchange){.params = side->params,
	    .client_fd = side->out,
	    .io = c,
	    .read = read_body,
	    .write = write_bytes,
	    .flush = flush};
	buf_init(&c->held, HOLD_BYTES);
	c->left = exchange_length(&c->exchange);
	c->body_ended = c->left == 0 || has_no_body(&c->exchange);
	c->is_socket = fstat(side->out, &st) == 0 && S_ISSOCK(st.st_mode);
	*cgi_out = c;
	return &c->exchange;
}

/* The server waits until all descriptors of its socket or pipes are closed; 0 and 1 are not to be anything else then. */
static void
let_go(const struct cgi_side *side, bool is_socket)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (is_socket)
		shutdown(side->out, SHUT_WR); /* fails when the peer was faster */
	if (nowhere < 0 || dup2(nowhere, side->in) < 0 || dup2(nowhere, side->out) < 0) {
		close(side->in);
		close(side->out);
	}
	if (nowhere >= 0 && nowhere != side->in && nowhere != side->out)
		close(nowhere);
}

void
cgi_end(struct cgi **cgi)
{
	struct cgi *c = *cgi;

	if (c == NULL)
		return;
	flush(c);
	let_go(&c->side, c->is_socket);
	buf_release(&c->held);
	free(c);
	*cgi = NULL;
}
