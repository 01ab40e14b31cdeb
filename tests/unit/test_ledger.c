#include "store/ledger.h"

#include "lib/store_dir.h"

#define NELEM(a) (sizeof(a) / sizeof *(a))
#define TODAY 20500

static void
days(void **state)
{
	static const struct {
		const char *what;
		int64_t ms;
		uint16_t day;
	} rows[] = {
	    {"the first", 0, 0},
	    {"its end", 86399999, 0},
	    {"the second", 86400000, 1},
	    {"2026-02-02", INT64_C(1769990400000), 20486},
	    {"before all days", -1, 0},
	    {"after all days", INT64_MAX, UINT16_MAX},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		if (ledger_day((struct wall_ms){rows[i].ms}) != rows[i].day)
			fail_msg("%s: got %u, want %u", rows[i].what,
			    ledger_day((struct wall_ms){rows[i].ms}), rows[i].day);
}

/* Each field by itself, and what would overflow. */
static void
sums(void **state)
{
	struct ledger_sum a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	const struct ledger_sum b = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, -1100};
	const struct ledger_sum want = {101, 202, 303, 404, 505, 606, 707, 808, 909, 1010, -1089};
	const struct ledger_sum most = {UINT64_MAX, UINT64_MAX - 5, 6, UINT64_MAX, UINT64_MAX,
	    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, INT64_MIN};

	(void)state;
	ledger_sum_add(&a, &b);
	assert_memory_equal(&a, &want, sizeof a);
	ledger_sum_add(&a, &most);
	assert_true(a.requests == UINT64_MAX);
	assert_true(a.failed == UINT64_MAX);
	assert_true(a.cancelled == 309);
	assert_true(a.cost_micros == INT64_MIN);
	a.cost_micros = INT64_MAX;
	ledger_sum_add(&a, &(struct ledger_sum){.cost_micros = 1});
	assert_true(a.cost_micros == INT64_MAX);
}

struct job {
	struct ledger_key key;
	struct ledger_sum delta;
	uint16_t from, to, last_day;
	const char *only; /* client to be summed, NULL = all */
	unsigned n, stop_at;
	struct ledger_sum sum;
	unsigned most, removed;
	char seen[4][LEDGER_NAME_MAX + 1];
	bool ordered;
};

static enum store_rc
do_add(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return ledger_add(txn, &job->key, &job->delta);
}

static bool
sum_up(const struct ledger_key *key, const struct ledger_sum *sum, void *arg)
{
	struct job *job = arg;

	if (key->day < job->last_day)
		job->ordered = false;
	job->last_day = key->day;
	if (job->only != NULL && strcmp(job->only, key->client) != 0)
		return true;
	snprintf(job->seen[0], sizeof job->seen[0], "%s", key->client);
	snprintf(job->seen[1], sizeof job->seen[1], "%s", key->channel);
	snprintf(job->seen[2], sizeof job->seen[2], "%s", key->account);
	snprintf(job->seen[3], sizeof job->seen[3], "%s", key->model);
	ledger_sum_add(&job->sum, sum);
	return ++job->n != job->stop_at;
}

static enum store_rc
do_walk(struct txn *txn, void *arg)
{
	struct job *job = arg;

	job->n = 0;
	job->sum = (struct ledger_sum){0};
	job->last_day = 0;
	job->ordered = true;
	return ledger_walk(txn, job->from, job->to, sum_up, job);
}

static enum store_rc
do_sweep(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return ledger_sweep(txn, TODAY, job->most, &job->removed);
}

static unsigned
walk(struct env *env, struct job *job, uint16_t from, uint16_t to)
{
	job->from = from;
	job->to = to;
	assert_int_equal(env_view(env, do_walk, job), STORE_OK);
	assert_true(job->ordered);
	return job->n;
}

static struct job
job_of(uint16_t day, const char *client)
{
	return (struct job){
	    .key = {day, client, "ch", "acc", "model"},
	    .delta = {.requests = 1, .prompt = 10, .cost_micros = 7, .priced = 1},
	};
}

static enum store_rc
add_one(struct env *env, uint16_t day, const char *client)
{
	struct job job = job_of(day, client);

	return env_update(env, do_add, &job);
}

static uint64_t random_state = 88172645463325252U;

static uint64_t
next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state >> 11;
}

#define EVENTS 100000
#define CLIENTS 5
#define DAYS 3

struct storm {
	struct ledger_sum per_client[CLIENTS], per_day[DAYS], all;
	int left;
};

