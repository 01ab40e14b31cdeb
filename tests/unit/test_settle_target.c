/*
 * test_settle_target - what settlements tell of models, and what a model that fails alone spares its account.
 */
#include "settle.h"

#include "lib/rig.h"
#include "store/target.h"
#include "verdict.h"

#define MIN INT64_C(60000)

#define JSON                                                                                          \
	"{'routing': {'model_fail_after': 3}, 'channel_breaker': {'triggers': ['error_rate']},"       \
	" 'models': {'priced': {'targets': [{'channel': 'oa', 'cost': {'input': 2, 'output': 4}}]}}," \
	" 'channels': {'oa': {'provider': 'openai', 'accounts': ["                                    \
	"{'id': 'a', 'api_key': 'k', 'max_in_flight': 0}]}}}"

static struct rig rig;
static struct settle_report report;

static int
set_up(void **state)
{
	int failed = store_dir_setup(state);

	if (!failed)
		rig_open(&rig, *state, JSON);
	return failed;
}

static int
tear_down(void **state)
{
	rig_close(&rig);
	return store_dir_teardown(state);
}

static void
settle(const char *model, enum verdict verdict, const struct settle_outcome *more)
{
	struct classify_finding f = {
	    .verdict = verdict, .status = verdict == VERDICT_OK ? 200 : 500, .rule = "r"};
	struct settle_outcome outcome = *more;
	struct pick_wish wish = rig_wish(&rig, model);
	struct why why = {""};

	if (outcome.finding != NULL)
		f.reset = outcome.finding->reset;
	outcome.finding = &f;
	outcome.model = model;
	outcome.client = "";
	if (rig_take(&rig, &wish) != 0)
		fail_msg("not taken: %d", (int)rig.reason.result);
	if (settle_lease(rig.env, rig.slot, rig.pool, &rig.lease, &outcome, rig.now, &report,
	        &why) != ERR_OK)
		fail_msg("settle: %s", why.text);
}

static const struct settle_outcome work = {.target = true, .first_content_ms = 40};

struct seen {
	const char *model;
	struct target_row row;
	struct target_sums sums;
	bool known;
};

static enum store_rc
seen_in(struct txn *txn, void *arg)
{
	struct seen *seen = arg;
	struct target_policy policy = {rig.conf->routing.window_ms, 3, 5 * MIN};
	struct target_ref ref = pool_target(rig.pool, 0, text_span(seen->model));

	seen->known = target_get(txn, ref, &seen->row) == STORE_OK;
	target_sums(&seen->row, &policy, rig.now, &seen->sums);
	return STORE_OK;
}

static struct seen
target(const char *model)
{
	struct seen seen = {.model = model};

	OK(env_view(rig.env, seen_in, &seen));
	return seen;
}

static struct account_row
account(void)
{
	return rig_state(&rig, 0, "m").row;
}

/* Which verdicts say something of a model. */
static void
test_feeds(void **state)
{
	static const struct {
		const char *what;
		enum verdict verdict;
		struct settle_outcome how;
		unsigned calls, failures;
	} rows[] = {
	    {"ok", VERDICT_OK, {.target = true}, 1, 0},
	    {"server", VERDICT_SERVER, {.target = true}, 1, 1},
	    {"network", VERDICT_NETWORK, {.target = true}, 1, 1},
	    {"overload", VERDICT_OVERLOAD, {.target = true}, 1, 1},
	    {"client", VERDICT_CLIENT, {.target = true}, 0, 0},
	    {"context length", VERDICT_CONTEXT_LENGTH, {.target = true}, 0, 0},
	    {"soft rate", VERDICT_SOFT_RATE, {.target = true}, 0, 0},
	    {"model rate", VERDICT_MODEL_RATE, {.target = true}, 0, 0},
	    {"model missing", VERDICT_MODEL_MISSING, {.target = true}, 0, 0},
	    {"hard credit", VERDICT_HARD_CREDIT, {.target = true}, 0, 0},
	    {"auth failed", VERDICT_AUTH_FAILED, {.target = true}, 0, 0},
	    {"session dead", VERDICT_SESSION_DEAD, {.target = true}, 0, 0},
	    {"not found", VERDICT_NOT_FOUND, {.target = true}, 0, 0},
	    {"unexplained", VERDICT_UNEXPLAINED, {.target = true}, 0, 0},
	    {"cancelled", VERDICT_CANCELLED, {.target = true}, 0, 0},
	    {"nobody", VERDICT_NOBODY, {.target = true}, 0, 0},
	    {"another endpoint", VERDICT_OK, {.target = false}, 0, 0},
	    {"another endpoint fails", VERDICT_SERVER, {.target = false}, 0, 0},
	    {"aside", VERDICT_CANCELLED, {.target = true, .aside = true}, 0, 0},
	};
	struct rig_state fresh = rig_state(&rig, 0, "m");

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct seen seen;

		settle(rows[i].what, rows[i].verdict, &rows[i].how);
		seen = target(rows[i].what);
		if (seen.sums.calls != rows[i].calls || seen.sums.failures != rows[i].failures ||
		    seen.known != (rows[i].calls > 0))
			fail_msg("%s: %u of %u failed", rows[i].what, (unsigned)seen.sums.failures,
			    (unsigned)seen.sums.calls);
		rig_put(&rig, 0, &fresh.row); /* whatever it did to the account */
	}
}

