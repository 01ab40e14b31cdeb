/*
 * load - closed-loop load generator for one chat endpoint on 127.0.0.1.
 *
 *   load -p PORT [-c CONNECTIONS] [-n REQUESTS] [-t MILLISECONDS] [-w MILLISECONDS] [-m MODEL]
 *        [-e EVENTS] [-u PATH] [-a TOKEN] [-H 'Header: value']... [-T SECONDS]
 *
 * Every connection sends its next request when the answer to the last one has ended, until -t
 * (after the warm-up -w) or -n is reached; answers under way are then waited for. With -e it asks
 * for streams of so many events and reads the time stamps that mock.c puts in each. An answer is
 * good when its status is 200, its framing is whole and its end is there; anything else is counted
 * under "bad" with the first reason in "error". Prints one JSON object.
 *
 * End       by -t or -n, and in any case after -T seconds (60)
 */
#include "samples.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAIL_BYTES 512
#define STAMP_DIGITS 15
#define BATCH 256

enum phase { IDLE, HEAD, BODY };
enum framing { TO_CLOSE, BY_LENGTH, CHUNKED };
enum chunk { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER };

struct conn {
	int fd, status;
	enum phase phase;
	enum framing framing;
	enum chunk chunk;
	bool reused, keep;
	size_t line; /* bytes so far of a chunk-size or trailer line */
	uint64_t left, begun_us, last_event_us, stamp;
	int stamp_digits; /* -1: no '@' seen */
	long events;
	struct wire_bytes head;
	char tail[TAIL_BYTES + 1];
	size_t tail_bytes;
};

struct load {
	int epoll;
	struct sockaddr_in to;
	const char *path, *token;
	struct wire_bytes request;
	struct conn *conns;
	long conn_count, limit, events;
	uint64_t measure_us, end_us, give_up_us;
	long begun, active, good, bad, measured, connections, reconnects;
	uint64_t tokens, bytes;
	struct samples latency, first, delay;
	char error[160];
};

static void conn_begin(struct load *l, struct conn *c);

/* The end of an answer. */

static void
conn_drop(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->reused = false;
}

static bool
may_begin(const struct load *l, uint64_t now)
{
	return (l->limit == 0 || l->begun < l->limit) && now < l->end_us;
}

static void
conn_next(struct load *l, struct conn *c, uint64_t now)
{
	l->active--;
	c->phase = IDLE;
	if (may_begin(l, now))
		conn_begin(l, c);
}

static void
bad_count(struct load *l, const struct conn *c, const char *what)
{
	if (l->error[0] == 0)
		snprintf(l->error, sizeof l->error, "%s, status %d, %ld events, request %ld", what,
		    c->status, c->events, l->good + l->bad + 1);
	l->bad++;
}

static void
conn_fail(struct load *l, struct conn *c, const char *what)
{
	bad_count(l, c, what);
	conn_drop(c);
	conn_next(l, c, wire_now_us());
}

/* What is wrong with an answer whose framing ended, or NULL. */
static const char *
flaw_of(const struct load *l, struct conn *c)
{
	c->tail[c->tail_bytes] = 0;
	if (c->status != 200)
		return "status";
	if (l->events > 0 && strstr(c->tail, "data: [DONE]") == NULL)
		return "no [DONE]";
	if (l->events > 0)
		return c->events == l->events ? NULL : "events missing";
	size_t n = c->tail_bytes;
	while (n > 0 && strchr(" \r\n", c->tail[n - 1]) != NULL)
		n--;
	bool whole = n > 0 && c->tail[n - 1] == '}' && strstr(c->tail, "\"total_tokens\"") != NULL;
	return whole ? NULL : "body cut";
}

static void
conn_end(struct load *l, struct conn *c)
{
	const char *flaw = flaw_of(l, c);
	uint64_t now = wire_now_us();
	if (flaw != NULL)
		bad_count(l, c, flaw);
	else
		l->good++;
	if (flaw == NULL && now >= l->measure_us && now <= l->end_us) {
		l->measured++;
		samples_add(&l->latency, now - c->begun_us);
	}
	if (!c->keep)
		conn_drop(c);
	c->reused = c->keep;
	conn_next(l, c, now);
}

/* The body of an answer. */

static void
stamp_seen(struct load *l, struct conn *c, uint64_t now)
{
	l->tokens++;
	if (c->events++ == 0)
		samples_add(&l->first, now - c->begun_us);
	samples_add(&l->delay, now > c->stamp ? now - c->stamp : 0);
	c->stamp_digits = -1;
}

/* A stamp may be cut anywhere by the framing. */
static void
stamps_read(struct load *l, struct conn *c, const char *p, size_t n, uint64_t now)
{
	const char *end = p + n;
	while (p < end) {
		if (c->stamp_digits < 0) {
			p = memchr(p, '@', (size_t)(end - p));
			if (p == NULL)
				return;
			p++;
			c->stamp_digits = 0;
			c->stamp = 0;
		} else if (*p >= '0' && *p <= '9') {
			c->stamp = c->stamp * 10 + (uint64_t)(*p++ - '0');
			if (++c->stamp_digits == STAMP_DIGITS)
				stamp_seen(l, c, now);
		} else {
			c->stamp_digits = -1;
		}
	}
}

