#include "probe.h"

#include "lib/conf_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW 1767607200000LL
#define MIN 60000LL

#define BY_FAILURES (ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES)

/* Rests end and errors were so many minutes from now; 0 = none. */
static const struct {
	const char *what;
	uint8_t flags;
	enum verdict kind;
	int64_t cool, breaker, error;
	enum probe_way plain, chat; /* without and with probe.recover_chat */
} due[] = {
    {"active", 0, VERDICT_OK, 0, 0, -1, PROBE_NOT, PROBE_NOT},
    {"rests that are over", ACCOUNT_GUESSED, VERDICT_SOFT_RATE, -1, -1, -9, PROBE_NOT, PROBE_NOT},
    {"disabled by failures", BY_FAILURES, VERDICT_OK, 0, 0, -1, PROBE_MODELS, PROBE_MODELS},
    {"... with a breaker", BY_FAILURES, VERDICT_OK, 0, 9, -1, PROBE_MODELS, PROBE_MODELS},
    {"... and by a person", BY_FAILURES | ACCOUNT_BY_OPERATOR, VERDICT_OK, 0, 0, -1, PROBE_NOT,
        PROBE_NOT},
    {"disabled otherwise", ACCOUNT_DISABLED, VERDICT_OK, 0, 0, -1, PROBE_NOT, PROBE_NOT},
    {"... with a network breaker", ACCOUNT_DISABLED | ACCOUNT_BREAKER_NET, VERDICT_OK, 0, 9, -1,
        PROBE_NOT, PROBE_NOT},
    {"network breaker", ACCOUNT_BREAKER_NET, VERDICT_OK, 0, 9, 0, PROBE_MODELS, PROBE_MODELS},
    {"... that is over", ACCOUNT_BREAKER_NET, VERDICT_OK, 0, -1, -9, PROBE_NOT, PROBE_NOT},
    {"... and no credit", ACCOUNT_BREAKER_NET, VERDICT_HARD_CREDIT, 60, 9, 0, PROBE_MODELS,
        PROBE_MODELS},
    {"server breaker, first half", 0, VERDICT_OK, 0, 16, -14, PROBE_NOT, PROBE_NOT},
    {"server breaker, half", 0, VERDICT_OK, 0, 15, -15, PROBE_NOT, PROBE_CHAT},
    {"server breaker, second half", 0, VERDICT_OK, 0, 1, -29, PROBE_NOT, PROBE_CHAT},
    {"soft rate, first half", ACCOUNT_GUESSED, VERDICT_SOFT_RATE, 3, 0, -1, PROBE_NOT, PROBE_NOT},
    {"soft rate, second half", ACCOUNT_GUESSED, VERDICT_SOFT_RATE, 1, 0, -3, PROBE_NOT, PROBE_CHAT},
    {"stated soft rate", 0, VERDICT_SOFT_RATE, 1, 0, -3, PROBE_NOT, PROBE_NOT},
    {"no credit", 0, VERDICT_HARD_CREDIT, 1, 0, -3, PROBE_NOT, PROBE_NOT},
    {"no credit, breaker", 0, VERDICT_HARD_CREDIT, 1, 1, -9, PROBE_NOT, PROBE_NOT},
    {"stated, breaker", 0, VERDICT_SOFT_RATE, 1, 1, -9, PROBE_NOT, PROBE_NOT},
    {"stated that is over, breaker", 0, VERDICT_SOFT_RATE, -1, 1, -9, PROBE_NOT, PROBE_CHAT},
    {"soft rate, longer breaker", ACCOUNT_GUESSED, VERDICT_SOFT_RATE, 1, 9, -3, PROBE_NOT,
        PROBE_NOT},
    {"overload", ACCOUNT_GUESSED, VERDICT_OVERLOAD, 1, 0, -3, PROBE_NOT, PROBE_NOT},
    {"overload, breaker", ACCOUNT_GUESSED, VERDICT_OVERLOAD, 1, 1, -3, PROBE_NOT, PROBE_CHAT},
};

static int64_t
at(int64_t minutes)
{
	return minutes == 0 ? 0 : NOW + minutes * MIN;
}

