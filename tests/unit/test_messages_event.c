#include "dialect/messages.h"

#include "dialect/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/quotes.h"
#include "lib/sample.h"

static const char *const part_names[] = {
    "nothing", "preamble", "content", "finish", "usage", "error", "end"};

#define BLOCK(block) "{'type':'content_block_start','index':0,'content_block':{" block "}}"
#define DELTA(delta) "{'type':'content_block_delta','index':0,'delta':{" delta "}}"
#define STOP(reason) "{'type':'message_delta','delta':{'stop_reason':" reason "}}"

static const struct {
	const char *what, *name, *data;
	enum dialect_part part;
	size_t bytes; /* content counted */
	const char *finish;
} events[] = {
    {"no data", "ping", NULL, PART_NOTHING, 0, ""},
    {"start", "message_start", "{'type':'message_start','message':{'content':[],'model':'m'}}",
        PART_PREAMBLE, 0, ""},
    {"start with content", "", "{'type':'message_start','message':{'content':[{}]}}", PART_CONTENT,
        0, ""},
    {"ping", "ping", "{'type':'ping'}", PART_PREAMBLE, 0, ""},
    {"empty text block", "", BLOCK("'type':'text','text':''"), PART_PREAMBLE, 0, ""},
    {"text block with text", "", BLOCK("'type':'text','text':'ab'"), PART_CONTENT, 2, ""},
    {"empty thinking block", "", BLOCK("'type':'thinking','thinking':''"), PART_PREAMBLE, 0, ""},
    {"compaction", "", BLOCK("'type':'compaction','content':null"), PART_PREAMBLE, 0, ""},
    {"tool block", "", BLOCK("'type':'tool_use','id':'a','name':'fn','input':{}"), PART_CONTENT, 2,
        ""},
    {"redacted block", "", BLOCK("'type':'redacted_thinking','data':'x'"), PART_CONTENT, 0, ""},
    {"the host's own tool", "", BLOCK("'type':'server_tool_use','name':'w'"), PART_CONTENT, 1, ""},
    {"no block", "content_block_start", "{'index':0}", PART_PREAMBLE, 0, ""},
    {"text", "", DELTA("'type':'text_delta','text':'a\\u00e9'"), PART_CONTENT, 4, ""},
    {"empty text", "", DELTA("'type':'text_delta','text':''"), PART_PREAMBLE, 0, ""},
    {"thinking", "", DELTA("'type':'thinking_delta','thinking':'ab'"), PART_CONTENT, 2, ""},
    {"signature", "", DELTA("'type':'signature_delta','signature':'ab'"), PART_CONTENT, 0, ""},
    {"arguments", "", DELTA("'type':'input_json_delta','partial_json':'{}'"), PART_CONTENT, 2, ""},
    {"no arguments", "", DELTA("'type':'input_json_delta','partial_json':''"), PART_PREAMBLE, 0,
        ""},
    {"citation", "", DELTA("'type':'citations_delta','citation':{}"), PART_CONTENT, 0, ""},
    {"the name tells", "content_block_delta", "{'delta':{'text':'a'}}", PART_CONTENT, 1, ""},
    {"the type is stronger", "message_stop", DELTA("'text':'a'"), PART_CONTENT, 1, ""},
    {"block stop", "", "{'type':'content_block_stop','index':0}", PART_PREAMBLE, 0, ""},
    {"finish", "", STOP("'end_turn'"), PART_FINISH, 0, "end_turn"},
    {"null reason", "", STOP("null"), PART_PREAMBLE, 0, ""},
    {"null error", "", "{'type':'message_delta','error':null,'delta':{'stop_reason':'x'}}",
        PART_FINISH, 0, "x"},
    {"end", "message_stop", "{'type':'message_stop'}", PART_END, 0, ""},
    {"another API's end (SSE-15)", "", "[DONE]", PART_NOTHING, 0, ""},
    {"likewise", "", "DONE", PART_NOTHING, 0, ""},
    {"unknown", "new_thing", "{'type':'new_thing'}", PART_PREAMBLE, 0, ""},
    {"torn", "", "{'type':'content_block", PART_CONTENT, 0, ""},
    {"error", "error", "{'type':'error','error':{'type':'overloaded_error'}}", PART_ERROR, 0, ""},
    {"error by its name", "error", "oops", PART_ERROR, 0, ""},
    {"error by its type", "", "{'type':'error'}", PART_ERROR, 0, ""},
    {"OpenAI's error", "", "{'error':{'message':'x','code':500}}", PART_ERROR, 0, ""},
    {"error list", "", "[{'error':{'code':429}}]", PART_ERROR, 0, ""},
    {"flat error", "", "{'code':1302,'msg':'busy'}", PART_ERROR, 0, ""},
    {"flat error, text", "", "{'message':'Internal Server Error'}", PART_ERROR, 0, ""},
    {"flat success", "", "{'code':200,'msg':'ok'}", PART_PREAMBLE, 0, ""},
    {"base_resp", "", "{'base_resp':{'status_code':1008}}", PART_ERROR, 0, ""},
};

