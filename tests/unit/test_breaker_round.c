#include "store/breaker.h"

#include "lib/store_dir.h"

#define NELEM(array) (sizeof(array) / sizeof((array)[0]))
#define T0 1767571200000LL /* ms */

static const struct breaker_policy standard = {
    .triggers = BREAKER_TRIGGERS,
    .error_rate_micros = 300000,
    .error_window_ms = 60000,
    .error_min_requests = 20,
    .latency_ms = 30000,
    .latency_window_ms = 60000,
    .consecutive_fail = 10,
    .recovery_timeout_ms = 60000,
    .reopen_ms = 90000,
    .half_open_requests = 3,
    .half_open_success = 2,
};

static void
look(struct breaker_row *row, const struct breaker_facts *facts, int64_t at, const char *text)
{
	struct breaker_change change;

	breaker_look(row, facts, &standard, (struct wall_ms){T0 + at}, &change);
	assert_string_equal(change.text, text);
}

static void
probe(struct breaker_row *row, enum breaker_probe how, int64_t at, const char *text)
{
	struct breaker_outcome outcome = {.requests = true,
	    .failed = how == BREAKER_PROBE_FAILED,
	    .first_content_ms = 40000,
	    .permit = true,
	    .probe = how,
	    .round = row->round};
	struct breaker_change change;

	breaker_permit(row);
	breaker_result(row, &outcome, &standard, (struct wall_ms){T0 + at}, &change);
	assert_string_equal(change.text, text);
}

static void
fail_or_not(struct breaker_row *row, bool failed)
{
	struct breaker_outcome outcome = {
	    .requests = true, .failed = failed, .first_content_ms = -1, .round = row->round};
	struct breaker_change change;

	breaker_result(row, &outcome, &standard, (struct wall_ms){T0}, &change);
	assert_false(change.moved);
}

/* One life, in the words of the log. Neither old failures, nor slow probes, nor an account that goes on failing open it
 * again; a new one in a row does. */
static void
test_life(void **state)
{
	struct breaker_facts facts = {true, true, 0, 0};
	struct breaker_row row = {0};

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		fail_or_not(&row, i < 9);
	look(&row, &facts, 1, "open: error_rate (45.0% >= 30%)");
	look(&row, &facts, 60000, "");
	facts.consecutive = 11;
	look(&row, &facts, 60001, "half-open: recovery time over (needs 2/3)");
	probe(&row, BREAKER_PROBE_FAILED, 60100, "probe failed (0/2 ok, 1/3 sent)");
	probe(&row, BREAKER_PROBE_FAILED, 60200, "open: probes failed, next try in 90s");
	look(&row, &facts, 150199, "");
	look(&row, &facts, 150200, "half-open: recovery time over (needs 2/3)");
	assert_int_equal(row.round, 2);
	probe(&row, BREAKER_PROBE_OK, 150300, "probe ok (1/2 ok, 1/3 sent)");
	probe(&row, BREAKER_PROBE_OK, 150400, "closed: probes passed (2/3)");
	look(&row, &facts, 150500, "");
	facts.consecutive = 12;
	look(&row, &facts, 150600, "open: consecutive_fail (12 >= 10)");
	look(&row, &facts, 210600, "half-open: recovery time over (needs 2/3)");
	probe(&row, BREAKER_PROBE_OK, 210700, "probe ok (1/2 ok, 1/3 sent)");
	probe(&row, BREAKER_PROBE_OK, 210800, "closed: probes passed (2/3)");
	look(&row, &facts, 210900, "");
	facts.consecutive = 0;
	look(&row, &facts, 211000, "");
	facts.consecutive = 10;
	look(&row, &facts, 211100, "open: consecutive_fail (10 >= 10)");
}

