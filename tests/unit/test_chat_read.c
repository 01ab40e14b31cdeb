#include "dialect/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"

#define MB ((size_t)1 << 20)

#define MESSAGES(list) "{\"model\":\"m\",\"messages\":[" list "]}"
#define WITH(more) "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]," more "}"
#define USER "user@0[text =q ];"
#define PART(part) MESSAGES("{\"role\":\"user\",\"content\":[" part "]}")
#define SEAL "sl1.m.0123456789ab.SIG"

static const struct {
	const char *what, *body, *want;
} good[] = {
    {"one message", MESSAGES("{\"role\":\"user\",\"content\":\"q\"}"), USER},
    {"system and developer keep their place (CONV-01)",
        MESSAGES("{\"role\":\"system\",\"content\":\"s1\"},{\"role\":\"user\",\"content\":\"q\"},"
                 "{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"system\",\"content\":[{"
                 "\"type\":\"text\",\"text\":\"s2\"}]},{\"role\":\"developer\",\"content\":\"d\"},"
                 "{\"role\":\"user\",\"content\":\"r\",\"name\":\"bob\"}"),
        "system@0[text =s1 ];user@1[text =q ];assistant@2[text =a ];system@3[text =s2 ];"
        "developer@4[text =d ];user@5(bob)[text =r ];"},
    {"empty contents give no part",
        MESSAGES("{\"role\":\"user\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":null},"
                 "{\"role\":\"assistant\"},{\"role\":\"user\",\"content\":[]}"),
        "user@0;assistant@1;assistant@2;user@3;"},
    {"kinds of text parts",
        PART("{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":\"output_text\","
             "\"text\":\"b\"},{\"text\":\"c\"},\"d\",{\"type\":\"text\",\"text\":"
             "\"e\",\"cache_control\":{\"type\":\"ephemeral\"}}"),
        "user@0[text =a ][text =b ][text =c ][text =d ]"
        "[text =e cache={\"type\":\"ephemeral\"} ];"},
    {"lone surrogates (JSON-04)",
        MESSAGES("{\"role\":\"user\",\"content\":\"\\ud83d|\\ude00x|\\ud83d\\ude00\"}"),
        "user@0[text =\xef\xbf\xbd|\xef\xbf\xbdx|\xf0\x9f\x98\x80 ];"},

    {"image",
        PART("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\","
             "\"detail\":\"low\"}}"),
        "user@0[image data=AAAA type=image/png detail=low ];"},
    {"image as a string, JPG, escaped",
        PART("{\"type\":\"image_url\",\"image_url\":\"data:image\\/jpg;base64,AAAA\"}"),
        "user@0[image data=AAAA type=image/jpeg ];"},
    {"image with parameters, upper case",
        PART("{\"type\":\"image_url\",\"image_url\":\"DATA:IMAGE/PNG;charset=x;BASE64,AAAA\"}"),
        "user@0[image data=AAAA type=image/png ];"},
    {"image without a type", PART("{\"type\":\"image_url\",\"image_url\":\"data:;base64,AAAA\"}"),
        "user@0[image data=AAAA type=image/png ];"},
    {"image by URL", PART("{\"type\":\"input_image\",\"image_url\":\"https://x/y.png\"}"),
        "user@0[image url=https://x/y.png ];"},
    {"image by file id", PART("{\"type\":\"input_image\",\"file_id\":\"file-1\"}"),
        "user@0[image file=file-1 ];"},
    {"PDF",
        PART("{\"type\":\"file\",\"file\":{\"file_data\":\"data:application/pdf;base64,QUJD\","
             "\"filename\":\"x.pdf\"}}"),
        "user@0[document data=QUJD type=application/pdf title=x.pdf ];"},
    {"text file is decoded",
        PART("{\"type\":\"file\",\"file\":{\"file_data\":\"data:text/plain;base64,QUJDRA==\"}}"),
        "user@0[document plain=ABCD type=text/plain ];"},
    {"text file that is no UTF-8",
        PART("{\"type\":\"file\",\"file\":{\"file_data\":\"data:text/plain;base64,/w==\"}}"),
        "user@0[document data=/w== type=text/plain ];"},
    {"file by id", PART("{\"type\":\"file\",\"file\":{\"file_id\":\"file-1\"}}"),
        "user@0[document file=file-1 ];"},
    {"audio",
        PART("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}}"),
        "user@0[audio data=AAAA type=wav ];"},

    {"calls and results",
        MESSAGES(
            "{\"role\":\"assistant\",\"content\":\"t\",\"tool_calls\":[{\"id\":\"c1\",\"type\":"
            "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
            "{\"id\":\"c2\",\"type\":\"custom\",\"custom\":{\"name\":\"g\",\"input\":\"x\"}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"r2\"},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":[{\"type\":\"text\","
            "\"text\":\"r1\"}]},{\"role\":\"user\",\"content\":\"q\"}"),
        "assistant@0[text =t ][call id=c1 name=f args={\"a\":1} ]"
        "[call id=c2 name=g input=x ];tool@1[result of=c2 by=g custom [text =r2 ]]"
        "[result of=c1 by=f [text =r1 ]];user@3[text =q ];"},
    {"arguments: none, blank, null, an object (TOOL-07)",
        MESSAGES(
            "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\"}},"
            "{\"id\":\"2\",\"function\":{\"name\":\"f\",\"arguments\":\" \"}},{\"id\":\"3\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"null\"}},{\"id\":\"4\",\"function\":"
            "{\"name\":\"f\",\"arguments\":{\"u\":18446744073709551616}}}]}"),
        "assistant@0[call id=1 name=f args={} ][call id=2 name=f args={} ]"
        "[call id=3 name=f args={} ][call id=4 name=f args={\"u\":18446744073709551616} ];"},
    {"function_call is a pair with a made id",
        MESSAGES("{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":\"f\","
                 "\"arguments\":\"{}\"}},{\"role\":\"function\",\"name\":\"f\",\"content\":\"r\"}"),
        "assistant@0[call id=call_9936801ccde29291c966d8bf name=f args={} ];"
        "tool@1[result of=call_9936801ccde29291c966d8bf by=f [text =r ]];"},
    {"refusal", MESSAGES("{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}"),
        "assistant@0[refusal =no ];"},
    {"reasoning under two names counts once",
        MESSAGES("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\","
                 "\"reasoning\":\"t\"}"),
        "assistant@0[thought =t ][text =a ];"},
    {"reasoning with our seal",
        MESSAGES("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\","
                 "\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":\"" SEAL
                 "\",\"id\":\"text-0-1\"}]}"),
        "assistant@0[thought =t seal=" SEAL " ][text =a ];"},
    {"two thoughts and a redacted one",
        MESSAGES("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"one\\n\\ntwo\","
                 "\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":\"" SEAL
                 "1\",\"id\":\"text-0-3\"},{\"type\":\"reasoning.encrypted\",\"data\":\"" SEAL
                 "2\",\"id\":\"redacted\"},{\"type\":\"reasoning.encrypted\",\"data\":\"" SEAL
                 "3\",\"id\":\"text-5-8\"}]}"),
        "assistant@0[thought =one seal=" SEAL "1 ][thought seal=" SEAL
        "2 redacted ][thought =two seal=" SEAL "3 ][text =a ];"},
    {"details without a seal of ours",
        MESSAGES("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"t\","
                 "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"t\"},"
                 "{\"type\":\"reasoning.encrypted\",\"data\":\"X\"}]}"),
        "assistant@0[thought =t ][text =a ];+reasoning_details="
        "{\"type\":\"reasoning.encrypted\",\"data\":\"X\"}"},
    {"Mistral's thinking parts",
        MESSAGES(
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\""
            ":\"text\",\"text\":\"t\"}]},{\"type\":\"text\",\"text\":\"a\"}]}"),
        "assistant@0[thought =t ][text =a ];"},
    {"unknown members of messages",
        MESSAGES("{\"role\":\"user\",\"content\":\"q\",\"prefix\":true,\"zero\":null}"),
        USER "+messages[0].prefix=true"},

    {"function tool",
        WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
             "\"description\":\"d\",\"parameters\":{\"z\":1.0,\"a\":1E5},\"strict\":"
             "true}}]"),
        USER "tool function name=f description=d schema={\"z\":1.0,\"a\":1E5} strict ;"},
    {"custom tool with a grammar",
        WITH("\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"g\",\"format\":{\"type\":"
             "\"grammar\",\"grammar\":{\"definition\":\"s: x\",\"syntax\":\"lark\"}}}}]"),
        USER "tool custom name=g format={\"type\":\"grammar\",\"syntax\":\"lark\",\"definition\":"
             "\"s: x\"} ;"},
    {"hosted tool", WITH("\"tools\":[{\"type\":\"web_search\",\"x\":1}]"),
        USER "tool hosted raw={\"type\":\"web_search\",\"x\":1} hosted=web_search ;"},
    {"functions", WITH("\"functions\":[{\"name\":\"f\"}],\"function_call\":{\"name\":\"f\"}"),
        USER "tool function name=f ;choice=named named=f"},
    {"choice none", WITH("\"tool_choice\":\"none\""), USER "choice=none"},
    {"choice required", WITH("\"tool_choice\":\"required\",\"function_call\":\"auto\""),
        USER "choice=required"},
    {"choice named", WITH("\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
        USER "choice=named named=f"},
    {"allowed tools",
        WITH(
            "\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\","
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"type\":\"custom\","
            "\"custom\":{\"name\":\"g\"}}]}},\"parallel_tool_calls\":false"),
        USER "choice=required allowed=f allowed=g parallel=false"},

    {"max tokens: the newer name counts (CONV-05)",
        WITH("\"max_completion_tokens\":100,\"max_tokens\":50"), USER "max=100"},
    {"max tokens: null", WITH("\"max_completion_tokens\":null,\"max_tokens\":50"), USER "max=50"},
    {"numbers keep their digits",
        WITH("\"temperature\":0.70,\"top_p\":1e-1,\"seed\":9223372036854775807123,\"top_k\":5,"
             "\"frequency_penalty\":-2,\"presence_penalty\":0.0,\"top_logprobs\":3,"
             "\"logprobs\":true"),
        USER "temperature=0.70 top_p=1e-1 top_k=5 frequency=-2 presence=0.0 "
             "seed=9223372036854775807123 top_logprobs=3 +logprobs=true"},
    {"stop string", WITH("\"stop\":\"x\""), USER "stop=x"},
    {"stop array", WITH("\"stop\":[\"a\",\"\\n\"]"), USER "stop=a stop=\n"},
    {"n of 1 says nothing", WITH("\"n\":1"), USER},
    {"n of 2", WITH("\"n\":2"), USER "+n=2"},
    {"modalities", WITH("\"modalities\":[\"text\",\"audio\"],\"audio\":{\"voice\":\"x\"}"),
        USER "+modalities=[\"text\",\"audio\"] +audio={\"voice\":\"x\"}"},
    {"text alone is no modality", WITH("\"modalities\":[\"text\"]"), USER},
    {"stream", WITH("\"stream\":true,\"stream_options\":{\"include_usage\":true}"),
        USER "stream=true usage=true"},
    {"effort", WITH("\"reasoning_effort\":\"xhigh\""), USER "effort=xhigh"},
    {"thinking enabled", WITH("\"thinking\":{\"type\":\"enabled\"}"), USER "effort=auto"},
    {"thinking disabled", WITH("\"thinking\":{\"type\":\"disabled\"}"), USER "effort=none"},
    {"thinking with an effort",
        WITH("\"reasoning_effort\":\"max\",\"thinking\":{\"type\":"
             "\"enabled\"}"),
        USER "effort=max"},
    {"Qwen's switches", WITH("\"enable_thinking\":true,\"thinking_budget\":512"),
        USER "effort=auto budget=512"},
    {"OpenRouter's switch", WITH("\"reasoning\":{\"max_tokens\":2000,\"exclude\":true}"),
        USER "budget=2000 +reasoning.exclude=true"},
    {"schema",
        WITH("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"o\","
             "\"schema\":{\"type\":\"object\"},\"strict\":true}}"),
        USER "shape=schema schema={\"type\":\"object\"} schema_name=o schema_strict=true"},
    {"JSON object", WITH("\"response_format\":{\"type\":\"json_object\"}"), USER "shape=object"},
    {"who", WITH("\"user\":\"u\",\"metadata\":{\"user_id\":\"m\"},\"safety_identifier\":\"s\""),
        USER "user=s +metadata={\"user_id\":\"m\"}"},
    {"who, by metadata", WITH("\"metadata\":{\"user_id\":\"m\"}"),
        USER "user=m +metadata={\"user_id\":\"m\"}"},
    {"texts", WITH("\"verbosity\":\"low\",\"service_tier\":\"flex\",\"prompt_cache_key\":\"k\""),
        USER "verbosity=low tier=flex cache_key=k"},
    {"null is like absent (JSON-08)",
        WITH("\"temperature\":null,\"tools\":null,\"metadata\":{},\"stop\":null,\"x\":null"), USER},
    {"unknown members, raw", WITH("\"x\":{\"a\":[1,2.50,null]},\"logit_bias\":{\"5\":-100}"),
        USER "+x={\"a\":[1,2.50,null]} +logit_bias={\"5\":-100}"},
};

static const struct {
	const char *what, *body, *want;
} bad[] = {
    {"unknown role", MESSAGES("{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"bot\"}"),
        "'messages[1].role' is 'bot', which is no role of a message"},
    {"no role", MESSAGES("{\"content\":\"q\"}"),
        "'messages[0].role' is '', which is no role of a message"},
    {"content of another type", MESSAGES("{\"role\":\"user\",\"content\":7}"),
        "'messages[0].content' must be a string or an array of parts"},
    {"part of an unknown type", PART("{\"type\":\"video_url\"}"),
        "'messages[0].content[0]' has the type 'video_url', which is not known here"},
    {"part that is a number", PART("{\"type\":\"text\",\"text\":\"a\"},7"),
        "'messages[0].content[1]' must be an object with a 'type'"},
    {"text without text", PART("{\"type\":\"text\"}"), "'messages[0].content[0]' has no 'text'"},
    {"text that is no string", PART("{\"type\":\"text\",\"text\":{}}"),
        "'messages[0].content[0].text' must be a string"},
    {"image without a URL", PART("{\"type\":\"image_url\",\"image_url\":{}}"),
        "'messages[0].content[0]' is an image without a URL"},
    {"image of a file", PART("{\"type\":\"image_url\",\"image_url\":\"file:///etc/passwd\"}"),
        "'messages[0].content[0]' has an image whose URL is neither http(s) nor base64 data"},
    {"image that is not base64",
        PART("{\"type\":\"image_url\",\"image_url\":\"data:image/png,x\"}"),
        "'messages[0].content[0]' has an image whose URL is neither http(s) nor base64 data"},
    {"file that is not base64", PART("{\"type\":\"file\",\"file\":{\"file_data\":\"a b\"}}"),
        "'messages[0].content[0]' has a file whose data is not base64"},
    {"tool without an id", MESSAGES("{\"role\":\"tool\",\"content\":\"r\"}"),
        "'messages[0]' has no 'tool_call_id'"},
    {"function without a call",
        MESSAGES("{\"role\":\"function\",\"name\":\"f\",\"content\":\"r\"}"),
        "'messages[0]' is the result of a function that the message before it does not call"},
    {"calls that are no list", MESSAGES("{\"role\":\"assistant\",\"tool_calls\":{}}"),
        "'messages[0].tool_calls' must be an array"},
    {"call without an id",
        MESSAGES("{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{"
                 "\"name\":\"f\"}}]}"),
        "'messages[0].tool_calls[0]' has no 'id'"},
    {"call without a name",
        MESSAGES("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{}}]}"),
        "'messages[0].tool_calls[0].function' has no 'name'"},
    {"arguments that are a list",
        MESSAGES("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\","
                 "\"function\":{\"name\":\"f\",\"arguments\":[]}}]}"),
        "'messages[0].tool_calls[0].function' must have 'arguments' that are a string of JSON"},
    {"tools that are no list", WITH("\"tools\":{}"), "'tools' must be an array"},
    {"tool without a function", WITH("\"tools\":[{\"type\":\"function\"}]"),
        "'tools[0]' has no 'function'"},
    {"tool without a name", WITH("\"tools\":[{\"type\":\"function\",\"function\":{}}]"),
        "'tools[0]' has no name"},
    {"choice of an unknown word", WITH("\"tool_choice\":\"maybe\""),
        "'tool_choice' must be 'none', 'auto', 'required' or name a tool"},
    {"temperature as text", WITH("\"temperature\":\"1\""), "'temperature' must be a number"},
    {"max tokens of 0", WITH("\"max_tokens\":0"),
        "'max_tokens' must be a whole number of at least 1"},
    {"n of 0", WITH("\"n\":0"), "'n' must be a whole number of at least 1"},
    {"stop of numbers", WITH("\"stop\":[1]"), "'stop' must be a string or an array of strings"},
    {"unknown effort", WITH("\"reasoning_effort\":\"huge\""),
        "'reasoning_effort' must be none, minimal, low, medium, high, xhigh or max"},
    {"unknown format", WITH("\"response_format\":{\"type\":\"xml\"}"),
        "'response_format' must be of type text, json_object or json_schema"},
    {"stream that is a word", WITH("\"stream\":\"yes\""), "'stream' must be true or false"},
};

static void
test_good(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(good); i++) {
		struct buf *got = arena_buf(arena, MB);
		struct why why = {.text = ""};
		struct form form;
		enum err err = form_read_chat(arena, text_span(good[i].body), &form, &why);

		if (err == ERR_OK)
			form_text(got, &form);
		if (err == ERR_OK && text_is(buf_text(got), good[i].want))
			continue;
		failed++;
		print_error("%s\n got  %.*s%s\n want %s\n", good[i].what, (int)got->n,
		    got->n > 0 ? got->p : "", why.text, good[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static void
test_bad(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(bad); i++) {
		struct why why = {.text = ""};
		struct form form;
		enum err err = form_read_chat(arena, text_span(bad[i].body), &form, &why);

		if (err == ERR_BAD_INPUT && strcmp(why.text, bad[i].want) == 0)
			continue;
		failed++;
		print_error(
		    "%s\n got  %d %s\n want %s\n", bad[i].what, (int)err, why.text, bad[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
