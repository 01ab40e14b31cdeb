/*
 * test_target_row - how rows of models are kept, which model fails alone, and who takes the one request after a rest.
 */
#include "store/target.h"

#include "lib/in_txn.h"

#define NELEM(array) (sizeof(array) / sizeof((array)[0]))
#define T0 INT64_C(1767571200000)
#define MIN INT64_C(60000)
#define DAY (1440 * MIN)

static const struct target_policy policy = {
    .window_ms = 10 * MIN, .fail_after = 3, .cooldown_ms = 5 * MIN};

static const struct target_outcome fine = {.first_content_ms = -1, .cost_micros = -1};
static const struct target_outcome bad = {
    .failed = true, .first_content_ms = -1, .cost_micros = -1};

static struct env_bytes
name(const char *text)
{
	return (struct env_bytes){text, strlen(text)};
}

static struct target_ref
ref(uint16_t channel, const char *model)
{
	return (struct target_ref){channel, name(model)};
}

static struct target_change
feed(struct txn *txn, const char *model, bool failed, int64_t at)
{
	struct target_change change;

	OK(target_feed(
	    txn, ref(0, model), failed ? &bad : &fine, &policy, (struct wall_ms){at}, &change));
	return change;
}

/* ---- alone ---- */

/*
 * Lower case succeeds, upper case fails; each letter is a model. ~ the clock goes on, < it goes back; else all happens in
 * the same millisecond. The answer is that of the last step.
 */
static const struct {
	const char *what, *steps;
	bool alone;
} company[] = {
    {"the only model", "AAAA", false},
    {"others succeeded before", "b~A~A", false},
    {"others succeeded before, in the same moment", "bAA", false},
    {"others succeeded since", "A~b~A", true},
    {"others succeeded since, in the same moment", "AbA", true},
    {"and it stays alone", "AbAAA", true},
    {"all fail", "A~B~A~B", false},
    {"its own success is no other's", "AaA", false},
    {"it began anew after others succeeded", "AbaA", false},
    {"and again alone", "AbaAcA", true},
    {"one of two that fail", "ABcB", true},
    {"the later of two that fail", "AcBB", false},
    {"the earlier of two that fail", "AcBA", true},
    {"each is the other's witness", "AbABaB", true},
    {"others succeeded since, by a clock that goes back", "A<b<A", true},
    {"others succeeded before, by a clock that goes back", "b<A<A", false},
};

static enum store_rc
company_in(struct txn *txn, void *arg)
{
	uint16_t channel = 0;

	(void)arg;
	for (size_t i = 0; i < NELEM(company); i++, channel++) {
		struct wall_ms now = {T0};
		struct target_change change = {.rests = false};

		for (const char *p = company[i].steps; *p != '\0'; p++) {
			char model = *p | 0x20;
			bool failed = *p != model;

			if (*p == '~' || *p == '<')
				now.v += *p == '~' ? 1 : -90 * MIN;
			else
				OK(target_feed(txn, (struct target_ref){channel, {&model, 1}},
				    failed ? &bad : &fine, &policy, now, &change));
		}
		if (change.alone != company[i].alone)
			fail_msg("%s: got %d", company[i].what, change.alone);
	}
	return STORE_OK;
}

static void
test_company(void **state)
{
	in_txn(state, company_in);
}

/* Against what really happened, in the order of transactions, under a clock that jumps. */
static enum store_rc
history_in(struct txn *txn, void *arg)
{
	unsigned began[4] = {0}, succeeded[4] = {0};
	struct wall_ms now = {T0};
	unsigned alone = 0;

	(void)arg;
	srandom(7);
	for (unsigned step = 1; step < 20000; step++) {
		unsigned m = (unsigned)random() % 4;
		bool failed = random() % 3 != 0, want = false;
		char model[] = {(char)('a' + m), '\0'};
		struct target_change change;

		if (random() % 4 == 0)
			now.v += random() % 5 == 0 ? -MIN : random() % 3;
		change = feed(txn, model, failed, now.v);
		if (!failed) {
			began[m] = 0;
			succeeded[m] = step;
		} else if (began[m] == 0) {
			began[m] = step;
		}
		for (unsigned other = 0; other < 4 && failed; other++)
			want = want || (other != m && succeeded[other] > began[m]);
		if (change.alone != want)
			fail_msg("step %u: got %d", step, change.alone);
		alone += want;
	}
	assert_in_range(alone, 1000, 19000);
	return STORE_OK;
}

static void
test_history(void **state)
{
	in_txn(state, history_in);
}

/* ---- what is told of a change ---- */

