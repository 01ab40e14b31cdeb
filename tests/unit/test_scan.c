#include "base/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
test_accepts(void **state)
{
	static const struct {
		const char *what;
		struct span text;
	} rows[] = {
	    {"object", SPAN("{\"model\":\"m1\",\"messages\":[]}")},
	    {"blanks of all kinds", SPAN(" \t\r\n{ \"a\" : [ 1 , 2 ] } \n")},
	    {"array", SPAN("[]")},
	    {"string", SPAN("\"x\"")},
	    {"null", SPAN("null")},
	    {"numbers", SPAN("[0,-0,-0.0,1.0,1E5,1e400,0.10,1e-7,12E+3,1.5e+2]")},
	    {"number at the very end", SPAN("12")},
	    {"beyond 64 bits", SPAN("[18446744073709551616,-99999999999999999999999]")},
	    {"all escapes", SPAN("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uABCD\"")},
	    {"NUL escape in a value", SPAN("\"x\\u0000y\"")},
	    {"lone surrogates", SPAN("[\"\\ud83d\",\"\\ude00x\",\"\\ud83d\\ude00\"]")},
	    {"raw UTF-8 of 2, 3, 4 bytes", SPAN("\"\xc3\xa9\xe4\xbf\xae\xf0\x9f\x8c\x9f\"")},
	    {"U+2028, DEL", SPAN("\"\xe2\x80\xa8\x7f\"")},
	    {"empty name", SPAN("{\"\":1}")},
	    {"a name twice that nobody asks for", SPAN("{\"a\":1,\"a\":2}")},
	    {"U+10FFFF", SPAN("\"\xf4\x8f\xbf\xbf\"")},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span text = exact(rows[i].text);
		struct why why = {""};

		if (scan_pick(text, NULL, NULL, 0, &why) != ERR_OK)
			fail_msg("%s: got '%s', want ok", rows[i].what, why.text);
		drop(text);
	}
}

