#include "store/queue.h"

#include "lib/store_dir.h"

#include <sched.h>

#define CHANNEL 4

/*
 * Real processes. The resource is account 1 of the channel, `limit` leases at once; a worker does what pick.c and
 * settle.c do.
 */
#define WORKERS 16

struct shared {
	const struct store_dir *dir;
	unsigned limit, size, workers;
	volatile int ready, go, stop;
	volatile unsigned turn; /* who may join now */
	unsigned norder, order[WORKERS];
	volatile int refused, joined;
	int in_use, too_many; /* leases held, as the holders see it */
	unsigned got[WORKERS];
	unsigned late[WORKERS]; /* leases found by looking, without being woken */
	double longest[WORKERS];
	double woken_at, hop[64]; /* seconds from wake to awake */
};

struct worker {
	struct shared *s;
	unsigned number;
	struct env *env;
	struct slot *slot;
	struct queue_who who;
	/* of a transaction */
	bool took, full;
	struct queue_wake wake;
	struct slot_list list;
};

static unsigned
leases(struct worker *w, const struct slot *own)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->list.n; i++)
		n += slot_lives(own, w->list.seen[i].number);
	return n;
}

static enum store_rc
pick(struct txn *txn, void *arg)
{
	struct slot_row row = {.kind = SLOT_REQUEST, .channel = CHANNEL, .account = 1};
	struct worker *w = arg;
	unsigned before;
	bool may = false;
	enum store_rc rc;

	w->took = w->full = false;
	w->wake.n = 0;
	rc = queue_may_take(txn, &w->who, &may);
	if (rc == STORE_OK)
		rc = slot_walk(txn, &w->list);
	if (rc != STORE_OK)
		return rc;
	w->took = may && leases(w, w->slot) < w->s->limit;
	if (w->took) {
		rc = slot_take(txn, w->slot, &row);
		return rc == STORE_OK ? queue_leave(txn, &w->who, &w->wake) : rc;
	}
	rc = queue_join(txn, &w->who, w->s->size, &before);
	w->full = rc == STORE_FULL;
	return w->full ? STORE_OK : rc;
}

static enum store_rc
settle(struct txn *txn, void *arg)
{
	struct worker *w = arg;
	enum store_rc rc = slot_free(txn, w->slot);

	return rc == STORE_OK ? queue_next(txn, &w->who, &w->wake) : rc;
}

static bool
worker_open(struct worker *w)
{
	struct store_why why;

	w->env = store_dir_open(w->s->dir);
	if (w->env == NULL || slot_open(w->env, &w->slot, &why) != STORE_OK)
		return false;
	w->who = (struct queue_who){w->slot, CHANNEL, 0};
	__atomic_add_fetch(&w->s->ready, 1, __ATOMIC_SEQ_CST);
	return true;
}

static void
worker_close(struct worker *w)
{
	slot_close(&w->slot);
	env_close(&w->env);
}

/* 0: took a lease; 1: the queue was full; else an error. */
static int
wait_lease(struct worker *w)
{
	double begun = seconds_now(), looked = begun, waited;
	bool woken = true, joined = false;

	for (;;) {
		uint32_t mark = queue_mark(w->env, w->slot);

		if (woken || seconds_now() - looked > QUEUE_LOOK_MS / 1000.0) {
			looked = seconds_now();
			if (env_update(w->env, pick, w) != STORE_OK)
				return 2;
			queue_wake(w->env, &w->wake);
			if (w->full)
				return 1;
			if (w->took)
				break;
			if (!joined)
				__atomic_add_fetch(&w->s->joined, 1, __ATOMIC_SEQ_CST);
			joined = true;
		}
		woken = queue_wait(w->env, w->slot, mark, QUEUE_SLICE_MS);
	}
	waited = seconds_now() - begun;
	if (waited > w->s->longest[w->number])
		w->s->longest[w->number] = waited;
	w->s->late[w->number] += !woken;
	if (__atomic_add_fetch(&w->s->in_use, 1, __ATOMIC_SEQ_CST) > (int)w->s->limit)
		w->s->too_many++;
	return 0;
}

static bool
give_back(struct worker *w)
{
	__atomic_sub_fetch(&w->s->in_use, 1, __ATOMIC_SEQ_CST);
	if (env_update(w->env, settle, w) != STORE_OK)
		return false;
	queue_wake(w->env, &w->wake);
	return true;
}

static void
start_workers(struct shared *s, int (*fn)(void *), pid_t *pids)
{
	for (unsigned i = 0; i < s->workers; i++)
		pids[i] = child_start(fn, &(struct worker){.s = s, .number = i});
	for (unsigned i = 0; i < 5000 && s->ready < (int)s->workers; i++)
		nap_ms(1);
	assert_int_equal(s->ready, s->workers);
}

