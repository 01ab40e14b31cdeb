#include "elect.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define MOST 4
#define IN ELECT_IN
#define FULL ELECT_FULL
#define GONE ELECT_EXHAUSTED
#define OPEN ELECT_OPEN
#define RESTS ELECT_RESTS
#define TRIED ELECT_TRIED
#define SMALL ELECT_SMALL
#define FREE 0
#define NO_PRICE -1

static struct elect_candidate
candidate(size_t i, enum elect_out out)
{
	return (struct elect_candidate){
	    .out = out, .identity = 1000 + i, .weight = 1, .success_ppm = ELECT_RATE_ONE};
}

/* ---- who comes first ---- */

/* Of up to four targets: why it is out, success in percent, first content in ms, cost, whether it lists the task. */
struct given {
	enum elect_out out;
	uint32_t success;
	int64_t first_ms, cost;
	bool lists;
};

static const struct {
	const char *what;
	int strategy, fallback;
	struct given given[MOST];
	size_t n;
	const char *order; /* as each in turn is tried and failed */
} orders[] = {
    {"fastest", CONF_ROUTE_PERFORMANCE, 0,
        {{IN, 100, 90, 0, false}, {IN, 97, 30, 0, false}, {IN, 99, 60, 0, false}}, 3, "bca"},
    {"a fast one that fails is behind all", CONF_ROUTE_PERFORMANCE, 0,
        {{IN, 94, 10, 0, false}, {IN, 95, 90, 0, false}}, 2, "ba"},
    {"none succeeds often enough: the best rate", CONF_ROUTE_PERFORMANCE, 0,
        {{IN, 40, 10, 0, false}, {IN, 80, 90, 0, false}, {IN, 60, 1, 0, false}}, 3, "bca"},
    {"not measured yet comes first", CONF_ROUTE_PERFORMANCE, 0,
        {{IN, 100, 5, 0, false}, {IN, 100, 0, 0, false}}, 2, "ba"},
    {"cheapest", CONF_ROUTE_COST_FIRST, 0,
        {{IN, 100, 0, 30, false}, {IN, 100, 0, 10, false}, {IN, 100, 0, 20, false}}, 3, "bca"},
    {"free, dear, unknown", CONF_ROUTE_COST_FIRST, 0,
        {{IN, 100, 0, NO_PRICE, false}, {IN, 100, 0, INT64_MAX, false}, {IN, 100, 0, FREE, false}},
        3, "cba"},
    {"those that list the task, then the others", CONF_ROUTE_TASK, 0,
        {{IN, 100, 0, 0, false}, {IN, 9, 99, 9, true}, {IN, 100, 0, 0, true}}, 3, "bca"},
    {"without a task as they stand", CONF_ROUTE_TASK, 0,
        {{IN, 1, 9, 9, false}, {IN, 100, 0, 0, false}}, 2, "ab"},
    {"mixed: the task's, then the fallback", CONF_ROUTE_MIXED, CONF_ROUTE_COST_FIRST,
        {{IN, 100, 0, 1, false}, {IN, 100, 0, 9, true}, {IN, 100, 0, 5, true}}, 3, "bac"},
    {"mixed: the task's is open", CONF_ROUTE_MIXED, CONF_ROUTE_COST_FIRST,
        {{OPEN, 100, 0, 0, true}, {IN, 100, 0, 9, true}, {IN, 100, 0, 5, false}}, 3, "cba"},
    {"mixed: the task's rests", CONF_ROUTE_MIXED, CONF_ROUTE_COST_FIRST,
        {{RESTS, 100, 0, 0, true}, {IN, 100, 0, 9, true}, {IN, 100, 0, 5, false}}, 3, "cb"},
    {"mixed: too small is none of the task's", CONF_ROUTE_MIXED, CONF_ROUTE_COST_FIRST,
        {{SMALL, 100, 0, 0, true}, {IN, 100, 0, 9, true}, {IN, 100, 0, 5, false}}, 3, "bc"},
    {"mixed and mixed", CONF_ROUTE_MIXED, CONF_ROUTE_MIXED,
        {{FULL, 100, 0, 0, true}, {IN, 100, 0, 9, false}, {IN, 100, 0, 5, true}}, 3, "cba"},
    {"busy before exhausted before open", CONF_ROUTE_COST_FIRST, 0,
        {{OPEN, 100, 0, 1, false}, {GONE, 100, 0, 2, false}, {FULL, 100, 0, 9, false},
            {IN, 100, 0, 99, false}},
        4, "dcba"},
    {"of the busy ones the cheapest", CONF_ROUTE_COST_FIRST, 0,
        {{FULL, 100, 0, 3, false}, {FULL, 100, 0, 2, false}, {GONE, 100, 0, 1, false}}, 3, "bac"},
    {"out for good", CONF_ROUTE_COST_FIRST, 0,
        {{RESTS, 100, 0, 1, false}, {TRIED, 100, 0, 1, false}, {SMALL, 100, 0, 1, false},
            {ELECT_TASK, 100, 0, 1, false}},
        4, ""},
    {"of another wire", CONF_ROUTE_WEIGHTED_RANDOM, 0, {{ELECT_WIRE, 100, 0, 1, false}}, 1, ""},
    {"none at all", CONF_ROUTE_WEIGHTED_RANDOM, 0, {{IN, 0, 0, 0, false}}, 0, ""},
};