static const struct {
	const char *what;
	struct span text;
	const char *why;
} refused[] = {
    {"nothing", SPAN(""), "line 1, column 1: the text is empty"},
    {"only blanks", SPAN(" \n "), "line 2, column 2: the text is empty"},
    {"open object", SPAN("{"), "line 1, column 2: the text ends too early"},
    {"open array", SPAN("[1"), "line 1, column 3: the text ends too early"},
    {"after a comma", SPAN("[1,"), "line 1, column 4: the text ends too early"},
    {"after a name", SPAN("{\"a\""), "line 1, column 5: ':' was expected"},
    {"no value", SPAN("{\"a\":"), "line 1, column 6: the text ends too early"},
    {"no colon", SPAN("{\"a\" 1}"), "line 1, column 6: ':' was expected"},
    {"single quotes", SPAN("{'a':1}"), "line 1, column 2: a name in double quotes was expected"},
    {"single quotes, value", SPAN("['a']"), "line 1, column 2: strings need double quotes"},
    {"name is a number", SPAN("{1:1}"), "line 1, column 2: a name in double quotes was expected"},
    {"NaN", SPAN("{\"a\":NaN}"), "line 1, column 6: a value was expected"},
    {"-Infinity", SPAN("[-Infinity]"), "line 1, column 3: a digit was expected"},
    {"nul", SPAN("[nul]"), "line 1, column 2: a value was expected"},
    {"cut word", SPAN("tru"), "line 1, column 1: a value was expected"},
    {"word goes on", SPAN("truex"), "line 1, column 5: more text after the end of the document"},
    {"TRUE", SPAN("TRUE"), "line 1, column 1: a value was expected"},
    {"two documents", SPAN("{\"a\":1}{\"b\":2}"),
        "line 1, column 8: more text after the end of the document"},
    {"junk behind", SPAN("{\"model\":\"m1\",\n\"messages\":[]} x"),
        "line 2, column 16: more text after the end of the document"},
    {"NUL behind", SPAN("{}\0"), "line 1, column 3: more text after the end of the document"},
    {"NUL instead of a value", SPAN("\0"), "line 1, column 1: a value was expected"},
    {"line comment", SPAN("// x\n{}"), "line 1, column 1: comments are not allowed"},
    {"comment in an array", SPAN("[/*x*/1]"), "line 1, column 2: comments are not allowed"},
    {"leading zeros", SPAN("[007]"), "line 1, column 2: a number must not begin with 0"},
    {"-01", SPAN("-01"), "line 1, column 2: a number must not begin with 0"},
    {"1.", SPAN("[1.]"), "line 1, column 4: a digit was expected"},
    {".5", SPAN("[.5]"), "line 1, column 2: a value was expected"},
    {"+1", SPAN("[+1]"), "line 1, column 2: a value was expected"},
    {"1e", SPAN("1e"), "line 1, column 3: a digit was expected"},
    {"1e+", SPAN("1e+"), "line 1, column 4: a digit was expected"},
    {"minus alone", SPAN("-"), "line 1, column 2: a digit was expected"},
    {"hexadecimal", SPAN("[0x10]"), "line 1, column 3: ',' or ']' was expected"},
    {"comma at the end of an array", SPAN("[1,2,]"),
        "line 1, column 6: a value was expected before the closing bracket"},
    {"comma at the end of an object", SPAN("{\"a\":1,}"),
        "line 1, column 8: a name in double quotes was expected"},
    {"comma first", SPAN("[,1]"), "line 1, column 2: a value was expected"},
    {"two commas", SPAN("[1,,2]"), "line 1, column 4: a value was expected"},
    {"no comma", SPAN("[1 2]"), "line 1, column 4: ',' or ']' was expected"},
    {"wrong closer", SPAN("[1}"), "line 1, column 3: ',' or ']' was expected"},
    {"wrong closer, object", SPAN("{\"a\":1]"), "line 1, column 7: ',' or '}' was expected"},
    {"closer alone", SPAN("]"),
        "line 1, column 1: a value was expected before the closing bracket"},
    {"open string", SPAN("\"abc"), "line 1, column 5: the text ends inside a string"},
    {"ends in an escape", SPAN("\"abc\\"), "line 1, column 6: the text ends inside a string"},
    {"ends in \\u", SPAN("\"\\u12"), "line 1, column 2: \\u needs four hexadecimal digits"},
    {"bad digit in \\u", SPAN("\"\\u12g4\""),
        "line 1, column 2: \\u needs four hexadecimal digits"},
    {"unknown escape", SPAN("\"a\\x41\""), "line 1, column 3: unknown escape in a string"},
    {"escaped NUL byte", SPAN("\"\\\0\""), "line 1, column 2: unknown escape in a string"},
    {"raw newline in a string", SPAN("{\n\"a\":\"x\ny\"}"),
        "line 2, column 7: raw control character in a string"},
    {"raw tab in a string", SPAN("\"\t\""), "line 1, column 2: raw control character in a string"},
    {"raw control in a name", SPAN("{\"a\x1f\":1}"),
        "line 1, column 4: raw control character in a string"},
    {"FF FE", SPAN("\"\xff\xfe\""), "line 1, column 2: invalid UTF-8"},
    {"overlong", SPAN("\"\xc0\xaf\""), "line 1, column 2: invalid UTF-8"},
    {"overlong of 3 bytes", SPAN("\"\xe0\x80\xaf\""), "line 1, column 2: invalid UTF-8"},
    {"surrogate in UTF-8", SPAN("\"\xed\xa0\x80\""), "line 1, column 2: invalid UTF-8"},
    {"above U+10FFFF", SPAN("\"\xf4\x90\x80\x80\""), "line 1, column 2: invalid UTF-8"},
    {"cut character, after good ones", SPAN("\"\xc3\xa9\xc3\xa9\xe4\xbf\""),
        "line 1, column 4: invalid UTF-8"},
    {"cut character at the end", SPAN("\"\xe4\xbf"), "line 1, column 2: invalid UTF-8"},
    {"UTF-8 outside of strings", SPAN("[\xc3\xa9]"), "line 1, column 2: a value was expected"},
    {"byte order mark", SPAN("\xef\xbb\xbf{}"),
        "line 1, column 1: a byte order mark is not allowed"},
    {"NUL in a name", SPAN("{\"x\\u0000y\":1}"), "line 1, column 2: a name must not hold \\u0000"},
    {"NUL in a name deep down", SPAN("[[{\"z\":{\"\\u0000\":1}}]]"),
        "line 1, column 9: a name must not hold \\u0000"},
    {"columns count characters", SPAN("[\"\xe4\xbf\xae\", x]"),
        "line 1, column 7: a value was expected"},
};

