#include "dialect/openai.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sample.h"

static const char *const part_names[] = {
    [PART_NOTHING] = "nothing",
    [PART_PREAMBLE] = "preamble",
    [PART_CONTENT] = "content",
    [PART_FINISH] = "finish",
    [PART_USAGE] = "usage",
    [PART_ERROR] = "error",
    [PART_END] = "end",
};

#define DELTA(delta) "{\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":null}]}"
#define FINISHED(reason) "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":" reason "}]}"

static const struct {
	const char *what, *name, *data;
	enum dialect_part part;
	size_t bytes; /* content counted */
	const char *finish;
} events[] = {
    {"no data", "", NULL, PART_NOTHING, 0, ""},
    {"empty data", "", "", PART_NOTHING, 0, ""},
    {"blank data", "", "  ", PART_NOTHING, 0, ""},
    {"done", "", "[DONE]", PART_END, 0, ""},
    {"done with blanks around", "", " [DONE] ", PART_END, 0, ""},
    {"a name is no hindrance", "message", DELTA("{\"content\":\"x\"}"), PART_CONTENT, 1, ""},

    {"role only", "", DELTA("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}"),
        PART_PREAMBLE, 0, ""},
    {"role with null content", "", DELTA("{\"role\":\"assistant\",\"content\":null}"),
        PART_PREAMBLE, 0, ""},
    {"role with empty lists", "",
        DELTA("{\"role\":\"assistant\",\"tool_calls\":[],\"function_call\":null,\"audio\":{ }}"),
        PART_PREAMBLE, 0, ""},
    {"empty delta", "", DELTA("{}"), PART_PREAMBLE, 0, ""},
    {"no delta", "", "{\"choices\":[{\"index\":0}]}", PART_PREAMBLE, 0, ""},
    {"delta null", "", DELTA("null"), PART_PREAMBLE, 0, ""},
    {"choice null", "", "{\"choices\":[null]}", PART_PREAMBLE, 0, ""},
    {"choices null", "", "{\"id\":\"x\",\"choices\":null}", PART_PREAMBLE, 0, ""},
    {"Azure's first chunk", "",
        "{\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"prompt_filter_results\":[{}]}",
        PART_PREAMBLE, 0, ""},
    {"empty object", "", "{}", PART_PREAMBLE, 0, ""},
    {"a ping", "ping", "{\"type\":\"ping\"}", PART_PREAMBLE, 0, ""},
    {"not an object", "", "[1,2]", PART_PREAMBLE, 0, ""},
    {"a string", "", "\"hello\"", PART_PREAMBLE, 0, ""},

    {"content", "", DELTA("{\"content\":\"Hel\"}"), PART_CONTENT, 3, ""},
    {"a blank is content", "", DELTA("{\"content\":\" \"}"), PART_CONTENT, 1, ""},
    {"content with role", "", DELTA("{\"role\":\"assistant\",\"content\":\"a\"}"), PART_CONTENT, 1,
        ""},
    {"escapes count as what they stand for", "", DELTA("{\"content\":\"\\n\\\"\\u4f60\\\\\"}"),
        PART_CONTENT, 6, ""},
    {"content parts", "", DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"abc\"}]}"),
        PART_CONTENT, 3, ""},
    {"escaped name", "", DELTA("{\"c\\u006fntent\":\"Hel\"}"), PART_CONTENT, 3, ""},
    {"refusal", "", DELTA("{\"refusal\":\"no\"}"), PART_CONTENT, 2, ""},
    {"reasoning_content", "", DELTA("{\"content\":null,\"reasoning_content\":\"We\"}"),
        PART_CONTENT, 2, ""},
    {"empty reasoning_content", "", DELTA("{\"content\":null,\"reasoning_content\":\"\"}"),
        PART_PREAMBLE, 0, ""},
    {"reasoning twice is counted once", "",
        DELTA("{\"reasoning\":\"abc\",\"reasoning_content\":\"abc\"}"), PART_CONTENT, 3, ""},
    {"reasoning_details", "", DELTA("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\"}]}"),
        PART_CONTENT, 0, ""},
    {"first tool call chunk", "",
        DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":"
              "{\"name\":\"f\",\"arguments\":\"\"}}]}"),
        PART_CONTENT, 1, ""},
    {"TOOL-04 empty name and id", "",
        DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"\",\"function\":"
              "{\"name\":\"\",\"arguments\":\"{}\"}}]}"),
        PART_CONTENT, 2, ""},
    {"TOOL-05 no index", "",
        DELTA("{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
              "{\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}"),
        PART_CONTENT, 11, ""},
    {"tool calls that are no calls", "", DELTA("{\"tool_calls\":[null,1,\"x\"]}"), PART_CONTENT, 0,
        ""},
    {"custom tool", "", DELTA("{\"tool_calls\":[{\"custom\":{\"name\":\"y\",\"input\":\"abc\"}}]}"),
        PART_CONTENT, 3, ""},
    {"function_call", "", DELTA("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
        PART_CONTENT, 3, ""},
    {"audio", "", DELTA("{\"audio\":{\"data\":\"AAAA\"}}"), PART_CONTENT, 0, ""},
    {"completions text", "", "{\"choices\":[{\"text\":\"ab\",\"index\":0,\"finish_reason\":null}]}",
        PART_CONTENT, 2, ""},
    {"completions empty text", "", "{\"choices\":[{\"text\":\"\",\"finish_reason\":null}]}",
        PART_PREAMBLE, 0, ""},
    {"whole message in a stream", "", "{\"choices\":[{\"message\":{\"content\":\"abc\"}}]}",
        PART_CONTENT, 3, ""},
    {"content of the second choice", "",
        "{\"choices\":[{\"index\":0,\"delta\":{}},{\"index\":1,\"delta\":{\"content\":\"ab\"}}]}",
        PART_CONTENT, 2, ""},
    {"content of all choices", "",
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}} , {\"delta\":{\"content\":\"bc\"}},"
        "{\"delta\":{\"content\":\"def\"}}]}",
        PART_CONTENT, 6, ""},
    {"null error beside content", "",
        "{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", PART_CONTENT, 1, ""},
    {"empty error beside content", "",
        "{\"error\":{},\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", PART_CONTENT, 1, ""},
    {"message and code beside choices", "",
        "{\"code\":0,\"message\":\"ok\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        PART_CONTENT, 1, ""},
    {"base_resp 0", "",
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"base_resp\":{\"status_code\":0}}",
        PART_CONTENT, 1, ""},
    {"torn JSON", "", "{\"choices\":[{\"delta\":{\"cont", PART_CONTENT, 0, ""},
    {"no JSON", "", "hello", PART_CONTENT, 0, ""},
    {"bad UTF-8", "", DELTA("{\"content\":\"\xff\"}"), PART_CONTENT, 1, ""},

    {"stop", "", FINISHED("\"stop\""), PART_FINISH, 0, "stop"},
    {"length", "", FINISHED("\"length\""), PART_FINISH, 0, "length"},
    {"null reason", "", FINISHED("null"), PART_PREAMBLE, 0, ""},
    {"empty reason", "", FINISHED("\"\""), PART_PREAMBLE, 0, ""},
    {"number as reason", "", FINISHED("7"), PART_PREAMBLE, 0, ""},
    {"reason and content", "",
        "{\"choices\":[{\"delta\":{\"content\":\"!\"},\"finish_reason\":\"stop\"}]}", PART_FINISH,
        1, "stop"},
    {"reason of the second choice", "",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":null},{\"delta\":{},\"finish_reason\":\"stop\"}]}",
        PART_FINISH, 0, "stop"},
    {"reason with usage", "",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}",
        PART_FINISH, 0, "stop"},
    {"a long reason is cut", "", FINISHED("\"0123456789012345678901234567890123456789\""),
        PART_FINISH, 0, "0123456789012345678901234567890"},

    {"usage chunk", "", "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}", PART_USAGE, 0, ""},
    {"usage chunk without choices", "", "{\"usage\":{\"prompt_tokens\":1}}", PART_USAGE, 0, ""},
    {"no choices, null usage", "", "{\"choices\":[],\"usage\":null}", PART_PREAMBLE, 0, ""},
    {"usage beside an empty delta", "",
        "{\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":1}}", PART_PREAMBLE, 0, ""},

    {"error object", "", "{\"error\":{\"message\":\"overloaded\",\"code\":500}}", PART_ERROR, 0,
        ""},
    {"error string", "", "{\"error\":\"overloaded\"}", PART_ERROR, 0, ""},
    {"error in a list", "", "[{\"error\":{\"code\":429}}]", PART_ERROR, 0, ""},
    {"error beside choices", "",
        "{\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}],"
        "\"error\":{\"code\":502}}",
        PART_ERROR, 0, ""},
    {"reason error", "", FINISHED("\"error\""), PART_ERROR, 0, ""},
    {"reason network_error", "", FINISHED("\"network_error\""), PART_ERROR, 0, ""},
    {"error of the second choice", "",
        "{\"choices\":[{\"delta\":{}},{\"delta\":{},\"finish_reason\":\"error\"}]}", PART_ERROR, 0,
        ""},
    {"error in a choice", "", "{\"choices\":[{\"delta\":{},\"error\":{\"code\":502}}]}", PART_ERROR,
        0, ""},
    {"flat, code text", "", "{\"code\":\"InvalidApiKey\",\"message\":\"no\",\"request_id\":\"r\"}",
        PART_ERROR, 0, ""},
    {"flat, code number", "", "{\"code\":1302,\"msg\":\"busy\",\"success\":false}", PART_ERROR, 0,
        ""},
    {"flat, empty choices", "", "{\"code\":500,\"msg\":\"busy\",\"choices\":[]}", PART_ERROR, 0,
        ""},
    {"flat, object error", "", "{\"object\":\"error\",\"message\":\"no\",\"code\":0}", PART_ERROR,
        0, ""},
    {"flat, message alone", "", "{\"message\":\"Internal Server Error\"}", PART_ERROR, 0, ""},
    {"flat success", "", "{\"code\":200,\"msg\":\"ok\"}", PART_PREAMBLE, 0, ""},
    {"base_resp", "",
        "{\"base_resp\":{\"status_code\":1008,\"status_msg\":\"no\"},\"choices\":null}", PART_ERROR,
        0, ""},
    {"named error", "error", "{\"code\":1}", PART_ERROR, 0, ""},
    {"named error, any data", "error", "oops", PART_ERROR, 0, ""},
    {"named error, no data", "error", NULL, PART_ERROR, 0, ""},
};

