#include "store/queue.h"

#include "store/gate.h"

#include <linux/futex.h>

#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VERSION 1
#define HEAD_BYTES offsetof(struct queue_row, at)

/* A row that cannot be read is a queue that nobody stands in: its waiters join again. */
static enum store_rc
row_get(struct txn *txn, uint16_t channel, struct queue_row *row)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_QUEUE, channel, 0), &bytes);

	row->n = 0;
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (bytes.n < HEAD_BYTES || bytes.n > sizeof *row)
		return STORE_OK;
	memcpy(row, bytes.p, bytes.n);
	if (row->version != VERSION || row->n > SLOT_MAX ||
	    bytes.n != HEAD_BYTES + row->n * sizeof row->at[0])
		row->n = 0;
	return STORE_OK;
}

static enum store_rc
row_put(struct txn *txn, uint16_t channel, struct queue_row *row)
{
	uint64_t key = key_of(KEY_QUEUE, channel, 0);

	if (row->n == 0)
		return txn_del(txn, key);
	row->version = VERSION;
	memset(row->spare, 0, sizeof row->spare);
	return txn_put(txn, key, row, HEAD_BYTES + row->n * sizeof row->at[0]);
}

static void
ticket_remove(struct queue_row *row, unsigned at)
{
	if (at >= row->n)
		return;
	memmove(&row->at[at], &row->at[at + 1], (row->n - at - 1u) * sizeof row->at[0]);
	row->n--;
}

/* Index of the slot's ticket, or n. */
static unsigned
ticket_find(const struct queue_row *row, unsigned number)
{
	unsigned at = 0;

	while (at < row->n && row->at[at].slot != number)
		at++;
	return at;
}

/* The first living ticket with these wants, or n; dead ones before it are removed. */
static unsigned
first_living(struct queue_row *row, const struct slot *own, uint32_t wants)
{
	unsigned at = 0;

	while (at < row->n) {
		if (row->at[at].wants != wants)
			at++;
		else if (slot_lives(own, row->at[at].slot))
			break;
		else
			ticket_remove(row, at);
	}
	return at;
}

/* Tickets of the dead before the first living one go out of the row. */
static bool
may_take(struct queue_row *row, const struct queue_who *who)
{
	unsigned first = first_living(row, who->slot, who->wants);
	unsigned own = ticket_find(row, slot_number(who->slot));

	/* our ticket may have other wants than we have now: the place counts */
	return first == row->n || own <= first;
}

enum store_rc
queue_may_take(struct txn *txn, const struct queue_who *who, bool *may_out)
{
	struct queue_row row;
	unsigned before;
	enum store_rc rc = row_get(txn, who->channel, &row);

	*may_out = true;
	if (rc != STORE_OK || row.n == 0)
		return rc;
	before = row.n;
	*may_out = may_take(&row, who);
	return row.n != before ? row_put(txn, who->channel, &row) : STORE_OK;
}

enum store_rc
queue_look(struct txn *txn, const struct queue_who *who, bool *may_out)
{
	struct queue_row row;
	enum store_rc rc = row_get(txn, who->channel, &row);

	*may_out = rc == STORE_OK && may_take(&row, who);
	return rc;
}

static void
remove_dead(struct queue_row *row, const struct slot *own)
{
	for (unsigned i = row->n; i-- > 0;)
		if (!slot_lives(own, row->at[i].slot))
			ticket_remove(row, i);
}

enum store_rc
queue_join(struct txn *txn, const struct queue_who *who, unsigned size, unsigned *before_out)
{
	unsigned number = slot_number(who->slot), at;
	struct queue_row row;
	enum store_rc rc = row_get(txn, who->channel, &row);

	if (rc != STORE_OK)
		return rc;
	if (number >= SLOT_MAX)
		return STORE_NONE;
	at = ticket_find(&row, number);
	if (at == row.n && row.n >= size) {
		remove_dead(&row, who->slot);
		at = row.n;
	}
	if (at == row.n && row.n >= size)
		return STORE_FULL;
	*before_out = at;
	if (at < row.n && row.at[at].wants == who->wants)
		return STORE_OK;
	row.at[at] = (struct queue_ticket){.wants = who->wants, .slot = (uint16_t)number};
	if (at == row.n)
		row.n++;
	return row_put(txn, who->channel, &row);
}

