/*
 * test_book - which rows are saved and when, and what comes back of them.
 */
#include "store/book.h"

#include "lib/store_boot.h"
#include "store/cooldown.h"
#include "store/journal.h"
#include "store/slot.h"
#include "store/tally.h"

#include <lmdb.h>

#define NOW 1767607200000LL

/* ---- what is saved, and how it comes back ---- */

struct text {
	uint64_t key;
	size_t n;
	unsigned char bytes[300];
};

static enum store_rc
text_get(struct txn *txn, void *arg)
{
	struct text *text = arg;
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, text->key, &bytes);

	text->n = 0;
	if (rc == STORE_OK && bytes.n <= sizeof text->bytes) {
		text->n = bytes.n;
		memcpy(text->bytes, bytes.p, bytes.n);
	}
	return rc;
}

static enum store_rc
text_put(struct txn *txn, void *arg)
{
	const struct text *text = arg;

	return txn_put(txn, text->key, text->bytes, text->n);
}

static enum store_rc
text_del(struct txn *txn, void *arg)
{
	const struct text *text = arg;

	return txn_del(txn, text->key);
}

static const struct fate {
	const char *what;
	uint64_t key;
	bool saved;
} fates[] = {
    {"a channel", (uint64_t)KEY_CHANNEL << 56 | 5, true},
    {"a name", (uint64_t)KEY_TEXT << 56 | 7, true},
    {"totals", (uint64_t)KEY_STAT << 56 | 9, true},
    {"texts", (uint64_t)KEY_NOTE << 56 | 11, true},
    {"the last key of a kind", (uint64_t)KEY_NOTE << 56 | 0xffffffffffffff, true},
    {"an event", (uint64_t)KEY_EVENT << 56 | 13, true},
    {"a breaker", (uint64_t)KEY_BREAKER << 56 | 13, true},
    {"sums of a day", (uint64_t)KEY_LEDGER << 56 | 13, true},
    {"a quota", (uint64_t)KEY_QUOTA << 56 | 13, true},
    {"a session", (uint64_t)KEY_STICKY << 56 | 13, true},
    {"a model on a channel", (uint64_t)KEY_TARGET << 56 | 13, true},
    {"the kind of a session's work", (uint64_t)KEY_TASK << 56 | 13, true},
    {"prices", (uint64_t)KEY_PRICE << 56 | 1, false},
    {"who waits", (uint64_t)KEY_QUEUE << 56 | 1, false},
    {"a job", (uint64_t)KEY_JOB << 56 | 1, false},
    {"a lease", (uint64_t)KEY_SLOT << 56 | 1, false},
    {"a cursor", (uint64_t)KEY_CURSOR << 56 | 1, false},
    {"a kind that nobody knows", UINT64_C(200) << 56 | 1, false},
};
#define FATES (sizeof fates / sizeof *fates)

static struct text
text_of(const struct fate *fate)
{
	struct text text = {.key = fate->key, .n = 100};

	snprintf((char *)text.bytes, sizeof text.bytes, "%s", fate->what);
	return text;
}

/* A child that leaves without env_close(), as one that was killed. */
static int
put_and_save(void *arg)
{
	struct env *env = store_dir_open(arg);
	struct book_report report;

	for (size_t i = 0; i < FATES; i++) {
		struct text text = text_of(&fates[i]);

		if (env_update(env, text_put, &text) != STORE_OK)
			return 1;
	}
	return book_save(env, &report) != STORE_OK || report.rows == 0;
}

static void
kinds_come_back(void **state)
{
	struct env *env;

	assert_int_equal(child_end(child_start(put_and_save, *state)), 0);
	store_reboot(*state);
	env = store_dir_open(*state);
	assert_string_not_equal(env_epoch(env)->aside, "");
	for (size_t i = 0; i < FATES; i++) {
		struct text want = text_of(&fates[i]), got = {.key = want.key};
		enum store_rc rc = env_view(env, text_get, &got);

		if ((rc == STORE_OK) != fates[i].saved)
			fail_msg("%s: got %d", fates[i].what, (int)rc);
		if (rc == STORE_OK &&
		    (got.n != want.n || memcmp(got.bytes, want.bytes, want.n) != 0))
			fail_msg("%s: other bytes", fates[i].what);
	}
	env_close(&env);
}

static const struct account_ref ref = {0, 40};

