/*
 * context_store - the turns of conversations in the store: what `book` and talk.h are to those who serve.
 *
 * Turns     as form_pack.h keeps them; read and written in their order
 * Conflicts none here: who reads and then appends holds the conversation (hold.h) from the one to the other
 * Memory    what is read lives in the arena
 * Errors    STORE_NONE there is no such conversation, or it has expired; STORE_FULL it has no room (max_session), or the
 *           store has none; STORE_BAD a turn cannot be read, which is never passed over: the conversation can only be
 *           dropped; others as in env.h. `why` has the text of each but STORE_NONE.
 */
#ifndef CONTEXT_STORE_H
#define CONTEXT_STORE_H

#include "dialect/form.h"
#include "serve.h"
#include "store/talk.h"

/* One conversation. */
struct context_store {
	struct serve *s;
	struct span client; /* "" where nobody is told apart */
	const uint8_t *key; /* TALK_KEY_BYTES: session_key.hash */
	struct wall_ms now;
};

struct context_turns {
	struct form_turn *turns;
	size_t n;
	struct talk_head head;
};

enum store_rc context_store_get(const struct context_store *at, struct arena *arena,
    struct context_turns *turns_out, struct why *why) STORE_MUST_CHECK;
/* All or none. `replace_first`: turns[0] takes the place of the first one that is kept. */
enum store_rc context_store_append(const struct context_store *at, const struct form_turn *turns,
    size_t n, bool replace_first, struct why *why) STORE_MUST_CHECK;
enum store_rc context_store_drop(const struct context_store *at, struct why *why) STORE_MUST_CHECK;
/* Up to `most` that have expired, or are too much; false: all is done, or it failed. */
bool context_store_sweep(struct serve *s, struct wall_ms now, unsigned most);

#endif
