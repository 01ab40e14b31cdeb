#include "conf/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
	const char *name;
	bool clients;
} names[] = {
    {"HTTP_X_USER", true},
    {"HTTP_", true},
    {"http_x_user", true},
    {"REDIRECT_HTTP_X_USER", true},
    {"REDIRECT_REDIRECT_HTTP_X_USER", true},
    {"Redirect_http_x", true},
    {"Authorization", true},
    {"QUERY_STRING", true},
    {"REDIRECT_QUERY_STRING", true},
    {"PATH_INFO", true},
    {"SERVER_NAME", true},
    {"SSL_TLS_SNI", true},
    {"REMOTE_IDENT", true},
    {"REMOTE_USER", false},
    {"REDIRECT_REMOTE_USER", false},
    {"REMOTE_ADDR", false},
    {"SSL_CLIENT_S_DN_CN", false},
    {"HTTPS", false},
    {"HTTP", false},
    {"X_HTTP_USER", false},
    {"PATH_INFO_USER", false},
    {"REDIRECT_", false},
    {"", false},
};

static void
test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(names); i++)
		if (claim_is_clients(text_span(names[i].name)) != names[i].clients)
			fail_msg("%s: want %d", names[i].name, names[i].clients);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
