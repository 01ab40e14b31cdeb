/*
 * mock - a fast OpenAI-compatible provider for measurements, on loopback only.
 *
 *   mock -p PORT [-T LIFETIME_S]
 *
 * One epoll thread. The wishes of a request travel in its model name, as that survives every
 * gateway: "mock-n50-d20-l100-b40-e429" is 50 events, 20 ms apart, the first byte after 100 ms,
 * 40 filler bytes an event, HTTP status 429.
 *
 * Every event of a stream carries "@<CLOCK_MONOTONIC microseconds, 15 digits>", taken as it is
 * sent, so that a load generator on the same machine sees the delay of each.
 *
 * Paths     POST .../chat/completions; GET .../__stats (counters as JSON); else 404
 * Limits    requests need a Content-Length; a request of more than MAX_REQUEST bytes is dropped
 * End       by SIGTERM, or by itself after LIFETIME_S seconds (900)
 */
#include "reply.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUEST (8u << 20)
#define BATCH 512

enum state { READING, WAITING, STREAMING };
enum want { WANT_CHAT, WANT_STATS, WANT_NOTHING };

struct conn {
	int fd;
	enum state state;
	uint32_t generation; /* a timer of an earlier life of this struct is void */
	bool watching_out, keep, closing;
	struct wire_bytes in, out;
	size_t out_done;
	struct reply_wishes wishes;
	long sent_events;
	struct conn *next_free;
};

struct timer {
	uint64_t at_us;
	struct conn *conn;
	uint32_t generation;
};

struct counts {
	unsigned long accepted, requests, streams, streams_done, aborted, open_conns;
};

struct mock {
	int epoll, listener;
	struct conn *free_conns;
	struct timer *heap;
	size_t timers, heap_cap;
	struct wire_bytes plain; /* the whole answer to a plain request */
	struct counts counts;
};

/* Timers: a binary heap, the soonest first. */

