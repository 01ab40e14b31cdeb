#include "store/breaker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <string.h>

#define NELEM(array) (sizeof(array) / sizeof((array)[0]))
#define T0 1767571200000LL /* ms */

static const struct breaker_policy standard = {
    .triggers = BREAKER_TRIGGERS,
    .error_rate_micros = 300000,
    .error_window_ms = 60000,
    .error_min_requests = 20,
    .latency_ms = 30000,
    .latency_window_ms = 60000,
    .consecutive_fail = 10,
    .recovery_timeout_ms = 60000,
    .reopen_ms = 90000,
    .half_open_requests = 3,
    .half_open_success = 2,
};

enum event {
	LOOK,
	OK, /* a probe of this round */
	FAILED,
	NEUTRAL,
	OLD_OK, /* a probe of the round before */
	OLD_FAILED,
	REQUEST, /* an ordinary one, failed */
};

#define POOL BREAKER_POOL_EXHAUSTED
#define RATE BREAKER_ERROR_RATE
#define CLOSED BREAKER_CLOSED
#define OPEN BREAKER_OPEN
#define HALF BREAKER_HALF_OPEN
#define IDLE                     \
	{                        \
		true, true, 0, 0 \
	}
#define DRY                       \
	{                         \
		false, true, 0, 0 \
	} /* no account active */
#define ALONE                      \
	{                          \
		false, false, 0, 0 \
	} /* ... and no fallback */

