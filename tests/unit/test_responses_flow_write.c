#include "dialect/flow.h"
#include "dialect/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/responses_order.h"

#define MB ((size_t)1 << 20)
#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static struct form_name renamed[] = {
    {.sent = S("crm__f"), .original = S("f"), .namespace = S("crm")},
    {.sent = S("patch"), .original = S("patch"), .custom = true},
};
static const struct form_loss loss = {.names = renamed, .nnames = NELEM(renamed)};
static const struct dialect_usage usage = {.seen = true,
    .prompt = 3,
    .completion = 2,
    .cached = -1,
    .cache_write = 1,
    .reasoning = -1,
    .total = 5};

#define T(text_)                                    \
	{                                           \
		.kind = FLOW_TEXT, .text = S(text_) \
	}
#define THOUGHT(text_)                                 \
	{                                              \
		.kind = FLOW_THOUGHT, .text = S(text_) \
	}
#define SEALED(kind_, text_)                    \
	{                                       \
		.kind = kind_, .text = S(text_) \
	}
#define CALL(n, id_, name_)                                                  \
	{                                                                    \
		.kind = FLOW_CALL, .call = n, .id = S(id_), .name = S(name_) \
	}
#define ARGS(n, text_)                                              \
	{                                                           \
		.kind = FLOW_ARGUMENTS, .call = n, .text = S(text_) \
	}
#define CALL_END(n)                              \
	{                                        \
		.kind = FLOW_CALL_END, .call = n \
	}
#define BREAK                      \
	{                          \
		.kind = FLOW_BREAK \
	}
#define FINISH(how)                                \
	{                                          \
		.kind = FLOW_FINISH, .finish = how \
	}
#define M "msg_"

/*
 * Steps between start and end; the events as the checker of their order tells them; the output as the
 * last event and the plain answer have it, ids cut to their prefix.
 */
