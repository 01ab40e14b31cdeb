#include "dialect/flow.h"

#include "dialect/gather.h"
#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/quotes.h"
#include "lib/steps.h"

#define S "start chatcmpl-1 up\n"
#define E "end\n"

/*
 * A stream in short: "[text" begins a block, "+x" is a piece of text, "~x" of thinking, "!x" a
 * signature, "{x" of arguments, "]" ends a block; then the reason and the figures.
 */
static const struct {
	const char *what, *steps, *want;
} cases[] = {
    {"a text", S "text Hi\ntext  you\nfinish stop\nusage 9 2 4 -1 -1\n" E,
        "[text+Hi+ you]end_turn 5/0/4/2."},
    {"no usage", S "text Hi\nfinish stop\n" E, "[text+Hi]end_turn 0/0/0/0."},
    {"usage before the finish", S "usage 3 1 -1 -1 -1\ntext a\nfinish stop\n" E,
        "[text+a]end_turn 3/0/0/1."},
    {"usage twice", S "text a\nfinish stop\nusage 3 -1 -1 -1 -1\nusage 3 1 -1 -1 -1\n" E,
        "[text+a]end_turn 3/0/0/1."},
    {"cached beside the prompt", S "text a\nfinish stop\nusage 3 1 5 2 -1\n" E,
        "[text+a]end_turn 0/2/5/1."},
    {"thinking, then text", S "thought a\nthought b\ntext c\nfinish stop\n" E,
        "[thinking~a~b][text+c]end_turn 0/0/0/0."},
    {"a seal ends a thought",
        S "thought a\nseal X\nthought b\nseal Y\nredacted Z\ntext c\n"
          "finish stop\n" E,
        "[thinking~a!X][thinking~b!Y][redacted_thinking Z][text+c]end_turn 0/0/0/0."},
    {"a seal alone", S "seal X\ntext c\nfinish stop\n" E, "[thinking!X][text+c]end_turn 0/0/0/0."},
    {"only thinking (CONV-17)", S "thought a\nfinish stop\n" E, "[thinking~a]end_turn 0/0/0/0."},
    {"nothing at all", S "finish stop\n" E, "[text]end_turn 0/0/0/0."},
    {"breaks", S "text a\nbreak\nbreak\ntext b\nfinish stop\n" E,
        "[text+a][text+b]end_turn 0/0/0/0."},
    {"no finish", S "text a\n" E, "[text+a]end_turn 0/0/0/0."},
    {"empty pieces", S "text \nthought \nseal \nfinish stop\n" E, "[text]end_turn 0/0/0/0."},
    {"a refusal", S "refusal no\nfinish stop\n" E, "[text+no]refusal 0/0/0/0."},

    {"a call",
        S "text t\ncall 0 a f\nargs 0 \nargs 0 {'x'\nargs 0 :1}\ncallend 0\n"
          "finish calls\n" E,
        "[text+t][tool_use a f{{'x'{:1}]tool_use 0/0/0/0."},
    {"a call without arguments", S "call 0 a f\ncallend 0\nfinish calls\n" E,
        "[tool_use a f]tool_use 0/0/0/0."},
    {"arguments that never begin (TOOL-02)", S "args 0 {}\nargs 7 {}\ncallend 7\nfinish stop\n" E,
        "[text]end_turn 0/0/0/0."},
    {"calls that interleave",
        S "call 0 a f\ncall 1 b g\nargs 1 {'x'\nargs 0 {}\nargs 1 :1}\n"
          "finish calls\n" E,
        "[tool_use a f{{}][tool_use b g{{'x':1}]tool_use 0/0/0/0."},
    {"the next one goes on as soon as one ends",
        S "call 0 a f\ncall 1 b g\ncall 2 c h\nargs 2 {}\ncallend 2\nargs 1 {\ncallend 0\n"
          "args 1 }\ncallend 1\nfinish calls\n" E,
        "[tool_use a f][tool_use b g{{{}][tool_use c h{{}]tool_use 0/0/0/0."},
    {"text while a call is open waits",
        S "call 0 a f\ntext x\nargs 0 {\ntext y\nthought z\nseal Q\n"
          "args 0 }\nfinish calls\n" E,
        "[tool_use a f{{{}][text+xy][thinking~z!Q]tool_use 0/0/0/0."},
    {"late arguments cannot be told",
        S "call 0 a f\nargs 0 {}\ncallend 0\nargs 0 x\n"
          "finish calls\n" E,
        "[tool_use a f{{}]tool_use 0/0/0/0."},
    {"arguments that are no object (TOOL-07)",
        S "call 0 a f\nargs 0 [1\nargs 0 ]\ncallend 0\n"
          "finish calls\n" E,
        "[tool_use a f{{'_raw':'[1]'}]tool_use 0/0/0/0."},
    {"null arguments", S "call 0 a f\nargs 0 null\ncallend 0\nfinish calls\n" E,
        "[tool_use a f{{}]tool_use 0/0/0/0."},
    {"a custom call", S "custom 0 a f\nargs 0 x\\\nargs 0 y\ncallend 0\nfinish calls\n" E,
        "[tool_use a f{{'input':'x\\\\y'}]tool_use 0/0/0/0."},
    {"ids of another alphabet", S "call 0 a.b f\nfinish calls\n" E,
        "[tool_use a_b_2e7336dc8eba87ef472df568c35482ab f]tool_use 0/0/0/0."},
    {"a call's stop is tool_use (E.5 rule 10)", S "call 0 a f\nfinish stop\n" E,
        "[tool_use a f]tool_use 0/0/0/0."},
    {"calls without a call", S "text a\nfinish calls\n" E, "[text+a]end_turn 0/0/0/0."},
    {"a cut call (TOOL-16)", S "call 0 a f\nargs 0 {'x\nfinish length\n" E,
        "[tool_use a f{{'x]max_tokens 0/0/0/0."},
    {"reasons (CONV-16)", S "text a\nfinish filtered\n" E, "[text+a]refusal 0/0/0/0."},
    {"paused", S "text a\nfinish paused\n" E, "[text+a]pause_turn 0/0/0/0."},
    {"a stop sequence", S "text a\nfinish stop_text X\n" E, "[text+a]stop_sequence=X 0/0/0/0."},
    {"nothing behind the finish", S "text a\nfinish stop\ntext b\ncall 0 a f\n" E "text c\n",
        "[text+a]end_turn 0/0/0/0."},
    {"no start", "text a\nfinish stop\n" E, "[text+a]end_turn 0/0/0/0."},
};

