#include "dialect/flow.h"
#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB ((size_t)1 << 20)

#define CHAT(messages) "{\"model\":\"x\",\"messages\":[" messages "]}"
#define CHAT_HI(members) \
	"{\"model\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]," members "}"
#define CLAUDE(messages) "{\"model\":\"x\",\"max_tokens\":100,\"messages\":[" messages "]}"
#define CLAUDE_HI(members)                                                                        \
	"{\"model\":\"x\",\"max_tokens\":100,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"" \
	"}]," members "}"
#define OWN(members) "{\"model\":\"x\",\"input\":\"Hi\"," members "}"
#define OWN_ITEMS(items) "{\"model\":\"x\",\"input\":[" items "]}"

#define TEXT_PART(text) "{\"type\":\"input_text\",\"text\":\"" text "\"}"
#define MESSAGE(role, parts) "{\"type\":\"message\",\"role\":\"" role "\",\"content\":[" parts "]}"
#define SAID(text) MESSAGE("assistant", "{\"type\":\"output_text\",\"text\":\"" text "\"}")
#define USER MESSAGE("user", TEXT_PART("Hi"))
#define WANT(items, rest) "{\"model\":\"up\",\"input\":[" items "]" rest ",\"store\":false}"
#define CALL(id, name, arguments)                                             \
	"{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"" name \
	"\",\"arguments\":\"" arguments "\"}"
#define OUTPUT(id, text) \
	"{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"" text "\"}"
#define LIMIT ",\"max_output_tokens\":100"
#define LONG_ID "call_0123456789012345678901234567890123456789012345678901234567890123456789"
#define SHORT_ID "call_01234567890123456789012345_"

