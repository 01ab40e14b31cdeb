#include "dialect/form_pack.h"

#include "dialect/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"
#include "lib/in_arena.h"
#include "lib/quotes.h"

#define PNG "iVBORw0KGgo="
#define OUT_BYTES ((size_t)1 << 24)

/* ---- through every reader and every writer ---- */

#define CHAT(messages) "{'model':'m','max_tokens':9,'messages':[" messages "]}"
#define USER "{'role':'user','content':'x'}"
#define INPUT(items) "{'model':'m','input':[" items "]}"

static const struct body {
	const char *what;
	enum form_wire wire;
	const char *text;
} bodies[] = {
    {"a word", FORM_CHAT, CHAT(USER)},
    {"roles, names, parts", FORM_CHAT,
        CHAT(
            "{'role':'system','content':'s'},{'role':'developer','content':[{'type':'text','text':'d'}]},"
            "{'role':'user','name':'joe','content':[{'type':'text','text':'look'},{'type':'image_url',"
            "'image_url':{'url':'data:image/png;base64," PNG
            "','detail':'low'}}]},{'role':'assistant',"
            "'name':'bot','content':'so','reasoning_content':'hm'},{'role':'assistant','content':null,"
            "'refusal':'no'}," USER)},
    {"calls of both kinds and results", FORM_CHAT,
        CHAT(USER
            ",{'role':'assistant','content':'so','reasoning_content':'hm','tool_calls':["
            "{'id':'c1','type':'function','function':{'name':'f','arguments':'{ \\'a\\' : 1.50e3 }'}},"
            "{'id':'c2','type':'custom','custom':{'name':'g','input':'free \\u0000 text'}},"
            "{'id':'c3','type':'function','function':{'name':'h','arguments':'{}'}}]},"
            "{'role':'tool','tool_call_id':'c1','content':[{'type':'text','text':'2'},{'type':'text',"
            "'text':'3'}]},{'role':'tool','tool_call_id':'c2','content':''},{'role':'tool',"
            "'tool_call_id':'c3','content':'Error: x'}," USER)},
    {"calls from before there were tools", FORM_CHAT,
        CHAT(USER ",{'role':'assistant','content':null,'function_call':{'name':'f','arguments':"
                  "'{\\'a\\':1}'}},{'role':'function','name':'f','content':'2'}," USER)},
    {"files and sound", FORM_CHAT,
        CHAT("{'role':'user','content':[{'type':'file','file':{'filename':'a.pdf','file_data':"
             "'data:application/pdf;base64," PNG "'}},{'type':'file','file':{'file_id':'file_1'}},"
             "{'type':'image_url','image_url':{'url':'https://h/a.png'}},{'type':'input_audio',"
             "'input_audio':{'data':'" PNG "','format':'wav'}}]}")},
    {"marks for caches, kept thoughts", FORM_CHAT,
        CHAT(
            "{'role':'system','content':[{'type':'text','text':'s','cache_control':{'type':'ephemeral'}}]},"
            "{'role':'user','content':[{'type':'text','text':'a','cache_control':{'type' : 'ephemeral',"
            "'ttl':'1h'}}]},{'role':'assistant','content':'b','reasoning_details':[{'type':"
            "'reasoning.text','text':'t','signature':'sig'},{'type':'reasoning.encrypted','data':"
            "'sl1.messages.aabbccddeeff.opaque'}]}," USER)},
    {"escapes, other scripts, halves of pairs", FORM_CHAT,
        CHAT(
            "{'role':'user','content':'\\u0001\\\\\\n\\u4f60\xe4\xbd\xa0\\ud83d\\ude00 \\ud83d.'}")},
    {"blocks", FORM_MESSAGES,
        "{'model':'m','max_tokens':9,'system':[{'type':'text','text':'s1','cache_control':{'type':"
        "'ephemeral'}},{'type':'text','text':'s2'}],'messages':[{'role':'user','content':[{'type':"
        "'image','source':{'type':'base64','media_type':'image/png','data':'" PNG
        "'}},{'type':'image',"
        "'source':{'type':'url','url':'https://h/b.png'}},{'type':'document','title':'t','source':{"
        "'type':'text','media_type':'text/plain','data':'plain'}},{'type':'document','source':{'type':"
        "'base64','media_type':'application/pdf','data':'" PNG "'}},{'type':'text','text':'x',"
        "'cache_control':{'type':'ephemeral','ttl':'5m'}}]}]}"},
    {"files of its own provider", FORM_MESSAGES,
        "{'model':'m','max_tokens':9,'messages':[{'role':'user','content':[{'type':'image','source':{"
        "'type':'file','file_id':'f1'}},{'type':'document','source':{'type':'file','file_id':'f2'}}]}]}"},
    {"thoughts, calls, results with pictures and errors", FORM_MESSAGES,
        "{'model':'m','max_tokens':9000,'thinking':{'type':'enabled','budget_tokens':2000},'messages':["
        "{'role':'user','content':'q'},{'role':'assistant','content':[{'type':'thinking','thinking':"
        "'hm','signature':'sig'},{'type':'redacted_thinking','data':'zz'},{'type':'text','text':'a'},"
        "{'type':'tool_use','id':'t1','name':'f','input':{'b':[1,{'c':2.0}]},'cache_control':{'type':"
        "'ephemeral'}},{'type':'tool_use','id':'t2','name':'g','input':{}}]},{'role':'user','content':["
        "{'type':'tool_result','tool_use_id':'t1','is_error':true,'content':[{'type':'text','text':"
        "'r','cache_control':{'type':'ephemeral'}},{'type':'image','source':{'type':'base64',"
        "'media_type':'image/png','data':'" PNG "'}}]},{'type':'tool_result','tool_use_id':'t2'},"
        "{'type':'text','text':'on'}]}]}"},
    {"tools of the server", FORM_MESSAGES,
        "{'model':'m','max_tokens':9,'messages':[{'role':'user','content':'q'},{'role':'assistant',"
        "'content':[{'type':'server_tool_use','id':'s1','name':'web_search','input':{'query':'x'}},"
        "{'type':'web_search_tool_result','tool_use_id':'s1','content':[{'type':'web_search_result',"
        "'url':'https://h','title':'t','encrypted_content':'e'}]},{'type':'text','text':'found'}]},"
        "{'role':'user','content':'more'}]}"},
    {"system in the middle", FORM_MESSAGES,
        "{'model':'m','max_tokens':9,'system':'s','messages':[{'role':'user','content':'q'},"
        "{'role':'system','content':'later'},{'role':'user','content':'r'}]}"},
    {"items", FORM_RESPONSES,
        "{'model':'m','instructions':'s','input':[{'role':'developer','content':'d'},{'type':'message',"
        "'role':'user','content':[{'type':'input_text','text':'x'},{'type':'input_image','image_url':"
        "'https://h/c.png','detail':'high'},{'type':'input_file','filename':'a.pdf','file_data':"
        "'data:application/pdf;base64," PNG "'},{'type':'input_file','file_id':'f'}]}]}"},
    {"reasoning, calls, outputs", FORM_RESPONSES,
        INPUT(USER
            ",{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text','text':'hm'}],"
            "'encrypted_content':'enc'},{'type':'function_call','id':'fc_1','call_id':'c1','name':"
            "'f','namespace':'n','arguments':'{\\'a\\':1}'},{'type':'custom_tool_call','id':'ct_1',"
            "'call_id':'c2','name':'g','input':'free'},{'type':'function_call_output','call_id':"
            "'c1','output':[{'type':'input_text','text':'r'},{'type':'input_image','image_url':"
            "'data:image/png;base64," PNG "'}]},{'type':'custom_tool_call_output','call_id':'c2',"
            "'output':'o'},{'type':'message','role':'assistant','id':'msg_1','content':[{'type':"
            "'output_text','text':'a','annotations':[]},{'type':'refusal','refusal':'no'}]}," USER)},
    {"items of hosted tools", FORM_RESPONSES,
        INPUT(USER ",{'type':'web_search_call','id':'ws_1','status':'completed','action':{'type':"
                   "'search','query':'x'}},{'role':'assistant','content':'a'}," USER)},
};

