#include "store/told.h"

#include "store/sweep.h"

#include <string.h>

#define VERSION 1

/* The key is a keyed hash: some of its bits are as good as all, and nobody can aim at a home. */
static uint64_t
home_of(const uint8_t key[TOLD_KEY_BYTES])
{
	uint64_t bits;

	memcpy(&bits, key, sizeof bits);
	return key_of(KEY_TASK, 0, bits % TOLD_HOMES * TOLD_WAYS);
}

static bool
row_read(struct env_bytes bytes, struct told_row *row)
{
	if (bytes.n != sizeof *row)
		return false;
	memcpy(row, bytes.p, sizeof *row);
	return row->version == VERSION && row->n <= TOLD_NAME_BYTES;
}

static bool
has_expired(const struct told_row *row, struct wall_ms now)
{
	return sweep_has_expired(row->told_ms, row->expires_ms, now);
}

/* The row of a key, and the way that a new one takes: a free one, else the oldest. */
struct look {
	const uint8_t *key;
	bool found;
	struct told_row row;
	uint64_t at;   /* of the row that was found */
	uint64_t free; /* 0 = none yet */
	uint64_t oldest;
	int64_t oldest_ms;
};

static enum store_rc
look_at(struct txn *txn, uint64_t at, struct look *l)
{
	struct env_bytes bytes;
	struct told_row row;
	enum store_rc rc = txn_get(txn, at, &bytes);

	if (rc == STORE_NONE || (rc == STORE_OK && !row_read(bytes, &row))) {
		l->free = l->free == 0 ? at : l->free;
		return STORE_OK;
	}
	if (rc != STORE_OK)
		return rc;
	if (memcmp(row.key, l->key, TOLD_KEY_BYTES) == 0) {
		l->found = true;
		l->row = row;
		l->at = at;
	}
	if (l->oldest == 0 || row.told_ms < l->oldest_ms) {
		l->oldest = at;
		l->oldest_ms = row.told_ms;
	}
	return STORE_OK;
}

static enum store_rc
look_for(struct txn *txn, const uint8_t *key, struct look *l)
{
	uint64_t home = home_of(key);
	enum store_rc rc = STORE_OK;

	*l = (struct look){.key = key};
	for (unsigned way = 0; way < TOLD_WAYS && rc == STORE_OK && !l->found; way++)
		rc = look_at(txn, home + way, l);
	return rc;
}

enum store_rc
told_get(struct txn *txn, const uint8_t *key, struct wall_ms now, struct told_row *row_out)
{
	struct look l;
	enum store_rc rc = look_for(txn, key, &l);

	if (rc != STORE_OK)
		return rc;
	if (!l.found || has_expired(&l.row, now))
		return STORE_NONE;
	*row_out = l.row;
	return STORE_OK;
}

enum store_rc
told_put(
    struct txn *txn, const uint8_t *key, struct env_bytes name, struct wall_ms now, int64_t ttl_ms)
{
	struct told_row row = {.version = VERSION, .told_ms = now.v, .expires_ms = now.v + ttl_ms};
	struct look l;
	enum store_rc rc = look_for(txn, key, &l);

	if (rc != STORE_OK)
		return rc;
	row.n = (uint8_t)(name.n < sizeof row.name ? name.n : sizeof row.name);
	memcpy(row.key, key, sizeof row.key);
	if (row.n > 0)
		memcpy(row.name, name.p, row.n);
	return txn_put(txn, l.found ? l.at : l.free != 0 ? l.free : l.oldest, &row, sizeof row);
}

bool
told_fades(const struct told_row *row, struct wall_ms now)
{
	return now.v - row->told_ms > (row->expires_ms - row->told_ms) / 2;
}

/* What cannot be read is of no use to anybody. */
static bool
is_over(struct env_bytes bytes, struct wall_ms now)
{
	struct told_row row;

	return !row_read(bytes, &row) || has_expired(&row, now);
}

enum store_rc
told_sweep(struct txn *txn, struct wall_ms now, unsigned most, uint64_t from, uint64_t *next_out)
{
	struct sweep sweep = {.kind = KEY_TASK, .is_over = is_over, .now = now};
	enum store_rc rc = sweep_find(txn, &sweep, most, from, next_out);

	for (unsigned i = 0; i < sweep.n && rc == STORE_OK; i++)
		rc = txn_del(txn, sweep.key[i]);
	return rc;
}

bool
told_is_place(uint64_t from)
{
	return from >= key_of(KEY_TASK, 0, 0) && from <= key_last_of(KEY_TASK);
}