/* 500 outcomes in one transaction. */
static enum store_rc
do_storm(struct txn *txn, void *arg)
{
	static const char *const clients[CLIENTS] = {"alice", "bob", "", "alice2", "c c"};
	static const char *const models[3] = {"m", "m1", "org/m:free"};
	struct storm *storm = arg;

	for (int i = 0; i < 500; i++) {
		uint64_t r = next_random();
		unsigned client = (unsigned)(r % CLIENTS), day = (unsigned)(r / 8 % DAYS);
		struct ledger_key key = {(uint16_t)(TODAY + day), clients[client],
		    r & 1 ? "oa" : "zhipu", r & 2 ? "a1" : "a2", models[r / 64 % 3]};
		struct ledger_sum delta = {
		    .requests = 1,
		    .failed = r >> 10 & 1,
		    .cancelled = r >> 11 & 1,
		    .prompt = next_random() % 100000,
		    .completion = next_random() % 5000,
		    .cached = next_random() % 1000,
		    .cache_write = next_random() % 10,
		    .reasoning = next_random() % 300,
		    .estimated = r >> 12 & 1,
		    .priced = r >> 13 & 1,
		    .cost_micros = (int64_t)(next_random() % 1000000),
		};
		enum store_rc rc = ledger_add(txn, &key, &delta);

		if (rc != STORE_OK)
			return rc;
		ledger_sum_add(&storm->per_client[client], &delta);
		ledger_sum_add(&storm->per_day[day], &delta);
		ledger_sum_add(&storm->all, &delta);
	}
	return STORE_OK;
}

static void
sums_are_those_of_the_outcomes(void **state)
{
	static const char *const clients[CLIENTS] = {"alice", "bob", "", "alice2", "c c"};
	struct env *env = store_dir_open(*state);
	struct storm storm = {0};
	struct job job = {0};

	for (int i = 0; i < EVENTS / 500; i++)
		assert_int_equal(env_update(env, do_storm, &storm), STORE_OK);
	assert_int_equal(walk(env, &job, 0, UINT16_MAX), CLIENTS * DAYS * 2 * 2 * 3);
	assert_true(job.sum.requests == EVENTS);
	assert_memory_equal(&job.sum, &storm.all, sizeof job.sum);
	for (unsigned i = 0; i < DAYS; i++) {
		walk(env, &job, (uint16_t)(TODAY + i), (uint16_t)(TODAY + i));
		assert_memory_equal(&job.sum, &storm.per_day[i], sizeof job.sum);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		job.only = clients[i];
		walk(env, &job, TODAY, TODAY + DAYS - 1);
		assert_memory_equal(&job.sum, &storm.per_client[i], sizeof job.sum);
	}
	env_close(&env);
}

/* Which texts come back for which went in. */
static void
names(void **state)
{
	static char longest[LEDGER_NAME_MAX + 1], longer[LEDGER_NAME_MAX + 20];
	static char half[LEDGER_NAME_MAX + 3], whole[LEDGER_NAME_MAX];
	const struct {
		const char *what, *name, *want;
	} rows[] = {
	    {"none", "", ""},
	    {"plain", "alice", "alice"},
	    {"longest", longest, longest},
	    {"longer is cut", longer, longest},
	    {"not within a character", half, whole},
	};
	struct env *env = store_dir_open(*state);

	memset(longest, 'x', LEDGER_NAME_MAX);
	memset(longer, 'x', LEDGER_NAME_MAX + 19);
	memset(half, 'x', LEDGER_NAME_MAX - 1);
	memcpy(half + LEDGER_NAME_MAX - 1, "\xc3\xa4", 2);
	memset(whole, 'x', LEDGER_NAME_MAX - 1);
	for (size_t i = 0; i < NELEM(rows); i++)
		for (unsigned field = 0; field < 4; field++) {
			uint16_t day = (uint16_t)(100 + i * 4 + field);
			struct job job = job_of(day, "client");
			const char **texts[] = {
			    &job.key.client, &job.key.channel, &job.key.account, &job.key.model};

			*texts[field] = rows[i].name;
			assert_int_equal(env_update(env, do_add, &job), STORE_OK);
			assert_int_equal(env_update(env, do_add, &job), STORE_OK);
			assert_int_equal(walk(env, &job, day, day), 1);
			assert_true(job.sum.requests == 2);
			if (strcmp(job.seen[field], rows[i].want) != 0)
				fail_msg(
				    "%s, field %u: got %s", rows[i].what, field, job.seen[field]);
			assert_string_equal(job.seen[3], field == 3 ? rows[i].want : "model");
		}
	env_close(&env);
}

