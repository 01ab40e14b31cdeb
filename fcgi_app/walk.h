/*
 * walk - one request's way over targets, channels and accounts: what was tried, what to do after each verdict, how it ends
 * for the client.
 *
 * Pure decisions over a struct that serve.c fills in: the loop itself is in serve.c.
 *
 * Source    SPEC.md sections 4.3, 5, 6 ("after two different accounts answered in the same way")
 */
#ifndef WALK_H
#define WALK_H

#include "elect.h"
#include "forward.h"
#include "pick.h"
#include "plan.h"
#include "settle.h"

/* An account that was asked in this request. */
struct walk_asked {
	size_t channel, account;
	struct span model;
	bool
	    of_model; /* it failed by what may be the model's fault: another model may be asked there */
};

/* What was found of a target, beside what the choice goes by. */
struct walk_fact {
	int64_t rest_until_ms; /* 0 = none */
	int64_t prompt;        /* tokens, corrected by what upstreams said; -1 = not counted */
	int64_t output;        /* tokens that the answer is expected to have */
};

struct walk {
	struct plan plan;
	enum breaker_answer *answers;       /* of each channel of the configuration */
	struct elect_candidate *candidates; /* of plan.targets; NULL: there is nothing to choose */
	struct walk_fact *facts;            /* likewise */
	int strategy;                       /* enum conf_routing: how the first target is chosen */
	struct span realm; /* that the request is confined to; "" = what its entry says */
	bool trial;        /* the present target was taken for one attempt, as its rest is over */
	bool last_chance;  /* the chain is used up: back at the first channel */
	const struct conf_channel *channel; /* the present one */
	struct pick_wish wish;
	struct settle_session session; /* key NULL: none */
	int64_t max_attempts;          /* over all channels */
	unsigned attempts, backoffs;
	unsigned nasked;
	struct walk_asked asked[PICK_TRIED_MAX];
	unsigned overloaded, unexplained; /* accounts that answered so */
	size_t first_overloaded;
	bool asked_again; /* the first overloaded one, once */
	bool has_outcome;
	struct forward_outcome outcome; /* of the last attempt */
	struct pick_reason reason;      /* of the last pick that took nobody */
	struct wall_ms earliest;        /* return over all channels and targets */
	bool rests;                     /* some target does, after failures */
	bool exhausted;                 /* a pick took nobody, or there was nothing to pick from */
	struct mono_ms queue_until; /* while all usable accounts are full; 0 = not waiting yet */
};

/*
 * With nothing tried: where there is nothing to choose, at the first channel of the only route, else nowhere yet, see
 * walk_take(). The wish lacks what the request alone knows.
 */
struct walk_start {
	const struct route_list *list;
	struct span task;  /* "" = none is known */
	struct span realm; /* "" = what the entry says */
	unsigned wires;
};
void walk_begin(
    struct walk *w, const struct pool *pool, const struct walk_start *start, struct arena *arena);
/* A copy of a walk shares nothing with it that changes. */
void walk_part(struct walk *w, struct arena *arena);

/* How the next target is chosen, by `draw`: random bits, where the request has no session. */
struct elect_rule walk_rule(const struct walk *w, uint64_t draw);
/* Targets that cannot say what the request asks for are out, those that can are not. */
void walk_judge_wires(struct walk *w);
/* What a pick at this target would wish for. */
void walk_wish(
    const struct walk *w, size_t target, struct arena *arena, struct pick_wish *wish_out);
/* Go to this target. */
void walk_take(struct walk *w, size_t target, struct arena *arena);
/* Some other target is in: the present one need neither wait nor be tried while it rests. */
bool walk_has_other(const struct walk *w);
/* What the answers of the chain's breakers say to the next pick. */
void walk_note_answers(struct walk *w);
/* Behind the targets: the next channel of the chain; behind its end the first one again, to try there who rests. False: all is tried. */
bool walk_next_channel(struct walk *w, struct arena *arena);

/* The present place, for convert_aim(). */
struct convert_target walk_target(const struct walk *w);

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

/* Keep the earliest return over all channels of the chain; that of a target that rests. */
void walk_note_reason(struct walk *w);
void walk_note_rest(struct walk *w, int64_t until_ms);

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
