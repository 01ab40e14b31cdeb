#include "route.h"

#include "lib/conf_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ACCOUNT "'accounts': [{'id': 'a', 'api_key': 'k'}]"

static const char json[] =
    "{'channels': {"
    "  'glm': {'provider': 'zhipu', 'models': ['glm-*', 'cog*view'], " ACCOUNT "},"
    "  'claude': {'provider': 'anthropic', 'models': ['claude-*', 'any-*'], " ACCOUNT "},"
    "  'gpt': {'provider': 'openai', 'models': ['gpt-4*', 'glm-4'], " ACCOUNT "},"
    "  'rest': {'provider': 'openai-compatible', 'base_url': 'http://127.0.0.1:1/v1', " ACCOUNT
    "}},"
    " 'models': {"
    "  'smart': {'targets': [{'channel': 'gpt', 'model': 'gpt-4-turbo'}, {'channel': 'glm', 'model': 'glm-5'}],"
    "            'realm': 'cn'},"
    "  'gpt-4o': {'targets': [{'channel': 'rest', 'model': 'gpt-4o-mini'}]},"
    "  'mixed': {'targets': [{'channel': 'claude', 'model': 'claude-x'}, {'channel': 'rest', 'model': 'y'}]},"
    "  'foreign': {'targets': [{'channel': 'claude', 'model': 'claude-x'}]}}}";

static const struct {
	const char *what, *model, *channel, *name; /* channel NULL: nobody */
	bool entry;
} cases[] = {
    {"first whose pattern matches", "glm-4", "glm", "glm-4", false},
    {"star in the middle", "cogNview", "glm", "cogNview", false},
    {"second channel's pattern", "gpt-4.1", "gpt", "gpt-4.1", false},
    {"channel without patterns takes any", "whatever", "rest", "whatever", false},
    {"byte for byte", "GLM-4", "rest", "GLM-4", false},
    {"no model named", "", "rest", "", false},
    {"patterns of another wire are passed over", "any-thing", "rest", "any-thing", false},
    {"an entry's first target", "smart", "gpt", "gpt-4-turbo", true},
    {"an entry beats patterns", "gpt-4o", "rest", "gpt-4o-mini", true},
    {"an entry's first target of this wire", "mixed", "rest", "y", true},
    {"an entry of another wire only: nobody", "foreign", NULL, NULL, false},
    {"entries are no patterns", "smart*", "rest", "smart*", false},
};

static void
test_route(void **state)
{
	struct conf *conf = conf_alone(json);

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct route route = {.channel = SIZE_MAX};
		bool found =
		    route_find(conf, text_span(cases[i].model), ROUTE_WIRE(WIRE_CHAT), &route);

		if (found != (cases[i].channel != NULL))
			fail_msg("%s: found %d", cases[i].what, found);
		if (!found)
			continue;
		if (!text_is(conf->channels[route.channel].name, cases[i].channel) ||
		    !text_is(route.model, cases[i].name) || (route.entry != NULL) != cases[i].entry)
			fail_msg("%s: got channel %zu, '%.*s', entry %d", cases[i].what,
			    route.channel, (int)route.model.n, route.model.p, route.entry != NULL);
	}
	conf_free(&conf);
}

static void
test_nobody(void **state)
{
	struct conf *conf = conf_alone(
	    "{'channels': {'c': {'provider': 'openai', 'models': ['gpt-*'], " ACCOUNT "}}}");
	struct route route;

	(void)state;
	assert_false(route_find(conf, SPAN("glm-4"), ROUTE_WIRE(WIRE_CHAT), &route));
	assert_false(route_find(conf, SPAN("gpt-4"), ROUTE_WIRE(WIRE_MESSAGES), &route));
	assert_true(route_find(conf, SPAN("gpt-4"), ROUTE_WIRE(WIRE_CHAT), &route));
	conf_free(&conf);
}

