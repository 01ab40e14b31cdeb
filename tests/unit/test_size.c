#include "size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define LOOKS 8

#define ELASTIC          \
	{                \
		2, 2, 64 \
	}
#define FIXED             \
	{                 \
		16, 0, 16 \
	}

/* Looks at one pool, one after the other: when, what is seen, and what is to be done. */
static const struct {
	const char *what;
	struct size_limits limits;
	struct {
		int64_t at_ms;
		struct size_view view;
		struct size_change want;
	} looks[LOOKS]; /* ends with the first of no time */
} cases[] = {
    {"an elastic pool begins with workers_min", ELASTIC, {{1, {0, 0, 0}, {2, 0}}}},
    {"and with as many as are to be spare", {2, 5, 64}, {{1, {0, 0, 0}, {5, 0}}}},
    {"but not with more than workers_max", {2, 5, 3}, {{1, {0, 0, 0}, {3, 0}}}},
    {"a fixed pool begins whole", FIXED, {{1, {0, 0, 0}, {16, 0}}}},
    {"a fixed pool replaces at once", FIXED, {{1, {13, 0, 0}, {3, 0}}, {2, {16, 0, 3}, {0, 0}}}},
    {"a fixed pool never shrinks", FIXED, {{1, {16, 16, 0}, {0, 0}}, {70000, {16, 16, 0}, {0, 0}}}},
    {"a fixed pool that is busy does not grow", FIXED, {{1, {16, 0, 0}, {0, 0}}}},
    {"nothing is missing", ELASTIC, {{1, {2, 2, 0}, {0, 0}}}},
    {"one spare is missing", ELASTIC, {{1, {2, 1, 0}, {1, 0}}}},
    {"one that is starting counts as spare", ELASTIC, {{1, {3, 1, 1}, {0, 0}}}},
    {"below workers_min, enough are idle", {8, 2, 64}, {{1, {6, 6, 0}, {2, 0}}}},
    {"below workers_min, all busy", {8, 2, 64}, {{1, {7, 0, 0}, {2, 0}}}},
    {"a burst: doubled at each look that finds nobody", ELASTIC,
        {{1, {2, 0, 0}, {2, 0}}, {20, {4, 0, 2}, {0, 0}}, {40, {4, 0, 0}, {2, 0}},
            {60, {6, 0, 0}, {4, 0}}, {80, {10, 0, 0}, {8, 0}}, {100, {18, 0, 0}, {16, 0}},
            {120, {34, 0, 0}, {30, 0}}, {140, {64, 0, 0}, {0, 0}}}},
    {"the steps of a burst end at 32", {2, 2, 900},
        {{1, {2, 0, 0}, {2, 0}}, {2, {4, 0, 0}, {2, 0}}, {3, {6, 0, 0}, {4, 0}},
            {4, {10, 0, 0}, {8, 0}}, {5, {18, 0, 0}, {16, 0}}, {6, {34, 0, 0}, {32, 0}},
            {7, {66, 0, 0}, {32, 0}}}},
    {"a later burst begins anew", ELASTIC,
        {{1, {2, 0, 0}, {2, 0}}, {2, {4, 0, 0}, {2, 0}}, {3, {6, 0, 0}, {4, 0}},
            {1004, {10, 0, 0}, {2, 0}}}},
    {"a trickle is no burst", ELASTIC,
        {{1, {3, 1, 0}, {1, 0}}, {2, {4, 1, 0}, {1, 0}}, {3, {5, 1, 0}, {1, 0}}}},
    {"the last places", ELASTIC, {{1, {63, 0, 0}, {1, 0}}, {2, {64, 0, 0}, {0, 0}}}},
    {"workers_spare 0: one is idle all the same", {1, 0, 64}, {{1, {3, 0, 0}, {1, 0}}}},
    {"a minute with too many", ELASTIC,
        {{1, {20, 10, 0}, {0, 0}}, {30000, {20, 10, 0}, {0, 0}}, {60000, {20, 10, 0}, {0, 0}},
            {60001, {20, 10, 0}, {0, 8}}, {60002, {12, 2, 0}, {0, 0}}}},
    {"the fewest that were too many in this minute", ELASTIC,
        {{1, {20, 10, 0}, {0, 0}}, {30000, {20, 5, 0}, {0, 0}}, {60001, {20, 18, 0}, {0, 3}},
            {60002, {17, 15, 0}, {0, 0}}, {120002, {17, 15, 0}, {0, 13}}}},
    {"never below workers_min", {8, 2, 64},
        {{1, {10, 10, 0}, {0, 0}}, {60001, {10, 10, 0}, {0, 2}}}},
    {"a moment without too many: the minute begins anew", ELASTIC,
        {{1, {20, 10, 0}, {0, 0}}, {50000, {20, 2, 0}, {0, 0}}, {60001, {20, 10, 0}, {0, 0}},
            {120000, {20, 10, 0}, {0, 0}}, {120001, {20, 10, 0}, {0, 8}}}},
    {"while some are starting nobody is too many", ELASTIC,
        {{1, {20, 10, 0}, {0, 0}}, {60001, {20, 10, 1}, {0, 0}}, {60002, {20, 10, 0}, {0, 0}}}},
    {"workers_max was lowered: idle ones go", {2, 2, 8},
        {{1, {20, 10, 0}, {0, 10}}, {2, {10, 0, 0}, {0, 0}}}},
    {"workers_max was lowered: only those above it", {2, 2, 8}, {{1, {10, 10, 0}, {0, 2}}}},
    {"workers_min was raised", {20, 2, 64}, {{1, {10, 10, 0}, {10, 0}}}},
};

