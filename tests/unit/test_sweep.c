#include "store/sweep.h"

#include "lib/in_txn.h"

#define NOW 1000000000000
#define HOUR 3600000

/* Rows hold 'y' where they are over. */
static bool
is_over(struct env_bytes row, struct wall_ms now)
{
	return now.v == NOW && row.n == 1 && *(const char *)row.p == 'y';
}

static const struct {
	const char *what, *rows; /* at 0, 1, 2 ... */
	unsigned most;
	uint64_t from; /* a place among them; UINT64_MAX: of another kind */
	const char *found;
	uint64_t next; /* 0 = all were seen */
} cases[] = {
    {"none", "", 10, UINT64_MAX, "", 0},
    {"all are over", "yyy", 10, UINT64_MAX, "012", 0},
    {"some are", "nynny", 10, UINT64_MAX, "14", 0},
    {"two looked at", "nynny", 2, UINT64_MAX, "1", 2},
    {"from there on", "nynny", 2, 2, "", 4},
    {"to the end", "nynny", 2, 4, "4", 0},
    {"from the first", "yn", 10, 0, "0", 0},
    {"no more than one", "yy", 1, UINT64_MAX, "0", 1},
};

static enum store_rc
cases_in(struct txn *txn, void *arg)
{
	uint64_t first = key_of(KEY_TASK, 0, 0);

	(void)arg;
	OK(txn_put(txn, key_of(KEY_STICKY, 0, 5), "y", 1));
	OK(txn_put(txn, key_of(KEY_TALK, 0, 5), "y", 1));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sweep sweep = {.kind = KEY_TASK, .is_over = is_over, .now = {NOW}};
		uint64_t from =
		    cases[i].from == UINT64_MAX ? key_of(KEY_STICKY, 0, 7) : first + cases[i].from;
		uint64_t next, want = cases[i].next == 0 ? 0 : first + cases[i].next;
		char found[16] = "";

		for (size_t k = 0; cases[i].rows[k] != '\0'; k++)
			OK(txn_put(txn, first + k, &cases[i].rows[k], 1));
		OK(sweep_find(txn, &sweep, cases[i].most, from, &next));
		for (unsigned k = 0; k < sweep.n; k++)
			found[k] = (char)('0' + (sweep.key[k] - first));
		if (strcmp(found, cases[i].found) != 0 || next != want)
			fail_msg("%s: got %s, next %llu, want %s, next %llu", cases[i].what, found,
			    (unsigned long long)next, cases[i].found, (unsigned long long)want);
		for (size_t k = 0; cases[i].rows[k] != '\0'; k++)
			OK(txn_del(txn, first + k));
	}
	return STORE_OK;
}

static void
test_cases(void **state)
{
	in_txn(state, cases_in);
}

/* As many as one transaction may remove. */
static enum store_rc
many_in(struct txn *txn, void *arg)
{
	struct sweep sweep = {.kind = KEY_TASK, .is_over = is_over, .now = {NOW}};
	uint64_t next;

	(void)arg;
	for (uint64_t i = 0; i < SWEEP_FOUND_MAX + 3; i++)
		OK(txn_put(txn, key_of(KEY_TASK, 0, i), "y", 1));
	OK(sweep_find(txn, &sweep, 1000, 0, &next));
	assert_int_equal(sweep.n, SWEEP_FOUND_MAX);
	sweep.n = 0;
	OK(sweep_find(txn, &sweep, 1000, next, &next));
	assert_int_equal(sweep.n, 3);
	assert_int_equal(next, 0);
	return STORE_OK;
}

static void
test_many(void **state)
{
	in_txn(state, many_in);
}

static void
test_expired(void **state)
{
	(void)state;
	assert_false(sweep_has_expired(NOW, NOW + 1, (struct wall_ms){NOW}));
	assert_true(sweep_has_expired(NOW - 1, NOW, (struct wall_ms){NOW}));
	assert_false(sweep_has_expired(NOW + HOUR, NOW + 2 * HOUR, (struct wall_ms){NOW}));
	assert_true(sweep_has_expired(NOW + HOUR + 1, NOW + 2 * HOUR, (struct wall_ms){NOW}));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_cases),
	    TXN_TEST(test_many),
	    cmocka_unit_test(test_expired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
