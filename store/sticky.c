#include "store/sticky.h"

#include "store/sweep.h"
#include "store/tally.h"

#include <string.h>

#define VERSION 1
#define PROBES 16   /* rows that may share a home */
#define RIVALS 16   /* rows looked at to find an old one when the table is full */
#define RENEWALS 64 /* in a ttl */

/*
 * The session's key is a keyed hash, so 48 of its bits are as good as any. The low 8 bits of the row's key are free:
 * runs of different homes never touch, and removal only has to fill a gap from the end of its own run.
 */
static uint64_t
home_of(const uint8_t key[STICKY_KEY_BYTES], uint16_t channel)
{
	uint64_t bits;

	memcpy(&bits, key, sizeof bits);
	bits ^= channel * UINT64_C(0x9e3779b97f4a7c15);
	return key_hashed(KEY_STICKY, bits & ~UINT64_C(0xff));
}

static bool
row_read(struct env_bytes bytes, struct sticky_row *row)
{
	if (bytes.n != sizeof *row)
		return false;
	memcpy(row, bytes.p, sizeof *row);
	return row->version == VERSION;
}

bool
sticky_expired(const struct sticky_row *row, struct wall_ms now)
{
	return sweep_has_expired(row->last_used_ms, row->expires_ms, now);
}

/* Where it stands (STORE_OK), or where it may be put (STORE_NONE); *at_out = 0: no room at this home. */
static enum store_rc
row_find(struct txn *txn, const struct sticky_id *id, uint64_t *at_out, struct sticky_row *row_out)
{
	uint64_t home = home_of(id->key, id->channel);

	*at_out = 0;
	for (unsigned i = 0; i < PROBES; i++) {
		struct env_bytes bytes;
		enum store_rc rc = txn_get(txn, home + i, &bytes);

		if (rc == STORE_NONE)
			*at_out = home + i;
		if (rc != STORE_OK)
			return rc;
		if (row_read(bytes, row_out) && row_out->channel == id->channel &&
		    memcmp(row_out->key, id->key, STICKY_KEY_BYTES) == 0) {
			*at_out = home + i;
			return STORE_OK;
		}
	}
	return STORE_NONE;
}

static enum store_rc
counts_get(struct txn *txn, uint16_t channel, uint32_t shard, uint32_t counts[STICKY_SHARD],
    unsigned *n_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_BOUND, channel, shard), &bytes);

	*n_out = 0;
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (bytes.n > STICKY_SHARD * sizeof *counts || bytes.n % sizeof *counts != 0)
		return STORE_BAD;
	memcpy(counts, bytes.p, bytes.n);
	*n_out = (unsigned)(bytes.n / sizeof *counts);
	return STORE_OK;
}

static enum store_rc
count(struct txn *txn, uint16_t channel, uint32_t account, int step)
{
	uint32_t counts[STICKY_SHARD] = {0};
	uint32_t shard = account / STICKY_SHARD, at = account % STICKY_SHARD;
	unsigned n;
	enum store_rc rc = counts_get(txn, channel, shard, counts, &n);

	if (rc != STORE_OK)
		return rc;
	if (n <= at)
		n = at + 1;
	if (step > 0)
		counts[at]++;
	else if (counts[at] > 0)
		counts[at]--;
	return txn_put(txn, key_of(KEY_BOUND, channel, shard), counts, n * sizeof *counts);
}

/* Remove the row at `at`; the last of its run fills the gap. The tally is the caller's. */
static enum store_rc
row_remove(struct txn *txn, uint64_t at)
{
	struct env_bytes bytes;
	struct sticky_row row, last;
	uint64_t end = at;
	enum store_rc rc = txn_get(txn, at, &bytes);

	if (rc != STORE_OK || !row_read(bytes, &row))
		return rc == STORE_OK ? STORE_BAD : rc;
	while ((end & 0xff) + 1 < PROBES) {
		rc = txn_get(txn, end + 1, &bytes);
		if (rc != STORE_OK)
			break;
		if (bytes.n != sizeof last)
			return STORE_BAD;
		memcpy(&last, bytes.p, sizeof last);
		end++;
	}
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	rc = end > at ? txn_put(txn, at, &last, sizeof last) : STORE_OK;
	if (rc == STORE_OK)
		rc = txn_del(txn, end);
	return rc == STORE_OK ? count(txn, row.channel, row.account, -1) : rc;
}

