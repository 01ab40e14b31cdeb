#include "dialect/read.h"
#include "dialect/responses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define R(type, response) "{\"type\":\"response." type "\",\"response\":" response "}"
#define ITEM(type, item) \
	"{\"type\":\"response.output_item." type "\",\"output_index\":0,\"item\":" item "}"

static const char *const part_names[] = {
    [PART_NOTHING] = "nothing",
    [PART_PREAMBLE] = "preamble",
    [PART_CONTENT] = "content",
    [PART_FINISH] = "finish",
    [PART_USAGE] = "usage",
    [PART_ERROR] = "error",
    [PART_END] = "end",
};

static const struct {
	const char *what, *name, *data;
	enum dialect_part part;
	size_t bytes; /* content counted */
	const char *finish;
} events[] = {
    {"no data", "", "", PART_NOTHING, 0, ""},
    {"DONE is not of this API", "", "[DONE]", PART_NOTHING, 0, ""},
    {"torn JSON", "", "{\"type\":\"resp", PART_CONTENT, 0, ""},
    {"created", "response.created", R("created", "{\"status\":\"in_progress\",\"error\":null}"),
        PART_PREAMBLE, 0, ""},
    {"queued", "", R("queued", "{\"status\":\"queued\"}"), PART_PREAMBLE, 0, ""},
    {"in_progress", "", R("in_progress", "{}"), PART_PREAMBLE, 0, ""},
    {"in_progress without response", "", "{\"type\":\"response.in_progress\"}", PART_PREAMBLE, 0,
        ""},
    {"of the subscription's back end", "codex.rate_limits", "{\"type\":\"codex.rate_limits\"}",
        PART_PREAMBLE, 0, ""},
    {"keepalive", "keepalive", "{\"type\":\"keepalive\",\"sequence_number\":3}", PART_PREAMBLE, 0,
        ""},
    {"a type that is not known", "", "{\"type\":\"response.new_thing\",\"x\":1}", PART_PREAMBLE, 0,
        ""},
    {"not an object", "", "[1]", PART_PREAMBLE, 0, ""},

    {"message begins", "", ITEM("added", "{\"type\":\"message\",\"content\":[]}"), PART_PREAMBLE, 0,
        ""},
    {"message begins with text", "",
        ITEM("added",
            "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"abc\"}]}"),
        PART_CONTENT, 3, ""},
    {"reasoning begins", "", ITEM("added", "{\"type\":\"reasoning\",\"summary\":[]}"),
        PART_PREAMBLE, 0, ""},
    {"reasoning ends, sealed and without words", "",
        ITEM("done", "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"AAAA\"}"),
        PART_PREAMBLE, 0, ""},
    {"reasoning ends", "",
        ITEM("done",
            "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"ab\"}]}"),
        PART_CONTENT, 2, ""},
    {"call begins", "",
        ITEM("added", "{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"\"}"),
        PART_CONTENT, 1, ""},
    {"custom call ends", "",
        ITEM("done", "{\"type\":\"custom_tool_call\",\"name\":\"f\",\"input\":\"xyz\"}"),
        PART_CONTENT, 4, ""},
    {"hosted call begins", "", ITEM("added", "{\"type\":\"web_search_call\"}"), PART_CONTENT, 0,
        ""},
    {"no item", "", "{\"type\":\"response.output_item.added\"}", PART_PREAMBLE, 0, ""},
    {"part begins", "",
        "{\"type\":\"response.content_part.added\",\"part\":{\"type\":\"output_text\",\"text\":\"\"}}",
        PART_PREAMBLE, 0, ""},
    {"part ends", "",
        "{\"type\":\"response.content_part.done\",\"part\":{\"type\":\"output_text\",\"text\":\"ab\"}}",
        PART_CONTENT, 2, ""},
    {"summary part begins", "",
        "{\"type\":\"response.reasoning_summary_part.added\",\"part\":{\"text\":\"\"}}",
        PART_PREAMBLE, 0, ""},
    {"text", "", "{\"type\":\"response.output_text.delta\",\"delta\":\"a\\nb\"}", PART_CONTENT, 3,
        ""},
    {"text, the type only in the event's name", "response.output_text.delta", "{\"delta\":\"ab\"}",
        PART_CONTENT, 2, ""},
    {"empty text", "", "{\"type\":\"response.output_text.delta\",\"delta\":\"\"}", PART_PREAMBLE, 0,
        ""},
    {"text that is null", "", "{\"type\":\"response.output_text.delta\",\"delta\":null}",
        PART_PREAMBLE, 0, ""},
    {"refusal", "", "{\"type\":\"response.refusal.delta\",\"delta\":\"no\"}", PART_CONTENT, 2, ""},
    {"summary", "", "{\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"ab\"}",
        PART_CONTENT, 2, ""},
    {"reasoning", "", "{\"type\":\"response.reasoning_text.delta\",\"delta\":\"ab\"}", PART_CONTENT,
        2, ""},
    {"arguments", "", "{\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\"}",
        PART_CONTENT, 1, ""},
    {"arguments whole (TOOL-02)", "",
        "{\"type\":\"response.function_call_arguments.done\",\"arguments\":\"{}\"}", PART_CONTENT,
        2, ""},
    {"input", "", "{\"type\":\"response.custom_tool_call_input.delta\",\"delta\":\"ab\"}",
        PART_CONTENT, 2, ""},

    {"completed", "", R("completed", "{\"status\":\"completed\",\"error\":null,\"output\":[]}"),
        PART_END, 0, "completed"},
    {"completed with an output that was not streamed", "",
        R("completed",
            "{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"text\":"
            "\"abcd\"}]}]}"),
        PART_END, 4, "completed"},
    {"completed without a response", "", "{\"type\":\"response.completed\"}", PART_END, 0,
        "completed"},
    {"incomplete", "",
        R("incomplete", "{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":"
                        "\"max_output_tokens\"}}"),
        PART_END, 0, "max_output_tokens"},
    {"incomplete for a filter", "",
        R("incomplete",
            "{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}}"),
        PART_END, 0, "content_filter"},

    {"failed", "",
        R("failed", "{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\","
                    "\"message\":\"m\"}}"),
        PART_ERROR, 0, ""},
    {"completed that failed", "", R("completed", "{\"status\":\"failed\",\"output\":[]}"),
        PART_ERROR, 0, ""},
    {"completed with an error", "",
        R("completed", "{\"status\":\"completed\",\"error\":{\"code\":\"server_error\"}}"),
        PART_ERROR, 0, ""},
    {"cancelled", "", R("cancelled", "{}"), PART_ERROR, 0, ""},
    {"flat error", "",
        "{\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\",\"param\":null}",
        PART_ERROR, 0, ""},
    {"nested error", "", "{\"type\":\"error\",\"error\":{\"code\":\"x\"}}", PART_ERROR, 0, ""},
    {"error by name", "error", "{\"code\":\"x\"}", PART_ERROR, 0, ""},
    {"chat's error", "", "{\"error\":{\"message\":\"m\"}}", PART_ERROR, 0, ""},
    {"message without a type", "", "{\"code\":500,\"message\":\"m\"}", PART_ERROR, 0, ""},
};

