#include "base/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define MOST 5

static const struct {
	const char *what;
	const char *before[MOST], *after[MOST];
} cases[] = {
    {"none at all", {NULL}, {NULL}},
    {"another one", {"B=1"}, {"B=1"}},
    {"the only one", {"A=1"}, {NULL}},
    {"first, middle and last", {"A=1", "B=2", "A=", "A=3"}, {"B=2"}},
    {"longer and shorter names", {"AA=1", "=A", "A", "A=2"}, {"AA=1", "=A", "A"}},
};

static void
test_forget(void **state)
{
	char **own = environ;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		char texts[MOST][8], *list[MOST] = {NULL};

		for (size_t k = 0; k < MOST && cases[i].before[k] != NULL; k++) {
			snprintf(texts[k], sizeof texts[k], "%s", cases[i].before[k]);
			list[k] = texts[k];
		}
		environ = list;
		environment_forget("A");
		environ = own;
		for (size_t k = 0; k < MOST; k++) {
			const char *want = cases[i].after[k], *got = list[k];

			if ((want == NULL) != (got == NULL) ||
			    (want != NULL && strcmp(want, got) != 0))
				fail_msg("%s: %zu is '%s', not '%s'", cases[i].what, k,
				    got == NULL ? "(none)" : got, want == NULL ? "(none)" : want);
			if (want == NULL)
				break;
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forget)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
