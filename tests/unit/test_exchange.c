#include "exchange.h"

#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_param(void **state)
{
	static const char *const params[] = {
	    "A=1", "AB=2", "EMPTY=", "BROKEN", "A=3", "X=y=z", NULL};
	struct exchange none = {.params = NULL};
	struct memory m;

	(void)state;
	memory_init(&m, params, SPAN(""));
	assert_true(text_is(exchange_param(&m.x, "A"), "1"));
	assert_true(text_is(exchange_param(&m.x, "AB"), "2"));
	assert_true(text_is(exchange_param(&m.x, "X"), "y=z"));
	assert_int_equal(exchange_param(&m.x, "EMPTY").n, 0);
	assert_int_equal(exchange_param(&m.x, "BROKEN").n, 0);
	assert_int_equal(exchange_param(&m.x, "B").n, 0);
	assert_non_null(exchange_param(&m.x, "B").p);
	assert_int_equal(exchange_param(&none, "A").n, 0);
	memory_release(&m);
}

static void
test_length(void **state)
{
	static const struct {
		const char *variable;
		int64_t want;
	} rows[] = {
	    {"CONTENT_LENGTH=0", 0},
	    {"CONTENT_LENGTH=42", 42},
	    {"CONTENT_LENGTH= 42 ", 42},
	    {"CONTENT_LENGTH=9223372036854775807", INT64_MAX},
	    {"CONTENT_LENGTH=9223372036854775808", -1},
	    {"CONTENT_LENGTH=99999999999999999999", -1},
	    {"CONTENT_LENGTH=-1", -1},
	    {"CONTENT_LENGTH=0x10", -1},
	    {"CONTENT_LENGTH=1e3", -1},
	    {"CONTENT_LENGTH=4 2", -1},
	    {"CONTENT_LENGTH=", -1},
	    {"HTTP_CONTENT_LENGTH=7", -1},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		const char *const params[] = {rows[i].variable, NULL};
		struct memory m;
		int64_t got;

		memory_init(&m, params, SPAN(""));
		got = exchange_length(&m.x);
		if (got != rows[i].want)
			fail_msg("%s: got %lld", rows[i].variable, (long long)got);
		memory_release(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_param),
	    cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
