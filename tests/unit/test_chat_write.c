#include "dialect/form.h"

#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB ((size_t)1 << 20)

/* Forms are made by reading a chat body; `from` says whose they are then, `also` what else is set. */
#define ASK(list) "{\"messages\":[" list "]}"
#define WITH(more) "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]," more "}"
#define OUT(list) "{\"model\":\"m\",\"messages\":[" list "]}"
#define USER "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"
#define TOOL(more) "{\"type\":\"function\",\"function\":{\"name\":\"f\"" more "}}"
#define EMPTY ",\"parameters\":{\"type\":\"object\",\"properties\":{}}"
#define CALL(id, more)                                                               \
	"{\"role\":\"assistant\",\"content\":" more ",\"tool_calls\":[{\"id\":\"" id \
	"\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(id, content) \
	"{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":" content "}"
#define IMAGE "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}}"
#define PDF                                                                                     \
	"{\"type\":\"file\",\"file\":{\"filename\":\"x.pdf\",\"file_data\":\"data:application/" \
	"pdf;base64,QUJD\"}}"
#define LONG "a23456789b123456789c123456789d123456789e123456789f123456789g123456789"

struct also {
	const char *model, *max_tokens_name;
	bool stream, no_stream_options, as_system, error, custom, instructions;
	int64_t cap;
	const char *namespace;
	const char *seal; /* of the first thought, made for this channel */
};

static const struct {
	const char *what, *provider;
	enum form_wire from;
	const char *body;
	struct also also;
	const char *want, *dropped;
} good[] = {
    {"plain", "openai", FORM_CHAT, ASK("{\"role\":\"user\",\"content\":\"q\"}"), {0}, USER "}", ""},

    /* E.4, E.10: system texts */
    {"system blocks are joined (CONV-02)", "openai", FORM_MESSAGES,
        ASK("{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
            "\"text\",\"text\":\"b\"}]},{\"role\":\"user\",\"content\":\"q\"}"),
        {0},
        OUT("{\"role\":\"system\",\"content\":\"a\\n\\nb\"},{\"role\":\"user\",\"content\":\"q\"}"),
        ""},
    {"developer stays with OpenAI", "openai", FORM_RESPONSES,
        ASK("{\"role\":\"developer\",\"content\":\"d\"}"), {0},
        OUT("{\"role\":\"developer\",\"content\":\"d\"}"), ""},
    {"developer is system elsewhere", "moonshot", FORM_CHAT,
        ASK("{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"developer\",\"content\":\"d\"}"),
        {0}, OUT("{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"system\",\"content\":\"d\"}"),
        ""},
    {"developer is system when told", "openai", FORM_CHAT,
        ASK("{\"role\":\"developer\",\"content\":\"d\"}"), {.as_system = true},
        OUT("{\"role\":\"system\",\"content\":\"d\"}"), ""},
    {"cache marks where they are known", "openrouter", FORM_MESSAGES,
        ASK("{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
            "{\"type\":\"ephemeral\"}}]}"),
        {0},
        OUT("{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
            "{\"type\":\"ephemeral\"}}]}"),
        ""},
    {"cache marks elsewhere", "deepseek", FORM_MESSAGES,
        ASK("{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
            "{\"type\":\"ephemeral\"}}]}"),
        {0}, OUT("{\"role\":\"system\",\"content\":\"a\"}"), "cache_control"},

    /* contents */
    {"user texts are one string", "deepseek", FORM_MESSAGES,
        ASK("{\"role\":\"user\",\"content\":[\"a\",\"b\"]}"), {0},
        OUT("{\"role\":\"user\",\"content\":\"a\\nb\"}"), ""},
    {"image", "openai", FORM_MESSAGES, ASK("{\"role\":\"user\",\"content\":[\"a\"," IMAGE "]}"),
        {0}, OUT("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}," IMAGE "]}"),
        ""},
    {"detail original is high", "openai", FORM_RESPONSES,
        ASK("{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"https://x\","
            "\"detail\":\"original\"}]}"),
        {0},
        OUT("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
            "\"https://x\",\"detail\":\"high\"}}]}"),
        ""},
    {"PDF", "openai", FORM_MESSAGES, ASK("{\"role\":\"user\",\"content\":[" PDF "]}"), {0},
        OUT("{\"role\":\"user\",\"content\":[" PDF "]}"), ""},
    {"text document", "deepseek", FORM_MESSAGES,
        ASK("{\"role\":\"user\",\"content\":[\"a\",{\"type\":\"file\",\"file\":{\"file_data\":"
            "\"data:text/plain;base64,QUJDRA==\"}}]}"),
        {0}, OUT("{\"role\":\"user\",\"content\":\"a\\nABCD\"}"), ""},
    {"empty assistant goes", "deepseek", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"content\":\"\"},{\"role\":\"user\",\"content\":\"q\"}"), {0},
        USER "}", ""},
    {"same role twice stays (CONV-03)", "openai", FORM_CHAT,
        ASK("{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}"), {0},
        OUT("{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}"), ""},
    {"refusal at OpenAI", "openai", FORM_RESPONSES,
        ASK("{\"role\":\"assistant\",\"refusal\":\"no\"}"), {0},
        OUT("{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}"), ""},
    {"refusal elsewhere", "deepseek", FORM_RESPONSES,
        ASK("{\"role\":\"assistant\",\"refusal\":\"no\"}"), {0},
        OUT("{\"role\":\"assistant\",\"content\":\"no\"}"), ""},

    /* calls and results */
    {"call with null content", "openai", FORM_MESSAGES,
        ASK(CALL("c1", "\"\"") "," RESULT("c1", "\"r\"")), {0},
        OUT(CALL("c1", "null") "," RESULT("c1", "\"r\"")), ""},
    {"call with empty content", "openai-compatible", FORM_MESSAGES,
        ASK(CALL("c1", "null") "," RESULT("c1", "\"r\"")), {0},
        OUT(CALL("c1", "\"\"") "," RESULT("c1", "\"r\"")), ""},
    {"result with an image (TOOL-10)", "openai", FORM_MESSAGES,
        ASK(CALL("c1", "\"\"") "," RESULT("c1", "[" IMAGE "]") "," RESULT("c2", "[\"x\",\"y\"]")),
        {0},
        OUT(CALL("c1", "null") "," RESULT("c1", "\"(see attached image)\"") "," RESULT(
            "c2", "\"x\\ny\"") ",{\"role\":\"user\",\"content\":[" IMAGE "]}"),
        ""},
    {"result that is an error", "openai", FORM_MESSAGES,
        ASK(CALL("c1", "\"\"") "," RESULT("c1", "\"boom\"")), {.error = true},
        OUT(CALL("c1", "null") "," RESULT("c1", "\"Error: boom\"")), ""},
    {"result that says so itself", "openai", FORM_MESSAGES,
        ASK(CALL("c1", "\"\"") "," RESULT("c1", "\"ERROR 5\"")), {.error = true},
        OUT(CALL("c1", "null") "," RESULT("c1", "\"ERROR 5\"")), ""},
    {"empty result", "openai", FORM_MESSAGES, ASK(CALL("c1", "\"\"") "," RESULT("c1", "null")), {0},
        OUT(CALL("c1", "null") "," RESULT("c1", "\"\"")), ""},
    {"long ids, the same for both", "openai", FORM_MESSAGES,
        ASK(CALL(LONG, "\"\"") "," RESULT(LONG, "\"r\"")), {0},
        OUT(CALL("a234567_dc5ed99a5da590d6e614ff653a042666", "null") "," RESULT(
            "a234567_dc5ed99a5da590d6e614ff653a042666", "\"r\"")),
        ""},
    {"custom call is wrapped", "deepseek", FORM_RESPONSES,
        ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"custom\":{\"name\":\"g\","
            "\"input\":\"x\\\"\"}}]}"),
        {.model = "deepseek-chat"},
        "{\"model\":\"deepseek-chat\",\"messages\":[{\"role\":\"assistant\",\"content\":\"\","
        "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"g\","
        "\"arguments\":\"{\\\"input\\\":\\\"x\\\\\\\"\\\"}\"}}]}]}",
        ""},

    /* A.8: thoughts */
    {"DeepSeek wants thoughts of calls (CONV-11)", "deepseek", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"reasoning_content\":\"t\",\"tool_calls\":[{\"id\":\"c\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"assistant\","
            "\"content\":\"a\",\"reasoning_content\":\"u\"}"),
        {0},
        OUT("{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"t\",\"tool_calls\":[{"
            "\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]"
            "},{\"role\":\"assistant\",\"content\":\"a\"}"),
        "thinking blocks"},
    {"Moonshot thinks: empty where there is none", "moonshot", FORM_RESPONSES,
        ASK(CALL("c1", "\"a\"")), {.model = "kimi-k2-thinking"},
        "{\"model\":\"kimi-k2-thinking\",\"messages\":[{\"role\":\"assistant\",\"content\":\"a\","
        "\"reasoning_content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]}",
        ""},
    {"OpenAI gets no thoughts (CONV-09)", "openai", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}"), {0},
        OUT("{\"role\":\"assistant\",\"content\":\"a\"}"), "thinking blocks"},
    {"a thought alone leaves no empty message", "openai", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"reasoning_content\":\"t\"},{\"role\":\"user\",\"content\":"
            "\"q\"}"),
        {0}, USER "}", "thoughts without an answer"},
    {"what this channel gave comes back", "openrouter", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}"),
        {.seal = "[{\"type\":\"reasoning.encrypted\",\"data\":\"X\"}]"},
        OUT("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_details\":[{\"type\":"
            "\"reasoning.encrypted\",\"data\":\"X\"}]}"),
        ""},
    {"a seal that was tampered with", "openrouter", FORM_MESSAGES,
        ASK("{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}"),
        {.seal = "[],\"x\":1"}, OUT("{\"role\":\"assistant\",\"content\":\"a\"}"),
        "thinking blocks"},

    /* tools */
    {"tool of a messages client", "deepseek", FORM_MESSAGES,
        WITH(
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\","
            "\"parameters\":{\"type\":\"object\",\"z\":1.0},\"strict\":true},\"cache_control\":{}}]"),
        {0},
        USER ",\"tools\":[" TOOL(",\"description\":\"d\",\"parameters\":{\"properties\":{},"
                                 "\"type\":\"object\",\"z\":1.0}") "]}",
        "cache_control,strict"},
    {"tool without parameters", "openai", FORM_MESSAGES, WITH("\"tools\":[" TOOL("") "]"), {0},
        USER ",\"tools\":[" TOOL(EMPTY) "]}", ""},
    {"strict stays with OpenAI", "openai", FORM_RESPONSES,
        WITH("\"tools\":[" TOOL(",\"strict\":false") "]"), {0},
        USER ",\"tools\":[" TOOL(EMPTY ",\"strict\":false") "]}", ""},
    {"custom tool is wrapped", "openai", FORM_RESPONSES,
        WITH(
            "\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"f\",\"description\":\"d\","
            "\"format\":{\"type\":\"grammar\",\"grammar\":{\"syntax\":\"lark\",\"definition\":\"s: "
            "x\"}}}}],\"tool_choice\":{\"type\":\"custom\",\"custom\":{\"name\":\"f\"}}"),
        {0},
        USER ",\"tools\":[" TOOL(
            ",\"description\":\"d\\n\\nThe input must follow this grammar:\\ns: x\",\"parameters\":"
            "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":["
            "\"input\"],\"additionalProperties\":false}") "],\"tool_choice\":{\"type\":\"function\","
                                                          "\"function\":{\"name\":\"f\"}}}",
        ""},
    {"custom tool of a chat client stays with OpenAI", "openai", FORM_CHAT,
        WITH("\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"f\",\"format\":{\"type\":"
             "\"grammar\",\"grammar\":{\"syntax\":\"lark\",\"definition\":\"s: x\"}}}}]"),
        {0},
        USER ",\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"f\",\"format\":{\"type\":"
             "\"grammar\",\"grammar\":{\"syntax\":\"lark\",\"definition\":\"s: x\"}}}}]}",
        ""},
    {"namespace is flattened", "openai", FORM_RESPONSES, WITH("\"tools\":[" TOOL("") "]"),
        {.namespace = "crm"},
        USER ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"crm__f\"" EMPTY "}}]}",
        ""},
    {"long name", "openai", FORM_MESSAGES,
        WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"" LONG "\"}}]"), {0},
        USER ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
             "\"a23456789b123456789c123456789d123456789e123456789f12345_dc5ed99a\"" EMPTY "}}]}",
        ""},
    {"hosted tools are named", "openai", FORM_RESPONSES,
        WITH("\"tools\":[{\"type\":\"web_search\"}],\"tool_choice\":\"auto\""), {0}, USER "}",
        "tools.web_search"},
    {"choice none (TOOL-18)", "openai", FORM_MESSAGES,
        WITH("\"tools\":[" TOOL("") "],\"tool_choice\":\"none\""), {0},
        USER ",\"tools\":[" TOOL(EMPTY) "],\"tool_choice\":\"none\"}", ""},
    {"choice none where there is none", "zhipu", FORM_MESSAGES,
        WITH("\"tools\":[" TOOL("") "],\"tool_choice\":\"none\""), {0}, USER "}", ""},
    {"choice required", "openai", FORM_MESSAGES,
        WITH("\"tools\":[" TOOL("") "],\"tool_choice\":\"required\",\"parallel_tool_calls\":false"),
        {0},
        USER ",\"tools\":[" TOOL(EMPTY) "],\"tool_choice\":\"required\",\"parallel_tool_calls\":"
                                        "false}",
        ""},
    {"choice required while DeepSeek thinks", "deepseek", FORM_MESSAGES,
        WITH("\"tools\":[" TOOL("") "],\"tool_choice\":\"required\",\"parallel_tool_calls\":false"),
        {0}, USER ",\"tools\":[" TOOL(EMPTY) "],\"tool_choice\":\"auto\"}",
        "tool_choice,parallel_tool_calls"},
    {"choice required while it does not", "deepseek", FORM_MESSAGES,
        WITH("\"tools\":[" TOOL("") "],\"tool_choice\":\"required\",\"reasoning_effort\":\"none\""),
        {0},
        USER ",\"tools\":[" TOOL(EMPTY) "],\"tool_choice\":\"required\",\"thinking\":{\"type\":"
                                        "\"disabled\"}}",
        ""},
    {"allowed tools at OpenAI", "openai", FORM_RESPONSES,
        WITH("\"tools\":[" TOOL(
            "") ",{\"type\":\"function\",\"function\":{\"name\":\"g\"}}],"
                "\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
                "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}}"),
        {0},
        USER ",\"tools\":[" TOOL(
            EMPTY) ",{\"type\":\"function\",\"function\":{\"name\":\"g\"" EMPTY
                   "}}],\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
                   "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}}}",
        ""},
    {"allowed tools elsewhere", "moonshot", FORM_RESPONSES,
        WITH("\"tools\":[" TOOL(
            "") ",{\"type\":\"function\",\"function\":{\"name\":\"g\"}}],"
                "\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
                "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}}"),
        {0}, USER ",\"tools\":[" TOOL(EMPTY) "],\"tool_choice\":\"auto\"}", ""},

    /* A.9: parameters */
    {"max tokens at OpenAI", "openai", FORM_MESSAGES, WITH("\"max_tokens\":10"), {0},
        USER ",\"max_completion_tokens\":10}", ""},
    {"max tokens elsewhere", "dashscope", FORM_RESPONSES, WITH("\"max_tokens\":10"), {0},
        USER ",\"max_tokens\":10}", ""},
    {"max tokens as told", "openai", FORM_MESSAGES, WITH("\"max_tokens\":10"),
        {.max_tokens_name = "max_tokens"}, USER ",\"max_tokens\":10}", ""},
    {"max tokens bounded", "deepseek", FORM_RESPONSES, WITH("\"max_tokens\":10"), {.cap = 7},
        USER ",\"max_tokens\":7}", "max_output_tokens"},
    {"temperature as it stands", "openai", FORM_MESSAGES, WITH("\"temperature\":0.70"), {0},
        USER ",\"temperature\":0.70}", ""},
    {"temperature at Moonshot", "moonshot", FORM_CHAT, WITH("\"temperature\":1.7"), {0},
        USER ",\"temperature\":1}", "temperature"},
    {"temperature beyond all numbers", "moonshot", FORM_CHAT, WITH("\"temperature\":1e400"), {0},
        USER ",\"temperature\":1}", "temperature"},
    {"temperature below nothing", "moonshot", FORM_CHAT, WITH("\"temperature\":-1"), {0},
        USER ",\"temperature\":0}", "temperature"},
    {"sampling at Zhipu", "zhipu", FORM_CHAT, WITH("\"temperature\":0,\"top_p\":1"), {0},
        USER ",\"temperature\":0.01,\"top_p\":0.99}", "temperature,top_p"},
    {"sampling at a reasoner", "openai", FORM_MESSAGES,
        WITH("\"temperature\":1,\"top_p\":0.5,\"stop\":\"x\",\"frequency_penalty\":1"),
        {.model = "gpt-5-mini"},
        "{\"model\":\"gpt-5-mini\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],"
        "\"temperature\":1}",
        "top_p,frequency_penalty,stop_sequences"},
    {"top_k at OpenAI (CONV-07)", "openai", FORM_MESSAGES, WITH("\"top_k\":5"), {0}, USER "}",
        "top_k"},
    {"top_k at Qwen", "dashscope", FORM_MESSAGES, WITH("\"top_k\":5"), {0}, USER ",\"top_k\":5}",
        ""},
    {"seed keeps its digits", "openai", FORM_CHAT, WITH("\"seed\":92233720368547758070"), {0},
        USER ",\"seed\":92233720368547758070}", ""},
    {"five stops", "openai", FORM_CHAT, WITH("\"stop\":[\"a\",\"\",\"b\",\"c\",\"d\",\"e\"]"), {0},
        USER ",\"stop\":[\"a\",\"b\",\"c\",\"d\"]}", "stop"},
    {"log probabilities of a responses client", "openai", FORM_RESPONSES,
        WITH("\"top_logprobs\":3"), {0}, USER ",\"logprobs\":true,\"top_logprobs\":3}", ""},
    {"schema at OpenAI", "openai", FORM_MESSAGES,
        WITH(
            "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"a\":1}}}"),
        {0},
        USER ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"output\","
             "\"schema\":{\"a\":1},\"strict\":true}}}",
        ""},
    {"schema where it is not known", "deepseek", FORM_RESPONSES,
        ASK("{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"}"
            "],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"a\":1}}}"
            ",\"z\":["),
        {0},
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"system\","
        "\"content\":\"Answer with one JSON object that matches this JSON schema:\\n{\\\"a\\\":1}\"},"
        "{\"role\":\"user\",\"content\":\"q\"}],\"response_format\":{\"type\":\"json_object\"}}",
        "text.format,z"},
    {"JSON object", "deepseek", FORM_CHAT, WITH("\"response_format\":{\"type\":\"json_object\"}"),
        {0}, USER ",\"response_format\":{\"type\":\"json_object\"}}", ""},
    {"stream", "openai", FORM_MESSAGES, WITH("\"stream\":true"), {.stream = true},
        USER ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}", ""},
    {"stream without options", "openai", FORM_MESSAGES, WITH("\"stream\":true"),
        {.stream = true, .no_stream_options = true}, USER ",\"stream\":true}", ""},
    {"only OpenAI's", "deepseek", FORM_CHAT,
        WITH("\"store\":true,\"metadata\":{\"a\":\"b\"},\"service_tier\":\"flex\",\"verbosity\":"
             "\"low\",\"prompt_cache_key\":\"k\",\"logit_bias\":{\"1\":2}"),
        {0}, USER ",\"logit_bias\":{\"1\":2}}",
        "verbosity,service_tier,prompt_cache_key,store,metadata"},
    {"OpenAI's at OpenAI", "openai", FORM_RESPONSES,
        WITH("\"store\":true,\"metadata\":{\"a\":\"b\"},\"service_tier\":\"flex\",\"verbosity\":"
             "\"low\",\"prompt_cache_key\":\"k\""),
        {0},
        USER ",\"verbosity\":\"low\",\"service_tier\":\"flex\",\"prompt_cache_key\":\"k\","
             "\"metadata\":{\"a\":\"b\"}}",
        "store"},
    {"user", "deepseek", FORM_MESSAGES, WITH("\"user\":\"u\""), {0}, USER ",\"user_id\":\"u\"}",
        ""},
    {"user, too long", "openai", FORM_MESSAGES, WITH("\"user\":\"" LONG "\""), {0},
        USER ",\"user\":\"dc5ed99a5da590d6e614ff653a042666b3b828172f55a025219ec4a71486253b\"}", ""},
    {"user where nobody asks", "zhipu", FORM_MESSAGES, WITH("\"user\":\"u\""), {0}, USER "}",
        "metadata.user_id"},

    /* A.8, E.7: thinking */
    {"effort at OpenAI", "openai", FORM_MESSAGES, WITH("\"reasoning_effort\":\"xhigh\""), {0},
        USER ",\"reasoning_effort\":\"xhigh\"}", ""},
    {"budget at OpenAI", "openai", FORM_MESSAGES,
        WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":8000}"), {0},
        USER ",\"reasoning_effort\":\"medium\"}", ""},
    {"effort at DeepSeek", "deepseek", FORM_RESPONSES, WITH("\"reasoning_effort\":\"medium\""), {0},
        USER ",\"thinking\":{\"type\":\"enabled\"},\"reasoning_effort\":\"high\"}", ""},
    {"effort at Zhipu", "zhipu", FORM_MESSAGES, WITH("\"reasoning_effort\":\"none\""), {0},
        USER ",\"thinking\":{\"type\":\"disabled\"}}", ""},
    {"effort at Kimi K2", "moonshot", FORM_MESSAGES, WITH("\"reasoning_effort\":\"low\""), {0},
        USER ",\"thinking\":{\"type\":\"enabled\"}}", ""},
    {"effort at Kimi K3", "moonshot", FORM_MESSAGES, WITH("\"reasoning_effort\":\"xhigh\""),
        {.model = "kimi-k3"},
        "{\"model\":\"kimi-k3\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],"
        "\"reasoning_effort\":\"high\"}",
        ""},
    {"effort at Qwen", "dashscope", FORM_RESPONSES, WITH("\"reasoning_effort\":\"high\""), {0},
        USER ",\"enable_thinking\":true,\"thinking_budget\":24576}", ""},
    {"no effort at Qwen", "dashscope", FORM_RESPONSES, WITH("\"reasoning_effort\":\"none\""), {0},
        USER ",\"enable_thinking\":false}", ""},
    {"budget at OpenRouter", "openrouter", FORM_MESSAGES,
        WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000}"), {0},
        USER ",\"reasoning\":{\"max_tokens\":2000}}", ""},
    {"effort at OpenRouter", "openrouter", FORM_RESPONSES, WITH("\"reasoning_effort\":\"low\""),
        {0}, USER ",\"reasoning\":{\"effort\":\"low\"}}", ""},
    {"no word for none", "xai", FORM_MESSAGES, WITH("\"reasoning_effort\":\"none\""), {0}, USER "}",
        "thinking"},
    {"unknown members of a chat client (CONV-15)", "openai-compatible", FORM_CHAT,
        WITH("\"x\":{\"a\":[1,2.50,null]}"), {0}, USER ",\"x\":{\"a\":[1,2.50,null]}}", ""},
    {"unknown members of another", "openai", FORM_MESSAGES, WITH("\"container\":\"x\""), {0},
        USER "}", "container"},
};

