#include "store/journal.h"

#include "store/tally.h"

#include <string.h>

#define VERSION 1

enum store_rc
journal_add(struct txn *txn, const struct journal_row *row)
{
	struct journal_row copy = *row;
	uint64_t newest;
	enum store_rc rc = tally_add(txn, TALLY_EVENTS, 1);

	if (rc == STORE_OK)
		rc = tally_get(txn, TALLY_EVENTS, &newest);
	if (rc == STORE_OK && newest > JOURNAL_KEEP)
		rc = txn_del(txn, key_hashed(KEY_EVENT, newest - JOURNAL_KEEP));
	if (rc != STORE_OK)
		return rc;
	copy.version = VERSION;
	return txn_put(txn, key_hashed(KEY_EVENT, newest), &copy, sizeof copy);
}

struct visit {
	journal_fn *fn;
	void *arg;
};

static enum store_rc
visit_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	const struct visit *visit = arg;
	struct journal_row row;

	if (bytes.n != sizeof row)
		return STORE_OK; /* of another version: not ours to read */
	memcpy(&row, bytes.p, sizeof row);
	return visit->fn(key & 0xffffffffffffffULL, &row, visit->arg) ? STORE_OK : STORE_FULL;
}

enum store_rc
journal_walk(struct txn *txn, uint64_t after, journal_fn *fn, void *arg)
{
	struct visit visit = {fn, arg};
	enum store_rc rc = txn_walk(
	    txn, key_hashed(KEY_EVENT, after + 1), key_last_of(KEY_EVENT), visit_row, &visit);

	return rc == STORE_FULL ? STORE_OK : rc;
}
