/*
 * test_walk_elect - what the store says of targets decides who is asked: rests, sizes, accounts, breakers.
 */
#include "walk_elect.h"

#include "lib/rig.h"

#define S 1000LL
#define ACCOUNT "'accounts': [{'id': 'a', 'api_key': 'k'}]"
#define CHANNEL(name, more) \
	"'" name            \
	"': {'provider': 'openai-compatible', 'base_url': 'http://127.0.0.1:1', " more ACCOUNT "}"

static const char json[] = "{'channels': {" CHANNEL("oa", "") ", " CHANNEL("ob", "") ", " CHANNEL(
    "oc",
    "'fallback': ['oa'], ") "},"
                            " 'routing': {'model_fail_after': 3, 'model_cooldown': '5m'},"
                            " 'models': {'smart': {'strategy': 'task', 'targets': ["
                            "    {'channel': 'oa', 'model': 'a', 'context_window': 1000, 'cost': {'input': 1, 'output': 2}},"
                            "    {'channel': 'ob', 'model': 'b', 'context_window': 5000, 'max_output': 100, 'cost': {'input': 3, 'output': 0}},"
                            "    {'channel': 'oc', 'model': 'c'}]},"
                            "  'alone': {'targets': [{'channel': 'oa', 'model': 'a'}]}}}";

struct scene {
	struct rig rig;
	struct arena *arena;
	struct walk walk;
	struct walk_elect elect;
	/* of the running transaction */
	const char *model;
	size_t channel;
	const struct target_row *row;
	struct account_row account;
};

static void
scene_open(struct scene *s, const struct store_dir *dir, const char *model)
{
	struct route_list list;
	struct route_wish wish = {text_span(model), SPAN(""), ROUTE_WIRES_ALL};
	struct walk_start start = {.list = &list, .wires = ROUTE_WIRES_ALL};

	memset(s, 0, sizeof *s);
	rig_open(&s->rig, dir, json);
	s->arena = arena_new(1 << 20);
	assert_true(route_all(s->rig.conf, &wish, s->arena, &list));
	walk_begin(&s->walk, s->rig.pool, &start, s->arena);
	s->elect = (struct walk_elect){.walk = &s->walk,
	    .slot = s->rig.slot,
	    .arena = s->arena,
	    .size = {.guess = 10},
	    .now = s->rig.now,
	    .rule = walk_rule(&s->walk, 4711)};
}

static void
scene_close(struct scene *s)
{
	arena_free(&s->arena);
	rig_close(&s->rig);
}

static enum store_rc
elect_in(struct txn *txn, void *arg)
{
	struct scene *s = arg;

	return walk_elect(txn, &s->elect);
}

/* Letter of who is chosen, or '-'. */
static char
chosen(struct scene *s)
{
	OK(env_view(s->rig.env, elect_in, s));
	return s->elect.target == ELECT_NOBODY ? '-' : (char)('a' + s->elect.target);
}

static enum store_rc
put_row_in(struct txn *txn, void *arg)
{
	const struct scene *s = arg;

	return target_put(txn, pool_target(s->rig.pool, s->channel, text_span(s->model)), s->row);
}

static void
put_row(struct scene *s, size_t channel, const struct target_row *row)
{
	static const char *const models[] = {"a", "b", "c"};

	s->channel = channel;
	s->model = models[channel];
	s->row = row;
	OK(env_update(s->rig.env, put_row_in, s));
}

static enum store_rc
put_account_in(struct txn *txn, void *arg)
{
	const struct scene *s = arg;

	return account_put(txn, pool_ref(s->rig.pool, s->channel, 0), &s->account);
}

static void
put_account(struct scene *s, size_t channel, struct account_row row)
{
	s->channel = channel;
	s->account = row;
	s->account.version = 1;
	s->account.credits_micros = ACCOUNT_NO_CREDITS;
	OK(env_update(s->rig.env, put_account_in, s));
}

static struct target_row
resting(int64_t until_ms)
{
	return (struct target_row){.version = 1, .consecutive = 3, .rest_until_ms = until_ms};
}

static void
test_rests(void **state)
{
	struct target_row row = resting(RIG_NOW + 60 * S);
	struct scene s;

	scene_open(&s, *state, "smart");
	assert_int_equal(chosen(&s), 'a');
	put_row(&s, 0, &row);
	assert_int_equal(chosen(&s), 'b');
	assert_int_equal(s.walk.candidates[0].out, ELECT_RESTS);
	assert_int_equal(s.walk.facts[0].rest_until_ms, RIG_NOW + 60 * S);
	assert_true(s.walk.rests);
	assert_int_equal(s.walk.earliest.v, RIG_NOW + 60 * S);
	put_row(&s, 1, &row);
	put_row(&s, 2, &row);
	assert_int_equal(chosen(&s), '-');
	scene_close(&s);
}

