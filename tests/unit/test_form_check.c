#include "dialect/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"

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
        "'messages[1]' has no content"},
    {"empty assistant message", ASK(USER ",{\"role\":\"assistant\",\"content\":\"\"}"), NULL},

    {"a call and its result", ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a")), NULL},
    {"two calls, results swapped",
        ASK(USER "," CALLS(CALL("a", "{}") "," CALL("b", "{}")) "," RESULT("b") "," RESULT("a")),
        NULL},
    {"a result twice", ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a") "," RESULT("a")), NULL},
    {"a result missing", ASK(USER "," CALLS(CALL("a", "{}") "," CALL("b", "{}")) "," RESULT("a")),
        "'messages[1]' makes a call without a result in the messages right after it: 'b'"},
    {"no result at all", ASK(USER "," CALLS(CALL("a", "{}"))),
        "'messages[1]' makes a call without a result in the messages right after it: 'a'"},
    {"the result comes too late", ASK(USER "," CALLS(CALL("a", "{}")) "," USER "," RESULT("a")),
        "'messages[1]' makes a call without a result in the messages right after it: 'a'"},
    {"a result before its call", ASK(RESULT("a") "," CALLS(CALL("a", "{}"))),
        "'messages[0]' is the result of a call that the message before it does not make: 'a'"},
    {"a result without a call (TOOL-14)",
        ASK(USER "," CALLS(CALL("a", "{}")) "," RESULT("a") "," RESULT("x")),
        "'messages[3]' is the result of a call that the message before it does not make: 'x'"},
    {"an id twice", ASK(USER "," CALLS(CALL("a", "{}") "," CALL("a", "{}")) "," RESULT("a")),
        "'messages[1]' has two calls with the id 'a'"},
    {"arguments of a list (TOOL-07)", ASK(CALLS(CALL("a", "[1]")) "," RESULT("a")),
        "'messages[0]' has arguments that are no whole JSON object, in its call 'a'"},
    {"arguments that were cut", ASK(CALLS(CALL("a", "{\\\"a\\\":")) "," RESULT("a")),
        "'messages[0]' has arguments that are no whole JSON object, in its call 'a'"},
    {"arguments of text", ASK(CALLS(CALL("a", "\\\"x\\\"")) "," RESULT("a")),
        "'messages[0]' has arguments that are no whole JSON object, in its call 'a'"},
    {"arguments with more behind", ASK(CALLS(CALL("a", "{}{}")) "," RESULT("a")),
        "'messages[0]' has arguments that are no whole JSON object, in its call 'a'"},
    {"arguments of nothing", ASK(CALLS(CALL("a", "")) "," RESULT("a")), NULL},
    {"free text of a custom tool",
        ASK(CALLS("{\"id\":\"a\",\"custom\":{\"name\":\"g\",\"input\":\"{\"}}") "," RESULT("a")),
        NULL},

    {"image", SHOW("data:image/png;base64,AAAA"), NULL},
    {"image, padded", SHOW("data:image/webp;base64,AA=="), NULL},
    {"image by URL", SHOW("https://x/y.svg"), NULL},
    {"SVG (CONV-08)", SHOW("data:image/svg+xml;base64,AAAA"),
        "'messages[0]' has an image that is neither PNG, JPEG, GIF nor WebP: 'image/svg+xml'"},
    {"image without data", SHOW("data:image/png;base64,"),
        "'messages[0]' has an image without data"},
    {"image of other bytes", SHOW("data:image/png;base64,A A"),
        "'messages[0]' has an image whose data is not base64"},
    {"padding in the middle", SHOW("data:image/png;base64,A=AAAAA"),
        "'messages[0]' has an image whose data is not base64"},
    {"image in a result",
        ASK(CALLS(CALL("a", "{}")) ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":[" IMAGE(
            "data:image/bmp;base64,AAAA") "]}"),
        "'messages[1]' has an image that is neither PNG, JPEG, GIF nor WebP: 'image/bmp'"},
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
	assert_string_equal(why.text, "'input[4]' calls a tool without a name");
	turn->parts[0].call.name = SPAN("f");
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4]' has no id for its call of 'f'");
	turn->role = FORM_TOOL;
	turn->parts[0].kind = FORM_RESULT;
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4]' does not say which call it answers");
	turn->role = FORM_USER;
	turn->parts[0].kind = FORM_IMAGE;
	assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
	assert_string_equal(why.text, "'input[4]' has an image of no known type");
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
	    cmocka_unit_test(test_repeated),
	    cmocka_unit_test(test_hollow),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