static struct span
write_body(const struct form *form, enum form_wire wire, enum err *err_out, struct form_loss *loss)
{
	static const char *const providers[] = {"openai", "anthropic", "openai"};
	static const char *const models[] = {"gpt-4o", "claude-sonnet-4-5", "gpt-5"};
	struct form_target target = {.wire = wire,
	    .model = text_span(models[wire]),
	    .channel = SPAN("c"),
	    .provider = providers[wire],
	    .max_output = -1};
	struct buf *out = arena_buf(arena, OUT_BYTES);
	struct why why;

	*loss = (struct form_loss){.names = NULL};
	*err_out = flow_wires[wire].write(arena, form, &target, out, loss, &why);
	return *err_out == ERR_OK ? buf_text(out) : SPAN("");
}

static struct form_turn *
through(const char *what, const struct form *form)
{
	struct form_turn *turns = arena_alloc(arena, (form->nturns + 1) * sizeof *turns);

	for (size_t i = 0; i < form->nturns; i++) {
		struct buf *text = arena_buf(arena, OUT_BYTES),
		           *again = arena_buf(arena, OUT_BYTES);
		struct why why = {""};

		form_pack(&form->turns[i], text);
		if (form_unpack(arena, buf_text(text), &turns[i], &why) != ERR_OK)
			fail_msg("%s: turn %zu: %s of %s", what, i, why.text, text->p);
		form_pack(&turns[i], again);
		assert_string_equal(text->p, again->p);
		if (turns[i].at != SIZE_MAX)
			turns[i].at = i;
	}
	return turns;
}