static void
test_events(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(events); i++) {
		struct sse_event event = {.name = text_span(events[i].name),
		    .data = text_span(events[i].data),
		    .has_data = true};
		struct dialect_tap tap;
		enum dialect_part part;

		dialect_tap_init(&tap);
		part = dialect_responses.event(&event, &tap);
		if (part == events[i].part && tap.content_bytes == events[i].bytes &&
		    strcmp(tap.finish, events[i].finish) == 0 && tap.ended == (part == PART_END) &&
		    tap.finished == tap.ended)
			continue;
		failed++;
		print_error("%s: got %s %zu '%s', want %s %zu '%s'\n", events[i].what,
		    part_names[part], tap.content_bytes, tap.finish, part_names[events[i].part],
		    events[i].bytes, events[i].finish);
	}
	assert_int_equal(failed, 0);
}

static enum dialect_part
feed(struct dialect_tap *tap, const char *data)
{
	struct sse_event event = {.data = text_span(data), .name = {"", 0}, .has_data = true};

	return dialect_responses.event(&event, tap);
}

/* Over a whole stream text is counted once, figures are taken, and what follows the end is nothing. */
static void
test_stream(void **state)
{
	struct dialect_tap tap;

	(void)state;
	dialect_tap_init(&tap);
	feed(&tap, R("created", "{\"model\":\"m-1\",\"usage\":null}"));
	feed(&tap, "{\"type\":\"response.output_text.delta\",\"delta\":\"abc\"}");
	feed(&tap, "{\"type\":\"response.output_text.done\",\"text\":\"abc\"}");
	feed(&tap, ITEM("done", "{\"type\":\"message\",\"content\":[{\"text\":\"abc\"}]}"));
	assert_int_equal(tap.content_bytes, 3);
	assert_int_equal(
	    feed(&tap,
	        R("completed", "{\"status\":\"completed\",\"output\":[{\"type\":\"message\","
	                       "\"content\":[{\"text\":\"abc\"}]}],\"usage\":{\"input_tokens\":9,"
	                       "\"input_tokens_details\":{\"cached_tokens\":4,"
	                       "\"cache_write_tokens\":2},\"output_tokens\":7,"
	                       "\"output_tokens_details\":{\"reasoning_tokens\":5},"
	                       "\"total_tokens\":16}}")),
	    PART_END);
	assert_int_equal(tap.content_bytes, 3);
	assert_string_equal(tap.model, "m-1");
	assert_true(tap.usage.seen);
	assert_int_equal(tap.usage.prompt, 9);
	assert_int_equal(tap.usage.completion, 7);
	assert_int_equal(tap.usage.cached, 4);
	assert_int_equal(tap.usage.cache_write, 2);
	assert_int_equal(tap.usage.reasoning, 5);
	assert_int_equal(tap.usage.total, 16);
	assert_int_equal(feed(&tap, "[DONE]"), PART_NOTHING);
	assert_int_equal(feed(&tap, "{\"error\":{\"message\":\"late\"}}"), PART_NOTHING);
}