/* Failures still in a long window when probes have passed are no news. */
static void
test_fresh_start(void **state)
{
	struct breaker_policy policy = standard;
	struct breaker_facts facts = {true, true, 0, 0};
	struct breaker_row row = {0};
	struct breaker_outcome outcome = {
	    .requests = true, .failed = true, .first_content_ms = 40000};
	struct breaker_change change;
	struct breaker_sums sums;
	struct wall_ms now = {T0};

	(void)state;
	policy.error_window_ms = policy.latency_window_ms = 3600000;
	policy.half_open_success = 1;
	for (unsigned i = 0; i < 20; i++)
		breaker_result(&row, &outcome, &policy, now, &change);
	breaker_look(&row, &facts, &policy, now, &change);
	assert_int_equal(row.state, BREAKER_OPEN);
	now.v += 60000;
	breaker_look(&row, &facts, &policy, now, &change);
	breaker_permit(&row);
	outcome = (struct breaker_outcome){.requests = true,
	    .first_content_ms = 40000,
	    .permit = true,
	    .probe = BREAKER_PROBE_OK,
	    .round = row.round};
	breaker_result(&row, &outcome, &policy, now, &change);
	assert_string_equal(change.text, "closed: probes passed (1/3)");
	breaker_sums(&row, &policy, now, &sums);
	assert_int_equal(sums.requests + sums.failures + sums.latency_n + sums.latency_sum_ms, 0);
	/* leases that were taken before it opened come home late */
	outcome =
	    (struct breaker_outcome){.requests = true, .failed = true, .first_content_ms = -1};
	for (unsigned i = 0; i < 50; i++)
		breaker_result(&row, &outcome, &policy, now, &change);
	breaker_look(&row, &facts, &policy, now, &change);
	assert_int_equal(row.state, BREAKER_CLOSED);
}

static void
test_override(void **state)
{
	struct breaker_facts facts = {true, true, 10, 0};
	struct breaker_row row = {0};

	(void)state;
	assert_int_equal(breaker_triggers(&row, &standard), BREAKER_TRIGGERS);
	breaker_override(&row, BREAKER_POOL_EXHAUSTED);
	assert_int_equal(breaker_triggers(&row, &standard), BREAKER_POOL_EXHAUSTED);
	look(&row, &facts, 0, "");
	breaker_override(&row, 0xff0 | BREAKER_CONSECUTIVE_FAIL);
	assert_int_equal(breaker_triggers(&row, &standard), BREAKER_CONSECUTIVE_FAIL);
	look(&row, &facts, 0, "open: consecutive_fail (10 >= 10)");
	breaker_override(&row, 0);
	assert_int_equal(breaker_triggers(&row, &standard), 0);
	look(&row, &facts, 1, "closed: its trigger was switched off");
	look(&row, &facts, 2, "");
	breaker_follow(&row);
	look(&row, &facts, 3, "open: consecutive_fail (10 >= 10)");
	look(&row, &facts, 60003, "half-open: recovery time over (needs 2/3)");
	breaker_override(&row, BREAKER_POOL_EXHAUSTED);
	look(&row, &facts, 60004, ""); /* a round goes on */
	assert_int_equal(row.state, BREAKER_HALF_OPEN);
}

/* Sequences of how probes end, one after the other, against the plain rule. */
static void
run_sequence(int64_t budget, int64_t needs, unsigned code, unsigned length)
{
	struct breaker_policy policy = standard;
	struct breaker_row row = {
	    .state = BREAKER_HALF_OPEN, .trigger = BREAKER_ERROR_RATE, .round = 1};
	int64_t ok = 0, failed = 0;

	policy.half_open_requests = budget;
	policy.half_open_success = needs;
	for (unsigned i = 0; i < length; i++, code /= 3) {
		enum breaker_probe how = (enum breaker_probe)(code % 3);
		struct breaker_outcome outcome = {
		    .first_content_ms = -1, .permit = true, .probe = how, .round = 1};
		struct breaker_facts facts = {.active = true};
		enum breaker_state want;
		struct breaker_change change;
		char text[64];

		breaker_look(&row, &facts, &policy, (struct wall_ms){T0}, &change);
		assert_int_equal(breaker_admit(&row, &policy), BREAKER_PERMIT);
		breaker_permit(&row);
		assert_int_equal(row.sent, ok + failed + 1);
		breaker_result(&row, &outcome, &policy, (struct wall_ms){T0}, &change);
		ok += how == BREAKER_PROBE_OK;
		failed += how == BREAKER_PROBE_FAILED;
		/* what remains, were all to pass */
		want = ok == needs                           ? BREAKER_CLOSED
		       : ok + (budget - ok - failed) < needs ? BREAKER_OPEN
		                                             : BREAKER_HALF_OPEN;
		assert_int_equal(row.state, want);
		assert_int_equal(change.moved, want != BREAKER_HALF_OPEN);
		assert_int_equal(row.sent, ok + failed);
		snprintf(text, sizeof text, "probe %s (%d/%d ok, %d/%d sent)",
		    how == BREAKER_PROBE_OK ? "ok" : "failed", (int)ok, (int)needs,
		    (int)(ok + failed), (int)budget);
		if (want == BREAKER_HALF_OPEN && how != BREAKER_PROBE_NEUTRAL)
			assert_string_equal(change.text, text);
		if (want != BREAKER_HALF_OPEN)
			return;
	}
}

