#include "store/env.h"

#include "lib/store_count.h"

/* ---- rows ---- */

static enum store_rc
put_some(struct txn *txn, void *arg)
{
	static const uint64_t keys[] = {5, 1, 300, 70000, 2};

	(void)arg;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (txn_put(txn, key_n(keys[i]), &keys[i], sizeof keys[i]) != STORE_OK)
			return STORE_IO;
	if (txn_put(txn, key_of(KEY_NOTE, 0, 0), "note", 4) != STORE_OK ||
	    txn_del(txn, key_n(300)) != STORE_OK || txn_del(txn, key_n(301)) != STORE_OK)
		return STORE_IO;
	return STORE_OK;
}

struct walk {
	char text[100];
	uint64_t first, last;
	unsigned stop_at;
};

static enum store_rc
walk_row(uint64_t key, struct env_bytes row, void *arg)
{
	struct walk *walk = arg;
	size_t n = strlen(walk->text);
	uint64_t v = 0;

	memcpy(&v, row.p, row.n < sizeof v ? row.n : sizeof v);
	if (v != key_rest(key))
		return STORE_BAD;
	if (v == walk->stop_at)
		return STORE_FULL;
	snprintf(walk->text + n, sizeof walk->text - n, "%llu ", (unsigned long long)v);
	return STORE_OK;
}

static enum store_rc
walk_all(struct txn *txn, void *arg)
{
	struct walk *walk = arg;

	return txn_walk(txn, walk->first, walk->last, walk_row, walk);
}

static void
rows_in_order(void **state)
{
	static const struct {
		const char *what;
		uint64_t first, last;
		unsigned stop_at;
		enum store_rc want;
		const char *text;
	} rows[] = {
	    {"all of a kind", 0, 0xffffffff, 9, STORE_OK, "1 2 5 70000 "},
	    {"a range, both ends in", 2, 5, 9, STORE_OK, "2 5 "},
	    {"between the rows", 6, 69999, 9, STORE_OK, ""},
	    {"ended by the function", 0, 0xffffffff, 5, STORE_FULL, "1 2 "},
	};
	struct env *env = store_dir_open(*state);

	assert_non_null(env);
	assert_int_equal(env_update(env, put_some, NULL), STORE_OK);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct walk walk = {.first = key_n(rows[i].first),
		    .last = key_n(rows[i].last),
		    .stop_at = rows[i].stop_at};
		enum store_rc rc = env_view(env, walk_all, &walk);

		if (rc != rows[i].want || strcmp(walk.text, rows[i].text) != 0)
			fail_msg("%s: got %d '%s', want %d '%s'", rows[i].what, (int)rc, walk.text,
			    (int)rows[i].want, rows[i].text);
	}
	env_close(&env);
	assert_null(env);
}

static enum store_rc
put_then_refuse(struct txn *txn, void *arg)
{
	struct step step = {.key = key_n(1)};

	return count_up(txn, &step) == STORE_OK ? *(enum store_rc *)arg : STORE_BAD;
}

static enum store_rc
inside_again(struct txn *txn, void *arg)
{
	return env_update(txn_env(txn), put_some, arg) == STORE_BAD ? STORE_OK : STORE_IO;
}

static enum store_rc
put_in_view(struct txn *txn, void *arg)
{
	(void)arg;
	(void)!txn_put(txn, key_n(1), "x", 1);
	return STORE_OK;
}

static void
only_ok_commits(void **state)
{
	struct env *env = store_dir_open(*state);
	enum store_rc codes[] = {STORE_NONE, STORE_FULL, STORE_BUSY, STORE_BAD, STORE_IO, STORE_OK};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		assert_int_equal(env_update(env, put_then_refuse, &codes[i]), codes[i]);
		assert_int_equal(seen_by(env, key_n(1)), codes[i] == STORE_OK);
	}
	assert_int_equal(env_update(env, inside_again, NULL), STORE_OK);
	/* an error that the function ignored is told all the same */
	assert_int_equal(env_view(env, put_in_view, NULL), STORE_IO);
	assert_string_not_equal(env_error(env), "");
	env_close(&env);
}

