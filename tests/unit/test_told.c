#include "store/told.h"

#include "lib/in_txn.h"

#define TTL 60000
#define T0 1000000000000
#define HOUR 3600000

enum op { GET, PUT };

/* One after another on an empty store. */
static const struct {
	const char *what;
	enum op op;
	unsigned session, home;
	int64_t at_ms;
	const char *name; /* put */
	const char *want; /* afterwards at that time; NULL = nothing is told */
	bool fades;
} script[] = {
    {"nothing there", GET, 1, 7, 0, NULL, NULL, false},
    {"told", PUT, 1, 7, 0, "code", "code", false},
    {"another session of its home is not", GET, 2, 7, 0, NULL, NULL, false},
    {"nor one of another home", GET, 1, 8, 0, NULL, NULL, false},
    {"half of its time", GET, 1, 7, TTL / 2, NULL, "code", false},
    {"beyond half of it", GET, 1, 7, TTL / 2 + 1, NULL, "code", true},
    {"just before its end", GET, 1, 7, TTL - 1, NULL, "code", true},
    {"its end", GET, 1, 7, TTL, NULL, NULL, false},
    {"told again", PUT, 1, 7, TTL, "summary", "summary", false},
    {"told otherwise", PUT, 1, 7, TTL + 1, "translation", "translation", false},
    {"nobody could tell", PUT, 2, 7, TTL, "", "", false},
    {"the first is still there", GET, 1, 7, TTL + 2, NULL, "translation", false},
    {"a long name is cut", PUT, 3, 7, TTL,
        "0123456789012345678901234567890123456789012345678901234567890123456789",
        "0123456789012345678901234567890123456789012345678901234567890123", false},
    {"the clock went back a little", GET, 2, 7, TTL - HOUR, NULL, "", false},
    {"the clock went back a lot", GET, 2, 7, TTL - HOUR - 1, NULL, NULL, false},
};

static void
key_fill(uint8_t key[TOLD_KEY_BYTES], unsigned session, unsigned home)
{
	uint64_t bits = home;

	memset(key, 0, TOLD_KEY_BYTES);
	memcpy(key, &bits, sizeof bits);
	memcpy(key + TOLD_KEY_BYTES - sizeof session, &session, sizeof session);
}

static enum store_rc
put(struct txn *txn, unsigned session, unsigned home, const char *name, int64_t at_ms)
{
	uint8_t key[TOLD_KEY_BYTES];
	struct env_bytes bytes = {name, strlen(name)};

	key_fill(key, session, home);
	return told_put(txn, key, bytes, (struct wall_ms){T0 + at_ms}, TTL);
}

static enum store_rc
get(struct txn *txn, unsigned session, unsigned home, int64_t at_ms, struct told_row *row)
{
	uint8_t key[TOLD_KEY_BYTES];

	key_fill(key, session, home);
	return told_get(txn, key, (struct wall_ms){T0 + at_ms}, row);
}

static enum store_rc
run_script(struct txn *txn, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < sizeof script / sizeof script[0]; i++) {
		struct told_row row = {.n = 0};
		const char *want = script[i].want;
		enum store_rc rc;

		if (script[i].op == PUT)
			OK(put(txn, script[i].session, script[i].home, script[i].name,
			    script[i].at_ms));
		rc = get(txn, script[i].session, script[i].home, script[i].at_ms, &row);
		if (rc != (want == NULL ? STORE_NONE : STORE_OK))
			fail_msg("%s: got %d", script[i].what, (int)rc);
		if (want != NULL && (row.n != strlen(want) || memcmp(row.name, want, row.n) != 0))
			fail_msg(
			    "%s: got '%.*s', want '%s'", script[i].what, row.n, row.name, want);
		if (rc == STORE_OK &&
		    told_fades(&row, (struct wall_ms){T0 + script[i].at_ms}) != script[i].fades)
			fail_msg("%s: fades %d", script[i].what, !script[i].fades);
	}
	return STORE_OK;
}

static void
remembers(void **state)
{
	in_txn(state, run_script);
}

