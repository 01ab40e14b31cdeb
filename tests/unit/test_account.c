#include "store/account.h"

#include "lib/in_txn.h"

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

static enum store_rc
rows(struct txn *txn, void *arg)
{
	static const uint32_t numbers[] = {0, 1, 30, 31, 62, 100000, UINT32_MAX};
	struct account_row row;

	(void)arg;
	for (size_t i = 0; i < NELEM(numbers); i++) {
		struct account_ref ref = {3, numbers[i]};

		assert_int_equal(account_get(txn, ref, &row), STORE_NONE);
		assert_int_equal(row.version, 1);
		assert_int_equal(row.credits_micros, ACCOUNT_NO_CREDITS);
		assert_int_equal(row.flags + row.picked_txn, 0);
		row.picked_txn = numbers[i];
		row.version = 99; /* the store's business */
		OK(account_put(txn, ref, &row));
	}
	for (size_t i = 0; i < NELEM(numbers); i++) {
		OK(account_get(txn, (struct account_ref){3, numbers[i]}, &row));
		assert_int_equal(row.picked_txn, numbers[i]);
		assert_int_equal(row.version, 1);
		/* another channel's account of that number is another account */
		assert_int_equal(
		    account_get(txn, (struct account_ref){4, numbers[i]}, &row), STORE_NONE);
	}
	assert_int_equal(account_get(txn, (struct account_ref){3, 29}, &row), STORE_NONE);
	assert_int_equal(row.version, 1);
	return STORE_OK;
}

static void
test_rows(void **state)
{
	in_txn(state, rows);
}

static struct account_row
row_of(const char *rows, unsigned at)
{
	struct account_row row;

	account_copy(&row, rows, at);
	return row;
}

static enum store_rc
shards(struct txn *txn, void *arg)
{
	struct account_row row = {.picked_txn = 5};
	const char *at;
	unsigned n;

	(void)arg;
	OK(account_shard(txn, 7, 0, &at, &n));
	assert_int_equal(n, 0);
	OK(account_put(txn, (struct account_ref){7, 2}, &row));
	OK(account_shard(txn, 7, 0, &at, &n));
	assert_int_equal(n, 3);
	assert_int_equal(row_of(at, 0).version, 0); /* a hole: no such account */
	assert_int_equal(row_of(at, 2).picked_txn, 5);
	for (uint32_t i = 0; i < 2 * ACCOUNT_SHARD; i++) {
		row.picked_txn = i;
		OK(account_put(txn, (struct account_ref){7, i}, &row));
	}
	for (uint32_t shard = 0; shard < 2; shard++) {
		OK(account_shard(txn, 7, shard, &at, &n));
		assert_int_equal(n, ACCOUNT_SHARD);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(row_of(at, i).picked_txn, shard * ACCOUNT_SHARD + i);
	}
	return STORE_OK;
}

static void
test_shards(void **state)
{
	in_txn(state, shards);
}

static enum store_rc
fixed(struct txn *txn, void *arg)
{
	struct account_ref ref = {1, 9}, other = {1, 10};
	struct account_stat stat;
	struct account_note note;

	(void)arg;
	assert_int_equal(account_stat_get(txn, ref, &stat), STORE_NONE);
	assert_int_equal(stat.version, 1);
	assert_int_equal(stat.calls, 0);
	stat.calls = 12;
	OK(account_stat_put(txn, ref, &stat));
	OK(account_stat_get(txn, ref, &stat));
	assert_int_equal(stat.calls, 12);
	assert_int_equal(account_stat_get(txn, other, &stat), STORE_NONE);
	assert_int_equal(stat.calls, 0);
	assert_int_equal(account_note_get(txn, ref, &note), STORE_NONE);
	assert_int_equal(note.version, 1);
	assert_string_equal(note.reason, "");
	snprintf(note.reason, sizeof note.reason, "why");
	OK(account_note_put(txn, ref, &note));
	OK(account_note_get(txn, ref, &note));
	assert_string_equal(note.reason, "why");
	return STORE_OK;
}

static void
test_fixed(void **state)
{
	in_txn(state, fixed);
}

static enum store_rc
damaged(struct txn *txn, void *arg)
{
	static const char bytes[64 * ACCOUNT_SHARD + 64];
	struct account_ref ref = {1, 0};
	struct account_row row = {.version = 1};
	struct account_stat stat;
	struct account_note note;
	const char *at;
	unsigned n;

	(void)arg;
	OK(txn_put(txn, key_of(KEY_HOT, 1, 0), bytes, 65));
	assert_int_equal(account_shard(txn, 1, 0, &at, &n), STORE_BAD);
	assert_int_equal(account_get(txn, ref, &row), STORE_BAD);
	assert_int_equal(account_put(txn, ref, &row), STORE_BAD);
	OK(txn_put(txn, key_of(KEY_HOT, 1, 0), bytes, sizeof bytes)); /* a row too many */
	assert_int_equal(account_put(txn, ref, &row), STORE_BAD);
	OK(txn_put(txn, key_of(KEY_STAT, 1, 0), bytes, 143));
	assert_int_equal(account_stat_get(txn, ref, &stat), STORE_BAD);
	OK(txn_put(txn, key_of(KEY_NOTE, 1, 0), bytes, 0));
	assert_int_equal(account_note_get(txn, ref, &note), STORE_BAD);
	return STORE_OK;
}

static void
test_damaged(void **state)
{
	in_txn(state, damaged);
}

/* The window against a plain list of what was added. */
static void
test_window(void **state)
{
	struct account_stat stat = {.version = 1};
	bool added[2000];
	unsigned calls, failures;

	(void)state;
	account_window(&stat, 100, &calls, &failures);
	assert_int_equal(calls + failures, 0);
	srand(5);
	for (unsigned k = 0; k < NELEM(added); k++) {
		added[k] = rand() % 3 == 0;
		account_window_add(&stat, added[k]);
		for (unsigned n = 0; n <= 300; n += 50) {
			unsigned want = n < ACCOUNT_WINDOW ? n : ACCOUNT_WINDOW, failed = 0;

			if (want > k + 1)
				want = k + 1;
			for (unsigned i = 0; i < want; i++)
				failed += added[k - i];
			account_window(&stat, n, &calls, &failures);
			if (calls != want || failures != failed)
				fail_msg("%u added, %u asked: %u calls %u failures, want %u %u",
				    k + 1, n, calls, failures, want, failed);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_rows),
	    TXN_TEST(test_shards),
	    TXN_TEST(test_fixed),
	    TXN_TEST(test_damaged),
	    cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
