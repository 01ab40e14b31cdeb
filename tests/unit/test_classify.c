#include "classify.h"

#include "classify_words.h"
#include "locate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define DATA "tests/data/errors/"
#define NOW "2026-08-24T12:00:00Z"

static struct arena *arena;
static struct wall_ms now;

static const struct provider providers[] = {
    {.id = PROVIDER_OPENAI, .name = "openai", .limits_per_model = true},
    {.id = PROVIDER_ANTHROPIC, .name = "anthropic"},
    {.id = PROVIDER_DEEPSEEK, .name = "deepseek"},
    {.id = PROVIDER_ZHIPU, .name = "zhipu", .timezone = "Asia/Shanghai"},
    {.id = PROVIDER_DASHSCOPE, .name = "dashscope", .timezone = "Asia/Shanghai"},
    {.id = PROVIDER_MOONSHOT, .name = "moonshot"},
    {.id = PROVIDER_SILICONFLOW, .name = "siliconflow"},
    {.id = PROVIDER_OPENROUTER, .name = "openrouter"},
    {.id = PROVIDER_GEMINI, .name = "gemini", .limits_per_model = true},
    {.id = PROVIDER_AZURE, .name = "azure", .limits_per_model = true},
    {.id = PROVIDER_XAI, .name = "xai"},
    {.id = PROVIDER_COMPATIBLE, .name = "openai-compatible"},
};

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(67108864);
	assert_true(date_rfc3339(SPAN(NOW), &now));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static struct conf_channel
channel_of(const char *name)
{
	struct conf_channel channel = {.name = text_span(name)};
	struct why why;

	for (size_t i = 0; i < NELEM(providers); i++)
		if (strcmp(name, providers[i].name) == 0)
			channel.provider = &providers[i];
	if (channel.provider == NULL)
		fail_msg("no provider '%s'", name);
	if (channel.provider->timezone != NULL)
		assert_int_equal(zone_load(arena, text_span(channel.provider->timezone), NULL,
		                     &channel.policy.cooldown.zone, &why),
		    ERR_OK);
	return channel;
}

/* ------------------------------------------------------------------ recorded and composed bodies */

static const struct json *
read_rows(const char *name)
{
	static char bytes[262144];
	const struct json *rows;
	char path[128];
	struct why why;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, DATA "%s.json", name);
	f = fopen(path, "rb");
	if (f == NULL)
		fail_msg("no %s: run the tests in the top folder", path);
	n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	if (json_parse(arena, (struct span){bytes, n}, &rows, &why) != ERR_OK)
		fail_msg("%s: %s", path, why.text);
	return rows;
}

static bool
keep_header(struct span name, const struct json *value, void *arg)
{
	struct span text;

	if (json_text(value, "", &text))
		reset_keep(arg, name, text, now);
	return true;
}

static bool
is_true(const struct json *row, const char *path, bool otherwise)
{
	/* JSON's own true and false are not among what the reader gives: written as 1 and 0 */
	int64_t v;

	return json_i64(row, path, &v) ? v != 0 : otherwise;
}

static struct span
text_at(const struct json *row, const char *path)
{
	struct span s = {0};

	json_text(row, path, &s);
	return s;
}

static void
print_reset(char out[DATE_TEXT], const struct reset_time *reset, struct span want)
{
	out[0] = '\0';
	if (reset->stated && want.n > 0 && want.p[0] == '+')
		snprintf(out, DATE_TEXT, "+%lld", (long long)(reset->at.v - now.v));
	else if (reset->stated)
		date_print(reset->at, out);
}

static int
differs(const char *file, const struct json *row, const char *field, const char *got)
{
	struct span want = text_at(row, field), what = text_at(row, "what");

	if (text_is(want, got))
		return 0;
	print_error("%s: %.*s: %s is '%s', want '%.*s'\n", file, (int)what.n, what.p, field, got,
	    (int)want.n, want.p);
	return 1;
}

