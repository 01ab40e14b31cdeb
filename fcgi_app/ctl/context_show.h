/*
 * context_show - a conversation that is kept, as a text for people and as JSON.
 */
#ifndef CTL_CONTEXT_SHOW_H
#define CTL_CONTEXT_SHOW_H

#include "context_store.h"

/* Whose it is and what is known of it; the turns are in `texts`. */
struct context_show {
	const char *hash; /* as it is shown */
	struct span client;
	const struct context_texts *texts;
};

/* One document: {"session","client","bytes","created_at","last_used","turns":[...]}, turns as form_pack.h has them. */
enum err context_show_json(
    const struct context_show *show, struct buf *out, struct why *why) MUST_CHECK;
/* Long texts are cut. */
enum err context_show_text(
    const struct context_show *show, struct buf *out, struct why *why) MUST_CHECK;

#endif