static enum store_rc
changes_in(struct txn *txn, void *arg)
{
	struct target_change c;

	(void)arg;
	feed(txn, "m", true, T0);
	c = feed(txn, "m", true, T0);
	assert_false(c.rests || c.back);
	c = feed(txn, "m", true, T0);
	assert_true(c.rests);
	assert_int_equal(c.until_ms, T0 + 5 * MIN);
	assert_int_equal(c.old_until_ms, 0);
	c = feed(txn, "m", true, T0 + MIN);
	assert_false(c.rests || c.back); /* it rests already */
	c = feed(txn, "m", false, T0 + 2 * MIN);
	assert_true(c.back && !c.rests);
	assert_int_equal(c.old_until_ms, T0 + 6 * MIN);
	assert_int_equal(c.until_ms, 0);
	c = feed(txn, "m", false, T0 + 2 * MIN);
	assert_false(c.back);
	return STORE_OK;
}

static void
test_changes(void **state)
{
	in_txn(state, changes_in);
}

/* ---- rows ---- */

static bool
has(struct txn *txn, uint16_t channel, const char *model, uint32_t consecutive)
{
	struct target_row row;
	enum store_rc rc = target_get(txn, ref(channel, model), &row);

	assert_int_equal(row.version, 1);
	if (rc == STORE_NONE)
		return false;
	OK(rc);
	assert_int_equal(row.consecutive, consecutive);
	return true;
}

static enum store_rc
put(struct txn *txn, uint16_t channel, struct env_bytes model, uint32_t consecutive, int64_t used)
{
	struct target_row row = {.consecutive = consecutive, .success_ms = used};

	return target_put(txn, (struct target_ref){channel, model}, &row);
}

static bool
count(struct env_bytes model, const struct target_row *row, void *arg)
{
	(void)model, (void)row;
	++*(unsigned *)arg;
	return true;
}

static unsigned
rows_of(struct txn *txn, uint16_t channel)
{
	unsigned n = 0;

	OK(target_walk(txn, channel, count, &n));
	return n;
}

static enum store_rc
rows_in(struct txn *txn, void *arg)
{
	char longest[TARGET_MODEL_MAX + 2];

	(void)arg;
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_false(has(txn, 0, "m", 0));
	OK(put(txn, 0, name("m"), 5, T0));
	OK(put(txn, 1, name("m"), 6, T0));
	OK(put(txn, 0, name("mm"), 7, T0));
	assert_true(has(txn, 0, "m", 5));
	assert_true(has(txn, 1, "m", 6));
	assert_true(has(txn, 0, "mm", 7));
	assert_false(has(txn, 2, "m", 0));
	OK(put(txn, 0, name(longest), 1, T0)); /* nothing is kept of it */
	assert_false(has(txn, 0, longest, 1));
	OK(put(txn, 0, name(longest + 1), 1, T0));
	assert_true(has(txn, 0, longest + 1, 1));
	OK(put(txn, 0, name(""), 1, T0));
	assert_false(has(txn, 0, "", 1));
	/* equal in all 40 bits of their hashes */
	OK(put(txn, 0, name("m450667"), 11, T0));
	assert_false(has(txn, 0, "m19674579", 0));
	OK(put(txn, 0, name("m19674579"), 12, T0));
	OK(put(txn, 0, name("m450667"), 13, T0));
	assert_true(has(txn, 0, "m450667", 13));
	assert_true(has(txn, 0, "m19674579", 12));
	assert_int_equal(rows_of(txn, 0), 5);
	assert_int_equal(rows_of(txn, 1), 1);
	return STORE_OK;
}

static void
test_rows(void **state)
{
	in_txn(state, rows_in);
}

static enum store_rc
bound_in(struct txn *txn, void *arg)
{
	char model[32];
	struct target_change c = {.rests = false};

	(void)arg;
	for (unsigned i = 0; i < TARGET_MODELS_MAX; i++) {
		snprintf(model, sizeof model, "model-%u", i);
		OK(put(txn, 0, name(model), i, T0 + 1 + i));
	}
	assert_int_equal(rows_of(txn, 0), TARGET_MODELS_MAX);
	for (int i = 0; i < 5; i++) /* no room: as if it had never been asked */
		c = feed(txn, "new", true, T0 + DAY);
	assert_false(c.rests);
	assert_false(has(txn, 0, "new", 0));
	assert_int_equal(rows_of(txn, 0), TARGET_MODELS_MAX);
	OK(put(txn, 1, name("new"), 1, T0 + DAY)); /* other channels have room of their own */
	assert_true(has(txn, 1, "new", 1));
	feed(txn, "model-3", false, T0 + DAY); /* used again */
	feed(txn, "new", true, T0 + DAY + MIN);
	assert_true(has(txn, 0, "new", 1));
	assert_false(has(txn, 0, "model-0", 0)); /* the one that nobody used for longest */
	assert_true(has(txn, 0, "model-1", 1));
	for (unsigned i = 0; i < 2; i++) {
		snprintf(model, sizeof model, "newer-%u", i);
		feed(txn, model, false, T0 + DAY + MIN);
	}
	assert_false(has(txn, 0, "model-1", 0) || has(txn, 0, "model-2", 0));
	assert_true(has(txn, 0, "model-3", 0));
	assert_int_equal(rows_of(txn, 0), TARGET_MODELS_MAX);
	return STORE_OK;
}

