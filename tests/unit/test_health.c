#include "store/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define NOW 1767607200000LL
#define MIN 60000LL

static const struct wall_ms now = {NOW};
static const int64_t backoff[] = {30 * MIN, 60 * MIN, 120 * MIN, 360 * MIN};

static struct health_policy
policy(void)
{
	return (struct health_policy){.threshold = 3,
	    .backoff_ms = backoff,
	    .nbackoff = NELEM(backoff),
	    .session_dead_after = 3,
	    .auth_failed_after = 1};
}

static uint32_t txn = 10; /* of the last settlement */

static struct health_change
fail_as(struct account_row *row, uint32_t taken, const struct health_policy *p, bool network)
{
	struct health_change change = {.old_until_ms = 0};
	struct health_time time = {taken, ++txn, now};

	health_failure(row, &time, p, network, &change);
	return change;
}

/* One lease after the other, each failing. */
static struct health_change
once_more(struct account_row *row, const struct health_policy *p, bool network)
{
	txn++;
	return fail_as(row, txn, p, network);
}

static struct health_change
succeed(struct account_row *row, uint32_t taken)
{
	struct health_change change = {.old_until_ms = 0};
	struct health_time time = {taken, ++txn, now};

	health_success(row, &time, &change);
	return change;
}

static const struct {
	const char *what;
	unsigned flags;
	int64_t cool, breaker; /* from now; 0 = never set */
	enum health_state state;
	int64_t until; /* from now, 0 = may be picked */
} states[] = {
    {"fresh", 0, 0, 0, HEALTH_ACTIVE, 0},
    {"cooling", 0, MIN, 0, HEALTH_COOLING, MIN},
    {"breaker", 0, 0, MIN, HEALTH_COOLING, MIN},
    {"both: the later", 0, MIN, 2 * MIN, HEALTH_COOLING, 2 * MIN},
    {"both: the later, turned round", 0, 3 * MIN, 2 * MIN, HEALTH_COOLING, 3 * MIN},
    {"over this millisecond", 0, -1, -1, HEALTH_ACTIVE, 0},
    {"one millisecond left", 0, 1, 0, HEALTH_COOLING, 1},
    {"disabled", ACCOUNT_DISABLED, 0, 0, HEALTH_DISABLED, 0},
    {"disabled and cooling", ACCOUNT_DISABLED, MIN, 0, HEALTH_DISABLED, MIN},
    {"a model that cools leaves it active", ACCOUNT_MODELS, 0, 0, HEALTH_ACTIVE, 0},
};

static void
test_state(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(states); i++) {
		struct account_row row = {.flags = (uint8_t)states[i].flags,
		    .cool_until_ms = states[i].cool == 0 ? 0 : NOW + states[i].cool,
		    .breaker_until_ms = states[i].breaker == 0 ? 0 : NOW + states[i].breaker};
		int64_t until = health_until_ms(&row, now);

		if (health_state(&row, now) != states[i].state ||
		    until != (states[i].until == 0 ? 0 : NOW + states[i].until))
			fail_msg("%s: %s until %lld", states[i].what,
			    health_state_name(health_state(&row, now)), (long long)until);
	}
	assert_string_equal(health_state_name(HEALTH_ACTIVE), "active");
	assert_string_equal(health_state_name(HEALTH_COOLING), "cooling");
	assert_string_equal(health_state_name(HEALTH_DISABLED), "disabled");
}

/* 30 min, 1 h, 2 h, 6 h, and the last again and again. */
static void
test_breaker_steps(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1};

	(void)state;
	for (unsigned step = 0; step < 300; step++) {
		int64_t want = NOW + backoff[step < 4 ? step : 3];

		assert_false(once_more(&row, &p, false).breaker_opened);
		assert_int_equal(row.fails, 1);
		assert_false(once_more(&row, &p, false).breaker_opened);
		assert_true(once_more(&row, &p, false).breaker_opened);
		assert_int_equal(row.fails, 0);
		assert_int_equal(row.consecutive, 3 * (step + 1));
		assert_int_equal(row.breaker_step, step < 254 ? step + 1 : 255);
		assert_int_equal(row.breaker_until_ms, want);
	}
	assert_int_equal(row.errors, 900);
}

