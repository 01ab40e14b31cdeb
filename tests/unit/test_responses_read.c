#include "dialect/read.h"
#include "dialect/responses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"

#define MB ((size_t)1 << 20)

#define INPUT(items) "{\"model\":\"m\",\"input\":[" items "]}"
#define WITH(members) "{\"model\":\"m\",\"input\":\"Hi\"," members "}"
#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID(text)                                                                             \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\"," \
	"\"text\":\"" text "\",\"annotations\":[]}]}"
#define CALL(id, arguments)                                             \
	"{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"" id \
	"\",\"name\":\"f\",\"arguments\":\"" arguments "\"}"
#define OUTPUT(id, text) \
	"{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"" text "\"}"
#define PARTS(parts) "{\"type\":\"message\",\"role\":\"user\",\"content\":[" parts "]}"
#define HI "user@0[text =Hi ];"
#define U " usage=true"

/* "!" begins an error. */
static const struct {
	const char *what, *body, *want;
} cases[] = {
    {"text", "{\"model\":\"m\",\"input\":\"Hi\"}", HI "usage=true"},
    {"instructions", WITH("\"instructions\":\"Be\""), "system@-1[text =Be ];" HI "usage=true"},
    {"null is like absent (JSON-08)",
        WITH("\"instructions\":null,\"tools\":null,\"temperature\":null,\"metadata\":{},"
             "\"reasoning\":null,\"text\":null,\"include\":null,\"tool_choice\":null,"
             "\"previous_response_id\":null,\"background\":false,\"prompt\":null"),
        HI "usage=true"},
    {"numbers keep their digits",
        WITH("\"temperature\":0.70,\"top_p\":1e0,\"top_logprobs\":2,\"max_output_tokens\":100"),
        HI "max=100 temperature=0.70 top_p=1e0 top_logprobs=2" U},
    {"strings",
        WITH("\"user\":\"u\",\"service_tier\":\"flex\",\"prompt_cache_key\":\"k\",\"stream\":true"),
        HI "user=u tier=flex cache_key=k stream=true" U},
    {"the newer name of the user counts", WITH("\"safety_identifier\":\"s\",\"user\":\"u\""),
        HI "user=s" U},
    {"reasoning", WITH("\"reasoning\":{\"effort\":\"high\",\"summary\":\"auto\"}"),
        HI "effort=high usage=true +reasoning.summary=\"auto\""},
    {"an effort of tomorrow", WITH("\"reasoning\":{\"effort\":\"giga\"}"),
        HI "usage=true +reasoning.effort=\"giga\""},
    {"text format",
        WITH("\"text\":{\"verbosity\":\"low\",\"format\":{\"type\":\"json_schema\",\"name\":\"n\","
             "\"schema\":{\"z\":1,\"a\":2},\"strict\":true}}"),
        HI
        "shape=schema schema={\"z\":1,\"a\":2} schema_name=n schema_strict=true verbosity=low" U},
    {"json_object", WITH("\"text\":{\"format\":{\"type\":\"json_object\"}}"), HI "shape=object" U},
    {"what has no place goes to the extras",
        WITH("\"metadata\":{\"a\":\"b\"},\"truncation\":\"auto\",\"store\":false,"
             "\"client_metadata\":{\"x\":1},\"include\":[\"web_search_call.results\","
             "\"reasoning.encrypted_content\"]"),
        HI "usage=true +include.web_search_call.results=\"web_search_call.results\" "
           "+metadata={\"a\":\"b\"} +truncation=\"auto\" +client_metadata={\"x\":1}"},

    {"roles",
        INPUT(
            "{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"developer\",\"content\":\"d\"}," USER(
                "u") ",{\"role\":\"assistant\",\"content\":\"a\"}"),
        "system@0[text =s ];developer@1[text =d ];user@2[text =u ];assistant@3[text =a ];usage=true"},
    {"same role twice stays (CONV-03)", INPUT(USER("a") "," USER("b") "," SAID("c") "," SAID("d")),
        "user@0[text =a ];user@1[text =b ];assistant@2[text =c ];assistant@3[text =d ];usage=true"},
    {"escapes and lone surrogates (JSON-04)", INPUT(USER("\\ud83d\\ude00 \\ud83d \\u00e9")),
        "user@0[text =\xf0\x9f\x98\x80 \xef\xbf\xbd \xc3\xa9 ];usage=true"},
    {"parts",
        INPUT(PARTS(
            "{\"type\":\"input_text\",\"text\":\"t\"},"
            "{\"type\":\"input_image\",\"image_url\":\"data:image/JPG;base64,QUJD\","
            "\"detail\":\"low\"},"
            "{\"type\":\"input_image\",\"image_url\":\"https://h/i.png\"},"
            "{\"type\":\"input_image\",\"file_id\":\"file-1\"},"
            "{\"type\":\"input_file\",\"filename\":\"a.pdf\","
            "\"file_data\":\"data:application/pdf;base64,QUJD\"},"
            "{\"type\":\"input_file\",\"file_url\":\"https://h/a.pdf\"},"
            "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"QUJD\",\"format\":\"wav\"}}")),
        "user@0[text =t ][image data=QUJD type=image/jpeg detail=low ][image url=https://h/i.png ]"
        "[image file=file-1 ][document data=QUJD type=application/pdf title=a.pdf ]"
        "[document url=https://h/a.pdf ][audio data=QUJD type=wav ];usage=true"},
    {"refusal",
        INPUT("{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]}"),
        "assistant@0[refusal =no ];usage=true"},
    {"an empty answer leaves nothing",
        INPUT(USER("a") ",{\"role\":\"assistant\",\"content\":\"\"}," USER("b")),
        "user@0[text =a ];user@2[text =b ];usage=true"},

    {"TOOL-12 call and output",
        INPUT(USER("a") "," CALL("x", "{\\\"n\\\":2.50}") "," OUTPUT("x", "o")),
        "user@0[text =a ];assistant@1[call id=x name=f args={\"n\":2.50} ];tool@2[result of=x "
        "[text =o ]];usage=true"},
    {"TOOL-11 calls together",
        INPUT(CALL("x", "{}") "," CALL("y", "") "," OUTPUT("x", "1") "," OUTPUT("y", "2")),
        "assistant@0[call id=x name=f args={} ][call id=y name=f args={} ];tool@2[result of=x "
        "[text =1 ]][result of=y [text =2 ]];usage=true"},
    {"with what was said before", INPUT(SAID("s") "," CALL("x", "{}") "," OUTPUT("x", "1")),
        "assistant@0[text =s ][call id=x name=f args={} ];tool@2[result of=x [text =1 ]];usage=true"},
    {"outputs in another order come in that of the calls",
        INPUT(CALL("x", "{}") "," CALL("y", "{}") "," OUTPUT("y", "2") "," OUTPUT("x", "1")),
        "assistant@0[call id=x name=f args={} ][call id=y name=f args={} ];tool@3[result of=x "
        "[text =1 ]][result of=y [text =2 ]];usage=true"},
    {"one after the other",
        INPUT(CALL("x", "{}") "," OUTPUT("x", "1") "," CALL("y", "{}") "," OUTPUT("y", "2")),
        "assistant@0[call id=x name=f args={} ];tool@1[result of=x [text =1 ]];assistant@2[call "
        "id=y name=f args={} ];tool@3[result of=y [text =2 ]];usage=true"},
    {"what stands between is held back",
        INPUT(CALL("x", "{}") "," CALL("y", "{}") "," OUTPUT("x", "1") "," USER("u") "," SAID(
            "s") "," OUTPUT("y", "2")),
        "assistant@0[call id=x name=f args={} ][call id=y name=f args={} ];tool@2[result of=x "
        "[text =1 ]][result of=y [text =2 ]];user@3[text =u ];assistant@4[text =s ];usage=true"},
    {"what was said after a call comes after its output",
        INPUT(CALL("x", "{}") "," SAID("s") "," OUTPUT("x", "1")),
        "assistant@0[call id=x name=f args={} ];tool@2[result of=x [text =1 ]];assistant@1[text =s "
        "];usage=true"},
    {"an id that comes again is another call's",
        INPUT(CALL("x", "{}") "," OUTPUT("x", "1") "," USER("u") "," CALL("x", "{}") "," OUTPUT(
            "x", "2")),
        "assistant@0[call id=x name=f args={} ];tool@1[result of=x [text =1 ]];user@2[text =u ];"
        "assistant@3[call id=x name=f args={} ];tool@4[result of=x [text =2 ]];usage=true"},
    {"of two outputs the last counts",
        INPUT(CALL("x", "{}") "," OUTPUT("x", "1") "," OUTPUT("x", "2")),
        "assistant@0[call id=x name=f args={} ];tool@1[result of=x [text =2 ]];usage=true"},
    {"big numbers (TOOL-19)",
        INPUT(CALL("x", "{\\\"u\\\":18446744073709551616,\\\"f\\\":1.10}") "," OUTPUT("x", "")),
        "assistant@0[call id=x name=f args={\"u\":18446744073709551616,\"f\":1.10} ];tool@1[result "
        "of=x ];usage=true"},
    {"arguments as an object",
        INPUT(
            "{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\",\"arguments\":{\"a\":1}}," OUTPUT(
                "x", "")),
        "assistant@0[call id=x name=f args={\"a\":1} ];tool@1[result of=x ];usage=true"},
    {"output of parts",
        INPUT(CALL("x", "{}") ",{\"type\":\"function_call_output\",\"call_id\":\"x\",\"output\":[{"
                              "\"type\":\"input_text\",\"text\":\"t\"},{\"type\":\"input_image\","
                              "\"image_url\":\"https://h/i\"}]}"),
        "assistant@0[call id=x name=f args={} ];tool@1[result of=x [text =t ][image "
        "url=https://h/i ]];usage=true"},
    {"custom tool",
        INPUT(
            "{\"type\":\"custom_tool_call\",\"call_id\":\"x\",\"name\":\"p\",\"input\":\"*** \\n\"},"
            "{\"type\":\"custom_tool_call_output\",\"call_id\":\"x\",\"output\":\"ok\"}"),
        "assistant@0[call id=x name=p input=*** \n ];tool@1[result of=x custom [text =ok ]];usage="
        "true"},
    {"shells and patches",
        INPUT(
            "{\"type\":\"local_shell_call\",\"id\":\"l\",\"call_id\":\"a\",\"action\":{\"command\":["
            "\"ls\"]}},{\"type\":\"shell_call\",\"call_id\":\"b\",\"action\":{\"commands\":[]}},{"
            "\"type\":\"apply_patch_call\",\"call_id\":\"c\",\"operation\":{\"path\":\"p\"}},{"
            "\"type\":\"local_shell_call_output\",\"call_id\":\"a\",\"output\":\"1\"},{\"type\":"
            "\"shell_call_output\",\"call_id\":\"b\",\"output\":[{\"stdout\":\"2\"}]},{\"type\":"
            "\"apply_patch_call_output\",\"call_id\":\"c\",\"status\":\"failed\",\"output\":\"3\"}"),
        "assistant@0[call id=a name=local_shell args={\"command\":[\"ls\"]} ][call id=b name=shell "
        "args={\"commands\":[]} ][call id=c name=apply_patch args={\"path\":\"p\"} ];tool@3[result "
        "of=a [text =1 ]][result of=b [text =[{\"stdout\":\"2\"}] ]][result of=c error [text =3 ]];"
        "usage=true"},
    {"name space",
        INPUT("{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\",\"namespace\":\"crm\","
              "\"arguments\":\"{}\"}," OUTPUT("x", "")),
        "assistant@0[call id=x name=f args={} ns=crm ];tool@1[result of=x ];usage=true"},

    {"reasoning before a call",
        INPUT("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\","
              "\"text\":\"a\"},{\"type\":\"summary_text\",\"text\":\"b\"}],\"encrypted_content\":"
              "\"E\"}," CALL("x", "{}") "," OUTPUT("x", "")),
        "assistant@0[thought =a\n\nb seal=E ][call id=x name=f args={} ];tool@2[result of=x ];usage="
        "true"},
    {"reasoning as content",
        INPUT("{\"type\":\"reasoning\",\"summary\":[{\"text\":\"s\"}],\"content\":[{\"type\":"
              "\"reasoning_text\",\"text\":\"c\"}]}," SAID("x")),
        "assistant@0[thought =c ][text =x ];usage=true"},
    {"reasoning belongs to what follows it",
        INPUT(SAID("a") ",{\"type\":\"reasoning\",\"summary\":[{\"text\":\"t\"}]}," SAID("b")),
        "assistant@0[text =a ];assistant@1[thought =t ][text =b ];usage=true"},
    {"reasoning that only its server knows is nothing, and parts no calls",
        INPUT(CALL("x", "{}") ",{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[]}," CALL(
            "y", "{}") "," OUTPUT("x", "") "," OUTPUT("y", "")),
        "assistant@0[call id=x name=f args={} ][call id=y name=f args={} ];tool@3[result of=x ]["
        "result of=y ];usage=true"},
    {"another wire's thought without words",
        INPUT(
            "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"rd.sl1.m.000000000000."
            "DATA\"}," SAID("a")),
        "assistant@0[thought seal=sl1.m.000000000000.DATA redacted ][text =a ];usage=true"},
    {"calls that the provider made",
        INPUT("{\"type\":\"web_search_call\",\"id\":\"ws\",\"n\":1.50}," SAID("a")),
        "assistant@0[opaque ={\"type\":\"web_search_call\",\"id\":\"ws\",\"n\":1.50} ][text =a ];"
        "usage=true"},

    {"tools",
        WITH(
            "\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d\",\"parameters\":"
            "{\"z\":1,\"a\":2},\"strict\":true},{\"type\":\"function\",\"name\":\"g\",\"parameters\":"
            "null,\"strict\":null},{\"type\":\"custom\",\"name\":\"c\",\"format\":{\"type\":"
            "\"text\"}},{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"function\","
            "\"name\":\"h\",\"strict\":false}]},{\"type\":\"web_search\",\"x\":1.0}]"),
        HI
        "tool function name=f description=d schema={\"z\":1,\"a\":2} strict ;tool function name=g "
        ";tool custom name=c format={\"type\":\"text\"} ;tool function name=h ns=n loose ;tool "
        "hosted raw={\"type\":\"web_search\",\"x\":1.0} hosted=web_search ;usage=true"},
    {"tools in the input",
        INPUT("{\"type\":\"additional_tools\",\"role\":\"developer\",\"tools\":[{\"type\":"
              "\"function\",\"name\":\"f\"}]}," USER("u")),
        "user@1[text =u ];tool function name=f ;usage=true"},
    {"choice none (TOOL-18)", WITH("\"tool_choice\":\"none\",\"parallel_tool_calls\":false"),
        HI "choice=none parallel=false" U},
    {"choice named", WITH("\"tool_choice\":{\"type\":\"custom\",\"name\":\"c\"}"),
        HI "choice=named named=c" U},
    {"choice of a hosted tool", WITH("\"tool_choice\":{\"type\":\"web_search\"}"),
        HI "choice=named named=web_search" U},
    {"choice among some",
        WITH(
            "\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[{\"type\":"
            "\"function\",\"name\":\"f\"},{\"type\":\"web_search\"}]}"),
        HI "choice=required allowed=f allowed=web_search" U},

    {"orphan output (TOOL-14)", INPUT(USER("a") "," OUTPUT("x", "o")),
        "!'input[1].call_id' names a call that the message before it does not make: 'x'"},
    {"call without output", INPUT(CALL("x", "{}") "," USER("a")),
        "!'input[0].call_id' is of a call without a result in the messages right after it: 'x'"},
    {"cut arguments (TOOL-07)", INPUT(USER("a") "," CALL("x", "{\\\"a\\\":") "," OUTPUT("x", "")),
        "!'input[1].arguments' is no whole JSON object"},
    {"arguments that are a list", INPUT(CALL("x", "[1]") "," OUTPUT("x", "")),
        "!'input[0].arguments' is no whole JSON object"},
    {"arguments that are a number",
        INPUT("{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\",\"arguments\":1}"),
        "!'input[0].arguments' must be a string"},
    {"no call_id (TOOL-13)",
        INPUT("{\"type\":\"function_call\",\"id\":\"fc_1\",\"name\":\"f\",\"arguments\":\"{}\"}"),
        "!'input[0].call_id' is missing"},
    {"no name", INPUT("{\"type\":\"function_call\",\"call_id\":\"x\",\"arguments\":\"{}\"}"),
        "!'input[0].name' is missing"},
    {"foreign role", INPUT("{\"role\":\"tool\",\"content\":\"x\"}"),
        "!'input[0].role' must be \"user\", \"assistant\", \"system\" or \"developer\""},
    {"no type", INPUT("{\"content\":\"x\"}"), "!'input[0].type' is missing"},
    {"type of tomorrow", INPUT(USER("a") ",{\"type\":\"telepathy\"}"),
        "!'input[1].type' \"telepathy\" is not known here"},
    {"empty message", INPUT(USER("")), "!'input[0].content' is empty"},
    {"a part of tomorrow", INPUT(PARTS("{\"type\":\"input_smell\"}")),
        "!'input[0].content[0].type' 'input_smell' is not known here"},
    {"text without text", INPUT(PARTS("{\"type\":\"input_text\"}")),
        "!'input[0].content[0].text' must be a string"},
    {"content that is a number", INPUT("{\"role\":\"user\",\"content\":1}"),
        "!'input[0].content' must be a string or an array of parts"},
    {"image of another scheme",
        INPUT(PARTS("{\"type\":\"input_image\",\"image_url\":\"ftp://h\"}")),
        "!'input[0].content[0].image_url' must be an http(s) URL or base64 data in a data URL"},
    {"svg",
        INPUT(PARTS("{\"type\":\"input_image\",\"image_url\":\"data:image/svg+xml;base64,QUJD\"}")),
        "!'input[0].content[0].image_url' is an image that is neither PNG, JPEG, GIF nor WebP: 'image/svg+xml'"},
    {"image in an output, of no known type",
        INPUT(CALL(
            "x", "{}") ",{\"type\":\"function_call_output\",\"call_id\":\"x\",\"output\":[{"
                       "\"type\":\"input_image\",\"image_url\":\"data:image/tiff;base64,QUJD\"}]}"),
        "!'input[1].output[0].image_url' is an image that is neither PNG, JPEG, GIF nor WebP: 'image/tiff'"},
    {"item reference", INPUT(USER("a") ",{\"type\":\"item_reference\",\"id\":\"msg_1\"}"),
        "!'input[1]' is of the type 'item_reference': its content is kept elsewhere, and this model's "
        "provider cannot read it"},
    {"compaction", INPUT("{\"type\":\"compaction\",\"encrypted_content\":\"E\"}"),
        "!'input[0]' is of the type 'compaction': its content is kept elsewhere, and this model's "
        "provider cannot read it"},
    {"twice the same member", INPUT("{\"role\":\"user\",\"role\":\"user\",\"content\":\"x\"}"),
        "!'input[0]': line 1, column 16: a second member of the same name: 'role'"},
    {"background", WITH("\"background\":true"),
        "!'background' is not possible with the provider of this model"},
    {"stored prompt", WITH("\"prompt\":{\"id\":\"p\"}"),
        "!'prompt' is not possible with the provider of this model"},
    {"conversation", WITH("\"conversation\":\"conv_1\""),
        "!'conversation' is not possible with the provider of this model"},
    {"temperature", WITH("\"temperature\":\"hot\""), "!'temperature' must be a number"},
    {"limit", WITH("\"max_output_tokens\":0"), "!'max_output_tokens' must be a positive number"},
    {"tools", WITH("\"tools\":{}"), "!'tools' must be an array of tools"},
    {"tool of chat's shape",
        WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"),
        "!'tools[0].name' is missing"},
    {"inner tool",
        WITH("\"tools\":[{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"x\"}]}]"),
        "!'tools[0].tools[0].type' must be \"function\" or \"custom\" here"},
    {"choice", WITH("\"tool_choice\":\"maybe\""),
        "!'tool_choice' must be \"none\", \"auto\", \"required\" or an object with a type"},
    {"choice without a name", WITH("\"tool_choice\":{\"type\":\"function\"}"),
        "!'tool_choice.name' is missing"},
    {"format", WITH("\"text\":{\"format\":{\"type\":\"xml\"}}"),
        "!'text.format.type' must be \"text\", \"json_object\" or \"json_schema\""},
    {"include", WITH("\"include\":\"all\""), "!'include' must be an array of strings"},
};

