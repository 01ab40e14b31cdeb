#include "resolve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Numeric hosts: nobody is asked. */
static const struct row {
	const char *what, *url;
	bool is_proxy;
	const char *want; /* NULL: none */
} rows[] = {
    {"http", "http://127.0.0.1/v1", false, "+127.0.0.1:80:127.0.0.1"},
    {"https", "https://127.0.0.1/v1", false, "+127.0.0.1:443:127.0.0.1"},
    {"port", "http://127.0.0.1:8080/v1", false, "+127.0.0.1:8080:127.0.0.1"},
    {"no path", "http://127.0.0.1:8080", false, "+127.0.0.1:8080:127.0.0.1"},
    {"query", "http://127.0.0.1?a=b:c/d", false, "+127.0.0.1:80:127.0.0.1"},
    {"proxy", "http://127.0.0.1", true, "+127.0.0.1:1080:127.0.0.1"},
    {"proxy with a port", "socks5h://127.0.0.1:9050", true, "+127.0.0.1:9050:127.0.0.1"},
    {"proxy with credentials", "http://me:a@b@127.0.0.1:3128", true, "+127.0.0.1:3128:127.0.0.1"},
    {"no such host", "http://999.0.0.1.invalid/", false, NULL},
    {"no host", "http:///v1", false, NULL},
};

static void
entries(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct row *r = &rows[i];
		const char *got = resolve_entry(arena, text_span(r->url), r->is_proxy);

		if ((got == NULL) != (r->want == NULL) ||
		    (got != NULL && strcmp(got, r->want) != 0))
			fail_msg("%s: got %s, want %s", r->what, got == NULL ? "none" : got,
			    r->want == NULL ? "none" : r->want);
		arena_reset(arena);
	}
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(entries)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
