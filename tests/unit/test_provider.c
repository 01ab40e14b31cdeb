#include "conf/provider.h"

#include "conf/url.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *name, *base_url;
	enum provider_wire wire;
	enum provider_auth auth;
	const char *timezone;
	bool per_model;
} want[] = {
    {"openai-compatible", NULL, WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"openai", "https://api.openai.com/v1", WIRE_CHAT, AUTH_BEARER, NULL, true},
    {"anthropic", "https://api.anthropic.com/v1", WIRE_MESSAGES, AUTH_X_API_KEY, NULL, false},
    {"deepseek", "https://api.deepseek.com", WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"zhipu", "https://open.bigmodel.cn/api/paas/v4", WIRE_CHAT, AUTH_BEARER, "Asia/Shanghai",
        false},
    {"dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", WIRE_CHAT, AUTH_BEARER,
        "Asia/Shanghai", false},
    {"moonshot", "https://api.moonshot.cn/v1", WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"siliconflow", "https://api.siliconflow.cn/v1", WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"openrouter", "https://openrouter.ai/api/v1", WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", WIRE_CHAT, AUTH_BEARER,
        NULL, true},
    {"xai", "https://api.x.ai/v1", WIRE_CHAT, AUTH_BEARER, NULL, false},
    {"azure", NULL, WIRE_CHAT, AUTH_API_KEY, NULL, true},
};

static bool
same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void
test_rows(void **state)
{
	(void)state;
	assert_int_equal(NELEM(want), PROVIDER__MAX);
	for (size_t i = 0; i < NELEM(want); i++) {
		const struct provider *got = provider_find(text_span(want[i].name));

		if (got == NULL)
			fail_msg("%s: not found", want[i].name);
		else if (got->wire != want[i].wire || got->auth != want[i].auth ||
		         !same(got->base_url, want[i].base_url) ||
		         !same(got->timezone, want[i].timezone) ||
		         got->limits_per_model != want[i].per_model)
			fail_msg("%s: differs", want[i].name);
	}
}

static void
test_sound(void **state)
{
	struct why why;

	(void)state;
	for (enum provider_id id = 0; id < PROVIDER__MAX; id++) {
		const struct provider *p = provider_at(id);
		struct span url = text_span(p->base_url);

		assert_int_equal(p->id, id);
		assert_ptr_equal(provider_find(text_span(p->name)), p);
		assert_int_equal(p->timezone == NULL, p->utc_offset == NULL);
		if (url.p != NULL &&
		    (url_check(url, URL_BASE, &why) != ERR_OK || text_ends(url, "/")))
			fail_msg("%s: base_url: %s", p->name, why.text);
	}
	assert_null(provider_find(SPAN("OpenAI")));
	assert_null(provider_find(SPAN("")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows), cmocka_unit_test(test_sound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
