#include "pick.h"

#include "lib/rig.h"
#include "verdict.h"

#define S 1000LL
#define H (3600 * S)

#define CHANNEL(settings, accounts) \
	"{'channels': {'oa': {'provider': 'openai', " settings " 'accounts': [" accounts "]}}}"
#define ACCOUNT(id, more) "{'id': '" id "', 'api_key': 'key-" id "'" more "}"
#define POOL(settings) "'pool': {'min_pick_gap': '0s', " settings "}, "
#define NO_PROBES POOL("'all_cooling': 'off'")

/* One account, and what keeps it from being picked. */
static const struct {
	const char *what, *more; /* more settings of the account */
	unsigned flags;
	int64_t cool, breaker; /* from now */
	enum verdict kind;
	int64_t model; /* cooldown of model "m" from now, 0 = none */
	enum verdict model_kind;
	const char *realm;
	bool tried;
	enum score_out out; /* SCORE_IN: it is taken */
	enum pick_result result;
	int64_t earliest; /* from now, 0 = none */
} reasons[] = {
    {"fresh", "", 0, 0, 0, 0, 0, 0, "", false, SCORE_IN, PICK_TAKEN, 0},
    {"enabled: false", ", 'enabled': false", 0, 0, 0, 0, 0, 0, "", false, SCORE_DISABLED,
        PICK_NOBODY, 0},
    {"disabled", "", ACCOUNT_DISABLED, 0, 0, 0, 0, 0, "", false, SCORE_DISABLED, PICK_NOBODY, 0},
    {"disabled and cooling", "", ACCOUNT_DISABLED, H, 0, VERDICT_SOFT_RATE, 0, 0, "", false,
        SCORE_DISABLED, PICK_NOBODY, 0},
    {"its realm", ", 'realm': 'cn'", 0, 0, 0, 0, 0, 0, "cn", false, SCORE_IN, PICK_TAKEN, 0},
    {"any realm", ", 'realm': 'cn'", 0, 0, 0, 0, 0, 0, "", false, SCORE_IN, PICK_TAKEN, 0},
    {"another realm", ", 'realm': 'cn'", 0, 0, 0, 0, 0, 0, "global", false, SCORE_REALM,
        PICK_NOBODY, 0},
    {"without a realm", "", 0, 0, 0, 0, 0, 0, "cn", false, SCORE_REALM, PICK_NOBODY, 0},
    {"serves the model", ", 'models': ['x', 'm*']", 0, 0, 0, 0, 0, 0, "", false, SCORE_IN,
        PICK_TAKEN, 0},
    {"serves others", ", 'models': ['x*']", 0, 0, 0, 0, 0, 0, "", false, SCORE_MODEL, PICK_MISSING,
        0},
    {"tried", "", 0, 0, 0, 0, 0, 0, "", true, SCORE_TRIED, PICK_TRIED, 0},
    {"cooling", "", 0, H, 0, VERDICT_SOFT_RATE, 0, 0, "", false, SCORE_COOLING, PICK_COOLING, H},
    {"cooling and tried", "", 0, H, 0, VERDICT_SOFT_RATE, 0, 0, "", true, SCORE_COOLING,
        PICK_COOLING, H},
    {"no longer cooling", "", 0, -1, -1, VERDICT_SOFT_RATE, 0, 0, "", false, SCORE_IN, PICK_TAKEN,
        0},
    {"breaker", "", 0, 0, H, 0, 0, 0, "", false, SCORE_BREAKER, PICK_COOLING, H},
    {"cooling, breaker later", "", 0, S, H, VERDICT_SOFT_RATE, 0, 0, "", false, SCORE_COOLING,
        PICK_COOLING, H},
    {"breaker, cooling later", "", 0, H, S, VERDICT_SOFT_RATE, 0, 0, "", false, SCORE_COOLING,
        PICK_COOLING, H},
    {"this model cooling", "", 0, 0, 0, 0, 30 * S, VERDICT_MODEL_RATE, "", false,
        SCORE_MODEL_COOLING, PICK_COOLING, 30 * S},
    {"this model no longer", "", 0, 0, 0, 0, -1, VERDICT_MODEL_RATE, "", false, SCORE_IN,
        PICK_TAKEN, 0},
    {"cooling, this model later", "", 0, S, 0, VERDICT_SOFT_RATE, H, VERDICT_MODEL_RATE, "", false,
        SCORE_COOLING, PICK_COOLING, H},
    {"this model missing", "", 0, 0, 0, 0, 30 * S, VERDICT_MODEL_MISSING, "", false,
        SCORE_MODEL_MISSING, PICK_MISSING, 0},
    {"out of credit", "", 0, H, 0, VERDICT_HARD_CREDIT, 0, 0, "", false, SCORE_COOLING,
        PICK_COOLING, H},
};

