#include "dialect/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"
#include "lib/quotes.h"

#define ASK(list) "{'model':'m','max_tokens':9,'messages':[" list "]}"
#define WITH(more) "{'messages':[{'role':'user','content':'q'}]," more "}"
#define USER(content) "{'role':'user','content':" content "}"
#define MODEL(content) "{'role':'assistant','content':" content "}"
#define CALL(id) "{'type':'tool_use','id':'" id "','name':'f','input':{'a':1}}"
#define RESULT(id, more) "{'type':'tool_result','tool_use_id':'" id "'" more "}"
#define TEXT(text) "{'type':'text','text':'" text "'}"

/* Every form wants usage, and of these, "max" is 9. */
static const struct {
	const char *what, *body, *want;
} good[] = {
    {"a text", ASK(USER("'hi'")), "user@0[text =hi ];max=9 usage=true"},
    {"escapes", ASK(USER("'a\\n\\u00e9\\ud83d\\ude00\\ud83d'")),
        "user@0[text =a\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd ];max=9 usage=true"},
    {"system text (CONV-02)", WITH("'system':'S'"),
        "system@-1[text =S ];user@0[text =q ];usage=true"},
    {"system blocks",
        WITH("'system':[{'type':'text','text':'S','cache_control':{'type':'e'}},"
             "{'type':'text','text':''}]"),
        "system@-1[text =S cache={'type':'e'} ];user@0[text =q ];usage=true"},
    {"system empty, null", WITH("'system':'','tools':null,'metadata':null"),
        "user@0[text =q ];usage=true"},
    {"an attribution line",
        WITH("'system':[{'type':'text','text':'x-anthropic-billing-header: 1'}"
             ",{'type':'text','text':'S'}]"),
        "system@-1[text =S ];user@0[text =q ];usage=true "
        "+system.x-anthropic-billing-header=true"},
    {"system in the middle (CONV-01)",
        ASK(USER("'a'") "," MODEL("'b'") ",{'role':'system','content':'s'}," USER("'c'")),
        "user@0[text =a ];assistant@1[text =b ];system@2[text =s ];user@3[text =c ];max=9 "
        "usage=true"},
    {"same role twice stays (CONV-03)", ASK(USER("'a'") "," USER("'b'") "," MODEL("'c'")),
        "user@0[text =a ];user@1[text =b ];assistant@2[text =c ];max=9 usage=true"},
    {"empty texts", ASK(USER("[" TEXT("") "," TEXT("a") "]") "," MODEL("''")),
        "user@0[text =a ];max=9 usage=true"},

    {"images",
        ASK(USER("[{'type':'image','source':{'type':'base64','media_type':'image/JPG;x=y',"
                 "'data':'AAAA'}},{'type':'image','source':{'type':'url','url':'http://x'}}"
                 ",{'type':'image','source':{'type':'file','file_id':'file_1'}}]")),
        "user@0[image data=AAAA type=image/jpeg ][image url=http://x ][image file=file_1 ];max=9 "
        "usage=true"},
    {"documents",
        ASK(USER(
            "[{'type':'document','title':'T','source':{'type':'base64','media_type':"
            "'application/pdf','data':'AAAA'}},{'type':'document','source':{'type':'text',"
            "'media_type':'text/plain','data':'D'}},{'type':'document','source':{'type':"
            "'content','content':[" TEXT("a") "," TEXT(
                "b") "]}},"
                     "{'type':'search_result','source':'http://s','title':'R','content':[" TEXT(
                         "c") "]}]")),
        "user@0[document data=AAAA type=application/pdf title=T ][document plain=D "
        "type=text/plain ][document plain=a\nb type=text/plain ][document plain=http://s\n\nc "
        "type=text/plain title=R ];max=9 usage=true"},

    {"a call and its result (TOOL-09)",
        ASK(MODEL("[" TEXT("t") "," CALL("toolu_1") "]") "," USER(
            "[" RESULT("toolu_1", ",'content':'r'") "]")),
        "assistant@0[text =t ][call id=toolu_1 name=f args={'a':1} ];tool@1[result of=toolu_1 "
        "[text =r ]];max=9 usage=true"},
    {"results first",
        ASK(MODEL("[" CALL("a") "," CALL("b") "]") "," USER(
            "[" TEXT("x") "," RESULT("b", "") "," TEXT("y") "," RESULT("a", ",'content':''") "]")),
        "assistant@0[call id=a name=f args={'a':1} ][call id=b name=f args={'a':1} ];"
        "tool@1[result of=b ][result of=a ];user@1[text =x ][text =y ];max=9 usage=true"},
    {"contents of results (TOOL-10)",
        ASK(MODEL("[" CALL("a") "]") "," USER("[" RESULT("a",
            ",'is_error':true,'content':[" TEXT(
                "x") ",{'type':'image','source':{'type':'base64','media_type':'image/png',"
                     "'data':'AAAA'}},{'type':'tool_reference','tool_name':'g'}]") "]")),
        "assistant@0[call id=a name=f args={'a':1} ];tool@1[result of=a error [text =x ][image "
        "data=AAAA type=image/png ][text ={'type':'tool_reference','tool_name':'g'} ]];max=9 "
        "usage=true"},
    {"results in two messages",
        ASK(MODEL("[" CALL("a") "]") "," MODEL("[" CALL("b") "]") "," USER(
            "[" RESULT("a", "") "]") "," USER("[" RESULT("b", "") "]")),
        "assistant@0[call id=a name=f args={'a':1} ][call id=b name=f args={'a':1} ];"
        "tool@2[result of=a ][result of=b ];max=9 usage=true"},
    {"digits and order of an input (TOOL-19)",
        ASK(MODEL("[{'type':'tool_use','id':'a','name':'f','input':{'z':18446744073709551616, "
                  "'f':1.10,'a\\/b':'\\u00e9'}}]")),
        "assistant@0[call id=a name=f args={'z':18446744073709551616, 'f':1.10,'a\\/b':"
        "'\\u00e9'} ];max=9 usage=true"},
    {"no input", ASK(MODEL("[{'type':'tool_use','id':'a','name':'f'}]")),
        "assistant@0[call id=a name=f args={} ];max=9 usage=true"},
    {"thoughts (CONV-09)",
        ASK(MODEL("[{'type':'thinking','thinking':'h','signature':'S='},{'type':'thinking',"
                  "'thinking':'i','signature':''},{'type':'redacted_thinking','data':'D'}]")),
        "assistant@0[thought =h seal=S= ][thought =i ][thought seal=D redacted ];max=9 "
        "usage=true"},
    {"the host's own tools",
        ASK(MODEL("[{'type':'server_tool_use','id':'s','name':'w','input':{}"
                  "},{'type':'web_search_tool_result','content':[1]}]")),
        "assistant@0[opaque ={'type':'server_tool_use','id':'s','name':'w','input':{}} ][opaque "
        "={'type':'web_search_tool_result','content':[1]} ];max=9 usage=true"},
    {"what has no place is named once",
        ASK(MODEL("[{'type':'text','text':'a','x':1},{'type':"
                  "'text','text':'b','x':2,'citations':[{}]}]")),
        "assistant@0[text =a ][text =b ];max=9 usage=true +messages.x=1 +messages.citations="
        "[{}]"},

    {"numbers as they stand",
        WITH("'max_tokens':1e3,'temperature':0.70,'top_p':1.0,'top_k':5,'stream':true"),
        "user@0[text =q ];max=1000 temperature=0.70 top_p=1.0 top_k=5 stream=true usage=true"},
    {"stops, user, tier",
        WITH("'stop_sequences':['a','\\n'],'metadata':{'user_id':'u','x':1},"
             "'service_tier':'auto'"),
        "user@0[text =q ];stop=a stop=\n user=u tier=auto usage=true +metadata.x=1"},
    {"thinking by budget", WITH("'thinking':{'type':'enabled','budget_tokens':2000}"),
        "user@0[text =q ];effort=auto budget=2000 usage=true"},
    {"thinking adaptive, effort",
        WITH("'thinking':{'type':'adaptive','display':'omitted'},"
             "'output_config':{'effort':'xhigh'}"),
        "user@0[text =q ];effort=xhigh usage=true +thinking.display='omitted'"},
    {"thinking off is stronger",
        WITH("'thinking':{'type':'disabled'},'output_config':{'effort':'high'}"),
        "user@0[text =q ];effort=none usage=true"},
    {"a shape", WITH("'output_config':{'format':{'type':'json_schema','schema':{'z':1}}}"),
        "user@0[text =q ];shape=schema schema={'z':1} schema_name=output schema_strict=true "
        "usage=true"},
    {"tools",
        WITH("'tools':[{'name':'f','description':'d','input_schema':{'type':'object'},"
             "'strict':true,'cache_control':{'type':'e'},'defer_loading':true},{'type':"
             "'custom','name':'g'},{'type':'bash_20250124','name':'bash'}]"),
        "user@0[text =q ];tool function name=f description=d schema={'type':'object'} cache={"
        "'type':'e'} strict ;tool function name=g ;tool hosted name=bash raw={'type':"
        "'bash_20250124','name':'bash'} hosted=bash_20250124 ;usage=true "
        "+tools.defer_loading=true"},
    {"choice any (TOOL-18)", WITH("'tool_choice':{'type':'any','disable_parallel_tool_use':true}"),
        "user@0[text =q ];choice=required parallel=false usage=true"},
    {"choice none", WITH("'tool_choice':{'type':'none'}"),
        "user@0[text =q ];choice=none usage=true"},
    {"choice named", WITH("'tool_choice':{'type':'tool','name':'f'}"),
        "user@0[text =q ];choice=named named=f usage=true"},
    {"extras", WITH("'container':'c','speed':'fast','x':null,'y':{'a':[1,2.50]}"),
        "user@0[text =q ];usage=true +container='c' +speed='fast' +y={'a':[1,2.50]}"},
};

