#include "convert_turns.h"

#include "dialect/seal.h"
#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT "/v1/chat/completions"
#define MESSAGES "/v1/messages"
#define RESPONSES "/v1/responses"
#define NO_TOOL                                                                \
	"\"tools\":[{\"name\":\"none\",\"description\":\"Not to be called.\"," \
	"\"input_schema\":{\"type\":\"object\"}}],\"tool_choice\":{\"type\":\"none\"},"
#define MARK "~" /* what shortening leaves */
#define ODD_ID "functions.f:1"
#define ODD_SENT \
	"functio_d029b1d6167f9b6ebb0bc7a2883d642d"    /* what a host of messages takes instead */
#define AGAIN "k1_1_ea216ac304e4a2bfc687b97d86a82642" /* and for k1, where that was there before */

static struct request rq;
static struct conf_channel channel;
static struct convert convert;

/* A request to a channel of its own API, read. */
static void
ask(const char *path, const char *body)
{
	struct why why = {""};

	rq = (struct request){.id = SPAN("req_1"), .endpoint = endpoint_find(text_span(path))};
	if (dialect_read(rq.endpoint->dialect, text_span(body), &rq.read, &why) != ERR_OK)
		fail_msg("%s", why.text);
	rq.model = scan_string(arena, rq.read.model.raw);
	channel = (struct conf_channel){.name = SPAN("c"),
	    .provider = provider_at(PROVIDER_COMPATIBLE),
	    .wire = (enum provider_wire)rq.endpoint->wire,
	    .quirks.max_tokens = SPAN("")};
	convert_begin(&convert, arena, &rq, 1700000000);
	if (flow_wires[rq.endpoint->wire].read(arena, rq.read.body, &convert.form, &why) != ERR_OK)
		fail_msg("%s", why.text);
	convert.state = CONVERT_READ;
}

static struct form say;

static struct form_turn *
add(const struct form_turn *turn)
{
	say.turns[say.nturns] = *turn;
	return &say.turns[say.nturns++];
}

/* s system, u user, a assistant, c an answer that calls, r the result of that, o an answer that calls by an odd id: kept. */
static void
add_kept(char letter)
{
	static const char roles[] = {[FORM_SYSTEM] = 's',
	    [FORM_DEVELOPER] = 'd',
	    [FORM_USER] = 'u',
	    [FORM_ASSISTANT] = 'a',
	    [FORM_TOOL] = 'r'};
	struct form_turn turn = {.role = FORM_ASSISTANT, .at = FORM_AT_KEPT};
	struct form_part *part;

	for (size_t i = 0; i < sizeof roles; i++)
		if (roles[i] == letter)
			turn.role = (enum form_role)i;
	part = form_add_part(arena, &turn,
	    letter == 'c' || letter == 'o' ? FORM_CALL
	    : letter == 'r'                ? FORM_RESULT
	                                   : FORM_TEXT);
	part->text = SPAN("kept");
	if (part->kind == FORM_CALL)
		part->call = (struct form_call){.id = letter == 'c' ? SPAN("k1") : SPAN(ODD_ID),
		    .name = SPAN("f"),
		    .arguments = SPAN("{}")};
	if (letter == 'r')
		part->result.id = SPAN("k1");
	add(&turn);
}

/* A turn whose text, or the text of its last result, is shorter: a copy, as trimming makes it. */
static void
add_shortened(const struct form_turn *sent)
{
	struct form_turn *turn = add(sent);
	struct form_part *parts = arena_alloc(arena, sent->nparts * sizeof *parts), *part;

	memcpy(parts, sent->parts, sent->nparts * sizeof *parts);
	turn->parts = parts;
	part = &parts[sent->nparts - 1];
	if (part->kind != FORM_RESULT) {
		part->text = SPAN(MARK);
		return;
	}
	parts = arena_alloc(arena, sizeof *parts);
	*parts = part->result.parts[0];
	parts->text = SPAN(MARK);
	part->result.parts = parts;
}

/*
 * What is said, in letters: of what was sent '.' the next turn as it is, '-' not at all, '~' shortened; others as above.
 */