/* What can be converted goes to the first that serves the model, whatever it speaks. */
static void
test_any_wire(void **state)
{
	static const struct {
		const char *model, *channel;
	} any[] = {{"any-thing", "claude"}, {"mixed", "claude"}, {"foreign", "claude"},
	    {"gpt-4.1", "gpt"}};
	struct conf *conf = conf_alone(json);
	struct route route;

	(void)state;
	for (size_t i = 0; i < NELEM(any); i++) {
		assert_true(route_find(conf, text_span(any[i].model), ROUTE_WIRES_ALL, &route));
		if (!text_is(conf->channels[route.channel].name, any[i].channel))
			fail_msg("%s: got channel %zu", any[i].model, route.channel);
	}
	assert_true(route_find(
	    conf, SPAN("mixed"), ROUTE_WIRE(WIRE_CHAT) | ROUTE_WIRE(WIRE_RESPONSES), &route));
	assert_true(text_is(conf->channels[route.channel].name, "rest"));
	conf_free(&conf);
}

/* ---- all candidates ---- */

static const char tasks_json[] =
    "{'channels': {"
    "  'oa': {'provider': 'openai', 'models': ['gpt-*'], " ACCOUNT "},"
    "  'an': {'provider': 'anthropic', 'models': ['claude-*'], " ACCOUNT "},"
    "  'ob': {'provider': 'openai-compatible', 'base_url': 'http://127.0.0.1:1/v1', 'models': ['x-*'], " ACCOUNT
    "}},"
    " 'routing': {'default': 'cost-first', 'tasks': {"
    "    'code': ['coder', 'plain'], 'translation': 'claude-t', 'my-own': ['coder', 'coder2', 'coder']%s}},"
    " 'models': {"
    "  'coder': {'targets': [{'channel': 'oa', 'model': 'gpt-c'}, {'channel': 'an', 'model': 'claude-c'}],"
    "            'strategy': 'performance'},"
    "  'coder2': {'targets': [{'channel': 'an', 'model': 'claude-c'}, {'channel': 'ob', 'model': 'x-c'}]},"
    "  'plain': {'targets': [{'channel': 'ob', 'model': 'x-p'}]},"
    "  'sum': {'targets': [{'channel': 'oa', 'model': 'gpt-s'}], 'tasks': ['summarization']}}}";

#define DEFAULT ", 'default': 'plain'"

static const struct {
	const char *what, *model, *task, *more, *list; /* list NULL: nobody */
	unsigned wires;
	int strategy;
} lists[] = {
    {"by name: all of them", "coder", "", "", "oa/gpt-c an/claude-c", ROUTE_WIRES_ALL,
        CONF_ROUTE_PERFORMANCE},
    {"an explicit model wins over a task", "plain", "code", "", "ob/x-p", ROUTE_WIRES_ALL,
        CONF_ROUTE_COST_FIRST},
    {"what another wire speaks is listed, too", "coder", "", "", "oa/gpt-c an/claude-c",
        ROUTE_WIRE(WIRE_CHAT), CONF_ROUTE_PERFORMANCE},
    {"but one must speak a wire of the request", "coder", "", "", NULL, ROUTE_WIRE(WIRE_RESPONSES),
        0},
    {"no entry", "claude-7", "", "", "an/claude-7", ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"no entry, and its wire", "claude-7", "", "", NULL, ROUTE_WIRE(WIRE_CHAT), 0},
    {"nobody", "other", "", "", NULL, ROUTE_WIRES_ALL, 0},
    {"by task: a list", "auto", "code", "", "oa/gpt-c an/claude-c ob/x-p", ROUTE_WIRES_ALL,
        CONF_ROUTE_COST_FIRST},
    {"by its other name", "auto", "Code_Generation", "", "oa/gpt-c an/claude-c ob/x-p",
        ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"by task: a name without an entry", "auto", "translation", "", "an/claude-t", ROUTE_WIRES_ALL,
        CONF_ROUTE_COST_FIRST},
    {"a task of the operator's, each target once", "auto", "MY_OWN", "",
        "oa/gpt-c an/claude-c ob/x-c", ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"without an entry: the default", "auto", "creative", DEFAULT, "ob/x-p", ROUTE_WIRES_ALL,
        CONF_ROUTE_COST_FIRST},
    {"no task: the default", "auto", "", DEFAULT, "ob/x-p", ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"no default: who lists it", "auto", "summary", "", "oa/gpt-s", ROUTE_WIRES_ALL,
        CONF_ROUTE_COST_FIRST},
    {"nobody lists it: who lists none", "auto", "creative", "",
        "oa/gpt-c an/claude-c ob/x-c ob/x-p", ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"no task, no default: who lists none", "auto", "", "", "oa/gpt-c an/claude-c ob/x-c ob/x-p",
        ROUTE_WIRES_ALL, CONF_ROUTE_COST_FIRST},
    {"one entry's strategy", "auto", "creative", ", 'default': ['coder']", "oa/gpt-c an/claude-c",
        ROUTE_WIRES_ALL, CONF_ROUTE_PERFORMANCE},
};

