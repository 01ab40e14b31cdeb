#include "dialect/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT(rest) "{\"model\":\"m1\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]" rest "}"

static const struct {
	const struct dialect *dialect;
	const char *what, *body;
	const char *says; /* part of the refusal; NULL = accepted */
} cases[] = {
    {&dialect_chat, "plain", CHAT(""), NULL},
    {&dialect_chat, "blanks around", " \r\n\t" CHAT("") "\n", NULL},
    {&dialect_chat, "stream", CHAT(",\"stream\":true"), NULL},
    {&dialect_chat, "stream null", CHAT(",\"stream\":null"), NULL},
    {&dialect_chat, "options", CHAT(",\"stream\":true,\"stream_options\":{}"), NULL},
    {&dialect_chat, "options null", CHAT(",\"stream_options\":null"), NULL},
    {&dialect_chat, "options without stream", CHAT(",\"stream_options\":{\"include_usage\":true}"),
        NULL},
    {&dialect_chat, "unknown members, twice", CHAT(",\"x\":1,\"x\":2,\"\":0"), NULL},
    {&dialect_chat, "odd numbers", CHAT(",\"n\":1.0,\"seed\":18446744073709551616,\"t\":1e400"),
        NULL},
    {&dialect_chat, "lone surrogate", CHAT(",\"x\":\"\\ud83d\""), NULL},
    {&dialect_chat, "other types of what passes", CHAT(",\"n\":\"x\",\"max_tokens\":[],\"user\":7"),
        NULL},
    {&dialect_chat, "metadata of another type", CHAT(",\"metadata\":\"x\""), NULL},
    {&dialect_chat, "model with non-ASCII",
        "{\"model\":\"\\u6a21/\xe5\x9e\x8b\\\\\\/\",\"messages\":[{}]}", NULL},

    {&dialect_chat, "empty", "", "no body"},
    {&dialect_chat, "blanks", " \n", "no body"},
    {&dialect_chat, "brace", "{", "not valid JSON"},
    {&dialect_chat, "array", "[]", "JSON object"},
    {&dialect_chat, "array with a model", "[{\"model\":\"m\"}]", "JSON object"},
    {&dialect_chat, "string", "\"x\"", "JSON object"},
    {&dialect_chat, "null", "null", "JSON object"},
    {&dialect_chat, "single quotes", "{'model':'m1'}", "not valid JSON"},
    {&dialect_chat, "more text", CHAT("") " x", "not valid JSON"},
    {&dialect_chat, "two documents", CHAT("") CHAT(""), "not valid JSON"},
    {&dialect_chat, "NaN", CHAT(",\"temperature\":NaN"), "not valid JSON"},
    {&dialect_chat, "comment", CHAT("/* x */"), "not valid JSON"},
    {&dialect_chat, "TRUE", CHAT(",\"stream\":TRUE"), "not valid JSON"},
    {&dialect_chat, "007", CHAT(",\"n\":007"), "not valid JSON"},
    {&dialect_chat, "1.", CHAT(",\"n\":1."), "not valid JSON"},
    {&dialect_chat, "line end in a string", CHAT(",\"x\":\"a\nb\""), "line 1"},
    {&dialect_chat, "bad UTF-8", CHAT(",\"x\":\"\xff\xfe\""), "not valid JSON"},
    {&dialect_chat, "BOM", "\xef\xbb\xbf" CHAT(""), "not valid JSON"},
    {&dialect_chat, "NUL in a name", CHAT(",\"a\\u0000b\":1"), "not valid JSON"},
    {&dialect_chat, "model twice", CHAT(",\"model\":\"m2\""), "model"},
    {&dialect_chat, "model twice, one escaped", CHAT(",\"m\\u006fdel\":\"m2\""), "model"},
    {&dialect_chat, "session key twice", CHAT(",\"session_id\":\"a\",\"session_id\":\"b\""),
        "session_id"},

    {&dialect_chat, "no model", "{\"messages\":[{}]}", "'model' is missing"},
    {&dialect_chat, "model number", "{\"model\":1}", "'model' must be a string"},
    {&dialect_chat, "model null", "{\"model\":null}", "'model' must be a string"},
    {&dialect_chat, "model empty", "{\"model\":\"\"}", "'model' must not be empty"},
    {&dialect_chat, "model NUL", "{\"model\":\"a\\u0000\"}", "control"},
    {&dialect_chat, "model 1f", "{\"model\":\"a\\u001F\"}", "control"},
    {&dialect_chat, "model DEL", "{\"model\":\"a\\u007F\"}", "control"},
    {&dialect_chat, "model raw DEL", "{\"model\":\"a\x7f\"}", "control"},
    {&dialect_chat, "model line end", "{\"model\":\"a\\r\\nx: y\"}", "control"},
    {&dialect_chat, "no messages", "{\"model\":\"m1\"}", "'messages' is missing"},
    {&dialect_chat, "messages object", "{\"model\":\"m1\",\"messages\":{}}",
        "'messages' must be an array of message objects"},
    {&dialect_chat, "messages string", "{\"model\":\"m1\",\"messages\":\"x\"}",
        "'messages' must be an array of message objects"},
    {&dialect_chat, "messages null", "{\"model\":\"m1\",\"messages\":null}",
        "'messages' must be an array of message objects"},
    {&dialect_chat, "messages empty", "{\"model\":\"m1\",\"messages\":[ ]}", "at least one"},
    {&dialect_chat, "a message that is none", "{\"model\":\"m1\",\"messages\":[{},{},\"x\"]}",
        "'messages[2]'"},
    {&dialect_chat, "stream string", CHAT(",\"stream\":\"true\""),
        "'stream' must be true or false"},
    {&dialect_chat, "stream number", CHAT(",\"stream\":1"), "'stream'"},
    {&dialect_chat, "options bool", CHAT(",\"stream_options\":true"),
        "'stream_options' must be an object"},
    {&dialect_chat, "options array", CHAT(",\"stream_options\":[]"), "'stream_options'"},
    {&dialect_chat, "include_usage string", CHAT(",\"stream_options\":{\"include_usage\":\"x\"}"),
        "'stream_options.include_usage'"},

    {&dialect_completions, "prompt", "{\"model\":\"m\",\"prompt\":\"x\"}", NULL},
    {&dialect_completions, "tokens", "{\"model\":\"m\",\"prompt\":[[1,2]]}", NULL},
    {&dialect_completions, "no prompt", "{\"model\":\"m\",\"messages\":[{}]}",
        "'prompt' is missing"},
    {&dialect_completions, "prompt null", "{\"model\":\"m\",\"prompt\":null}", "'prompt' must be"},
    {&dialect_completions, "no model", "{\"prompt\":\"x\"}", "'model' is missing"},
    {&dialect_completions, "stream string", "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":\"x\"}",
        "'stream'"},

    {&dialect_embeddings, "input",
        "{\"model\":\"m\",\"input\":\"x\",\"encoding_format\":\"base64\"}", NULL},
    {&dialect_embeddings, "tokens", "{\"model\":\"m\",\"input\":[1,2]}", NULL},
    {&dialect_embeddings, "stream is nothing here", "{\"model\":\"m\",\"input\":[],\"stream\":1}",
        NULL},
    {&dialect_embeddings, "no input", "{\"model\":\"m\"}", "'input' is missing"},
    {&dialect_embeddings, "input object", "{\"model\":\"m\",\"input\":{}}", "'input' must be"},
    {&dialect_embeddings, "no model", "{\"input\":\"x\"}", "'model' is missing"},

    {&dialect_moderations, "no model", "{\"input\":[{\"type\":\"text\"}]}", NULL},
    {&dialect_moderations, "model", "{\"model\":\"m\",\"input\":\"x\"}", NULL},
    {&dialect_moderations, "model null", "{\"model\":null,\"input\":\"x\"}", "'model'"},
    {&dialect_moderations, "no input", "{\"model\":\"m\"}", "'input' is missing"},
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct why why = {.text = ""};
		struct dialect_request r = {.body = SPAN("untouched")};
		enum err err = dialect_read(cases[i].dialect, text_span(cases[i].body), &r, &why);
		bool good = cases[i].says == NULL
		                ? err == ERR_OK
		                : err == ERR_BAD_INPUT && strstr(why.text, cases[i].says) != NULL &&
		                      text_is(r.body, "untouched");

		if (!good)
			fail_msg("%s, %s: got err %d '%s', want '%s'", cases[i].dialect->name,
			    cases[i].what, (int)err, why.text,
			    cases[i].says == NULL ? "" : cases[i].says);
	}
}

