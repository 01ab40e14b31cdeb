#include "base/nonce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 100

static void
test_names(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct span names[ROUNDS];

	(void)state;
	for (size_t i = 0; i < ROUNDS; i++) {
		names[i] = nonce_name(arena, "run_", i);
		assert_int_equal(names[i].n, 4 + i);
		assert_true(text_starts(names[i], "run_"));
		assert_int_equal(strspn(names[i].p + 4, "0123456789abcdef"), i);
		for (size_t k = 16; k < i; k++)
			assert_int_not_equal(memcmp(names[k].p, names[i].p, names[k].n), 0);
	}
	arena_free(&arena);
}

static void
test_bounds(void **state)
{
	char out[200] = "unchanged";

	(void)state;
	assert_false(nonce_hex(out, 129));
	assert_string_equal(out, "unchanged");
	assert_true(nonce_hex(out, 128));
	assert_int_equal(out[128], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
