#include "fcgi.h"

#include "base/buf.h"
#include "fcgi_params.h"
#include "fcgi_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 8
#define END_BYTES 8
#define OUT_BYTES 16384
#define PARAMS_KEEP_BYTES 16384 /* between requests */
#define STOP_GRACE_MS 1000      /* for the variables to come when a signal asked to end */
/* After an early answer the peer may still be sending, and read only then: hosting.md 5. */
#define LINGER_MS 2000
#define LINGER_LOOK_MS 100

enum { ROLE_RESPONDER = 1 };
enum end_status { END_COMPLETE = 0, END_NOT_MULTIPLEXED = 1, END_UNKNOWN_ROLE = 3 };

struct fcgi {
	struct fcgi_wire wire;
	struct fcgi_record record; /* the one that is being read */
	struct exchange exchange;
	int listen_fd;
	unsigned id;                /* of the request; 0 = not begun */
	bool body_ended, broke_off; /* nothing more is to be read */
	int64_t client_timeout_ms;
	struct buf params;
	char *envp[FCGI_PARAMS_MAX];
	size_t out_n;
	/* one record's head and content, and room for the two records that end a request */
	unsigned char out[HEAD_BYTES + OUT_BYTES + 2 * HEAD_BYTES + END_BYTES];
};

static struct mono_ms
later(const struct fcgi *f, int64_t ms)
{
	struct mono_ms now = f->wire.clock();

	now.v += ms;
	return now;
}

/* A short record of our own; who does not take it at once is not served. */
static bool
reply(struct fcgi *f, enum fcgi_kind kind, unsigned id, const void *content, size_t n)
{
	unsigned char bytes[HEAD_BYTES + 64];

	fcgi_wire_head(bytes, kind, id, n);
	memcpy(bytes + HEAD_BYTES, content, n);
	return fcgi_wire_send(&f->wire, bytes, HEAD_BYTES + n, 0);
}

static bool
reply_end(struct fcgi *f, unsigned id, enum end_status status)
{
	const unsigned char end[END_BYTES] = {[4] = (unsigned char)status};

	return reply(f, FCGI_KIND_END, id, end, sizeof end);
}

/* Records about the connection, not about a request. */
static bool
manage(struct fcgi *f, struct mono_ms until)
{
	static const char values[] = "\x0e\x01"
	                             "FCGI_MAX_CONNS1"
	                             "\x0d\x01"
	                             "FCGI_MAX_REQS1"
	                             "\x0f\x01"
	                             "FCGI_MPXS_CONNS0";
	const unsigned char kind[8] = {(unsigned char)f->record.kind};

	if (!fcgi_wire_skip(&f->wire, &f->record, until))
		return false;
	if (f->record.kind == FCGI_KIND_GET_VALUES)
		return reply(f, FCGI_KIND_GET_VALUES_RESULT, 0, values, sizeof values - 1);
	return reply(f, FCGI_KIND_UNKNOWN, 0, kind, sizeof kind);
}

/* The next record of our request; what else comes is answered or passed over. */
static bool
next_record(struct fcgi *f, struct mono_ms until)
{
	struct fcgi_record *r = &f->record;

	while (fcgi_wire_next(&f->wire, r, until)) {
		if (r->id != 0 && (f->id == 0 || r->id == f->id))
			return true;
		if (r->id == 0 ? !manage(f, until) : !fcgi_wire_skip(&f->wire, r, until))
			return false;
		if (r->id != 0 && r->kind == FCGI_KIND_BEGIN &&
		    !reply_end(f, r->id, END_NOT_MULTIPLEXED))
			return false;
	}
	return false;
}

static bool
fail_with(int error)
{
	errno = error;
	return false;
}

