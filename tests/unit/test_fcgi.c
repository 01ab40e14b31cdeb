#include "fcgi.h"

#include "base/buf.h"
#include "base/clock.h"
#include "fcgi_guard.h"

#include <fcgiapp.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum kind {
	KIND_BEGIN = 1,
	KIND_ABORT = 2,
	KIND_END = 3,
	KIND_PARAMS = 4,
	KIND_STDIN = 5,
	KIND_STDOUT = 6,
	KIND_GET_VALUES = 9,
	KIND_GET_VALUES_RESULT = 10,
	KIND_UNKNOWN = 11,
};

static struct watch watch;
static struct fcgi *fcgi;
static int64_t ahead_ms; /* our clock goes on by so much with each look */
static int64_t jumped_ms;

static struct mono_ms
ticking(void)
{
	jumped_ms += ahead_ms;
	return (struct mono_ms){clock_mono().v + jumped_ms};
}

static void
record_head(unsigned char *head, unsigned kind, unsigned id, size_t n)
{
	const unsigned char bytes[8] = {1, (unsigned char)kind, (unsigned char)(id >> 8 & 0xff),
	    (unsigned char)(id & 0xff), (unsigned char)(n >> 8 & 0xff), (unsigned char)(n & 0xff)};

	memcpy(head, bytes, sizeof bytes);
}

/*
 * What the peer sends, one letter a record: B begin, R begin in a role that is not ours, 2 another begin, P variables
 * A=b, p their end, I "hi" of the body, J the same of another request, i its end, X abort, G get values, U a record of
 * the connection that nobody knows, V another version, D data of a filter, H half a head, k padding of 7 behind "hi".
 */
static void
add_record(struct buf *b, char letter)
{
	static const unsigned char begin[8] = {0, 1}, authorizer[8] = {0, 2};
	const struct {
		char letter;
		unsigned kind, id;
		const void *content;
		size_t n, pad;
	} table[] = {
	    {'B', KIND_BEGIN, 1, begin, 8, 0},
	    {'R', KIND_BEGIN, 1, authorizer, 8, 0},
	    {'2', KIND_BEGIN, 2, begin, 8, 0},
	    {'P', KIND_PARAMS, 1,
	        "\x01\x01"
	        "Ab",
	        4, 0},
	    {'p', KIND_PARAMS, 1, "", 0, 0},
	    {'I', KIND_STDIN, 1, "hi", 2, 0},
	    {'J', KIND_STDIN, 3, "no", 2, 6},
	    {'k', KIND_STDIN, 1, "hi", 2, 7},
	    {'i', KIND_STDIN, 1, "", 0, 0},
	    {'X', KIND_ABORT, 1, "", 0, 0},
	    {'G', KIND_GET_VALUES, 0,
	        "\x0f\x00"
	        "FCGI_MPXS_CONNS",
	        17, 0},
	    {'U', 77, 0, "xxxxx", 5, 3},
	    {'D', 8, 1, "x", 1, 0},
	    {'V', KIND_STDIN, 1, "", 0, 0},
	    {'H', KIND_STDIN, 1, "", 0, 0},
	};
	unsigned char head[8];

	for (size_t i = 0; i < NELEM(table); i++) {
		if (table[i].letter != letter)
			continue;
		record_head(head, table[i].kind, table[i].id, table[i].n);
		head[6] = (unsigned char)table[i].pad;
		head[0] = letter == 'V' ? 9 : 1;
		buf_add(b, head, letter == 'H' ? 5 : 8);
		buf_add(b, table[i].content, table[i].n);
		buf_add(b, "\0\0\0\0\0\0\0\0", table[i].pad);
	}
}

/* What came back: the letter of each record's kind and, of an end, the status. */
static void
read_back(int fd, char *got, size_t size)
{
	unsigned char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
	size_t at = 0, out = 0;

	while (n > 0 && at + 8 <= (size_t)n && out + 3 < size) {
		size_t length = (size_t)bytes[at + 4] << 8 | bytes[at + 5];

		if (bytes[at + 1] == KIND_END)
			out += (size_t)snprintf(got + out, size - out, "E%u", bytes[at + 12]);
		else if (length > 0)
			got[out++] = bytes[at + 1] == KIND_GET_VALUES_RESULT ? 'g'
			             : bytes[at + 1] == KIND_UNKNOWN         ? 'u'
			                                                     : 'O';
		at += 8 + length + bytes[at + 6];
	}
	got[out] = '\0';
}

