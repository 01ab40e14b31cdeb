#include "beta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *what, *lists[3], *want;
} cases[] = {
    {"none", {NULL}, ""},
    {"one", {"a"}, "a"},
    {"two lines and the account's (HDR-01)", {"a", "b,c", "d"}, "a,b,c,d"},
    {"each once", {"a, b ,a", "b,c", "c,a"}, "a,b,c"},
    {"nothing in it", {"", " , ,", ",a,,b,"}, "a,b"},
    {"one begins another", {"a-1,a", "a-12", "a-1"}, "a-1,a,a-12"},
};

static void
test_merge(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct span lists[3], got;
		size_t n = 0;

		for (; n < 3 && cases[i].lists[n] != NULL; n++)
			lists[n] = text_span(cases[i].lists[n]);
		got = beta_merge(arena, lists, n);
		if (!text_is(got, cases[i].want))
			fail_msg("%s: got '%.*s', want '%s'", cases[i].what, (int)got.n, got.p,
			    cases[i].want);
	}
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_merge)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