static void
test_refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(refused); i++) {
		struct span text = exact(refused[i].text);
		struct why why = {""};
		enum err err = scan_pick(text, NULL, NULL, 0, &why);

		if (err != ERR_BAD_INPUT || strcmp(why.text, refused[i].why) != 0)
			fail_msg("%s: got %d '%s', want '%s'", refused[i].what, (int)err, why.text,
			    refused[i].why);
		assert_int_equal(scan_pick(text, NULL, NULL, 0, NULL), ERR_BAD_INPUT);
		drop(text);
	}
}

static void
test_depth(void **state)
{
	static const struct {
		const char *what;
		const char *open, *close;
		size_t depth;
		enum err want;
	} rows[] = {
	    {"arrays, as deep as allowed", "[", "]", SCAN_DEPTH_MAX, ERR_OK},
	    {"arrays, too deep", "[", "]", SCAN_DEPTH_MAX + 1, ERR_BAD_INPUT},
	    {"objects, as deep as allowed", "{\"a\":", "}", SCAN_DEPTH_MAX, ERR_OK},
	    {"objects, too deep", "{\"a\":", "}", SCAN_DEPTH_MAX + 1, ERR_BAD_INPUT},
	    {"a million arrays", "[", "]", 1000000, ERR_BAD_INPUT},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		const char *const paths[] = {"a.a.a"};
		struct scan_value value;
		struct buf b;
		enum err err;

		buf_init(&b, 8 << 20);
		for (size_t k = 0; k < rows[i].depth; k++)
			buf_z(&b, rows[i].open);
		if (rows[i].open[0] == '{')
			buf_z(&b, "1");
		for (size_t k = 0; k < rows[i].depth; k++)
			buf_z(&b, rows[i].close);
		err = scan_pick(buf_text(&b), paths, &value, 1, NULL);
		if (err != rows[i].want)
			fail_msg("%s: got %d, want %d", rows[i].what, (int)err, (int)rows[i].want);
		buf_release(&b);
	}
}

