#include "offer.h"

#include "lib/in_arena.h"
#include "lib/rig.h"
#include "store/target.h"
#include "verdict.h"

#define H (3600 * 1000LL)

#define ACCOUNT(id, more) "{'id': '" id "', 'api_key': 'key-" id "'" more "}"
#define TABLE                                                                                                                          \
	"{'models': {"                                                                                                                 \
	"'half': {'targets': [{'channel': 'oa', 'model': 'big',"                                                                       \
	"                      'cost': {'input': 0, 'output': 0}},"                                                                    \
	"                     {'channel': 'ob', 'model': 'x'}]},"                                                                      \
	"'smart': {'targets': [{'channel': 'oa', 'model': 'big', 'context_window': 1000},"                                             \
	"                      {'channel': 'ob', 'model': 'big', 'context_window': 2000,"                                              \
	"                       'max_output': 50}],"                                                                                   \
	"          'cost': {'input': 0.002, 'output': 0.001}},"                                                                        \
	"'lone': {'targets': [{'channel': 'oa', 'model': 'only', 'tasks': ['code'],"                                                   \
	"                      'cost': {'input': 0, 'output': 0}}], 'realm': 'g'},"                                                    \
	"'mixed': {'targets': [{'channel': 'ob', 'model': 'x'}, {'channel': 'oa', 'model': 'only'}]}},"                                \
	"'channels': {"                                                                                                                \
	"'oa': {'provider': 'openai', 'models': ['big', 'only', 'o*'], 'accounts': [" ACCOUNT(                                         \
	    "a", ", 'realm': 'cn', 'max_in_flight': 1") "," ACCOUNT("b",                                                               \
	    ", 'realm': 'g', 'models': ['only']") "]},"                                                                                \
	                                          "'ob': {'provider': 'openai', 'models': ['big', 'lit', 'lone'], 'fallback': ['oa']," \
	                                          "   'accounts': [" ACCOUNT(                                                          \
	                                              "c", ", 'realm': 'cn'") "]}}}"

static enum store_rc
look(struct txn *txn, void *arg)
{
	return offer_look(txn, arg);
}

/* "name+ name-": which are offered, and are available */
static void
check(const struct rig *rig, const char *what, const char *realm, const char *want)
{
	struct offer offer = {.pool = rig->pool,
	    .slot = rig->slot,
	    .realm = text_span(realm),
	    .only = SPAN(""),
	    .now = rig->now,
	    .arena = arena};
	struct buf got;

	buf_init(&got, 4096);
	OK(env_view(rig->env, look, &offer));
	for (size_t i = 0; i < offer.n; i++)
		buf_print(&got, "%s%.*s%c", i == 0 ? "" : " ", (int)offer.models[i].name.n,
		    offer.models[i].name.p, offer.models[i].available ? '+' : '-');
	if (!text_is(buf_text(&got), want))
		fail_msg("%s: got %.*s, want %s", what, (int)got.n, got.p, want);
	buf_release(&got);
}

static enum store_rc
rest_target(struct txn *txn, void *arg)
{
	const struct rig *rig = arg;
	struct target_row row = {.version = 1, .rest_until_ms = RIG_NOW + 60000, .consecutive = 99};

	return target_put(txn, pool_target(rig->pool, 0, SPAN("only")), &row);
}

