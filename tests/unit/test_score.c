#include "score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOUR 3600000LL
#define NOW 1767607200000LL
#define GAP 100

static const struct score_rule usual = {
    .credit_factor = 10,
    .success_factor = 3,
    .idle_weight_per_hour = 0.5,
    .idle_weight_max = 5,
    .min_pick_gap_ms = GAP,
    .shortlist = 5,
};

static uint64_t seed;

static uint64_t
next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 2685821657736338717ULL;
}

/* The state whose first draw is `wanted`: a board's generator, run backwards. */
static uint64_t
state_before(uint64_t wanted)
{
	uint64_t z = wanted;

	z = (z ^ z >> 31 ^ z >> 62) * 0x319642b2d24d8ec3ULL;
	z = (z ^ z >> 27 ^ z >> 54) * 0x96de1b173f119089ULL;
	z = z ^ z >> 30 ^ z >> 60;
	return z - 0x9e3779b97f4a7c15ULL;
}

/* Survey and offer all of them, then draw. */
static size_t
draw(struct score_board *board, const struct score_rule *rule, const struct score_candidate *all,
    size_t n, uint64_t random)
{
	size_t account = SIZE_MAX;

	score_begin(board, rule, (struct wall_ms){NOW}, state_before(random));
	for (size_t i = 0; i < n; i++)
		score_survey(board, &all[i]);
	score_close(board, false, false);
	for (size_t i = 0; i < n; i++)
		(void)score_offer(board, &all[i]);
	return score_draw(board, &account) ? account : SIZE_MAX;
}

static const struct {
	const char *what;
	int64_t credits, most; /* -1 = unknown; most 0 = the same */
	int64_t idle_ms;       /* -1 = never picked */
	uint32_t success, errors;
	double own, want;
} weights[] = {
    {"never used, nothing known", -1, 0, -1, 0, 0, 1, 5 + 1.5},
    {"just picked, nothing known", -1, 0, 0, 0, 0, 1, 1.5},
    {"an hour idle", -1, 0, HOUR, 0, 0, 1, 0.5 + 1.5},
    {"ten hours idle: the most", -1, 0, 10 * HOUR, 0, 0, 1, 5 + 1.5},
    {"eleven hours idle: no more", -1, 0, 11 * HOUR, 0, 0, 1, 5 + 1.5},
    {"picked in the future: a clock was set back", -1, 0, -5 * HOUR, 0, 0, 1, 1.5},
    {"all credits", 80, 80, 0, 0, 0, 1, 10 + 1.5},
    {"a quarter of the largest", 20, 80, 0, 0, 0, 1, 2.5 + 1.5},
    {"no credits", 0, 80, 0, 0, 0, 1, 1.5},
    {"unknown credits count 0", -1, 80, 0, 0, 0, 1, 1.5},
    {"only one, of 0 credits", 0, 0, 0, 0, 0, 1, 1.5},
    {"always well", -1, 0, 0, 10, 0, 1, 3},
    {"half well", -1, 0, 0, 5, 5, 1, 1.5},
    {"never well", -1, 0, 0, 0, 4, 1, 0},
    {"counters that would overflow 32 bits", -1, 0, 0, UINT32_MAX, UINT32_MAX, 1, 1.5},
    {"its own weight multiplies", 80, 80, 0, 10, 0, 2.5, 2.5 * 13},
    {"its own weight of 0", 80, 80, 0, 10, 0, 0, 0},
    {"the largest credits there are", INT64_MAX, INT64_MAX, 0, 0, 0, 1, 10 + 1.5},
};