static void
test_events(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(events); i++) {
		struct sse_event e = {.name = text_span(events[i].name),
		    .data = text_span(events[i].data),
		    .has_data = events[i].data != NULL};
		struct dialect_tap tap;
		enum dialect_part part;

		dialect_tap_init(&tap);
		part = dialect_chat.event(&e, &tap);
		if (part != events[i].part || tap.content_bytes != events[i].bytes ||
		    strcmp(tap.finish, events[i].finish) != 0)
			fail_msg("%s: got %s, %zu bytes, '%s'; want %s, %zu, '%s'", events[i].what,
			    part_names[part], tap.content_bytes, tap.finish,
			    part_names[events[i].part], events[i].bytes, events[i].finish);
		if (tap.finished != (tap.finish[0] != '\0') || tap.ended != (part == PART_END))
			fail_msg(
			    "%s: finished %d, ended %d", events[i].what, tap.finished, tap.ended);
		if (part == PART_CONTENT && !tap.content)
			fail_msg("%s: content not noted", events[i].what);
	}
}

static void
test_after_end(void **state)
{
	struct sse_event done = {.data = SPAN("[DONE]"), .has_data = true};
	struct sse_event late = {
	    .data = SPAN("{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}"), .has_data = true};
	struct sse_event torn = {.data = SPAN("{\"choices\":"), .has_data = true};
	struct dialect_tap tap;

	(void)state;
	dialect_tap_init(&tap);
	assert_int_equal(openai_event(&torn, &tap), PART_CONTENT);
	assert_int_equal(tap.invalid, 1);
	assert_int_equal(openai_event(&done, &tap), PART_END);
	assert_int_equal(openai_event(&late, &tap), PART_NOTHING);
	assert_int_equal(tap.content_bytes, 0);
}