static enum store_rc
trial_in(struct txn *txn, void *arg)
{
	struct scene *s = arg;

	return walk_elect_trial(txn, &s->elect, &s->elect.every);
}

/* Over: whoever takes the trial has it; for all others it rests again. */
static void
test_trial(void **state)
{
	struct target_row row = resting(RIG_NOW - 1);
	struct scene s;

	scene_open(&s, *state, "smart");
	window_add(&row.calls, s.rig.conf->routing.window_ms, s.rig.now, 1); /* failed */
	put_row(&s, 0, &row);
	assert_int_equal(chosen(&s), 'a');
	assert_true(s.walk.candidates[0].trial);
	assert_int_equal(s.walk.candidates[0].success_ppm, ELECT_RATE_ONE); /* as if it were new */
	OK(env_update(s.rig.env, trial_in, &s));
	assert_true(s.elect.every); /* taken */
	s.elect.target = 0;
	OK(env_update(s.rig.env, trial_in, &s));
	assert_false(s.elect.every);
	assert_int_equal(chosen(&s), 'b');
	assert_int_equal(s.walk.candidates[0].out, ELECT_RESTS);
	scene_close(&s);
}

static const struct {
	const char *what;
	int64_t prompts[3], limit;
	char chosen;
	int64_t largest; /* window that walk_largest_window() tells */
} sizes[] = {
    {"fits", {1000, 1000, 1000}, 0, 'a', 0},
    {"one too many", {1001, 1000, 1000}, 0, 'b', 0},
    {"with what the answer may take", {900, 900, 900}, 101, 'b', 0},
    {"as each model counts", {1001, 5001, 9}, 0, 'c', 0},
    {"an unknown window fits", {9000, 9000, 9000}, 0, 'c', 0},
    {"cannot be read: fits", {-1, -1, -1}, 5000, 'a', 0},
};

static void
test_sizes(void **state)
{
	struct scene s;

	scene_open(&s, *state, "smart");
	for (size_t i = 0; i < NELEM(sizes); i++) {
		char got;

		s.elect.size =
		    (struct walk_size){.prompts = sizes[i].prompts, .limit = sizes[i].limit};
		got = chosen(&s);
		if (got != sizes[i].chosen || walk_largest_window(&s.walk) != sizes[i].largest)
			fail_msg("%s: got %c, largest %lld", sizes[i].what, got,
			    (long long)walk_largest_window(&s.walk));
	}
	/* a target that was tried or rests is no reason to say that none is large enough */
	s.elect.size.prompts = (const int64_t[]){9000, 9000, 9000};
	s.walk.candidates[2].out = ELECT_TASK;
	assert_int_equal(chosen(&s), '-');
	assert_int_equal(walk_largest_window(&s.walk), 5000);
	s.walk.candidates[2].out = ELECT_TRIED;
	assert_int_equal(chosen(&s), '-');
	assert_int_equal(walk_largest_window(&s.walk), 0);
	scene_close(&s);
}

/* What upstreams reported moves the count: in the bounds of target_correct(). */
static void
test_correction(void **state)
{
	struct target_row row = {.version = 1, .ratio_ppm = 2 * TARGET_RATIO_ONE, .ratio_n = 9};
	struct scene s;

	scene_open(&s, *state, "smart");
	s.elect.size.prompts = (const int64_t[]){600, 600, 600};
	assert_int_equal(chosen(&s), 'a');
	put_row(&s, 0, &row);
	assert_int_equal(chosen(&s), 'b');
	assert_int_equal(s.walk.facts[0].prompt, 1200);
	assert_int_equal(s.walk.facts[1].prompt, 600);
	scene_close(&s);
}