static void
plan(const char *letters)
{
	size_t sent = 0;

	say = convert.form;
	say.turns = arena_alloc(arena, (convert.form.nturns + strlen(letters)) * sizeof *say.turns);
	say.nturns = 0;
	for (; *letters != '\0'; letters++)
		if (*letters == '.')
			add(&convert.form.turns[sent++]);
		else if (*letters == '-')
			sent++;
		else if (*letters == '~')
			add_shortened(&convert.form.turns[sent++]);
		else
			add_kept(*letters);
	if (sent != convert.form.nturns)
		fail_msg("%zu turns were read", convert.form.nturns);
	convert.say = &say;
}

#define KEPT_U "{\"role\":\"user\",\"content\":\"kept\"}"
#define KEPT_A "{\"role\":\"assistant\",\"content\":\"kept\"}"
#define TEXT(t) "[{\"type\":\"text\",\"text\":\"" t "\"}]"
#define ODD "{ \"content\" : \"\\u0068i\", \"role\":\"user\" ,\"x\": 1.0 }"
#define CALLS                                                                                \
	"{\"role\":\"assistant\", \"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":" \
	"\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{ }\"}},{\"id\":\"c2\","  \
	"\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define USE \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{ }}]}"

#define KEPT_TEXT "{\"role\":\"user\",\"content\":" TEXT("kept") "}"
#define KEPT_USE(id)                                                                     \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"" id "\"," \
	"\"name\":\"f\",\"input\":{}}]}"
#define RESULT(id)                                                                               \
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\"}," \
	"{\"type\":\"text\",\"text\":\"go\"}]}"
#define ASK_RESULT(id) "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" RESULT(id) "]}"

