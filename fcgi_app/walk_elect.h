/*
 * walk_elect - what the store knows of a request's targets, and which one is asked next by it. In one transaction.
 *
 * Read      of each target that may still be asked: how it did lately, whether it rests; then, of those that would be
 *           chosen, whether an account could be had, until one is found
 * Errors    those of env.h
 * Source    SPEC.md section 12
 */
#ifndef WALK_ELECT_H
#define WALK_ELECT_H

#include "walk.h"

/* How large the request is. */
struct walk_size {
	const int64_t *prompts; /* tokens as each target's model counts them; NULL: not counted */
	int64_t guess;          /* tokens of the prompt, roughly: where they were not counted */
	int64_t limit;          /* the client's own, of the answer; 0 = none */
};

struct walk_elect {
	struct walk *walk; /* its candidates and facts are written */
	const struct slot *slot;
	struct arena *arena;
	struct walk_size size;
	struct wall_ms now;
	struct elect_rule rule;
	bool every;    /* look for accounts of every target: for explain */
	size_t target; /* who is asked next, or ELECT_NOBODY */
};

enum store_rc walk_elect(struct txn *txn, struct walk_elect *elect) STORE_MUST_CHECK;

/* The one request after the rest of the chosen target: false: another process has it. */
enum store_rc walk_elect_trial(
    struct txn *txn, const struct walk_elect *elect, bool *taken_out) STORE_MUST_CHECK;

/* Every target that could say and do what the request asks for is too small for it: the largest window, else 0. */
int64_t walk_largest_window(const struct walk *w);

#endif
