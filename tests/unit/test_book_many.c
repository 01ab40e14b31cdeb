/*
 * test_book_many - saves of very many rows, and how long they take (printed only).
 */
#include "store/book.h"

#include "lib/store_boot.h"
#include "store/journal.h"
#include "store/sticky.h"
#include "store/tally.h"

#define NOW 1767607200000LL

static unsigned
saved_rows(struct env *env)
{
	struct book_report report;

	assert_int_equal(book_save(env, &report), STORE_OK);
	return report.rows;
}

/* ---- many rows ---- */

#define SESSIONS 250000u

static struct sticky_row
session_of(unsigned n)
{
	return (struct sticky_row){
	    .version = 1, .channel = 0, .account = n % 600, .expires_ms = NOW};
}

static uint64_t
session_key(unsigned n)
{
	return key_of(KEY_STICKY, 0, (uint64_t)(n / 4) << 8 | n % 4);
}

static enum store_rc
put_sessions(struct txn *txn, void *arg)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < *(unsigned *)arg && rc == STORE_OK; i++) {
		struct sticky_row row = session_of(i);

		rc = txn_put(txn, session_key(i), &row, sizeof row);
	}
	return rc;
}

/* One session of each thousand is used. */
static enum store_rc
use_sessions(struct txn *txn, void *arg)
{
	enum store_rc rc = STORE_OK;

	(void)arg;
	for (unsigned i = 0; i < SESSIONS && rc == STORE_OK; i += 1000) {
		struct sticky_row row = session_of(i);

		row.expires_ms++;
		rc = txn_put(txn, session_key(i), &row, sizeof row);
	}
	return rc;
}

/* A row of today's ledger: also saved while the slices are far away from it. */
static enum store_rc
put_today(struct txn *txn, void *arg)
{
	return txn_put(txn, key_of(KEY_LEDGER, 100, 1), arg, sizeof(unsigned));
}

static enum store_rc
get_today(struct txn *txn, void *arg)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_LEDGER, 100, 1), &bytes);

	if (rc == STORE_OK)
		memcpy(arg, bytes.p, sizeof(unsigned));
	return rc;
}

static bool
today_is_saved(struct env *env, unsigned n)
{
	unsigned got = 0;

	return env_update(env, put_today, &n) == STORE_OK && store_save(env) == STORE_OK &&
	       env_book_view(env, get_today, &got) == STORE_OK && got == n;
}

static int
save_sessions(void *arg)
{
	struct env *env = store_dir_open(arg);
	unsigned n = SESSIONS, seen = 0, saves = 0, most = 0;
	double t, longest = 0;

	if (env_update(env, put_sessions, &n) != STORE_OK || saved_rows(env) != SESSIONS ||
	    saved_rows(env) != 0 || env_update(env, use_sessions, NULL) != STORE_OK)
		return 1;
	for (; seen < SESSIONS / 1000 && saves < 10; saves++) {
		unsigned rows;

		t = seconds_now();
		rows = saved_rows(env);
		t = seconds_now() - t;
		longest = t > longest ? t : longest;
		seen += rows;
		most = rows > most ? rows : most;
	}
	for (unsigned i = 1; i < 6; i++)
		if (!today_is_saved(env, i))
			return 2;
	fprintf(stderr, "%u sessions, %u used: saved in %u slices, at most %.1f ms each\n",
	    SESSIONS, seen, saves, longest * 1e3);
	return !(seen == SESSIONS / 1000 && saves >= 3 && saves <= 4 && most <= 101);
}

static enum store_rc
check_sessions(struct txn *txn, void *arg)
{
	struct env_bytes bytes;
	uint32_t counts[STICKY_SHARD], sum = 0;
	uint64_t sessions;

	(void)arg;
	for (uint32_t shard = 0; shard < 2; shard++) {
		assert_int_equal(txn_get(txn, key_of(KEY_BOUND, 0, shard), &bytes), STORE_OK);
		memcpy(counts, bytes.p, bytes.n);
		for (unsigned i = 0; i < bytes.n / sizeof *counts; i++)
			sum += counts[i];
	}
	assert_int_equal(sum, SESSIONS);
	assert_int_equal(tally_get(txn, TALLY_SESSIONS, &sessions), STORE_OK);
	assert_int_equal(sessions, SESSIONS);
	return STORE_OK;
}

static void
sessions_are_saved_in_slices(void **state)
{
	struct env *env;

	assert_int_equal(child_end(child_start(save_sessions, *state)), 0);
	store_reboot(*state);
	env = store_dir_open(*state);
	assert_int_equal(env_view(env, check_sessions, NULL), STORE_OK);
	env_close(&env);
}

static enum store_rc
many_events(struct txn *txn, void *arg)
{
	struct journal_row event = {.level = JOURNAL_INFO};
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < *(unsigned *)arg && rc == STORE_OK; i++)
		rc = journal_add(txn, &event);
	return rc;
}

static double
save_us(struct env *env, unsigned dirty)
{
	struct store_use use = {0, dirty};
	double t;

	if (dirty > 0)
		assert_int_equal(env_update(env, store_settle, &use), STORE_OK);
	t = seconds_now();
	saved_rows(env);
	return (seconds_now() - t) * 1e6;
}

static int
fill_and_save(void *arg)
{
	unsigned accounts = 10000, events = 1000;
	struct env *env = store_dir_open(arg);
	struct store_use use = {5, 1};
	double t, now_us;

	if (env_update(env, store_enrol, &accounts) != STORE_OK ||
	    env_update(env, many_events, &events) != STORE_OK)
		return 1;
	fprintf(stderr, "10,000 accounts: first save %.0f us;", save_us(env, 0));
	for (int i = 0; i < 3; i++)
		save_us(env, 0);
	fprintf(stderr, " then with 0 dirty %.0f,", save_us(env, 0));
	fprintf(stderr, " 100 dirty %.0f,", save_us(env, 100));
	fprintf(stderr, " 10,000 dirty %.0f,", save_us(env, 10000));
	if (env_update(env, store_settle, &use) != STORE_OK)
		return 2;
	t = seconds_now();
	if (store_save_now(env, &(struct account_ref){0, 5}, 1) != STORE_OK)
		return 3;
	now_us = (seconds_now() - t) * 1e6;
	fprintf(stderr, " one hard fact %.0f us\n", now_us);
	return 0;
}

static void
times(void **state)
{
	struct env *env;
	double t;

	assert_int_equal(child_end(child_start(fill_and_save, *state)), 0);
	store_reboot(*state);
	t = seconds_now();
	env = store_dir_open(*state);
	fprintf(stderr, "10,000 accounts: opened, looked through and made anew in %.1f ms\n",
	    (seconds_now() - t) * 1e3);
	assert_string_not_equal(env_epoch(env)->aside, "");
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(sessions_are_saved_in_slices),
	    WITH_DIR(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
