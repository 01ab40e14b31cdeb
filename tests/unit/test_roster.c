#include "store/roster.h"

#include "lib/in_txn.h"

static const uint8_t key_a[8] = {1, 2, 3}, key_b[8] = {9, 9, 9};

static struct account_ref
enrol(struct txn *txn, uint16_t channel, const char *id, const uint8_t key[8], bool rekeyed_want)
{
	struct account_ref ref = {99, 99};
	bool rekeyed = !rekeyed_want;

	OK(roster_account(txn, channel, id, key, true, &ref, &rekeyed));
	assert_int_equal(rekeyed, rekeyed_want);
	assert_int_equal(ref.channel, channel);
	return ref;
}

static enum store_rc
numbers(struct txn *txn, void *arg)
{
	uint16_t number = 77, again;
	bool rekeyed;
	struct account_ref ref = {99, 99};

	(void)arg;
	assert_int_equal(roster_channel(txn, "oa", false, &number), STORE_NONE);
	assert_int_equal(number, 77);
	for (uint16_t i = 0; i < 40; i++) {
		char name[20];

		snprintf(name, sizeof name, "c%d", i);
		OK(roster_channel(txn, name, true, &number));
		assert_int_equal(number, i);
		OK(roster_channel(txn, name, true, &again)); /* given once, kept */
		assert_int_equal(again, i);
		OK(roster_channel(txn, name, false, &again));
		assert_int_equal(again, i);
	}
	assert_int_equal(roster_account(txn, 3, "a", key_a, false, &ref, &rekeyed), STORE_NONE);
	assert_false(rekeyed);
	for (uint32_t i = 0; i < 40; i++) {
		char id[20];

		snprintf(id, sizeof id, "a%u", i);
		assert_int_equal(enrol(txn, 3, id, key_a, false).number, i);
		assert_int_equal(enrol(txn, 3, id, key_a, false).number, i);
		assert_int_equal(
		    enrol(txn, 4, id, key_a, false).number, i); /* each channel counts */
	}
	return STORE_OK;
}

static void
test_numbers(void **state)
{
	in_txn(state, numbers);
}

static enum store_rc
rekey(struct txn *txn, void *arg)
{
	static const struct {
		const char *what;
		unsigned flags, want;
	} cases[] = {
	    {"auth or session dead", ACCOUNT_DISABLED, 0},
	    {"by failures", ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES | ACCOUNT_PICKED,
	        ACCOUNT_PICKED},
	    {"by an operator", ACCOUNT_DISABLED | ACCOUNT_BY_OPERATOR,
	        ACCOUNT_DISABLED | ACCOUNT_BY_OPERATOR},
	    {"not disabled", ACCOUNT_GUESSED | ACCOUNT_MODELS, ACCOUNT_GUESSED | ACCOUNT_MODELS},
	};
	struct account_row row;
	struct account_stat stat;

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct account_ref ref = enrol(txn, 1, cases[i].what, key_a, false), same;
		struct account_ref other = enrol(txn, 1, "other", key_a, false);
		bool rekeyed;

		row = (struct account_row){.flags = (uint8_t)cases[i].flags,
		    .session_dead = 2,
		    .auth_failed = 1,
		    .soft_streak = 3,
		    .consecutive = 4,
		    .success = 5,
		    .cool_until_ms = 6};
		OK(account_put(txn, ref, &row));
		OK(account_put(txn, other, &row));
		/* a look tells of it and changes nothing */
		OK(roster_account(txn, 1, cases[i].what, key_b, false, &same, &rekeyed));
		assert_true(rekeyed);
		OK(account_get(txn, ref, &row));
		assert_int_equal(row.session_dead, 2);
		same = enrol(txn, 1, cases[i].what, key_b, true);
		assert_int_equal(same.number, ref.number);
		OK(account_get(txn, ref, &row));
		if (row.flags != cases[i].want)
			fail_msg("%s: flags %d", cases[i].what, row.flags);
		assert_int_equal(row.session_dead + row.auth_failed, 0);
		assert_int_equal(row.soft_streak, 3); /* the rest stays */
		assert_int_equal(row.consecutive + row.success, 9);
		assert_int_equal(row.cool_until_ms, 6);
		OK(account_stat_get(txn, ref, &stat));
		assert_memory_equal(stat.fingerprint, key_b, 8);
		enrol(txn, 1, cases[i].what, key_b, false); /* once */
		OK(account_get(txn, other, &row));
		assert_int_equal(row.session_dead, 2); /* of that account only */
	}
	return STORE_OK;
}

static void
test_rekey(void **state)
{
	in_txn(state, rekey);
}

static enum store_rc
limits(struct txn *txn, void *arg)
{
	char name[300];
	struct account_ref ref;
	uint16_t number;
	bool rekeyed;

	(void)arg;
	memset(name, 'n', sizeof name);
	name[200] = '\0';
	OK(roster_channel(txn, name, true, &number));
	OK(roster_channel(txn, name, false, &number));
	name[200] = 'n';
	name[201] = '\0';
	assert_int_equal(roster_channel(txn, name, true, &number), STORE_FULL);
	assert_int_equal(roster_account(txn, 1, name, key_a, true, &ref, &rekeyed), STORE_FULL);
	name[190] = '\0';
	OK(roster_account(txn, 65000, name, key_a, true, &ref, &rekeyed));
	/* a damaged counter gives no number twice */
	OK(txn_put(txn, key_of(KEY_CHANNEL, 9, 0), name, 5));
	assert_int_equal(roster_account(txn, 9, "a", key_a, true, &ref, &rekeyed), STORE_BAD);
	return STORE_OK;
}

static void
test_limits(void **state)
{
	in_txn(state, limits);
}

/* Other names in the places that a name wants: 64 of them are passed over, then there is no room. */
static enum store_rc
crowded(struct txn *txn, void *arg)
{
	static const char other[9] = "\1\0\0\0\5\0\0\0x"; /* a row of the name "x" */
	uint64_t key = key_hashed(KEY_TEXT, key_hash(0, "oa", 2));
	uint16_t number = 0;

	(void)arg;
	for (uint64_t i = 0; i < 63; i++)
		OK(txn_put(txn, key + i, other, sizeof other));
	OK(roster_channel(txn, "oa", true, &number));
	OK(roster_channel(txn, "oa", false, &number));
	assert_int_equal(number, 0);
	OK(txn_put(txn, key + 63, other, sizeof other));
	assert_int_equal(roster_channel(txn, "oa", true, &number), STORE_FULL);
	return STORE_OK;
}

static void
test_crowded(void **state)
{
	in_txn(state, crowded);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_numbers),
	    TXN_TEST(test_rekey),
	    TXN_TEST(test_limits),
	    TXN_TEST(test_crowded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