struct sink {
	struct flow_writer *w;
	struct buf out;
};

static void
write_step(void *arg, const struct flow *step)
{
	struct sink *sink = arg;

	flow_write_messages.step(sink->w, step, &sink->out);
}

static struct span
member(struct arena *arena, struct span json, const char *path)
{
	const char *const paths[] = {path};
	struct scan_value v;
	struct scan_plan *plan = scan_plan_new(paths, 1);

	assert_int_equal(scan_run(plan, json, &v, NULL), ERR_OK);
	scan_plan_free(&plan);
	if (v.type == SCAN_STRING)
		return scan_string(arena, v.raw);
	return v.type == SCAN_NULL ? SPAN("") : v.raw;
}

/* What the grammar wants: the blocks one after the other, counted, deltas only inside. */
struct grammar {
	struct arena *arena;
	struct buf *out;
	int blocks;
	bool open, started, told;
};

static void
check_index(struct grammar *g, struct span data, const char *file)
{
	int64_t index = -1;

	if (!text_i64(member(g->arena, data, "index"), 0, 999, &index) || index != g->blocks - 1)
		fail_msg("%s: index %lld, want %d", file, (long long)index, g->blocks - 1);
}

static void
note_start(struct grammar *g, struct span data, const char *what)
{
	struct span type = member(g->arena, data, "content_block.type");

	if (g->open || !g->started || g->told)
		fail_msg("%s: a block begins in another", what);
	g->open = true;
	g->blocks++;
	check_index(g, data, what);
	buf_char(g->out, '[');
	buf_span(g->out, type);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {
		    "content_block.id", "content_block.name", "content_block.data"};
		struct span text = member(g->arena, data, names[i]);

		if (text.n > 0) {
			buf_char(g->out, ' ');
			buf_span(g->out, text);
		}
	}
	if (text_is(type, "tool_use"))
		assert_true(text_is(member(g->arena, data, "content_block.input"), "{}"));
}

