#include "cgi.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMEOUT_MS 60

/* The server's ends of what it gave to the process. */
struct server {
	int to, from;
};

static struct watch watch;
static struct server server;
static struct cgi_side side;
static struct cgi *cgi;
static struct exchange *x;
static char *params[8];

static void
no_sockets(void)
{
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	server = (struct server){in[1], out[0]};
	side.in = in[0];
	side.out = out[1];
}

static void
one_socket(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	server = (struct server){pair[0], dup(pair[0])};
	side.in = pair[1];
	side.out = dup(pair[1]);
}

static void (*const ways[])(void) = {no_sockets, one_socket};

/* `length` NULL: no CONTENT_LENGTH. */
static void
begin(void (*way)(void), const char *method, const char *length)
{
	static char variables[2][64];

	snprintf(variables[0], sizeof variables[0], "REQUEST_METHOD=%s", method);
	snprintf(
	    variables[1], sizeof variables[1], "CONTENT_LENGTH=%s", length == NULL ? "" : length);
	params[0] = variables[0];
	params[1] = length == NULL ? NULL : variables[1];
	side = (struct cgi_side){.params = params,
	    .client_timeout_ms = TIMEOUT_MS,
	    .watch = &watch,
	    .clock = clock_mono};
	way();
	assert_true(watch_open(&watch, 0) >= 0);
	watch.by_hangup = true;
	x = cgi_begin(&cgi, &side);
}

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
no_more(void)
{
	/* where the peer is gone there is nobody to be told */
	if (shutdown(server.to, SHUT_WR) != 0)
		close_end(&server.to);
}

static void
end(void)
{
	cgi_end(&cgi);
	assert_null(cgi);
	close_end(&server.to);
	close_end(&server.from);
	close(side.in);
	close(side.out);
	close(watch.signal_fd);
}

static void
say(const char *text)
{
	assert_int_equal(write(server.to, text, strlen(text)), (ssize_t)strlen(text));
}

/* The body as it is read, "<errno>" behind it when it broke off. */
static const char *
body(void)
{
	static char got[256];
	size_t n = 0;
	ssize_t k;

	while ((k = x->read(x->io, got + n, 7)) > 0)
		n += (size_t)k;
	snprintf(got + n, sizeof got - n, "%s",
	    k == 0                ? ""
	    : errno == EAGAIN     ? "<late>"
	    : errno == ECONNRESET ? "<gone>"
	                          : "<?>");
	return got;
}

static const struct {
	const char *what, *method, *length, *sent;
	bool ended;
	const char *want;
} bodies[] = {
    {"whole", "POST", "10", "0123456789", true, "0123456789"},
    {"the input stays open", "POST", "10", "0123456789", false, "0123456789"},
    {"no byte beyond the length", "POST", "4", "0123456789", true, "0123"},
    {"no length: to the end", "POST", NULL, "0123456789", true, "0123456789"},
    {"an empty length", "POST", "", "0123456789", true, "0123456789"},
    {"no number", "POST", "ten", "0123456789", true, "0123456789"},
    {"negative", "POST", "-4", "0123456789", true, "0123456789"},
    {"beyond all numbers", "POST", "99999999999999999999", "0123", true, "0123"},
    {"blanks around it", "POST", " 4 ", "0123456789", true, "0123"},
    {"cut", "POST", "20", "0123456789", true, "0123456789"},
    {"it stops", "POST", "20", "0123", false, "0123<late>"},
    {"it stops, no length", "POST", NULL, "0123", false, "0123<late>"},
    {"none", "POST", "0", "", false, ""},
    {"none, the end is told", "POST", NULL, "", true, ""},
    {"a GET has none", "GET", NULL, "", false, ""},
    {"a GET may have one", "GET", "3", "abc", false, "abc"},
};

static void
test_bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(bodies) * NELEM(ways); i++) {
		size_t row = i / NELEM(ways);
		const char *got;

		begin(ways[i % NELEM(ways)], bodies[row].method, bodies[row].length);
		say(bodies[row].sent);
		if (bodies[row].ended)
			no_more();
		got = body();
		if (strcmp(got, bodies[row].want) != 0)
			fail_msg(
			    "%s: got '%s', want '%s'", bodies[row].what, got, bodies[row].want);
		end();
	}
}

static void
put(const char *text)
{
	assert_true(x->write(x->io, text, strlen(text)));
}

/* What has come out, waiting for no more. */
static const char *
taken(void)
{
	static char got[65536];
	size_t n = 0;
	ssize_t k;

	fcntl(server.from, F_SETFL, O_NONBLOCK);
	while ((k = read(server.from, got + n, sizeof got - 8 - n)) > 0)
		n += (size_t)k;
	snprintf(got + n, sizeof got - n, "%s", k == 0 ? "<end>" : "");
	return got;
}

