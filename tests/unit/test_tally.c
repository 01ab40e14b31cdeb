#include "store/tally.h"

#include "lib/in_txn.h"

static uint64_t
value(struct txn *txn, enum tally which)
{
	uint64_t v = 77;

	OK(tally_get(txn, which, &v));
	return v;
}

static enum store_rc
counts(struct txn *txn, void *arg)
{
	(void)arg;
	for (int i = 0; i < TALLY__MAX; i++)
		assert_int_equal(value(txn, (enum tally)i), 0);
	for (int i = 0; i < TALLY__MAX; i++)
		OK(tally_add(txn, (enum tally)i, 10 * (i + 1)));
	OK(tally_add(txn, TALLY_PAIRS, -4));
	OK(tally_set(txn, TALLY_GENERATION, UINT64_MAX));
	for (int i = 0; i < TALLY__MAX; i++)
		assert_int_equal(value(txn, (enum tally)i), i == TALLY_PAIRS ? 6
		                                            : i == TALLY_GENERATION
		                                                ? UINT64_MAX
		                                                : (uint64_t)(10 * (i + 1)));
	return STORE_OK;
}

static void
test_counts(void **state)
{
	in_txn(state, counts);
}

/* A row that an older program wrote, or a newer one. */
static enum store_rc
other_versions(struct txn *txn, void *arg)
{
	uint64_t values[TALLY__MAX + 5];

	(void)arg;
	for (uint64_t i = 0; i < TALLY__MAX + 5; i++)
		values[i] = i + 1;
	OK(txn_put(txn, key_of(KEY_TALLY, 0, 0), values, 2 * sizeof *values));
	assert_int_equal(value(txn, (enum tally)1), 2);
	assert_int_equal(value(txn, (enum tally)2), 0);
	OK(tally_add(txn, (enum tally)2, 5));
	assert_int_equal(value(txn, (enum tally)1), 2);
	OK(txn_put(txn, key_of(KEY_TALLY, 0, 0), values, sizeof values));
	assert_int_equal(value(txn, (enum tally)(TALLY__MAX - 1)), TALLY__MAX);
	OK(txn_put(txn, key_of(KEY_TALLY, 0, 0), "", 0));
	assert_int_equal(value(txn, (enum tally)0), 0);
	return STORE_OK;
}

static void
test_other_versions(void **state)
{
	in_txn(state, other_versions);
}

/* The numbers are part of the format. */
static void
test_table(void **state)
{
	static const char *const names[] = {
	    "model_cooldowns", "events", "dead_leases", "cancelled", "generation", "loaded_ms"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_string_equal(tally_table[i].name, names[i]);
	for (int i = 0; i < TALLY__MAX; i++) {
		assert_non_null(tally_table[i].name);
		assert_true(strlen(tally_table[i].help) > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_counts),
	    TXN_TEST(test_other_versions),
	    cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
