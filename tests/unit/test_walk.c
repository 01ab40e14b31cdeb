#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1767607200000LL
#define STEPS_MAX 6

struct step {
	enum verdict verdict;
	int status;
};

#define ANY -1

/* What each account in turn answers, what follows, and which account the next pick must insist on. */
static const struct {
	const char *what;
	int max_attempts, accounts;
	struct step step[STEPS_MAX]; /* ends at VERDICT_OK */
	const char *want;            /* a at once, w after a wait, s stop */
	int insist;                  /* after the last step */
} ways[] = {
    {"the request is at fault", 3, 3, {{VERDICT_CLIENT, 400}}, "s", ANY},
    {"too long", 3, 3, {{VERDICT_CONTEXT_LENGTH, 400}}, "s", ANY},
    {"gone", 3, 3, {{VERDICT_CANCELLED, 0}}, "s", ANY},
    {"rate moves on at once", 3, 3, {{VERDICT_SOFT_RATE, 429}, {VERDICT_SOFT_RATE, 429}}, "aa",
        ANY},
    {"credit, auth, session, model, path: at once", 9, 9,
        {{VERDICT_HARD_CREDIT, 402}, {VERDICT_AUTH_FAILED, 401}, {VERDICT_SESSION_DEAD, 401},
            {VERDICT_MODEL_RATE, 429}, {VERDICT_MODEL_MISSING, 404}},
        "aaaaa", ANY},
    {"not found and nobody: at once", 9, 9, {{VERDICT_NOT_FOUND, 404}, {VERDICT_NOBODY, 0}}, "aa",
        ANY},
    {"server and network wait", 3, 3, {{VERDICT_SERVER, 500}, {VERDICT_NETWORK, 0}}, "ww", ANY},
    {"no wait when nobody is left to ask", 3, 1, {{VERDICT_SERVER, 500}}, "a", ANY},
    {"attempts used up", 3, 9,
        {{VERDICT_SOFT_RATE, 429}, {VERDICT_SERVER, 500}, {VERDICT_SOFT_RATE, 429}}, "aws", ANY},
    {"one attempt", 1, 9, {{VERDICT_SOFT_RATE, 429}}, "s", ANY},
    {"unexplained: once more", 3, 3, {{VERDICT_UNEXPLAINED, 403}}, "a", ANY},
    {"unexplained twice", 9, 9, {{VERDICT_UNEXPLAINED, 403}, {VERDICT_UNEXPLAINED, 401}}, "as",
        ANY},
    {"unexplained twice, another between", 9, 9,
        {{VERDICT_UNEXPLAINED, 403}, {VERDICT_SOFT_RATE, 429}, {VERDICT_UNEXPLAINED, 403}}, "aas",
        ANY},
    {"overload once", 3, 3, {{VERDICT_OVERLOAD, 503}}, "w", ANY},
    {"overload twice: the first one again", 3, 9,
        {{VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 529}}, "ww", 0},
    {"overload, rate, overload: the first overloaded again", 9, 9,
        {{VERDICT_SOFT_RATE, 429}, {VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}}, "aww", 1},
    {"overload twice, no attempt left", 2, 9, {{VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}},
        "ws", ANY},
    {"overload three times", 9, 9,
        {{VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}}, "wws", ANY},
    {"asked again it fails otherwise: not a third time", 9, 9,
        {{VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}, {VERDICT_SERVER, 500}}, "www", ANY},
    {"asked again it is limited: not a third time", 9, 9,
        {{VERDICT_OVERLOAD, 503}, {VERDICT_OVERLOAD, 503}, {VERDICT_SOFT_RATE, 429}}, "wwa", ANY},
};

static struct conf_channel
channel_of(int max_attempts, int accounts)
{
	return (struct conf_channel){.naccounts = (size_t)accounts,
	    .policy = {.upstream = {.max_attempts = max_attempts,
	                   .retry_backoff_ms = 250,
	                   .retry_backoff_max_ms = 8000}}};
}

static void
take_step(struct walk *w, size_t account, const struct step *step)
{
	const struct pick_lease lease = {.taken = true, .account = account};

	w->attempts++;
	walk_tried(w, &lease);
	w->has_outcome = true;
	w->outcome.finding.verdict = step->verdict;
	w->outcome.status = step->status;
}