/*
 * One letter an event: . nothing, p preamble, c content, f finish, u usage, e error, E end; runs
 * are given once.
 */
static void
note(struct buf *out, enum dialect_part part)
{
	char c = ".pcfueE"[part];

	if (out->n == 0 || out->p[out->n - 1] != c)
		buf_char(out, c);
}

static const struct {
	const char *file, *parts, *finish, *model;
	int64_t prompt, completion, cached, reasoning;
} streams[] = {
    {"openai/chat-stream.resp.sse", "pcfuE", "stop", "gpt-4o-mini-2024-07-18", 20, 2, 0, 0},
    {"openai/chat-stream-otel.resp.sse", "pcfuE", "stop", "gpt-4-0613", 12, 5, 0, 0},
    {"openai/chat-stream-multi-tool.resp.sse", "pcfuE", "tool_calls", "gpt-5-2025-08-07", 190, 379,
        0, 320},
    {"openai/chat-stream-tool-1.resp.sse", "cfuE", "tool_calls", "gpt-4o-mini-2024-07-18", 61, 16,
        0, 0},
    {"azure/chat-stream.resp.sse", "pcfuE", "stop", "gpt-5-mini-2025-08-07", 19, 76, 0, 64},
    {"deepseek/chat-stream.resp.sse", "pcfE", "stop", "deepseek-v4-flash", 11, 8, 0, -1},
    {"deepseek/chat-stream-tool.resp.sse", "pcfE", "tool_calls", "deepseek-v4-flash", 348, 65, 0,
        -1},
    {"zhipu/chat-stream-thinking.resp.sse", "cfE", "tool_calls", "glm-4.7-flash", 173, 87, 172, 63},
    {"zhipu/chat-stream-tool.resp.sse", "cfE", "tool_calls", "glm-4.7-flash", 173, 93, 172, 65},
    {"kimi/groq-stream.resp.sse", "pcfuE", "stop", "moonshotai/kimi-k2-instruct-0905", 20, 4, -1,
        -1},
    {"kimi/groq-stream-tool.resp.sse", "pcfuE", "tool_calls", "moonshotai/kimi-k2-instruct-0905",
        93, 32, -1, -1},
    {"openrouter/chat-stream-comments.resp.sse", ".c.cfE", "stop", "x-ai/grok-4.1-fast", 165, 167,
        164, 165},
    {"llamacpp/chat-stream.resp.sse", "pcfuE", "stop", "openai/gpt-oss-20b", 84, 57, -1, -1},
    {"vercel-ai-chunks/moonshotai-stream.chunks.txt", "cf", "stop", "kimi-k3", 9, 12, -1, 7},
    {"vercel-ai-chunks/xai-tool-call.chunks.txt", "cfu", "tool_calls", "grok-3-mini", 291, 222, 290,
        196},
    {"vercel-ai-chunks/mistral-text.chunks.txt", "pcf", "stop", "mistral-small-latest", 13, 8, -1,
        -1},
    {"vercel-ai-chunks/groq-tool-call.chunks.txt", "pcf", "tool_calls", "llama-3.3-70b-versatile",
        210, 15, -1, -1},
};