static void
test_reasons(void **state)
{
	for (size_t i = 0; i < NELEM(reasons); i++) {
		struct account_row row = {.version = 1,
		    .flags = (uint8_t)reasons[i].flags,
		    .cool_kind = (uint8_t)reasons[i].kind,
		    .cool_until_ms = reasons[i].cool == 0 ? 0 : RIG_NOW + reasons[i].cool,
		    .breaker_until_ms = reasons[i].breaker == 0 ? 0 : RIG_NOW + reasons[i].breaker,
		    .credits_micros = ACCOUNT_NO_CREDITS};
		struct cooldown_row pair = {
		    .kind = (uint8_t)reasons[i].model_kind, .until_ms = RIG_NOW + reasons[i].model};
		char json[512];
		struct pick_wish wish;
		struct rig rig;
		int got;

		snprintf(
		    json, sizeof json, CHANNEL(NO_PROBES, ACCOUNT("a", "%s")), reasons[i].more);
		rig_open(&rig, *state, json);
		rig_put(&rig, 0, &row);
		if (reasons[i].model != 0)
			rig_rest_model(&rig, 0, "m", &pair);
		wish = rig_wish(&rig, "m");
		wish.realm = text_span(reasons[i].realm);
		wish.ntried = reasons[i].tried; /* account 0 of channel 0 */
		got = rig_take(&rig, &wish);
		if ((got == 0) != (reasons[i].out == SCORE_IN) ||
		    rig.reason.out[reasons[i].out] != 1 || rig.reason.result != reasons[i].result ||
		    rig.reason.earliest.v !=
		        (reasons[i].earliest == 0 ? 0 : RIG_NOW + reasons[i].earliest))
			fail_msg("%s: got %d, result %d, earliest %lld", reasons[i].what, got,
			    (int)rig.reason.result, (long long)(rig.reason.earliest.v - RIG_NOW));
		if (got == 0)
			rig_release(&rig, rig.slot);
		/* another model is no concern of this model's rest */
		wish.model = "other";
		if (reasons[i].out == SCORE_MODEL_COOLING || reasons[i].out == SCORE_MODEL_MISSING)
			assert_int_equal(rig_take(&rig, &wish), 0);
		/* no model named: only the account counts */
		wish.model = "";
		if (reasons[i].out == SCORE_MODEL)
			assert_int_equal(rig_take(&rig, &wish), 0);
		/* what was set stays in the directory: begin anew */
		row = (struct account_row){.version = 1, .credits_micros = ACCOUNT_NO_CREDITS};
		rig_put(&rig, 0, &row);
		rig_close(&rig);
	}
}

