#include "dialect/form.h"

#include "dialect/messages_model.h"
#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/quotes.h"

#define CHANNEL SPAN("an")
#define BUDGET "claude-sonnet-4-5"
#define ADAPTIVE "claude-opus-4-7"
#define CLONE "glm-4.6"

/* Chat requests, unless `from` says otherwise: then the body is one of Messages. */
#define ASK(list) "{'messages':[" list "]}"
#define WITH(more) "{'messages':[{'role':'user','content':'q'}]," more "}"
#define USER(content) "{'role':'user','content':" content "}"
#define MODEL(more) "{'role':'assistant'," more "}"
#define CALL(id) "{'id':'" id "','type':'function','function':{'name':'f','arguments':'{}'}}"
#define TOOL(id, content) "{'role':'tool','tool_call_id':'" id "','content':" content "}"
#define FUNCTION(more) "{'type':'function','function':{'name':'f'" more "}}"

/* What is written, without the model; "max_tokens" is 32000 unless it matters. */
#define OUT(list) "'max_tokens':32000,'messages':[" list "]"
#define TEXT(text) "{'type':'text','text':'" text "'}"
#define Q(role, list) "{'role':'" role "','content':[" list "]}"
#define HI OUT(Q("user", TEXT("q")))
#define USE(id) "{'type':'tool_use','id':'" id "','name':'f','input':{}}"
#define SCHEMA "'input_schema':{'type':'object','properties':{}}"
#define NO_TOOL                                                       \
	",'tools':[{'name':'none','description':'Not to be called.'," \
	"'input_schema':{'type':'object'}}],'tool_choice':{'type':'none'}"
#define TOOLS ",'tools':[{'name':'f'," SCHEMA "}]"
#define JSON_RULE \
	"Answer with one JSON object and nothing else: no text before or after it, no code fence."
#define RULE(more) "'system':[" TEXT(JSON_RULE more) "],"

