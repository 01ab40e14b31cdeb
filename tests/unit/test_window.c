#include "store/window.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <string.h>

#define NELEM(array) (sizeof(array) / sizeof((array)[0]))
#define LENGTH 1600 /* 100 ms a bucket */
#define T0 1000000000LL

struct add {
	int64_t at, value;
};

static const struct {
	const char *what;
	struct add adds[6]; /* value -1 ends them */
	int64_t look, n, sum;
} cases[] = {
    {"nothing", {{0, -1}}, 0, 0, 0},
    {"one, now", {{0, 5}, {0, -1}}, 0, 1, 5},
    {"a value of 0 counts", {{0, 0}, {0, -1}}, 0, 1, 0},
    {"two in one bucket", {{0, 5}, {99, 7}, {0, -1}}, 99, 2, 12},
    {"two in neighbours", {{99, 5}, {100, 7}, {0, -1}}, 100, 2, 12},
    {"the last moment of the oldest bucket", {{0, 5}, {0, -1}}, 1599, 1, 5},
    {"one too old", {{0, 5}, {0, -1}}, 1600, 0, 0},
    {"old ones go, new ones stay", {{0, 5}, {800, 7}, {0, -1}}, 1600, 1, 7},
    {"the bucket is used again, without its old content", {{0, 5}, {1600, 7}, {0, -1}}, 1600, 1, 7},
    {"after a long silence", {{0, 5}, {1000000, 7}, {0, -1}}, 1000000, 1, 7},
    {"long silence before the look", {{0, 5}, {0, -1}}, 1000000, 0, 0},
    {"gaps between buckets are empty", {{0, 1}, {100, 1}, {1550, 1}, {1650, 1}, {0, -1}}, 1650, 3,
        3},
    {"late by a bucket", {{500, 5}, {400, 7}, {0, -1}}, 500, 2, 12},
    {"late, and it ages by its own time", {{500, 5}, {400, 7}, {0, -1}}, 2000, 1, 5},
    {"clock back by less: still counts", {{1500, 5}, {0, -1}}, 0, 1, 5},
    {"clock back by less: both count", {{1500, 5}, {0, 7}, {0, -1}}, 0, 2, 12},
    {"clock back by less, then as long again", {{1500, 5}, {0, 7}, {0, -1}}, 1600, 1, 5},
    {"clock back by the whole: the future is not seen", {{1600, 5}, {0, -1}}, 0, 0, 0},
    {"clock back by the whole: it begins anew", {{1600, 5}, {0, 7}, {0, -1}}, 0, 1, 7},
    {"what was of the future does not come back", {{1600, 5}, {0, 7}, {0, -1}}, 1599, 1, 7},
    {"clock back by years", {{900000000, 5}, {0, 7}, {100, 1}, {0, -1}}, 100, 2, 8},
};

static void
test_cases(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct window w = {0};
		uint64_t n, sum;

		for (const struct add *add = cases[i].adds; add->value >= 0; add++)
			window_add(
			    &w, LENGTH, (struct wall_ms){T0 + add->at}, (uint64_t)add->value);
		window_sum(&w, LENGTH, (struct wall_ms){T0 + cases[i].look}, &n, &sum);
		if ((int64_t)n == cases[i].n && (int64_t)sum == cases[i].sum)
			continue;
		print_error("%s: %lld of %lld, want %lld of %lld\n", cases[i].what, (long long)sum,
		    (long long)n, (long long)cases[i].sum, (long long)cases[i].n);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Every age, for lengths that do and don't divide: never older than the length, at most a bucket and a rest too early. */
static void
test_ages(void **state)
{
	static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 61, 160, 1000, 1599};

	(void)state;
	for (size_t i = 0; i < NELEM(lengths); i++) {
		int64_t length = lengths[i], width = (length + WINDOW_BUCKETS - 1) / WINDOW_BUCKETS;

		for (int64_t start = T0; start < T0 + 2 * width; start++) {
			struct window w = {0};

			window_add(&w, length, (struct wall_ms){start}, 1);
			for (int64_t age = 0; age <= length + 2 * width; age++) {
				uint64_t n, sum;

				window_sum(&w, length, (struct wall_ms){start + age}, &n, &sum);
				assert_int_equal(n, sum);
				if (age >= length)
					assert_int_equal(n, 0);
				if (age == 0 || age <= length - 2 * width)
					assert_int_equal(n, 1);
			}
		}
	}
}

static void
test_another_length(void **state)
{
	struct window w = {0};
	struct wall_ms now = {T0};
	uint64_t n, sum;

	(void)state;
	window_add(&w, LENGTH, now, 1);
	window_sum(&w, 2 * LENGTH, now, &n, &sum);
	assert_int_equal(n, 0);
	window_add(&w, 2 * LENGTH, now, 3);
	window_sum(&w, 2 * LENGTH, now, &n, &sum);
	assert_int_equal(n, 1);
	assert_int_equal(sum, 3);
	window_sum(&w, LENGTH, now, &n, &sum);
	assert_int_equal(n, 0);
}

static void
test_extremes(void **state)
{
	struct window w = {0};
	uint64_t n, sum;

	(void)state;
	window_add(&w, INT64_MAX, (struct wall_ms){-5}, UINT64_MAX);
	window_add(&w, INT64_MAX, (struct wall_ms){0}, UINT64_MAX);
	window_sum(&w, INT64_MAX, (struct wall_ms){0}, &n, &sum);
	assert_int_equal(n, 2);
	assert_true(sum == UINT64_MAX / WINDOW_BUCKETS);
	window_add(&w, 0, (struct wall_ms){INT64_MAX}, 1);
	window_sum(&w, 0, (struct wall_ms){INT64_MAX}, &n, &sum);
	assert_true(n <= 1);
	memset(&w, 0, sizeof w);
	window_add(&w, LENGTH, (struct wall_ms){T0}, 1);
	w.n[w.newest % WINDOW_BUCKETS] = UINT32_MAX;
	window_add(&w, LENGTH, (struct wall_ms){T0}, 1);
	window_sum(&w, LENGTH, (struct wall_ms){T0}, &n, &sum);
	assert_true(n == UINT32_MAX);
	window_clear(&w);
	window_sum(&w, LENGTH, (struct wall_ms){T0}, &n, &sum);
	assert_int_equal(n, 0);
	assert_int_equal(sum, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_ages),
	    cmocka_unit_test(test_another_length),
	    cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