static void
test_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ways); i++) {
		struct conf_channel channel = channel_of(ways[i].max_attempts, ways[i].accounts);
		struct walk w = {.channel = &channel,
		    .max_attempts = ways[i].max_attempts,
		    .wish = {.insist = PICK_ANY}};
		char got[STEPS_MAX + 1] = "";
		size_t account = 0;

		for (size_t s = 0; ways[i].step[s].verdict != VERDICT_OK; s++) {
			size_t at = w.wish.insist != PICK_ANY ? w.wish.insist : account++;

			take_step(&w, at, &ways[i].step[s]);
			got[s] = "saw"[walk_next(&w)];
		}
		if (strcmp(got, ways[i].want) != 0 ||
		    (ways[i].want[strlen(ways[i].want) - 1] != 's' &&
		        w.wish.insist !=
		            (ways[i].insist == ANY ? PICK_ANY : (size_t)ways[i].insist)))
			fail_msg("%s: got %s, want %s; insists on %zd", ways[i].what, got,
			    ways[i].want, (ssize_t)w.wish.insist);
	}
}

static void
test_tried(void **state)
{
	struct walk w = {.attempts = 0};
	struct pick_lease lease = {.channel = 3};

	(void)state;
	for (lease.account = 0; lease.account < PICK_TRIED_MAX + 5; lease.account++)
		walk_tried(&w, &lease);
	assert_int_equal(w.wish.ntried, PICK_TRIED_MAX);
	assert_int_equal(w.wish.tried[7].channel, 3);
	assert_int_equal(w.wish.tried[7].account, 7);
}

static void
test_backoff(void **state)
{
	static const int64_t base[] = {250, 500, 1000, 2000, 4000, 8000, 8000, 8000};
	struct conf_channel channel = channel_of(99, 99);
	uint64_t random = 88172645463325252ULL;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct walk w = {.channel = &channel};

		for (size_t i = 0; i < NELEM(base); i++) {
			int64_t ms = walk_backoff_ms(&w, random);

			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			if (ms < base[i] * 3 / 4 || ms > base[i] * 5 / 4)
				fail_msg("back-off %zu: %lld ms", i, (long long)ms);
		}
	}
	struct walk low = {.channel = &channel}, high = {.channel = &channel};

	assert_int_equal(walk_backoff_ms(&low, 0), 187);
	assert_int_equal(walk_backoff_ms(&high, 125), 312);
	channel.policy.upstream.retry_backoff_ms = 0;
	assert_int_equal(walk_backoff_ms(&low, UINT64_MAX), 0);
}

#define S 1000LL

