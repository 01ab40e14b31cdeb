/*
 * elect - which of a request's targets is asked next. Pure: facts and the draw are given.
 *
 * Out          a target whose API, tasks or window do not fit, that was tried, or that rests after failures, is not
 *              asked at all. One whose accounts are busy or rest, or whose channel is open, is asked only when no other
 *              is left: the busy first.
 * Strategies   weighted-random  who served the conversation so far; else by weight times success rate; of a session by its
 *                               hash, so that it stays where it is while the others come and go
 *              performance      the shortest time to the first content of those that succeed often enough; if none does,
 *                               the best success rate
 *              cost-first       what this request costs; an unknown price last
 *              task             those that list the request's task first, in the order of the configuration
 *              mixed            as task; where that target cannot be had, by the fallback strategy
 *              Equals are drawn by their weights. A target without data counts as perfect, so that it is measured.
 * Source       SPEC.md section 12
 */
#ifndef ELECT_H
#define ELECT_H

#include "conf/conf.h"

#define ELECT_NOBODY SIZE_MAX
#define ELECT_RATE_ONE 1000000
#define ELECT_COST_ONE 1000000000LL /* of a cost: one unit of money */

/* Why a target is out. Behind ELECT_OPEN it is not asked at all. */
enum elect_out {
	ELECT_IN,
	ELECT_FULL,      /* every account that could be used is busy */
	ELECT_EXHAUSTED, /* no account can be had now */
	ELECT_OPEN,      /* its channel's breaker is */
	ELECT_RESTS,     /* it failed too often in a row */
	ELECT_TRIED,     /* in this request */
	ELECT_SMALL,     /* its window is, for this prompt */
	ELECT_TASK,      /* is for others */
	ELECT_WIRE,      /* cannot say what the request asks for */
	ELECT__MAX
};

/* For people: "its window is too small". NULL for ELECT_IN. */
const char *elect_out_text(enum elect_out out);
/* It may be asked when no better one is left. */
bool elect_is_spare(enum elect_out out);
/* It stays out of this request, whatever the store says next. */
bool elect_is_final(enum elect_out out);

struct elect_candidate {
	enum elect_out out;
	uint64_t identity; /* the same whenever it is the same target, whoever asks */
	double weight;
	bool lists_task; /* names the request's task */
	bool served;     /* its channel did so far in this conversation */
	bool trial;      /* its rest is over: one request may try it */
	/* of the window; without data 0, ELECT_RATE_ONE, 0 */
	uint64_t calls;
	uint32_t success_ppm;
	int64_t first_ms; /* mean time to the first content */
	bool priced;
	int64_t cost; /* of this request: thousandths of a micro, see ELECT_COST_ONE */
};

struct elect_rule {
	int strategy, fallback; /* enum conf_routing; fallback: of mixed */
	uint32_t min_success_ppm;
	uint64_t draw;   /* random, or a session's hash */
	bool by_session; /* ... which it is */
	bool likeliest;  /* do not draw: who has the largest share */
};

/* ELECT_NOBODY: none may be asked. One that is only spare has its reason in `out`. */
size_t elect_choose(
    const struct elect_candidate *candidates, size_t n, const struct elect_rule *rule);
/* The chance of being chosen over all draws. */
double elect_share(const struct elect_candidate *candidates, size_t n,
    const struct elect_rule *rule, size_t candidate);

#endif