static void
print_list(const struct conf *conf, const struct route_list *list, char *out, size_t cap)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->n; i++) {
		struct span channel = conf->channels[list->at[i].channel].name;
		struct span model = list->at[i].model;

		n += (size_t)snprintf(out + n, cap - n, "%s%.*s/%.*s", i > 0 ? " " : "",
		    (int)channel.n, channel.p, (int)model.n, model.p);
	}
}

static void
test_lists(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(lists); i++) {
		char json_text[2048], got[256];
		struct conf *conf;
		struct route_list list;
		const struct route_wish wish = {
		    text_span(lists[i].model), text_span(lists[i].task), lists[i].wires};
		bool found;

		snprintf(json_text, sizeof json_text, tasks_json, lists[i].more);
		conf = conf_alone(json_text);
		found = route_all(conf, &wish, arena, &list);
		print_list(conf, &list, got, sizeof got);
		if (found != (lists[i].list != NULL) ||
		    (found &&
		        (strcmp(got, lists[i].list) != 0 || list.strategy != lists[i].strategy))) {
			print_error("%s: %s, strategy %d, want %s\n", lists[i].what, got,
			    list.strategy, lists[i].list == NULL ? "nobody" : lists[i].list);
			bad++;
		}
		conf_free(&conf);
	}
	assert_int_equal(bad, 0);
	arena_free(&arena);
}

static const struct {
	const char *what, *more;
	bool is_auto;
} autos[] = {
    {"nobody speaks of tasks", "", false},
    {"routing.tasks", ", 'routing': {'tasks': {'code': 'm'}}", true},
    {"an entry lists tasks",
        ", 'models': {'m': {'targets': [{'channel': 'oa'}], 'tasks': ['code']}}", true},
    {"a target lists tasks",
        ", 'models': {'m': {'targets': [{'channel': 'oa', 'tasks': ['code']}]}}", true},
    {"an entry of that name",
        ", 'routing': {'tasks': {'code': 'm'}},"
        " 'models': {'auto': {'targets': [{'channel': 'oa'}]}}",
        false},
};

static void
test_auto(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(autos); i++) {
		char text[512];
		struct conf *conf;

		snprintf(text, sizeof text,
		    "{'channels': {'oa': {'provider': 'openai', " ACCOUNT "}}%s}", autos[i].more);
		conf = conf_alone(text);
		if (route_is_auto(conf, SPAN("auto")) != autos[i].is_auto)
			fail_msg("%s: want %d", autos[i].what, autos[i].is_auto);
		assert_false(route_is_auto(conf, SPAN("m")));
		conf_free(&conf);
	}
}

static const struct {
	const char *listed, *task;
	bool lists;
} spellings[] = {
    {"code", "code", true},
    {"code", "CODE", true},
    {"code-generation", "code", true},
    {"code", "coding", true},
    {"my-own", "my_own", true},
    {"my-own", "MyOwn", true},
    {"my-own", "my-own-", true},
    {"my-own", "my-owns", false},
    {"my-owns", "my-own", false},
    {"code", "creative", false},
    {"own", "", false},
    {"code", "c\0de", false},
};

static void
test_spellings(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(spellings); i++) {
		struct span name = text_span(spellings[i].listed);
		struct conf_strings tasks = {&name, 1};

		if (route_lists(&tasks, text_span(spellings[i].task)) != spellings[i].lists)
			fail_msg("'%s' and '%s': want %d", spellings[i].listed, spellings[i].task,
			    spellings[i].lists);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_route),
	    cmocka_unit_test(test_nobody),
	    cmocka_unit_test(test_any_wire),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_auto),
	    cmocka_unit_test(test_spellings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