static void
test_due(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(due); i++) {
		struct account_row row = {.flags = due[i].flags,
		    .cool_kind = (uint8_t)due[i].kind,
		    .cool_until_ms = at(due[i].cool),
		    .breaker_until_ms = at(due[i].breaker)};
		struct account_stat stat = {.last_error_ms = NOW + due[i].error * MIN};
		enum probe_way plain = probe_recovery(&row, &stat, false, (struct wall_ms){NOW});
		enum probe_way chat = probe_recovery(&row, &stat, true, (struct wall_ms){NOW});

		if (plain != due[i].plain || chat != due[i].chat)
			fail_msg("%s: got %d and %d, want %d and %d", due[i].what, (int)plain,
			    (int)chat, (int)due[i].plain, (int)due[i].chat);
	}
}

/* One account before and after an answer. Transactions: asked in 100, settled in 110. */
struct rows {
	uint8_t flags;
	int64_t cool, breaker; /* minutes from now */
	unsigned streak, step, fails, consecutive, errors;
};

static const struct {
	const char *what;
	enum probe_way way;
	bool active, disable;
	enum verdict verdict;
	int64_t stated; /* minutes from now */
	uint32_t failed, cool_set;
	struct rows before, after;
	enum probe_result result;
} cases[] = {
    {"models bring back", PROBE_MODELS, false, false, VERDICT_OK, 0, 50, 0,
        {BY_FAILURES, 0, 0, 0, 0, 2, 5, 5}, {0, 0, 0, 0, 0, 0, 0, 5}, PROBE_HEALTHY},
    {"models end a network breaker, not its step", PROBE_MODELS, false, false, VERDICT_OK, 0, 50, 0,
        {ACCOUNT_BREAKER_NET, 0, 9, 0, 2, 0, 5, 5}, {0, 0, 0, 0, 2, 0, 5, 5}, PROBE_HEALTHY},
    {"models bring back, the server breaker stays", PROBE_MODELS, false, false, VERDICT_OK, 0, 50,
        0, {BY_FAILURES, 0, 9, 0, 1, 0, 5, 5}, {0, 0, 9, 0, 1, 0, 0, 5}, PROBE_HEALTHY},
    {"models end no rest", PROBE_MODELS, false, false, VERDICT_OK, 0, 50, 60,
        {ACCOUNT_GUESSED | ACCOUNT_BREAKER_NET, 5, 9, 1, 1, 0, 1, 1},
        {ACCOUNT_GUESSED, 5, 0, 1, 1, 0, 1, 1}, PROBE_HEALTHY},
    {"failed since", PROBE_MODELS, false, false, VERDICT_OK, 0, 105, 0,
        {BY_FAILURES | ACCOUNT_BREAKER_NET, 0, 9, 0, 1, 0, 5, 5},
        {BY_FAILURES | ACCOUNT_BREAKER_NET, 0, 9, 0, 1, 0, 5, 5}, PROBE_HEALTHY},
    {"a person's word stays", PROBE_MODELS, false, false, VERDICT_OK, 0, 50, 0,
        {BY_FAILURES | ACCOUNT_BY_OPERATOR, 0, 0, 0, 0, 2, 5, 5},
        {BY_FAILURES | ACCOUNT_BY_OPERATOR, 0, 0, 0, 0, 2, 5, 5}, PROBE_HEALTHY},
    {"models that fail change nothing", PROBE_MODELS, false, false, VERDICT_AUTH_FAILED, 0, 50, 0,
        {BY_FAILURES, 0, 9, 1, 1, 2, 5, 5}, {BY_FAILURES, 0, 9, 1, 1, 2, 5, 5}, PROBE_FAILED},
    {"nor of who is active", PROBE_MODELS, true, true, VERDICT_AUTH_FAILED, 0, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, PROBE_FAILED},
    {"a chat ends guess and breaker", PROBE_CHAT, false, false, VERDICT_OK, 0, 50, 60,
        {ACCOUNT_GUESSED, 5, 9, 3, 2, 1, 5, 5}, {0, 0, 0, 0, 0, 0, 0, 5}, PROBE_HEALTHY},
    {"a chat leaves what is stated", PROBE_CHAT, false, false, VERDICT_OK, 0, 50, 60,
        {0, 5, 9, 3, 2, 1, 5, 5}, {0, 5, 0, 0, 0, 0, 0, 5}, PROBE_HEALTHY},
    {"a chat leaves a guess of later", PROBE_CHAT, false, false, VERDICT_OK, 0, 50, 105,
        {ACCOUNT_GUESSED, 5, 0, 1, 0, 0, 0, 1}, {ACCOUNT_GUESSED, 5, 0, 0, 0, 0, 0, 1},
        PROBE_HEALTHY},
    {"a chat from before the last failure", PROBE_CHAT, false, false, VERDICT_OK, 0, 105, 60,
        {ACCOUNT_GUESSED, 5, 9, 3, 2, 1, 5, 5}, {ACCOUNT_GUESSED, 5, 9, 3, 2, 1, 5, 5},
        PROBE_HEALTHY},
    {"still limited", PROBE_CHAT, false, false, VERDICT_SOFT_RATE, 0, 50, 60,
        {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1}, {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1},
        PROBE_RATE_LIMITED},
    {"still limited, until then", PROBE_CHAT, false, false, VERDICT_SOFT_RATE, 30, 50, 60,
        {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1}, {0, 30, 0, 1, 0, 1, 1, 1}, PROBE_RATE_LIMITED},
    {"never earlier", PROBE_CHAT, false, false, VERDICT_SOFT_RATE, 2, 50, 60,
        {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1}, {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1},
        PROBE_RATE_LIMITED},
    {"still refused", PROBE_CHAT, false, true, VERDICT_AUTH_FAILED, 0, 50, 60,
        {0, 0, 5, 1, 1, 2, 2, 2}, {0, 0, 5, 1, 1, 2, 2, 2}, PROBE_FAILED},
    {"active and well", PROBE_CHAT, true, false, VERDICT_OK, 0, 50, 0, {0, 0, 0, 0, 0, 2, 2, 2},
        {0, 0, 0, 0, 0, 0, 0, 2}, PROBE_HEALTHY},
    {"active and limited", PROBE_CHAT, true, true, VERDICT_SOFT_RATE, 0, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {ACCOUNT_GUESSED, 1, 0, 1, 0, 1, 1, 1}, PROBE_RATE_LIMITED},
    {"active, key refused", PROBE_CHAT, true, false, VERDICT_AUTH_FAILED, 0, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {ACCOUNT_DISABLED | ACCOUNT_BREAKER_NET, 0, 0, 0, 0, 1, 1, 1},
        PROBE_FAILED},
    {"active, server fails", PROBE_CHAT, true, false, VERDICT_SERVER, 0, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 1, 1, 1}, PROBE_FAILED},
    {"active, the third failure", PROBE_CHAT, true, false, VERDICT_SERVER, 0, 50, 0,
        {0, 0, 0, 0, 0, 2, 2, 2}, {0, 0, 30, 0, 1, 0, 3, 3}, PROBE_FAILED},
    {"active, disabled for it", PROBE_CHAT, true, true, VERDICT_SERVER, 0, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {ACCOUNT_DISABLED, 0, 0, 0, 0, 1, 1, 1}, PROBE_FAILED},
    {"an overload disables nobody", PROBE_CHAT, true, true, VERDICT_OVERLOAD, 1, 50, 0,
        {0, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0}, PROBE_FAILED},
    {"our own fault", PROBE_CHAT, true, true, VERDICT_CLIENT, 0, 50, 0, {0, 0, 0, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 0, 0, 0, 0}, PROBE_FAILED},
    {"failed meanwhile: the same incident", PROBE_CHAT, true, false, VERDICT_SERVER, 0, 105, 0,
        {0, 0, 0, 0, 0, 1, 1, 1}, {0, 0, 0, 0, 0, 1, 1, 2}, PROBE_FAILED},
    {"rests meanwhile: nothing gets worse", PROBE_CHAT, true, true, VERDICT_SERVER, 0, 105, 0,
        {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1}, {ACCOUNT_GUESSED, 5, 0, 1, 0, 1, 1, 1},
        PROBE_FAILED},
};