static void
timer_add(struct mock *m, struct conn *c, uint64_t at_us)
{
	if (m->timers == m->heap_cap) {
		m->heap_cap = m->heap_cap == 0 ? 1024 : m->heap_cap * 2;
		m->heap = wire_grown(m->heap, m->heap_cap * sizeof *m->heap);
	}
	size_t i = m->timers++;
	for (; i > 0 && m->heap[(i - 1) / 2].at_us > at_us; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = (struct timer){at_us, c, c->generation};
}

static struct timer
timer_pop(struct mock *m)
{
	struct timer top = m->heap[0], last = m->heap[--m->timers];
	size_t i = 0;
	for (size_t kid = 1; kid < m->timers; kid = 2 * i + 1) {
		if (kid + 1 < m->timers && m->heap[kid + 1].at_us < m->heap[kid].at_us)
			kid++;
		if (m->heap[kid].at_us >= last.at_us)
			break;
		m->heap[i] = m->heap[kid];
		i = kid;
	}
	m->heap[i] = last;
	return top;
}

/* Connections. */

static void
conn_close(struct mock *m, struct conn *c)
{
	if (c->state != READING)
		m->counts.aborted++;
	close(c->fd);
	c->fd = -1;
	c->generation++;
	c->in.n = c->out.n = c->out_done = 0;
	m->counts.open_conns--;
	c->next_free = m->free_conns;
	m->free_conns = c;
}

static void
conn_watch_out(struct mock *m, struct conn *c, bool on)
{
	if (c->watching_out == on)
		return;
	struct epoll_event e = {
	    .events = EPOLLIN | EPOLLRDHUP | (on ? EPOLLOUT : 0u), .data.ptr = c};
	epoll_ctl(m->epoll, EPOLL_CTL_MOD, c->fd, &e);
	c->watching_out = on;
}

/* Send what waits; false when the connection is gone. */
static bool
conn_flush(struct mock *m, struct conn *c)
{
	while (c->out_done < c->out.n) {
		ssize_t n =
		    send(c->fd, c->out.p + c->out_done, c->out.n - c->out_done, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			conn_watch_out(m, c, true);
			return true;
		}
		if (n < 0) {
			conn_close(m, c);
			return false;
		}
		c->out_done += (size_t)n;
	}
	c->out.n = c->out_done = 0;
	if (c->closing) {
		conn_close(m, c);
		return false;
	}
	conn_watch_out(m, c, false);
	return true;
}

static void
conn_accept(struct mock *m)
{
	for (int i = 0; i < 64; i++) {
		int fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
		if (fd < 0)
			return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		struct conn *c = m->free_conns;
		if (c != NULL)
			m->free_conns = c->next_free;
		else
			c = memset(wire_grown(NULL, sizeof *c), 0, sizeof *c);
		c->fd = fd;
		c->state = READING;
		c->watching_out = c->closing = false;
		struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
		epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
		m->counts.accepted++;
		m->counts.open_conns++;
	}
}

/* Answers. */

static void
answer_done(struct conn *c)
{
	c->state = READING;
	c->closing = !c->keep;
}

/* Send events up to the next pause, or all that are left. */
static void
stream_advance(struct mock *m, struct conn *c)
{
	while (c->sent_events < c->wishes.events) {
		reply_event(&c->out, &c->wishes, c->sent_events++);
		if (c->wishes.gap_us > 0) {
			timer_add(m, c, wire_now_us() + c->wishes.gap_us);
			return;
		}
	}
	reply_end(&c->out, &c->wishes);
	m->counts.streams_done++;
	answer_done(c);
}

static void
answer_begin(struct mock *m, struct conn *c)
{
	if (c->wishes.status != 200) {
		char json[160];
		snprintf(json, sizeof json,
		    "{\"error\":{\"message\":\"mock error\",\"type\":\"%s\",\"code\":\"mock_%ld\"}}",
		    c->wishes.status == 429 ? "rate_limit_error" : "api_error", c->wishes.status);
		reply_json(&c->out, c->wishes.status, json);
		answer_done(c);
	} else if (c->wishes.stream) {
		m->counts.streams++;
		reply_begin(&c->out);
		c->state = STREAMING;
		c->sent_events = 0;
		stream_advance(m, c);
	} else {
		wire_put(&c->out, m->plain.p, m->plain.n);
		answer_done(c);
	}
}

static void
stats_put(struct mock *m, struct conn *c)
{
	char json[256];
	snprintf(json, sizeof json,
	    "{\"accepted\":%lu,\"requests\":%lu,\"streams\":%lu,\"streams_done\":%lu,"
	    "\"aborted\":%lu,\"open_conns\":%lu}\n",
	    m->counts.accepted, m->counts.requests, m->counts.streams, m->counts.streams_done,
	    m->counts.aborted, m->counts.open_conns);
	reply_json(&c->out, 200, json);
}

/* Requests. */

static enum want
want_of(const char *head)
{
	const char *path = strchr(head, ' ');
	if (path == NULL)
		return WANT_NOTHING;
	size_t n = strcspn(++path, " ?");
	static const char chat[] = "/chat/completions", stats[] = "/__stats";
	if (n >= sizeof chat - 1 &&
	    strncmp(path + n - (sizeof chat - 1), chat, sizeof chat - 1) == 0)
		return WANT_CHAT;
	if (n >= sizeof stats - 1 &&
	    strncmp(path + n - (sizeof stats - 1), stats, sizeof stats - 1) == 0)
		return WANT_STATS;
	return WANT_NOTHING;
}

/* Take one whole request out of the buffer and begin its answer; false when there is none yet. */
static bool
request_take(struct mock *m, struct conn *c)
{
	wire_reserve(&c->in, 1);
	c->in.p[c->in.n] = 0;
	char *head_end = strstr(c->in.p, "\r\n\r\n");
	if (head_end == NULL)
		return false;
	char *body = head_end + 4;
	*head_end = 0; /* a header's name is not looked for in the body */
	const char *length = wire_header(c->in.p, "content-length"),
	           *connection = wire_header(c->in.p, "connection");
	size_t total = (size_t)(body - c->in.p);
	total += length == NULL ? 0 : strtoul(length, NULL, 10);
	if (c->in.n < total) {
		*head_end = '\r';
		return false;
	}
	c->keep = connection == NULL || strncasecmp(connection, "close", 5) != 0;
	enum want want = want_of(c->in.p);
	char after = c->in.p[total];
	c->in.p[total] = 0;
	reply_wishes_read(&c->wishes, body);
	c->in.p[total] = after;
	memmove(c->in.p, c->in.p + total, c->in.n - total);
	c->in.n -= total;

	if (want == WANT_STATS) {
		stats_put(m, c);
		answer_done(c);
		return true;
	}
	m->counts.requests++;
	if (want == WANT_NOTHING)
		c->wishes.status = 404;
	c->state = WAITING;
	return true;
}

/* Answer what has arrived, as far as that goes now, and send it. */
static void
conn_go(struct mock *m, struct conn *c)
{
	while (c->state == READING && !c->closing && c->in.n > 0 && request_take(m, c)) {
		if (c->state == READING)
			continue;
		if (c->wishes.latency_us > 0) {
			timer_add(m, c, wire_now_us() + c->wishes.latency_us);
			break;
		}
		answer_begin(m, c);
	}
	conn_flush(m, c);
}

static void
conn_read(struct mock *m, struct conn *c)
{
	for (;;) {
		wire_reserve(&c->in, 4096);
		size_t room = c->in.cap - c->in.n;
		ssize_t n = recv(c->fd, c->in.p + c->in.n, room, 0);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0 || c->in.n > MAX_REQUEST) {
			conn_close(m, c);
			return;
		}
		c->in.n += (size_t)n;
		if ((size_t)n < room)
			break;
	}
	conn_go(m, c);
}

