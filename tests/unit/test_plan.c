#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define CHANNELS 5 /* a to e */
#define CHAT ROUTE_WIRE(WIRE_CHAT)
#define MESSAGES ROUTE_WIRE(WIRE_MESSAGES)

/* A configuration in letters. Models: a pattern per channel; targets: channel=name. */
struct small {
	struct conf conf;
	struct conf_channel channels[CHANNELS];
	size_t fallback[CHANNELS][8];
	struct span patterns[CHANNELS];
	struct conf_target targets[4];
	struct conf_model entry;
	struct route first;
	enum breaker_answer answers[CHANNELS];
};

struct given {
	const char *lists[CHANNELS];    /* fallback lists: "bc" */
	const char *messages;           /* channels of the messages wire; the others speak chat */
	const char *patterns[CHANNELS]; /* NULL: serves anything */
	const char *targets[4];         /* "b=name"; none: no entry of `models` */
	const char *answers;            /* Y yes, P permit, S spent, N no; for a to e */
};

static enum breaker_answer
answer_of(char letter)
{
	return letter == 'P'   ? BREAKER_PERMIT
	       : letter == 'S' ? BREAKER_SPENT
	       : letter == 'N' ? BREAKER_NO
	                       : BREAKER_YES;
}

static void
small_init(struct small *s, const struct given *given)
{
	memset(s, 0, sizeof *s);
	s->conf.channels = s->channels;
	s->conf.nchannels = CHANNELS;
	for (size_t i = 0; i < CHANNELS; i++) {
		struct conf_channel *ch = &s->channels[i];
		const char *list = given->lists[i] == NULL ? "" : given->lists[i];

		ch->index = i;
		ch->fallback = s->fallback[i];
		for (; *list != '\0'; list++)
			ch->fallback[ch->nfallback++] = (size_t)(*list - 'a');
		ch->wire = given->messages != NULL && strchr(given->messages, 'a' + (int)i) != NULL
		               ? WIRE_MESSAGES
		               : WIRE_CHAT;
		s->patterns[i] = text_span(given->patterns[i]);
		ch->models.at = &s->patterns[i];
		ch->models.n = given->patterns[i] != NULL;
		s->answers[i] = answer_of(given->answers[i]);
	}
	s->entry.targets = s->targets;
	while (s->entry.ntargets < NELEM(given->targets) &&
	       given->targets[s->entry.ntargets] != NULL) {
		const char *target = given->targets[s->entry.ntargets];

		s->targets[s->entry.ntargets].channel = (size_t)(target[0] - 'a');
		s->targets[s->entry.ntargets++].model = text_span(target + 2);
	}
	s->first =
	    (struct route){.model = SPAN("m"), .entry = s->entry.ntargets > 0 ? &s->entry : NULL};
}