/* ---- several processes ---- */

#define WORKERS 4

struct shared {
	const struct store_dir *dir;
	volatile int ready, go, opened;
	volatile uint64_t acked[WORKERS];
	char uuid[16][40];
};

struct worker {
	struct shared *s;
	unsigned number;
};

static struct shared *
shared_new(const struct store_dir *dir)
{
	struct shared *s = shared_bytes(sizeof *s);

	s->dir = dir;
	return s;
}

static int
count_5000(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);

	if (env == NULL)
		return 1;
	for (int i = 0; i < 5000; i++)
		if (up(env, key_n(1)) != STORE_OK)
			return 2;
	env_close(&env);
	return 0;
}

static void
increments_are_exact(void **state)
{
	struct shared *s = shared_new(*state);
	pid_t pid[WORKERS];
	struct env *env;

	for (int i = 0; i < WORKERS; i++)
		pid[i] = child_start(count_5000, s);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(child_end(pid[i]), 0);
	env = store_dir_open(*state);
	assert_int_equal(seen_by(env, key_n(1)), 20000);
	env_close(&env);
}

/* Counts for ever; acked[] never runs ahead of what was committed. Often sits inside a transaction. */
static int
count_for_ever(void *arg)
{
	struct worker *w = arg;
	struct env *env = store_dir_open(w->s->dir);

	if (env == NULL)
		return 1;
	for (unsigned i = 0;; i++) {
		struct step step = {.key = key_n(w->number), .stay_us = i % 16 == 0 ? 200 : 0};

		if (env_update(env, count_up, &step) != STORE_OK) {
			fprintf(stderr, "worker: %s\n", env_error(env));
			return 2;
		}
		w->s->acked[w->number] = step.seen;
		if (i % 8 == 0 && up(env, key_n(100 + i % 50)) != STORE_OK)
			return 3;
	}
}

static void
kills_lose_nothing(void **state)
{
	struct shared *s = shared_new(*state);
	struct worker worker[WORKERS];
	pid_t pid[WORKERS];
	double end = seconds_now() + 3.5;
	unsigned kills = 0;
	struct env *env;

	srandom(7);
	for (unsigned i = 0; i < WORKERS; i++) {
		worker[i] = (struct worker){s, i};
		pid[i] = child_start(count_for_ever, &worker[i]);
	}
	while (seconds_now() < end && kills < 400) {
		unsigned i = (unsigned)random() % WORKERS;

		nanosleep(&(struct timespec){.tv_nsec = random() % 12000000}, NULL);
		kill(pid[i], SIGKILL);
		assert_int_equal(child_end(pid[i]), 128 + SIGKILL); /* none ended by itself */
		pid[i] = child_start(count_for_ever, &worker[i]);
		kills++;
	}
	nap_ms(50);
	for (unsigned i = 0; i < WORKERS; i++) {
		kill(pid[i], SIGKILL);
		assert_int_equal(child_end(pid[i]), 128 + SIGKILL);
	}
	env = store_dir_open(*state);
	assert_non_null(env);
	assert_false(env_epoch(env)->fresh);
	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t row = seen_by(env, key_n(i)), acked = s->acked[i];

		if (row != acked &&
		    row != acked + 1) /* killed between commit and acknowledgement */
			fail_msg("worker %u: row %llu, acked %llu", i, (unsigned long long)row,
			    (unsigned long long)acked);
		assert_true(acked > 0);
	}
	assert_true(kills >= 150);
	env_close(&env);
}

static int
open_and_tell(void *arg)
{
	struct worker *w = arg;
	struct env *env;

	while (w->s->go == 0)
		nap_ms(1);
	env = store_dir_open(w->s->dir);
	if (env == NULL)
		return 1;
	memcpy(w->s->uuid[w->number], env_epoch(env)->uuid, 40);
	__atomic_add_fetch(&w->s->opened, 1, __ATOMIC_SEQ_CST);
	while (w->s->opened < 16)
		nap_ms(1);
	env_close(&env);
	return 0;
}

