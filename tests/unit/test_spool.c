#include "spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char dir[64];

static int
setup(void **state)
{
	(void)state;
	strncpy(dir, "/tmp/sluice-spool-XXXXXX", sizeof dir - 1);
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* fails where something was left in it */
}

static unsigned
count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static const struct {
	const char *what;
	size_t step, steps;
	bool file;
} cases[] = {
    {"nothing", 0, 0, false},
    {"a byte", 1, 1, false},
    {"below the limit", SPOOL_MEMORY - 1, 1, false},
    {"the limit", SPOOL_MEMORY, 1, true},
    {"many steps", 100000, 50, true},
    {"odd steps", 99991, 33, true},
    {"steps of the limit", SPOOL_MEMORY, 4, true},
};

static void
sizes(void **state)
{
	struct arena *arena = arena_new(64 << 20);
	struct buf buf;
	unsigned before = count_descriptors();

	(void)state;
	buf_init(&buf, 32 << 20);
	for (size_t i = 0; i < NELEM(cases); i++) {
		size_t n = cases[i].step * cases[i].steps;
		struct spool *s = spool_new(arena, &buf, dir);
		struct span got, again;
		struct why why;

		for (size_t k = 0; k < cases[i].steps; k++) {
			char *room = buf_room(&buf, cases[i].step);

			for (size_t b = 0; b < cases[i].step; b++)
				room[b] = (char)((k * cases[i].step + b) * 2654435761u >> 13);
			buf.n += cases[i].step;
			assert_int_equal(spool_step(s, &why), ERR_OK);
			assert_int_equal(spool_size(s), (k + 1) * cases[i].step);
			assert_in_range(buf.n, 0, SPOOL_MEMORY);
		}
		assert_int_equal(spool_text(s, &got, &why), ERR_OK);
		assert_int_equal(spool_text(s, &again, &why), ERR_OK);
		if (got.n != n || again.p != got.p)
			fail_msg("%s: %zu bytes, want %zu", cases[i].what, got.n, n);
		for (size_t b = 0; b < n; b++)
			if (got.p[b] != (char)(b * 2654435761u >> 13))
				fail_msg("%s: byte %zu", cases[i].what, b);
		if ((count_descriptors() > before) != cases[i].file)
			fail_msg("%s: is there a file?", cases[i].what);
		buf_clear(&buf);
		arena_reset(arena);
		assert_int_equal(count_descriptors(), before);
	}
	buf_release(&buf);
	arena_free(&arena);
}

static void
no_room(void **state)
{
	struct arena *arena = arena_new(64 << 20);
	struct rlimit old, small;
	struct buf buf;
	struct spool *s;
	struct why why = {""};
	enum err err;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 1 << 20;
	buf_init(&buf, 32 << 20);
	s = spool_new(arena, &buf, dir);
	assert_non_null(buf_room(&buf, 3 << 20));
	buf.n = 3 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	err = spool_step(s, &why);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(err, ERR_STORE);
	assert_non_null(strstr(why.text, "no room on the disk"));
	s = spool_new(arena, &buf, "/nonexistent/there");
	assert_int_equal(spool_step(s, &why), ERR_STORE);
	assert_null(strstr(why.text, "nonexistent")); /* the client reads it */
	buf_release(&buf);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(sizes, setup, teardown),
	    cmocka_unit_test_setup_teardown(no_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