static void
test_breaker_never_earlier(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1, .breaker_until_ms = NOW + 500 * MIN};

	(void)state;
	once_more(&row, &p, false);
	once_more(&row, &p, false);
	assert_true(once_more(&row, &p, false).breaker_opened);
	assert_int_equal(row.breaker_until_ms, NOW + 500 * MIN);
}

/* 500, ok x 5, 500, ok, 500: "consecutive" means in a row. */
static void
test_in_a_row(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1};

	(void)state;
	for (int round = 0; round < 9; round++) {
		once_more(&row, &p, false);
		once_more(&row, &p, false);
		assert_int_equal(row.consecutive, 2);
		succeed(&row, txn);
		assert_int_equal(row.consecutive, 0);
		assert_int_equal(row.fails, 0);
	}
	assert_int_equal(health_state(&row, now), HEALTH_ACTIVE);
	assert_int_equal(row.errors, 18);
	assert_int_equal(row.success, 9);
}

/* Leases that were taken before the first of them failed: one incident. */
static void
test_incident(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1};
	uint32_t taken = txn;

	(void)state;
	for (unsigned i = 1; i <= 9; i++) {
		struct health_change change = fail_as(&row, taken - i % 3, &p, false);

		assert_int_equal(change.new_incident, i == 1);
		assert_int_equal(row.fails, 1);
		assert_int_equal(row.consecutive, 1);
		assert_int_equal(row.errors, i);
	}
	assert_true(once_more(&row, &p, false).new_incident);
	assert_int_equal(row.fails, 2);
}

/* The numbers of transactions wrap, and a mark may be any number of them old. */
static void
test_old_marks(void **state)
{
	static const uint32_t ages[] = {
	    3, 1000, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xc0000000, 0xffffff00};
	static const uint32_t starts[] = {5, 0x7ffffff0, 0x80000005, 0xfffffffd};
	struct health_policy p = policy();
	uint32_t before = txn;

	(void)state;
	for (size_t i = 0; i < NELEM(ages) * NELEM(starts); i++) {
		uint32_t age = ages[i / NELEM(starts)];
		struct account_row row = {.version = 1, .soft_streak = 2};

		txn = starts[i % NELEM(starts)];
		row.failed_txn = row.cool_txn = txn - age;
		if (!fail_as(&row, txn - 1, &p, false).new_incident)
			fail_msg("failed %u ago: not seen", age);
		row.failed_txn = row.cool_txn = txn - age;
		succeed(&row, txn - 1);
		if (row.soft_streak != 0)
			fail_msg("failed %u ago: success was not seen", age);
		row.failed_txn = txn;
		assert_false(fail_as(&row, txn - 5, &p, false).new_incident);
	}
	txn = before;
}

static void
test_success(void **state)
{
	struct account_row tired = {.version = 1,
	    .failed_txn = txn,
	    .cool_txn = txn,
	    .fails = 2,
	    .consecutive = 5,
	    .session_dead = 2,
	    .auth_failed = 1,
	    .soft_streak = 3,
	    .breaker_step = 2,
	    .breaker_until_ms = NOW + MIN,
	    .cool_until_ms = NOW + 2 * MIN,
	    .cool_kind = 6,
	    .flags = ACCOUNT_GUESSED | ACCOUNT_BREAKER_NET};
	struct account_row row = tired;
	uint32_t failed = txn++;
	struct health_change change = succeed(&row, failed + 1); /* taken after the failure */

	(void)state;
	assert_int_equal(row.success, 1);
	assert_int_equal(row.fails + row.consecutive + row.session_dead + row.auth_failed, 0);
	assert_int_equal(row.soft_streak + row.breaker_step + row.cool_kind + row.flags, 0);
	assert_int_equal(health_state(&row, now), HEALTH_ACTIVE);
	assert_true(change.cool_ended);
	assert_int_equal(change.old_until_ms, NOW + 2 * MIN);

	row = tired;
	change = succeed(&row, failed - 1); /* taken before it */
	assert_int_equal(row.success, 1);
	assert_int_equal(row.fails + row.consecutive + row.session_dead, 0);
	assert_int_equal(row.soft_streak, 3);
	assert_int_equal(row.breaker_step, 2);
	assert_int_equal(health_until_ms(&row, now), NOW + 2 * MIN);
	assert_false(change.cool_ended);

	row = tired;
	row.flags = 0; /* stated */
	change = succeed(&row, failed + 1);
	assert_int_equal(row.breaker_until_ms, 0);
	assert_int_equal(row.cool_until_ms, NOW + 2 * MIN);
	assert_false(change.cool_ended);

	row = tired;
	row.cool_txn = failed + 2; /* the rest was set after the lease was taken */
	change = succeed(&row, failed + 1);
	assert_int_equal(row.cool_until_ms, NOW + 2 * MIN);
	assert_int_equal(row.breaker_until_ms, 0);
}