/* Accounts that rest, in the order a, b of oa; realms; a full one; the fallback. */
static void
test_available(void **state)
{
	const struct account_row fine = {.version = 1, .credits_micros = ACCOUNT_NO_CREDITS};
	struct account_row rests = fine;
	struct pick_wish wish;
	struct rig rig;

	rests.cool_until_ms = RIG_NOW + H;
	rests.cool_kind = VERDICT_SOFT_RATE;
	rig_open(&rig, *state, TABLE);
	check(&rig, "all", "", "half+ smart+ lone+ mixed+ auto+ big+ only+ lit+");
	check(&rig, "a realm", "cn", "half+ smart+ lone+ mixed+ auto+ big+ only+ lit+");
	check(&rig, "a realm of one account", "g", "lone+ mixed+ auto+ only+");
	check(&rig, "nobody's realm", "x", "");
	wish = rig_wish(&rig, "big");
	assert_int_equal(rig_take(&rig, &wish), 0);
	check(&rig, "a is full", "", "half+ smart+ lone+ mixed+ auto+ big+ only+ lit+");
	rig_release(&rig, rig.slot);
	rig_put(&rig, 0, &rests);
	check(&rig, "a rests", "", "half+ smart+ lone+ mixed+ auto+ big- only+ lit+");
	check(
	    &rig, "a rests, b is no help", "cn", "half+ smart+ lone- mixed+ auto+ big- only- lit+");
	rig_put(&rig, 1, &rests);
	check(&rig, "both rest", "", "half+ smart+ lone- mixed+ auto+ big- only- lit+");
	rig_put(&rig, 0, &fine);
	check(&rig, "b rests", "", "half+ smart+ lone- mixed+ auto+ big+ only+ lit+");
	OK(env_update(rig.env, rest_target, &rig));
	check(&rig, "the model rests", "", "half+ smart+ lone- mixed+ auto+ big+ only- lit+");
	rig_close(&rig);
}

struct figures {
	const char *name, *realm, *owner;
	int64_t window, output, input; /* of the price; -1 = unknown */
	int64_t cached;
};

static const struct figures figures[] = {
    {"smart", "", "oa", 2000, 50, 2000, 2000},
    {"lone", "g", "oa", 0, 0, 0, 0},
    {"half", "", "oa", 0, 0, -1, 0},
    {"mixed", "", "ob", 0, 0, -1, 0},
    {"mixed", "g", "oa", 0, 0, -1, 0}, /* nobody of that realm is at ob */
    {"auto", "", "sluice", 2000, 50, -1, 0},
    {"lit", "", "ob", 0, 0, -1, 0},
};

static void
test_figures(void **state)
{
	struct rig rig;

	rig_open(&rig, *state, TABLE);
	for (size_t i = 0; i < NELEM(figures); i++) {
		const struct figures *f = &figures[i];
		struct offer offer = {.pool = rig.pool,
		    .slot = rig.slot,
		    .realm = text_span(f->realm),
		    .only = text_span(f->name),
		    .now = rig.now,
		    .arena = arena};
		const struct offer_model *m;

		OK(env_view(rig.env, look, &offer));
		if (offer.n != 1)
			fail_msg("%s: %zu models", f->name, offer.n);
		m = offer.models;
		if (!text_is(m->name, f->name) || !text_is(m->owner, f->owner) ||
		    m->context_window != f->window || m->max_output != f->output ||
		    (m->cost.given ? m->cost.input_micros : -1) != f->input ||
		    (m->cost.given && m->cost.cached_micros != f->cached))
			fail_msg("%s: got window %lld, output %lld, input %lld", f->name,
			    (long long)m->context_window, (long long)m->max_output,
			    (long long)m->cost.input_micros);
	}
	rig_close(&rig);
}

/* What no account will ever serve is offered, where no realm says who asks. */
static void
test_nobody(void **state)
{
	static const char json[] =
	    "{'models': {'m': {'targets': [{'channel': 'oa',"
	    " 'context_window': 77}]}}, 'channels': {'oa': {'provider': "
	    "'openai', 'fallback': ['ob'], 'accounts': [" ACCOUNT("a",
	        ", 'enabled': false") "]}, 'ob': {'provider': 'openai',"
	                              " 'models': ['m'], 'accounts': [" ACCOUNT("b", "") "]}}}";
	struct rig rig;

	rig_open(&rig, *state, json);
	check(&rig, "by the fallback", "", "m+");
	check(&rig, "in a realm", "cn", "");
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TXN_TEST(test_available),
	    TXN_TEST(test_figures),
	    TXN_TEST(test_nobody),
	};

	return cmocka_run_group_tests(tests, in_arena_begin, in_arena_end);
}
