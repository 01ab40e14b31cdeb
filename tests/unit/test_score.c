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

/* The state whose first draw has these bits: the steps of splitmix64 undone. */
static uint64_t
state_of(uint64_t bits)
{
	uint64_t z = bits ^ bits >> 31 ^ bits >> 62;

	z *= 0x319642b2d24d8ec3ULL;
	z ^= z >> 27 ^ z >> 54;
	z *= 0x96de1b173f119089ULL;
	z ^= z >> 30 ^ z >> 60;
	return z - 0x9e3779b97f4a7c15ULL;
}

/* Both passes over all of them. */
static void
rank(struct score_board *board, const struct score_rule *rule, const struct score_candidate *all,
    size_t n, uint64_t random)
{
	score_begin(board, rule, (struct wall_ms){NOW}, random);
	for (size_t i = 0; i < n; i++)
		score_survey(board, &all[i]);
	score_close(board, false, false);
	for (size_t i = 0; i < n; i++)
		(void)score_offer(board, &all[i]);
}

static size_t
draw(struct score_board *board, const struct score_rule *rule, const struct score_candidate *all,
    size_t n, uint64_t random)
{
	size_t account = SIZE_MAX;

	rank(board, rule, all, n, random);
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
		    .weight = weights[i].own,
		    .has_credits = weights[i].credits >= 0,
		    .credits_micros = weights[i].credits,
		    .factor = 1,
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
        {{.id = ID("a"), .weight = 1}, {.id = ID("b"), .weight = 3}, {.id = ID("c"), .weight = 2}},
        {1, 2, 0, -1}},
    {"alike: least recently picked first",
        {{.id = ID("a"), .weight = 1, .picked = {NOW - 2 * GAP}},
            {.id = ID("b"), .weight = 1, .picked = {NOW - 5 * GAP}},
            {.id = ID("c"), .weight = 1, .picked = {NOW - 3 * GAP}}},
        {1, 2, 0, -1}},
    {"within a millisecond: by transaction",
        {{.id = ID("a"), .weight = 1, .picked = {NOW - GAP}, .picked_txn = 2},
            {.id = ID("b"), .weight = 1, .picked = {NOW - GAP}, .picked_txn = 0},
            {.id = ID("c"), .weight = 1, .picked = {NOW - GAP}, .picked_txn = 1}},
        {1, 2, 0, -1}},
    {"nobody was ever picked: by id, a prefix first",
        {{.id = ID("b"), .weight = 1}, {.id = ID("aa"), .weight = 1}, {.id = ID("a"), .weight = 1}},
        {2, 1, 0, -1}},
    {"the transaction of one never picked means nothing",
        {{.id = ID("b"), .weight = 1, .picked_txn = 0},
            {.id = ID("a"), .weight = 1, .picked_txn = 9}},
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
			all[n].factor = 1;
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
		    (struct score_candidate){.account = i, .weight = (double)i + 1, .factor = 1};
	for (rule.shortlist = 1; rule.shortlist <= SCORE_SHORT_MAX; rule.shortlist++) {
		(void)draw(&board, &rule, all, NELEM(all), 0);
		assert_int_equal(board.n, rule.shortlist);
		for (unsigned at = 0; at < board.n; at++)
			assert_int_equal(board.best[at].candidate.account, NELEM(all) - 1 - at);
	}
	rule.shortlist = 1;
	assert_int_equal(
	    draw(&board, &rule, all, NELEM(all), state_of(UINT64_MAX)), NELEM(all) - 1);
}

/* Accounts in order; what each filter makes of them, and the largest credits among those that stay. */
static const struct {
	const char *what;
	bool explore, prefer_unbound;
	struct {
		int priority, cost_tier;
		bool bound;
		int credits; /* -1 = none known */
	} c[5];
	const char *want; /* i in, t tier, c cost, b bound */
	int most_credits;
} filters[] = {
    {"the best priority alone", false, false,
        {{5, 0, false, 900}, {-1, 0, false, 10}, {-1, 0, false, 5}, {0, 0, false, -1}}, "tiit", 10},
    {"a worse one found first", false, false, {{7, 0, true, 1}, {7, 1, true, 1}, {6, 2, true, 3}},
        "tti", 3},
    {"free before unmeasured and paid", false, false,
        {{0, 2, false, 9}, {0, 0, false, 2}, {0, 1, false, 7}, {0, 0, false, 4}}, "cici", 4},
    {"nobody free: unmeasured before paid", false, false, {{0, 2, false, 9}, {0, 1, false, 2}},
        "ci", 2},
    {"all paid: they stay", false, false, {{0, 2, false, 9}, {0, 2, false, 2}}, "ii", 9},
    {"priority is asked before cost", false, false, {{0, 2, false, 1}, {1, 0, false, 2}}, "it", 1},
    {"exploring: unmeasured although one is free", true, false,
        {{0, 0, false, 9}, {0, 1, false, 2}, {0, 2, false, 8}}, "cic", 2},
    {"exploring where all are measured", true, false, {{0, 0, false, 9}, {0, 2, false, 8}}, "ic",
        9},
    {"exploring does not reach a worse priority", true, false, {{0, 0, false, 9}, {1, 1, false, 8}},
        "it", 9},
    {"accounts without sessions first", false, true,
        {{0, 0, true, 9}, {0, 0, false, 2}, {0, 0, false, -1}}, "bii", 2},
    {"all have sessions: all stay", false, true, {{0, 0, true, 9}, {0, 0, true, 2}}, "ii", 9},
    {"no session to place: bound ones stay", false, false, {{0, 0, true, 9}, {0, 0, false, 2}},
        "ii", 9},
    {"cost is asked before sessions", false, true, {{0, 1, false, 9}, {0, 0, true, 2}}, "ci", 2},
    {"sessions within the tier that stays", false, true,
        {{0, 1, false, 9}, {0, 0, true, 2}, {0, 0, false, 1}, {1, 0, false, 7}}, "cbit", 1},
    {"exploring, and then accounts without sessions", true, true,
        {{0, 0, false, 9}, {0, 1, true, 2}, {0, 1, false, 1}}, "cbi", 1},
};

