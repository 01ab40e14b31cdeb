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

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_regex)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
