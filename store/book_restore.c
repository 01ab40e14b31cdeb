#include "store/book.h"

#include "store/book_kind.h"
#include "store/sticky.h"
#include "store/tally.h"

#include <string.h>

struct restore {
	struct txn *live;
	const struct book_kind *kind;
	uint64_t pairs, sessions, newest_event;
};

/* The row of bindings by account, which is not saved: slices of different moments would not agree with it. */
static enum store_rc
count_bound(struct txn *live, struct env_bytes bytes)
{
	uint32_t counts[STICKY_SHARD] = {0};
	struct sticky_row row;
	struct env_bytes old;
	uint64_t key;
	enum store_rc rc;
	size_t n = 0, at;

	if (bytes.n != sizeof row)
		return STORE_OK;
	memcpy(&row, bytes.p, sizeof row);
	key = key_of(KEY_BOUND, row.channel, row.account / STICKY_SHARD);
	at = row.account % STICKY_SHARD;
	rc = txn_get(live, key, &old);
	if (rc == STORE_OK && old.n <= sizeof counts)
		memcpy(counts, old.p, n = old.n);
	else if (rc != STORE_NONE)
		return rc == STORE_OK ? STORE_BAD : rc;
	counts[at]++;
	if (n < (at + 1) * sizeof *counts)
		n = (at + 1) * sizeof *counts;
	return txn_put(live, key, counts, n);
}

static enum store_rc
restore_row(uint64_t key, struct env_bytes row, void *arg)
{
	struct restore *r = arg;
	unsigned char copy[BOOK_MEND_MAX];
	enum store_rc rc = STORE_OK;

	r->pairs += r->kind->kind == KEY_PAIR;
	r->sessions += r->kind->kind == KEY_STICKY;
	if (r->kind->kind == KEY_EVENT)
		r->newest_event = key & 0xffffffffffffffULL;
	if (r->kind->kind == KEY_STICKY)
		rc = count_bound(r->live, row);
	if (rc != STORE_OK)
		return rc;
	if (r->kind->mend == NULL || row.n > sizeof copy)
		return txn_put(r->live, key, row.p, row.n);
	memcpy(copy, row.p, row.n);
	r->kind->mend(copy, row.n);
	return txn_put(r->live, key, copy, row.n);
}

/* Counters that say how many rows there are must agree with them, also when hard facts were saved alone. */
static enum store_rc
restore_counts(struct txn *live, const struct restore *r)
{
	uint64_t events;
	enum store_rc rc = tally_get(live, TALLY_EVENTS, &events);

	if (rc == STORE_OK)
		rc = tally_set(live, TALLY_PAIRS, r->pairs);
	if (rc == STORE_OK)
		rc = tally_set(live, TALLY_SESSIONS, r->sessions);
	if (rc == STORE_OK && events < r->newest_event)
		rc = tally_set(live, TALLY_EVENTS, r->newest_event);
	return rc;
}

enum store_rc
book_restore(struct txn *live, struct txn *book, void *arg)
{
	struct restore r = {.live = live};
	enum store_rc rc = STORE_OK;

	(void)arg;
	for (size_t i = 0; i < BOOK_KINDS && rc == STORE_OK; i++) {
		r.kind = &book_kinds[i];
		rc = txn_walk(book, key_of(book_kinds[i].kind, 0, 0),
		    key_last_of(book_kinds[i].kind), restore_row, &r);
	}
	return rc == STORE_OK ? restore_counts(live, &r) : rc;
}