/* Chunk lines become a stream again. */
static void
as_stream(struct buf *out, struct span text)
{
	struct span line;

	while (text_token(&text, "\r\n", &line)) {
		buf_z(out, "data: ");
		buf_span(out, line);
		buf_z(out, "\n\n");
	}
}

static void
read_stream(struct span bytes, struct buf *parts, struct dialect_tap *tap)
{
	struct sse_event e;
	struct sse s;

	sse_init(&s, 1 << 20);
	assert_int_equal(sse_feed(&s, bytes, NULL), ERR_OK);
	while (sse_last(&s, &e)) {
		if (e.comment && e.raw.n <= 2)
			continue;
		note(parts, openai_event(&e, tap));
	}
	sse_release(&s);
}

static void
test_streams(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(streams); i++) {
		struct buf sample, stream, parts;
		struct dialect_tap tap;
		char name[128];

		snprintf(name, sizeof name, "streams/%s", streams[i].file);
		sample = sample_read(name);
		buf_init(&stream, 1 << 20);
		buf_init(&parts, 4096);
		dialect_tap_init(&tap);
		if (text_ends(text_span(name), ".txt"))
			as_stream(&stream, buf_text(&sample));
		else
			buf_span(&stream, buf_text(&sample));
		read_stream(buf_text(&stream), &parts, &tap);
		dialect_settle(&tap, 4);
		if (!text_is(buf_text(&parts), streams[i].parts) ||
		    strcmp(tap.finish, streams[i].finish) != 0 ||
		    strcmp(tap.model, streams[i].model) != 0 || tap.invalid > 0 || !tap.content ||
		    !tap.finished || !tap.usage.seen || tap.usage.estimated ||
		    tap.usage.prompt != streams[i].prompt ||
		    tap.usage.completion != streams[i].completion ||
		    tap.usage.cached != streams[i].cached ||
		    tap.usage.reasoning != streams[i].reasoning)
			fail_msg("%s: got %s '%s' '%s' %lld %lld %lld %lld, %zu bytes", name,
			    parts.p, tap.finish, tap.model, (long long)tap.usage.prompt,
			    (long long)tap.usage.completion, (long long)tap.usage.cached,
			    (long long)tap.usage.reasoning, tap.content_bytes);
		buf_release(&sample);
		buf_release(&stream);
		buf_release(&parts);
	}
}

