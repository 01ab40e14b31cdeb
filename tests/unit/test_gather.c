#include "dialect/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/form_text.h"

#define MB ((size_t)1 << 20)
#define S(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct dialect_usage usage = {.seen = true, .prompt = 3, .completion = 2};

static const struct {
	const char *what;
	struct flow steps[12];
	const char *want;
} cases[] = {
    {"pieces of text",
        {{.kind = FLOW_START, .id = S("i"), .model = S("m")}, {.kind = FLOW_TEXT, .text = S("a")},
            {.kind = FLOW_TEXT}, {.kind = FLOW_TEXT, .text = S("b")}, {.kind = FLOW_FINISH},
            {.kind = FLOW_END}},
        "assistant@0[text =ab ];"},
    {"an empty piece is nothing",
        {{.kind = FLOW_TEXT, .text = S("")}, {.kind = FLOW_THOUGHT}, {.kind = FLOW_END}},
        "assistant@0;"},
    {"a break makes two",
        {{.kind = FLOW_TEXT, .text = S("a")}, {.kind = FLOW_BREAK},
            {.kind = FLOW_TEXT, .text = S("b")}, {.kind = FLOW_END}},
        "assistant@0[text =a ][text =b ];"},
    {"kinds in order",
        {{.kind = FLOW_THOUGHT, .text = S("t")}, {.kind = FLOW_TEXT, .text = S("a")},
            {.kind = FLOW_THOUGHT, .text = S("u")}, {.kind = FLOW_REFUSAL, .text = S("no")},
            {.kind = FLOW_END}},
        "assistant@0[thought =t ][text =a ][thought =u ][refusal =no ];"},
    {"a seal ends its thought",
        {{.kind = FLOW_THOUGHT, .text = S("t")}, {.kind = FLOW_SEAL, .text = S("s1")},
            {.kind = FLOW_THOUGHT, .text = S("u")}, {.kind = FLOW_SEAL, .text = S("s2")},
            {.kind = FLOW_END}},
        "assistant@0[thought =t seal=s1 ][thought =u seal=s2 ];"},
    {"seals without words",
        {{.kind = FLOW_SEAL, .text = S("s1")}, {.kind = FLOW_SEAL, .text = S("s2")},
            {.kind = FLOW_REDACTED, .text = S("s3")}, {.kind = FLOW_SEAL, .text = S("s4")},
            {.kind = FLOW_TEXT, .text = S("a")}, {.kind = FLOW_SEAL, .text = S("s5")},
            {.kind = FLOW_END}},
        "assistant@0[thought seal=s1 ][thought seal=s2 ][thought seal=s3 redacted ]"
        "[thought seal=s4 ][text =a ][thought seal=s5 ];"},
    {"calls that interleave",
        {{.kind = FLOW_CALL, .id = S("a"), .name = S("f")},
            {.kind = FLOW_CALL, .call = 1, .id = S("b"), .name = S("g"), .custom = true},
            {.kind = FLOW_ARGUMENTS, .call = 0, .text = S("{")},
            {.kind = FLOW_ARGUMENTS, .call = 1, .text = S("x")},
            {.kind = FLOW_TEXT, .text = S("t")},
            {.kind = FLOW_ARGUMENTS, .call = 0, .text = S("}")}, {.kind = FLOW_CALL_END, .call = 0},
            {.kind = FLOW_CALL_END, .call = 1}, {.kind = FLOW_FINISH, .finish = FLOW_CALLS},
            {.kind = FLOW_END}},
        "assistant@0[call id=a name=f args={} ][call id=b name=g input=x ][text =t ];"},
    {"a call without arguments has the empty object",
        {{.kind = FLOW_CALL, .id = S("a"), .name = S("f")},
            {.kind = FLOW_CALL, .call = 1, .id = S("b"), .name = S("g"), .custom = true},
            {.kind = FLOW_FINISH}, {.kind = FLOW_END}},
        "assistant@0[call id=a name=f args={} ][call id=b name=g ];"},
    {"arguments of no call",
        {{.kind = FLOW_ARGUMENTS, .call = 7, .text = S("x")}, {.kind = FLOW_CALL_END, .call = 7},
            {.kind = FLOW_END}},
        "assistant@0;"},
};