static struct conf *conf;

static struct account_row
row_of(const struct rows *rows)
{
	return (struct account_row){.flags = rows->flags,
	    .cool_kind = rows->cool == 0 ? 0 : VERDICT_SOFT_RATE,
	    .soft_streak = (uint8_t)rows->streak,
	    .breaker_step = (uint8_t)rows->step,
	    .fails = (uint16_t)rows->fails,
	    .consecutive = (uint16_t)rows->consecutive,
	    .errors = rows->errors,
	    .cool_until_ms = at(rows->cool),
	    .breaker_until_ms = at(rows->breaker)};
}

static void
check_rows(const char *what, const struct account_row *got, const struct rows *want)
{
	struct account_row w = row_of(want);

	if (got->flags != w.flags || got->cool_until_ms != w.cool_until_ms ||
	    got->breaker_until_ms != w.breaker_until_ms || got->soft_streak != w.soft_streak ||
	    got->breaker_step != w.breaker_step || got->fails != w.fails ||
	    got->consecutive != w.consecutive || got->errors != w.errors)
		fail_msg("%s: got flags %u cool %lld breaker %lld streak %u step %u fails %u/%u "
		         "errors %u",
		    what, got->flags, (long long)(got->cool_until_ms - NOW) / MIN,
		    (long long)(got->breaker_until_ms - NOW) / MIN, got->soft_streak,
		    got->breaker_step, got->fails, got->consecutive, got->errors);
}