static ssize_t
read_until(struct fcgi *f, void *dst, size_t n, struct mono_ms until)
{
	while (f->record.left == 0) {
		if (f->body_ended)
			return 0;
		if (!fcgi_wire_skip(&f->wire, &f->record, until) || !next_record(f, until))
			return -1;
		if (f->record.kind != FCGI_KIND_STDIN) {
			fail_with(f->record.kind == FCGI_KIND_ABORT ? ECONNABORTED : EPROTO);
			return -1;
		}
		if (f->record.left > 0)
			break;
		if (!fcgi_wire_skip(&f->wire, &f->record, until))
			return -1;
		f->body_ended = true;
		/* only an abort can follow, and once it is read nobody else would see it */
		if (fcgi_wire_has_more(&f->wire)) {
			errno = ECONNABORTED;
			return -1;
		}
	}
	return fcgi_wire_read(&f->wire, &f->record, dst, n, until);
}

static ssize_t
read_body(void *io, char *dst, size_t n)
{
	struct fcgi *f = io;
	ssize_t got = read_until(f, dst, n, later(f, f->client_timeout_ms));

	if (got < 0 && errno != EAGAIN)
		f->broke_off = true;
	return got;
}

static bool
flush(void *io)
{
	struct fcgi *f = io;

	if (f->out_n == 0)
		return !f->wire.broken;
	fcgi_wire_head(f->out, FCGI_KIND_STDOUT, f->id, f->out_n);
	f->out_n += HEAD_BYTES;
	fcgi_wire_send(&f->wire, f->out, f->out_n, f->client_timeout_ms);
	f->out_n = 0;
	return !f->wire.broken;
}

static bool
write_bytes(void *io, const char *bytes, size_t n)
{
	struct fcgi *f = io;

	while (n > 0 && !f->wire.broken) {
		size_t some = OUT_BYTES - f->out_n < n ? OUT_BYTES - f->out_n : n;

		memcpy(f->out + HEAD_BYTES + f->out_n, bytes, some);
		f->out_n += some;
		bytes += some;
		n -= some;
		if (f->out_n == OUT_BYTES)
			flush(f);
	}
	return !f->wire.broken;
}