static const struct {
	const char *what;
	const char *text, *path;
	enum scan_type type;
	const char *raw;
} picked[] = {
    {"string", "{\"model\":\"m1\"}", "model", SCAN_STRING, "\"m1\""},
    {"string with a bracket", "{\"model\":\"m]}1\"}", "model", SCAN_STRING, "\"m]}1\""},
    {"blanks around", "{ \"model\" : \"m1\" , \"x\":1}", "model", SCAN_STRING, "\"m1\""},
    {"number", "{\"n\": -1.50e2 }", "n", SCAN_NUMBER, "-1.50e2"},
    {"true", "{\"a\":true}", "a", SCAN_TRUE, "true"},
    {"false", "{\"a\":false}", "a", SCAN_FALSE, "false"},
    {"null", "{\"a\":null}", "a", SCAN_NULL, "null"},
    {"object", "{\"a\": {\"b\":[1]} }", "a", SCAN_OBJECT, "{\"b\":[1]}"},
    {"array", "{\"a\":[ ]}", "a", SCAN_ARRAY, "[ ]"},
    {"absent", "{\"b\":1}", "a", SCAN_ABSENT, NULL},
    {"other case", "{\"Model\":1}", "model", SCAN_ABSENT, NULL},
    {"prefix of a name", "{\"modelx\":1}", "model", SCAN_ABSENT, NULL},
    {"name is a prefix", "{\"mode\":1}", "model", SCAN_ABSENT, NULL},
    {"deeper only", "{\"x\":{\"model\":1}}", "model", SCAN_ABSENT, NULL},
    {"in an array of objects", "[{\"model\":1}]", "model", SCAN_ABSENT, NULL},
    {"two levels", "{\"a\":{\"x\":0,\"b\":7},\"b\":8}", "a.b", SCAN_NUMBER, "7"},
    {"through a scalar", "{\"a\":5,\"b\":8}", "a.b", SCAN_ABSENT, NULL},
    {"through a string", "{\"a\":\"b\"}", "a.b", SCAN_ABSENT, NULL},
    {"element", "[10,[1],12]", "2", SCAN_NUMBER, "12"},
    {"first element", "{\"c\":[{\"d\":\"x\"},{\"d\":\"y\"}]}", "c.0.d", SCAN_STRING, "\"x\""},
    {"second element", "{\"c\":[{\"d\":\"x\"},{\"d\":\"y\"}]}", "c.1.d", SCAN_STRING, "\"y\""},
    {"element 10", "[0,1,2,3,4,5,6,7,8,9,\"ten\"]", "10", SCAN_STRING, "\"ten\""},
    {"element beyond", "[1,2]", "2", SCAN_ABSENT, NULL},
    {"index with a zero before", "[1,2]", "01", SCAN_ABSENT, NULL},
    {"negative index", "[1,2]", "-1", SCAN_ABSENT, NULL},
    {"name in an array", "[1,2]", "a", SCAN_ABSENT, NULL},
    {"index as a name", "{\"0\":\"x\"}", "0", SCAN_STRING, "\"x\""},
    {"array in an array", "[[1,2],[3,4]]", "1.0", SCAN_NUMBER, "3"},
    {"escaped name", "{\"mod\\u0065l\":\"m\"}", "model", SCAN_STRING, "\"m\""},
    {"name wholly escaped", "{\"\\u006d\\u006F\":1}", "mo", SCAN_NUMBER, "1"},
    {"escaped name, longer", "{\"\\u006dodels\":1}", "model", SCAN_ABSENT, NULL},
    {"escaped name, shorter", "{\"\\u006dode\":1}", "model", SCAN_ABSENT, NULL},
    {"escaped slash in a name", "{\"a\\/b\":1}", "a/b", SCAN_NUMBER, "1"},
    {"empty name", "{\"\":1}", "", SCAN_NUMBER, "1"},
    {"full-width letters", "{\"\xef\xbd\x8dodel\":1}", "model", SCAN_ABSENT, NULL},
    {"eight components", "{\"a\":[{\"b\":{\"c\":[[{\"d\":{\"e\":{\"x\":[[1]]}}}]]}}]}",
        "a.0.b.c.0.0.d.e", SCAN_OBJECT, "{\"x\":[[1]]}"},
    {"root scalar", "5", "a", SCAN_ABSENT, NULL},
    {"after a deep neighbour", "{\"x\":[[[[[[[[[[[[1]]]]]]]]]]]],\"a\":{\"b\":2}}", "a.b",
        SCAN_NUMBER, "2"},
    {"same name inside, not twice", "{\"a\":{\"a\":{\"a\":1}}}", "a.a", SCAN_OBJECT, "{\"a\":1}"},
};

static void
test_picks(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(picked); i++) {
		const char *const paths[] = {"elsewhere.0", picked[i].path, "elsewhere.x"};
		struct span text = exact(text_span(picked[i].text));
		struct scan_value got[3];
		struct why why = {""};

		if (scan_pick(text, paths, got, 3, &why) != ERR_OK)
			fail_msg("%s: %s", picked[i].what, why.text);
		if (got[1].type != picked[i].type ||
		    !text_equal(got[1].raw, text_span(picked[i].raw)))
			fail_msg("%s: got %d '%.*s', want %d '%s'", picked[i].what,
			    (int)got[1].type, (int)got[1].raw.n, got[1].raw.p, (int)picked[i].type,
			    picked[i].raw);
		assert_int_equal(got[0].type, SCAN_ABSENT);
		assert_int_equal(got[2].type, SCAN_ABSENT);
		drop(text);
	}
}