static void
read_form(struct arena *arena, const char *body, struct buf *got)
{
	struct dialect_request request;
	struct form form;
	struct why why = {""};
	enum err err = dialect_read(&dialect_responses, text_span(body), &request, &why);

	if (err == ERR_OK)
		err = form_read_responses(arena, text_span(body), &form, &why);
	if (err == ERR_OK)
		err = form_check(&form, &why);
	if (err == ERR_OK)
		form_text(got, &form);
	else
		buf_print(got, "!%s", why.text);
	buf_char(got, '\0');
}

static void
test_cases(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct buf *got = arena_buf(arena, MB);

		read_form(arena, cases[i].body, got);
		if (strcmp(got->p, cases[i].want) == 0)
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", cases[i].what, got->p, cases[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* Ten times the items take about ten times as long, whatever the order of the outputs. */
static void
test_many(void **state)
{
	enum { N = 20000 };
	struct arena *arena = arena_new(512 * MB);
	struct buf *body = arena_buf(arena, 16 * MB);
	struct form form;

	(void)state;
	buf_z(body, "{\"model\":\"m\",\"input\":[");
	for (int i = 0; i < N; i++)
		buf_print(body, CALL("c%d", "{}") ",", i);
	for (int i = N - 1; i >= 0; i--)
		buf_print(body, OUTPUT("c%d", "o") "%s", i, i > 0 ? "," : "");
	buf_z(body, "]}");
	assert_int_equal(form_read_responses(arena, buf_text(body), &form, NULL), ERR_OK);
	assert_int_equal(form_check(&form, NULL), ERR_OK);
	assert_int_equal(form.nturns, 2);
	assert_int_equal(form.turns[1].nparts, N);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
