#include "store/cursor.h"

#include "lib/in_txn.h"

#define MANY 1000 /* more than two shards */

static enum store_rc
last_picked(struct txn *txn, void *arg)
{
	uint32_t number = 7;

	(void)arg;
	OK(cursor_get(txn, 1, &number));
	assert_int_equal(number, CURSOR_NOBODY);
	OK(cursor_put(txn, 1, 5));
	OK(cursor_put(txn, 2, 0));
	OK(cursor_get(txn, 1, &number));
	assert_int_equal(number, 5);
	OK(cursor_get(txn, 2, &number));
	assert_int_equal(number, 0);
	OK(cursor_put(txn, 1, UINT32_MAX - 1));
	OK(cursor_get(txn, 1, &number));
	assert_int_equal(number, UINT32_MAX - 1);
	return STORE_OK;
}

static enum store_rc
damaged(struct txn *txn, void *arg)
{
	uint32_t number = 7;

	(void)arg;
	OK(txn_put(txn, key_of(KEY_CURSOR, 1, 0), "xyz", 3));
	OK(cursor_get(txn, 1, &number));
	assert_int_equal(number, CURSOR_NOBODY);
	return STORE_OK;
}

static int32_t
standing(uint32_t i)
{
	return (int32_t)i * 17 - 9000;
}

static enum store_rc
standings(struct txn *txn, void *arg)
{
	int32_t put[MANY], got[MANY];

	(void)arg;
	OK(cursor_smooth_get(txn, 1, got, MANY));
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(got[i], 0);
		put[i] = standing(i);
	}
	OK(cursor_put(txn, 1, 3));
	OK(cursor_smooth_put(txn, 1, put, MANY));
	OK(cursor_smooth_get(txn, 1, got, MANY));
	assert_memory_equal(put, got, sizeof put);
	OK(cursor_smooth_get(txn, 2, got, MANY)); /* of another channel */
	assert_int_equal(got[0], 0);
	return STORE_OK;
}

/* Accounts come and go: what is stored may be shorter or longer than what is asked for. */
static enum store_rc
other_sizes(struct txn *txn, void *arg)
{
	static const uint32_t sizes[] = {0, 1, 449, 450, 451, 899, 900, 901, MANY};
	int32_t put[MANY], got[MANY];

	(void)arg;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (size_t g = 0; g < sizeof sizes / sizeof *sizes; g++) {
			uint16_t channel = (uint16_t)(s * 16 + g);

			for (uint32_t i = 0; i < MANY; i++) {
				put[i] = standing(i);
				got[i] = 42;
			}
			OK(cursor_smooth_put(txn, channel, put, sizes[s]));
			OK(cursor_smooth_get(txn, channel, got, sizes[g]));
			for (uint32_t i = 0; i < MANY; i++) {
				int32_t want = i >= sizes[g] ? 42 : i >= sizes[s] ? 0 : standing(i);

				if (got[i] != want)
					fail_msg("put %u, got %u: %u is %d, want %d", sizes[s],
					    sizes[g], i, got[i], want);
			}
		}
	return STORE_OK;
}

static void
test_last_picked(void **state)
{
	in_txn(state, last_picked);
}

static void
test_damaged(void **state)
{
	in_txn(state, damaged);
}

static void
test_standings(void **state)
{
	in_txn(state, standings);
}

static void
test_other_sizes(void **state)
{
	in_txn(state, other_sizes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_last_picked),
	    TXN_TEST(test_damaged),
	    TXN_TEST(test_standings),
	    TXN_TEST(test_other_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
