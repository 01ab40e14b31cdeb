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
#define CREATED                                                                                  \
	"{\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"model\":\"m\",\"output\":" \
	"[]}}\n"
#define ITEM(what, index, item)                                                                 \
	"{\"type\":\"response.output_item." what "\",\"output_index\":" index ",\"item\":" item \
	"}\n"
#define EVENT(type, id, index, rest)                                                              \
	"{\"type\":\"response." type "\",\"item_id\":\"" id "\",\"output_index\":" index "," rest \
	"}\n"
#define MESSAGE(id) "{\"id\":\"" id "\",\"type\":\"message\",\"content\":[]}"
#define TEXT(id, index, text) \
	EVENT("output_text.delta", id, index, "\"content_index\":0,\"delta\":\"" text "\"")
#define CALL(id, call, name, arguments)                                                           \
	"{\"id\":\"" id "\",\"type\":\"function_call\",\"call_id\":\"" call "\",\"name\":\"" name \
	"\",\"arguments\":\"" arguments "\"}"
#define ARGS(id, index, text) \
	EVENT("function_call_arguments.delta", id, index, "\"delta\":\"" text "\"")
#define USAGE                                                                           \
	"\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":4}," \
	"\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_tokens\":5},\"total_tokens\":16}"
#define COMPLETED(output)                                                                          \
	"{\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"model\":\"m\",\"status\":" \
	"\"completed\",\"output\":" output "," USAGE "}}\n"
#define INCOMPLETE(reason)                                                                        \
	"{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_" \
	"details\":{\"reason\":\"" reason "\"}}}\n"
#define START "start:r1,m"
#define END "|usage:9,7,4,-1,5|end"
#define SEAL(payload) "sl1.r.343677762813." payload
#define SUMMARY(part, text)                              \
	EVENT("reasoning_summary_text.delta", "rs", "0", \
	    "\"summary_index\":" part ",\"delta\":\"" text "\"")
#define REASONING(rest) "{\"id\":\"rs\",\"type\":\"reasoning\"" rest "}"

