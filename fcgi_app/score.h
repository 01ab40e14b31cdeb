/*
 * score - from candidates to one account. Pure: the clock and the random number are given.
 *
 * Two passes over the candidates of one channel, in any order and without a copy of them: score_survey() each (finds
 * the best priority tier and the largest credits), then score_offer() each (keeps the best few), then score_draw().
 *
 * The rule `adaptive` (SPEC.md section 7): weight = (credits / largest credits) * credit_factor
 *     + min(idle hours * idle_weight_per_hour, idle_weight_max) + success rate * success_factor, all times the
 *     account's own weight. Order by weight, then least recently picked, then id. The first `shortlist` are drawn from
 *     with those weights, without those picked less than min_pick_gap ago; if that leaves none, the least recently
 *     picked of the short list.
 */
#ifndef SCORE_H
#define SCORE_H

#include "base/text.h"
#include "store/types.h"

/* Why an account is out, for explain and for the answer when nobody is left. */
enum score_out {
	SCORE_IN,
	SCORE_DISABLED,
	SCORE_REALM,
	SCORE_MODEL,     /* does not serve this model */
	SCORE_NO_WEIGHT, /* its own weight is 0 */
	SCORE_TRIED,     /* in this request */
	SCORE_COOLING,
	SCORE_BREAKER,
	SCORE_MODEL_COOLING,
	SCORE_MODEL_MISSING,
	SCORE_FULL,
	SCORE_QUOTA,
	SCORE_TIER, /* a better priority has somebody */
	SCORE__MAX
};

const char *score_out_name(enum score_out out);

struct score_rule {
	double credit_factor, success_factor, idle_weight_per_hour, idle_weight_max;
	int64_t min_pick_gap_ms;
	unsigned shortlist; /* 1..SCORE_SHORT_MAX */
};

struct score_candidate {
	size_t account; /* the caller's index */
	struct span id;
	int64_t priority;
	double weight;
	bool has_credits;
	int64_t credits_micros;
	struct wall_ms picked; /* 0 = never */
	uint32_t picked_txn;   /* order within one millisecond: numbers of transactions */
	uint32_t success, errors;
};

#define SCORE_SHORT_MAX 32

struct score_terms {
	double credits, idle, success, weight; /* weight = the product, after the account's own */
};

struct score_board {
	const struct score_rule *rule;
	struct wall_ms now;
	bool any;
	int64_t priority;
	int64_t most_credits_micros;
	unsigned n;
	struct score_entry {
		struct score_candidate candidate;
		struct score_terms terms;
	} best[SCORE_SHORT_MAX];
};

void score_begin(struct score_board *board, const struct score_rule *rule, struct wall_ms now);
void score_survey(struct score_board *board, const struct score_candidate *candidate);
/* SCORE_IN or SCORE_TIER. */
enum score_out score_offer(struct score_board *board, const struct score_candidate *candidate);
/* The chosen candidate's `account`; false when nobody was offered. `random` is uniform over 64 bits. */
bool score_draw(const struct score_board *board, uint64_t random, size_t *account_out);

struct score_terms score_terms(
    const struct score_board *board, const struct score_candidate *candidate);

#endif