static void
test_events(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(events); i++) {
		struct arena *arena = arena_new(1 << 16);
		struct sse_event e = {
		    .name = text_span(events[i].name), .has_data = events[i].data != NULL};
		struct dialect_tap tap;
		enum dialect_part part;

		if (e.has_data)
			e.data = quotes(arena, events[i].data);
		dialect_tap_init(&tap);
		part = dialect_messages.event(&e, &tap);
		if (part != events[i].part || tap.content_bytes != events[i].bytes ||
		    strcmp(tap.finish, events[i].finish) != 0)
			fail_msg("%s: got %s, %zu bytes, '%s'; want %s, %zu, '%s'", events[i].what,
			    part_names[part], tap.content_bytes, tap.finish,
			    part_names[events[i].part], events[i].bytes, events[i].finish);
		if (tap.finished != (tap.finish[0] != '\0') || tap.ended != (part == PART_END) ||
		    tap.content != (part == PART_CONTENT))
			fail_msg("%s: finished %d, ended %d, content %d", events[i].what,
			    tap.finished, tap.ended, tap.content);
		arena_free(&arena);
	}
}

static void
test_after_end(void **state)
{
	struct sse_event end = {.data = SPAN("{\"type\":\"message_stop\"}"), .has_data = true};
	struct sse_event done = {.data = SPAN("[DONE]"), .has_data = true};
	struct dialect_tap tap;

	(void)state;
	dialect_tap_init(&tap);
	assert_int_equal(messages_event(&end, &tap), PART_END);
	assert_int_equal(messages_event(&done, &tap), PART_NOTHING);
	assert_int_equal(messages_event(&end, &tap), PART_NOTHING);
}

/* p preamble, c content, f finish, E end; runs are given once. */
static const struct {
	const char *file, *parts, *finish, *model;
	int64_t prompt, completion, cached, written;
} files[] = {
    {"messages-stream.resp.sse", "pcpfE", "end_turn", "claude-sonnet-4-20250514", 16, 38, 0, 0},
    {"messages-stream-tool.resp.sse", "pcpcpcpfE", "tool_use", "claude-sonnet-4-20250514", 394, 67,
        0, 0},
    {"messages-stream-multi-tool.resp.sse", "pcpcpcpcpcpfE", "tool_use", "claude-sonnet-4-20250514",
        502, 137, 0, 0},
    {"messages-stream-thinking.resp.sse", "pcpcpcpcpfE", "tool_use", "claude-sonnet-4-20250514",
        424, 119, 0, 0},
    {"messages-stream-promptcache-openllmetry.resp.sse", "pcpfE", "end_turn",
        "claude-3-5-sonnet-20240620", 1171, 289, 0, 1167},
};

static void
test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(files); i++) {
		struct dialect_tap tap;
		struct sse_event e;
		struct buf sample, parts;
		char name[128];
		struct sse s;

		snprintf(name, sizeof name, "streams/anthropic/%s", files[i].file);
		sample = sample_read(name);
		buf_init(&parts, 4096);
		dialect_tap_init(&tap);
		sse_init(&s, 1 << 20);
		assert_int_equal(sse_feed(&s, buf_text(&sample), NULL), ERR_OK);
		while (sse_last(&s, &e)) {
			char c = ".pcfueE"[messages_event(&e, &tap)];

			if (e.has_data && (parts.n == 0 || parts.p[parts.n - 1] != c))
				buf_char(&parts, c);
		}
		dialect_settle(&tap, 4);
		if (!text_is(buf_text(&parts), files[i].parts) ||
		    strcmp(tap.finish, files[i].finish) != 0 ||
		    strcmp(tap.model, files[i].model) != 0 || tap.usage.prompt != files[i].prompt ||
		    tap.usage.completion != files[i].completion ||
		    tap.usage.cached != files[i].cached ||
		    tap.usage.cache_write != files[i].written || tap.usage.estimated)
			fail_msg("%s: got %s '%s' '%s' %lld %lld %lld %lld", name, parts.p,
			    tap.finish, tap.model, (long long)tap.usage.prompt,
			    (long long)tap.usage.completion, (long long)tap.usage.cached,
			    (long long)tap.usage.cache_write);
		sse_release(&s);
		buf_release(&parts);
		buf_release(&sample);
	}
}

