/*
 * recall_store - texts that are kept for clients, by client and id: responses (recall.h), summaries (context_note.h).
 *
 * Errors    as in env.h; env_error() has the text
 */
#ifndef RECALL_STORE_H
#define RECALL_STORE_H

#include "serve.h"
#include "store/kept.h"

/* One response; what came lives in the arena. */
struct recall_store {
	struct serve *s;
	struct span client, id;
	struct wall_ms now;
};

enum store_rc recall_store_get(
    const struct recall_store *at, struct arena *arena, struct span *text_out) STORE_MUST_CHECK;
enum store_rc recall_store_put(const struct recall_store *at, struct span text) STORE_MUST_CHECK;
enum store_rc recall_store_del(const struct recall_store *at) STORE_MUST_CHECK;
/* Up to `most` that have expired, or are too much; false: all is done, or it failed. */
bool recall_store_sweep(struct serve *s, struct wall_ms now, unsigned most);

#endif