static const struct {
	const char *what;
	struct flow steps[12];
	bool wants_seals;
	const char *order, *output;
} cases[] = {
    {"nothing", {FINISH(FLOW_STOP)}, false, "created in_progress completed", "[]"},
    {"text", {T("Hel"), T("lo"), FINISH(FLOW_STOP)}, false,
        "created in_progress +0:message part0 'Hel' 'lo' text.done part.done -0 completed",
        "[{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":"
        "\"Hello\"}]}]"},
    {"reasoning, text, call (TOOL-20)",
        {THOUGHT("t"), T("x"), CALL(0, "c1", "g"), ARGS(0, "{\"a\":"), ARGS(0, "1}"), CALL_END(0),
            FINISH(FLOW_CALLS)},
        false,
        "created in_progress +0:reasoning part0 't' text.done part.done -0 +1:message part0 'x' "
        "text.done part.done -1 +2:function_call '{\"a\":' '1}' args.done -2 completed",
        "[{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"t\"}]},{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"completed\",\"role\":"
        "\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],"
        "\"text\":\"x\"}]},{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":\"completed\","
        "\"call_id\":\"c1\",\"name\":\"g\",\"arguments\":\"{\\\"a\\\":1}\"}]"},
    {"calls that overlap end in their order",
        {CALL(0, "c1", "g"), CALL(1, "c2", "h"), ARGS(1, "{"), ARGS(0, "{}"), ARGS(1, "}"),
            FINISH(FLOW_CALLS)},
        false,
        "created in_progress +0:function_call +1:function_call '{' '{}' '}' args.done -0 args.done "
        "-1 completed",
        "[{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"c1\","
        "\"name\":\"g\",\"arguments\":\"{}\"},{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":"
        "\"completed\",\"call_id\":\"c2\",\"name\":\"h\",\"arguments\":\"{}\"}]"},
    {"a call without arguments", {CALL(0, "c1", "g"), CALL_END(0), FINISH(FLOW_CALLS)}, false,
        "created in_progress +0:function_call '{}' args.done -0 completed",
        "[{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"c1\","
        "\"name\":\"g\",\"arguments\":\"{}\"}]"},
    {"names are put back",
        {CALL(0, "c1", "crm__f"), ARGS(0, "{}"), CALL_END(0), CALL(1, "c2", "patch"),
            ARGS(1, "{\"input\":\"a"), ARGS(1, "\\nb\"}"), CALL_END(1), FINISH(FLOW_CALLS)},
        false,
        "created in_progress +0:function_call '{}' args.done -0 +1:custom_tool_call 'a\\nb' args.done "
        "-1 completed",
        "[{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"c1\","
        "\"name\":\"f\",\"namespace\":\"crm\",\"arguments\":\"{}\"},{\"id\":\"ctc_\",\"type\":"
        "\"custom_tool_call\",\"status\":\"completed\",\"call_id\":\"c2\",\"name\":\"patch\",\"input\":"
        "\"a\\nb\"}]"},
    {"a custom call that comes as one",
        {{.kind = FLOW_CALL, .call = 0, .id = S("c1"), .name = S("p"), .custom = true},
            ARGS(0, "*"), ARGS(0, "*"), CALL_END(0), FINISH(FLOW_CALLS)},
        false, "created in_progress +0:custom_tool_call '*' '*' args.done -0 completed",
        "[{\"id\":\"ctc_\",\"type\":\"custom_tool_call\",\"status\":\"completed\",\"call_id\":\"c1\","
        "\"name\":\"p\",\"input\":\"**\"}]"},
    {"a call that is cut off (TOOL-16)",
        {CALL(0, "c1", "g"), ARGS(0, "{}"), CALL_END(0), CALL(1, "c2", "h"), ARGS(1, "{\"a"),
            CALL_END(1), FINISH(FLOW_LENGTH)},
        false,
        "created in_progress +0:function_call '{}' args.done -0 +1:function_call '{\"a' args.done -1 "
        "incomplete:max_output_tokens",
        "[{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"c1\","
        "\"name\":\"g\",\"arguments\":\"{}\"},{\"id\":\"fc_\",\"type\":\"function_call\",\"status\":"
        "\"incomplete\",\"call_id\":\"c2\",\"name\":\"h\",\"arguments\":\"{\\\"a\"}]"},
    {"two blocks of text are parts of one message", {T("a"), BREAK, T("b"), FINISH(FLOW_STOP)},
        false,
        "created in_progress +0:message part0 'a' text.done part.done part1 'b' text.done part.done "
        "-0 completed",
        "[{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"a\"},{"
        "\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"b\"}]}]"},
    {"refusal, filtered", {T("a"), {.kind = FLOW_REFUSAL, .text = S("no")}, FINISH(FLOW_FILTERED)},
        false,
        "created in_progress +0:message part0 'a' text.done part.done part1 'no' refusal.done "
        "part.done -0 incomplete:content_filter",
        "[{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"incomplete\",\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"a\"},{"
        "\"type\":\"refusal\",\"refusal\":\"no\"}]}]"},
    {"two thoughts are two items", {THOUGHT("a"), BREAK, THOUGHT("b"), FINISH(FLOW_STOP)}, false,
        "created in_progress +0:reasoning part0 'a' text.done part.done -0 +1:reasoning part0 'b' "
        "text.done part.done -1 completed",
        "[{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"a\"}]},{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\","
        "\"text\":\"b\"}]}]"},
    {"seals for who wants them",
        {THOUGHT("a"), SEALED(FLOW_SEAL, "sl1.m.x.1"), SEALED(FLOW_REDACTED, "sl1.m.x.2"), T("x"),
            FINISH(FLOW_STOP)},
        true,
        "created in_progress +0:reasoning part0 'a' text.done part.done -0 +1:reasoning -1 +2:message "
        "part0 'x' text.done part.done -2 completed",
        "[{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"a\"}],\"encrypted_content\":\"sl1.m.x.1\"},{\"id\":\"rs_\",\"type\":\"reasoning\","
        "\"summary\":[],\"encrypted_content\":\"rd.sl1.m.x.2\"},{\"id\":\"msg_\",\"type\":"
        "\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{\"type\":"
        "\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"x\"}]}]"},
    {"what this API gave itself comes without our mark",
        {THOUGHT("a"), SEALED(FLOW_SEAL, "sl1.r.0123456789ab.gAAA"), FINISH(FLOW_STOP)}, true,
        "created in_progress +0:reasoning part0 'a' text.done part.done -0 completed",
        "[{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"a\"}],\"encrypted_content\":\"gAAA\"}]"},
    {"and for who does not",
        {THOUGHT("a"), SEALED(FLOW_SEAL, "sl1.m.x.1"), SEALED(FLOW_REDACTED, "sl1.m.x.2"), T("x"),
            FINISH(FLOW_STOP)},
        false,
        "created in_progress +0:reasoning part0 'a' text.done part.done -0 +1:message part0 'x' "
        "text.done part.done -1 completed",
        "[{\"id\":\"rs_\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"a\"}]},{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"completed\",\"role\":"
        "\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],"
        "\"text\":\"x\"}]}]"},
    {"citation",
        {T("x"), {.kind = FLOW_CITATION, .text = S("{\"url\":\"u\",\"title\":\"t\"}")},
            FINISH(FLOW_STOP)},
        false,
        "created in_progress +0:message part0 'x' annotation0 text.done part.done -0 completed",
        "[{\"id\":\"msg_\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"annotations\":[{\"type\":\"url_citation\",\"url\":"
        "\"u\",\"title\":\"t\"}],\"logprobs\":[],\"text\":\"x\"}]}]"},
};

