#include "board.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct board *board;

static int
set_up(void **state)
{
	(void)state;
	board = board_new();
	return board == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	close(board->tell_fd);
	return munmap(board, sizeof *board);
}

static bool
was_told(void)
{
	struct pollfd p = {.fd = board->tell_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* `n` idle ones at the places from 0. */
static void
seat(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		board_set(board, i, BOARD_STARTING);
		board_idle(board, i);
	}
	board_heard(board);
}

static void
test_first_idle_tells(void **state)
{
	(void)state;
	board_set(board, 5, BOARD_STARTING);
	assert_false(was_told());
	board_idle(board, 5);
	assert_true(was_told());
	assert_int_equal(board_get(board, 5), BOARD_IDLE);
	board_heard(board);
	assert_false(was_told());
	board_busy(board, 5);
	board_idle(board, 5);
	assert_false(was_told());
}

static void
test_busy_tells_when_few_are_left(void **state)
{
	(void)state;
	seat(4);
	board->tell_below = 2;
	board_busy(board, 0);
	board_busy(board, 1);
	assert_false(was_told()); /* two are left */
	board_busy(board, 2);
	assert_true(was_told());
	board_heard(board);
	board_idle(board, 2);
	assert_false(was_told());
	board_busy(board, 2);
	assert_true(was_told());
}

static void
test_told_once(void **state)
{
	eventfd_t n = 0;

	(void)state;
	seat(4);
	board->tell_below = 4;
	for (unsigned i = 0; i < 4; i++)
		board_busy(board, i);
	assert_int_equal(eventfd_read(board->tell_fd, &n), 0);
	assert_int_equal(n, 1);
	board_busy(board, 0);
	assert_false(was_told()); /* not looked at yet */
	board_heard(board);
	board_busy(board, 0);
	assert_true(was_told());
}

static void
test_nothing_to_be_done(void **state)
{
	(void)state;
	seat(2);
	board->tell_below = 0;
	board_busy(board, 0);
	board_busy(board, 1);
	assert_false(was_told());
}

static void
test_the_last_place(void **state)
{
	(void)state;
	board_set(board, BOARD_PLACES - 1, BOARD_STARTING);
	board_idle(board, BOARD_PLACES - 1);
	board_heard(board);
	board->tell_below = 1;
	board_accepted(board, BOARD_PLACES - 1);
	assert_int_equal(board->accepted[BOARD_PLACES - 1], 1);
	board_busy(board, BOARD_PLACES - 1);
	assert_true(was_told());
}

static void
test_seen_by_other_processes(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	seat(1);
	board->tell_below = 1;
	pid = fork();
	if (pid == 0) {
		board_busy(board, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(board_get(board, 0), BOARD_BUSY);
	assert_true(was_told());
}

static void
test_without_a_master(void **state)
{
	(void)state;
	board_busy(NULL, 0);
	board_idle(NULL, 0);
	board_accepted(NULL, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_first_idle_tells),
	    TEST(test_busy_tells_when_few_are_left),
	    TEST(test_told_once),
	    TEST(test_nothing_to_be_done),
	    TEST(test_the_last_place),
	    TEST(test_seen_by_other_processes),
	    cmocka_unit_test(test_without_a_master),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
