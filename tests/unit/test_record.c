#include "record.h"

#include "base/json.h"
#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1767607200000LL

static char path[] = "/tmp/sluice-record-XXXXXX";
static char line[1 << 16];
static struct arena *arena;
static struct log *log_json, *log_text;

static struct conf_account accounts[] = {{.id = SPAN("a1")}, {.id = SPAN("a2")}};
static struct conf_channel channel = {.name = SPAN("oa"), .accounts = accounts, .naccounts = 2};

static int
set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || close(fd) != 0)
		return -1;
	arena = arena_new((size_t)1 << 22);
	log_json = log_open(path, LOG_LEVEL_INFO, true);
	log_text = log_open(path, LOG_LEVEL_INFO, false);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	log_close(&log_json);
	log_close(&log_text);
	arena_free(&arena);
	return unlink(path);
}

/* The one line that was written since the last call, without its end. */
static struct span
written(void)
{
	FILE *f = fopen(path, "r");
	size_t n = 0;

	if (f != NULL) {
		n = fread(line, 1, sizeof line - 1, f);
		fclose(f);
	}
	assert_int_equal(truncate(path, 0), 0);
	line[n] = '\0';
	assert_true(n > 0 && line[n - 1] == '\n');
	assert_ptr_equal(strchr(line, '\n'), line + n - 1);
	return (struct span){line, n - 1};
}

static const struct json *
parsed(void)
{
	const struct json *doc = NULL;
	struct why why = {""};

	if (json_parse(arena, written(), &doc, &why) != ERR_OK)
		fail_msg("%s in %s", why.text, line);
	return doc;
}

static void
want_text(const struct json *doc, const char *key, const char *want)
{
	struct span got = SPAN("nothing");

	if (!json_text(doc, key, &got) || !text_is(got, want))
		fail_msg("%s: got '%.*s', want '%s'", key, (int)got.n, got.p, want);
}

static void
want_number(const struct json *doc, const char *key, int64_t want)
{
	int64_t got = INT64_MIN;

	if (!json_i64(doc, key, &got) || got != want)
		fail_msg("%s: got %lld, want %lld", key, (long long)got, (long long)want);
}

static struct forward_outcome
outcome(enum verdict verdict, int status)
{
	return (struct forward_outcome){.finding = {.verdict = verdict, .status = status},
	    .first_byte = {1300},
	    .tap = {.usage = {.prompt = 7, .completion = 9, .cached = 2, .estimated = true}}};
}

static void
test_request(void **state)
{
	struct record record = {.arrived = {1000}};
	struct pick_lease first = {.account = 0}, second = {.account = 1};
	struct forward_outcome failed = outcome(VERDICT_SOFT_RATE, 429);
	struct forward_outcome fine = outcome(VERDICT_OK, 200);
	struct request rq = {.id = SPAN("req_1"),
	    .method = SPAN("POST"),
	    .path = "/v1/chat/completions",
	    .client = SPAN("ann"),
	    .model = SPAN("smart"),
	    .stream = true,
	    .read = {.body = SPAN("12345")}};
	struct respond r = {.arena = arena,
	    .status = 200,
	    .bytes = 77,
	    .channel = SPAN("oa"),
	    .account = SPAN("a2"),
	    .model = SPAN("gpt")};
	const struct json *doc;

	(void)state;
	record_attempt(&record, &channel, &first, SPAN("gpt-a"), &failed);
	record_attempt(&record, &channel, &second, SPAN("gpt"), &fine);
	record_request(log_json, &record, &rq, &r, (struct wall_ms){NOW}, (struct mono_ms){2500});
	doc = parsed();
	want_text(doc, "time", "2026-01-05T10:00:00Z");
	want_text(doc, "msg", "request");
	want_text(doc, "id", "req_1");
	want_text(doc, "client", "ann");
	want_text(doc, "path", "/v1/chat/completions");
	want_number(doc, "status", 200);
	want_text(doc, "outcome", "ok");
	want_text(doc, "wanted_model", "smart");
	want_text(doc, "model", "gpt");
	want_text(doc, "channel", "oa");
	want_text(doc, "account", "a2");
	want_text(doc, "attempts.0.model", "gpt-a");
	want_text(doc, "attempts.0.account", "a1");
	want_text(doc, "attempts.0.kind", "soft_rate");
	want_number(doc, "attempts.0.status", 429);
	want_text(doc, "attempts.1.account", "a2");
	want_text(doc, "attempts.1.kind", "ok");
	want_number(doc, "stream", 1);
	want_number(doc, "bytes_in", 5);
	want_number(doc, "bytes_out", 77);
	want_number(doc, "prompt_tokens", 7);
	want_number(doc, "completion_tokens", 9);
	want_number(doc, "cached_tokens", 2);
	want_number(doc, "estimated", 1);
	want_number(doc, "first_byte_ms", 300);
	want_number(doc, "ms", 1500);
	assert_null(strstr(line, "purpose"));
	record.purpose = "classify";
	record_request(log_json, &record, &rq, &r, (struct wall_ms){NOW}, (struct mono_ms){2500});
	doc = parsed();
	want_number(doc, "ms", 1500);
	want_text(doc, "purpose", "classify");
}

