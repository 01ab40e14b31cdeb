#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *path;
	bool found;
	enum endpoint_who who;
	enum endpoint_work work;
	const char *takes, *dialect; /* one method that it takes, "both", or "DELETE" and GET */
} cases[] = {
    {"/v1/chat/completions", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "chat"},
    {"/v1/messages", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "messages"},
    {"/v1/messages/count_tokens", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "count_tokens"},
    {"/v1/messages/batches", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/v1/responses", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "responses"},
    {"/v1/responses/resp_1", true, ENDPOINT_CLIENT, ENDPOINT_RECALL, "DELETE", "responses"},
    {"/v1/responses/resp_1/input_items", true, ENDPOINT_CLIENT, ENDPOINT_RECALL, "DELETE",
        "responses"},
    {"/v1/responses/", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/v1/run", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "run"},
    {"/v1/run/x", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/v1/completions", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "completions"},
    {"/v1/embeddings", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "embeddings"},
    {"/v1/moderations", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "moderations"},
    {"/v1/images/generations", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "images"},
    {"/v1/images/edits", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "image_edits"},
    {"/v1/images/variations", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "image_variations"},
    {"/v1/audio/speech", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "speech"},
    {"/v1/audio/transcriptions", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "transcriptions"},
    {"/v1/audio/translations", true, ENDPOINT_CLIENT, ENDPOINT_FORWARD, "POST", "translations"},
    {"/v1/models", true, ENDPOINT_CLIENT, ENDPOINT_MODELS, "GET", "chat"},
    {"/v1/models/m", true, ENDPOINT_CLIENT, ENDPOINT_MODELS, "GET", "chat"},
    {"/v1/models/a/b", true, ENDPOINT_CLIENT, ENDPOINT_MODELS, "GET", "chat"},
    {"/v1/doctor", true, ENDPOINT_CLIENT, ENDPOINT_DOCTOR, "both", "chat"},
    {"/v1/doctor/x", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/healthz", true, ENDPOINT_ANYONE, ENDPOINT_HEALTHZ, "GET", "chat"},
    {"/status", true, ENDPOINT_ADMIN, ENDPOINT_STATUS, "GET", "chat"},
    {"/v1/models/", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/v1/modelsx", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/v1/chat/completions/x", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/healthz/x", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/status/x", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
    {"/STATUS", false, ENDPOINT_ANYONE, ENDPOINT_FORWARD, NULL, NULL},
};

static void
check_methods(const struct endpoint *e, const char *takes)
{
	bool both = strcmp(takes, "both") == 0, deletes = strcmp(takes, "DELETE") == 0;
	bool gets = both || deletes || strcmp(takes, "GET") == 0;
	bool posts = both || strcmp(takes, "POST") == 0;
	static const char *const methods[] = {
	    "GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "get", "", "POSTS"};

	for (size_t i = 0; i < NELEM(methods); i++) {
		bool want = i < 2 ? gets : i == 2 ? posts : i == 3 && deletes;

		if (endpoint_takes(e, text_span(methods[i])) != want)
			fail_msg("%s: '%s'", e->path, methods[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		bool want = i < 2 ? gets : i == 2 ? posts : deletes;

		if ((strstr(endpoint_allow(e), methods[i]) != NULL) != want)
			fail_msg("%s: Allow '%s'", e->path, endpoint_allow(e));
	}
}

static void
test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		const struct endpoint *e = endpoint_find(text_span(cases[i].path));
		enum path_kind kind = endpoint_known(text_span(cases[i].path));

		if ((e != NULL) != cases[i].found)
			fail_msg("'%s': found %d", cases[i].path, e != NULL);
		if (e == NULL) {
			assert_int_equal(kind, PATH_UNKNOWN);
			continue;
		}
		if (e->who != cases[i].who || e->work != cases[i].work ||
		    strcmp(e->dialect->name, cases[i].dialect) != 0)
			fail_msg("'%s': who %d work %d %s", cases[i].path, (int)e->who,
			    (int)e->work, e->dialect->name);
		assert_int_equal(kind, e->who == ENDPOINT_ADMIN ? PATH_ADMIN : PATH_CLIENT);
		check_methods(e, cases[i].takes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
