#include "settle.h"

#include "lib/rig.h"

#define S 1000LL
#define MIN (60 * S)
#define H (60 * MIN)

#define JSON                                                                                               \
	"{'cooldown': {'hard_credit_until': '04:00'}, 'pool': {'min_pick_gap': '0s', 'max_in_flight': 0}," \
	" 'channels': {'oa': {'provider': 'openai', 'accounts': [{'id': 'a', 'api_key': 'k'}]}}}"

static struct settle_report report;

static void
settle_as(struct rig *rig, struct slot *slot, struct pick_lease *lease,
    const struct settle_outcome *outcome)
{
	struct why why = {""};

	if (settle_lease(rig->env, slot, rig->pool, lease, outcome, rig->now, &report, &why) !=
	    ERR_OK)
		fail_msg("settle: %s", why.text);
	assert_true(lease->settled);
}

static struct classify_finding
finding(enum verdict verdict, int status, int64_t stated)
{
	struct classify_finding f = {
	    .verdict = verdict, .status = status, .rule = "generic:test", .message = "words"};

	if (stated != 0)
		f.reset = (struct reset_time){true, {RIG_NOW + stated}, "test"};
	return f;
}

static void
settle_finding(struct rig *rig, const struct classify_finding *f)
{
	struct dialect_usage usage = {
	    .prompt = 10, .completion = 20, .cached = 3, .reasoning = -1, .total = 30};
	struct settle_outcome outcome = {
	    .finding = f, .usage = &usage, .model = "m", .client = "", .latency_ms = 70};

	settle_as(rig, rig->slot, &rig->lease, &outcome);
}

/* What one verdict does to an account without a past. SPEC.md sections 6 and 8. */
static const struct {
	const char *what;
	enum verdict verdict;
	int status;
	int64_t stated;
	unsigned success, errors, fails, session_dead, auth_failed, streak, rate_limited;
	unsigned window_calls, window_failures;
	int64_t cool, model;                /* from now; 0 = none */
	bool guessed, disabled, remembered; /* remembered: as the last error */
	unsigned events, cancelled;
} effects[] = {
    {"ok", VERDICT_OK, 200, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, false, false, false, 0, 0},
    {"client", VERDICT_CLIENT, 400, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, 0, 0},
    {"context length", VERDICT_CONTEXT_LENGTH, 400, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false,
        false, false, 0, 0},
    {"auth failed", VERDICT_AUTH_FAILED, 401, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, false, true, true,
        1, 0},
    {"session dead", VERDICT_SESSION_DEAD, 401, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, false, false,
        true, 0, 0},
    {"hard credit", VERDICT_HARD_CREDIT, 402, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 18 * H, 0, false, false,
        true, 1, 0},
    {"hard credit, stated", VERDICT_HARD_CREDIT, 402, 2 * H, 0, 1, 1, 0, 0, 0, 0, 1, 1, 2 * H, 0,
        false, false, true, 1, 0},
    {"soft rate", VERDICT_SOFT_RATE, 429, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, MIN, 0, true, false, true,
        1, 0},
    {"soft rate, stated", VERDICT_SOFT_RATE, 429, 5 * H, 0, 1, 1, 0, 0, 1, 1, 1, 1, 5 * H, 0, false,
        false, true, 1, 0},
    {"soft rate, stated beyond the cap", VERDICT_SOFT_RATE, 429, 90 * H, 0, 1, 1, 0, 0, 1, 1, 1, 1,
        24 * H, 0, false, false, true, 1, 0},
    {"model rate", VERDICT_MODEL_RATE, 429, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, MIN, true, false, true,
        1, 0},
    {"model rate, stated", VERDICT_MODEL_RATE, 429, 90 * S, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 90 * S,
        false, false, true, 1, 0},
    {"model rate, stated beyond the cap", VERDICT_MODEL_RATE, 429, 9 * H, 0, 1, 0, 0, 0, 0, 1, 0, 0,
        0, 2 * H, false, false, true, 1, 0},
    {"model missing", VERDICT_MODEL_MISSING, 404, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, MIN, true, false,
        true, 1, 0},
    {"not found", VERDICT_NOT_FOUND, 404, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, MIN, 0, true, false, true,
        1, 0},
    {"overload", VERDICT_OVERLOAD, 529, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * S, 0, true, false, true,
        1, 0},
    {"server", VERDICT_SERVER, 500, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, false, false, true, 0, 0},
    {"server with a day of Retry-After", VERDICT_SERVER, 504, 24 * H, 0, 1, 1, 0, 0, 0, 0, 1, 1,
        2 * H, 0, false, false, true, 1, 0},
    {"network", VERDICT_NETWORK, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, false, false, true, 0, 0},
    {"unexplained", VERDICT_UNEXPLAINED, 403, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false,
        false, 0, 0},
    {"cancelled", VERDICT_CANCELLED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, 0,
        1},
    {"nobody", VERDICT_NOBODY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, 0, 0},
};