#define MESSAGE \
	"{\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}"

static const struct {
	const struct dialect *dialect;
	const char *what, *body;
	bool answer;
} answers[] = {
    {&dialect_chat, "a message", "{\"choices\":[" MESSAGE "]}", true},
    {&dialect_chat, "blanks before", "\n\n \r\n{\"choices\":[" MESSAGE "]}\n", true},
    {&dialect_chat, "two choices", "{\"choices\":[" MESSAGE "," MESSAGE "]}", true},
    {&dialect_chat, "null error", "{\"error\":null,\"choices\":[" MESSAGE "]}", true},
    {&dialect_chat, "null content", "{\"choices\":[{\"message\":{\"content\":null}}]}", true},
    {&dialect_chat, "error object", "{\"error\":{\"message\":\"x\"},\"choices\":[" MESSAGE "]}",
        false},
    {&dialect_chat, "error string", "{\"error\":\"x\"}", false},
    {&dialect_chat, "error reason",
        "{\"choices\":[{\"message\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}", false},
    {&dialect_chat, "no choices", "{\"id\":\"x\"}", false},
    {&dialect_chat, "empty choices", "{\"choices\":[]}", false},
    {&dialect_chat, "null choices", "{\"choices\":null,\"base_resp\":{\"status_code\":1004}}",
        false},
    {&dialect_chat, "choices object", "{\"choices\":{\"0\":" MESSAGE "}}", false},
    {&dialect_chat, "choice string", "{\"choices\":[\"x\"]}", false},
    {&dialect_chat, "choice without message", "{\"choices\":[{\"index\":0}]}", false},
    {&dialect_chat, "flat error", "{\"code\":401,\"msg\":\"no\",\"success\":false}", false},
    {&dialect_chat, "a page", "<html><body>login</body></html>", false},
    {&dialect_chat, "empty", "", false},
    {&dialect_chat, "list", "[{\"error\":{\"code\":429}}]", false},
    {&dialect_chat, "torn", "{\"choices\":[" MESSAGE "]", false},
    {&dialect_completions, "a text",
        "{\"choices\":[{\"text\":\"hi\",\"finish_reason\":\"length\"}]}", true},
    {&dialect_completions, "empty text", "{\"choices\":[{\"text\":\"\"}]}", true},
    {&dialect_completions, "null text", "{\"choices\":[{\"text\":null}]}", false},
    {&dialect_embeddings, "data", "{\"object\":\"list\",\"data\":[{\"embedding\":[-0.0,1e-7]}]}",
        true},
    {&dialect_embeddings, "no data", "{\"object\":\"list\"}", false},
    {&dialect_embeddings, "data object", "{\"data\":{}}", false},
    {&dialect_embeddings, "error", "{\"data\":[],\"error\":{\"message\":\"x\"}}", false},
    {&dialect_moderations, "results", "{\"id\":\"x\",\"results\":[{\"flagged\":false}]}", true},
    {&dialect_moderations, "data", "{\"data\":[]}", false},
};

static void
test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct dialect_tap tap;
		bool got;

		dialect_tap_init(&tap);
		got = answers[i].dialect->answer(text_span(answers[i].body), &tap);
		if (got != answers[i].answer)
			fail_msg("%s, %s: got %d", answers[i].dialect->name, answers[i].what, got);
	}
}