static void
test_values(void **state)
{
	static const char body[] =
	    "{ \"metadata\" : {\"conversationId\":\"c2\", \"user_id\": \"u1\", \"task_type\":\"t\","
	    "\"conversation_id\":7,\"session_id\":\"s0\"},"
	    "\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"model\":\"inner\"}],"
	    "\"m\\u006fdel\" : \"m\\u0031\" , \"stream\":true,\"stream_options\":{\"include_usage\" : "
	    "false},"
	    "\"max_tokens\":5,\"max_completion_tokens\":6,\"n\":2,\"user\":\"u\","
	    "\"conversation_id\":\"c3\",\"conversationId\":\"c4\",\"session_id\":\"s\","
	    "\"prompt_cache_key\":\"k\",\"previous_response_id\":null}";
	static const struct {
		const char *path, *raw;
	} rows[] = {
	    {"model", "\"m\\u0031\""},
	    {"stream", "true"},
	    {"stream_options", "{\"include_usage\" : false}"},
	    {"stream_options.include_usage", "false"},
	    {"max_tokens", "5"},
	    {"max_completion_tokens", "6"},
	    {"n", "2"},
	    {"user", "\"u\""},
	    {"metadata.conversation_id", "7"},
	    {"metadata.conversationId", "\"c2\""},
	    {"metadata.user_id", "\"u1\""},
	    {"metadata.task_type", "\"t\""},
	    {"conversation_id", "\"c3\""},
	    {"conversationId", "\"c4\""},
	    {"session_id", "\"s\""},
	    {"prompt_cache_key", "\"k\""},
	    {"previous_response_id", "null"},
	    {"prompt", ""},
	};
	struct dialect_request r;

	(void)state;
	assert_int_equal(dialect_read(&dialect_chat, text_span(body), &r, NULL), ERR_OK);
	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct scan_value *v = dialect_value(&r, text_span(rows[i].path));

		if (v == NULL || !text_is(v->raw, rows[i].raw))
			fail_msg("%s: got '%.*s', want '%s'", rows[i].path,
			    v == NULL ? 0 : (int)v->raw.n, v == NULL ? "" : v->raw.p, rows[i].raw);
	}
	assert_ptr_equal(dialect_value(&r, SPAN("model")), &r.model);
	assert_ptr_equal(dialect_value(&r, SPAN("session_id")), &r.session_id);
	assert_null(dialect_value(&r, SPAN("metadata.other")));
	assert_null(dialect_value(&r, SPAN("")));
	assert_int_equal(r.prompt.type, SCAN_ABSENT);
	assert_true(r.model.raw.p > body && r.model.raw.p < body + sizeof body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