static enum store_rc
put_numbers(struct txn *txn, void *arg)
{
	struct account_row row = {.flags = ACCOUNT_DISABLED | ACCOUNT_PICKED,
	    .success = 7,
	    .picked_txn = 1000,
	    .failed_txn = 2000,
	    .cool_txn = 3000,
	    .cool_until_ms = NOW + 5000,
	    .credits_micros = 12};
	struct cooldown_pair pair = {.row = {.until_ms = NOW + 1, .set_txn = 4000}, .model = "m"};
	struct journal_row event = {.level = JOURNAL_WARN, .cause = "breaker"};
	enum store_rc rc = account_put(txn, ref, &row);

	(void)arg;
	if (rc == STORE_OK)
		rc = cooldown_put(txn, ref, &pair);
	for (int i = 0; i < 3 && rc == STORE_OK; i++)
		rc = journal_add(txn, &event);
	return rc == STORE_OK ? tally_add(txn, TALLY_CANCELLED, 9) : rc;
}

static enum store_rc
put_another_pair(struct txn *txn, void *arg)
{
	struct cooldown_pair pair = {.row = {.until_ms = NOW + 1}, .model = "m2"};

	(void)arg;
	return cooldown_put(txn, ref, &pair);
}

/* With the hard facts goes the counter of pairs, but not the pair. */
static int
save_numbers(void *arg)
{
	struct env *env = store_dir_open(arg);

	return env_update(env, put_numbers, NULL) != STORE_OK || store_save(env) != STORE_OK ||
	       env_update(env, put_another_pair, NULL) != STORE_OK ||
	       store_save_now(env, &ref, 1) != STORE_OK;
}

static enum store_rc
check_numbers(struct txn *txn, void *arg)
{
	struct account_row row;
	struct cooldown_pair pair;
	uint64_t value[3];
	static const enum tally which[] = {TALLY_CANCELLED, TALLY_PAIRS, TALLY_EVENTS};

	(void)arg;
	assert_int_equal(account_get(txn, ref, &row), STORE_OK);
	assert_int_equal(row.flags, ACCOUNT_DISABLED | ACCOUNT_PICKED);
	assert_int_equal(row.success, 7);
	assert_int_equal(row.cool_until_ms, NOW + 5000);
	assert_int_equal(row.credits_micros, 12);
	assert_int_equal(row.picked_txn | row.failed_txn | row.cool_txn, 0);
	assert_int_equal(cooldown_get(txn, ref, "m", &pair), STORE_OK);
	assert_int_equal(pair.row.until_ms, NOW + 1);
	assert_int_equal(pair.row.set_txn, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tally_get(txn, which[i], &value[i]), STORE_OK);
	assert_int_equal(value[0], 9);
	assert_int_equal(value[1], 1);
	assert_int_equal(value[2], 3);
	/* the old numbers would lie in the future of the new `live` */
	assert_true(txn_number(txn) < 1000);
	return STORE_OK;
}

static void
numbers_of_transactions_begin_anew(void **state)
{
	struct env *env;

	assert_int_equal(child_end(child_start(save_numbers, *state)), 0);
	store_reboot(*state);
	env = store_dir_open(*state);
	assert_int_equal(env_update(env, check_numbers, NULL), STORE_OK);
	env_close(&env);
}

/* ---- what a save finds ---- */

static enum store_rc
many_events(struct txn *txn, void *arg)
{
	struct journal_row event = {.level = JOURNAL_INFO};
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < *(unsigned *)arg && rc == STORE_OK; i++)
		rc = journal_add(txn, &event);
	return rc;
}

struct count {
	unsigned n;
};

static enum store_rc
count_row(uint64_t key, struct env_bytes row, void *arg)
{
	struct count *count = arg;

	(void)key, (void)row;
	count->n++;
	return STORE_OK;
}

static enum store_rc
count_events(struct txn *txn, void *arg)
{
	*(struct count *)arg = (struct count){0};
	return txn_walk(txn, key_of(KEY_EVENT, 0, 0), key_last_of(KEY_EVENT), count_row, arg);
}

static unsigned
saved_rows(struct env *env)
{
	struct book_report report;

	assert_int_equal(book_save(env, &report), STORE_OK);
	return report.rows;
}

