#include "ctl/human.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_left(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} rows[] = {{INT64_MIN, "-"}, {-1, "-"}, {0, "-"}, {1, "1s"}, {1000, "1s"}, {1001, "2s"},
	    {59000, "59s"}, {59001, "1m 0s"}, {250000, "4m 10s"}, {3600000, "1h 0m"},
	    {86399000, "23h 59m"}, {86400000, "1d 0h"}, {INT64_MAX, "106751991167d 7h"}};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char got[HUMAN_TIME];

		human_left(rows[i].ms, got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg(
			    "%lld: got '%s', want '%s'", (long long)rows[i].ms, got, rows[i].want);
	}
}

static void
test_time(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} rows[] = {{INT64_MIN, "-"}, {0, "-"}, {1, "1970-01-01 00:00:00"},
	    {1767607201999, "2026-01-05 10:00:01"}};
	char got[HUMAN_TIME];

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		human_time((struct wall_ms){rows[i].ms}, got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg(
			    "%lld: got '%s', want '%s'", (long long)rows[i].ms, got, rows[i].want);
	}
	human_time((struct wall_ms){INT64_MAX}, got); /* nonsense, but no overrun */
	assert_true(strlen(got) < HUMAN_TIME);
}

/* Under sanitizers: no row is written outside. */
static void
test_grow(void **state)
{
	int *list = NULL;

	(void)state;
	for (size_t n = 0; n < 1000; n++) {
		list = human_grow(list, n, sizeof *list);
		list[n] = (int)n;
	}
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(list[n], n);
	free(list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_left),
	    cmocka_unit_test(test_time),
	    cmocka_unit_test(test_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
