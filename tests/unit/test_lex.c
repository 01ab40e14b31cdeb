#include "base/lex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Each odd byte at each place of texts around the block sizes stops the run right there. */
static void
test_plain(void **state)
{
	static const unsigned char odd[] = {0, 1, 0x1f, '"', '\\', 0x80, 0xa0, 0xa2, 0xdc, 0xff};
	static const unsigned char fine[] = {' ', '!', '#', '[', ']', 'a', '~', 0x7f};
	char text[48];

	(void)state;
	for (size_t n = 0; n <= sizeof text; n++) {
		for (size_t f = 0; f < sizeof fine; f++) {
			memset(text, fine[f], n);
			if (lex_plain((struct span){text, n}) != n)
				fail_msg("%zu bytes %02x", n, fine[f]);
			for (size_t at = 0; at < n; at++)
				for (size_t o = 0; o < sizeof odd; o++) {
					text[at] = (char)odd[o];
					if (lex_plain((struct span){text, n}) != at)
						fail_msg("%02x at %zu of %zu", odd[o], at, n);
					text[at] = (char)fine[f];
				}
		}
	}
}

static void
test_plain_all_bytes(void **state)
{
	char text[40];

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool fine = c >= ' ' && c < 0x80 && c != '"' && c != '\\';

		for (size_t at = 0; at < sizeof text; at++) {
			memset(text, 'x', sizeof text);
			text[at] = (char)c;
			if (lex_plain((struct span){text, sizeof text}) !=
			    (fine ? sizeof text : at))
				fail_msg("byte %02x at %zu", c, at);
		}
	}
}

static void
test_utf8(void **state)
{
	static const struct {
		struct span text;
		size_t want;
	} rows[] = {
	    {SPAN("a"), 1},
	    {SPAN("\xc3\xa9x"), 2},
	    {SPAN("\xe4\xbf\xae"), 3},
	    {SPAN("\xf0\x9f\x8c\x9f"), 4},
	    {SPAN("\xe4\xbf"), 0},
	    {SPAN("\xe4\xbf"
	          "a"),
	        0},
	    {SPAN("\x80"), 0},
	    {SPAN("\xbf\xbf"), 0},
	    {SPAN("\xc0\x80"), 0},
	    {SPAN("\xed\xa0\x80"), 0},
	    {SPAN("\xf5\x80\x80\x80"), 0},
	    {SPAN("\xff\xff\xff\xff"), 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		if (lex_utf8(rows[i].text) != rows[i].want)
			fail_msg(
			    "row %zu: got %zu, want %zu", i, lex_utf8(rows[i].text), rows[i].want);
}

/* What lex_string() refuses must still give bytes, and always make progress. */
static void
test_unescape_broken(void **state)
{
	static const struct {
		struct span text, want;
		size_t used;
	} rows[] = {
	    {SPAN("\\"), SPAN("\\"), 1},
	    {SPAN("\\q"), SPAN("q"), 2},
	    {SPAN("\\\0"), SPAN("\0"), 2},
	    {SPAN("\\u12"), SPAN("u"), 2},
	    {SPAN("\\u00g0"), SPAN("u"), 2},
	    {SPAN("\\ud83d\\ude"), SPAN("\xef\xbf\xbd"), 6},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char out[4];
		size_t used = 0, n = lex_unescape(rows[i].text, out, &used);

		if (used != rows[i].used || !text_equal((struct span){out, n}, rows[i].want))
			fail_msg("row %zu: got '%.*s', %zu used", i, (int)n, out, used);
	}
}

static void
test_whole(void **state)
{
	int64_t v = 1;

	(void)state;
	assert_true(lex_whole(SPAN("-9223372036854775808"), &v));
	assert_true(v == INT64_MIN);
	assert_false(lex_whole((struct span){NULL, 0}, &v));
	assert_false(lex_whole(SPAN("1 "), &v));
	assert_false(lex_whole(SPAN("9223372036854775808"), &v));
	assert_true(v == INT64_MIN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),
	    cmocka_unit_test(test_plain_all_bytes),
	    cmocka_unit_test(test_utf8),
	    cmocka_unit_test(test_unescape_broken),
	    cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
