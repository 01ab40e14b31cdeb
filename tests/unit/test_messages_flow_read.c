#include "dialect/flow.h"

#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/quotes.h"
#include "lib/sample.h"
#include "lib/steps.h"

#define START "{'type':'message_start','message':{'id':'msg_1','model':'m','content':[]}}\n"
#define BLOCK(i, block) "{'type':'content_block_start','index':" i ",'content_block':{" block "}}\n"
#define DELTA(i, delta) "{'type':'content_block_delta','index':" i ",'delta':{" delta "}}\n"
#define STOP(i) "{'type':'content_block_stop','index':" i "}\n"
#define END(reason) \
	"{'type':'message_delta','delta':{'stop_reason':" reason "}}\n{'type':'message_stop'}\n"
#define TEXT "'type':'text','text':''"
#define TOOL(id) "'type':'tool_use','id':'" id "','name':'f','input':{}"
#define SAY(text) "'type':'text_delta','text':'" text "'"
#define ARGS(json) "'type':'input_json_delta','partial_json':'" json "'"
#define THINK "'type':'thinking','thinking':'','signature':''"

#define HEAD "start msg_1 m\n"

/* SEAL stands for the head of the seals of channel "an". */
static const struct {
	const char *what, *events, *want;
} cases[] = {
    {"a text",
        START BLOCK("0", TEXT) DELTA("0", SAY("Hi\\n")) DELTA("0", SAY("")) STOP("0")
            END("'end_turn'"),
        HEAD "text Hi\\n\nbreak\nfinish stop \nend\n"},
    {"indexes with gaps (TOOL-03)",
        START BLOCK("0", TEXT) DELTA("0", SAY("t")) STOP("0") BLOCK("1", TOOL("a"))
            DELTA("1", ARGS("")) DELTA("1", ARGS("{")) DELTA("1", ARGS("}")) STOP("1")
                BLOCK("3", TOOL("b")) STOP("3") END("'tool_use'"),
        HEAD "text t\nbreak\ncall 0 a f\nargs 0 {\nargs 0 }\ncallend 0\ncall 1 b f\nargs 1 {}\n"
             "callend 1\nfinish calls \nend\n"},
    {"calls that interleave",
        START BLOCK("0", TOOL("a")) BLOCK("1", TOOL("b")) DELTA("0", ARGS("1"))
            DELTA("1", ARGS("2")) DELTA("0", ARGS("3")) STOP("1") STOP("0") END("'tool_use'"),
        HEAD "call 0 a f\ncall 1 b f\nargs 0 1\nargs 1 2\nargs 0 3\ncallend 1\ncallend 0\n"
             "finish calls \nend\n"},
    {"blocks that nobody counts or ends",
        START "{'type':'content_block_start','content_block':{" TEXT "}}\n"
              "{'type':'content_block_delta','delta':{" SAY(
                  "t") "}}\n"
                       "{'type':'content_block_start','content_block':{" TOOL(
                           "a") "}}\n"
                                "{'type':'content_block_delta','delta':{" ARGS("{}") "}}\n" END(
                                    "'tool_use'"),
        HEAD "text t\nbreak\ncall 0 a f\nargs 0 {}\ncallend 0\nfinish calls \nend\n"},
    {"blocks that nobody began", START DELTA("0", SAY("t")) DELTA("4", ARGS("{}")) END("'x'"),
        HEAD "text t\nbreak\nfinish stop \nend\n"},
    {"an index beyond all",
        START BLOCK("99999999999", TEXT) DELTA("-1", SAY("t")) DELTA("'x'", SAY("u"))
            END("'end_turn'"),
        HEAD "text t\ntext u\nbreak\nfinish stop \nend\n"},
    {"an input that is there at once",
        START BLOCK("0", "'type':'tool_use','id':'a','name':'f','input':{'u':18446744073709551616}")
            DELTA("0", ARGS("{}")) STOP("0") END("'tool_use'"),
        HEAD "call 0 a f\nargs 0 {'u':18446744073709551616}\ncallend 0\nfinish calls \nend\n"},
    {"a call without id",
        START BLOCK("0", "'type':'tool_use','name':'f'") STOP("0")
            BLOCK("1", "'type':'tool_use','id':'','name':'f'") STOP("1") END("'tool_use'"),
        HEAD "call 0 toolu_711b1802c8b71bec9f810724 f\nargs 0 {}\ncallend 0\n"
             "call 1 toolu_4c764ec07edccfb51e98074e f\nargs 1 {}\ncallend 1\nfinish calls \nend\n"},
    {"a call without name",
        START BLOCK("0", "'type':'tool_use','id':'a'") DELTA("0", ARGS("{}")) STOP("0")
            END("'end_turn'"),
        HEAD "finish stop \nend\n"},
    {"a call that was cut (TOOL-16)",
        START BLOCK("0", TOOL("a")) DELTA("0", ARGS("{")) END("'max_tokens'"),
        HEAD "call 0 a f\nargs 0 {\ncallend 0\nfinish length \nend\n"},
    {"thinking (CONV-10)",
        START BLOCK("0", THINK) DELTA("0", "'type':'thinking_delta','thinking':'h'")
            DELTA("0", "'type':'signature_delta','signature':'SIG'") STOP("0") BLOCK("1", TEXT)
                DELTA("1", SAY("t")) STOP("1") END("'end_turn'"),
        HEAD "thought h\nseal SEALSIG\ntext t\nbreak\nfinish stop \nend\n"},
    {"thinking without signature",
        START BLOCK("0", THINK) DELTA("0", "'type':'thinking_delta','thinking':'h'") STOP("0")
            END("'end_turn'"),
        HEAD "thought h\nbreak\nfinish stop \nend\n"},
    {"only a signature, in the start",
        START BLOCK("0", "'type':'thinking','thinking':'','signature':'SIG'") STOP("0")
            END("'end_turn'"),
        HEAD "seal SEALSIG\nfinish stop \nend\n"},
    {"redacted thinking",
        START BLOCK("0", "'type':'redacted_thinking','data':'D'") STOP("0") END("'end_turn'"),
        HEAD "redacted SEALD\nfinish stop \nend\n"},
    {"the host's own tools",
        START BLOCK("0", "'type':'server_tool_use','id':'s','name':'web_search','input':{}")
            DELTA("0", ARGS("{}")) STOP("0") BLOCK("1", "'type':'web_search_tool_result'") STOP("1")
                BLOCK("2", "'type':'compaction','content':null") DELTA(
                    "2", "'type':'compaction_delta','content':'x'") STOP("2") END("'pause_turn'"),
        HEAD "finish paused \nend\n"},
    {"citations",
        START BLOCK("0", "'type':'text','text':'\\u00e9 '") STOP("0") BLOCK("1", TEXT)
            DELTA("1", "'type':'citations_delta','citation':{'url':'u','title':'t','x':1}")
                DELTA("1", "'type':'citations_delta','citation':{'document_index':1}")
                    DELTA("1", SAY("abc")) STOP("1") END("'end_turn'"),
        HEAD "text \xc3\xa9 \nbreak\ntext abc\ncite {'url':'u','title':'t','start_index':2,"
             "'end_index':5}\nbreak\nfinish stop \nend\n"},
    {"a stop sequence",
        START "{'type':'message_delta','delta':{'stop_reason':'stop_sequence','stop_sequence':'X'}}"
              "\n{'type':'message_stop'}\n",
        HEAD "finish stop_text X\nend\n"},
    {"other reasons (CONV-16)", START END("'model_context_window_exceeded'"),
        HEAD "finish length \nend\n"},
    {"refusal", START END("'refusal'"), HEAD "finish filtered \nend\n"},
    {"sensitive", START END("'sensitive'"), HEAD "finish filtered \nend\n"},
    {"no reason", START END("null"), HEAD "finish stop \nend\n"},
    {"usage, member by member",
        "{'type':'message_start','message':{'id':'msg_1','model':'m','usage':{'input_tokens':10,"
        "'cache_read_input_tokens':3,'cache_creation_input_tokens':2,'output_tokens':1}}}\n"
        "{'type':'message_delta','delta':{'stop_reason':'end_turn'},'usage':{'input_tokens':null,"
        "'output_tokens':7,'output_tokens_details':{'thinking_tokens':4}}}\n"
        "{'type':'message_delta','delta':{},'usage':{'input_tokens':20,'output_tokens':8}}\n"
        "{'type':'message_stop'}\n",
        HEAD "finish stop \nusage 15 7 3 2 4\nusage 25 8 3 2 4\nend\n"},
    {"no beginning", BLOCK("0", TEXT) DELTA("0", SAY("t")) STOP("0") END("'end_turn'"),
        "start  \ntext t\nbreak\nfinish stop \nend\n"},
    {"nothing behind the end (SSE-15)",
        START END("'end_turn'") "[DONE]\nDONE\n" DELTA("0", SAY("t")) START,
        HEAD "finish stop \nend\n"},
    {"nothing behind the reason",
        START "{'type':'message_delta','delta':{'stop_reason':'end_turn'}}\n" DELTA(
            "0", SAY("t")) "{'type':'message_stop'}\n",
        HEAD "finish stop \nend\n"},
    {"no end", START BLOCK("0", TOOL("a")), HEAD "call 0 a f\ncallend 0\nfinish calls \nend\n"},
    {"unknown events and deltas",
        START "{'type':'ping'}\n{'type':'new_thing','index':0}\n" BLOCK("0", TEXT)
            DELTA("0", "'type':'new_delta','x':1") DELTA("0", SAY("t")) STOP("0") END("'end_turn'"),
        HEAD "text t\nbreak\nfinish stop \nend\n"},
};