static void
check_writers(const struct body *body, const struct form *form, const struct form *packed)
{
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++) {
		struct form_loss loss, loss_packed;
		enum err err, err_packed;
		struct span want = write_body(form, (enum form_wire)wire, &err, &loss);
		struct span got =
		    write_body(packed, (enum form_wire)wire, &err_packed, &loss_packed);

		if (err != err_packed || !text_equal(want, got))
			fail_msg("%s, for wire %d: %d, want %d\n%.*s\n%.*s", body->what, wire,
			    err_packed, err, (int)got.n, got.p, (int)want.n, want.p);
		if (loss.nnames != loss_packed.nnames || loss.ndropped != loss_packed.ndropped)
			fail_msg("%s, for wire %d: something else is lost", body->what, wire);
	}
}

static void
test_lossless(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct span text = quotes(arena, bodies[i].text);
		struct why why = {""};
		struct form form, packed;

		if (flow_wires[bodies[i].wire].read(arena, text, &form, &why) != ERR_OK ||
		    form_check(&form, &why) != ERR_OK)
			fail_msg("%s: %s", bodies[i].what, why.text);
		packed = form;
		packed.turns = through(bodies[i].what, &form);
		check_writers(&bodies[i], &form, &packed);
	}
}

/* ---- every member ---- */

#define SAME(field) assert_true(text_equal(a->field, b->field))

static void
same_part(const struct form_part *a, const struct form_part *b)
{
	assert_int_equal(a->kind, b->kind);
	SAME(text), SAME(cache_control);
	SAME(media.url), SAME(media.data), SAME(media.plain), SAME(media.media_type);
	SAME(media.file_id), SAME(media.title), SAME(media.detail);
	SAME(thought.seal), SAME(thought.id);
	SAME(call.id), SAME(call.name), SAME(call.arguments), SAME(call.item_id),
	    SAME(call.namespace);
	SAME(result.id), SAME(result.name);
	assert_int_equal(a->thought.redacted, b->thought.redacted);
	assert_int_equal(a->call.custom, b->call.custom);
	assert_int_equal(a->result.is_error, b->result.is_error);
	assert_int_equal(a->result.custom, b->result.custom);
	assert_int_equal(a->result.nparts, b->result.nparts);
	for (size_t i = 0; i < a->result.nparts; i++)
		same_part(&a->result.parts[i], &b->result.parts[i]);
}

