#include "request.h"

#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID64 "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF"

static const struct {
	const char *given; /* NULL = none */
	bool kept;
} ids[] = {
    {NULL, false},
    {"", false},
    {"a", true},
    {"A.b_c-9", true},
    {ID64 ID64, true},
    {ID64 ID64 "x", false},
    {"a b", false},
    {"a/b", false},
    {"a\r\nX: y", false},
    {"\xc3\xa9", false},
    {"a\x7f", false},
};

static void
test_id(void **state)
{
	struct conf conf = {.nchannels = 0};

	(void)state;
	for (size_t i = 0; i < NELEM(ids); i++) {
		char header[300];
		const char *params[] = {header, NULL};
		struct request rq;
		struct memory m;

		snprintf(header, sizeof header, "%s%s",
		    ids[i].given == NULL ? "X=" : "HTTP_X_REQUEST_ID=",
		    ids[i].given == NULL ? "" : ids[i].given);
		memory_init(&m, params, SPAN(""));
		request_head(&rq, &m.x, &conf, SPAN("ours"));
		if (!text_is(rq.id, ids[i].kept ? ids[i].given : "ours"))
			fail_msg("id %zu: got '%.*s'", i, (int)rq.id.n, rq.id.p);
		memory_release(&m);
	}
}

static const struct {
	const char *what;
	const char *params[6];
	const char *mount; /* server.mount */
	const char *path;  /* of the endpoint, NULL = none */
} heads[] = {
    {"PATH_INFO", {"REQUEST_METHOD=POST", "PATH_INFO=/v1/chat/completions"}, "",
        "/v1/chat/completions"},
    {"unknown", {"PATH_INFO=/v1/response"}, "", NULL},
    {"nothing", {NULL}, "", NULL},
    {"server.mount", {"SCRIPT_NAME=/llm/v1/models"}, "/llm", "/v1/models"},
    {"elsewhere than server.mount", {"SCRIPT_NAME=/x/v1/models"}, "/llm", NULL},
    {"SLUICE_MOUNT goes before server.mount", {"SCRIPT_NAME=/x/v1/models", "SLUICE_MOUNT=/x"},
        "/llm", "/v1/models"},
    {"an empty SLUICE_MOUNT is none", {"SCRIPT_NAME=/llm/v1/models", "SLUICE_MOUNT="}, "/llm",
        "/v1/models"},
    {"a header is no mount", {"SCRIPT_NAME=/x/v1/models", "HTTP_SLUICE_MOUNT=/x"}, "/llm", NULL},
    {"the query is not looked at", {"SCRIPT_NAME=/x", "QUERY_STRING=/v1/models"}, "", NULL},
    {"admin not from REQUEST_URI", {"REQUEST_URI=/status"}, "", NULL},
    {"admin from PATH_INFO", {"PATH_INFO=/status"}, "", "/status"},
};

static void
test_head(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(heads); i++) {
		struct conf conf = {.server = {.mount = text_span(heads[i].mount)}};
		struct request rq;
		struct memory m;

		memory_init(&m, heads[i].params, SPAN(""));
		request_head(&rq, &m.x, &conf, SPAN("ours"));
		if ((rq.endpoint != NULL) != (heads[i].path != NULL) ||
		    (rq.endpoint != NULL && strcmp(rq.endpoint->path, heads[i].path) != 0))
			fail_msg("%s: got %s", heads[i].what,
			    rq.endpoint == NULL ? "none" : rq.endpoint->path);
		memory_release(&m);
	}
}

#define CHAT "{\"model\":\"m1\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static const struct {
	const char *what, *length, *body; /* length NULL = not given */
	size_t piece;
	int max, read_errno;
	enum err err;
	const char *model;
	bool stream, usage;
} bodies[] = {
    {"plain", NULL, CHAT "}", 0, 999, 0, ERR_OK, "m1", false, false},
    {"byte by byte", NULL, CHAT "}", 1, 999, 0, ERR_OK, "m1", false, false},
    {"stream", NULL, CHAT ",\"stream\":true}", 0, 999, 0, ERR_OK, "m1", true, false},
    {"stream null is none", NULL, CHAT ",\"stream\":null}", 0, 999, 0, ERR_OK, "m1", false, false},
    {"usage wanted", NULL, CHAT ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}", 0,
        999, 0, ERR_OK, "m1", true, true},
    {"model in escapes", NULL, "{\"model\":\"m\\u0031\",\"messages\":[{}]}", 0, 999, 0, ERR_OK,
        "m1", false, false},
    {"length as announced", "58", CHAT "}", 0, 999, 0, ERR_OK, "m1", false, false},
    {"a length that is no number", "many", CHAT "}", 0, 999, 0, ERR_OK, "m1", false, false},
    {"a negative length", "-5", CHAT "}", 0, 999, 0, ERR_OK, "m1", false, false},
    {"a length beyond numbers", "99999999999999999999", CHAT "}", 0, 999, 0, ERR_OK, "m1", false,
        false},
    {"shorter than announced", "59", CHAT "}", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"announced beyond the limit: nothing is read", "1000", "", 0, 999, 5, ERR_TOO_BIG, NULL, false,
        false},
    {"just as large as allowed", NULL, CHAT "}", 0, 58, 0, ERR_OK, "m1", false, false},
    {"one byte beyond the limit", NULL, CHAT "}", 0, 57, 0, ERR_TOO_BIG, NULL, false, false},
    {"beyond the limit, byte by byte", NULL, CHAT "}", 1, 57, 0, ERR_TOO_BIG, NULL, false, false},
    {"more than announced, beyond the limit", "5", CHAT "}", 0, 57, 0, ERR_TOO_BIG, NULL, false,
        false},
    {"broke off", NULL, CHAT, 7, 999, EIO, ERR_IO, NULL, false, false},
    {"too slow", NULL, CHAT, 7, 999, EAGAIN, ERR_TIMEOUT, NULL, false, false},
    {"the drain is over", NULL, CHAT, 7, 999, ECANCELED, ERR_TIMEOUT, NULL, false, false},
    {"empty", NULL, "", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"cut", NULL, "{", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"array", NULL, "[]", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"string", NULL, "\"x\"", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"model of another type", NULL, "{\"model\":1,\"messages\":[{}]}", 0, 999, 0, ERR_BAD_INPUT,
        NULL, false, false},
    {"no messages", NULL, "{\"model\":\"m1\"}", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"stream of another type", NULL, CHAT ",\"stream\":\"true\"}", 0, 999, 0, ERR_BAD_INPUT, NULL,
        false, false},
    {"two models", NULL, CHAT ",\"model\":\"m2\"}", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
    {"something behind it", NULL, CHAT "} x", 0, 999, 0, ERR_BAD_INPUT, NULL, false, false},
};