static void
test_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		begin(ways[i], "GET", NULL);
		assert_int_equal(x->client_fd, side.out);
		put("Status: 200 OK\r\n\r\n");
		put("a");
		assert_string_equal(taken(), "");
		assert_true(x->flush(x->io));
		assert_string_equal(taken(), "Status: 200 OK\r\n\r\na");
		assert_true(x->flush(x->io)); /* nothing */
		put("b");
		cgi_end(&cgi);
		/* the end is seen although descriptors 0 and 1 are still there */
		assert_string_equal(taken(), "b<end>");
		assert_int_equal(write(side.out, "x", 1), 1);
		assert_int_equal(read(side.in, (char[1]){0}, 1), 0);
		end();
	}
}

/* More than is held, and more than a pipe takes: nothing is lost, nothing twice. */
static void
test_large_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		static char text[700001];
		pid_t child;
		int status;

		begin(ways[i], "GET", NULL);
		for (size_t k = 0; k < sizeof text - 1; k++)
			text[k] = (char)('a' + k % 23);
		child = fork();
		if (child == 0) {
			static char got[sizeof text + 1];
			size_t n = 0;
			ssize_t k;

			close(side.out);
			close(side.in);
			while ((k = read(server.from, got + n, sizeof got - n)) > 0)
				n += (size_t)k;
			_exit(n == sizeof text + 1 && got[0] == '>' && got[n - 1] == '<' &&
			              memcmp(got + 1, text, sizeof text - 1) == 0
			          ? 0
			          : 1);
		}
		put(">");
		assert_true(x->write(x->io, text, sizeof text - 1));
		put("<");
		end();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* Written before the body was read: it goes out when the rest of the body is taken away. */
static void
test_drains_before_it_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		begin(ways[i], "POST", "12");
		say("unread");
		put("no");
		assert_string_equal(taken(), "");
		say("more!!");
		assert_true(x->flush(x->io));
		assert_string_equal(taken(), "no");
		/* nothing lies in the input: a socket that is closed now is not reset */
		fcntl(side.in, F_SETFL, O_NONBLOCK);
		assert_int_equal(read(side.in, (char[8]){0}, 8), -1);
		end();
	}
}

static void
test_drains_not_for_ever(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		int64_t from = clock_mono().v;

		begin(ways[i], "POST", "1000");
		say("part");
		put("no");
		assert_true(x->flush(x->io));
		assert_in_range(clock_mono().v - from, TIMEOUT_MS - 5, TIMEOUT_MS * 5);
		assert_string_equal(taken(), "no");
		end();
	}
}

static void
test_reader_gone(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		begin(ways[i], "GET", NULL);
		watch_begin(&watch, x->client_fd);
		watch_client(&watch, clock_mono());
		assert_false(watch.client_gone);
		close_end(&server.from);
		close_end(&server.to);
		watch_client(&watch, clock_mono());
		assert_true(watch.client_gone);
		watch_begin(&watch, -1);
		put("x");
		assert_false(x->flush(x->io));
		assert_false(x->write(x->io, "y", 1));
		end();
	}
}

static void
test_reader_takes_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		static char text[4 << 20];
		int64_t from = clock_mono().v;

		begin(ways[i], "GET", NULL);
		assert_false(x->write(x->io, text, sizeof text));
		assert_in_range(clock_mono().v - from, TIMEOUT_MS - 5, TIMEOUT_MS * 5);
		end();
	}
}

static const struct {
	int signal;
	bool gone;
} signals[] = {{SIGTERM, true}, {SIGINT, true}, {SIGHUP, false}, {SIGUSR1, false}};

/* The server's way to say that the client has gone, whatever is waited for. */
static void
test_signals(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(signals); i++) {
		begin(no_sockets, "POST", "10");
		say("01234");
		kill(getpid(), signals[i].signal);
		if (!signals[i].gone)
			say("56789");
		assert_string_equal(body(), signals[i].gone ? "<gone>" : "0123456789");
		watch_begin(&watch, x->client_fd); /* it stays so */
		assert_int_equal(watch.client_gone, signals[i].gone);
		put("x");
		assert_int_equal(x->flush(x->io), !signals[i].gone);
		end();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_large_answer),
	    cmocka_unit_test(test_drains_before_it_answers),
	    cmocka_unit_test(test_drains_not_for_ever),
	    cmocka_unit_test(test_reader_gone),
	    cmocka_unit_test(test_reader_takes_nothing),
	    cmocka_unit_test(test_signals),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