static void
test_bound(void **state)
{
	in_txn(state, bound_in);
}

static void
feed_named(struct txn *txn, const char *model, bool failed, int64_t now_ms)
{
	struct target_outcome outcome = failed ? bad : fine;
	struct target_change change;

	outcome.named = true;
	OK(target_feed(txn, ref(0, model), &outcome, &policy, (struct wall_ms){now_ms}, &change));
}

/* Clients cannot keep out what the configuration names, neither by their number nor by hashes made for it. */
static enum store_rc
named_in(struct txn *txn, void *arg)
{
	char model[32];

	(void)arg;
	feed_named(txn, "known", false, T0);
	for (unsigned i = 0; i < TARGET_MODELS_MAX; i++) {
		snprintf(model, sizeof model, "model-%u", i);
		feed(txn, model, false, T0 + MIN + i);
	}
	assert_int_equal(rows_of(txn, 0), TARGET_MODELS_MAX);
	for (int i = 0; i < 5; i++)
		feed_named(txn, "new", true, T0 + 2 * MIN);
	assert_false(has(txn, 0, "model-0", 0));
	feed_named(txn, "newer", false, T0 + 2 * MIN);
	assert_true(has(txn, 0, "known", 0) && has(txn, 0, "new", 5));
	assert_int_equal(rows_of(txn, 0), TARGET_MODELS_MAX);
	return STORE_OK;
}

static void
test_named(void **state)
{
	in_txn(state, named_in);
}

/* Others stand wherever it could: with hashes that were made for that. */
static enum store_rc
surrounded_in(struct txn *txn, void *arg)
{
	char bytes[sizeof(struct target_row) + 1];
	struct target_row row = {.version = 1, .success_ms = T0};
	uint64_t hash = key_hash(0, "known", 5);

	(void)arg;
	for (unsigned i = 0; i < 4; i++) {
		memcpy(bytes, &row, sizeof row);
		bytes[sizeof row] = (char)('0' + i);
		OK(txn_put(txn, key_of(KEY_TARGET, 0, (hash + i) % ((UINT64_C(1) << 40) - 1)),
		    bytes, sizeof bytes));
	}
	feed(txn, "known", true, T0);
	assert_false(has(txn, 0, "known", 1));
	feed_named(txn, "known", true, T0);
	assert_true(has(txn, 0, "known", 1));
	assert_int_equal(rows_of(txn, 0), 4);
	return STORE_OK;
}

static void
test_surrounded(void **state)
{
	in_txn(state, surrounded_in);
}

/* What no version of ours writes reads as nothing, and is written over. */
static enum store_rc
foreign_in(struct txn *txn, void *arg)
{
	static const struct {
		const char *what;
		struct target_row row;
		size_t cut;
	} rows[] = {
	    {"another version", {.version = 2}, 0},
	    {"a short one", {.version = 1}, 1},
	    {"calls of a time that cannot be", {.version = 1, .calls.newest = -1}, 0},
	    {"first contents likewise", {.version = 1, .first.newest = INT64_MAX}, 0},
	    {"a rest likewise", {.version = 1, .rest_until_ms = INT64_MAX}, 0},
	    {"a streak likewise", {.version = 1, .streak_ms = INT64_MIN}, 0},
	};
	uint64_t key = key_of(KEY_TARGET, 0, key_hash(0, "m", 1) % 0xffffffffff);

	(void)arg;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char bytes[sizeof rows[i].row + 1];

		memcpy(bytes, &rows[i].row, sizeof rows[i].row);
		bytes[sizeof rows[i].row] = 'm';
		OK(txn_put(txn, key, bytes, sizeof bytes - rows[i].cut));
		if (has(txn, 0, "m", 0) || rows_of(txn, 0) != 0)
			fail_msg("%s: it was read", rows[i].what);
		feed(txn, "m", true, T0);
		assert_true(has(txn, 0, "m", 1));
		assert_int_equal(rows_of(txn, 0), 1);
	}
	return STORE_OK;
}

static void
test_foreign(void **state)
{
	in_txn(state, foreign_in);
}