static void
test_apply(void **state)
{
	const struct conf_policy *policy = &conf->channels[0].policy;
	const struct health_policy health = {.threshold = policy->breaker.threshold,
	    .backoff_ms = policy->breaker.backoff_ms.at,
	    .nbackoff = policy->breaker.backoff_ms.n,
	    .session_dead_after = 3,
	    .auth_failed_after = 1};

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct classify_finding finding = {.verdict = cases[i].verdict, .status = 429};
		struct probe_case probe = {cases[i].way, cases[i].active, cases[i].disable,
		    &finding, {100, 110, {NOW}}, policy, &health};
		struct account_row row = row_of(&cases[i].before);
		struct account_stat stat = {.calls = 0};
		struct probe_effect effect;

		finding.reset =
		    (struct reset_time){cases[i].stated != 0, {at(cases[i].stated)}, "t"};
		row.failed_txn = cases[i].failed;
		row.cool_txn = cases[i].cool_set;
		probe_apply(&row, &stat, &probe, &effect);
		check_rows(cases[i].what, &row, &cases[i].after);
		if (stat.probe_result != cases[i].result || stat.probe_at_ms != NOW)
			fail_msg("%s: result %u", cases[i].what, stat.probe_result);
		if (effect.change.disabled !=
		    ((row.flags & ~cases[i].before.flags & ACCOUNT_DISABLED) != 0))
			fail_msg("%s: disabled is not told", cases[i].what);
	}
}

/* A limit of the model is told, not put into the account's row. */
static void
test_model_rests(void **state)
{
	struct classify_finding finding = {.verdict = VERDICT_MODEL_RATE, .status = 429};
	struct probe_case probe = {
	    PROBE_CHAT, true, false, &finding, {100, 110, {NOW}}, &conf->channels[0].policy, NULL};
	struct account_row row = {.flags = 0};
	struct account_stat stat = {.calls = 0};
	struct probe_effect effect;

	(void)state;
	probe_apply(&row, &stat, &probe, &effect);
	assert_true(effect.model.rests && effect.model.guessed);
	assert_int_equal(effect.model.until.v, NOW + MIN);
	assert_int_equal(effect.to, HEALTH_ACTIVE);
	assert_int_equal(row.errors, 1);
	assert_int_equal(stat.rate_limited, 1);
}

static const struct {
	const char *channel, *account, *model, *body;
} questions[] = {
    {"any", "a", "", ""},
    {"listed", "a", "m1",
        "{\"model\":\"m1\",\"messages\":[{\"role\":\"user\",\"content\":\"H\\\"i\"}],\"max_tokens\":1}"},
    {"listed", "b", "b9", NULL},
    {"listed", "c", "m2", NULL},
    {"listed", "d", "", NULL},
    {"targets", "a", "t-up",
        "{\"model\":\"t-up\",\"messages\":[{\"role\":\"user\",\"content\":\"H\\\"i\"}],\"max_completion_tokens\":1}"},
    {"messages", "a", "x",
        "{\"model\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"H\\\"i\"}],\"max_tokens\":1}"},
    {"responses", "a", "y", "{\"model\":\"y\",\"input\":\"H\\\"i\",\"max_output_tokens\":16}"},
    {"stream", "a", "z",
        "{\"model\":\"z\",\"messages\":[{\"role\":\"user\",\"content\":\"H\\\"i\"}],\"max_tokens\":1,\"stream\":true}"},
};

