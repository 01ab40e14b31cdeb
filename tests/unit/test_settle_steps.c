#include "settle.h"

#include "lib/rig.h"

#define S 1000LL
#define MIN (60 * S)
#define H (60 * MIN)

#define WITH(settings)                                                          \
	"{" settings " 'channels': {'oa': {'provider': 'openai', 'accounts': [" \
	"{'id': 'a', 'api_key': 'k', 'max_in_flight': 0}]}}}"
#define PLAIN WITH("")

static struct rig rig;
static struct settle_report report;

/* Settle a lease with a verdict; `stated` from now, 0 = nothing stated. */
static void
settle_as(struct slot *slot, struct pick_lease *lease, enum verdict verdict, int64_t stated,
    const char *model)
{
	struct classify_finding f = {
	    .verdict = verdict, .status = 500 + (int)verdict, .rule = "r", .message = "words"};
	struct settle_outcome outcome = {
	    .finding = &f, .model = model, .client = "", .latency_ms = 1};
	struct why why = {""};

	if (stated != 0)
		f.reset = (struct reset_time){true, {rig.now.v + stated}, "test"};
	if (verdict == VERDICT_SOFT_RATE || verdict == VERDICT_MODEL_RATE)
		f.status = 429;
	if (settle_lease(rig.env, slot, rig.pool, lease, &outcome, rig.now, &report, &why) !=
	    ERR_OK)
		fail_msg("settle: %s", why.text);
}

static void
take(void)
{
	struct pick_wish wish = rig_wish(&rig, "m");

	if (rig_take(&rig, &wish) != 0)
		fail_msg("not taken: %d", (int)rig.reason.result);
}

static void
attempt(enum verdict verdict, int64_t stated)
{
	take();
	settle_as(rig.slot, &rig.lease, verdict, stated, "m");
}

static struct account_row
row(void)
{
	return rig_state(&rig, 0, "m").row;
}

/* How long it cools from now. */
static int64_t
cools(void)
{
	int64_t until = row().cool_until_ms;

	return until > rig.now.v ? until - rig.now.v : 0;
}

static int
set_up(void **state)
{
	return store_dir_setup(state);
}

static int
tear_down(void **state)
{
	rig_close(&rig);
	return store_dir_teardown(state);
}

/* 1, 2, 4 ... minutes for each incident in a row, at most two hours; a success begins anew. */
static void
test_doubling(void **state)
{
	static const int64_t want[] = {1, 2, 4, 8, 16, 32, 64, 120, 120};

	rig_open(&rig, *state, WITH("'breaker': {'threshold': 100},"));
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < NELEM(want); i++) {
			attempt(VERDICT_SOFT_RATE, 0);
			assert_int_equal(row().soft_streak, i + 1);
			assert_int_equal(cools(), want[i] * MIN);
			rig.now.v += cools();
		}
		attempt(VERDICT_OK, 0);
		assert_int_equal(row().soft_streak, 0);
	}
}

/* A stated reset counts as an incident, too, but its time is what was stated. */
static void
test_stated_in_a_row(void **state)
{
	rig_open(&rig, *state, WITH("'breaker': {'threshold': 100},"));
	attempt(VERDICT_SOFT_RATE, 30 * S);
	rig.now.v += 30 * S;
	attempt(VERDICT_SOFT_RATE, 20 * S);
	assert_int_equal(cools(), 20 * S);
	rig.now.v += 20 * S;
	attempt(VERDICT_SOFT_RATE, 0);
	assert_int_equal(row().soft_streak, 3);
	assert_int_equal(cools(), 4 * MIN);
}

#define RUNNING 5

