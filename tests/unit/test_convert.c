#include "convert.h"

#include "convert_error.h"
#include "convert_flow.h"

#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct request rq;
static struct conf_channel channel;
static struct convert convert;

/* A request as request_body() leaves it, for an upstream of `wire`. */
static void
ask(const char *path, const char *body, enum provider_wire wire)
{
	struct why why = {""};

	rq = (struct request){.id = SPAN("req_1"), .endpoint = endpoint_find(text_span(path))};
	if (dialect_read(rq.endpoint->dialect, text_span(body), &rq.read, &why) != ERR_OK)
		fail_msg("%s", why.text);
	rq.model = scan_string(arena, rq.read.model.raw);
	rq.stream = rq.read.stream.type == SCAN_TRUE;
	rq.wants_usage = rq.read.include_usage.type == SCAN_TRUE;
	channel = (struct conf_channel){.name = SPAN("c"),
	    .provider = provider_at(PROVIDER_COMPATIBLE),
	    .wire = wire,
	    .quirks.max_tokens = SPAN("")};
	convert_begin(&convert, arena, &rq, 1700000000);
}

static enum err
aim(const char *model, struct why *why)
{
	struct convert_target target = {.channel = &channel, .model = text_span(model)};

	return convert_aim(&convert, &target, why);
}

#define CHAT "/v1/chat/completions"
#define MESSAGES "/v1/messages"
#define RESPONSES "/v1/responses"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"

/* On the same wire: edits alone. */
static const struct {
	const char *what, *path, *body, *model;
	bool force, no_options, roles;
	const char *limit, *want;
} same[] = {
    {"nothing", CHAT, "{ \"model\":\"m\"," USER "}", "m", false, false, false, "",
        "{ \"model\":\"m\"," USER "}"},
    {"model", MESSAGES, "{\"model\":\"m\",\"max_tokens\":1," USER "}", "n", false, false, false, "",
        "{\"model\":\"n\",\"max_tokens\":1," USER "}"},
    {"usage", CHAT, "{\"model\":\"m\",\"stream\":true," USER "}", "m", false, false, false, "",
        "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true," USER "}"},
    {"no usage where it is no option", RESPONSES,
        "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}", "m", false, false, false, "",
        "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"},
    {"host without the option", CHAT,
        "{\"model\":\"m\",\"stream\":true,\"stream_options\":{}," USER "}", "m", false, true, false,
        "", "{\"model\":\"m\",\"stream\":true," USER "}"},
    {"forced stream", CHAT, "{\"model\":\"m\"," USER "}", "m", true, false, false, "",
        "{\"stream\":true,\"stream_options\":{\"include_usage\":true},\"model\":\"m\"," USER "}"},
    {"forced stream, messages", MESSAGES,
        "{\"max_tokens\":1,\"stream\":false,\"model\":\"m\"," USER "}", "m", true, false, true,
        "max_completion_tokens", "{\"max_tokens\":1,\"stream\":true,\"model\":\"m\"," USER "}"},
    {"completions are never forced", "/v1/completions", "{\"model\":\"m\",\"prompt\":\"x\"}", "m",
        true, false, false, "", "{\"model\":\"m\",\"prompt\":\"x\"}"},
    {"all at once", CHAT,
        "{\"max_completion_tokens\":1,\"stream_options\":{},\"max_tokens\":2,\"model\":\"m\",\"messages\":"
        "[{\"role\":\"developer\"}]}",
        "n", true, true, true, "max_tokens",
        "{\"stream\":true,\"max_tokens\":2,\"model\":\"n\",\"messages\":[{\"role\":\"system\"}]}"},
    {"all at once, the first two go", CHAT,
        "{\"stream_options\":{},\"max_tokens\":2,\"max_completion_tokens\":1,\"model\":\"m\"," USER
        "}",
        "m", true, true, true, "max_completion_tokens",
        "{\"stream\":true,\"max_completion_tokens\":1,\"model\":\"m\"," USER "}"},
    {"all at once, the last two go", CHAT,
        "{\"model\":\"m\"," USER
        ",\"max_tokens\":1,\"stream_options\":{},\"max_completion_tokens\":2}",
        "m", false, true, false, "max_tokens", "{\"model\":\"m\"," USER ",\"max_tokens\":1}"},
};

