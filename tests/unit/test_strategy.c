#include "strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#define NOBODY UINT32_MAX

/* Who comes first of the two, by the rank alone: lower, or for ways that draw: the larger weight. */
static const struct {
	const char *what;
	enum conf_strategy strategy;
	struct strategy_facts a, b;
	char want; /* a, b, = alike */
} pairs[] = {
    {"adaptive has no rank", CONF_ADAPTIVE, {.weight = 1, .in_flight = 3}, {.weight = 9}, '='},
    {"lru leaves it to the last pick", CONF_LRU, {.tokens_today = 5}, {.tokens_today = 1}, '='},
    {"round robin: nobody was picked, the first", CONF_ROUND_ROBIN, {.number = 0, .cursor = NOBODY},
        {.number = 1, .cursor = NOBODY}, 'a'},
    {"round robin: behind the one picked last", CONF_ROUND_ROBIN, {.number = 0, .cursor = 0},
        {.number = 1, .cursor = 0}, 'b'},
    {"round robin: the one picked last is the last", CONF_ROUND_ROBIN, {.number = 2, .cursor = 2},
        {.number = 0, .cursor = 2}, 'b'},
    {"round robin: over the end", CONF_ROUND_ROBIN, {.number = 7, .cursor = 5},
        {.number = 1, .cursor = 5}, 'a'},
    {"round robin: the largest number there is", CONF_ROUND_ROBIN,
        {.number = NOBODY - 1, .cursor = NOBODY - 2}, {.number = 0, .cursor = NOBODY - 2}, 'a'},
    {"smooth: the higher standing", CONF_WEIGHTED_ROUND_ROBIN, {.smooth = 0, .weight = 1},
        {.smooth = 3, .weight = 1}, 'b'},
    {"smooth: this turn's weight counts", CONF_WEIGHTED_ROUND_ROBIN, {.smooth = 0, .weight = 5},
        {.smooth = 3, .weight = 1}, 'a'},
    {"smooth: who was picked stands low", CONF_WEIGHTED_ROUND_ROBIN, {.smooth = -6, .weight = 5},
        {.smooth = 1, .weight = 1}, 'b'},
    {"weighted random: the weight", CONF_WEIGHTED_RANDOM, {.weight = 2}, {.weight = 1}, 'a'},
    {"quota: most left", CONF_QUOTA, {.quota_left = 10}, {.quota_left = 11}, 'b'},
    {"quota: used up", CONF_QUOTA, {.quota_left = 0}, {.quota_left = 1}, 'b'},
    {"quota: none counts as the largest", CONF_QUOTA, {.quota_left = 9e15}, {.quota_left = -1},
        'b'},
    {"quota: two without one", CONF_QUOTA, {.quota_left = -1}, {.quota_left = -1}, '='},
    {"least in flight", CONF_LEAST_IN_FLIGHT, {.in_flight = 2}, {.in_flight = 1}, 'b'},
    {"least in flight: nothing else counts", CONF_LEAST_IN_FLIGHT, {.in_flight = 1, .weight = 9},
        {.in_flight = 1, .tokens_today = 9}, '='},
    {"least used: tokens", CONF_LEAST_USED, {.tokens_today = 100, .requests_today = 1},
        {.tokens_today = 99, .requests_today = 1000}, 'b'},
    {"least used: of the same tokens, requests", CONF_LEAST_USED,
        {.tokens_today = 1e6, .requests_today = 3}, {.tokens_today = 1e6, .requests_today = 4},
        'a'},
    {"latency", CONF_LATENCY, {.latency_ms = 210}, {.latency_ms = 200}, 'b'},
    {"latency: one without a success is tried", CONF_LATENCY, {.latency_ms = 0},
        {.latency_ms = 200}, 'a'},
    {"fill first: as configured", CONF_FILL_FIRST, {.index = 1, .number = 0},
        {.index = 0, .number = 1}, 'b'},
};

static void
test_ranks(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(pairs); i++) {
		double a = strategy_rank(pairs[i].strategy, &pairs[i].a);
		double b = strategy_rank(pairs[i].strategy, &pairs[i].b);
		double way = strategy_way(pairs[i].strategy) == SCORE_RANDOM ? -1 : 1;
		char got = a * way < b * way ? 'a' : a * way > b * way ? 'b' : '=';

		assert_true(isfinite(a) && isfinite(b));
		if (got != pairs[i].want)
			fail_msg("%s: got %c (%g, %g), want %c", pairs[i].what, got, a, b,
			    pairs[i].want);
	}
}

static void
test_ways(void **state)
{
	static const struct {
		enum conf_strategy strategy;
		enum score_way way;
		unsigned needs;
	} ways[] = {
	    {CONF_ADAPTIVE, SCORE_ADAPTIVE, 0},
	    {CONF_ROUND_ROBIN, SCORE_LEAST, STRATEGY_CURSOR},
	    {CONF_WEIGHTED_ROUND_ROBIN, SCORE_LEAST, STRATEGY_SMOOTH},
	    {CONF_WEIGHTED_RANDOM, SCORE_RANDOM, 0},
	    {CONF_QUOTA, SCORE_LEAST, STRATEGY_QUOTA},
	    {CONF_LEAST_IN_FLIGHT, SCORE_LEAST, 0},
	    {CONF_LEAST_USED, SCORE_LEAST, STRATEGY_STAT},
	    {CONF_LRU, SCORE_LEAST, 0},
	    {CONF_LATENCY, SCORE_LEAST, STRATEGY_STAT},
	    {CONF_FILL_FIRST, SCORE_LEAST, 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		assert_int_equal(strategy_way(ways[i].strategy), ways[i].way);
		assert_int_equal(strategy_needs(ways[i].strategy), ways[i].needs);
	}
}

/* Nine picks of 5, 1 and 3: each as often as its weight, and the heavy one never five times in a row. */
static void
test_smooth_is_smooth(void **state)
{
	static const double weights[] = {5, 1, 3};
	double standing[] = {0, 0, 0};
	unsigned hits[] = {0, 0, 0}, run = 0, longest = 0;
	size_t last = SIZE_MAX;

	(void)state;
	for (unsigned pick = 0; pick < 9; pick++) {
		size_t best = 0;
		double ranks[3];

		for (size_t i = 0; i < 3; i++) {
			struct strategy_facts facts = {.smooth = standing[i], .weight = weights[i]};

			ranks[i] = strategy_rank(CONF_WEIGHTED_ROUND_ROBIN, &facts);
			if (ranks[i] < ranks[best])
				best = i;
		}
		for (size_t i = 0; i < 3; i++)
			standing[i] += weights[i];
		standing[best] -= 9;
		hits[best]++;
		run = best == last ? run + 1 : 1;
		longest = run > longest ? run : longest;
		last = best;
	}
	assert_int_equal(hits[0], 5);
	assert_int_equal(hits[1], 1);
	assert_int_equal(hits[2], 3);
	assert_true(longest <= 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_smooth_is_smooth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
