#include "base/zone.h"

#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const struct zone *
load(const char *name)
{
	const struct zone *zone = NULL;
	struct why why;

	if (zone_load(arena, text_span(name), NULL, &zone, &why) != ERR_OK)
		fail_msg("%s: %s", name, why.text);
	return zone;
}

static struct wall_ms
at(const char *text)
{
	struct wall_ms t;

	if (!date_rfc3339(text_span(text), &t))
		fail_msg("'%s' is no time", text);
	return t;
}

static int
compare(const char *what, struct wall_ms got, const char *want)
{
	char text[DATE_TEXT];

	date_print(got, text);
	if (strcmp(text, want) == 0)
		return 0;
	print_error("%s: got %s, want %s\n", what, text, want);
	return 1;
}

static void
test_load(void **state)
{
	static const struct {
		const char *what, *name;
		enum err want;
		int32_t offset;
	} rows[] = {
	    {"UTC", "UTC", ERR_OK, 0},
	    {"small", "utc", ERR_OK, 0},
	    {"GMT", "GMT", ERR_OK, 0},
	    {"Z", "Z", ERR_OK, 0},
	    {"east", "+08:00", ERR_OK, 28800},
	    {"west", "-03:30", ERR_OK, -12600},
	    {"with name", "UTC+8", ERR_OK, 28800},
	    {"a name", "Asia/Shanghai", ERR_OK, 28800},
	    {"a name with digits and sign", "Etc/GMT+8", ERR_OK, -28800},
	    {"unknown", "Asia/Atlantis", ERR_NOT_FOUND, 0},
	    {"empty", "", ERR_NOT_FOUND, 0},
	    {"upwards", "../zoneinfo/UTC", ERR_NOT_FOUND, 0},
	    {"upwards inside", "Asia/../UTC", ERR_NOT_FOUND, 0},
	    {"absolute", "/etc/localtime", ERR_NOT_FOUND, 0},
	    {"a folder", "Asia", ERR_NOT_FOUND, 0},
	    {"not a zone file", "leapseconds", ERR_BAD_INPUT, 0},
	    {"with leap seconds", "right/UTC", ERR_BAD_INPUT, 0},
	    {"control character", "Asia/Shang\nhai", ERR_NOT_FOUND, 0},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct zone *zone = NULL;
		struct why why = {.text = ""};
		enum err rc = zone_load(arena, text_span(rows[i].name), NULL, &zone, &why);
		int32_t offset =
		    rc == ERR_OK ? zone_offset(zone, (struct wall_ms){1767607200000}) : 0;

		if (rc != rows[i].want || offset != rows[i].offset ||
		    (rc != ERR_OK && why.text[0] == 0)) {
			print_error("%s: '%s': got %d, offset %d, '%s'; want %d, offset %d\n",
			    rows[i].what, rows[i].name, (int)rc, offset, why.text,
			    (int)rows[i].want, rows[i].offset);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* A damaged file is refused whatever its length. */
static void
test_damaged(void **state)
{
	static char file[8192];
	char dir[] = "/tmp/test_zone.XXXXXX", path[64];
	const struct zone *zone;
	FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(file, 1, sizeof file, f);
	fclose(f);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/X", dir);
	for (size_t cut = 0; cut <= n; cut += cut < 60 || cut > n - 60 ? 1 : 41) {
		f = fopen(path, "wb");
		assert_non_null(f);
		fwrite(file, 1, cut, f);
		fclose(f);
		if (cut < n)
			assert_int_not_equal(zone_load(arena, SPAN("X"), dir, &zone, NULL), ERR_OK);
	}
	assert_int_equal(zone_load(arena, SPAN("X"), dir, &zone, NULL), ERR_OK);
	file[20] = '\x7f'; /* absurd counts */
	f = fopen(path, "wb");
	assert_non_null(f);
	fwrite(file, 1, n, f);
	fclose(f);
	assert_int_equal(zone_load(arena, SPAN("X"), dir, &zone, NULL), ERR_BAD_INPUT);
	unlink(path);
	rmdir(dir);
}

static const char *const names[] = {"Europe/Berlin", "America/Los_Angeles", "America/New_York",
    "Australia/Lord_Howe", "Europe/Dublin", "Asia/Shanghai", "Asia/Kathmandu", "Pacific/Apia",
    "America/Santiago", "Africa/Casablanca", "Asia/Gaza", "America/Sao_Paulo", "Pacific/Chatham",
    "Africa/Cairo"};

/* The C library reads the same files in its own way: both must agree, in the table and behind it. */
static void
test_against_libc(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(names); i++) {
		const struct zone *zone = load(names[i]);

		setenv("TZ", names[i], 1);
		tzset();
		/* 1970 to 2084, with a step that visits all hours and days */
		for (time_t t = 0; t < 3600000000 && bad < 10; t += 311 * 977) {
			struct wall_ms wall = {(int64_t)t * 1000};
			struct tm tm;

			localtime_r(&t, &tm);
			if (zone_offset(zone, wall) != tm.tm_gmtoff) {
				print_error("%s at %lld: got %d, want %ld\n", names[i],
				    (long long)t, zone_offset(zone, wall), tm.tm_gmtoff);
				bad++;
			}
		}
	}
	unsetenv("TZ");
	tzset();
	assert_int_equal(bad, 0);
}

static void
test_instant(void **state)
{
	static const struct {
		const char *what, *zone;
		struct date_civil c;
		const char *want;
	} rows[] = {
	    {"fixed", "+08:00", {2026, 8, 25, 7, 41, 44}, "2026-08-24T23:41:44Z"},
	    {"no summer time", "Asia/Shanghai", {2026, 8, 25, 7, 41, 44}, "2026-08-24T23:41:44Z"},
	    {"winter", "Europe/Berlin", {2026, 1, 5, 11, 0, 0}, "2026-01-05T10:00:00Z"},
	    {"summer", "Europe/Berlin", {2026, 7, 5, 12, 0, 0}, "2026-07-05T10:00:00Z"},
	    {"gap: later", "Europe/Berlin", {2026, 3, 29, 2, 30, 0}, "2026-03-29T01:30:00Z"},
	    {"overlap: later", "Europe/Berlin", {2026, 10, 25, 2, 30, 0}, "2026-10-25T01:30:00Z"},
	    {"gap west", "America/Los_Angeles", {2026, 3, 8, 2, 30, 0}, "2026-03-08T10:30:00Z"},
	    {"overlap west", "America/Los_Angeles", {2026, 11, 1, 1, 30, 0},
	        "2026-11-01T09:30:00Z"},
	    {"end of the gap", "Europe/Berlin", {2026, 3, 29, 3, 0, 0}, "2026-03-29T01:00:00Z"},
	    {"half an hour", "Australia/Lord_Howe", {2026, 10, 4, 2, 15, 0},
	        "2026-10-03T15:45:00Z"},
	    {"a day that never was", "Pacific/Apia", {2011, 12, 30, 12, 0, 0},
	        "2011-12-30T22:00:00Z"},
	    {"behind the table, summer", "Europe/Berlin", {2080, 7, 1, 2, 0, 0},
	        "2080-07-01T00:00:00Z"},
	    {"behind the table, gap", "Europe/Berlin", {2080, 3, 31, 2, 30, 0},
	        "2080-03-31T01:30:00Z"},
	    {"south, new year", "America/Santiago", {2080, 1, 1, 0, 0, 0}, "2080-01-01T03:00:00Z"},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		bad += compare(
		    rows[i].what, zone_instant(load(rows[i].zone), &rows[i].c), rows[i].want);
	assert_int_equal(bad, 0);
}

static void
test_next(void **state)
{
	static const struct {
		const char *what, *zone, *now;
		int hour, minute;
		const char *want;
	} rows[] = {
	    {"later today", "UTC", "2026-01-05T03:59:59.999Z", 4, 0, "2026-01-05T04:00:00Z"},
	    {"exactly now is not after", "UTC", "2026-01-05T04:00:00Z", 4, 0,
	        "2026-01-06T04:00:00Z"},
	    {"a moment later", "UTC", "2026-01-05T04:00:00.001Z", 4, 0, "2026-01-06T04:00:00Z"},
	    {"over the month", "UTC", "2026-01-31T12:00:00Z", 4, 0, "2026-02-01T04:00:00Z"},
	    {"other day there", "Asia/Shanghai", "2026-01-05T19:59:00Z", 4, 0,
	        "2026-01-05T20:00:00Z"},
	    {"and after it", "Asia/Shanghai", "2026-01-05T20:00:00Z", 4, 0, "2026-01-06T20:00:00Z"},
	    {"short day", "Europe/Berlin", "2026-03-28T03:00:00Z", 4, 0, "2026-03-29T02:00:00Z"},
	    {"long day", "Europe/Berlin", "2026-10-24T02:00:00Z", 4, 0, "2026-10-25T03:00:00Z"},
	    {"in the gap", "Europe/Berlin", "2026-03-29T00:00:00Z", 2, 30, "2026-03-29T01:30:00Z"},
	    {"after the gap", "Europe/Berlin", "2026-03-29T01:30:00Z", 2, 30,
	        "2026-03-30T00:30:00Z"},
	    {"first of two", "Europe/Berlin", "2026-10-25T00:00:00Z", 2, 30,
	        "2026-10-25T01:30:00Z"},
	    {"between the two", "Europe/Berlin", "2026-10-25T00:45:00Z", 2, 30,
	        "2026-10-25T01:30:00Z"},
	    {"midnight Pacific", "America/Los_Angeles", "2026-07-01T06:59:00Z", 0, 0,
	        "2026-07-01T07:00:00Z"},
	    {"behind the table", "Europe/Berlin", "2080-07-01T02:00:00Z", 4, 0,
	        "2080-07-02T02:00:00Z"},
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		bad += compare(rows[i].what,
		    zone_next(load(rows[i].zone), at(rows[i].now), rows[i].hour, rows[i].minute),
		    rows[i].want);
	assert_int_equal(bad, 0);
}

/* OPS-13: one 04:00 a day, all through the years, also where days have 23 and 25 hours. */
static void
test_one_a_day(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(names); i++) {
		const struct zone *zone = load(names[i]);
		struct wall_ms t = at("2020-01-01T00:00:00Z"), last = zone_next(zone, t, 4, 0);
		int short_days = 0, long_days = 0;

		for (int day = 0; day < 9000; day++) {
			struct wall_ms next = zone_next(zone, last, 4, 0);
			int64_t hours_ms = next.v - last.v;
			struct date_civil c;

			date_split(next.v / 1000 + zone_offset(zone, next), &c);
			assert_int_equal(c.hour * 60 + c.minute, 240);
			assert_in_range(hours_ms, 23 * 3600000, 25 * 3600000);
			/* any time between leads to the same instant */
			assert_int_equal(
			    zone_next(zone, (struct wall_ms){next.v - 1}, 4, 0).v, next.v);
			assert_int_equal(
			    zone_next(zone, (struct wall_ms){last.v + hours_ms / 2}, 4, 0).v,
			    next.v);
			short_days += hours_ms < 24 * 3600000;
			long_days += hours_ms > 24 * 3600000;
			last = next;
		}
		if (strcmp(names[i], "Europe/Berlin") == 0) {
			assert_in_range(short_days, 24, 25);
			assert_in_range(long_days, 24, 25);
		}
	}
}

static void
test_posix(void **state)
{
	static const struct {
		const char *what, *rule, *at;
		int32_t want;
	} rows[] = {
	    {"winter", "PST8PDT,M3.2.0,M11.1.0", "2026-03-08T09:59:59Z", -28800},
	    {"summer", "PST8PDT,M3.2.0,M11.1.0", "2026-03-08T10:00:00Z", -25200},
	    {"last of summer", "PST8PDT,M3.2.0,M11.1.0", "2026-11-01T08:59:59Z", -25200},
	    {"winter again", "PST8PDT,M3.2.0,M11.1.0", "2026-11-01T09:00:00Z", -28800},
	    {"no summer", "<+0545>-5:45", "2026-07-01T00:00:00Z", 20700},
	    {"summer all year", "XXX3EDT4,0/0,J365/23", "2026-12-31T23:59:00Z", -14400},
	    {"day of the year", "STD0DST,J60,J300", "2024-03-01T01:59:59Z", 0},
	    {"day of the year, leap", "STD0DST,J60,J300", "2024-03-01T02:00:00Z", 3600},
	    {"time before the day", "STD0DST,M3.5.0/-2,M10.5.0/-1", "2026-03-28T22:00:00Z", 3600},
	};
	static const char *const refused[] = {"", "PS8", "PST", "PST8PDT", "PST8PDT,M3.2.0",
	    "PST8PDT,M13.2.0,M11.1.0", "PST8PDT,M3.6.0,M11.1.0", "PST8PDT,M3.2.7,M11.1.0",
	    "PST8PDT,M3.2.0,M11.1.0x", "PST999", "<PST8"};
	const struct zone *zone;
	struct why why;
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		assert_int_equal(zone_posix(arena, text_span(rows[i].rule), &zone, &why), ERR_OK);
		if (zone_offset(zone, at(rows[i].at)) != rows[i].want) {
			print_error("%s: got %d, want %d\n", rows[i].what,
			    zone_offset(zone, at(rows[i].at)), rows[i].want);
			bad++;
		}
	}
	for (size_t i = 0; i < NELEM(refused); i++)
		if (zone_posix(arena, text_span(refused[i]), &zone, &why) != ERR_BAD_INPUT) {
			print_error("'%s' was taken\n", refused[i]);
			bad++;
		}
	assert_int_equal(bad, 0);
}

static void
test_host_zone(void **state)
{
	static const char *const hosts[] = {"UTC", "Asia/Tokyo", "America/New_York", ":bogus", ""};

	for (size_t i = 0; i < NELEM(hosts); i++) {
		setenv("TZ", hosts[i], 1);
		tzset();
		test_instant(state);
		test_next(state);
	}
	unsetenv("TZ");
	tzset();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_load),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_against_libc),
	    cmocka_unit_test(test_instant),
	    cmocka_unit_test(test_next),
	    cmocka_unit_test(test_one_a_day),
	    cmocka_unit_test(test_posix),
	    cmocka_unit_test(test_host_zone),
	};

	return cmocka_run_group_tests(tests, in_arena_begin, in_arena_end);
}