static void
test_looks(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct size_memory memory = {.over = false};

		for (size_t k = 0; k < LOOKS && cases[i].looks[k].at_ms > 0; k++) {
			struct size_change want = cases[i].looks[k].want;
			struct size_change got =
			    size_look(&cases[i].limits, &cases[i].looks[k].view,
			        (struct mono_ms){1000000 + cases[i].looks[k].at_ms}, &memory);

			if (got.start != want.start || got.stop != want.stop)
				fail_msg("%s, at %lld: start %u stop %u, want %u and %u",
				    cases[i].what, (long long)cases[i].looks[k].at_ms, got.start,
				    got.stop, want.start, want.stop);
		}
	}
}

static const struct {
	const char *what;
	struct size_limits limits;
	struct size_view view;
	unsigned want;
} tells[] = {
    {"below the spare ones", ELASTIC, {10, 3, 0}, 2},
    {"workers_spare 0", {1, 0, 8}, {1, 1, 0}, 1},
    {"full: nothing can be done", ELASTIC, {64, 0, 0}, 0},
    {"above workers_max", {2, 2, 8}, {10, 0, 0}, 0},
    {"fixed", FIXED, {16, 16, 0}, 0},
    {"fixed, one is missing: its death tells", FIXED, {15, 15, 0}, 0},
};

static void
test_tell_below(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(tells); i++) {
		unsigned got = size_tell_below(&tells[i].limits, &tells[i].view);

		if (got != tells[i].want)
			fail_msg("%s: %u, want %u", tells[i].what, got, tells[i].want);
	}
}

/* A crowd that comes and goes, by a pool that does what it is told: never below, never above. */
static void
test_bounds(void **state)
{
	struct size_limits limits = ELASTIC;
	struct size_memory memory = {.over = false};
	struct size_view view = {0, 0, 0};
	unsigned demand = 0, random = 7;

	(void)state;
	for (int64_t at = 1; at < 2000000; at += 500) {
		struct size_change change =
		    size_look(&limits, &view, (struct mono_ms){at}, &memory);

		assert_true(change.start == 0 || change.stop == 0);
		assert_true(change.stop <= view.idle);
		view.alive += change.start;
		view.alive -= change.stop;
		assert_in_range(view.alive, limits.min, limits.max);
		random = random * 1103515245u + 12345u;
		if (random >> 24 < 20)
			demand = (random >> 16) % 100;
		view.starting = 0;
		view.idle = view.alive > demand ? view.alive - demand : 0;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_looks),
	    cmocka_unit_test(test_tell_below),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