static const struct {
	const char *what, *events, *want;
} streams[] = {
    {"text",
        CREATED ITEM("added", "0", MESSAGE("a")) TEXT("a", "0", "Hel")
            TEXT("a", "0", "lo\\n\\u4f60") COMPLETED("[]"),
        START "|text:Hello\n\xe4\xbd\xa0|stop" END},
    {"text that ends as it should is given once",
        CREATED ITEM("added", "0", MESSAGE("a")) TEXT("a", "0", "Hi") EVENT(
            "output_text.done", "a", "0", "\"content_index\":0,\"text\":\"Hi\"") ITEM("done", "0",
            "{\"id\":\"a\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
            "\"text\":\"Hi\"}]}")
            COMPLETED("[{\"id\":\"a\",\"type\":\"message\",\"content\":[{\"type\":"
                      "\"output_text\",\"text\":\"Hi\"}]}]"),
        START "|text:Hi|stop" END},
    {"text only in its .done",
        CREATED EVENT("output_text.done", "a", "0", "\"content_index\":0,\"text\":\"Hi\"")
            COMPLETED("[]"),
        START "|text:Hi|stop" END},
    {"text only in the item",
        CREATED ITEM("done", "0",
            "{\"id\":\"a\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":"
            "\"Hi\"},{\"type\":\"refusal\",\"refusal\":\"no\"}]}") COMPLETED("[]"),
        START "|text:Hi|break|refusal:no|stop" END},
    {"text only at the end",
        CREATED COMPLETED("[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":"
                          "\"Hi\"}]}]"),
        START "|text:Hi|stop" END},
    {"nothing but pieces of text (no created, no item, no ids)",
        "{\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n"
        "{\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n",
        "start:,|text:ab|stop|end"},
    {"ids that change in midstream, as one host's do",
        CREATED ITEM("added", "0", MESSAGE("a")) TEXT("b", "0", "x") TEXT("c", "0", "y") EVENT(
            "output_text.done", "d", "0", "\"content_index\":0,\"text\":\"xy\"") ITEM("done", "0",
            "{\"id\":\"e\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
            "\"text\":\"xy\"}]}") COMPLETED("[]"),
        START "|text:xy|stop" END},
    {"indexes that are always 0",
        CREATED ITEM("added", "0", MESSAGE("a")) TEXT("a", "0", "x")
            ITEM("added", "0", CALL("b", "c1", "f", "")) ARGS("b", "0", "{}")
                ITEM("added", "0", CALL("c", "c2", "g", "")) ARGS("c", "0", "{\\\"a\\\":1}")
                    ITEM("done", "0", CALL("b", "c1", "f", "{}"))
                        ITEM("done", "0", CALL("c", "c2", "g", "{\\\"a\\\":1}")) COMPLETED("[]"),
        START "|text:x|call0:c1,f|args0:{}|call1:c2,g|args1:{\"a\":1}|end0|end1|calls" END},
    {"two parts, two messages",
        CREATED TEXT("a", "0", "x") EVENT("output_text.delta", "a", "0",
            "\"content_index\":1,\"delta\":\"y\"") TEXT("b", "1", "z") COMPLETED("[]"),
        START "|text:x|break|text:y|break|text:z|stop" END},
    {"refusal",
        CREATED EVENT("refusal.delta", "a", "0", "\"content_index\":0,\"delta\":\"no\"") EVENT(
            "refusal.done", "a", "0", "\"content_index\":0,\"refusal\":\"no\"") COMPLETED("[]"),
        START "|refusal:no|stop" END},
    {"after the end nothing counts, DONE neither",
        CREATED TEXT("a", "0", "x") COMPLETED("[]") TEXT("a", "0", "y") "[DONE]\n",
        START "|text:x|stop" END},
    {"what is no JSON is nothing", CREATED "{\"type\":\n" TEXT("a", "0", "x") COMPLETED("[]"),
        START "|text:x|stop" END},

    {"a call",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", "")) ARGS("a", "0", "{\\\"a\\\"")
            ARGS("a", "0", ":1}")
                EVENT("function_call_arguments.done", "a", "0", "\"arguments\":\"{\\\"a\\\":1}\"")
                    ITEM("done", "0", CALL("a", "c1", "f", "{\\\"a\\\":1}")) COMPLETED("[]"),
        START "|call0:c1,f|args0:{\"a\":1}|end0|calls" END},
    {"calls that overlap",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", ""))
            ITEM("added", "1", CALL("b", "c2", "g", "")) ARGS("b", "1", "{") ARGS("a", "0", "{}")
                ARGS("b", "1", "}") ITEM("done", "1", CALL("b", "c2", "g", "{}"))
                    ITEM("done", "0", CALL("a", "c1", "f", "{}")) COMPLETED("[]"),
        START "|call0:c1,f|call1:c2,g|args1:{|args0:{}|args1:}|end1|end0|calls" END},
    {"arguments only in .done (TOOL-02)",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", ""))
            ITEM("added", "1", CALL("b", "c2", "g", ""))
                EVENT("function_call_arguments.done", "a", "0", "\"arguments\":\"{\\\"a\\\":1}\"")
                    EVENT("function_call_arguments.done", "b", "1", "\"arguments\":\"{}\"")
                        COMPLETED("[]"),
        START "|call0:c1,f|call1:c2,g|args0:{\"a\":1}|args1:{}|end0|end1|calls" END},
    {"arguments only in the item's end",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", ""))
            ITEM("done", "0", CALL("a", "c1", "f", "{\\\"a\\\":1}")) COMPLETED("[]"),
        START "|call0:c1,f|args0:{\"a\":1}|end0|calls" END},
    {"arguments only in the announcement",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", "{}")) COMPLETED("[]"),
        START "|call0:c1,f|args0:{}|end0|calls" END},
    {"a call that was not announced",
        CREATED ARGS("a", "0", "{") ARGS("a", "0", "}")
            ITEM("done", "0", CALL("a", "c1", "f", "{}")) COMPLETED("[]"),
        START "|call0:c1,f|args0:{}|end0|calls" END},
    {"a call without an id",
        CREATED EVENT("function_call_arguments.done", "a", "0",
            "\"name\":\"f\",\"arguments\":\"{}\"") COMPLETED("[]"),
        START "|call0:call_9a7f4bdc09161181c9f926929f2a070b,f|args0:{}|end0|calls" END},
    {"a call only at the end",
        CREATED TEXT("a", "0", "x") COMPLETED("[" MESSAGE("a") "," CALL("b", "c1", "f", "{}") "]"),
        START "|text:x|call0:c1,f|args0:{}|end0|calls" END},
    {"a call without arguments",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", ""))
            ITEM("done", "0", CALL("a", "c1", "f", "")) COMPLETED("[]"),
        START "|call0:c1,f|end0|calls" END},
    {"a call that is cut off (TOOL-16)",
        CREATED ITEM("added", "0", CALL("a", "c1", "f", "")) ARGS("a", "0", "{\\\"a")
            INCOMPLETE("max_output_tokens"),
        START "|call0:c1,f|args0:{\"a|end0|length|end"},
    {"an end that comes twice",
        CREATED ITEM("done", "0", CALL("a", "c1", "f", "{}"))
            ITEM("done", "0", CALL("a", "c1", "f", "{}")) ARGS("a", "0", "{}") COMPLETED("[]"),
        START "|call0:c1,f|args0:{}|end0|calls" END},
    {"custom tool",
        CREATED ITEM("added", "0",
            "{\"id\":\"a\",\"type\":\"custom_tool_call\",\"call_id\":\"c1\",\"name\":\"p\",\"input\":"
            "\"\"}") EVENT("custom_tool_call_input.delta", "a", "0", "\"delta\":\"*\"")
            EVENT("custom_tool_call_input.done", "a", "0", "\"input\":\"*\"") COMPLETED("[]"),
        START "|call0:c1,p,custom|args0:*|end0|calls" END},

    {"summary in parts, and its seal",
        CREATED ITEM("added", "0", REASONING(",\"summary\":[],\"encrypted_content\":\"x\""))
            SUMMARY("0", "a") SUMMARY("0", "b") EVENT("reasoning_summary_text.done", "rs", "0",
                "\"summary_index\":0,\"text\":\"ab\"") SUMMARY("1", "c") ITEM("done", "0",
                REASONING(",\"summary\":[{\"text\":\"ab\"},{\"text\":\"c\"}],"
                          "\"encrypted_content\":\"E\"")) TEXT("a", "1", "x") COMPLETED("[]"),
        START "|thought:ab\n\nc|seal:" SEAL("E") "|text:x|stop" END},
    {"summary only in the item",
        CREATED ITEM("done", "0", REASONING(",\"summary\":[{\"text\":\"a\"},{\"text\":\"b\"}]"))
            COMPLETED("[]"),
        START "|thought:a\n\nb|stop" END},
    {"reasoning as content, and once",
        CREATED EVENT("reasoning_text.delta", "rs", "0", "\"content_index\":0,\"delta\":\"a\"")
            SUMMARY("0", "again") TEXT("m", "1", "x") COMPLETED("[]"),
        START "|thought:a|break|text:x|stop" END},
    {"a seal without words",
        CREATED ITEM("done", "0", REASONING(",\"summary\":[],\"encrypted_content\":\"E\""))
            TEXT("m", "1", "x") COMPLETED("[]"),
        START "|redacted:" SEAL("E") "|text:x|stop" END},
    {"a seal that comes when others speak",
        CREATED SUMMARY("0", "a") TEXT("m", "1", "x") ITEM(
            "done", "0", REASONING(",\"summary\":[],\"encrypted_content\":\"E\"")) COMPLETED("[]"),
        START "|thought:a|break|text:x|redacted:" SEAL("E") "|stop" END},
    {"a thought that ends twice",
        CREATED SUMMARY("0", "a") ITEM("done", "0", REASONING(",\"encrypted_content\":\"E\""))
            ITEM("done", "0", REASONING(",\"encrypted_content\":\"E\"")) COMPLETED("[]"),
        START "|thought:a|seal:" SEAL("E") "|stop" END},
    {"a thought of which nothing is told",
        CREATED ITEM("done", "0", REASONING(",\"summary\":[]")) TEXT("m", "1", "x") COMPLETED("[]"),
        START "|text:x|stop" END},

    {"citation",
        CREATED TEXT("a", "0", "x") EVENT("output_text.annotation.added", "a", "0",
            "\"content_index\":0,\"annotation_index\":0,\"annotation\":{\"type\":"
            "\"url_citation\",\"start_index\":0,\"end_index\":1,\"url\":\"u\",\"title\":\"t\"}")
            COMPLETED("[]"),
        START "|text:x|cite:{\"url\":\"u\",\"title\":\"t\",\"start_index\":0,\"end_index\":1}"
              "|stop" END},
    {"tools of the provider are nothing",
        CREATED ITEM("added", "0", "{\"id\":\"w\",\"type\":\"web_search_call\"}")
            EVENT("web_search_call.searching", "w", "0", "\"x\":1") ITEM("done", "0",
                "{\"id\":\"w\",\"type\":\"web_search_call\"}") TEXT("a", "1", "x") COMPLETED("[]"),
        START "|text:x|stop" END},
    {"filtered", CREATED TEXT("a", "0", "x") INCOMPLETE("content_filter"),
        START "|text:x|filtered|end"},
    {"the stream is over without an end", CREATED TEXT("a", "0", "x"), START "|text:x|stop|end"},
};