/* ---- processes ---- */

#define CHILDREN 8
#define ROUNDS 50

struct trial {
	const struct store_dir *dir;
	int64_t now;
	volatile int taken; /* shared */
};

static enum store_rc
try_in(struct txn *txn, void *arg)
{
	struct trial *trial = arg;
	bool taken;
	enum store_rc rc =
	    target_try(txn, ref(0, "m"), &policy, (struct wall_ms){trial->now}, &taken);

	if (rc == STORE_OK)
		__atomic_store_n(&trial->taken, taken, __ATOMIC_RELAXED);
	return rc;
}

static enum store_rc
feed_in(struct txn *txn, void *arg)
{
	const struct trial *trial = arg;
	struct target_change change;

	return target_feed(txn, ref(0, "m"), &bad, &policy, (struct wall_ms){trial->now}, &change);
}

static int
try_and_feed(void *arg)
{
	struct trial *shared = arg, own = {.now = shared->now};
	struct env *env = store_dir_open(shared->dir);
	unsigned taken = 0;

	for (int i = 0; i < ROUNDS; i++) {
		if (env_update(env, try_in, &own) != STORE_OK)
			return 1;
		taken += own.taken != 0;
	}
	__atomic_fetch_add(&shared->taken, (int)taken, __ATOMIC_RELAXED);
	for (int i = 0; i < ROUNDS; i++)
		if (env_update(env, feed_in, &own) != STORE_OK)
			return 1;
	env_close(&env);
	return 0;
}

static void
run_children(struct trial *trial)
{
	pid_t pids[CHILDREN];

	trial->taken = 0;
	for (int i = 0; i < CHILDREN; i++)
		pids[i] = child_start(try_and_feed, trial);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(child_end(pids[i]), 0);
}

static enum store_rc
check_calls(struct txn *txn, void *arg)
{
	struct target_sums sums;
	struct target_row row;

	(void)arg;
	OK(target_get(txn, ref(0, "m"), &row));
	target_sums(&row, &policy, (struct wall_ms){T0}, &sums);
	assert_int_equal(sums.calls, CHILDREN * ROUNDS);
	assert_int_equal(sums.failures, CHILDREN * ROUNDS);
	assert_int_equal(row.consecutive, CHILDREN * ROUNDS);
	return STORE_OK;
}

/* Counts are exact over processes, and after a rest one request of all of them goes there. */
static void
test_processes(void **state)
{
	struct trial *trial = shared_bytes(sizeof *trial);
	struct env *env = store_dir_open(*state);
	static const struct {
		const char *what;
		int64_t at;
		int taken;
	} rows[] = {
	    {"it rests", T0 + 4 * MIN, 0},
	    {"its rest is over", T0 + 9 * MIN, 1},
	};

	trial->dir = *state;
	trial->now = T0;
	run_children(trial);
	OK(env_view(env, check_calls, NULL));
	for (size_t i = 0; i < NELEM(rows); i++) {
		trial->now = rows[i].at;
		run_children(trial);
		if (trial->taken != rows[i].taken)
			fail_msg("%s: %d taken", rows[i].what, trial->taken);
	}
	env_close(&env);
	munmap(trial, sizeof *trial);
}

/* Rests behind one another: each trial puts the next one forward. */
static enum store_rc
trials_in(struct txn *txn, void *arg)
{
	static const struct {
		const char *what;
		int64_t at;
		bool taken;
	} steps[] = {
	    {"rests", T0 + 5 * MIN - 1, false},
	    {"over", T0 + 5 * MIN, true},
	    {"taken", T0 + 5 * MIN, false},
	    {"whoever took it died: the next one", T0 + 10 * MIN - 1, false},
	    {"in due time", T0 + 10 * MIN, true},
	};

	(void)arg;
	for (int i = 0; i < 3; i++)
		feed(txn, "m", true, T0);
	for (size_t i = 0; i < NELEM(steps); i++) {
		bool taken;

		OK(target_try(txn, ref(0, "m"), &policy, (struct wall_ms){steps[i].at}, &taken));
		if (taken != steps[i].taken)
			fail_msg("%s: got %d", steps[i].what, taken);
	}
	return STORE_OK;
}

static void
test_trials(void **state)
{
	in_txn(state, trials_in);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_company),
	    TXN_TEST(test_history),
	    TXN_TEST(test_changes),
	    TXN_TEST(test_rows),
	    TXN_TEST(test_bound),
	    TXN_TEST(test_named),
	    TXN_TEST(test_surrounded),
	    TXN_TEST(test_foreign),
	    TXN_TEST(test_processes),
	    TXN_TEST(test_trials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
