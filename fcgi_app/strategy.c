#include "strategy.h"

#define NO_QUOTA_RANK 1e18 /* an account without a quota counts as the largest */

static const struct {
	enum score_way way;
	unsigned needs;
} table[] = {
    [CONF_ADAPTIVE] = {SCORE_ADAPTIVE, 0},
    [CONF_ROUND_ROBIN] = {SCORE_LEAST, STRATEGY_CURSOR},
    [CONF_WEIGHTED_ROUND_ROBIN] = {SCORE_LEAST, STRATEGY_SMOOTH},
    [CONF_WEIGHTED_RANDOM] = {SCORE_RANDOM, 0},
    [CONF_QUOTA] = {SCORE_LEAST, STRATEGY_QUOTA},
    [CONF_LEAST_IN_FLIGHT] = {SCORE_LEAST, 0},
    [CONF_LEAST_USED] = {SCORE_LEAST, STRATEGY_STAT},
    [CONF_LRU] = {SCORE_LEAST, 0},
    [CONF_LATENCY] = {SCORE_LEAST, STRATEGY_STAT},
    [CONF_FILL_FIRST] = {SCORE_LEAST, 0},
};

enum score_way
strategy_way(enum conf_strategy strategy)
{
	return table[strategy].way;
}

unsigned
strategy_needs(enum conf_strategy strategy)
{
	return table[strategy].needs;
}

double
strategy_rank(enum conf_strategy strategy, const struct strategy_facts *f)
{
	switch (strategy) {
	case CONF_ADAPTIVE:
	case CONF_LRU: break; /* ties: least recently picked */
	case CONF_ROUND_ROBIN: return (double)(uint32_t)(f->number - f->cursor - 1);
	case CONF_WEIGHTED_ROUND_ROBIN: return -(f->smooth + f->weight);
	case CONF_WEIGHTED_RANDOM: return f->weight;
	case CONF_QUOTA: return -(f->quota_left < 0 ? NO_QUOTA_RANK : f->quota_left);
	case CONF_LEAST_IN_FLIGHT: return f->in_flight;
	case CONF_LEAST_USED:
		return f->tokens_today + f->requests_today / 1e9; /* tokens first, then requests */
	case CONF_LATENCY: return f->latency_ms;
	case CONF_FILL_FIRST: return (double)f->index;
	}
	return 0;
}
