#include "dialect/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "You are a helpful assistant." and "Hello!" are 19 tokens with o200k: formats.md G.5. */
static void
conversation(void **state)
{
	struct form_part system[] = {
	    {.kind = FORM_TEXT, .text = SPAN("You are a helpful assistant.")}};
	struct form_part user[] = {{.kind = FORM_TEXT, .text = SPAN("Hello!")}};
	struct form_turn turns[] = {
	    {.role = FORM_SYSTEM, .parts = system, .nparts = 1},
	    {.role = FORM_USER, .parts = user, .nparts = 1},
	};
	struct form form = {.turns = turns, .nturns = 2};
	struct tokens_model model = tokens_model(NULL, SPAN("gpt-4o"));
	int64_t n = tokens_form(&model, &form);

	(void)state;
	assert_in_range(n, 18, 20);
	user[0] = (struct form_part){.kind = FORM_IMAGE, .media.url = SPAN("https://x/y.png")};
	assert_in_range(tokens_form(&model, &form), 1010, 1020);
	user[0] = (struct form_part){.kind = FORM_RESULT, .result = {.parts = system, .nparts = 1}};
	assert_in_range(tokens_form(&model, &form), 24, 30);
	user[0] = (struct form_part){
	    .kind = FORM_CALL, .call = {.name = SPAN("f"), .arguments = SPAN("{\"a\":1}")}};
	assert_in_range(tokens_form(&model, &form), 26, 34);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(conversation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