static const struct {
	const char *what, *provider;
	enum form_wire from;
	const char *body;
	const char *want; /* in the reason */
} bad[] = {
    {"n of 2 (CONV-07)", "openai", FORM_CHAT, WITH("\"n\":2"), "'n' cannot"},
    {"background", "openai", FORM_RESPONSES, WITH("\"background\":true"), "'background' cannot"},
    {"stored prompt", "openai", FORM_RESPONSES, WITH("\"prompt\":{}"), "'prompt' cannot"},
    {"audio out", "openai", FORM_CHAT, WITH("\"modalities\":[\"audio\"]"), "'modalities' cannot"},
    {"audio in", "openai", FORM_RESPONSES,
        ASK("{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{}}]}"),
        "'input[0].content[0].input_audio' is audio"},
    {"image by id", "openai", FORM_MESSAGES,
        ASK("{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"file_id\":\"f\"}]}"),
        "'messages[0].content[0].source' is an image by file id"},
    {"file by id", "openai", FORM_RESPONSES,
        ASK("{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_id\":\"f\"}]}"),
        "'input[0].content[0].file_url' is a document by URL or file id"},
    {"PDF at DeepSeek", "deepseek", FORM_MESSAGES, ASK("{\"role\":\"user\",\"content\":[" PDF "]}"),
        "'messages[0].content[0].source' is a document"},
    {"a hosted tool forced", "openai", FORM_RESPONSES,
        WITH("\"tools\":[{\"type\":\"web_search\"}],\"tool_choice\":{\"type\":\"web_search\","
             "\"name\":\"web_search\"}"),
        "'tool_choice' wants the tool 'web_search'"},
    {"a tool forced where none is left", "openai", FORM_RESPONSES,
        WITH("\"tools\":[{\"type\":\"web_search\"}],\"tool_choice\":\"required\""),
        "'tool_choice' wants a tool"},
};