static void
test_recorded_answers(void **state)
{
	static const struct {
		const char *file, *model, *finish;
		const struct dialect *dialect;
		int64_t prompt, completion;
	} rows[] = {
	    {"openai/chat-simple.resp.json", "gpt-4o-mini-2024-07-18", "stop", &dialect_chat, 20,
	        2},
	    {"zhipu/chat-simple.resp.json", "glm-4.7-flash", "stop", &dialect_chat, 15, 249},
	    {"openai/embeddings.resp.json", "text-embedding-3-small", "", &dialect_embeddings, 7,
	        0},
	    {"vercel-ai-chunks/openai-embedding.json", "text-embedding-3-small", "",
	        &dialect_embeddings, 12, 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct dialect_tap tap;
		struct buf sample;
		char name[128];
		bool ok;

		snprintf(name, sizeof name, "streams/%s", rows[i].file);
		sample = sample_read(name);
		dialect_tap_init(&tap);
		ok = rows[i].dialect->answer(buf_text(&sample), &tap);
		dialect_settle(&tap, 4);
		if (!ok || strcmp(tap.model, rows[i].model) != 0 ||
		    strcmp(tap.finish, rows[i].finish) != 0 || tap.usage.estimated ||
		    tap.usage.prompt != rows[i].prompt ||
		    tap.usage.completion != rows[i].completion)
			fail_msg("%s: got %d '%s' '%s' %lld %lld", name, ok, tap.model, tap.finish,
			    (long long)tap.usage.prompt, (long long)tap.usage.completion);
		buf_release(&sample);
	}
}

static void
test_usage_places(void **state)
{
	static const struct {
		const char *what, *data;
		enum dialect_part part;
	} rows[] = {
	    {"Kimi: in the choice",
	        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":7}}]}",
	        PART_FINISH},
	    {"in the second choice",
	        "{\"choices\":[{\"delta\":{}},{\"delta\":{},\"usage\":{\"prompt_tokens\":7}}]}",
	        PART_PREAMBLE},
	    {"Groq: beside",
	        "{\"choices\":[{\"delta\":{}}],\"x_groq\":{\"usage\":{\"prompt_tokens\":7}}}",
	        PART_PREAMBLE},
	    {"at the top wins",
	        "{\"usage\":{\"prompt_tokens\":7},\"choices\":[{\"delta\":{},\"usage\":{\"prompt_tokens\":6}}],"
	        "\"x_groq\":{\"usage\":{\"prompt_tokens\":5}}}",
	        PART_PREAMBLE},
	    {"with content, so far",
	        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":7}}",
	        PART_CONTENT},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct sse_event e = {.data = text_span(rows[i].data), .has_data = true};
		struct dialect_tap tap;
		enum dialect_part part;

		dialect_tap_init(&tap);
		part = openai_event(&e, &tap);
		if (part != rows[i].part || !tap.usage.seen || tap.usage.prompt != 7)
			fail_msg("%s: got %s, %lld", rows[i].what, part_names[part],
			    (long long)tap.usage.prompt);
	}
}

/* USE-08: what a plain answer of n choices tells is what its stream told. */
static void
test_plain_like_streamed(void **state)
{
	static const char plain[] =
	    "{\"choices\":[{\"message\":{\"content\":\"abc\"},\"finish_reason\":\"stop\"},"
	    "{\"message\":{\"content\":\"de\"},\"finish_reason\":\"stop\"}],"
	    "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}";
	static const char stream[] =
	    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"de\"}}]}\n\n"
	    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"abc\"}}]}\n\n"
	    "data: {\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,"
	    "\"total_tokens\":12}}\n\n";
	struct dialect_tap a, b;
	struct buf parts;

	(void)state;
	buf_init(&parts, 4096);
	dialect_tap_init(&a);
	dialect_tap_init(&b);
	assert_true(openai_answer(text_span(plain), &a));
	read_stream(text_span(stream), &parts, &b);
	assert_memory_equal(&a.usage, &b.usage, sizeof a.usage);
	assert_int_equal(a.content_bytes, b.content_bytes);
	assert_string_equal(a.finish, b.finish);
	buf_release(&parts);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_after_end),
	    cmocka_unit_test(test_usage_places),
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_recorded_answers),
	    cmocka_unit_test(test_plain_like_streamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