static int
check_row(const char *file, const struct conf_channel *channel, const struct json *row)
{
	struct reset_headers headers = {0};
	struct classify_answer answer = {.headers = &headers};
	struct classify_finding finding;
	char reset[DATE_TEXT];
	int64_t status = 0, effective;
	int bad = 0;

	json_each(json_at(row, "headers"), keep_header, &headers);
	assert_true(json_i64(row, "status", &status));
	answer.status = (int)status;
	answer.body = text_at(row, "body");
	answer.content_type = reset_header(&headers, "content-type");
	answer.in_band = is_true(row, "in_band", false);
	answer.judged = is_true(row, "judged", true);
	answer.model = json_at(row, "model") != NULL ? text_at(row, "model") : SPAN("some-model-1");
	classify_answer(arena, channel, &answer, now, &finding);
	bad += differs(file, row, "verdict", verdict_table[finding.verdict].name);
	print_reset(reset, &finding.reset, text_at(row, "reset"));
	bad += differs(file, row, "reset", reset);
	if (json_at(row, "rule") != NULL)
		bad += differs(file, row, "rule", finding.rule);
	if (json_at(row, "code") != NULL)
		bad += differs(file, row, "code", finding.code);
	if (!json_i64(row, "effective", &effective))
		effective = answer.in_band ? finding.status : status;
	if (finding.status != effective || finding.rule == NULL) {
		print_error("%s: %.*s: status is %d, rule '%s'\n", file,
		    (int)text_at(row, "what").n, text_at(row, "what").p, finding.status,
		    finding.rule);
		bad++;
	}
	return bad;
}

static void
test_bodies(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(providers); i++) {
		const struct json *rows = read_rows(providers[i].name);
		struct conf_channel channel = channel_of(providers[i].name);

		assert_true(json_count(rows) > 4);
		for (size_t j = 0; j < json_count(rows); j++)
			bad += check_row(providers[i].name, &channel, json_item(rows, j));
	}
	assert_int_equal(bad, 0);
}

static void
test_host_zone(void **state)
{
	setenv("TZ", "America/New_York", 1);
	tzset();
	test_bodies(state);
	unsetenv("TZ");
	tzset();
}

/* ------------------------------------------------------------------ below HTTP */

