#include "access.h"

#include "lib/conf_text.h"
#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHANNELS \
	"'channels': {'c': {'provider': 'openai', 'accounts': [{'id': 'a', 'api_key': 'k'}]}}}"
#define SERVER "{"
#define OPEN "{'auth': {'mode': 'open', 'admins': ['root']}, "
#define ADMINS "{'auth': {'admins': ['root', 'ops@example.com']}, "
#define TWO "{'auth': {'user_variables': ['SSL_CLIENT_S_DN_CN', 'REMOTE_USER']}, "

static const struct {
	const char *what, *auth;
	const char *params[3]; /* the last is NULL */
	enum access_answer answer;
	const char *client;
} clients[] = {
    {"a user", SERVER, {"REMOTE_USER=ann"}, ACCESS_OK, "ann"},
    {"no user", SERVER, {"PATH_INFO=/x"}, ACCESS_UNKNOWN, ""},
    {"an empty user is none", SERVER, {"REMOTE_USER="}, ACCESS_UNKNOWN, ""},
    {"a header is not a variable", SERVER, {"HTTP_REMOTE_USER=ann"}, ACCESS_UNKNOWN, ""},
    {"a longer name is another variable", SERVER, {"REMOTE_USERS=ann"}, ACCESS_UNKNOWN, ""},
    {"REDIRECT_ is another variable", SERVER, {"REDIRECT_REMOTE_USER=ann"}, ACCESS_UNKNOWN, ""},
    {"a key proves nothing here", SERVER, {"HTTP_AUTHORIZATION=Bearer k"}, ACCESS_UNKNOWN, ""},
    {"a user with = in it", SERVER, {"REMOTE_USER=a=b"}, ACCESS_OK, "a=b"},
    {"the first variable wins", TWO, {"REMOTE_USER=ann", "SSL_CLIENT_S_DN_CN=cert"}, ACCESS_OK,
        "cert"},
    {"the second where the first is empty", TWO, {"SSL_CLIENT_S_DN_CN=", "REMOTE_USER=ann"},
        ACCESS_OK, "ann"},
    {"open: nobody is fine", OPEN, {"PATH_INFO=/x"}, ACCESS_OK, ""},
    {"open: a user is still known", OPEN, {"REMOTE_USER=ann"}, ACCESS_OK, "ann"},
};

static void
test_client(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(clients); i++) {
		char json[512];
		struct conf *conf;
		struct memory m;
		struct span client;
		enum access_answer answer;

		snprintf(json, sizeof json, "%s%s", clients[i].auth, CHANNELS);
		conf = conf_alone(json);
		memory_init(&m, clients[i].params, SPAN(""));
		answer = access_client(conf, &m.x, &client);
		if (answer != clients[i].answer || !text_is(client, clients[i].client))
			fail_msg("%s: got %d '%.*s'", clients[i].what, (int)answer, (int)client.n,
			    client.p);
		memory_release(&m);
		conf_free(&conf);
	}
}

/* Whatever the configuration check lets through: a variable that a client can set never counts. */
static void
test_http_never(void **state)
{
	struct span names[] = {SPAN("HTTP_X_USER"), SPAN("HTTP_"), SPAN("REMOTE_USER")};
	struct conf conf = {.auth = {.user_variables = {names, 3}}};
	static const char *const evil[] = {"HTTP_X_USER=root", "HTTP_=root", NULL};
	static const char *const good[] = {"HTTP_X_USER=root", "REMOTE_USER=ann", NULL};
	struct memory m;
	struct span client;

	(void)state;
	memory_init(&m, evil, SPAN(""));
	assert_int_equal(access_client(&conf, &m.x, &client), ACCESS_UNKNOWN);
	memory_release(&m);
	memory_init(&m, good, SPAN(""));
	assert_int_equal(access_client(&conf, &m.x, &client), ACCESS_OK);
	assert_true(text_is(client, "ann"));
	conf.auth.mode = CONF_AUTH_KEYS;
	assert_int_equal(access_client(&conf, &m.x, &client), ACCESS_UNBUILT);
	memory_release(&m);
}

static const struct {
	const char *auth, *client;
	enum access_answer answer;
} admins[] = {
    {ADMINS, "root", ACCESS_OK},
    {ADMINS, "ops@example.com", ACCESS_OK},
    {ADMINS, "ann", ACCESS_REFUSED},
    {ADMINS, "Root", ACCESS_REFUSED},
    {ADMINS, "root ", ACCESS_REFUSED},
    {ADMINS, "roo", ACCESS_REFUSED},
    {ADMINS, "", ACCESS_REFUSED},
    {SERVER, "root", ACCESS_REFUSED},
    {SERVER, "", ACCESS_REFUSED},
    {OPEN, "", ACCESS_REFUSED},
    {OPEN, "root", ACCESS_OK},
};

static void
test_admin(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(admins); i++) {
		char json[512];
		struct conf *conf;
		enum access_answer answer;

		snprintf(json, sizeof json, "%s%s", admins[i].auth, CHANNELS);
		conf = conf_alone(json);
		answer = access_admin(conf, text_span(admins[i].client));
		if (answer != admins[i].answer)
			fail_msg(
			    "'%s' with %s: got %d", admins[i].client, admins[i].auth, (int)answer);
		conf_free(&conf);
	}
	assert_non_null(strstr(access_hint(), "REMOTE_USER"));
	assert_non_null(strstr(access_hint(), "Require"));
}

static const struct {
	const char *origins, *origin, *want;
} crossings[] = {
    {"", "HTTP_ORIGIN=https://a.example", ""},
    {"'https://a.example'", "HTTP_ORIGIN=https://a.example", "https://a.example"},
    {"'https://a.example'", "HTTP_ORIGIN=https://b.example", ""},
    {"'https://a.example'", "HTTP_ORIGIN=https://a.example.evil", ""},
    {"'https://b.example', 'https://a.example'", "HTTP_ORIGIN=https://a.example",
        "https://a.example"},
    {"'*'", "HTTP_ORIGIN=null", "null"},
    {"'*'", "HTTP_HOST=h", ""},
};

static void
test_origin(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(crossings); i++) {
		char json[512];
		const char *params[] = {crossings[i].origin, NULL};
		struct memory m;
		struct conf *conf;

		snprintf(json, sizeof json, "{'server': {'cors_origins': [%s]}, %s",
		    crossings[i].origins, CHANNELS);
		conf = conf_alone(json);
		memory_init(&m, params, SPAN(""));
		if (!text_is(access_origin(conf, &m.x), crossings[i].want))
			fail_msg("%s with [%s]", crossings[i].origin, crossings[i].origins);
		memory_release(&m);
		conf_free(&conf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_client),
	    cmocka_unit_test(test_http_never),
	    cmocka_unit_test(test_admin),
	    cmocka_unit_test(test_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
