#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define CHUNKS 512

static char *chunks[CHUNKS];

/* Every second chunk of `n` bytes becomes a hole; the address of the last chunk. */
static uintptr_t
make_holes(size_t n)
{
	uintptr_t last = 0;

	for (size_t i = 0; i < CHUNKS; i++) {
		chunks[i] = malloc(n);
		assert_non_null(chunks[i]);
		if ((uintptr_t)chunks[i] > last)
			last = (uintptr_t)chunks[i];
	}
	for (size_t i = 0; i < CHUNKS; i += 2)
		free(chunks[i]);
	return last;
}

static void
free_rest(void)
{
	for (size_t i = 1; i < CHUNKS; i += 2)
		free(chunks[i]);
}

/* How many of so many new chunks lie in holes. */
static unsigned
count_in_holes(size_t n, uintptr_t last)
{
	char *fresh[CHUNKS / 2];
	unsigned count = 0;

	for (size_t i = 0; i < CHUNKS / 2; i++) {
		fresh[i] = malloc(n);
		assert_non_null(fresh[i]);
		count += (uintptr_t)fresh[i] < last;
	}
	for (size_t i = 0; i < CHUNKS / 2; i++)
		free(fresh[i]);
	return count;
}

static void
test_plug(void **state)
{
	static const size_t sizes[] = {24, 100, 500, 1032, 1500, 4000};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uintptr_t last = make_holes(sizes[i]);
		struct heap_plug *plug = heap_plug();

		if (plug == NULL) {
			free_rest();
			skip(); /* another malloc than glibc's */
		}
		assert_int_equal(count_in_holes(sizes[i], last), 0);
		heap_unplug(&plug);
		assert_null(plug);
		assert_int_not_equal(count_in_holes(sizes[i], last), 0);
		free_rest();
	}
}

/* Once more and once more: what is taken to find the end must not pile up. */
static void
test_again(void **state)
{
	uintptr_t first = 0, end = 0;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct heap_plug *plug = heap_plug();
		void *p = malloc(100);

		end = (uintptr_t)p;
		if (i == 1)
			first = end;
		free(p);
		heap_unplug(&plug);
	}
	assert_true(end < first + 65536);
}

static void
test_nothing(void **state)
{
	struct heap_plug *plug = NULL;

	(void)state;
	heap_unplug(&plug);
	heap_trim();
	assert_null(plug);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plug),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