static void
check_effect(size_t i, const struct rig_state *s)
{
	const struct account_row *row = &s->row;
	unsigned calls, failures;
	int64_t until = effects[i].cool == 0 ? 0 : RIG_NOW + effects[i].cool;

	account_window(&s->stat, 100, &calls, &failures);
	if (row->success != effects[i].success || row->errors != effects[i].errors ||
	    row->fails != effects[i].fails || row->consecutive != effects[i].fails ||
	    row->session_dead != effects[i].session_dead ||
	    row->auth_failed != effects[i].auth_failed || row->soft_streak != effects[i].streak)
		fail_msg(
		    "%s: success %u errors %u fails %u consecutive %u dead %u auth %u streak %u",
		    effects[i].what, row->success, row->errors, row->fails, row->consecutive,
		    row->session_dead, row->auth_failed, row->soft_streak);
	if (s->stat.calls != 1 || s->stat.rate_limited != effects[i].rate_limited ||
	    calls != effects[i].window_calls || failures != effects[i].window_failures)
		fail_msg("%s: calls %u limited %u window %u/%u", effects[i].what,
		    (unsigned)s->stat.calls, (unsigned)s->stat.rate_limited, failures, calls);
	if (row->cool_until_ms != until || row->breaker_until_ms != 0 ||
	    s->has_pair != (effects[i].model != 0) ||
	    (s->has_pair && s->pair.row.until_ms != RIG_NOW + effects[i].model) ||
	    ((row->flags & ACCOUNT_MODELS) != 0) != s->has_pair)
		fail_msg("%s: cools for %lld, model %d for %lld, flags %d", effects[i].what,
		    (long long)(row->cool_until_ms - RIG_NOW), s->has_pair,
		    (long long)(s->pair.row.until_ms - RIG_NOW), row->flags);
	if (((row->flags & ACCOUNT_GUESSED) != 0 || (s->has_pair && s->pair.row.guessed)) !=
	        effects[i].guessed ||
	    ((row->flags & ACCOUNT_DISABLED) != 0) != effects[i].disabled)
		fail_msg("%s: flags %d", effects[i].what, row->flags);
	if ((s->stat.last_error_ms == RIG_NOW) != effects[i].remembered ||
	    (effects[i].remembered && (s->stat.last_kind != effects[i].verdict ||
	                                  s->stat.last_status != effects[i].status)))
		fail_msg("%s: last error %d %d", effects[i].what, s->stat.last_kind,
		    s->stat.last_status);
	if (report.n != effects[i].events || s->tally[TALLY_EVENTS] != effects[i].events ||
	    s->tally[TALLY_CANCELLED] != effects[i].cancelled)
		fail_msg("%s: %u events, %u stored", effects[i].what, report.n,
		    (unsigned)s->tally[TALLY_EVENTS]);
}

static void
test_effects(void **state)
{
	for (size_t i = 0; i < NELEM(effects); i++) {
		struct classify_finding f =
		    finding(effects[i].verdict, effects[i].status, effects[i].stated);
		struct store_dir *dir = *state;
		struct store_dir own;
		struct pick_wish wish;
		struct rig_state s;
		struct rig rig;

		snprintf(own.path, sizeof own.path, "%.40s/%zu", dir->path, i);
		assert_int_equal(mkdir(own.path, 0700), 0);
		rig_open(&rig, &own, JSON);
		wish = rig_wish(&rig, "m");
		assert_int_equal(rig_take(&rig, &wish), 0);
		settle_finding(&rig, &f);
		s = rig_state(&rig, 0, "m");
		check_effect(i, &s);
		/* of every attempt */
		assert_int_equal(s.stat.prompt, 10);
		assert_int_equal(s.stat.completion, 20);
		assert_int_equal(s.stat.cached, 3);
		assert_int_equal(s.stat.reasoning, 0);
		assert_int_equal(s.stat.latency_total_ms, effects[i].success ? 70 : 0);
		assert_int_equal(s.stat.latency_max_ms, effects[i].success ? 70 : 0);
		assert_int_equal(s.row.picked_ms, RIG_NOW);
		assert_int_equal(s.row.flags & ACCOUNT_PICKED, ACCOUNT_PICKED);
		rig_close(&rig);
	}
}

