/*
 * test_env_open - which stores are opened, which are refused, and what the next boot finds.
 */
#include "store/env.h"

#include "lib/store_count.h"

/* ---- refusals: what is done to a good, closed store without a `book`, and what opening must say ---- */

static void
do_chmod(const struct store_dir *dir)
{
	chmod(dir->path, 0750);
}

static void
do_chown(const struct store_dir *dir)
{
	if (chown(dir->path, 12345, (gid_t)-1) != 0)
		skip();
}

static void
do_empty(const struct store_dir *dir)
{
	assert_int_equal(truncate(store_dir_file(dir, "live/data.mdb"), 0), 0);
}

static void
do_missing(const struct store_dir *dir)
{
	unlink(store_dir_file(dir, "live/data.mdb"));
}

static void
do_cut(const struct store_dir *dir)
{
	assert_int_equal(truncate(store_dir_file(dir, "live/data.mdb"), 3 * 4096), 0);
}

static void
do_scratch(const struct store_dir *dir)
{
	int fd = open(store_dir_file(dir, "live/data.mdb"), O_WRONLY);

	assert_int_equal(pwrite(fd, "garbage", 7, 16), 7);
	close(fd);
}

static void
do_other_uuid(const struct store_dir *dir)
{
	int fd = open(store_dir_file(dir, "epoch"), O_WRONLY);

	assert_int_equal(pwrite(fd, "zzzzzzzz", 8, 14), 8);
	assert_int_equal(pwrite(fd, "00000000", 8, 14), 8);
	close(fd);
}

static void
do_other_format(const struct store_dir *dir)
{
	int fd = open(store_dir_file(dir, "epoch"), O_WRONLY);

	assert_int_equal(pwrite(fd, "7", 1, 7), 1);
	close(fd);
}

static void
do_nothing(const struct store_dir *dir)
{
	(void)dir;
}

static void
do_remove(const struct store_dir *dir)
{
	nftw(dir->path, store_dir_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static void
refusals(void **state)
{
	static const struct {
		const char *what;
		void (*spoil)(const struct store_dir *dir);
		enum store_rc want;
		const char *says;
	} rows[] = {
	    {"untouched", do_nothing, STORE_OK, ""},
	    {"readable by the group", do_chmod, STORE_BAD, "chmod 700"},
	    {"another user's", do_chown, STORE_BAD, "chown"},
	    {"empty data file", do_empty, STORE_BAD, "empty"},
	    {"no data file", do_missing, STORE_BAD, "missing"},
	    {"cut data file", do_cut, STORE_BAD, "cut"},
	    {"damaged head", do_scratch, STORE_BAD, "damaged"},
	    {"another store's live", do_other_uuid, STORE_BAD, "another store"},
	    {"another format", do_other_format, STORE_BAD, "format 7"},
	    {"removed", do_remove, STORE_NONE, "start the gateway"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct store_why why = {""};
		struct store_dir *dir;
		struct env *env;
		enum store_rc rc;
		void *p;

		store_dir_setup(&p);
		dir = p;
		env = store_dir_open(dir);
		for (uint64_t k = 0; k < 200; k++)
			assert_int_equal(up(env, key_n(k)), STORE_OK);
		env_close(&env);
		nftw(store_dir_file(dir, "book"), store_dir_unlink, 16, FTW_DEPTH | FTW_PHYS);
		rows[i].spoil(dir);
		rc = env_open(dir->path, TEST_MAX_BYTES, false, &env, &why);
		if (rc != rows[i].want || strstr(why.text, rows[i].says) == NULL)
			fail_msg("%s: got %d '%s', want %d '%s'", rows[i].what, (int)rc, why.text,
			    (int)rows[i].want, rows[i].says);
		assert_true((env != NULL) == (rc == STORE_OK));
		env_close(&env);
		store_dir_teardown(&p);
	}
}

/* ---- the end and the next boot ---- */

static void
boot_change(const struct store_dir *dir)
{
	char text[300] = "", *at;
	FILE *f = fopen(store_dir_file(dir, "epoch"), "r+");

	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	at = strstr(text, "boot ");
	fseek(f, at - text + 5, SEEK_SET);
	fputs("00000000", f);
	fclose(f);
}

static int
use_and_die(void *arg)
{
	struct env *env = store_dir_open(arg);

	if (env == NULL || up(env, key_n(1)) != STORE_OK)
		return 1;
	raise(SIGKILL);
	return 2;
}

static int
use_and_close(void *arg)
{
	struct env *env = store_dir_open(arg);

	if (env == NULL || up(env, key_n(1)) != STORE_OK)
		return 1;
	env_close(&env);
	return 0;
}

static int
use_and_drop(void *arg)
{
	struct env *env = store_dir_open(arg);

	if (env == NULL || up(env, key_n(1)) != STORE_OK)
		return 1;
	env_drop(&env);
	return env == NULL ? 0 : 1;
}

static void
ends_and_boots(void **state)
{
	static const struct {
		const char *what;
		int (*end)(void *arg);
		bool reboot;
		bool kept;
	} rows[] = {
	    {"killed, same boot", use_and_die, false, true},
	    {"closed, same boot", use_and_close, false, true},
	    {"dropped, same boot", use_and_drop, false, true},
	    {"dropped, reboot", use_and_drop, true, false},
	    {"killed, reboot", use_and_die, true, false},
	    {"closed, reboot", use_and_close, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct store_why why = {""};
		struct env *env = NULL;
		void *dir;
		bool kept;

		store_dir_setup(&dir);
		child_end(child_start(rows[i].end, dir));
		if (rows[i].reboot)
			boot_change(dir);
		assert_int_equal(
		    env_open(((struct store_dir *)dir)->path, TEST_MAX_BYTES, false, &env, &why),
		    STORE_OK);
		kept = seen_by(env, key_n(1)) == 1;
		if (kept != rows[i].kept || (env_epoch(env)->aside[0] != '\0') == kept ||
		    (why.text[0] != '\0') == kept)
			fail_msg("%s: kept %d '%s'", rows[i].what, kept, why.text);
		env_close(&env);
		store_dir_teardown(&dir);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(ends_and_boots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