static const struct row {
	const char *what, *model;
	enum form_wire from;
	const char *body, *want, *dropped;
	int64_t cap; /* of the model; 0 = not known */
} rows[] = {
    {"a text", CLONE, FORM_CHAT, ASK(USER("'q'")), HI, "", 0},

    /* turns */
    {"system texts lead (CONV-01)", CLONE, FORM_CHAT,
        ASK("{'role':'system','content':'a'},{'role':'developer','content':'b'}," USER("'q'")),
        "'max_tokens':32000,'system':[" TEXT("a") "," TEXT("b") "],'messages':[" Q(
            "user", TEXT("q")) "]",
        "", 0},
    {"later ones stay in their place", CLONE, FORM_CHAT,
        ASK(USER("'q'") "," MODEL("'content':'a'") ",{'role':'system','content':'s'}," USER("'r'")),
        OUT(Q("user", TEXT("q")) "," Q("assistant", TEXT("a")) "," Q(
            "user", TEXT("<system>\\ns\\n</system>") "," TEXT("r"))),
        "", 0},
    {"only a system text", CLONE, FORM_CHAT, ASK("{'role':'system','content':'a'}"),
        "'max_tokens':32000,'system':[" TEXT("a") "],'messages':[" Q("user", TEXT("Continue.")) "]",
        "", 0},
    {"cache marks stay", CLONE, FORM_MESSAGES,
        "{'system':[{'type':'text','text':'s','cache_control':{'type':'ephemeral'}}],'messages':["
        "{'role':'user','content':'q'}]}",
        "'max_tokens':32000,'system':[{'type':'text','text':'s','cache_control':{'type':"
        "'ephemeral'}}],'messages':[" Q("user", TEXT("q")) "]",
        "", 0},
    {"same role twice (CONV-03)", CLONE, FORM_CHAT,
        ASK(USER("'a'") "," USER("'b'") "," MODEL("'content':'c'") "," MODEL(
            "'content':'d'") "," USER("'e'")),
        OUT(Q("user", TEXT("a") "," TEXT("b")) "," Q("assistant", TEXT("c") "," TEXT("d")) "," Q(
            "user", TEXT("e"))),
        "", 0},
    {"the model first", CLONE, FORM_CHAT, ASK(MODEL("'content':'a'") "," USER("'q'")),
        OUT(Q("user", TEXT("Continue.")) "," Q("assistant", TEXT("a")) "," Q("user", TEXT("q"))),
        "", 0},
    {"a beginning of the answer loses its blanks", CLONE, FORM_CHAT,
        ASK(USER("'q'") "," MODEL("'content':'a \\n'")),
        OUT(Q("user", TEXT("q")) "," Q("assistant", TEXT("a"))), "", 0},
    {"a model that takes none", ADAPTIVE, FORM_CHAT, ASK(USER("'q'") "," MODEL("'content':'a '")),
        OUT(Q("user", TEXT("q")) "," Q("assistant", TEXT("a")) "," Q("user", TEXT("Continue."))),
        "", 0},
    {"blank texts", CLONE, FORM_CHAT,
        ASK(USER("'q'") "," MODEL("'content':' \\n'") "," USER("'r'")),
        OUT(Q("user", TEXT("q") "," TEXT("r"))), "", 0},
    {"results first, in the order of the calls", CLONE, FORM_CHAT,
        ASK(USER("'q'") "," MODEL("'content':'t','tool_calls':[" CALL("a") "," CALL(
            "b") "]") "," TOOL("b", "'2'") "," TOOL("a", "'1'") "," USER("'r'")),
        OUT(Q("user", TEXT("q")) "," Q("assistant", TEXT("t") "," USE("a") "," USE("b")) "," Q(
            "user", "{'type':'tool_result','tool_use_id':'a','content':'1'},{'type':'tool_result',"
                    "'tool_use_id':'b','content':'2'}," TEXT("r"))),
        "", 0},
    {"an empty result", CLONE, FORM_CHAT,
        ASK(MODEL("'tool_calls':[" CALL("a") "]") "," TOOL("a", "''")),
        OUT(Q("user", TEXT("Continue.")) "," Q("assistant", USE("a")) "," Q(
            "user", "{'type':'tool_result','tool_use_id':'a'}")),
        "", 0},
    {"an id of another alphabet", CLONE, FORM_CHAT,
        ASK(MODEL("'tool_calls':[" CALL("a.b:c") "]") "," TOOL("a.b:c", "'1'")),
        OUT(Q("user", TEXT("Continue.")) "," Q(
            "assistant", USE("a_b_c_b2a25f70f5cf2429a9473fdc41f092c9")) "," Q("user",
            "{'type':'tool_result','tool_use_id':'a_b_c_b2a25f70f5cf2429a9473fdc41f092c9',"
            "'content':'1'}")),
        "", 0},
    {"digits of arguments (TOOL-19)", CLONE, FORM_CHAT,
        ASK(MODEL("'tool_calls':[{'id':'a','type':'function','function':{'name':'f','arguments':"
                  "'{\\u0022u\\u0022:18446744073709551616,\\u0022f\\u0022:1.10} '}}]") "," TOOL("a",
            "'1'")),
        OUT(Q("user", TEXT("Continue.")) "," Q("assistant",
            "{'type':'tool_use','id':'a','name':'f','input':{'u':18446744073709551616,'f':1.10}"
            "}") "," Q("user", "{'type':'tool_result','tool_use_id':'a','content':'1'}")),
        "", 0},
    {"thoughts of nobody (CONV-09)", CLONE, FORM_CHAT,
        ASK(USER("'q'") "," MODEL("'content':null,'reasoning_content':'h'") "," USER("'r'")),
        OUT(Q("user", TEXT("q") "," TEXT("r"))), "messages.reasoning_content", 0},
    {"images (CONV-08)", CLONE, FORM_CHAT,
        ASK(USER("[{'type':'image_url','image_url':{'url':'data:image\\/jpg;base64,AAAA'}},"
                 "{'type':'image_url','image_url':{'url':'https://x/y'}}]")),
        OUT(Q("user", "{'type':'image','source':{'type':'base64','media_type':'image/jpeg','data':"
                      "'AAAA'}},{'type':'image','source':{'type':'url','url':'https://x/y'}}")),
        "", 0},
    {"documents", CLONE, FORM_CHAT,
        ASK(USER("[{'type':'file','file':{'filename':'x.pdf','file_data':'data:application/pdf;"
                 "base64,AAAA'}},{'type':'file','file':{'filename':'x.txt','file_data':'data:text/"
                 "plain;base64,aGk='}}]")),
        OUT(Q("user", "{'type':'document','source':{'type':'base64','media_type':'application/pdf'"
                      ",'data':'AAAA'},'title':'x.pdf'},{'type':'document','source':{'type':'text'"
                      ",'media_type':'text/plain','data':'hi'},'title':'x.txt'}")),
        "", 0},

    /* limits and sampling */
    {"both limits (CONV-05)", CLONE, FORM_CHAT, WITH("'max_tokens':50,'max_completion_tokens':100"),
        "'max_tokens':100,'messages':[" Q("user", TEXT("q")) "]", "", 0},
    {"a limit above the model's", CLONE, FORM_CHAT, WITH("'max_tokens':5000"),
        "'max_tokens':4000,'messages':[" Q("user", TEXT("q")) "]", "", 4000},
    {"the model's limit", CLONE, FORM_CHAT, ASK(USER("'q'")),
        "'max_tokens':64000,'messages':[" Q("user", TEXT("q")) "]", "", 64000},
    {"an old model's limit", "claude-3-haiku-20240307", FORM_CHAT, ASK(USER("'q'")),
        "'max_tokens':4096,'messages':[" Q("user", TEXT("q")) "]", "", 0},
    {"temperature 1.7 (CONV-06)", CLONE, FORM_CHAT, WITH("'temperature':1.7"),
        HI ",'temperature':1", "temperature", 0},
    {"temperature beyond all numbers", CLONE, FORM_CHAT, WITH("'temperature':1e400"),
        HI ",'temperature':1", "temperature", 0},
    {"temperature below nothing", CLONE, FORM_CHAT, WITH("'temperature':-0.5"),
        HI ",'temperature':0", "temperature", 0},
    {"temperature as it stands", CLONE, FORM_CHAT, WITH("'temperature':0.70,'top_p':0.50"),
        HI ",'temperature':0.70,'top_p':0.50", "", 0},
    {"one of two", BUDGET, FORM_CHAT, WITH("'temperature':0.2,'top_p':0.5"),
        HI ",'temperature':0.2", "top_p", 0},
    {"no sampling", ADAPTIVE, FORM_CHAT, WITH("'temperature':0.2,'top_p':0.5"), HI,
        "temperature top_p", 0},
    {"temperature 1 is nothing lost", ADAPTIVE, FORM_CHAT, WITH("'temperature':1.0"), HI, "", 0},
    {"temperature and thinking", BUDGET, FORM_CHAT,
        WITH("'temperature':0.2,'reasoning_effort':'low','top_p':0.96"),
        HI ",'thinking':{'type':'enabled','budget_tokens':1024},'top_p':0.96", "temperature", 0},
    {"stops", CLONE, FORM_CHAT, WITH("'stop':['a','','\\n','b','c']"),
        HI ",'stop_sequences':['a','b','c']", "stop", 0},
    {"a stop", CLONE, FORM_CHAT, WITH("'stop':'x'"), HI ",'stop_sequences':['x']", "", 0},
    {"without a counterpart (CONV-07)", CLONE, FORM_CHAT,
        WITH("'seed':7,'logprobs':true,'top_logprobs':2,'logit_bias':{'1':2},'store':true,"
             "'frequency_penalty':0,'presence_penalty':0.1,'n':1"),
        HI, "seed top_logprobs presence_penalty logprobs logit_bias store", 0},
    {"a user", CLONE, FORM_CHAT, WITH("'user':'u'"), HI ",'metadata':{'user_id':'u'}", "", 0},
    {"a cache key is one", CLONE, FORM_CHAT, WITH("'prompt_cache_key':'k'"),
        HI ",'metadata':{'user_id':'k'}", "", 0},
    {"tiers", CLONE, FORM_CHAT, WITH("'service_tier':'default'"),
        HI ",'service_tier':'standard_only'", "", 0},
    {"other tiers", CLONE, FORM_CHAT, WITH("'service_tier':'flex'"), HI, "service_tier", 0},

    /* thinking: E.7 */
    {"effort, budget", BUDGET, FORM_CHAT, WITH("'reasoning_effort':'high'"),
        "'max_tokens':32768,'messages':[" Q("user", TEXT("q")) "],'thinking':{'type':'enabled',"
                                                               "'budget_tokens':24576}",
        "", 0},
    {"effort, adaptive", ADAPTIVE, FORM_CHAT, WITH("'reasoning_effort':'xhigh'"),
        HI ",'thinking':{'type':'adaptive'},'output_config':{'effort':'xhigh'}", "", 0},
    {"xhigh where it is not known", "claude-opus-4.6", FORM_CHAT,
        WITH("'reasoning_effort':'xhigh'"),
        HI ",'thinking':{'type':'adaptive'},'output_config':{'effort':'max'}", "", 0},
    {"none", ADAPTIVE, FORM_CHAT, WITH("'reasoning_effort':'none'"),
        HI ",'thinking':{'type':'disabled'}", "", 0},
    {"none where it cannot be", "claude-fable-5", FORM_CHAT, WITH("'reasoning_effort':'none'"), HI,
        "reasoning_effort", 0},
    {"effort of a model that does not think", "claude-3-5-haiku", FORM_CHAT,
        WITH("'reasoning_effort':'low'"), "'max_tokens':8192,'messages':[" Q("user", TEXT("q")) "]",
        "reasoning_effort", 0},
    {"the budget is below the limit (CONV-05)", BUDGET, FORM_CHAT,
        WITH("'reasoning_effort':'medium','max_tokens':4000"),
        "'max_tokens':4000,'messages':[" Q("user", TEXT("q")) "],'thinking':{'type':'enabled',"
                                                              "'budget_tokens':3000}",
        "", 0},
    {"no room to think", BUDGET, FORM_CHAT, WITH("'reasoning_effort':'low','max_tokens':1000"),
        "'max_tokens':1000,'messages':[" Q("user", TEXT("q")) "]", "reasoning_effort", 0},
    {"a stated budget", BUDGET, FORM_MESSAGES,
        WITH("'max_tokens':1500,'thinking':{'type':'enabled','budget_tokens':2000}"),
        "'max_tokens':1500,'messages':[" Q("user", TEXT("q")) "],'thinking':{'type':'enabled',"
                                                              "'budget_tokens':1499}",
        "", 0},
    {"a stated budget, adaptive", ADAPTIVE, FORM_MESSAGES,
        WITH("'thinking':{'type':'enabled','budget_tokens':2000}"),
        HI ",'thinking':{'type':'adaptive'},'output_config':{'effort':'medium'}", "", 0},
    {"a tool loop without thoughts, budget", BUDGET, FORM_CHAT,
        "{'reasoning_effort':'low','messages':[" USER("'q'") "," MODEL(
            "'tool_calls':[" CALL("a") "]") "," TOOL("a", "'1'") "]}",
        OUT(Q("user", TEXT("q")) "," Q("assistant", USE("a")) "," Q(
            "user", "{'type':'tool_result','tool_use_id':'a','content':'1'}")),
        "reasoning_effort", 0},
    {"a tool loop without thoughts, adaptive", ADAPTIVE, FORM_CHAT,
        "{'reasoning_effort':'low','messages':[" USER("'q'") "," MODEL(
            "'tool_calls':[" CALL("a") "]") "," TOOL("a", "'1'") "]}",
        OUT(Q("user", TEXT("q")) "," Q("assistant", USE("a")) "," Q("user",
            "{'type':'tool_result','tool_use_id':'a','content':'1'}")) ",'thinking':{'type':'adaptive'},'output_config':{'effort':'low'}",
        "", 0},

    /* the shape of the answer */
    {"an object", BUDGET, FORM_CHAT, WITH("'response_format':{'type':'json_object'}"),
        "'max_tokens':32000," RULE("") "'messages':[" Q("user", TEXT("q")) "]", "", 0},
    {"a schema", BUDGET, FORM_CHAT,
        WITH("'response_format':{'type':'json_schema','json_schema':{'name':'n','strict':true,"
             "'schema':{'z':1,'a':2.0}}}"),
        HI ",'output_config':{'format':{'type':'json_schema','schema':{'z':1,'a':2.0}}}", "", 0},
    {"a schema, where none is known", CLONE, FORM_CHAT,
        WITH("'response_format':{'type':'json_schema','json_schema':{'name':'n','strict':true,"
             "'schema':{}}}"),
        "'max_tokens':32000," RULE(" It must follow this JSON Schema:\\n{}") "'messages':[" Q(
            "user", TEXT("q")) "]",
        "response_format.json_schema.strict", 0},
    {"a schema that is not strict", BUDGET, FORM_CHAT,
        WITH("'response_format':{'type':'json_schema','json_schema':{'name':'n','description':'D',"
             "'schema':{}}}"),
        "'max_tokens':32000," RULE(" It must follow this JSON Schema (D):\\n{}") "'messages':[" Q(
            "user", TEXT("q")) "]",
        "", 0},

    /* tools */
    {"a tool without a schema", CLONE, FORM_CHAT, WITH("'tools':[" FUNCTION("") "]"), HI TOOLS, "",
        0},
    {"a schema without a type", CLONE, FORM_CHAT,
        WITH("'tools':[" FUNCTION(
            ",'description':'d','parameters':{'properties':{'z':{},'a':1}}") "]"),
        HI ",'tools':[{'name':'f','description':'d','input_schema':{'type':'object','properties':"
           "{'z':{},'a':1}}}]",
        "", 0},
    {"a schema of another type", CLONE, FORM_CHAT,
        WITH("'tools':[" FUNCTION(",'parameters':{'type':['object','null'],'properties':{}}") "]"),
        HI TOOLS, "", 0},
    {"a root of alternatives", CLONE, FORM_CHAT,
        WITH("'tools':[" FUNCTION(
            ",'parameters':{'$defs':{'B':{'properties':{'b':2}}},'type':'object','required':['r'],"
            "'properties':{'r':0},'anyOf':[{'properties':{'a':1,'r':9},'required':['a']},{'$ref':"
            "'#/$defs/B'}],'allOf':[{'properties':{'c':3},'required':['c']}]}") "]"),
        HI ",'tools':[{'name':'f','input_schema':{'type':'object','$defs':{'B':{'properties':{'b':"
           "2}}},'properties':{'r':0,'c':3,'a':1,'b':2},'required':['r','c']}}]",
        "tools.function.parameters.anyOf", 0},
    {"strict where it is known", BUDGET, FORM_CHAT,
        WITH("'tools':[" FUNCTION(",'strict':true") "]"),
        HI ",'tools':[{'name':'f'," SCHEMA ",'strict':true}]", "", 0},
    {"strict where it is not", CLONE, FORM_CHAT, WITH("'tools':[" FUNCTION(",'strict':true") "]"),
        HI TOOLS, "tools.function.strict", 0},
    {"a custom tool", CLONE, FORM_CHAT,
        WITH("'tools':[{'type':'custom','custom':{'name':'c','description':'D'}}]"),
        HI ",'tools':[{'name':'c','description':'D','input_schema':{'type':'object','properties':"
           "{'input':{'type':'string'}},'required':['input']}}]",
        "", 0},
    {"none (TOOL-18)", CLONE, FORM_CHAT, WITH("'tool_choice':'none','tools':[" FUNCTION("") "]"),
        HI TOOLS ",'tool_choice':{'type':'none'}", "", 0},
    {"required", CLONE, FORM_CHAT, WITH("'tool_choice':'required','tools':[" FUNCTION("") "]"),
        HI TOOLS ",'tool_choice':{'type':'any'}", "", 0},
    {"named", CLONE, FORM_CHAT,
        WITH(
            "'tool_choice':{'type':'function','function':{'name':'f'}},'tools':[" FUNCTION("") "]"),
        HI TOOLS ",'tool_choice':{'type':'tool','name':'f'}", "", 0},
    {"one at a time", CLONE, FORM_CHAT,
        WITH("'parallel_tool_calls':false,'tools':[" FUNCTION("") "]"),
        HI TOOLS ",'tool_choice':{'type':'auto','disable_parallel_tool_use':true}", "", 0},
    {"one at a time without tools", CLONE, FORM_CHAT, WITH("'parallel_tool_calls':false"), HI, "",
        0},
    {"who thinks cannot be forced", BUDGET, FORM_CHAT,
        WITH("'reasoning_effort':'low','tool_choice':'required','tools':[" FUNCTION("") "]"),
        HI TOOLS
        ",'tool_choice':{'type':'auto'},'thinking':{'type':'enabled','budget_tokens':1024}",
        "tool_choice", 0},
    {"allowed tools", CLONE, FORM_CHAT,
        WITH("'tool_choice':{'type':'allowed_tools','allowed_tools':{'mode':'required','tools':[{"
             "'type':'function','function':{'name':'f'}}]}},'tools':[" FUNCTION(
                 "") ",{'type':"
                     "'function','function':{'name':'g'}}]"),
        HI TOOLS ",'tool_choice':{'type':'any'}", "", 0},

    /* its own wire */
    {"everything of its own", CLONE, FORM_MESSAGES,
        "{'container':'c','stop_sequences':['x'],'top_k':5,'tools':[{'type':'bash_20250124',"
        "'name':'bash'}],'messages':[{'role':'user','content':'q'},{'role':'assistant','content':["
        "{'type':'thinking','thinking':'h','signature':'S'},{'type':'redacted_thinking','data':"
        "'D'},{'type':'server_tool_use','x':1}]},{'role':'user','content':'r'}]}",
        OUT(Q("user", TEXT("q")) "," Q("assistant",
            "{'type':'thinking','thinking':'h','signature':'S'},{'type':'redacted_thinking','data':"
            "'D'},{'type':'server_tool_use','x':1}") "," Q("user",
            TEXT(
                "r"))) ",'tools':[{'type':'bash_20250124','name':'bash'}],'top_k':5,'stop_sequences':['x'],"
                       "'container':'c'",
        "", 0},
};

