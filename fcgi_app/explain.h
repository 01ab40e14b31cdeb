/*
 * explain - what a request would meet now, as JSON: targets, chain, breakers, every account with the terms of its weight or
 * the reason why it is out, and who would be taken.
 *
 * Walks the way of serve.c with the functions of serve.c, in one read transaction: nothing is taken, counted, bound or
 * written, and no upstream is asked. Printed by `sluicectl explain`, served where an admin says X-Sluice-Explain: 1.
 *
 * Errors    ERR_STORE with the store's text
 * Source    SPEC.md sections 7, 9, 11, 16
 */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "walk_elect.h"

struct explain {
	const struct walk *walk; /* just begun, the wish complete; is not changed */
	struct walk_size size;
	struct env *env;
	const struct slot *slot;
	struct arena *arena;
	struct wall_ms now;
	struct span model;   /* as the client names it */
	struct span task;    /* "" = not known */
	struct span client;  /* "" where nobody is told apart */
	const char *session; /* brief hash; "" or NULL: none */
	bool degraded;       /* requests get the message instead */
};

enum err explain_json(const struct explain *explain, struct buf *out, struct why *why) MUST_CHECK;

#endif
