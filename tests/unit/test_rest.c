#include "rest.h"

#include "base/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S 1000LL
#define MIN (60 * S)
#define H (60 * MIN)
#define DAY (24 * H)
#define NOW 1767607200000LL /* 2026-01-05T10:00:00Z */
#define NONE INT64_MIN      /* no reset was stated */

static struct arena *arena;
static const struct zone *utc, *shanghai;

static int
set_up(void **state)
{
	struct why why;

	(void)state;
	arena = arena_new((size_t)1 << 20);
	return zone_posix(arena, SPAN("UTC0"), &utc, &why) != ERR_OK ||
	       zone_posix(arena, SPAN("CST-8"), &shanghai, &why) != ERR_OK;
}

static int
tear_down(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static struct conf_policy
policy(const struct zone *zone)
{
	return (struct conf_policy){.cooldown = {.soft_rate_ms = MIN,
	                                .soft_rate_max_ms = 2 * H,
	                                .stated_max_ms = DAY,
	                                .not_found_ms = 30 * S,
	                                .overload_ms = 10 * S,
	                                .hard_credit_minute = 4 * 60,
	                                .zone = zone}};
}

static const struct {
	const char *what;
	enum verdict verdict;
	int status;
	int64_t stated; /* from now */
	unsigned streak;
	int64_t want;       /* from now; 0 = does not rest */
	bool guessed, kept; /* kept: reset_at is what was stated */
} rests[] = {
    {"soft rate, first", VERDICT_SOFT_RATE, 429, NONE, 1, MIN, true, false},
    {"soft rate, second", VERDICT_SOFT_RATE, 429, NONE, 2, 2 * MIN, true, false},
    {"soft rate, third", VERDICT_SOFT_RATE, 429, NONE, 3, 4 * MIN, true, false},
    {"soft rate, seventh: 64 minutes", VERDICT_SOFT_RATE, 429, NONE, 7, 64 * MIN, true, false},
    {"soft rate, eighth: the most", VERDICT_SOFT_RATE, 429, NONE, 8, 2 * H, true, false},
    {"soft rate, 255th", VERDICT_SOFT_RATE, 429, NONE, 255, 2 * H, true, false},
    {"soft rate of no new incident yet", VERDICT_SOFT_RATE, 429, NONE, 0, MIN, true, false},
    {"stated beats any streak", VERDICT_SOFT_RATE, 429, 20 * S, 9, 20 * S, false, true},
    {"stated hours away is not cut to the guess's cap", VERDICT_SOFT_RATE, 429, 5 * H, 1, 5 * H,
        false, true},
    {"stated beyond stated_max", VERDICT_SOFT_RATE, 429, 40 * DAY, 1, DAY, false, true},
    {"rate wording at a 503", VERDICT_SOFT_RATE, 503, 40 * DAY, 1, 2 * H, false, true},
    {"stated in the past", VERDICT_SOFT_RATE, 429, -5 * S, 2, 2 * MIN, true, false},
    {"stated now", VERDICT_SOFT_RATE, 429, 0, 1, MIN, true, false},
    {"stated in the year 9999", VERDICT_SOFT_RATE, 429, 253370764800000LL - NOW, 1, MIN, true,
        false},
    {"model limit, guessed: no doubling", VERDICT_MODEL_RATE, 429, NONE, 5, MIN, true, false},
    {"model limit, stated", VERDICT_MODEL_RATE, 429, 90 * S, 1, 90 * S, false, true},
    {"model limit, stated far away", VERDICT_MODEL_RATE, 429, DAY, 1, 2 * H, false, true},
    {"model missing", VERDICT_MODEL_MISSING, 404, NONE, 3, 30 * S, true, false},
    {"model missing states nothing", VERDICT_MODEL_MISSING, 404, H, 0, 30 * S, true, false},
    {"not found: no back-off", VERDICT_NOT_FOUND, 404, NONE, 6, 30 * S, true, false},
    {"not found states nothing", VERDICT_NOT_FOUND, 404, H, 0, 30 * S, true, false},
    {"overload", VERDICT_OVERLOAD, 529, NONE, 4, 10 * S, true, false},
    {"overload, stated", VERDICT_OVERLOAD, 503, 5 * S, 0, 5 * S, false, true},
    {"overload, stated far away", VERDICT_OVERLOAD, 503, DAY, 0, 2 * H, false, true},
    {"credit, stated", VERDICT_HARD_CREDIT, 402, 3 * H, 1, 3 * H, false, true},
    {"credit, stated far away", VERDICT_HARD_CREDIT, 402, 30 * DAY, 1, DAY, false, true},
    {"credit at a 500, stated", VERDICT_HARD_CREDIT, 500, 5 * H, 1, 5 * H, false, true},
    {"credit: the next 04:00, no guess", VERDICT_HARD_CREDIT, 402, NONE, 1, 18 * H, false, false},
    {"server", VERDICT_SERVER, 500, NONE, 3, 0, false, false},
    {"server with a day of Retry-After", VERDICT_SERVER, 504, DAY, 1, 2 * H, false, true},
    {"network", VERDICT_NETWORK, 0, H, 1, 0, false, false},
    {"auth", VERDICT_AUTH_FAILED, 401, H, 1, 0, false, false},
    {"session dead", VERDICT_SESSION_DEAD, 401, H, 1, 0, false, false},
    {"client", VERDICT_CLIENT, 400, H, 1, 0, false, false},
    {"context length", VERDICT_CONTEXT_LENGTH, 400, H, 1, 0, false, false},
    {"unexplained", VERDICT_UNEXPLAINED, 403, H, 1, 0, false, false},
    {"cancelled", VERDICT_CANCELLED, 0, H, 1, 0, false, false},
    {"nobody", VERDICT_NOBODY, 0, H, 1, 0, false, false},
    {"ok", VERDICT_OK, 200, H, 1, 0, false, false},
};

static void
test_table(void **state)
{
	struct conf_policy p = policy(utc);

	(void)state;
	for (size_t i = 0; i < NELEM(rests); i++) {
		struct wall_ms now = {NOW};
		struct reset_time reset = {.stated = rests[i].stated != NONE};
		struct rest got;

		if (reset.stated)
			reset.at.v = NOW + rests[i].stated;
		got =
		    rest_after(rests[i].verdict, rests[i].status, &reset, &p, rests[i].streak, now);
		if (got.rests != (rests[i].want != 0) || got.guessed != rests[i].guessed ||
		    (got.rests && got.until.v - NOW != rests[i].want) ||
		    got.reset_at.v != (rests[i].kept ? reset.at.v : 0))
			fail_msg("%s: rests %d guessed %d for %lld ms, reset at %lld",
			    rests[i].what, got.rests, got.guessed, (long long)(got.until.v - NOW),
			    (long long)got.reset_at.v);
	}
}

static const struct {
	const char *now, *until;
	bool in_shanghai;
	int minute;
} credits[] = {
    {"2026-01-05T03:59:59Z", "2026-01-05T04:00:00Z", false, 240},
    {"2026-01-05T04:00:00Z", "2026-01-06T04:00:00Z", false, 240}, /* strictly after now */
    {"2026-01-05T04:00:01Z", "2026-01-06T04:00:00Z", false, 240},
    {"2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z", false, 0},
    {"2026-01-05T10:00:00Z", "2026-01-05T20:00:00Z", true, 240}, /* 04:00 there is 20:00 here */
    {"2026-01-05T19:59:59Z", "2026-01-05T20:00:00Z", true, 240},
    {"2026-02-28T20:00:00Z", "2026-03-01T20:00:00Z", true, 240},
    {"2026-01-05T10:00:00Z", "2026-01-05T15:59:00Z", true, 1439},
};

static void
test_credit_hour(void **state)
{
	static const struct reset_time nothing;

	(void)state;
	for (size_t i = 0; i < NELEM(credits); i++) {
		struct conf_policy p = policy(credits[i].in_shanghai ? shanghai : utc);
		struct wall_ms now;
		struct rest got;
		char text[DATE_TEXT];

		p.cooldown.hard_credit_minute = credits[i].minute;
		assert_true(date_rfc3339(text_span(credits[i].now), &now));
		got = rest_after(VERDICT_HARD_CREDIT, 402, &nothing, &p, 1, now);
		date_print(got.until, text);
		assert_string_equal(text, credits[i].until);
		assert_false(got.guessed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_credit_hour),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
