#include "fcgi_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define VERSION 1
#define HEAD_BYTES 8

void
fcgi_wire_open(struct fcgi_wire *w, int fd)
{
	w->fd = fd;
	w->broken = false;
	w->at = w->n = 0;
}

static bool
wait_for_bytes(struct fcgi_wire *w, struct mono_ms until)
{
	for (;;) {
		struct mono_ms now = w->clock(), look = until;

		if (w->stop_grace_ms > 0 && until.v - now.v > w->stop_grace_ms)
			look.v = now.v + w->stop_grace_ms;
		if (watch_wait(w->watch, w->fd, POLLIN, look, w->clock))
			return true;
		if (errno != EAGAIN || look.v == until.v)
			return false;
		if (w->watch->stopping) {
			errno = ECANCELED;
			return false;
		}
	}
}

static bool
fill(struct fcgi_wire *w, struct mono_ms until)
{
	ssize_t got;

	if (w->at > 0)
		memmove(w->in, w->in + w->at, w->n - w->at);
	w->n -= w->at;
	w->at = 0;
	for (;;) {
		got = recv(w->fd, w->in + w->n, sizeof w->in - w->n, MSG_DONTWAIT);
		if (got > 0)
			break;
		if (got == 0)
			errno = ECONNRESET;
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		if (errno == EAGAIN && !wait_for_bytes(w, until))
			return false;
	}
	w->n += (size_t)got;
	/* bytes that keep coming must not make it last */
	if (w->clock().v < until.v)
		return true;
	errno = EAGAIN;
	return false;
}

bool
fcgi_wire_next(struct fcgi_wire *w, struct fcgi_record *record, struct mono_ms until)
{
	const unsigned char *head;

	do {
		if (w->n > w->at && w->in[w->at] != VERSION) {
			errno = EPROTO;
			return false;
		}
	} while (w->n - w->at < HEAD_BYTES && fill(w, until));
	if (w->n - w->at < HEAD_BYTES)
		return false;
	head = w->in + w->at;
	record->kind = head[1];
	record->id = (unsigned)head[2] << 8 | head[3];
	record->left = (size_t)head[4] << 8 | head[5];
	record->pad = head[6];
	w->at += HEAD_BYTES;
	return true;
}

static size_t
take(struct fcgi_wire *w, void *dst, size_t n)
{
	size_t have = w->n - w->at;

	if (n > have)
		n = have;
	if (dst != NULL)
		memcpy(dst, w->in + w->at, n);
	w->at += n;
	return n;
}

ssize_t
fcgi_wire_read(
    struct fcgi_wire *w, struct fcgi_record *record, void *dst, size_t n, struct mono_ms until)
{
	if (n > record->left)
		n = record->left;
	if (n == 0)
		return 0;
	if (w->n == w->at && !fill(w, until))
		return -1;
	n = take(w, dst, n);
	record->left -= n;
	return (ssize_t)n;
}

bool
fcgi_wire_skip(struct fcgi_wire *w, struct fcgi_record *record, struct mono_ms until)
{
	while (record->left + record->pad > 0) {
		if (w->n == w->at && !fill(w, until))
			return false;
		if (record->left > 0)
			record->left -= take(w, NULL, record->left);
		else
			record->pad -= take(w, NULL, record->pad);
	}
	return true;
}

bool
fcgi_wire_has_more(const struct fcgi_wire *w)
{
	return w->n > w->at;
}

bool
fcgi_wire_send(struct fcgi_wire *w, const void *bytes, size_t n, int64_t stall_ms)
{
	const char *p = bytes;

	while (n > 0 && !w->broken) {
		ssize_t sent = send(w->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		struct mono_ms until;

		if (sent >= 0) {
			p += sent;
			n -= (size_t)sent;
		} else if (errno == EAGAIN) {
			until.v = w->clock().v + stall_ms;
			w->broken = !watch_wait(w->watch, w->fd, POLLOUT, until, w->clock);
		} else if (errno != EINTR) {
			w->broken = true;
		}
	}
	return !w->broken;
}

void
fcgi_wire_head(unsigned char *head, enum fcgi_kind kind, unsigned id, size_t n)
{
	head[0] = VERSION;
	head[1] = (unsigned char)kind;
	head[2] = (unsigned char)(id >> 8 & 0xff);
	head[3] = (unsigned char)(id & 0xff);
	head[4] = (unsigned char)(n >> 8 & 0xff);
	head[5] = (unsigned char)(n & 0xff);
	head[6] = head[7] = 0;
}
