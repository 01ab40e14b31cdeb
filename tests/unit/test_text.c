#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct span none = {NULL, 0};

static void
test_compare(void **state)
{
	(void)state;
	assert_true(text_equal(SPAN("a\0b"), SPAN("a\0b")));
	assert_false(text_equal(SPAN("a\0b"), SPAN("a\0c")));
	assert_false(text_equal(SPAN("a"), SPAN("ab")));
	assert_true(text_equal(none, SPAN("")));
	assert_true(text_is(none, ""));
	assert_true(text_is(SPAN("abc"), "abc"));
	assert_false(text_is(SPAN("abc"), "abC"));
	assert_false(text_is(SPAN("a\0"), "a"));
	assert_true(text_is_fold(SPAN("Content-TYPE"), "content-type"));
	assert_false(text_is_fold(SPAN("content-typ"), "content-type"));
	assert_false(text_is_fold(SPAN("\xc3\x89"), "\xc3\xa9"));
	assert_false(text_is_fold(SPAN("a@["), "a`{"));
	assert_true(text_starts(SPAN("data: x"), "data:"));
	assert_false(text_starts(SPAN("dat"), "data:"));
	assert_true(text_starts(SPAN("x"), ""));
	assert_true(text_starts_fold(SPAN("Bearer x"), "bearer "));
	assert_false(text_starts_fold(SPAN("Bearer"), "bearer "));
	assert_true(text_ends(SPAN("a.json"), ".json"));
	assert_false(text_ends(SPAN("json"), ".json"));
	assert_int_equal(text_span(NULL).n, 0);
}

static void
test_find(void **state)
{
	static const struct {
		const char *what;
		struct span in, needle;
		size_t exact, fold;
	} rows[] = {
	    {"in the middle", SPAN("a needle b"), SPAN("needle"), 2, 2},
	    {"first of two", SPAN("xx-xx"), SPAN("xx"), 0, 0},
	    {"at the end", SPAN("abc"), SPAN("c"), 2, 2},
	    {"not there", SPAN("abc"), SPAN("d"), 3, 3},
	    {"longer than the text", SPAN("ab"), SPAN("abc"), 2, 2},
	    {"empty needle", SPAN("ab"), SPAN(""), 2, 2},
	    {"other case", SPAN("Rate LIMIT"), SPAN("limit"), 10, 5},
	    {"behind a NUL", SPAN("a\0b"), SPAN("b"), 2, 2},
	    {"cut at the end", SPAN("aab"), SPAN("abc"), 3, 3},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t exact = text_find(rows[i].in, rows[i].needle);
		size_t fold = text_find_fold(rows[i].in, rows[i].needle);

		if (exact != rows[i].exact || fold != rows[i].fold)
			fail_msg("%s: got %zu %zu", rows[i].what, exact, fold);
	}
	assert_true(text_has_fold(SPAN("Quota EXCEEDED"), "exceeded"));
	assert_false(text_has_fold(SPAN("Quota"), "exceeded"));
	assert_false(text_has_fold(SPAN("Quota"), ""));
	assert_int_equal(text_find(none, SPAN("x")), 0);
}

static void
test_cuts(void **state)
{
	struct span rest = SPAN(" a, bc,,d "), token;

	(void)state;
	assert_true(text_is(text_trim(SPAN(" \t\r\n x y \n")), "x y"));
	assert_true(text_is(text_trim(SPAN(" \t ")), ""));
	assert_true(text_is(text_trim(none), ""));
	assert_true(text_is(text_from(SPAN("abc"), 1), "bc"));
	assert_true(text_is(text_from(SPAN("abc"), 3), ""));
	assert_true(text_is(text_from(SPAN("abc"), 4), ""));
	assert_int_equal(text_from(none, 5).n, 0);
	assert_true(text_token(&rest, ", ", &token) && text_is(token, "a"));
	assert_true(text_token(&rest, ", ", &token) && text_is(token, "bc"));
	assert_true(text_token(&rest, ", ", &token) && text_is(token, "d"));
	assert_false(text_token(&rest, ", ", &token));
	assert_false(text_token(&rest, ", ", &token));
}