static const struct flow first = {.kind = FLOW_START, .id = S("up"), .model = S("up-model")};
static const struct flow figures = {.kind = FLOW_USAGE, .usage = &usage};
static const struct flow last = {.kind = FLOW_END};

static struct flow_job
job_of(struct arena *arena, bool wants_seals)
{
	return (struct flow_job){.arena = arena,
	    .model = SPAN("asked"),
	    .id = SPAN("req1"),
	    .created_s = 7,
	    .wants_seals = wants_seals,
	    .loss = &loss,
	    .store = true};
}

/* All steps of a case, and those that stand around it. */
static void
give(size_t i, flow_sink_fn *sink, void *arg)
{
	sink(arg, &first);
	for (size_t j = 0; j < NELEM(cases[i].steps); j++) {
		const struct flow *step = &cases[i].steps[j];

		sink(arg, step);
		if (step->kind == FLOW_FINISH)
			break;
	}
	sink(arg, &figures);
	sink(arg, &last);
}

struct written {
	struct flow_writer *w;
	struct buf *out;
};

static void
write_step(void *arg, const struct flow *step)
{
	struct written *written = arg;

	flow_write_responses.step(written->w, step, written->out);
}

static struct buf *
stream_of(struct arena *arena, size_t i)
{
	struct flow_job job = job_of(arena, cases[i].wants_seals);
	struct written written = {flow_write_responses.begin(&job), arena_buf(arena, MB)};

	give(i, write_step, &written);
	return written.out;
}

static void
test_streams(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct buf *output = arena_buf(arena, MB), *order = arena_buf(arena, MB);

		responses_order(arena, buf_text(stream_of(arena, i)), order, output);
		if (text_is(buf_text(order), cases[i].order) &&
		    text_is(buf_text(output), cases[i].output))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n got  %s\n want %s\n", cases[i].what, order->p,
		    cases[i].order, output->p, cases[i].output);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* The plain answer to the same steps has the same items. */
static void
test_answers(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct flow_job job = job_of(arena, cases[i].wants_seals);
		struct buf *body = arena_buf(arena, MB), *got = arena_buf(arena, MB);
		struct gather *g = gather_begin(arena);
		struct dialect_tap tap;

		give(i, gather_step, g);
		flow_answer_responses(&job, gather_answer(g), body);
		dialect_tap_init(&tap);
		assert_true(dialect_responses.answer(buf_text(body), &tap));
		assert_int_equal(tap.usage.prompt, 3);
		assert_int_equal(tap.usage.cache_write, 1);
		responses_order_output(buf_text(body), got);
		if (text_is(buf_text(got), cases[i].output))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", cases[i].what, got->p, cases[i].output);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static void
assert_same_texts(const struct form_turn *a, const struct form_turn *b)
{
	size_t j = 0;

	for (size_t i = 0; i < a->nparts; i++, j++) {
		while (b->parts[j].thought.redacted && !a->parts[i].thought.redacted)
			j++; /* nobody wanted the seal */
		assert_int_equal(a->parts[i].kind, b->parts[j].kind);
		assert_true(text_equal(a->parts[i].text, b->parts[j].text));
		if (a->parts[i].call.custom == b->parts[j].call.custom)
			assert_true(
			    text_equal(a->parts[i].call.arguments, b->parts[j].call.arguments));
	}
	assert_int_equal(j, b->nparts);
}

/* Our own reader makes the same answer of our own stream. */
static void
test_round_trip(void **state)
{
	struct arena *arena = arena_new(64 * MB);

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct span bytes = buf_text(stream_of(arena, i));
		struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));
		struct gather *g = gather_begin(arena), *direct = gather_begin(arena);
		struct dialect_tap tap;
		struct sse_event event;
		struct sse sse;

		dialect_tap_init(&tap);
		sse_init(&sse, MB);
		assert_int_equal(sse_feed(&sse, bytes, NULL), ERR_OK);
		while (sse_next(&sse, &event)) {
			enum dialect_part part = dialect_responses.event(&event, &tap);

			assert_int_not_equal(part, PART_ERROR);
			assert_int_equal(part == PART_END, sse_rest(&sse).n == 0);
			flow_read_responses.event(r, &event, gather_step, g);
		}
		sse_release(&sse);
		assert_true(tap.ended);
		assert_true(gather_answer(g)->ended);
		give(i, gather_step, direct);
		assert_int_equal(gather_answer(g)->finish, gather_answer(direct)->finish);
		assert_same_texts(&gather_answer(g)->turn, &gather_answer(direct)->turn);
		assert_int_equal(tap.usage.total, 5);
	}
	arena_free(&arena);
}

