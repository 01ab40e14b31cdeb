#include "verdict.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What counts, word by word from the contract: account, errors only, channel. */
static const struct {
	const char *name;
	bool counts, error, rate_limited, channel_counts;
	enum verdict_next next;
	enum verdict_rest rest;
	int status;
} want[] = {
    {"ok", 0, 0, 0, 0, NEXT_NEVER, REST_NONE, 0},
    {"client", 0, 0, 0, 0, NEXT_NEVER, REST_NONE, 0},
    {"context_length", 0, 0, 0, 0, NEXT_NEVER, REST_NONE, 0},
    {"auth_failed", 1, 1, 0, 1, NEXT_AT_ONCE, REST_DISABLE, 502},
    {"session_dead", 1, 1, 0, 0, NEXT_AT_ONCE, REST_DISABLE, 502},
    {"hard_credit", 1, 1, 0, 0, NEXT_AT_ONCE, REST_ACCOUNT, 502},
    {"soft_rate", 1, 1, 1, 0, NEXT_AT_ONCE, REST_ACCOUNT, 429},
    {"model_rate", 0, 1, 1, 0, NEXT_AT_ONCE, REST_MODEL, 429},
    {"model_missing", 0, 1, 1, 0, NEXT_AT_ONCE, REST_MODEL, 404},
    {"not_found", 1, 1, 0, 0, NEXT_AT_ONCE, REST_ACCOUNT, 502},
    {"overload", 0, 0, 0, 1, NEXT_BACKOFF, REST_ACCOUNT, 503},
    {"server", 1, 1, 0, 1, NEXT_BACKOFF, REST_NONE, 502},
    {"network", 1, 1, 0, 1, NEXT_BACKOFF, REST_NONE, 502},
    {"unexplained", 0, 0, 0, 0, NEXT_ONCE, REST_NONE, 0},
    {"cancelled", 0, 0, 0, 0, NEXT_NEVER, REST_NONE, 0},
    {"nobody", 0, 0, 0, 0, NEXT_AT_ONCE, REST_NONE, 502},
};

static void
test_rows(void **state)
{
	int bad = 0;

	(void)state;
	assert_int_equal(NELEM(want), VERDICT__MAX);
	for (size_t i = 0; i < NELEM(want); i++) {
		enum verdict v = verdict_named(text_span(want[i].name));
		const struct verdict_row *row = &verdict_table[v == VERDICT__MAX ? 0 : v];

		if (v == VERDICT__MAX || row->counts != want[i].counts ||
		    row->error != want[i].error || row->rate_limited != want[i].rate_limited ||
		    row->channel_counts != want[i].channel_counts || row->next != want[i].next ||
		    row->rest != want[i].rest || row->status != want[i].status) {
			print_error("%s: differs from the contract\n", want[i].name);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* What holds for every row, whatever it is. */
static void
test_sense(void **state)
{
	(void)state;
	for (size_t i = 0; i < VERDICT__MAX; i++) {
		const struct verdict_row *row = &verdict_table[i];

		assert_non_null(row->name);
		assert_int_equal(verdict_named(text_span(row->name)), i);
		if (row->counts)
			assert_true(row->error);
		if (row->channel_counts)
			assert_true(row->channel_requests);
		if (row->rest != REST_NONE)
			assert_int_not_equal(row->next, NEXT_NEVER);
	}
	assert_int_equal(verdict_named(SPAN("")), VERDICT__MAX);
	assert_int_equal(verdict_named(SPAN("Soft_rate")), VERDICT__MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
