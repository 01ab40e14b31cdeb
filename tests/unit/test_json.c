#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_BYTES (1 << 20)

static int
set_up(void **state)
{
	*state = arena_new(ARENA_BYTES);
	return 0;
}

static int
tear_down(void **state)
{
	struct arena *arena = *state;

	arena_free(&arena);
	return 0;
}

static const struct json *
parsed(struct arena *arena, const char *text)
{
	const struct json *doc = NULL;
	struct why why = {""};

	if (json_parse(arena, text_span(text), &doc, &why) != ERR_OK)
		fail_msg("'%s': %s", text, why.text);
	return doc;
}

static void
test_refuses(void **state)
{
	static const struct {
		const char *what;
		struct span text;
	} rows[] = {
	    {"nothing", SPAN("")},
	    {"NaN", SPAN("{\"a\":NaN}")},
	    {"-Infinity", SPAN("[-Infinity]")},
	    {"1.", SPAN("[1.]")},
	    {"raw newline in a string", SPAN("[\"a\nb\"]")},
	    {"raw control character in a string", SPAN("[\"\x01\"]")},
	    {"single quotes", SPAN("{'a':1}")},
	    {"comment", SPAN("{/**/}")},
	    {"comma at the end", SPAN("[1,]")},
	    {"TRUE", SPAN("TRUE")},
	    {"007", SPAN("007")},
	    {"two documents", SPAN("{}{}")},
	    {"junk", SPAN("{} x")},
	    {"NUL", SPAN("{}\0")},
	    {"cut", SPAN("{\"a\":")},
	    {"invalid UTF-8", SPAN("\"\xff\xfe\"")},
	    {"NUL in a name", SPAN("{\"x\\u0000y\":1,\"x\":2}")},
	    {"byte order mark", SPAN("\xef\xbb\xbf{}")},
	    {"page of HTML", SPAN("<html>")},
	};

	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct json *doc = NULL;
		struct why why = {""};

		if (json_parse(*state, rows[i].text, &doc, &why) != ERR_BAD_INPUT)
			fail_msg("%s: accepted", rows[i].what);
		assert_string_not_equal(why.text, "");
		assert_null(doc);
	}
}

/* The text ends exactly where it ends; what stands behind it in memory is not read. */
static void
test_length(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *want;
	} rows[] = {
	    {"123456", 3, "123"},
	    {"true!", 4, "true"},
	    {"\"ab\"c\"", 4, "\"ab\""},
	    {"[1]]", 3, "[1]"},
	    {"-1.5e33", 6, "-1.5e3"},
	};
	int64_t v = 0;

	for (size_t i = 0; i < NELEM(rows); i++) {
		char *copy = malloc(rows[i].n);
		const struct json *doc = NULL;
		struct why why = {""};

		assert_non_null(copy);
		memcpy(copy, rows[i].text, rows[i].n);
		if (json_parse(*state, (struct span){copy, rows[i].n}, &doc, &why) != ERR_OK)
			fail_msg("%s: %s", rows[i].want, why.text);
		free(copy);
		assert_non_null(doc);
		if (i == 0) {
			assert_true(json_i64(doc, "", &v));
			assert_int_equal(v, 123);
		}
	}
}

static void
test_depth(void **state)
{
	for (size_t depth = 255; depth <= 257; depth++) {
		const struct json *doc = NULL;
		struct buf b;

		buf_init(&b, 4096);
		for (size_t i = 0; i < depth; i++)
			buf_z(&b, "[");
		buf_z(&b, "1");
		for (size_t i = 0; i < depth; i++)
			buf_z(&b, "]");
		assert_int_equal(json_parse(*state, buf_text(&b), &doc, NULL),
		    depth <= 256 ? ERR_OK : ERR_BAD_INPUT);
		buf_release(&b);
	}
}

static void
test_null(void **state)
{
	const struct json *doc = parsed(*state, " null ");
	struct span s;

	assert_null(doc);
	assert_null(json_at(doc, "a"));
	assert_null(json_at(doc, ""));
	assert_false(json_text(doc, "", &s));
	assert_false(json_is_object(doc));
	assert_false(json_is_array(doc));
	assert_int_equal(json_count(doc), 0);
	assert_null(json_item(doc, 0));
}

static void
test_text(void **state)
{
	static const struct {
		const char *path, *want; /* NULL: absent */
	} rows[] = {
	    {"error.message", "m"},
	    {"error.details.0.delay", "3s"},
	    {"error.details.1.delay", NULL},
	    {"error.details.x", NULL},
	    {"error.details.-1", NULL},
	    {"error.code", NULL},
	    {"error", NULL},
	    {"error.message.x", NULL},
	    {"error.", NULL},
	    {"", NULL},
	    {"nothing", NULL},
	    {"z", NULL},
	    {"error.\xe4\xbf\xae", "x"},
	    {"a-name-that-is-longer-than-any-that-we-ever-ask-for-and-that-does-not-fit-into-the-"
	     "buffer-where-names-are-put-before-they-are-looked-up-in-a-document",
	        NULL},
	};
	const struct json *doc =
	    parsed(*state, "{\"error\":{\"message\":\"m\",\"code\":429,\"\xe4\xbf\xae\":\"x\","
	                   "\"details\":[{\"delay\":\"3s\"}]},\"z\":null}");

	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span got = SPAN("untouched");
		bool ok = json_text(doc, rows[i].path, &got);

		if (ok != (rows[i].want != NULL) || !text_is(got, ok ? rows[i].want : "untouched"))
			fail_msg("%s: got %d '%.*s'", rows[i].path, ok, (int)got.n, got.p);
	}
}

