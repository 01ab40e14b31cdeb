#include "dialect/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB ((size_t)1 << 20)
#define FORTY "0123456789012345678901234567890123456789"
#define SIXTY_FOUR FORTY "012345678901234567890123"

static const struct {
	const char *what;
	enum form_wire wire;
	const char *id, *want;
} ids[] = {
    {"chat: short", FORM_CHAT, "call_1", "call_1"},
    {"chat: 40", FORM_CHAT, FORTY, FORTY},
    {"chat: 41", FORM_CHAT, FORTY "x", "0123456_14e06e26460223e38468286eadc46399"},
    {"chat: odd bytes stay", FORM_CHAT, "functions.f:0", "functions.f:0"},
    {"chat: no character is cut", FORM_CHAT, "12345\xc3\xa9\xc3\xa9" FORTY, NULL},
    {"responses: 64", FORM_RESPONSES, SIXTY_FOUR, SIXTY_FOUR},
    {"responses: 65", FORM_RESPONSES, SIXTY_FOUR "x", NULL},
    {"messages: plain", FORM_MESSAGES, "toolu_01-A", "toolu_01-A"},
    {"messages: odd bytes", FORM_MESSAGES, "functions.f:0", NULL},
    {"messages: one odd byte", FORM_MESSAGES, ":", NULL},
    {"messages: long", FORM_MESSAGES, SIXTY_FOUR SIXTY_FOUR, SIXTY_FOUR SIXTY_FOUR},
    {"empty", FORM_MESSAGES, "", ""},
};

static void
test_ids(void **state)
{
	static const size_t most[] = {
	    [FORM_CHAT] = 40, [FORM_MESSAGES] = 128, [FORM_RESPONSES] = 64};
	struct arena *arena = arena_new(MB);

	(void)state;
	for (size_t i = 0; i < NELEM(ids); i++) {
		struct span got = form_id(arena, ids[i].wire, text_span(ids[i].id));

		if (ids[i].want != NULL && !text_is(got, ids[i].want))
			fail_msg("%s\n got  %.*s\n want %s", ids[i].what, (int)got.n, got.p,
			    ids[i].want);
		if (ids[i].want == NULL && text_is(got, ids[i].id))
			fail_msg("%s: it stays as it is", ids[i].what);
		if (got.n > most[ids[i].wire] || !text_utf8(got))
			fail_msg("%s: %.*s", ids[i].what, (int)got.n, got.p);
		for (size_t k = 0; ids[i].wire == FORM_MESSAGES && k < got.n; k++)
			if (strchr("0123456789_-abcdefghijklmnopqrstuvwxyzA", got.p[k]) == NULL)
				fail_msg("%s: %.*s", ids[i].what, (int)got.n, got.p);
		if (!text_equal(got, form_id(arena, ids[i].wire, text_span(ids[i].id))))
			fail_msg("%s: another one the second time", ids[i].what);
	}
	arena_free(&arena);
}

/* What becomes the same plain text stays apart by its hash. */
static void
test_apart(void **state)
{
	struct arena *arena = arena_new(MB);

	(void)state;
	assert_false(text_equal(form_id(arena, FORM_MESSAGES, SPAN("a.b")),
	    form_id(arena, FORM_MESSAGES, SPAN("a:b"))));
	assert_false(text_equal(
	    form_tool_name(arena, SPAN("a.b"), 64), form_tool_name(arena, SPAN("a:b"), 64)));
	assert_false(text_equal(form_tool_name(arena, SPAN("a.b"), 64), SPAN("a_b")));
	arena_free(&arena);
}

static const struct {
	const char *what, *name;
	size_t max;
	const char *want;
} names[] = {
    {"plain", "get_weather-2", 64, "get_weather-2"},
    {"64", SIXTY_FOUR, 64, SIXTY_FOUR},
    {"65 cut to 64", SIXTY_FOUR "x", 64,
        "0123456789012345678901234567890123456789012345678901234_23975c6d"},
    {"65 of 128", SIXTY_FOUR "x", 128, SIXTY_FOUR "x"},
    {"odd bytes", "a.b/c", 64, "a_b_c_fc7cd9c4"},
    {"characters beyond ASCII", "\xe4\xbd\xa0", 64, "____a0c77166"},
};

static void
test_names(void **state)
{
	struct arena *arena = arena_new(MB);
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(names); i++) {
		struct span got = form_tool_name(arena, text_span(names[i].name), names[i].max);

		if (text_is(got, names[i].want))
			continue;
		failed++;
		print_error(
		    "%s\n got  %.*s\n want %s\n", names[i].what, (int)got.n, got.p, names[i].want);
	}
	arena_free(&arena);
	assert_int_equal(failed, 0);
}

static void
test_loss(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct form_loss loss = {.names = NULL};
	struct form_name first = {.sent = SPAN("s"), .original = SPAN("o")};
	struct form_name again = {.sent = SPAN("s"), .original = SPAN("other")};

	(void)state;
	form_drop(&loss, arena, SPAN("top_k"));
	form_drop(&loss, arena, SPAN("seed"));
	form_drop(&loss, arena, SPAN("top_k"));
	assert_int_equal(loss.ndropped, 2);
	assert_true(text_is(loss.dropped[0], "top_k"));
	/* a client may send any number: the list stays short */
	for (int i = 0; i < 100000; i++)
		form_drop(&loss, arena, text_span(arena_print(arena, "p%d", i)));
	assert_int_equal(loss.ndropped, 64);
	assert_true(text_is(loss.dropped[62], "p60"));
	assert_true(text_is(loss.dropped[63], "..."));

	form_rename(&loss, arena, &first);
	form_rename(&loss, arena, &again);
	assert_int_equal(loss.nnames, 1);
	assert_true(text_is(loss.names[0].original, "o"));
	arena_free(&arena);
}

/* Lists grow and keep what they hold. */
static void
test_lists(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct form form = {.turns = NULL};

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		struct form_turn *turn = form_add_turn(arena, &form, FORM_USER, i);

		form_add_part(arena, turn, FORM_TEXT)->text = SPAN("a");
		form_add_part(arena, turn, FORM_IMAGE);
		form_add_part(arena, turn, FORM_TEXT);
		form_add_tool(arena, &form, FORM_HOSTED);
		form_add_extra(arena, &form, SPAN("x"), SPAN("1"));
	}
	assert_int_equal(form.nturns, 1000);
	assert_int_equal(form.ntools, 1000);
	assert_int_equal(form.nextras, 1000);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(form.turns[i].at, i);
		assert_int_equal(form.turns[i].nparts, 3);
		assert_true(text_is(form.turns[i].parts[0].text, "a"));
		assert_int_equal(form.turns[i].parts[1].kind, FORM_IMAGE);
	}
	arena_free(&arena);
}

/* What FORM_ITEMS_MAX is of. */
static void
items(void **state)
{
	struct form_part inner[3] = {{.kind = FORM_TEXT}};
	struct form_part parts[] = {
	    {.kind = FORM_TEXT}, {.kind = FORM_RESULT, .result = {.parts = inner, .nparts = 3}}};
	struct form_turn turns[] = {{.role = FORM_ASSISTANT},
	    {.role = FORM_USER, .parts = parts, .nparts = 1},
	    {.role = FORM_TOOL, .parts = parts, .nparts = 2}};

	(void)state;
	assert_int_equal(form_items(turns, 0), 0);
	assert_int_equal(form_items(turns, 1), 1);
	assert_int_equal(form_items(turns, 2), 2);
	assert_int_equal(form_items(turns, 3), 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ids),
	    cmocka_unit_test(test_apart),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_loss),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