static void
test_i64(void **state)
{
	static const struct {
		struct span in;
		int64_t min, max;
		bool ok;
		int64_t want;
	} rows[] = {
	    {SPAN("0"), INT64_MIN, INT64_MAX, true, 0},
	    {SPAN("-0"), INT64_MIN, INT64_MAX, true, 0},
	    {SPAN("007"), INT64_MIN, INT64_MAX, true, 7},
	    {SPAN("9223372036854775807"), INT64_MIN, INT64_MAX, true, INT64_MAX},
	    {SPAN("-9223372036854775808"), INT64_MIN, INT64_MAX, true, INT64_MIN},
	    {SPAN("9223372036854775808"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("-9223372036854775809"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("99999999999999999999"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("5"), 5, 5, true, 5},
	    {SPAN("4"), 5, 6, false, 0},
	    {SPAN("7"), 5, 6, false, 0},
	    {SPAN(""), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("-"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("+1"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN(" 1"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("1 "), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("1e3"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("1\0"), INT64_MIN, INT64_MAX, false, 0},
	    {SPAN("--1"), INT64_MIN, INT64_MAX, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		int64_t v = 4711;
		bool ok = text_i64(rows[i].in, rows[i].min, rows[i].max, &v);

		if (ok != rows[i].ok || v != (ok ? rows[i].want : 4711))
			fail_msg("'%s': got %d %lld", rows[i].in.p, ok, (long long)v);
	}
}

static void
test_match(void **state)
{
	static const struct {
		const char *pattern, *in;
		bool want;
	} rows[] = {
	    {"abc", "abc", true},
	    {"abc", "abcd", false},
	    {"abc", "ab", false},
	    {"*", "", true},
	    {"*", "anything", true},
	    {"", "", true},
	    {"", "a", false},
	    {"glm-*", "glm-4.6", true},
	    {"glm-*", "glm", false},
	    {"*-mini", "gpt-4-mini", true},
	    {"*-mini", "gpt-4-mini-x", false},
	    {"a*b*c", "aXbbYc", true},
	    {"a*b*c", "acb", false},
	    {"*ab", "aab", true},
	    {"a**b", "ab", true},
	    {"a?c", "abc", false},
	    {"a?c", "a?c", true},
	    {"*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	        false},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		if (text_match(text_span(rows[i].pattern), text_span(rows[i].in)) != rows[i].want)
			fail_msg(
			    "'%s' on '%s': want %d", rows[i].pattern, rows[i].in, rows[i].want);
}

static void
test_utf8(void **state)
{
	static const struct {
		const char *what;
		struct span in;
		bool want;
	} rows[] = {
	    {"empty", SPAN(""), true},
	    {"ASCII", SPAN("plain text of some length"), true},
	    {"NUL", SPAN("a\0b"), true},
	    {"2, 3, 4 bytes", SPAN("12345678\xc3\xa9\xe4\xbf\xae\xf0\x9f\x8c\x9f"), true},
	    {"smallest of each length", SPAN("\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80"), true},
	    {"largest of each length", SPAN("\xdf\xbf\xef\xbf\xbf\xf4\x8f\xbf\xbf"), true},
	    {"around the surrogates", SPAN("\xed\x9f\xbf\xee\x80\x80"), true},
	    {"overlong, 2", SPAN("\xc1\xbf"), false},
	    {"overlong, 3", SPAN("\xe0\x9f\xbf"), false},
	    {"overlong, 4", SPAN("\xf0\x8f\xbf\xbf"), false},
	    {"first surrogate", SPAN("\xed\xa0\x80"), false},
	    {"last surrogate", SPAN("\xed\xbf\xbf"), false},
	    {"above U+10FFFF", SPAN("\xf4\x90\x80\x80"), false},
	    {"F5", SPAN("\xf5\x80\x80\x80"), false},
	    {"FF", SPAN("\xff"), false},
	    {"continuation alone", SPAN("1234567\x80"), false},
	    {"cut after 1 of 2", SPAN("\xc3"), false},
	    {"cut after 2 of 3", SPAN("\xe4\xbf"), false},
	    {"cut after 3 of 4", SPAN("\xf0\x9f\x8c"), false},
	    {"third byte is ASCII",
	        SPAN("\xe4\xbf"
	             "a"),
	        false},
	    {"fourth byte is a lead", SPAN("\xf0\x9f\x8c\xc3"), false},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char *copy = malloc(rows[i].in.n + 1);

		/* without a byte behind, so that reading too far is seen by the tools */
		assert_non_null(copy);
		memcpy(copy + 1, rows[i].in.p, rows[i].in.n);
		if (text_utf8((struct span){copy + 1, rows[i].in.n}) != rows[i].want)
			fail_msg("%s: want %d", rows[i].what, rows[i].want);
		free(copy);
	}
}

static void
test_cut(void **state)
{
	static const struct {
		const char *what;
		struct span in;
		size_t n, want;
	} rows[] = {
	    {"whole", SPAN("abc"), 3, 3},
	    {"beyond", SPAN("abc"), 9, 3},
	    {"ASCII", SPAN("abc"), 2, 2},
	    {"nothing", SPAN("abc"), 0, 0},
	    {"before a character", SPAN("ab\xc3\xa9"), 2, 2},
	    {"in a character of 2", SPAN("ab\xc3\xa9"), 3, 2},
	    {"in a character of 4", SPAN("a\xf0\x9f\x8c\x9f"), 4, 1},
	    {"in the very first character", SPAN("\xc3\xa9"), 1, 0},
	    {"in the first of 3", SPAN("\xe4\xbf\xae"), 2, 0},
	    {"in the first of 4", SPAN("\xf0\x9f\x8c\x9f"), 3, 0},
	    {"not UTF-8: somewhere", SPAN("\x80\x80\x80\x80\x80\x80\x80\x80"), 6, 6},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t got = text_cut(rows[i].in, rows[i].n);

		if (got != rows[i].want)
			fail_msg("%s: got %zu, want %zu", rows[i].what, got, rows[i].want);
	}
}

static void
test_clean(void **state)
{
	static const struct {
		const char *what;
		struct span in;
		size_t cap;
		const char *want;
	} rows[] = {
	    {"plain", SPAN("abc"), 16, "abc"},
	    {"line break, ESC, DEL, NUL", SPAN("a\r\n\x1b[0m\x7f\0b"), 16, "a???[0m??b"},
	    {"UTF-8 stays", SPAN("\xe4\xbf\xae"), 16, "\xe4\xbf\xae"},
	    {"invalid UTF-8", SPAN("a\xff\xe4"), 16, "a??"},
	    {"cut", SPAN("abcdef"), 4, "abc"},
	    {"cut on a character", SPAN("ab\xe4\xbf\xae"), 5, "ab"},
	    {"room for the NUL only", SPAN("abc"), 1, ""},
	    {"empty", {NULL, 0}, 16, ""},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char out[16];
		size_t n = text_clean(out, rows[i].cap, rows[i].in);

		if (n != strlen(rows[i].want) || strcmp(out, rows[i].want) != 0)
			fail_msg("%s: got '%s'", rows[i].what, out);
	}
}

static void
test_same_secret(void **state)
{
	(void)state;
	assert_true(text_same_secret(SPAN("sk-1"), SPAN("sk-1")));
	assert_false(text_same_secret(SPAN("sk-1"), SPAN("sk-2")));
	assert_false(text_same_secret(SPAN("sk-1"), SPAN("sk-")));
	assert_false(text_same_secret(SPAN("sk-"), SPAN("sk-1")));
	assert_false(text_same_secret(SPAN("abab"), SPAN("ab")));
	assert_false(text_same_secret(SPAN("\0"), none));
	assert_true(text_same_secret(none, none));
}

static void
test_distance(void **state)
{
	static const struct {
		const char *a, *b;
		size_t want;
	} rows[] = {
	    {"api_key", "api_key", 0},
	    {"api_kye", "api_key", 2},
	    {"api_ky", "api_key", 1},
	    {"API_KEY", "api_key", 0},
	    {"", "abc", 3},
	    {"abc", "", 3},
	    {"kitten", "sitting", 3},
	    {"completely", "different", 4},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t got = text_distance(text_span(rows[i].a), text_span(rows[i].b), 3);

		if (got != rows[i].want)
			fail_msg("%s, %s: got %zu", rows[i].a, rows[i].b, got);
	}
}

static void
test_hex(void **state)
{
	char out[8] = "???????";

	(void)state;
	text_hex("\x0f\xa0\x7f", 5, out);
	assert_string_equal(out, "0fa07??");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_compare),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_cuts),
	    cmocka_unit_test(test_i64),
	    cmocka_unit_test(test_match),
	    cmocka_unit_test(test_utf8),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_clean),
	    cmocka_unit_test(test_same_secret),
	    cmocka_unit_test(test_distance),
	    cmocka_unit_test(test_hex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
