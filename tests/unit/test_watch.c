#include "watch.h"

#include "base/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define NOW ((struct mono_ms){1000000})

static struct watch watch;
static int ours = -1, theirs = -1; /* two ends of a client's connection */

static int
set_up(void **state)
{
	int pair[2];

	(void)state;
	if (watch_open(&watch, 500) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return -1;
	ours = pair[0];
	theirs = pair[1];
	watch_begin(&watch, ours);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	close(ours);
	if (theirs >= 0)
		close(theirs);
	return close(watch.signal_fd);
}

static const struct {
	const char *what;
	char act; /* c close, w shut the sending side, b both, r shut the receiving side, d data */
	bool gone, half; /* after one look */
} clients[] = {
    {"nothing happens", '-', false, false},
    {"it closes", 'c', true, false},
    {"it shuts both sides", 'b', true, false},
    {"it says it is done sending", 'w', false, true},
    {"it stops reading", 'r', false, false}, /* not seen but by writing */
    {"it sends something: an abort record", 'd', true, false},
};

static void
test_client(void **state)
{
	for (size_t i = 0; i < NELEM(clients); i++) {
		if (i > 0)
			assert_int_equal(set_up(state), 0);
		watch_client(&watch, NOW);
		assert_false(watch.client_gone || watch.half_closed);
		switch (clients[i].act) {
		case 'c':
			close(theirs);
			theirs = -1;
			break;
		case 'b': shutdown(theirs, SHUT_RDWR); break;
		case 'w': shutdown(theirs, SHUT_WR); break;
		case 'r': shutdown(theirs, SHUT_RD); break;
		case 'd': assert_int_equal(write(theirs, "\1\2", 2), 2); break;
		default: break;
		}
		watch_client(&watch, NOW);
		if (watch.client_gone != clients[i].gone || watch.half_closed != clients[i].half)
			fail_msg("%s: gone %d, half closed %d", clients[i].what, watch.client_gone,
			    watch.half_closed);
		assert_int_equal(watch_client_events(&watch), watch.half_closed ? 0 : POLLIN);
		if (i + 1 < NELEM(clients))
			tear_down(state);
	}
}

/* First the one side, then all of it; the time of the first is kept. */
static void
test_half_then_whole(void **state)
{
	(void)state;
	shutdown(theirs, SHUT_WR);
	watch_client(&watch, NOW);
	assert_true(watch.half_closed);
	assert_int_equal(watch.half_closed_at.v, NOW.v);
	watch_client(&watch, (struct mono_ms){NOW.v + 50});
	assert_int_equal(watch.half_closed_at.v, NOW.v);
	assert_false(watch.client_gone);
	close(theirs);
	theirs = -1;
	watch_client(&watch, NOW);
	assert_true(watch.client_gone);
	watch_begin(&watch, -1); /* the next request */
	assert_false(watch.client_gone || watch.half_closed);
	watch_client(&watch, NOW); /* none to look at */
	assert_false(watch.client_gone);
}

static const struct {
	int signal;
	bool stopping, reload, replace;
	int64_t drain_ms;
} signals[] = {
    {SIGTERM, true, false, false, 500},
    {SIGINT, true, false, false, 500},
    {SIGQUIT, true, false, false, 0},
    {SIGHUP, false, true, false, 0},
    {SIGUSR1, false, false, true, 0},
    {SIGUSR2, false, false, false, 0},
};

static void
test_signals(void **state)
{
	for (size_t i = 0; i < NELEM(signals); i++) {
		if (i > 0)
			assert_int_equal(set_up(state), 0);
		watch_signals(&watch, NOW); /* none: returns at once */
		assert_false(watch.stopping || watch.reload || watch.replace);
		kill(getpid(), signals[i].signal);
		watch_signals(&watch, NOW);
		if (watch.stopping != signals[i].stopping || watch.reload != signals[i].reload ||
		    watch.replace != signals[i].replace)
			fail_msg("signal %d: stopping %d reload %d replace %d", signals[i].signal,
			    watch.stopping, watch.reload, watch.replace);
		if (watch.stopping)
			assert_int_equal(watch.stop_by.v, NOW.v + signals[i].drain_ms);
		if (i + 1 < NELEM(signals))
			tear_down(state);
	}
}

/* A second signal does not begin the drain anew. */
static void
test_drain(void **state)
{
	(void)state;
	assert_false(watch_must_end(&watch, (struct mono_ms){INT64_MAX}));
	kill(getpid(), SIGTERM);
	watch_signals(&watch, NOW);
	assert_int_equal(watch.stop_by.v, NOW.v + 500);
	kill(getpid(), SIGINT);
	watch_signals(&watch, (struct mono_ms){NOW.v + 400});
	assert_int_equal(watch.stop_by.v, NOW.v + 500);
	assert_false(watch_must_end(&watch, (struct mono_ms){NOW.v + 499}));
	assert_true(watch_must_end(&watch, (struct mono_ms){NOW.v + 500}));
}

/* SIGQUIT ends a drain that has begun. */
static void
test_at_once(void **state)
{
	(void)state;
	kill(getpid(), SIGTERM);
	watch_signals(&watch, NOW);
	assert_false(watch.at_once);
	kill(getpid(), SIGQUIT);
	watch_signals(&watch, (struct mono_ms){NOW.v + 10});
	assert_true(watch.at_once && watch_must_end(&watch, (struct mono_ms){NOW.v + 10}));
}

/* A signal does not bring back a client that has gone. */
static void
test_gone_stays_gone(void **state)
{
	(void)state;
	close(theirs);
	theirs = -1;
	watch_client(&watch, NOW);
	kill(getpid(), SIGTERM);
	watch_signals(&watch, NOW);
	assert_true(watch.stopping && watch.client_gone);
	kill(getpid(), SIGQUIT);
	watch_signals(&watch, NOW);
	assert_true(watch.at_once && watch.client_gone);
}

static void
test_children(void **state)
{
	sigset_t set;
	pid_t pid;
	struct pollfd p = {.fd = watch.signal_fd, .events = POLLIN};

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	assert_true(watch_children(&watch) >= 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(poll(&p, 1, 5000), 1);
	watch_signals(&watch, NOW);
	assert_false(watch.stopping || watch.reload || watch.replace);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static int64_t
slept(int64_t ms)
{
	int64_t from = clock_mono().v;

	watch_sleep(&watch, ms, clock_mono);
	return clock_mono().v - from;
}

/* The end of the time for a question of our own; without one nothing is late. */
static void
test_deadline(void **state)
{
	(void)state;
	assert_false(watch_is_late(&watch, (struct mono_ms){INT64_MAX}));
	assert_int_equal(watch_within(&watch, 70, NOW), 70);
	watch.deadline.v = NOW.v + 50;
	assert_false(watch_is_late(&watch, (struct mono_ms){NOW.v + 49}));
	assert_true(watch_is_late(&watch, (struct mono_ms){NOW.v + 50}));
	assert_int_equal(watch_within(&watch, 40, NOW), 40);
	assert_int_equal(watch_within(&watch, 70, NOW), 50);
	assert_true(watch_within(&watch, 70, (struct mono_ms){NOW.v + 60}) <= 0);
	watch.deadline.v = clock_mono().v + 30;
	assert_in_range(slept(2000), 25, 200);
	assert_in_range(slept(2000), 0, 20);
	watch.deadline.v = 0;
	assert_in_range(slept(20), 20, 80);
}

static void
test_sleep(void **state)
{
	(void)state;
	assert_in_range(slept(30), 30, 80);
	assert_int_equal(slept(0), 0);
	/* a half-closed client is no reason to wake up, again and again */
	shutdown(theirs, SHUT_WR);
	assert_in_range(slept(30), 30, 80);
	assert_true(watch.half_closed);
	kill(getpid(), SIGTERM);
	watch.drain_ms = 40;
	assert_in_range(slept(5000), 35, 200); /* until the drain is over */
	assert_true(watch_must_end(&watch, clock_mono()));
	close(theirs);
	theirs = -1;
	watch.stopping = false;
	assert_in_range(slept(5000), 0, 100); /* until it is gone */
	assert_true(watch.client_gone);
	assert_in_range(slept(5000), 0, 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_client),
	    TEST(test_half_then_whole),
	    TEST(test_signals),
	    TEST(test_drain),
	    TEST(test_at_once),
	    TEST(test_gone_stays_gone),
	    TEST(test_children),
	    TEST(test_deadline),
	    TEST(test_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
