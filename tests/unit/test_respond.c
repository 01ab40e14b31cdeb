#include "respond.h"

#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const no_params[] = {NULL};

static struct memory m;
static struct respond r;

static int
set_up(void **state)
{
	(void)state;
	memory_init(&m, no_params, SPAN(""));
	r = (struct respond){.x = &m.x,
	    .arena = arena_new((size_t)1 << 20),
	    .dialect = &dialect_chat,
	    .request_id = SPAN("req_1")};
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	arena_free(&r.arena);
	memory_release(&m);
	return 0;
}

static void
want_text(const char *want)
{
	if (strcmp(memory_text(&m), want) != 0)
		fail_msg("got:\n%s\nwant:\n%s", memory_text(&m), want);
}

static void
test_stream(void **state)
{
	struct respond_head head = {.status = 200,
	    .content_type = SPAN("text/event-stream"),
	    .length = -1,
	    .retry_after_s = -1};

	(void)state;
	r.channel = SPAN("c");
	r.account = SPAN("a1");
	r.model = SPAN("m");
	r.upstream_id = SPAN("up-7");
	r.attempts = 2;
	respond_head(&r, &head);
	assert_false(r.committed); /* no byte of the body yet */
	assert_int_equal(m.flushes, 0);
	respond_bytes(&r, SPAN("data: 1\n\n"));
	assert_true(r.committed);
	respond_flush(&r);
	assert_int_equal(m.flushes, 1);
	assert_int_equal(r.bytes, 9);
	assert_int_equal(r.status, 200);
	want_text("Status: 200 OK\r\nContent-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"
	          "Cache-Control: no-cache\r\nX-Request-Id: req_1\r\nX-Sluice-Channel: c\r\n"
	          "X-Sluice-Account: a1\r\nX-Sluice-Model: m\r\nX-Sluice-Attempts: 2\r\n"
	          "X-Upstream-Request-Id: up-7\r\n\r\ndata: 1\n\n");
}

static void
test_whole(void **state)
{
	(void)state;
	respond_json(&r, 200, SPAN("{\"a\":1}"));
	assert_true(r.committed);
	assert_int_equal(r.bytes, 7);
	want_text("Status: 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n"
	          "Cache-Control: no-cache\r\nX-Request-Id: req_1\r\nX-Sluice-Attempts: 0\r\n\r\n"
	          "{\"a\":1}");
}

static void
test_head_only(void **state)
{
	(void)state;
	r.head_only = true;
	r.service = true;
	respond_json(&r, 503, SPAN("{\"a\":1}"));
	assert_true(r.committed);
	assert_int_equal(r.bytes, 0);
	want_text("Status: 503 Service Unavailable\r\nContent-Type: application/json\r\n"
	          "Content-Length: 7\r\nCache-Control: no-cache\r\nX-Service: sluice\r\n"
	          "X-Request-Id: req_1\r\nX-Sluice-Attempts: 0\r\n\r\n");
}

static void
test_empty(void **state)
{
	struct respond_head head = {.status = 204, .retry_after_s = -1};

	(void)state;
	respond_whole(&r, &head, SPAN(""));
	assert_true(r.committed);
	want_text("Status: 204 No Content\r\nContent-Length: 0\r\nCache-Control: no-cache\r\n"
	          "X-Request-Id: req_1\r\nX-Sluice-Attempts: 0\r\n\r\n");
}

static const struct {
	const char *what;
	struct respond_error error;
	const char *head; /* a line that must be there */
	const char *body;
} errors[] = {
    {"type by the status, code null", {.status = 400, .message = {"m", 1}, .retry_after_s = -1},
        "Status: 400 Bad Request\r\n",
        "{\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n"},
    {"retry after",
        {.status = 429, .code = "pool_exhausted", .message = {"m", 1}, .retry_after_s = 20},
        "\r\nRetry-After: 20\r\n",
        "{\"error\":{\"message\":\"m\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"pool_exhausted\"}}\n"},
    {"at once", {.status = 429, .message = {"m", 1}, .retry_after_s = 0}, "\r\nRetry-After: 0\r\n",
        NULL},
    {"no retry",
        {.status = 502,
            .code = "upstream_error",
            .message = {"m", 1},
            .retry_after_s = -1,
            .no_retry = true},
        "\r\nx-should-retry: false\r\n", NULL},
    {"allow", {.status = 405, .message = {"m", 1}, .retry_after_s = -1, .allow = "GET, HEAD"},
        "\r\nAllow: GET, HEAD\r\n", NULL},
    {"own type", {.status = 503, .type = "x", .message = {"", 0}, .retry_after_s = -1},
        "Status: 503 ",
        "{\"error\":{\"message\":\"\",\"type\":\"x\",\"param\":null,\"code\":null}}\n"},
    {"a status without a phrase", {.status = 418, .message = {"m", 1}, .retry_after_s = -1},
        "Status: 418 Upstream Status\r\n", NULL},
    {"hostile message", {.status = 400, .message = {"\"\r\n\0<\xff", 6}, .retry_after_s = -1},
        "Status: 400 ",
        "{\"error\":{\"message\":\"\\\"\\u000d\\n\\u0000<\xef\xbf\xbd\",\"type\":\"invalid_request_error\","
        "\"param\":null,\"code\":null}}\n"},
};