/* Requests that ran when the first of them failed are one incident. */
static void
test_incident(void **state)
{
	struct slot *slots[RUNNING];
	struct pick_lease leases[RUNNING];
	struct pick_wish wish;

	rig_open(&rig, *state, PLAIN);
	wish = rig_wish(&rig, "m");
	for (int i = 0; i < RUNNING; i++) {
		slots[i] = rig_slot(rig.env);
		assert_int_equal(rig_take_as(&rig, slots[i], &wish), 0);
		leases[i] = rig.lease;
	}
	for (int i = 0; i < RUNNING - 1; i++) {
		settle_as(slots[i], &leases[i], VERDICT_SOFT_RATE, 0, "m");
		assert_int_equal(row().errors, i + 1);
		assert_int_equal(row().fails, 1);
		assert_int_equal(row().consecutive, 1);
		assert_int_equal(row().soft_streak, 1);
		assert_int_equal(cools(), MIN);
		assert_int_equal(report.n, i == 0);
		assert_int_equal(row().breaker_until_ms, 0);
	}
	/* the last of them can extend the deadline */
	settle_as(slots[RUNNING - 1], &leases[RUNNING - 1], VERDICT_SOFT_RATE, H, "m");
	assert_int_equal(cools(), H);
	assert_int_equal(row().soft_streak, 1);
	assert_int_equal(report.n, 1);
	rig.now.v += H;
	attempt(VERDICT_SOFT_RATE, 0); /* a new one */
	assert_int_equal(row().soft_streak, 2);
	assert_int_equal(row().fails, 2);
	assert_int_equal(cools(), 2 * MIN);
	for (int i = 0; i < RUNNING; i++)
		slot_close(&slots[i]);
}

/* Requests of one moment that all find the session dead are one incident: they do not disable. */
static void
test_dead_together(void **state)
{
	struct slot *slots[RUNNING];
	struct pick_lease leases[RUNNING];
	struct pick_wish wish;

	rig_open(&rig, *state, PLAIN);
	wish = rig_wish(&rig, "m");
	for (int i = 0; i < RUNNING; i++) {
		slots[i] = rig_slot(rig.env);
		assert_int_equal(rig_take_as(&rig, slots[i], &wish), 0);
		leases[i] = rig.lease;
	}
	for (int i = 0; i < RUNNING; i++)
		settle_as(slots[i], &leases[i], VERDICT_SESSION_DEAD, 0, "m");
	assert_int_equal(row().session_dead, 1);
	assert_int_equal(row().errors, RUNNING);
	assert_false(row().flags & ACCOUNT_DISABLED);
	for (int i = 0; i < RUNNING; i++)
		slot_close(&slots[i]);
}

/* A success of a request that was taken before the failure: it served, but proves nothing about after. */
static void
test_late_success(void **state)
{
	struct slot *slow;
	struct pick_lease lease;
	struct pick_wish wish;

	rig_open(&rig, *state, PLAIN);
	slow = rig_slot(rig.env);
	wish = rig_wish(&rig, "m");
	assert_int_equal(rig_take_as(&rig, slow, &wish), 0);
	lease = rig.lease;
	attempt(VERDICT_SOFT_RATE, 0);
	settle_as(slow, &lease, VERDICT_OK, 0, "m");
	assert_int_equal(row().success, 1);
	assert_int_equal(row().fails + row().consecutive, 0);
	assert_int_equal(row().soft_streak, 1);
	assert_int_equal(cools(), MIN);
	assert_int_equal(report.n, 0);
	slot_close(&slow);
}