static enum store_rc
count_slots(struct txn *txn, void *arg)
{
	struct slot_list *list = malloc(sizeof *list);
	enum store_rc rc = slot_walk(txn, list);

	*(unsigned *)arg = list->n;
	free(list);
	return rc;
}

/* The lease is gone with its settlement, whatever the verdict; others' stay. */
static void
test_released(void **state)
{
	struct classify_finding f = finding(VERDICT_SERVER, 500, 0);
	struct pick_wish wish;
	struct slot *other;
	struct rig rig;
	unsigned n = 99;

	rig_open(&rig, *state, JSON);
	other = rig_slot(rig.env);
	wish = rig_wish(&rig, "m");
	assert_int_equal(rig_take_as(&rig, other, &wish), 0);
	assert_int_equal(rig_take(&rig, &wish), 0);
	OK(env_view(rig.env, count_slots, &n));
	assert_int_equal(n, 2);
	settle_finding(&rig, &f);
	OK(env_view(rig.env, count_slots, &n));
	assert_int_equal(n, 1);
	slot_close(&other);
	rig_close(&rig);
}

static int
settle_twice(void *arg)
{
	struct rig *rig = arg;
	struct classify_finding f = finding(VERDICT_OK, 200, 0);
	struct settle_outcome outcome = {.finding = &f, .model = "m"};
	struct why why;

	fclose(stderr);
	rig->lease.settled = true;
	return settle_lease(rig->env, rig->slot, rig->pool, &rig->lease, &outcome, rig->now,
	           &report, &why) == ERR_OK;
}

/* A second settlement is a broken program: it ends. */
static void
test_twice(void **state)
{
	struct pick_wish wish;
	struct rig rig;
	int status;

	rig_open(&rig, *state, JSON);
	wish = rig_wish(&rig, "m");
	assert_int_equal(rig_take(&rig, &wish), 0);
	status = child_end(child_start(settle_twice, &rig));
	assert_true(status > 1);
	rig_close(&rig);
}

/* Texts for people. */
static void
test_notes(void **state)
{
	struct classify_finding f = finding(VERDICT_SOFT_RATE, 429, 0);
	struct pick_wish wish;
	struct rig_state s;
	struct rig rig;

	rig_open(&rig, *state, JSON);
	wish = rig_wish(&rig, "m");
	assert_int_equal(rig_take(&rig, &wish), 0);
	f.message[0] = '\0';
	settle_finding(&rig, &f);
	s = rig_state(&rig, 0, "m");
	assert_string_equal(s.note.reason, "no hint");
	assert_string_equal(s.note.rule, "generic:test");
	assert_string_equal(s.note.disabled_reason, "");
	assert_int_equal(s.stat.cool_status, 429);
	assert_int_equal(s.stat.reset_at_ms, 0);
	assert_int_equal(s.row.cool_kind, VERDICT_SOFT_RATE);

	f = finding(VERDICT_SOFT_RATE, 429, 90 * H);
	rig.now.v += H;
	assert_int_equal(rig_take(&rig, &wish), 0);
	settle_finding(&rig, &f);
	s = rig_state(&rig, 0, "m");
	assert_string_equal(s.note.reason, "words");
	assert_int_equal(s.stat.reset_at_ms, RIG_NOW + 90 * H); /* as stated, uncapped */
	assert_int_equal(s.row.cool_until_ms, RIG_NOW + 25 * H);

	f = finding(VERDICT_AUTH_FAILED, 401, 0);
	rig.now.v += 100 * H;
	assert_int_equal(rig_take(&rig, &wish), 0);
	settle_finding(&rig, &f);
	s = rig_state(&rig, 0, "m");
	assert_string_equal(s.note.disabled_reason, "auth_failed: words");
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_effects),
	    TXN_TEST(test_released),
	    TXN_TEST(test_twice),
	    TXN_TEST(test_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