static void
test_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(same); i++) {
		struct why why = {""};

		ask(same[i].path, same[i].body, WIRE_CHAT);
		channel.wire = (enum provider_wire)rq.endpoint->wire;
		channel.quirks.force_stream = same[i].force;
		channel.quirks.no_stream_options = same[i].no_options;
		channel.quirks.developer_as_system = same[i].roles;
		channel.quirks.max_tokens = text_span(same[i].limit);
		assert_int_equal(aim(same[i].model, &why), ERR_OK);
		assert_true(convert.way.same && convert.way.dialect == rq.endpoint->dialect);
		if (!text_is(convert.way.body, same[i].want))
			fail_msg("%s: got %.*s", same[i].what, (int)convert.way.body.n,
			    convert.way.body.p);
		assert_int_equal(convert.state, CONVERT_UNREAD);
	}
}

/* Read once, written for each. */
static void
test_other(void **state)
{
	struct why why = {""};

	(void)state;
	ask(CHAT, "{\"model\":\"m\",\"logit_bias\":{\"1\":2},\"stream\":true," USER "}",
	    WIRE_MESSAGES);
	assert_int_equal(aim("n", &why), ERR_OK);
	assert_false(convert.way.same);
	assert_string_equal(convert.way.dialect->path, "/messages");
	assert_true(convert.way.stream);
	assert_true(text_is(convert.way.dropped, "logit_bias"));
	assert_true(text_find(convert.way.body, SPAN("\"model\":\"n\"")) < convert.way.body.n);
	channel.wire = WIRE_RESPONSES;
	assert_int_equal(aim("o", &why), ERR_OK);
	assert_string_equal(convert.way.dialect->path, "/responses");
	assert_true(text_find(convert.way.body, SPAN("\"model\":\"o\"")) < convert.way.body.n);
	channel.wire = WIRE_CHAT;
	assert_int_equal(aim("m", &why), ERR_OK);
	assert_true(convert.way.same && convert.way.dropped.n == 0);
}

static void
test_unreadable(void **state)
{
	struct why why = {""};

	(void)state;
	ask(CHAT,
	    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"odd\"}]}",
	    WIRE_MESSAGES);
	for (int i = 0; i < 2; i++) {
		why.text[0] = '\0';
		assert_int_equal(aim("n", &why), ERR_BAD_INPUT);
		assert_non_null(strstr(why.text, "messages[1]"));
		assert_int_equal(convert.state, CONVERT_UNREADABLE);
	}
	channel.wire = WIRE_CHAT;
	assert_int_equal(aim("n", &why), ERR_OK);
}

/* Many names, and one that is too long for any header. */
static void
test_dropped_is_short(void **state)
{
	struct buf body;
	struct why why = {""};

	(void)state;
	buf_init(&body, 65536);
	buf_z(&body, "{\"model\":\"m\"," USER);
	for (int i = 0; i < 100; i++)
		buf_print(&body, ",\"x_%03d_______\":1", i);
	buf_char(&body, '}');
	ask(CHAT, body.p, WIRE_MESSAGES);
	assert_int_equal(aim("m", &why), ERR_OK);
	assert_in_range(convert.way.dropped.n, 480, 508);
	assert_true(text_ends(convert.way.dropped, ",..."));
	buf_clear(&body);
	buf_z(&body, "{\"model\":\"m\"," USER ",\"");
	for (int i = 0; i < 600; i++)
		buf_char(&body, 'y');
	buf_z(&body, "\":1}");
	ask(CHAT, body.p, WIRE_MESSAGES);
	assert_int_equal(aim("m", &why), ERR_OK);
	assert_true(text_is(convert.way.dropped, "..."));
	buf_release(&body);
}