static const struct {
	const char *what, *sent;
	bool closes; /* then the peer closes its sending side */
	bool begun;
	const char *body; /* what is read of it */
	int error;        /* errno then, 0 = its end */
	const char *back;
} cases[] = {
    {"a request", "BPpIi", false, true, "hi", 0, "E0"},
    {"in two records, of others between them", "BPpIJJki", false, true, "hihi", 0, "E0"},
    {"no body", "BPpi", false, true, "", 0, "E0"},
    {"no variables", "Bpi", false, true, "", 0, "E0"},
    {"padding", "BPpki", false, true, "hi", 0, "E0"},
    {"values are asked first", "GBPpi", false, true, "", 0, "gE0"},
    {"an unknown record of the connection", "BPUpUi", false, true, "", 0, "uuE0"},
    {"a second request is not multiplexed", "BP2pIi", false, true, "hi", 0, "E1E0"},
    {"a second request among the body", "BPpI2Ii", false, true, "hihi", 0, "E1E0"},
    {"an abort before the variables' end", "BPX", false, false, "", 0, "E0"},
    {"an abort in the body", "BPpIX", false, true, "hi", ECONNABORTED, "E0"},
    {"an abort behind the body", "BPpIiX", false, true, "hi", ECONNABORTED, "E0"},
    {"an authorizer", "RPp", false, false, "", 0, "E3"},
    {"variables without a begin", "Ppi", false, false, "", 0, ""},
    {"the begin twice", "BBPpi", false, false, "", 0, ""},
    {"the body before the variables", "BIPp", false, false, "", 0, ""},
    {"data of a filter", "BPpDi", false, true, "", EPROTO, "E0"},
    {"another version", "V", false, false, "", 0, ""},
    {"another version in the body", "BPpIV", false, true, "hi", EPROTO, "E0"},
    {"nothing", "", true, false, "", 0, ""},
    {"half a head", "H", true, false, "", 0, ""},
    {"variables that break off", "BP", true, false, "", 0, ""},
    {"a body that breaks off", "BPpI", true, true, "hi", ECONNRESET, "E0"},
    {"a body that breaks off in a head", "BPpIH", true, true, "hi", ECONNRESET, "E0"},
};

static void
check_body(const char *what, const struct exchange *x, const char *want, int error)
{
	char body[64] = "";
	ssize_t n;

	do {
		size_t have = strlen(body);

		errno = 0;
		n = x->read(x->io, body + have, sizeof body - 1 - have);
		body[have + (n > 0 ? (size_t)n : 0)] = '\0';
	} while (n > 0);
	if (strcmp(body, want) != 0 || (n < 0 ? errno : 0) != error)
		fail_msg("%s: read '%s' and %d, want '%s' and %d", what, body, n < 0 ? errno : 0,
		    want, error);
}

static void
run(size_t i, bool in_bytes)
{
	struct exchange *x;
	struct buf sent;
	struct why why;
	char back[64];
	int pair[2];

	buf_init(&sent, 4096);
	for (const char *p = cases[i].sent; *p != '\0'; p++)
		add_record(&sent, *p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (size_t at = 0; at < sent.n; at += in_bytes ? 1 : sent.n)
		assert_true(send(pair[1], sent.p + at, in_bytes ? 1 : sent.n, 0) > 0);
	if (cases[i].closes)
		shutdown(pair[1], SHUT_WR);
	x = fcgi_begin(fcgi, pair[0], 1000, &why);
	if ((x != NULL) != cases[i].begun)
		fail_msg("%s: begun %d (%s)", cases[i].what, x != NULL, why.text);
	if (x != NULL) {
		if (strchr(cases[i].sent, 'P') != NULL)
			assert_true(text_is(exchange_param(x, "A"), "b"));
		check_body(cases[i].what, x, cases[i].body, cases[i].error);
		fcgi_end(fcgi);
	}
	read_back(pair[1], back, sizeof back);
	if (strcmp(back, cases[i].back) != 0)
		fail_msg("%s: back came '%s', want '%s'", cases[i].what, back, cases[i].back);
	close(pair[1]);
	buf_release(&sent);
}

static void
test_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		run(i, false);
		run(i, true);
	}
}

