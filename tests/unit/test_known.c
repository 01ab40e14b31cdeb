#include "conf/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct conf_fact facts[] = {
    {.name = SPAN("z")},
    {.name = SPAN("gpt-4o"), .context_window = 128000, .max_output = 16384},
    {.name = SPAN("gpt-4o-2024-05-13"), .context_window = 1},
    {.name = SPAN("claude-sonnet-4"), .context_window = 200000},
    {.name = SPAN("glm-4.5-flash"), .cost = {.given = true}},
    {.name = SPAN("meta/llama"), .context_window = 2},
    {.name = SPAN("llama"), .context_window = 3},
    {.name = SPAN("gpt-4"), .context_window = 8192},
    {.name = SPAN("-20240513"), .context_window = 4},
    {.name = SPAN("priced"), .cost = {true, 30, 60, 10}},
};

static struct conf_target targets[] = {
    {.channel = 0, .model = SPAN("priced"), .cost = {true, 1, 2, 3}, .max_output = 77, .weight = 5},
    {.channel = 1, .model = SPAN("other")},
};
static struct conf_header header = {SPAN("temperature"), SPAN("1")};
static struct conf_model models[] = {
    {.name = SPAN("alias"), .targets = targets, .ntargets = NELEM(targets), .max_output = 9},
    {.name = SPAN("gpt-4"), .context_window = 4000, .defaults = &header, .ndefaults = 1},
    {.name = SPAN("llama"), .max_output = 5, .context_window = 4, .cost = {.given = true}},
};
static const struct conf conf = {
    .facts = facts, .nfacts = NELEM(facts), .models = models, .nmodels = NELEM(models)};

static int
set_up(void **state)
{
	(void)state;
	known_sort(facts, NELEM(facts));
	return 0;
}

/* formats.md H.5: exact, without the date, without what stands before a slash; else unknown. */
static const struct {
	const char *what, *model, *want;
} names[] = {
    {"exact", "gpt-4o", "gpt-4o"},
    {"exact, although it ends in a date", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"},
    {"a date with dashes", "gpt-4o-2024-08-06", "gpt-4o"},
    {"a date without", "claude-sonnet-4-20250514", "claude-sonnet-4"},
    {"no date: a month", "gpt-4o-2024-13-06", NULL},
    {"no date: a day", "gpt-4o-20240532", NULL},
    {"no date: day 0", "gpt-4o-2024-05-00", NULL},
    {"no date: a year", "gpt-4o-19990501", NULL},
    {"no date: mixed dashes", "gpt-4o-2024-0506", NULL},
    {"no date: too short", "gpt-4o-0806", NULL},
    {"no date: letters", "gpt-4o-2024o806", NULL},
    {"no date: no dash before it", "gpt-4o20240806", NULL},
    {"a date alone is a name", "-20240513", "-20240513"},
    {"a provider", "openai/gpt-4o", "gpt-4o"},
    {"a provider and a date", "openai/gpt-4o-2024-08-06", "gpt-4o"},
    {"the whole first", "meta/llama", "meta/llama"},
    {"less of it", "router/meta/llama", "meta/llama"},
    {"all of it", "a/b/c/llama", "llama"},
    {"nothing behind the slash", "gpt-4o/", NULL},
    {"slashes alone", "//", NULL},
    {"another suffix is another model", "gpt-4o:free", NULL},
    {"case counts", "GPT-4o", NULL},
    {"a longer name", "gpt-4o-mini", NULL},
    {"the beginning of one", "gpt", NULL},
    {"no name", "", NULL},
};

static void
test_names(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(names); i++) {
		const struct conf_fact *got = known_fact(&conf, text_span(names[i].model));
		const char *name = got == NULL ? NULL : got->name.p;

		if ((name == NULL) == (names[i].want == NULL) &&
		    (name == NULL || text_is(got->name, names[i].want)))
			continue;
		print_error("%s: got %s\n", names[i].what, name == NULL ? "none" : name);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static const struct {
	const char *what;
	size_t channel;
	const char *model;
	int64_t want; /* of input; -1 = unknown */
} prices[] = {
    {"of the target there", 0, "priced", 1},
    {"of the name, on another channel", 1, "priced", 30},
    {"of a target only by its exact name", 0, "x/priced", 30},
    {"free is a price", 0, "glm-4.5-flash", 0},
    {"of an entry before the file", 0, "meta-llama/llama", 0},
    {"an entry without a price hides nothing", 0, "gpt-4", -1},
    {"known, but not its price", 0, "gpt-4o", -1},
    {"a target without a price", 1, "other", -1},
    {"unknown", 0, "nope", -1},
};

static void
test_prices(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(prices); i++) {
		const struct conf_cost *got =
		    known_price(&conf, prices[i].channel, text_span(prices[i].model));
		int64_t input = got == NULL ? -1 : got->input_micros;

		if (input == prices[i].want)
			continue;
		print_error("%s: got %lld\n", prices[i].what, (long long)input);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static void
test_targets(void **state)
{
	struct conf_target t = known_target(&conf, &models[0], 0, SPAN("priced"));

	(void)state;
	assert_int_equal(t.max_output, 77); /* the entry's own */
	assert_true(t.weight > 4.9);
	t = known_target(&conf, NULL, 0, SPAN("priced")); /* not asked for by that entry */
	assert_int_equal(t.max_output, 0);
	assert_int_equal(t.cost.input_micros, 1);
	assert_true(t.weight < 1.1 && t.weight > 0.9);
	t = known_target(&conf, &models[0], 1, SPAN("gpt-4")); /* a fallback: by its name */
	assert_int_equal(t.context_window, 4000);
	assert_int_equal(t.ndefaults, 1);
	assert_true(text_is(t.model, "gpt-4") && t.channel == 1);
	t = known_target(&conf, NULL, 1, SPAN("x/gpt-4")); /* facts are taken loosely, wishes not */
	assert_int_equal(t.context_window, 4000);
	assert_int_equal(t.ndefaults, 0);
	t = known_target(&conf, NULL, 1, SPAN("llama")); /* of one name, field by field */
	assert_int_equal(t.context_window, 4);
	assert_int_equal(t.max_output, 4); /* and never above the window */
	assert_true(t.cost.given);
	t = known_target(&conf, NULL, 1, SPAN("nope"));
	assert_false(t.cost.given);
	assert_int_equal(t.context_window + t.max_output, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_prices),
	    cmocka_unit_test(test_targets),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