static void
test_every_member(void **state)
{
	struct form_part inner = {.kind = FORM_OPAQUE, .text = SPAN("[1,{}]")};
	struct form_part part = {.text = SPAN("{\"t\":1}"),
	    .cache_control = SPAN("{\"x\":  1}"),
	    .media = {SPAN("m1"), SPAN("m2"), SPAN("m3"), SPAN("m4"), SPAN("m5"), SPAN("m6"),
	        SPAN("m7")},
	    .thought = {.seal = SPAN("s"), .redacted = true, .id = SPAN("ti")},
	    .call = {.id = SPAN("ci"),
	        .name = SPAN("cn"),
	        .arguments = SPAN("{\"a\":1.0}"),
	        .custom = true,
	        .item_id = SPAN("ii"),
	        .namespace = SPAN("ns")},
	    .result = {.id = SPAN("ri"), .name = SPAN("rn"), .is_error = true, .custom = true}};

	(void)state;
	for (unsigned kind = 0; kind <= FORM_OPAQUE; kind++) {
		struct form_turn turn = {FORM_TOOL, 3, SPAN("n"), &part, 1}, back;
		struct buf *text = arena_buf(arena, OUT_BYTES);
		struct why why = {""};

		part.kind = (enum form_kind)kind;
		part.result.parts = kind == FORM_RESULT ? &inner : NULL;
		part.result.nparts = kind == FORM_RESULT;
		form_pack(&turn, text);
		if (form_unpack(arena, buf_text(text), &back, &why) != ERR_OK)
			fail_msg("%s: %s", text->p, why.text);
		assert_true(back.role == FORM_TOOL && back.at == 0 && back.nparts == 1);
		assert_true(text_is(back.name, "n"));
		same_part(&part, back.parts);
	}
}

/* ---- texts of others ---- */

#define PART(part) "{'role':'user','parts':[" part "]}"

