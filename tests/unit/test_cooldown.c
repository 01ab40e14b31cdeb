#include "store/cooldown.h"

#include "lib/in_txn.h"
#include "store/tally.h"

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define NOW 1767607200000LL
#define MIN 60000LL

static const struct account_ref first = {0, 0};

static void
test_guess(void **state)
{
	static const struct {
		int64_t base, max;
		unsigned streak;
		int64_t want;
	} cases[] = {
	    {MIN, 120 * MIN, 0, MIN},
	    {MIN, 120 * MIN, 1, MIN},
	    {MIN, 120 * MIN, 2, 2 * MIN},
	    {MIN, 120 * MIN, 7, 64 * MIN},
	    {MIN, 120 * MIN, 8, 120 * MIN},
	    {MIN, 120 * MIN, UINT32_MAX, 120 * MIN},
	    {5 * MIN, MIN, 1, MIN}, /* never above its maximum */
	    {1, INT64_MAX / 4, UINT32_MAX, INT64_MAX / 4},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++)
		assert_int_equal(
		    cooldown_guess_ms(cases[i].base, cases[i].max, cases[i].streak), cases[i].want);
}

static void
test_stated(void **state)
{
	static const struct {
		int64_t reset, cap, want; /* from now; 0 = unusable */
	} cases[] = {
	    {1, MIN, 1},
	    {MIN, MIN, MIN},
	    {MIN + 1, MIN, MIN},
	    {0, MIN, 0},
	    {-1, MIN, 0},
	    {-NOW, MIN, 0},
	    {INT64_MAX - NOW, MIN, MIN},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct wall_ms until = {-7};
		bool good = cooldown_stated((struct wall_ms){NOW + cases[i].reset}, cases[i].cap,
		    (struct wall_ms){NOW}, &until);

		assert_int_equal(good, cases[i].want != 0);
		assert_int_equal(until.v, good ? NOW + cases[i].want : -7);
	}
}

static void
test_clamp(void **state)
{
	struct wall_ms now = {NOW};

	(void)state;
	assert_int_equal(cooldown_clamp_ms(NOW + MIN, MIN, now), NOW + MIN);
	assert_int_equal(cooldown_clamp_ms(NOW + MIN + 1, MIN, now), NOW + MIN);
	assert_int_equal(cooldown_clamp_ms(INT64_MAX, MIN, now), NOW + MIN);
	assert_int_equal(cooldown_clamp_ms(NOW - 5, MIN, now), NOW - 5);
	assert_int_equal(cooldown_clamp_ms(0, MIN, now), 0);
}

static struct cooldown_pair
pair_of(const char *model, int64_t until)
{
	struct cooldown_pair pair = {.row = {.kind = 7, .guessed = 1, .until_ms = until}};

	snprintf(pair.model, sizeof pair.model, "%s", model);
	return pair;
}

static void
put(struct txn *txn, struct account_ref ref, const char *model, int64_t until)
{
	struct cooldown_pair pair = pair_of(model, until);

	OK(cooldown_put(txn, ref, &pair));
}

/* Its deadline, 0 when there is no such row. */
static int64_t
get(struct txn *txn, struct account_ref ref, const char *model)
{
	struct cooldown_pair pair;
	enum store_rc rc = cooldown_get(txn, ref, model, &pair);

	if (rc == STORE_NONE)
		return 0;
	assert_int_equal(rc, STORE_OK);
	assert_string_equal(pair.model, model);
	assert_int_equal(pair.row.channel, ref.channel);
	assert_int_equal(pair.row.account, ref.number);
	return pair.row.until_ms;
}

static void
count_pair(const struct cooldown_pair *pair, void *arg)
{
	uint64_t *n = arg;

	assert_true(pair->row.until_ms != 0);
	(*n)++;
}

/* Rows by a walk; the tally must say the same. */
static uint64_t
count(struct txn *txn)
{
	uint64_t walked = 0, tallied = 0;

	OK(cooldown_walk(txn, count_pair, &walked));
	OK(tally_get(txn, TALLY_PAIRS, &tallied));
	assert_int_equal(walked, tallied);
	return walked;
}

