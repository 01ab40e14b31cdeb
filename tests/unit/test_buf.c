#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void
test_append(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	assert_int_equal(buf_text(&b).n, 0);
	buf_z(&b, "");
	assert_string_equal(b.p, "");
	buf_add(&b, "a\0b", 3);
	buf_span(&b, SPAN("-span"));
	buf_span(&b, (struct span){NULL, 0});
	buf_z(&b, "-z");
	buf_char(&b, '!');
	buf_i64(&b, INT64_MIN);
	buf_print(&b, "[%s %d]", "x", 7);
	assert_true(text_equal(buf_text(&b), SPAN("a\0b-span-z!-9223372036854775808[x 7]")));
	assert_int_equal(b.p[b.n], '\0');
	assert_false(b.over);
	buf_release(&b);
	assert_null(b.p);
	assert_int_equal(b.max, 1000);
	buf_release(&b);
}

static void
test_growth(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100000);
	for (size_t i = 0; i < 100000; i++) {
		buf_char(&b, (char)('a' + i % 26));
		assert_int_equal(b.p[b.n], '\0');
	}
	assert_false(b.over);
	for (size_t i = 0; i < 100000; i++)
		if (b.p[i] != (char)('a' + i % 26))
			fail_msg("byte %zu", i);
	buf_char(&b, 'x');
	assert_true(b.over);
	assert_int_equal(b.n, 100000);
	buf_release(&b);
}

/* What does not fit is left out as a whole, and nothing is added from then on. */
static void
test_over(void **state)
{
	static const size_t maxima[] = {0, 1, 7, 255, 256, 257, 1000};

	(void)state;
	for (size_t i = 0; i < NELEM(maxima); i++) {
		size_t max = maxima[i];
		struct buf b;

		buf_init(&b, max);
		for (size_t k = 0; k < max; k++)
			buf_char(&b, 'x');
		assert_false(b.over);
		assert_int_equal(b.n, max);
		buf_z(&b, "ab");
		assert_true(b.over);
		assert_int_equal(b.n, max);
		buf_clear(&b);
		assert_false(b.over);
		buf_print(&b, "%0*d", (int)max + 1, 0);
		assert_true(b.over);
		assert_int_equal(b.n, 0);
		buf_char(&b, 'x');
		assert_int_equal(b.n, 0);
		assert_null(buf_room(&b, 0));
		buf_release(&b);
		assert_false(b.over);
	}
}

static void
test_huge(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_z(&b, "abc");
	assert_null(buf_room(&b, SIZE_MAX));
	assert_true(b.over);
	assert_int_equal(b.n, 3);
	buf_release(&b);
}

static void
test_room(void **state)
{
	struct buf b;
	char *room;

	(void)state;
	buf_init(&b, 1000);
	buf_z(&b, "ab");
	room = buf_room(&b, 500);
	assert_non_null(room);
	assert_ptr_equal(room, b.p + 2);
	memset(room, 'c', 500);
	b.n += 500;
	buf_z(&b, "d");
	assert_int_equal(b.n, 503);
	assert_memory_equal(b.p, "abcc", 4);
	buf_release(&b);
}

static void
test_drop(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	buf_drop(&b, 1);
	buf_z(&b, "abcdef");
	buf_drop(&b, 0);
	assert_string_equal(b.p, "abcdef");
	buf_drop(&b, 2);
	assert_string_equal(b.p, "cdef");
	assert_int_equal(b.n, 4);
	buf_drop(&b, 4);
	assert_string_equal(b.p, "");
	buf_z(&b, "x");
	buf_drop(&b, 9);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void
test_shrink(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100000);
	buf_z(&b, "small");
	buf_shrink(&b, 4096);
	assert_non_null(b.p);
	assert_int_equal(b.n, 0);
	for (size_t i = 0; i < 50000; i++)
		buf_char(&b, 'x');
	buf_shrink(&b, 4096);
	assert_null(b.p);
	assert_int_equal(b.n, 0);
	buf_z(&b, "again");
	assert_string_equal(b.p, "again");
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_append),
	    cmocka_unit_test(test_growth),
	    cmocka_unit_test(test_over),
	    cmocka_unit_test(test_huge),
	    cmocka_unit_test(test_room),
	    cmocka_unit_test(test_drop),
	    cmocka_unit_test(test_shrink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
