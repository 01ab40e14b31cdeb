#include "dialect/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define M "\"messages\":[{}]"

static const struct {
	const char *what, *body, *model; /* model NULL: not edited */
	bool usage;
	const char *want;
} cases[] = {
    {"nothing", "{\"model\":\"a\"," M "}", NULL, false, "{\"model\":\"a\"," M "}"},
    {"model", "{\"model\":\"a\"," M "}", "b/c-1", false, "{\"model\":\"b/c-1\"," M "}"},
    {"model, nasty white space", " \r\n{\t\"model\" \n:\r \"a\" , " M "\t}\n\n", "b", false,
        " \r\n{\t\"model\" \n:\r \"b\" , " M "\t}\n\n"},
    {"model, escaped name and value", "{\"mod\\u0065l\":\"\\u0061\\/\"," M "}", "b", false,
        "{\"mod\\u0065l\":\"b\"," M "}"},
    {"model that needs escapes", "{\"model\":\"a\"," M "}", "b\"\\", false,
        "{\"model\":\"b\\\"\\\\\"," M "}"},
    {"model last", "{" M ",\"model\":\"a\"}", "bbbbbbbbbbbb", false,
        "{" M ",\"model\":\"bbbbbbbbbbbb\"}"},
    {"a model inside a message stays",
        "{\"messages\":[{\"model\":\"a\"}],\"model\":\"a\",\"x\":{\"model\":\"a\"}}", "b", false,
        "{\"messages\":[{\"model\":\"a\"}],\"model\":\"b\",\"x\":{\"model\":\"a\"}}"},
    {"numbers, order, escapes stay (JSON-02)",
        "{\"z\":1.0,\"a\":1E5,\"m\":1e400,\"x\":0.10,\"s\":\"a\\/b\\u00e9\xc3\xa9\",\"\":"
        "123456789012345678901234567890,\"model\":\"a\"," M "}",
        "b", true,
        "{\"stream_options\":{\"include_usage\":true},"
        "\"z\":1.0,\"a\":1E5,\"m\":1e400,\"x\":0.10,\"s\":\"a\\/b\\u00e9\xc3\xa9\",\"\":"
        "123456789012345678901234567890,\"model\":\"b\"," M "}"},

    {"usage: absent", "{\"model\":\"a\"," M "}", NULL, true,
        "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}"},
    {"usage: absent, blanks", "\n { \"model\":\"a\"," M "}", NULL, true,
        "\n {\"stream_options\":{\"include_usage\":true}, \"model\":\"a\"," M "}"},
    {"usage: null", "{\"stream_options\": null ,\"model\":\"a\"," M "}", NULL, true,
        "{\"stream_options\": {\"include_usage\":true} ,\"model\":\"a\"," M "}"},
    {"usage: empty object", "{\"stream_options\":{},\"model\":\"a\"," M "}", NULL, true,
        "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}"},
    {"usage: empty object with blanks", "{\"stream_options\":{ \n },\"model\":\"a\"," M "}", NULL,
        true, "{\"stream_options\":{\"include_usage\":true \n },\"model\":\"a\"," M "}"},
    {"usage: object with another member",
        "{\"stream_options\":{ \"include_obfuscation\":false },\"model\":\"a\"," M "}", NULL, true,
        "{\"stream_options\":{\"include_usage\":true, \"include_obfuscation\":false },\"model\":\"a\"," M
        "}"},
    {"usage: false", "{\"stream_options\":{\"include_usage\":false},\"model\":\"a\"," M "}", NULL,
        true, "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}"},
    {"usage: false, escaped names",
        "{\"stream\\u005foptions\" : { \"x\":1, \"include\\u005fusage\" : false },\"model\":\"a\"," M
        "}",
        NULL, true,
        "{\"stream\\u005foptions\" : { \"x\":1, \"include\\u005fusage\" : true },\"model\":\"a\"," M
        "}"},
    {"usage: include null", "{\"stream_options\":{\"include_usage\":null},\"model\":\"a\"," M "}",
        NULL, true, "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}"},
    {"usage: true", "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}", NULL,
        true, "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\"," M "}"},
    {"both, options first", "{\"stream_options\":{},\"model\":\"a\"," M "}", "b", true,
        "{\"stream_options\":{\"include_usage\":true},\"model\":\"b\"," M "}"},
    {"both, options last", "{\"model\":\"a\"," M ",\"stream_options\":{\"include_usage\":false}}",
        "bcd", true, "{\"model\":\"bcd\"," M ",\"stream_options\":{\"include_usage\":true}}"},
};