/* A home holds so many, and the oldest goes. */
static enum store_rc
fill_home(struct txn *txn, void *arg)
{
	struct told_row row;

	(void)arg;
	for (unsigned i = 0; i < TOLD_WAYS; i++)
		OK(put(txn, i, 5, "code", i == 3 ? -1 : (int64_t)i));
	OK(put(txn, 1, 5, "summary", 20)); /* its own row, nobody else's */
	for (unsigned i = 0; i < TOLD_WAYS; i++)
		OK(get(txn, i, 5, 20, &row));
	OK(put(txn, 100, 5, "creative", 21));
	OK(get(txn, 100, 5, 21, &row));
	for (unsigned i = 0; i < TOLD_WAYS; i++)
		if (get(txn, i, 5, 21, &row) != (i == 3 ? STORE_NONE : STORE_OK))
			fail_msg("%u: the oldest goes, and no other", i);
	assert_int_equal(get(txn, 0, 5 + TOLD_HOMES, 21, &row), STORE_NONE);
	return STORE_OK;
}

static void
is_bounded(void **state)
{
	in_txn(state, fill_home);
}

static enum store_rc
count_row(uint64_t key, struct env_bytes row, void *arg)
{
	(void)key, (void)row;
	++*(unsigned *)arg;
	return STORE_OK;
}

static unsigned
rows(struct txn *txn)
{
	unsigned n = 0;

	OK(txn_walk(txn, key_of(KEY_TASK, 0, 0), key_last_of(KEY_TASK), count_row, &n));
	return n;
}

static enum store_rc
sweep(struct txn *txn, void *arg)
{
	struct wall_ms later = {T0 + TTL + 49};
	uint64_t place = 0;
	unsigned batches = 0;

	(void)arg;
	for (unsigned i = 0; i < 100; i++)
		OK(put(txn, i, i, "code", (int64_t)i));
	OK(txn_put(txn, key_of(KEY_TASK, 0, (uint64_t)TOLD_HOMES * TOLD_WAYS - 1), "junk", 4));
	OK(txn_put(txn, key_of(KEY_TASK, 0, 0) - 1, "before", 6));
	OK(txn_put(txn, key_last_of(KEY_TASK) + 1, "behind", 6));
	assert_int_equal(rows(txn), 101);
	do {
		OK(told_sweep(txn, later, 7, place, &place));
		assert_true(place == 0 || told_is_place(place));
	} while (place != 0 && ++batches < 100);
	assert_int_equal(batches, 101 / 7);
	assert_int_equal(rows(txn), 50);
	assert_false(told_is_place(key_of(KEY_TASK, 0, 0) - 1));
	assert_false(told_is_place(key_last_of(KEY_TASK) + 1));
	OK(told_sweep(txn, (struct wall_ms){T0 + 10 * TTL}, 1000, 3, &place));
	assert_int_equal(place, 0);
	assert_int_equal(rows(txn), 0);
	return STORE_OK;
}

static void
sweeps(void **state)
{
	in_txn(state, sweep);
}

/* What is no row of ours tells nothing, and its place is free. */
static enum store_rc
spoil(struct txn *txn, void *arg)
{
	struct told_row row = {.version = 2};
	uint64_t home = key_of(KEY_TASK, 0, 9 * TOLD_WAYS);

	(void)arg;
	key_fill(row.key, 1, 9);
	row.expires_ms = T0 + TTL;
	OK(txn_put(txn, home, &row, sizeof row));
	row.version = 1;
	row.n = TOLD_NAME_BYTES + 1;
	OK(txn_put(txn, home + 1, &row, sizeof row));
	OK(txn_put(txn, home + 2, &row, sizeof row - 1));
	assert_int_equal(get(txn, 1, 9, 0, &row), STORE_NONE);
	OK(put(txn, 1, 9, "code", 0));
	OK(get(txn, 1, 9, 0, &row));
	assert_int_equal(rows(txn), 3);
	return STORE_OK;
}

static void
survives_junk(void **state)
{
	in_txn(state, spoil);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(remembers),
	    TXN_TEST(is_bounded),
	    TXN_TEST(sweeps),
	    TXN_TEST(survives_junk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
