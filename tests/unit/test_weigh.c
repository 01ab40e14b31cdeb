#include "weigh.h"

#include "dialect/trim.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct form *
form_of(struct arena *arena)
{
	struct form *form = arena_alloc(arena, sizeof *form);
	static const char *const words[] = {
	    "You translate.", "one two three four five", "un deux trois", "six seven eight"};
	static const enum form_role roles[] = {FORM_SYSTEM, FORM_USER, FORM_ASSISTANT, FORM_USER};

	form->max_output = -1;
	for (size_t i = 0; i < NELEM(words); i++) {
		struct form_turn *turn = form_add_turn(arena, form, roles[i], i);

		form_add_part(arena, turn, FORM_TEXT)->text = text_span(words[i]);
	}
	return form;
}

/* As each model counts; those that count alike are counted once. */
static void
test_models(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct weigh w = {.form = form_of(arena)};
	struct tokens_model gpt = tokens_model(NULL, SPAN("gpt-4o"));
	struct tokens_model claude = tokens_model(NULL, SPAN("claude-opus-4-7"));
	int64_t n;

	(void)state;
	assert_int_equal(weigh_counted(&w, SPAN("gpt-4o")), 0);
	n = weigh_prompt(&w, SPAN("gpt-4o"));
	assert_int_equal(n, tokens_form(&gpt, w.form));
	assert_int_equal(weigh_counted(&w, SPAN("gpt-4o")), n);
	assert_int_equal(weigh_counted(&w, SPAN("claude-opus-4-7")), 0);
	assert_int_equal(weigh_prompt(&w, SPAN("claude-opus-4-7")), tokens_form(&claude, w.form));
	assert_int_equal(w.nkinds, 2);
	assert_int_equal(weigh_prompt(&w, SPAN("gpt-4.1")), n);
	assert_int_equal(w.nkinds, 2);
	arena_free(&arena);
}

/* Only what trimming keeps has to fit: that is no size of what is sent. */
static void
test_least(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct weigh w = {.form = form_of(arena), .least = true};
	struct tokens_model gpt = tokens_model(NULL, SPAN("gpt-4o"));

	(void)state;
	assert_int_equal(weigh_prompt(&w, SPAN("gpt-4o")), trim_least(w.form, &gpt));
	assert_true(weigh_prompt(&w, SPAN("gpt-4o")) < tokens_form(&gpt, w.form));
	assert_int_equal(weigh_counted(&w, SPAN("gpt-4o")), 0);
	arena_free(&arena);
}

static void
test_unread(void **state)
{
	struct weigh w = {.form = NULL};

	(void)state;
	assert_int_equal(weigh_prompt(&w, SPAN("gpt-4o")), -1);
	assert_int_equal(weigh_counted(&w, SPAN("gpt-4o")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_models),
	    cmocka_unit_test(test_least),
	    cmocka_unit_test(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
