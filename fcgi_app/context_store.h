/*
 * context_store - the turns of conversations in the store: what `book` and talk.h are to those who serve.
 *
 * Turns     as form_pack.h keeps them and gives them back; read and written in their order. They want form_check() once
 *           they are joined with a request.
 * Conflicts none here: who reads and then appends holds the conversation (hold.h) from the one to the other
 * Size      of one conversation: context.max_session, and no more than server.max_body, as it becomes one body
 * Memory    what is read lives in the arena
 * Errors    STORE_NONE there is no such conversation, or it has expired; or not any more the one to append to; STORE_FULL it has no room, or the store has none;
 *           STORE_BAD a turn cannot be read, which is never passed over: the conversation can only be dropped; or one to
 *           be appended could not be read again. Others as in env.h. `why` has the text of each but STORE_NONE.
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
	uint32_t had; /* turns that it was read with, to be appended to; 0 = there was none */
};

struct context_turns {
	struct form_turn *turns;
	size_t n;
	struct talk_head head;
};

/* The turns as they are kept, for those who are in a transaction on `book`; `arena` is the caller's to set. */
struct context_texts {
	struct arena *arena;
	struct env_bytes *turns;
	struct talk_head head;
};
enum store_rc context_store_texts(struct txn *book, const uint8_t *key,
    const struct talk_limits *limits, struct context_texts *texts) STORE_MUST_CHECK;

enum store_rc context_store_get(const struct context_store *at, struct arena *arena,
    struct context_turns *turns_out, struct why *why) STORE_MUST_CHECK;
/* All or none; what `first` says is of turns[0]. */
enum store_rc context_store_append(const struct context_store *at, const struct form_turn *turns,
    size_t n, enum talk_first first, struct why *why) STORE_MUST_CHECK;
/* Up to `most` that have expired, or are too much; false: all is done, or it failed. */
bool context_store_sweep(struct serve *s, struct wall_ms now, unsigned most);

#endif
