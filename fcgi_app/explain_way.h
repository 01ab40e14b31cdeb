/*
 * explain_way - where a request may go: its targets, each with its facts or why it is out, and the fallback chain.
 *
 * A part of explain.h's document.
 */
#ifndef EXPLAIN_WAY_H
#define EXPLAIN_WAY_H

#include "base/emit.h"
#include "walk.h"

/* What a task and a strategy led to; all targets have been looked at. */
void explain_way_targets(
    struct emit *e, const struct walk *w, const struct elect_rule *rule, struct span task);
/* Of the first place: where it leads from there. */
void explain_way_chain(struct emit *e, const struct walk *w);

#endif