/* It goes into a header: no bytes that are none of its own. */
static void
test_dropped_is_plain(void **state)
{
	struct why why = {""};

	(void)state;
	ask(CHAT, "{\"model\":\"m\",\"a,b \\r\\nX: 1\\u00e9\":1," USER "}", WIRE_MESSAGES);
	assert_int_equal(aim("m", &why), ERR_OK);
	assert_true(text_is(convert.way.dropped, "a?b???X:?1??"));
}

#define OBJECT                                                                               \
	"{\"id\":\"c1\",\"model\":\"up\",\"choices\":[{\"message\":{\"content\":\"hello\"}," \
	"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"

static const char *const conversations[] = {CHAT, MESSAGES, RESPONSES};
static const char *const bodies[] = {"{\"model\":\"m\"," USER "}",
    "{\"model\":\"m\",\"max_tokens\":9," USER "}", "{\"model\":\"m\",\"input\":\"x\"}"};

/* An object, for a client that wants it plain or streamed, in each API. */
static void
test_flow(void **state)
{
	static const char *const marks[] = {"[DONE]", "message_stop", "response.completed"};

	(void)state;
	for (size_t i = 0; i < NELEM(conversations); i++)
		for (int plain = 0; plain < 2; plain++) {
			struct buf *out = arena_buf(arena, 1 << 20);
			struct convert_flow *flow;
			struct dialect_tap tap;
			struct why why = {""};

			ask(conversations[i], bodies[i], WIRE_CHAT);
			assert_int_equal(aim("n", &why), ERR_OK);
			flow = convert_flow_begin(&convert, plain == 1);
			convert_flow_body(flow, SPAN(OBJECT), out);
			convert_flow_end(flow, out);
			assert_true(text_find(buf_text(out), SPAN("hello")) < out->n);
			assert_true(text_find(buf_text(out), SPAN("\"m\"")) < out->n);
			assert_true(text_find(buf_text(out), SPAN("\"up\"")) == out->n);
			dialect_tap_init(&tap);
			if (plain == 1)
				assert_true(rq.endpoint->dialect->answer(buf_text(out), &tap));
			else
				assert_true(text_find(buf_text(out), text_span(marks[i])) < out->n);
		}
}

static const struct {
	const char *what, *path, *body;
	bool context_length;
	const char *message, *code, *want;
} faults[] = {
    {"message and code", MESSAGES, "{\"error\":{\"message\":\"no\",\"type\":\"x\",\"code\":\"c\"}}",
        false, "cut", "other",
        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no\",\"details\":"
        "{\"error_code\":\"c\"}}}\n"},
    {"no code", CHAT,
        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no\"}}",
        false, "no", "invalid_request_error",
        "{\"error\":{\"message\":\"no\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n"},
    {"no JSON", CHAT, "", false, "told otherwise", "c",
        "{\"error\":{\"message\":\"told otherwise\",\"type\":\"invalid_request_error\",\"param\":null,"
        "\"code\":\"c\"}}\n"},
    {"nothing at all", RESPONSES, "", false, "", "",
        "{\"error\":{\"message\":\"the upstream refuses this request\",\"type\":\"invalid_request_error\","
        "\"param\":null,\"code\":null}}\n"},
    {"too long", RESPONSES,
        "{\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"prompt is too long\"}}", true,
        "", "",
        "{\"error\":{\"message\":\"prompt is too long\",\"type\":\"invalid_request_error\",\"param\":null,"
        "\"code\":\"context_length_exceeded\"}}\n"},
    {"too long, for messages", MESSAGES, "{\"error\":{\"message\":\"maximum context\"}}", true, "",
        "",
        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: "
        "maximum context\",\"details\":{\"error_code\":\"context_length_exceeded\"}}}\n"},
};

