/*
 * test_book_open - what opening makes of a damaged or missing `live` or `book`, and what a save does that cannot write.
 */
#include "store/env.h"

#include "lib/store_boot.h"

#include <sys/mount.h>
#include <sys/resource.h>

#define ACCOUNTS 300

static enum store_rc
get_calls(struct txn *txn, void *arg)
{
	struct account_stat stat;
	enum store_rc rc = account_stat_get(txn, (struct account_ref){0, 7}, &stat);

	*(uint64_t *)arg = stat.calls;
	return rc;
}

/* Of account 7; 999 when it is not there. */
static uint64_t
calls(struct env *env)
{
	uint64_t n;

	return env_view(env, get_calls, &n) == STORE_OK ? n : 999;
}

static enum store_rc
settle(struct env *env)
{
	return env_update(env, store_settle, &(struct store_use){0, ACCOUNTS});
}

/* Make a store with 2 calls in `book` and 3 in `live`, and leave it as a killed process does, or close it. */
static int
use_and_die(void *arg)
{
	struct env *env = store_dir_open(arg);
	unsigned accounts = ACCOUNTS;

	if (env == NULL || env_update(env, store_enrol, &accounts) != STORE_OK)
		return 1;
	for (int i = 0; i < 3; i++)
		if (settle(env) != STORE_OK || (i == 1 && store_save(env) != STORE_OK))
			return 2;
	return 0;
}

static int
use_and_close(void *arg)
{
	struct env *env = store_dir_open(arg);
	unsigned accounts = ACCOUNTS;

	if (env == NULL || env_update(env, store_enrol, &accounts) != STORE_OK)
		return 1;
	for (int i = 0; i < 3; i++)
		if (settle(env) != STORE_OK)
			return 2;
	env_close(&env);
	return 0;
}

/* ---- what may be done to a data file ---- */

static void
spoil_nothing(const struct store_dir *dir, const char *file)
{
	(void)dir, (void)file;
}

static void
spoil_empty(const struct store_dir *dir, const char *file)
{
	assert_int_equal(truncate(store_dir_file(dir, file), 0), 0);
}

static void
spoil_missing(const struct store_dir *dir, const char *file)
{
	unlink(store_dir_file(dir, file));
}

static void
spoil_folder(const struct store_dir *dir, const char *file)
{
	char name[5] = "";

	memcpy(name, file, 4);
	store_dir_remove(dir, name);
}

static void
spoil_cut(const struct store_dir *dir, const char *file)
{
	assert_int_equal(truncate(store_dir_file(dir, file), 5 * 4096), 0);
}

static void
spoil_head(const struct store_dir *dir, const char *file)
{
	store_dir_flip(dir, file, 17, 0xff);
}

/* Every page but the heads gets another number. */
static void
spoil_pages(const struct store_dir *dir, const char *file)
{
	struct stat st;

	assert_int_equal(stat(store_dir_file(dir, file), &st), 0);
	for (off_t at = 2 * 4096; at + 4096 <= st.st_size; at += 4096)
		store_dir_flip(dir, file, at + 1, 0x40);
}

/* A byte inside rows: only a seal tells. */
static void
spoil_rows(const struct store_dir *dir, const char *file)
{
	struct stat st;

	assert_int_equal(stat(store_dir_file(dir, file), &st), 0);
	for (off_t at = 2 * 4096; at + 4096 <= st.st_size; at += 4096)
		store_dir_flip(dir, file, at + 4096 - 60, 0x01);
}

static void
spoil_uuid(const struct store_dir *dir, const char *file)
{
	char digit;
	int fd = open(store_dir_file(dir, "epoch"), O_RDONLY);

	(void)file;
	assert_int_equal(pread(fd, &digit, 1, 14), 1);
	close(fd);
	store_dir_flip(dir, "epoch", 14, digit == '0' ? '0' ^ '1' : digit ^ '0');
}

typedef void spoil_fn(const struct store_dir *dir, const char *file);

/* ---- live ---- */