static const struct {
	const char *what, *text, *why; /* NULL: it is taken */
} texts[] = {
    {"no parts", "{'role':'assistant','parts':[]}", NULL},
    {"blanks", " { 'role' : 'user' , 'parts' : [ { 'text' : 'x' , 'kind' : 'text' } ] } ", NULL},
    {"escaped names", "{'r\\u006fle':'us\\u0065r','parts':[{'k\\u0069nd':'t\\u0065xt'}]}", NULL},
    {"more members of a later version", "{'role':'user','parts':[],'seen':1}", NULL},
    {"nothing", "", "empty"},
    {"cut", "{'role':'user','parts':[{'kind':'te", ""},
    {"behind", "{'role':'user','parts':[]}x", ""},
    {"a list", "[]", "'role'"},
    {"no role", "{'parts':[]}", "'role'"},
    {"unknown role", "{'role':'usr','parts':[]}", "'role'"},
    {"role of another type", "{'role':['user'],'parts':[]}", "'role'"},
    {"role twice", "{'role':'user','role':'tool','parts':[]}", ""},
    {"apart", "{'role':'user','apart':1,'parts':[]}", "'apart'"},
    {"name", "{'role':'user','name':{},'parts':[]}", "'name'"},
    {"parts missing", "{'role':'user'}", "'parts'"},
    {"parts of another type", "{'role':'user','parts':{}}", "'parts'"},
    {"parts null", "{'role':'user','parts':null}", "'parts'"},
    {"a part that is a text", PART("'x'"), "'parts[0].' is no object"},
    {"a part that is a list", PART("['kind','text']"), "'parts[0].' is no object"},
    {"a part that is null", PART("{'kind':'text'},null"), "'parts[1].'"},
    {"no kind", PART("{'text':'x'}"), "'parts[0].kind' is missing"},
    {"unknown kind", PART("{'kind':'video'}"), "'parts[0].kind'"},
    {"kind of another type", PART("{'kind':1}"), "'parts[0].kind'"},
    {"unknown member", PART("{'kind':'text','txt\\n':'x'}"), "'parts[0].txt"},
    {"text of another type", PART("{'kind':'text','text':1}"), "'parts[0].text' is no text"},
    {"text null", PART("{'kind':'text','text':null}"), "'parts[0].text' is no text"},
    {"text twice", PART("{'kind':'text','text':'a','text':'b'}"), "'parts[0].text' stands"},
    {"flag", PART("{'kind':'call','arguments':'{}','custom':'true'}"), "'parts[0].custom'"},
    {"flag false", PART("{'kind':'result','is_error':false}"), "'parts[0].is_error'"},
    {"mark for caches", PART("{'kind':'text','cache_control':'{'}"), "'parts[0].cache_control'"},
    {"arguments missing", PART("{'kind':'call','call_id':'c'}"), "'parts[0].arguments'"},
    {"arguments a list", PART("{'kind':'call','arguments':'[]'}"), "'parts[0].arguments'"},
    {"arguments cut", PART("{'kind':'call','arguments':'{\\'a\\':'}"), "'parts[0].arguments'"},
    {"free text is free", PART("{'kind':'call','arguments':'{\\'a\\':','custom':true}"), NULL},
    {"opaque", PART("{'kind':'opaque','text':'{},{}'}"), "'parts[0].text' holds no JSON"},
    {"opaque and empty", PART("{'kind':'opaque'}"), "'parts[0].text' holds no JSON"},
    {"inside of a text", PART("{'kind':'text','parts':[{'kind':'text'}]}"), "'parts[0].parts'"},
    {"inside is no list", PART("{'kind':'result','parts':{}}"), "'parts[0].parts'"},
    {"inside is no object", PART("{'kind':'result','parts':[1]}"), "'parts[0].parts[0].'"},
    {"a result in a result", PART("{'kind':'result','parts':[{'kind':'result'}]}"),
        "'parts[0].parts[0].kind'"},
    {"a call in a result", PART("{'kind':'result','parts':[{'kind':'call','arguments':'{}'}]}"),
        "'parts[0].parts[0].kind'"},
    {"deep inside", PART("{'kind':'result','parts':[{'kind':'text','parts':[{'kind':'text'}]}]}"),
        "'parts[0].parts[0].parts'"},
};

static void
test_hostile(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(texts); i++) {
		struct span text = quotes(arena, texts[i].text);
		struct form_turn turn = {.nparts = 77};
		struct why why = {""};
		enum err err = form_unpack(arena, text, &turn, &why);

		if (texts[i].why == NULL
		        ? err != ERR_OK
		        : err != ERR_BAD_INPUT || strstr(why.text, texts[i].why) == NULL)
			fail_msg("%s: %d, '%s'", texts[i].what, err, why.text);
		if (err != ERR_OK && turn.nparts != 77)
			fail_msg("%s: refused, but changed", texts[i].what);
	}
}

/* Bytes of a packed turn changed one by one: taken or refused, and what is taken packs. */
static void
test_spoiled(void **state)
{
	static const char with[] = "\"{}[],:\\x0 \xff\n";
	struct span text = quotes(arena,
	    PART("{'kind':'result','result_of':'c','parts':[{'kind':'text','text':'a\\u4f60'}]},"
	         "{'kind':'call','call_id':'c','arguments':'{}'}"));

	(void)state;
	for (size_t i = 0; i < text.n; i++)
		for (size_t k = 0; k < sizeof with; k++) {
			struct arena *own = arena_new((size_t)1 << 24);
			char *copy = arena_z(own, text);
			struct form_turn turn;

			copy[i] = with[k];
			if (form_unpack(own, (struct span){copy, text.n}, &turn, NULL) == ERR_OK)
				form_pack(&turn, arena_buf(own, OUT_BYTES));
			arena_free(&own);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_lossless, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_every_member, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_hostile, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_spoiled, in_arena_begin, in_arena_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
