#include "credential.h"

#include "lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define HEADER "HTTP_AUTHORIZATION="

static const struct {
	const char *what;
	const char *params[4]; /* the last is NULL */
	const char *authorization, *key;
} rows[] = {
    {"nothing", {"PATH_INFO=/x"}, "", ""},
    {"CGIPassAuth, lighttpd, nginx", {HEADER "Bearer k1"}, "Bearer k1", "k1"},
    {"a rewrite of the URL", {"REDIRECT_HTTP_AUTHORIZATION=Bearer k1"}, "Bearer k1", "k1"},
    {"two of them", {"REDIRECT_REDIRECT_HTTP_AUTHORIZATION=Bearer k1"}, "Bearer k1", "k1"},
    {"FcgidPassHeader", {"Authorization=Bearer k1"}, "Bearer k1", "k1"},
    {"FcgidPassHeader and CGIPassAuth", {"Authorization=Bearer k1", HEADER "Bearer k1"},
        "Bearer k1", "k1"},
    {"the shortest name first", {"REDIRECT_HTTP_AUTHORIZATION=Bearer k2", HEADER "Bearer k1"},
        "Bearer k1", "k1"},
    {"empty is absent", {HEADER, "REDIRECT_HTTP_AUTHORIZATION=Bearer k1"}, "Bearer k1", "k1"},
    {"blank is absent", {HEADER "  ", "REDIRECT_HTTP_AUTHORIZATION=Bearer k1"}, "Bearer k1", "k1"},
    {"other names",
        {"HTTP_REDIRECT_HTTP_AUTHORIZATION=Bearer k1", "HTTP_PROXY_AUTHORIZATION=x",
            "authorization=x"},
        "", ""},

    {"lower case", {HEADER "bearer k1"}, "bearer k1", "k1"},
    {"upper case", {HEADER "BEARER k1"}, "BEARER k1", "k1"},
    {"blanks around", {HEADER " Bearer \t k1  "}, "Bearer \t k1", "k1"},
    {"no blank", {HEADER "Bearerk1"}, "Bearerk1", ""},
    {"no key", {HEADER "Bearer"}, "Bearer", ""},
    {"no key, a blank", {HEADER "Bearer "}, "Bearer", ""},
    {"no scheme", {HEADER "k1"}, "k1", ""},
    {"another scheme", {HEADER "Basic azE6"}, "Basic azE6", ""},
    {"the case of the key stays", {HEADER "Bearer Sk-A_b.c~+/=="},
        "Bearer Sk-A_b.c~+/==", "Sk-A_b.c~+/=="},
    {"two headers made one", {HEADER "Bearer k1, Bearer k2"}, "Bearer k1, Bearer k2", ""},
    {"two headers made one, no blank", {HEADER "Bearer k1,k2"}, "Bearer k1,k2", ""},
    {"two words", {HEADER "Bearer k1 k2"}, "Bearer k1 k2", ""},
    {"control character", {HEADER "Bearer k\x01"}, "Bearer k\x01", ""},
    {"not ASCII", {HEADER "Bearer k\xc3\xa9"}, "Bearer k\xc3\xa9", ""},

    {"x-api-key", {"HTTP_X_API_KEY=k1"}, "", "k1"},
    {"x-api-key with blanks", {"HTTP_X_API_KEY= k1 "}, "", "k1"},
    {"api-key", {"HTTP_API_KEY=k1"}, "", "k1"},
    {"x-api-key before api-key", {"HTTP_API_KEY=k2", "HTTP_X_API_KEY=k1"}, "", "k1"},
    {"Bearer before x-api-key", {"HTTP_X_API_KEY=k2", HEADER "Bearer k1"}, "Bearer k1", "k1"},
    {"a password is no key", {"HTTP_X_API_KEY=k2", HEADER "Basic azE6"}, "Basic azE6", "k2"},
    {"a bad first key is not passed over", {"HTTP_X_API_KEY=k2", HEADER "Bearer a b"}, "Bearer a b",
        ""},
    {"x-api-key takes no scheme", {"HTTP_X_API_KEY=Bearer k1"}, "", ""},
    {"x-api-key twice", {"HTTP_X_API_KEY=k1, k2"}, "", ""},
    {"a key in the query is none", {"QUERY_STRING=key=k1&api_key=k1"}, "", ""},
};

static void
test_spellings(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct memory m;
		struct span authorization, key;

		memory_init(&m, rows[i].params, SPAN(""));
		authorization = credential_authorization(&m.x);
		key = credential_key(&m.x);
		if (!text_is(authorization, rows[i].authorization) || !text_is(key, rows[i].key))
			fail_msg("%s: got '%.*s', key '%.*s'", rows[i].what, (int)authorization.n,
			    authorization.p, (int)key.n, key.p);
		memory_release(&m);
	}
}

static void
test_long(void **state)
{
	static char param[64 + CREDENTIAL_MAX] = "HTTP_X_API_KEY=";
	const char *params[] = {param, NULL};
	size_t name = strlen(param);

	(void)state;
	for (size_t n = CREDENTIAL_MAX - 1; n <= CREDENTIAL_MAX + 1; n++) {
		struct memory m;

		memset(param + name, 'k', n);
		memory_init(&m, params, SPAN(""));
		assert_int_equal(credential_key(&m.x).n, n > CREDENTIAL_MAX ? 0 : n);
		memory_release(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_spellings), cmocka_unit_test(test_long)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
