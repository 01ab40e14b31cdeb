/*
 * test_target - streaks and rests, windows, what is learnt of answers. The rows are in test_target_row.c.
 */
#include "store/target.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

#define NELEM(array) (sizeof(array) / sizeof((array)[0]))
#define T0 INT64_C(1767571200000)
#define MIN INT64_C(60000)

static const struct target_policy policy = {
    .window_ms = 10 * MIN, .fail_after = 3, .cooldown_ms = 5 * MIN};

static const struct target_outcome fine = {.first_content_ms = -1, .cost_micros = -1};
static const struct target_outcome bad = {
    .failed = true, .first_content_ms = -1, .cost_micros = -1};

/* F fails, S succeeds, m a minute goes by. */
static const struct {
	const char *what, *steps;
	uint32_t consecutive;
	enum target_state state;
	int64_t rest_ms, streak_ms; /* until and since, from the end; -1 = none */
} streaks[] = {
    {"nothing yet", "", 0, TARGET_OPEN, -1, -1},
    {"a success", "S", 0, TARGET_OPEN, -1, -1},
    {"a failure", "mF", 1, TARGET_OPEN, -1, 0},
    {"one short of it", "FmF", 2, TARGET_OPEN, -1, MIN},
    {"as many as it takes", "FmFmF", 3, TARGET_RESTS, 5 * MIN, 2 * MIN},
    {"not in a row", "FFSFF", 2, TARGET_OPEN, -1, 0},
    {"a while later", "FFFm", 3, TARGET_RESTS, 4 * MIN, MIN},
    {"a moment before its end", "FFFmmmm", 3, TARGET_RESTS, MIN, 4 * MIN},
    {"over", "FFFmmmmm", 3, TARGET_TRIAL, 0, 5 * MIN},
    {"long over", "FFFmmmmmmmm", 3, TARGET_TRIAL, -3 * MIN, 8 * MIN},
    {"a late failure puts it forward", "FFFmmF", 4, TARGET_RESTS, 5 * MIN, 2 * MIN},
    {"its trial failed", "FFFmmmmmmF", 4, TARGET_RESTS, 5 * MIN, 6 * MIN},
    {"its trial succeeded", "FFFmmmmmmS", 0, TARGET_OPEN, -1, -1},
    {"a success ends it before its time", "FFFmS", 0, TARGET_OPEN, -1, -1},
    {"and all begins anew", "FFFmmmmmSFF", 2, TARGET_OPEN, -1, 0},
};

static void
test_streaks(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(streaks); i++) {
		struct target_row row = {.version = 1};
		struct wall_ms now = {T0};
		int64_t rest, streak;
		enum target_state got;

		for (const char *p = streaks[i].steps; *p != '\0'; p++)
			if (*p == 'm')
				now.v += MIN;
			else
				target_settle(&row, *p == 'F' ? &bad : &fine, &policy, now);
		got = target_state(&row, &policy, now);
		rest = row.rest_until_ms == 0 ? -1 : row.rest_until_ms - now.v;
		streak = row.streak_ms == 0 ? -1 : now.v - row.streak_ms;
		if (row.consecutive != streaks[i].consecutive || got != streaks[i].state ||
		    rest != streaks[i].rest_ms || streak != streaks[i].streak_ms)
			fail_msg("%s: %u in a row since %lld, state %d for %lld", streaks[i].what,
			    row.consecutive, (long long)streak, (int)got, (long long)rest);
	}
}

/* A rest as it was stored, looked at under other settings and clocks. */
static const struct {
	const char *what;
	int64_t until_ms, cooldown_ms; /* from now */
	enum target_state state;
} rests[] = {
    {"as long as can be", 5 * MIN, 5 * MIN, TARGET_RESTS},
    {"its last moment", 1, 5 * MIN, TARGET_RESTS},
    {"its end", 0, 5 * MIN, TARGET_TRIAL},
    {"the setting is shorter now", 5 * MIN, 5 * MIN - 1, TARGET_TRIAL},
    {"the setting is longer now", 5 * MIN, 60 * MIN, TARGET_RESTS},
    {"the clock was wrong", 1000 * MIN, 5 * MIN, TARGET_TRIAL},
};

