/*
 * plan - which channel a request may use next. Pure.
 *
 * A request begins at its first channel and then follows that channel's `fallback` list, in order, passing over what is
 * open; the lists of those it comes to are not followed, so nothing recurs and each channel is visited once.
 *
 * Passed over   open or half-open without a permit left; a wire that the request cannot use; a model that the channel's
 *               patterns do not serve (a target of the `models` entry on that channel names the model, else the name is
 *               that of the first channel)
 * Answers       the caller gives an array with a breaker's answer for each channel of the configuration; only the
 *               entries of the first channel and of its list are read
 * Source        SPEC.md sections 5 and 9
 */
#ifndef PLAN_H
#define PLAN_H

#include "route.h"

#include "store/breaker.h"

struct plan {
	const struct conf *conf;
	struct route first;
	unsigned wires; /* ROUTE_WIRE bits that the request can use */
	size_t
	    step; /* how far it looked: 0 nowhere, 1 the first channel, 1 + i the i-th fallback */
	size_t visited;    /* channels that plan_next() gave */
	size_t channel;    /* the present one, once plan_next() said yes */
	struct span model; /* its name there */
};

void plan_begin(
    struct plan *plan, const struct conf *conf, const struct route *first, unsigned wires);

/* Go on to the next channel: the first one, then its fallbacks. False: none is left, and the plan stays where it was. */
bool plan_next(struct plan *plan, const enum breaker_answer *answers);
/* Why a step of the way is passed over: step 1 is the first channel, 1 + i the i-th fallback. For explain. */
enum plan_pass {
	PLAN_GOES, /* it is not */
	PLAN_OPEN,
	PLAN_SPENT, /* half-open, all its probes are sent */
	PLAN_REPEATED,
	PLAN_OTHER_WIRE,
	PLAN_NO_MODEL,
};
/* *channel_out and, where it goes, *model_out. */
enum plan_pass plan_step(const struct plan *plan, const enum breaker_answer *answers, size_t step,
    size_t *channel_out, struct span *model_out);

/* The model on the present channel as a target; without one in the entry, what is known of its name (known.h). */
struct conf_target plan_target(const struct plan *plan);

/* Would plan_next() find one? */
bool plan_more(const struct plan *plan, const enum breaker_answer *answers);
/* Back to the first channel, to wait there or to try who rests: the chain is used up. */
void plan_back(struct plan *plan);

/*
 * After `used` attempts in all: may the present channel have another? While a usable fallback remains the first channel
 * leaves one attempt for it, but has one itself. (A probe has one attempt whatever this says: go on after it.)
 */
bool plan_may_try(const struct plan *plan, const enum breaker_answer *answers, int64_t used,
    int64_t max_attempts);

/* The breaker's fact: is some channel of this one's list not open? Of any model, so that it is the same for all. */
bool plan_has_fallback(
    const struct conf *conf, size_t channel, unsigned wires, const enum breaker_answer *answers);

#endif