static const struct {
	const char *what;
	struct step last; /* VERDICT_OK: no attempt was made */
	enum classify_transport transport;
	const char *message;
	bool exhausted;
	enum pick_result reason;
	int64_t earliest; /* from now */
	unsigned unexplained;
	int status;
	const char *code; /* NULL: the upstream's body */
	int64_t retry_after_s;
	bool no_retry;
} ends[] = {
    {"all cooling", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, 20 * S, 0, 429,
        "pool_exhausted", 20, false},
    {"rounded up", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, 20 * S + 1, 0, 429,
        "pool_exhausted", 21, false},
    {"a moment", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, 1, 0, 429, "pool_exhausted",
        1, false},
    {"over meanwhile", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, -5 * S, 0, 429,
        "pool_exhausted", 1, false},
    {"a minute", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, 60 * S, 0, 429,
        "pool_exhausted", 60, false},
    {"over a minute", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_COOLING, 60 * S + 1, 0, 429,
        "pool_exhausted", 61, true},
    {"only full", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_FULL, 0, 0, 429, "pool_exhausted",
        1, false},
    {"model missing everywhere", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_MISSING, 0, 0, 404,
        "model_not_found", -1, false},
    {"nobody", {VERDICT_OK, 0}, TRANSPORT_OK, "", true, PICK_NOBODY, 0, 0, 503, "no_account", -1,
        true},
    {"request at fault", {VERDICT_CLIENT, 422}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0, 422,
        NULL, -1, false},
    {"not built there", {VERDICT_CLIENT, 501}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0, 501,
        NULL, -1, false},
    {"request at fault in a 200", {VERDICT_CLIENT, 200}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0,
        400, "invalid_request_error", -1, false},
    {"too long, at a 502", {VERDICT_CONTEXT_LENGTH, 502}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0,
        0, 400, "invalid_request_error", -1, false},
    {"too long", {VERDICT_CONTEXT_LENGTH, 400}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0, 400,
        NULL, -1, false},
    {"unexplained twice", {VERDICT_UNEXPLAINED, 403}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 2,
        403, NULL, -1, false},
    {"unexplained by the only account", {VERDICT_UNEXPLAINED, 403}, TRANSPORT_OK, "m", true,
        PICK_TRIED, 0, 1, 502, "upstream_error", -1, true},
    {"limited, others were left", {VERDICT_SOFT_RATE, 429}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0,
        0, 429, "upstream_error", 1, true},
    {"limited, all rest", {VERDICT_SOFT_RATE, 429}, TRANSPORT_OK, "m", true, PICK_COOLING, 30 * S,
        0, 429, "pool_exhausted", 30, false},
    {"model limited, all rest", {VERDICT_MODEL_RATE, 429}, TRANSPORT_OK, "m", true, PICK_COOLING,
        30 * S, 0, 429, "pool_exhausted", 30, false},
    {"key refused, all disabled", {VERDICT_AUTH_FAILED, 401}, TRANSPORT_OK, "m", true, PICK_NOBODY,
        0, 0, 503, "no_account", -1, true},
    {"key refused, attempts used up", {VERDICT_AUTH_FAILED, 401}, TRANSPORT_OK, "m", false,
        PICK_TAKEN, 0, 0, 502, "upstream_error", -1, true},
    {"model missing, attempts used up", {VERDICT_MODEL_MISSING, 404}, TRANSPORT_OK, "m", false,
        PICK_TAKEN, 0, 0, 404, "model_not_found", -1, true},
    {"overloaded", {VERDICT_OVERLOAD, 529}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0, 503,
        "upstream_error", -1, true},
    {"overloaded, all rest", {VERDICT_OVERLOAD, 529}, TRANSPORT_OK, "m", true, PICK_COOLING, 9 * S,
        0, 503, "upstream_error", -1, true},
    {"server", {VERDICT_SERVER, 500}, TRANSPORT_OK, "m", false, PICK_TAKEN, 0, 0, 502,
        "upstream_error", -1, true},
    {"server, the others rest", {VERDICT_SERVER, 500}, TRANSPORT_OK, "m", true, PICK_COOLING, 9 * S,
        0, 502, "upstream_error", -1, true},
    {"network", {VERDICT_NETWORK, 0}, TRANSPORT_CONNECT, "m", false, PICK_TAKEN, 0, 0, 502,
        "upstream_error", -1, true},
    {"time-out", {VERDICT_NETWORK, 0}, TRANSPORT_TIMEOUT, "m", false, PICK_TAKEN, 0, 0, 504,
        "upstream_error", -1, true},
    {"nobody's failure", {VERDICT_NOBODY, 0}, TRANSPORT_REUSED, "", true, PICK_TRIED, 0, 0, 502,
        "upstream_error", -1, true},
    {"restart", {VERDICT_CANCELLED, 0}, TRANSPORT_OK, "", false, PICK_TAKEN, 0, 0, 503,
        "restarting", 1, false},
};

static void
test_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(ends); i++) {
		struct conf_channel channel = channel_of(3, 3);
		struct walk w = {.channel = &channel,
		    .exhausted = ends[i].exhausted,
		    .unexplained = ends[i].unexplained,
		    .reason = {.result = ends[i].reason, .earliest = {NOW + ends[i].earliest}}};
		struct walk_end end;

		if (ends[i].last.verdict != VERDICT_OK)
			take_step(&w, 0, &ends[i].last);
		walk_note_reason(&w);
		w.outcome.transport = ends[i].transport;
		snprintf(w.outcome.finding.message, sizeof w.outcome.finding.message, "%s",
		    ends[i].message);
		end = walk_end(&w, (struct wall_ms){NOW});
		if (end.status != ends[i].status || (end.code == NULL) != (ends[i].code == NULL) ||
		    (end.code != NULL && strcmp(end.code, ends[i].code) != 0) ||
		    end.retry_after_s != ends[i].retry_after_s || end.no_retry != ends[i].no_retry)
			fail_msg("%s: got %d %s, retry after %lld, no retry %d", ends[i].what,
			    end.status, end.code == NULL ? "-" : end.code,
			    (long long)end.retry_after_s, end.no_retry);
		if (end.code != NULL && (end.message == NULL || end.message[0] == '\0'))
			fail_msg("%s: no message", ends[i].what);
	}
}