static void
test_disable_after(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1};

	(void)state;
	p.disable_after = 4;
	for (int i = 0; i < 3; i++)
		assert_false(once_more(&row, &p, true).disabled);
	assert_true(once_more(&row, &p, true).disabled);
	assert_int_equal(row.flags & (ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES),
	    ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES);
	assert_false(once_more(&row, &p, true).disabled); /* only told once */
	row = (struct account_row){.version = 1, .flags = ACCOUNT_DISABLED | ACCOUNT_BY_OPERATOR};
	for (int i = 0; i < 9; i++)
		assert_false(once_more(&row, &p, true).disabled);
	assert_int_equal(row.flags & ACCOUNT_BY_FAILURES, 0);
	p.disable_after = 0;
	row = (struct account_row){.version = 1};
	for (int i = 0; i < 70000; i++)
		assert_false(once_more(&row, &p, true).disabled);
	assert_int_equal(row.consecutive, UINT16_MAX);
}

/* What a free probe may undo: a breaker that only network or auth failures opened. */
static void
test_breaker_net(void **state)
{
	static const struct {
		bool network[6];
		bool want;
	} cases[] = {
	    {{true, true, true}, true},
	    {{true, true, false}, false},
	    {{false, true, true}, false},
	    {{true, false, true}, false},
	    {{false, false, false, true, true, true}, true},
	    {{true, true, true, false, false, false}, false},
	};
	struct health_policy p = policy();

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct account_row row = {.version = 1};
		int n = i < 4 ? 3 : 6;

		for (int k = 0; k < n; k++)
			once_more(&row, &p, cases[i].network[k]);
		if (((row.flags & ACCOUNT_BREAKER_NET) != 0) != cases[i].want)
			fail_msg("case %zu: flags %d", i, row.flags);
	}
}

static void
test_in_a_row_disables(void **state)
{
	struct health_policy p = policy();
	struct account_row row = {.version = 1};
	struct health_change change = {.old_until_ms = 0};

	(void)state;
	health_session_dead(&row, &p, &change);
	health_session_dead(&row, &p, &change);
	assert_false(change.disabled);
	succeed(&row, 1);
	health_session_dead(&row, &p, &change);
	health_session_dead(&row, &p, &change);
	assert_false(change.disabled);
	health_session_dead(&row, &p, &change);
	assert_true(change.disabled);
	assert_int_equal(row.flags, ACCOUNT_DISABLED);
	row = (struct account_row){.version = 1};
	change.disabled = false;
	health_auth_failed(&row, &p, &change);
	assert_true(change.disabled);
	p.auth_failed_after = 0; /* never */
	row = (struct account_row){.version = 1};
	change.disabled = false;
	for (int i = 0; i < 300; i++)
		health_auth_failed(&row, &p, &change);
	assert_false(change.disabled);
	assert_int_equal(row.auth_failed, 255);
}

static const struct {
	const char *what;
	int64_t old, until; /* from now */
	bool old_guessed, guessed;
	bool set;
	bool want_guessed;
} rests[] = {
    {"the first", 0, MIN, false, true, true, true},
    {"stated", 0, MIN, false, false, true, false},
    {"later", MIN, 2 * MIN, false, true, true, true},
    {"earlier: stays", 2 * MIN, MIN, false, true, false, false},
    {"earlier, although stated: stays", 2 * MIN, MIN, true, false, false, true},
    {"the same: stays", MIN, MIN, true, false, false, true},
    {"a stated one takes the place of a shorter guess", MIN, 2 * MIN, true, false, true, false},
};