/* Silence, and bytes without end: over in the time that was given. */
static void
test_time(void **state)
{
	static const char *const silent[] = {"", "H", "BP", "BGUP"};
	struct why why;

	(void)state;
	for (size_t i = 0; i < NELEM(silent); i++) {
		struct buf sent;
		int pair[2];

		buf_init(&sent, 4096);
		for (const char *p = silent[i]; *p != '\0'; p++)
			add_record(&sent, *p);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		assert_true(send(pair[1], sent.p == NULL ? "" : sent.p, sent.n, 0) >= 0);
		jumped_ms = 0;
		ahead_ms = 3000;
		assert_null(fcgi_begin(fcgi, pair[0], 1000, &why));
		ahead_ms = 0;
		if (why.text[0] == '\0')
			fail_msg("silence %zu: no reason given", i);
		close(pair[1]);
		buf_release(&sent);
	}
}

static void
test_too_many_variables(void **state)
{
	/* of one variable each */
	static char content[65535] = "\x80\0\0\1\x80\0\xff\xf6"
	                             "A";
	unsigned char head[8];
	struct buf sent;
	struct why why;
	int pair[2];
	pid_t pid;

	(void)state;
	buf_init(&sent, 4u << 20);
	add_record(&sent, 'B');
	for (size_t i = 0; i < 20; i++) {
		record_head(head, KIND_PARAMS, 1, sizeof content);
		buf_add(&sent, head, sizeof head);
		buf_add(&sent, content, sizeof content);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		_exit(send(pair[1], sent.p, sent.n, MSG_NOSIGNAL) >= 0 ? 0 : 1);
	}
	assert_null(fcgi_begin(fcgi, pair[0], 1000, &why));
	assert_non_null(strstr(why.text, "1048576"));
	kill(pid, SIGKILL);
	close(pair[1]);
	buf_release(&sent);
}

/* 100 kB in pieces of all sizes come out as they went in. */
static void
test_answer(void **state)
{
	struct buf sent, want, got;
	struct exchange *x;
	struct why why;
	int pair[2], size = 1 << 20;
	unsigned char bytes[4096];
	ssize_t n;

	(void)state;
	buf_init(&sent, 4096);
	buf_init(&want, 1 << 20);
	buf_init(&got, 1 << 20);
	for (const char *p = "BPpi"; *p != '\0'; p++)
		add_record(&sent, *p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	assert_true(send(pair[1], sent.p, sent.n, 0) > 0);
	x = fcgi_begin(fcgi, pair[0], 1000, &why);
	assert_non_null(x);
	check_body("answer", x, "", 0);
	for (size_t i = 0; want.n < 100000; i = i * 2 + 1) {
		size_t have = want.n;

		for (size_t k = 0; k < i % 40000; k++)
			buf_char(&want, (char)(want.n * 7 % 251));
		assert_true(x->write(x->io, want.p == NULL ? "" : want.p + have, want.n - have));
		if (i % 3 == 0)
			assert_true(x->flush(x->io));
	}
	fcgi_end(fcgi);
	sent.n = 0;
	buf_release(&sent);
	buf_init(&sent, 1 << 20);
	while ((n = recv(pair[1], bytes, sizeof bytes, 0)) > 0)
		buf_add(&sent, bytes, (size_t)n);
	for (size_t at = 0; at + 8 <= sent.n;) {
		const unsigned char *p = (const unsigned char *)sent.p + at;
		size_t length = (size_t)p[4] << 8 | p[5];

		if (p[1] == KIND_STDOUT)
			buf_add(&got, p + 8, length);
		at += 8 + length + p[6];
	}
	assert_int_equal(got.n, want.n);
	assert_memory_equal(got.p, want.p, want.n);
	close(pair[1]);
	buf_release(&sent);
	buf_release(&want);
	buf_release(&got);
}

static int
set_up(void **state)
{
	(void)state;
	if (FCGX_Init() != 0)
		return -1;
	if (watch_open(&watch, 500) < 0)
		return -1;
	fcgi = fcgi_new(&watch, ticking, -1);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	fcgi_free(&fcgi);
	return close(watch.signal_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_time),
	    cmocka_unit_test(test_too_many_variables),
	    cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