static char
letter_of(enum score_out out)
{
	return out == SCORE_IN ? 'i' : out == SCORE_TIER ? 't' : out == SCORE_COST ? 'c' : 'b';
}

static void
test_filters(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(filters); i++) {
		struct score_board board;
		size_t n = strlen(filters[i].want);
		struct score_candidate all[5];
		char got[6] = "";

		score_begin(&board, &usual, (struct wall_ms){NOW}, 0);
		for (size_t k = 0; k < n; k++) {
			all[k] = (struct score_candidate){
			    .account = k,
			    .weight = 1,
			    .factor = 1,
			    .priority = filters[i].c[k].priority,
			    .cost_tier = (uint8_t)filters[i].c[k].cost_tier,
			    .bound = filters[i].c[k].bound,
			    .has_credits = filters[i].c[k].credits >= 0,
			    .credits_micros = filters[i].c[k].credits,
			};
			score_survey(&board, &all[k]);
		}
		score_close(&board, filters[i].explore, filters[i].prefer_unbound);
		for (size_t k = 0; k < n; k++)
			got[k] = letter_of(score_offer(&board, &all[k]));
		if (strcmp(got, filters[i].want) != 0)
			fail_msg("%s: got %s, want %s", filters[i].what, got, filters[i].want);
		if (board.most_credits_micros != filters[i].most_credits)
			fail_msg("%s: largest credits %lld, want %d", filters[i].what,
			    (long long)board.most_credits_micros, filters[i].most_credits);
	}
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
			    .weight = draws[i].weight[n],
			    .factor = 1,
			    .picked = {draws[i].ago[n] == 0 ? 0 : NOW - draws[i].ago[n]},
			};
		got = draw(&board, &rule, all, n, state_of(draws[i].random));
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
	double factor; /* of the first */
} shares[] = {
    {"five alike", 5, {1, 1, 1, 1, 1}, 1},
    {"two alike", 2, {1, 1}, 1},
    {"1 to 2 to 3", 3, {1, 2, 3}, 1},
    {"1 to 100", 2, {1, 100}, 1},
    {"four of all sizes", 4, {0.5, 1, 2.25, 7}, 1},
    {"all 0: uniform", 3, {0, 0, 0}, 1},
    {"the first is nearly out of quota", 3, {4, 1, 1}, 0.5},
};

/* Both ways that draw: by the weight of the score, and by the rank. */
static void
check_shares(size_t i, enum score_way way)
{
	enum { DRAWS = 40000 };
	struct score_rule rule = flat;
	struct score_candidate all[5];
	unsigned hits[5] = {0};
	struct score_board board;
	double sum = 0, chi = 0;

	rule.way = way;
	seed = 20260105 + i;
	for (unsigned k = 0; k < shares[i].n; k++) {
		all[k] = (struct score_candidate){
		    .account = k,
		    .weight = shares[i].weight[k],
		    .rank = shares[i].weight[k],
		    .factor = k == 0 ? shares[i].factor : 1,
		};
		sum += shares[i].weight[k] * all[k].factor;
	}
	for (unsigned d = 0; d < DRAWS; d++)
		hits[draw(&board, &rule, all, shares[i].n, next_random())]++;
	for (unsigned k = 0; k < shares[i].n; k++) {
		double share =
		    sum > 0 ? shares[i].weight[k] * all[k].factor / sum : 1.0 / shares[i].n;
		double off = hits[k] - share * DRAWS;

		chi += off * off / (share * DRAWS);
		if (fabs(score_share(&board, &all[k]) - share) > 1e-9)
			fail_msg("%s, way %d: share %.6f, want %.6f", shares[i].what, (int)way,
			    score_share(&board, &all[k]), share);
	}
	if (chi > chi_limit[shares[i].n - 1])
		fail_msg("%s, way %d: chi-square %.2f > %.2f", shares[i].what, (int)way, chi,
		    chi_limit[shares[i].n - 1]);
}

static void
test_shares(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(shares); i++) {
		check_shares(i, SCORE_ADAPTIVE);
		check_shares(i, SCORE_RANDOM);
	}
}