static void
a_save_finds_what_differs(void **state)
{
	unsigned accounts = 100, events = JOURNAL_KEEP - 50;
	struct env *env = store_dir_open(*state);
	struct text note = {key_of(KEY_NOTE, 0, 3), 10, "note"},
	            slot = {key_of(KEY_SLOT, 0, 3), 10, "s"};
	struct store_use use = {5, 3};
	struct count count;

	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	/* counters of channels and names: one each, and their own; 4 shards; totals */
	assert_int_equal(saved_rows(env), 2 + 1 + 100 + 4 + 100);
	assert_int_equal(saved_rows(env), 0);
	assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	assert_int_equal(saved_rows(env), 1 + 3);
	assert_int_equal(env_update(env, text_put, &note), STORE_OK);
	assert_int_equal(saved_rows(env), 1);
	note.n = 9;
	assert_int_equal(env_update(env, text_put, &note), STORE_OK);
	assert_int_equal(saved_rows(env), 1);
	assert_int_equal(env_update(env, text_del, &note), STORE_OK);
	assert_int_equal(saved_rows(env), 1);
	assert_int_equal(env_update(env, text_put, &slot), STORE_OK);
	assert_int_equal(saved_rows(env), 0);
	/* the journal: more rows than one batch, and old ones that go */
	assert_int_equal(env_update(env, many_events, &events), STORE_OK);
	assert_int_equal(saved_rows(env), events + 1);
	events = 60;
	assert_int_equal(env_update(env, many_events, &events), STORE_OK);
	assert_int_equal(saved_rows(env), 60 + 10 + 1);
	assert_int_equal(env_book_view(env, count_events, &count), STORE_OK);
	assert_int_equal(count.n, JOURNAL_KEEP);
	assert_int_equal(saved_rows(env), 0);
	env_close(&env);
}

static enum store_rc
calls_of(struct txn *txn, void *arg)
{
	struct text *text = arg;
	struct account_stat stat;
	enum store_rc rc =
	    account_stat_get(txn, (struct account_ref){0, (uint32_t)text->key}, &stat);

	text->n = (size_t)stat.calls;
	return rc;
}

static size_t
calls_in_book(struct env *env, uint32_t number)
{
	struct text text = {.key = number};

	return env_book_view(env, calls_of, &text) == STORE_OK ? text.n : 999;
}

static void
hard_facts_alone(void **state)
{
	unsigned accounts = 100;
	struct account_ref refs[] = {{0, 5}, {0, 70}};
	struct env *env = store_dir_open(*state);
	struct store_use use = {0, 100};

	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	assert_int_equal(store_save_now(env, refs, 1), STORE_OK); /* no book yet: everything */
	assert_int_equal(calls_in_book(env, 99), 0);
	assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	assert_int_equal(store_save_now(env, refs, 2), STORE_OK);
	assert_int_equal(calls_in_book(env, 5), 1);
	assert_int_equal(calls_in_book(env, 70), 1);
	assert_int_equal(calls_in_book(env, 6), 0);
	accounts = 101; /* a name that is not in the book yet */
	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	assert_int_equal(store_save_now(env, refs, 1), STORE_OK);
	assert_int_equal(calls_in_book(env, 6), 1);
	assert_int_equal(calls_in_book(env, 100), 0);
	/* nothing about an account */
	assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	assert_int_equal(store_save_now(env, NULL, 0), STORE_OK);
	assert_int_equal(calls_in_book(env, 6), 1);
	env_close(&env);
}

/* What is at the border of days, and far in the past. */
static void
days_of_the_ledger(void **state)
{
	static const struct {
		const char *what;
		uint16_t day;
		unsigned rows;
	} steps[] = {
	    {"the first day", 100, 1},
	    {"the same", 100, 1},
	    {"a new one, and the day before goes on", 101, 2},
	    {"three days later", 104, 1},
	    {"one long past: the slice finds it", 50, 1},
	};
	struct env *env = store_dir_open(*state);
	struct text text = {.n = 40};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		unsigned rows;

		text.key = key_of(KEY_LEDGER, steps[i].day, 7);
		text.bytes[0] = (unsigned char)(i + 1);
		assert_int_equal(env_update(env, text_put, &text), STORE_OK);
		if (steps[i].rows == 2) {
			text.key = key_of(KEY_LEDGER, (uint16_t)(steps[i].day - 1), 7);
			assert_int_equal(env_update(env, text_put, &text), STORE_OK);
		}
		rows = saved_rows(env);
		if (rows != steps[i].rows)
			fail_msg("%s: %u rows, want %u", steps[i].what, rows, steps[i].rows);
	}
	/* the oldest days go */
	for (uint16_t day = 50; day <= 100; day += 50) {
		text.key = key_of(KEY_LEDGER, day, 7);
		assert_int_equal(env_update(env, text_del, &text), STORE_OK);
		assert_int_equal(saved_rows(env), 1);
	}
	env_close(&env);
}