static void
payload_take(struct load *l, struct conn *c, const char *p, size_t n, uint64_t now)
{
	l->bytes += n;
	if (l->events > 0)
		stamps_read(l, c, p, n, now);
	if (n >= TAIL_BYTES) {
		memcpy(c->tail, p + n - TAIL_BYTES, TAIL_BYTES);
		c->tail_bytes = TAIL_BYTES;
		return;
	}
	if (c->tail_bytes + n > TAIL_BYTES) {
		size_t surplus = c->tail_bytes + n - TAIL_BYTES;
		memmove(c->tail, c->tail + surplus, c->tail_bytes - surplus);
		c->tail_bytes -= surplus;
	}
	memcpy(c->tail + c->tail_bytes, p, n);
	c->tail_bytes += n;
}

/* One byte of chunked framing; true when the answer has ended. */
static bool
chunk_byte(struct conn *c, char byte)
{
	const char *digits = "0123456789abcdef", *digit = NULL;
	if (byte == '\r')
		return false;
	if (byte != '\n') {
		c->line++;
		digit = c->chunk == CHUNK_SIZE ? strchr(digits, byte | 0x20) : NULL;
		if (digit != NULL)
			c->left = c->left * 16 + (uint64_t)(digit - digits);
		return false;
	}
	bool empty = c->line == 0;
	c->line = 0;
	if (c->chunk == CHUNK_TRAILER)
		return empty;
	if (c->chunk == CHUNK_END)
		c->chunk = CHUNK_SIZE;
	else
		c->chunk = c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
	return false;
}

/* True when the answer has ended with these bytes. */
static bool
body_take(struct load *l, struct conn *c, const char *p, size_t n, uint64_t now)
{
	if (c->framing == TO_CLOSE) {
		payload_take(l, c, p, n, now);
		return false;
	}
	while (n > 0) {
		if (c->framing == CHUNKED && c->chunk != CHUNK_DATA) {
			n--;
			if (chunk_byte(c, *p++))
				return true;
			continue;
		}
		size_t part = n < c->left ? n : (size_t)c->left;
		payload_take(l, c, p, part, now);
		p += part;
		n -= part;
		c->left -= part;
		if (c->left == 0 && c->framing == BY_LENGTH)
			return true;
		if (c->left == 0)
			c->chunk = CHUNK_END;
	}
	return c->framing == BY_LENGTH && c->left == 0;
}

/* Take the head; the bytes of the body behind it, or NULL while the head is not whole. */
static const char *
head_take(struct conn *c, const char *p, size_t n, size_t *body_bytes_out)
{
	wire_put(&c->head, p, n);
	wire_reserve(&c->head, 1);
	c->head.p[c->head.n] = 0;
	char *end = strstr(c->head.p, "\r\n\r\n");
	if (end == NULL)
		return NULL;
	*body_bytes_out = c->head.n - (size_t)(end + 4 - c->head.p);
	*end = 0;
	if (c->head.n > 12)
		c->status = (int)strtol(c->head.p + 9, NULL, 10);
	const char *connection = wire_header(c->head.p, "connection"),
	           *encoding = wire_header(c->head.p, "transfer-encoding"),
	           *length = wire_header(c->head.p, "content-length");
	c->keep = connection == NULL || strncasecmp(connection, "close", 5) != 0;
	c->left = 0;
	c->line = 0;
	c->chunk = CHUNK_SIZE;
	if (encoding != NULL) {
		c->framing = CHUNKED;
	} else if (length != NULL) {
		c->framing = BY_LENGTH;
		c->left = strtoul(length, NULL, 10);
	} else {
		c->framing = TO_CLOSE;
		c->keep = false;
	}
	c->phase = BODY;
	return end + 4;
}

/* Connections. */

static void
conn_eof(struct load *l, struct conn *c)
{
	if (c->phase == BODY && c->framing == TO_CLOSE) {
		conn_end(l, c);
	} else if (c->phase == HEAD && c->head.n == 0 && c->reused) {
		/* The server closed an idle connection just as we used it: not an answer. */
		l->reconnects++;
		l->begun--;
		l->active--;
		conn_drop(c);
		conn_begin(l, c);
	} else {
		conn_fail(l, c, "connection closed early");
	}
}

static void
conn_read(struct load *l, struct conn *c)
{
	char buffer[65536];
	ssize_t got = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0 || c->phase == IDLE) {
		conn_eof(l, c);
		return;
	}
	uint64_t now = wire_now_us();
	const char *p = buffer;
	size_t n = (size_t)got;
	if (c->phase == HEAD)
		p = head_take(c, p, n, &n);
	if (p != NULL && body_take(l, c, p, n, now))
		conn_end(l, c);
}

/* A failing send is left to the next read, which finds what the peer said last. */
static void
conn_write(const struct load *l, const struct conn *c)
{
	size_t sent = 0;
	while (sent < l->request.n) {
		ssize_t n = send(c->fd, l->request.p + sent, l->request.n - sent, MSG_NOSIGNAL);
		if (n < 0)
			return;
		sent += (size_t)n;
	}
}

