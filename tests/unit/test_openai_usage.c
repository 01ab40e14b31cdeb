#include "dialect/openai.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct scan_value
value(const char *json)
{
	static char list[512];
	static const char *const first[] = {"0"};
	struct scan_value v;

	snprintf(list, sizeof list, "[%s]", json);
	if (scan_pick(text_span(list), first, &v, 1, NULL) != ERR_OK)
		fail_msg("not JSON: %s", json);
	return v;
}

static const struct {
	const char *what, *json;
	bool seen;
	int64_t prompt, completion, total, cached, write, reasoning;
} cases[] = {
    {"OpenAI",
        "{\"prompt_tokens\":9,\"completion_tokens\":12,\"total_tokens\":21,"
        "\"prompt_tokens_details\":{\"cached_tokens\":4,\"cache_write_tokens\":2},"
        "\"completion_tokens_details\":{\"reasoning_tokens\":5}}",
        true, 9, 12, 21, 4, 2, 5},
    {"DeepSeek", "{\"prompt_tokens\":9,\"completion_tokens\":1,\"prompt_cache_hit_tokens\":8}",
        true, 9, 1, -1, 8, -1, -1},
    {"first present of the cached ones",
        "{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":3},"
        "\"prompt_cache_hit_tokens\":8,\"cached_tokens\":7}",
        true, 9, -1, -1, 3, -1, -1},
    {"null details", "{\"prompt_tokens\":9,\"prompt_tokens_details\":null,\"cached_tokens\":7}",
        true, 9, -1, -1, 7, -1, -1},
    {"null cached goes on",
        "{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":null},"
        "\"cache_read_input_tokens\":7}",
        true, 9, -1, -1, 7, -1, -1},
    {"DashScope's cache write",
        "{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cache_creation_input_tokens\":6}}", true,
        9, -1, -1, -1, 6, -1},
    {"flat reasoning", "{\"completion_tokens\":9,\"reasoning_tokens\":6}", true, -1, 9, -1, -1, -1,
        6},
    {"input and output", "{\"input_tokens\":3,\"output_tokens\":4}", true, 3, 4, -1, -1, -1, -1},
    {"numeric strings", "{\"prompt_tokens\":\"12\",\"completion_tokens\":\"3\"}", true, 12, 3, -1,
        -1, -1, -1},
    {"12.0", "{\"prompt_tokens\":12.0}", true, 12, -1, -1, -1, -1, -1},
    {"negative", "{\"prompt_tokens\":-5,\"completion_tokens\":\"-1\"}", false, -1, -1, -1, -1, -1,
        -1},
    {"2^63", "{\"prompt_tokens\":9223372036854775808,\"completion_tokens\":9223372036854775807}",
        false, -1, -1, -1, -1, -1, -1},
    {"fraction", "{\"prompt_tokens\":1.5}", false, -1, -1, -1, -1, -1, -1},
    {"other types", "{\"prompt_tokens\":true,\"completion_tokens\":[1],\"total_tokens\":{\"a\":1}}",
        false, -1, -1, -1, -1, -1, -1},
    {"text", "{\"prompt_tokens\":\"many\",\"completion_tokens\":\"\"}", false, -1, -1, -1, -1, -1,
        -1},
    {"one good one", "{\"prompt_tokens\":\"x\",\"completion_tokens\":4}", true, -1, 4, -1, -1, -1,
        -1},
    {"empty", "{}", false, -1, -1, -1, -1, -1, -1},
    {"null", "null", false, -1, -1, -1, -1, -1, -1},
    {"array", "[1]", false, -1, -1, -1, -1, -1, -1},
    {"given twice", "{\"prompt_tokens\":1,\"prompt_tokens\":2}", true, 2, -1, -1, -1, -1, -1},
    {"zero", "{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}", true, 0, 0, 0, -1,
        -1, -1},
};

static void
test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct scan_value v = value(cases[i].json);
		struct dialect_tap tap;
		struct dialect_usage *u = &tap.usage;

		dialect_tap_init(&tap);
		openai_usage(&v, u);
		if (u->seen != cases[i].seen || u->prompt != cases[i].prompt ||
		    u->completion != cases[i].completion || u->total != cases[i].total ||
		    u->cached != cases[i].cached || u->cache_write != cases[i].write ||
		    u->reasoning != cases[i].reasoning || u->has_credit)
			fail_msg("%s: got seen %d, %lld %lld %lld %lld %lld %lld", cases[i].what,
			    u->seen, (long long)u->prompt, (long long)u->completion,
			    (long long)u->total, (long long)u->cached, (long long)u->cache_write,
			    (long long)u->reasoning);
	}
}

static void
test_later_replaces(void **state)
{
	struct dialect_tap tap;
	struct scan_value v;

	(void)state;
	dialect_tap_init(&tap);
	v = value("{\"prompt_tokens\":9,\"completion_tokens\":1,\"credit\":0.5}");
	openai_usage(&v, &tap.usage);
	v = value("{\"prompt_tokens\":null,\"completion_tokens\":7,\"cached_tokens\":2}");
	openai_usage(&v, &tap.usage);
	v = value("{\"prompt_tokens\":-1,\"credit\":\"0.75\"}");
	openai_usage(&v, &tap.usage);
	assert_int_equal(tap.usage.prompt, 9);
	assert_int_equal(tap.usage.completion, 7);
	assert_int_equal(tap.usage.cached, 2);
	assert_true(tap.usage.has_credit);
	assert_int_equal(tap.usage.credit_micros, 750000);
}

static const struct {
	const char *json;
	int64_t want; /* -1 = refused */
} credits[] = {
    {"0", 0},
    {"1", 1000000},
    {"0.0123", 12300},
    {"\"2.5\"", 2500000},
    {"0.0000014", 1},
    {"0.0000015", 2},
    {"0.00000149999999999999999999999999", 1},
    {"1.5e-3", 1500},
    {"1E3", 1000000000},
    {"1e+2", 100000000},
    {"12345.678901", 12345678901},
    {"0e999", 0},
    {"1e-999", 0},
    {"0.1000000000000000055511151231257827", 100000},
    {"9007199254740993000000e-20", 90071993},
    {"1e400", -1},
    {"99999999999999999999999", -1},
    {"99999999999", -1},
    {"-1", -1},
    {"-0.5", -1},
    {"null", -1},
    {"true", -1},
    {"{}", -1},
    {"\"\"", -1},
    {"\".\"", -1},
    {"\"1.2.3\"", -1},
    {"\"free\"", -1},
    {"\"1e\"", -1},
    {"\"1e99999999999999999999\"", -1},
};

static void
test_credit(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(credits); i++) {
		struct scan_value v = value(credits[i].json);
		int64_t got = -7;
		bool ok = openai_micros(&v, &got);

		if (ok != (credits[i].want >= 0) || got != (ok ? credits[i].want : -7))
			fail_msg("%s: got %d, %lld; want %lld", credits[i].json, ok, (long long)got,
			    (long long)credits[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_usage),
	    cmocka_unit_test(test_later_replaces),
	    cmocka_unit_test(test_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
