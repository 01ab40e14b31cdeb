#include "context_tale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena *arena;
static struct form form;

static int
begin(void **state)
{
	(void)state;
	arena = arena_new((size_t)64 << 20);
	form = (struct form){.from = FORM_CHAT};
	return 0;
}

static int
end(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static struct form_part *
add(enum form_role role, enum form_kind kind, const char *text)
{
	struct form_turn *last = form.nturns > 0 ? &form.turns[form.nturns - 1] : NULL;
	struct form_part *part;

	if (last == NULL || last->role != role)
		last = form_add_turn(arena, &form, role, 0);
	part = form_add_part(arena, last, kind);
	part->text = text_span(text);
	return part;
}

static struct span
tale(size_t from, size_t to)
{
	struct buf *out = arena_buf(arena, (size_t)1 << 24);

	context_tale(arena, &form, from, to, out);
	return buf_text(out);
}

static void
test_told(void **state)
{
	static const char want[] = "System: be brief\n\n"
	                           "User: look\n[a picture]\nas text\n[a document]\n\n"
	                           "Assistant: I look\ncalls see {\"a\":1}\n\n"
	                           "Tool: a cat\n[a picture]\n\n"
	                           "Assistant: no\n\n";
	struct form_part *part;
	struct form_turn result = {.role = FORM_TOOL};
	struct span got;

	(void)state;
	add(FORM_SYSTEM, FORM_TEXT, "be brief");
	add(FORM_USER, FORM_TEXT, "look");
	add(FORM_USER, FORM_IMAGE, "");
	add(FORM_USER, FORM_DOCUMENT, "")->media.plain = SPAN("as text");
	add(FORM_USER, FORM_DOCUMENT, "");
	add(FORM_ASSISTANT, FORM_THOUGHT, "hm");
	add(FORM_ASSISTANT, FORM_TEXT, "I look");
	part = add(FORM_ASSISTANT, FORM_CALL, "");
	part->call = (struct form_call){.name = SPAN("see"), .arguments = SPAN("{\"a\":1}")};
	form_add_part(arena, &result, FORM_TEXT)->text = SPAN("a cat");
	form_add_part(arena, &result, FORM_IMAGE);
	part = add(FORM_TOOL, FORM_RESULT, "");
	part->result.parts = result.parts;
	part->result.nparts = result.nparts;
	add(FORM_ASSISTANT, FORM_REFUSAL, "no");
	got = tale(0, form.nturns);
	if (!text_is(got, want))
		fail_msg("got %.*s", (int)got.n, got.p);
	assert_true(text_is(tale(4, 5), "Assistant: no\n\n"));
	assert_int_equal(tale(5, 5).n, 0);
}

/* One text, and all of them, end somewhere, in whole characters. */
static void
test_bounds(void **state)
{
	char *text = arena_alloc(arena, 30001);
	struct span got;

	(void)state;
	for (size_t i = 0; i < 10000; i++)
		memcpy(text + 3 * i, "\xe4\xb8\xad", 3);
	add(FORM_USER, FORM_TEXT, text);
	got = tale(0, 1);
	assert_in_range(got.n, CONTEXT_TALE_PART / 2, CONTEXT_TALE_PART + 200);
	assert_true(text_utf8(got));
	for (size_t i = 0; i < 100; i++)
		add(i % 2 == 0 ? FORM_ASSISTANT : FORM_USER, FORM_TEXT, text);
	got = tale(0, form.nturns);
	assert_in_range(got.n, CONTEXT_TALE_MAX / 2, CONTEXT_TALE_MAX + 200);
	assert_true(text_utf8(got));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_told, begin, end),
	    cmocka_unit_test_setup_teardown(test_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
