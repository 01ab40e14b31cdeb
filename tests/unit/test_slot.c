#include "store/slot.h"

#include "lib/store_dir.h"

struct shared {
	const struct store_dir *dir;
	volatile int ready, go;
	volatile unsigned number;
	struct slot_row row;
};

static struct shared *
shared_new(const struct store_dir *dir)
{
	struct shared *s = shared_bytes(sizeof *s);

	s->dir = dir;
	s->row = (struct slot_row){.kind = SLOT_REQUEST,
	    .channel = 1,
	    .account = 7,
	    .started_ms = 1234,
	    .model_hash = 99,
	    .tokens = 5};
	return s;
}

struct job {
	struct slot *slot;
	const struct slot_row *row;
	struct account_ref account;
	unsigned freed;
	struct slot_list list;
};

static enum store_rc
do_take(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return slot_take(txn, job->slot, job->row);
}

static enum store_rc
do_free(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return slot_free(txn, job->slot);
}

static enum store_rc
do_walk(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return slot_walk(txn, &job->list);
}

static enum store_rc
do_reap(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return slot_reap(txn, job->slot, job->account, &job->freed);
}

static struct slot *
open_slot(struct env *env)
{
	struct store_why why = {""};
	struct slot *slot = NULL;
	enum store_rc rc = slot_open(env, &slot, &why);

	if (rc != STORE_OK)
		fprintf(stderr, "slot_open: %d %s\n", (int)rc, why.text);
	return slot;
}

/* Holds a slot and a lease until it is told to go or killed. */
static int
hold(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct job job = {.row = &s->row};

	if (env == NULL || (job.slot = open_slot(env)) == NULL)
		return 1;
	if (s->row.kind != SLOT_FREE && env_update(env, do_take, &job) != STORE_OK)
		return 2;
	s->number = slot_number(job.slot);
	s->ready = 1;
	while (s->go == 0)
		nap_ms(2);
	slot_close(&job.slot);
	env_close(&env);
	return 0;
}

static pid_t
start_holder(struct shared *s)
{
	pid_t pid;

	s->ready = 0;
	pid = child_start(hold, s);
	assert_true(wait_flag(&s->ready));
	return pid;
}

static void
take_and_free(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env = store_dir_open(*state);
	struct job job = {.slot = open_slot(env), .row = &s->row};

	assert_int_equal(slot_number(job.slot), 0);
	assert_int_equal(env_update(env, do_free, &job), STORE_NONE);
	for (uint64_t round = 1; round <= 3; round++) {
		assert_int_equal(env_update(env, do_take, &job), STORE_OK);
		assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
		assert_int_equal(job.list.n, 1);
		assert_int_equal(job.list.seen[0].number, 0);
		assert_int_equal(job.list.seen[0].row.generation, round);
		assert_int_equal(job.list.seen[0].row.account, 7);
		assert_int_equal(job.list.seen[0].row.tokens, 5);
		assert_int_equal(job.list.seen[0].row.pid, getpid());
		assert_int_equal(job.list.seen[0].row.version, 1);
		assert_int_equal(env_update(env, do_free, &job), STORE_OK);
		assert_int_equal(env_update(env, do_free, &job), STORE_NONE);
		assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
		assert_int_equal(job.list.n, 0);
	}
	slot_close(&job.slot);
	assert_null(job.slot);
	env_close(&env);
}

struct busy {
	struct shared *opener;
	const struct slot *watch;
	bool lived;
};

static int
open_when_told(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct slot *slot;

	s->ready = 1;
	while (s->go == 0)
		nap_ms(2);
	slot = open_slot(env);
	s->number = slot_number(slot);
	slot_close(&slot);
	env_close(&env);
	return 0;
}

/* Somebody opens a slot meanwhile. */
static enum store_rc
look_while_writing(struct txn *txn, void *arg)
{
	struct busy *busy = arg;

	(void)txn;
	busy->opener->go = 1;
	for (int i = 0; i < 50; i++) {
		nap_ms(2);
		busy->lived |= slot_lives(busy->watch, 0);
	}
	return STORE_OK;
}

/* While others count, a dead owner's lease has no new owner. */
static void
lease_is_cleared_as_its_number_is_taken(void **state)
{
	struct shared *dead = shared_new(*state), *opener = shared_new(*state);
	struct env *env = store_dir_open(*state);
	struct store_why why;
	struct busy busy = {.opener = opener};
	struct job job = {.slot = NULL};
	struct slot *watch;
	pid_t pid = start_holder(dead), opening = child_start(open_when_told, opener);

	assert_true(wait_flag(&opener->ready));
	kill(pid, SIGKILL);
	child_end(pid);
	assert_int_equal(slot_watch(env, &watch, &why), STORE_OK);
	busy.watch = watch;
	assert_int_equal(env_update(env, look_while_writing, &busy), STORE_OK);
	assert_false(busy.lived);
	assert_int_equal(child_end(opening), 0);
	assert_int_equal(opener->number, 0);
	assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
	assert_int_equal(job.list.n, 0);
	slot_close(&watch);
	env_close(&env);
}