static void
test_text_bytes(void **state)
{
	const struct json *doc =
	    parsed(*state, "[\"a\\u0000b\",\"\\ud83d\\ude00\",\"\\ud83d\",\"\"]");
	struct span s;

	assert_true(json_text(doc, "0", &s) && text_equal(s, SPAN("a\0b")));
	assert_true(json_text(doc, "1", &s) && text_is(s, "\xf0\x9f\x98\x80"));
	assert_true(json_text(doc, "2", &s) && text_is(s, "\xef\xbf\xbd"));
	assert_true(json_text(doc, "3", &s) && s.n == 0);
}

static void
test_numbers(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t want;
		bool real_ok;
		double real;
	} rows[] = {
	    {"12", true, 12, true, 12},
	    {"\"12\"", true, 12, true, 12},
	    {"12.0", true, 12, true, 12},
	    {"1e3", true, 1000, true, 1000},
	    {"-0", true, 0, true, 0},
	    {"12.5", false, 0, true, 12.5},
	    {"\"12.5\"", false, 0, true, 12.5},
	    {"\"1.5s\"", false, 0, false, 0},
	    {"\"12 \"", false, 0, false, 0},
	    {"\"\"", false, 0, false, 0},
	    {"\"[1]\"", false, 0, false, 0},
	    {"\"nan\"", false, 0, false, 0},
	    {"\"0x10\"", false, 0, false, 0},
	    {"1e400", false, 0, false, 0},
	    {"9223372036854775807", true, INT64_MAX, true, 9223372036854775807.0},
	    {"9223372036854775808", false, 0, true, 9223372036854775808.0},
	    {"18446744073709551616", false, 0, true, 18446744073709551615.0},
	    {"-9223372036854775807", true, -INT64_MAX, true, -9223372036854775808.0},
	    {"-99999999999999999999", false, 0, true, -9223372036854775808.0},
	    {"true", false, 0, false, 0},
	    {"null", false, 0, false, 0},
	    {"[1]", false, 0, false, 0},
	    {"{}", false, 0, false, 0},
	};

	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct json *doc =
		    parsed(*state, arena_print(*state, "{\"v\":[%s]}", rows[i].text));
		int64_t v = 4711;
		double real = 4711;
		bool ok = json_i64(doc, "v.0", &v), real_ok = json_real(doc, "v.0", &real);

		if (ok != rows[i].ok || v != (ok ? rows[i].want : 4711))
			fail_msg("%s: got %d %lld", rows[i].text, ok, (long long)v);
		if (real_ok != rows[i].real_ok ||
		    memcmp(&real, real_ok ? &rows[i].real : &(double){4711}, sizeof real) != 0)
			fail_msg("%s: got %d %f", rows[i].text, real_ok, real);
	}
}

static void
test_items(void **state)
{
	const struct json *doc = parsed(*state, "[1,null,{\"a\":[]}]");
	int64_t v;

	assert_true(json_is_array(doc));
	assert_false(json_is_object(doc));
	assert_int_equal(json_count(doc), 3);
	assert_true(json_i64(json_item(doc, 0), "", &v) && v == 1);
	assert_null(json_item(doc, 1));
	assert_true(json_is_object(json_item(doc, 2)));
	assert_null(json_item(doc, 3));
	assert_int_equal(json_count(json_at(doc, "2.a")), 0);
	assert_int_equal(json_count(json_item(doc, 2)), 0);
}

static void
test_booleans(void **state)
{
	const struct json *doc = parsed(*state, "[true,false,1,\"true\",null,[true]]");

	for (int i = 0; i < 7; i++)
		assert_true(json_true(doc, arena_print(*state, "%d", i)) == (i == 0));
	assert_true(json_true(doc, "5.0"));
}

static bool
collect(struct span name, const struct json *value, void *arg)
{
	struct buf *b = arg;
	int64_t v = -1;

	json_i64(value, "", &v);
	buf_span(b, name);
	buf_print(b, "=%lld;", (long long)v);
	return v != 3;
}

static void
test_each(void **state)
{
	struct buf *b = arena_buf(*state, 1000);

	json_each(parsed(*state, "{\"a\":1,\"b\":null,\"\":2,\"stop\":3,\"never\":4}"), collect, b);
	assert_string_equal(b->p, "a=1;b=-1;=2;stop=3;");
	buf_clear(b);
	json_each(parsed(*state, "[1]"), collect, b);
	json_each(parsed(*state, "{}"), collect, b);
	json_each(NULL, collect, b);
	assert_string_equal(b->p, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_length, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_null, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_text_bytes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_items, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_booleans, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_each, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