static const char *const settings =
    "{'models': {'t': {'targets': [{'channel': 'targets', 'model': 't-up'}]}}, 'channels': {"
    "'any': {'base_url': 'http://u', 'accounts': [{'id': 'a', 'api_key': 'k'}]},"
    "'listed': {'base_url': 'http://u', 'models': ['glm-*', 'm1', 'm2'], 'accounts': ["
    " {'id': 'a', 'api_key': 'k'}, {'id': 'b', 'api_key': 'k', 'models': ['x*', 'b9']},"
    " {'id': 'c', 'api_key': 'k', 'models': ['*2']}, {'id': 'd', 'api_key': 'k', 'models': ['q*']}]},"
    "'targets': {'provider': 'openai', 'models': ['gpt-*'], 'accounts': [{'id': 'a', 'api_key': 'k'}]},"
    "'messages': {'provider': 'anthropic', 'models': ['x'], 'accounts': [{'id': 'a', 'api_key': 'k'}]},"
    "'responses': {'base_url': 'http://u', 'wire': 'responses', 'models': ['y'],"
    " 'accounts': [{'id': 'a', 'api_key': 'k'}]},"
    "'stream': {'base_url': 'http://u', 'models': ['z'], 'quirks': {'force_stream': true},"
    " 'accounts': [{'id': 'a', 'api_key': 'k'}]}}}";

static void
test_question(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(questions); i++) {
		const struct conf_channel *channel =
		    conf_channel(conf, text_span(questions[i].channel));
		const struct conf_account *account =
		    conf_account(channel, text_span(questions[i].account));
		struct span model = probe_model(conf, channel, account);
		struct buf body;

		if (!text_is(model, questions[i].model))
			fail_msg("%s/%s: got model '%.*s'", questions[i].channel,
			    questions[i].account, (int)model.n, model.p);
		buf_init(&body, 4096);
		probe_chat_body(channel, model, SPAN("H\"i"), &body);
		if (model.n > 0 && questions[i].body != NULL)
			assert_string_equal(body.p, questions[i].body);
		buf_release(&body);
	}
}

static const struct {
	enum provider_wire wire;
	const char *body;
	bool is;
} answers[] = {
    {WIRE_CHAT, "{\"choices\":[]}", true},
    {WIRE_CHAT, " \n{\"id\":1,\"choices\":[{}]}", true},
    {WIRE_CHAT, ": hello\n\ndata: {\"choices\":[{}]}\r\n\r\ndata: [DONE]\n\n", true},
    {WIRE_CHAT, "data: {\"error\":{}}\n\n", false},
    {WIRE_CHAT, "{\"choices\":null}", false},
    {WIRE_CHAT, "{\"response\":{}}", false},
    {WIRE_CHAT, "{\"choices\":[", false},
    {WIRE_CHAT, "<html>", false},
    {WIRE_CHAT, "", false},
    {WIRE_MESSAGES, "{\"content\":[]}", true},
    {WIRE_MESSAGES, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
        true},
    {WIRE_MESSAGES, "{\"choices\":[]}", false},
    {WIRE_RESPONSES, "{\"output\":[]}", true},
    {WIRE_RESPONSES, "data: {\"type\":\"response.created\",\"response\":{}}\n\n", true},
    {WIRE_RESPONSES, "{\"error\":{}}", false},
};

static void
test_answer(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++)
		if (probe_is_chat(arena, answers[i].wire, probe_text(text_span(answers[i].body))) !=
		    answers[i].is)
			fail_msg("%s", answers[i].body);
	arena_free(&arena);
}

static void
test_names(void **state)
{
	(void)state;
	assert_null(probe_result_name(PROBE_NEVER));
	assert_string_equal(probe_result_name(PROBE_RATE_LIMITED), "rate_limited");
	assert_null(probe_result_name(200));
	for (int v = 0; v < VERDICT__MAX; v++)
		assert_int_equal(probe_result_of((enum verdict)v),
		    v == VERDICT_OK                                     ? PROBE_HEALTHY
		    : v == VERDICT_SOFT_RATE || v == VERDICT_MODEL_RATE ? PROBE_RATE_LIMITED
		                                                        : PROBE_FAILED);
}

static int
load(void **state)
{
	(void)state;
	conf = conf_alone(settings);
	return 0;
}

static int
unload(void **state)
{
	(void)state;
	conf_free(&conf);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_due),
	    cmocka_unit_test(test_apply),
	    cmocka_unit_test(test_model_rests),
	    cmocka_unit_test(test_question),
	    cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