static void
test_sequences(void **state)
{
	(void)state;
	for (int64_t budget = 1; budget <= 4; budget++)
		for (int64_t needs = 1; needs <= budget; needs++)
			for (unsigned code = 0; code < 3 * 3 * 3 * 3 * 3 * 3; code++)
				run_sequence(budget, needs, code, 6);
}

/* Settings that cannot be met, or are none, still let a round end. */
static void
test_odd_settings(void **state)
{
	static const struct {
		int64_t budget, needs;
		const char *text;
	} odd[] = {{2, 5, "half-open: recovery time over (needs 2/2)"},
	    {0, 0, "half-open: recovery time over (needs 1/1)"},
	    {-3, -3, "half-open: recovery time over (needs 1/1)"},
	    {4, 0, "half-open: recovery time over (needs 1/4)"}};

	(void)state;
	for (size_t i = 0; i < NELEM(odd); i++) {
		struct breaker_policy policy = standard;
		struct breaker_row row = {
		    .state = BREAKER_OPEN, .trigger = BREAKER_ERROR_RATE, .until_ms = T0};
		struct breaker_facts facts = {.active = true};
		struct breaker_change change;

		policy.half_open_requests = odd[i].budget;
		policy.half_open_success = odd[i].needs;
		breaker_look(&row, &facts, &policy, (struct wall_ms){T0}, &change);
		assert_string_equal(change.text, odd[i].text);
		assert_int_equal(breaker_admit(&row, &policy), BREAKER_PERMIT);
	}
}

/*
 * Many processes at once. The row is put back only when a step says so; a process may die between any two of its
 * steps, taking its slot with it.
 */
#define PROCESSES 12
#define ROUNDS_MAX 4096

struct world {
	uint64_t random;
	struct breaker_policy policy;
	struct breaker_row stored;
	struct wall_ms now;
	struct process {
		bool busy, permit;
		uint32_t round;
	} processes[PROCESSES];
	unsigned results[ROUNDS_MAX]; /* of a round's probes, while it was that round */
	unsigned closed, failed, spent, died, late;
};

static unsigned
draw(struct world *w, unsigned n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (unsigned)((w->random * 2685821657736338717ULL >> 33) % n);
}

static unsigned
in_flight(const struct world *w, uint32_t round)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		n += w->processes[i].busy && w->processes[i].permit &&
		     w->processes[i].round == round;
	return n;
}

static void
pick(struct world *w, struct process *p)
{
	struct breaker_row row = w->stored;
	struct breaker_facts facts = {.active = draw(w, 8) != 0,
	    .fallback = draw(w, 2) != 0,
	    .permits = in_flight(w, row.round)};
	struct breaker_change change;
	enum breaker_answer answer;

	breaker_look(&row, &facts, &w->policy, w->now, &change);
	answer = breaker_admit(&row, &w->policy);
	w->spent += answer == BREAKER_SPENT;
	/* with room and nobody under way a round must never be stuck */
	if (row.state == BREAKER_HALF_OPEN && in_flight(w, row.round) == 0)
		assert_int_equal(answer, BREAKER_PERMIT);
	if (answer == BREAKER_PERMIT || answer == BREAKER_YES)
		*p = (struct process){true, answer == BREAKER_PERMIT, row.round};
	if (answer == BREAKER_PERMIT)
		breaker_permit(&row);
	if (change.write || answer == BREAKER_PERMIT)
		w->stored = row;
	assert_true(change.write || !change.moved);
}

static void
finish(struct world *w, struct process *p)
{
	struct breaker_row row = w->stored;
	enum breaker_probe how = (enum breaker_probe)draw(w, 3);
	struct breaker_outcome outcome = {.requests = how != BREAKER_PROBE_NEUTRAL,
	    .failed = how == BREAKER_PROBE_FAILED,
	    .first_content_ms = -1,
	    .permit = p->permit,
	    .probe = how,
	    .round = p->round};
	struct breaker_change change;
	bool counts = p->permit && row.state == BREAKER_HALF_OPEN && p->round == row.round;

	breaker_result(&row, &outcome, &w->policy, w->now, &change);
	if (change.write)
		w->stored = row;
	if (counts && how != BREAKER_PROBE_NEUTRAL)
		w->results[p->round % ROUNDS_MAX]++;
	w->late += p->permit && !counts;
	w->closed += change.moved && change.to == BREAKER_CLOSED;
	w->failed += change.moved && change.to == BREAKER_OPEN;
	assert_true(!change.moved || counts);
	p->busy = false;
}

