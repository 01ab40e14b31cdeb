#include "conf/wipe.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct look {
	const char *p;
	bool clean;
};

/* Registered before the secret, so it runs after that was wiped and before its memory goes. */
static void
look(void *object)
{
	struct look *l = object;
	static const char zeros[16];

	l->clean = memcmp(l->p, zeros, 6) == 0;
}

static void
test_wiped(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct look l = {NULL, false};
	struct span copy;

	(void)state;
	arena_defer(arena, look, &l);
	copy = wipe_copy(arena, SPAN("secret"));
	assert_true(text_is(copy, "secret"));
	l.p = copy.p;
	arena_free(&arena);
	assert_true(l.clean);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_wiped)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