static void
test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(faults); i++) {
		struct convert_error error = {400, faults[i].context_length,
		    text_span(faults[i].body), SPAN("application/json"), faults[i].message,
		    faults[i].code};
		struct buf *out = arena_buf(arena, 65536);

		for (size_t k = 0; k < NELEM(conversations); k++)
			if (strcmp(conversations[k], faults[i].path) == 0)
				ask(conversations[k], bodies[k], WIRE_CHAT);
		convert_error_body(&convert, &error, out);
		if (!text_is(buf_text(out), faults[i].want))
			fail_msg("%s: got %s", faults[i].what, out->p);
	}
}

static const struct {
	const char *what, *name, *data;
	bool chat, messages, responses;
} own[] = {
    {"OpenAI's", "", "{\"error\":{\"message\":\"x\"}}", true, false, false},
    {"a text", "", "{\"error\":\"x\"}", true, false, false},
    {"Anthropic's", "error", "{\"type\":\"error\",\"error\":{\"type\":\"x\"}}", true, true, true},
    {"... without its name", "", "{\"type\":\"error\",\"error\":{\"type\":\"x\"}}", true, false,
        true},
    {"of responses", "error", "{\"type\":\"error\",\"code\":\"x\"}", false, false, true},
    {"failed", "response.failed", "{\"type\":\"response.failed\",\"response\":{}}", false, false,
        true},
    {"flat", "", "{\"code\":1,\"msg\":\"x\"}", false, false, false},
    {"no JSON", "error", "boom", false, false, false},
};

static void
test_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(own); i++)
		for (size_t k = 0; k < NELEM(conversations); k++) {
			struct sse_event event = {
			    .name = text_span(own[i].name), .data = text_span(own[i].data)};
			bool want[] = {own[i].chat, own[i].messages, own[i].responses};

			ask(conversations[k], bodies[k], WIRE_CHAT);
			if (convert_error_is_own(&convert, &event) != want[k])
				fail_msg("%s: for %s", own[i].what, conversations[k]);
		}
}

static void
note(struct convert_error_trail *trail, const char *data)
{
	struct sse_event event = {.data = text_span(data)};

	convert_error_note(&convert, trail, &event);
}

/* An error behind events that passed as they were has their next number, and the name of their response. */
static void
test_trail(void **state)
{
	struct convert_error_trail trail = {.sequence = -1, .id = SPAN("")};
	struct buf *out = arena_buf(arena, 65536);

	(void)state;
	ask(RESPONSES, bodies[2], WIRE_RESPONSES);
	note(&trail,
	    "{\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_9\"}}");
	note(&trail,
	    "{\"type\":\"x\",\"delta\":\"\\\"sequence_number\\\":77\",\"sequence_number\": 41}");
	assert_int_equal(trail.sequence, 41);
	note(&trail, "{\"sequence_number\":\"x\"}");
	note(&trail, "not json \"sequence_number\":");
	assert_int_equal(trail.sequence, 41);
	convert_error_event(&convert, &trail, 502, "c", SPAN("broke"), out);
	assert_true(text_starts(buf_text(out),
	    "event: response.failed\ndata: {\"type\":\"response.failed\","
	    "\"sequence_number\":42,\"response\":{\"id\":\"resp_9\""));
	assert_true(text_find(buf_text(out),
	                SPAN("\"error\":{\"code\":\"c\",\"message\":\"broke\"}")) < out->n);
	buf_clear(out);
	ask(MESSAGES, bodies[1], WIRE_MESSAGES);
	convert_error_event(&convert, &trail, 502, "c", SPAN("broke"), out);
	assert_true(text_starts(buf_text(out), "event: error\ndata: {\"type\":\"error\""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),
	    cmocka_unit_test(test_other),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_dropped_is_short),
	    cmocka_unit_test(test_dropped_is_plain),
	    cmocka_unit_test(test_flow),
	    cmocka_unit_test(test_faults),
	    cmocka_unit_test(test_own),
	    cmocka_unit_test(test_trail),
	};

	return cmocka_run_group_tests(tests, in_arena_begin, in_arena_end);
}