static void
test_twice(void **state)
{
	static const struct {
		const char *what;
		const char *text, *path;
		const char *why; /* NULL: accepted */
	} rows[] = {
	    {"model twice", "{\"model\":\"A\",\"x\":1,\"model\":\"B\"}", "model",
	        "line 1, column 20: a second member of the same name: 'model'"},
	    {"once plain, once escaped", "{\"model\":\"A\",\"mod\\u0065l\":\"B\"}", "model",
	        "line 1, column 14: a second member of the same name: 'model'"},
	    {"both escaped", "{\"\\u006dodel\":1,\"mod\\u0065l\":2}", "model",
	        "line 1, column 17: a second member of the same name: 'model'"},
	    {"of a path's beginning", "{\"a\":{\"b\":1},\n \"a\":{}}", "a.b",
	        "line 2, column 2: a second member of the same name: 'a'"},
	    {"of a path's beginning, scalars", "{\"a\":1,\"a\":2}", "a.b",
	        "line 1, column 8: a second member of the same name: 'a'"},
	    {"further down", "{\"a\":{\"b\":1,\"b\":1}}", "a.b",
	        "line 1, column 13: a second member of the same name: 'b'"},
	    {"inside an element", "{\"a\":[{\"b\":1},{\"b\":1,\"b\":2}]}", "a.1.b",
	        "line 1, column 22: a second member of the same name: 'b'"},
	    {"an empty name", "{\"\":1,\"\":1}", "",
	        "line 1, column 7: a second member of the same name"},
	    {"in another element", "{\"a\":[{\"b\":1,\"b\":2},{\"b\":1}]}", "a.1.b", NULL},
	    {"of another name", "{\"x\":1,\"x\":1,\"a\":1}", "a", NULL},
	    {"at another place", "{\"b\":{\"a\":1,\"a\":1},\"a\":1}", "a", NULL},
	    {"below what is asked for", "{\"a\":{\"b\":1,\"b\":1}}", "a", NULL},
	    {"in two objects", "[{\"a\":1},{\"a\":1}]", "0.a", NULL},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct scan_value value;
		struct why why = {""};
		enum err err = scan_pick(text_span(rows[i].text), &rows[i].path, &value, 1, &why);

		if ((err == ERR_OK) != (rows[i].why == NULL) ||
		    (rows[i].why != NULL && strcmp(why.text, rows[i].why) != 0))
			fail_msg("%s: got '%s', want '%s'", rows[i].what, why.text,
			    rows[i].why == NULL ? "ok" : rows[i].why);
	}
}

/* Every prefix of a document is refused, every cut of a string at each distance from a block's end is safe. */
static void
test_prefixes(void **state)
{
	static const char doc[] =
	    "{\"model\":\"m\\u00e91\",\"messages\":[{\"role\":\"user\",\"content\":"
	    "\"a long text without anything odd, \xe4\xbf\xae and \\ud83d\\ude00 more\"}],"
	    "\"n\":-1.5e3,\"t\":true,\"z\":null}";
	const char *const paths[] = {"model", "messages.0.content", "n", "z"};
	struct scan_value values[4];

	(void)state;
	for (size_t n = 0; n < sizeof doc; n++) {
		struct span text = exact((struct span){doc, n});
		enum err want = n == sizeof doc - 1 ? ERR_OK : ERR_BAD_INPUT;

		if (scan_pick(text, paths, values, 4, NULL) != want)
			fail_msg("prefix of %zu bytes: want %d", n, (int)want);
		drop(text);
	}
}

static void
test_plan(void **state)
{
	const char *paths[SCAN_PATHS_MAX];
	char names[SCAN_PATHS_MAX][8];
	struct scan_value values[SCAN_PATHS_MAX];
	struct scan_plan *plan;

	(void)state;
	for (size_t i = 0; i < SCAN_PATHS_MAX; i++) {
		snprintf(names[i], sizeof names[i], "k%zu.v", i);
		paths[i] = names[i];
	}
	plan = scan_plan_new(paths, SCAN_PATHS_MAX);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(
		    scan_run(plan, SPAN("{\"k31\":{\"v\":31},\"k0\":{\"v\":0}}"), values, NULL),
		    ERR_OK);
		assert_true(text_is(values[31].raw, "31"));
		assert_true(text_is(values[0].raw, "0"));
		assert_int_equal(values[7].type, SCAN_ABSENT);
	}
	scan_plan_free(&plan);
	assert_null(plan);
	scan_plan_free(&plan);
}

