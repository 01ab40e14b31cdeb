/*
 * plan - which channel a request may use next, and under which name of its model. Pure.
 *
 * A request begins at its first target, goes on to others of its targets as its caller says (elect.h), and then follows
 * the `fallback` list of the first one's channel, in order, passing over what is open; the lists of those it comes to are
 * not followed, so nothing recurs and each place is visited once.
 *
 * Passed over   open or half-open without a permit left; a wire that the request cannot use; a channel that has a target
 *               of the request; a model that the channel's patterns do not serve: its name is that of the first target
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
	const struct route *targets; /* more than one: the caller chooses among them */
	size_t ntargets;
	struct route first;
	unsigned wires; /* ROUTE_WIRE bits that the request can use */
	bool other;     /* another target may be had, as the caller says */
	size_t
	    step; /* how far it looked: 0 nowhere, 1 the first channel, 1 + i the i-th fallback */
	size_t visited; /* places that plan_next() and plan_take() gave */
	/* the present one, once one of them said yes */
	size_t channel;
	struct span model;                /* its name there */
	const struct conf_model *entry;   /* that led there, or NULL */
	const struct conf_target *target; /* that it is, or NULL */
};

/* With one target, the first. */
void plan_begin(
    struct plan *plan, const struct conf *conf, const struct route *first, unsigned wires);
/* With several. Until one is taken the first of them stands for it. */
void plan_begin_targets(
    struct plan *plan, const struct conf *conf, const struct route_list *list, unsigned wires);

/* Go to this target. */
void plan_take(struct plan *plan, size_t target);
/* Go on to the next channel: the first one, then its fallbacks. False: none is left, and the plan stays where it was. */
bool plan_next(struct plan *plan, const enum breaker_answer *answers);
/* Why a step of the way is passed over: step 1 is the first channel, 1 + i the i-th fallback. For explain. */
enum plan_pass {
	PLAN_GOES, /* it is not */
	PLAN_OPEN,
	PLAN_SPENT, /* half-open, all its probes are sent */
	PLAN_REPEATED,
	PLAN_TARGET, /* has a target of the request */
	PLAN_OTHER_WIRE,
	PLAN_NO_MODEL,
};
/* The channel, and where it goes, what the model is there. */
enum plan_pass plan_step(const struct plan *plan, const enum breaker_answer *answers, size_t step,
    struct route *route_out);

/* The model on the present channel as a target; without one in the entry, what is known of its name (known.h). */
struct conf_target plan_target(const struct plan *plan);

/* Is there another target, or would plan_next() find a channel? */
bool plan_more(const struct plan *plan, const enum breaker_answer *answers);
/* Back to the first place, to wait there or to try who rests: the chain is used up. */
void plan_back(struct plan *plan);

/*
 * After `used` attempts in all: may the present place have another? While another place remains the first one
 * leaves one attempt for it, but has one itself. (A probe has one attempt whatever this says: go on after it.)
 */
bool plan_may_try(const struct plan *plan, const enum breaker_answer *answers, int64_t used,
    int64_t max_attempts);

/* The breaker's fact: is some channel of this one's list not open? Of any model, so that it is the same for all. */
bool plan_has_fallback(
    const struct conf *conf, size_t channel, unsigned wires, const enum breaker_answer *answers);

#endif
