/*
 * messages_ids - ids of calls that stand in a request twice. Hosts of other APIs count from 0 in each answer; this API
 * wants no id again, in no other turn either. Pure.
 *
 * Turns     by their index in the form. The first call with an id keeps it, each further one gets another, which is the
 *           same whenever that many came before it.
 * Results   bear the id of their call: they ask with the turn of that
 * Source    formats.md E.0
 */
#ifndef DIALECT_MESSAGES_IDS_H
#define DIALECT_MESSAGES_IDS_H

#include "dialect/form.h"

struct messages_id {
	size_t turn;
	struct span id, sent; /* as form_id() has it; and as it is sent instead */
};

struct messages_ids {
	struct messages_id *list; /* only those that came before, by turn and id */
	size_t n;
};

struct messages_ids messages_ids_find(struct arena *arena, const struct form *form);
/* As it is sent, of a call in that turn. */
struct span messages_ids_of(
    struct arena *arena, const struct messages_ids *ids, size_t turn, struct span id);

#endif
