#include "store/epoch.h"

#include "lib/store_dir.h"

/* What `epoch` says before, what lies there, and what must come of it. Boot now: "boot-b". */
static const struct row {
	const char *what;
	const char *boot; /* NULL: no epoch file */
	int clean, made;
	bool live;   /* `live` is there */
	bool in_use; /* another process has the store open */
	enum store_rc want;
	bool fresh, set_aside, live_after, clean_after;
} rows[] = {
    {"nothing there", NULL, 0, 0, false, false, STORE_OK, true, false, false, false},
    {"live without epoch", NULL, 0, 0, true, false, STORE_OK, true, true, false, false},
    {"live without epoch, in use", NULL, 0, 0, true, true, STORE_BAD, false, false, true, false},
    {"same boot", "boot-b", 0, 1, true, false, STORE_OK, false, false, true, false},
    {"same boot, in use", "boot-b", 0, 1, true, true, STORE_OK, false, false, true, false},
    {"same boot, was closed cleanly", "boot-b", 1, 1, true, false, STORE_OK, false, false, true,
        false},
    {"same boot, making it was killed", "boot-b", 0, 0, true, false, STORE_OK, true, false, false,
        false},
    {"same boot, live taken away", "boot-b", 0, 1, false, false, STORE_OK, true, false, false,
        false},
    {"same boot, live taken away in use", "boot-b", 0, 1, false, true, STORE_BAD, false, false,
        false, false},
    {"clean reboot", "boot-a", 1, 1, true, false, STORE_OK, false, false, true, false},
    {"unclean reboot", "boot-a", 0, 1, true, false, STORE_OK, true, true, false, false},
    {"unclean reboot, making it was killed", "boot-a", 0, 0, true, false, STORE_OK, true, false,
        false, false},
    {"unclean reboot, live taken away", "boot-a", 0, 1, false, false, STORE_OK, true, false, false,
        false},
    {"other boot, in use", "boot-a", 1, 1, true, true, STORE_BAD, false, false, true, true},
    {"boot was unknown, in use", "-", 0, 1, true, true, STORE_OK, false, false, true, false},
    {"boot was unknown", "-", 0, 1, true, false, STORE_OK, true, true, false, false},
};

#define UUID "01234567-89ab-cdef-0123-456789abcdef"