/* Refused before anything was done: no attempt, and what a client may send at its worst. */
static void
test_hostile(void **state)
{
	struct record record = {.arrived = {1000}, .outcome = "not_found"};
	static char model[5000];
	struct request rq = {
	    .id = SPAN("req_1"), .method = SPAN("GE\"T\n"), .client = SPAN("a\0b\nc")};
	struct respond r = {.arena = arena, .gone = true};
	const struct json *doc;
	struct span wanted;

	(void)state;
	memset(model, '"', sizeof model);
	memset(rq.path, 1, sizeof rq.path - 1);
	rq.model = (struct span){model, sizeof model};
	record_request(log_json, &record, &rq, &r, (struct wall_ms){NOW}, (struct mono_ms){1001});
	doc = parsed();
	want_text(doc, "outcome", "not_found");
	want_number(doc, "status", 499);
	want_number(doc, "first_byte_ms", -1);
	want_text(doc, "account", "");
	assert_true(json_text(doc, "wanted_model", &wanted));
	assert_int_equal(wanted.n, 1024);
	record_request(log_text, &record, &rq, &r, (struct wall_ms){NOW}, (struct mono_ms){1001});
	assert_non_null(strstr(written().p, " outcome=\"not_found\" "));
	assert_non_null(strstr(line, " attempts=[] "));
}

static void
test_many_attempts(void **state)
{
	struct record record = {.n = 0};
	struct pick_lease lease = {.account = 1};
	struct forward_outcome failed = outcome(VERDICT_SERVER, 500);
	struct request rq = {.stream = false};
	struct respond r = {.arena = arena};

	(void)state;
	for (int i = 0; i < RECORD_ATTEMPTS_MAX + 9; i++)
		record_attempt(&record, &channel, &lease, SPAN("m"), &failed);
	assert_int_equal(record.n, RECORD_ATTEMPTS_MAX);
	record_request(log_json, &record, &rq, &r, (struct wall_ms){NOW}, (struct mono_ms){1});
	want_text(parsed(), "attempts.15.kind", "server");
}

static void
test_event(void **state)
{
	struct journal_row event = {.level = JOURNAL_ALERT,
	    .status = 401,
	    .at_ms = NOW,
	    .old_until_ms = 5,
	    .new_until_ms = 6,
	    .channel = "oa",
	    .account = "a1",
	    .from = "active",
	    .to = "disabled",
	    .cause = "auth_failed",
	    .rule = "generic:status:401"};
	const struct json *doc;

	(void)state;
	record_event(log_json, &event, SPAN("req_1"));
	doc = parsed();
	want_text(doc, "level", "error");
	want_text(doc, "msg", "account [oa/a1] disabled: auth_failed");
	want_text(doc, "id", "req_1");
	want_text(doc, "from", "active");
	want_text(doc, "to", "disabled");
	want_text(doc, "cause", "auth_failed");
	want_text(doc, "rule", "generic:status:401");
	want_number(doc, "status", 401);
	want_number(doc, "old_until_ms", 5);
	want_number(doc, "until_ms", 6);
	event.level = JOURNAL_INFO;
	event.model[0] = 'm';
	snprintf(event.to, sizeof event.to, "cooling");
	record_event(log_json, &event, SPAN("req_1"));
	doc = parsed();
	want_text(doc, "level", "info");
	want_text(doc, "msg", "account [oa/a1] m cooling: auth_failed");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_request),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_many_attempts),
	    cmocka_unit_test(test_event),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