static const struct {
	const char *what, *body, *says;
} bad[] = {
    {"no role", ASK("{'content':'x'}"), "'messages[0].role' must be a string"},
    {"another role", ASK(USER("'a'") ",{'role':'tool','content':'x'}"), "'messages[1].role' must"},
    {"no content", ASK("{'role':'user'}"), "'messages[0].content' is missing"},
    {"null content", ASK(USER("null")), "'messages[0].content' is missing"},
    {"content number", ASK(USER("1")), "'messages[0].content' must be a string or an array"},
    {"block string", ASK(USER("['x']")), "'messages[0].content[0]' must be a content block"},
    {"block without type", ASK(USER("[" TEXT("a") ",{}]")), "'messages[0].content[1].type' must"},
    {"unknown block", ASK(USER("[{'type':'hologram'}]")), "'messages[0].content[0].type' is no"},
    {"a call of the user", ASK(USER("[" CALL("a") "]")), "'messages[0].content[0].type' is no"},
    {"an image of the model", ASK(MODEL("[{'type':'image','source':{}}]")), "[0].type' is no"},
    {"text number", ASK(USER("[{'type':'text','text':1}]")), "content[0].text' must be a string"},
    {"no source", ASK(USER("[{'type':'image'}]")), "'messages[0].content[0].source' must be"},
    {"no media type", ASK(USER("[{'type':'image','source':{'type':'base64','data':'A'}}]")),
        "'messages[0].content[0].source.media_type' is missing"},
    {"no data",
        ASK(USER("[{'type':'image','source':{'type':'base64','media_type':'image/png',"
                 "'data':''}}]")),
        "source.data' must not be empty"},
    {"unknown source", ASK(USER("[{'type':'image','source':{'type':'text','data':'x'}}]")),
        "source.type' is no kind"},
    {"no call id", ASK(MODEL("[{'type':'tool_use','name':'f'}]")),
        "'messages[0].content[0].id' is missing"},
    {"input array (TOOL-07)", ASK(MODEL("[{'type':'tool_use','id':'a','name':'f','input':[1]}]")),
        "'messages[0].content[0].input' must be an object"},
    {"input string", ASK(MODEL("[{'type':'tool_use','id':'a','name':'f','input':'x'}]")),
        "input' must be an object"},
    {"no tool_use_id", ASK(USER("[{'type':'tool_result'}]")), "[0].tool_use_id' is missing"},
    {"is_error string", ASK(USER("[" RESULT("a", ",'is_error':'x'") "]")), "is_error' must be"},
    {"thinking in a result", ASK(USER("[" RESULT("a", ",'content':[{'type':'thinking'}]") "]")),
        "'messages[0].content[0].content[0].type' is no"},
    {"system number", WITH("'system':1"), "'system' must be"},
    {"system image", WITH("'system':[{'type':'image'}]"), "'system[0].type' is no"},
    {"temperature string", WITH("'temperature':'x'"), "'temperature' must be a number"},
    {"limit", WITH("'max_tokens':-1"), "'max_tokens' must be"},
    {"stops", WITH("'stop_sequences':['a',1]"), "'stop_sequences[1]' must be a string"},
    {"metadata", WITH("'metadata':{'user_id':1}"), "'metadata.user_id' must be a string"},
    {"thinking", WITH("'thinking':{'type':'x'}"), "'thinking.type' is no kind"},
    {"budget", WITH("'thinking':{'type':'enabled','budget_tokens':'x'}"),
        "'thinking.budget_tokens' must be"},
    {"effort", WITH("'output_config':{'effort':'x'}"), "'output_config.effort' must be"},
    {"format", WITH("'output_config':{'format':{'type':'x'}}"), "'output_config.format.type'"},
    {"tools", WITH("'tools':{}"), "'tools' must be an array"},
    {"a tool", WITH("'tools':[1]"), "'tools[0]' must be a tool object"},
    {"a tool without a name", WITH("'tools':[{'input_schema':{}}]"), "'tools[0].name' is missing"},
    {"schema", WITH("'tools':[{'name':'f','input_schema':[]}]"), "'tools[0].input_schema' must"},
    {"choice", WITH("'tool_choice':{'type':'x'}"), "'tool_choice.type' must be"},
    {"choice without a name", WITH("'tool_choice':{'type':'tool'}"), "'tool_choice.name' is"},
};

