/*
 * in_arena - an arena for a test program, or for each of its tests.
 */
#ifndef TESTS_LIB_IN_ARENA_H
#define TESTS_LIB_IN_ARENA_H

#include "base/arena.h"

#define IN_ARENA_BYTES ((size_t)1 << 28)

static struct arena *arena;

/* cmocka's set-up and tear-down. */
static inline int
in_arena_begin(void **state)
{
	(void)state;
	arena = arena_new(IN_ARENA_BYTES);
	return 0;
}

static inline int
in_arena_end(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

#endif