static enum err
write_row(struct arena *arena, const struct row *row, struct buf *out, struct buf *dropped,
    struct why *why)
{
	form_read_fn *read = row->from == FORM_MESSAGES ? form_read_messages : form_read_chat;
	struct form_target target = {.wire = FORM_MESSAGES,
	    .model = text_span(row->model),
	    .channel = CHANNEL,
	    .provider = "anthropic",
	    .max_output = row->cap > 0 ? row->cap : -1};
	struct form_loss loss = {NULL};
	struct form form;
	enum err err = read(arena, quotes(arena, row->body), &form, why);

	if (err == ERR_OK)
		err = form_check(&form, why);
	if (err == ERR_OK)
		err = form_write_messages(arena, &form, &target, out, &loss, why);
	for (size_t i = 0; i < loss.ndropped; i++) {
		if (i > 0)
			buf_char(dropped, ' ');
		buf_span(dropped, loss.dropped[i]);
	}
	return err;
}

/* Calls or results, and no tools beside them: one is put behind the messages. */
static struct span
with_tool(struct arena *arena, const char *want)
{
	const char *behind = strstr(want, ",'thinking':");

	if ((strstr(want, "'tool_use'") == NULL && strstr(want, "'tool_result'") == NULL) ||
	    strstr(want, "'tools':") != NULL)
		return text_span(want);
	if (behind == NULL)
		behind = want + strlen(want);
	return text_span(
	    arena_print(arena, "%.*s" NO_TOOL "%s", (int)(behind - want), want, behind));
}

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct arena *arena = arena_new(1 << 22);
		struct buf *out = arena_buf(arena, 1 << 20), *dropped = arena_buf(arena, 4096);
		struct why why = {""};
		struct span want;

		if (write_row(arena, &rows[i], out, dropped, &why) != ERR_OK)
			fail_msg("%s: refused: %s", rows[i].what, why.text);
		if (scan_pick(buf_text(out), NULL, NULL, 0, &why) != ERR_OK)
			fail_msg("%s: not JSON: %s: %s", rows[i].what, why.text, out->p);
		want = with_tool(arena, rows[i].want);
		want = quotes(arena,
		    arena_print(arena, "{'model':'%s',%.*s}", rows[i].model, (int)want.n, want.p));
		if (!text_equal(buf_text(out), want))
			fail_msg("%s:\ngot  %s\nwant %s", rows[i].what, out->p, want.p);
		if (!text_is(buf_text(dropped), rows[i].dropped))
			fail_msg("%s: dropped '%.*s', want '%s'", rows[i].what, (int)dropped->n,
			    dropped->n > 0 ? dropped->p : "", rows[i].dropped);
		arena_free(&arena);
	}
}