static void
test_weight(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(weights); i++) {
		struct score_candidate c = {
		    .factor = 1,
		    .weight = weights[i].own,
		    .has_credits = weights[i].credits >= 0,
		    .credits_micros = weights[i].credits,
		    .success = weights[i].success,
		    .errors = weights[i].errors,
		    .picked = {weights[i].idle_ms == -1 ? 0 : NOW - weights[i].idle_ms},
		};
		struct score_candidate rich = {
		    .has_credits = true, .credits_micros = weights[i].most};
		struct score_board board;
		double got;

		score_begin(&board, &usual, (struct wall_ms){NOW}, 0);
		score_survey(&board, &c);
		score_survey(&board, &rich);
		score_close(&board, false, false);
		got = score_terms(&board, &c).weight;
		if (fabs(got - weights[i].want) > 1e-9)
			fail_msg("%s: got %.9f, want %.9f", weights[i].what, got, weights[i].want);
	}
}

#define ID(z)                      \
	{                          \
		(z), sizeof(z) - 1 \
	}

/* Accounts of one weight; -1 ends the wanted order. */
static const struct {
	const char *what;
	struct score_candidate c[4];
	int want[4];
} orders[] = {
    {"by weight, heaviest first",
        {{.id = ID("a"), .factor = 1, .weight = 1}, {.id = ID("b"), .factor = 1, .weight = 3},
            {.id = ID("c"), .factor = 1, .weight = 2}},
        {1, 2, 0, -1}},
    {"alike: least recently picked first",
        {{.id = ID("a"), .factor = 1, .weight = 1, .picked = {NOW - 2 * GAP}},
            {.id = ID("b"), .factor = 1, .weight = 1, .picked = {NOW - 5 * GAP}},
            {.id = ID("c"), .factor = 1, .weight = 1, .picked = {NOW - 3 * GAP}}},
        {1, 2, 0, -1}},
    {"within a millisecond: by transaction",
        {{.id = ID("a"), .factor = 1, .weight = 1, .picked = {NOW - GAP}, .picked_txn = 2},
            {.id = ID("b"), .factor = 1, .weight = 1, .picked = {NOW - GAP}, .picked_txn = 0},
            {.id = ID("c"), .factor = 1, .weight = 1, .picked = {NOW - GAP}, .picked_txn = 1}},
        {1, 2, 0, -1}},
    {"nobody was ever picked: by id, a prefix first",
        {{.id = ID("b"), .factor = 1, .weight = 1}, {.id = ID("aa"), .factor = 1, .weight = 1},
            {.id = ID("a"), .factor = 1, .weight = 1}},
        {2, 1, 0, -1}},
    {"the transaction of one never picked means nothing",
        {{.id = ID("b"), .factor = 1, .weight = 1, .picked_txn = 0},
            {.id = ID("a"), .factor = 1, .weight = 1, .picked_txn = 9}},
        {1, 0, -1, -1}},
};

/* Weights that do not depend on time, so that only the order of equals does. */
static const struct score_rule flat = {.success_factor = 2, .shortlist = 5};

static void
test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(orders); i++) {
		struct score_candidate all[4];
		struct score_board board;
		size_t n = 0;

		for (; n < 4 && orders[i].c[n].id.n > 0; n++) {
			all[n] = orders[i].c[n];
			all[n].account = n;
		}
		(void)draw(&board, &flat, all, n, 0);
		assert_int_equal(board.n, n);
		for (size_t at = 0; at < n; at++)
			if (board.best[at].candidate.account != (size_t)orders[i].want[at])
				fail_msg("%s: place %zu: got %zu, want %d", orders[i].what, at,
				    board.best[at].candidate.account, orders[i].want[at]);
	}
}

static void
test_short_list(void **state)
{
	struct score_candidate all[40];
	struct score_board board;
	struct score_rule rule = flat;

	(void)state;
	for (size_t i = 0; i < NELEM(all); i++) /* 0 is the lightest */
		all[i] =
		    (struct score_candidate){.account = i, .factor = 1, .weight = (double)i + 1};
	for (rule.shortlist = 1; rule.shortlist <= SCORE_SHORT_MAX; rule.shortlist++) {
		(void)draw(&board, &rule, all, NELEM(all), 0);
		assert_int_equal(board.n, rule.shortlist);
		for (unsigned at = 0; at < board.n; at++)
			assert_int_equal(board.best[at].candidate.account, NELEM(all) - 1 - at);
	}
	rule.shortlist = 1;
	assert_int_equal(draw(&board, &rule, all, NELEM(all), UINT64_MAX), NELEM(all) - 1);
}