static const struct live_row {
	const char *what;
	bool closed, reboot;
	spoil_fn *live, *book;
	enum store_rc want;
	uint64_t calls; /* of the 3 that there were, 2 of them saved unless it was closed */
	const char *says;
} live_rows[] = {
    {"killed, same boot", false, false, spoil_nothing, spoil_nothing, STORE_OK, 3, ""},
    {"killed, reboot", false, true, spoil_nothing, spoil_nothing, STORE_OK, 2, "without a clean"},
    {"closed, reboot", true, true, spoil_nothing, spoil_nothing, STORE_OK, 3, ""},
    {"closed, same boot", true, false, spoil_nothing, spoil_nothing, STORE_OK, 3, ""},
    {"empty", false, false, spoil_empty, spoil_nothing, STORE_OK, 2, "empty"},
    {"missing", false, false, spoil_missing, spoil_nothing, STORE_OK, 2, "missing"},
    {"taken away", false, false, spoil_folder, spoil_nothing, STORE_OK, 2, "missing"},
    {"cut", false, false, spoil_cut, spoil_nothing, STORE_OK, 2, "cut"},
    {"head", false, false, spoil_head, spoil_nothing, STORE_OK, 2, "no valid head"},
    {"another store's", false, false, spoil_uuid, spoil_nothing, STORE_OK, 2, "another store"},
    {"pages, closed", true, true, spoil_pages, spoil_nothing, STORE_OK, 3, "damaged"},
    {"closed, then empty", true, true, spoil_empty, spoil_nothing, STORE_OK, 3, "empty"},
    {"killed, reboot, and damaged", false, true, spoil_pages, spoil_nothing, STORE_OK, 2,
        "without a clean"},
    /* without a book */
    {"killed, same boot, no book", false, false, spoil_nothing, spoil_folder, STORE_OK, 3, ""},
    {"killed, reboot, no book", false, true, spoil_nothing, spoil_folder, STORE_OK, 999,
        "without a clean"},
    {"damaged, no book", false, false, spoil_cut, spoil_folder, STORE_BAD, 0, "cut"},
    {"both taken away", false, false, spoil_folder, spoil_folder, STORE_OK, 999, ""},
    /* with a damaged one */
    {"reboot, book empty", false, true, spoil_nothing, spoil_empty, STORE_BAD, 0, "neither"},
    {"reboot, book missing", false, true, spoil_nothing, spoil_missing, STORE_BAD, 0, "neither"},
    {"reboot, book cut", false, true, spoil_nothing, spoil_cut, STORE_BAD, 0, "neither"},
    {"reboot, book's head", false, true, spoil_nothing, spoil_head, STORE_BAD, 0, "neither"},
    {"reboot, book's pages", false, true, spoil_nothing, spoil_pages, STORE_BAD, 0, "neither"},
    {"reboot, book's rows", false, true, spoil_nothing, spoil_rows, STORE_BAD, 0, "neither"},
    {"both cut", false, false, spoil_cut, spoil_cut, STORE_BAD, 0, "neither"},
    {"live taken away, book cut", false, false, spoil_folder, spoil_cut, STORE_BAD, 0, "neither"},
    {"live good, book cut", false, false, spoil_nothing, spoil_cut, STORE_OK, 3, ""},
};

struct look {
	const struct store_dir *dir;
	const struct live_row *row;
	enum store_rc rc;
	uint64_t calls;
	char text[256];
};

/* In a child: a mistake would end in a signal. */
static int
open_and_look(void *arg)
{
	struct look *look = arg;
	struct store_why why = {""};
	struct env *env = NULL;

	look->rc = env_open(look->dir->path, TEST_MAX_BYTES, false, &env, &why);
	memcpy(look->text, why.text, sizeof look->text);
	if (look->rc != STORE_OK)
		return 0;
	look->calls = calls(env);
	if (look->calls != 999 && settle(env) != STORE_OK)
		return 1;
	env_close(&env);
	return 0;
}

static void
check_live(const struct store_dir *dir, const struct live_row *row, struct look *look)
{
	unsigned asides = store_dir_count(dir, "live.unclean.");
	int end = child_end(child_start(open_and_look, look));

	if (end != 0 || look->rc != row->want || strstr(look->text, row->says) == NULL ||
	    (row->says[0] == '\0') != (look->text[0] == '\0'))
		fail_msg("%s: ended %d, got %d '%s'", row->what, end, (int)look->rc, look->text);
	if (look->rc == STORE_OK && look->calls != row->calls)
		fail_msg("%s: %llu calls", row->what, (unsigned long long)look->calls);
	/* a refusal leaves everything where it is */
	if (look->rc != STORE_OK && store_dir_count(dir, "live.unclean.") != asides)
		fail_msg("%s: refused, but set aside", row->what);
}

