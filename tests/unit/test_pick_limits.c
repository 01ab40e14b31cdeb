#include "pick.h"

#include "lib/rig.h"
#include "store/journal.h"
#include "verdict.h"

#define S 1000LL
#define H (3600 * S)
#define YEAR (365 * 24 * H)

#define CHANNEL(settings, accounts) \
	"{'channels': {'oa': {'provider': 'openai', " settings " 'accounts': [" accounts "]}}}"
#define ACCOUNT(id, more) "{'id': '" id "', 'api_key': 'key-" id "'" more "}"
#define POOL(settings) "'pool': {'min_pick_gap': '0s', " settings "}, "
#define A ACCOUNT("a", "")
#define TWO A "," ACCOUNT("b", "")
#define THREE TWO "," ACCOUNT("c", "")

/* Slots of other processes. */
#define OTHERS 4
static struct slot *others[OTHERS];

static void
open_others(const struct rig *rig)
{
	for (size_t i = 0; i < OTHERS; i++)
		others[i] = rig_slot(rig->env);
}

static void
close_all(struct rig *rig)
{
	for (size_t i = 0; i < OTHERS; i++)
		slot_close(&others[i]);
	rig_close(rig);
}

/* The limit holds over all living holders; a dead one's lease is gone as soon as somebody needs it. */
static void
test_in_flight(void **state)
{
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 2"), A));
	open_others(&rig);
	wish = rig_wish(&rig, "");
	assert_int_equal(rig_take_as(&rig, others[0], &wish), 0);
	assert_int_equal(rig_take_as(&rig, others[1], &wish), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_take(&rig, &wish), -1);
		assert_int_equal(rig.reason.result, PICK_FULL);
		assert_int_equal(rig.reason.out[SCORE_FULL], 1);
		rig.now.v += YEAR; /* never by time */
	}
	assert_int_equal(rig.reason.freed, 0);
	slot_close(&others[1]); /* it died */
	assert_int_equal(rig_take(&rig, &wish), 0);
	assert_int_equal(rig.reason.freed, 1);
	assert_int_equal(rig_state(&rig, 0, "").tally[TALLY_DEAD_LEASES], 1);
	assert_int_equal(rig_take_as(&rig, others[2], &wish), -1);
	rig_release(&rig, others[0]);
	assert_int_equal(rig_take_as(&rig, others[2], &wish), 0);
	close_all(&rig);
}

/* The account's own limit beats the pool's; 0 is none. */
static void
test_own_limits(void **state)
{
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(POOL("'max_in_flight': 1"),
	        ACCOUNT("a", ", 'max_in_flight': 0, 'models': ['free']") "," ACCOUNT(
	            "b", ", 'max_in_flight': 3, 'models': ['three']") "," ACCOUNT("c",
	            ", 'models': ['one']")));
	open_others(&rig);
	wish = rig_wish(&rig, "one");
	assert_int_equal(rig_take_as(&rig, others[0], &wish), 2);
	assert_int_equal(rig_take(&rig, &wish), -1);
	wish.model = "three";
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_take_as(&rig, others[i], &wish), 1);
	assert_int_equal(rig_take(&rig, &wish), -1);
	wish.model = "free";
	for (int i = 0; i < OTHERS; i++)
		assert_int_equal(rig_take_as(&rig, others[i], &wish), 0);
	assert_int_equal(rig_take(&rig, &wish), 0);
	close_all(&rig);
}

/* Every holder died at once, and others hold other accounts. */
static void
test_all_dead(void **state)
{
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 3"), TWO));
	open_others(&rig);
	wish = rig_wish(&rig, "");
	wish.ntried = 1; /* account 0 */
	assert_int_equal(rig_take_as(&rig, others[0], &wish), 1);
	wish.tried[0].account = 1;
	for (int i = 1; i < OTHERS; i++) {
		assert_int_equal(rig_take_as(&rig, others[i], &wish), 0);
	}
	for (int i = 1; i < OTHERS; i++)
		slot_close(&others[i]);
	assert_int_equal(rig_take(&rig, &wish), 0);
	assert_int_equal(rig.reason.freed, 3);
	assert_int_equal(rig_state(&rig, 0, "").tally[TALLY_DEAD_LEASES], 3);
	close_all(&rig);
}

/* Who may be probed while all rest. Per account: cooldown (0 = none), its kind, guessed, breaker. */
struct rest_row {
	int64_t cool;
	enum verdict kind;
	bool guessed;
	int64_t breaker;
	unsigned flags;
};

#define GUESS(ms)                                 \
	{                                         \
		ms, VERDICT_SOFT_RATE, true, 0, 0 \
	}