static void
test_transport(void **state)
{
	static const struct {
		const char *what;
		enum classify_transport transport;
		int status;
		enum verdict want;
	} rows[] = {
	    {"connect", TRANSPORT_CONNECT, 0, VERDICT_NETWORK},
	    {"TLS", TRANSPORT_TLS, 0, VERDICT_NETWORK},
	    {"time-out before the answer", TRANSPORT_TIMEOUT, 0, VERDICT_NETWORK},
	    {"time-out in the answer", TRANSPORT_TIMEOUT, 200, VERDICT_NETWORK},
	    {"time-out in a refusal", TRANSPORT_TIMEOUT, 429, VERDICT_SOFT_RATE},
	    {"cut answer", TRANSPORT_TRUNCATED, 200, VERDICT_SERVER},
	    {"cut refusal", TRANSPORT_TRUNCATED, 402, VERDICT_HARD_CREDIT},
	    {"too big", TRANSPORT_TOO_BIG, 200, VERDICT_SERVER},
	    {"reused", TRANSPORT_REUSED, 0, VERDICT_NOBODY},
	    {"good", TRANSPORT_OK, 200, VERDICT_OK},
	    {"created", TRANSPORT_OK, 201, VERDICT_OK},
	    {"no status", TRANSPORT_OK, 0, VERDICT_SERVER},
	    {"early hints only", TRANSPORT_OK, 103, VERDICT_SERVER},
	    {"beyond 599", TRANSPORT_OK, 999, VERDICT_SERVER},
	};
	struct conf_channel channel = channel_of("openai-compatible");
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct classify_answer answer = {
		    .transport = rows[i].transport, .status = rows[i].status, .judged = true};
		struct classify_finding finding;

		classify_answer(arena, &channel, &answer, now, &finding);
		if (finding.verdict == rows[i].want)
			continue;
		print_error("%s: got %s, want %s\n", rows[i].what,
		    verdict_table[finding.verdict].name, verdict_table[rows[i].want].name);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* ------------------------------------------------------------------ the operator's rules */

#define EXTRA_PLAN \
	"{\"error\":{\"type\":\"rate_limit_error\",\"code\":\"x1\",\"message\":\"Extra plan required\"}}"

#define T(literal)                             \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

static const struct rule_case {
	const char *what;
	struct conf_rule rule;
	const char *body;
	bool matches;
} rule_cases[] = {
    {"nothing asked", {.status = 0}, EXTRA_PLAN, true},
    {"status", {.status = 429}, EXTRA_PLAN, true},
    {"other status", {.status = 400}, EXTRA_PLAN, false},
    {"code", {.code = T("x1")}, EXTRA_PLAN, true},
    {"code without case", {.code = T("X1")}, EXTRA_PLAN, true},
    {"other code", {.code = T("x")}, EXTRA_PLAN, false},
    {"type", {.type = T("rate_limit_error")}, EXTRA_PLAN, true},
    {"type and other status", {.status = 401, .type = T("rate_limit_error")}, EXTRA_PLAN, false},
    {"text", {.text = T("extra PLAN")}, EXTRA_PLAN, true},
    {"other text", {.text = T("extra plane")}, EXTRA_PLAN, false},
    {"regex", {.text = T("/^extra\\s+plan (required|needed)$/")}, EXTRA_PLAN, true},
    {"other regex", {.text = T("/^plan/")}, EXTRA_PLAN, false},
    {"broken regex", {.text = T("/(/")}, EXTRA_PLAN, false},
    {"one slash is text", {.text = T("/")}, EXTRA_PLAN, false},
    {"text of a page", {.text = T("just a moment")}, "<html>Just a moment...</html>", true},
    {"regex over bytes that are no text", {.text = T("/moment/")}, "<html>\xff\xfe moment</html>",
        true},
    {"header is there", {.header = T("X-Kind")}, EXTRA_PLAN, true},
    {"header is not there", {.header = T("X-Kin")}, EXTRA_PLAN, false},
    {"header with value", {.header = T("x-kind: plan")}, EXTRA_PLAN, true},
    {"header with other value", {.header = T("x-kind: plane")}, EXTRA_PLAN, false},
    {"all of it", {.status = 429, .code = T("x1"), .text = T("plan"), .header = T("x-kind")},
        EXTRA_PLAN, true},
    {"all but one", {.status = 429, .code = T("x2"), .text = T("plan")}, EXTRA_PLAN, false},
};

static void
test_rules(void **state)
{
	struct conf_channel channel = channel_of("openai");
	struct reset_headers headers = {0};
	int bad = 0;

	(void)state;
	reset_keep(&headers, SPAN("X-Kind"), SPAN("extra-plan"), now);
	for (size_t i = 0; i < NELEM(rule_cases); i++) {
		struct conf_rule rule = rule_cases[i].rule;
		struct classify_answer answer = {.status = 429,
		    .body = text_span(rule_cases[i].body),
		    .headers = &headers,
		    .judged = true,
		    .model = SPAN("m1")};
		struct classify_finding finding;
		bool got;

		rule.kind = SPAN("session_dead");
		channel.rules = &rule;
		channel.nrules = 1;
		classify_answer(arena, &channel, &answer, now, &finding);
		got =
		    finding.verdict == VERDICT_SESSION_DEAD && strcmp(finding.rule, "rule:0") == 0;
		if (got == rule_cases[i].matches)
			continue;
		print_error("%s: got %s by %s\n", rule_cases[i].what,
		    verdict_table[finding.verdict].name, finding.rule);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static void
test_rule_order(void **state)
{
	struct conf_rule rules[] = {
	    {.status = 400, .kind = SPAN("client")},
	    {.status = 429, .kind = SPAN("no such kind")},
	    {.status = 429, .kind = SPAN("soft_rate")},
	    {.status = 429, .kind = SPAN("client")},
	};
	struct conf_channel channel = channel_of("openai");
	struct classify_answer answer = {
	    .status = 429, .body = SPAN("{\"code\":14018}"), .judged = true, .model = SPAN("m1")};
	struct classify_finding finding;

	(void)state;
	channel.rules = rules;
	channel.nrules = NELEM(rules);
	classify_answer(arena, &channel, &answer, now, &finding);
	assert_string_equal(finding.rule, "rule:2");
	/* what the operator wrote is not narrowed to the model */
	assert_int_equal(finding.verdict, VERDICT_SOFT_RATE);
	/* a good answer is not asked */
	answer.status = 200;
	rules[0].status = 0;
	classify_answer(arena, &channel, &answer, now, &finding);
	assert_int_equal(finding.verdict, VERDICT_OK);
}

/* A regex that takes for ever is stopped. */
static void
test_slow_regex(void **state)
{
	static char body[16384];
	struct conf_rule rule = {.text = SPAN("/^(a+)+$/"), .kind = SPAN("client")};
	struct conf_channel channel = channel_of("openai-compatible");
	struct classify_answer answer = {.status = 500, .judged = true};
	struct classify_finding finding;

	(void)state;
	memset(body, 'a', sizeof body);
	body[sizeof body - 1] = '!';
	answer.body = (struct span){body, sizeof body};
	channel.rules = &rule;
	channel.nrules = 1;
	classify_answer(arena, &channel, &answer, now, &finding);
	assert_int_equal(finding.verdict, VERDICT_SERVER);
}

/* ------------------------------------------------------------------ hostile bodies */

static enum verdict
verdict_of(const struct conf_channel *channel, struct span body, int status, bool in_band)
{
	struct classify_answer answer = {.status = status,
	    .body = body,
	    .in_band = in_band,
	    .judged = true,
	    .model = SPAN("m1")};
	struct classify_finding finding;

	classify_answer(arena, channel, &answer, now, &finding);
	assert_true(finding.verdict < VERDICT__MAX);
	assert_non_null(finding.rule);
	return finding.verdict;
}

static void
test_hostile(void **state)
{
	static const char *const seeds[] = {"[", "{\"error\":", "{\"details\":[", "\"", "'a' ",
	    "model * ", "<", "\xff", "data:", "\\u0000", "{\"a\":1},", "rate limi", "1", " \n"};
	struct conf_channel channel = channel_of("gemini");
	char *body = malloc(65536);

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < NELEM(seeds); i++) {
		size_t len = strlen(seeds[i]);

		for (size_t at = 0; at < 65536; at += len)
			memcpy(body + at, seeds[i], at + len <= 65536 ? len : 65536 - at);
		for (size_t n = 0; n < 65536; n = n * 4 + 1) {
			/* the exact size, so that a read beyond it is seen */
			char *exact = malloc(n + 1);

			assert_non_null(exact);
			memcpy(exact, body, n);
			assert_int_equal(verdict_of(&channel, (struct span){exact, n}, 500, false),
			    VERDICT_SERVER);
			verdict_of(&channel, (struct span){exact, n}, 400, false);
			assert_int_equal(verdict_of(&channel, (struct span){exact, n}, 200, true),
			    VERDICT_SERVER);
			free(exact);
			arena_reset(arena);
			channel = channel_of("gemini");
		}
	}
	free(body);
}

/* Every prefix of a real body, as a cut one. */
static void
test_cut_bodies(void **state)
{
	static const char body[] =
	    "[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"message\":\"Please retry in 4s.\","
	    "\"details\":[{\"violations\":[{\"quotaId\":\"PerDay\"}]},{\"retryDelay\":\"34s\"}]}}]";
	struct conf_channel channel = channel_of("gemini");

	(void)state;
	for (size_t n = 0; n < sizeof body; n++) {
		char *exact = malloc(n + 1);

		assert_non_null(exact);
		memcpy(exact, body, n);
		assert_int_equal(
		    verdict_of(&channel, (struct span){exact, n}, 429, false), VERDICT_MODEL_RATE);
		free(exact);
	}
}

/* Values of every type in every field. */
static void
test_odd_types(void **state)
{
	static const char *const values[] = {"null", "true", "1e400", "-1", "\"\"", "[]", "{}",
	    "[[]]", "{\"code\":{}}", "[1,\"a\",null]", "99999999999999999999", "\"\\u0000\""};
	static const char *const fields[] = {"error", "code", "type", "message", "detail",
	    "details", "errors", "base_resp", "choices", "metadata", "innererror", "response",
	    "status"};
	struct conf_channel channel = channel_of("openrouter");
	char body[256];

	(void)state;
	for (size_t i = 0; i < NELEM(fields); i++)
		for (size_t j = 0; j < NELEM(values); j++) {
			snprintf(body, sizeof body, "{\"%s\":%s,\"error\":{\"%s\":%s}}", fields[i],
			    values[j], fields[i], values[j]);
			assert_int_equal(
			    verdict_of(&channel, text_span(body), 418, false), VERDICT_CLIENT);
			snprintf(body, sizeof body, "{\"%s\":%s}", fields[i], values[j]);
			assert_int_equal(
			    verdict_of(&channel, text_span(body), 418, false), VERDICT_CLIENT);
		}
}

static void
test_message(void **state)
{
	struct conf_channel channel = channel_of("openai");
	struct classify_answer answer = {.status = 500,
	    .judged = true,
	    .body = SPAN(
	        "{\"error\":{\"message\":\"a\\nb\\u0000c\\u007f \\u4e2d\",\"code\":\"x\\r\"}}")};
	struct classify_finding finding;

	(void)state;
	classify_answer(arena, &channel, &answer, now, &finding);
	assert_string_equal(finding.message, "a?b?c? 中");
	assert_string_equal(finding.code, "x");
	assert_string_equal(finding.rule, "status:500");
}

static void
test_words(void **state)
{
	static const struct {
		const char *what, *text, *pattern;
		bool want;
	} rows[] = {
	    {"same", "rate limit", "rate limit", true},
	    {"without case", "Rate Limit", "rate limit", true},
	    {"inside", "the rate limit is", "rate limit", true},
	    {"inside of a word", "separate limits", "rate limit", false},
	    {"second phrase", "too many requests", "rate limit|too many", true},
	    {"begin", "model: x", "^model:", true},
	    {"not the begin", "no model: x", "^model:", false},
	    {"number", "length is 128,000 tokens", "length is # tokens", true},
	    {"no number", "length is many tokens", "length is # tokens", false},
	    {"gap", "model x-1 does not exist", "model*does not exist", true},
	    {"gap too wide",
	        "model aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa not found",
	        "model*not found", false},
	    {"gap over a line", "model\nnot found", "model*not found", false},
	    {"begin of the text missing", "ate limit", "rate limit", false},
	    {"text ends in the phrase", "rate lim", "rate limit", false},
	    {"empty text", "", "rate limit", false},
	    {"other letters", "请求过于频繁，请稍后", "请求过于频繁", true},
	};
	struct classify_words words;
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		if (classify_words_match(text_span(rows[i].text), rows[i].pattern, NULL) !=
		    rows[i].want) {
			print_error("%s: '%s'\n", rows[i].what, rows[i].text);
			bad++;
		}
	assert_int_equal(bad, 0);
	words =
	    classify_words(arena, SPAN("don't use 'a b' or \"c\" of m1, it's \"open"), SPAN("m1"));
	assert_true(text_is(words.plain, "don't use  or  of , it's "));
	assert_true(text_is(words.head, "don't use "));
	assert_true(classify_words_name(SPAN("no m1."), SPAN("m1")));
	assert_false(classify_words_name(SPAN("no m11, xm1"), SPAN("m1")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_host_zone),
	    cmocka_unit_test(test_transport),
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_rule_order),
	    cmocka_unit_test(test_slow_regex),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_cut_bodies),
	    cmocka_unit_test(test_odd_types),
	    cmocka_unit_test(test_message),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