/* Everybody is out for another reason, but one. */
static void
test_counts(void **state)
{
	static const char json[] = CHANNEL(NO_PROBES,
	    ACCOUNT("off", ", 'enabled': false") "," ACCOUNT("cn", ", 'realm': 'cn'") "," ACCOUNT(
	        "x", ", 'models': ['x'], 'realm': 'g'") "," ACCOUNT("w0",
	        ", 'weight': 0, 'realm': 'g'") "," ACCOUNT("tried",
	        ", 'realm': 'g'") "," ACCOUNT("cool", ", 'realm': 'g'") "," ACCOUNT("broken",
	        ", 'realm': 'g'") "," ACCOUNT("mcool", ", 'realm': 'g'") "," ACCOUNT("mmiss",
	        ", 'realm': 'g'") "," ACCOUNT("full",
	        ", 'realm': 'g', 'max_in_flight': 1, 'priority': -5") "," ACCOUNT("tier",
	        ", 'realm': 'g', 'priority': 7") "," ACCOUNT("good", ", 'realm': 'g'"));
	struct account_row cool = {.cool_until_ms = RIG_NOW + H, .cool_kind = VERDICT_SOFT_RATE};
	struct account_row broken = {.breaker_until_ms = RIG_NOW + S};
	struct cooldown_row pair = {.kind = VERDICT_MODEL_RATE, .until_ms = RIG_NOW + H};
	struct pick_wish wish;
	struct slot *other;
	struct rig rig;

	rig_open(&rig, *state, json);
	other = rig_slot(rig.env);
	rig_put(&rig, 5, &cool);
	rig_put(&rig, 6, &broken);
	rig_rest_model(&rig, 7, "m", &pair);
	pair.kind = VERDICT_MODEL_MISSING;
	rig_rest_model(&rig, 8, "m", &pair);
	wish = rig_wish(&rig, "m");
	wish.realm = SPAN("g");
	assert_int_equal(rig_take_as(&rig, other, &wish), 9); /* the best priority, now full */
	wish.ntried = 1;
	wish.tried[0].account = 4;
	assert_int_equal(rig_take(&rig, &wish), 11);
	for (int out = 0; out < SCORE__MAX; out++)
		if (rig.reason.out[out] !=
		    (out == SCORE_QUOTA || out == SCORE_COST || out == SCORE_BOUND ? 0U : 1U))
			fail_msg(
			    "%s: %u", score_out_name((enum score_out)out), rig.reason.out[out]);
	assert_int_equal(rig.reason.earliest.v, RIG_NOW + S);
	/* nobody left but who is full: that is what is told */
	wish.ntried = 3;
	wish.tried[1].account = 10;
	wish.tried[2].account = 11;
	rig_release(&rig, rig.slot);
	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig.reason.result, PICK_FULL);
	slot_close(&other);
	rig_close(&rig);
}

static enum store_rc
look_at(struct txn *txn, void *arg)
{
	struct rig *rig = arg;
	struct pick_wish wish = rig_wish(rig, "");

	return pick_look(txn, rig->slot, &wish, rig->now, &rig->reason);
}

#define TWO ACCOUNT("a", "") "," ACCOUNT("b", "")

/* A look takes nothing and counts who could be had. */
static void
test_look(void **state)
{
	struct account_row cool = {.cool_until_ms = RIG_NOW + H, .flags = ACCOUNT_GUESSED};
	struct rig rig;

	rig_open(&rig, *state, CHANNEL("", TWO));
	OK(env_view(rig.env, look_at, &rig));
	assert_int_equal(rig.reason.result, PICK_TAKEN);
	assert_int_equal(rig.reason.out[SCORE_IN], 2);
	rig_put(&rig, 0, &cool);
	rig_put(&rig, 1, &cool);
	OK(env_view(rig.env, look_at, &rig));
	assert_int_equal(
	    rig.reason.result, PICK_COOLING); /* a probe is no account that can be had */
	assert_int_equal(rig.reason.out[SCORE_COOLING], 2);
	assert_int_equal(rig_state(&rig, 0, "").row.flags & ACCOUNT_PICKED, 0);
	rig_close(&rig);
}

/* Weight 0 is never drawn, unless all have it. */
static void
test_weight_0(void **state)
{
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(
	        POOL("'max_in_flight': 0"), ACCOUNT("a", ", 'weight': 0") "," ACCOUNT("b", "")));
	wish = rig_wish(&rig, "");
	for (uint64_t i = 0; i < 8; i++) {
		wish.random = i << 61;
		assert_int_equal(rig_take(&rig, &wish), 1);
	}
	rig_close(&rig);
}

static void
test_all_weights_0(void **state)
{
	struct pick_wish wish;
	unsigned hits[2] = {0};
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(POOL("'max_in_flight': 0"),
	        ACCOUNT("a", ", 'weight': 0") "," ACCOUNT("b", ", 'weight': 0")));
	wish = rig_wish(&rig, "");
	for (uint64_t i = 0; i < 8; i++) {
		wish.random = i << 61;
		hits[rig_take(&rig, &wish)]++;
		rig_release(&rig, rig.slot);
	}
	assert_int_equal(hits[0], 4);
	assert_int_equal(hits[1], 4);
	rig_close(&rig);
}