#define STATED(ms)                                 \
	{                                          \
		ms, VERDICT_SOFT_RATE, false, 0, 0 \
	}
#define CREDIT(ms)                                   \
	{                                            \
		ms, VERDICT_HARD_CREDIT, false, 0, 0 \
	}
#define BREAKER(ms)                         \
	{                                   \
		0, VERDICT_OK, false, ms, 0 \
	}

static const struct {
	const char *what;
	struct rest_row rest[3];
	unsigned tried;        /* so many of the first */
	int guessed, any, off; /* who is probed by all_cooling; -1 nobody */
} probes[] = {
    {"guesses: the earliest", {GUESS(9 * S), GUESS(5 * S), GUESS(7 * S)}, 0, 1, 1, -1},
    {"a stated one is earlier", {STATED(2 * S), GUESS(5 * S), GUESS(7 * S)}, 0, 1, 0, -1},
    {"all stated", {STATED(9 * S), STATED(5 * S), STATED(7 * S)}, 0, -1, 1, -1},
    {"breakers", {BREAKER(9 * S), BREAKER(5 * S), BREAKER(7 * S)}, 0, 1, 1, -1},
    {"breaker and guess", {BREAKER(9 * S), GUESS(5 * S), BREAKER(7 * S)}, 0, 1, 1, -1},
    {"a guess is behind a later breaker",
        {GUESS(9 * S), {2 * S, VERDICT_SOFT_RATE, true, 10 * S, 0}, GUESS(11 * S)}, 0, 0, 0, -1},
    {"stated rest, breaker later: not a guess",
        {{2 * S, VERDICT_SOFT_RATE, false, 10 * S, 0}, GUESS(11 * S), GUESS(12 * S)}, 0, 1, 0, -1},
    {"hard credit is never probed", {CREDIT(1 * S), CREDIT(2 * S), CREDIT(3 * S)}, 0, -1, -1, -1},
    {"hard credit is earliest", {CREDIT(1 * S), GUESS(9 * S), STATED(3 * S)}, 0, 1, 2, -1},
    {"disabled ones are never probed",
        {{1 * S, VERDICT_SOFT_RATE, true, 0, ACCOUNT_DISABLED}, GUESS(9 * S), GUESS(8 * S)}, 0, 2,
        2, -1},
    {"tried ones are not probed", {GUESS(1 * S), GUESS(9 * S), GUESS(8 * S)}, 1, 2, 2, -1},
    {"all were tried", {GUESS(1 * S), GUESS(9 * S), GUESS(8 * S)}, 3, -1, -1, -1},
    {"an overload counts as a guess",
        {{4 * S, VERDICT_OVERLOAD, true, 0, 0}, GUESS(9 * S), GUESS(8 * S)}, 0, 0, 0, -1},
};

static void
test_probes(void **state)
{
	static const char *const jsons[] = {CHANNEL(POOL("'all_cooling': 'guessed'"), THREE),
	    CHANNEL(POOL("'all_cooling': 'any'"), THREE),
	    CHANNEL(POOL("'all_cooling': 'off'"), THREE)};

	for (size_t i = 0; i < NELEM(probes) * NELEM(jsons); i++) {
		size_t at = i / NELEM(jsons), mode = i % NELEM(jsons);
		const int want[] = {probes[at].guessed, probes[at].any, probes[at].off};
		struct pick_wish wish;
		struct rig rig;
		int got;

		rig_open(&rig, *state, jsons[mode]);
		for (size_t k = 0; k < 3; k++) {
			const struct rest_row *r = &probes[at].rest[k];
			struct account_row row = {.version = 1,
			    .flags = (uint8_t)(r->flags | (r->guessed ? ACCOUNT_GUESSED : 0)),
			    .cool_kind = (uint8_t)r->kind,
			    .cool_until_ms = r->cool == 0 ? 0 : RIG_NOW + r->cool,
			    .breaker_until_ms = r->breaker == 0 ? 0 : RIG_NOW + r->breaker};

			rig_put(&rig, k, &row);
		}
		wish = rig_wish(&rig, "m");
		for (; wish.ntried < probes[at].tried; wish.ntried++)
			wish.tried[wish.ntried].account = wish.ntried;
		got = rig_take(&rig, &wish);
		if (got != want[mode])
			fail_msg("%s, mode %zu: got %d", probes[at].what, mode, got);
		if (got >= 0)
			assert_int_equal(rig.lease.kind, SLOT_PROBE);
		else
			assert_int_equal(rig.reason.result, PICK_COOLING);
		if (got >= 0)
			rig_release(&rig, rig.slot);
		rig_close(&rig);
	}
}

