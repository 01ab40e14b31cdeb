/*
 * choose - which account a pick takes, and what that choice leaves behind. One transaction; the lease is pick.c's.
 *
 * Order     judge every account; ask the channel's breaker; the session's account; two passes of the score; a probe
 * Source    SPEC.md sections 7, 9, 11
 */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "judge.h"

struct choose {
	struct judge j;
	struct score_board board;
	struct score_rule rule;
	struct breaker_row breaker;
	enum conf_strategy strategy;
	uint32_t cursor;
	bool permit;        /* the breaker is half-open: this request is one of its probes */
	bool explore;       /* this pick goes to an account whose price is not known */
	bool ranked;        /* the board holds everybody who may be drawn */
	bool by_session;    /* the choice is the session's account */
	pick_seen_fn *show; /* for choose_show() */
	void *show_arg;
};

struct choose_one {
	size_t account;
	enum slot_kind kind;
};

enum store_rc choose_open(struct choose *c, struct txn *txn, const struct slot *slot,
    const struct pick_wish *wish, struct wall_ms now) STORE_MUST_CHECK;

/* c->j.reason.result: PICK_TAKEN and the choice, or why not. Writes nothing. */
enum store_rc choose_account(struct choose *c, struct choose_one *choice_out) STORE_MUST_CHECK;
/* Only judge and rank, for those who look: c->j.reason. */
enum store_rc choose_look(struct choose *c) STORE_MUST_CHECK;

/* Show every account, after choose_account(); those it had no need to rank are ranked for that. */
enum store_rc choose_show(struct choose *c, pick_seen_fn *fn, void *arg) STORE_MUST_CHECK;

/* What the strategy, the breaker and the prices remember of a choice that was taken. */
enum store_rc choose_remember(
    struct choose *c, const struct choose_one *choice, uint32_t number) STORE_MUST_CHECK;
/* The breaker's row and its events. */
enum store_rc choose_write(struct choose *c) STORE_MUST_CHECK;

#endif
