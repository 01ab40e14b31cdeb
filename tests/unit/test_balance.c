#include "balance.h"

#include "lib/rig.h"

#define MIN 60000LL
#define H (60 * MIN)
#define T0 RIG_NOW /* 10:00 UTC, 18:00 in Shanghai, 05:00 in New York */

static const char *const settings =
    "{'channels': {"
    "'oa': {'provider': 'openai', 'accounts': [{'id': 'a', 'api_key': 'k', 'credits': 5},"
    "       {'id': 'b', 'api_key': 'k2'}]},"
    "'utc': {'base_url': 'http://u', 'balance': {'url': 'http://u/b', 'credits': '/c'}},"
    "'sh': {'provider': 'zhipu', 'balance': {'url': 'http://u/b', 'credits': '/c', 'at': ['18:30']}},"
    "'ny': {'base_url': 'http://u', 'cooldown': {'timezone': 'America/New_York'},"
    "       'balance': {'url': 'http://u/b', 'credits': '/c', 'at': ['04:59', '05:01']}},"
    "'none': {'base_url': 'http://u', 'balance': {'url': 'http://u/b', 'credits': '/c', 'at': []}}}}";

/* Times from T0; asked -1 = never. */
static const struct {
	const char *what, *channel;
	int64_t first_run, asked;
	uint8_t tries;
	int64_t due; /* -1 = never */
} due[] = {
    {"no url", "oa", 0, -1, 0, -1},
    {"no times", "none", 0, -1, 0, -1},
    {"the evening in UTC", "utc", 0, -1, 0, 11 * H},
    {"the morning, when nothing ran at 9", "utc", -2 * H, -1, 0, -H},
    {"asked at 9", "utc", -30 * H, -H, 0, 11 * H},
    {"asked just before", "utc", -30 * H, -H - 1, 0, -H},
    {"Shanghai", "sh", 0, -1, 0, 30 * MIN},
    {"Shanghai, the next day", "sh", 0, 30 * MIN, 0, 24 * H + 30 * MIN},
    {"New York", "ny", 0, -1, 0, MIN},
    {"New York, the earlier of the two", "ny", 2 * MIN, -1, 0, 24 * H - MIN},
    {"after a failure", "sh", 0, -1, 1, 35 * MIN},
    {"after three", "sh", 0, -1, 3, 45 * MIN},
};

static struct rig rig;

static void
test_due(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(due); i++) {
		struct account_stat stat = {
		    .balance_at_ms = due[i].asked == -1 ? 0 : T0 + due[i].asked,
		    .balance_tries = due[i].tries};
		int64_t want = due[i].due == -1 ? INT64_MAX : T0 + due[i].due;
		int64_t got = balance_due(conf_channel(rig.conf, text_span(due[i].channel)), &stat,
		    (struct wall_ms){T0 + due[i].first_run})
		                  .v;

		if (got != want)
			fail_msg("%s: got %+lld min, want %+lld", due[i].what,
			    (long long)(got - T0) / MIN, (long long)(want - T0) / MIN);
	}
}

static const struct {
	const char *body, *pointer;
	int64_t micros; /* -1 = none */
} answers[] = {
    {"{\"data\":{\"balance\":12.5}}", "/data/balance", 12500000},
    {"{\"data\":{\"balance\":\"110.00\"}}", "/data/balance", 110000000},
    {"{\"infos\":[{\"currency\":\"CNY\"},{\"total\":\"0.000001\"}]}", "/infos/1/total", 1},
    {"{\"a/b\":{\"c~d\":{\"e.f\":3}}}", "/a~1b/c~0d/e.f", 3000000},
    {"7", "", 7000000},
    {"{\"c\":0}", "/c", 0},
    {"{\"c\":-3}", "/c", 0},
    {"{\"c\":1e3}", "/c", 1000000000},
    {"{\"c\":1e13}", "/c", -1},
    {"{\"c\":null}", "/c", -1},
    {"{\"c\":true}", "/c", -1},
    {"{\"c\":\"12 CNY\"}", "/c", -1},
    {"{\"c\":\"\"}", "/c", -1},
    {"{\"c\":\"NaN\"}", "/c", -1},
    {"{\"c\":[1]}", "/c", -1},
    {"{\"c\":1}", "/d", -1},
    {"{\"c\":1}", "/c/d", -1},
    {"{\"c\":1}", "c", -1},
    {"{\"c\":", "/c", -1},
    {"<html>", "/c", -1},
    {"", "/c", -1},
};

static void
test_read(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		int64_t got = -1;
		bool told = balance_read(
		    arena, text_span(answers[i].body), text_span(answers[i].pointer), &got);

		if (told != (answers[i].micros >= 0) || got != answers[i].micros)
			fail_msg("%s at %s: got %lld", answers[i].body, answers[i].pointer,
			    (long long)got);
	}
	arena_free(&arena);
}