static void
test_upstreams_code(void **state)
{
	struct conf_channel channel = channel_of(3, 3);
	struct walk w = {.channel = &channel};
	struct walk_end end;

	(void)state;
	take_step(&w, 0, &(struct step){VERDICT_CONTEXT_LENGTH, 502});
	snprintf(w.outcome.finding.code, sizeof w.outcome.finding.code, "context_length_exceeded");
	snprintf(
	    w.outcome.finding.message, sizeof w.outcome.finding.message, "maximum context length");
	end = walk_end(&w, (struct wall_ms){NOW});
	assert_int_equal(end.status, 400);
	assert_string_equal(end.code, "context_length_exceeded");
	assert_string_equal(end.message, "maximum context length");
}

/* ---- targets ---- */

/* Channels a to c; b speaks messages. */
struct world {
	struct conf conf;
	struct conf_channel channels[3];
	struct conf_target targets[4];
	struct conf_model entry;
	struct route routes[4];
	struct route_list list;
	struct pool pool;
	struct arena *arena;
	struct walk walk;
};

static struct span code[] = {SPAN("code")}, prose[] = {SPAN("creative")},
                   both[] = {SPAN("code"), SPAN("creative")};

/* "a:0 b:1": on that channel, with tasks: 0 none, 1 code, 2 creative, 3 both; models are m0, m1, ... */
static void
world_init(struct world *w, const char *targets, struct span task, unsigned wires)
{
	static struct span models[] = {SPAN("m0"), SPAN("m1"), SPAN("m2"), SPAN("m3")};
	static const struct conf_strings lists[] = {{NULL, 0}, {code, 1}, {prose, 1}, {both, 2}};
	struct walk_start start = {.list = &w->list, .task = task, .wires = wires};

	memset(w, 0, sizeof *w);
	for (size_t i = 0; i < 3; i++) {
		w->channels[i] = channel_of(3 + (int)i, 1);
		w->channels[i].index = i;
		w->channels[i].name = (struct span){&"abc"[i], 1};
		w->channels[i].wire = i == 1 ? WIRE_MESSAGES : WIRE_CHAT;
	}
	w->conf.channels = w->channels;
	w->conf.nchannels = 3;
	w->conf.routing.fallback = CONF_ROUTE_COST_FIRST;
	w->conf.routing.min_success_rate = 0.95;
	w->pool.conf = &w->conf;
	w->entry = (struct conf_model){.realm = SPAN("cn")};
	w->list = (struct route_list){.at = w->routes, .strategy = CONF_ROUTE_MIXED};
	for (const char *p = targets; *p != '\0'; p += p[3] == ' ' ? 4 : 3) {
		struct conf_target *target = &w->targets[w->list.n];

		*target = (struct conf_target){.channel = (size_t)(p[0] - 'a'),
		    .model = models[w->list.n],
		    .weight = 1 + (double)w->list.n,
		    .tasks = lists[p[2] - '0']};
		w->routes[w->list.n++] =
		    (struct route){target->channel, target->model, &w->entry, target};
	}
	w->arena = arena_new(1 << 20);
	walk_begin(&w->walk, &w->pool, &start, w->arena);
}

static const struct {
	const char *what, *targets, *task;
	unsigned wires;
	const char *out; /* . in, L and lists the task, W another wire, T other tasks */
} outs[] = {
    {"all are in", "a:0 b:0 c:0", "", ROUTE_WIRES_ALL, "..."},
    {"another wire", "a:0 b:0 c:0", "", ROUTE_WIRE(WIRE_CHAT), ".W."},
    {"no task: lists do not matter", "a:1 b:2 c:0", "", ROUTE_WIRES_ALL, "..."},
    {"those that list it, or none", "a:1 b:2 c:0", "code", ROUTE_WIRES_ALL, "LT."},
    {"by another name", "a:1 b:2 c:3", "Code-Generation", ROUTE_WIRES_ALL, "LTL"},
    {"tasks are no reason to serve nobody", "a:1 b:1", "creative", ROUTE_WIRES_ALL, ".."},
    {"... nor where who lists it speaks another wire", "a:1 b:2", "creative", ROUTE_WIRE(WIRE_CHAT),
        ".W"},
    {"a task of the operator's", "a:1 b:0", "my-own", ROUTE_WIRES_ALL, "T."},
};

