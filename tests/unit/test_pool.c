#include "pool.h"

#include "lib/rig.h"

#define A "{'id': 'a', 'api_key': 'key-a'}"
#define A_REKEYED "{'id': 'a', 'api_key': 'key-new'}"
#define B "{'id': 'b', 'api_key': 'key-b'}"
#define C "{'id': 'c', 'api_key': 'key-c', 'weight': 0}"
#define ONE(accounts) "{'channels': {'oa': {'provider': 'openai', 'accounts': [" accounts "]}}}"
#define OTHER "{'channels': {'x': {'provider': 'openai', 'accounts': [" A "]},"
#define LATER " 'oa': {'provider': 'openai', 'accounts': [" B ", " C ", " A "]}}}"

static struct pool *
look(struct env *env, const struct conf *conf)
{
	struct why why = {""};
	struct pool *pool = NULL;

	if (pool_open(env, conf, false, &pool, &why) != ERR_OK)
		fail_msg("%s", why.text);
	return pool;
}

/* Who only looks gets no number for what the store does not know, and makes nothing. */
static void
test_look(void **state)
{
	struct store_dir *dir = *state;
	struct conf *conf = conf_text(dir->path, ONE(A ", " B));
	struct env *env = store_dir_open(dir);

	for (int round = 0; round < 2; round++) {
		struct pool *pool = look(env, conf);

		assert_false(pool_has(pool, 0, 0));
		assert_false(pool_has(pool, 0, 1));
		pool_free(&pool);
		assert_null(pool);
	}
	struct pool *pool = rig_pool(env, conf);

	assert_true(pool_has(pool, 0, 0));
	pool_free(&pool);
	pool = look(env, conf);
	assert_true(pool_has(pool, 0, 1));
	assert_int_equal(pool->channels[0].top, 2);
	pool_free(&pool);
	env_close(&env);
	conf_free(&conf);
}

/* State is keyed by channel and id: it survives reordering, removal and what is added. */
static void
test_reordered(void **state)
{
	struct store_dir *dir = *state;
	struct rig rig;
	struct account_ref a, b;
	struct conf *later = conf_text(dir->path, OTHER LATER);
	struct pool *pool;

	rig_open(&rig, dir, ONE(A ", " B));
	a = pool_ref(rig.pool, 0, 0);
	b = pool_ref(rig.pool, 0, 1);
	pool = rig_pool(rig.env, later);
	assert_int_equal(pool_ref(pool, 1, 2).number, a.number);
	assert_int_equal(pool_ref(pool, 1, 2).channel, a.channel);
	assert_int_equal(pool_ref(pool, 1, 0).number, b.number);
	assert_int_equal(pool_ref(pool, 1, 1).number, 2); /* new */
	assert_int_not_equal(pool_ref(pool, 0, 0).channel, a.channel);
	assert_int_equal(pool->channels[1].top, 3);
	assert_int_equal(pool->channels[1].seats[a.number].index, 2);
	assert_int_equal(pool->channels[1].seats[b.number].index, 0);
	pool_free(&pool);
	conf_free(&later);

	later = conf_text(dir->path, ONE(B)); /* a is gone from the file, not from the store */
	pool = rig_pool(rig.env, later);
	assert_int_equal(pool_ref(pool, 0, 0).number, b.number);
	assert_int_equal(pool->channels[0].seats[a.number].index, UINT32_MAX);
	pool_free(&pool);
	conf_free(&later);
	rig_close(&rig);
}

static void
test_rekeyed(void **state)
{
	struct store_dir *dir = *state;
	struct rig rig;
	struct conf *later = conf_text(dir->path, ONE(A_REKEYED ", " B));
	struct account_row row = {
	    .version = 1, .flags = ACCOUNT_DISABLED, .session_dead = 2, .soft_streak = 3};
	struct pool *pool;

	rig_open(&rig, dir, ONE(A ", " B));
	rig_put(&rig, 0, &row);
	rig_put(&rig, 1, &row);
	pool = look(rig.env, later);
	assert_int_equal(rig_state(&rig, 0, "").row.flags, ACCOUNT_DISABLED);
	pool_free(&pool);
	pool = rig_pool(rig.env, later);
	assert_int_equal(rig_state(&rig, 0, "").row.flags, 0);
	assert_int_equal(rig_state(&rig, 0, "").row.session_dead, 0);
	assert_int_equal(rig_state(&rig, 0, "").row.soft_streak, 3);
	assert_int_equal(rig_state(&rig, 1, "").row.flags, ACCOUNT_DISABLED);
	pool_free(&pool);
	conf_free(&later);
	rig_close(&rig);
}

static void
test_policy(void **state)
{
	struct rig rig;
	const struct pool_channel *pc;

	rig_open(&rig, *state,
	    "{'breaker': {'threshold': 4, 'backoff': ['1m', '2m']},"
	    " 'cooldown': {'session_dead_after': 5, 'auth_failed_after': 6},"
	    " 'pool': {'disable_after': 7},"
	    " 'channels': {"
	    "  'oa': {'provider': 'openai', 'breaker': {'threshold': 9}, 'accounts': [" C "]},"
	    "  'ob': {'provider': 'openai', 'accounts': [" A ", " C "]}}}");
	pc = &rig.pool->channels[0];
	assert_int_equal(pc->health.threshold, 9);
	assert_int_equal(pc->health.nbackoff, 2);
	assert_int_equal(pc->health.backoff_ms[1], 120000);
	assert_int_equal(pc->health.session_dead_after, 5);
	assert_int_equal(pc->health.auth_failed_after, 6);
	assert_int_equal(pc->health.disable_after, 7);
	assert_true(pc->unweighted);
	assert_int_equal(rig.pool->channels[1].health.threshold, 4);
	assert_false(rig.pool->channels[1].unweighted);
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_look),
	    TXN_TEST(test_reordered),
	    TXN_TEST(test_rekeyed),
	    TXN_TEST(test_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
