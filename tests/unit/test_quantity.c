#include "conf/quantity.h"

#include "base/date.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *what, *text;
	int64_t want; /* -1: refused */
	const char *printed;
} sizes[] = {
    {"bytes", "1000", 1000, "1000"},
    {"zero", "0", 0, "0"},
    {"kilo", "64k", 65536, "64k"},
    {"capital", "64K", 65536, "64k"},
    {"mega", "32M", 33554432, "32M"},
    {"giga", "1G", 1073741824, "1G"},
    {"tera", "2T", 2199023255552, "2T"},
    {"carries over", "1024k", 1048576, "1M"},
    {"uneven", "1025k", 1049600, "1025k"},
    {"empty", "", -1, NULL},
    {"unit only", "k", -1, NULL},
    {"negative", "-1k", -1, NULL},
    {"minus zero", "-0k", -1, NULL},
    {"blank", "1 k", -1, NULL},
    {"two letters", "1kB", -1, NULL},
    {"fraction", "1.5M", -1, NULL},
    {"overflow", "9223372036854775807k", -1, NULL},
};

static void
test_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(sizes); i++) {
		char printed[QUANTITY_TEXT] = "";
		int64_t got = -1;

		if (!quantity_size(text_span(sizes[i].text), &got))
			got = -1;
		if (got >= 0)
			quantity_print_size(got, printed);
		if (got != sizes[i].want || (got >= 0 && strcmp(printed, sizes[i].printed) != 0))
			fail_msg("%s: '%s': got %lld '%s', want %lld", sizes[i].what, sizes[i].text,
			    (long long)got, printed, (long long)sizes[i].want);
	}
}

static const struct {
	int64_t ms;
	const char *want;
} durations[] = {{0, "0s"}, {1, "1ms"}, {999, "999ms"}, {1000, "1s"}, {1500, "1500ms"},
    {60000, "1m"}, {90000, "90s"}, {7200000, "2h"}, {604800000, "7d"}, {31536000000, "365d"}};

static void
test_durations(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(durations); i++) {
		char printed[QUANTITY_TEXT];
		int64_t again = -1;

		quantity_print_duration(durations[i].ms, printed);
		if (strcmp(printed, durations[i].want) != 0)
			fail_msg("%lld ms: got '%s', want '%s'", (long long)durations[i].ms,
			    printed, durations[i].want);
		if (!date_duration(text_span(printed), &again) || again != durations[i].ms)
			fail_msg("'%s' reads back as %lld", printed, (long long)again);
	}
}

static const struct {
	const char *text;
	int64_t want;
} clocks[] = {{"00:00", 0}, {"04:00", 240}, {"23:59", 1439}, {"24:00", -1}, {"12:60", -1},
    {"4:00", -1}, {"04:0", -1}, {"", -1}, {"-1:00", -1}, {"04:-1", -1}, {"04-00", -1},
    {"04:00 ", -1}};

static void
test_clocks(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(clocks); i++) {
		char printed[QUANTITY_TEXT];
		int64_t got = -1;

		if (!quantity_clock(text_span(clocks[i].text), &got))
			got = -1;
		if (got != clocks[i].want)
			fail_msg("'%s': got %lld, want %lld", clocks[i].text, (long long)got,
			    (long long)clocks[i].want);
		if (got < 0)
			continue;
		quantity_print_clock(got, printed);
		assert_string_equal(printed, clocks[i].text);
	}
}

static const struct {
	const char *text;
	double want;
	const char *printed; /* NULL: refused */
} reals[] = {{"0", 0, "0"}, {"-0.0", 0, "0"}, {"0.07", 0.07, "0.07"}, {"0.3", 0.3, "0.3"},
    {"10", 10, "10"}, {"-2.5", -2.5, "-2.5"}, {"1e3", 1000, "1000"}, {"1E+3", 1000, "1000"},
    {"25e-1", 2.5, "2.5"}, {"0.000001", 1e-6, "1e-06"},
    {"123456789012345", 123456789012345.0, "123456789012345"}, {"1e-400", 0, "0"},
    {"0e999", 0, "0"}, {"1e400", 0, NULL}, {"1e99999", 0, NULL}, {"", 0, NULL}, {"-", 0, NULL},
    {"1x", 0, NULL}, {"1..2", 0, NULL}, {"1e", 0, NULL}};

static void
test_reals(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(reals); i++) {
		char printed[QUANTITY_TEXT];
		double got = 0;

		if (quantity_real(text_span(reals[i].text), &got) != (reals[i].printed != NULL))
			fail_msg(
			    "'%s': taken where it should not be, or the reverse", reals[i].text);
		if (reals[i].printed == NULL)
			continue;
		quantity_print_real(got, printed);
		if (got < reals[i].want || got > reals[i].want ||
		    strcmp(printed, reals[i].printed) != 0)
			fail_msg("'%s': got %.17g '%s', want %.17g '%s'", reals[i].text, got,
			    printed, reals[i].want, reals[i].printed);
	}
}

static const struct {
	int64_t micros;
	const char *want;
} micros[] = {{0, "0"}, {1, "0.000001"}, {2500, "0.0025"}, {1000000, "1"}, {1230000, "1.23"},
    {1000000000000000000, "1000000000000"}};

static void
test_micros(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(micros); i++) {
		char printed[QUANTITY_TEXT];

		quantity_print_micros(micros[i].micros, printed);
		assert_string_equal(printed, micros[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_durations),
	    cmocka_unit_test(test_clocks),
	    cmocka_unit_test(test_reals),
	    cmocka_unit_test(test_micros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