/* The body of another wire, what it becomes, and what was dropped. "!" begins an error. */
static const struct {
	const char *what;
	enum form_wire from;
	const char *body, *want, *dropped;
} cases[] = {
    {"system and developer", FORM_CHAT,
        CHAT(
            "{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"Hi\"},{"
            "\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"developer\",\"content\":\"d\"},{"
            "\"role\":\"user\",\"content\":\"Hi\"}"),
        WANT(MESSAGE("developer", TEXT_PART("s")) "," USER "," SAID("a") "," MESSAGE(
                 "developer", TEXT_PART("d")) "," USER,
            ""),
        ""},
    {"what has no content is no message", FORM_CHAT,
        CHAT("{\"role\":\"system\",\"content\":\"\"},{\"role\":\"user\",\"content\":\"Hi\"}"),
        WANT(USER, ""), ""},
    {"calls and results (TOOL-13)", FORM_CHAT,
        CHAT(
            "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":null,"
            "\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\","
            "\"arguments\":\"{\\\"u\\\":18446744073709551616}\"}},{\"id\":\"b\",\"type\":\"custom\","
            "\"custom\":{\"name\":\"c\",\"input\":\"in\"}}]},{\"role\":\"tool\",\"tool_call_id\":"
            "\"a\",\"content\":\"1\"},{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"2\"}"),
        WANT(USER
            "," CALL("a", "f",
                "{\\\"u\\\":18446744073709551616}") ","
                                                    "{\"type\":\"custom_tool_call\",\"call_id\":\"b\",\"name\":\"c\",\"input\":\"in\"}," OUTPUT(
                                                        "a",
                                                        "1") ",{\"type\":\"custom_tool_call_output\",\"call_id\":\"b\",\"output\":\"2\"}",
            ""),
        ""},
    {"an id that is too long, on both sides the same", FORM_CHAT,
        CHAT(
            "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"" LONG_ID "\",\"type\":\"function\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]},{\"role\":\"tool\","
            "\"tool_call_id\":\"" LONG_ID "\",\"content\":\"\"}"),
        NULL, ""},
    {"tools are not strict unless they say so", FORM_CHAT,
        CHAT_HI(
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
            "\"z\":1,\"a\":2}}},{\"type\":\"function\",\"function\":{\"name\":\"g\","
            "\"description\":\"d\",\"strict\":true}},{\"type\":\"custom\",\"custom\":{\"name\":"
            "\"c\",\"format\":{\"type\":\"grammar\",\"grammar\":{\"definition\":\"D\",\"syntax\":"
            "\"lark\"}}}}],\"tool_choice\":{\"type\":\"custom\",\"custom\":{\"name\":\"c\"}},"
            "\"parallel_tool_calls\":false"),
        WANT(USER,
            ",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"z\":1,\"a\":2},"
            "\"strict\":false},{\"type\":\"function\",\"name\":\"g\",\"description\":\"d\","
            "\"parameters\":{\"type\":\"object\",\"properties\":{}},\"strict\":true},{\"type\":"
            "\"custom\",\"name\":\"c\",\"format\":{\"type\":\"grammar\","
            "\"syntax\":\"lark\",\"definition\":\"D\"}}],\"tool_choice\":{\"type\":\"custom\",\"name\":\"c\"},"
            "\"parallel_tool_calls\":false"),
        ""},
    {"tool choice none (TOOL-18)", FORM_CHAT,
        CHAT_HI(
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],"
            "\"tool_choice\":\"none\""),
        WANT(USER, ",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{},\"strict\":"
                   "false}],\"tool_choice\":\"none\""),
        ""},
    {"tool choice among some", FORM_CHAT,
        CHAT_HI(
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],"
            "\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":"
            "\"required\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}}"),
        WANT(USER, ",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{},\"strict\":"
                   "false}],\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\","
                   "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}"),
        ""},
    {"what has no counterpart (CONV-07)", FORM_CHAT,
        CHAT_HI("\"stop\":\"x\",\"seed\":1,\"frequency_penalty\":0.5,\"presence_penalty\":0.5,"
                "\"logit_bias\":{\"1\":2},\"logprobs\":true,\"top_logprobs\":3,\"n\":1,"
                "\"temperature\":0.70,\"metadata\":{\"a\":\"b\"},\"prediction\":{\"x\":1}"),
        WANT(USER, ",\"temperature\":0.70,\"metadata\":{\"a\":\"b\"}"),
        "frequency_penalty presence_penalty seed top_logprobs stop logit_bias logprobs prediction"},
    {"n is refused", FORM_CHAT, CHAT_HI("\"n\":2"), "!", ""},
    {"sound as an answer is refused", FORM_CHAT, CHAT_HI("\"modalities\":[\"audio\"]"), "!", ""},
    {"a limit of nothing", FORM_MESSAGES,
        "{\"max_tokens\":0,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", "!", ""},
    {"limit has a least value", FORM_CHAT, CHAT_HI("\"max_completion_tokens\":1"),
        WANT(USER, ",\"max_output_tokens\":16"), ""},
    {"limit has a greatest value", FORM_CHAT, CHAT_HI("\"max_tokens\":100000"),
        WANT(USER, ",\"max_output_tokens\":5000"), ""},
    {"effort, verbosity, format", FORM_CHAT,
        CHAT_HI("\"reasoning_effort\":\"low\",\"verbosity\":\"low\",\"response_format\":{\"type\":"
                "\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{\"b\":1,\"a\":1.0}}}"),
        WANT(USER, ",\"reasoning\":{\"effort\":\"low\"},\"text\":{\"format\":{\"type\":"
                   "\"json_schema\",\"name\":\"n\",\"schema\":{\"b\":1,\"a\":1.0}},\"verbosity\":"
                   "\"low\"},\"include\":[\"reasoning.encrypted_content\"]"),
        ""},
    {"images (CONV-08)", FORM_CHAT,
        CHAT("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
             "\"data:image/jpg;base64,QUJD\",\"detail\":\"low\"}},{\"type\":\"image_url\","
             "\"image_url\":{\"url\":\"https://h/i\"}},{\"type\":\"file\",\"file\":{\"file_data\":"
             "\"data:application/pdf;base64,QUJD\",\"filename\":\"a.pdf\"}}]}"),
        WANT(
            MESSAGE("user",
                "{\"type\":\"input_image\",\"image_url\":\"data:image/jpeg;base64,QUJD\",\"detail\":"
                "\"low\"},{\"type\":\"input_image\",\"image_url\":\"https://h/i\"},{\"type\":"
                "\"input_file\",\"filename\":\"a.pdf\",\"file_data\":\"data:application/"
                "pdf;base64,QUJD\"}"),
            ""),
        ""},
    {"sound is refused", FORM_CHAT,
        CHAT("{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{\"data\":"
             "\"QUJD\",\"format\":\"wav\"}}]}"),
        "!'messages[0].content[0].input_audio' is sound, which this model's provider does not take",
        ""},

    {"system of Messages (CONV-02)", FORM_MESSAGES,
        CLAUDE_HI(
            "\"system\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\","
            "\"cache_control\":{\"type\":\"ephemeral\"}}]"),
        "{\"model\":\"up\",\"instructions\":\"a\\n\\nb\",\"input\":[" USER "]" LIMIT
        ",\"store\":false}",
        "cache_control"},
    {"tool use and results", FORM_MESSAGES,
        CLAUDE(
            "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":[{"
            "\"type\":\"text\",\"text\":\"s\"},{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":"
            "\"f\",\"input\":{\"b\":1.10,\"a\":2}}]},{\"role\":\"user\",\"content\":[{\"type\":"
            "\"tool_result\",\"tool_use_id\":\"toolu_1\",\"is_error\":true,\"content\":[{\"type\":"
            "\"text\",\"text\":\"x\"},{\"type\":\"text\",\"text\":\"y\"}]},{\"type\":\"text\","
            "\"text\":\"Hi\"}]}"),
        WANT(USER "," SAID("s") "," CALL("toolu_1", "f", "{\\\"b\\\":1.10,\\\"a\\\":2}") "," OUTPUT(
                 "toolu_1", "Error: x\\ny") "," USER,
            LIMIT),
        ""},
    {"image in a result", FORM_MESSAGES,
        CLAUDE(
            "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":[{\"type\":"
            "\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\","
            "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{\"type\":"
            "\"text\",\"text\":\"Hi\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\","
            "\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]}]}"),
        WANT(USER "," CALL(
                 "t", "f", "{}") ",{\"type\":\"function_call_output\",\"call_id\":\"t\","
                                 "\"output\":[" TEXT_PART(
                                     "Hi") ",{\"type\":\"input_image\",\"image_url\":\"data:image/"
                                           "png;base64,QUJD\"}]}",
            LIMIT),
        ""},
    {"thinking asked for", FORM_MESSAGES,
        CLAUDE_HI("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000}"),
        WANT(USER, LIMIT ",\"reasoning\":{\"effort\":\"medium\",\"summary\":\"auto\"},\"include\":["
                         "\"reasoning.encrypted_content\"]"),
        ""},
    {"thinking switched off", FORM_MESSAGES, CLAUDE_HI("\"thinking\":{\"type\":\"disabled\"}"),
        WANT(USER, LIMIT ",\"reasoning\":{\"effort\":\"none\"}"), ""},
    {"thoughts of this channel go back, others do not (CONV-09)", FORM_MESSAGES,
        CLAUDE(
            "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":[{"
            "\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"%OWN%\"},{\"type\":"
            "\"redacted_thinking\",\"data\":\"%OWN%\"},{\"type\":\"thinking\",\"thinking\":\"u\","
            "\"signature\":\"%OTHER%\"},{\"type\":\"thinking\",\"thinking\":\"v\",\"signature\":"
            "\"claude\"},{\"type\":\"text\",\"text\":\"a\"}]},{\"role\":\"user\",\"content\":"
            "\"Hi\"}"),
        WANT(USER
            ",{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"t\"}],"
            "\"encrypted_content\":\"E\"},{\"type\":\"reasoning\",\"summary\":[],"
            "\"encrypted_content\":\"E\"}," SAID("a") "," USER,
            LIMIT ",\"include\":[\"reasoning.encrypted_content\"]"),
        "reasoning"},
    {"sampling and stops", FORM_MESSAGES,
        CLAUDE_HI("\"top_k\":5,\"stop_sequences\":[\"x\"],\"top_p\":0.90"),
        WANT(USER, LIMIT ",\"top_p\":0.90"), "top_k stop_sequences"},
    {"the session is the key of the cache", FORM_MESSAGES,
        CLAUDE_HI("\"metadata\":{\"user_id\":\"u_1\"},\"service_tier\":\"standard_only\""),
        WANT(USER, LIMIT ",\"user\":\"u_1\",\"prompt_cache_key\":\"u_1\",\"service_tier\":"
                         "\"default\""),
        ""},
    {"search is the provider's own", FORM_MESSAGES,
        CLAUDE_HI("\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},{\"type\":"
                  "\"bash_20250124\",\"name\":\"bash\"},{\"name\":\"f\",\"input_schema\":{\"type\":"
                  "\"object\"}}],\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":"
                  "true}"),
        WANT(USER, ",\"tools\":[{\"type\":\"web_search\"},{\"type\":\"function\",\"name\":\"f\","
                   "\"parameters\":{\"type\":\"object\"},\"strict\":false}],\"tool_choice\":"
                   "\"required\",\"parallel_tool_calls\":false" LIMIT),
        "tools.bash_20250124"},

    {"itself, with a history that was put before it", FORM_RESPONSES,
        OWN("\"instructions\":\"Be\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":"
            "{}},{\"type\":\"web_search\",\"x\":1.0}],\"tool_choice\":{\"type\":\"web_search\"},"
            "\"truncation\":\"auto\",\"max_tool_calls\":3,\"reasoning\":{\"summary\":\"detailed\"},"
            "\"include\":[\"reasoning.encrypted_content\"],\"client_metadata\":{\"x\":1}"),
        "{\"model\":\"up\",\"instructions\":\"Be\",\"input\":[" USER "],\"tools\":[{\"type\":"
        "\"function\",\"name\":\"f\",\"parameters\":{}},{\"type\":\"web_search\",\"x\":1.0}],"
        "\"tool_choice\":{\"type\":\"web_search\"},\"reasoning\":{\"summary\":\"detailed\"},"
        "\"include\":[\"reasoning.encrypted_content\"],\"truncation\":\"auto\",\"max_tool_calls\":3,"
        "\"store\":false}",
        "client_metadata"},
    {"name spaces are flat, and noted", FORM_RESPONSES,
        "{\"model\":\"x\",\"input\":[{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\","
        "\"namespace\":\"crm\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":"
        "\"x\",\"output\":\"o\"}],\"tools\":[{\"type\":\"namespace\",\"name\":\"crm\",\"tools\":[{"
        "\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}]}]}",
        WANT(CALL("x", "crm__f", "{}") "," OUTPUT("x", "o"),
            ",\"tools\":[{\"type\":\"function\",\"name\":\"crm__f\",\"parameters\":{}}]"),
        ""},
    {"an unmarked seal could be anybody's", FORM_RESPONSES,
        OWN_ITEMS(
            "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gAAA\"},{\"role\":"
            "\"assistant\",\"content\":\"a\"},{\"type\":\"web_search_call\",\"n\":1.0},{"
            "\"role\":\"user\",\"content\":\"Hi\"}"),
        WANT(SAID("a") ",{\"type\":\"web_search_call\",\"n\":1.0}," USER, ""), "reasoning"},
};

static const struct form_target target = {.wire = FORM_RESPONSES,
    .model = {"up", 2},
    .channel = {"ch", 2},
    .provider = "openai",
    .max_output = 5000};

/* The case's body, with seals where it names them. */
static struct span
fill(struct arena *arena, const char *body)
{
	const struct {
		const char *mark;
		struct span seal;
	} marks[] = {
	    {"%OWN%", seal_make(arena, FORM_RESPONSES, SPAN("ch"), SPAN("E"))},
	    {"%OTHER%", seal_make(arena, FORM_RESPONSES, SPAN("another"), SPAN("E"))},
	};
	struct span text = text_span(body);

	for (size_t i = 0; i < NELEM(marks); i++)
		for (;;) {
			struct span mark = text_span(marks[i].mark);
			size_t at = text_find(text, mark);

			if (at == text.n)
				break;
			text = text_span(arena_join(arena,
			    (const struct span[]){
			        {text.p, at}, marks[i].seal, text_from(text, at + mark.n)},
			    3));
		}
	return text;
}

static enum err
convert(struct arena *arena, enum form_wire from, struct span body, struct buf *got,
    struct form_loss *loss, struct why *why)
{
	struct form form;
	enum err err = flow_wires[from].read(arena, body, &form, why);

	if (err == ERR_OK)
		err = form_check(&form, why);
	if (err == ERR_OK)
		err = form_write_responses(arena, &form, &target, got, loss, why);
	if (err != ERR_OK) {
		buf_clear(got);
		buf_print(got, "!%s", why->text);
	}
	return err;
}

static const char *
join_dropped(struct arena *arena, const struct form_loss *loss)
{
	struct buf *out = arena_buf(arena, MB);

	for (size_t i = 0; i < loss->ndropped; i++) {
		buf_z(out, i > 0 ? " " : "");
		buf_span(out, loss->dropped[i]);
	}
	buf_char(out, '\0');
	return out->p;
}

static bool
is_same(const struct buf *got, const char *want)
{
	if (want == NULL)
		return true;
	return strcmp(want, "!") == 0 ? got->p[0] == '!' : text_is(buf_text(got), want);
}

static void
test_cases(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct form_loss loss = {.names = NULL};
		struct buf *got = arena_buf(arena, MB);
		struct why why = {""};
		enum err err =
		    convert(arena, cases[i].from, fill(arena, cases[i].body), got, &loss, &why);
		const char *dropped = join_dropped(arena, &loss);

		if (is_same(got, cases[i].want) && strcmp(dropped, cases[i].dropped) == 0 &&
		    (err != ERR_OK || scan_pick(buf_text(got), NULL, NULL, 0, NULL) == ERR_OK))
			continue;
		failed++;
		print_error("%s\n got  %s\n      %s\n want %s\n      %s\n", cases[i].what, got->p,
		    dropped, cases[i].want == NULL ? "" : cases[i].want, cases[i].dropped);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static const char *
find_case(const char *what)
{
	for (size_t i = 0; i < NELEM(cases); i++)
		if (strcmp(cases[i].what, what) == 0)
			return cases[i].body;
	die("no case '%s'", what);
}

static void
test_ids_and_names(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct form_loss loss = {.names = NULL};
	struct buf *got = arena_buf(arena, MB);
	const char *first, *second;
	struct why why = {""};

	(void)state;
	assert_int_equal(convert(arena, FORM_CHAT,
	                     text_span(find_case("an id that is too long, on both sides the same")),
	                     got, &loss, &why),
	    ERR_OK);
	first = strstr(got->p, SHORT_ID);
	assert_non_null(first);
	second = strstr(first + 1, SHORT_ID);
	assert_non_null(second);
	assert_memory_equal(first, second, 64);
	assert_int_equal(first[64], '"');
	buf_clear(got);
	assert_int_equal(
	    convert(arena, FORM_RESPONSES, text_span(find_case("name spaces are flat, and noted")),
	        got, &loss, &why),
	    ERR_OK);
	assert_int_equal(loss.nnames, 1);
	assert_true(text_is(loss.names[0].sent, "crm__f"));
	assert_true(text_is(loss.names[0].original, "f"));
	assert_true(text_is(loss.names[0].namespace, "crm"));
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_ids_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
