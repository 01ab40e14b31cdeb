#include "dialect/flow.h"

#include "dialect/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"
#include "lib/sample.h"

#define MB ((size_t)1 << 20)

/* Events stand between lines. */
#define CHUNK(choice) "{\"id\":\"c1\",\"model\":\"m\",\"choices\":[" choice "]}\n"
#define DELTA(delta) CHUNK("{\"index\":0,\"delta\":" delta "}")
#define TEXT(text) DELTA("{\"content\":\"" text "\"}")
#define CALLS(entries) DELTA("{\"tool_calls\":[" entries "]}")
#define FINISH(reason) CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":" reason "}")
#define DONE "[DONE]\n"
#define START "start:c1,m"
#define ENTRY(head, name, arguments) \
	"{" head "\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}"
#define ID0 "call_67da500ed7759eed7cf5c081"
#define ID1 "call_319ef19ce6f0998e181a7475"

static const struct {
	const char *what, *events, *want;
} streams[] = {
    {"text",
        DELTA("{\"role\":\"assistant\",\"content\":\"\"}") TEXT("Hel") TEXT("lo\\n\\u4f60")
            FINISH("\"stop\"") DONE,
        START "|text:Hello\n\xe4\xbd\xa0|stop|end"},
    {"no role chunk, no DONE (SSE-13)", TEXT("Hi") FINISH("\"stop\""), START "|text:Hi|stop|end"},
    {"finish with text and usage in one chunk",
        "{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Hi\"},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
        "\"total_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n" DONE,
        START "|text:Hi|stop|usage:3,2,1,-1,-1|end"},
    {"usage chunk",
        TEXT("Hi") FINISH("\"stop\"") "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
                                      "\"completion_tokens\":2}}\n" DONE,
        START "|text:Hi|stop|usage:3,2,-1,-1,-1|end"},
    {"usage in each chunk, and in the choice",
        CHUNK("{\"delta\":{\"content\":\"a\"},\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":"
              "1}}") CHUNK("{\"delta\":{\"content\":\"b\"},\"usage\":{\"prompt_tokens\":3,"
                           "\"completion_tokens\":2}}") FINISH("\"stop\"") DONE,
        START "|text:ab|stop|usage:3,2,-1,-1,-1|end"},
    {"after DONE nothing counts", TEXT("a") FINISH("\"stop\"") DONE TEXT("b"),
        START "|text:a|stop|end"},
    {"Azure's first chunk",
        "{\"choices\":[],\"id\":\"\",\"model\":\"\",\"prompt_filter_results\":"
        "[{}]}\n" TEXT("a") FINISH("\"stop\"") DONE,
        START "|text:a|stop|end"},
    {"only the first choice",
        TEXT("a") CHUNK("{\"index\":1,\"delta\":{\"content\":\"x\"}}") FINISH("\"stop\""),
        START "|text:a|stop|end"},
    {"what is no JSON is nothing", TEXT("a") "{\"choices\":[\n" FINISH("\"stop\""),
        START "|text:a|stop|end"},
    {"the whole message at the end is nothing new",
        TEXT("a") CHUNK("{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}"),
        START "|text:a|stop|end"},
    {"a message instead of deltas",
        CHUNK("{\"message\":{\"content\":\"a\"},\"finish_reason\":"
              "\"stop\"}"),
        START "|text:a|stop|end"},

    {"finish: length", TEXT("a") FINISH("\"length\""), START "|text:a|length|end"},
    {"finish: window", TEXT("a") FINISH("\"model_context_window_exceeded\""),
        START "|text:a|length|end"},
    {"finish: sensitive", TEXT("a") FINISH("\"sensitive\""), START "|text:a|filtered|end"},
    {"finish: eos", TEXT("a") FINISH("\"eos\""), START "|text:a|stop|end"},
    {"finish: empty, null, then unknown (CONV-16)",
        TEXT("a") FINISH("\"\"") FINISH("null") FINISH("\"foo\""), START "|text:a|stop|end"},
    {"finish: calls without a call", TEXT("a") FINISH("\"tool_calls\""), START "|text:a|stop|end"},

    {"reasoning under three names",
        DELTA("{\"reasoning_content\":\"a\",\"reasoning\":\"a\","
              "\"content\":null}") DELTA("{\"reasoning\":\"b\"}")
            DELTA("{\"reasoning_text\":\"c\",\"reasoning_content\":\"\"}") TEXT("d")
                FINISH("\"stop\""),
        START "|thought:abc|text:d|stop|end"},
    {"reasoning comes before the text of its chunk",
        DELTA("{\"content\":\"b\",\"reasoning_content\":\"a\"}") FINISH("\"stop\""),
        START "|thought:a|text:b|stop|end"},
    {"reasoning only (CONV-17)", DELTA("{\"reasoning_content\":\"a\"}") FINISH("\"stop\""),
        START "|thought:a|stop|end"},
    {"reasoning details",
        DELTA("{\"reasoning\":\"a\",\"reasoning_details\":[{\"type\":"
              "\"reasoning.text\",\"text\":\"a\"}]}")
            DELTA("{\"reasoning_details\":[{\"type\":\"reasoning.summary\","
                  "\"summary\":\"b\"},{\"type\":\"reasoning.encrypted\",\"data\":"
                  "\"X\"}]}") TEXT("c") FINISH("\"stop\""),
        START "|thought:ab|seal:sl1.c.343677762813.[{\"type\":\"reasoning.encrypted\",\"data\":"
              "\"X\"}]|text:c|stop|end"},
    {"Mistral's parts",
        DELTA("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":"
              "\"text\",\"text\":\"a\"}]}]}")
            DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}") FINISH("\"stop\""),
        START "|thought:a|text:b|stop|end"},
    {"refusal", DELTA("{\"refusal\":\"no\"}") FINISH("\"stop\""), START "|refusal:no|stop|end"},
    {"annotations",
        DELTA("{\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{"
              "\"start_index\":1,\"end_index\":2,\"url\":\"u\",\"title\":\"t\","
              "\"content\":\"z\"}}]}") FINISH("\"stop\""),
        START "|cite:{\"url\":\"u\",\"title\":\"t\",\"start_index\":1,\"end_index\":2}|stop|end"},

    {"a call",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",\"type\":\"function\",", "f", ""))
            CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}}") CALLS(
                "{\"index\":0,\"function\":{\"arguments\":\":1}\"}}") FINISH("\"tool_calls\"") DONE,
        START "|call0:a,f|args0:{\"a\":1}|end0|calls|end"},
    {"calls that interleave",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", ""))
            CALLS(ENTRY("\"index\":1,\"id\":\"b\",", "g", "")) CALLS(
                "{\"index\":0,\"function\":{\"arguments\":\"{\"}},{\"index\":1,\"function\":{"
                "\"arguments\":\"{\"}}") CALLS("{\"index\":1,\"function\":{\"arguments\":\"}\"}}")
                CALLS("{\"index\":0,\"function\":{\"arguments\":\"}\"}}") FINISH("\"stop\""),
        START "|call0:a,f|call1:b,g|args0:{|args1:{}|args0:}|end0|end1|calls|end"},
    {"a whole call ends when the next begins",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "{\\\"x\\\":\\\"}\\\"}"))
            CALLS(ENTRY("\"index\":1,\"id\":\"b\",", "g", "{}")) FINISH("\"tool_calls\""),
        START "|call0:a,f|args0:{\"x\":\"}\"}|end0|call1:b,g|args1:{}|end1|calls|end"},
    {"name and id again, empty, null (TOOL-04)",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "")) CALLS(ENTRY("\"index\":0,\"id\":\"\",",
            "", "{")) CALLS(ENTRY("\"index\":0,\"id\":null,", "f", "\\\"a\\\""))
            CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", ":1}")) FINISH("\"tool_calls\""),
        START "|call0:a,f|args0:{\"a\":1}|end0|calls|end"},
    {"another id for each piece, without names",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "{"))
            CALLS(ENTRY("\"index\":0,\"id\":\"b\",", "", "}")) FINISH("\"tool_calls\""),
        START "|call0:a,f|args0:{}|end0|calls|end"},
    {"index 0 for every call",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "{}"))
            CALLS(ENTRY("\"index\":0,\"id\":\"b\",", "f", "{}")) FINISH("\"tool_calls\""),
        START "|call0:a,f|args0:{}|end0|call1:b,f|args1:{}|end1|calls|end"},
    {"no index: told apart by id (TOOL-05)",
        CALLS(ENTRY("\"id\":\"a\",", "f", "{") "," ENTRY("\"id\":\"b\",", "g", "{"))
            CALLS("{\"id\":\"b\",\"function\":{\"arguments\":\"}\"}}")
                CALLS("{\"id\":\"a\",\"function\":{\"arguments\":\"}\"}}") FINISH("\"stop\""),
        START "|call0:a,f|args0:{|call1:b,g|args1:{}|args0:}|end0|end1|calls|end"},
    {"no index, no id: by place",
        CALLS(ENTRY("", "f", "{") "," ENTRY("", "g", "{"))
            CALLS(ENTRY("", "", "}") "," ENTRY("", "", "}")) FINISH("\"stop\""),
        START "|call0:" ID0 ",f|args0:{|call1:" ID1
              ",g|args1:{|args0:}|args1:}|end0|end1|calls|end"},
    {"no index, no id, one at a time",
        CALLS(ENTRY("", "f", "{\\\"a\\\"")) CALLS(ENTRY("", "f", ":1}")) CALLS(ENTRY("", "g", "{}"))
            FINISH("\"stop\""),
        START "|call0:" ID0 ",f|args0:{\"a\":1}|end0|call1:" ID1 ",g|args1:{}|end1|calls|end"},
    {"an id of \"\"", CALLS(ENTRY("\"index\":0,\"id\":\"\",", "f", "{}")) FINISH("\"stop\""),
        START "|call0:" ID0 ",f|args0:{}|end0|calls|end"},
    {"an id twice",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "{}") "," ENTRY(
            "\"index\":1,\"id\":\"a\",", "g", "{}")) FINISH("\"stop\""),
        START "|call0:a,f|args0:{}|end0|call1:" ID1 ",g|args1:{}|end1|calls|end"},
    {"the id comes late",
        CALLS(ENTRY("\"index\":0,", "f", "")) CALLS("{\"index\":0,\"id\":\"a\"}")
            FINISH("\"stop\""),
        START "|call0:a,f|end0|calls|end"},
    {"the name comes late",
        CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{\"}}")
            CALLS(ENTRY("\"index\":0,", "f", "}")) FINISH("\"stop\""),
        START "|call0:a,f|args0:{}|end0|calls|end"},
    {"a call without a name is none",
        CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}")
            FINISH("\"tool_calls\""),
        START "|stop|end"},
    {"no id, no arguments", CALLS(ENTRY("\"index\":0,", "f", "")) FINISH("\"tool_calls\""),
        START "|call0:" ID0 ",f|end0|calls|end"},
    {"arguments as an object (TOOL-07, TOOL-19)",
        CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"u\":"
              "18446744073709551616,\"f\":1.10}}}") FINISH("\"stop\""),
        START "|call0:a,f|args0:{\"u\":18446744073709551616,\"f\":1.10}|end0|calls|end"},
    {"cut by length (TOOL-16)",
        CALLS(ENTRY("\"index\":0,\"id\":\"a\",", "f", "{\\\"a")) FINISH("\"length\""),
        START "|call0:a,f|args0:{\"a|end0|length|end"},
    {"custom",
        CALLS("{\"index\":0,\"id\":\"a\",\"type\":\"custom\",\"custom\":{\"name\":\"g\","
              "\"input\":\"\"}}") CALLS("{\"index\":0,\"custom\":{\"input\":\"x{\"}}")
            FINISH("\"tool_calls\""),
        START "|call0:a,g,custom|args0:x{|end0|calls|end"},
    {"function_call",
        DELTA("{\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}}")
            DELTA("{\"function_call\":{\"arguments\":\"{}\"}}") FINISH("\"function_call\""),
        START "|call0:" ID0 ",f|args0:{}|end0|calls|end"},
    {"odd entries",
        CALLS("null,7,[],{\"index\":\"x\"},{\"function\":null}") TEXT("a") FINISH("\"stop\""),
        START "|text:a|stop|end"},
};

