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

#define CERT "{'auth': {'user_variables': ['SSL_CLIENT_S_DN']}, "
#define BACK "{'auth': {'user_variables': ['REDIRECT_REMOTE_USER', 'REMOTE_USER']}, "
#define LONG_51 "abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwx"
#define LONG_255 LONG_51 LONG_51 LONG_51 LONG_51 LONG_51

static const struct {
	const char *what, *auth;
	const char *params[4]; /* the last is NULL */
	enum access_answer answer;
	const char *client;
} clients[] = {
    {"a user", SERVER, {"REMOTE_USER=ann"}, ACCESS_OK, "ann"},
    {"no user", SERVER, {"PATH_INFO=/x"}, ACCESS_UNKNOWN, ""},
    {"an empty user is none", SERVER, {"REMOTE_USER="}, ACCESS_UNKNOWN, ""},
    {"a header is not a variable", SERVER, {"HTTP_REMOTE_USER=ann"}, ACCESS_UNKNOWN, ""},
    {"a longer name is another variable", SERVER, {"REMOTE_USERS=ann"}, ACCESS_UNKNOWN, ""},
    {"a shorter one, too", SERVER, {"REMOTE_USE=ann"}, ACCESS_UNKNOWN, ""},
    {"and one in lower case", SERVER, {"remote_user=ann"}, ACCESS_UNKNOWN, ""},
    {"a variable without a value", SERVER, {"REMOTE_USER"}, ACCESS_UNKNOWN, ""},
    {"REDIRECT_ is another variable", SERVER, {"REDIRECT_REMOTE_USER=ann"}, ACCESS_UNKNOWN, ""},
    {"a key proves nothing here", SERVER, {"HTTP_AUTHORIZATION=Bearer k"}, ACCESS_UNKNOWN, ""},
    {"a user with = in it", SERVER, {"REMOTE_USER=a=b"}, ACCESS_OK, "a=b"},
    {"blanks belong to the name", SERVER, {"REMOTE_USER=ann "}, ACCESS_OK, "ann "},
    {"the first variable wins", TWO, {"REMOTE_USER=ann", "SSL_CLIENT_S_DN_CN=cert"}, ACCESS_OK,
        "cert"},
    {"the second where the first is empty", TWO, {"SSL_CLIENT_S_DN_CN=", "REMOTE_USER=ann"},
        ACCESS_OK, "ann"},
    {"open: nobody is fine", OPEN, {"PATH_INFO=/x"}, ACCESS_OK, ""},
    {"open: a user is still known", OPEN, {"REMOTE_USER=ann"}, ACCESS_OK, "ann"},

    {"twice, first empty", SERVER, {"REMOTE_USER=", "REMOTE_USER=ann"}, ACCESS_OK, "ann"},
    {"twice, second empty", SERVER, {"REMOTE_USER=ann", "REMOTE_USER="}, ACCESS_OK, "ann"},
    {"twice the same", SERVER, {"REMOTE_USER=ann", "REMOTE_USER=ann"}, ACCESS_OK, "ann"},
    {"twice, two names", SERVER, {"REMOTE_USER=ann", "REMOTE_USER=bob"}, ACCESS_UNFIT, ""},
    {"twice, one begins alike", SERVER, {"REMOTE_USER=ann", "REMOTE_USER=anna"}, ACCESS_UNFIT, ""},
    {"twice, behind a good first variable", TWO,
        {"SSL_CLIENT_S_DN_CN=cert", "REMOTE_USER=a", "REMOTE_USER=b"}, ACCESS_OK, "cert"},

    {"255 bytes", SERVER, {"REMOTE_USER=" LONG_255}, ACCESS_OK, LONG_255},
    {"256 bytes", SERVER, {"REMOTE_USER=" LONG_255 "x"}, ACCESS_UNFIT, ""},
    {"open: 256 bytes", OPEN, {"REMOTE_USER=" LONG_255 "x"}, ACCESS_UNFIT, ""},
    {"an unfit first variable", TWO, {"SSL_CLIENT_S_DN_CN=a\nb", "REMOTE_USER=ann"}, ACCESS_UNFIT,
        ""},
    {"line feed", SERVER, {"REMOTE_USER=ann\n"}, ACCESS_UNFIT, ""},
    {"tab", SERVER, {"REMOTE_USER=a\tb"}, ACCESS_UNFIT, ""},
    {"delete", SERVER, {"REMOTE_USER=a\x7f"}, ACCESS_UNFIT, ""},
    {"C1 control", SERVER, {"REMOTE_USER=a\xc2\x9b"}, ACCESS_UNFIT, ""},
    {"no-break space is none", SERVER, {"REMOTE_USER=a\xc2\xa0"}, ACCESS_OK, "a\xc2\xa0"},
    {"UTF-8", SERVER, {"REMOTE_USER=j\xc3\xbcrgen"}, ACCESS_OK, "j\xc3\xbcrgen"},
    {"Latin 1", SERVER, {"REMOTE_USER=j\xfcrgen"}, ACCESS_UNFIT, ""},
    {"half a character", SERVER, {"REMOTE_USER=j\xc3"}, ACCESS_UNFIT, ""},
    {"the ledger's name for the rest", SERVER, {"REMOTE_USER=(other)"}, ACCESS_UNFIT, ""},

    {"a certificate that passed", CERT, {"SSL_CLIENT_S_DN=CN=x", "SSL_CLIENT_VERIFY=SUCCESS"},
        ACCESS_OK, "CN=x"},
    {"a server that does not say", CERT, {"SSL_CLIENT_S_DN=CN=x"}, ACCESS_OK, "CN=x"},
    {"a certificate nobody looked at", CERT, {"SSL_CLIENT_S_DN=CN=x", "SSL_CLIENT_VERIFY=GENEROUS"},
        ACCESS_UNKNOWN, ""},
    {"a certificate that did not pass", CERT,
        {"SSL_CLIENT_S_DN=CN=x", "SSL_CLIENT_VERIFY=FAILED:expired"}, ACCESS_UNKNOWN, ""},
    {"no certificate", CERT, {"SSL_CLIENT_S_DN=CN=x", "SSL_CLIENT_VERIFY=NONE"}, ACCESS_UNKNOWN,
        ""},
    {"the next variable where it did not pass", TWO,
        {"SSL_CLIENT_S_DN_CN=x", "SSL_CLIENT_VERIFY=NONE", "REMOTE_USER=ann"}, ACCESS_OK, "ann"},

    {"a rewrite's name", BACK, {"REDIRECT_REMOTE_USER=ann", "REDIRECT_STATUS=200"}, ACCESS_OK,
        "ann"},
    {"the name of a failed login", BACK, {"REDIRECT_REMOTE_USER=ann", "REDIRECT_STATUS=401"},
        ACCESS_UNKNOWN, ""},
    {"nobody says what led here", BACK, {"REDIRECT_REMOTE_USER=ann"}, ACCESS_UNKNOWN, ""},

    {"nginx's fastcgi_params: not looked at", SERVER,
        {"REMOTE_USER=ann", "SERVER_SOFTWARE=nginx/1.22.1"}, ACCESS_UNKNOWN, ""},
    {"nginx, an empty AUTH_TYPE", SERVER,
        {"REMOTE_USER=ann", "SERVER_SOFTWARE=nginx", "AUTH_TYPE="}, ACCESS_UNKNOWN, ""},
    {"nginx, its site says that it looks", SERVER,
        {"REMOTE_USER=ann", "SERVER_SOFTWARE=nginx/1.22.1", "AUTH_TYPE=Basic"}, ACCESS_OK, "ann"},
    {"nginx, a variable of the site", TWO,
        {"SSL_CLIENT_S_DN_CN=ann", "SERVER_SOFTWARE=nginx/1.22.1"}, ACCESS_OK, "ann"},
    {"Apache sets no AUTH_TYPE for tokens", SERVER,
        {"REMOTE_USER=ann", "SERVER_SOFTWARE=Apache/2.4.62"}, ACCESS_OK, "ann"},
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
	struct span names[] = {SPAN("HTTP_X_USER"), SPAN("HTTP_"), SPAN("REDIRECT_HTTP_X_USER"),
	    SPAN("QUERY_STRING"), SPAN("REMOTE_USER")};
	struct conf conf = {.auth = {.user_variables = {names, NELEM(names)}}};
	static const char *const evil[] = {"HTTP_X_USER=root", "HTTP_=root",
	    "REDIRECT_HTTP_X_USER=root", "REDIRECT_STATUS=200", "QUERY_STRING=root", NULL};
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
}

static const struct {
	const char *software, *says, *silent;
} hints[] = {
    {"Apache/2.4.62 (Debian)", "Require valid-user", "auth.require"},
    {"Apache", "SSLUserName", "lighttpd"},
    {"LiteSpeed", "Require valid-user", "lighttpd"},
    {"lighttpd/1.4.69", "auth.require", "Apache"},
    {"nginx/1.22.1", "auth_basic", "lighttpd"},
    {"", "Require", NULL},
    {"", "auth.require", NULL},
    {"", "auth_basic", NULL},
    {"my nginx", "Apache", NULL},
};

static void
test_hint(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(hints); i++) {
		const char *text = access_hint(text_span(hints[i].software));

		if (strstr(text, "REMOTE_USER") == NULL || strstr(text, hints[i].says) == NULL ||
		    (hints[i].silent != NULL && strstr(text, hints[i].silent) != NULL))
			fail_msg("'%s': got '%s'", hints[i].software, text);
	}
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
	    cmocka_unit_test(test_hint),
	    cmocka_unit_test(test_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