static const struct {
	const char *what;
	enum form_wire from;
	const char *body, *says;
} refused[] = {
    {"n (CONV-07)", FORM_CHAT, WITH("'n':2"), "'n' is not possible"},
    {"sound out", FORM_CHAT, WITH("'modalities':['text','audio']"), "'modalities' is not"},
    {"sound in", FORM_CHAT,
        ASK(USER("[{'type':'input_audio','input_audio':{'data':'AAAA','format':'wav'}}]")),
        "'messages[0].content[0].input_audio' is sound"},
    {"a file by its id", FORM_CHAT,
        ASK(USER("'q'") "," USER("[{'type':'file','file':{'file_id':'file-1'}}]")),
        "'messages[1].content[0].file' refers to a file"},
    {"a document that is neither", FORM_CHAT,
        ASK(USER("[{'type':'file','file':{'filename':'x.doc','file_data':'data:application/msword;"
                 "base64,AAAA'}}]")),
        "'messages[0].content[0].file' is a document"},
    {"a tool that is not there", FORM_CHAT,
        WITH(
            "'tool_choice':{'type':'function','function':{'name':'g'}},'tools':[" FUNCTION("") "]"),
        "'tool_choice' names a tool"},
};

static void
test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(refused); i++) {
		struct row row = {.model = CLONE, .from = refused[i].from, .body = refused[i].body};
		struct arena *arena = arena_new(1 << 22);
		struct buf *out = arena_buf(arena, 1 << 20), *dropped = arena_buf(arena, 4096);
		struct why why = {""};

		if (write_row(arena, &row, out, dropped, &why) != ERR_BAD_INPUT ||
		    strstr(why.text, refused[i].says) == NULL)
			fail_msg(
			    "%s: got '%s', want '%s'", refused[i].what, why.text, refused[i].says);
		arena_free(&arena);
	}
}