static void
note_delta(struct grammar *g, struct span data, const char *what)
{
	static const struct {
		const char *type, *member, *mark;
	} kinds[] = {{"text_delta", "delta.text", "+"}, {"thinking_delta", "delta.thinking", "~"},
	    {"signature_delta", "delta.signature", "!"},
	    {"input_json_delta", "delta.partial_json", "{"}};

	if (!g->open)
		fail_msg("%s: a delta outside a block", what);
	check_index(g, data, what);
	for (size_t i = 0; i < NELEM(kinds); i++)
		if (text_is(member(g->arena, data, "delta.type"), kinds[i].type)) {
			buf_z(g->out, kinds[i].mark);
			buf_span(g->out, member(g->arena, data, kinds[i].member));
		}
}

static void
note_end(struct grammar *g, struct span data)
{
	static const char *const figures[] = {"usage.input_tokens",
	    "usage.cache_creation_input_tokens", "usage.cache_read_input_tokens",
	    "usage.output_tokens"};
	struct span stop = member(g->arena, data, "delta.stop_sequence");

	assert_false(g->open);
	g->told = true;
	buf_span(g->out, member(g->arena, data, "delta.stop_reason"));
	if (stop.n > 0)
		buf_print(g->out, "=%.*s", (int)stop.n, stop.p);
	for (size_t i = 0; i < NELEM(figures); i++) {
		buf_char(g->out, i == 0 ? ' ' : '/');
		buf_span(g->out, member(g->arena, data, figures[i]));
	}
}

static void
note(struct grammar *g, const struct sse_event *e, const char *what)
{
	if (!text_equal(member(g->arena, e->data, "type"), e->name))
		fail_msg("%s: event %.*s has another type", what, (int)e->name.n, e->name.p);
	if (text_is(e->name, "message_start")) {
		assert_false(g->started);
		g->started = true;
		assert_true(text_is(member(g->arena, e->data, "message.model"), "asked"));
		assert_true(text_starts(member(g->arena, e->data, "message.id"), "msg_"));
	} else if (text_is(e->name, "content_block_start")) {
		note_start(g, e->data, what);
	} else if (text_is(e->name, "content_block_delta")) {
		note_delta(g, e->data, what);
	} else if (text_is(e->name, "content_block_stop")) {
		check_index(g, e->data, what);
		assert_true(g->open);
		g->open = false;
		buf_char(g->out, ']');
	} else if (text_is(e->name, "message_delta")) {
		note_end(g, e->data);
	} else if (text_is(e->name, "message_stop")) {
		buf_char(g->out, '.');
	}
}

static struct buf *
in_short(struct arena *arena, struct span stream, const char *what)
{
	struct grammar g = {.arena = arena, .out = arena_buf(arena, 1 << 16)};
	struct sse_event e;
	struct sse s;

	sse_init(&s, 1 << 20);
	assert_int_equal(sse_feed(&s, stream, NULL), ERR_OK);
	while (sse_next(&s, &e))
		note(&g, &e, what);
	assert_int_equal(sse_rest(&s).n, 0);
	sse_release(&s);
	return g.out;
}

static struct flow_job
job_of(struct arena *arena)
{
	return (struct flow_job){.arena = arena, .model = SPAN("asked"), .id = SPAN("req-1")};
}

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct arena *arena = arena_new(1 << 22);
		struct flow_job job = job_of(arena);
		struct sink sink = {.w = flow_write_messages.begin(&job)};
		struct span want = quotes(arena, cases[i].want);
		struct buf *got;

		buf_init(&sink.out, 1 << 20);
		steps_give(quotes(arena, cases[i].steps).p, write_step, &sink);
		got = in_short(arena, buf_text(&sink.out), cases[i].what);
		if (!text_equal(buf_text(got), want))
			fail_msg("%s:\ngot  %s\nwant %s\n"
			         "in %s",
			    cases[i].what, got->p, want.p, sink.out.p);
		buf_release(&sink.out);
		arena_free(&arena);
	}
}

