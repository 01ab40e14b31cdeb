#include "base/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_BYTES (1 << 20)

/* A copy on the heap without a NUL behind, so that reading too far is seen by the tools. */
static struct span
exact(struct span s)
{
	char *p = malloc(s.n == 0 ? 1 : s.n);

	assert_non_null(p);
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	return (struct span){p, s.n};
}

static void
drop(struct span s)
{
	free((void *)(uintptr_t)s.p);
}

static void
test_string(void **state)
{
	static const struct {
		const char *what;
		struct span raw, want;
	} rows[] = {
	    {"plain", SPAN("\"abc\""), SPAN("abc")},
	    {"empty", SPAN("\"\""), SPAN("")},
	    {"simple escapes", SPAN("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), SPAN("\"\\/\b\f\n\r\t")},
	    {"1, 2, 3 bytes", SPAN("\"\\u0041\\u00e9\\u4FEE\""), SPAN("A\xc3\xa9\xe4\xbf\xae")},
	    {"ends of the ranges", SPAN("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\""),
	        SPAN("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
	    {"a pair", SPAN("\"x\\ud83d\\ude00y\""), SPAN("x\xf0\x9f\x98\x80y")},
	    {"the last pair", SPAN("\"\\udbff\\udfff\""), SPAN("\xf4\x8f\xbf\xbf")},
	    {"lone high", SPAN("\"\\ud83d\""), SPAN("\xef\xbf\xbd")},
	    {"lone high and text", SPAN("\"\\ud83dabcdefg\""),
	        SPAN("\xef\xbf\xbd"
	             "abcdefg")},
	    {"lone low", SPAN("\"\\ude00x\""), SPAN("\xef\xbf\xbdx")},
	    {"two high, then low", SPAN("\"\\ud83d\\ud83d\\ude00\""),
	        SPAN("\xef\xbf\xbd\xf0\x9f\x98\x80")},
	    {"high, then another escape", SPAN("\"\\ud83d\\u0041\""),
	        SPAN("\xef\xbf\xbd"
	             "A")},
	    {"NUL", SPAN("\"a\\u0000b\""), SPAN("a\0b")},
	    {"raw UTF-8 stays", SPAN("\"\xe4\xbf\xae\\n\""), SPAN("\xe4\xbf\xae\n")},
	    {"not a string", SPAN("\""), SPAN("")},
	    {"backslash at the end (not valid)", SPAN("\"a\\\""), SPAN("a\\")},
	};
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span raw = exact(rows[i].raw), got = scan_string(arena, raw);

		if (!text_equal(got, rows[i].want))
			fail_msg("%s: got '%.*s'", rows[i].what, (int)got.n, got.p);
		drop(raw);
	}
	arena_free(&arena);
}

static void
test_is(void **state)
{
	(void)state;
	assert_true(scan_is(SPAN("\"role\""), "role"));
	assert_true(scan_is(SPAN("\"r\\u006fle\""), "role"));
	assert_true(scan_is(SPAN("\"\""), ""));
	assert_false(scan_is(SPAN("\"role\""), "rol"));
	assert_false(scan_is(SPAN("\"rol\""), "role"));
	assert_false(scan_is(SPAN("\"r\\u0000le\""), "r"));
	assert_false(scan_is((struct span){NULL, 0}, ""));
}

static const struct {
	const char *text;
	bool ok;
	int64_t want;
} numbers[] = {
    {"12", true, 12},
    {"\"12\"", true, 12},
    {"12.0", true, 12},
    {"\"12.00\"", true, 12},
    {"0", true, 0},
    {"-0", true, 0},
    {"-0.0", true, 0},
    {"-7", true, -7},
    {"1e3", true, 1000},
    {"1E+3", true, 1000},
    {"1.25e2", true, 125},
    {"1200e-2", true, 12},
    {"0e999999999999", true, 0},
    {"0.0e-999999999999", true, 0},
    {"9223372036854775807", true, INT64_MAX},
    {"-9223372036854775808", true, INT64_MIN},
    {"9223372036854775807.0", true, INT64_MAX},
    {"9.223372036854775807e18", true, INT64_MAX},
    {"9223372036854775808", false, 0},
    {"-9223372036854775809", false, 0},
    {"18446744073709551616", false, 0},
    {"1e19", false, 0},
    {"1e999999999999999999999", false, 0},
    {"1e-1", false, 0},
    {"12.5", false, 0},
    {"1.25e1", false, 0},
    {"\"12 \"", false, 0},
    {"\" 12\"", false, 0},
    {"\"\"", false, 0},
    {"\"x\"", false, 0},
    {"\"0x10\"", false, 0},
    {"\"-\"", false, 0},
    {"\"1.\"", false, 0},
    {"true", false, 0},
    {"null", false, 0},
    {"[1]", false, 0},
    {"{}", false, 0},
};

static void
test_i64(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(numbers); i++) {
		const char *const paths[] = {"0"};
		struct scan_value value;
		int64_t got = 4711;
		struct buf b;
		bool ok;

		buf_init(&b, 256);
		buf_print(&b, "[%s]", numbers[i].text);
		assert_int_equal(scan_pick(buf_text(&b), paths, &value, 1, NULL), ERR_OK);
		ok = scan_i64(&value, INT64_MIN, INT64_MAX, &got);
		if (ok != numbers[i].ok || got != (ok ? numbers[i].want : 4711))
			fail_msg("%s: got %d %lld, want %d %lld", numbers[i].text, ok,
			    (long long)got, numbers[i].ok, (long long)numbers[i].want);
		buf_release(&b);
	}
}

