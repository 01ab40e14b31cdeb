/*
 * queue - who waits for a lease on a channel, first come first served over all processes.
 *
 * A ticket is the number of the waiter's slot: a process waits for one thing at a time. It counts as long as the holder
 * of that slot lives; whoever meets the ticket of a dead one removes it.
 *
 * Order     Only the first living waiter may take a freed lease, and nobody who does not queue while somebody waits.
 *           That is among requests with the same `wants`: a number for the set of accounts that may serve a request
 *           (a hash of realm, accounts already tried, and the model where accounts are particular about models; 0 where
 *           any account will do). Those of another `wants` are not held up by somebody who waits for an account that
 *           they do not want.
 * No wake-up is lost if one keeps to this:
 *           mark = queue_mark(); in one transaction: queue_may_take(), look for a lease, and either queue_leave() (took
 *           one) or queue_join() (found none, or not our turn); then queue_wait(mark); then again.
 *           Who frees a lease calls queue_next() in the transaction that frees it, and queue_wake() once it is
 *           committed. So does who leaves, for the next one.
 * Waiting   queue_wait() sleeps on a futex word of the `gate` file, at most QUEUE_SLICE_MS: in between the caller looks
 *           at its descriptors. A wake-up is seen at once (a tenth of a millisecond). Whoever was not woken should look
 *           again every QUEUE_LOOK_MS all the same: a worker that dies frees its lease without a word, and cooldowns end.
 * Row       KEY_QUEUE channel -> struct queue_row and its tickets; none when nobody waits
 * Errors    STORE_FULL as many wait as may; STORE_NONE a slot that only watches cannot wait
 * Source    SPEC.md section 7 (a); store.md decision 6; cases.md RET-13
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "store/slot.h"

#define QUEUE_SLICE_MS 50
#define QUEUE_LOOK_MS 250
#define QUEUE_WAKE_MAX 16

struct queue_row {
	uint8_t version, spare[5];
	uint16_t n;
	struct queue_ticket {
		uint32_t wants;
		uint16_t slot, spare;
	} at[SLOT_MAX]; /* n of them are stored */
};
_Static_assert(sizeof(struct queue_row) == 8 + SLOT_MAX * 8, "queue_row has no padding");

struct queue_who {
	const struct slot *slot; /* ours */
	uint16_t channel;
	uint32_t wants;
};

/* Whom to wake after the commit. */
struct queue_wake {
	unsigned n;
	uint16_t slot[QUEUE_WAKE_MAX];
};

/* May we take what is free? Whether we queue or not. */
enum store_rc queue_may_take(
    struct txn *txn, const struct queue_who *who, bool *may_out) STORE_MUST_CHECK;
/* The same question from who only looks: tidies nothing up, good for env_view(). */
enum store_rc queue_look(
    struct txn *txn, const struct queue_who *who, bool *may_out) STORE_MUST_CHECK;
/* Stand at the end; who stands there already keeps the place. *before_out: how many stand before us. */
enum store_rc queue_join(struct txn *txn, const struct queue_who *who, unsigned size,
    unsigned *before_out) STORE_MUST_CHECK;
/* Go away, with a lease or without; STORE_OK also for who does not queue. *wake_out: whose turn it is now. */
enum store_rc queue_leave(
    struct txn *txn, const struct queue_who *who, struct queue_wake *wake_out) STORE_MUST_CHECK;
/* Whose turn it is: the first living waiter of each `wants`. `who->wants` is not looked at. */
enum store_rc queue_next(
    struct txn *txn, const struct queue_who *who, struct queue_wake *wake_out) STORE_MUST_CHECK;
/* Living waiters. A `slot` from slot_watch() will do. Writes nothing: good for env_view(). */
enum store_rc queue_count(
    struct txn *txn, const struct queue_who *who, unsigned *n_out) STORE_MUST_CHECK;
/* Remove what a dead former owner of our slot number left, on all channels: once after slot_open(). */
enum store_rc queue_forget(struct txn *txn, const struct slot *slot) STORE_MUST_CHECK;

/* To be read before the transaction that looks for a lease. */
uint32_t queue_mark(struct env *env, const struct slot *slot);
/* Sleep until woken since `mark`, at most min(ms, QUEUE_SLICE_MS). True: woken, look now. */
bool queue_wait(struct env *env, const struct slot *slot, uint32_t mark, int64_t ms);
void queue_wake(struct env *env, const struct queue_wake *wake);

#endif