static struct shared *
shared_new(void **state, unsigned workers)
{
	struct shared *s = shared_bytes(sizeof *s);

	*s = (struct shared){.dir = *state, .limit = 1, .size = workers, .workers = workers};
	return s;
}

/* Each joins when it is its turn; the first of all has the lease. */
static int
join_in_turn(void *arg)
{
	struct worker *w = arg;
	int rc;

	if (!worker_open(w))
		return 3;
	while (w->s->turn != w->number)
		nap_ms(1);
	rc = wait_lease(w);
	if (rc != 0)
		return rc;
	w->s->order[w->s->norder++] = w->number; /* one lease at a time: no race */
	if (w->number == 0 && !wait_flag(&w->s->go))
		return 4;
	nap_ms(1);
	if (!give_back(w))
		return 5;
	worker_close(w);
	return 0;
}

/* Let worker after worker join; the first takes the lease. */
static void
line_up(struct shared *s)
{
	for (unsigned i = 0; i < s->workers; i++) {
		s->turn = i;
		if (i == 0)
			for (unsigned n = 0; n < 5000 && s->in_use == 0; n++)
				nap_ms(1);
		for (unsigned n = 0; n < 5000 && s->joined < (int)i; n++)
			nap_ms(1);
		assert_int_equal(s->joined, i);
	}
}

static void
first_come_first_served(void **state)
{
	struct shared *s = shared_new(state, 12);
	pid_t pids[WORKERS];
	double begun;

	s->turn = 99;
	start_workers(s, join_in_turn, pids);
	line_up(s);
	begun = seconds_now();
	s->go = 1;
	for (unsigned i = 0; i < s->workers; i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned i = 0; i < s->workers; i++)
		assert_int_equal(s->order[i], i);
	assert_int_equal(s->too_many, 0);
	/* 12 x 1 ms of work; a wake-up that is lost costs 250 ms */
	if (seconds_now() - begun > 1)
		fail_msg("took %.0f ms", (seconds_now() - begun) * 1000);
}

static void
the_dead_are_skipped(void **state)
{
	static const unsigned killed[] = {1, 4, 5, 9};
	static const unsigned want[] = {0, 2, 3, 6, 7, 8};
	struct shared *s = shared_new(state, 10);
	pid_t pids[WORKERS];
	double begun;

	s->turn = 99;
	start_workers(s, join_in_turn, pids);
	line_up(s);
	for (unsigned i = 0; i < sizeof killed / sizeof killed[0]; i++) {
		kill(pids[killed[i]], SIGKILL);
		assert_int_equal(child_end(pids[killed[i]]), 128 + SIGKILL);
		pids[killed[i]] = 0;
	}
	begun = seconds_now();
	s->go = 1;
	for (unsigned i = 0; i < s->workers; i++)
		if (pids[i] != 0)
			assert_int_equal(child_end(pids[i]), 0);
	assert_int_equal(s->norder, sizeof want / sizeof want[0]);
	assert_memory_equal(s->order, want, sizeof want);
	if (seconds_now() - begun > 1)
		fail_msg("took %.0f ms", (seconds_now() - begun) * 1000);
}

/* The holder is killed: nobody wakes anybody, and the first in line finds the lease by looking. */
static void
a_dead_holder(void **state)
{
	struct shared *s = shared_new(state, 4);
	pid_t pids[WORKERS];
	double begun;

	s->turn = 99;
	start_workers(s, join_in_turn, pids);
	line_up(s);
	kill(pids[0], SIGKILL);
	assert_int_equal(child_end(pids[0]), 128 + SIGKILL);
	__atomic_sub_fetch(&s->in_use, 1, __ATOMIC_SEQ_CST);
	begun = seconds_now();
	for (unsigned i = 1; i < s->workers; i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned i = 0; i < s->workers; i++)
		assert_int_equal(s->order[i], i);
	if (seconds_now() - begun > 1.5)
		fail_msg("took %.0f ms", (seconds_now() - begun) * 1000);
}

static int
join_once(void *arg)
{
	struct worker *w = arg;
	int rc;

	if (!worker_open(w) || !wait_flag(&w->s->go))
		return 3;
	rc = wait_lease(w);
	if (rc == 1)
		__atomic_add_fetch(&w->s->refused, 1, __ATOMIC_SEQ_CST);
	if (rc != 0)
		return rc;
	while (!w->s->stop)
		nap_ms(1);
	if (!give_back(w))
		return 5;
	worker_close(w);
	return 0;
}

static void
the_bound_is_kept(void **state)
{
	struct shared *s = shared_new(state, WORKERS);
	unsigned served = 0, refused = 0;
	pid_t pids[WORKERS];

	s->size = 5;
	start_workers(s, join_once, pids);
	s->go = 1;
	for (unsigned n = 0; n < 5000 && s->joined + s->refused < (int)s->workers - 1; n++)
		nap_ms(1);
	assert_int_equal(s->joined, 5);
	assert_int_equal(s->refused, s->workers - 6);
	s->stop = 1;
	for (unsigned i = 0; i < s->workers; i++) {
		int end = child_end(pids[i]);

		served += end == 0;
		refused += end == 1;
	}
	assert_int_equal(served, 6);
	assert_int_equal(refused, s->workers - 6);
	assert_int_equal(s->too_many, 0);
}

