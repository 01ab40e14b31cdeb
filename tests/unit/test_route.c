#include "route.h"

#include "lib/conf_text.h"

#include <setjmp.h>
#include <stdarg.h>
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_route),
	    cmocka_unit_test(test_nobody),
	    cmocka_unit_test(test_any_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
