#include "conf/url.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	enum url_use use;
	const char *url, *why; /* NULL: fine */
} cases[] = {
    {URL_BASE, "https://api.openai.com/v1", NULL},
    {URL_BASE, "http://u", NULL},
    {URL_BASE, "http://u/v10/", NULL},
    {URL_BASE, "http://127.0.0.1:8080/v1", NULL},
    {URL_BASE, "http://[::1]:8080/v1", NULL},
    {URL_BASE, "https://h/a@b", NULL},
    {URL_BASE, "", "must begin"},
    {URL_BASE, "u/v1", "must begin"},
    {URL_BASE, "ftp://u", "must begin"},
    {URL_BASE, "HTTP://u", "must begin"},
    {URL_BASE, "//u", "must begin"},
    {URL_BASE, "file:///etc/passwd", "must begin"},
    {URL_BASE, "https://", "no host"},
    {URL_BASE, "https:///v1", "no host"},
    {URL_BASE, "https://:80/", "no host"},
    {URL_BASE, "https://h:/", "bad port"},
    {URL_BASE, "https://h:0/", "bad port"},
    {URL_BASE, "https://h:65536/", "bad port"},
    {URL_BASE, "https://h:-1/", "bad port"},
    {URL_BASE, "https://h:8x/", "bad port"},
    {URL_BASE, "https://[::1/", "no ']'"},
    {URL_BASE, "https://[::1]x/", "bad port"},
    {URL_BASE, "https://user:pass@h/", "credentials"},
    {URL_BASE, "https://h?x=1", "query"},
    {URL_BASE, "https://h/v1?", "query"},
    {URL_BASE, "https://h/#x", "fragment"},
    {URL_BASE, "https://h/a b", "blank"},
    {URL_BASE, "https://h/\r\nX: 1", "control"},
    {URL_CALL, "https://h/balance?x=1", NULL},
    {URL_CALL, "https://h?@", NULL},
    {URL_CALL, "https://u@h/", "credentials"},
    {URL_PROXY, "http://user:pass@h:3128", NULL},
    {URL_PROXY, "socks5h://h:1080", NULL},
    {URL_PROXY, "https://u:p@q@h:99999", "bad port"},
    {URL_PROXY, "h:3128", "must begin"},
    {URL_REDIS, "redis://:secret@h:6379/0", NULL},
    {URL_REDIS, "rediss://h", NULL},
    {URL_REDIS, "http://h", "must begin"},
};

static void
test_check(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct why why = {"fine"};
		bool fine = url_check(text_span(cases[i].url), cases[i].use, &why) == ERR_OK;

		if (fine != (cases[i].why == NULL) ||
		    (!fine && strstr(why.text, cases[i].why) == NULL))
			fail_msg("'%s': got '%s', want '%s'", cases[i].url, why.text,
			    cases[i].why == NULL ? "fine" : cases[i].why);
	}
}

static void
test_trim(void **state)
{
	(void)state;
	assert_true(text_is(url_trim(SPAN("http://u/v1//")), "http://u/v1"));
	assert_true(text_is(url_trim(SPAN("http://u")), "http://u"));
	assert_true(text_is(url_trim(SPAN("///")), ""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_check), cmocka_unit_test(test_trim)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
