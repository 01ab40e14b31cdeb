#include "dialect/history.h"

#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MINE SPAN("oa")
#define MSG "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[]}"
#define MSG_BARE "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}"
#define CALL "{\"id\": \"fc_1\",\"type\":\"function_call\", \"arguments\":\"{\\\"n\\\":1.0}\"}"
#define CALL_BARE "{\"type\":\"function_call\",\"arguments\":\"{\\\"n\\\":1.0}\"}"
#define SEARCH "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"}"
#define THOUGHT \
	"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"gA\\/=\"}"
#define THOUGHT_BACK \
	"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"gA/=\"}"
#define WORDS "{\"type\":\"reasoning\",\"id\":\"rs_2\",\"summary\":[{\"text\":\"so\"}]}"
#define SHORT "{\"type\":\"compaction\",\"encrypted_content\":\"cc\"}"
#define USER "{\"role\":\"user\",\"content\":\"x\"}"

/* From a conversation's answer to what a channel gets of it. */
static const struct {
	const char *what, *items, *output;
	bool made_native, native;
	const char *channel, *want;
} fits[] = {
    {"nothing", "[]", "[]", false, false, "oa", ""},
    {"items alone", "[ " USER " ]", "[]", false, false, "oa", USER},
    {"the answer alone", "[]", "[" MSG "]", false, false, "oa", MSG_BARE},
    {"both", "[" USER "]", "[" MSG "]", true, true, "oa", USER "," MSG_BARE},
    {"ids of items that clients sent stay", "[" MSG "]", "[]", true, true, "oa", MSG},
    {"a call", "[]", "[" CALL "]", true, true, "oa", CALL_BARE},
    {"a hosted call keeps its id", "[]", "[" SEARCH "]", true, true, "oa", SEARCH},
    {"what is no item", "[]", "[1,null,\"x\"," MSG "]", true, true, "oa", MSG_BARE},
    {"a thought goes home", "[]", "[" THOUGHT "," MSG "]", true, true, "oa",
        THOUGHT_BACK "," MSG_BARE},
    {"a thought not to another channel", "[]", "[" THOUGHT "," MSG "]", true, true, "ob", MSG_BARE},
    {"nor to another API", "[]", "[" THOUGHT "," MSG "]", true, false, "oa", MSG_BARE},
    {"a compaction goes home", "[]", "[" SHORT "]", true, true, "oa", SHORT},
    {"a compaction not elsewhere", "[]", "[" SHORT "]", true, false, "oa", ""},
    {"a host's thought without content", "[]", "[" WORDS "," MSG "]", true, true, "oa", MSG_BARE},
    {"nor for another API", "[]", "[" WORDS "," MSG "]", true, false, "oc", MSG_BARE},
    {"words of another API's thought", "[]", "[" WORDS "]", false, false, "oc", WORDS},
    {"are nothing to a host of this API", "[]", "[" WORDS "]", false, true, "oa", ""},
    {"a client's own thought is its own business elsewhere", "[" THOUGHT "]", "[]", true, false,
        "oa", THOUGHT},
};

static void
fitting(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(fits); i++) {
		struct history h = {
		    .channel = MINE,
		    .account = SPAN("A1"),
		    .native = fits[i].made_native,
		    .items = text_span(fits[i].items),
		    .response = text_span(arena_print(arena, "{\"output\":%s}", fits[i].output)),
		};
		struct buf *out = arena_buf(arena, 1 << 16);
		struct history back;
		struct span got;

		history_write(&h, out);
		assert_true(history_read(arena, buf_text(out), &back));
		assert_true(text_equal(back.channel, h.channel) && back.native == h.native);
		assert_true(text_equal(back.account, h.account) && !back.stored);
		got = history_fit(
		    arena, history_carry(arena, &back), fits[i].native, text_span(fits[i].channel));
		if (!text_is(got, fits[i].want))
			fail_msg("%s: got  %.*s\nwant %s", fits[i].what, (int)got.n, got.p,
			    fits[i].want);
		arena_reset(arena);
	}
	arena_free(&arena);
}

/* Marked once, a thought keeps its mark while others serve. */
static void
long_way(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct history h = {.channel = MINE,
	    .native = true,
	    .items = SPAN("[" USER "]"),
	    .response = SPAN("{\"output\":[" THOUGHT "]}")};
	struct span got = {"", 0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		got = history_carry(arena, &h);
		h = (struct history){.channel = SPAN("ob"),
		    .native = i % 2 == 0,
		    .items = text_span(arena_print(arena, "[%.*s]", (int)got.n, got.p)),
		    .response = SPAN("{\"output\":[" MSG "]}")};
	}
	got = history_fit(arena, got, true, MINE);
	assert_true(text_is(got, USER "," THOUGHT_BACK "," MSG_BARE "," MSG_BARE));
	arena_free(&arena);
}

/* What the client was not given goes on all the same. */
static void
sealed(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct span seal = seal_make(arena, FORM_MESSAGES, MINE, SPAN("s"));
	char *thought = arena_print(arena,
	    "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"%.*s\"}", (int)seal.n,
	    seal.p);
	struct history h = {.channel = MINE,
	    .items = SPAN("[" USER "]"),
	    .response = SPAN("{\"output\":[" WORDS "," MSG "]}"),
	    .output = text_span(arena_print(arena, "[%s," MSG "]", thought))};
	struct buf *out = arena_buf(arena, 1 << 16);
	struct history back;
	struct span got;

	(void)state;
	history_write(&h, out);
	assert_true(history_read(arena, buf_text(out), &back));
	assert_true(text_equal(back.response, h.response));
	got = history_fit(arena, history_carry(arena, &back), false, SPAN("ob"));
	assert_true(text_is(got, arena_print(arena, USER ",%s," MSG_BARE, thought)));
	arena_free(&arena);
}