/* Where one text ends and the next begins makes a difference. */
static void
names_do_not_run_together(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(TODAY, "ab");

	job.key.channel = "c";
	assert_int_equal(env_update(env, do_add, &job), STORE_OK);
	job.key.client = "a";
	job.key.channel = "bc";
	assert_int_equal(env_update(env, do_add, &job), STORE_OK);
	assert_int_equal(walk(env, &job, TODAY, TODAY), 2);
	job.stop_at = 1;
	assert_int_equal(walk(env, &job, TODAY, TODAY), 1);
	env_close(&env);
}

/* Each pair has one hash (its lowest 39 bits) after any choice of those before it. */
static const char *const halves[5][2] = {
    {"scizmv4b0nn", "cy15ul3rt5e"},
    {"j1qtueeroqp", "w1qln3sb4f0"},
    {"4tumoczw3b1", "wgmemkxqlvj"},
    {"4jets0neluy", "23hq0tryj4x"},
    {"3mv4mgncaes", "vjd2mzjs2px"},
};

/* 32 clients with one hash: 16 find a place, the rest counts for others, nothing is lost or mixed up. */
static void
collisions(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(TODAY, NULL);
	char name[32][64];
	unsigned own = 0;

	for (unsigned i = 0; i < 32; i++) {
		snprintf(name[i], sizeof name[i], "%s%s%s%s%s", halves[0][i & 1],
		    halves[1][i >> 1 & 1], halves[2][i >> 2 & 1], halves[3][i >> 3 & 1],
		    halves[4][i >> 4]);
		assert_true(((key_hash(0, name[i], strlen(name[i])) ^
		                 key_hash(0, name[0], strlen(name[0]))) &
		                0x7fffffffffU) == 0);
		for (unsigned j = 0; j <= i; j++)
			assert_int_equal(add_one(env, TODAY, name[i]), STORE_OK);
	}
	for (unsigned i = 0; i < 32; i++) {
		job.only = name[i];
		if (walk(env, &job, TODAY, TODAY) == 0)
			continue;
		own++;
		assert_true(job.sum.requests == i + 1);
	}
	assert_int_equal(own, 16);
	job.only = NULL;
	assert_int_equal(walk(env, &job, TODAY, TODAY), 17);
	assert_true(job.sum.requests == 32 * 33 / 2);
	job.only = LEDGER_OTHER;
	assert_int_equal(walk(env, &job, TODAY, TODAY), 1);
	assert_string_equal(job.seen[3], "model");
	env_close(&env);
}

static enum store_rc
do_crowd(struct txn *txn, void *arg)
{
	struct job *job = arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < 1000 && rc == STORE_OK; i++) {
		char client[32];

		snprintf(client, sizeof client, "client-%u", job->most++);
		job->key.client = client;
		rc = ledger_add(txn, &job->key, &job->delta);
	}
	return rc;
}

static enum store_rc
do_set_count(struct txn *txn, void *arg)
{
	struct job *job = arg;
	const struct {
		uint8_t version, spare[3];
		uint32_t rows;
	} count = {1, {0}, job->most};

	return txn_put(txn, key_of(KEY_LEDGER, job->key.day, UINT64_MAX), &count, sizeof count);
}

static void
crowd(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = job_of(TODAY, NULL);

	for (int i = 0; i < 22; i++)
		assert_int_equal(env_update(env, do_crowd, &job), STORE_OK);
	assert_int_equal(walk(env, &job, TODAY, TODAY), LEDGER_DAY_ROWS + 1);
	assert_true(job.sum.requests == 22000);
	job.only = LEDGER_OTHER;
	assert_int_equal(walk(env, &job, TODAY, TODAY), 1);
	assert_true(job.sum.requests == 22000 - LEDGER_DAY_ROWS);
	job.only = "client-5"; /* who has a row keeps it */
	assert_int_equal(add_one(env, TODAY, "client-5"), STORE_OK);
	assert_int_equal(walk(env, &job, TODAY, TODAY), 1);
	assert_true(job.sum.requests == 2);
	job.only = "new"; /* another day has its own room */
	assert_int_equal(add_one(env, TODAY + 1, "new"), STORE_OK);
	assert_int_equal(walk(env, &job, TODAY, TODAY + 1), 1);
	env_close(&env);
}