static struct buf *
read_stream(struct arena *arena, struct span stream, size_t cut)
{
	struct flow_reader *r = flow_read_messages.begin(arena, SPAN("an"));
	struct buf *out = arena_buf(arena, 1 << 20);
	const struct span pieces[] = {{stream.p, cut}, text_from(stream, cut)};
	struct sse_event e;
	struct sse s;

	sse_init(&s, 1 << 20);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sse_feed(&s, pieces[i], NULL), ERR_OK);
		while (sse_next(&s, &e))
			flow_read_messages.event(r, &e, steps_note, out);
	}
	while (sse_last(&s, &e))
		flow_read_messages.event(r, &e, steps_note, out);
	flow_read_messages.end(r, steps_note, out);
	sse_release(&s);
	return out;
}

/* Lines become events again. */
static struct span
as_stream(struct arena *arena, struct span lines)
{
	struct buf *out = arena_buf(arena, 1 << 20);
	struct span line;

	while (text_token(&lines, "\n", &line)) {
		buf_z(out, "data: ");
		buf_span(out, line);
		buf_z(out, "\n\n");
	}
	return buf_text(out);
}

/* SEAL and quotes. */
static struct span
wanted(struct arena *arena, const char *text)
{
	struct span head = seal_make(arena, FORM_MESSAGES, SPAN("an"), SPAN(""));
	struct span rest = quotes(arena, text);
	struct buf *out = arena_buf(arena, 1 << 16);

	while (rest.n > 0) {
		size_t at = text_find(rest, SPAN("SEAL"));

		buf_add(out, rest.p, at);
		if (at < rest.n)
			buf_span(out, head);
		rest = text_from(rest, at < rest.n ? at + 4 : at);
	}
	return buf_text(out);
}

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct arena *arena = arena_new(1 << 24);
		struct span stream = as_stream(arena, quotes(arena, cases[i].events));
		struct span want = wanted(arena, cases[i].want);
		struct buf *got = read_stream(arena, stream, 0);

		if (!text_equal(buf_text(got), want))
			fail_msg("%s:\ngot\n%s\nwant\n%s", cases[i].what, got->p, want.p);
		arena_free(&arena);
	}
}

