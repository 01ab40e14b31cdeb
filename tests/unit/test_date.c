#include "base/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1767607200000) /* 2026-01-05T10:00:00Z */
#define NONE INT64_MIN

static const struct wall_ms now = {NOW_MS};

struct row {
	const char *what, *text;
	int64_t want;
};

static int
compare(const struct row *row, int64_t got)
{
	if (got == row->want)
		return 0;
	print_error("%s: '%s': got %lld, want %lld\n", row->what, row->text, (long long)got,
	    (long long)row->want);
	return 1;
}

static void
test_civil(void **state)
{
	static const struct {
		int64_t s;
		struct date_civil c;
	} rows[] = {
	    {0, {1970, 1, 1, 0, 0, 0}},
	    {-1, {1969, 12, 31, 23, 59, 59}},
	    {951782400, {2000, 2, 29, 0, 0, 0}},
	    {951868800, {2000, 3, 1, 0, 0, 0}},
	    {1767607200, {2026, 1, 5, 10, 0, 0}},
	    {4107542400, {2100, 3, 1, 0, 0, 0}},
	    {253402300799, {9999, 12, 31, 23, 59, 59}},
	    {-62167219200, {0, 1, 1, 0, 0, 0}},
	};
	struct date_civil c;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		assert_int_equal(date_seconds(&rows[i].c), rows[i].s);
		date_split(rows[i].s, &c);
		assert_memory_equal(&c, &rows[i].c, sizeof c);
	}
	for (int64_t day = -200000; day < 3000000; day += 37) {
		date_split(day * 86400 + 12345, &c);
		assert_int_equal(date_seconds(&c), day * 86400 + 12345);
	}
}

static void
test_print(void **state)
{
	char out[DATE_TEXT];

	(void)state;
	date_print(now, out);
	assert_string_equal(out, "2026-01-05T10:00:00Z");
	date_print((struct wall_ms){-5}, out);
	assert_string_equal(out, "1970-01-01T00:00:00Z");
	date_print((struct wall_ms){INT64_MAX}, out);
	assert_string_equal(out, "9999-12-31T23:59:59Z");
}

static void
test_rfc3339(void **state)
{
	static const struct row rows[] = {
	    {"plain", "2026-01-05T10:00:00Z", NOW_MS},
	    {"small letters", "2026-01-05t10:00:00z", NOW_MS},
	    {"blank", "2026-01-05 10:00:00Z", NOW_MS},
	    {"fraction", "2026-01-05T10:00:00.25Z", NOW_MS + 250},
	    {"long fraction", "2026-01-05T10:00:00.123456789Z", NOW_MS + 123},
	    {"east", "2026-01-05T18:00:00+08:00", NOW_MS},
	    {"west", "2026-01-05T06:30:00-03:30", NOW_MS},
	    {"leap second", "2016-12-31T23:59:60Z", 1483228800000},
	    {"leap day", "2024-02-29T00:00:00Z", 1709164800000},
	    {"last", "9999-12-31T23:59:59Z", 253402300799000},
	    {"no leap day", "2026-02-29T00:00:00Z", NONE},
	    {"no such month", "2026-13-01T00:00:00Z", NONE},
	    {"hour 24", "2026-01-05T24:00:00Z", NONE},
	    {"second 61", "2026-01-05T10:00:61Z", NONE},
	    {"no zone", "2026-01-05T10:00:00", NONE},
	    {"zone by name", "2026-01-05T10:00:00UTC", NONE},
	    {"text behind", "2026-01-05T10:00:00Z ", NONE},
	    {"text before", " 2026-01-05T10:00:00Z", NONE},
	    {"short year", "226-01-05T10:00:00Z", NONE},
	    {"before 1970", "1969-12-31T23:59:59Z", NONE},
	    {"before 1970 by its offset", "1970-01-01T00:00:00+01:00", NONE},
	    {"offset beyond a day", "2026-01-05T10:00:00+25:00", NONE},
	    {"half an offset", "2026-01-05T10:00:00+08", NONE},
	    {"date only", "2026-01-05", NONE},
	    {"empty", "", NONE},
	    {"dot without digits", "2026-01-05T10:00:00.Z", NONE},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct wall_ms t = {NONE};

		if (!date_rfc3339(text_span(rows[i].text), &t))
			assert_int_equal(t.v, NONE);
		bad += compare(&rows[i], t.v);
	}
	assert_int_equal(bad, 0);
}

