#include "dialect/dialect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/scan.h"

static const struct {
	const char *what;
	int64_t prompt, completion, total, cached, reasoning; /* as given */
	size_t prompt_bytes, content_bytes;
	int64_t want_prompt, want_completion, want_total;
	bool estimated;
} settles[] = {
    {"all given", 9, 12, 21, 4, -1, 99, 99, 9, 12, 21, false},
    {"no total", 9, 12, -1, -1, -1, 99, 99, 9, 12, 21, false},
    {"total below the sum", 9, 12, 5, -1, -1, 99, 99, 9, 12, 21, false},
    {"reasoning beside the completion", 291, 26, 513, 290, 196, 99, 99, 291, 222, 513, false},
    {"reasoning above the completion", 9, 2, 11, -1, 5, 99, 99, 9, 7, 16, false},
    {"reasoning within the completion", 9, 12, 21, -1, 5, 99, 99, 9, 12, 21, false},
    {"a total that nothing explains", 9, 12, 40, -1, -1, 99, 99, 9, 12, 21, false},
    {"cached beside the prompt", 3, 1, 4, 5000, -1, 99, 99, 5003, 1, 5004, false},
    {"cached beside the prompt, total with it", 3, 1, 5004, 5000, -1, 99, 99, 5003, 1, 5004, false},
    {"embeddings", 8, -1, 8, -1, -1, 99, 0, 8, 0, 8, false},
    {"embeddings without total", 8, -1, -1, -1, -1, 99, 0, 8, 0, 8, false},
    {"total and completion", -1, 4, 10, -1, -1, 99, 99, 6, 4, 10, false},
    {"nothing", -1, -1, -1, -1, -1, 40, 9, 10, 3, 13, true},
    {"prompt alone", 9, -1, -1, -1, -1, 40, 9, 9, 3, 12, true},
    {"completion alone", -1, 5, -1, -1, -1, 40, 9, 10, 5, 15, true},
    {"total alone", -1, -1, 30, -1, -1, 40, 9, 10, 20, 30, true},
    {"nothing asked, nothing said", -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, true},
};

/* What is not known stays so, and what was made to agree stays as it is. */
static void
test_add_up(void **state)
{
	static const struct {
		const char *what;
		struct dialect_usage given, want; /* cached, cache_write: not given */
	} rows[] = {
	    {"the start of a stream", {.prompt = 9, .completion = -1, .total = -1, .reasoning = -1},
	        {.prompt = 9, .completion = -1, .total = -1}},
	    {"nothing", {.prompt = -1, .completion = -1, .total = -1, .reasoning = -1},
	        {.prompt = -1, .completion = -1, .total = -1}},
	    {"total alone", {.prompt = -1, .completion = -1, .total = 30, .reasoning = -1},
	        {.prompt = -1, .completion = -1, .total = 30}},
	    {"total and completion", {.prompt = -1, .completion = 4, .total = 30, .reasoning = -1},
	        {.prompt = 26, .completion = 4, .total = 30}},
	    {"a total that is no sum", {.prompt = 9, .completion = 4, .total = 30, .reasoning = -1},
	        {.prompt = 9, .completion = 4, .total = 13}},
	    {"reasoning before the completion",
	        {.prompt = 9, .completion = -1, .total = -1, .reasoning = 3},
	        {.prompt = 9, .completion = -1, .total = -1}},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct dialect_usage u = rows[i].given;
		const struct dialect_usage *want = &rows[i].want;

		u.cached = u.cache_write = -1;
		for (int round = 0; round < 2; round++) {
			dialect_add_up(&u);
			if (u.prompt != want->prompt || u.completion != want->completion ||
			    u.total != want->total)
				fail_msg("%s, round %d: %lld %lld %lld", rows[i].what, round,
				    (long long)u.prompt, (long long)u.completion,
				    (long long)u.total);
		}
	}
}

static void
test_settle(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(settles); i++) {
		struct dialect_tap tap;
		struct dialect_usage *u = &tap.usage;

		dialect_tap_init(&tap);
		tap.content_bytes = settles[i].content_bytes;
		u->prompt = settles[i].prompt;
		u->completion = settles[i].completion;
		u->total = settles[i].total;
		u->cached = settles[i].cached;
		u->reasoning = settles[i].reasoning;
		for (int round = 0; round < 2; round++) {
			dialect_settle(&tap, settles[i].prompt_bytes);
			if (u->prompt != settles[i].want_prompt ||
			    u->completion != settles[i].want_completion ||
			    u->total != settles[i].want_total ||
			    u->estimated != settles[i].estimated)
				fail_msg("%s, round %d: got %lld %lld %lld, estimated %d",
				    settles[i].what, round, (long long)u->prompt,
				    (long long)u->completion, (long long)u->total, u->estimated);
		}
	}
}