enum store_rc
sticky_get(struct txn *txn, const struct sticky_id *id, struct sticky_row *row_out)
{
	struct sticky_row row;
	uint64_t at;
	enum store_rc rc = row_find(txn, id, &at, &row);

	if (rc != STORE_OK)
		return rc;
	if (sticky_expired(&row, id->now))
		return STORE_NONE;
	*row_out = row;
	return STORE_OK;
}

/* The least recently used of some rows. */
struct rivals {
	unsigned seen, most;
	uint64_t oldest;
	int64_t oldest_ms;
};

static enum store_rc
rival(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct rivals *r = arg;
	struct sticky_row row;

	if (row_read(bytes, &row) && (r->oldest == 0 || row.last_used_ms < r->oldest_ms)) {
		r->oldest = key;
		r->oldest_ms = row.last_used_ms;
	}
	return ++r->seen < r->most ? STORE_OK : STORE_FULL;
}

/* Keys are spread evenly, so the next ones after any home are a fair sample. */
static enum store_rc
evict_near(struct txn *txn, uint64_t home)
{
	struct rivals r = {.most = RIVALS};
	enum store_rc rc = txn_walk(txn, home, key_last_of(KEY_STICKY), rival, &r);

	if (rc == STORE_OK)
		rc = txn_walk(txn, key_of(KEY_STICKY, 0, 0), key_last_of(KEY_STICKY), rival, &r);
	if (rc != STORE_OK && rc != STORE_FULL)
		return rc;
	if (r.oldest == 0)
		return STORE_OK;
	rc = row_remove(txn, r.oldest);
	return rc == STORE_OK ? tally_add(txn, TALLY_SESSIONS, -1) : rc;
}

/* *at_out = 0: its home has no room, which no keyed hash brings about. */
static enum store_rc
make_room(struct txn *txn, const struct sticky_id *id, uint64_t *at_out)
{
	struct sticky_row row;
	uint64_t sessions;
	enum store_rc rc = tally_get(txn, TALLY_SESSIONS, &sessions);

	if (rc == STORE_OK && sessions >= STICKY_MAX) {
		rc = evict_near(txn, home_of(id->key, id->channel));
		if (rc == STORE_OK)
			rc = row_find(txn, id, at_out, &row);
		if (rc == STORE_NONE)
			rc = STORE_OK;
	}
	if (rc == STORE_OK && *at_out != 0)
		rc = tally_add(txn, TALLY_SESSIONS, 1);
	return rc;
}

static bool
needs_renewal(const struct sticky_row *row, const struct sticky_id *id)
{
	int64_t gained = id->now.v + id->ttl_ms - row->expires_ms;

	return gained < 0 || gained > id->ttl_ms / RENEWALS;
}

enum store_rc
sticky_put(struct txn *txn, const struct sticky_id *id, uint32_t account)
{
	struct sticky_row row;
	uint64_t at;
	bool same = false;
	enum store_rc rc = row_find(txn, id, &at, &row);

	if (rc == STORE_OK) {
		same = row.account == account && !sticky_expired(&row, id->now);
		if (same && !needs_renewal(&row, id))
			return STORE_OK;
		if (!same)
			rc = count(txn, id->channel, row.account, -1);
	} else if (rc == STORE_NONE) {
		rc = make_room(txn, id, &at);
		if (at == 0)
			return rc;
	}
	if (rc == STORE_OK && !same)
		rc = count(txn, id->channel, account, 1);
	if (rc != STORE_OK)
		return rc;
	row = (struct sticky_row){
	    .version = VERSION,
	    .channel = id->channel,
	    .account = account,
	    .bound_ms = same ? row.bound_ms : id->now.v,
	    .expires_ms = id->now.v + id->ttl_ms,
	    .last_used_ms = id->now.v,
	};
	memcpy(row.key, id->key, sizeof row.key);
	return txn_put(txn, at, &row, sizeof row);
}

