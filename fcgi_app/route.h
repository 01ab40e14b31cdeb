/*
 * route - which models on which channels may serve a request: its candidates. Pure.
 *
 * By name    the targets of the entry of `models`; without an entry the one: the first channel whose patterns match
 * By task    the model "auto", where `models` has no entry of that name but tasks are spoken of: what routing.tasks has
 *            for the task, else for "default", else the targets of all entries that list the task, else of those that list
 *            none
 * Names      of tasks match loosely: "code-generation" is "code" (task.h)
 * Memory     lists in the arena; names borrow from the configuration and the request
 * Source     SPEC.md section 12
 */
#ifndef ROUTE_H
#define ROUTE_H

#include "conf/conf.h"

#define ROUTE_WIRE(wire) (1U << (wire)) /* of enum provider_wire: who can serve a request */
#define ROUTE_WIRES_ALL \
	(ROUTE_WIRE(WIRE_CHAT) | ROUTE_WIRE(WIRE_MESSAGES) | ROUTE_WIRE(WIRE_RESPONSES))

/* A model on a channel. */
struct route {
	size_t channel;                   /* index in the configuration */
	struct span model;                /* as the upstream knows it */
	const struct conf_model *entry;   /* NULL: not an entry of `models` */
	const struct conf_target *target; /* of the entry; NULL likewise */
};

struct route_list {
	struct route *at; /* in the order of the configuration, each once */
	size_t n;
	int strategy; /* enum conf_routing: how one is chosen */
};

struct route_wish {
	struct span model;
	struct span task; /* "" = none is known */
	unsigned wires;   /* ROUTE_WIRE bits: who can serve */
};

/* Is it the task that says which model? */
bool route_is_auto(const struct conf *conf, struct span model);
/* All candidates of an entry, whatever they speak. False: nobody serves this model on one of the wires. */
bool route_all(const struct conf *conf, const struct route_wish *wish, struct arena *arena,
    struct route_list *list_out);
/* The first by name of those whose wire format is one of `wires`. False: there is none. */
bool route_find(
    const struct conf *conf, struct span model, unsigned wires, struct route *route_out);

/* Does the list name the task? */
bool route_lists(const struct conf_strings *tasks, struct span task);

#endif
