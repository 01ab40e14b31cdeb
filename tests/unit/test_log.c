#include "base/log.h"

#include "base/buf.h"
#include "base/scan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1767607200000LL /* 2026-01-05T10:00:00Z */
#define STAMP "2026-01-05T10:00:00Z"

static char path[] = "/tmp/sluice-log-XXXXXX";
static char text[1 << 18];

static int
set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd) != 0 || unlink(path) != 0;
}

/* What was written since the last call. */
static const char *
written(void)
{
	FILE *f = fopen(path, "r");
	size_t n = 0;

	if (f != NULL) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
		if (truncate(path, 0) != 0)
			n = 0;
	}
	text[n] = '\0';
	return text;
}

static int
tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static struct log *
open_log(enum log_level level, bool json)
{
	struct log *log = log_open(path, level, json);

	assert_non_null(log);
	return log;
}

static const struct {
	const char *what;
	struct log_field field;
	const char *json, *plain;
} cases[] = {
    {"text", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"v", 1}}, "\"k\":\"v\"", "k=\"v\""},
    {"empty", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"", 0}}, "\"k\":\"\"", "k=\"\""},
    {"nothing", {.key = "k", .type = LOG_FIELD_TEXT, .text = {NULL, 0}}, "\"k\":\"\"", "k=\"\""},
    {"number", {.key = "k", .type = LOG_FIELD_NUMBER, .number = -5}, "\"k\":-5", "k=-5"},
    {"smallest number", {.key = "k", .type = LOG_FIELD_NUMBER, .number = INT64_MIN},
        "\"k\":-9223372036854775808", "k=-9223372036854775808"},
    {"JSON", {.key = "k", .type = LOG_FIELD_JSON, .text = {"[1,2]", 5}}, "\"k\":[1,2]", "k=[1,2]"},
    {"line ends", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"a\r\nb", 4}},
        "\"k\":\"a\\u000d\\nb\"", "k=\"a\\u000d\\nb\""},
    {"a forged field", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"\",\"level\":\"x", 12}},
        "\"k\":\"\\\",\\\"level\\\":\\\"x\"", "k=\"\\\",\\\"level\\\":\\\"x\""},
    {"NUL", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"a\0b", 3}}, "\"k\":\"a\\u0000b\"",
        "k=\"a\\u0000b\""},
    {"escape sequence", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"\x1b[2J", 4}},
        "\"k\":\"\\u001b[2J\"", "k=\"\\u001b[2J\""},
    {"orders to a terminal, without ESC",
        {.key = "k",
            .type = LOG_FIELD_TEXT,
            .text = {"\xc2\x9b"
                     "2J\x7f\xc2\xa9",
                7}},
        "\"k\":\"??2J?\xc2\xa9\"", "k=\"??2J?\xc2\xa9\""},
    {"the same in JSON", {.key = "k", .type = LOG_FIELD_JSON, .text = {"[\"\xc2\x9b\"]", 6}},
        "\"k\":[\"??\"]", "k=[\"??\"]"},
    {"no UTF-8", {.key = "k", .type = LOG_FIELD_TEXT, .text = {"\xff", 1}},
        "\"k\":\"\xef\xbf\xbd\"", "k=\"\xef\xbf\xbd\""},
};

static void
test_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * NELEM(cases); i++) {
		bool json = i % 2 == 0;
		struct log *log = open_log(LOG_LEVEL_INFO, json);
		char want[256];

		log_write(
		    log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "msg", &cases[i / 2].field, 1);
		if (json)
			snprintf(want, sizeof want,
			    "{\"time\":\"" STAMP "\",\"level\":\"info\",\"msg\":\"msg\",%s}\n",
			    cases[i / 2].json);
		else
			snprintf(want, sizeof want, STAMP " info msg %s\n", cases[i / 2].plain);
		if (strcmp(written(), want) != 0)
			fail_msg("%s: got %s want %s", cases[i / 2].what, text, want);
		log_close(&log);
		assert_null(log);
	}
}

static void
test_order_and_levels(void **state)
{
	struct log *log = open_log(LOG_LEVEL_WARN, true);
	struct wall_ms now = {NOW};

	(void)state;
	assert_false(log_wants(log, LOG_LEVEL_DEBUG));
	assert_false(log_wants(log, LOG_LEVEL_INFO));
	assert_true(log_wants(log, LOG_LEVEL_WARN));
	log_write(log, LOG_LEVEL_INFO, now, "quiet", NULL, 0);
	log_fields(log, LOG_LEVEL_ERROR, now, "loud", LOG_Z("b", "1"), LOG_NUMBER("a", 2),
	    LOG_JSON("c", SPAN("{}")));
	log_write(log, LOG_LEVEL_WARN, now, "bare", NULL, 0);
	assert_string_equal(written(),
	    "{\"time\":\"" STAMP
	    "\",\"level\":\"error\",\"msg\":\"loud\",\"b\":\"1\",\"a\":2,\"c\":{}}\n"
	    "{\"time\":\"" STAMP "\",\"level\":\"warn\",\"msg\":\"bare\"}\n");
	log_close(&log);
}