static void
test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(errors); i++) {
		const char *body;
		char length[40];

		buf_clear(&m.out);
		respond_error(&r, &errors[i].error);
		body = strstr(memory_text(&m), "\r\n\r\n");
		assert_non_null(body);
		body += 4;
		if (strstr(memory_text(&m), errors[i].head) == NULL ||
		    (errors[i].body != NULL && strcmp(body, errors[i].body) != 0))
			fail_msg("%s: got\n%s", errors[i].what, memory_text(&m));
		snprintf(length, sizeof length, "\r\nContent-Length: %zu\r\n", strlen(body));
		assert_non_null(strstr(memory_text(&m), length));
		assert_int_equal(strstr(memory_text(&m), "Retry-After") != NULL,
		    errors[i].error.retry_after_s >= 0);
		assert_int_equal(
		    strstr(memory_text(&m), "x-should-retry") != NULL, errors[i].error.no_retry);
		assert_int_equal(
		    strstr(memory_text(&m), "\r\nAllow: ") != NULL, errors[i].error.allow != NULL);
	}
}

static void
test_error_event(void **state)
{
	(void)state;
	respond_bytes(&r, SPAN("data: 1\n\n"));
	respond_error_event(&r, 502, "upstream_error", SPAN("broke off"));
	want_text(
	    "data: 1\n\ndata: {\"error\":{\"message\":\"broke off\",\"type\":\"server_error\","
	    "\"param\":null,\"code\":\"upstream_error\"}}\n\n");
}

/* No value from outside can end a header line. */
static void
test_hostile_values(void **state)
{
	static char longest[2000];
	struct span evil = SPAN("a\r\nSet-Cookie: x\0\x7f");
	size_t lines = 0;

	(void)state;
	memset(longest, 'x', sizeof longest);
	r.request_id = r.channel = r.account = r.model = r.origin = evil;
	r.upstream_id = (struct span){longest, sizeof longest};
	r.preflight = true;
	respond_head(
	    &r, &(struct respond_head){
	            .status = 200, .content_type = evil, .length = 0, .retry_after_s = -1});
	assert_int_equal(strlen(memory_text(&m)), m.out.n); /* no NUL got in */
	assert_null(strstr(memory_text(&m), "\nSet-Cookie"));
	for (const char *p = memory_text(&m); (p = strstr(p, "\r\n")) != NULL; p += 2)
		lines++;
	assert_int_equal(lines, 16);
	for (size_t i = 0; i < m.out.n; i++)
		assert_false(m.out.p[i] == '\n' && (i == 0 || m.out.p[i - 1] != '\r'));
	assert_true(m.out.n < 1400);
}

static void
test_cors(void **state)
{
	(void)state;
	r.origin = SPAN("https://a.example");
	respond_json(&r, 200, SPAN("{}"));
	assert_non_null(
	    strstr(memory_text(&m), "\r\nAccess-Control-Allow-Origin: https://a.example\r\n"));
	assert_non_null(strstr(memory_text(&m), "\r\nVary: Origin\r\n"));
	assert_null(strstr(memory_text(&m), "Access-Control-Allow-Methods"));
	assert_null(strstr(memory_text(&m), "Credentials"));
	buf_clear(&m.out);
	r.preflight = true;
	respond_json(&r, 204, SPAN(""));
	assert_non_null(strstr(memory_text(&m), "Access-Control-Allow-Methods"));
}

/* Once the client is gone nothing more is tried. */
static void
test_gone(void **state)
{
	(void)state;
	m.writes_left = 1;
	respond_json(&r, 200, SPAN("{}"));
	assert_true(r.gone);
	assert_int_equal(r.bytes, 0);
	m.writes_left = SIZE_MAX;
	respond_bytes(&r, SPAN("more"));
	respond_flush(&r);
	assert_int_equal(m.flushes, 0);
	assert_null(strstr(memory_text(&m), "more"));
}

static void
test_gone_by_flush(void **state)
{
	(void)state;
	respond_bytes(&r, SPAN("data"));
	m.flush_fails = true;
	respond_flush(&r);
	assert_true(r.gone);
	respond_bytes(&r, SPAN("more"));
	want_text("data");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_stream),
	    TEST(test_whole),
	    TEST(test_head_only),
	    TEST(test_empty),
	    TEST(test_errors),
	    TEST(test_error_event),
	    TEST(test_hostile_values),
	    TEST(test_cors),
	    TEST(test_gone),
	    TEST(test_gone_by_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