static struct mono_ms
still(void)
{
	return (struct mono_ms){1000};
}

static void
test_body(void **state)
{
	struct arena *arena = arena_new((size_t)1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		char length[64];
		const char *params[] = {bodies[i].length == NULL ? NULL : length, NULL};
		struct request rq = {.endpoint = endpoint_find(SPAN("/v1/chat/completions"))};
		struct request_limits limits = {bodies[i].max, 60000, "/nonexistent", still};
		struct why why = {""};
		struct memory m;
		struct buf body;
		enum err err;

		snprintf(length, sizeof length, "CONTENT_LENGTH=%s",
		    bodies[i].length == NULL ? "" : bodies[i].length);
		memory_init(&m, params, text_span(bodies[i].body));
		m.piece = bodies[i].piece;
		m.read_errno = bodies[i].read_errno;
		buf_init(&body, 1 << 18);
		err = request_body(&rq, &m.x, arena, &limits, &body, &why);
		if (err != bodies[i].err)
			fail_msg("%s: got %d (%s)", bodies[i].what, (int)err, why.text);
		if (err == ERR_OK &&
		    (!text_is(rq.model, bodies[i].model) || rq.stream != bodies[i].stream ||
		        rq.wants_usage != bodies[i].usage))
			fail_msg("%s: model '%.*s' stream %d usage %d", bodies[i].what,
			    (int)rq.model.n, rq.model.p, rq.stream, rq.wants_usage);
		if (err != ERR_OK && why.text[0] == '\0')
			fail_msg("%s: no reason given", bodies[i].what);
		buf_release(&body);
		memory_release(&m);
		arena_reset(arena);
	}
	arena_free(&arena);
}

/* Where streaming has no meaning, "stream" is nobody's business. */
static void
test_no_stream(void **state)
{
	static const char *const params[] = {NULL};
	struct request rq = {.endpoint = endpoint_find(SPAN("/v1/embeddings"))};
	struct request_limits limits = {999, 60000, "/nonexistent", still};
	struct arena *arena = arena_new((size_t)1 << 20);
	struct memory m;
	struct buf body;
	struct why why;

	(void)state;
	memory_init(&m, params, SPAN("{\"model\":\"m\",\"input\":\"x\",\"stream\":true}"));
	buf_init(&body, 1 << 18);
	assert_int_equal(request_body(&rq, &m.x, arena, &limits, &body, &why), ERR_OK);
	assert_false(rq.stream);
	buf_release(&body);
	memory_release(&m);
	arena_free(&arena);
}

static int64_t now_ms, step_ms;

static struct mono_ms
ticking(void)
{
	now_ms += step_ms;
	return (struct mono_ms){now_ms};
}

static const struct {
	const char *what;
	size_t piece;    /* bytes a read */
	int64_t step_ms; /* the clock goes on by so much with each read */
	int64_t stall_ms;
	enum err err;
} paces[] = {
    {"at once", 0, 0, 1000, ERR_OK},
    {"a byte each 100 ms, within stall_ms", 1, 100, 10000, ERR_OK},
    {"a byte each 100 ms, beyond it", 1, 100, 5000, ERR_TIMEOUT},
    {"a byte each 59 s", 1, 59000, 60000, ERR_TIMEOUT},
    {"exactly 500 bytes a second", 1, 2, 0, ERR_OK},
    {"a little less", 1, 3, 0, ERR_TIMEOUT},
    {"a little less, within stall_ms", 1, 3, 100, ERR_OK},
};

static void
test_pace(void **state)
{
	static const char *const params[] = {NULL};

	(void)state;
	for (size_t i = 0; i < NELEM(paces); i++) {
		struct request rq = {.endpoint = endpoint_find(SPAN("/v1/chat/completions"))};
		struct request_limits limits = {999, paces[i].stall_ms, "/nonexistent", ticking};
		struct arena *arena = arena_new((size_t)1 << 20);
		struct why why = {""};
		struct memory m;
		struct buf body;
		enum err err;

		memory_init(&m, params, SPAN(CHAT "}"));
		m.piece = paces[i].piece;
		buf_init(&body, 1 << 18);
		now_ms = 0;
		step_ms = paces[i].step_ms;
		err = request_body(&rq, &m.x, arena, &limits, &body, &why);
		if (err != paces[i].err)
			fail_msg("%s: got %d (%s)", paces[i].what, (int)err, why.text);
		buf_release(&body);
		memory_release(&m);
		arena_free(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_id),
	    cmocka_unit_test(test_head),
	    cmocka_unit_test(test_body),
	    cmocka_unit_test(test_no_stream),
	    cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