static int
work_on(void *arg)
{
	struct worker *w = arg;

	if (!worker_open(w) || !wait_flag(&w->s->go))
		return 3;
	while (!w->s->stop) {
		int rc = wait_lease(w);

		if (rc != 0)
			return 10 + rc;
		nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
		if (!give_back(w))
			return 5;
		w->s->got[w->number]++;
	}
	worker_close(w);
	return 0;
}

/* 16 processes that always want one of 3 leases: all get the same, none is forgotten. */
static void
fair_among_sixteen(void **state)
{
	struct shared *s = shared_new(state, WORKERS);
	unsigned least = UINT32_MAX, most = 0, sum = 0, late = 0;
	double longest = 0;
	pid_t pids[WORKERS];

	s->limit = 3;
	start_workers(s, work_on, pids);
	s->go = 1;
	nap_ms(1500);
	s->stop = 1;
	for (unsigned i = 0; i < s->workers; i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned i = 0; i < s->workers; i++) {
		least = s->got[i] < least ? s->got[i] : least;
		most = s->got[i] > most ? s->got[i] : most;
		longest = s->longest[i] > longest ? s->longest[i] : longest;
		sum += s->got[i];
		late += s->late[i];
	}
	if (getenv("SLUICE_TEST_FIGURES") != NULL)
		fprintf(stderr, "%u leases, %u to %u each, longest wait %.1f ms, %u not woken\n",
		    sum, least, most, longest * 1000, late);
	assert_int_equal(s->too_many, 0);
	if (late > 3 || least < most / 2 || longest > 1)
		fail_msg("%u to %u leases each, longest wait %.0f ms, %u not woken", least, most,
		    longest * 1000, late);
}

static int
sleep_and_wake(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;

	if (!worker_open(w))
		return 3;
	for (unsigned i = 0; i < sizeof s->hop / sizeof s->hop[0]; i++) {
		uint32_t mark = queue_mark(w->env, w->slot);

		s->turn = i;
		while (!queue_wait(w->env, w->slot, mark, 1000))
			;
		s->hop[i] = seconds_now() - s->woken_at;
		s->turn = 99;
	}
	worker_close(w);
	return 0;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
waking_is_quick(void **state)
{
	struct shared *s = shared_new(state, 1);
	size_t n = sizeof s->hop / sizeof s->hop[0];
	struct queue_wake wake = {.n = 1, .slot = {0}};
	struct env *env;
	pid_t pids[WORKERS];

	s->turn = 99;
	start_workers(s, sleep_and_wake, pids);
	env = store_dir_open(*state);
	for (unsigned i = 0; i < n; i++) {
		while (s->turn != i)
			sched_yield();
		nap_ms(2);
		s->woken_at = seconds_now();
		queue_wake(env, &wake);
	}
	assert_int_equal(child_end(pids[0]), 0);
	env_close(&env);
	qsort(s->hop, n, sizeof s->hop[0], by_size);
	if (getenv("SLUICE_TEST_FIGURES") != NULL)
		fprintf(stderr, "wake-up: median %.3f ms, longest %.3f ms\n", s->hop[n / 2] * 1000,
		    s->hop[n - 1] * 1000);
	if (s->hop[n / 2] > 0.005)
		fail_msg("median wake-up %.1f ms", s->hop[n / 2] * 1000);
}

static void
waiting_has_a_limit(void **state)
{
	struct env *env = store_dir_open(*state);
	struct queue_wake wake = {.n = 1, .slot = {0}};
	struct store_why why;
	struct slot *slot;
	double begun = seconds_now();
	uint32_t mark;

	assert_int_equal(slot_open(env, &slot, &why), STORE_OK);
	mark = queue_mark(env, slot);
	assert_false(queue_wait(env, slot, mark, 0));
	assert_false(queue_wait(env, slot, mark, -5));
	assert_false(queue_wait(env, slot, mark, 3600000));
	assert_true(seconds_now() - begun >= QUEUE_SLICE_MS / 1000.0);
	assert_true(seconds_now() - begun < 2);
	queue_wake(env, &wake); /* before we sleep */
	assert_true(queue_wait(env, slot, mark, 3600000));
	slot_close(&slot);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(waiting_has_a_limit),
	    WITH_DIR(waking_is_quick),
	    WITH_DIR(first_come_first_served),
	    WITH_DIR(the_dead_are_skipped),
	    WITH_DIR(a_dead_holder),
	    WITH_DIR(the_bound_is_kept),
	    WITH_DIR(fair_among_sixteen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