/* Whatever stands in the fields, each call makes one line, and a JSON line stays JSON. */
static void
test_hostile(void **state)
{
	static const char bytes[] = {
	    'x', '"', '\\', '\n', 0, 0x1f, (char)0xff, (char)0xc3, (char)0x80};
	static char value[100000];

	(void)state;
	for (size_t i = 0; i < 2 * NELEM(bytes); i++) {
		struct log *log = open_log(LOG_LEVEL_DEBUG, i % 2 == 0);
		struct log_field fields[20];
		const char *end;

		memset(value, bytes[i / 2], sizeof value);
		for (size_t k = 0; k < NELEM(fields); k++)
			fields[k] = LOG_TEXT("key", ((struct span){value, sizeof value >> k}));
		log_write(log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "m", fields, NELEM(fields));
		end = strchr(written(), '\n');
		if (end == NULL || end[1] != '\0')
			fail_msg("byte %02x: not one line: ...%s", (unsigned char)bytes[i / 2],
			    text + strlen(text) - 40);
		if (i % 2 == 0 && scan_pick((struct span){text, (size_t)(end - text)}, NULL, NULL,
		                      0, NULL) != ERR_OK)
			fail_msg("byte %02x: no JSON", (unsigned char)bytes[i / 2]);
		log_close(&log);
	}
}

static void
test_cut(void **state)
{
	struct log *log = open_log(LOG_LEVEL_INFO, true);
	static char value[3000];

	(void)state;
	for (size_t i = 0; i + 1 < sizeof value; i += 2)
		memcpy(value + i, "\xc3\xa9", 2); /* a value is not cut within a character */
	log_fields(log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "m",
	    LOG_TEXT("k", ((struct span){value, 1023})),
	    LOG_TEXT("l", ((struct span){value, sizeof value})));
	assert_null(strstr(written(), "\xef\xbf\xbd\xef"));
	assert_in_range(strlen(text), 2000, 2200);
	log_close(&log);
}

/* At most one line a second of the same kind, and how many were left out. */
static void
test_held_back(void **state)
{
	struct log *log = open_log(LOG_LEVEL_INFO, false);

	(void)state;
	for (int i = 0; i < 5; i++)
		log_write(log, LOG_LEVEL_WARN, (struct wall_ms){NOW + i * 199}, "storm", NULL, 0);
	assert_string_equal(written(), STAMP " warn storm\n");
	log_write(log, LOG_LEVEL_WARN, (struct wall_ms){NOW + 1000}, "storm", NULL, 0);
	assert_string_equal(written(), "2026-01-05T10:00:01Z warn storm left_out_before=4\n");
	log_write(log, LOG_LEVEL_WARN, (struct wall_ms){NOW + 1001}, "storm", NULL, 0);
	log_write(log, LOG_LEVEL_ERROR, (struct wall_ms){NOW + 1002}, "another", NULL, 0);
	assert_string_equal(written(), "2026-01-05T10:00:01Z error another left_out_before=1\n");
	log_write(log, LOG_LEVEL_WARN, (struct wall_ms){NOW + 1003}, "storm", NULL, 0);
	assert_string_equal(written(), "2026-01-05T10:00:01Z warn storm\n");
	log_write(
	    log, LOG_LEVEL_WARN, (struct wall_ms){NOW - 9000}, "storm", NULL, 0); /* set back */
	assert_non_null(strstr(written(), "warn storm\n"));
	for (int i = 0; i < 3; i++) /* a line for each request, whatever */
		log_write(log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "request", NULL, 0);
	assert_string_equal(
	    written(), STAMP " info request\n" STAMP " info request\n" STAMP " info request\n");
	log_close(&log);
}

static void
test_file(void **state)
{
	struct log *log = open_log(LOG_LEVEL_INFO, false);
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	errno = 77;
	log_write(log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "one", NULL, 0);
	assert_int_equal(errno, 77);
	log_close(&log);
	log = open_log(LOG_LEVEL_INFO, false); /* appended to */
	log_write(log, LOG_LEVEL_INFO, (struct wall_ms){NOW}, "two", NULL, 0);
	log_close(&log);
	assert_string_equal(written(), STAMP " info one\n" STAMP " info two\n");
	log_close(&log); /* nothing is there to close */
	assert_null(log_open("/nowhere/at/all", LOG_LEVEL_INFO, true));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_order_and_levels),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_held_back),
	    cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
