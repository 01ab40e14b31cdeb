/*
 * context - a conversation that the gateway keeps for a client, who sends only what is new of it.
 *
 * Asked for   by "X-Context: append" with X-Session-Id on chat and messages; or by context_wish()
 * Begin       the conversation is held against others (hold.h), read, and joined with what was sent: the stored turns
 *             stand behind the system text that leads and before all else
 * Sending     per target: it is trimmed until it fits its window, also where `previous_response_id` led to it (recall.h);
 *             the notes of context_note.h stand for what went. A host that says it was too long is asked once more, with
 *             three quarters of it.
 * Keeping     what was sent and the answer, in one transaction, when that has come whole and before the client sees its
 *             end; of anything else nothing
 * System      the text that leads is stored once, as the first turn; another one takes its place
 * Source      SPEC.md section 13
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "dialect/tokens.h"
#include "session.h"
#include "store/hold.h"

#include "context_store.h"

struct serve_job;

struct context {
	struct span wish; /* its name, where the request's own dialect asks for it */
	bool appends;     /* what is sent and answered is to be kept */
	bool kept;        /* it is; or it could not be, and that was told */
	bool held;        /* `hold` is ours */
	bool shrunk;      /* it was too long once */
	bool unfit;       /* what has to stay of it is more than the present target takes */
	struct hold hold;
	struct session_key key;
	struct context_turns had;
	struct form_turn *fresh; /* to be stored, before the answer; there is room for that */
	size_t nfresh;
	enum talk_first first;
	struct form whole; /* stored and sent */
	/* for the present target */
	struct form said;
	int64_t counted;  /* tokens of it, uncorrected; 0 = not counted */
	int64_t before;   /* ... untrimmed */
	size_t trimmed;   /* messages */
	struct span told; /* for X-Sluice-Trimmed */
	uint64_t wished;  /* tokens that the request may take without the conversation */
	int64_t most;     /* tokens, uncorrected, once a host found it too long; 0 = not */
	struct tokens_model model;
	struct span read_from; /* the body that convert.form was read from, of recall */
};

/* This request goes on with that conversation, whatever its headers say. Before context_begin(). */
void context_wish(struct serve_job *j, struct span session);
/* Once the walk and `convert` have begun. False: it was answered, or its client has gone. */
bool context_begin(struct serve_job *j);
/* Before the request is aimed at the walk's present target: what is said there. */
enum err context_aim(struct serve_job *j, struct why *why) MUST_CHECK;
/* The host finds it too long: make it shorter and aim again. False: there is nothing to be done. */
bool context_shrink(struct serve_job *j);
/* Is the conversation made to fit? Then a target is too small only for what is kept in any case. */
bool context_trims(const struct serve_job *j);
/* All of it, stored and sent; NULL: it is its client's alone. And bytes of what is stored. */
const struct form *context_whole(const struct serve_job *j);
size_t context_bytes(const struct serve_job *j);
/* The answer of the last attempt is whole: keep it, unless that was done. */
void context_keep(struct serve_job *j);
/* However the request ended. */
void context_end(struct serve_job *j);

#endif
