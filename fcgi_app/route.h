/*
 * route - which channels may serve a model, and under which name there. Pure.
 *
 * An entry of `models` names its targets; without one the name goes to the first channel whose patterns match.
 *
 * Source    SPEC.md section 12
 */
#ifndef ROUTE_H
#define ROUTE_H

#include "conf/conf.h"

#define ROUTE_WIRE(wire) (1U << (wire)) /* of enum provider_wire: who can serve a request */
#define ROUTE_WIRES_ALL \
	(ROUTE_WIRE(WIRE_CHAT) | ROUTE_WIRE(WIRE_MESSAGES) | ROUTE_WIRE(WIRE_RESPONSES))

struct route {
	size_t channel;                 /* index in the configuration */
	struct span model;              /* as the upstream knows it */
	const struct conf_model *entry; /* NULL: not an entry of `models` */
};

/* False: nobody serves this model, of those whose wire format is one of `wires`. */
bool route_find(
    const struct conf *conf, struct span model, unsigned wires, struct route *route_out);

#endif
