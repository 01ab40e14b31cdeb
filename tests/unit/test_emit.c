#include "base/emit.h"

#include "base/scan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void
test_quoted(void **state)
{
	static const struct {
		const char *what;
		struct span in;
		const char *want;
	} rows[] = {
	    {"plain", SPAN("abc"), "\"abc\""},
	    {"empty", {NULL, 0}, "\"\""},
	    {"quote, backslash, slash", SPAN("\"\\/"), "\"\\\"\\\\/\""},
	    {"newline", SPAN("a\nb"), "\"a\\nb\""},
	    {"control characters", SPAN("\x00\x01\t\r\x1f"),
	        "\"\\u0000\\u0001\\u0009\\u000d\\u001f\""},
	    {"DEL, U+2028", SPAN("\x7f\xe2\x80\xa8"), "\"\x7f\xe2\x80\xa8\""},
	    {"UTF-8 stays", SPAN("\xc3\xa9\xe4\xbf\xae\xf0\x9f\x8c\x9f"),
	        "\"\xc3\xa9\xe4\xbf\xae\xf0\x9f\x8c\x9f\""},
	    {"FF FE",
	        SPAN("a\xff\xfe"
	             "b"),
	        "\"a\xef\xbf\xbd\xef\xbf\xbd"
	        "b\""},
	    {"cut character", SPAN("\xc3\xa9\xe4"), "\"\xc3\xa9\xef\xbf\xbd\""},
	    {"cut character and quote", SPAN("\xe4\""), "\"\xef\xbf\xbd\\\"\""},
	    {"surrogate", SPAN("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct buf b;

		buf_init(&b, 1000);
		emit_quoted(&b, rows[i].in);
		if (strcmp(b.p, rows[i].want) != 0)
			fail_msg("%s: got %s", rows[i].what, b.p);
		assert_int_equal(scan_pick(buf_text(&b), NULL, NULL, 0, NULL), ERR_OK);
		buf_release(&b);
	}
}

static void
test_members(void **state)
{
	struct emit e;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	emit_init(&e, &b);
	emit_object(&e, NULL);
	emit_text(&e, "t\"", SPAN("x"));
	emit_z(&e, "z", "y");
	emit_z(&e, "none", NULL);
	emit_array(&e, "list");
	emit_i64(&e, NULL, INT64_MIN);
	emit_object(&e, NULL);
	emit_end(&e);
	emit_array(&e, NULL);
	emit_end(&e);
	emit_bool(&e, NULL, true);
	emit_end(&e);
	emit_object(&e, "o");
	emit_i64(&e, "i", 0);
	emit_end(&e);
	emit_bool(&e, "no", false);
	emit_real(&e, "r", 1.25, 1);
	emit_real(&e, "whole", -3, 0);
	emit_real(&e, "nan", EMIT_UNKNOWN, 3);
	emit_real(&e, "inf", HUGE_VAL, 3);
	emit_null(&e, "n");
	emit_some(&e, "some", SPAN("x"));
	emit_some(&e, "none", SPAN(""));
	emit_known(&e, "known", 0, true);
	emit_known(&e, "unknown", 5, false);
	emit_raw(&e, "raw", SPAN("[1.10]"));
	emit_raw(&e, "nothing", (struct span){NULL, 0});
	emit_end(&e);
	assert_string_equal(b.p,
	    "{\"t\\\"\":\"x\",\"z\":\"y\",\"none\":null,\"list\":[-9223372036854775808,{},[],true],"
	    "\"o\":{\"i\":0},\"no\":false,\"r\":1.2,\"whole\":-3,\"nan\":null,\"inf\":null,\"n\":null,"
	    "\"some\":\"x\",\"none\":null,\"known\":0,\"unknown\":null,"
	    "\"raw\":[1.10],\"nothing\":null}");
	assert_int_equal(e.depth, 0);
	assert_int_equal(scan_pick(buf_text(&b), NULL, NULL, 0, NULL), ERR_OK);
	buf_release(&b);
}

static void
test_depth(void **state)
{
	struct emit e;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	emit_init(&e, &b);
	for (size_t i = 0; i < NELEM(e.closer) - 1; i++)
		emit_array(&e, NULL);
	for (size_t i = 0; i < NELEM(e.closer) - 1; i++)
		emit_end(&e);
	assert_int_equal(b.n, 2 * (NELEM(e.closer) - 1));
	assert_int_equal(scan_pick(buf_text(&b), NULL, NULL, 0, NULL), ERR_OK);
	buf_release(&b);
}

/* A full buffer stays as it is and says so. */
static void
test_over(void **state)
{
	struct emit e;
	struct buf b;

	(void)state;
	buf_init(&b, 8);
	emit_init(&e, &b);
	emit_array(&e, NULL);
	emit_z(&e, NULL, "much too long");
	emit_end(&e);
	assert_true(b.over);
	assert_true(b.n <= 8);
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quoted),
	    cmocka_unit_test(test_members),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
