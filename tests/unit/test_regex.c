#include "base/regex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *what, *regex, *text;
	bool good, matches;
} rows[] = {
    {"anywhere", "plan", "Extra PLAN needed", true, true},
    {"not there", "^plan", "Extra plan", true, false},
    {"Perl's own", "(?<=no )credit\\b", "no credit left", true, true},
    {"Perl's own, no match", "(?<=no )credit\\b", "credits", true, false},
    {"empty matches", "", "x", true, true},
    {"open parenthesis", "a(b", "a(b", false, false},
    {"open class", "[a", "a", false, false},
    {"nothing to repeat", "*a", "a", false, false},
    {"single bytes of a text", "a\\Cb", "a.b", false, false},
    {"bytes that are no text", "b+", "\xff\xfe bb", true, true},
    {"too many steps", "^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", true, false},
};

static void
test_regex(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		char reason[160] = "";
		bool good = regex_check(text_span(rows[i].regex), reason, sizeof reason);
		bool matches = regex_matches(text_span(rows[i].regex), text_span(rows[i].text));

		if (good != rows[i].good || matches != rows[i].matches ||
		    good == (reason[0] != '\0'))
			fail_msg(
			    "%s: good %d, matches %d, '%s'", rows[i].what, good, matches, reason);
	}
}

/* A compiled one fits where it is asked for, over Unicode, with case. */
static void
test_length(void **state)
{
	static const struct {
		const char *what, *regex, *text;
		size_t at, want;
	} cases[] = {
	    {"at the beginning", "ab+", "abbc", 0, 3},
	    {"not further on", "b+", "abbc", 0, 0},
	    {"from there on", "b+", "abbc", 1, 2},
	    {"with case", "AB", "ab", 0, 0},
	    {"letters of Unicode", "\\p{L}+", "\xc3\xa9\xe4\xbd\xa0 x", 0, 5},
	    {"what stands behind is seen", "a(?! )", "a b", 0, 0},
	    {"at the end", "a*", "a", 1, 0},
	    {"too many steps", "(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 0,
	        0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct regex *regex = regex_new(text_span(cases[i].regex));
		size_t got = regex_length(regex, text_span(cases[i].text), cases[i].at);

		if (got != cases[i].want)
			fail_msg("%s: %zu", cases[i].what, got);
		regex_free(&regex);
		assert_null(regex);
		regex_free(&regex);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_regex),
	    cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
