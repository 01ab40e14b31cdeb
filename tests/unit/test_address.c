#include "address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT "/chat/completions"
#define V "api-version=2024-10-21"

static const struct {
	const char *what;
	enum provider_id provider;
	const char *base, *path, *model, *want;
} cases[] = {
    /* HDR-16: base_url has no slash at its end when it comes here */
    {"bare", PROVIDER_COMPATIBLE, "http://u", CHAT, "m", "http://u" CHAT},
    {"v1", PROVIDER_COMPATIBLE, "http://u/v1", CHAT, "m", "http://u/v1" CHAT},
    {"prefix", PROVIDER_COMPATIBLE, "http://u/api/v1", "/messages", "m",
        "http://u/api/v1/messages"},
    {"v10", PROVIDER_COMPATIBLE, "http://u/v10", "/responses", "m", "http://u/v10/responses"},
    {"v4", PROVIDER_ZHIPU, "http://u/paas/v4", "/embeddings", "m", "http://u/paas/v4/embeddings"},
    {"a model is no path", PROVIDER_OPENAI, "http://u/v1", "/models", "../x", "http://u/v1/models"},
    {"azure: bare host", PROVIDER_AZURE, "https://r.openai.azure.com", CHAT, "m",
        "https://r.openai.azure.com/openai/v1" CHAT},
    {"azure: openai", PROVIDER_AZURE, "https://r/openai", CHAT, "m", "https://r/openai/v1" CHAT},
    {"azure: v1", PROVIDER_AZURE, "https://r/openai/v1", "/responses", "m",
        "https://r/openai/v1/responses"},
    {"azure: v1 with a query", PROVIDER_AZURE, "https://r/openai/v1?api-version=preview", CHAT, "m",
        "https://r/openai/v1" CHAT "?api-version=preview"},
    {"azure: another path", PROVIDER_AZURE, "https://r/gate/v1", CHAT, "m",
        "https://r/gate/v1" CHAT},
    {"classic: all given", PROVIDER_AZURE, "https://r/openai/deployments/d?api-version=x", CHAT,
        "m", "https://r/openai/deployments/d" CHAT "?api-version=x"},
    {"classic: no version", PROVIDER_AZURE, "https://r/openai/deployments/d", CHAT, "m",
        "https://r/openai/deployments/d" CHAT "?" V},
    {"classic: another query", PROVIDER_AZURE, "https://r/openai/deployments/d?k=v", CHAT, "m",
        "https://r/openai/deployments/d" CHAT "?k=v&" V},
    {"classic: the model names it", PROVIDER_AZURE, "https://r/openai/deployments", CHAT, "gpt-4.1",
        "https://r/openai/deployments/gpt-4.1" CHAT "?" V},
    {"classic: by the version", PROVIDER_AZURE, "https://r?api-version=x", CHAT, "m",
        "https://r/openai/deployments/m" CHAT "?api-version=x"},
    {"classic: slash before the query", PROVIDER_AZURE, "https://r/?api-version=x", CHAT, "m",
        "https://r/openai/deployments/m" CHAT "?api-version=x"},
    {"classic: openai and the version", PROVIDER_AZURE, "https://r/openai?api-version=x", CHAT, "m",
        "https://r/openai/deployments/m" CHAT "?api-version=x"},
    {"classic: models", PROVIDER_AZURE, "https://r/openai/deployments/d?api-version=x", "/models",
        "", "https://r/openai/models?api-version=x"},
    {"a model cannot leave its place", PROVIDER_AZURE, "https://r?api-version=x", CHAT,
        "../a?b#c/d %",
        "https://r/openai/deployments/..%2Fa%3Fb%23c%2Fd%20%25" CHAT "?api-version=x"},
    {"... nor by dots", PROVIDER_AZURE, "https://r?api-version=x", CHAT, "..",
        "https://r/openai/deployments/_" CHAT "?api-version=x"},
    {"no model", PROVIDER_AZURE, "https://r?api-version=x", CHAT, "",
        "https://r/openai/deployments/_" CHAT "?api-version=x"},
};

static void
test_join(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct conf_channel channel = {.provider = provider_at(cases[i].provider),
		    .base_url = text_span(cases[i].base)};
		const char *got =
		    address_join(arena, &channel, cases[i].path, text_span(cases[i].model));

		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%s: got %s, want %s", cases[i].what, got, cases[i].want);
	}
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_join)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