static void
live_is_opened_or_made_anew(void **state)
{
	struct look *look = shared_bytes(sizeof *look);

	(void)state;
	for (size_t i = 0; i < sizeof live_rows / sizeof *live_rows; i++) {
		const struct live_row *row = &live_rows[i];
		void *dir;

		store_dir_setup(&dir);
		assert_int_equal(
		    child_end(child_start(row->closed ? use_and_close : use_and_die, dir)), 0);
		if (row->reboot)
			store_reboot(dir);
		row->live(dir, "live/data.mdb");
		row->book(dir, "book/data.mdb");
		*look = (struct look){.dir = dir, .row = row};
		check_live(dir, row, look);
		if (row->want == STORE_BAD)
			check_live(dir, row, look); /* and so the next time */
		store_dir_teardown(&dir);
	}
}

/* The newcomer must not take the store away from those who use it. */
static void
damage_in_use_is_refused(void **state)
{
	const struct store_dir *dir = *state;
	struct env *env = store_dir_open(dir);
	struct look *look = shared_bytes(sizeof *look);

	look->dir = dir;
	store_dir_flip(dir, "live/data.mdb", 17, 0xff);
	assert_int_equal(child_end(child_start(open_and_look, look)), 0);
	assert_int_equal(look->rc, STORE_BAD);
	assert_true(store_dir_has(dir, "live/data.mdb"));
	assert_int_equal(store_dir_count(dir, "live.unclean."), 0);
	store_dir_flip(dir, "live/data.mdb", 17, 0xff);
	env_close(&env);
}

/* ---- book ---- */

static const struct book_row {
	const char *what;
	spoil_fn *spoil;
	bool reboot; /* it is looked through whole */
	bool remade;
} book_rows[] = {
    {"untouched", spoil_nothing, true, false},
    {"taken away", spoil_folder, false, true},
    {"empty", spoil_empty, false, true},
    {"missing", spoil_missing, false, true},
    {"cut", spoil_cut, false, true},
    {"head", spoil_head, false, true},
    {"pages", spoil_pages, true, true},
    {"rows", spoil_rows, true, true},
};

static int
two_calls_in_book(void *arg)
{
	struct env *env = store_dir_open(arg);
	uint64_t n = 0;

	return env == NULL || env_book_view(env, get_calls, &n) != STORE_OK || n != 2;
}

static int
open_and_save(void *arg)
{
	struct env *env = store_dir_open(arg);

	return env == NULL || settle(env) != STORE_OK || store_save(env) != STORE_OK ||
	       env_book_view(env, get_calls, &(uint64_t){0}) != STORE_OK;
}

static void
a_damaged_book_is_made_anew(void **state)
{
	struct look *look = shared_bytes(sizeof *look);

	(void)state;
	for (size_t i = 0; i < sizeof book_rows / sizeof *book_rows; i++) {
		const struct book_row *row = &book_rows[i];
		bool had_file = row->spoil != spoil_folder;
		void *dir;
		int end;

		store_dir_setup(&dir);
		assert_int_equal(child_end(child_start(use_and_close, dir)), 0);
		if (row->reboot)
			store_reboot(dir);
		row->spoil(dir, "book/data.mdb");
		end = child_end(child_start(open_and_save, dir));
		if (end != 0 || store_dir_has(dir, "book.new") ||
		    store_dir_count(dir, "book.damaged.") != (row->remade && had_file))
			fail_msg("%s: ended %d, kept %u", row->what, end,
			    store_dir_count(dir, "book.damaged."));
		/* and it is complete */
		store_reboot(dir);
		*look = (struct look){.dir = dir};
		assert_int_equal(child_end(child_start(open_and_look, look)), 0);
		if (look->rc != STORE_OK || look->calls != 4)
			fail_msg("%s: %d '%s' %llu calls", row->what, (int)look->rc, look->text,
			    (unsigned long long)look->calls);
		store_dir_teardown(&dir);
	}
}

/* One process makes a new `book` while another has the old one open. */
static void
a_book_replaced_in_use(void **state)
{
	const struct store_dir *dir = *state;
	struct env *env = store_dir_open(dir);
	unsigned accounts = ACCOUNTS;

	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	assert_int_equal(store_save(env), STORE_OK);
	store_dir_remove(dir, "book");
	assert_int_equal(child_end(child_start(open_and_save, *state)), 0);
	assert_int_equal(settle(env), STORE_OK);
	assert_int_equal(store_save(env), STORE_OK);
	assert_int_equal(child_end(child_start(two_calls_in_book, *state)), 0);
	env_close(&env);
}

/* ---- saves that cannot write ---- */

static enum store_rc
save(struct env *env, bool *news)
{
	struct book_report report;
	enum store_rc rc;

	assert_int_equal(settle(env), STORE_OK); /* requests go on, whatever `book` does */
	rc = book_save(env, &report);
	*news = report.news;
	return rc;
}

