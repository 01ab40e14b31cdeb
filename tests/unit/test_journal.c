#include "store/journal.h"

#include "lib/in_txn.h"
#include "store/tally.h"

struct seen {
	uint64_t n, first, last, stop_at; /* stop_at 0 = never */
	bool ordered;
};

static bool
see(uint64_t sequence, const struct journal_row *row, void *arg)
{
	struct seen *seen = arg;

	if (seen->n++ == 0)
		seen->first = sequence;
	else if (sequence != seen->last + 1)
		seen->ordered = false;
	if (row->at_ms != (int64_t)sequence * 10 || row->version != 1)
		seen->ordered = false;
	seen->last = sequence;
	return sequence != seen->stop_at;
}

static struct seen
walk(struct txn *txn, uint64_t after, uint64_t stop_at)
{
	struct seen seen = {.ordered = true, .stop_at = stop_at};

	OK(journal_walk(txn, after, see, &seen));
	assert_true(seen.ordered);
	return seen;
}

static void
add(struct txn *txn, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		struct journal_row row = {.level = JOURNAL_INFO, .at_ms = (int64_t)i * 10};

		OK(journal_add(txn, &row));
	}
}

static enum store_rc
newest(struct txn *txn, void *arg)
{
	struct seen seen = walk(txn, 0, 0);
	struct env_bytes bytes;
	uint64_t rows = 0;

	(void)arg;
	assert_int_equal(seen.n, 0);
	add(txn, 1, 1);
	assert_int_equal(walk(txn, 0, 0).n, 1);
	add(txn, 2, JOURNAL_KEEP);
	seen = walk(txn, 0, 0);
	assert_int_equal(seen.n, JOURNAL_KEEP);
	assert_int_equal(seen.first, 1);
	add(txn, JOURNAL_KEEP + 1, JOURNAL_KEEP + 25);
	seen = walk(txn, 0, 0);
	assert_int_equal(seen.n, JOURNAL_KEEP);
	assert_int_equal(seen.first, 26);
	assert_int_equal(seen.last, JOURNAL_KEEP + 25);
	for (uint64_t i = 1; i <= JOURNAL_KEEP + 25; i++)
		rows += txn_get(txn, key_hashed(KEY_EVENT, i), &bytes) == STORE_OK;
	assert_int_equal(rows, JOURNAL_KEEP);
	OK(tally_get(txn, TALLY_EVENTS, &rows));
	assert_int_equal(rows, JOURNAL_KEEP + 25);
	return STORE_OK;
}

static void
test_newest(void **state)
{
	in_txn(state, newest);
}

static enum store_rc
after(struct txn *txn, void *arg)
{
	static const char other[10];
	struct seen seen;

	(void)arg;
	add(txn, 1, 9);
	seen = walk(txn, 4, 0);
	assert_int_equal(seen.first, 5);
	assert_int_equal(seen.last, 9);
	seen = walk(txn, 4, 6);
	assert_int_equal(seen.last, 6);
	assert_int_equal(walk(txn, 9, 0).n, 0);
	assert_int_equal(walk(txn, 1000, 0).n, 0);
	/* a row of another version is passed over */
	OK(txn_put(txn, key_hashed(KEY_EVENT, 10), other, sizeof other));
	assert_int_equal(walk(txn, 0, 0).n, 9);
	return STORE_OK;
}

static void
test_after(void **state)
{
	in_txn(state, after);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_newest),
	    TXN_TEST(test_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