/* A tier is used only when the better ones have nobody. */
static void
test_priorities(void **state)
{
	static const int order[] = {2, 0, 1, -1};
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(NO_PROBES, ACCOUNT("a", ", 'priority': 0, 'credits': 5") "," ACCOUNT(
	                           "b", ", 'priority': 3, 'credits': 5000") "," ACCOUNT("c",
	                           ", 'priority': -2, 'credits': 1")));
	wish = rig_wish(&rig, "");
	for (size_t i = 0; i < NELEM(order); i++) {
		int got = rig_take(&rig, &wish);

		assert_int_equal(got, order[i]);
		if (got < 0)
			break;
		wish.tried[wish.ntried++].account = (size_t)got;
		rig_release(&rig, rig.slot);
	}
	assert_int_equal(rig.reason.result, PICK_TRIED);
	rig_close(&rig);
}

/* Tried on another channel is not tried here. */
static void
test_tried_elsewhere(void **state)
{
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(NO_PROBES, ACCOUNT("a", "")));
	wish = rig_wish(&rig, "");
	wish.ntried = 1;
	wish.tried[0].channel = 1;
	assert_int_equal(rig_take(&rig, &wish), 0);
	rig_close(&rig);
}

/* Stored credits take the place of the configured ones. */
static void
test_credits(void **state)
{
	struct account_row row = {.version = 1, .credits_micros = 0};
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(POOL("'shortlist': 1"),
	        ACCOUNT("a", ", 'credits': 100") "," ACCOUNT("b", ", 'credits': 50")));
	wish = rig_wish(&rig, "");
	assert_int_equal(rig_take(&rig, &wish), 0);
	rig_put(&rig, 0, &row);
	assert_int_equal(rig_take(&rig, &wish), 1);
	rig_close(&rig);
}

/* What the lease and its slot say. */
static enum store_rc
read_slots(struct txn *txn, void *arg)
{
	return slot_walk(txn, arg);
}

static void
test_lease(void **state)
{
	struct slot_list *slots = malloc(sizeof *slots);
	struct pick_wish wish;
	struct rig rig;
	uint32_t first;

	rig_open(&rig, *state, CHANNEL("", TWO));
	wish = rig_wish(&rig, "m");
	wish.ntried = 1; /* account 0 */
	assert_int_equal(rig_take(&rig, &wish), 1);
	assert_false(rig.lease.settled);
	assert_int_equal(rig.lease.channel, 0);
	assert_int_equal(rig.lease.ref.number, pool_ref(rig.pool, 0, 1).number);
	assert_int_equal(rig.lease.kind, SLOT_REQUEST);
	assert_int_equal(rig.lease.at.v, RIG_NOW);
	first = rig.lease.txn;
	OK(env_view(rig.env, read_slots, slots));
	assert_int_equal(slots->n, 1);
	assert_int_equal(slots->seen[0].number, slot_number(rig.slot));
	assert_int_equal(slots->seen[0].row.kind, SLOT_REQUEST);
	assert_int_equal(slots->seen[0].row.account, rig.lease.ref.number);
	assert_int_equal(slots->seen[0].row.started_ms, RIG_NOW);
	assert_int_equal(slots->seen[0].row.taken_txn, first);
	assert_int_equal(slots->seen[0].row.pid, getpid());
	assert_true(slots->seen[0].row.model_hash == key_hash(0, "m", 1));
	rig_release(&rig, rig.slot);
	assert_int_equal(rig_take(&rig, &wish), 1);
	assert_true(rig.lease.txn > first);
	free(slots);
	rig_close(&rig);
}

/* A lease that still runs counts as the last pick of its account, in every process. */
static void
test_gap(void **state)
{
	struct pick_wish wish;
	struct slot *other;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL("'pool': {'min_pick_gap': '100ms'},", TWO));
	other = rig_slot(rig.env);
	wish = rig_wish(&rig, "");
	wish.random = 0;
	for (int i = 0; i < 10; i++) {
		int a = rig_take(&rig, &wish), b = rig_take_as(&rig, other, &wish);

		assert_true(a >= 0 && b >= 0);
		assert_int_not_equal(a, b);
		rig_release(&rig, rig.slot);
		rig_release(&rig, other);
		rig.now.v += 100;
	}
	slot_close(&other);
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_reasons),
	    TXN_TEST(test_counts),
	    TXN_TEST(test_look),
	    TXN_TEST(test_weight_0),
	    TXN_TEST(test_all_weights_0),
	    TXN_TEST(test_priorities),
	    TXN_TEST(test_tried_elsewhere),
	    TXN_TEST(test_credits),
	    TXN_TEST(test_lease),
	    TXN_TEST(test_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
