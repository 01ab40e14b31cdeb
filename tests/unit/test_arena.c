#include "base/arena.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
test_alloc(void **state)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, 4000, 16383, 16384, 16385, 100000};
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (int round = 0; round < 3; round++) {
		unsigned char *made[NELEM(sizes)];

		for (size_t i = 0; i < NELEM(sizes); i++) {
			made[i] = arena_alloc(arena, sizes[i]);
			assert_int_equal((uintptr_t)made[i] % 16, 0);
			for (size_t k = 0; k < sizes[i]; k++)
				if (made[i][k] != 0)
					fail_msg(
					    "%zu bytes, round %d: not zeroed", sizes[i], round);
			if (sizes[i] > 0)
				memset(made[i], (int)i + 1, sizes[i]);
		}
		for (size_t i = 0; i < NELEM(sizes); i++)
			for (size_t k = 0; k < sizes[i]; k++)
				if (made[i][k] != i + 1)
					fail_msg("%zu bytes: overwritten", sizes[i]);
		arena_reset(arena);
	}
	arena_free(&arena);
	assert_null(arena);
	arena_free(&arena);
}

static void
test_copies(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	char source[] = "a\0b";
	struct span copy = arena_copy(arena, (struct span){source, 3});
	struct buf *b = arena_buf(arena, 1000);
	char *long_text;

	(void)state;
	source[0] = 'x';
	assert_true(text_equal(copy, SPAN("a\0b")));
	assert_int_equal(copy.p[3], '\0');
	assert_string_equal(arena_z(arena, SPAN("abc")), "abc");
	assert_string_equal(arena_z(arena, (struct span){NULL, 0}), "");
	assert_string_equal(arena_print(arena, "%s-%d", "x", 7), "x-7");
	long_text = arena_print(arena, "%*d", 5000, 1);
	assert_int_equal(strlen(long_text), 5000);
	buf_z(b, "the reset releases this");
	arena_free(&arena);
}

static char order[8];

static void
note(void *object)
{
	strncat(order, object, 1);
}

static void
test_defer(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	order[0] = '\0';
	arena_defer(arena, note, arena_z(arena, SPAN("1")));
	arena_defer(arena, note, arena_z(arena, SPAN("2")));
	assert_string_equal(order, "");
	arena_reset(arena);
	assert_string_equal(order, "21");
	arena_reset(arena);
	assert_string_equal(order, "21");
	arena_defer(arena, note, arena_z(arena, SPAN("3")));
	arena_free(&arena);
	assert_string_equal(order, "213");
}

/* Past the ceiling the process ends; a reset gives the whole room back. */
static void
test_ceiling(void **state)
{
	static const struct {
		const char *what;
		size_t first, second;
		bool dies;
	} rows[] = {
	    {"up to the ceiling", 512, 512, false},
	    {"one more", 512, 513, true},
	    {"at once", 1025, 0, true},
	    {"as many as there are numbers", 16, SIZE_MAX, true},
	    {"wraps when added", 1024, SIZE_MAX - 512, true},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			struct arena *arena = arena_new(1024);

			signal(SIGABRT, SIG_DFL);
			setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
			if (freopen("/dev/null", "w", stderr) == NULL)
				_exit(3);
			arena_alloc(arena, 1024);
			arena_reset(arena);
			arena_alloc(arena, rows[i].first);
			arena_alloc(arena, rows[i].second);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) != rows[i].dies ||
		    (!rows[i].dies && status != 0))
			fail_msg("%s: status %x", rows[i].what, (unsigned)status);
	}
}

/* Another one while some of it is used. */
static void
test_limit(void **state)
{
	struct arena *arena = arena_new(1024);
	char *old, *new;

	(void)state;
	old = arena_alloc(arena, 1000);
	memset(old, 'x', 1000);
	arena_limit(arena, 1 << 20);
	new = arena_alloc(arena, 500000);
	assert_true(new[499999] == 0 && old[999] == 'x');
	arena_limit(arena, 10);
	(void)arena_alloc(arena, 0);
	arena_reset(arena);
	(void)arena_alloc(arena, 10);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_alloc),
	    cmocka_unit_test(test_copies),
	    cmocka_unit_test(test_defer),
	    cmocka_unit_test(test_ceiling),
	    cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
