#include "store/map.h"

#include "lib/store_count.h"

#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#	define UNDER_ASAN 1
#else
#	define UNDER_ASAN 0
#endif

struct shared {
	const struct store_dir *dir;
	volatile int ready, go;
};

static struct shared *
shared_new(const struct store_dir *dir)
{
	struct shared *s = shared_bytes(sizeof *s);

	s->dir = dir;
	return s;
}

struct bulk {
	uint64_t first;
	unsigned n, runs;
};

static enum store_rc
put_bulk(struct txn *txn, void *arg)
{
	static char block[64 << 10];
	struct bulk *bulk = arg;
	enum store_rc rc = STORE_OK;

	bulk->runs++;
	for (unsigned i = 0; i < bulk->n && rc == STORE_OK; i++)
		rc = txn_put(txn, key_n(bulk->first + i), block, sizeof block);
	return rc;
}

static int
wait_and_count(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct env_size size;

	if (env == NULL || env_size(env, &size) != STORE_OK || size.map_bytes != 64 * MIB)
		return 1;
	s->ready = 1;
	if (!wait_flag(&s->go))
		return 2;
	if (up(env, key_n(1)) != STORE_OK || seen_by(env, key_n(1)) != 2)
		return 3;
	if (env_size(env, &size) != STORE_OK || size.map_bytes != 128 * MIB)
		return 4;
	env_close(&env);
	return 0;
}

static void
growth_is_seen(void **state)
{
	struct shared *s = shared_new(*state);
	struct bulk bulk = {.first = 1000, .n = 200};
	struct env_size size;
	unsigned calls = 0;
	struct env *env;
	pid_t pid;

	pid = child_start(wait_and_count, s);
	assert_true(wait_flag(&s->ready));
	env = store_dir_open(*state);
	assert_int_equal(up(env, key_n(1)), STORE_OK);
	for (; bulk.first < 2200; bulk.first += bulk.n, calls++)
		assert_int_equal(env_update(env, put_bulk, &bulk), STORE_OK);
	assert_int_equal(bulk.runs, calls + 1); /* one ran again, in a larger map */
	assert_int_equal(env_size(env, &size), STORE_OK);
	assert_int_equal(size.map_bytes, 128 * MIB);
	assert_true(size.used_bytes > 75 * MIB && size.used_bytes < 90 * MIB);
	s->go = 1;
	assert_int_equal(child_end(pid), 0);
	assert_int_equal(seen_by(env, key_n(1)), 2);
	env_close(&env);
	env = store_dir_open(*state);
	assert_int_equal(env_size(env, &size), STORE_OK);
	assert_int_equal(size.map_bytes, 128 * MIB);
	env_close(&env);
}

static void
full_is_told(void **state)
{
	const struct store_dir *dir = *state;
	struct bulk bulk = {.first = 1000, .n = 8};
	enum store_rc rc = STORE_OK;
	struct store_why why;
	struct env *env = NULL;

	assert_int_equal(env_open(dir->path, 2 * MIB, true, &env, &why), STORE_OK);
	assert_int_equal(up(env, key_n(1)), STORE_OK);
	for (int i = 0; i < 10 && rc == STORE_OK; i++, bulk.first += bulk.n)
		rc = env_update(env, put_bulk, &bulk);
	assert_int_equal(rc, STORE_FULL);
	assert_non_null(strstr(env_error(env), "store.max_size"));
	assert_int_equal(seen_by(env, key_n(1)), 1);
	env_close(&env);
	assert_int_equal(env_open(dir->path, 8 * MIB, true, &env, &why), STORE_OK);
	assert_int_equal(env_update(env, put_bulk, &bulk), STORE_OK);
	env_close(&env);
}

static int
small_address_space(void *arg)
{
	const struct store_dir *dir = arg;
	struct store_why why = {""};
	struct env *env = NULL;

	if (setrlimit(RLIMIT_AS, &(struct rlimit){40 * MIB, 40 * MIB}) != 0)
		return 1;
	if (env_open(dir->path, TEST_MAX_BYTES, true, &env, &why) != STORE_IO)
		return 2;
	return strstr(why.text, "ulimit -v") == NULL;
}

/* Fewer addresses than a map wants: a smaller one, which follows what the others write as far as it can. */
static int
small_map(void *arg)
{
	struct shared *s = arg;
	struct store_why why = {""};
	struct env_size size;
	struct env *env = NULL;

	if (setrlimit(RLIMIT_AS, &(struct rlimit){80 * MIB, 80 * MIB}) != 0)
		return 1;
	if (env_open(s->dir->path, TEST_MAX_BYTES, true, &env, &why) != STORE_OK ||
	    strstr(why.text, "ulimit -v") == NULL)
		return 2;
	if (env_size(env, &size) != STORE_OK || size.map_bytes < MIB || size.map_bytes > 40 * MIB)
		return 3;
	if (up(env, key_n(1)) != STORE_OK)
		return 4;
	s->ready = 1;
	if (!wait_flag(&s->go))
		return 5;
	if (seen_by(env, key_n(1)) != 2 || up(env, key_n(1)) != STORE_OK)
		return 6;
	if (env_size(env, &size) != STORE_OK || size.map_bytes < 30 * MIB)
		return 7;
	env_close(&env);
	return 0;
}

