/*
 * in_txn - run the body of a test inside one transaction on a store of its own.
 */
#ifndef TESTS_LIB_IN_TXN_H
#define TESTS_LIB_IN_TXN_H

#include "lib/store_dir.h"

#define OK(call) assert_int_equal((call), STORE_OK)

static inline void
in_txn(void **state, env_fn *body)
{
	struct env *env = store_dir_open(*state);

	assert_non_null(env);
	OK(env_update(env, body, NULL));
	env_close(&env);
}

#define TXN_TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

#endif