/* ---- when it cannot be done ---- */

struct shared {
	const struct store_dir *dir;
	volatile int ready;
};

static int
hold_lock(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);

	if (env == NULL || env_book_lock(env, 0) != STORE_OK)
		return 1;
	s->ready = 1;
	for (;;)
		pause();
}

static void
a_stopped_saver(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct env *env = store_dir_open(*state);
	struct text note = {key_of(KEY_NOTE, 0, 1), 1, "n"};
	struct book_report report;
	double t;
	pid_t pid;

	s->dir = *state;
	assert_int_equal(book_save(env, &report), STORE_OK);
	pid = child_start(hold_lock, s);
	assert_true(wait_flag(&s->ready));
	kill(pid, SIGSTOP);
	assert_int_equal(env_update(env, text_put, &note), STORE_OK);
	t = seconds_now();
	assert_int_equal(book_save(env, &report), STORE_BUSY);
	t = seconds_now() - t;
	assert_true(t > 1.8 && t < 3.5 && report.news);
	assert_non_null(strstr(env_error(env), "stopped"));
	t = seconds_now();
	assert_int_equal(store_save_now(env, NULL, 0), STORE_BUSY);
	assert_true(seconds_now() - t < 1);
	/* requests do not notice */
	assert_int_equal(env_update(env, text_put, &note), STORE_OK);
	kill(pid, SIGKILL);
	child_end(pid);
	assert_int_equal(book_save(env, &report), STORE_OK);
	assert_true(report.news && report.rows == 1);
	env_close(&env);
}

/* Slowly, with no moment between in which another has a chance. */
static int
hold_again_and_again(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);

	for (int i = 0; i < 8; i++) {
		if (env == NULL || env_book_lock(env, 0) != STORE_OK)
			return 1;
		s->ready = 1;
		usleep(80000);
		env_book_unlock(env);
	}
	env_drop(&env);
	return 0;
}

static void
a_queue_of_savers(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct env *env = store_dir_open(*state);
	pid_t pid;

	s->dir = *state;
	pid = child_start(hold_again_and_again, s);
	assert_true(wait_flag(&s->ready));
	assert_int_equal(env_book_lock(env, 0), STORE_BUSY);
	assert_int_equal(env_book_lock(env, 300), STORE_OK);
	env_book_unlock(env);
	child_end(pid);
	env_close(&env);
}

#define READERS 512 /* of the lock file */

static int
take_all_readers(void *arg)
{
	struct shared *s = arg;
	MDB_txn *txn;
	MDB_env *mdb;

	if (mdb_env_create(&mdb) != 0 || mdb_env_set_maxreaders(mdb, READERS) != 0 ||
	    mdb_env_open(mdb, store_dir_file(s->dir, "live"), MDB_NOTLS, 0600) != 0)
		return 1;
	while (mdb_txn_begin(mdb, NULL, MDB_RDONLY, &txn) == 0)
		;
	s->ready = 1;
	for (;;)
		pause();
}

/* Without a place among the readers (or with another PID namespace's process in ours) the look takes the writer's lock. */
static void
no_reader_is_free(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct env *env = store_dir_open(*state);
	struct store_use use = {0, 50};
	unsigned accounts = 50;
	pid_t pid;

	s->dir = *state;
	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	saved_rows(env);
	pid = child_start(take_all_readers, s);
	assert_true(wait_flag(&s->ready));
	assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	assert_int_equal(saved_rows(env), 50 + 2);
	assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	kill(pid, SIGKILL);
	child_end(pid);
	assert_int_equal(saved_rows(env), 50 + 2);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(kinds_come_back),
	    WITH_DIR(numbers_of_transactions_begin_anew),
	    WITH_DIR(a_save_finds_what_differs),
	    WITH_DIR(hard_facts_alone),
	    WITH_DIR(days_of_the_ledger),
	    WITH_DIR(a_stopped_saver),
	    WITH_DIR(a_queue_of_savers),
	    WITH_DIR(no_reader_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
