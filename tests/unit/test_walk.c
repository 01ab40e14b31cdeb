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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_tried),
	    cmocka_unit_test(test_backoff),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_upstreams_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