static void
test_outs(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(outs); i++) {
		struct world w;
		char got[8] = "";

		world_init(&w, outs[i].targets, text_span(outs[i].task), outs[i].wires);
		for (size_t k = 0; k < w.list.n; k++) {
			const struct elect_candidate *c = &w.walk.candidates[k];

			got[k] = c->out == ELECT_WIRE   ? 'W'
			         : c->out == ELECT_TASK ? 'T'
			         : c->lists_task        ? 'L'
			                                : '.';
		}
		if (strcmp(got, outs[i].out) != 0)
			fail_msg("%s: got %s, want %s", outs[i].what, got, outs[i].out);
		arena_free(&w.arena);
	}
}

static void
test_take(void **state)
{
	struct world w;
	struct elect_rule rule;

	(void)state;
	world_init(&w, "a:0 b:0 c:0", SPAN(""), ROUTE_WIRES_ALL);
	assert_int_equal(w.walk.plan.visited, 0);
	assert_true(walk_has_other(&w.walk));
	rule = walk_rule(&w.walk, 77);
	assert_int_equal(rule.strategy, CONF_ROUTE_MIXED);
	assert_int_equal(rule.fallback, CONF_ROUTE_COST_FIRST);
	assert_int_equal(rule.min_success_ppm, 950000);
	assert_int_equal(rule.draw, 77);
	w.walk.candidates[2].trial = true;
	walk_take(&w.walk, 2, w.arena);
	assert_true(w.walk.trial);
	assert_int_equal(w.walk.wish.channel, 2);
	assert_string_equal(w.walk.wish.model, "m2");
	assert_true(text_is(w.walk.wish.realm, "cn"));
	assert_int_equal(w.walk.max_attempts, 5); /* of the first one's channel */
	walk_note_answers(&w.walk);
	assert_true(w.walk.wish.no_probe);
	w.walk.has_outcome = true;
	assert_int_equal(walk_rule(&w.walk, 0).strategy, CONF_ROUTE_COST_FIRST);
	w.walk.candidates[0].out = ELECT_FULL;
	w.walk.candidates[1].out = ELECT_RESTS;
	assert_false(walk_has_other(&w.walk));
	walk_note_answers(&w.walk);
	assert_true(w.walk.wish.no_probe); /* the busy one comes before who rests */
	walk_take(&w.walk, 0, w.arena);
	assert_int_equal(w.walk.max_attempts, 5);
	assert_false(w.walk.trial);
	walk_note_answers(&w.walk);
	assert_false(w.walk.wish.no_probe);
	w.walk.facts[2].rest_until_ms = NOW;
	assert_false(walk_next_channel(&w.walk, w.arena)); /* the first one rests now */
	w.walk.facts[2].rest_until_ms = 0;
	assert_true(walk_next_channel(&w.walk, w.arena)); /* back at the first one */
	assert_true(w.walk.last_chance);
	assert_int_equal(w.walk.wish.channel, 2);
	arena_free(&w.arena);
}

/* Without an entry there is nothing to choose, and nothing is looked up. */
static void
test_no_choice(void **state)
{
	struct world w;
	struct route route = {.channel = 1, .model = SPAN("x")};
	struct route_list list = {.at = &route, .n = 1};
	struct walk_start start = {.list = &list, .wires = ROUTE_WIRES_ALL};

	(void)state;
	world_init(&w, "a:0", SPAN(""), ROUTE_WIRES_ALL);
	assert_non_null(w.walk.candidates); /* an entry with one target may rest */
	memset(&w.walk, 0, sizeof w.walk);
	walk_begin(&w.walk, &w.pool, &start, w.arena);
	assert_null(w.walk.candidates);
	assert_int_equal(w.walk.plan.visited, 1);
	assert_int_equal(w.walk.wish.channel, 1);
	assert_int_equal(w.walk.max_attempts, 4);
	assert_false(walk_has_other(&w.walk));
	arena_free(&w.arena);
}