static void
test_rests(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rests); i++) {
		struct target_row row = {.version = 1, .rest_until_ms = T0 + rests[i].until_ms};
		struct target_policy other = {10 * MIN, 3, rests[i].cooldown_ms};
		enum target_state got = target_state(&row, &other, (struct wall_ms){T0});

		if (got != rests[i].state)
			fail_msg("%s: got %d", rests[i].what, (int)got);
	}
}

static void
test_window(void **state)
{
	struct target_outcome quick = {.first_content_ms = 300, .cost_micros = -1};
	struct target_outcome slow = {.first_content_ms = 900, .cost_micros = -1};
	struct target_outcome cut = {.failed = true, .first_content_ms = 5000, .cost_micros = -1};
	struct target_row row = {.version = 1};
	struct target_sums sums;

	(void)state;
	target_sums(&row, &policy, (struct wall_ms){T0}, &sums);
	assert_int_equal(sums.calls + sums.failures + sums.first_n + sums.first_sum_ms, 0);
	target_settle(&row, &quick, &policy, (struct wall_ms){T0});
	target_settle(&row, &slow, &policy, (struct wall_ms){T0 + MIN});
	target_settle(&row, &cut, &policy, (struct wall_ms){T0 + MIN});
	target_settle(&row, &fine, &policy, (struct wall_ms){T0 + MIN});
	target_sums(&row, &policy, (struct wall_ms){T0 + MIN}, &sums);
	assert_int_equal(sums.calls, 4);
	assert_int_equal(sums.failures, 1);
	assert_int_equal(sums.first_n, 2); /* how fast a failure began says nothing */
	assert_int_equal(sums.first_sum_ms, 1200);
	/* the first of them is out of the window */
	target_sums(&row, &policy, (struct wall_ms){T0 + 10 * MIN}, &sums);
	assert_int_equal(sums.calls, 3);
	assert_int_equal(sums.first_sum_ms, 900);
	target_sums(&row, &policy, (struct wall_ms){T0 + 12 * MIN}, &sums);
	assert_int_equal(sums.calls, 0);
}

static void
test_success(void **state)
{
	static const struct {
		uint64_t calls, failures;
		uint32_t ppm;
	} rows[] = {
	    {0, 0, 1000000},
	    {1, 0, 1000000},
	    {1, 1, 0},
	    {3, 1, 666666},
	    {20, 1, 950000},
	    {3, 4, 0}, /* halves of two windows */
	    {UINT64_MAX, 1, 999999},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct target_sums sums = {.calls = rows[i].calls, .failures = rows[i].failures};

		assert_int_equal(target_success_ppm(&sums), rows[i].ppm);
	}
}

/* What answers said of estimates, and what becomes of an estimate then. */
static const struct {
	const char *what;
	struct {
		uint64_t estimated, reported;
	} answers[4];
	uint32_t ratio_ppm, n;
	int64_t estimate, corrected;
} ratios[] = {
    {"nothing is known", {{0, 0}}, 0, 0, 1000, 1000},
    {"nobody counted", {{0, 500}}, 0, 0, 1000, 1000},
    {"nothing was reported", {{500, 0}}, 0, 0, 1000, 1000},
    {"exact", {{800, 800}, {300, 300}}, 1000000, 2, 1000, 1000},
    {"one as heavy as the doubt", {{512, 1024}}, 1500000, 1, 1000, 1500},
    {"a short one says nothing", {{8, 25}, {255, 400}}, 0, 0, 100000, 100000},
    {"a middle one little", {{256, 300}}, 1057291, 1, 100000, 105730},
    {"a long one much", {{256, 300}, {10000, 12000}}, 1189821, 2, 100000, 118983},
    {"far less", {{100000, 60000}}, 612121, 1, 1000, 613},
    {"nonsense is cut above", {{16384, UINT64_MAX}}, 5848484, 1, 1000, 3000},
    {"and below", {{16384, 1}}, 272727, 1, 1000, 500},
    {"rounded up", {{512, 513}}, 1000976, 1, 1, 2},
    {"nothing to correct", {{512, 1024}}, 1500000, 1, 0, 0},
    {"unknown", {{512, 1024}}, 1500000, 1, -1, -1},
    {"large", {{512, 1024}}, 1500000, 1, INT64_MAX, INT64_MAX},
};