static void
test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(good); i++) {
		struct arena *arena = arena_new(1 << 20);
		struct span body = quotes(arena, good[i].body);
		struct why why = {""};
		struct form form;
		struct buf got;

		buf_init(&got, 1 << 16);
		assert_int_equal(scan_pick(body, NULL, NULL, 0, NULL), ERR_OK);
		if (form_read_messages(arena, body, &form, &why) != ERR_OK)
			fail_msg("%s: refused: %s", good[i].what, why.text);
		form_text(&got, &form);
		if (!text_equal(buf_text(&got), quotes(arena, good[i].want)))
			fail_msg("%s:\ngot  %.*s\nwant %s", good[i].what, (int)got.n, got.p,
			    quotes(arena, good[i].want).p);
		buf_release(&got);
		arena_free(&arena);
	}
}

static void
test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(bad); i++) {
		struct arena *arena = arena_new(1 << 20);
		struct span body = quotes(arena, bad[i].body);
		struct why why = {""};
		struct form form;

		assert_int_equal(scan_pick(body, NULL, NULL, 0, NULL), ERR_OK);
		if (form_read_messages(arena, body, &form, &why) != ERR_BAD_INPUT ||
		    strstr(why.text, bad[i].says) == NULL)
			fail_msg("%s: got '%s', want '%s'", bad[i].what, why.text, bad[i].says);
		arena_free(&arena);
	}
}

/* Two messages that leave nothing are refused by what looks at the whole. */
static void
test_empty(void **state)
{
	static const char *const bodies[] = {
	    ASK(USER("[]")), ASK(USER("''")), ASK(MODEL("'a'") "," USER("[" TEXT("") "]"))};

	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct arena *arena = arena_new(1 << 20);
		struct why why = {""};
		struct form form;

		assert_int_equal(
		    form_read_messages(arena, quotes(arena, bodies[i]), &form, &why), ERR_OK);
		assert_int_equal(form_check(&form, &why), ERR_BAD_INPUT);
		assert_non_null(strstr(why.text, "].content' is empty"));
		arena_free(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
