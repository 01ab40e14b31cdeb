#include "warm.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Both handshakes come about, again and again, and leave no error behind for whoever asks OpenSSL next. */
static void
test_handshakes(void **state)
{
	X509_STORE *store = X509_STORE_new();

	(void)state;
	assert_non_null(store);
	for (int i = 0; i < 3; i++) {
		assert_true(warm_tls(store));
		assert_int_equal(ERR_peek_error(), 0);
	}
	assert_int_equal(sk_X509_OBJECT_num(X509_STORE_get0_objects(store)), 0);
	X509_STORE_free(store);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_handshakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