static void
test_ratio(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ratios); i++) {
		struct target_row row = {.version = 1};
		int64_t got;

		for (size_t a = 0; a < NELEM(ratios[i].answers); a++) {
			struct target_outcome o = fine;

			o.estimated = ratios[i].answers[a].estimated;
			o.reported = ratios[i].answers[a].reported;
			target_settle(&row, &o, &policy, (struct wall_ms){T0});
		}
		got = target_correct(&row, ratios[i].estimate);
		if (row.ratio_ppm != ratios[i].ratio_ppm || row.ratio_n != ratios[i].n ||
		    got != ratios[i].corrected)
			fail_msg("%s: %u of %u, %lld becomes %lld", ratios[i].what, row.ratio_ppm,
			    row.ratio_n, (long long)ratios[i].estimate, (long long)got);
	}
}

/* Whatever the sizes, it finds the ratio, and another one when the model is another one. */
static void
test_ratio_follows(void **state)
{
	static const uint64_t percent[] = {130, 80, 250};
	struct target_row row = {.version = 1};

	(void)state;
	srandom(1);
	for (size_t p = 0; p < NELEM(percent); p++) {
		for (int i = 0; i < 300; i++) {
			struct target_outcome o = fine;

			o.estimated = 300 + (uint64_t)random() % 20000;
			o.reported = o.estimated * percent[p] / 100;
			target_settle(&row, &o, &policy, (struct wall_ms){T0});
		}
		assert_in_range(row.ratio_ppm, percent[p] * 9900, percent[p] * 10100);
	}
	assert_int_equal(row.ratio_n, 900);
}

/* A failure teaches nothing but its cost. */
static void
test_learning(void **state)
{
	struct target_outcome answer = {.first_content_ms = 10,
	    .estimated = 512,
	    .reported = 1024,
	    .output_tokens = 800,
	    .cost_micros = 7,
	    .tokens = 1824};
	struct target_outcome cut = answer, unpriced = fine, dear = fine;
	struct target_row row = {.version = 1};

	(void)state;
	cut.failed = true;
	target_settle(&row, &cut, &policy, (struct wall_ms){T0});
	assert_int_equal(row.ratio_ppm, 0);
	assert_int_equal(row.output_tokens, 0);
	assert_int_equal(row.success_ms, 0);
	assert_int_equal(row.cost_micros, 7);
	target_settle(&row, &answer, &policy, (struct wall_ms){T0});
	assert_int_equal(row.output_tokens, 800);
	assert_int_equal(row.success_ms, T0);
	assert_int_equal(row.cost_micros, 14);
	assert_int_equal(row.cost_tokens, 3648);
	answer.output_tokens = 1600;
	answer.cost_micros = 0; /* free is known */
	target_settle(&row, &answer, &policy, (struct wall_ms){T0});
	assert_int_equal(row.output_tokens, 900);
	assert_int_equal(row.cost_tokens, 5472);
	answer.output_tokens = 0;
	target_settle(&row, &answer, &policy, (struct wall_ms){T0});
	assert_int_equal(row.output_tokens, 900);
	answer.output_tokens = 897;
	for (int i = 0; i < 3; i++)
		target_settle(&row, &answer, &policy, (struct wall_ms){T0});
	assert_int_equal(row.output_tokens, 897); /* reached */
	unpriced.tokens = 100;
	row.cost_tokens = 1;
	target_settle(&row, &unpriced, &policy, (struct wall_ms){T0});
	assert_int_equal(row.cost_tokens, 1);
	dear.cost_micros = INT64_MAX;
	for (int i = 0; i < 4; i++)
		target_settle(&row, &dear, &policy, (struct wall_ms){T0});
	assert_true(row.cost_micros == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streaks),
	    cmocka_unit_test(test_rests),
	    cmocka_unit_test(test_window),
	    cmocka_unit_test(test_success),
	    cmocka_unit_test(test_ratio),
	    cmocka_unit_test(test_ratio_follows),
	    cmocka_unit_test(test_learning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