static const struct {
	const char *what, *body;
	bool is;
} answers[] = {
    {"completed", "{\"object\":\"response\",\"status\":\"completed\",\"output\":[]}", true},
    {"incomplete", "\n {\"object\":\"response\",\"status\":\"incomplete\",\"output\":[]}", true},
    {"in the background", "{\"object\":\"response\",\"status\":\"queued\",\"output\":[]}", true},
    {"without object", "{\"status\":\"completed\",\"output\":[]}", true},
    {"failed", "{\"object\":\"response\",\"status\":\"failed\",\"output\":[]}", false},
    {"with an error", "{\"object\":\"response\",\"output\":[],\"error\":{\"code\":\"x\"}}", false},
    {"without output", "{\"object\":\"response\",\"status\":\"completed\"}", false},
    {"another object", "{\"object\":\"chat.completion\",\"output\":[]}", false},
    {"an error", "{\"error\":{\"message\":\"m\"}}", false},
    {"not JSON", "<html>", false},
};

static void
test_answers(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct dialect_tap tap;

		dialect_tap_init(&tap);
		if (dialect_responses.answer(text_span(answers[i].body), &tap) == answers[i].is)
			continue;
		failed++;
		print_error("%s: got %d\n", answers[i].what, !answers[i].is);
	}
	assert_int_equal(failed, 0);
}

static const struct {
	const char *what, *body, *why;
} requests[] = {
    {"text", "{\"model\":\"m\",\"input\":\"Hi\"}", NULL},
    {"items", "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", NULL},
    {"stored prompt", "{\"model\":\"m\",\"prompt\":{\"id\":\"p\"}}", NULL},
    {"background passes", "{\"model\":\"m\",\"input\":\"Hi\",\"background\":true}", NULL},
    {"stream options of its own",
        "{\"model\":\"m\",\"input\":\"Hi\",\"stream_options\":{\"include_obfuscation\":false}}",
        NULL},
    {"no model", "{\"input\":\"Hi\"}", "'model' is missing"},
    {"no input", "{\"model\":\"m\"}", "'input' is missing: a string or an array is wanted"},
    {"empty text", "{\"model\":\"m\",\"input\":\"\"}", "'input' must not be empty"},
    {"empty list", "{\"model\":\"m\",\"input\":[ ]}", "'input' must hold at least one item"},
    {"a number", "{\"model\":\"m\",\"input\":1}", "'input' must be a string or an array"},
    {"a string as item", "{\"model\":\"m\",\"input\":[{},\"x\"]}",
        "'input[1]' must be an item object"},
    {"stream", "{\"model\":\"m\",\"input\":\"Hi\",\"stream\":1}", "'stream' must be true or false"},
};

static void
test_requests(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(requests); i++) {
		struct dialect_request request;
		struct why why = {""};
		enum err err =
		    dialect_read(&dialect_responses, text_span(requests[i].body), &request, &why);

		if ((err == ERR_OK) == (requests[i].why == NULL) &&
		    (err == ERR_OK || strcmp(why.text, requests[i].why) == 0))
			continue;
		failed++;
		print_error("%s: got %s\n", requests[i].what, why.text);
	}
	assert_int_equal(failed, 0);
}

static void
test_errors(void **state)
{
	struct buf out;
	struct sse_event event = {.name = {"", 0}, .has_data = true};
	struct dialect_tap tap;
	size_t at;

	(void)state;
	buf_init(&out, 4096);
	dialect_responses.error_event(&out, 503, NULL, "no_account", SPAN("a \"b\""));
	at = text_find(buf_text(&out), SPAN("data: "));
	assert_true(text_starts(buf_text(&out), "event: response.failed\ndata: "));
	assert_true(text_ends(buf_text(&out), "}\n\n"));
	event.data = text_trim(text_from(buf_text(&out), at + 6));
	assert_int_equal(scan_pick(event.data, NULL, NULL, 0, NULL), ERR_OK);
	assert_non_null(strstr(out.p, "\"status\":\"failed\",\"error\":{\"code\":\"no_account\","
	                              "\"message\":\"a \\\"b\\\"\"}"));
	dialect_tap_init(&tap);
	assert_int_equal(dialect_responses.event(&event, &tap), PART_ERROR);
	buf_clear(&out);
	dialect_responses.error_body(&out, 429, NULL, NULL, SPAN("slow"));
	assert_string_equal(out.p, "{\"error\":{\"message\":\"slow\",\"type\":\"rate_limit_error\","
	                           "\"param\":null,\"code\":null}}\n");
	assert_string_equal(dialect_responses.end_marker, "");
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_requests),
	    cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