/* What a reader makes of what the writer wrote: the same, call by call. */
static void
test_and_back(void **state)
{
	static const char steps[] =
	    "start msg_1 asked\nthought h\nseal X\ntext t\nbreak\ncall 0 a f\nargs 0 {}\ncallend 0\n"
	    "call 1 b g\nargs 1 {\"x\":1}\ncallend 1\nfinish calls \nusage 9 2 4 0 1\nend\n";
	struct arena *arena = arena_new(1 << 22);
	struct flow_job job = job_of(arena);
	struct sink sink = {.w = flow_write_messages.begin(&job)};
	struct flow_reader *r = flow_read_messages.begin(arena, SPAN("an"));
	struct buf *got = arena_buf(arena, 1 << 16);
	struct span seal = seal_make(arena, FORM_MESSAGES, SPAN("an"), SPAN("X")), want;
	struct sse_event e;
	struct sse s;

	(void)state;
	buf_init(&sink.out, 1 << 20);
	steps_give(steps, write_step, &sink);
	sse_init(&s, 1 << 20);
	assert_int_equal(sse_feed(&s, buf_text(&sink.out), NULL), ERR_OK);
	while (sse_next(&s, &e))
		flow_read_messages.event(r, &e, steps_note, got);
	want =
	    text_span(arena_print(arena, "%.*sseal %.*s%s", (int)(strstr(steps, "seal X") - steps),
	        steps, (int)seal.n, seal.p, strstr(steps, "seal X") + 6));
	if (!text_equal(buf_text(got), want))
		fail_msg("got\n%s\nwant\n%s", got->p, want.p);
	sse_release(&s);
	buf_release(&sink.out);
	arena_free(&arena);
}

/* A seal of this wire goes out as its maker gave it, others as they are. */
static void
test_seals(void **state)
{
	struct arena *arena = arena_new(1 << 22);
	const enum form_wire wires[] = {FORM_MESSAGES, FORM_RESPONSES};

	(void)state;
	for (size_t i = 0; i < NELEM(wires); i++) {
		struct flow_job job = job_of(arena);
		struct sink sink = {.w = flow_write_messages.begin(&job)};
		struct span seal = seal_make(arena, wires[i], SPAN("an"), SPAN("XYZ"));
		struct flow step = {.kind = FLOW_SEAL, .text = seal};

		buf_init(&sink.out, 1 << 20);
		write_step(&sink, &step);
		assert_true((text_find(buf_text(&sink.out), seal) == sink.out.n) == (i == 0));
		assert_true(text_find(buf_text(&sink.out), SPAN("XYZ\"")) < sink.out.n);
		buf_release(&sink.out);
	}
	arena_free(&arena);
}

static void
test_names(void **state)
{
	struct arena *arena = arena_new(1 << 22);
	struct form_name name = {.sent = SPAN("f_1"), .original = SPAN("f.1")};
	struct form_loss loss = {.names = &name, .nnames = 1};
	struct flow_job job = job_of(arena);
	struct sink sink;

	(void)state;
	job.loss = &loss;
	sink.w = flow_write_messages.begin(&job);
	buf_init(&sink.out, 1 << 20);
	steps_give("call 0 a f_1\n", write_step, &sink);
	assert_non_null(strstr(sink.out.p, "\"name\":\"f.1\""));
	buf_release(&sink.out);
	arena_free(&arena);
}