#define M 1000000LL
static const struct {
	const char *what;
	enum verdict kind;
	int64_t cool; /* from T0 */
	uint8_t flags;
	int64_t before, micros; /* before -1 = not known */
	bool thawed;
} cases[] = {
    {"out of credit, has some", VERDICT_HARD_CREDIT, H, 0, -1, 1, true},
    {"out of credit, as much as before", VERDICT_HARD_CREDIT, H, 0, 5 * M, 5 * M, true},
    {"out of credit, less", VERDICT_HARD_CREDIT, H, 0, 5 * M, 4 * M, true},
    {"out of credit, none", VERDICT_HARD_CREDIT, H, 0, -1, 0, false},
    {"rate, not known before", VERDICT_SOFT_RATE, H, ACCOUNT_GUESSED, -1, 5 * M, false},
    {"rate, not more", VERDICT_SOFT_RATE, H, ACCOUNT_GUESSED, 5 * M, 5 * M, false},
    {"rate, more", VERDICT_SOFT_RATE, H, ACCOUNT_GUESSED, 5 * M, 5 * M + 1, true},
    {"stated rate, more", VERDICT_SOFT_RATE, H, 0, 0, 1, true},
    {"models, more", VERDICT_OK, 0, ACCOUNT_MODELS, 0, 1, true},
    {"models, not more", VERDICT_OK, 0, ACCOUNT_MODELS, 1, 1, false},
    {"active, more", VERDICT_OK, 0, 0, 0, 1, false},
    {"its rest is over, more", VERDICT_HARD_CREDIT, -1, 0, 0, 1, false},
    {"disabled, out of credit", VERDICT_HARD_CREDIT, H, ACCOUNT_DISABLED, -1, 1, true},
};

static void
test_apply(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct account_row row = {.flags = cases[i].flags,
		    .cool_kind = (uint8_t)cases[i].kind,
		    .cool_until_ms = cases[i].cool == 0 ? 0 : T0 + cases[i].cool,
		    .breaker_until_ms = T0 + 2 * H,
		    .soft_streak = 4,
		    .breaker_step = 2,
		    .consecutive = 7};
		struct account_row old = row;
		struct account_stat stat = {.balance_tries = 3};
		struct balance_news news = {
		    cases[i].micros, cases[i].before >= 0, cases[i].before, {T0}};
		bool thawed = balance_apply(&row, &stat, &news);

		if (thawed != cases[i].thawed)
			fail_msg("%s: thawed %d", cases[i].what, thawed);
		assert_int_equal(row.credits_micros, cases[i].micros);
		assert_int_equal(stat.balance_at_ms, T0);
		assert_int_equal(stat.balance_tries, 0);
		/* the breaker speaks of the chat path */
		assert_int_equal(row.breaker_until_ms, old.breaker_until_ms);
		assert_int_equal(row.breaker_step, old.breaker_step);
		assert_int_equal(row.consecutive, old.consecutive);
		assert_int_equal(row.flags & ACCOUNT_DISABLED, old.flags & ACCOUNT_DISABLED);
		if (thawed && (row.cool_until_ms != 0 || row.soft_streak != 0 ||
		                  (row.flags & (ACCOUNT_MODELS | ACCOUNT_GUESSED)) != 0))
			fail_msg("%s: something of the rest is left", cases[i].what);
		if (!thawed && (row.cool_until_ms != old.cool_until_ms ||
		                   row.soft_streak != old.soft_streak || row.flags != old.flags))
			fail_msg("%s: something of the rest is gone", cases[i].what);
	}
}

static enum store_rc
write_in(struct txn *txn, void *arg)
{
	return balance_write(txn, arg);
}

/* With the configured credits as what was known, and the pairs, the note and the journal. */
static void
test_write(void **state)
{
	struct balance_word word = {.pool = rig.pool, .micros = 5 * M, .now = {T0}, .who = "test"};
	struct cooldown_row rest = {.kind = VERDICT_MODEL_RATE, .until_ms = T0 + H};
	struct rig_state s;

	(void)state;
	rig_rest_model(&rig, 0, "m", &rest);
	OK(env_update(rig.env, write_in, &word));
	assert_false(word.thawed);
	assert_true(rig_state(&rig, 0, "m").has_pair);
	word.micros = 6 * M;
	OK(env_update(rig.env, write_in, &word));
	assert_true(word.thawed);
	assert_string_equal(word.event.rule, "test: credits 6");
	assert_string_equal(word.event.account, "a");
	s = rig_state(&rig, 0, "m");
	assert_false(s.has_pair);
	assert_int_equal(s.row.credits_micros, 6 * M);
	assert_int_equal(s.tally[TALLY_EVENTS], 1);
	OK(env_update(rig.env, write_in, &word));
	assert_false(word.thawed);
}

static int
begin(void **state)
{
	store_dir_setup(state);
	rig_open(&rig, *state, settings);
	return 0;
}

static int
end(void **state)
{
	rig_close(&rig);
	return store_dir_teardown(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_due),
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_apply),
	    cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