static void
test_tiers(void **state)
{
	static const struct score_candidate all[] = {
	    {.account = 0,
	        .priority = 5,
	        .factor = 1,
	        .weight = 9,
	        .has_credits = true,
	        .credits_micros = 900},
	    {.account = 1,
	        .priority = -1,
	        .factor = 1,
	        .weight = 1,
	        .has_credits = true,
	        .credits_micros = 10},
	    {.account = 2,
	        .priority = -1,
	        .factor = 1,
	        .weight = 1,
	        .has_credits = true,
	        .credits_micros = 5},
	    {.account = 3, .priority = 0, .factor = 1, .weight = 9},
	};
	struct score_board board;

	(void)state;
	score_begin(&board, &usual, (struct wall_ms){NOW}, 0);
	for (size_t i = 0; i < NELEM(all); i++)
		score_survey(&board, &all[i]);
	score_close(&board, false, false);
	assert_int_equal(board.most_credits_micros, 10); /* a worse tier's riches do not count */
	assert_int_equal(score_offer(&board, &all[0]), SCORE_TIER);
	assert_int_equal(score_offer(&board, &all[1]), SCORE_IN);
	assert_int_equal(score_offer(&board, &all[2]), SCORE_IN);
	assert_int_equal(score_offer(&board, &all[3]), SCORE_TIER);
	assert_int_equal(board.n, 2);
	assert_true(fabs(board.best[0].terms.credits - 10) < 1e-9);
	assert_true(fabs(board.best[1].terms.credits - 5) < 1e-9);
}

static const struct {
	const char *what;
	double weight[4]; /* -1 = no more */
	int64_t ago[4];   /* since the last pick; 0 = never */
	uint64_t random;
	size_t want; /* SIZE_MAX = nobody */
} draws[] = {
    {"nobody was offered", {-1}, {0}, 0, SIZE_MAX},
    {"one, whatever the number", {1, -1}, {0}, UINT64_MAX, 0},
    {"the first, by the smallest number", {1, 1, -1}, {0}, 0, 0},
    {"the last, by the largest number", {1, 1, -1}, {0}, UINT64_MAX, 1},
    {"weight 0 beside another is never drawn", {1, 0, -1}, {0}, UINT64_MAX, 0},
    {"all weights 0: the first", {0, 0, -1}, {0}, 0, 0},
    {"all weights 0: the last", {0, 0, -1}, {0}, UINT64_MAX, 1},
    {"picked a moment ago: left out", {9, 1, -1}, {GAP - 1, 0}, 0, 1},
    {"the gap is over", {9, 1, -1}, {GAP, 0}, 0, 0},
    {"all within the gap: least recently picked", {9, 5, 1, -1}, {5, 50, 20}, UINT64_MAX, 1},
    {"picked in the future: not locked out", {9, 1, -1}, {-1000, 0}, 0, 0},
    {"who is left out gives no weight either", {8, 1, 1, -1}, {1, 0, 0}, UINT64_MAX / 4, 1},
};

static void
test_draw(void **state)
{
	struct score_rule rule = flat;

	(void)state;
	rule.min_pick_gap_ms = GAP;
	for (size_t i = 0; i < NELEM(draws); i++) {
		struct score_candidate all[4];
		struct score_board board;
		size_t n = 0, got;

		for (; n < 4 && draws[i].weight[n] >= 0; n++)
			all[n] = (struct score_candidate){
			    .account = n,
			    .factor = 1,
			    .weight = draws[i].weight[n],
			    .picked = {draws[i].ago[n] == 0 ? 0 : NOW - draws[i].ago[n]},
			};
		got = draw(&board, &rule, all, n, draws[i].random);
		if (got != draws[i].want)
			fail_msg("%s: got %zd, want %zd", draws[i].what, (ssize_t)got,
			    (ssize_t)draws[i].want);
	}
}