/* The one request that tries a resting account: success ends a guess, failure never escalates. */
static void
test_probe(void **state)
{
	rig_open(&rig, *state, PLAIN);
	attempt(VERDICT_SOFT_RATE, 0);
	for (int i = 0; i < 5; i++) {
		rig.now.v += 10 * S;
		take();
		assert_int_equal(rig.lease.kind, SLOT_PROBE);
		settle_as(rig.slot, &rig.lease, VERDICT_SOFT_RATE, 0, "m");
		assert_int_equal(row().soft_streak, 1);
		assert_int_equal(row().fails, 1);
		assert_int_equal(cools(), MIN); /* from the probe on */
	}
	assert_int_equal(row().errors, 6);
	take();
	settle_as(rig.slot, &rig.lease, VERDICT_OK, 0, "m");
	assert_int_equal(cools(), 0);
	assert_int_equal(row().soft_streak, 0);
	assert_int_equal(report.n, 1);
	assert_string_equal(report.events[0].from, "cooling");
	assert_string_equal(report.events[0].to, "active");
	assert_string_equal(report.events[0].cause, "success");
	assert_int_equal(report.events[0].new_until_ms, 0);
	assert_int_equal(report.events[0].level, JOURNAL_INFO);
}

/* all_cooling "any" also tries stated resets: a success does not end them. */
static void
test_probe_of_stated(void **state)
{
	rig_open(&rig, *state, WITH("'pool': {'all_cooling': 'any'},"));
	attempt(VERDICT_SOFT_RATE, H);
	take();
	assert_int_equal(rig.lease.kind, SLOT_PROBE);
	settle_as(rig.slot, &rig.lease, VERDICT_OK, 0, "m");
	assert_int_equal(cools(), H);
	assert_int_equal(row().soft_streak, 0);
	assert_int_equal(report.n, 0);
}

/* More requests than are remembered: the remembered ones stand for them. */
static void
test_long_ratio(void **state)
{
	rig_open(&rig, *state,
	    WITH("'channel_breaker': {'triggers': []},"
	         "'breaker': {'threshold': 10000, 'ratio': 0.5, 'ratio_requests': 1000},"));
	for (unsigned i = 0; i < ACCOUNT_WINDOW - 1; i++)
		attempt(VERDICT_SERVER, 0);
	assert_int_equal(row().breaker_until_ms, 0);
	attempt(VERDICT_SERVER, 0);
	assert_true(row().breaker_until_ms > rig.now.v);
}

/* Three counted failures open the breaker; a success afterwards closes it and begins with the first back-off. */
static void
test_breaker(void **state)
{
	static const int64_t want[] = {30, 60, 120, 360, 360};

	rig_open(&rig, *state, PLAIN);
	for (size_t i = 0; i < NELEM(want); i++) {
		attempt(VERDICT_SERVER, 0);
		assert_int_equal(report.n, 0);
		attempt(VERDICT_NETWORK, 0);
		attempt(VERDICT_SERVER, 0);
		assert_int_equal(row().breaker_until_ms - rig.now.v, want[i] * MIN);
		assert_int_equal(row().fails, 0);
		assert_int_equal(report.n, 1);
		assert_string_equal(report.events[0].cause, "breaker");
		assert_string_equal(report.events[0].from, "active");
		assert_string_equal(report.events[0].to, "cooling");
		assert_int_equal(report.events[0].new_until_ms, rig.now.v + want[i] * MIN);
		assert_int_equal(report.events[0].level, JOURNAL_WARN);
		assert_int_equal(report.events[0].status, 500 + VERDICT_SERVER);
		rig.now.v += want[i] * MIN;
	}
	attempt(VERDICT_OK, 0);
	assert_int_equal(row().breaker_step, 0);
	assert_int_equal(row().breaker_until_ms, 0);
	assert_int_equal(cools(), 0);
}

/* What does not count against the account never opens its breaker. */
static void
test_harmless(void **state)
{
	static const enum verdict verdicts[] = {VERDICT_CLIENT, VERDICT_CONTEXT_LENGTH,
	    VERDICT_UNEXPLAINED, VERDICT_CANCELLED, VERDICT_NOBODY};

	rig_open(&rig, *state, WITH("'pool': {'disable_after': 2},"));
	for (int round = 0; round < 9; round++)
		for (size_t i = 0; i < NELEM(verdicts); i++) {
			attempt(verdicts[i], 0);
			assert_int_equal(report.n, 0);
		}
	assert_int_equal(cools() + row().breaker_until_ms, 0);
	assert_int_equal(row().errors + row().fails + row().consecutive, 0);
	assert_int_equal(row().flags, ACCOUNT_PICKED);
}