/* A seal of this channel comes back as what its maker gave; that of another one goes, whole. */
static void
test_seals(void **state)
{
	static const struct {
		const char *what, *channel, *want;
		enum form_wire wire;
	} seals[] = {
	    {"its own", "an",
	        Q("user", TEXT("q")) "," Q("assistant",
	            "{'type':'thinking','thinking':'h','signature':'SIG'}") "," Q("user",
	            TEXT("r")),
	        FORM_MESSAGES},
	    {"another channel's", "an2", Q("user", TEXT("q") "," TEXT("r")), FORM_MESSAGES},
	    {"another wire's", "an", Q("user", TEXT("q") "," TEXT("r")), FORM_RESPONSES},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(seals); i++) {
		struct arena *arena = arena_new(1 << 22);
		struct buf *out = arena_buf(arena, 1 << 20), *dropped = arena_buf(arena, 4096);
		struct why why = {""};
		struct span seal =
		    seal_make(arena, seals[i].wire, text_span(seals[i].channel), SPAN("SIG"));
		const char *body = arena_print(arena,
		    ASK(USER("'q'") ",{'role':'assistant','content':[{'type':'thinking','thinking'"
		                    ":'h','signature':'%.*s'}]}," USER("'r'")),
		    (int)seal.n, seal.p);
		struct row row = {.model = CLONE, .from = FORM_MESSAGES, .body = body};
		struct span want = quotes(arena, seals[i].want);

		assert_int_equal(write_row(arena, &row, out, dropped, &why), ERR_OK);
		if (text_find(buf_text(out), want) == out->n)
			fail_msg("%s: got %s, want %s", seals[i].what, out->p, want.p);
		assert_true(text_is(buf_text(dropped), i == 0 ? "" : "messages.thinking"));
		arena_free(&arena);
	}
}