enum store_rc
queue_leave(struct txn *txn, const struct queue_who *who, struct queue_wake *wake_out)
{
	struct queue_row row;
	unsigned number = slot_number(who->slot), at, first;
	bool was_first;
	uint32_t wants;
	enum store_rc rc = row_get(txn, who->channel, &row);

	wake_out->n = 0;
	if (rc != STORE_OK || row.n == 0)
		return rc;
	at = ticket_find(&row, number);
	if (at == row.n)
		return STORE_OK;
	wants = row.at[at].wants;
	first = first_living(&row, who->slot, wants);
	was_first = first < row.n && row.at[first].slot == number;
	ticket_remove(&row, ticket_find(&row, number));
	first = was_first ? first_living(&row, who->slot, wants) : row.n;
	if (first < row.n)
		wake_out->slot[wake_out->n++] = row.at[first].slot;
	return row_put(txn, who->channel, &row);
}

/* Does somebody with the same wants stand before it? */
static bool
is_behind(const struct queue_row *row, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (row->at[i].wants == row->at[at].wants)
			return true;
	return false;
}

enum store_rc
queue_next(struct txn *txn, const struct queue_who *who, struct queue_wake *wake_out)
{
	struct queue_row row;
	unsigned before;
	enum store_rc rc = row_get(txn, who->channel, &row);

	wake_out->n = 0;
	before = row.n;
	if (rc != STORE_OK)
		return rc;
	for (unsigned at = 0; at < row.n && wake_out->n < QUEUE_WAKE_MAX;) {
		if (is_behind(&row, at)) {
			at++;
		} else if (!slot_lives(who->slot, row.at[at].slot)) {
			ticket_remove(&row, at);
		} else {
			wake_out->slot[wake_out->n++] = row.at[at].slot;
			at++;
		}
	}
	return row.n != before ? row_put(txn, who->channel, &row) : STORE_OK;
}

enum store_rc
queue_count(struct txn *txn, const struct queue_who *who, unsigned *n_out)
{
	struct queue_row row;
	enum store_rc rc = row_get(txn, who->channel, &row);

	if (rc != STORE_OK)
		return rc;
	remove_dead(&row, who->slot);
	*n_out = row.n;
	return STORE_OK;
}

struct stale {
	unsigned number;
	uint16_t channel;
	unsigned at; /* index in the row */
};

/* STORE_FULL: found one. */
static enum store_rc
find_stale(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct stale *stale = arg;
	struct queue_row row;

	if (bytes.n < HEAD_BYTES || bytes.n > sizeof row)
		return STORE_OK;
	memcpy(&row, bytes.p, bytes.n);
	row.n = (uint16_t)((bytes.n - HEAD_BYTES) / sizeof row.at[0]);
	stale->channel = (uint16_t)(key >> 40);
	stale->at = ticket_find(&row, stale->number);
	return stale->at < row.n ? STORE_FULL : STORE_OK;
}

enum store_rc
queue_forget(struct txn *txn, const struct slot *slot)
{
	struct stale stale = {.number = slot_number(slot)};
	enum store_rc rc = STORE_OK;

	/* each round removes a ticket, so it ends */
	while (rc == STORE_OK) {
		struct queue_row row;

		rc = txn_walk(
		    txn, key_of(KEY_QUEUE, 0, 0), key_last_of(KEY_QUEUE), find_stale, &stale);
		if (rc != STORE_FULL)
			return rc;
		rc = row_get(txn, stale.channel, &row);
		if (rc == STORE_OK && stale.at < row.n)
			ticket_remove(&row, stale.at);
		else if (rc == STORE_OK)
			row.n = 0; /* unreadable to us */
		if (rc == STORE_OK)
			rc = row_put(txn, stale.channel, &row);
	}
	return rc;
}

/* Two slots may have one word: they only wake each other needlessly. */
static uint32_t *
word_of(struct env *env, unsigned number)
{
	return &env_words(env)[number % GATE_WORDS];
}

uint32_t
queue_mark(struct env *env, const struct slot *slot)
{
	return __atomic_load_n(word_of(env, slot_number(slot)), __ATOMIC_ACQUIRE);
}

bool
queue_wait(struct env *env, const struct slot *slot, uint32_t mark, int64_t ms)
{
	int64_t slice = ms < 0 ? 0 : ms < QUEUE_SLICE_MS ? ms : QUEUE_SLICE_MS;
	struct timespec limit = {.tv_nsec = (long)slice * 1000000};

	/* every result means the same: look at the word */
	syscall(SYS_futex, word_of(env, slot_number(slot)), FUTEX_WAIT, mark, &limit, NULL, 0);
	return queue_mark(env, slot) != mark;
}

void
queue_wake(struct env *env, const struct queue_wake *wake)
{
	for (unsigned i = 0; i < wake->n; i++) {
		uint32_t *word = word_of(env, wake->slot[i]);

		__atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL);
		syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}
