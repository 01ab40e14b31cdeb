#include "store/job.h"

#include "lib/store_dir.h"

#define LEASE 60000 /* of JOB_SWEEP_SESSIONS */
#define T0 1000000000

enum op { CLAIM, RENEW, DONE, HURRY };

/* Two runners, a and b, and what their last claim was. Times are ms after T0. */
static const struct {
	const char *what;
	char who;
	enum op op;
	int64_t at_ms, period_ms;
	bool claimed;     /* of CLAIM */
	enum store_rc rc; /* of the others */
} steps[] = {
    {"not asked for", 'a', CLAIM, 0, 0, false, STORE_OK},
    {"a new job is due at once", 'a', CLAIM, 0, 5000, true, STORE_OK},
    {"it runs", 'b', CLAIM, 100, 5000, false, STORE_OK},
    {"still runs after its period", 'b', CLAIM, 6000, 5000, false, STORE_OK},
    {"who did not claim is not done", 'b', DONE, 6000, 0, false, STORE_NONE},
    {"done", 'a', DONE, 6100, 0, false, STORE_OK},
    {"done twice", 'a', DONE, 6100, 0, false, STORE_NONE},
    {"due, it took longer than its period", 'b', CLAIM, 6200, 5000, true, STORE_OK},
    {"done at once", 'b', DONE, 6300, 0, false, STORE_OK},
    {"not due yet", 'a', CLAIM, 11199, 5000, false, STORE_OK},
    {"due", 'a', CLAIM, 11200, 5000, true, STORE_OK},
    {"its lease runs", 'b', CLAIM, 11200 + LEASE - 1, 5000, false, STORE_OK},
    {"renewed", 'a', RENEW, 11200 + LEASE - 1, 0, false, STORE_OK},
    {"its lease runs again", 'b', CLAIM, 11200 + LEASE, 5000, false, STORE_OK},
    {"its lease is over", 'b', CLAIM, 11200 + 2 * LEASE - 1, 5000, true, STORE_OK},
    {"the former runner lost it", 'a', RENEW, 11200 + 2 * LEASE, 0, false, STORE_NONE},
    {"the former runner is not done", 'a', DONE, 11200 + 2 * LEASE, 0, false, STORE_NONE},
    {"the new one is", 'b', DONE, 200000, 0, false, STORE_OK},
    {"far from due", 'a', CLAIM, 200000, 5000, true, STORE_OK},
    {"done again", 'a', DONE, 200000, 0, false, STORE_OK},
    {"not due", 'b', CLAIM, 201000, 5000, false, STORE_OK},
    {"hurried", 'b', HURRY, 201000, 0, false, STORE_OK},
    {"due", 'b', CLAIM, 201000, 5000, true, STORE_OK},
    {"hurried while it runs", 'a', HURRY, 201100, 0, false, STORE_OK},
    {"runs", 'a', CLAIM, 201100, 5000, false, STORE_OK},
    {"done", 'b', DONE, 201200, 0, false, STORE_OK},
    {"due by the hurry", 'a', CLAIM, 201200, 5000, true, STORE_OK},
    {"done", 'a', DONE, 201300, 0, false, STORE_OK},
    {"the clock went back: due lies too far ahead", 'a', CLAIM, 100000, 5000, true, STORE_OK},
    {"the clock went back: the lease lies too far ahead", 'b', CLAIM, 1000, 5000, true, STORE_OK},
    {"switched off while it runs", 'a', CLAIM, 100000000, 0, false, STORE_OK},
    {"a shorter period: due lies too far ahead", 'a', CLAIM, 100000001, 100000, true, STORE_OK},
    {"done", 'a', DONE, 100000001, 0, false, STORE_OK},
    {"a shorter period", 'a', CLAIM, 100000002, 50, true, STORE_OK},
};

struct step {
	size_t i;
	struct job_claim *claim;
	enum store_rc rc;
};

static enum store_rc
do_step(struct txn *txn, void *arg)
{
	struct step *s = arg;
	struct wall_ms now = {T0 + steps[s->i].at_ms};
	struct job_claim *claim = s->claim;

	switch (steps[s->i].op) {
	case CLAIM:
		s->rc = job_claim(txn, JOB_SWEEP_SESSIONS, now, steps[s->i].period_ms, claim);
		break;
	case RENEW: s->rc = job_renew(txn, claim, now); break;
	case DONE: s->rc = job_done(txn, claim, now); break;
	case HURRY: s->rc = job_hurry(txn, JOB_SWEEP_SESSIONS, now); break;
	}
	return STORE_OK;
}

static void
claims(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job_claim claim[2] = {{.id = JOB_SWEEP_SESSIONS}, {.id = JOB_SWEEP_SESSIONS}};

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct job_claim *mine = &claim[steps[i].who - 'a'], before = *mine;
		struct step step = {.i = i, .claim = mine};

		assert_int_equal(env_update(env, do_step, &step), STORE_OK);
		if (step.rc != steps[i].rc)
			fail_msg("%zu %s: got rc %d, want %d", i, steps[i].what, (int)step.rc,
			    (int)steps[i].rc);
		if (steps[i].op != CLAIM)
			continue;
		if (mine->claimed != steps[i].claimed)
			fail_msg("%zu %s: claimed %d", i, steps[i].what, mine->claimed);
		if (!mine->claimed)
			*mine = before; /* so that a lost claim can be tried again */
	}
	env_close(&env);
}

