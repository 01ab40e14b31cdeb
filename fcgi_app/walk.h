/*
 * walk - one request's way over accounts: what was tried, what to do after each verdict, how it ends for the client.
 *
 * Pure decisions over a struct that serve.c fills in: the loop itself is in serve.c.
 *
 * Source    SPEC.md sections 4.3, 5, 6 ("after two different accounts answered in the same way")
 */
#ifndef WALK_H
#define WALK_H

#include "forward.h"
#include "pick.h"
#include "plan.h"
#include "settle.h"

struct walk {
	struct plan plan;
	enum breaker_answer *answers;       /* of each channel of the configuration */
	bool last_chance;                   /* the chain is used up: back at the first channel */
	const struct conf_channel *channel; /* the present one */
	struct pick_wish wish;
	struct settle_session session; /* key NULL: none */
	int64_t max_attempts;          /* over all channels */
	unsigned attempts, backoffs;
	unsigned overloaded, unexplained; /* accounts that answered so */
	size_t first_overloaded;
	bool asked_again; /* the first overloaded one, once */
	bool has_outcome;
	struct forward_outcome outcome; /* of the last attempt */
	struct pick_reason reason;      /* of the last pick that took nobody */
	struct wall_ms earliest;        /* return over all channels */
	bool exhausted;                 /* a pick took nobody */
	struct mono_ms queue_until; /* while all usable accounts are full; 0 = not waiting yet */
};

/* At the first channel of a route, with nothing tried. The wish lacks what the request alone knows. */
void walk_begin(struct walk *w, const struct pool *pool, const struct route *route, unsigned wires,
    struct arena *arena);
/* What the answers of the chain's breakers say to the next pick. */
void walk_aim(struct walk *w);
/* The next channel of the chain; behind its end the first one again, to try there who rests. False: all is tried. */
bool walk_next_channel(struct walk *w, struct arena *arena);

enum walk_next {
	WALK_STOP,  /* the answer is the client's, or nothing more can be tried */
	WALK_AGAIN, /* another account at once */
	WALK_WAIT,  /* another account after walk_backoff_ms() */
};

/* After an attempt that did not succeed. */
enum walk_next walk_next(struct walk *w);
/* How long to wait now; `random` is uniform over 64 bits. */
int64_t walk_backoff_ms(struct walk *w, uint64_t random);
/* Remember that this account was asked. */
void walk_tried(struct walk *w, const struct pick_lease *lease);

/* Keep the earliest return over all channels of the chain. */
void walk_note_reason(struct walk *w);

/* How a request that nobody served ends. */
struct walk_end {
	int status;
	const char *code; /* NULL: pass the upstream's body as it is */
	const char *message;
	int64_t retry_after_s; /* -1 = none */
	bool no_retry;
};
struct walk_end walk_end(const struct walk *w, struct wall_ms now);

#endif