/* Objects one after the other: prompt, completion, cached, written, reasoning. */
static const struct {
	const char *what, *objects[3];
	int64_t want[5];
	bool seen;
} usages[] = {
    {"none", {NULL}, {-1, -1, -1, -1, -1}, false},
    {"no figures", {"{'service_tier':'x'}"}, {-1, -1, -1, -1, -1}, false},
    {"plain", {"{'input_tokens':5,'output_tokens':2}"}, {5, 2, -1, -1, -1}, true},
    {"cached beside",
        {"{'input_tokens':5,'cache_read_input_tokens':7,'cache_creation_input_tokens':1}"},
        {13, -1, 7, 1, -1}, true},
    {"kinds of cache",
        {"{'input_tokens':5,'cache_creation':{'ephemeral_5m_input_tokens':2,"
         "'ephemeral_1h_input_tokens':3}}"},
        {10, -1, -1, 5, -1}, true},
    {"later wins", {"{'input_tokens':0,'output_tokens':0}", "{'input_tokens':5,'output_tokens':9}"},
        {5, 9, -1, -1, -1}, true},
    {"null does not",
        {"{'input_tokens':5,'cache_read_input_tokens':3,'output_tokens':1}",
            "{'input_tokens':null,'cache_read_input_tokens':null,'output_tokens':9}"},
        {8, 9, 3, -1, -1}, true},
    {"one at a time", {"{'input_tokens':5}", "{'cache_read_input_tokens':3}", "{'input_tokens':6}"},
        {9, -1, 3, -1, -1}, true},
    {"thinking", {"{'output_tokens':5,'output_tokens_details':{'thinking_tokens':4}}"},
        {-1, 5, -1, -1, 4}, true},
    {"names of another API", {"{'prompt_tokens':5,'completion_tokens':2}"}, {5, 2, -1, -1, -1},
        true},
    {"nonsense", {"{'input_tokens':-5,'output_tokens':'x','cache_read_input_tokens':1e30}"},
        {-1, -1, -1, -1, -1}, false},
};

static void
test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(usages); i++) {
		struct arena *arena = arena_new(1 << 16);
		struct dialect_tap tap;
		const struct dialect_usage *u = &tap.usage;

		dialect_tap_init(&tap);
		for (size_t k = 0; k < 3 && usages[i].objects[k] != NULL; k++) {
			struct scan_value v = {SCAN_OBJECT, quotes(arena, usages[i].objects[k])};

			messages_usage(&v, &tap.usage);
		}
		if (u->prompt != usages[i].want[0] || u->completion != usages[i].want[1] ||
		    u->cached != usages[i].want[2] || u->cache_write != usages[i].want[3] ||
		    u->reasoning != usages[i].want[4] || u->seen != usages[i].seen)
			fail_msg("%s: got %lld %lld %lld %lld %lld, seen %d", usages[i].what,
			    (long long)u->prompt, (long long)u->completion, (long long)u->cached,
			    (long long)u->cache_write, (long long)u->reasoning, u->seen);
		arena_free(&arena);
	}
}

static const struct {
	const struct dialect *dialect;
	const char *what, *body;
	bool answer;
} answers[] = {
    {&dialect_messages, "an answer", "{'type':'message','content':[{'type':'text','text':'x'}]}",
        true},
    {&dialect_messages, "nothing said", "{'type':'message','content':[]}", true},
    {&dialect_messages, "no type", "{'content':[]}", true},
    {&dialect_messages, "an error", "{'type':'error','error':{'message':'x'}}", false},
    {&dialect_messages, "an error beside", "{'content':[],'error':{'message':'x'}}", false},
    {&dialect_messages, "no content", "{'type':'message'}", false},
    {&dialect_messages, "another type", "{'type':'list','content':[]}", false},
    {&dialect_messages, "chat", "{'choices':[{'message':{'content':'x'}}]}", false},
    {&dialect_messages, "flat error", "{'code':500,'msg':'x','success':false}", false},
    {&dialect_messages, "a page", "<html>", false},
    {&dialect_count_tokens, "a count", "{'input_tokens':12}", true},
    {&dialect_count_tokens, "no count", "{'input_tokens':'x'}", false},
    {&dialect_count_tokens, "an error", "{'error':{}}", false},
};

static void
test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct arena *arena = arena_new(1 << 16);
		struct dialect_tap tap;
		bool got;

		dialect_tap_init(&tap);
		got = answers[i].dialect->answer(quotes(arena, answers[i].body), &tap);
		if (got != answers[i].answer)
			fail_msg("%s: got %d", answers[i].what, got);
		if (tap.usage.seen)
			fail_msg("%s: usage", answers[i].what);
		arena_free(&arena);
	}
}

