#include "base/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *what, *text;
	size_t n;
} rows[] = {
    {"nothing", "", 0},
    {"a text", "\"a\"", 0},
    {"an empty list", "[]", 0},
    {"numbers and words", "[1,-2.5e3,true,false,null]", 0},
    {"texts", "[\"a\",\"b\",\"\"]", 3},
    {"blanks", " [ \"a\" ,\n\t\"b\" , { } , [ ] ] ", 4},
    {"lists in lists", "[[[\"a\"],[1]],[]]", 5},
    {"objects", "[{\"a\":\"x\",\"b\":[\"y\"]},{}]", 4},
    {"members", "{\"a\":1,\"b\":2,\"c\":3}", 2},
    {"of the second object", "{\"a\":{\"b\":1,\"c\":2}}", 1},
    {"not of a third", "{\"a\":{\"b\":{\"c\":1,\"d\":2,\"e\":3}}}", 0},
    {"a list in a member", "{\"a\":[\"x\",\"y\"],\"b\":\"z\"}", 3},
    {"texts that look like lists", "[\"[\\\"a\\\",\\\"b\\\"]\",\"{\"]", 2},
    {"backslashes before quotes", "[\"a\\\\\",\"b\\\\\\\"\",\"c\"]", 3},
    {"what follows a list", "{\"a\":[1,2],\"b\":\"x\",\"c\":[\"y\"]}", 3},
    {"names are no elements", "[{\"a\":1}]", 1},
    {"a message",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"},"
        "\"y\"]},{\"role\":\"user\",\"content\":\"z\"}],\"stop\":[\"s\"]}",
        7},
};

static void
table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t n = scan_items(text_span(rows[i].text), 1000);

		if (n != rows[i].n)
			fail_msg("%s: %zu, want %zu", rows[i].what, n, rows[i].n);
	}
}

/* Each element costs its bytes alone, and the rest is not looked at once there are too many. */
static void
bound(void **state)
{
	size_t n = 200000, used = 1;
	char *text = malloc(3 * n + 2);

	(void)state;
	assert_non_null(text);
	text[0] = '[';
	for (size_t i = 0; i < n; i++, used += 3)
		memcpy(text + used, "{},", 3);
	text[used - 1] = ']';
	assert_int_equal(scan_items((struct span){text, used}, n), n);
	assert_int_equal(scan_items((struct span){text, used}, 10), 11);
	free(text);
}

/* As deep as a text may be, and deeper. */
static void
deep(void **state)
{
	static char text[2 * 1000 + 1];

	(void)state;
	for (size_t depth = 1; depth <= 1000; depth += 111) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		assert_int_equal(
		    scan_items((struct span){text, 2 * depth}, SIZE_MAX - 1), depth - 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table),
	    cmocka_unit_test(bound),
	    cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