static enum store_rc
keep_cursor(struct txn *txn, void *arg)
{
	struct job_claim *claim = arg;
	struct job_claim other;
	enum store_rc rc;

	claim->cursor = 77;
	rc = job_done(txn, claim, (struct wall_ms){T0 + 1});
	if (rc == STORE_OK)
		rc = job_claim(txn, JOB_READERS, (struct wall_ms){T0 + 1}, 10, &other);
	if (rc == STORE_OK)
		rc = job_claim(txn, claim->id, (struct wall_ms){T0 + 20}, 10, claim);
	return rc == STORE_OK && (!other.claimed || other.cursor != 0) ? STORE_BAD : rc;
}

static enum store_rc
claim_first(struct txn *txn, void *arg)
{
	return job_claim(txn, JOB_LEDGER_SWEEP, (struct wall_ms){T0}, 10, arg);
}

static enum store_rc
spoil(struct txn *txn, void *arg)
{
	(void)arg;
	return txn_put(txn, key_of(KEY_JOB, 0, JOB_LEDGER_SWEEP), "odd", 3);
}

static void
cursors(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job_claim claim;

	assert_int_equal(env_update(env, claim_first, &claim), STORE_OK);
	assert_true(claim.claimed);
	assert_int_equal(claim.cursor, 0);
	assert_int_equal(env_update(env, keep_cursor, &claim), STORE_OK);
	assert_true(claim.claimed);
	assert_int_equal(claim.cursor, 77);
	/* a row of another program */
	assert_int_equal(env_update(env, spoil, NULL), STORE_OK);
	assert_int_equal(env_update(env, claim_first, &claim), STORE_OK);
	assert_true(claim.claimed);
	env_close(&env);
}

static void
the_table_is_whole(void **state)
{
	(void)state;
	for (int i = 0; i < JOB__MAX; i++) {
		assert_non_null(job_table[i].name);
		assert_non_null(job_table[i].help);
		assert_true(job_table[i].lease_ms >= 1000);
	}
}

#define WORKERS 8
#define PERIOD_MS 40

struct shared {
	const struct store_dir *dir;
	volatile int ready, go;
	int inside, overlaps;
	int runs[WORKERS];
};

struct worker {
	struct shared *shared;
	unsigned number;
	struct job_claim claim;
};

static struct wall_ms
wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (struct wall_ms){(int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000};
}

static enum store_rc
claim_real(struct txn *txn, void *arg)
{
	struct worker *w = arg;

	return job_claim(txn, JOB_BALANCE, wall(), PERIOD_MS, &w->claim);
}

static enum store_rc
done_real(struct txn *txn, void *arg)
{
	struct worker *w = arg;

	return job_done(txn, &w->claim, wall());
}

static int
work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->shared;
	struct env *env = store_dir_open(s->dir);
	double end;

	__atomic_add_fetch(&s->ready, 1, __ATOMIC_SEQ_CST);
	if (env == NULL || !wait_flag(&s->go))
		return 1;
	for (end = seconds_now() + 0.8; seconds_now() < end; nap_ms(1)) {
		if (env_update(env, claim_real, w) != STORE_OK)
			return 2;
		if (!w->claim.claimed)
			continue;
		if (__atomic_add_fetch(&s->inside, 1, __ATOMIC_SEQ_CST) != 1)
			__atomic_add_fetch(&s->overlaps, 1, __ATOMIC_SEQ_CST);
		nap_ms(3);
		__atomic_sub_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
		s->runs[w->number]++;
		if (env_update(env, done_real, w) != STORE_OK)
			return 3;
	}
	env_close(&env);
	return 0;
}

static void
one_of_eight_does_it(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	pid_t pids[WORKERS];
	int runs = 0;

	s->dir = *state;
	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = child_start(work, &(struct worker){.shared = s, .number = i});
	while (s->ready < WORKERS)
		nap_ms(1);
	s->go = 1;
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		runs += s->runs[i];
	assert_int_equal(s->overlaps, 0);
	if (runs < 5 || runs > 800 / PERIOD_MS + 2)
		fail_msg("%d runs in 800 ms at one in %d ms", runs, PERIOD_MS);
}

static int
die_at_work(void *arg)
{
	struct shared *s = arg;
	struct env *env = store_dir_open(s->dir);
	struct job_claim claim;

	if (env == NULL || env_update(env, claim_first, &claim) != STORE_OK || !claim.claimed)
		return 1;
	raise(SIGKILL);
	return 2;
}

static enum store_rc
claim_after(struct txn *txn, void *arg)
{
	struct wall_ms now = {T0 + job_table[JOB_LEDGER_SWEEP].lease_ms - 1};
	enum store_rc rc = job_claim(txn, JOB_LEDGER_SWEEP, now, 10, arg);

	if (rc != STORE_OK || ((struct job_claim *)arg)->claimed)
		return STORE_BAD;
	now.v++;
	return job_claim(txn, JOB_LEDGER_SWEEP, now, 1000000, arg);
}

static void
a_dead_runner_is_replaced(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct job_claim claim;
	struct env *env;

	s->dir = *state;
	assert_int_equal(child_end(child_start(die_at_work, s)), 128 + SIGKILL);
	env = store_dir_open(*state);
	assert_int_equal(env_update(env, claim_after, &claim), STORE_OK);
	assert_true(claim.claimed);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(claims),
	    WITH_DIR(cursors),
	    cmocka_unit_test(the_table_is_whole),
	    WITH_DIR(one_of_eight_does_it),
	    WITH_DIR(a_dead_runner_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