static struct elect_candidate
of(size_t i, const struct given *g)
{
	struct elect_candidate c = candidate(i, g->out);

	c.success_ppm = g->success * (ELECT_RATE_ONE / 100);
	c.first_ms = g->first_ms;
	c.priced = g->cost != NO_PRICE;
	c.cost = c.priced ? g->cost : 0;
	c.lists_task = g->lists;
	return c;
}

static void
test_orders(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(orders); i++) {
		struct elect_candidate c[MOST];
		struct elect_rule rule = {.strategy = orders[i].strategy,
		    .fallback = orders[i].fallback,
		    .min_success_ppm = 950000,
		    .draw = 88172645463325252ULL * (i + 1)};
		char got[MOST + 1] = "";
		size_t n = 0;

		for (size_t k = 0; k < orders[i].n; k++)
			c[k] = of(k, &orders[i].given[k]);
		while (n < MOST) {
			size_t at = elect_choose(c, orders[i].n, &rule);

			if (at == ELECT_NOBODY)
				break;
			got[n++] = (char)('a' + at);
			c[at].out = ELECT_TRIED;
		}
		if (strcmp(got, orders[i].order) == 0)
			continue;
		print_error("%s: '%s', want '%s'\n", orders[i].what, got, orders[i].order);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* ---- shares ---- */

static uint64_t
next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed ^ *seed >> 29;
}

#define DRAWS 40000

static const struct {
	const char *what;
	int strategy;
	double weights[MOST];
	uint32_t success[MOST]; /* percent */
	size_t n;
	double shares[MOST];
} draws[] = {
    {"weights", CONF_ROUTE_WEIGHTED_RANDOM, {5, 3, 2}, {100, 100, 100}, 3, {0.5, 0.3, 0.2}},
    {"one alone", CONF_ROUTE_WEIGHTED_RANDOM, {0.001}, {100}, 1, {1}},
    {"times the success rate", CONF_ROUTE_WEIGHTED_RANDOM, {1, 1}, {100, 50}, 2,
        {2.0 / 3, 1.0 / 3}},
    {"who always failed is measured again", CONF_ROUTE_WEIGHTED_RANDOM, {1, 1}, {95, 0}, 2,
        {0.95, 0.05}},
    {"no weight, no share", CONF_ROUTE_WEIGHTED_RANDOM, {1, 0, 1}, {100, 100, 100}, 3,
        {0.5, 0, 0.5}},
    {"all without weight", CONF_ROUTE_WEIGHTED_RANDOM, {0, 0}, {100, 0}, 2, {0.5, 0.5}},
    {"very unequal", CONF_ROUTE_WEIGHTED_RANDOM, {1e6, 1}, {100, 100}, 2, {0.999999, 0.000001}},
    {"equals of another strategy", CONF_ROUTE_COST_FIRST, {3, 1}, {100, 10}, 2, {0.75, 0.25}},
    {"none is measured", CONF_ROUTE_PERFORMANCE, {1, 1, 2}, {100, 100, 100}, 3, {0.25, 0.25, 0.5}},
};

static void
test_shares(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(draws); i++) {
		struct elect_candidate c[MOST];
		struct elect_rule rule = {.strategy = draws[i].strategy, .min_success_ppm = 950000};
		unsigned seen[MOST] = {0};
		uint64_t seed = 42;

		for (size_t k = 0; k < draws[i].n; k++) {
			c[k] = candidate(k, ELECT_IN);
			c[k].weight = draws[i].weights[k];
			c[k].success_ppm = draws[i].success[k] * (ELECT_RATE_ONE / 100);
		}
		for (unsigned n = 0; n < DRAWS; n++) {
			rule.draw = next(&seed);
			seen[elect_choose(c, draws[i].n, &rule)]++;
		}
		for (size_t k = 0; k < draws[i].n; k++) {
			double want = draws[i].shares[k], got = (double)seen[k] / DRAWS;
			double share = elect_share(c, draws[i].n, &rule, k);

			if (got < want - 0.012 || got > want + 0.012)
				fail_msg("%s: %c is drawn %.4f, want %.4f", draws[i].what,
				    (char)('a' + k), got, want);
			if (share < want - 1e-5 || share > want + 1e-5)
				fail_msg("%s: share of %c is %.6f, want %.6f", draws[i].what,
				    (char)('a' + k), share, want);
		}
	}
}

