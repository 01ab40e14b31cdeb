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

struct route {
	size_t channel;                 /* index in the configuration */
	struct span model;              /* as the upstream knows it */
	const struct conf_model *entry; /* NULL: not an entry of `models` */
};

/* False: nobody serves this model. */
bool route_find(
    const struct conf *conf, struct span model, enum provider_wire wire, struct route *route_out);

#endif