static void
test_large_image(void **state)
{
	struct arena *arena = arena_new(1 << 28);
	struct buf *body = arena_buf(arena, 1 << 26), *out = arena_buf(arena, 1 << 26);
	struct buf *dropped = arena_buf(arena, 4096);
	struct row row = {.model = CLONE, .from = FORM_CHAT};
	struct why why = {""};

	(void)state;
	buf_z(body, "{'messages':[{'role':'user','content':[{'type':'image_url','image_url':{'url':"
	            "'data:image/png;base64,");
	for (int i = 0; i < 1800000; i++)
		buf_z(body, "AAAA");
	buf_z(body, "'}}]}]}");
	row.body = body->p;
	assert_int_equal(write_row(arena, &row, out, dropped, &why), ERR_BAD_INPUT);
	assert_non_null(
	    strstr(why.text, "'messages[0].content[0].image_url' is an image of more than 5 MB"));
	arena_free(&arena);
}

static void
test_names(void **state)
{
	static const struct {
		const char *name, *pattern;
	} names[] = {
	    {"claude-opus-4-20250514", "*claude-opus-4*"},
	    {"claude-opus-4-1-20250805", "*claude-opus-4-1*"},
	    {"anthropic/claude-opus-4.7", "*claude-opus-4-7*"},
	    {"Claude-Sonnet-4-5", "*claude-sonnet-4-5*"},
	    {"claude-3-7-sonnet-latest", "*claude-3-7-*"},
	    {"claude-3-opus-20240229", "*claude-3-*"},
	    {"claude-sonnet-5", "*claude-*"},
	    {"claude-sonnet-5-5", "*claude-sonnet-5-5*"},
	    {"deepseek-chat", "*"},
	    {"", "*"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(names); i++)
		assert_string_equal(
		    messages_model_of(text_span(names[i].name))->pattern, names[i].pattern);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_seals),
	    cmocka_unit_test(test_large_image),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