/* Every state by every event. until: from now; round is 5, its probes as given. */
static const struct {
	const char *what;
	struct {
		enum breaker_state state;
		unsigned trigger;
		int64_t until;
		uint32_t sent, ok, failed;
	} from;
	enum event event;
	struct breaker_facts facts;
	struct {
		enum breaker_state state;
		unsigned trigger;
		int64_t until;
		uint32_t sent, ok, failed, round;
		bool write, moved, warn;
		enum breaker_answer answer;
		const char *text;
	} want;
} steps[] = {
    {"closed, look: stays", {CLOSED, 0, 0, 0, 0, 0}, LOOK, IDLE,
        {CLOSED, 0, 0, 0, 0, 0, 5, 0, 0, 0, BREAKER_YES, ""}},
    {"closed, look: pool exhausted", {CLOSED, 0, 0, 0, 0, 0}, LOOK, DRY,
        {OPEN, POOL, 60000, 0, 0, 0, 5, 1, 1, 1, BREAKER_NO,
            "open: pool_exhausted (no account active)"}},
    {"closed, look: pool exhausted without a fallback", {CLOSED, 0, 0, 0, 0, 0}, LOOK, ALONE,
        {CLOSED, 0, 0, 0, 0, 0, 5, 0, 0, 0, BREAKER_YES, ""}},
    {"closed, look: in a row", {CLOSED, 0, 0, 0, 0, 0}, LOOK, {true, false, 10, 0},
        {OPEN, BREAKER_CONSECUTIVE_FAIL, 60000, 0, 0, 0, 5, 1, 1, 1, BREAKER_NO,
            "open: consecutive_fail (10 >= 10)"}},
    {"closed, look: what asks for probes goes first", {CLOSED, 0, 0, 0, 0, 0}, LOOK,
        {false, true, 12, 0},
        {OPEN, BREAKER_CONSECUTIVE_FAIL, 60000, 0, 0, 0, 5, 1, 1, 1, BREAKER_NO,
            "open: consecutive_fail (12 >= 10)"}},
    {"closed, late probe ok: only the window", {CLOSED, 0, 0, 3, 2, 0}, OK, IDLE,
        {CLOSED, 0, 0, 3, 2, 0, 5, 1, 0, 0, BREAKER_YES, ""}},
    {"closed, late probe failed: only the window", {CLOSED, 0, 0, 3, 2, 0}, FAILED, IDLE,
        {CLOSED, 0, 0, 3, 2, 0, 5, 1, 0, 0, BREAKER_YES, ""}},
    {"closed, late probe neutral", {CLOSED, 0, 0, 3, 2, 0}, NEUTRAL, IDLE,
        {CLOSED, 0, 0, 3, 2, 0, 5, 0, 0, 0, BREAKER_YES, ""}},
    {"closed, older round ok", {CLOSED, 0, 0, 3, 2, 0}, OLD_OK, IDLE,
        {CLOSED, 0, 0, 3, 2, 0, 5, 0, 0, 0, BREAKER_YES, ""}},
    {"closed, older round failed", {CLOSED, 0, 0, 3, 2, 0}, OLD_FAILED, IDLE,
        {CLOSED, 0, 0, 3, 2, 0, 5, 0, 0, 0, BREAKER_YES, ""}},
    {"closed, request: only the window", {CLOSED, 0, 0, 0, 0, 0}, REQUEST, IDLE,
        {CLOSED, 0, 0, 0, 0, 0, 5, 1, 0, 0, BREAKER_YES, ""}},

    {"open, look: too early", {OPEN, RATE, 1, 0, 0, 0}, LOOK, IDLE,
        {OPEN, RATE, 1, 0, 0, 0, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open, look: time is over", {OPEN, RATE, 0, 3, 1, 2}, LOOK, {true, true, 99, 2},
        {HALF, RATE, 0, 0, 0, 0, 6, 1, 1, 0, BREAKER_PERMIT,
            "half-open: recovery time over (needs 2/3)"}},
    {"open, look: time is over, no account", {OPEN, RATE, -5, 0, 0, 0}, LOOK, DRY,
        {OPEN, RATE, 90000, 0, 0, 0, 5, 1, 0, 0, BREAKER_NO, ""}},
    {"open, look: too far ahead", {OPEN, RATE, 90001, 0, 0, 0}, LOOK, IDLE,
        {OPEN, RATE, 90000, 0, 0, 0, 5, 1, 0, 1, BREAKER_NO,
            "open: its time lay too far ahead, next try in 90s"}},
    {"open, look: just as far as may be", {OPEN, RATE, 90000, 0, 0, 0}, LOOK, IDLE,
        {OPEN, RATE, 90000, 0, 0, 0, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open by the pool, look: still exhausted", {OPEN, POOL, 5, 0, 0, 0}, LOOK, DRY,
        {OPEN, POOL, 5, 0, 0, 0, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open by the pool, look: still exhausted, time over", {OPEN, POOL, 0, 0, 0, 0}, LOOK, DRY,
        {OPEN, POOL, 90000, 0, 0, 0, 5, 1, 0, 0, BREAKER_NO, ""}},
    {"open by the pool, look: an account is active", {OPEN, POOL, 50000, 0, 0, 0}, LOOK, IDLE,
        {CLOSED, 0, 0, 0, 0, 0, 5, 1, 1, 0, BREAKER_YES, "closed: an account is active"}},
    {"open by the pool, look: no fallback left", {OPEN, POOL, 50000, 0, 0, 0}, LOOK, ALONE,
        {CLOSED, 0, 0, 0, 0, 0, 5, 1, 1, 0, BREAKER_YES, "closed: no fallback is usable"}},
    {"open by errors, look: no fallback left is no reason", {OPEN, RATE, 50000, 0, 0, 0}, LOOK,
        ALONE, {OPEN, RATE, 50000, 0, 0, 0, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open, late probe ok", {OPEN, RATE, 7, 3, 1, 2}, OK, IDLE,
        {OPEN, RATE, 7, 3, 1, 2, 5, 1, 0, 0, BREAKER_NO, ""}},
    {"open, late probe failed", {OPEN, RATE, 7, 3, 1, 2}, FAILED, IDLE,
        {OPEN, RATE, 7, 3, 1, 2, 5, 1, 0, 0, BREAKER_NO, ""}},
    {"open, late probe neutral", {OPEN, RATE, 7, 3, 1, 1}, NEUTRAL, IDLE,
        {OPEN, RATE, 7, 3, 1, 1, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open, older round ok", {OPEN, RATE, 7, 3, 1, 2}, OLD_OK, IDLE,
        {OPEN, RATE, 7, 3, 1, 2, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open, older round failed", {OPEN, RATE, 7, 3, 1, 2}, OLD_FAILED, IDLE,
        {OPEN, RATE, 7, 3, 1, 2, 5, 0, 0, 0, BREAKER_NO, ""}},
    {"open, request", {OPEN, RATE, 7, 0, 0, 0}, REQUEST, IDLE,
        {OPEN, RATE, 7, 0, 0, 0, 5, 1, 0, 0, BREAKER_NO, ""}},

    {"half-open, look: a permit is left", {HALF, RATE, 0, 2, 0, 1}, LOOK, {true, true, 99, 1},
        {HALF, RATE, 0, 2, 0, 1, 5, 0, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, look: all are under way", {HALF, RATE, 0, 3, 0, 0}, LOOK, {true, true, 0, 3},
        {HALF, RATE, 0, 3, 0, 0, 5, 0, 0, 0, BREAKER_SPENT, ""}},
    {"half-open, look: a worker died with its permit", {HALF, RATE, 0, 3, 1, 0}, LOOK,
        {true, true, 0, 1}, {HALF, RATE, 0, 2, 1, 0, 5, 0, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, look: results and those under way fill it", {HALF, RATE, 0, 1, 1, 1}, LOOK,
        {true, true, 0, 1}, {HALF, RATE, 0, 3, 1, 1, 5, 0, 0, 0, BREAKER_SPENT, ""}},
    {"half-open, look: no account is no trigger now", {HALF, RATE, 0, 0, 0, 0}, LOOK, DRY,
        {HALF, RATE, 0, 0, 0, 0, 5, 0, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, look: enough by another setting", {HALF, RATE, 0, 2, 2, 0}, LOOK, IDLE,
        {CLOSED, 0, 0, 2, 2, 0, 5, 1, 1, 0, BREAKER_YES, "closed: probes passed (2/3)"}},
    {"half-open, look: too few by another setting", {HALF, RATE, 0, 2, 0, 2}, LOOK, IDLE,
        {OPEN, RATE, 90000, 2, 0, 2, 5, 1, 1, 1, BREAKER_NO,
            "open: probes failed, next try in 90s"}},
    {"half-open, ok: one of two", {HALF, RATE, 0, 1, 0, 0}, OK, IDLE,
        {HALF, RATE, 0, 1, 1, 0, 5, 1, 0, 0, BREAKER_PERMIT, "probe ok (1/2 ok, 1/3 sent)"}},
    {"half-open, ok: one of two, others under way", {HALF, RATE, 0, 3, 0, 0}, OK, IDLE,
        {HALF, RATE, 0, 3, 1, 0, 5, 1, 0, 0, BREAKER_SPENT, "probe ok (1/2 ok, 3/3 sent)"}},
    {"half-open, ok: two of two", {HALF, RATE, 0, 2, 1, 0}, OK, IDLE,
        {CLOSED, 0, 0, 2, 2, 0, 5, 1, 1, 0, BREAKER_YES, "closed: probes passed (2/3)"}},
    {"half-open, failed: two remain", {HALF, RATE, 0, 1, 0, 0}, FAILED, IDLE,
        {HALF, RATE, 0, 1, 0, 1, 5, 1, 0, 0, BREAKER_PERMIT, "probe failed (0/2 ok, 1/3 sent)"}},
    {"half-open, failed: too few remain", {HALF, RATE, 0, 2, 0, 1}, FAILED, IDLE,
        {OPEN, RATE, 90000, 2, 0, 2, 5, 1, 1, 1, BREAKER_NO,
            "open: probes failed, next try in 90s"}},
    {"half-open, neutral: the permit comes back", {HALF, RATE, 0, 3, 1, 0}, NEUTRAL, IDLE,
        {HALF, RATE, 0, 2, 1, 0, 5, 1, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, neutral: never below the results", {HALF, RATE, 0, 2, 1, 1}, NEUTRAL, IDLE,
        {HALF, RATE, 0, 2, 1, 1, 5, 1, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, older round ok", {HALF, RATE, 0, 2, 1, 0}, OLD_OK, IDLE,
        {HALF, RATE, 0, 2, 1, 0, 5, 0, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, older round failed", {HALF, RATE, 0, 2, 0, 1}, OLD_FAILED, IDLE,
        {HALF, RATE, 0, 2, 0, 1, 5, 0, 0, 0, BREAKER_PERMIT, ""}},
    {"half-open, request", {HALF, RATE, 0, 2, 0, 1}, REQUEST, IDLE,
        {HALF, RATE, 0, 2, 0, 1, 5, 1, 0, 0, BREAKER_PERMIT, ""}},
};

static struct breaker_outcome
outcome_of(enum event event)
{
	bool old = event == OLD_OK || event == OLD_FAILED;
	bool ok = event == OK || event == OLD_OK;
	bool failed = event == FAILED || event == OLD_FAILED;

	return (struct breaker_outcome){
	    .requests = event != NEUTRAL,
	    .failed = failed || event == REQUEST,
	    .first_content_ms = -1,
	    .permit = event != REQUEST,
	    .probe = ok       ? BREAKER_PROBE_OK
	             : failed ? BREAKER_PROBE_FAILED
	                      : BREAKER_PROBE_NEUTRAL,
	    .round = old ? 4 : 5,
	};
}

static void
test_steps(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(steps); i++) {
		bool timed = steps[i].from.state == OPEN;
		struct breaker_row row = {.state = (uint8_t)steps[i].from.state,
		    .trigger = (uint8_t)steps[i].from.trigger,
		    .until_ms = timed ? T0 + steps[i].from.until : 0,
		    .round = 5,
		    .sent = steps[i].from.sent,
		    .ok = steps[i].from.ok,
		    .failed = steps[i].from.failed};
		struct breaker_outcome outcome = outcome_of(steps[i].event);
		struct breaker_change change;
		enum breaker_answer answer;
		int64_t until = steps[i].want.state == OPEN ? T0 + steps[i].want.until : 0;

		memset(&change, 0xff, sizeof change);
		if (steps[i].event == LOOK)
			breaker_look(
			    &row, &steps[i].facts, &standard, (struct wall_ms){T0}, &change);
		else
			breaker_result(&row, &outcome, &standard, (struct wall_ms){T0}, &change);
		answer = breaker_admit(&row, &standard);
		if (row.state == steps[i].want.state && row.trigger == steps[i].want.trigger &&
		    row.until_ms == until && row.sent == steps[i].want.sent &&
		    row.ok == steps[i].want.ok && row.failed == steps[i].want.failed &&
		    row.round == steps[i].want.round && change.write == steps[i].want.write &&
		    change.moved == steps[i].want.moved && change.warn == steps[i].want.warn &&
		    change.from == steps[i].from.state && change.to == steps[i].want.state &&
		    change.until_ms == until && answer == steps[i].want.answer &&
		    strcmp(change.text, steps[i].want.text) == 0)
			continue;
		print_error("%s: %s by %s until %+lld, %u sent %u ok %u failed round %u, write %d "
		            "moved %d warn %d, answer %d, '%s'\n",
		    steps[i].what, breaker_state_name((enum breaker_state)row.state),
		    breaker_trigger_name(row.trigger), (long long)(row.until_ms - T0), row.sent,
		    row.ok, row.failed, row.round, change.write, change.moved, change.warn,
		    (int)answer, change.text);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* n requests of which some failed, or n times to first content, at one moment. */
static const struct {
	const char *what;
	unsigned triggers;
	int64_t rate_micros, latency_ms;
	unsigned requests, failures;
	int64_t slow_ms;
	unsigned slow;
	uint32_t consecutive;
	const char *text;
} bounds[] = {
    {"errors at the rate", RATE, 300000, 1, 20, 6, 0, 0, 0, "open: error_rate (30.0% >= 30%)"},
    {"errors below the rate", RATE, 300000, 1, 20, 5, 0, 0, 0, ""},
    {"errors above the rate", RATE, 300000, 1, 20, 9, 0, 0, 0, "open: error_rate (45.0% >= 30%)"},
    {"too few requests", RATE, 300000, 1, 19, 19, 0, 0, 0, ""},
    {"just enough requests", RATE, 300000, 1, 20, 20, 0, 0, 0, "open: error_rate (100.0% >= 30%)"},
    {"a rate that has no exact double, at", RATE, 70000, 1, 100, 7, 0, 0, 0,
        "open: error_rate (7.0% >= 7%)"},
    {"... and below", RATE, 70000, 1, 100, 6, 0, 0, 0, ""},
    {"a broken percentage", RATE, 333000, 1, 1000, 333, 0, 0, 0,
        "open: error_rate (33.3% >= 33.3%)"},
    {"all must fail, one did not", RATE, 1000000, 1, 20, 19, 0, 0, 0, ""},
    {"all must fail, all did", RATE, 1000000, 1, 20, 20, 0, 0, 0,
        "open: error_rate (100.0% >= 100%)"},
    {"no failure", RATE, 0, 1, 20, 0, 0, 0, 0, ""},
    {"errors, trigger off", 15 & ~RATE, 300000, 30000, 20, 20, 0, 0, 0, ""},
    {"slow at the limit", BREAKER_LATENCY, 1, 30000, 0, 0, 30000, 1, 0,
        "open: latency (30.0s >= 30s)"},
    {"slow below", BREAKER_LATENCY, 1, 30000, 0, 0, 29999, 3, 0, ""},
    {"slow above", BREAKER_LATENCY, 1, 30000, 0, 0, 31200, 3, 0, "open: latency (31.2s >= 30s)"},
    {"slow, in milliseconds", BREAKER_LATENCY, 1, 250, 0, 0, 260, 2, 0,
        "open: latency (260ms >= 250ms)"},
    {"nobody measured", BREAKER_LATENCY, 1, 1, 50, 50, 0, 0, 0, ""},
    {"slow, trigger off", 15 & ~BREAKER_LATENCY, 1000000, 1, 0, 0, 5, 30, 0, ""},
    {"in a row at", BREAKER_CONSECUTIVE_FAIL, 1, 1, 0, 0, 0, 0, 10,
        "open: consecutive_fail (10 >= 10)"},
    {"in a row below", BREAKER_CONSECUTIVE_FAIL, 1, 1, 0, 0, 0, 0, 9, ""},
    {"in a row above", BREAKER_CONSECUTIVE_FAIL, 1, 1, 0, 0, 0, 0, 70000,
        "open: consecutive_fail (70000 >= 10)"},
    {"in a row, trigger off", 15 & ~BREAKER_CONSECUTIVE_FAIL, 1000000, 1, 0, 0, 0, 0, 99, ""},
    {"no trigger at all", 0, 1, 1, 50, 50, 50000, 50, 99, ""},
    {"errors before latency", 15, 300000, 30000, 20, 20, 40000, 20, 99,
        "open: error_rate (50.0% >= 30%)"},
};

static void
feed(struct breaker_row *row, const struct breaker_policy *policy, struct wall_ms now, bool failed,
    int64_t first_content_ms)
{
	struct breaker_outcome outcome = {.requests = true,
	    .failed = failed,
	    .first_content_ms = first_content_ms,
	    .round = row->round};
	struct breaker_change change;

	breaker_result(row, &outcome, policy, now, &change);
	assert_false(change.moved);
}

static void
test_bounds(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(bounds); i++) {
		struct breaker_policy policy = standard;
		struct breaker_facts facts = {true, true, bounds[i].consecutive, 0};
		struct breaker_row row = {0};
		struct breaker_change change;
		struct wall_ms now = {T0};

		policy.triggers = bounds[i].triggers;
		policy.error_rate_micros = bounds[i].rate_micros;
		policy.latency_ms = bounds[i].latency_ms;
		for (unsigned n = 0; n < bounds[i].requests; n++)
			feed(&row, &policy, now, n < bounds[i].failures, -1);
		for (unsigned n = 0; n < bounds[i].slow; n++)
			feed(&row, &policy, now, false, bounds[i].slow_ms);
		breaker_look(&row, &facts, &policy, now, &change);
		if (strcmp(change.text, bounds[i].text) == 0 &&
		    row.state == (bounds[i].text[0] != '\0' ? OPEN : CLOSED))
			continue;
		print_error("%s: '%s', want '%s'\n", bounds[i].what, change.text, bounds[i].text);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Refused by ourselves, rate limited, cancelled: what counts is the caller's two bits. */
static void
test_what_counts(void **state)
{
	struct breaker_row row = {0};
	struct breaker_outcome outcome = {.first_content_ms = -1, .failed = true};
	struct breaker_change change;
	struct breaker_sums sums;

	(void)state;
	breaker_result(&row, &outcome, &standard, (struct wall_ms){T0}, &change);
	assert_false(change.write);
	outcome.requests = true;
	outcome.failed = false;
	breaker_result(&row, &outcome, &standard, (struct wall_ms){T0}, &change);
	assert_true(change.write);
	breaker_sums(&row, &standard, (struct wall_ms){T0}, &sums);
	assert_int_equal(sums.requests, 1);
	assert_int_equal(sums.failures, 0);
	assert_int_equal(sums.latency_n, 0);
}

/* Failures spread over the window open it; the same spread over twice the time do not. */
static void
test_ageing(void **state)
{
	static const struct {
		int64_t every_ms;
		bool opens;
	} rows[] = {{0, true}, {2900, true}, {6000, false}, {-1000, true}, {-60000, false}};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct breaker_row row = {0};
		struct breaker_facts facts = IDLE;
		struct breaker_change change;
		struct wall_ms now = {T0};

		for (unsigned n = 0; n < 20; n++) {
			now.v += rows[i].every_ms;
			feed(&row, &standard, now, true, -1);
		}
		breaker_look(&row, &facts, &standard, now, &change);
		if (change.moved != rows[i].opens)
			print_error("every %lld ms\n", (long long)rows[i].every_ms);
		assert_int_equal(change.moved, rows[i].opens);
	}
}

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(breaker_state_name(BREAKER_HALF_OPEN), "half-open");
	assert_string_equal(breaker_trigger_name(1), "pool_exhausted");
	assert_string_equal(breaker_trigger_name(2), "error_rate");
	assert_string_equal(breaker_trigger_name(4), "latency");
	assert_string_equal(breaker_trigger_name(8), "consecutive_fail");
	assert_string_equal(breaker_trigger_name(0), "");
	assert_string_equal(breaker_trigger_name(3), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_what_counts),
	    cmocka_unit_test(test_ageing),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