static void
test_figures(void **state)
{
	struct dialect_usage usage = {
	    .seen = true, .prompt = 1024, .completion = 500, .cached = -1};
	struct settle_outcome answer = {
	    .target = true, .first_content_ms = 40, .usage = &usage, .estimated = 512};
	struct seen seen;

	(void)state;
	settle("m", VERDICT_OK, &answer);
	seen = target("m");
	assert_int_equal(seen.row.ratio_ppm, 1500000);
	assert_int_equal(seen.row.output_tokens, 500);
	assert_int_equal(seen.sums.first_sum_ms, 40);
	assert_int_equal(seen.row.cost_tokens, 0); /* no price is known */
	settle("priced", VERDICT_OK, &answer);
	seen = target("priced");
	assert_int_equal(seen.row.cost_micros, 2 * 1024 * 1000 + 4 * 500 * 1000);
	assert_int_equal(seen.row.cost_tokens, 1524);
	usage.has_credit = true;
	usage.credit_micros = 7;
	settle("m", VERDICT_OK, &answer);
	assert_int_equal(target("m").row.cost_micros, 7);
	/* what we guessed ourselves teaches nothing */
	usage.estimated = true;
	settle("guessed", VERDICT_OK, &answer);
	assert_int_equal(target("guessed").row.ratio_ppm, 0);
	assert_int_equal(target("guessed").row.output_tokens, 0);
	/* nobody counted, no usage */
	settle("silent", VERDICT_OK, &work);
	assert_int_equal(target("silent").row.ratio_ppm, 0);
	assert_int_equal(target("silent").sums.calls, 1);
}

/* ---- alone ---- */

/* A server failure (S), a network failure (N), an overload (O) of "m"; another model succeeds (b). */
static const struct {
	const char *what, *steps;
	unsigned errors, fails, window; /* window: failures of the account's */
	bool open;                      /* the account's breaker, after three */
} alone[] = {
    {"the only model", "SS", 2, 2, 2, false},
    {"and on", "SSS", 3, 0, 3, true},
    {"others succeeded before", "bSS", 2, 2, 2, false},
    {"others succeed meanwhile", "SbS", 2, 0, 1, false},
    {"for long", "SbSSSSSSSS", 9, 0, 1, false},
    {"network", "NbNNNN", 5, 0, 1, false},
    {"an overload is no failure of the account either way", "ObO", 0, 0, 0, false},
    {"but what comes behind it is, while nobody succeeds", "OS", 1, 1, 1, false},
    {"and is not once somebody did", "ObSSSS", 4, 0, 0, false},
};

static void
check_alone(size_t i)
{
	struct rig_state s = rig_state(&rig, 0, "m");
	unsigned calls, failures, in_a_row = alone[i].open ? 3 : alone[i].fails;

	account_window(&s.stat, 100, &calls, &failures);
	if (s.row.errors != alone[i].errors || s.row.fails != alone[i].fails ||
	    s.row.consecutive != in_a_row || failures != alone[i].window ||
	    (s.row.breaker_until_ms != 0) != alone[i].open)
		fail_msg("%s: errors %u fails %u consecutive %u window %u open %d", alone[i].what,
		    s.row.errors, s.row.fails, s.row.consecutive, failures,
		    s.row.breaker_until_ms != 0);
	if (alone[i].errors > 0 && s.stat.last_error_ms != rig.now.v)
		fail_msg("%s: the last error is not remembered", alone[i].what);
}