static void
test_rest(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rests); i++) {
		struct account_row row = {.version = 1,
		    .cool_kind = 2,
		    .cool_until_ms = rests[i].old == 0 ? 0 : NOW + rests[i].old,
		    .flags = rests[i].old_guessed ? ACCOUNT_GUESSED : 0};
		struct health_change change = {.old_until_ms = -1};
		int64_t want = rests[i].set ? rests[i].until : rests[i].old;

		health_rest(&row,
		    &(struct health_rest){7, rests[i].guessed, NOW + rests[i].until, 5}, &change);
		if (change.cool_set != rests[i].set || row.cool_until_ms != NOW + want ||
		    ((row.flags & ACCOUNT_GUESSED) != 0) != rests[i].want_guessed ||
		    row.cool_kind != (rests[i].set ? 7 : 2) ||
		    row.cool_txn != (rests[i].set ? 5U : 0U))
			fail_msg("%s: until %lld flags %d kind %d", rests[i].what,
			    (long long)(row.cool_until_ms - NOW), row.flags, row.cool_kind);
	}
}

#define ALL_FLAGS                                                                    \
	(ACCOUNT_DISABLED | ACCOUNT_GUESSED | ACCOUNT_MODELS | ACCOUNT_BY_FAILURES | \
	    ACCOUNT_BREAKER_NET | ACCOUNT_PICKED | ACCOUNT_BY_OPERATOR)
#define OFF_FLAGS (ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES | ACCOUNT_BY_OPERATOR)

static void
test_order(void **state)
{
	static const struct account_row full = {.version = 1,
	    .flags = ALL_FLAGS,
	    .cool_kind = 5,
	    .soft_streak = 3,
	    .breaker_step = 2,
	    .session_dead = 2,
	    .auth_failed = 1,
	    .fails = 2,
	    .consecutive = 4,
	    .success = 11,
	    .errors = 12,
	    .cool_until_ms = NOW + MIN,
	    .breaker_until_ms = NOW + MIN};
	struct account_row row = full;

	(void)state;
	health_order(&row, HEALTH_CLEAR); /* cooldowns only */
	assert_int_equal(row.cool_until_ms + row.cool_kind + row.soft_streak, 0);
	assert_int_equal(row.flags & (ACCOUNT_GUESSED | ACCOUNT_MODELS), 0);
	assert_int_equal(row.flags & OFF_FLAGS, OFF_FLAGS);
	assert_int_equal(row.breaker_until_ms, NOW + MIN);
	assert_int_equal(row.breaker_step, 2);

	row = full;
	health_order(&row, HEALTH_REVIVE);
	assert_int_equal(row.flags, ACCOUNT_PICKED);
	assert_int_equal(health_state(&row, now), HEALTH_ACTIVE);
	assert_int_equal(
	    row.soft_streak + row.breaker_step + row.session_dead + row.auth_failed, 0);
	assert_int_equal(row.fails + row.consecutive, 0);
	assert_int_equal(row.success + row.errors, 23); /* history stays */

	row = full;
	health_order(&row, HEALTH_ENABLE);
	assert_int_equal(row.flags & OFF_FLAGS, 0);
	assert_int_equal(row.session_dead + row.auth_failed, 0);
	assert_int_equal(row.cool_until_ms, NOW + MIN);

	row = (struct account_row){.version = 1};
	health_order(&row, HEALTH_DISABLE);
	assert_int_equal(row.flags, ACCOUNT_DISABLED | ACCOUNT_BY_OPERATOR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_state),
	    cmocka_unit_test(test_breaker_steps),
	    cmocka_unit_test(test_breaker_never_earlier),
	    cmocka_unit_test(test_in_a_row),
	    cmocka_unit_test(test_incident),
	    cmocka_unit_test(test_old_marks),
	    cmocka_unit_test(test_success),
	    cmocka_unit_test(test_disable_after),
	    cmocka_unit_test(test_breaker_net),
	    cmocka_unit_test(test_in_a_row_disables),
	    cmocka_unit_test(test_rest),
	    cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
