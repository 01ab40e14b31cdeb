#include "store/price.h"

#include "lib/store_dir.h"

#define NELEM(a) (sizeof(a) / sizeof *(a))
#define HOUR_MS INT64_C(3600000)
#define NOW INT64_C(1770000000000)

static void
units(void **state)
{
	static const struct {
		const char *what;
		int64_t cost;
		uint64_t tokens;
		int64_t unit;
	} rows[] = {
	    {"a thousand tokens", 5000, 1000, 5000},
	    {"fewer", 500, 100, 5000},
	    {"more", 50000, 10000, 5000},
	    {"free", 0, 1234, 0},
	    {"free without tokens", 0, 0, 0},
	    {"paid without tokens", 7, 0, 7},
	    {"paid is never rounded to free", 1, UINT64_MAX, 1},
	    {"rounded up", 1, 3, 334},
	    {"unknown", -1, 1000, PRICE_NONE},
	    {"negative", INT64_MIN, 1000, PRICE_NONE},
	    {"dear", INT64_MAX, 1, PRICE_MOST},
	    {"dear and large", INT64_MAX, UINT64_MAX, PRICE_MOST},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		int64_t got = price_unit(rows[i].cost, rows[i].tokens);

		if (got != rows[i].unit)
			fail_msg("%s: got %lld, want %lld", rows[i].what, (long long)got,
			    (long long)rows[i].unit);
	}
}