/* Both tracks run side by side: limits cool, and their failures open the breaker. */
static void
test_both_tracks(void **state)
{
	rig_open(&rig, *state, PLAIN);
	for (int i = 0; i < 3; i++) {
		attempt(VERDICT_SOFT_RATE, 0);
		if (i < 2)
			rig.now.v += cools();
	}
	assert_int_equal(cools(), 4 * MIN);
	assert_int_equal(row().breaker_until_ms, rig.now.v + 30 * MIN);
	assert_int_equal(row().soft_streak, 3);
	assert_int_equal(rig_state(&rig, 0, "m").tally[TALLY_EVENTS], 3);
}

/* A deadline never moves earlier. */
static void
test_never_earlier(void **state)
{
	rig_open(
	    &rig, *state, WITH("'pool': {'all_cooling': 'any'}, 'breaker': {'threshold': 100},"));
	attempt(VERDICT_SOFT_RATE, H);
	attempt(VERDICT_SOFT_RATE, 10 * S);
	assert_int_equal(cools(), H);
	assert_int_equal(row().flags & ACCOUNT_GUESSED, 0);
	attempt(VERDICT_OVERLOAD, 0);
	assert_int_equal(cools(), H);
	assert_int_equal(row().cool_kind, VERDICT_SOFT_RATE);
	attempt(VERDICT_HARD_CREDIT, 0); /* 04:00 is later */
	assert_int_equal(cools(), 18 * H);
	assert_int_equal(row().cool_kind, VERDICT_HARD_CREDIT);
}

/* One model rests; another on the same account does not, and only this model's success ends it. */
static void
test_models(void **state)
{
	struct rig_state s;

	rig_open(&rig, *state, PLAIN);
	take();
	settle_as(rig.slot, &rig.lease, VERDICT_MODEL_RATE, 0, "big");
	assert_int_equal(report.n, 1);
	assert_string_equal(report.events[0].model, "big");
	assert_string_equal(report.events[0].cause, "model_rate");
	assert_int_equal(report.events[0].new_until_ms, rig.now.v + MIN);
	take();
	settle_as(rig.slot, &rig.lease, VERDICT_MODEL_RATE, H, "stated");
	attempt(VERDICT_OK, 0); /* of "m" */
	assert_true(rig_state(&rig, 0, "big").has_pair);
	take();
	settle_as(rig.slot, &rig.lease, VERDICT_OK, 0, "stated");
	assert_true(rig_state(&rig, 0, "stated").has_pair);
	take();
	settle_as(rig.slot, &rig.lease, VERDICT_OK, 0, "big");
	assert_false(rig_state(&rig, 0, "big").has_pair);

	take();
	settle_as(rig.slot, &rig.lease, VERDICT_MODEL_RATE, 0, "stated"); /* earlier: stays */
	s = rig_state(&rig, 0, "stated");
	assert_int_equal(s.pair.row.until_ms, rig.now.v + H);
	assert_false(s.pair.row.guessed);
	assert_int_equal(s.row.soft_streak + s.row.fails + s.row.consecutive, 0);
	assert_int_equal(s.row.errors, 3);
	assert_int_equal(s.stat.rate_limited, 3);
	assert_int_equal(health_state(&s.row, rig.now), HEALTH_ACTIVE);
}

/* A model's rest that began while the lease ran is not ended by it. */
static void
test_late_model_success(void **state)
{
	struct slot *slow;
	struct pick_lease lease;
	struct pick_wish wish;

	rig_open(&rig, *state, PLAIN);
	slow = rig_slot(rig.env);
	wish = rig_wish(&rig, "m");
	assert_int_equal(rig_take_as(&rig, slow, &wish), 0);
	lease = rig.lease;
	attempt(VERDICT_MODEL_MISSING, 0);
	settle_as(slow, &lease, VERDICT_OK, 0, "m");
	assert_true(rig_state(&rig, 0, "m").has_pair);
	slot_close(&slow);
}

