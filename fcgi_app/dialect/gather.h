/*
 * gather - collects the steps of an answer into a whole one.
 *
 * Source    dialect/flow.h
 */
#ifndef DIALECT_GATHER_H
#define DIALECT_GATHER_H

#include "dialect/flow.h"

struct gather;

struct gather *gather_begin(struct arena *arena);
/* A flow_sink_fn. */
void gather_step(void *gather, const struct flow *step);
/* What is there by now; the texts are whole once FLOW_END came. */
const struct flow_answer *gather_answer(struct gather *gather);

#endif