static void
smoothing(void **state)
{
	static const struct {
		const char *what;
		int64_t old, observed;
		uint32_t ppm;
		int64_t want;
	} rows[] = {
	    {"up", 1000, 2000, 300000, 1300},
	    {"down", 2000, 1000, 300000, 1700},
	    {"same", 1000, 1000, 300000, 1000},
	    {"all of it", 1000, 5, 1000000, 5},
	    {"free to paid is paid at once", 0, 1, 1000, 1},
	    {"rounded towards the observation, up", 10, 11, 300000, 11},
	    {"rounded towards the observation, down", 11, 10, 300000, 10},
	    {"the last step to free", 1, 0, 300000, 0},
	    {"largest", 0, PRICE_MOST, 1000000, PRICE_MOST},
	    {"largest down", PRICE_MOST, 0, 1000000, 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		int64_t got = price_smooth(rows[i].old, rows[i].observed, rows[i].ppm);

		if (got != rows[i].want)
			fail_msg("%s: got %lld, want %lld", rows[i].what, (long long)got,
			    (long long)rows[i].want);
	}
}

/* Against long double: each step is the exact one rounded to a whole micro on the observation's side. */
static void
smoothing_is_exact(void **state)
{
	static const uint32_t ppm[] = {1000, 50000, 300000, 333333, 999999, 1000000};
	uint64_t random = 88172645463325252U;

	(void)state;
	for (size_t a = 0; a < NELEM(ppm); a++) {
		int64_t price = 123456;

		for (int i = 0; i < 20000; i++) {
			int64_t seen, next;
			long double exact, off;

			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			seen = (int64_t)(random >> (24 + random % 40));
			next = price_smooth(price, seen, ppm[a]);
			exact = (long double)price +
			        ((long double)seen - (long double)price) * ppm[a] / 1e6L;
			off = seen < price ? exact - (long double)next : (long double)next - exact;
			if (off < -1e-3L || off > 1.0L || (seen > 0 && next <= 0))
				fail_msg("%lld to %lld by %u: got %lld", (long long)price,
				    (long long)seen, ppm[a], (long long)next);
			price = next;
		}
	}
}

static void
exploring(void **state)
{
	static const struct {
		const char *what;
		int64_t last, every;
		bool want;
	} rows[] = {
	    {"off", 0, 0, false},
	    {"off, long ago", 1, 0, false},
	    {"never yet", 0, HOUR_MS, true},
	    {"just now", NOW, HOUR_MS, false},
	    {"almost", NOW - HOUR_MS + 1, HOUR_MS, false},
	    {"due", NOW - HOUR_MS, HOUR_MS, true},
	    {"the clock went back", NOW + 1, HOUR_MS, true},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		if (price_explores(rows[i].last, rows[i].every, (struct wall_ms){NOW}) !=
		    rows[i].want)
			fail_msg("%s", rows[i].what);
}

/* Each pair has one hash (its lowest 26 bits) after any choice of those before it. */
static const char *const halves[3][2] = {
    {"ogogdowilyp", "3aeo4yqcnkb"},
    {"iuhn2eui2yb", "gbaaxnlaueh"},
    {"lxv5w5jbu4p", "qkcier20sok"},
};

struct job {
	struct account_ref ref;
	const char *model;
	int64_t unit, now_ms, ttl_ms;
	uint32_t alpha_ppm;
	unsigned n; /* models or accounts to make */
	struct price_entry entry;
	int tier;
	int64_t explored_ms;
	unsigned seen;
	int64_t sum;
	uint32_t last;
};

static struct job
job_of(uint32_t number, const char *model)
{
	return (struct job){.ref = {1, number},
	    .model = model,
	    .now_ms = NOW,
	    .ttl_ms = 6 * HOUR_MS,
	    .alpha_ppm = 300000};
}

static enum store_rc
do_observe(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct price_rule rule = {job->alpha_ppm, job->ttl_ms};

	return price_observe(
	    txn, job->ref, job->model, job->unit, &rule, (struct wall_ms){job->now_ms});
}

static enum store_rc
do_get(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return price_get(txn, job->ref, job->model, &job->entry);
}

static enum store_rc
do_tier(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct price_view view;
	enum store_rc rc = price_open(
	    txn, job->ref.channel, job->model, job->ttl_ms, (struct wall_ms){job->now_ms}, &view);

	if (rc == STORE_OK)
		job->tier = (int)price_tier(&view, job->ref.number);
	return rc;
}

static enum store_rc
observe(struct env *env, struct job *job, int64_t unit)
{
	job->unit = unit;
	return env_update(env, do_observe, job);
}

static int
tier(struct env *env, struct job *job)
{
	assert_int_equal(env_view(env, do_tier, job), STORE_OK);
	return job->tier;
}

static bool
count_seen(const struct price_seen *seen, void *arg)
{
	struct job *job = arg;

	job->seen++;
	job->sum += seen->entry.micros;
	if (strcmp(seen->model, job->model) == 0)
		job->last = seen->ref.number;
	return job->seen != job->n;
}

static enum store_rc
do_walk(struct txn *txn, void *arg)
{
	struct job *job = arg;

	job->seen = 0;
	job->sum = 0;
	return price_walk(txn, count_seen, job);
}

static unsigned
walk(struct env *env, struct job *job)
{
	assert_int_equal(env_view(env, do_walk, job), STORE_OK);
	return job->seen;
}

/* One account: what is observed one after the other, and the tier afterwards. */
static void
tiers(void **state)
{
	static const struct {
		const char *what;
		int64_t unit, after_ms; /* since the row before */
		int tier;
		int64_t micros;
	} rows[] = {
	    {"nothing observed", PRICE_NONE, 0, PRICE_UNMEASURED, -1},
	    {"free", 0, 0, PRICE_FREE, 0},
	    {"no observation changes nothing", PRICE_NONE, 0, PRICE_FREE, 0},
	    {"paid", 1000, 1, PRICE_PAID, 300},
	    {"paid again", 1000, 1, PRICE_PAID, 510},
	    {"no observation at the end of the ttl", PRICE_NONE, 6 * HOUR_MS, PRICE_PAID, 510},
	    {"after it", PRICE_NONE, 1, PRICE_UNMEASURED, 510},
	    {"expired: starts anew", 70, 0, PRICE_PAID, 70},
	    {"free after paid is smoothed too", 0, 1, PRICE_PAID, 49},
	    {"expired: free", 0, 6 * HOUR_MS + 1, PRICE_FREE, 0},
	    {"clock a bit back", PRICE_NONE, -6 * HOUR_MS, PRICE_FREE, 0},
	    {"clock far back: a price from a wrong clock", PRICE_NONE, -1, PRICE_UNMEASURED, 0},
	    {"above the largest", INT64_MAX, 0, PRICE_PAID, PRICE_MOST},
	};
	struct env *env = store_dir_open(*state);
	struct job job = job_of(7, "m");

	for (size_t i = 0; i < NELEM(rows); i++) {
		enum store_rc rc;

		job.now_ms += rows[i].after_ms;
		assert_int_equal(observe(env, &job, rows[i].unit), STORE_OK);
		rc = env_view(env, do_get, &job);
		if ((rows[i].micros < 0) != (rc == STORE_NONE) ||
		    (rc == STORE_OK && job.entry.micros != rows[i].micros))
			fail_msg("%s: rc %d, got %lld, want %lld", rows[i].what, (int)rc,
			    (long long)job.entry.micros, (long long)rows[i].micros);
		if (tier(env, &job) != rows[i].tier)
			fail_msg("%s: tier %d, want %d", rows[i].what, job.tier, rows[i].tier);
	}
	env_close(&env);
}

/* Prices of one account, model and channel say nothing of another's; shards have no edges. */
static void
places(void **state)
{
	static const uint32_t numbers[] = {0, 1, 119, 120, 121, 239, 240, 9999, 1900000};
	struct env *env = store_dir_open(*state);
	struct job job = job_of(0, "m"), other = job_of(0, "n");

	for (size_t i = 0; i < NELEM(numbers); i++) {
		job.ref.number = numbers[i];
		assert_int_equal(observe(env, &job, 10 + (int64_t)i), STORE_OK);
	}
	for (size_t i = 0; i < NELEM(numbers); i++) {
		job.ref.number = numbers[i];
		assert_int_equal(env_view(env, do_get, &job), STORE_OK);
		assert_int_equal(job.entry.micros, 10 + i);
		assert_int_equal(tier(env, &job), PRICE_PAID);
		other.ref.number = numbers[i];
		assert_int_equal(env_view(env, do_get, &other), STORE_NONE);
		assert_int_equal(tier(env, &other), PRICE_UNMEASURED);
	}
	job.ref = (struct account_ref){2, 0};
	assert_int_equal(tier(env, &job), PRICE_UNMEASURED);
	job.ref = (struct account_ref){1, 2};
	assert_int_equal(tier(env, &job), PRICE_UNMEASURED);
	job.ref = (struct account_ref){1, UINT32_MAX}; /* beyond what has a place */
	assert_int_equal(observe(env, &job, 10), STORE_OK);
	assert_int_equal(tier(env, &job), PRICE_UNMEASURED);
	assert_int_equal(env_view(env, do_get, &job), STORE_NONE);
	assert_int_equal(walk(env, &job), NELEM(numbers));
	assert_int_equal(job.last, 1900000);
	job.n = 3; /* the walk can be stopped */
	assert_int_equal(walk(env, &job), 3);
	env_close(&env);
}

static enum store_rc
do_scan(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct price_view view;
	enum store_rc rc =
	    price_open(txn, 1, job->model, job->ttl_ms, (struct wall_ms){job->now_ms}, &view);

	job->sum = 0;
	for (uint32_t i = 0; i < job->n && rc == STORE_OK; i++) {
		int want = i % 3 == 0 ? PRICE_FREE : i % 3 == 1 ? PRICE_UNMEASURED : PRICE_PAID;

		job->sum += (int)price_tier(&view, i) == want;
	}
	return rc;
}

static enum store_rc
do_fill(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct price_rule rule = {job->alpha_ppm, job->ttl_ms};
	enum store_rc rc = STORE_OK;

	for (uint32_t i = 0; i < job->n && rc == STORE_OK; i++)
		if (i % 3 != 1)
			rc = price_observe(txn, (struct account_ref){1, i}, job->model,
			    i % 3 == 0 ? 0 : 5, &rule, (struct wall_ms){job->now_ms});
	return rc;
}

static void
scan(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(0, "m");

	job.n = 1000;
	assert_int_equal(env_update(env, do_fill, &job), STORE_OK);
	assert_int_equal(env_view(env, do_scan, &job), STORE_OK);
	assert_int_equal(job.sum, 1000);
	env_close(&env);
}

/* Eight names with one hash (26 bits): four find a place, the others are not kept, and nobody reads another's price. */
static void
collisions(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(3, NULL);
	char name[8][64];
	unsigned kept = 0;

	for (unsigned i = 0; i < 8; i++) {
		snprintf(name[i], sizeof name[i], "%s%s%s", halves[0][i & 1], halves[1][i >> 1 & 1],
		    halves[2][i >> 2]);
		assert_int_equal((key_hash(0, name[i], strlen(name[i])) ^
		                     key_hash(0, name[0], strlen(name[0]))) &
		                     0x3ffffff,
		    0);
		job.model = name[i];
		assert_int_equal(observe(env, &job, 100 + (int64_t)i), STORE_OK);
	}
	for (unsigned i = 0; i < 8; i++) {
		enum store_rc rc;

		job.model = name[i];
		rc = env_view(env, do_get, &job);
		assert_true(rc == STORE_OK || rc == STORE_NONE);
		if (rc == STORE_OK) {
			kept++;
			assert_int_equal(job.entry.micros, 100 + i);
		}
	}
	assert_int_equal(kept, 4);
	env_close(&env);
}

static enum store_rc
do_sweep(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return price_sweep(
	    txn, 1, job->ttl_ms, (struct wall_ms){job->now_ms}, job->n ? job->n : 1000);
}

/* Gaps that a sweep leaves hide nothing behind them, and are used again. */
static void
sweeping(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(500, NULL);
	char name[4][64];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(name[i], sizeof name[i], "%s%s%s", halves[0][i & 1], halves[1][i >> 1],
		    halves[2][0]);
		job.model = name[i];
		job.now_ms = i == 1 || i == 3 ? NOW + HOUR_MS : NOW;
		assert_int_equal(observe(env, &job, 100 + (int64_t)i), STORE_OK);
	}
	job.now_ms = NOW + 6 * HOUR_MS + 1;
	assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	assert_int_equal(walk(env, &job), 2);
	for (unsigned i = 0; i < 4; i++) {
		job.model = name[i];
		assert_int_equal(
		    env_view(env, do_get, &job), i == 1 || i == 3 ? STORE_OK : STORE_NONE);
	}
	job.model = name[3]; /* which stands behind a gap */
	assert_int_equal(observe(env, &job, 9), STORE_OK);
	assert_int_equal(walk(env, &job), 2);
	job.model = name[0];
	assert_int_equal(observe(env, &job, 9), STORE_OK);
	assert_int_equal(walk(env, &job), 3);
	env_close(&env);
}

static enum store_rc
do_names(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct price_rule rule = {job->alpha_ppm, job->ttl_ms};
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < job->n && rc == STORE_OK; i++) {
		char name[32];

		snprintf(name, sizeof name, "model-%u", i);
		rc = price_observe(txn, job->ref, name, 1, &rule, (struct wall_ms){job->now_ms});
	}
	return rc;
}