static void
all_open_at_once(void **state)
{
	struct shared *s = shared_new(*state);
	struct worker worker[16];
	pid_t pid[16];

	for (unsigned i = 0; i < 16; i++) {
		worker[i] = (struct worker){s, i};
		pid[i] = child_start(open_and_tell, &worker[i]);
	}
	s->go = 1;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(child_end(pid[i]), 0);
	for (unsigned i = 1; i < 16; i++)
		assert_string_equal(s->uuid[i], s->uuid[0]);
}

static int
sit_inside(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct step step = {.key = key_n(1), .stay_us = 20000000, .flag = &s->ready};

	return env == NULL || env_update(env, count_up, &step) != STORE_OK;
}

static void
stopped_holder(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env;
	pid_t pid;
	double t;

	pid = child_start(sit_inside, s);
	assert_true(wait_flag(&s->ready));
	kill(pid, SIGSTOP);
	/* opening and looking need no write lock */
	t = seconds_now();
	env = store_dir_open(*state);
	assert_non_null(env);
	assert_int_equal(seen_by(env, key_n(1)), 0);
	assert_true(seconds_now() - t < 0.5);
	t = seconds_now();
	assert_int_equal(up(env, key_n(1)), STORE_BUSY);
	t = seconds_now() - t;
	assert_true(t > 1.8 && t < 2.5);
	assert_non_null(strstr(env_error(env), "stopped"));
	kill(pid, SIGKILL);
	child_end(pid);
	assert_int_equal(up(env, key_n(1)), STORE_OK);
	assert_int_equal(seen_by(env, key_n(1)), 1);
	env_close(&env);
}

static int
use_after_fork(void *arg)
{
	struct env *env = arg;

	if (up(env, key_n(1)) != STORE_BAD || strstr(env_error(env), "fork") == NULL)
		return 1;
	if (env_view(env, look, NULL) != STORE_BAD || env_check(env) != STORE_BAD)
		return 2;
	env_close(&env);
	return 0;
}

static void
child_is_refused(void **state)
{
	struct env *env = store_dir_open(*state);

	assert_int_equal(up(env, key_n(1)), STORE_OK);
	assert_int_equal(child_end(child_start(use_after_fork, env)), 0);
	assert_int_equal(up(env, key_n(1)), STORE_OK);
	assert_int_equal(env_check(env), STORE_OK);
	env_close(&env);
}

/* ---- housekeeping ---- */

static void
descriptors_and_modes(void **state)
{
	static const char *const files[] = {
	    "epoch", "users.lock", "gate", "live/data.mdb", "live/lock.mdb"};
	struct env *env = store_dir_open(*state);
	struct stat st;

	for (int fd = 3; fd < 64; fd++) {
		char path[64], at[256] = "";

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, at, sizeof at - 1) <= 0 ||
		    strstr(at, ((struct store_dir *)*state)->path) == NULL)
			continue;
		if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
			fail_msg("'%s' would be inherited", at);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		assert_int_equal(stat(store_dir_file(*state, files[i]), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	assert_int_equal(stat(store_dir_file(*state, "live"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	env_close(&env);
	for (int fd = 3; fd < 64; fd++) {
		char path[64], at[256] = "";

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, at, sizeof at - 1) > 0)
			assert_null(strstr(at, ((struct store_dir *)*state)->path));
	}
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(rows_in_order),
	    WITH_DIR(only_ok_commits),
	    WITH_DIR(increments_are_exact),
	    WITH_DIR(kills_lose_nothing),
	    WITH_DIR(all_open_at_once),
	    WITH_DIR(stopped_holder),
	    WITH_DIR(child_is_refused),
	    WITH_DIR(descriptors_and_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