static void
test_session_dead(void **state)
{
	rig_open(&rig, *state, WITH("'breaker': {'threshold': 100},"));
	attempt(VERDICT_SESSION_DEAD, 0);
	attempt(VERDICT_SESSION_DEAD, 0);
	attempt(VERDICT_OK, 0);
	attempt(VERDICT_SESSION_DEAD, 0);
	attempt(VERDICT_SESSION_DEAD, 0);
	assert_int_equal(row().session_dead, 2);
	assert_int_equal(report.n, 0);
	attempt(VERDICT_SESSION_DEAD, 0);
	assert_int_equal(row().flags & (ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES), ACCOUNT_DISABLED);
	assert_int_equal(report.n, 1);
	assert_string_equal(report.events[0].from, "active");
	assert_string_equal(report.events[0].to, "disabled");
	assert_string_equal(report.events[0].cause, "session_dead");
	assert_int_equal(report.events[0].level, JOURNAL_ALERT);
	assert_string_equal(rig_state(&rig, 0, "m").note.disabled_reason, "session_dead: words");
	rig.now.v += 1000 * H; /* by hand only */
	struct pick_wish wish = rig_wish(&rig, "m");

	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig.reason.result, PICK_NOBODY);
}

static void
test_auth_failed_after(void **state)
{
	rig_open(&rig, *state, WITH("'cooldown': {'auth_failed_after': 2},"));
	attempt(VERDICT_AUTH_FAILED, 0);
	assert_int_equal(row().flags & ACCOUNT_DISABLED, 0);
	attempt(VERDICT_AUTH_FAILED, 0);
	assert_int_equal(row().flags & ACCOUNT_DISABLED, ACCOUNT_DISABLED);
}

static void
test_disable_after(void **state)
{
	rig_open(&rig, *state, WITH("'pool': {'disable_after': 2},"));
	attempt(VERDICT_SERVER, 0);
	attempt(VERDICT_OK, 0);
	attempt(VERDICT_SERVER, 0);
	assert_int_equal(row().flags & ACCOUNT_DISABLED, 0);
	attempt(VERDICT_NETWORK, 0);
	assert_int_equal(row().flags & (ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES),
	    ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES);
	assert_int_equal(report.n, 1);
	assert_string_equal(report.events[0].to, "disabled");
}

/* Everything that a process wrote is there for the next one. */
static void
test_persists(void **state)
{
	struct account_row before, after;
	int64_t now;

	rig_open(&rig, *state, PLAIN);
	attempt(VERDICT_SOFT_RATE, 0);
	rig.now.v += MIN;
	attempt(VERDICT_SOFT_RATE, 20 * S);
	before = row();
	now = rig.now.v;
	rig_close(&rig);
	rig_open(&rig, *state, PLAIN);
	rig.now.v = now;
	after = row();
	assert_memory_equal(&before, &after, sizeof before);
	rig.now.v += 21 * S;
	attempt(VERDICT_SOFT_RATE, 0); /* the third step */
	assert_int_equal(cools(), 4 * MIN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_doubling),
	    TEST(test_stated_in_a_row),
	    TEST(test_incident),
	    TEST(test_dead_together),
	    TEST(test_late_success),
	    TEST(test_probe),
	    TEST(test_probe_of_stated),
	    TEST(test_breaker),
	    TEST(test_long_ratio),
	    TEST(test_harmless),
	    TEST(test_both_tracks),
	    TEST(test_never_earlier),
	    TEST(test_models),
	    TEST(test_late_model_success),
	    TEST(test_session_dead),
	    TEST(test_auth_failed_after),
	    TEST(test_disable_after),
	    TEST(test_persists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