static const struct {
	const char *what;
	struct given given;
	unsigned wires;
	const char *way; /* "a:m b:m" */
} ways[] = {
    {"no list", {{NULL}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, "a:m"},
    {"a list, in its order", {{"cb"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, "a:m c:m b:m"},
    {"the first is open", {{"bc"}, NULL, {NULL}, {NULL}, "NYYYY"}, CHAT, "b:m c:m"},
    {"the first is open, no list", {{NULL}, NULL, {NULL}, {NULL}, "NYYYY"}, CHAT, ""},
    {"all are open", {{"bc"}, NULL, {NULL}, {NULL}, "NNNYY"}, CHAT, ""},
    {"an open one between", {{"bcd"}, NULL, {NULL}, {NULL}, "YYNYY"}, CHAT, "a:m b:m d:m"},
    {"half-open with a permit", {{"bc"}, NULL, {NULL}, {NULL}, "PPYYY"}, CHAT, "a:m b:m c:m"},
    {"half-open without", {{"bc"}, NULL, {NULL}, {NULL}, "SSYYY"}, CHAT, "c:m"},
    {"lists of others are not followed", {{"b", "c", "d"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT,
        "a:m b:m"},
    {"... not even when they are open", {{"b", "c", "d"}, NULL, {NULL}, {NULL}, "NNYYY"}, CHAT, ""},
    {"two that name each other", {{"b", "a"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, "a:m b:m"},
    {"one that names itself", {{"a"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, "a:m"},
    {"one that names itself, open", {{"aa"}, NULL, {NULL}, {NULL}, "NYYYY"}, CHAT, ""},
    {"the same one again and again", {{"bbabcb"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT,
        "a:m b:m c:m"},
    {"a ring of all", {{"bcde", "cdea", "deab", "eabc", "abcd"}, NULL, {NULL}, {NULL}, "YYYYY"},
        CHAT, "a:m b:m c:m d:m e:m"},
    {"another wire", {{"bc"}, "b", {NULL}, {NULL}, "YYYYY"}, CHAT, "a:m c:m"},
    {"another wire that we can convert", {{"bc"}, "b", {NULL}, {NULL}, "YYYYY"}, CHAT | MESSAGES,
        "a:m b:m c:m"},
    {"no wire: the first was routed already", {{"bc"}, NULL, {NULL}, {NULL}, "YYYYY"}, 0, "a:m"},
    {"patterns that serve it", {{"b"}, NULL, {NULL, "m*"}, {NULL}, "YYYYY"}, CHAT, "a:m b:m"},
    {"patterns that don't", {{"bc"}, NULL, {NULL, "x*"}, {NULL}, "YYYYY"}, CHAT, "a:m c:m"},
};

static void
test_ways(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		struct small s;
		struct plan plan;
		char way[128] = "";
		size_t n = 0, visited = 0;

		small_init(&s, &ways[i].given);
		plan_begin(&plan, &s.conf, &s.first, ways[i].wires);
		for (;;) {
			bool more = plan_more(&plan, s.answers);

			assert_int_equal(plan_next(&plan, s.answers), more);
			if (!more)
				break;
			n +=
			    (size_t)snprintf(way + n, sizeof way - n, "%s%c:%.*s", n > 0 ? " " : "",
			        (char)('a' + plan.channel), (int)plan.model.n, plan.model.p);
			visited++;
			assert_true(visited <= CHANNELS);
		}
		assert_int_equal(plan.visited, visited);
		if (strcmp(way, ways[i].way) == 0)
			continue;
		print_error("%s: '%s', want '%s'\n", ways[i].what, way, ways[i].way);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Why each step is passed over: . goes, O open, S spent, R repeated, T a target, W another wire, M lacks the model. */
static const struct {
	const char *what;
	struct given given;
	const char *steps;
} passes[] = {
    {"all go", {{"bc"}, NULL, {NULL}, {NULL}, "YPYYY"}, "..."},
    {"open and spent", {{"bc"}, NULL, {NULL}, {NULL}, "NNSYY"}, "OOS"},
    {"the first is of any wire", {{"b"}, "ab", {NULL}, {NULL}, "YYYYY"}, ".W"},
    {"patterns", {{"bc"}, NULL, {NULL, "x*", "m*"}, {NULL}, "YYYYY"}, ".M."},
    {"twice in the list, and itself", {{"bba"}, NULL, {NULL}, {NULL}, "YYYYY"}, "..RR"},
    {"open says more than repeated", {{"bb"}, NULL, {NULL}, {NULL}, "YNYYY"}, ".OO"},
};

static void
test_passes(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(passes); i++) {
		struct small s;
		struct plan plan;
		size_t n = strlen(passes[i].steps);

		small_init(&s, &passes[i].given);
		plan_begin(&plan, &s.conf, &s.first, CHAT);
		assert_int_equal(n, s.channels[0].nfallback + 1);
		for (size_t step = 1; step <= n; step++) {
			struct route route;
			enum plan_pass pass = plan_step(&plan, s.answers, step, &route);

			if (".OSRTWM"[pass] != passes[i].steps[step - 1])
				fail_msg("%s: step %zu: got %c, want %c", passes[i].what, step,
				    ".OSRTWM"[pass], passes[i].steps[step - 1]);
			assert_int_equal(
			    route.channel, step == 1 ? 0 : s.channels[0].fallback[step - 2]);
		}
	}
}

/* Answers may change on the way; what was passed over is not come back to. */
static void
test_changing(void **state)
{
	static const struct given given = {{"bcd"}, NULL, {NULL}, {NULL}, "NYYYY"};
	struct small s;
	struct plan plan;

	(void)state;
	small_init(&s, &given);
	plan_begin(&plan, &s.conf, &s.first, CHAT);
	assert_true(plan_next(&plan, s.answers));
	assert_int_equal(plan.channel, 1);
	s.answers[0] = BREAKER_YES;
	s.answers[2] = BREAKER_NO;
	assert_true(plan_next(&plan, s.answers));
	assert_int_equal(plan.channel, 3);
	s.answers[2] = BREAKER_YES;
	assert_false(plan_next(&plan, s.answers));
	assert_int_equal(plan.channel, 3);
	assert_int_equal(plan.visited, 2);
	plan_back(&plan);
	assert_int_equal(plan.channel, 0);
	assert_false(plan_more(&plan, s.answers));
	assert_false(plan_next(&plan, s.answers));
}

/* How many attempts each channel of the way gets when every one fails. */
static const struct {
	const char *what;
	struct given given;
	int64_t max;
	const char *attempts; /* a letter each */
} budgets[] = {
    {"no fallback: all", {{NULL}, NULL, {NULL}, {NULL}, "YYYYY"}, 4, "aaaa"},
    {"a fallback: all but one", {{"b"}, NULL, {NULL}, {NULL}, "YYYYY"}, 4, "aaab"},
    {"two: the first of them takes what is left", {{"bc"}, NULL, {NULL}, {NULL}, "YYYYY"}, 4,
        "aaab"},
    {"one attempt in all is the first's", {{"b"}, NULL, {NULL}, {NULL}, "YYYYY"}, 1, "a"},
    {"two", {{"b"}, NULL, {NULL}, {NULL}, "YYYYY"}, 2, "ab"},
    {"an open fallback gets none", {{"b"}, NULL, {NULL}, {NULL}, "YNYYY"}, 4, "aaaa"},
    {"one of another wire gets none", {{"b"}, "b", {NULL}, {NULL}, "YYYYY"}, 4, "aaaa"},
    {"the first is open: all for the fallback", {{"b"}, NULL, {NULL}, {NULL}, "NYYYY"}, 3, "bbb"},
    {"the first is open, two fallbacks", {{"bc"}, NULL, {NULL}, {NULL}, "NYYYY"}, 3, "bbb"},
    {"none at all", {{"b"}, NULL, {NULL}, {NULL}, "YYYYY"}, 0, ""},
};

static void
test_budgets(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(budgets); i++) {
		struct small s;
		struct plan plan;
		char got[32] = "";
		size_t used = 0;

		small_init(&s, &budgets[i].given);
		plan_begin(&plan, &s.conf, &s.first, CHAT);
		while (plan_next(&plan, s.answers))
			while (plan_may_try(&plan, s.answers, (int64_t)used, budgets[i].max))
				got[used++] = (char)('a' + plan.channel);
		if (strcmp(got, budgets[i].attempts) == 0)
			continue;
		print_error("%s: '%s', want '%s'\n", budgets[i].what, got, budgets[i].attempts);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Back at the first channel nothing is kept for anybody. */
static void
test_back(void **state)
{
	static const struct given given = {{"b"}, NULL, {NULL}, {NULL}, "YYYYY"};
	struct small s;
	struct plan plan;

	(void)state;
	small_init(&s, &given);
	plan_begin(&plan, &s.conf, &s.first, CHAT);
	assert_true(plan_next(&plan, s.answers));
	assert_false(plan_may_try(&plan, s.answers, 1, 2));
	assert_true(plan_next(&plan, s.answers));
	plan_back(&plan);
	assert_true(plan_may_try(&plan, s.answers, 1, 2));
	assert_false(plan_may_try(&plan, s.answers, 2, 2));
	assert_true(text_is(plan.model, "m"));
}

static const struct {
	const char *what;
	struct given given;
	unsigned wires;
	bool has;
} facts[] = {
    {"no list", {{NULL}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, false},
    {"closed", {{"b"}, NULL, {NULL}, {NULL}, "NYYYY"}, CHAT, true},
    {"open", {{"b"}, NULL, {NULL}, {NULL}, "YNYYY"}, CHAT, false},
    {"half-open, all sent: not open", {{"b"}, NULL, {NULL}, {NULL}, "YSYYY"}, CHAT, true},
    {"half-open", {{"b"}, NULL, {NULL}, {NULL}, "YPYYY"}, CHAT, true},
    {"the second", {{"bc"}, NULL, {NULL}, {NULL}, "YNYYY"}, CHAT, true},
    {"itself", {{"a"}, NULL, {NULL}, {NULL}, "YYYYY"}, CHAT, false},
    {"another wire", {{"b"}, "b", {NULL}, {NULL}, "YYYYY"}, CHAT, false},
    {"another model is no matter", {{"b"}, NULL, {NULL, "x"}, {NULL}, "YYYYY"}, CHAT, true},
};

static void
test_facts(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(facts); i++) {
		struct small s;

		small_init(&s, &facts[i].given);
		if (plan_has_fallback(&s.conf, 0, facts[i].wires, s.answers) == facts[i].has)
			continue;
		print_error("%s: want %d\n", facts[i].what, facts[i].has);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* ---- several targets ---- */

static struct route_list
list_of(struct small *s, struct route *at)
{
	struct route_list list = {.at = at, .n = s->entry.ntargets};

	for (size_t i = 0; i < list.n; i++)
		at[i] = (struct route){
		    s->targets[i].channel, s->targets[i].model, &s->entry, &s->targets[i]};
	return list;
}

/* Of the target that serves now; on another channel, of the one that the model's own name has. */
static void
test_target(void **state)
{
	static const struct given given = {{"c"}, NULL, {NULL}, {"a=m", "b=n"}, "YYYYY"};
	struct conf_model own = {.name = SPAN("n"), .max_output = 9};
	struct route at[4];
	struct route_list list;
	struct small s;
	struct plan plan;

	(void)state;
	small_init(&s, &given);
	s.channels[1].fallback = s.channels[0].fallback;
	s.channels[1].nfallback = 1;
	s.targets[0].max_output = 7;
	s.targets[1].max_output = 8;
	list = list_of(&s, at);
	plan_begin_targets(&plan, &s.conf, &list, CHAT);
	plan_take(&plan, 1);
	assert_int_equal(plan_target(&plan).max_output, 8);
	assert_true(plan_next(&plan, s.answers));
	assert_int_equal(plan_target(&plan).max_output, 0);
	s.conf.models = &own;
	s.conf.nmodels = 1;
	assert_int_equal(plan_target(&plan).max_output, 9);
}

/* Which target is taken first, then what follows when it is the only one that could be had. */
static const struct {
	const char *what;
	struct given given;
	unsigned wires;
	size_t first;
	const char *way, *steps;
} targets[] = {
    {"the chain of the first one's channel", {{"de", "c"}, NULL, {NULL}, {"a=m", "b=n"}, "YYYYY"},
        CHAT, 0, "a:m d:m e:m", "..."},
    {"... whichever was first", {{"d", "ce"}, NULL, {NULL}, {"a=m", "b=n"}, "YYYYY"}, CHAT, 1,
        "b:n c:n e:n", "..."},
    {"channels of targets are no part of it",
        {{"bcd"}, NULL, {NULL}, {"a=m", "b=n", "d=o"}, "YYYYY"}, CHAT, 0, "a:m c:m", ".T.T"},
    {"open ones are passed over", {{"cd"}, NULL, {NULL}, {"a=m", "b=n"}, "YYNYY"}, CHAT, 0,
        "a:m d:m", ".O."},
    {"the first's breaker is its pick's business", {{"c"}, NULL, {NULL}, {"a=m", "b=n"}, "NYYYY"},
        CHAT, 0, "a:m c:m", "O."},
    {"two on one channel", {{"b"}, NULL, {NULL}, {"a=m", "a=n"}, "YYYYY"}, CHAT, 1, "a:n b:n",
        ".."},
};

static void
test_targets(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(targets); i++) {
		struct small s;
		struct plan plan;
		struct route at[4];
		struct route_list list;
		char way[64] = "", steps[16] = "";
		size_t n = 0;

		small_init(&s, &targets[i].given);
		list = list_of(&s, at);
		plan_begin_targets(&plan, &s.conf, &list, targets[i].wires);
		assert_int_equal(plan.visited, 0);
		plan_take(&plan, targets[i].first);
		assert_ptr_equal(plan.target, &s.targets[targets[i].first]);
		do {
			n +=
			    (size_t)snprintf(way + n, sizeof way - n, "%s%c:%.*s", n > 0 ? " " : "",
			        (char)('a' + plan.channel), (int)plan.model.n, plan.model.p);
		} while (plan_next(&plan, s.answers));
		for (size_t step = 1; step <= s.channels[plan.first.channel].nfallback + 1;
		     step++) {
			struct route route;

			steps[step - 1] = ".OSRTWM"[plan_step(&plan, s.answers, step, &route)];
		}
		if (strcmp(way, targets[i].way) == 0 && strcmp(steps, targets[i].steps) == 0)
			continue;
		print_error("%s: '%s' %s, want '%s' %s\n", targets[i].what, way, steps,
		    targets[i].way, targets[i].steps);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Another target is a place to keep an attempt for; back at the first one there is none. */
static void
test_spare_targets(void **state)
{
	static const struct given given = {{"c"}, NULL, {NULL}, {"a=m", "b=n"}, "YYNYY"};
	struct small s;
	struct plan plan;
	struct route at[4];
	struct route_list list;

	(void)state;
	small_init(&s, &given);
	list = list_of(&s, at);
	plan_begin_targets(&plan, &s.conf, &list, CHAT);
	plan_take(&plan, 0);
	assert_true(plan_may_try(&plan, s.answers, 1, 2));
	plan.other = true;
	assert_true(plan_more(&plan, s.answers));
	assert_false(plan_may_try(&plan, s.answers, 1, 2));
	plan_take(&plan, 1);
	assert_true(plan_may_try(&plan, s.answers, 1, 2));
	assert_int_equal(plan.visited, 2);
	plan_back(&plan);
	assert_int_equal(plan.channel, 0);
	assert_false(plan_more(&plan, s.answers));
	assert_ptr_equal(plan.target, &s.targets[0]);
	/* a second one on the same channel leaves none for the chain */
	s.targets[1].channel = 0;
	s.answers[2] = BREAKER_YES;
	list = list_of(&s, at);
	plan_begin_targets(&plan, &s.conf, &list, CHAT);
	plan_take(&plan, 0);
	assert_false(plan_may_try(&plan, s.answers, 1, 2));
	plan_take(&plan, 1);
	assert_true(plan_may_try(&plan, s.answers, 1, 2));
}

/* Nobody of them can be asked: the chain of the first one in the list. */
static void
test_no_target(void **state)
{
	static const struct given given = {{"cd"}, NULL, {NULL}, {"a=m", "c=n"}, "YYYYY"};
	struct small s;
	struct plan plan;
	struct route at[4];
	struct route_list list;

	(void)state;
	small_init(&s, &given);
	list = list_of(&s, at);
	plan_begin_targets(&plan, &s.conf, &list, CHAT);
	assert_true(plan_next(&plan, s.answers));
	assert_int_equal(plan.channel, 3);
	assert_true(text_is(plan.model, "m"));
	assert_false(plan_next(&plan, s.answers));
}

/* A configuration's bits are the breaker's. */
static void
test_triggers(void **state)
{
	(void)state;
	assert_int_equal(CONF_TRIGGER_POOL_EXHAUSTED, BREAKER_POOL_EXHAUSTED);
	assert_int_equal(CONF_TRIGGER_ERROR_RATE, BREAKER_ERROR_RATE);
	assert_int_equal(CONF_TRIGGER_LATENCY, BREAKER_LATENCY);
	assert_int_equal(CONF_TRIGGER_CONSECUTIVE_FAIL, BREAKER_CONSECUTIVE_FAIL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_passes),
	    cmocka_unit_test(test_changing),
	    cmocka_unit_test(test_budgets),
	    cmocka_unit_test(test_back),
	    cmocka_unit_test(test_facts),
	    cmocka_unit_test(test_target),
	    cmocka_unit_test(test_targets),
	    cmocka_unit_test(test_spare_targets),
	    cmocka_unit_test(test_no_target),
	    cmocka_unit_test(test_triggers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