static void
conn_begin(struct load *l, struct conn *c)
{
	l->begun++;
	l->active++;
	c->begun_us = wire_now_us();
	c->phase = HEAD;
	c->head.n = c->tail_bytes = 0;
	c->status = 0;
	c->events = 0;
	c->stamp_digits = -1;
	if (c->fd < 0) {
		int one = 1;
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		l->connections++;
		if (connect(c->fd, (struct sockaddr *)&l->to, sizeof l->to) != 0) {
			perror("load: connect");
			exit(1);
		}
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e);
	}
	conn_write(l, c);
}

static void
load_run(struct load *l)
{
	for (long i = 0; i < l->conn_count; i++) {
		l->conns[i].fd = -1;
		if (may_begin(l, 0))
			conn_begin(l, &l->conns[i]);
	}
	while (l->active > 0 && wire_now_us() < l->give_up_us) {
		struct epoll_event events[BATCH];
		int n = epoll_wait(l->epoll, events, BATCH, 100);
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (c->fd >= 0)
				conn_read(l, c);
		}
	}
}

static void
request_build(struct load *l, uint16_t port, const char *model, const struct wire_bytes *headers)
{
	struct wire_bytes body = {0}, *r = &l->request;
	wire_putf(&body,
	    "{\"model\":\"%s\",\"max_tokens\":256,%s\"temperature\":0.7,\"messages\":[{"
	    "\"role\":\"user\",\"content\":\"Summarise the plot of a short story about a "
	    "lighthouse keeper in three sentences, then give two alternative titles.\"}]}",
	    model,
	    l->events > 0 ? "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	                  : "\"stream\":false,");
	wire_putf(r,
	    "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
	    "Content-Type: application/json\r\nAuthorization: Bearer %s\r\n",
	    l->path, port, l->token);
	wire_put(r, headers->p, headers->n);
	wire_putf(r, "Content-Length: %zu\r\n\r\n", body.n);
	wire_put(r, body.p, body.n);
}

static void
load_print(struct load *l, uint64_t begun_us)
{
	uint64_t now = wire_now_us(), until = now < l->end_us ? now : l->end_us;
	double measured_s = until > l->measure_us ? (double)(until - l->measure_us) / 1e6 : 0;
	printf("{\"seconds\":%.3f,\"rps\":%.1f,\"good\":%ld,\"bad\":%ld,\"unfinished\":%ld,"
	       "\"connections\":%ld,\"reconnects\":%ld,\"bytes\":%lu,\"tokens\":%lu,\"tok_s\":%.0f",
	    measured_s, measured_s > 0 ? (double)l->measured / measured_s : 0, l->good, l->bad,
	    l->active, l->connections, l->reconnects, l->bytes, l->tokens,
	    (double)l->tokens * 1e6 / (double)(now - begun_us));
	samples_print("latency_us", &l->latency);
	samples_print("first_us", &l->first);
	samples_print("delay_us", &l->delay);
	printf(",\"error\":\"%s\"}\n", l->error);
}

int
main(int argc, char **argv)
{
	long port = 0, warm_ms = 0, time_ms = 0, give_up_s = 60;
	const char *model = "mock";
	struct load l = {.conn_count = 1, .path = "/v1/chat/completions", .token = "sk-client"};
	struct wire_bytes headers = {0};
	for (int o; (o = getopt(argc, argv, "p:c:n:t:w:m:e:u:a:H:T:")) != -1;) {
		switch (o) {
		case 'p': port = wire_option(optarg, 1, 65535); break;
		case 'c': l.conn_count = wire_option(optarg, 1, 4096); break;
		case 'n': l.limit = wire_option(optarg, 1, 100000000); break;
		case 't': time_ms = wire_option(optarg, 1, 600000); break;
		case 'w': warm_ms = wire_option(optarg, 0, 60000); break;
		case 'm': model = optarg; break;
		case 'e': l.events = wire_option(optarg, 1, 1000000); break;
		case 'u': l.path = optarg; break;
		case 'a': l.token = optarg; break;
		case 'H': wire_putf(&headers, "%s\r\n", optarg); break;
		case 'T': give_up_s = wire_option(optarg, 1, 600); break;
		default: return 2;
		}
	}
	if (port == 0 || (l.limit == 0 && time_ms == 0)) {
		fputs("load: -p and one of -n and -t are needed\n", stderr);
		return 2;
	}
	l.to = (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	request_build(&l, (uint16_t)port, model, &headers);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	l.conns = wire_grown(NULL, (size_t)l.conn_count * sizeof *l.conns);
	memset(l.conns, 0, (size_t)l.conn_count * sizeof *l.conns);
	uint64_t begun_us = wire_now_us();
	l.measure_us = begun_us + (uint64_t)warm_ms * 1000;
	l.give_up_us = begun_us + (uint64_t)give_up_s * 1000000;
	l.end_us = time_ms > 0 ? l.measure_us + (uint64_t)time_ms * 1000 : l.give_up_us;
	alarm((unsigned)give_up_s + 5);
	load_run(&l);
	load_print(&l, begun_us);
	return 0;
}