/* How many rows a day has, and for whom a newcomer counts. */
static void
folding(void **state)
{
	static const struct {
		const char *what;
		unsigned rows;
		const char *seen[4];
	} rows[] = {
	    {"room", LEDGER_DAY_ROWS - 1, {"new", "ch", "acc", "model"}},
	    {"no room for clients", LEDGER_DAY_ROWS, {LEDGER_OTHER, "ch", "acc", "model"}},
	    {"almost none for models", 2 * LEDGER_DAY_ROWS - 1,
	        {LEDGER_OTHER, "ch", "acc", "model"}},
	    {"none", 2 * LEDGER_DAY_ROWS, {LEDGER_OTHER, "ch", "acc", LEDGER_OTHER}},
	    {"for nothing", 3 * LEDGER_DAY_ROWS,
	        {LEDGER_OTHER, LEDGER_OTHER, LEDGER_OTHER, LEDGER_OTHER}},
	    {"a wrong count", UINT32_MAX, {LEDGER_OTHER, LEDGER_OTHER, LEDGER_OTHER, LEDGER_OTHER}},
	};
	struct env *env = store_dir_open(*state);

	for (size_t i = 0; i < NELEM(rows); i++) {
		struct job job = job_of((uint16_t)(10 + i), "new");

		job.most = rows[i].rows;
		assert_int_equal(env_update(env, do_set_count, &job), STORE_OK);
		assert_int_equal(env_update(env, do_add, &job), STORE_OK);
		assert_int_equal(env_update(env, do_add, &job), STORE_OK);
		assert_int_equal(walk(env, &job, job.key.day, job.key.day), 1);
		assert_true(job.sum.requests == 2);
		for (int j = 0; j < 4; j++)
			if (strcmp(job.seen[j], rows[i].seen[j]) != 0)
				fail_msg("%s: name %d: got %s, want %s", rows[i].what, j,
				    job.seen[j], rows[i].seen[j]);
	}
	env_close(&env);
}

static void
sweep_by_age(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = {.most = 3};

	for (uint16_t day = TODAY - LEDGER_KEEP_DAYS - 4; day <= TODAY; day++)
		assert_int_equal(add_one(env, day, "c"), STORE_OK);
	assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	assert_int_equal(job.removed, 3); /* in steps: a row and its day's count, and one more */
	job.most = 1000;
	assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	assert_int_equal(job.removed, 5 * 2 - 3);
	assert_int_equal(walk(env, &job, 0, UINT16_MAX), LEDGER_KEEP_DAYS);
	assert_int_equal(walk(env, &job, TODAY - LEDGER_KEEP_DAYS + 1, TODAY), LEDGER_KEEP_DAYS);
	assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
	assert_int_equal(job.removed, 0);
	env_close(&env);
}

/* Too many rows: whole days go, the oldest first, but never today. */
static void
sweep_by_number(void **state)
{
	static const struct {
		const char *what;
		unsigned counts[4]; /* of today, yesterday ... */
		unsigned left;
	} rows[] = {
	    {"few", {10, 10, 10, 10}, 4},
	    {"just enough", {LEDGER_ROWS - 3, 1, 1, 1}, 4},
	    {"one too many", {LEDGER_ROWS - 3, 1, 1, 2}, 3},
	    {"a large day", {1, 1, LEDGER_ROWS, 1}, 2},
	    {"today alone is too large", {LEDGER_ROWS + 1, 1, 1, 1}, 1},
	};
	struct env *env = store_dir_open(*state);

	for (size_t i = 0; i < NELEM(rows); i++) {
		struct job job = {.most = 1000};

		for (uint16_t age = 0; age < 4; age++) {
			struct job set = {.key.day = TODAY - age, .most = rows[i].counts[age]};

			assert_int_equal(add_one(env, TODAY - age, "c"), STORE_OK);
			assert_int_equal(env_update(env, do_set_count, &set), STORE_OK);
		}
		assert_int_equal(env_update(env, do_sweep, &job), STORE_OK);
		if (walk(env, &job, 0, UINT16_MAX) != rows[i].left ||
		    walk(env, &job, (uint16_t)(TODAY + 1 - rows[i].left), TODAY) != rows[i].left)
			fail_msg("%s: left %u, want %u", rows[i].what, job.n, rows[i].left);
	}
	env_close(&env);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(days),
	    cmocka_unit_test(sums),
	    STORE_TEST(sums_are_those_of_the_outcomes),
	    STORE_TEST(names),
	    STORE_TEST(names_do_not_run_together),
	    STORE_TEST(collisions),
	    STORE_TEST(crowd),
	    STORE_TEST(folding),
	    STORE_TEST(sweep_by_age),
	    STORE_TEST(sweep_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