static void
trouble_is_told_once(void **state)
{
	const struct store_dir *dir = *state;
	struct env *env = store_dir_open(dir);
	unsigned accounts = ACCOUNTS;
	bool news;
	int fd;

	assert_int_equal(env_update(env, store_enrol, &accounts), STORE_OK);
	/* a file is in the way */
	fd = open(store_dir_file(dir, "book"), O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(save(env, &news), STORE_IO);
	assert_true(news);
	assert_string_not_equal(env_error(env), "");
	assert_int_equal(store_save_now(env, NULL, 0), STORE_IO);
	assert_int_equal(save(env, &news), STORE_IO);
	assert_false(news);
	unlink(store_dir_file(dir, "book"));
	assert_int_equal(save(env, &news), STORE_OK);
	assert_true(news);
	assert_int_equal(save(env, &news), STORE_OK);
	assert_false(news);
	env_close(&env);
}

static int
small_files(void *arg)
{
	struct env *env = store_dir_open(arg);
	struct rlimit small = {200 << 10, 64 * MIB}, large = {64 * MIB, 64 * MIB};
	unsigned accounts = ACCOUNTS;
	bool news;

	signal(SIGXFSZ, SIG_IGN);
	if (env == NULL || env_update(env, store_enrol, &accounts) != STORE_OK ||
	    save(env, &news) != STORE_OK)
		return 1;
	accounts = 5000; /* `live` grows before the limit, `book` must do so under it */
	if (env_update(env, store_enrol, &accounts) != STORE_OK)
		return 2;
	if (settle(env) != STORE_OK || setrlimit(RLIMIT_FSIZE, &small) != 0)
		return 3;
	if (store_save(env) != STORE_IO || strstr(env_error(env), "ulimit -f") == NULL)
		return 4;
	if (setrlimit(RLIMIT_FSIZE, &large) != 0 || store_save(env) != STORE_OK)
		return 5;
	env_close(&env);
	return 0;
}

static void
a_file_size_limit(void **state)
{
	assert_int_equal(child_end(child_start(small_files, *state)), 0);
}

static enum store_rc
put_block(struct txn *txn, void *arg)
{
	static char block[100 << 10];

	return txn_put(txn, key_of(KEY_STAT, 9, *(unsigned *)arg), block, sizeof block);
}

static void
fill_disk(const struct store_dir *dir)
{
	static char block[4096];
	int fd = open(store_dir_file(dir, "ballast"), O_CREAT | O_WRONLY, 0600);

	while (write(fd, block, sizeof block) > 0)
		;
	close(fd);
}

static int
disk_teardown(void **state)
{
	umount2(((struct store_dir *)*state)->path, MNT_DETACH);
	return store_dir_teardown(state);
}

static void
a_full_disk(void **state)
{
	const struct store_dir *dir = *state;
	struct book_report report;
	struct env *env;
	unsigned n = 0;
	uint64_t seen;

	if (geteuid() != 0 || mount("none", dir->path, "tmpfs", 0, "size=6m,mode=0700") != 0)
		skip();
	env = store_dir_open(dir);
	n = ACCOUNTS;
	assert_int_equal(env_update(env, store_enrol, &n), STORE_OK);
	assert_int_equal(store_save(env), STORE_OK);
	for (n = 0; n < 10; n++)
		assert_int_equal(env_update(env, put_block, &n), STORE_OK);
	fill_disk(dir);
	assert_int_equal(book_save(env, &report), STORE_FULL);
	assert_true(report.news);
	assert_non_null(strstr(env_error(env), "free disk space"));
	assert_int_equal(store_save_now(env, NULL, 0), STORE_OK); /* little is to be written */
	assert_int_equal(env_book_view(env, get_calls, &seen), STORE_OK);
	unlink(store_dir_file(dir, "ballast"));
	assert_int_equal(settle(env), STORE_OK);
	assert_int_equal(book_save(env, &report), STORE_OK);
	assert_true(report.news);
	assert_int_equal(env_book_view(env, get_calls, &seen), STORE_OK);
	assert_int_equal(seen, 1);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(live_is_opened_or_made_anew),
	    WITH_DIR(damage_in_use_is_refused),
	    cmocka_unit_test(a_damaged_book_is_made_anew),
	    WITH_DIR(a_book_replaced_in_use),
	    WITH_DIR(trouble_is_told_once),
	    WITH_DIR(a_file_size_limit),
	    cmocka_unit_test_setup_teardown(a_full_disk, store_dir_setup, disk_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
