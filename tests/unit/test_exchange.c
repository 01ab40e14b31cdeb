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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_param),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