/* An empty record of the error stream: nothing to a peer that reads, a reset from one that is gone (TCP). */
static void
probe(void *io)
{
	struct fcgi *f = io;
	unsigned char record[HEAD_BYTES];

	fcgi_wire_head(record, FCGI_KIND_STDERR, f->id, 0);
	if (!f->wire.broken &&
	    send(f->wire.fd, record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* the next poll shows it */
}

struct fcgi *
fcgi_new(struct watch *watch, struct mono_ms (*clock)(void), int listen_fd)
{
	struct fcgi *f = calloc(1, sizeof *f);

	if (f == NULL)
		die("no memory");
	f->wire.watch = watch;
	f->wire.clock = clock;
	f->wire.fd = -1;
	f->listen_fd = listen_fd;
	buf_init(&f->params, FCGI_PARAMS_BYTES);
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
	if (*f != NULL)
		buf_release(&(*f)->params);
	free(*f);
	*f = NULL;
}

static bool
begin_request(struct fcgi *f, struct mono_ms until, struct why *why)
{
	unsigned char begin[8] = {0};
	size_t n = 0;

	if (!next_record(f, until))
		return false;
	if (f->record.kind != FCGI_KIND_BEGIN || f->record.left != sizeof begin) {
		err_why(why, "a record of kind %u where a request begins", f->record.kind);
		return fail_with(EPROTO);
	}
	while (n < sizeof begin) {
		ssize_t got =
		    fcgi_wire_read(&f->wire, &f->record, begin + n, sizeof begin - n, until);

		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	f->id = f->record.id;
	if (begin[0] == 0 && begin[1] == ROLE_RESPONDER)
		return true;
	err_why(why, "the role %u, only a responder is here", begin[0] * 256u + begin[1]);
	reply_end(f, f->id, END_UNKNOWN_ROLE);
	return fail_with(EPROTO);
}

/* The content of one record of variables. */
static bool
gather_params(struct fcgi *f, struct mono_ms until, struct why *why)
{
	char *room = buf_room(&f->params, f->record.left);

	if (room == NULL) {
		err_why(why, "variables of more than %d bytes", FCGI_PARAMS_BYTES);
		return fail_with(EPROTO);
	}
	while (f->record.left > 0) {
		ssize_t got = fcgi_wire_read(
		    &f->wire, &f->record, f->params.p + f->params.n, f->record.left, until);

		if (got <= 0)
			return false;
		f->params.n += (size_t)got;
	}
	return true;
}

static bool
read_head(struct fcgi *f, struct mono_ms until, struct why *why)
{
	bool last = false;

	if (!begin_request(f, until, why))
		return false;
	while (!last) {
		if (!fcgi_wire_skip(&f->wire, &f->record, until) || !next_record(f, until))
			return false;
		if (f->record.kind == FCGI_KIND_ABORT) {
			reply_end(f, f->id, END_COMPLETE);
			return fail_with(ECONNABORTED);
		}
		if (f->record.kind != FCGI_KIND_PARAMS) {
			err_why(why, "a record of kind %u among the variables", f->record.kind);
			return fail_with(EPROTO);
		}
		last = f->record.left == 0;
		if (!last && !gather_params(f, until, why))
			return false;
	}
	return fcgi_params(f->params.p, f->params.n, f->envp, NELEM(f->envp), why) == ERR_OK;
}

static void
explain(const struct fcgi *f, struct why *why)
{
	bool silent = f->id == 0 && !fcgi_wire_has_more(&f->wire);

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
	close(f->wire.fd);
	f->wire.fd = -1;
	buf_shrink(&f->params, PARAMS_KEEP_BYTES);
	f->exchange.params = NULL;
	f->exchange.client_fd = -1;
}

struct exchange *
fcgi_begin(struct fcgi *f, int fd, int64_t client_timeout_ms, struct why *why)
{
	fcgi_wire_open(&f->wire, fd);
	f->record = (struct fcgi_record){.left = 0};
	f->id = 0;
	f->out_n = 0;
	f->body_ended = f->broke_off = false;
	f->client_timeout_ms = client_timeout_ms;
	why->text[0] = '\0';
	errno = 0;
	f->wire.stop_grace_ms = STOP_GRACE_MS;
	if (!read_head(f, later(f, FCGI_HEAD_MS), why)) {
		explain(f, why);
		close_down(f);
		return NULL;
	}
	f->wire.stop_grace_ms = 0;
	f->exchange.params = f->envp;
	f->exchange.client_fd = fd;
	return &f->exchange;
}

static bool
somebody_waits(const struct fcgi *f)
{
	struct pollfd p = {.fd = f->listen_fd, .events = POLLIN};

	return f->wire.watch->stopping || (f->listen_fd >= 0 && poll(&p, 1, 0) > 0);
}

/* Closed with the body unread, a connection is reset, and the answer may be lost with it. */
static void
linger(struct fcgi *f)
{
	struct mono_ms end = later(f, LINGER_MS), until = later(f, LINGER_LOOK_MS);
	ssize_t got;

	shutdown(f->wire.fd, SHUT_WR);
	do {
		/* the content is not wanted: the answer's buffer is free by now */
		got = read_until(f, f->out, sizeof f->out, until);
		if (f->wire.clock().v >= until.v)
			until = later(f, LINGER_LOOK_MS);
		else if (got < 0)
			return;
	} while (got != 0 && !somebody_waits(f) && f->wire.clock().v < end.v);
}

void
fcgi_end(struct fcgi *f)
{
	unsigned char *p = f->out;

	if (f->out_n > 0) {
		fcgi_wire_head(p, FCGI_KIND_STDOUT, f->id, f->out_n);
		p += HEAD_BYTES + f->out_n;
	}
	fcgi_wire_head(p, FCGI_KIND_STDOUT, f->id, 0);
	fcgi_wire_head(p + HEAD_BYTES, FCGI_KIND_END, f->id, END_BYTES);
	memset(p + 2 * HEAD_BYTES, 0, END_BYTES);
	p += 2 * HEAD_BYTES + END_BYTES;
	fcgi_wire_send(&f->wire, f->out, (size_t)(p - f->out), f->client_timeout_ms);
	if (!f->body_ended && !f->broke_off && !f->wire.broken)
		linger(f);
	close_down(f);
}
