#include "handover.h"

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

#define OWN 100

static const struct {
	const char *what, *text;
	bool good;
	unsigned workers;
} cases[] = {
    {"no worker", "1 100 0 -1 0", true, 0},
    {"three workers", "1 100 3 4 7 200i 201b 202l", true, 3},
    {"empty", "", false, 0},
    {"another format", "2 100 3 4 7", false, 0},
    {"of another process", "1 101 3 4 7", false, 0},
    {"too short", "1 100 3 4", false, 0},
    {"a negative socket", "1 100 -1 4 7", false, 0},
    {"a socket that is no number", "1 100 3x 4 7", false, 0},
    {"a negative serial", "1 100 3 4 -1", false, 0},
    {"a worker in no state", "1 100 3 4 7 200", false, 0},
    {"a worker in a state that is none", "1 100 3 4 7 200x", false, 0},
    {"a state alone", "1 100 3 4 7 i", false, 0},
    {"pid 1 is no worker", "1 100 3 4 7 1i", false, 0},
    {"a negative pid is a group", "1 100 3 4 7 -200i", false, 0},
    {"a pid that is too long", "1 100 3 4 7 99999999999i", false, 0},
};

static struct handover got;

static void
test_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool good = handover_parse(text_span(cases[i].text), OWN, &got);

		if (good != cases[i].good || (good && got.n != cases[i].workers))
			fail_msg("%s: %d, %u workers", cases[i].what, good, got.n);
	}
}

static void
test_round_when_full(void **state)
{
	static struct handover in = {.listen_fd = 3, .pid_fd = 4, .serial = 5, .n = BOARD_PLACES};
	char *text = malloc(HANDOVER_BYTES), *longer;

	(void)state;
	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		in.workers[i].pid = 2147483647 - (int)i;
		in.workers[i].state = "ibl"[i % 3];
	}
	handover_print(&in, OWN, text);
	assert_true(handover_parse(text_span(text), OWN, &got));
	assert_int_equal(got.n, BOARD_PLACES);
	for (unsigned i = 0; i < BOARD_PLACES; i++) {
		assert_int_equal(got.workers[i].pid, in.workers[i].pid);
		assert_int_equal(got.workers[i].state, in.workers[i].state);
	}
	longer = malloc(HANDOVER_BYTES + 20);
	snprintf(longer, HANDOVER_BYTES + 20, "%s 5555i", text);
	assert_false(handover_parse(text_span(longer), OWN, &got)); /* one too many */
	free(longer);
	free(text);
}

/* Our environment with SLUICE_HANDOVER as given, and what is made of it. */
static bool
take(const char *text)
{
	static char variable[200], other[] = "SLUICE_HANDOVERS=1", last[] = "X=y";
	char *variables[] = {other, variable, last, NULL};
	char **kept = environ;
	bool good;

	snprintf(variable, sizeof variable, "SLUICE_HANDOVER=%s", text);
	environ = variables;
	good = handover_take(&got);
	assert_null(getenv("SLUICE_HANDOVER"));
	assert_string_equal(getenv("SLUICE_HANDOVERS"), "1");
	assert_string_equal(getenv("X"), "y");
	environ = kept;
	return good;
}

static void
test_take(void **state)
{
	int listening = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
	char text[100];
	pid_t child;

	(void)state;
	assert_false(handover_take(&got)); /* there is none */
	assert_int_equal(listen(listening, 1), -1);
	assert_int_equal(
	    bind(listening, (const struct sockaddr *)&(struct sockaddr){AF_UNIX, ""}, 2), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	snprintf(text, sizeof text, "1 %d %d -1 0 %di", getpid(), listening, child);
	assert_true(take(text));
	assert_int_equal(got.listen_fd, listening);
	snprintf(text, sizeof text, "1 %d %d -1 0 %di", getppid(), listening, child);
	assert_false(take(text)); /* left over from our parent */
	snprintf(text, sizeof text, "1 %d %d -1 0 %di", getpid(), pair[0], child);
	assert_false(take(text)); /* no listening socket */
	snprintf(text, sizeof text, "1 %d %d 999 0 %di", getpid(), listening, child);
	assert_false(take(text)); /* no such file */
	snprintf(text, sizeof text, "1 %d %d -1 0 %di", getpid(), listening, getppid());
	assert_false(take(text)); /* not our child */
	kill(child, SIGKILL);
	snprintf(text, sizeof text, "1 %d %d -1 0 %di", getpid(), listening, child);
	assert_true(take(text)); /* dead, but ours to reap */
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(take(text));
	close(listening);
	close(pair[0]);
	close(pair[1]);
}

static void
test_exec_fails(void **state)
{
	static struct handover in = {.listen_fd = -1, .pid_fd = -1};
	char word[] = "x", *argv[] = {word, NULL};

	(void)state;
	handover_exec("/nowhere/at/all", argv, &in); /* returns */
	assert_null(getenv("SLUICE_HANDOVER"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_round_when_full),
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_exec_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