static const struct {
	const char *file, *want; /* what is left when pieces of one kind are put together */
} files[] = {
    {"anthropic/messages-stream.resp.sse", "start text break finish usage end "},
    {"anthropic/messages-stream-tool.resp.sse",
        "start text break call args callend finish usage end "},
    {"anthropic/messages-stream-multi-tool.resp.sse",
        "start text break call args callend call args callend finish usage end "},
    {"anthropic/messages-stream-thinking.resp.sse",
        "start thought seal call args callend finish usage end "},
    {"anthropic/messages-stream-cache.resp.sse", "start text break finish usage end "},
    {"vercel-ai-chunks/anthropic-text.chunks.txt", "start text break finish usage end "},
    {"vercel-ai-chunks/duplicate-message-start.chunks.txt", "start text break finish usage end "},
    {"vercel-ai-chunks/spliced-message-start.chunks.txt",
        "start thought seal call args callend thought seal call args callend finish usage end "},
    {"vercel-ai-chunks/anthropic-message-delta-input-tokens.chunks.txt",
        "start text break finish usage end "},
};

static void
check_kinds(struct span steps, const char *file, const char *want)
{
	struct span line, last = {"", 0};
	struct buf kinds;

	buf_init(&kinds, 4096);
	while (text_token(&steps, "\n", &line)) {
		struct span kind = {line.p, text_find(line, SPAN(" "))};

		if (!text_equal(kind, last)) {
			buf_span(&kinds, kind);
			buf_char(&kinds, ' ');
		}
		last = kind;
	}
	if (!text_is(buf_text(&kinds), want))
		fail_msg("%s: got %s, want %s", file, kinds.p, want);
	buf_release(&kinds);
}