/* What is drawn from tiny differences of a hash must be as good as any. */
static void
test_draws_of_small_numbers(void **state)
{
	struct elect_candidate c[] = {candidate(0, ELECT_IN), candidate(1, ELECT_IN)};
	struct elect_rule rule = {.strategy = CONF_ROUTE_WEIGHTED_RANDOM};
	unsigned first = 0;

	(void)state;
	for (rule.draw = 0; rule.draw < 10000; rule.draw++)
		first += elect_choose(c, 2, &rule) == 0;
	assert_in_range(first, 4800, 5200);
	rule.draw = UINT64_MAX;
	assert_true(elect_choose(c, 2, &rule) < 2);
}

/* ---- sessions ---- */

static void
test_sessions(void **state)
{
	struct elect_candidate c[MOST];
	struct elect_rule rule = {.strategy = CONF_ROUTE_WEIGHTED_RANDOM, .by_session = true};
	unsigned moved = 0;

	(void)state;
	for (size_t k = 0; k < MOST; k++)
		c[k] = candidate(k, ELECT_IN);
	for (rule.draw = 1; rule.draw < 2000; rule.draw++) {
		size_t was = elect_choose(c, MOST, &rule), now;
		struct elect_candidate turned[MOST] = {c[3], c[2], c[1], c[0]};

		assert_int_equal(elect_choose(c, MOST, &rule), was);
		/* its place in the list is no matter */
		assert_int_equal(elect_choose(turned, MOST, &rule), MOST - 1 - was);
		/* who leaves moves nobody else's */
		c[2].out = ELECT_RESTS;
		now = elect_choose(c, MOST, &rule);
		if (was == 2)
			assert_int_not_equal(now, 2);
		else
			assert_int_equal(now, was);
		c[2].out = ELECT_IN;
		/* nor does a failure now and then */
		c[1].success_ppm = 800000;
		assert_int_equal(elect_choose(c, MOST, &rule), was);
		c[1].success_ppm = 500000;
		moved += elect_choose(c, MOST, &rule) != was;
		c[1].success_ppm = ELECT_RATE_ONE;
	}
	assert_in_range(moved, 2000 / 4 / 4, 2000 / 4); /* some of a quarter of all */
}

/* A session is no reason to pay more; among equals it stays. */
static void
test_sessions_of_other_strategies(void **state)
{
	struct elect_candidate c[] = {
	    candidate(0, ELECT_IN), candidate(1, ELECT_IN), candidate(2, ELECT_IN)};
	struct elect_rule rule = {.strategy = CONF_ROUTE_COST_FIRST, .by_session = true};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		c[k].priced = true;
		c[k].cost = k == 0 ? 2 : 1;
	}
	for (rule.draw = 1; rule.draw < 50; rule.draw++) {
		size_t got = elect_choose(c, 3, &rule);

		assert_int_not_equal(got, 0);
		assert_int_equal(elect_choose(c, 3, &rule), got);
		assert_true(elect_share(c, 3, &rule, got) >= 1);
		assert_true(elect_share(c, 3, &rule, 3 - got) <= 0);
	}
}

/* Who served so far does on, while it can be had. */
static void
test_served(void **state)
{
	struct elect_candidate c[] = {candidate(0, IN), candidate(1, IN), candidate(2, IN)};
	struct elect_rule rule = {.strategy = CONF_ROUTE_WEIGHTED_RANDOM};

	(void)state;
	c[1].served = true;
	c[1].weight = 0.1;
	for (rule.draw = 0; rule.draw < 50; rule.draw++)
		assert_int_equal(elect_choose(c, 3, &rule), 1);
	assert_true(elect_share(c, 3, &rule, 1) >= 1);
	c[1].out = FULL;
	assert_int_not_equal(elect_choose(c, 3, &rule), 1);
	c[1].out = IN;
	rule.strategy = CONF_ROUTE_TASK;
	assert_int_equal(elect_choose(c, 3, &rule), 0);
}

static void
test_likeliest(void **state)
{
	struct elect_candidate c[] = {
	    candidate(0, ELECT_IN), candidate(1, ELECT_IN), candidate(2, ELECT_IN)};
	struct elect_rule rule = {.strategy = CONF_ROUTE_WEIGHTED_RANDOM, .likeliest = true};

	(void)state;
	c[1].weight = 1.5;
	for (rule.draw = 0; rule.draw < 50; rule.draw++)
		assert_int_equal(elect_choose(c, 3, &rule), 1);
}

static void
test_words(void **state)
{
	(void)state;
	assert_null(elect_out_text(ELECT_IN));
	for (int out = ELECT_IN + 1; out < ELECT__MAX; out++)
		assert_true(elect_out_text((enum elect_out)out)[0] != '\0');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_orders),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_draws_of_small_numbers),
	    cmocka_unit_test(test_sessions),
	    cmocka_unit_test(test_sessions_of_other_strategies),
	    cmocka_unit_test(test_served),
	    cmocka_unit_test(test_likeliest),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