static void
maps_may_differ(void **state)
{
	struct shared *s = shared_new(*state);
	struct bulk bulk = {.first = 1000, .n = 480}; /* 30 MiB and their branches */
	struct env_size size;
	struct env *env;
	pid_t pid;

	if (UNDER_ASAN)
		skip();
	pid = child_start(small_map, s);
	assert_true(wait_flag(&s->ready));
	env = store_dir_open(*state);
	assert_int_equal(env_size(env, &size), STORE_OK);
	assert_int_equal(
	    size.map_bytes, 64 * MIB); /* the small one of the child is not inherited */
	assert_int_equal(up(env, key_n(1)), STORE_OK);
	assert_int_equal(env_update(env, put_bulk, &bulk), STORE_OK);
	s->go = 1;
	assert_int_equal(child_end(pid), 0);
	assert_int_equal(seen_by(env, key_n(1)), 3);
	env_close(&env);
}

/* Growing must not lose the map that there is. */
static int
small_growth(void *arg)
{
	const struct store_dir *dir = arg;
	struct bulk bulk = {.first = 5000, .n = 50};
	struct env *env = store_dir_open(dir);
	enum store_rc rc = STORE_OK;

	if (env == NULL || setrlimit(RLIMIT_AS, &(struct rlimit){120 * MIB, 120 * MIB}) != 0)
		return 1;
	for (int i = 0; i < 30 && rc == STORE_OK; i++, bulk.first += bulk.n)
		rc = env_update(env, put_bulk, &bulk);
	if (rc != STORE_IO || strstr(env_error(env), "MiB: raise 'ulimit -v'") == NULL)
		return 2;
	if (up(env, key_n(2)) != STORE_OK || seen_by(env, key_n(2)) != 1)
		return 3;
	env_close(&env);
	return 0;
}

static int
small_files(void *arg)
{
	const struct store_dir *dir = arg;
	struct bulk bulk = {.first = 1000, .n = 64};
	struct env *env = store_dir_open(dir);
	enum store_rc rc = STORE_OK;

	signal(SIGXFSZ, SIG_IGN);
	if (env == NULL || setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 * MIB, 10 * MIB}) != 0 ||
	    up(env, key_n(1)) != STORE_OK)
		return 1;
	for (int i = 0; i < 3; i++, bulk.first += bulk.n)
		rc = env_update(env, put_bulk, &bulk);
	if (rc != STORE_IO || strstr(env_error(env), "ulimit -f") == NULL)
		return 2;
	if (up(env, key_n(1)) != STORE_OK || seen_by(env, key_n(1)) != 2)
		return 3;
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){10 * MIB, 10 * MIB}) != 0)
		return 4;
	if (env_update(env, put_bulk, &bulk) != STORE_OK)
		return 5; /* room again: it goes on by itself */
	env_close(&env);
	return 0;
}

static void
process_limits(void **state)
{
	assert_int_equal(child_end(child_start(small_files, *state)), 0);
	if (UNDER_ASAN)
		skip();
	assert_int_equal(child_end(child_start(small_growth, *state)), 0);
	assert_int_equal(child_end(child_start(small_address_space, *state)), 0);
}

static enum store_rc
put_and_remove(struct txn *txn, void *arg)
{
	char row[1900] = "x";
	unsigned n = *(unsigned *)arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < n && rc == STORE_OK; i++)
		rc = txn_put(txn, key_n(100 + i), row, sizeof row);
	for (unsigned i = n; i-- > 0 && rc == STORE_OK;)
		rc = txn_del(txn, key_n(100 + i));
	return rc;
}

/* Pages that one transaction adds and frees are never written, yet the head counts them. */
static void
whole_file_never_looks_cut(void **state)
{
	const struct store_dir *dir = *state;

	for (unsigned n = 2; n < 40; n++) {
		struct env *env = store_dir_open(dir);

		assert_non_null(env);
		assert_int_equal(up(env, key_n(n)), STORE_OK);
		assert_int_equal(env_update(env, put_and_remove, &n), STORE_OK);
		env_close(&env);
	}
}

static void
replaced_files(void **state)
{
	struct env *env = store_dir_open(*state);

	assert_int_equal(env_check(env), STORE_OK);
	unlink(store_dir_file(*state, "live/lock.mdb"));
	assert_int_equal(env_check(env), STORE_BAD);
	assert_int_equal(up(env, key_n(1)), STORE_BAD);
	assert_non_null(strstr(env_error(env), "replaced"));
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(growth_is_seen),
	    WITH_DIR(full_is_told),
	    WITH_DIR(process_limits),
	    WITH_DIR(maps_may_differ),
	    WITH_DIR(whole_file_never_looks_cut),
	    WITH_DIR(replaced_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
