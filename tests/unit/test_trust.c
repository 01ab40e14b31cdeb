#include "trust.h"

#include "lib/conf_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "{'state_dir':'/x','channels':{'c':{'provider':'openai-compatible','base_url':'"
#define TAIL ",'accounts':[{'id':'a','api_key':'k'}]}}}"

/* The configuration must outlive the trust. */
static struct trust *
later(const char *json, struct conf **conf_out)
{
	struct trust *trust = NULL;
	struct why why = {""};

	*conf_out = conf_alone(json);
	assert_int_equal(trust_later(*conf_out, &trust, &why), ERR_OK);
	return trust;
}

static void
test_none_for_http(void **state)
{
	struct conf *conf;
	struct trust *trust = later(HEAD "http://127.0.0.1/v1'" TAIL, &conf);

	(void)state;
	assert_null(trust_store(trust, SPAN("")));
	trust_free(&trust);
	conf_free(&conf);
}

static void
test_the_system_s(void **state)
{
	struct conf *conf;
	struct trust *trust = later(HEAD "https://h/v1'" TAIL, &conf);
	void *store = trust_store(trust, SPAN(""));

	(void)state;
	assert_non_null(store);
	assert_ptr_equal(trust_store(trust, SPAN("")), store); /* the same once more */
	assert_null(trust_store(trust, SPAN("/other")));
	trust_free(&trust);
	conf_free(&conf);
}

/* That a file cannot be read is known at once, that it is none when it is asked for. */
static void
test_a_file(void **state)
{
	struct conf *conf =
	    conf_alone(HEAD "https://h/v1','upstream':{'ca_file':'/nonexistent/ca.pem'}" TAIL);
	struct trust *trust = NULL;
	struct why why = {""};

	(void)state;
	assert_int_equal(trust_later(conf, &trust, &why), ERR_CONFIG);
	assert_non_null(strstr(why.text, "/nonexistent/ca.pem"));
	assert_null(trust);
	conf_free(&conf);
	trust = later(HEAD "https://h/v1','upstream':{'ca_file':'/dev/null'}" TAIL, &conf);
	assert_null(trust_store(trust, SPAN("/dev/null")));
	trust_free(&trust);
	assert_int_equal(trust_load(conf, &trust, &why), ERR_CONFIG);
	assert_null(trust);
	conf_free(&conf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_none_for_http),
	    cmocka_unit_test(test_the_system_s),
	    cmocka_unit_test(test_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