static void
test_files_cut_everywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(files); i++) {
		struct arena *arena = arena_new(1 << 24), *cut = arena_new(1 << 24);
		char name[128];
		struct buf sample;
		struct span stream, whole;

		snprintf(name, sizeof name, "streams/%s", files[i].file);
		sample = sample_read(name);
		stream = text_ends(text_span(name), ".txt") ? as_stream(arena, buf_text(&sample))
		                                            : buf_text(&sample);
		whole = buf_text(read_stream(arena, stream, 0));
		check_kinds(whole, name, files[i].want);
		for (size_t at = 1; at < stream.n; at++) {
			struct buf *got = read_stream(cut, stream, at);

			if (!text_equal(buf_text(got), whole))
				fail_msg("%s: cut at %zu: got %s", name, at, got->p);
			arena_reset(cut);
		}
		buf_release(&sample);
		arena_free(&cut);
		arena_free(&arena);
	}
}

static const struct {
	const char *what, *body, *want;
} bodies[] = {
    {"a text",
        "{'id':'msg_1','model':'m','content':[{'type':'text','text':'Hi'}],'stop_reason':'end_turn',"
        "'usage':{'input_tokens':5,'output_tokens':2}}",
        HEAD "text Hi\nbreak\nfinish stop \nusage 5 2 -1 -1 -1\nend\n"},
    {"all kinds",
        "{'id':'msg_1','model':'m','content':[{'type':'thinking','thinking':'h','signature':'S'},"
        "{'type':'redacted_thinking','data':'D'},{'type':'text','text':'t','citations':[{'url':'u',"
        "'title':'v'}]},{'type':'tool_use','id':'a','name':'f','input':{'z':1.10,'a':[]}},{'type':"
        "'tool_use','id':'b','name':'g','input':{}},{'type':'server_tool_use'}],'stop_reason':"
        "'tool_use'}",
        HEAD "thought h\nseal SEALS\nredacted SEALD\ntext t\ncite {'url':'u','title':'v',"
             "'start_index':0,'end_index':1}\nbreak\ncall 0 a f\nargs 0 {'z':1.10,'a':[]}\n"
             "callend 0\ncall 1 b g\nargs 1 {}\ncallend 1\nfinish calls \nend\n"},
    {"no content", "{'id':'msg_1','model':'m','content':[],'stop_reason':null}",
        HEAD "finish stop \nend\n"},
};

static void
test_bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct arena *arena = arena_new(1 << 24);
		struct flow_reader *r = flow_read_messages.begin(arena, SPAN("an"));
		struct buf *got = arena_buf(arena, 1 << 16);
		struct span want = wanted(arena, bodies[i].want);

		flow_read_messages.body(r, quotes(arena, bodies[i].body), steps_note, got);
		if (!text_equal(buf_text(got), want))
			fail_msg("%s:\ngot\n%s\nwant\n%s", bodies[i].what, got->p, want.p);
		arena_free(&arena);
	}
}

/* A long stream leaves no trace in the request's memory. */
static void
test_memory(void **state)
{
	struct arena *arena = arena_new(1 << 16);
	struct flow_reader *r = flow_read_messages.begin(arena, SPAN("an"));
	struct sse_event e = {
	    .data = quotes(arena, DELTA("0", SAY("some \\u00e9 text"))), .has_data = true};
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 26);
	for (int i = 0; i < 100000; i++)
		flow_read_messages.event(r, &e, steps_note, &out);
	assert_true(out.n > 1500000);
	buf_release(&out);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_files_cut_everywhere),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