static void
test_i64_range(void **state)
{
	struct scan_value value = {SCAN_NUMBER, SPAN("12")};
	int64_t got = 0;

	(void)state;
	assert_true(scan_i64(&value, 12, 12, &got));
	assert_false(scan_i64(&value, 13, 20, &got));
	assert_false(scan_i64(&value, 0, 11, &got));
	assert_false(scan_i64(&(struct scan_value){.type = SCAN_ABSENT}, 0, 20, &got));
	assert_int_equal(got, 12);
}

static void
test_next(void **state)
{
	static const struct {
		const char *what;
		const char *text, *want;
	} rows[] = {
	    {"object", "{\"a\":1,\"b\":\"x\",\"c\":null}", "\"a\"=4:1;\"b\"=5:\"x\";\"c\"=1:null;"},
	    {"blanks", " { \"a\" : 1 , \"b\" : [ ] } ", "\"a\"=4:1;\"b\"=6:[ ];"},
	    {"array", "[1,true,false,{\"x\":[\"]\"]},[[]]]",
	        "=4:1;=3:true;=2:false;=7:{\"x\":[\"]\"]};=6:[[]];"},
	    {"quotes and backslashes", "{\"a\\\"\\\\\":\"\\\\\",\"b\":\"\\\"}\"}",
	        "\"a\\\"\\\\\"=5:\"\\\\\";\"b\"=5:\"\\\"}\";"},
	    {"a string of backslashes in a container", "[{\"a\":\"\\\\\\\\\"},2]",
	        "=7:{\"a\":\"\\\\\\\\\"};=4:2;"},
	    {"empty object", "{}", ""},
	    {"empty array", "[ ]", ""},
	    {"same name twice", "{\"a\":1,\"a\":2}", "\"a\"=4:1;\"a\"=4:2;"},
	    {"empty name and value", "{\"\":\"\"}", "\"\"=5:\"\";"},
	    {"number", "12", ""},
	    {"string", "\"a\"", ""},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span text = exact(text_trim(text_span(rows[i].text))), name;
		struct scan_value value;
		struct buf b;
		size_t at = 0;

		buf_init(&b, 1000);
		buf_z(&b, "");
		assert_int_equal(scan_pick(text, NULL, NULL, 0, NULL), ERR_OK);
		while (scan_next(text, &at, &name, &value))
			buf_print(&b, "%.*s=%d:%.*s;", (int)name.n, name.p, (int)value.type,
			    (int)value.raw.n, value.raw.p);
		if (strcmp(b.p, rows[i].want) != 0)
			fail_msg("%s: got '%s', want '%s'", rows[i].what, b.p, rows[i].want);
		buf_release(&b);
		drop(text);
	}
}

/* What was never checked must not be read beyond, nor walked for ever. */
static void
test_next_unchecked(void **state)
{
	static const struct span rows[] = {
	    {NULL, 0},
	    SPAN(""),
	    SPAN("{"),
	    SPAN("["),
	    SPAN("[\0\0"),
	    SPAN("[,,,"),
	    SPAN("{\"a"),
	    SPAN("{\"a\""),
	    SPAN("{\"a\":"),
	    SPAN("{\"a\\"),
	    SPAN("{:::"),
	    SPAN("[[[["),
	    SPAN("[\"\\"),
	    SPAN("{,:,:"),
	    SPAN("[}]}"),
	    SPAN("{\"a\":}"),
	    SPAN("["),
	    SPAN("{\"a\":\"\\\\\\\""),
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span text = rows[i].p == NULL ? rows[i] : exact(rows[i]), name;
		struct scan_value value;
		size_t at = 0, rounds = 0;

		while (scan_next(text, &at, &name, &value)) {
			assert_true(value.raw.p + value.raw.n <= text.p + text.n);
			if (++rounds > 10)
				fail_msg("row %zu goes on for ever", i);
		}
		drop(text);
	}
}

static void
test_line(void **state)
{
	(void)state;
	assert_int_equal(scan_line(SPAN("a\nb\nc"), 0), 1);
	assert_int_equal(scan_line(SPAN("a\nb\nc"), 1), 1);
	assert_int_equal(scan_line(SPAN("a\nb\nc"), 2), 2);
	assert_int_equal(scan_line(SPAN("a\nb\nc"), 4), 3);
	assert_int_equal(scan_line(SPAN("a\nb\nc"), 99), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_string),
	    cmocka_unit_test(test_is),
	    cmocka_unit_test(test_i64),
	    cmocka_unit_test(test_i64_range),
	    cmocka_unit_test(test_next),
	    cmocka_unit_test(test_next_unchecked),
	    cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