static void
test_cases(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct gather *g = gather_begin(arena);
		struct buf *got = arena_buf(arena, MB);
		struct form form = {.nturns = 1, .max_output = -1, .thinking_budget = -1};

		for (size_t k = 0; k < NELEM(cases[i].steps); k++) {
			gather_step(g, &cases[i].steps[k]);
			if (cases[i].steps[k].kind == FLOW_END)
				break;
		}
		form.turns = (struct form_turn[]){gather_answer(g)->turn};
		form_text(got, &form);
		if (gather_answer(g)->ended && text_is(buf_text(got), cases[i].want))
			continue;
		failed++;
		print_error("%s\n got  %s\n want %s\n", cases[i].what, got->p, cases[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

/* Steps are gone after the call: what is gathered is copied. */
static void
test_copies(void **state)
{
	struct arena *arena = arena_new(MB);
	struct gather *g = gather_begin(arena);
	char id[] = "id", stop[] = "END", cite[] = "{\"a\":1}";
	struct flow steps[] = {
	    {.kind = FLOW_START, .id = {id, 2}, .model = {id, 2}},
	    {.kind = FLOW_CITATION, .text = {cite, 7}},
	    {.kind = FLOW_CITATION, .text = {cite, 7}},
	    {.kind = FLOW_FINISH, .finish = FLOW_STOP_TEXT, .stop = {stop, 3}},
	    {.kind = FLOW_USAGE, .usage = &usage},
	};
	const struct flow_answer *answer = gather_answer(g);

	(void)state;
	assert_int_equal(answer->usage.prompt, -1);
	for (size_t i = 0; i < NELEM(steps); i++)
		gather_step(g, &steps[i]);
	memset(id, 'x', 2);
	memset(stop, 'x', 3);
	memset(cite, 'x', 7);
	assert_true(text_is(answer->id, "id"));
	assert_true(text_is(answer->model, "id"));
	assert_true(text_is(answer->stop, "END"));
	assert_true(text_is(answer->citations, "[{\"a\":1},{\"a\":1}]"));
	assert_int_equal(answer->finish, FLOW_STOP_TEXT);
	assert_int_equal(answer->usage.prompt, 3);
	assert_false(answer->ended);
	arena_free(&arena);
}

/* Small pieces of a long text: time and memory in proportion. */
static void
test_long(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct gather *g = gather_begin(arena);

	(void)state;
	for (int i = 0; i < 1000000; i++)
		gather_step(g, &(struct flow){.kind = FLOW_TEXT, .text = SPAN("abcd")});
	assert_int_equal(gather_answer(g)->turn.parts[0].text.n, 4000000);
	arena_free(&arena);
}

/* A host that goes back and forth: memory has an end, and of the texts nothing is lost. */
static void
test_many_parts(void **state)
{
	const struct flow text = {.kind = FLOW_TEXT, .text = S("ab")};
	const struct flow thought = {.kind = FLOW_THOUGHT, .text = S("c")};
	struct arena *arena = arena_new(16 * MB);
	struct gather *g = gather_begin(arena);
	const struct flow_answer *answer = gather_answer(g);
	size_t n[FORM_OPAQUE + 1] = {0};

	(void)state;
	for (int i = 0; i < 50000; i++) {
		gather_step(g, &text);
		gather_step(g, &thought);
	}
	for (size_t i = 0; i < answer->turn.nparts; i++)
		n[answer->turn.parts[i].kind] += answer->turn.parts[i].text.n;
	assert_int_equal(n[FORM_TEXT], 100000);
	assert_int_equal(n[FORM_THOUGHT], 50000);
	assert_true(answer->turn.nparts <= 4096 && !answer->cut);
	for (int i = 0; i < 3; i++) {
		gather_step(g, &(struct flow){.kind = FLOW_CALL, .id = S("i"), .name = S("f")});
		gather_step(g, &(struct flow){.kind = FLOW_ARGUMENTS, .text = S("{}")});
	}
	assert_true(answer->turn.nparts <= 4096 && answer->cut);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_copies),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_many_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