/* One probe at a time on a channel, over all processes. */
static void
test_one_probe(void **state)
{
	struct account_row row = {.version = 1,
	    .flags = ACCOUNT_GUESSED,
	    .cool_kind = VERDICT_SOFT_RATE,
	    .cool_until_ms = RIG_NOW + 9 * S};
	struct account_row fine = {.version = 1};
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 3"), TWO));
	open_others(&rig);
	rig_put(&rig, 0, &row);
	rig_put(&rig, 1, &row);
	wish = rig_wish(&rig, "");
	assert_true(rig_take_as(&rig, others[0], &wish) >= 0);
	assert_int_equal(rig.lease.kind, SLOT_PROBE);
	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig.reason.result, PICK_COOLING);
	assert_int_equal(rig.reason.earliest.v, RIG_NOW + 9 * S);
	slot_close(&others[0]); /* the prober died */
	assert_true(rig_take(&rig, &wish) >= 0);
	assert_int_equal(rig_take_as(&rig, others[1], &wish), -1);
	rig_release(&rig, rig.slot);
	assert_true(rig_take_as(&rig, others[1], &wish) >= 0);
	rig_put(&rig, 1, &fine); /* a probe under way does not keep others from good accounts */
	assert_int_equal(rig_take(&rig, &wish), 1);
	assert_int_equal(rig.lease.kind, SLOT_REQUEST);
	close_all(&rig);
}

/* Somebody is only full: that is worth waiting for, no probe. */
static void
test_full_before_probe(void **state)
{
	struct account_row row = {
	    .version = 1, .flags = ACCOUNT_GUESSED, .cool_until_ms = RIG_NOW + 9 * S};
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 1"), TWO));
	open_others(&rig);
	rig_put(&rig, 0, &row);
	wish = rig_wish(&rig, "");
	assert_int_equal(rig_take_as(&rig, others[0], &wish), 1);
	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig.reason.result, PICK_FULL);
	close_all(&rig);
}

/* Rest and breaker are forgiven a probe, the limit is not. */
static void
test_probe_of_full(void **state)
{
	struct account_row rest = {
	    .version = 1, .flags = ACCOUNT_GUESSED, .cool_until_ms = RIG_NOW + 9 * S};
	struct account_row later = rest;
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 1"), TWO));
	open_others(&rig);
	wish = rig_wish(&rig, "");
	wish.ntried = 1;
	wish.tried[0].account = 1;
	assert_int_equal(rig_take_as(&rig, others[0], &wish), 0);
	wish.ntried = 0;
	later.cool_until_ms += S;
	rig_put(&rig, 0, &rest); /* while its lease runs */
	rig_put(&rig, 1, &later);
	assert_int_equal(rig_take(&rig, &wish), 1); /* the later one: it has room */
	rig_release(&rig, rig.slot);
	wish.ntried = 1; /* the later one was tried */
	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig.reason.result, PICK_COOLING);
	slot_close(&others[0]); /* its holder died: there is room */
	assert_int_equal(rig_take(&rig, &wish), 0);
	assert_int_equal(rig.lease.kind, SLOT_PROBE);
	close_all(&rig);
}

/* After two overloads the first account is asked again: tried and resting as it is, but not beyond its limit. */
static const struct {
	const char *what;
	int64_t cool, breaker;
	unsigned flags;
	bool full, taken;
} insists[] = {
    {"nothing against it", 0, 0, 0, false, true},
    {"resting", 10 * S, 0, ACCOUNT_GUESSED, false, true},
    {"resting and full", 10 * S, 0, ACCOUNT_GUESSED, true, false},
    {"full", 0, 0, 0, true, false},
    {"disabled meanwhile", 0, 0, ACCOUNT_DISABLED, false, false},
    {"its breaker opened meanwhile", 0, H, 0, false, false},
};

static void
test_insist(void **state)
{
	for (size_t i = 0; i < NELEM(insists); i++) {
		struct account_row row = {.version = 1,
		    .flags = (uint8_t)insists[i].flags,
		    .cool_kind = VERDICT_OVERLOAD,
		    .cool_until_ms = insists[i].cool == 0 ? 0 : RIG_NOW + insists[i].cool,
		    .breaker_until_ms = insists[i].breaker == 0 ? 0 : RIG_NOW + insists[i].breaker};
		struct account_row fresh = {.version = 1};
		struct pick_wish wish;
		struct rig rig;
		int got;

		rig_open(&rig, *state, CHANNEL(POOL("'max_in_flight': 1"), TWO));
		open_others(&rig);
		rig_put(&rig, 0, &fresh);
		wish = rig_wish(&rig, "");
		wish.ntried = 1;
		wish.tried[0].account = 1;
		if (insists[i].full)
			assert_int_equal(rig_take_as(&rig, others[0], &wish), 0);
		rig_put(&rig, 0, &row);
		wish.tried[0].account = 0;
		wish.insist = 0;
		got = rig_take(&rig, &wish);
		if ((got == 0) != insists[i].taken || got > 0)
			fail_msg("%s: got %d", insists[i].what, got);
		if (got == 0)
			assert_int_equal(rig.lease.kind, SLOT_REQUEST);
		rig_release(&rig, rig.slot);
		rig_release(&rig, others[0]);
		close_all(&rig);
	}
}

