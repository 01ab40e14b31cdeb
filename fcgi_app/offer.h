/*
 * offer - the models that a client may ask for, what is known of them, and whether any account can serve them now.
 *
 * Names      the keys of `models`, "auto" where tasks choose, then the literal names among the channels' patterns; each once
 * Realm      a request's own is confined to; a name that no account of that realm serves is not offered. Without one the
 *            entry's realm counts for whether it is available.
 * Figures    of the targets that some account may serve: the largest window and limit, the dearest price; a price that is
 *            unknown for one of them is unknown
 * Available  some account of a target that does not rest, or else of the first target's fallback channels, could be picked
 *            now; one that is only full counts, as requests wait for it
 * Memory     in the given arena, and in the configuration
 * Source     SPEC.md sections 4.1, 12
 */
#ifndef OFFER_H
#define OFFER_H

#include "base/arena.h"
#include "pick.h"

struct offer_model {
	struct span name, owner;
	int64_t context_window, max_output; /* 0 = unknown */
	struct conf_cost cost;
	bool available;
};

struct offer {
	const struct pool *pool;
	const struct slot *slot;
	struct span realm; /* "" = any */
	struct span only;  /* this name alone; "" = all */
	struct wall_ms now;
	struct arena *arena;
	/* filled by offer_look() */
	struct offer_model *models;
	size_t n;
};

enum store_rc offer_look(struct txn *txn, struct offer *offer) STORE_MUST_CHECK;

#endif