static void
run_world(uint64_t seed, int64_t budget, int64_t needs, struct world *w)
{
	*w = (struct world){.random = seed * 7919 + 1, .policy = standard, .now = {T0}};
	w->policy.half_open_requests = budget;
	w->policy.half_open_success = needs;
	w->policy.error_min_requests = 5;
	for (unsigned i = 0; i < 4000; i++) {
		struct process *p = &w->processes[draw(w, PROCESSES)];

		w->now.v += draw(w, 50) == 0 ? draw(w, 90000) : draw(w, 300);
		if (!p->busy) {
			pick(w, p);
		} else if (draw(w, 6) == 0) {
			w->died++;
			p->busy = false;
		} else {
			finish(w, p);
		}
		if (w->stored.state == BREAKER_HALF_OPEN)
			assert_true(w->results[w->stored.round % ROUNDS_MAX] +
			                in_flight(w, w->stored.round) <=
			            (unsigned)budget);
	}
	assert_true(w->stored.round < ROUNDS_MAX);
	for (unsigned i = 0; i < ROUNDS_MAX; i++)
		assert_true(w->results[i] <= (unsigned)budget);
}

static void
test_interleavings(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	unsigned closed = 0, failed = 0, spent = 0, died = 0, late = 0;

	(void)state;
	assert_non_null(w);
	for (uint64_t seed = 1; seed <= 40; seed++) {
		int64_t budget = 1 + (int64_t)(seed % 5);

		run_world(seed, budget, 1 + (int64_t)(seed / 5) % budget, w);
		closed += w->closed;
		failed += w->failed;
		spent += w->spent;
		died += w->died;
		late += w->late;
	}
	free(w);
	/* the test went where it should */
	assert_true(closed > 100 && failed > 100 && spent > 100 && died > 1000 && late > 100);
}

struct job {
	struct breaker_row row;
	size_t n;
	enum store_rc rc;
};

static enum store_rc
do_put(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return breaker_put(txn, 7, &job->row);
}

static enum store_rc
do_damage(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return txn_put(txn, key_of(KEY_BREAKER, 7, 0), &job->row, job->n);
}

static enum store_rc
do_get(struct txn *txn, void *arg)
{
	struct job *job = arg;

	job->rc = breaker_get(txn, 7, &job->row);
	return STORE_OK;
}

static void
test_rows(void **state)
{
	struct env *env = store_dir_open(*state);
	struct job job = {.n = sizeof job.row}, got = {.n = 0};
	static const struct {
		size_t at;
		uint8_t byte;
	} damages[] = {{offsetof(struct breaker_row, version), 9},
	    {offsetof(struct breaker_row, state), 3},
	    {offsetof(struct breaker_row, errors.newest) + 7, 0x80},
	    {offsetof(struct breaker_row, latency.newest) + 7, 0x7f},
	    {offsetof(struct breaker_row, until_ms) + 7, 0x80}};

	assert_non_null(env);
	assert_int_equal(env_view(env, do_get, &got), STORE_OK);
	assert_int_equal(got.rc, STORE_NONE);
	assert_int_equal(got.row.state, BREAKER_CLOSED);
	job.row = (struct breaker_row){
	    .state = BREAKER_OPEN, .trigger = BREAKER_ERROR_RATE, .round = 7, .until_ms = T0};
	assert_int_equal(env_update(env, do_put, &job), STORE_OK);
	assert_int_equal(env_view(env, do_get, &got), STORE_OK);
	assert_int_equal(got.rc, STORE_OK);
	job.row.version = got.row.version;
	assert_memory_equal(&got.row, &job.row, sizeof job.row);
	for (size_t i = 0; i < NELEM(damages); i++) {
		struct job bad = job;

		((uint8_t *)&bad.row)[damages[i].at] = damages[i].byte;
		assert_int_equal(env_update(env, do_damage, &bad), STORE_OK);
		assert_int_equal(env_view(env, do_get, &got), STORE_OK);
		assert_int_equal(got.rc, STORE_NONE);
		assert_int_equal(got.row.state, BREAKER_CLOSED);
	}
	job.n = 100;
	assert_int_equal(env_update(env, do_damage, &job), STORE_OK);
	assert_int_equal(env_view(env, do_get, &got), STORE_OK);
	assert_int_equal(got.rc, STORE_NONE);
	assert_int_equal(got.row.round, 0);
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_life),
	    cmocka_unit_test(test_fresh_start),
	    cmocka_unit_test(test_override),
	    cmocka_unit_test(test_sequences),
	    cmocka_unit_test(test_odd_settings),
	    cmocka_unit_test(test_interleavings),
	    cmocka_unit_test_setup_teardown(test_rows, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