static void
settle_step(char step)
{
	rig.now.v += 30000; /* longer than an overload rests */
	switch (step) {
	case 'b': settle("b", VERDICT_OK, &work); break;
	case 'S': settle("m", VERDICT_SERVER, &work); break;
	case 'N': settle("m", VERDICT_NETWORK, &work); break;
	default: settle("m", VERDICT_OVERLOAD, &work);
	}
}

static enum store_rc
channel_failures(struct txn *txn, void *arg)
{
	struct breaker_policy policy = pick_breaker_policy(&rig.conf->channels[0].policy);
	struct breaker_row row;
	struct breaker_sums sums;
	enum store_rc rc = breaker_get(txn, rig.pool->channels[0].number, &row);

	breaker_sums(&row, &policy, rig.now, &sums);
	*(uint64_t *)arg = sums.failures;
	return rc;
}

static void
test_alone(void **state)
{
	struct store_dir *dir = *state;

	for (size_t i = 0; i < NELEM(alone); i++) {
		struct store_dir own;

		snprintf(own.path, sizeof own.path, "%.40s/%zu", dir->path, i);
		assert_int_equal(mkdir(own.path, 0700), 0);
		rig_close(&rig);
		rig_open(&rig, &own, JSON);
		for (const char *p = alone[i].steps; *p != '\0'; p++)
			settle_step(*p);
		check_alone(i);
	}
}

/* The channel's window counts them as ever. */
static void
test_channel(void **state)
{
	uint64_t failures;

	(void)state;
	for (const char *p = "SbS"; *p != '\0'; p++) {
		settle_step(*p);
		rig.now.v -= 25000;
	}
	OK(env_view(rig.env, channel_failures, &failures));
	assert_int_equal(failures, 2);
}

/* A time that was stated with it: of the account, or of the model on it. */
static void
test_stated(void **state)
{
	static const struct classify_finding stated = {
	    .reset = {true, {RIG_NOW + 10 * MIN}, "test"}};
	struct settle_outcome outcome = {.target = true, .finding = &stated};
	struct rig_state s;

	(void)state;
	settle("m", VERDICT_SERVER, &work);
	settle("b", VERDICT_OK, &work);
	settle("m", VERDICT_SERVER, &outcome);
	s = rig_state(&rig, 0, "m");
	assert_int_equal(s.row.cool_until_ms, 0);
	assert_true(s.has_pair);
	assert_int_equal(s.pair.row.until_ms, RIG_NOW + 10 * MIN);
	settle("c", VERDICT_SERVER, &outcome);
	assert_int_equal(account().cool_until_ms, RIG_NOW + 10 * MIN);
}

/* ---- transitions ---- */

static void
test_events(void **state)
{
	const struct journal_row *e = &report.events[0];

	(void)state;
	for (int i = 0; i < 2; i++) {
		settle("m", VERDICT_SERVER, &work);
		settle("b", VERDICT_OK, &work);
		assert_int_equal(report.n, 0);
	}
	settle("m", VERDICT_NETWORK, &work);
	assert_int_equal(report.n, 1);
	assert_string_equal(e->channel, "oa");
	assert_string_equal(e->account, "");
	assert_string_equal(e->model, "m");
	assert_string_equal(e->from, "active");
	assert_string_equal(e->to, "cooling");
	assert_string_equal(e->cause, "network");
	assert_int_equal(e->level, JOURNAL_WARN);
	assert_int_equal(e->new_until_ms, RIG_NOW + 5 * MIN);
	assert_false(report.hard);
	settle("m", VERDICT_SERVER, &work); /* it rests already */
	assert_int_equal(report.n, 0);
	settle("m", VERDICT_OK, &work);
	assert_int_equal(report.n, 1);
	assert_string_equal(e->account, "");
	assert_string_equal(e->model, "m");
	assert_string_equal(e->from, "cooling");
	assert_string_equal(e->to, "active");
	assert_string_equal(e->cause, "success");
	assert_int_equal(e->level, JOURNAL_INFO);
	assert_int_equal(e->old_until_ms, RIG_NOW + 5 * MIN);
	assert_int_equal(e->new_until_ms, 0);
	assert_int_equal(rig_state(&rig, 0, "m").tally[TALLY_EVENTS], 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_feeds),
	    TEST(test_figures),
	    TEST(test_alone),
	    TEST(test_channel),
	    TEST(test_stated),
	    TEST(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