/* What upstreams say: as the clients' own readers take it. */
static void
test_lax(void **state)
{
	static const struct {
		const char *what;
		const char *text, *path;
		enum scan_type type; /* SCAN_ABSENT with raw NULL: refused */
		const char *raw;
	} rows[] = {
	    {"the last counts", "{\"a\":1,\"a\":[2]}", "a", SCAN_ARRAY, "[2]"},
	    {"escaped", "{\"a\":1,\"\\u0061\":2}", "a", SCAN_NUMBER, "2"},
	    {"further down", "{\"a\":{\"b\":1},\"a\":{\"b\":2}}", "a.b", SCAN_NUMBER, "2"},
	    {"the earlier is forgotten", "{\"a\":{\"b\":1},\"a\":{}}", "a.b", SCAN_ABSENT, ""},
	    {"NUL in a name", "{\"a\\u0000\":1,\"a\":2}", "a", SCAN_NUMBER, "2"},
	    {"no UTF-8", "{\"a\":\"x\xff\xfe y\",\"b\":1}", "b", SCAN_NUMBER, "1"},
	    {"cut UTF-8 at the end", "{\"a\":\"\xc3\"}", "a", SCAN_STRING, "\"\xc3\""},
	    {"cut UTF-8 before an escape", "{\"a\":\"\xc3\\\"\"}", "a", SCAN_STRING,
	        "\"\xc3\\\"\""},
	    {"no UTF-8 in a name", "{\"\xff\":1,\"a\":2}", "a", SCAN_NUMBER, "2"},
	    {"ends in no UTF-8", "{\"a\":\"\xff", "a", SCAN_ABSENT, NULL},
	    {"raw control", "{\"a\":\"\xff\n\"}", "a", SCAN_ABSENT, NULL},
	    {"outside of strings", "{\"a\":1\xff}", "a", SCAN_ABSENT, NULL},
	    {"NaN", "{\"a\":NaN}", "a", SCAN_ABSENT, NULL},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct scan_plan *plan = scan_plan_new(&rows[i].path, 1);
		struct scan_value value;
		bool read;

		scan_plan_lax(plan);
		read = scan_run(plan, text_span(rows[i].text), &value, NULL) == ERR_OK;
		if (read != (rows[i].raw != NULL))
			fail_msg("%s: got %d", rows[i].what, (int)read);
		if (read && (value.type != rows[i].type ||
		                (value.type != SCAN_ABSENT && !text_is(value.raw, rows[i].raw))))
			fail_msg("%s: got type %d '%.*s'", rows[i].what, (int)value.type,
			    (int)value.raw.n, value.raw.p);
		scan_plan_free(&plan);
	}
}

/* Each byte of rubbish is looked at a few times, not once for each one before it. */
static void
test_lax_is_linear(void **state)
{
	static char text[4 * 1024 * 1024];
	static const char *const path = "a";
	struct scan_plan *plan = scan_plan_new(&path, 1);
	struct scan_value value;

	(void)state;
	memset(text, 0xff, sizeof text);
	text[0] = '"';
	text[sizeof text - 1] = '"';
	scan_plan_lax(plan);
	assert_int_equal(scan_run(plan, (struct span){text, sizeof text}, &value, NULL), ERR_OK);
	scan_plan_free(&plan);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accepts),
	    cmocka_unit_test(test_refuses),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_picks),
	    cmocka_unit_test(test_twice),
	    cmocka_unit_test(test_prefixes),
	    cmocka_unit_test(test_plan),
	    cmocka_unit_test(test_lax),
	    cmocka_unit_test(test_lax_is_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
