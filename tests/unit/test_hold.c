#include "store/hold.h"

#include "lib/store_dir.h"

#define PROCESSES 8
#define TIMES 40

struct shared {
	const struct store_dir *dir;
	volatile int ready, inside;
	volatile unsigned times, together;
};

static struct shared *
shared_new(const struct store_dir *dir)
{
	struct shared *s = shared_bytes(sizeof *s);

	s->dir = dir;
	return s;
}

/* ---- what is held by whom ---- */

static int
hold_and_wait(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct hold hold;

	if (hold_take(env, UINT64_MAX, &hold) != STORE_OK)
		return 1;
	s->ready = 1;
	for (;;)
		pause();
}

static int
hold_and_exit(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct hold hold;

	s->ready = 1;
	return hold_take(env, UINT64_MAX, &hold) != STORE_OK;
}

/* Names that differ but in the last two bits have one lock. */
static const struct {
	const char *what;
	uint64_t name;
	enum store_rc while_held;
} names[] = {
    {"the same", UINT64_MAX, STORE_BUSY},
    {"falls together with it", UINT64_MAX - 3, STORE_BUSY},
    {"the next one", UINT64_MAX - 4, STORE_OK},
    {"another", 12345678, STORE_OK},
    {"zero", 0, STORE_OK},
};

static void
dies_with_its_holder(void **state)
{
	struct shared *s = shared_new(*state);
	struct env *env = store_dir_open(*state);
	pid_t pid = child_start(hold_and_wait, s);

	assert_true(wait_flag(&s->ready));
	for (int held = 1; held >= 0; held--) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			enum store_rc want = held ? names[i].while_held : STORE_OK, rc;
			struct hold hold;

			rc = hold_take(env, names[i].name, &hold);
			if (rc != want || (hold.fd >= 0) != (rc == STORE_OK))
				fail_msg("%s: %d, want %d", names[i].what, rc, want);
			hold_release(&hold);
			hold_release(&hold);
		}
		if (held) {
			kill(pid, SIGKILL);
			assert_int_equal(child_end(pid), 128 + SIGKILL);
		}
	}
	s->ready = 0;
	assert_int_equal(child_end(child_start(hold_and_exit, s)), 0);
	assert_int_equal(child_end(child_start(hold_and_exit, s)), 0);
	env_close(&env);
}

/* Nothing is written, however many names there were. */
static void
leaves_nothing(void **state)
{
	struct env *env = store_dir_open(*state);
	struct stat st;

	for (uint64_t i = 0; i < 100; i++) {
		struct hold hold;

		assert_int_equal(hold_take(env, i << 56, &hold), STORE_OK);
		hold_release(&hold);
	}
	assert_int_equal(stat(store_dir_file(*state, "holds.lock"), &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	env_close(&env);
}

static void
cannot_be_opened(void **state)
{
	struct env *env = store_dir_open(*state);
	struct hold hold;

	assert_int_equal(symlink("/dev/null", store_dir_file(*state, "holds.lock")), 0);
	assert_int_equal(hold_take(env, 1, &hold), STORE_IO);
	assert_non_null(strstr(env_error(env), "holds.lock: Too many levels"));
	assert_int_equal(hold.fd, -1);
	env_close(&env);
}

/* ---- one at a time ---- */

static int
take_turns(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);

	for (unsigned n = 0; n < TIMES;) {
		struct hold hold;
		enum store_rc rc = hold_take(env, 77, &hold);

		if (rc == STORE_BUSY) {
			nanosleep(&(struct timespec){0, 20000}, NULL);
			continue;
		}
		if (rc != STORE_OK)
			return 1;
		if (__sync_fetch_and_add(&s->inside, 1) != 0)
			s->together++;
		s->times = s->times + 1; /* not atomic: the hold is what keeps it right */
		__sync_fetch_and_sub(&s->inside, 1);
		hold_release(&hold);
		n++;
	}
	return 0;
}

static void
one_at_a_time(void **state)
{
	struct shared *s = shared_new(*state);
	pid_t pid[PROCESSES];

	for (unsigned i = 0; i < PROCESSES; i++)
		pid[i] = child_start(take_turns, s);
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(child_end(pid[i]), 0);
	assert_int_equal(s->together, 0);
	assert_int_equal(s->times, PROCESSES * TIMES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(dies_with_its_holder),
	    TEST(leaves_nothing),
	    TEST(cannot_be_opened),
	    TEST(one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
