/*
 * strategy - the rank of a candidate under pool.strategy, and which way of choosing the strategy takes. Pure.
 *
 * Source    SPEC.md section 7 ("Other strategies")
 */
#ifndef STRATEGY_H
#define STRATEGY_H

#include "conf/conf.h"
#include "score.h"

/* What the strategies ask of an account; only what strategy_needs() names must be filled in. */
struct strategy_facts {
	uint32_t number; /* of the account */
	uint32_t cursor; /* of the account that round robin picked last; UINT32_MAX = nobody */
	size_t index;    /* in the configuration */
	double weight, smooth; /* smooth: the account's standing in the smooth round robin */
	unsigned in_flight;
	double tokens_today, requests_today;
	double latency_ms; /* mean of its successes; 0 = none yet */
	double quota_left; /* tokens or share; negative = no quota */
};

enum strategy_need {
	STRATEGY_CURSOR = 1,
	STRATEGY_SMOOTH = 2,
	STRATEGY_STAT = 4,
	STRATEGY_QUOTA = 8,
};

enum score_way strategy_way(enum conf_strategy strategy);
unsigned strategy_needs(enum conf_strategy strategy); /* bits of enum strategy_need */
/* Lower is better for SCORE_LEAST, a weight for SCORE_RANDOM. */
double strategy_rank(enum conf_strategy strategy, const struct strategy_facts *facts);

#endif