static struct form_target
target_of(const char *provider, const struct also *also)
{
	return (struct form_target){.wire = FORM_CHAT,
	    .model = text_span(also->model != NULL ? also->model : "m"),
	    .channel = SPAN("ch"),
	    .provider = provider,
	    .max_tokens_name = text_span(also->max_tokens_name),
	    .developer_as_system = also->as_system,
	    .no_stream_options = also->no_stream_options,
	    .stream = also->stream,
	    .max_output = also->cap > 0 ? also->cap : -1};
}

static void
change_part(struct arena *arena, struct form_part *part, const struct also *also)
{
	if (part->kind == FORM_RESULT && also->error)
		part->result.is_error = true;
	if (part->kind == FORM_THOUGHT && also->seal != NULL)
		part->thought.seal = seal_make(arena, FORM_CHAT, SPAN("ch"), text_span(also->seal));
}

static void
change(struct arena *arena, struct form *form, enum form_wire from, const struct also *also)
{
	form->from = from;
	for (size_t i = 0; i < form->nturns; i++)
		for (size_t k = 0; k < form->turns[i].nparts; k++)
			change_part(arena, &form->turns[i].parts[k], also);
	for (size_t i = 0; i < form->ntools; i++)
		form->tools[i].namespace = text_span(also->namespace);
}

