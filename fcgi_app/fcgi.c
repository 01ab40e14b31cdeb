#include "fcgi.h"

#include "base/err.h"

#include <fcgiapp.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct fcgi {
	FCGX_Request request;
	struct exchange exchange;
	bool body_ended;
	bool send_limited;      /* SO_SNDTIMEO is set */
	size_t unlimited_bytes; /* written before it was */
	int64_t client_timeout_ms;
};

/* A socket takes this much without blocking: below it no time limit is needed. */
#define UNLIMITED_BYTES 65536

static ssize_t
read_body(void *io, char *dst, size_t n)
{
	struct fcgi *f = io;
	int got = FCGX_GetStr(dst, (int)n, f->request.in);
	int error = FCGX_GetError(f->request.in);

	if (got > 0)
		return got;
	if (error != 0) {
		errno = error > 0 ? error : EPROTO;
		return -1;
	}
	f->body_ended = true;
	return 0;
}

static void
set_timeout(int fd, int option, int64_t ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	/* a descriptor that takes no time limit still serves */
	if (setsockopt(fd, SOL_SOCKET, option, &tv, sizeof tv) != 0)
		return;
}

static void
limit_sending(struct fcgi *f, size_t n)
{
	f->unlimited_bytes += n;
	if (f->send_limited || f->unlimited_bytes < UNLIMITED_BYTES)
		return;
	set_timeout(f->request.ipcFd, SO_SNDTIMEO, f->client_timeout_ms);
	f->send_limited = true;
}

static bool
write_bytes(void *io, const char *bytes, size_t n)
{
	struct fcgi *f = io;

	limit_sending(f, n);
	return FCGX_PutStr(bytes, (int)n, f->request.out) >= 0;
}

static bool
flush(void *io)
{
	struct fcgi *f = io;

	return FCGX_FFlush(f->request.out) >= 0;
}

/* An empty record of the error stream: nothing to a peer that reads, a reset from one that is gone (TCP). */
static void
probe(void *io)
{
	const struct fcgi *f = io;
	unsigned id = (unsigned)f->request.requestId;
	unsigned char record[8] = {
	    1, 7, (unsigned char)(id >> 8 & 0xff), (unsigned char)(id & 0xff)};

	if (send(f->request.ipcFd, record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* the next poll shows it */
}

struct fcgi *
fcgi_new(void)
{
	struct fcgi *f = calloc(1, sizeof *f);

	if (f == NULL || FCGX_InitRequest(&f->request, -1, 0) != 0)
		die("libfcgi does not start");
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
	free(*f);
	*f = NULL;
}

struct exchange *
fcgi_begin(struct fcgi *f, int fd, int64_t params_timeout_ms, int64_t client_timeout_ms)
{
	set_timeout(fd, SO_RCVTIMEO, params_timeout_ms);
	f->request.ipcFd = fd;
	f->request.keepConnection = 1; /* or libfcgi closes the descriptor before it reads */
	if (FCGX_Accept_r(&f->request) < 0) {
		if (f->request.ipcFd >= 0)
			close(f->request.ipcFd);
		f->request.ipcFd = -1;
		return NULL;
	}
	f->request.keepConnection = 0;
	set_timeout(fd, SO_RCVTIMEO, client_timeout_ms);
	f->client_timeout_ms = client_timeout_ms;
	f->send_limited = f->body_ended = false;
	f->unlimited_bytes = 0;
	f->exchange.params = f->request.envp;
	f->exchange.client_fd = fd;
	return &f->exchange;
}

void
fcgi_end(struct fcgi *f)
{
	/* nothing is left to read: close at once instead of waiting for the peer to do it first */
	if (f->body_ended)
		FCGX_Detach(&f->request);
	FCGX_Finish_r(&f->request);
	f->exchange.params = NULL;
	f->exchange.client_fd = -1;
}