enum store_rc
sticky_move(struct txn *txn, const struct sticky_id *id, uint32_t from, uint32_t to)
{
	struct sticky_row row;
	enum store_rc rc = sticky_get(txn, id, &row);

	if (rc == STORE_OK && row.account != from)
		return STORE_OK;
	return rc == STORE_OK || rc == STORE_NONE ? sticky_put(txn, id, to) : rc;
}

static enum store_rc
row_end(struct txn *txn, const struct sticky_id *id, const uint32_t *from)
{
	struct sticky_row row;
	uint64_t at;
	enum store_rc rc = row_find(txn, id, &at, &row);

	if (rc == STORE_NONE || (rc == STORE_OK && from != NULL && row.account != *from))
		return STORE_OK;
	if (rc == STORE_OK)
		rc = row_remove(txn, at);
	return rc == STORE_OK ? tally_add(txn, TALLY_SESSIONS, -1) : rc;
}

enum store_rc
sticky_drop(struct txn *txn, const struct sticky_id *id, uint32_t from)
{
	return row_end(txn, id, &from);
}

enum store_rc
sticky_del(struct txn *txn, const struct sticky_id *id)
{
	return row_end(txn, id, NULL);
}

enum store_rc
sticky_bound(struct txn *txn, uint16_t channel, uint32_t top, uint32_t *counts_out)
{
	for (uint32_t first = 0; first < top; first += STICKY_SHARD) {
		uint32_t counts[STICKY_SHARD], want = top - first;
		unsigned n;
		enum store_rc rc = counts_get(txn, channel, first / STICKY_SHARD, counts, &n);

		if (rc != STORE_OK)
			return rc;
		if (want > STICKY_SHARD)
			want = STICKY_SHARD;
		memset(counts_out + first, 0, want * sizeof *counts);
		memcpy(counts_out + first, counts, (n < want ? n : want) * sizeof *counts);
	}
	return STORE_OK;
}

struct visit {
	sticky_fn *fn;
	void *arg;
};

static enum store_rc
visit_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct visit *visit = arg;
	struct sticky_row row;

	(void)key;
	return !row_read(bytes, &row) || visit->fn(&row, visit->arg) ? STORE_OK : STORE_FULL;
}

enum store_rc
sticky_walk(struct txn *txn, sticky_fn *fn, void *arg)
{
	struct visit visit = {fn, arg};
	enum store_rc rc =
	    txn_walk(txn, key_of(KEY_STICKY, 0, 0), key_last_of(KEY_STICKY), visit_row, &visit);

	return rc == STORE_FULL ? STORE_OK : rc;
}

static bool
is_over(struct env_bytes bytes, struct wall_ms now)
{
	struct sticky_row row;

	return row_read(bytes, &row) && sticky_expired(&row, now);
}

enum store_rc
sticky_sweep(struct txn *txn, struct wall_ms now, unsigned most, uint64_t from, uint64_t *next_out)
{
	struct sweep sweep = {.kind = KEY_STICKY, .is_over = is_over, .now = now};
	enum store_rc rc = sweep_find(txn, &sweep, most, from, next_out);

	/* from the end, so that no gap is filled with a row that is to go */
	for (unsigned i = sweep.n; i-- > 0 && rc == STORE_OK;)
		rc = row_remove(txn, sweep.key[i]);
	return rc == STORE_OK && sweep.n > 0 ? tally_add(txn, TALLY_SESSIONS, -(int64_t)sweep.n)
	                                     : rc;
}

static bool
is_short(const struct sticky_turn *turn)
{
	switch (turn->trouble) {
	case STICKY_SHORT: return true;
	case STICKY_RESTING: return turn->rest_left_ms < turn->detour_max_ms;
	case STICKY_FINE:
	case STICKY_LASTING: break;
	}
	return false;
}

enum sticky_step
sticky_decide(const struct sticky_turn *turn)
{
	if (turn->served == STICKY_BY_BOUND)
		return STICKY_RENEW;
	if (turn->bound && !turn->unbind && is_short(turn))
		return STICKY_KEEP;
	if (turn->served == STICKY_BY_OTHER)
		return STICKY_MOVE;
	return turn->bound && turn->trouble == STICKY_FINE ? STICKY_KEEP : STICKY_DROP;
}