static void
test_sessions_draw(void **state)
{
	static const uint8_t one[32] = {1}, two[32] = {2};
	struct world w;
	struct elect_rule rule;

	(void)state;
	world_init(&w, "a:0 b:0 c:0", SPAN(""), ROUTE_WIRES_ALL);
	w.walk.session.key = one;
	rule = walk_rule(&w.walk, 1);
	assert_true(rule.by_session);
	assert_true(rule.draw == walk_rule(&w.walk, 2).draw);
	w.walk.session.key = two;
	assert_true(rule.draw != walk_rule(&w.walk, 1).draw);
	arena_free(&w.arena);
}

/* Whether the account may be asked for another model of its channel. */
static const struct {
	enum verdict verdict;
	bool again;
} blames[] = {
    {VERDICT_MODEL_RATE, true},
    {VERDICT_MODEL_MISSING, true},
    {VERDICT_SERVER, true},
    {VERDICT_OVERLOAD, true},
    {VERDICT_AUTH_FAILED, false},
    {VERDICT_SOFT_RATE, false},
    {VERDICT_HARD_CREDIT, false},
    {VERDICT_NETWORK, false},
    {VERDICT_UNEXPLAINED, false},
    {VERDICT_NOBODY, false},
};

static void
test_blames(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(blames); i++) {
		const char *name = verdict_table[blames[i].verdict].name;
		struct pick_wish wish;
		struct world w;

		world_init(&w, "a:0 a:0 b:0", SPAN(""), ROUTE_WIRES_ALL);
		walk_take(&w.walk, 0, w.arena);
		take_step(&w.walk, 0, &(struct step){blames[i].verdict, 0});
		(void)walk_next(&w.walk);
		assert_int_equal(w.walk.wish.ntried, 1);
		walk_wish(&w.walk, 1, w.arena, &wish);
		if (wish.ntried != (blames[i].again ? 0 : 1))
			fail_msg("%s: tried %u", name, wish.ntried);
		assert_string_equal(wish.model, "m1");
		walk_take(&w.walk, 1, w.arena);
		assert_int_equal(w.walk.wish.ntried, wish.ntried);
		/* but never twice with the same */
		walk_wish(&w.walk, 0, w.arena, &wish);
		assert_int_equal(wish.ntried, 1);
		arena_free(&w.arena);
	}
}

static void
test_rests(void **state)
{
	struct walk w = {.exhausted = true};
	struct walk_end end;

	(void)state;
	walk_note_rest(&w, NOW + 90 * S);
	walk_note_rest(&w, NOW + 30 * S - 1);
	walk_note_rest(&w, NOW + 60 * S);
	end = walk_end(&w, (struct wall_ms){NOW});
	assert_int_equal(end.status, 503);
	assert_string_equal(end.code, "model_resting");
	assert_int_equal(end.retry_after_s, 30);
	assert_false(end.no_retry);
	/* beside accounts that come back later it says when, too */
	w.reason = (struct pick_reason){.result = PICK_COOLING, .earliest = {NOW + 50 * S}};
	walk_note_reason(&w);
	end = walk_end(&w, (struct wall_ms){NOW});
	assert_string_equal(end.code, "pool_exhausted");
	assert_int_equal(end.retry_after_s, 30);
}

/* A copy for those who only look. */
static void
test_part(void **state)
{
	struct world w;
	struct walk copy;

	(void)state;
	world_init(&w, "a:0 b:0", SPAN(""), ROUTE_WIRES_ALL);
	copy = w.walk;
	walk_part(&copy, w.arena);
	walk_take(&copy, 0, w.arena);
	assert_int_equal(copy.candidates[0].out, ELECT_TRIED);
	assert_int_equal(w.walk.candidates[0].out, ELECT_IN);
	assert_int_equal(w.walk.plan.visited, 0);
	arena_free(&w.arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_tried),
	    cmocka_unit_test(test_backoff),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_upstreams_code),
	    cmocka_unit_test(test_outs),
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_no_choice),
	    cmocka_unit_test(test_sessions_draw),
	    cmocka_unit_test(test_blames),
	    cmocka_unit_test(test_rests),
	    cmocka_unit_test(test_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