/* Invented names stop at the cap, those that are known go on, and a sweep makes room. */
static void
cap(void **state)
{
	char longest[PRICE_MODEL_MAX + 2];
	struct env *env = store_dir_open(*state);
	struct job job = job_of(200, "model-3"), again;

	memset(longest, 'x', sizeof longest);
	longest[PRICE_MODEL_MAX] = '\0';
	job.n = 3000;
	assert_int_equal(env_update(env, do_names, &job), STORE_OK);
	job.n = 0;
	assert_int_equal(walk(env, &job), PRICE_MODELS_MAX);
	again = job_of(200, "model-3");
	again.now_ms += 1;
	assert_int_equal(observe(env, &again, 1001), STORE_OK);
	assert_int_equal(tier(env, &again), PRICE_PAID);
	again.model = longest;
	assert_int_equal(observe(env, &again, 1001), STORE_OK);
	assert_int_equal(tier(env, &again), PRICE_UNMEASURED);

	job.now_ms += job.ttl_ms + 1;
	job.n = 10;
	assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	job.n = 0;
	assert_int_equal(walk(env, &job), PRICE_MODELS_MAX - 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	assert_int_equal(walk(env, &job), 1);
	again.now_ms = job.now_ms;
	assert_int_equal(observe(env, &again, 1001), STORE_OK);
	assert_int_equal(tier(env, &again), PRICE_PAID);
	longest[PRICE_MODEL_MAX] = 'x';
	longest[PRICE_MODEL_MAX + 1] = '\0';
	assert_int_equal(observe(env, &again, 1001), STORE_OK);
	again.model = "";
	assert_int_equal(observe(env, &again, 1001), STORE_OK);
	assert_int_equal(walk(env, &job), 2);
	env_close(&env);
}

static enum store_rc
do_explored_put(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return price_explored_put(txn, job->ref.channel, (struct wall_ms){job->now_ms});
}

static enum store_rc
do_explored_get(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return price_explored_get(txn, job->ref.channel, &job->explored_ms);
}

static void
explored(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(0, "m");

	assert_int_equal(env_view(env, do_explored_get, &job), STORE_OK);
	assert_int_equal(job.explored_ms, 0);
	assert_int_equal(env_update(env, do_explored_put, &job), STORE_OK);
	assert_int_equal(observe(env, &job, 4), STORE_OK); /* shares the channel's row */
	assert_int_equal(env_view(env, do_explored_get, &job), STORE_OK);
	assert_int_equal(job.explored_ms, NOW);
	job.ref.channel = 2;
	assert_int_equal(env_view(env, do_explored_get, &job), STORE_OK);
	assert_int_equal(job.explored_ms, 0);
	assert_int_equal(walk(env, &job), 1);
	env_close(&env);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(units),
	    cmocka_unit_test(smoothing),
	    cmocka_unit_test(smoothing_is_exact),
	    cmocka_unit_test(exploring),
	    STORE_TEST(tiers),
	    STORE_TEST(places),
	    STORE_TEST(scan),
	    STORE_TEST(collisions),
	    STORE_TEST(sweeping),
	    STORE_TEST(cap),
	    STORE_TEST(explored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
