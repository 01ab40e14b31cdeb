#include "store/kept.h"

#include "store/book.h"

#include "lib/store_dir.h"

#define NOW INT64_C(1700000000000)
#define TEXT_BYTES 300000

/* Texts of one client in a store of `max_bytes`, of which they may have `most`. */
struct texts {
	unsigned from, n;
	uint64_t most;
};

static struct env *
small_store(const struct store_dir *dir, uint64_t max_bytes)
{
	struct store_why why = {""};
	struct book_report report;
	struct env *env;

	assert_int_equal(env_open(dir->path, max_bytes, true, &env, &why), STORE_OK);
	assert_int_equal(book_save(env, &report), STORE_OK);
	return env;
}

static enum store_rc
put_one(struct txn *book, void *arg)
{
	const struct texts *texts = arg;
	static char text[TEXT_BYTES];
	char name[24];
	struct kept_limits limits = {{NOW}, 1000000, texts->most};
	struct kept_key key = {{"c", 1}, {name, 0}};

	snprintf(name, sizeof name, "resp_%u", texts->from);
	key.name.n = strlen(name);
	return kept_put(book, &key, (struct env_bytes){text, sizeof text}, &limits);
}

static enum store_rc
put_all(struct env *env, struct texts texts)
{
	enum store_rc rc = STORE_OK;

	for (; texts.n > 0 && rc == STORE_OK; texts.n--, texts.from++)
		rc = env_book_update(env, put_one, &texts);
	return rc;
}

/* ---- a process that ends while it reads ---- */

static enum store_rc
die_here(struct txn *book, void *arg)
{
	struct shelf_sum sum;

	(void)arg;
	if (kept_sums(book, &sum) == STORE_OK)
		raise(SIGKILL);
	return STORE_BAD;
}

static int
die_reading(void *dir)
{
	struct store_why why = {""};
	struct env *env;

	if (env_open(((struct store_dir *)dir)->path, 16 * MIB, true, &env, &why) == STORE_OK)
		(void)!env_book_view(env, die_here, NULL);
	return 1;
}

/* What it saw is nobody's any more: the pages are used again. */
static void
dead_reader(void **state)
{
	struct env *env = small_store(*state, 16 * MIB);
	struct book_report report;
	enum store_rc rc;

	assert_int_equal(put_all(env, (struct texts){0, 20, 4 * MIB}), STORE_OK);
	assert_int_equal(child_end(child_start(die_reading, *state)), 128 + SIGKILL);
	rc = put_all(env, (struct texts){20, 150, 4 * MIB});
	if (rc != STORE_OK)
		fail_msg("%d: %s", rc, env_error(env));
	assert_int_equal(book_save_all(env, &report), STORE_OK);
	env_close(&env);
}

/* ---- what must be saved ---- */

static enum store_rc
put_notes(struct txn *live, void *arg)
{
	const unsigned *n = arg;
	static const char note[1000];
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < *n && rc == STORE_OK; i++)
		rc = txn_put(live, key_of(KEY_NOTE, 1, i), note, sizeof note);
	return rc;
}

/* A store that is more than half full of other things, when kept texts have their half already. */
static void
hard_facts_first(void **state)
{
	struct env *env = small_store(*state, 8 * MIB);
	unsigned n = 4000; /* 5.3 MiB: three to a page */
	struct book_report report = {.rows = 0};
	enum store_rc rc;

	assert_int_equal(put_all(env, (struct texts){0, 40, 4 * MIB}), STORE_OK);
	assert_int_equal(env_update(env, put_notes, &n), STORE_OK);
	rc = book_save_all(env, &report);
	if (rc != STORE_OK)
		fail_msg("%d: %s", rc, env_error(env));
	assert_true(report.rows >= n);
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(dead_reader, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(hard_facts_first, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