/* What became of the holder of a lease on (1, 7), who asks, and for which account. */
static void
reaping(void **state)
{
	static const struct {
		const char *what;
		int signal;
		bool watcher;
		struct account_ref account;
		unsigned freed;
	} rows[] = {
	    {"alive", 0, false, {1, 7}, 0},
	    {"stopped", SIGSTOP, false, {1, 7}, 0},
	    {"killed, other account", SIGKILL, false, {1, 8}, 0},
	    {"killed, other channel", SIGKILL, false, {2, 7}, 0},
	    {"killed", SIGKILL, false, {1, 7}, 1},
	    {"killed, seen by a watcher", SIGKILL, true, {1, 7}, 1},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct shared *s = shared_new(*state);
		struct job job = {.row = &s->row, .account = rows[i].account, .freed = 99};
		pid_t pid = start_holder(s); /* has number 0: it is first */
		struct env *env = store_dir_open(*state);
		bool lives;

		if (rows[i].watcher)
			assert_int_equal(slot_watch(env, &job.slot, NULL), STORE_OK);
		else
			job.slot = open_slot(env);
		if (!rows[i].watcher) /* our own lease on the account must never go */
			assert_int_equal(env_update(env, do_take, &job), STORE_OK);
		if (rows[i].signal != 0)
			kill(pid, rows[i].signal);
		if (rows[i].signal == SIGKILL)
			child_end(pid);
		lives = slot_lives(job.slot, s->number);
		assert_int_equal(env_update(env, do_reap, &job), STORE_OK);
		assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
		if (job.freed != rows[i].freed || lives == (rows[i].signal == SIGKILL) ||
		    job.list.n + rows[i].freed != (rows[i].watcher ? 1 : 2))
			fail_msg("%s: freed %u, lives %d, left %u", rows[i].what, job.freed, lives,
			    job.list.n);
		assert_true(slot_lives(job.slot, slot_number(job.slot)));
		assert_true(slot_lives(NULL, 0));
		if (!rows[i].watcher)
			assert_int_equal(env_update(env, do_free, &job), STORE_OK);
		else
			assert_int_equal(env_update(env, do_take, &job), STORE_NONE);
		slot_close(&job.slot);
		env_close(&env);
		if (rows[i].signal != SIGKILL) {
			kill(pid, SIGKILL);
			child_end(pid);
		}
	}
}

/* A number whose former owner died with a lease comes to its next owner free. */
static void
leftovers_go(void **state)
{
	struct shared *s = shared_new(*state);
	pid_t pid = start_holder(s);
	struct env *env;
	struct job job = {0};

	kill(pid, SIGKILL);
	child_end(pid);
	env = store_dir_open(*state);
	assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
	assert_int_equal(job.list.n, 1);
	job.slot = open_slot(env);
	assert_int_equal(slot_number(job.slot), 0);
	assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
	assert_int_equal(job.list.n, 0);
	slot_close(&job.slot);
	env_close(&env);
}

#define MANY 70 /* three shards */

static void
numbers_are_dense(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env;
	struct job job = {0};
	pid_t pid[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		pid[i] = start_holder(s);
		assert_int_equal(s->number, i);
	}
	kill(pid[33], SIGKILL);
	child_end(pid[33]);
	pid[33] = start_holder(s);
	assert_int_equal(s->number, 33);
	env = store_dir_open(*state);
	assert_int_equal(env_view(env, do_walk, &job), STORE_OK);
	assert_int_equal(job.list.n, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(job.list.seen[i].number, i);
		assert_int_equal(job.list.seen[i].row.pid, pid[i]);
	}
	s->go = 1;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(child_end(pid[i]), 0);
	env_close(&env);
}

static int
hold_all(void *arg)
{
	struct shared *s = arg;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = SLOT_MAX};
	int fd = open(store_dir_file(s->dir, "slots.lock"), O_RDWR | O_CREAT, 0600);

	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0)
		return 1;
	s->ready = 1;
	for (;;)
		pause();
}

static void
none_left(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env = store_dir_open(*state);
	struct store_why why = {""};
	struct slot *slot = NULL;
	pid_t pid = child_start(hold_all, s);

	assert_true(wait_flag(&s->ready));
	assert_int_equal(slot_open(env, &slot, &why), STORE_BUSY);
	assert_null(slot);
	assert_non_null(strstr(why.text, "1024"));
	kill(pid, SIGKILL);
	child_end(pid);
	slot = open_slot(env);
	assert_int_equal(slot_number(slot), 0);
	slot_close(&slot);
	env_close(&env);
}

static enum store_rc
spoil(struct txn *txn, void *arg)
{
	char junk[3000];

	memset(junk, 0xff, sizeof junk);
	return txn_put(txn, key_of(KEY_SLOT, 0, 0), junk, *(size_t *)arg);
}

/* Damaged rows are refused, and never overrun the list. */
static void
odd_shards(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env = store_dir_open(*state);
	struct job *job = calloc(1, sizeof *job);
	size_t size = 1983;

	job->row = &s->row;
	job->slot = open_slot(env);
	assert_int_equal(env_update(env, spoil, &size), STORE_OK);
	assert_int_equal(env_view(env, do_walk, job), STORE_BAD);
	assert_int_equal(env_update(env, do_take, job), STORE_BAD);
	assert_int_equal(env_update(env, do_reap, job), STORE_BAD);
	size = 1984;
	assert_int_equal(env_update(env, spoil, &size), STORE_OK);
	assert_int_equal(env_view(env, do_walk, job), STORE_OK);
	assert_int_equal(job->list.n, 31);
	slot_close(&job->slot);
	free(job);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(take_and_free),
	    WITH_DIR(lease_is_cleared_as_its_number_is_taken),
	    WITH_DIR(reaping),
	    WITH_DIR(leftovers_go),
	    WITH_DIR(numbers_are_dense),
	    WITH_DIR(none_left),
	    WITH_DIR(odd_shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