static void
text_put(const struct store_dir *dir, const char *name, const char *text)
{
	FILE *f = fopen(store_dir_file(dir, name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void
epoch_put(const struct store_dir *dir, const char *boot, int clean, int made)
{
	char text[200];

	snprintf(text, sizeof text, "format 1\nuuid " UUID "\nboot %s\nclean %d\nmade %d\n", boot,
	    clean, made);
	text_put(dir, "epoch", text);
}

static bool
epoch_says(const struct store_dir *dir, const char *word)
{
	char text[300] = "";
	FILE *f = fopen(store_dir_file(dir, "epoch"), "r");

	if (f == NULL)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return strstr(text, word) != NULL;
}

static bool
is_there(const struct store_dir *dir, const char *name)
{
	return access(store_dir_file(dir, name), F_OK) == 0;
}

static int
asides(const struct store_dir *dir)
{
	DIR *d = opendir(dir->path);
	int n = 0;

	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += strncmp(e->d_name, "live.unclean.", 13) == 0;
	closedir(d);
	return n;
}

static void
live_put(const struct store_dir *dir)
{
	mkdir(store_dir_file(dir, "live"), 0700);
	text_put(dir, "live/data.mdb", "x");
	text_put(dir, "live/lock.mdb", "x");
}

/* As env.c does it when there is no `book`. */
static enum store_rc
enter(const struct store_dir *dir, const char *boot, struct epoch *epoch, struct store_why *why)
{
	enum store_rc rc = epoch_enter_as(dir->path, boot, epoch, why);

	return rc == STORE_OK && epoch->fate != EPOCH_KEEP
	           ? epoch_anew(epoch, epoch->fate == EPOCH_ASIDE, why)
	           : rc;
}

struct use {
	volatile int ready;
	const struct store_dir *dir;
};

static int
use_store(void *arg)
{
	struct use *use = arg;
	struct epoch epoch;

	if (enter(use->dir, "boot-a", &epoch, NULL) != STORE_OK ||
	    epoch_ready(&epoch, NULL) != STORE_OK)
		return 1;
	use->ready = 1;
	for (;;)
		pause();
}

static void
check_entered(const struct store_dir *dir, const struct row *row, struct epoch *epoch)
{
	bool is_blind = row->in_use && row->boot[0] == '-';

	if (epoch->fresh != row->fresh || (epoch->aside[0] != '\0') != row->set_aside ||
	    epoch->alone == row->in_use)
		fail_msg("%s: fresh %d aside '%s' alone %d", row->what, epoch->fresh, epoch->aside,
		    epoch->alone);
	if ((strcmp(epoch->uuid, UUID) == 0) == row->fresh)
		fail_msg("%s: uuid %s", row->what, epoch->uuid);
	assert_int_equal(epoch_ready(epoch, NULL), STORE_OK);
	/* who comes to others who cannot name the boot takes their name */
	if (!epoch_says(dir, is_blind ? "boot -\n" : "boot boot-b") || !epoch_says(dir, "made 1"))
		fail_msg("%s: wrong boot, or not made", row->what);
	epoch_leave(epoch, false, NULL);
}

/* Another process has it open, although `epoch` may say anything. */
static pid_t
start_user(const struct store_dir *dir)
{
	struct use *use = shared_bytes(sizeof *use);
	pid_t pid;

	use->dir = dir;
	pid = child_start(use_store, use);
	assert_true(wait_flag(&use->ready));
	unlink(store_dir_file(dir, "epoch"));
	return pid;
}

static void
check_row(const struct store_dir *dir, const struct row *row)
{
	pid_t pid = row->in_use ? start_user(dir) : 0;
	struct store_why why = {""};
	struct epoch epoch;
	enum store_rc rc;

	if (row->boot != NULL)
		epoch_put(dir, row->boot, row->clean, row->made);
	if (row->live)
		live_put(dir);
	rc = enter(dir, "boot-b", &epoch, &why);
	if (rc != row->want || (rc == STORE_BAD && why.text[0] == '\0'))
		fail_msg("%s: got %d '%s'", row->what, (int)rc, why.text);
	if (is_there(dir, "live") != row->live_after || asides(dir) != row->set_aside)
		fail_msg("%s: live there %d, set aside %d", row->what, is_there(dir, "live"),
		    asides(dir));
	if (epoch_says(dir, "clean 1") != row->clean_after)
		fail_msg("%s: wrong clean flag", row->what);
	if (rc == STORE_OK)
		check_entered(dir, row, &epoch);
	if (pid != 0) {
		kill(pid, SIGKILL);
		child_end(pid);
	}
}

static void
decisions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *dir;

		store_dir_setup(&dir);
		check_row(dir, &rows[i]);
		store_dir_teardown(&dir);
	}
}

/* An epoch file that cannot be trusted is refused, never guessed at. */
static void
bad_files(void **state)
{
	static const struct {
		const char *what, *text, *says;
	} bad[] = {
	    {"empty", "", "damaged"},
	    {"cut", "format 1\nuuid " UUID "\nboot a\n", "damaged"},
	    {"newer", "format 2\nnew things\n", "format 2"},
	    {"garbage", "\x01\x02\xff\xff", "damaged"},
	    {"long uuid", "format 1\nuuid " UUID UUID "\nboot a\nclean 1\nmade 1\n", "damaged"},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct store_why why = {""};
		struct epoch epoch;
		enum store_rc rc;

		text_put(*state, "epoch", bad[i].text);
		rc = epoch_enter(((struct store_dir *)*state)->path, &epoch, &why);
		if (rc != STORE_BAD || strstr(why.text, bad[i].says) == NULL)
			fail_msg("%s: got %d '%s'", bad[i].what, (int)rc, why.text);
	}
}

/* Until epoch_anew() everything stays as it was, so that a refusal can be repeated. */
static void
deciding_changes_nothing(void **state)
{
	const struct store_dir *dir = *state;

	epoch_put(dir, "boot-a", 0, 1);
	live_put(dir);
	for (int i = 0; i < 3; i++) {
		struct epoch epoch;

		assert_int_equal(epoch_enter_as(dir->path, "boot-b", &epoch, NULL), STORE_OK);
		assert_int_equal(epoch.fate, EPOCH_ASIDE);
		assert_false(epoch.fresh);
		assert_true(is_there(dir, "live/data.mdb") && epoch_says(dir, "boot boot-a"));
		assert_int_equal(epoch_leave(&epoch, epoch.was_clean, NULL), STORE_OK);
	}
}

static void
one_aside_is_kept(void **state)
{
	const struct store_dir *dir = *state;

	for (int i = 0; i < 3; i++) {
		struct epoch epoch;
		char boot[24];

		live_put(dir);
		snprintf(boot, sizeof boot, "boot-%d", i);
		assert_int_equal(enter(dir, boot, &epoch, NULL), STORE_OK);
		assert_true(is_there(dir, epoch.aside));
		assert_int_equal(epoch_ready(&epoch, NULL), STORE_OK);
		assert_int_equal(epoch_leave(&epoch, false, NULL), STORE_OK);
		assert_int_equal(asides(dir), 1);
	}
}

static int
last_of_two(void *arg)
{
	const struct store_dir *dir = arg;
	struct epoch a, b;

	if (enter(dir, "boot-b", &a, NULL) != STORE_OK || epoch_ready(&a, NULL) != STORE_OK)
		return 1;
	live_put(dir);
	if (enter(dir, "boot-b", &b, NULL) != STORE_OK || epoch_ready(&b, NULL) != STORE_OK)
		return 2;
	if (!a.alone || b.alone)
		return 3;
	if (epoch_leave(&a, true, NULL) != STORE_OK || epoch_says(dir, "clean 1"))
		return 4;
	if (epoch_leave(&b, true, NULL) != STORE_OK || !epoch_says(dir, "clean 1"))
		return 5;
	return 0;
}

static void
the_last_marks_clean(void **state)
{
	struct epoch epoch;
	struct store_dir *dir = *state;

	assert_int_equal(child_end(child_start(last_of_two, dir)), 0);
	assert_int_equal(epoch_enter_as(dir->path, "boot-c", &epoch, NULL), STORE_OK);
	assert_false(epoch.fresh);
	assert_true(epoch.was_clean && epoch_says(dir, "clean 0"));
	epoch_leave(&epoch, false, NULL);
}

static void
door_has_a_limit(void **state)
{
	const struct store_dir *dir = *state;
	struct store_why why = {""};
	struct epoch a, b;
	double t;

	assert_int_equal(epoch_enter_as(dir->path, "boot-a", &a, NULL), STORE_OK);
	t = seconds_now();
	assert_int_equal(epoch_enter_as(dir->path, "boot-a", &b, &why), STORE_BUSY);
	t = seconds_now() - t;
	assert_true(t > 1.8 && t < 2.6);
	assert_non_null(strstr(why.text, "stopped"));
	epoch_leave(&a, false, NULL);
}

/* This machine's own boot id: the same twice, and a file that nobody else may read. */
static void
this_boot(void **state)
{
	const struct store_dir *dir = *state;
	struct epoch a, b;
	struct stat st;

	assert_int_equal(enter(dir, NULL, &a, NULL), STORE_OK);
	epoch_leave(&a, false, NULL);
	assert_int_equal(enter(dir, NULL, &b, NULL), STORE_OK);
	epoch_leave(&b, false, NULL);
	assert_string_equal(a.boot, b.boot);
	assert_true(strlen(a.boot) >= 32);
	assert_int_equal(stat(store_dir_file(dir, "epoch"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(decisions),
	    cmocka_unit_test_setup_teardown(bad_files, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(
	        deciding_changes_nothing, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(one_aside_is_kept, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(
	        the_last_marks_clean, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(door_has_a_limit, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(this_boot, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
