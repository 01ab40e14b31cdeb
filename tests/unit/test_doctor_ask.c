#include "doctor_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_read(void **state)
{
	static const struct {
		const char *query;
		bool good;
		struct doctor_ask want;
	} rows[] = {
	    {"", true, {DOCTOR_ECHO, 1, 0, 0}},
	    {"do=echo", true, {DOCTOR_ECHO, 1, 0, 0}},
	    {"do=swallow&", true, {DOCTOR_SWALLOW, 1, 0, 0}},
	    {"do=stream&n=10&gap=100", true, {DOCTOR_STREAM, 10, 100, 0}},
	    {"first=60000&do=stream&gap=60000&n=2", true, {DOCTOR_STREAM, 2, 60000, 60000}},
	    {"do=stream&n=3&gap=60000", true, {DOCTOR_STREAM, 3, 60000, 0}},
	    {"do=stream&n=3&gap=60000&first=1", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"do=stream&n=50&gap=2448", true, {DOCTOR_STREAM, 50, 2448, 0}},
	    {"do=stream&n=50&gap=2449", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"n=50&n=51", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"n=0", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"n=", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"n", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"gap=60001", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"first=-1", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"first=99999999999999999999", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"do=", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"do=dance", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"DO=echo", false, {DOCTOR_ECHO, 0, 0, 0}},
	    {"x", false, {DOCTOR_ECHO, 0, 0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct doctor_ask got = {DOCTOR_SWALLOW, -1, -1, -1};
		struct why why = {""};
		bool good = doctor_ask_read(text_span(rows[i].query), &got, &why) == ERR_OK;

		if (good != rows[i].good || good == (why.text[0] != '\0'))
			fail_msg("'%s': good %d, '%s'", rows[i].query, good, why.text);
		if (good &&
		    (got.work != rows[i].want.work || got.n != rows[i].want.n ||
		        got.gap_ms != rows[i].want.gap_ms || got.first_ms != rows[i].want.first_ms))
			fail_msg("'%s': %d %lld %lld %lld", rows[i].query, (int)got.work,
			    (long long)got.n, (long long)got.gap_ms, (long long)got.first_ms);
		if (!good && got.n != -1)
			fail_msg("'%s': touched on failure", rows[i].query);
	}
}

/* Published values of FNV-1a, 64 bits; and in pieces as in one. */
static void
test_sum(void **state)
{
	uint64_t sum;

	(void)state;
	assert_true(doctor_ask_sum(DOCTOR_SUM_SEED, SPAN("")) == UINT64_C(0xcbf29ce484222325));
	assert_true(doctor_ask_sum(DOCTOR_SUM_SEED, SPAN("a")) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(
	    doctor_ask_sum(DOCTOR_SUM_SEED, SPAN("foobar")) == UINT64_C(0x85944171f73967e8));
	sum = doctor_ask_sum(doctor_ask_sum(DOCTOR_SUM_SEED, SPAN("foo")), SPAN("bar"));
	assert_true(sum == UINT64_C(0x85944171f73967e8));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