static void
test_http(void **state)
{
	static const struct row rows[] = {
	    {"IMF-fixdate", "Mon, 05 Jan 2026 10:00:00 GMT", NOW_MS},
	    {"RFC 850", "Monday, 05-Jan-26 10:00:00 GMT", NOW_MS},
	    {"asctime", "Mon Jan  5 10:00:00 2026", NOW_MS},
	    {"asctime, two digits", "Wed Oct 21 07:28:00 2026", 1792567680000},
	    {"blanks around", "  Mon, 05 Jan 2026 10:00:00 GMT\r\n", NOW_MS},
	    {"other case", "mon, 05 jan 2026 10:00:00 GMT", NOW_MS},
	    {"two digits, 49 years ahead", "Monday, 05-Jan-75 10:00:00 GMT", 3313908000000},
	    {"two digits, 29 years back", "Sunday, 05-Jan-97 10:00:00 GMT", 852458400000},
	    {"other zone", "Mon, 05 Jan 2026 10:00:00 CET", NONE},
	    {"numeric zone", "Mon, 05 Jan 2026 10:00:00 +0100", NONE},
	    {"no zone", "Mon, 05 Jan 2026 10:00:00", NONE},
	    {"no weekday", "05 Jan 2026 10:00:00 GMT", NONE},
	    {"no such weekday", "Moo, 05 Jan 2026 10:00:00 GMT", NONE},
	    {"no such month", "Mon, 05 Jen 2026 10:00:00 GMT", NONE},
	    {"day 32", "Mon, 32 Jan 2026 10:00:00 GMT", NONE},
	    {"three digits of year", "Mon, 05 Jan 126 10:00:00 GMT", NONE},
	    {"text behind", "Mon, 05 Jan 2026 10:00:00 GMT x", NONE},
	    {"much text behind", "Mon, 05 Jan 2026 10:00:00 GMT a b c d e f", NONE},
	    {"a number", "120", NONE},
	    {"empty", "", NONE},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct wall_ms t = {NONE};

		date_http(text_span(rows[i].text), now, &t);
		bad += compare(&rows[i], t.v);
	}
	assert_int_equal(bad, 0);
}

static void
test_go_duration(void **state)
{
	static const struct row rows[] = {
	    {"milliseconds", "12ms", 12},
	    {"seconds", "1s", 1000},
	    {"minutes and seconds", "6m0s", 360000},
	    {"three parts", "1h2m3s", 3723000},
	    {"fraction", "1.5s", 1500},
	    {"fraction alone", ".5s", 500},
	    {"zero", "0s", 0},
	    {"days", "1d2h", 93600000},
	    {"microseconds are rounded up", "1us", 1},
	    {"micro sign", "1500\xc2\xb5s", 2},
	    {"nanoseconds", "1000000ns", 1},
	    {"many digits of fraction", "7.6599999999999999999999s", 7660},
	    {"no unit", "12", NONE},
	    {"unit only", "s", NONE},
	    {"blank between", "6m 0s", NONE},
	    {"negative", "-1s", NONE},
	    {"unknown unit", "1w", NONE},
	    {"number at the end", "1s5", NONE},
	    {"overflow", "99999999999999999999s", NONE},
	    {"overflow by unit", "9999999999h", NONE},
	    {"overflow by sum", "2500000h2500000h", NONE},
	    {"exponent", "1e3s", NONE},
	    {"empty", "", NONE},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		int64_t ms = NONE;

		if (!date_go_duration(text_span(rows[i].text), &ms))
			assert_int_equal(ms, NONE);
		bad += compare(&rows[i], ms);
	}
	assert_int_equal(bad, 0);
}

static void
test_duration(void **state)
{
	static const struct row rows[] = {
	    {"milliseconds", "100ms", 100},
	    {"seconds", "30s", 30000},
	    {"minutes", "5m", 300000},
	    {"hours", "2h", 7200000},
	    {"days", "7d", 604800000},
	    {"zero", "0s", 0},
	    {"no unit", "30", NONE},
	    {"no number", "s", NONE},
	    {"two parts", "1m30s", NONE},
	    {"fraction", "1.5h", NONE},
	    {"negative", "-1s", NONE},
	    {"blank", "30 s", NONE},
	    {"capital", "30S", NONE},
	    {"overflow", "9223372036854775807d", NONE},
	    {"overflow of the number", "99999999999999999999s", NONE},
	    {"empty", "", NONE},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		int64_t ms = NONE;

		date_duration(text_span(rows[i].text), &ms);
		bad += compare(&rows[i], ms);
	}
	assert_int_equal(bad, 0);
}

static void
test_cut(void **state)
{
	static const struct {
		const char *what, *text;
		int64_t want;
		const char *rest;
	} rows[] = {
	    {"UTC", "UTC, then", 0, ", then"},
	    {"Z", "Z.", 0, "."},
	    {"a word that begins with Z", "Zurich", NONE, "Zurich"},
	    {"a word that begins with UTC", "UTCX", NONE, "UTCX"},
	    {"one digit", "UTC+8, x", 28800, ", x"},
	    {"blank before the sign", "UTC +8 x", 28800, " x"},
	    {"two digits", "GMT-03", -10800, ""},
	    {"minutes", "GMT+05:30)", 19800, ")"},
	    {"one digit and minutes", "UTC+5:45", 20700, ""},
	    {"bare", "+08:00x", 28800, "x"},
	    {"bare, together", "-0330", -12600, ""},
	    {"bare with hours only", "+08", NONE, "+08"},
	    {"three digits", "UTC+800", NONE, "UTC+800"},
	    {"hour 24", "UTC+24", NONE, "UTC+24"},
	    {"a dash", "UTC - then", 0, " - then"},
	    {"nothing", "", NONE, ""},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span rest = text_span(rows[i].text);
		int32_t got = 0;
		bool cut = date_cut_offset(&rest, &got);

		if ((cut ? got : NONE) != rows[i].want || !text_is(rest, rows[i].rest)) {
			print_error("%s: '%s': got %d %d, rest '%.*s'\n", rows[i].what,
			    rows[i].text, cut, got, (int)rest.n, rest.p);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_civil),
	    cmocka_unit_test(test_print),
	    cmocka_unit_test(test_rfc3339),
	    cmocka_unit_test(test_http),
	    cmocka_unit_test(test_go_duration),
	    cmocka_unit_test(test_duration),
	    cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
