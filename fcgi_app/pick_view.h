/*
 * pick_view - one pick's view of its channel, as pick.c scans it and pick_judge.c judges each account. For these two.
 */
#ifndef PICK_VIEW_H
#define PICK_VIEW_H

#include "pick.h"

#define DEAD_MAX 64   /* the rest is freed by the next picks */
#define STRANGE_MAX 8 /* likewise */

/* One pick's view of its channel. */
struct pick_view {
	struct txn *txn;
	const struct slot *slot;
	const struct pick_wish *wish;
	const struct conf_channel *channel;
	struct pool_channel *pc;
	struct wall_ms now;
	struct span model;
	int64_t most_rest_ms, most_backoff_ms; /* that any setting allows */
	struct slot_list *slots;
	struct pick_reason reason;
	/* the best account for a probe while all are cooling */
	bool has_probe;
	size_t probe;
	int64_t probe_until_ms;
	uint32_t dead[DEAD_MAX]; /* account numbers with leases of dead workers */
	unsigned ndead;
	uint32_t strange[STRANGE_MAX]; /* account numbers with deadlines beyond what is allowed */
	unsigned nstrange;
};

/*
 * May this account be picked now, and if not, why? Notes in the view when it comes back, leases of dead workers on it,
 * and strange deadlines.
 */
enum score_out pick_judge(struct pick_view *v, const struct pool_seat *seat, uint32_t number,
    const struct account_row *row);

/* Has it room for one more? The rest of the judgement aside. */
bool pick_has_room(struct pick_view *v, const struct pool_seat *seat, uint32_t number);

/* The longest rest and back-off: a deadline beyond them was written by a wrong clock. */
void pick_limits(struct pick_view *v);
/* Write the strange deadlines anew, as far ahead as is allowed, and a row in the journal for each. */
enum store_rc pick_mend(struct pick_view *v) STORE_MUST_CHECK;

#endif