/* Beyond this, chi-square of k - 1 degrees of freedom happens once in 10,000 runs. */
static const double chi_limit[] = {0, 15.14, 18.42, 21.11, 23.51};

static const struct {
	const char *what;
	unsigned n;
	double weight[5];
} shares[] = {
    {"five alike", 5, {1, 1, 1, 1, 1}},
    {"two alike", 2, {1, 1}},
    {"1 to 2 to 3", 3, {1, 2, 3}},
    {"1 to 100", 2, {1, 100}},
    {"four of all sizes", 4, {0.5, 1, 2.25, 7}},
    {"all 0: uniform", 3, {0, 0, 0}},
};

static void
test_shares(void **state)
{
	enum { DRAWS = 40000 };

	(void)state;
	for (size_t i = 0; i < NELEM(shares); i++) {
		struct score_candidate all[5];
		unsigned hits[5] = {0};
		double sum = 0, chi = 0;

		seed = 20260105 + i;
		for (unsigned k = 0; k < shares[i].n; k++) {
			all[k] = (struct score_candidate){
			    .account = k, .factor = 1, .weight = shares[i].weight[k]};
			sum += shares[i].weight[k];
		}
		for (unsigned d = 0; d < DRAWS; d++) {
			struct score_board board;

			hits[draw(&board, &flat, all, shares[i].n, next_random())]++;
		}
		for (unsigned k = 0; k < shares[i].n; k++) {
			double share = sum > 0 ? shares[i].weight[k] / sum : 1.0 / shares[i].n;
			double off = hits[k] - share * DRAWS;

			chi += off * off / (share * DRAWS);
		}
		if (chi > chi_limit[shares[i].n - 1])
			fail_msg("%s: chi-square %.2f > %.2f", shares[i].what, chi,
			    chi_limit[shares[i].n - 1]);
	}
}

/* 20 equal accounts picked one after the other: with the idle term everybody gets about the same. */
static void
test_long_run(void **state)
{
	enum { ACCOUNTS = 20, PICKS = 8000 };
	struct score_candidate all[ACCOUNTS] = {0};
	unsigned hits[ACCOUNTS] = {0};
	struct score_board board;

	(void)state;
	seed = 7;
	for (size_t i = 0; i < ACCOUNTS; i++)
		all[i] = (struct score_candidate){.account = i, .factor = 1, .weight = 1};
	for (unsigned p = 0; p < PICKS; p++) {
		struct wall_ms now = {NOW + p * 1000LL};
		size_t at;

		score_begin(&board, &usual, now, next_random());
		for (size_t i = 0; i < ACCOUNTS; i++)
			score_survey(&board, &all[i]);
		score_close(&board, false, false);
		for (size_t i = 0; i < ACCOUNTS; i++)
			assert_int_equal(score_offer(&board, &all[i]), SCORE_IN);
		assert_true(score_draw(&board, &at));
		all[at].picked = now;
		hits[at]++;
	}
	for (size_t i = 0; i < ACCOUNTS; i++)
		if (hits[i] < PICKS / ACCOUNTS * 9 / 10 || hits[i] > PICKS / ACCOUNTS * 11 / 10)
			fail_msg("account %zu was picked %u times of %d", i, hits[i], PICKS);
}

static void
test_names(void **state)
{
	(void)state;
	for (int i = 0; i < SCORE__MAX; i++) {
		const char *name = score_out_name((enum score_out)i);

		assert_non_null(name);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, score_out_name((enum score_out)k));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_weight),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_short_list),
	    cmocka_unit_test(test_tiers),
	    cmocka_unit_test(test_draw),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_long_run),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