static void
test_error(void **state)
{
	struct arena *arena = arena_new(1 << 22);
	struct flow_job job = job_of(arena);
	struct sink sink = {.w = flow_write_messages.begin(&job)};

	(void)state;
	buf_init(&sink.out, 1 << 20);
	steps_give("start a b\ntext t\n", write_step, &sink);
	buf_clear(&sink.out);
	flow_write_messages.error(sink.w, 502, NULL, NULL, SPAN("no"), &sink.out);
	assert_string_equal(sink.out.p,
	    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
	    "\"api_error\",\"message\":\"no\"}}\n\n");
	buf_clear(&sink.out);
	steps_give("text t\nend\n", write_step, &sink);
	assert_int_equal(sink.out.n, 0);
	buf_release(&sink.out);
	arena_free(&arena);
}

#define BODY(content, end)                                                                               \
	"{'id':'msg_chatcmpl-1','type':'message','role':'assistant','model':'asked','content':[" content \
	"]," end ",'usage':{'input_tokens':5,'cache_creation_input_tokens':0,"                           \
	"'cache_read_input_tokens':4,'output_tokens':2}}"
#define REASON(reason) "'stop_reason':'" reason "','stop_sequence':null"

static const struct {
	const char *what, *steps, *want;
} answers[] = {
    {"a text", "text Hi\nfinish stop\n", BODY("{'type':'text','text':'Hi'}", REASON("end_turn"))},
    {"all kinds",
        "thought h\nseal X\nredacted Z\ntext t\ncall 0 a f\nargs 0 {'u':"
        "18446744073709551616,'f':1.10}\ncall 1 b g\nfinish stop\n",
        BODY("{'type':'thinking','thinking':'h','signature':'X'},{'type':'redacted_thinking','data'"
             ":'Z'},{'type':'text','text':'t'},{'type':'tool_use','id':'a','name':'f','input':{'u':"
             "18446744073709551616,'f':1.10}},{'type':'tool_use','id':'b','name':'g','input':{}}",
            REASON("tool_use"))},
    {"only thinking (CONV-17)", "thought h\nfinish stop\n",
        BODY("{'type':'thinking','thinking':'h','signature':''}", REASON("end_turn"))},
    {"nothing", "finish stop\n", BODY("{'type':'text','text':''}", REASON("end_turn"))},
    {"a refusal", "refusal no\nfinish stop\n",
        BODY("{'type':'text','text':'no'}", REASON("refusal"))},
    {"a stop sequence", "text a\nfinish stop_text X\n",
        BODY("{'type':'text','text':'a'}", "'stop_reason':'stop_sequence','stop_sequence':'X'")},
    {"cut arguments (TOOL-16)", "call 0 a f\nargs 0 {'a':[{'b':'x]\nfinish length\n",
        BODY("{'type':'tool_use','id':'a','name':'f','input':{'a':[{'b':'x]'}]}}",
            REASON("max_tokens"))},
    {"cut behind a comma", "call 0 a f\nargs 0 {'a':1,\nfinish length\n",
        BODY("{'type':'tool_use','id':'a','name':'f','input':{'_raw':'{\\'a\\':1,'}}",
            REASON("max_tokens"))},
    {"no object (TOOL-07)", "call 0 a f\nargs 0 [1]\ncall 1 b f\nargs 1 null\nfinish calls\n",
        BODY("{'type':'tool_use','id':'a','name':'f','input':{'_raw':'[1]'}},{'type':'tool_use',"
             "'id':'b','name':'f','input':{}}",
            REASON("tool_use"))},
};

static void
test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct arena *arena = arena_new(1 << 22);
		struct flow_job job = job_of(arena);
		struct gather *g = gather_begin(arena);
		struct span want = quotes(arena, answers[i].want);
		struct buf *out = arena_buf(arena, 1 << 16);

		steps_give(S, gather_step, g);
		steps_give(quotes(arena, answers[i].steps).p, gather_step, g);
		steps_give("usage 9 2 4 -1 -1\n" E, gather_step, g);
		flow_answer_messages(&job, gather_answer(g), out);
		if (!text_equal(buf_text(out), want))
			fail_msg("%s:\ngot  %s\nwant %s", answers[i].what, out->p, want.p);
		arena_free(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_and_back),
	    cmocka_unit_test(test_seals),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_error),
	    cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