static void
feed(struct flow_reader *r, struct span lines, flow_sink_fn *sink, void *arg)
{
	struct span line;

	while (text_token(&lines, "\n", &line)) {
		struct sse_event event = {
		    .raw = line, .data = line, .name = {"", 0}, .has_data = true};

		flow_read_responses.event(r, &event, sink, arg);
	}
	flow_read_responses.end(r, sink, arg);
}

static void
test_streams(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(streams); i++) {
		struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));
		struct buf *got = arena_buf(arena, MB);

		feed(r, text_span(streams[i].events), flow_text, got);
		if (text_is(buf_text(got), streams[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", streams[i].what, got->p, streams[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static const struct {
	const char *what, *body, *want;
} bodies[] = {
    {"all kinds",
        "\n{\"id\":\"r1\",\"model\":\"m\",\"status\":\"completed\",\"output\":[{\"type\":"
        "\"reasoning\",\"summary\":[{\"text\":\"t\"}],\"encrypted_content\":\"E\"},{\"type\":"
        "\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\",\"annotations\":[{"
        "\"type\":\"url_citation\",\"url\":\"u\"}]}]}," CALL("a", "c1", "f", "{}") "," CALL(
            "b", "c2", "g", "") "]," USAGE "}",
        START "|thought:t|seal:" SEAL("E") "|text:x|cite:{\"url\":\"u\"}|call0:c1,f|args0:{}|end0"
                                           "|call1:c2,g|end1|calls" END},
    {"incomplete",
        "{\"id\":\"r1\",\"model\":\"m\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":"
        "\"max_output_tokens\"},\"output\":[]}",
        START "|length|end"},
    {"only output_text", "{\"id\":\"r1\",\"model\":\"m\",\"output_text\":\"x\",\"output\":[]}",
        START "|text:x|stop|end"},
    {"not JSON", "<html>", "start:,|stop|end"},
};

static void
test_bodies(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));
		struct buf *got = arena_buf(arena, MB);

		flow_read_responses.body(r, text_span(bodies[i].body), flow_text, got);
		flow_read_responses.end(r, flow_text, got);
		if (text_is(buf_text(got), bodies[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", bodies[i].what, got->p, bodies[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static const struct {
	const char *file, *want; /* "..." in it: only the ends are compared */
} samples[] = {
    {"openai/responses-stream.resp.sse",
        "start:resp_0f80f320b6d3bc2b016a3c121983f08192898904ff92319f9f,gpt-5-2025-08-07|text:Oi!|stop|"
        "usage:19,118,0,-1,64|end"},
    {"openai/responses-stream-tool.resp.sse",
        "start:resp_0967f4efea4061d0016a3c122223dc81a08195678f441ec027,gpt-5-2025-08-07|call0:call_"
        "nYgMM3oZuxort2H8Ky4uP5RE,weather|args0:{\"location\":\"Florence, Italy\"}|end0|calls|usage:63,"
        "77,0,-1,0|end"},
    {"deepseek/responses-stream.resp.sse",
        "start:bf5e7791-6c05-44ca-b7e0-56aa217150b1,deepseek-v4-flash|thought:We need answer capital "
        "of France.|break|text:The capital of France is Paris.|stop|usage:..."},
};

/* The sample in two pieces, cut at `at`; SIZE_MAX: byte by byte. */
static void
read_cut(struct arena *arena, struct span bytes, size_t at, struct buf *got)
{
	struct flow_reader *r = flow_read_responses.begin(arena, SPAN("ch"));
	size_t step = at == SIZE_MAX ? 1 : at == 0 ? bytes.n : at;
	struct sse_event event;
	struct sse sse;

	sse_init(&sse, MB);
	while (bytes.n > 0) {
		struct span piece = {bytes.p, step < bytes.n ? step : bytes.n};

		assert_int_equal(sse_feed(&sse, piece, NULL), ERR_OK);
		while (sse_next(&sse, &event))
			flow_read_responses.event(r, &event, flow_text, got);
		bytes = text_from(bytes, piece.n);
		step = at == SIZE_MAX ? 1 : bytes.n;
	}
	while (sse_last(&sse, &event))
		flow_read_responses.event(r, &event, flow_text, got);
	flow_read_responses.end(r, flow_text, got);
	sse_release(&sse);
}

static bool
fits(struct span got, const char *want)
{
	struct span w = text_span(want);

	if (!text_ends(w, "..."))
		return text_equal(got, w);
	w.n -= 3;
	return got.n > w.n && memcmp(got.p, w.p, w.n) == 0 && text_ends(got, "|end");
}

static void
test_samples(void **state)
{
	struct arena *arena = arena_new(64 * MB);

	(void)state;
	for (size_t i = 0; i < NELEM(samples); i++) {
		char name[96];
		struct buf bytes, got;

		snprintf(name, sizeof name, "streams/%s", samples[i].file);
		bytes = sample_read(name);
		buf_init(&got, MB);
		for (size_t at = 0; at <= bytes.n; at++) {
			buf_clear(&got);
			read_cut(arena, buf_text(&bytes), at < bytes.n ? at : SIZE_MAX, &got);
			arena_reset(arena);
			if (fits(buf_text(&got), samples[i].want))
				continue;
			print_error("%s cut at %zu\n got  %s\n want %s\n", samples[i].file, at,
			    got.p, samples[i].want);
			fail();
		}
		buf_release(&got);
		buf_release(&bytes);
	}
	arena_free(&arena);
}

/* The streams of a file of payload lines, one after the other: each gives what its end repeats. */
static void
check_lines(struct arena *arena, const char *file, size_t count)
{
	struct buf bytes = sample_read(file);
	struct span lines = buf_text(&bytes), line;
	struct gather *streamed = NULL;
	struct flow_reader *r = NULL;
	size_t n = 0;

	while (text_token(&lines, "\n", &line)) {
		struct sse_event event = {.data = line, .name = {"", 0}, .has_data = true};
		const char *path = "response";
		struct scan_value response;
		struct gather *whole;
		const struct flow_answer *a, *b;

		if (text_find(line, SPAN("\"response.created\"")) < line.n) {
			streamed = gather_begin(arena);
			r = flow_read_responses.begin(arena, SPAN("ch"));
		}
		flow_read_responses.event(r, &event, gather_step, streamed);
		if (!gather_answer(streamed)->ended)
			continue;
		assert_int_equal(scan_pick(line, &path, &response, 1, NULL), ERR_OK);
		whole = gather_begin(arena);
		r = flow_read_responses.begin(arena, SPAN("ch"));
		flow_read_responses.body(r, response.raw, gather_step, whole);
		a = gather_answer(streamed);
		b = gather_answer(whole);
		assert_int_equal(a->finish, b->finish);
		assert_int_equal(a->usage.completion, b->usage.completion);
		assert_int_equal(a->turn.nparts, b->turn.nparts);
		assert_true(a->turn.nparts > 0);
		for (size_t i = 0; i < a->turn.nparts; i++) {
			assert_int_equal(a->turn.parts[i].kind, b->turn.parts[i].kind);
			assert_true(text_equal(a->turn.parts[i].text, b->turn.parts[i].text));
			/* encrypted anew each time it is told */
			assert_int_equal(a->turn.parts[i].thought.seal.n > 0,
			    b->turn.parts[i].thought.seal.n > 0);
			assert_true(text_equal(
			    a->turn.parts[i].call.arguments, b->turn.parts[i].call.arguments));
		}
		n++;
		r = NULL;
	}
	assert_int_equal(n, count);
	buf_release(&bytes);
}

static void
test_lines(void **state)
{
	struct arena *arena = arena_new(64 * MB);

	(void)state;
	check_lines(arena, "streams/vercel-ai-chunks/lmstudio-basic.1.chunks.txt", 1);
	check_lines(
	    arena, "streams/vercel-ai-chunks/openai-reasoning-encrypted-content.1.chunks.txt", 4);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