static void
timers_run(struct mock *m)
{
	uint64_t now = wire_now_us();
	while (m->timers > 0 && m->heap[0].at_us <= now) {
		struct timer t = timer_pop(m);
		if (t.conn->generation != t.generation)
			continue;
		if (t.conn->state == WAITING)
			answer_begin(m, t.conn);
		else if (t.conn->state == STREAMING)
			stream_advance(m, t.conn);
		conn_go(m, t.conn);
	}
}

static void
mock_run(struct mock *m)
{
	struct epoll_event events[BATCH];
	for (;;) {
		struct timespec wait = {0}, *limit = NULL;
		if (m->timers > 0) {
			uint64_t now = wire_now_us(), at = m->heap[0].at_us,
			         us = at > now ? at - now : 0;
			wait.tv_sec = (time_t)(us / 1000000u);
			wait.tv_nsec = (long)(us % 1000000u * 1000u);
			limit = &wait;
		}
		int n = epoll_pwait2(m->epoll, events, BATCH, limit, NULL);
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (c == NULL)
				conn_accept(m);
			else if (c->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT) == 0)
				conn_flush(m, c);
			else if (c->fd >= 0)
				conn_read(m, c);
		}
		if (m->timers > 0)
			timers_run(m);
	}
}

static int
listen_on(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 4096) != 0) {
		perror("mock: listen");
		exit(1);
	}
	return fd;
}

int
main(int argc, char **argv)
{
	long port = 0, lifetime_s = 900;
	for (int o; (o = getopt(argc, argv, "p:T:")) != -1;) {
		if (o == 'p')
			port = wire_option(optarg, 1, 65535);
		else if (o == 'T')
			lifetime_s = wire_option(optarg, 1, 86400);
	}
	if (port == 0) {
		fputs("usage: mock -p PORT [-T LIFETIME_S]\n", stderr);
		return 2;
	}
	alarm((unsigned)lifetime_s);
	struct mock m = {
	    .epoll = epoll_create1(EPOLL_CLOEXEC), .listener = listen_on((uint16_t)port)};
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
	epoll_ctl(m.epoll, EPOLL_CTL_ADD, m.listener, &e);
	reply_plain(&m.plain);
	mock_run(&m);
}
