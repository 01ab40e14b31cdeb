#include "dialect/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"
#include "lib/quotes.h"

#define MB ((size_t)1 << 20)
#define ASK(list) "{\"messages\":[" list "]}"
#define USER "{\"role\":\"user\",\"content\":\"q\"}"
#define CALLS(calls) "{\"role\":\"assistant\",\"tool_calls\":[" calls "]}"
#define CALL(id, arguments) \
	"{\"id\":\"" id "\",\"function\":{\"name\":\"f\",\"arguments\":\"" arguments "\"}}"
#define RESULT(id) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"r\"}"
#define IMAGE(url) "{\"type\":\"image_url\",\"image_url\":\"" url "\"}"
#define SHOW(url) ASK("{\"role\":\"user\",\"content\":[" IMAGE(url) "]}")

/* Chat bodies; want NULL: right. */
static const struct {
	const char *what, *body, *want;
} cases[] = {
    {"one message", ASK(USER), NULL},
    {"only a system text", ASK("{\"role\":\"system\",\"content\":\"s\"}"), NULL},
    {"no message", ASK(""), "'messages' holds no message"},
    {"empty user message", ASK(USER ",{\"role\":\"user\",\"content\":\"\"}"),
        "'messages[1].content' is empty"},
    {"empty assistant message", ASK(USER ",{\"role\":\"assistant\",\"content\":\"\"}"), NULL},

    {"a call and its result", ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a")), NULL},
    {"two calls, results swapped",
        ASK(USER "," CALLS(CALL("a", "{}") "," CALL("b", "{}")) "," RESULT("b") "," RESULT("a")),
        NULL},
    {"a result twice", ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a") "," RESULT("a")), NULL},
    {"a result missing", ASK(USER "," CALLS(CALL("a", "{}") "," CALL("b", "{}")) "," RESULT("a")),
        "'messages[1].tool_calls[1].id' is of a call without a result in the messages right after it: 'b'"},
    {"no result at all", ASK(USER "," CALLS(CALL("a", "{}"))),
        "'messages[1].tool_calls[0].id' is of a call without a result in the messages right after it: 'a'"},
    {"the result comes too late", ASK(USER "," CALLS(CALL("a", "{}")) "," USER "," RESULT("a")),
        "'messages[1].tool_calls[0].id' is of a call without a result in the messages right after it: 'a'"},
    {"a result before its call", ASK(RESULT("a") "," CALLS(CALL("a", "{}"))),
        "'messages[0].tool_call_id' names a call that the message before it does not make: 'a'"},
    {"a result without a call (TOOL-14)",
        ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a") "," RESULT("x")),
        "'messages[3].tool_call_id' names a call that the message before it does not make: 'x'"},
    {"an id twice", ASK(USER "," CALLS(CALL("a", "{}") "," CALL("a", "{}")) "," RESULT("a")),
        "'messages[1].tool_calls[0].id' is the id of another call, too: 'a'"},
    {"arguments of a list (TOOL-07)", ASK(CALLS(CALL("a", "[1]")) "," RESULT("a")),
        "'messages[0].tool_calls[0].function.arguments' is no whole JSON object, in the call 'a'"},
    {"arguments that were cut", ASK(CALLS(CALL("a", "{\\\"a\\\":")) "," RESULT("a")),
        "'messages[0].tool_calls[0].function.arguments' is no whole JSON object, in the call 'a'"},
    {"arguments of text", ASK(CALLS(CALL("a", "\\\"x\\\"")) "," RESULT("a")),
        "'messages[0].tool_calls[0].function.arguments' is no whole JSON object, in the call 'a'"},
    {"arguments with more behind", ASK(CALLS(CALL("a", "{}{}")) "," RESULT("a")),
        "'messages[0].tool_calls[0].function.arguments' is no whole JSON object, in the call 'a'"},
    {"arguments of nothing", ASK(CALLS(CALL("a", "")) "," RESULT("a")), NULL},
    {"free text of a custom tool",
        ASK(CALLS("{\"id\":\"a\",\"custom\":{\"name\":\"g\",\"input\":\"{\"}}") "," RESULT("a")),
        NULL},

    {"image", SHOW("data:image/png;base64,AAAA"), NULL},
    {"image, padded", SHOW("data:image/webp;base64,AA=="), NULL},
    {"image by URL", SHOW("https://x/y.svg"), NULL},
    {"SVG (CONV-08)", SHOW("data:image/svg+xml;base64,AAAA"),
        "'messages[0].content[0].image_url' is an image that is neither PNG, JPEG, GIF nor WebP: 'image/svg+xml'"},
    {"image without data", SHOW("data:image/png;base64,"),
        "'messages[0].content[0].image_url' is an image without data"},
    {"image of other bytes", SHOW("data:image/png;base64,A A"),
        "'messages[0].content[0].image_url' is an image whose data is not base64"},
    {"padding in the middle", SHOW("data:image/png;base64,A=AAAAA"),
        "'messages[0].content[0].image_url' is an image whose data is not base64"},
    {"image in a result",
        ASK(CALLS(CALL("a", "{}")) ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":[" IMAGE(
            "data:image/bmp;base64,AAAA") "]}"),
        "'messages[1].content[0].image_url' is an image that is neither PNG, JPEG, GIF nor WebP: 'image/bmp'"},
};

static void
test_cases(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct why why = {.text = ""};
		struct form form;
		enum err err;

		if (form_read_chat(arena, text_span(cases[i].body), &form, &why) != ERR_OK)
			fail_msg("%s: %s", cases[i].what, why.text);
		err = form_check(&form, &why);
		if (cases[i].want == NULL
		        ? err == ERR_OK
		        : err == ERR_BAD_INPUT && strcmp(why.text, cases[i].want) == 0)
			continue;
		failed++;
		print_error("%s: %d\n got  %s\n want %s\n", cases[i].what, (int)err, why.text,
		    cases[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* Each API's own names, also where a turn holds what stood in several messages or items. */
static const struct {
	const char *what;
	form_read_fn *read;
	const char *body, *want;
} places[] = {
    {"chat: arguments", form_read_chat,
        "{'messages':[{'role':'user','content':'q'},{'role':'assistant','content':'t','tool_calls':"
        "[{'id':'a','function':{'name':'f','arguments':'{}'}},"
        "{'id':'b','function':{'name':'f','arguments':'['}}]}]}",
        "'messages[1].tool_calls[0].id' is of a call without a result"},
    {"chat: arguments of the second call", form_read_chat,
        "{'messages':[{'role':'assistant','tool_calls':"
        "[{'id':'a','function':{'name':'f','arguments':'{}'}},"
        "{'id':'b','function':{'name':'f','arguments':'['}}]},"
        "{'role':'tool','tool_call_id':'a','content':''},"
        "{'role':'tool','tool_call_id':'b','content':''}]}",
        "'messages[0].tool_calls[1].function.arguments' is no"},
    {"chat: arguments of old", form_read_chat,
        "{'messages':[{'role':'assistant','function_call':{'name':'f','arguments':'['}}]}",
        "'messages[0].function_call.arguments' is no"},
    {"chat: second result", form_read_chat,
        "{'messages':[{'role':'assistant','tool_calls':"
        "[{'id':'a','function':{'name':'f','arguments':'{}'}}]},"
        "{'role':'tool','tool_call_id':'a','content':''},"
        "{'role':'tool','tool_call_id':'b','content':''}]}",
        "'messages[2].tool_call_id' names"},
    {"chat: image behind a text", form_read_chat,
        "{'messages':[{'role':'user','content':[{'type':'text','text':'q'},"
        "{'type':'image_url','image_url':{'url':'data:image/bmp;base64,AAAA'}}]}]}",
        "'messages[0].content[1].image_url' is an"},
    {"messages: call in the second of two messages", form_read_messages,
        "{'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'t'},"
        "{'type':'tool_use','id':'a','name':'f'}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a'}]}]}",
        "'messages[0].content[0].id' is the id of"},
    {"messages: call without a result", form_read_messages,
        "{'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'t'},"
        "{'type':'tool_use','id':'b','name':'f'}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a'}]}]}",
        "'messages[1].content[1].id' is of a call without"},
    {"messages: result", form_read_messages,
        "{'messages':[{'role':'user','content':[{'type':'text','text':'q'},"
        "{'type':'tool_result','tool_use_id':'a'}]}]}",
        "'messages[0].content[1].tool_use_id' names"},
    {"messages: image", form_read_messages,
        "{'messages':[{'role':'user','content':[{'type':'text','text':'q'},{'type':'image',"
        "'source':{'type':'url','url':'ftp://x/y'}}]}]}",
        "'messages[0].content[1].source' is a URL"},
    {"messages: image of a result", form_read_messages,
        "{'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f'}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a','content':["
        "{'type':'text','text':'r'},{'type':'image','source':{'type':'base64',"
        "'media_type':'image/bmp','data':'AAAA'}}]}]}]}",
        "'messages[1].content[0].content[1].source' is an"},
    {"responses: second of two calls", form_read_responses,
        "{'input':[{'role':'user','content':'q'},{'role':'assistant','content':'t'},"
        "{'type':'function_call','call_id':'a','name':'f','arguments':'{}'},"
        "{'type':'function_call','call_id':'b','name':'f','arguments':'{}'},"
        "{'type':'function_call_output','call_id':'a','output':''}]}",
        "'input[3].call_id' is of a call without"},
    {"responses: output without a call", form_read_responses,
        "{'input':[{'role':'user','content':'q'},"
        "{'type':'function_call_output','call_id':'a','output':''}]}",
        "'input[1].call_id' names"},
    {"responses: image", form_read_responses,
        "{'input':[{'role':'user','content':[{'type':'input_text','text':'q'},"
        "{'type':'input_image','image_url':'data:image/bmp;base64,AAAA'}]}]}",
        "'input[0].content[1].image_url' is an"},
    {"responses: image of an output", form_read_responses,
        "{'input':[{'type':'function_call','call_id':'a','name':'f','arguments':'{}'},"
        "{'role':'user','content':'q'},"
        "{'type':'function_call_output','call_id':'a','output':["
        "{'type':'input_image','image_url':'data:image/bmp;base64,AAAA'}]}]}",
        "'input[2].output[0].image_url' is an"},
    {"responses: file", form_read_responses,
        "{'input':[{'role':'user','content':[{'type':'input_file','file_url':'file:///x'}]}]}",
        "'input[0].content[0].file_url' is a URL"},
};

static void
test_places(void **state)
{
	struct arena *arena = arena_new(MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(places); i++) {
		struct why why = {.text = ""};
		struct form form;

		if (places[i].read(arena, quotes(arena, places[i].body), &form, &why) != ERR_OK)
			fail_msg("%s: %s", places[i].what, why.text);
		if (form_check(&form, &why) == ERR_BAD_INPUT &&
		    text_starts(text_span(why.text), places[i].want))
			continue;
		failed++;
		print_error("%s:\n got  %s\n want %s\n", places[i].what, why.text, places[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* A place that is longer than its room is cut. */
static void
test_short_room(void **state)
{
	const struct form form = {.from = FORM_CHAT};
	const struct form_part part = {.kind = FORM_CALL, .at = 12, .in = 3, .of = SIZE_MAX};
	static const char whole[] = "messages[12].tool_calls[3].function.arguments";
	char room[sizeof whole];

	(void)state;
	for (size_t cap = 1; cap <= sizeof whole; cap++) {
		struct span got = form_place(&form, &part, FORM_FIELD_ARGUMENTS, room, cap);

		assert_int_equal(got.n, cap - 1);
		assert_memory_equal(got.p, whole, cap - 1);
		assert_int_equal(room[cap - 1], '\0');
	}
}

/* Of several results the last one stays, in its place. */
static void
test_repeated(void **state)
{
	static const char body[] =
	    ASK(CALLS(CALL("a", "{}") "," CALL("b", "{}")) "," RESULT("a") "," RESULT(
	        "b") ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"last\"}");
	struct arena *arena = arena_new(MB);
	struct buf *got = arena_buf(arena, MB);
	struct form form;

	(void)state;
	assert_int_equal(form_read_chat(arena, text_span(body), &form, NULL), ERR_OK);
	assert_int_equal(form_check(&form, NULL), ERR_OK);
	form_text(got, &form);
	assert_string_equal(got->p,
	    "assistant@0[call id=a name=f args={} ][call id=b name=f args={} ];"
	    "tool@1[result of=b by=f [text =r ]][result of=a by=f [text =last ]];");
	arena_free(&arena);
}

/* What is fetched lies in the network: images, documents, also those of results. */
static void
test_urls(void **state)
{
	static const struct {
		const char *url;
		bool good;
	} rows[] = {
	    {"https://x/a", true},
	    {"HTTP://x/a", true},
	    {"file:///etc/passwd", false},
	    {"/etc/passwd", false},
	    {"ftp://x/a", false},
	};
	struct arena *arena = arena_new(MB);

	(void)state;
	for (size_t i = 0; i < 3 * NELEM(rows); i++) {
		struct span url = text_span(rows[i / 3].url);
		struct form form = {.from = FORM_MESSAGES};
		struct form_turn *turn = form_add_turn(arena, &form, FORM_USER, 0);
		struct form_part *part =
		    form_add_part(arena, turn, i % 3 == 0 ? FORM_IMAGE : FORM_DOCUMENT);
		struct form_part inner = *part;
		struct why why = {.text = ""};
		enum err err;

		part->media.url = url;
		if (i % 3 == 2) {
			inner.media.url = url;
			turn->role = FORM_ASSISTANT;
			*part = (struct form_part){.kind = FORM_CALL,
			    .call = {SPAN("a"), SPAN("f"), SPAN("{}"), .custom = false}};
			turn = form_add_turn(arena, &form, FORM_TOOL, 1);
			form_add_part(arena, turn, FORM_RESULT)->result =
			    (struct form_result){SPAN("a"), .parts = &inner, .nparts = 1};
		}
		err = form_check(&form, &why);
		if (err != (rows[i / 3].good ? ERR_OK : ERR_BAD_INPUT))
			fail_msg("row %zu, %s: %d %s", i, url.p, (int)err, why.text);
	}
	arena_free(&arena);
}

/* A reader may leave things empty: no names, no ids, no types. */
static void
test_hollow(void **state)
{
	struct arena *arena = arena_new(MB);
	struct form form = {.from = FORM_RESPONSES};
	struct form_turn *turn = form_add_turn(arena, &form, FORM_ASSISTANT, 4);
	struct why why;

	(void)state;
	form_add_part(arena, turn, FORM_CALL);
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4].name' is missing");
	turn->parts[0].call.name = SPAN("f");
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4].call_id' is missing, of the call of 'f'");
	turn->role = FORM_TOOL;
	turn->parts[0].kind = FORM_RESULT;
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4].call_id' is missing");
	turn->role = FORM_USER;
	turn->parts[0].kind = FORM_IMAGE;
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4].image_url' is an image of no known type");
	arena_free(&arena);
}

/* Many calls in one turn take time in proportion. */
static void
test_many(void **state)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = {.from = FORM_CHAT};
	struct form_turn *turn = form_add_turn(arena, &form, FORM_ASSISTANT, 0);

	(void)state;
	form_add_turn(arena, &form, FORM_TOOL, 1);
	turn = &form.turns[0];
	for (int i = 0; i < 100000; i++) {
		struct span id = text_span(arena_print(arena, "call_%d", i));

		form_add_part(arena, turn, FORM_CALL)->call =
		    (struct form_call){.id = id, .name = SPAN("f"), .arguments = SPAN("{}")};
		form_add_part(arena, &form.turns[1], FORM_RESULT)->result.id = id;
	}
	assert_int_equal(form_check(&form, NULL), ERR_OK);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_short_room),
	    cmocka_unit_test(test_repeated),
	    cmocka_unit_test(test_urls),
	    cmocka_unit_test(test_hollow),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