static const struct row {
	const char *what, *path, *body, *say, *want;
} rows[] = {
    {"as it is", CHAT, "{\"model\":\"m\",\"messages\":[" ODD "]}", ".",
        "{\"model\":\"m\",\"messages\":[" ODD "]}"},
    {"kept before sent", CHAT, "{ \"messages\": [ " ODD " ],\"model\":\"m\" }", "ua.",
        "{ \"messages\": [" KEPT_U "," KEPT_A "," ODD "],\"model\":\"m\" }"},
    {"a kept system text", CHAT, "{\"model\":\"m\",\"messages\":[" ODD "]}", "sua.",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"kept\"}," KEPT_U
        "," KEPT_A "," ODD "]}"},
    {"behind the client's own", CHAT,
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\" ,\"content\":\"own\"}," ODD "]}",
        ".sua.",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\" ,\"content\":\"own\"},"
        "{\"role\":\"system\",\"content\":\"kept\"}," KEPT_U "," KEPT_A "," ODD "]}"},
    {"of what was sent one goes", CHAT,
        "{\"model\":\"m\",\"messages\":[" ODD "," KEPT_A "," ODD "]}", "--.",
        "{\"model\":\"m\",\"messages\":[" ODD "]}"},
    {"the second of two results", CHAT,
        "{\"model\":\"m\",\"messages\":[" CALLS
        ",{\"role\":\"tool\", \"tool_call_id\":\"c1\",\"content\":\"one\"},"
        "{\"role\":\"tool\", \"tool_call_id\":\"c2\",\"content\":\"two\"}," ODD "]}",
        ".~.",
        "{\"model\":\"m\",\"messages\":[" CALLS
        ",{\"role\":\"tool\", \"tool_call_id\":\"c1\",\"content\":\"one\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"" MARK "\"}," ODD "]}"},
    {"an exchange goes", CHAT,
        "{\"model\":\"m\",\"messages\":[" ODD "," CALLS
        ",{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"one\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"two\"}," ODD "]}",
        ".--.", "{\"model\":\"m\",\"messages\":[" ODD "," ODD "]}"},
    {"a message without parts stays", CHAT,
        "{\"model\":\"m\",\"messages\":[" ODD ",{\"role\":\"assistant\",\"content\":\"\"}," ODD
        "]}",
        "u...",
        "{\"model\":\"m\",\"messages\":[" KEPT_U "," ODD
        ",{\"role\":\"assistant\",\"content\":\"\"}," ODD "]}"},
    {"kept calls, sent results", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
        "\"tool_result\" ,\"tool_use_id\":\"k1\"},{\"type\":\"text\",\"text\":\"go\"}]}]}",
        "uc..",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":" TEXT(
            "kept") "},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"k1\",\"name\":"
                    "\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\" "
                    ",\"tool_use_id\":\"k1\"},{\"type\":\"text\",\"text\":\"go\"}]}]}"},
    {"kept calls by an odd id", MESSAGES, ASK_RESULT(ODD_ID), "uo..",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" KEPT_TEXT
        "," KEPT_USE(ODD_SENT) "," RESULT(ODD_SENT) "]}"},
    {"kept calls by the same id again", MESSAGES, ASK_RESULT("k1"), "ucrauc..",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" KEPT_TEXT "," KEPT_USE(
            "k1") ","
                  "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"k1\"}]},"
                  "{\"role\":\"assistant\",\"content\":" TEXT("kept") "}," KEPT_TEXT "," KEPT_USE(
                      AGAIN) "," RESULT(AGAIN) "]}"},
    {"kept calls of chat, sent results", CHAT,
        "{\"model\":\"m\",\"messages\":[{\"role\":\"tool\", \"tool_call_id\":\"k1\",\"content\":\"\"}]}",
        "uc.",
        "{\"model\":\"m\",\"messages\":[" KEPT_U ",{\"role\":\"assistant\",\"content\":\"\","
        "\"tool_calls\":[{\"id\":\"k1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"{}\"}}]},{\"role\":\"tool\", \"tool_call_id\":\"k1\",\"content\":\"\"}]}"},
    {"no filler around what is kept", MESSAGES,
        "{\"model\":\"claude-opus-4-6\",\"max_tokens\":1,\"messages\":[" ODD "]}", "a.",
        "{\"model\":\"claude-opus-4-6\",\"max_tokens\":1,\"messages\":[{\"role\":\"assistant\","
        "\"content\":" TEXT("kept") "}," ODD "]}"},
    {"a kept system text of messages", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" ODD "]}", "su.",
        "{\"system\":" TEXT("kept") ",\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":"
                                    "\"user\",\"content\":" TEXT("kept") "}," ODD "]}"},
    {"behind the client's own string", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" ODD "],\"system\":\"o\\u0077n\"}", ".s.",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" ODD
        "],\"system\":[{\"type\":\"text\",\"text\":\"o\\u0077n\"},{\"type\":\"text\",\"text\":"
        "\"kept\"}]}"},
    {"behind the client's own blocks", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":[{\"type\":\"text\", \"text\":\"own\"}],"
        "\"messages\":[" ODD "]}",
        ".s.",
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":[{\"type\":\"text\", \"text\":\"own\"},"
        "{\"type\":\"text\",\"text\":\"kept\"}],\"messages\":[" ODD "]}"},
    {"null is no system text", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":null,\"messages\":[" ODD "]}", "s.",
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":" TEXT("kept") ",\"messages\":[" ODD "]}"},
    {"a system text in the middle", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":\"own\",\"messages\":[" ODD "]}", ".us.",
        "{\"model\":\"m\",\"max_tokens\":1,\"system\":\"own\",\"messages\":[{\"role\":\"user\","
        "\"content\":[{\"type\":\"text\",\"text\":\"kept\"},{\"type\":\"text\",\"text\":"
        "\"<system>\\nkept\\n</system>\"}]}," ODD "]}"},
    {"a result of messages is shortened", MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" ODD "," USE
        ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\","
        "\"content\":\"long\"}]}]}",
        "..~",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[" ODD "," USE
        ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\","
        "\"content\":\"" MARK "\"}]}]}"},
    {"items of responses", RESPONSES,
        "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"a\"},{\"type\":\"reasoning\","
        "\"summary\":[],\"encrypted_content\":\"x\"},{ \"type\":\"function_call\",\"call_id\":"
        "\"c1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":"
        "\"c1\",\"output\":\"long\"},{\"role\":\"user\",\"content\":\"b\"}]}",
        "s-.~.",
        "{\"model\":\"m\",\"input\":[{\"type\":\"message\",\"role\":\"developer\",\"content\":[{"
        "\"type\":\"input_text\",\"text\":\"kept\"}]},{\"type\":\"reasoning\",\"summary\":[],"
        "\"encrypted_content\":\"x\"},{ \"type\":\"function_call\",\"call_id\":\"c1\",\"name\":"
        "\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c1\","
        "\"output\":\"" MARK "\"},{\"role\":\"user\",\"content\":\"b\"}]}"},
};