struct told {
	unsigned n;
	struct journal_row last;
};

static bool
tell(uint64_t sequence, const struct journal_row *row, void *arg)
{
	struct told *told = arg;

	(void)sequence;
	told->n++;
	told->last = *row;
	return true;
}

static enum store_rc
read_journal(struct txn *txn, void *arg)
{
	((struct told *)arg)->n = 0;
	return journal_walk(txn, 0, tell, arg);
}

/* Deadlines that a wrong clock wrote are cut to what settings allow, once, and told: no account is lost for years. */
static void
test_wrong_clock(void **state)
{
	struct account_row row = {.version = 1,
	    .cool_kind = VERDICT_SOFT_RATE,
	    .cool_until_ms = RIG_NOW + 20 * YEAR,
	    .breaker_until_ms = RIG_NOW + 20 * YEAR};
	struct cooldown_row pair = {.kind = VERDICT_MODEL_RATE, .until_ms = RIG_NOW + 20 * YEAR};
	struct pick_wish wish;
	struct told told;
	struct rig rig;

	rig_open(&rig, *state, CHANNEL(POOL("'all_cooling': 'off'"), A));
	rig_put(&rig, 0, &row);
	rig_rest_model(&rig, 0, "m", &pair);
	wish = rig_wish(&rig, "m");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_take(&rig, &wish), -1);
		assert_int_equal(rig.reason.earliest.v, RIG_NOW + 25 * H);
		rig.now.v += S;
	}
	assert_int_equal(rig_state(&rig, 0, "m").row.cool_until_ms, RIG_NOW + 25 * H);
	assert_int_equal(rig_state(&rig, 0, "m").row.breaker_until_ms, RIG_NOW + 6 * H);
	assert_int_equal(rig_state(&rig, 0, "m").pair.row.until_ms, RIG_NOW + 25 * H);
	OK(env_view(rig.env, read_journal, &told));
	assert_int_equal(told.n, 2); /* the account, and the model on it */
	assert_string_equal(told.last.channel, "oa");
	assert_string_equal(told.last.account, "a");
	assert_string_equal(told.last.model, "m");
	assert_string_equal(told.last.cause, "clock");
	assert_int_equal(told.last.old_until_ms, RIG_NOW + 20 * YEAR);
	assert_int_equal(told.last.new_until_ms, RIG_NOW + 25 * H);
	rig.now.v = RIG_NOW + 25 * H;
	assert_int_equal(rig_take(&rig, &wish), 0);
	rig_close(&rig);
}

/* As long as the longest setting is no wrong clock. */
static void
test_long_settings(void **state)
{
	struct account_row row = {.version = 1, .cool_until_ms = RIG_NOW + 900 * H};
	struct account_row broken = {.version = 1, .breaker_until_ms = RIG_NOW + 6 * H};
	struct pick_wish wish;
	struct rig rig;

	rig_open(&rig, *state,
	    CHANNEL(POOL("'all_cooling': 'off'") "'cooldown': {'stated_max': '40d'},", TWO));
	rig_put(&rig, 0, &row);
	rig_put(&rig, 1, &broken);
	wish = rig_wish(&rig, "");
	assert_int_equal(rig_take(&rig, &wish), -1);
	assert_int_equal(rig_state(&rig, 0, "").row.cool_until_ms, RIG_NOW + 900 * H);
	assert_int_equal(rig_state(&rig, 1, "").row.breaker_until_ms, RIG_NOW + 6 * H);
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_in_flight),
	    TXN_TEST(test_own_limits),
	    TXN_TEST(test_all_dead),
	    TXN_TEST(test_probes),
	    TXN_TEST(test_one_probe),
	    TXN_TEST(test_full_before_probe),
	    TXN_TEST(test_probe_of_full),
	    TXN_TEST(test_insist),
	    TXN_TEST(test_wrong_clock),
	    TXN_TEST(test_long_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
