/*
 * score - from candidates to one account. Pure: the clock and the random number are given.
 *
 * Two passes over the candidates of one channel, in any order and without a copy of them: score_survey() each, then
 * score_close(), then score_offer() each, then score_draw(). The first pass finds which filters leave somebody:
 *
 *   priority   the best (lowest) value that anybody has
 *   cost       within it, the best non-empty of three tiers: measured free, not measured, measured paid
 *   unbound    within that, for the first request of a session: accounts that no session is bound to
 *
 * The second pass ranks who is left, in one of three ways (a strategy chooses the way and gives the rank):
 *
 *   SCORE_ADAPTIVE  weight = (credits / largest credits) * credit_factor + min(idle hours * idle_weight_per_hour,
 *                   idle_weight_max) + success rate * success_factor, all times the account's own weight and factor.
 *                   Order by weight, then least recently picked, then id. The first `shortlist` are drawn from with
 *                   those weights, without those picked less than min_pick_gap ago; if that leaves none, the least
 *                   recently picked of the short list.
 *   SCORE_LEAST     the lowest rank, then least recently picked, then id
 *   SCORE_RANDOM    drawn with the ranks as weights; all zero: uniform
 *
 * Source    SPEC.md sections 7 and 11
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
	SCORE_TIER,  /* a better priority has somebody */
	SCORE_COST,  /* a better cost tier has somebody */
	SCORE_BOUND, /* sessions are bound to it, and somebody is free of them */
	SCORE__MAX
};

const char *score_out_name(enum score_out out);

enum score_way { SCORE_ADAPTIVE, SCORE_LEAST, SCORE_RANDOM };

struct score_rule {
	enum score_way way;
	double credit_factor, success_factor, idle_weight_per_hour, idle_weight_max;
	int64_t min_pick_gap_ms;
	unsigned shortlist; /* 1..SCORE_SHORT_MAX */
};

#define SCORE_COST_TIERS 3

struct score_candidate {
	size_t account; /* the caller's index */
	struct span id;
	int64_t priority;
	double weight; /* the account's own */
	double factor; /* of this moment: 0.5 when nearly out of quota, else 1 */
	double rank;   /* for the ways other than adaptive */
	bool has_credits;
	int64_t credits_micros;
	struct wall_ms picked; /* 0 = never */
	uint32_t picked_txn;   /* order within one millisecond: numbers of transactions */
	uint32_t success, errors;
	uint8_t cost_tier; /* 0..2; all 0 where tiers are off */
	bool bound;        /* some session is bound to it */
};

#define SCORE_SHORT_MAX 32

struct score_terms {
	double credits, idle, success, weight; /* weight = the product, after the account's own */
};

struct score_board {
	const struct score_rule *rule;
	struct wall_ms now;
	uint64_t random; /* state of the draws of this pick */
	/* of the survey */
	bool any;
	int64_t priority;
	struct score_group {
		unsigned n;
		int64_t most_credits_micros;
	} groups[SCORE_COST_TIERS][2]; /* [cost tier][bound] at the best priority */
	/* after score_close() */
	uint8_t cost_tier;
	bool only_unbound;
	int64_t most_credits_micros;
	/* of the offers */
	double sum;     /* SCORE_RANDOM: weights seen */
	unsigned equal; /* SCORE_RANDOM: candidates of weight 0 seen */
	unsigned n;
	struct score_entry {
		struct score_candidate candidate;
		struct score_terms terms;
	} best[SCORE_SHORT_MAX];
};

/* `random` is uniform over 64 bits. */
void score_begin(
    struct score_board *board, const struct score_rule *rule, struct wall_ms now, uint64_t random);
/* Reads `priority`, `cost_tier`, `bound`, `has_credits` and `credits_micros` only. */
void score_survey(struct score_board *board, const struct score_candidate *candidate);
/* `explore`: the unmeasured tier although a free one has somebody; `prefer_unbound`: see above. */
void score_close(struct score_board *board, bool explore, bool prefer_unbound);
/* SCORE_IN, or the filter that leaves it out. */
enum score_out score_offer(struct score_board *board, const struct score_candidate *candidate);
/* The chosen candidate's `account`; false when nobody was offered. */
bool score_draw(struct score_board *board, size_t *account_out);
/* The chance that score_draw() takes one that score_offer() let in; all of them are to be offered before. */
double score_share(const struct score_board *board, const struct score_candidate *candidate);

struct score_terms score_terms(
    const struct score_board *board, const struct score_candidate *candidate);

#endif