static const struct {
	const char *what, *body, *items, *want;
} bodies[] = {
    {"a text", "{\"model\":\"m\", \"input\" : \"a\\u00e9\",\"previous_response_id\":\"r\"}", USER,
        "{\"model\":\"m\", \"input\" : [" USER ",{\"role\":\"user\",\"content\":\"a\\u00e9\"}]}"},
    {"a list", "{\"previous_response_id\":\"r\",\"input\":[ 1.0 ],\"x\":[1E5],\"model\":\"m\"}",
        USER, "{\"input\":[" USER ",1.0],\"x\":[1E5],\"model\":\"m\"}"},
    {"nothing before it", "{\"model\":\"m\",\"input\":[2]}", "", "{\"model\":\"m\",\"input\":[2]}"},
    {"an empty list", "{\"model\":\"m\",\"input\":[ ]}", USER,
        "{\"model\":\"m\",\"input\":[" USER "]}"},
    {"a stored prompt",
        "{\"prompt\":{\"id\":\"p\"},\"model\":\"m\",\"previous_response_id\":\"r\"}", USER,
        "{\"input\":[" USER "],\"prompt\":{\"id\":\"p\"},\"model\":\"m\"}"},
};

static void
body(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		static const char *const paths[] = {"input"};
		struct dialect_request request = {.body = text_span(bodies[i].body)};
		struct span got;

		assert_int_equal(scan_pick(request.body, paths, &request.input, 1, NULL), ERR_OK);
		got = history_body(arena, &request,
		    history_join(arena, text_span(bodies[i].items), history_own(arena, &request)));
		if (!text_is(got, bodies[i].want))
			fail_msg("%s: got  %.*s\nwant %s", bodies[i].what, (int)got.n, got.p,
			    bodies[i].want);
	}
	arena_free(&arena);
}

#define OK_ANSWER "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[],\"store\":true}"

static const struct {
	const char *what, *text;
	bool events, found, stored;
} answers[] = {
    {"an answer", OK_ANSWER, false, true, true},
    {"not stored", "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[],\"store\":false}", false,
        true, false},
    {"it says nothing of that", " {\"id\":\"r1\",\"status\":\"incomplete\",\"output\":[]} ", false,
        true, false},
    {"failed", "{\"id\":\"r1\",\"status\":\"failed\",\"output\":[]}", false, false, false},
    {"queued", "{\"id\":\"r1\",\"status\":\"queued\",\"output\":[]}", false, false, false},
    {"no status", "{\"id\":\"r1\",\"output\":[]}", false, false, false},
    {"no id", "{\"status\":\"completed\",\"output\":[]}", false, false, false},
    {"an empty id", "{\"id\":\"\",\"status\":\"completed\",\"output\":[]}", false, false, false},
    {"no output", "{\"id\":\"r1\",\"status\":\"completed\"}", false, false, false},
    {"an id twice", "{\"id\":\"r1\",\"id\":\"r2\",\"status\":\"completed\",\"output\":[]}", false,
        false, false},
    {"cut", "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[", false, false, false},
    {"a list", "[" OK_ANSWER "]", false, false, false},
    {"nothing", "", false, false, false},
    {"an event",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" OK_ANSWER
        "}\n\n",
        true, true, true},
    {"behind others, without a name and its end",
        ": hb\n\ndata: {\"type\":\"x\"}\n\ndata: nonsense\n\n"
        "data: {\"type\":\"response.incomplete\",\"response\":" OK_ANSWER "}",
        true, true, true},
    {"another event", "data: {\"type\":\"response.created\",\"response\":" OK_ANSWER "}\n\n", true,
        false, false},
    {"failed events", "data: {\"type\":\"response.failed\",\"response\":" OK_ANSWER "}\n\n", true,
        false, false},
    {"no events", "", true, false, false},
};

static void
answer(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct history_answer got = {.stored = false};
		struct span text = text_span(answers[i].text);
		bool found = answers[i].events ? history_events(arena, text, &got)
		                               : history_answer(arena, text, &got);

		if (found != answers[i].found || (found && got.stored != answers[i].stored))
			fail_msg("%s: %d, stored %d", answers[i].what, found, got.stored);
		if (found)
			assert_true(text_is(got.id, "r1"));
	}
	arena_free(&arena);
}

/* What lies in the store is text of clients and hosts, and may be of another program. */
static void
documents(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"channel\":\"a\"}",
	    "{\"channel\":\"a\",\"account\":\"b\",\"items\":{},\"response\":{}}",
	    "{\"channel\":\"a\",\"account\":\"b\",\"items\":[],\"response\":[]}",
	    "{\"channel\":1,\"account\":\"b\",\"items\":[],\"response\":{}}"};
	struct arena *arena = arena_new(1 << 20);
	struct history h;

	(void)state;
	for (size_t i = 0; i < NELEM(bad); i++)
		if (history_read(arena, text_span(bad[i]), &h))
			fail_msg("read: %s", bad[i]);
	/* an answer without a list of items */
	assert_true(history_read(arena,
	    SPAN("{\"channel\":\"a\",\"account\":\"b\",\"items\":[],\"response\":{\"output\":7}}"),
	    &h));
	assert_int_equal(history_carry(arena, &h).n, 0);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fitting),
	    cmocka_unit_test(long_way),
	    cmocka_unit_test(sealed),
	    cmocka_unit_test(body),
	    cmocka_unit_test(answer),
	    cmocka_unit_test(documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