static void
test_echo(void **state)
{
	static const char request[] =
	    "{\"model\":\"asked\",\"instructions\":\"Be\",\"input\":\"Hi\",\"tools\":[{\"type\":"
	    "\"namespace\",\"name\":\"crm\",\"tools\":[{\"type\":\"function\",\"name\":\"f\","
	    "\"parameters\":{\"z\":1.0}}]},{\"type\":\"web_search\",\"q\":1}],\"tool_choice\":\"required\","
	    "\"temperature\":0.50,\"reasoning\":{\"effort\":\"low\"},\"metadata\":{\"a\":\"b\"},\"text\":{"
	    "\"verbosity\":\"low\"},\"parallel_tool_calls\":false,\"max_output_tokens\":99}";
	static const char *const wants[] = {"\"id\":\"resp_ours\"", "\"object\":\"response\"",
	    "\"created_at\":7", "\"status\":\"in_progress\"", "\"model\":\"asked\"",
	    "\"previous_response_id\":\"resp_before\"", "\"store\":true", "\"instructions\":\"Be\"",
	    "\"max_output_tokens\":99", "\"parallel_tool_calls\":false",
	    "\"reasoning\":{\"effort\":\"low\",\"summary\":null}", "\"temperature\":0.50",
	    "\"top_p\":null", "\"text\":{\"format\":{\"type\":\"text\"},\"verbosity\":\"low\"}",
	    "\"tool_choice\":\"required\"",
	    "\"tools\":[{\"type\":\"namespace\",\"name\":\"crm\",\"tools\":[{\"type\":\"function\","
	    "\"name\":\"f\",\"parameters\":{\"z\":1.0},\"strict\":false}]},{\"type\":\"web_search\",\"q\":1}]",
	    "\"truncation\":\"disabled\"", "\"metadata\":{\"a\":\"b\"}", "\"usage\":null"};
	struct arena *arena = arena_new(64 * MB);
	struct flow_job job = job_of(arena, false);
	struct buf *out = arena_buf(arena, MB);
	struct flow_writer *w;
	struct form form;

	(void)state;
	assert_int_equal(form_read_responses(arena, text_span(request), &form, NULL), ERR_OK);
	job.form = &form;
	job.response_id = SPAN("resp_ours");
	job.previous_id = SPAN("resp_before");
	w = flow_write_responses.begin(&job);
	flow_write_responses.step(w, &first, out);
	for (size_t i = 0; i < NELEM(wants); i++)
		if (strstr(out->p, wants[i]) == NULL) {
			print_error("no %s in\n%s\n", wants[i], out->p);
			fail();
		}
	arena_free(&arena);
}

static void
test_errors(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct flow_job job = job_of(arena, false);
	struct flow_writer *w = flow_write_responses.begin(&job);
	struct buf *out = arena_buf(arena, MB);
	const struct flow text = T("x"), stop = BREAK;
	size_t at;

	(void)state;
	flow_write_responses.error(w, 429, NULL, NULL, SPAN("slow"), out);
	assert_string_equal(out->p,
	    "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"code\":"
	    "\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}\n\n");
	w = flow_write_responses.begin(&job);
	flow_write_responses.step(w, &first, out);
	flow_write_responses.step(w, &text, out);
	flow_write_responses.step(w, &stop, out);
	at = out->n;
	flow_write_responses.error(w, 502, NULL, "upstream_error", SPAN("broken"), out);
	assert_true(text_starts(text_from(buf_text(out), at),
	    "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":7,"
	    "\"response\":{\"id\":\"resp_"));
	assert_non_null(strstr(out->p + at, "\"status\":\"failed\""));
	assert_non_null(
	    strstr(out->p + at, "\"error\":{\"code\":\"upstream_error\",\"message\":\"broken\"}"));
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_echo),
	    cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
