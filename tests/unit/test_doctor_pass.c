#include "doctor_pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define N "0123456789abcdef0123456789abcdef"
#define NOW 1000000

static void
test_opens(void **state)
{
	static const struct {
		const char *what, *file, *shown;
		bool want;
	} rows[] = {
	    {"good", N " 1000001\n", N, true},
	    {"good, no end of line", N " 1600000", N, true},
	    {"over", N " 1000000\n", N, false},
	    {"valid for too long", N " 1600001\n", N, false},
	    {"another", N " 1000001\n", "0123456789abcdef0123456789abcdee", false},
	    {"a prefix", N " 1000001\n", "0123456789abcdef", false},
	    {"longer", N " 1000001\n", N "0", false},
	    {"nothing shown", N " 1000001\n", "", false},
	    {"empty file", "", "", false},
	    {"empty nonce", " 1000001\n", "", false},
	    {"short nonce", "abc 1000001\n", "abc", false},
	    {"no expiry", N "\n", N, false},
	    {"nonsense as expiry", N " x\n", N, false},
	    {"before all time", N " -1\n", N, false},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		bool got = doctor_pass_opens(
		    text_span(rows[i].file), text_span(rows[i].shown), (struct wall_ms){NOW});

		if (got != rows[i].want)
			fail_msg("%s: got %d", rows[i].what, got);
	}
}

static void
test_file(void **state)
{
	char dir[] = "/tmp/sluice-pass-XXXXXX", path[64], nonce[DOCTOR_NONCE], other[DOCTOR_NONCE];
	struct wall_ms now = {NOW};
	struct why why;
	struct stat st;
	int fd = -1, second = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/doctor", dir);
	assert_false(doctor_pass_shown(dir, SPAN(N), now));
	assert_int_equal(doctor_pass_make(dir, now, nonce, &fd, &why), ERR_OK);
	assert_int_equal(strlen(nonce), DOCTOR_NONCE - 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(doctor_pass_shown(dir, text_span(nonce), now));
	assert_false(doctor_pass_shown(dir, SPAN(N), now));
	assert_false(
	    doctor_pass_shown(dir, text_span(nonce), (struct wall_ms){NOW + DOCTOR_PASS_MS}));
	/* a second one keeps out and breaks nothing */
	assert_int_equal(doctor_pass_make(dir, now, other, &second, &why), ERR_IO);
	assert_true(doctor_pass_shown(dir, text_span(nonce), now));
	/* others could have written it */
	assert_int_equal(chmod(path, 0620), 0);
	assert_false(doctor_pass_shown(dir, text_span(nonce), now));
	doctor_pass_end(dir, &fd);
	assert_int_equal(fd, -1);
	assert_int_not_equal(stat(path, &st), 0);
	doctor_pass_end(dir, &fd);
	assert_int_equal(rmdir(dir), 0);
}

/* What one that was killed left is used again; no link is followed. */
static void
test_leavings(void **state)
{
	char dir[] = "/tmp/sluice-pass-XXXXXX", path[64], real[64], nonce[DOCTOR_NONCE];
	struct wall_ms now = {NOW};
	struct why why;
	int fd = -1;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/doctor", dir);
	snprintf(real, sizeof real, "%s/real", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%0100d", 7);
	fclose(f);
	assert_int_equal(doctor_pass_make(dir, now, nonce, &fd, &why), ERR_OK);
	assert_true(doctor_pass_shown(dir, text_span(nonce), now));
	assert_int_equal(rename(path, real), 0);
	assert_int_equal(symlink(real, path), 0);
	assert_false(doctor_pass_shown(dir, text_span(nonce), now));
	close(fd);
	fd = -1;
	assert_int_equal(doctor_pass_make(dir, now, nonce, &fd, &why), ERR_IO);
	unlink(path);
	unlink(real);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_opens),
	    cmocka_unit_test(test_file),
	    cmocka_unit_test(test_leavings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