static void
test_recorded_answer(void **state)
{
	struct buf sample = sample_read("streams/anthropic/messages-simple.resp.json");
	struct dialect_tap tap;

	(void)state;
	dialect_tap_init(&tap);
	assert_true(messages_answer(buf_text(&sample), &tap));
	assert_string_equal(tap.finish, "end_turn");
	assert_string_equal(tap.model, "claude-sonnet-4-20250514");
	assert_int_equal(tap.usage.prompt, 16);
	assert_int_equal(tap.usage.completion, 34);
	assert_true(tap.content && tap.content_bytes > 80);
	buf_release(&sample);
}

static const struct {
	int status;
	const char *type, *code, *want;
} errors[] = {
    {400, NULL, NULL, "'type':'invalid_request_error','message':'m'"},
    {401, "invalid_request_error", NULL, "'type':'authentication_error','message':'m'"},
    {403, NULL, NULL, "'type':'permission_error','message':'m'"},
    {404, NULL, "model_not_found",
        "'type':'not_found_error','message':'m','details':{'error_code':'model_not_found'}"},
    {413, "invalid_request_error", NULL, "'type':'request_too_large','message':'m'"},
    {429, "rate_limit_error", NULL, "'type':'rate_limit_error','message':'m'"},
    {500, "server_error", NULL, "'type':'api_error','message':'m'"},
    {502, NULL, NULL, "'type':'api_error','message':'m'"},
    {503, "server_error", NULL, "'type':'overloaded_error','message':'m'"},
    {503, "server_error", "no_account",
        "'type':'api_error','message':'m','details':{'error_code':'no_account'}"},
    {504, "timeout", NULL, "'type':'timeout_error','message':'m'"},
};

static void
test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(errors); i++) {
		struct arena *arena = arena_new(1 << 16);
		struct buf *got = arena_buf(arena, 4096);
		struct span want = quotes(
		    arena, arena_print(arena, "{'type':'error','error':{%s}}\n", errors[i].want));

		dialect_messages.error_body(
		    got, errors[i].status, errors[i].type, errors[i].code, SPAN("m"));
		if (!text_equal(buf_text(got), want))
			fail_msg("%d: got %s, want %s", errors[i].status, got->p, want.p);
		arena_free(&arena);
	}
}

#define ASK(more) "{'model':'m','messages':[{'role':'user','content':'x'}]" more "}"

static const struct {
	const struct dialect *dialect;
	const char *what, *body, *says;
} requests[] = {
    {&dialect_messages, "plain", ASK(",'max_tokens':5"), NULL},
    {&dialect_messages, "no output", ASK(",'max_tokens':0"), NULL},
    {&dialect_messages, "no limit", ASK(""), "'max_tokens' is missing"},
    {&dialect_messages, "null limit", ASK(",'max_tokens':null"), "'max_tokens' is missing"},
    {&dialect_messages, "limit text", ASK(",'max_tokens':'5'"), "'max_tokens' must be"},
    {&dialect_messages, "limit part", ASK(",'max_tokens':1.5"), "'max_tokens' must be"},
    {&dialect_messages, "limit negative", ASK(",'max_tokens':-1"), "'max_tokens' must be"},
    {&dialect_messages, "stream", ASK(",'max_tokens':5,'stream':'x'"), "'stream' must be"},
    {&dialect_messages, "no messages", "{'model':'m','max_tokens':5}", "'messages' is missing"},
    {&dialect_messages, "empty messages", "{'model':'m','messages':[]}", "at least one"},
    {&dialect_messages, "a text", "{'model':'m','messages':[{},'x']}", "'messages[1]' must be"},
    {&dialect_messages, "no model", "{'messages':[{}]}", "'model' is missing"},
    {&dialect_count_tokens, "no limit", ASK(""), NULL},
    {&dialect_count_tokens, "no messages", "{'model':'m'}", "'messages' is missing"},
};

static void
test_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(requests); i++) {
		struct arena *arena = arena_new(1 << 16);
		struct dialect_request request;
		struct why why = {""};
		enum err err = dialect_read(
		    requests[i].dialect, quotes(arena, requests[i].body), &request, &why);

		if ((err == ERR_OK) != (requests[i].says == NULL) ||
		    (requests[i].says != NULL && strstr(why.text, requests[i].says) == NULL))
			fail_msg("%s: got '%s', want '%s'", requests[i].what, why.text,
			    requests[i].says == NULL ? "" : requests[i].says);
		arena_free(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_after_end),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_usage),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_recorded_answer),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