static void
test_costs(void **state)
{
	struct target_row row = {.version = 1, .output_tokens = 50};
	struct scene s;

	scene_open(&s, *state, "smart");
	s.elect.size.prompts = (const int64_t[]){200, 300, 400};
	put_row(&s, 0, &row);
	(void)chosen(&s);
	/* micros for 1,000 tokens: 200 * 1 + 50 * 2; 300 * 3 + 100 * 0, whose answer is bounded */
	assert_true(s.walk.candidates[0].cost == 300 * 1000000LL);
	assert_int_equal(s.walk.facts[1].output, 100);
	assert_true(s.walk.candidates[1].cost == 900 * 1000000LL);
	assert_false(s.walk.candidates[2].priced);
	s.elect.size.limit = 10;
	(void)chosen(&s);
	assert_true(s.walk.candidates[0].cost == 220 * 1000000LL);
	s.elect.size = (struct walk_size){.guess = 1000};
	(void)chosen(&s);
	assert_true(s.walk.candidates[0].cost == 1100 * 1000000LL);
	s.elect.size.guess = INT64_MAX / 3;
	(void)chosen(&s);
	assert_true(s.walk.candidates[0].cost == INT64_MAX);
	scene_close(&s);
}

/* Accounts are looked for until somebody is found; then who is only busy or rests is a last resort. */
static void
test_accounts(void **state)
{
	const struct account_row off = {.flags = ACCOUNT_DISABLED};
	struct scene s;

	scene_open(&s, *state, "smart");
	put_account(&s, 0, off);
	assert_int_equal(chosen(&s), 'b');
	assert_int_equal(s.walk.candidates[0].out, ELECT_EXHAUSTED);
	put_account(&s, 1, (struct account_row){.cool_until_ms = RIG_NOW + S});
	assert_int_equal(chosen(&s), 'c');
	put_account(&s, 2, off);
	assert_int_equal(chosen(&s), 'a'); /* for the reason why nobody can be had */
	assert_int_equal(s.walk.candidates[0].out, ELECT_EXHAUSTED);
	/* what was tried is no candidate any more */
	walk_take(&s.walk, 0, s.arena);
	assert_int_equal(chosen(&s), 'b');
	/* it comes back when its account does */
	put_account(&s, 2, (struct account_row){.flags = 0});
	assert_int_equal(chosen(&s), 'c');
	assert_int_equal(s.walk.candidates[2].out, ELECT_IN);
	scene_close(&s);
}

static enum store_rc
open_breaker_in(struct txn *txn, void *arg)
{
	const struct scene *s = arg;
	struct breaker_row row;

	assert_int_equal(breaker_get(txn, s->rig.pool->channels[0].number, &row), STORE_NONE);
	row.state = BREAKER_OPEN;
	row.trigger = BREAKER_ERROR_RATE;
	row.until_ms = RIG_NOW + 60 * S;
	return breaker_put(txn, s->rig.pool->channels[0].number, &row);
}

static void
test_breakers(void **state)
{
	struct scene s;

	scene_open(&s, *state, "smart");
	OK(env_update(s.rig.env, open_breaker_in, &s));
	assert_int_equal(chosen(&s), 'b');
	assert_int_equal(s.walk.candidates[0].out, ELECT_OPEN);
	scene_close(&s);
}

/* With one target the pick itself says whether an account can be had. */
static void
test_one_target(void **state)
{
	struct target_row row = resting(RIG_NOW - 1);
	struct scene s;

	scene_open(&s, *state, "alone");
	put_account(&s, 0, (struct account_row){.flags = ACCOUNT_DISABLED});
	assert_int_equal(chosen(&s), 'a');
	assert_int_equal(s.walk.candidates[0].out, ELECT_IN);
	/* unless it is a trial, which is not to be spent on nothing */
	put_row(&s, 0, &row);
	assert_int_equal(chosen(&s), 'a');
	assert_int_equal(s.walk.candidates[0].out, ELECT_EXHAUSTED);
	scene_close(&s);
}

static void
test_every(void **state)
{
	struct scene s;

	scene_open(&s, *state, "smart");
	put_account(&s, 1, (struct account_row){.flags = ACCOUNT_DISABLED});
	put_account(&s, 2, (struct account_row){.flags = ACCOUNT_DISABLED});
	s.elect.every = true;
	assert_int_equal(chosen(&s), 'a');
	assert_int_equal(s.walk.candidates[1].out, ELECT_EXHAUSTED);
	/* nobody is active and a fallback could serve: its breaker says so, as to a pick */
	assert_int_equal(s.walk.candidates[2].out, ELECT_OPEN);
	scene_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_rests),
	    TXN_TEST(test_trial),
	    TXN_TEST(test_sizes),
	    TXN_TEST(test_correction),
	    TXN_TEST(test_costs),
	    TXN_TEST(test_accounts),
	    TXN_TEST(test_breakers),
	    TXN_TEST(test_one_target),
	    TXN_TEST(test_every),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
