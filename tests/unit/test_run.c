#include "dialect/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dialect/gather.h"
#include "dialect/read.h"
#include "lib/form_text.h"

#define MB ((size_t)1 << 20)
#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

/* What dialect_read() says of it; NULL: it takes it. */
static const struct {
	const char *what, *body, *want;
} checks[] = {
    {"a text", "{\"input\":\"x\"}", NULL},
    {"parts", "{\"input\":[{\"type\":\"text\",\"text\":\"x\"}]}", NULL},
    {"all there is",
        "{\"session_id\":\"s\",\"input\":\"x\",\"task_type\":\"code\",\"model\":\"m\",\"stream\":true}",
        NULL},
    {"null is like absent",
        "{\"session_id\":null,\"input\":\"x\",\"task_type\":null,\"model\":null,\"stream\":null}",
        NULL},
    {"an empty session is none", "{\"session_id\":\"\",\"input\":\"x\"}", NULL},
    {"no input", "{\"model\":\"m\"}",
        "'input' is missing: a string or an array of parts is wanted"},
    {"null input", "{\"input\":null}",
        "'input' is missing: a string or an array of parts is wanted"},
    {"empty input", "{\"input\":\"\"}", "'input' must not be empty"},
    {"empty list", "{\"input\":[ ]}", "'input' must not be empty"},
    {"input of a number", "{\"input\":7}", "'input' must be a string or an array of parts"},
    {"input of an object", "{\"input\":{\"text\":\"x\"}}",
        "'input' must be a string or an array of parts"},
    {"session of a number", "{\"input\":\"x\",\"session_id\":7}", "'session_id' must be a string"},
    {"task of a list", "{\"input\":\"x\",\"task_type\":[]}", "'task_type' must be a string"},
    {"model of a number", "{\"input\":\"x\",\"model\":7}", "'model' must be a string"},
    {"empty model", "{\"input\":\"x\",\"model\":\"\"}", "'model' must not be empty"},
    {"stream of a text", "{\"input\":\"x\",\"stream\":\"yes\"}", "'stream' must be true or false"},
    {"a session twice", "{\"input\":\"x\",\"session_id\":\"a\",\"session_id\":\"b\"}",
        "the body is not valid JSON"},
    {"a task twice", "{\"input\":\"x\",\"task_type\":\"a\",\"task_type\":\"b\"}",
        "the body is not valid JSON"},
    {"a list", "[\"x\"]", "the body must be a JSON object"},
};

static void
test_checks(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(checks); i++) {
		struct span body = text_span(checks[i].body);
		struct dialect_request request;
		struct why why = {""};
		enum err err = dialect_read(&dialect_run, body, &request, &why);
		const char *want = checks[i].want;

		if (want == NULL
		        ? err == ERR_OK
		        : err == ERR_BAD_INPUT && strncmp(why.text, want, strlen(want)) == 0)
			continue;
		failed++;
		print_error("%s: got %s want %s\n", checks[i].what, why.text, want);
	}
	assert_int_equal(failed, 0);
}

/* The form that it is read into, or what is wrong in its parts. */
static const struct {
	const char *what, *body, *want;
} reads[] = {
    {"a text", "{\"input\":\"a\\u00e9\",\"model\":\"m\",\"session_id\":\"s\"}",
        "user@0[text =a\xc3\xa9 ];"},
    {"a stream", "{\"input\":\"a\",\"stream\":true,\"task_type\":\"code\"}",
        "user@0[text =a ];stream=true "},
    {"parts",
        "{\"input\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":"
        "{\"url\":\"https://x/y.png\"}}]}",
        "user@0[text =a ][image url=https://x/y.png ];"},
    {"what is not known", "{\"input\":\"a\",\"temperature\":1,\"x\":null}",
        "user@0[text =a ];+run.temperature=1 "},
    {"only empty parts", "{\"input\":[{\"type\":\"text\",\"text\":\"\"}]}", "'input' is empty"},
    {"no part", "{\"input\":[7]}", "'input[0]' "},
    {"an unknown part", "{\"input\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"odd\"}]}",
        "'input[1]' has the type 'odd'"},
    {"a picture of no known type",
        "{\"input\":[{\"type\":\"image_url\",\"image_url\":\"data:image/bmp;base64,AAAA\"}]}",
        "'input[0].image_url' is an image that"},
};