static enum store_rc
pairs(struct txn *txn, void *arg)
{
	struct account_ref second = {0, 1}, far = {1, 0};
	char longest[COOLDOWN_MODEL_MAX + 1] = "";

	(void)arg;
	assert_int_equal(get(txn, first, "m"), 0);
	OK(cooldown_del(txn, first, "m"));
	memset(longest, 'x', COOLDOWN_MODEL_MAX);
	put(txn, first, "m", 1);
	put(txn, second, "m", 2);
	put(txn, far, "m", 3);
	put(txn, first, "mm", 4);
	put(txn, first, "", 5);
	put(txn, first, longest, 6);
	assert_int_equal(count(txn), 6);
	assert_int_equal(get(txn, first, "m"), 1);
	assert_int_equal(get(txn, second, "m"), 2);
	assert_int_equal(get(txn, far, "m"), 3);
	assert_int_equal(get(txn, first, "mm"), 4);
	assert_int_equal(get(txn, first, ""), 5);
	assert_int_equal(get(txn, first, longest), 6);
	put(txn, first, "m", 9); /* replaced, not added */
	assert_int_equal(get(txn, first, "m"), 9);
	assert_int_equal(count(txn), 6);
	OK(cooldown_del(txn, first, "m"));
	assert_int_equal(get(txn, first, "m"), 0);
	assert_int_equal(count(txn), 5);
	OK(cooldown_del_all(txn, first));
	assert_int_equal(count(txn), 2);
	assert_int_equal(get(txn, second, "m"), 2);
	return STORE_OK;
}

static void
test_pairs(void **state)
{
	in_txn(state, pairs);
}

static enum store_rc
many(struct txn *txn, void *arg)
{
	char model[20];

	(void)arg;
	for (int i = 1; i <= 500; i++) {
		snprintf(model, sizeof model, "m%d", i);
		put(txn, (struct account_ref){0, (uint32_t)i % 3}, model, NOW + i);
	}
	OK(cooldown_sweep(txn, (struct wall_ms){NOW + 100}, 30)); /* a few at a time */
	assert_int_equal(count(txn), 470);
	OK(cooldown_sweep(txn, (struct wall_ms){NOW + 100}, 1000));
	assert_int_equal(count(txn), 400); /* those of now are over, later ones not */
	assert_int_equal(get(txn, (struct account_ref){0, 101 % 3}, "m101"), NOW + 101);
	OK(cooldown_sweep(txn, (struct wall_ms){NOW}, 0));
	OK(cooldown_del_all(txn, (struct account_ref){0, 1}));
	assert_int_equal(count(txn), 267);
	return STORE_OK;
}

static void
test_many(void **state)
{
	in_txn(state, many);
}

static enum store_rc
cap(struct txn *txn, void *arg)
{
	(void)arg;
	put(txn, first, "old", 1);
	OK(tally_set(txn, TALLY_PAIRS, COOLDOWN_PAIRS_MAX - 1));
	put(txn, first, "last", 2);
	put(txn, first, "beyond", 3);
	assert_int_equal(get(txn, first, "last"), 2);
	assert_int_equal(get(txn, first, "beyond"), 0);
	put(txn, first, "old", 4); /* what is there may change */
	assert_int_equal(get(txn, first, "old"), 4);
	OK(cooldown_del(txn, first, "last"));
	put(txn, first, "beyond", 3);
	assert_int_equal(get(txn, first, "beyond"), 3);
	return STORE_OK;
}

static void
test_cap(void **state)
{
	in_txn(state, cap);
}

/*
 * Names whose rows want the same place: for account {0, 0} the 32 choices of five blocks lead to one 56-bit hash, and
 * the two ends to places four apart. Found by a search for collisions; checked by test_premise().
 */
static const char *const blocks[5][2] = {
    {"dmnfmicpibinkc", "gonfebamjphdhg"},
    {"oibgeglcojipco", "enooencmadhmek"},
    {"jnjiadknajnhjk", "hjoehjbpijhhcc"},
    {"dnicnkneehboph", "fkghoggepanpdk"},
    {"akimlgcmakmpcb", "mpicanfdlemohh"},
};
static const char *const ends[2] = {"mfmekockocdbpa", "daeepnfmclcfea"};

#define PROBES 16 /* rows that may stand behind one place */

static const char *
alike(unsigned i)
{
	static char names[64][6 * 14 + 1];
	char *name = names[i % 64];

	for (unsigned b = 0; b < 5; b++)
		memcpy(name + b * 14, blocks[b][i >> b & 1], 14);
	memcpy(name + 5 * 14, ends[i >> 5 & 1], 15);
	return name;
}