static void
apply(struct arena *arena, const struct dialect *d, struct span body, const char *model, bool usage,
    struct buf *out)
{
	struct dialect_request r, again;
	struct edit edits[2];
	size_t n = 0;

	assert_int_equal(dialect_read(d, body, &r, NULL), ERR_OK);
	if (model != NULL)
		edits[n++] = edit_model(arena, &r, text_span(model));
	if (usage && edit_usage(&r, &edits[n]))
		n++;
	edit_apply(body, edits, n, out);
	assert_int_equal(dialect_read(d, buf_text(out), &again, NULL), ERR_OK);
	if (model != NULL)
		assert_true(text_is(scan_string(arena, again.model.raw), model));
	if (usage)
		assert_false(edit_usage(&again, &edits[0]));
}

static void
test_cases(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct buf out;

		buf_init(&out, 4096);
		apply(arena, &dialect_chat, text_span(cases[i].body), cases[i].model,
		    cases[i].usage, &out);
		if (!text_is(buf_text(&out), cases[i].want))
			fail_msg("%s: got\n%s\nwant\n%s", cases[i].what, out.p, cases[i].want);
		buf_release(&out);
	}
	arena_free(&arena);
}

static void
test_model_absent(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	apply(arena, &dialect_moderations, SPAN(" { \"input\":\"x\"}"), "b", false, &out);
	assert_string_equal(out.p, " {\"model\":\"b\", \"input\":\"x\"}");
	buf_release(&out);
	arena_free(&arena);
}

static void
test_over(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct buf out;

	(void)state;
	buf_init(&out, 8);
	edit_apply(SPAN("{\"model\":\"a\"}"), NULL, 0, &out);
	assert_true(out.over);
	buf_release(&out);
	arena_free(&arena);
}

static void
test_surrogates(void **state)
{
	static const char *const rows[][2] = {
	    {"", ""},
	    {"{\"a\":1}", "{\"a\":1}"},
	    {"\\ud83d\\ude00", "\\ud83d\\ude00"},
	    {"\\uD83D\\uDE00\\ude00", "\\uD83D\\uDE00\\ufffd"},
	    {"\"\\ud83d\"", "\"\\ufffd\""},
	    {"\\ud83d\\ud83d\\ude00x", "\\ufffd\\ud83d\\ude00x"},
	    {"\\ud83dx\\ude00", "\\ufffdx\\ufffd"},
	    {"\\ud83d\\n\\ude00", "\\ufffd\\n\\ufffd"},
	    {"\\\\ud83d \\u00e9\\ud7ff\\ue000", "\\\\ud83d \\u00e9\\ud7ff\\ue000"},
	    {"\\ud83", "\\ud83"},
	    {"\\ud83d\\ude0", "\\ufffd\\ude0"},
	    {"\\", "\\"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t n = strlen(rows[i][0]);
		char *text = malloc(n + 1);

		assert_non_null(text);
		memcpy(text, rows[i][0], n + 1);
		edit_surrogates(text, n);
		if (strcmp(text, rows[i][1]) != 0)
			fail_msg("%s: got %s, want %s", rows[i][0], text, rows[i][1]);
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_model_absent),
	    cmocka_unit_test(test_over),
	    cmocka_unit_test(test_surrogates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