static void
test_reads(void **state)
{
	struct arena *arena = arena_new(16 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(reads); i++) {
		struct buf *got = arena_buf(arena, MB);
		struct why why = {""};
		struct form form;

		if (form_read_run(arena, text_span(reads[i].body), &form, &why) == ERR_OK)
			form_text(got, &form);
		else
			buf_z(got, why.text);
		if (strncmp(got->p, reads[i].want, strlen(reads[i].want)) == 0)
			continue;
		failed++;
		print_error("%s:\n got  %s\n want %s\n", reads[i].what, got->p, reads[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

#define LAST(content)                                                                              \
	"{\"success\":true,\"session_id\":\"s\",\"content\":\"" content "\",\"model_used\":\"m\"," \
	"\"account_id\":\"a1\",\"error\":null}"

/* Steps, the events of a stream, and the content of the whole. */
static const struct {
	const char *what;
	struct flow steps[8];
	const char *events, *content;
} flows[] = {
    {"pieces",
        {{.kind = FLOW_START, .id = S("i"), .model = S("x")},
            {.kind = FLOW_TEXT, .text = S("he\"")}, {.kind = FLOW_TEXT, .text = S("")},
            {.kind = FLOW_TEXT, .text = S("y\n")}, {.kind = FLOW_FINISH}, {.kind = FLOW_END}},
        "data: {\"content\":\"he\\\"\"}\n\ndata: {\"content\":\"y\\n\"}\n\n"
        "data: " LAST("he\\\"y\\n") "\n\n",
        LAST("he\\\"y\\n")},
    {"texts alone",
        {{.kind = FLOW_START}, {.kind = FLOW_THOUGHT, .text = S("t")}, {.kind = FLOW_BREAK},
            {.kind = FLOW_TEXT, .text = S("a")}, {.kind = FLOW_CALL, .id = S("c"), .name = S("f")},
            {.kind = FLOW_REFUSAL, .text = S("no")}, {.kind = FLOW_FINISH}, {.kind = FLOW_END}},
        "data: {\"content\":\"a\"}\n\ndata: {\"content\":\"no\"}\n\ndata: " LAST("ano") "\n\n",
        LAST("ano")},
    {"nothing", {{.kind = FLOW_START}, {.kind = FLOW_FINISH}, {.kind = FLOW_END}},
        "data: " LAST("") "\n\n", LAST("")},
    {"it ends once", {{.kind = FLOW_TEXT, .text = S("a")}, {.kind = FLOW_END}, {.kind = FLOW_END}},
        "data: {\"content\":\"a\"}\n\ndata: " LAST("a") "\n\n", LAST("a")},
};

static void
check_bytes(const char *what, const char *shape, struct span got, const char *want)
{
	if (!text_is(got, want))
		fail_msg("%s, %s:\n got  %.*s\n want %s", what, shape, (int)got.n, got.p, want);
}

static void
test_flows(void **state)
{
	struct arena *arena = arena_new(16 * MB);
	const struct flow_job job = {.arena = arena,
	    .model = SPAN("alias"),
	    .session_id = SPAN("s"),
	    .account = SPAN("a1"),
	    .model_used = SPAN("m")};

	(void)state;
	for (size_t i = 0; i < NELEM(flows); i++) {
		struct flow_writer *w = flow_write_run.begin(&job);
		struct gather *gather = gather_begin(arena);
		struct buf *events = arena_buf(arena, MB), *whole = arena_buf(arena, MB);

		for (size_t s = 0; s < NELEM(flows[i].steps); s++) {
			const struct flow *step = &flows[i].steps[s];

			if (step->kind == FLOW_START && s > 0)
				break;
			flow_write_run.step(w, step, events);
			gather_step(gather, step);
		}
		flow_answer_run(&job, gather_answer(gather), whole);
		check_bytes(flows[i].what, "stream", buf_text(events), flows[i].events);
		check_bytes(flows[i].what, "whole", buf_text(whole), flows[i].content);
	}
	arena_free(&arena);
}

#define FAULT "{\"success\":false,\"error\":\"Request failed: no \\\"x\\\"\"}"

static void
test_errors(void **state)
{
	struct arena *arena = arena_new(16 * MB);
	const struct flow_job job = {.arena = arena};
	struct flow_writer *w = flow_write_run.begin(&job);
	struct buf *out = arena_buf(arena, MB);
	struct span message = SPAN("no \"x\"");
	const struct flow end = {.kind = FLOW_END};

	(void)state;
	dialect_run.error_body(out, 400, NULL, "invalid_request_error", message);
	check_bytes("error", "body", buf_text(out), FAULT "\n");
	buf_clear(out);
	dialect_run.error_event(out, 502, NULL, NULL, message);
	check_bytes("error", "event", buf_text(out), "data: " FAULT "\n\n");
	buf_clear(out);
	flow_write_run.error(w, 502, NULL, NULL, message, out);
	/* what broke off has no clean end after it */
	flow_write_run.step(w, &end, out);
	check_bytes("error", "stream", buf_text(out), "data: " FAULT "\n\n");
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_checks),
	    cmocka_unit_test(test_reads),
	    cmocka_unit_test(test_flows),
	    cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