static uint64_t
place(unsigned i)
{
	uint64_t h = key_hash(0, &first.channel, sizeof first.channel);

	h = key_hash(h, &first.number, sizeof first.number);
	return key_hashed(KEY_PAIR, key_hash(h, alike(i), strlen(alike(i))));
}

static void
test_premise(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(place(i), i < 32 ? place(0) : place(0) + 4);
}

static enum store_rc
run(struct txn *txn, void *arg)
{
	(void)arg;
	for (unsigned gone = 0; gone < PROBES; gone++) {
		for (unsigned i = 0; i < PROBES; i++)
			put(txn, first, alike(i), i + 1);
		put(txn, first, alike(PROBES), 99); /* no room: no harm */
		assert_int_equal(get(txn, first, alike(PROBES)), 0);
		assert_int_equal(count(txn), PROBES);
		OK(cooldown_del(txn, first, alike(gone)));
		for (unsigned i = 0; i < PROBES; i++)
			assert_int_equal(get(txn, first, alike(i)), i == gone ? 0 : i + 1);
		put(txn, first, alike(PROBES), 99); /* in the place that became free */
		assert_int_equal(get(txn, first, alike(PROBES)), 99);
		OK(cooldown_del_all(txn, first));
		assert_int_equal(count(txn), 0);
	}
	return STORE_OK;
}

static void
test_run(void **state)
{
	in_txn(state, run);
}

/* Two runs that grow into each other, against a list of what should be there. */
static enum store_rc
two_runs(struct txn *txn, void *arg)
{
	int64_t want[64] = {0};
	unsigned n = 0;

	(void)arg;
	srand(11);
	for (int step = 1; step < 2500; step++) {
		unsigned i = (unsigned)rand() % 64;

		if (rand() % 5 < 3) {
			put(txn, first, alike(i), step);
			if (get(txn, first, alike(i)) == step) {
				n += want[i] == 0;
				want[i] = step;
			} else if (want[i] != 0 || n < PROBES) {
				fail_msg("step %d: %u was not put", step, i);
			}
		} else if (rand() % 200 == 0) {
			int64_t over = step - 60;

			OK(cooldown_sweep(txn, (struct wall_ms){over}, 1000));
			for (unsigned k = 0; k < 64; k++)
				if (want[k] != 0 && want[k] <= over) {
					want[k] = 0;
					n--;
				}
		} else {
			OK(cooldown_del(txn, first, alike(i)));
			n -= want[i] != 0;
			want[i] = 0;
		}
		assert_int_equal(count(txn), n);
		for (unsigned k = 0; k < 64; k++)
			if (get(txn, first, alike(k)) != want[k])
				fail_msg("step %d: %u is %lld, not %lld", step, k,
				    (long long)get(txn, first, alike(k)), (long long)want[k]);
	}
	return STORE_OK;
}

static void
test_two_runs(void **state)
{
	in_txn(state, two_runs);
}

/* Rows of another version, or cut, are nobody's: passed over, never read. */
static enum store_rc
foreign(struct txn *txn, void *arg)
{
	char bytes[200] = {9, 1, 1, 72};
	uint64_t n = 0;

	(void)arg;
	OK(txn_put(txn, place(0), bytes, sizeof bytes));
	OK(txn_put(txn, place(0) + 1, bytes, 3));
	put(txn, first, alike(0), 5);
	assert_int_equal(get(txn, first, alike(0)), 5);
	OK(cooldown_walk(txn, count_pair, &n));
	assert_int_equal(n, 1);
	OK(cooldown_sweep(txn, (struct wall_ms){NOW}, 100));
	assert_int_equal(get(txn, first, alike(0)), 0);
	return STORE_OK;
}

static void
test_foreign(void **state)
{
	in_txn(state, foreign);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_guess),
	    cmocka_unit_test(test_stated),
	    cmocka_unit_test(test_clamp),
	    TXN_TEST(test_pairs),
	    TXN_TEST(test_many),
	    TXN_TEST(test_cap),
	    cmocka_unit_test(test_premise),
	    TXN_TEST(test_run),
	    TXN_TEST(test_two_runs),
	    TXN_TEST(test_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