static struct span
names_of(struct arena *arena, const struct form_loss *loss)
{
	struct buf *out = arena_buf(arena, MB);

	for (size_t i = 0; i < loss->ndropped; i++) {
		if (i > 0)
			buf_char(out, ',');
		buf_span(out, loss->dropped[i]);
	}
	return out->n == 0 ? SPAN("") : buf_text(out);
}

static void
test_good(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(good); i++) {
		struct form_target target = target_of(good[i].provider, &good[i].also);
		struct buf *got = arena_buf(arena, MB);
		struct form_loss loss = {.names = NULL};
		struct why why = {.text = ""};
		struct span dropped;
		struct form form;

		if (form_read_chat(arena, text_span(good[i].body), &form, &why) != ERR_OK)
			fail_msg("%s: %s", good[i].what, why.text);
		change(arena, &form, good[i].from, &good[i].also);
		(void)form_write_chat(arena, &form, &target, got, &loss, &why);
		dropped = names_of(arena, &loss);
		if (text_is(buf_text(got), good[i].want) && text_is(dropped, good[i].dropped) &&
		    scan_pick(buf_text(got), NULL, NULL, 0, &why) == ERR_OK)
			continue;
		failed++;
		print_error("%s: %s\n got  %s\n want %s\n got  dropped %.*s\n want dropped %s\n",
		    good[i].what, why.text, got->p, good[i].want, (int)dropped.n, dropped.p,
		    good[i].dropped);
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
		struct form_target target = target_of(bad[i].provider, &(struct also){.cap = 0});
		struct buf *got = arena_buf(arena, MB);
		struct form_loss loss = {.names = NULL};
		struct why why = {.text = ""};
		struct form form;
		enum err err;

		if (form_read_chat(arena, text_span(bad[i].body), &form, &why) != ERR_OK)
			fail_msg("%s: %s", bad[i].what, why.text);
		form.from = bad[i].from;
		err = form_write_chat(arena, &form, &target, got, &loss, &why);
		if (err == ERR_BAD_INPUT && text_starts(text_span(why.text), bad[i].want))
			continue;
		failed++;
		print_error("%s: %d %s\n want %s\n", bad[i].what, (int)err, why.text, bad[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* What went under another name or kind can be put back. */
static void
test_names(void **state)
{
	static const char body[] = WITH(
	    "\"tools\":[" TOOL("") ",{\"type\":\"custom\",\"custom\":{\"name\":\"c\"}},{\"type\":"
	                           "\"function\",\"function\":{\"name\":\"" LONG "\"}}]");
	struct arena *arena = arena_new(64 * MB);
	struct form_target target = target_of("deepseek", &(struct also){.cap = 0});
	struct form_loss loss = {.names = NULL};
	struct buf *out = arena_buf(arena, MB);
	struct form form;

	(void)state;
	assert_int_equal(form_read_chat(arena, text_span(body), &form, NULL), ERR_OK);
	form.from = FORM_RESPONSES;
	form.tools[0].namespace = SPAN("ns");
	assert_int_equal(form_write_chat(arena, &form, &target, out, &loss, NULL), ERR_OK);
	assert_int_equal(loss.nnames, 3);
	assert_true(text_is(loss.names[0].sent, "ns__f"));
	assert_true(text_is(loss.names[0].original, "f"));
	assert_true(text_is(loss.names[0].namespace, "ns"));
	assert_true(text_is(loss.names[1].sent, "c"));
	assert_true(loss.names[1].custom);
	assert_int_equal(loss.names[2].sent.n, 64);
	assert_true(text_is(loss.names[2].original, LONG));
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