static void
feed(const struct flow_reader_kind *kind, struct flow_reader *r, struct span lines,
    flow_sink_fn *sink, void *arg)
{
	struct span line;

	while (text_token(&lines, "\n", &line)) {
		struct sse_event event = {.raw = line, .data = line, .has_data = true};

		kind->event(r, &event, sink, arg);
	}
	kind->end(r, sink, arg);
}

static void
test_streams(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(streams); i++) {
		struct flow_reader *r = flow_read_chat.begin(arena, SPAN("ch"));
		struct buf *got = arena_buf(arena, MB);

		feed(&flow_read_chat, r, text_span(streams[i].events), flow_text, got);
		if (text_is(buf_text(got), streams[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", streams[i].what, got->p, streams[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

#define BODY(message, finish)                                                             \
	"\n{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":" message \
	",\"finish_reason\":\"" finish                                                    \
	"\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"                    \
	"\"prompt_cache_hit_tokens\":1,\"completion_tokens_details\":{\"reasoning_tokens\":1}}}"
#define HEAD                                                                                        \
	"{\"id\":\"chatcmpl-c1\",\"object\":\"chat.completion\",\"created\":7,\"model\":\"asked\"," \
	"\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
#define TAIL(finish)                                                                      \
	"},\"logprobs\":null,\"finish_reason\":\"" finish                                 \
	"\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5," \
	"\"prompt_tokens_details\":{\"cached_tokens\":1},\"completion_tokens_details\":{" \
	"\"reasoning_tokens\":1}}}"

/* Plain bodies: read, gathered, written. */
static const struct {
	const char *what, *body, *want;
} bodies[] = {
    {"text", BODY("{\"role\":\"assistant\",\"content\":\"Hi\"}", "stop"),
        HEAD "\"content\":\"Hi\",\"refusal\":null" TAIL("stop")},
    {"empty", BODY("{\"content\":null}", "stop"),
        HEAD "\"content\":\"\",\"refusal\":null" TAIL("stop")},
    {"reasoning and a call (TOOL-20)",
        BODY(
            "{\"content\":null,\"reasoning_content\":\"t\",\"tool_calls\":[{\"id\":\"a\","
            "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1.10}\"}"
            "}]}",
            "tool_calls"),
        HEAD "\"reasoning_content\":\"t\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\","
             "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1.10}\"}}],\"content\":null,"
             "\"refusal\":null" TAIL("tool_calls")},
    {"a call without arguments",
        BODY("{\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}",
            "stop"),
        HEAD "\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\","
             "\"arguments\":\"{}\"}}],\"content\":null,\"refusal\":null" TAIL("tool_calls")},
    {"names are put back, custom is unwrapped",
        BODY(
            "{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"sent\",\"arguments\":\"{}\"}},"
            "{\"id\":\"b\",\"function\":{\"name\":\"cust\",\"arguments\":\"{\\\"input\\\":"
            "\\\"x\\\\n\\\"}\"}}]}",
            "tool_calls"),
        HEAD
        "\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"original\","
        "\"arguments\":\"{}\"}},{\"id\":\"b\",\"type\":\"custom\",\"custom\":{\"name\":\"cust\","
        "\"input\":\"x\\n\"}}],\"content\":null,\"refusal\":null" TAIL("tool_calls")},
    {"refusal", BODY("{\"content\":null,\"refusal\":\"no\"}", "content_filter"),
        HEAD "\"content\":\"\",\"refusal\":\"no\"" TAIL("content_filter")},
    {"citations",
        BODY("{\"content\":\"a\",\"annotations\":[{\"type\":\"url_citation\","
             "\"url_citation\":{\"url\":\"u\"}}]}",
            "stop"),
        HEAD "\"content\":\"a\",\"refusal\":null,\"annotations\":[{\"type\":\"url_citation\","
             "\"url_citation\":{\"url\":\"u\"}}]" TAIL("stop")},
};

static struct form_name renamed[] = {
    {.sent = {"sent", 4}, .original = {"original", 8}},
    {.sent = {"cust", 4}, .original = {"cust", 4}, .custom = true},
};
static const struct form_loss loss = {.names = renamed, .nnames = NELEM(renamed)};

static struct flow_job
job_of(struct arena *arena, bool wants_usage)
{
	return (struct flow_job){.arena = arena,
	    .model = SPAN("asked"),
	    .id = SPAN("req1"),
	    .created_s = 7,
	    .wants_usage = wants_usage,
	    .loss = &loss};
}

static void
test_bodies(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct flow_job job = job_of(arena, false);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct flow_reader *r = flow_read_chat.begin(arena, SPAN("ch"));
		struct gather *g = gather_begin(arena);
		struct buf *got = arena_buf(arena, MB);

		flow_read_chat.body(r, text_span(bodies[i].body), gather_step, g);
		assert_true(gather_answer(g)->ended);
		flow_answer_chat(&job, gather_answer(g), got);
		if (text_is(buf_text(got), bodies[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", bodies[i].what, got->p, bodies[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

#define OUT(choices)                                                                                  \
	"data: {\"id\":\"chatcmpl-c1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":" \
	"\"asked\",\"choices\":[" choices
#define OUT_DELTA(delta) \
	OUT("{\"index\":0,\"delta\":" delta ",\"finish_reason\":null}],\"usage\":null}\n\n")
#define ROLE OUT_DELTA("{\"role\":\"assistant\",\"content\":\"\"}")
#define OUT_CALL(call) OUT_DELTA("{\"tool_calls\":[" call "]}")
#define OUT_END(finish)                                                                         \
	OUT("{\"index\":0,\"delta\":{},\"finish_reason\":\"" finish "\"}],\"usage\":null}\n\n") \
	"data: [DONE]\n\n"
#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct dialect_usage usage = {.seen = true,
    .prompt = 3,
    .completion = 2,
    .cached = -1,
    .cache_write = 4,
    .reasoning = -1,
    .total = 5};

/* Steps to bytes. The first step is the start, the last the end. */
static const struct {
	const char *what;
	struct flow steps[10];
	const char *want;
} writes[] = {
    {"text and usage",
        {{.kind = FLOW_START, .id = S("c1")}, {.kind = FLOW_TEXT, .text = S("Hi \"you\"")},
            {.kind = FLOW_TEXT, .text = S("")}, {.kind = FLOW_FINISH, .finish = FLOW_STOP_TEXT},
            {.kind = FLOW_USAGE, .usage = &usage}, {.kind = FLOW_END}},
        ROLE OUT_DELTA("{\"content\":\"Hi \\\"you\\\"\"}")
            OUT("{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n") OUT(
                "],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5,"
                "\"prompt_tokens_details\":{\"cached_tokens\":0,\"cache_write_tokens\":4}}}\n\n") "data: [DONE]\n\n"},
    {"refusal",
        {{.kind = FLOW_START, .id = S("c1")}, {.kind = FLOW_REFUSAL, .text = S("no")},
            {.kind = FLOW_FINISH, .finish = FLOW_FILTERED}, {.kind = FLOW_END}},
        ROLE OUT_DELTA("{\"refusal\":\"no\"}") OUT_END("content_filter")},
    {"thoughts and seals",
        {{.kind = FLOW_START, .id = S("c1")}, {.kind = FLOW_THOUGHT, .text = S("on")},
            {.kind = FLOW_THOUGHT, .text = S("e")}, {.kind = FLOW_SEAL, .text = S("S1")},
            {.kind = FLOW_REDACTED, .text = S("S2")}, {.kind = FLOW_THOUGHT, .text = S("two")},
            {.kind = FLOW_SEAL, .text = S("S3")}, {.kind = FLOW_TEXT, .text = S("a")},
            {.kind = FLOW_FINISH, .finish = FLOW_LENGTH}, {.kind = FLOW_END}},
        ROLE OUT_DELTA("{\"reasoning_content\":\"on\"}") OUT_DELTA("{\"reasoning_content\":\"e\"}")
            OUT_DELTA("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":\"S1\","
                      "\"id\":\"text-0-3\"}]}")
                OUT_DELTA("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":"
                          "\"S2\",\"id\":\"redacted\"}]}")
                    OUT_DELTA("{\"reasoning_content\":\"\\n\\n\"}")
                        OUT_DELTA("{\"reasoning_content\":\"two\"}")
                            OUT_DELTA("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\","
                                      "\"data\":\"S3\",\"id\":\"text-5-8\"}]}")
                                OUT_DELTA("{\"content\":\"a\"}") OUT_END("length")},
    {"calls, one without arguments",
        {{.kind = FLOW_START, .id = S("c1")},
            {.kind = FLOW_CALL, .call = 0, .id = S("a"), .name = S("sent")},
            {.kind = FLOW_CALL, .call = 1, .id = S("b"), .name = S("g")},
            {.kind = FLOW_ARGUMENTS, .call = 1, .text = S("{\"x\":1}")},
            {.kind = FLOW_CALL_END, .call = 0}, {.kind = FLOW_CALL_END, .call = 1},
            {.kind = FLOW_FINISH, .finish = FLOW_CALLS}, {.kind = FLOW_END}},
        ROLE OUT_CALL("{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":"
                      "\"original\",\"arguments\":\"\"}}")
            OUT_CALL("{\"index\":1,\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"g\","
                     "\"arguments\":\"\"}}")
                OUT_CALL("{\"index\":1,\"function\":{\"arguments\":\"{\\\"x\\\":1}\"}}") OUT_CALL(
                    "{\"index\":0,\"function\":{\"arguments\":\"{}\"}}") OUT_END("tool_calls")},
    {"a wrapped tool",
        {{.kind = FLOW_START, .id = S("c1")},
            {.kind = FLOW_CALL, .call = 0, .id = S("a"), .name = S("cust")},
            {.kind = FLOW_ARGUMENTS, .call = 0, .text = S("{\"input\":\"x")},
            {.kind = FLOW_ARGUMENTS, .call = 0, .text = S("y\"}")},
            {.kind = FLOW_CALL_END, .call = 0}, {.kind = FLOW_FINISH, .finish = FLOW_CALLS},
            {.kind = FLOW_END}},
        ROLE OUT_CALL("{\"index\":0,\"id\":\"a\",\"type\":\"custom\",\"custom\":{\"name\":\"cust\","
                      "\"input\":\"\"}}") OUT_CALL("{\"index\":0,\"custom\":{\"input\":\"xy\"}}")
            OUT_END("tool_calls")},
    {"a citation",
        {{.kind = FLOW_START, .id = S("c1")}, {.kind = FLOW_CITATION, .text = S("{\"url\":\"u\"}")},
            {.kind = FLOW_FINISH, .finish = FLOW_PAUSED}, {.kind = FLOW_END}},
        ROLE OUT_DELTA("{\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{\"url\":"
                       "\"u\"}}]}") OUT_END("stop")},
};

static void
test_writes(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct flow_job job = job_of(arena, true);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(writes); i++) {
		struct flow_writer *w = flow_write_chat.begin(&job);
		struct buf *got = arena_buf(arena, MB);

		for (size_t k = 0; k < NELEM(writes[i].steps); k++) {
			flow_write_chat.step(w, &writes[i].steps[k], got);
			if (writes[i].steps[k].kind == FLOW_END)
				break;
		}
		if (text_is(buf_text(got), writes[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", writes[i].what, got->p, writes[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static void
test_error(void **state)
{
	struct arena *arena = arena_new(MB);
	struct flow_job job = job_of(arena, false);
	struct flow_writer *w = flow_write_chat.begin(&job);
	struct buf *got = arena_buf(arena, MB);

	(void)state;
	flow_write_chat.error(w, 502, NULL, NULL, SPAN("broken"), got);
	assert_true(text_starts(buf_text(got), "data: {\"error\":{\"message\":\"broken\""));
	assert_true(text_ends(buf_text(got), "}\n\n"));
	arena_free(&arena);
}

static const struct {
	const char *file, *want; /* how the steps end */
	size_t min;              /* bytes of all steps, at least */
} samples[] = {
    {"streams/openai/chat-stream.resp.sse", "|stop|usage:20,2,0,-1,0|end", 60},
    {"streams/openai/chat-stream-multi-tool.resp.sse", "|end1|calls|usage:", 150},
    {"streams/openai/chat-stream-tool-1.resp.sse", "|end0|calls|usage:", 100},
    {"streams/azure/chat-stream.resp.sse", "|stop|usage:", 40},
    {"streams/deepseek/chat-stream.resp.sse", "|stop|usage:", 40},
    {"streams/deepseek/chat-stream-tool.resp.sse", "|calls|usage:", 100},
    {"streams/zhipu/chat-stream-thinking.resp.sse", "|calls|usage:", 200},
    {"streams/zhipu/chat-stream-tool.resp.sse", "|calls|usage:", 200},
    {"streams/kimi/groq-stream-tool.resp.sse", "|calls|usage:", 100},
    {"streams/llamacpp/chat-stream.resp.sse", "|stop|", 100},
    {"streams/openrouter/chat-stream-comments.resp.sse", "|stop|usage:", 100},
    {"streams/vercel-ai-chunks/groq-tool-call.chunks.txt", "|calls|usage:", 60},
    {"streams/vercel-ai-chunks/mistral-text.chunks.txt", "|stop|usage:", 40},
    {"streams/vercel-ai-chunks/moonshotai-stream.chunks.txt", "|stop|usage:", 40},
    {"streams/vercel-ai-chunks/xai-tool-call.chunks.txt", "|calls|usage:", 60},
};

struct echo {
	struct flow_writer *writer;
	struct buf *out, *steps;
};

static void
echo_step(void *arg, const struct flow *step)
{
	struct echo *echo = arg;

	flow_write_chat.step(echo->writer, step, echo->out);
	flow_text(echo->steps, step);
}

static void
feed_sse(struct span bytes, struct flow_reader *r, flow_sink_fn *sink, void *arg)
{
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, MB);
	assert_int_equal(sse_feed(&sse, bytes, NULL), ERR_OK);
	while (sse_next(&sse, &event))
		flow_read_chat.event(r, &event, sink, arg);
	while (sse_last(&sse, &event))
		flow_read_chat.event(r, &event, sink, arg);
	flow_read_chat.end(r, sink, arg);
	sse_release(&sse);
}

/* What hosts sent, read, written and read again: the same steps, but for ids of the answer. */
static void
test_samples(void **state)
{
	struct arena *arena = arena_new(64 * MB);

	(void)state;
	for (size_t i = 0; i < NELEM(samples); i++) {
		struct flow_job job = job_of(arena, true);
		struct buf sample = sample_read(samples[i].file), *again = arena_buf(arena, MB);
		struct echo echo = {.writer = flow_write_chat.begin(&job),
		    .out = arena_buf(arena, MB),
		    .steps = arena_buf(arena, MB)};
		struct flow_reader *r = flow_read_chat.begin(arena, SPAN("ch"));
		struct span first, second;

		if (text_ends(text_span(samples[i].file), ".txt"))
			feed(&flow_read_chat, r, buf_text(&sample), echo_step, &echo);
		else
			feed_sse(buf_text(&sample), r, echo_step, &echo);
		feed_sse(
		    buf_text(echo.out), flow_read_chat.begin(arena, SPAN("ch")), flow_text, again);
		first = buf_text(echo.steps);
		second = buf_text(again);
		if (text_find(first, text_span(samples[i].want)) == first.n ||
		    first.n < samples[i].min)
			fail_msg("%s: %s", samples[i].file, echo.steps->p);
		first = text_from(first, text_find(first, SPAN("|")));
		second = text_from(second, text_find(second, SPAN("|")));
		if (!text_equal(first, second))
			fail_msg("%s\n once  %s\n twice %s", samples[i].file, first.p, second.p);
		buf_release(&sample);
	}
	arena_free(&arena);
}

/* A thousand calls with as many pieces each: time and memory are in proportion. */
static void
test_many(void **state)
{
	struct arena *arena = arena_new(256 * MB);
	struct flow_reader *r = flow_read_chat.begin(arena, SPAN("ch"));
	struct gather *g = gather_begin(arena);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char line[160];
		int n = snprintf(line, sizeof line,
		    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"i%d\","
		    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
		    i % 5000, i % 5000);
		struct sse_event event = {.data = {line, (size_t)n}, .has_data = true};

		flow_read_chat.event(r, &event, gather_step, g);
	}
	flow_read_chat.end(r, gather_step, g);
	assert_int_equal(gather_answer(g)->turn.nparts, 4096);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_writes),
	    cmocka_unit_test(test_error),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