static void
test_error_types(void **state)
{
	static const struct {
		int status;
		const char *type;
	} rows[] = {
	    {400, "invalid_request_error"},
	    {401, "invalid_request_error"},
	    {403, "permission_error"},
	    {404, "invalid_request_error"},
	    {413, "invalid_request_error"},
	    {429, "rate_limit_error"},
	    {500, "server_error"},
	    {502, "server_error"},
	    {503, "server_error"},
	    {504, "timeout"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		assert_string_equal(dialect_error_type(rows[i].status), rows[i].type);
}

static const struct {
	const char *what;
	struct span message;
	const char *type, *code, *want;
} errors[] = {
    {"plain", {"no", 2}, NULL, "pool_exhausted",
        "{\"error\":{\"message\":\"no\",\"type\":\"rate_limit_error\",\"param\":null,"
        "\"code\":\"pool_exhausted\"}}"},
    {"own type, no code", {"no", 2}, "my_type", NULL,
        "{\"error\":{\"message\":\"no\",\"type\":\"my_type\",\"param\":null,\"code\":null}}"},
    {"quotes and line ends", {"a\"b\\c\nd", 7}, "t", NULL,
        "{\"error\":{\"message\":\"a\\\"b\\\\c\\nd\",\"type\":\"t\",\"param\":null,\"code\":null}}"},
    {"bad UTF-8",
        {"a\xff"
         "b",
            3},
        "t", NULL,
        "{\"error\":{\"message\":\"a\xef\xbf\xbd"
        "b\",\"type\":\"t\",\"param\":null,\"code\":null}}"},
};

static void
test_errors(void **state)
{
	static const struct dialect *const dialects[] = {
	    &dialect_chat, &dialect_completions, &dialect_embeddings, &dialect_moderations};

	(void)state;
	for (size_t i = 0; i < NELEM(errors) * NELEM(dialects); i++) {
		const struct dialect *d = dialects[i % NELEM(dialects)];
		size_t row = i / NELEM(dialects);
		struct buf body, event;

		buf_init(&body, 4096);
		buf_init(&event, 4096);
		d->error_body(&body, 429, errors[row].type, errors[row].code, errors[row].message);
		d->error_event(
		    &event, 429, errors[row].type, errors[row].code, errors[row].message);
		if (!text_is(text_trim(buf_text(&body)), errors[row].want))
			fail_msg("%s: got %s", errors[row].what, body.p);
		assert_true(text_starts(buf_text(&event), "data: {"));
		assert_true(text_ends(buf_text(&event), "}\n\n"));
		if (!text_is(text_trim(text_from(buf_text(&event), 6)), errors[row].want))
			fail_msg("%s: got event %s", errors[row].what, event.p);
		buf_release(&body);
		buf_release(&event);
	}
}

/* Whatever the bytes are: the document is JSON, the event is one event, and an error. */
static void
test_error_any_bytes(void **state)
{
	char message[256];
	struct buf body, event;
	struct dialect_tap tap;
	struct sse_event e;
	struct sse s;

	(void)state;
	for (size_t i = 0; i < sizeof message; i++)
		message[i] = (char)(255 - i);
	buf_init(&body, 4096);
	buf_init(&event, 4096);
	dialect_chat.error_body(&body, 500, NULL, NULL, (struct span){message, sizeof message});
	dialect_chat.error_event(&event, 500, NULL, NULL, (struct span){message, sizeof message});
	assert_int_equal(scan_pick(buf_text(&body), NULL, NULL, 0, NULL), ERR_OK);
	sse_init(&s, 4096);
	assert_int_equal(sse_feed(&s, buf_text(&event), NULL), ERR_OK);
	assert_true(sse_next(&s, &e));
	assert_int_equal(e.raw.n, event.n);
	dialect_tap_init(&tap);
	assert_int_equal(dialect_chat.event(&e, &tap), PART_ERROR);
	sse_release(&s);
	buf_release(&body);
	buf_release(&event);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_add_up),
	    cmocka_unit_test(test_settle),
	    cmocka_unit_test(test_error_types),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_error_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