/* A host of messages wants tools beside calls and results. */
static bool
wants_tool(const struct row *row)
{
	return strcmp(row->path, MESSAGES) == 0 && strstr(row->want, "\"tool_") != NULL &&
	       strstr(row->want, "\"tools\":") == NULL;
}

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct convert_target target = {.channel = &channel};
		struct why why = {""};
		const char *want;

		ask(rows[i].path, rows[i].body);
		plan(rows[i].say);
		target.model = rq.model;
		if (convert_aim(&convert, &target, &why) != ERR_OK)
			fail_msg("%s: %s", rows[i].what, why.text);
		want = arena_print(
		    convert.arena, "{%s%s", wants_tool(&rows[i]) ? NO_TOOL : "", &rows[i].want[1]);
		if (!text_is(convert.way.body, want))
			fail_msg("%s:\n got %.*s\nwant %s", rows[i].what, (int)convert.way.body.n,
			    convert.way.body.p, want);
	}
}

/* The edits of the same wire, and what a writer leaves out, come on top. */
static void
test_edits(void **state)
{
	struct convert_target target = {.channel = &channel, .model = SPAN("n")};
	struct why why = {""};

	(void)state;
	ask(CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"developer\",\"content\":\"d\"}]}");
	plan("ua.");
	say.turns[1].parts[0].kind = FORM_THOUGHT;
	channel.quirks.developer_as_system = true;
	assert_int_equal(convert_aim(&convert, &target, &why), ERR_OK);
	assert_true(text_is(convert.way.body,
	    "{\"model\":\"n\",\"messages\":[" KEPT_U ",{\"role\":\"system\",\"content\":\"d\"}]}"));
	assert_true(convert.way.dropped.n > 0);
	/* once more with less */
	plan("u-");
	assert_int_equal(convert_again(&convert, &why), ERR_OK);
	assert_true(text_is(convert.way.body, "{\"model\":\"n\",\"messages\":[" KEPT_U "]}"));
	/* another wire has all of it from its writer */
	plan("u.");
	channel.wire = WIRE_MESSAGES;
	assert_int_equal(convert_aim(&convert, &target, &why), ERR_OK);
	assert_true(text_find(convert.way.body, SPAN("kept")) < convert.way.body.n);
}

#define BUDGET "\"type\":\"enabled\",\"budget_tokens\":1024"

/* Calls of others come without the thoughts that thinking by budget wants before them. */
static void
test_thinking(void **state)
{
	static const struct {
		const char *what, *asked, *seal; /* of a kept thought before the calls */
		bool stays;
	} cases[] = {
	    {"no thoughts", BUDGET, NULL, false},
	    {"another's thoughts", BUDGET, "d", false},
	    {"its own", BUDGET, "c", true},
	    {"adaptive", "\"type\":\"adaptive\"", NULL, true},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct convert_target target = {.channel = &channel, .model = SPAN("m")};
		struct form_turn *calls;
		struct why why = {""};

		ask(MESSAGES, arena_print(arena,
		                  "{\"model\":\"m\",\"thinking\":{%s},\"max_tokens\":2000,"
		                  "\"messages\":[" RESULT("k1") "]}",
		                  cases[i].asked));
		plan("uc..");
		calls = &say.turns[1];
		if (cases[i].seal != NULL) {
			*form_add_part(arena, calls, FORM_CALL) = calls->parts[0];
			calls->parts[0] = (struct form_part){.kind = FORM_THOUGHT,
			    .text = SPAN("so"),
			    .thought.seal = seal_make(
			        arena, FORM_MESSAGES, text_span(cases[i].seal), SPAN("sig"))};
		}
		if (convert_aim(&convert, &target, &why) != ERR_OK)
			fail_msg("%s: %s", cases[i].what, why.text);
		if (text_has_fold(convert.way.body, "\"thinking\":{") != cases[i].stays ||
		    (convert.way.dropped.n == 0) != cases[i].stays)
			fail_msg(
			    "%s: %.*s", cases[i].what, (int)convert.way.body.n, convert.way.body.p);
	}
}

/* What the wire cannot be given is the client's 400. */
static void
test_refused(void **state)
{
	struct convert_target target = {.channel = &channel, .model = SPAN("m")};
	struct why why = {""};

	(void)state;
	ask(CHAT, "{\"model\":\"m\",\"messages\":[" ODD "]}");
	plan("u.");
	say.turns[0].parts[0].kind = FORM_IMAGE;
	say.turns[0].parts[0].media.file_id = SPAN("file_1");
	assert_int_equal(convert_aim(&convert, &target, &why), ERR_BAD_INPUT);
	assert_non_null(strstr(why.text, "(kept)"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_rows, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_edits, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_thinking, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_refused, in_arena_begin, in_arena_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