/* Beside somebody with a rank, one of rank 0 is never drawn, in whatever order they come. */
static void
test_random_of_zero(void **state)
{
	struct score_rule rule = flat;

	(void)state;
	rule.way = SCORE_RANDOM;
	seed = 5;
	for (unsigned with = 0; with < 4; with++) {
		struct score_candidate all[4];
		struct score_board board;

		for (unsigned k = 0; k < 4; k++)
			all[k] = (struct score_candidate){
			    .account = k, .rank = k == with ? 1e-9 : 0, .factor = 1};
		for (unsigned d = 0; d < 500; d++)
			assert_int_equal(draw(&board, &rule, all, 4, next_random()), with);
		for (unsigned k = 0; k < 4; k++)
			assert_true(fabs(score_share(&board, &all[k]) - (k == with)) < 1e-9);
	}
}

/* What is drawn has a share, and the shares are one. */
static void
test_share_of_draws(void **state)
{
	struct score_rule rule = flat;

	(void)state;
	rule.min_pick_gap_ms = GAP;
	for (size_t i = 0; i < NELEM(draws); i++) {
		struct score_candidate all[4];
		struct score_board board;
		double sum = 0;
		size_t n = 0, got;

		for (; n < 4 && draws[i].weight[n] >= 0; n++)
			all[n] = (struct score_candidate){
			    .account = n,
			    .weight = draws[i].weight[n],
			    .factor = 1,
			    .picked = {draws[i].ago[n] == 0 ? 0 : NOW - draws[i].ago[n]},
			};
		got = draw(&board, &rule, all, n, state_of(draws[i].random));
		for (size_t k = 0; k < n; k++)
			sum += score_share(&board, &all[k]);
		if (n > 0 && (fabs(sum - 1) > 1e-9 || score_share(&board, &all[got]) <= 0))
			fail_msg("%s: shares sum to %.6f, %zu has %.6f", draws[i].what, sum, got,
			    score_share(&board, &all[got]));
	}
}

static const struct {
	const char *what;
	struct score_candidate c[4];
	size_t want; /* SIZE_MAX = nobody */
} least[] = {
    {"nobody", {{.id = {NULL, 0}}}, SIZE_MAX},
    {"one", {{.id = ID("a"), .rank = 5}}, 0},
    {"the lowest rank",
        {{.id = ID("a"), .rank = 2}, {.id = ID("b"), .rank = 1}, {.id = ID("c"), .rank = 3}}, 1},
    {"below zero", {{.id = ID("a"), .rank = 0}, {.id = ID("b"), .rank = -1}}, 1},
    {"alike: never picked first",
        {{.id = ID("a"), .rank = 1, .picked = {NOW - 9}}, {.id = ID("b"), .rank = 1}}, 1},
    {"alike: least recently picked",
        {{.id = ID("a"), .rank = 1, .picked = {NOW - 5}},
            {.id = ID("b"), .rank = 1, .picked = {NOW - 9}},
            {.id = ID("c"), .rank = 1, .picked = {NOW - 7}}},
        1},
    {"alike within a millisecond: by transaction",
        {{.id = ID("a"), .picked = {NOW}, .picked_txn = 3},
            {.id = ID("b"), .picked = {NOW}, .picked_txn = UINT32_MAX}},
        1},
    {"all alike: by id", {{.id = ID("b")}, {.id = ID("a")}, {.id = ID("c")}}, 1},
    {"the gap binds only the adaptive way",
        {{.id = ID("a"), .rank = 1, .picked = {NOW}}, {.id = ID("b"), .rank = 2}}, 0},
    {"a better priority first",
        {{.id = ID("a"), .rank = 1, .priority = 1}, {.id = ID("b"), .rank = 2}}, 1},
};

static void
test_least(void **state)
{
	struct score_rule rule = usual;

	(void)state;
	rule.way = SCORE_LEAST;
	for (size_t i = 0; i < NELEM(least); i++) {
		struct score_candidate all[4];
		struct score_board board;
		size_t n = 0, got;

		for (; n < 4 && least[i].c[n].id.n > 0; n++) {
			all[n] = least[i].c[n];
			all[n].account = n;
			all[n].factor = 1;
		}
		got = draw(&board, &rule, all, n, state_of(UINT64_MAX));
		if (got != least[i].want)
			fail_msg("%s: got %zd, want %zd", least[i].what, (ssize_t)got,
			    (ssize_t)least[i].want);
		for (size_t k = 0; k < n; k++)
			if (fabs(score_share(&board, &all[k]) - (k == got)) > 1e-9)
				fail_msg("%s: share of %zu is %.3f", least[i].what, k,
				    score_share(&board, &all[k]));
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
		all[i] = (struct score_candidate){.account = i, .weight = 1, .factor = 1};
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
	    cmocka_unit_test(test_filters),
	    cmocka_unit_test(test_draw),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_random_of_zero),
	    cmocka_unit_test(test_share_of_draws),
	    cmocka_unit_test(test_least),
	    cmocka_unit_test(test_long_run),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
