#include "store/env_body.h"
#include "store/seal.h"

#include <string.h>

uint32_t
txn_number(struct txn *txn)
{
	return (uint32_t)mdb_txn_id(txn->mdb);
}

uint64_t
txn_seen(const struct txn *txn)
{
	MDB_envinfo info;

	/* a write transaction has the number that it will be committed under */
	return mdb_env_info(txn->map->mdb, &info) == 0 && info.me_last_txnid < mdb_txn_id(txn->mdb)
	           ? info.me_last_txnid
	           : mdb_txn_id(txn->mdb);
}

struct env *
txn_env(struct txn *txn)
{
	return txn->env;
}

static enum store_rc
row_rc(struct txn *txn, int e)
{
	if (e == 0)
		return STORE_OK;
	if (e == MDB_NOTFOUND)
		return STORE_NONE;
	if (txn->failed == 0)
		txn->failed = e;
	return e == MDB_MAP_FULL ? STORE_FULL : e == MDB_CORRUPTED ? STORE_BAD : STORE_IO;
}

/* What LMDB found, without the seal. */
static int
row_open(const struct txn *txn, uint64_t key, const MDB_val *v, struct env_bytes *row_out)
{
	if (txn->sealed && !seal_holds(key, v->mv_data, v->mv_size))
		return MDB_CORRUPTED;
	*row_out = (struct env_bytes){v->mv_data, v->mv_size - (txn->sealed ? SEAL_BYTES : 0)};
	return 0;
}

enum store_rc
txn_get(struct txn *txn, uint64_t key, struct env_bytes *row_out)
{
	MDB_val k = {sizeof key, &key}, v;
	int e = mdb_get(txn->mdb, txn->rows, &k, &v);

	if (e == 0)
		e = row_open(txn, key, &v, row_out);
	return row_rc(txn, e);
}

static int
put_sealed(struct txn *txn, uint64_t key, const void *row, size_t n)
{
	MDB_val k = {sizeof key, &key}, v = {n + SEAL_BYTES, NULL};
	uint64_t seal = seal_of(key, row, n);
	int e = mdb_put(txn->mdb, txn->rows, &k, &v, MDB_RESERVE);

	if (e != 0)
		return e;
	memcpy(v.mv_data, row, n);
	memcpy((char *)v.mv_data + n, &seal, sizeof seal);
	return 0;
}

enum store_rc
txn_put(struct txn *txn, uint64_t key, const void *row, size_t n)
{
	MDB_val k = {sizeof key, &key}, v;

	if (txn->sealed)
		return row_rc(txn, put_sealed(txn, key, row, n));
	/* LMDB only reads it */
	v = (MDB_val){n, (void *)(uintptr_t)row};
	return row_rc(txn, mdb_put(txn->mdb, txn->rows, &k, &v, 0));
}

enum store_rc
txn_del(struct txn *txn, uint64_t key)
{
	MDB_val k = {sizeof key, &key};
	int e = mdb_del(txn->mdb, txn->rows, &k, NULL);

	return e == MDB_NOTFOUND ? STORE_OK : row_rc(txn, e);
}

/* A cursor that goes through a range. */
struct side {
	struct txn *txn;
	MDB_cursor *cursor;
	uint64_t key, last;
	MDB_val v;
	bool more; /* key and v are good */
};

static int
side_move(struct side *side, MDB_cursor_op op)
{
	MDB_val k = {sizeof side->key, &side->key};
	int e = mdb_cursor_get(side->cursor, &k, &side->v, op);

	side->more = e == 0;
	if (e == 0) {
		memcpy(&side->key, k.mv_data, sizeof side->key);
		side->more = side->key <= side->last;
	}
	return e == MDB_NOTFOUND ? 0 : e;
}

static int
side_open(struct side *side, struct txn *txn, uint64_t first, uint64_t last)
{
	int e = mdb_cursor_open(txn->mdb, txn->rows, &side->cursor);

	side->txn = txn;
	if (e != 0) {
		side->cursor = NULL;
		return e;
	}
	side->key = first;
	side->last = last;
	return side_move(side, MDB_SET_RANGE);
}

static void
side_close(struct side *side)
{
	if (side->cursor != NULL)
		mdb_cursor_close(side->cursor);
}

enum store_rc
txn_walk(struct txn *txn, uint64_t first, uint64_t last, env_row_fn *fn, void *arg)
{
	struct side side;
	enum store_rc rc = STORE_OK;
	int e = side_open(&side, txn, first, last);

	while (e == 0 && rc == STORE_OK && side.more) {
		struct env_bytes row;

		e = row_open(txn, side.key, &side.v, &row);
		if (e == 0)
			rc = fn(side.key, row, arg);
		if (e == 0 && rc == STORE_OK)
			e = side_move(&side, MDB_NEXT);
	}
	side_close(&side);
	return rc != STORE_OK ? rc : row_rc(txn, e);
}

enum store_rc
txn_ends(struct txn *txn, uint64_t first, uint64_t last, uint64_t *first_out, uint64_t *last_out)
{
	struct side side;
	int e = side_open(&side, txn, first, last);
	bool found = e == 0 && side.more;

	if (found) {
		*first_out = side.key;
		side.key = last;
		e = side_move(&side, MDB_SET_RANGE);
		/* behind the range, or behind all rows: one back */
		if (e == 0 && !side.more)
			e = side_move(&side, side.key > last ? MDB_PREV : MDB_LAST);
		*last_out = side.key;
	}
	side_close(&side);
	return e != 0 ? row_rc(txn, e) : found ? STORE_OK : STORE_NONE;
}

static bool
is_same(const struct side *live, const struct side *book)
{
	return live->v.mv_size + SEAL_BYTES == book->v.mv_size &&
	       memcmp(live->v.mv_data, book->v.mv_data, live->v.mv_size) == 0;
}

/* Whose turn it is in a merge: < 0 live's key comes first, > 0 that of book, 0 both have it. */
static int
whose_turn(const struct side *live, const struct side *book)
{
	if (!live->more || !book->more)
		return live->more ? -1 : 1;
	return live->key < book->key ? -1 : live->key > book->key;
}

static int
diff_step(struct side *live, struct side *book, env_diff_fn *fn, void *arg, enum store_rc *rc)
{
	struct env_bytes row = {live->v.mv_data, live->v.mv_size};
	int turn = whose_turn(live, book), e = 0;

	if (turn > 0)
		*rc = fn(book->key, NULL, arg);
	else if (turn < 0 || !is_same(live, book))
		*rc = fn(live->key, &row, arg);
	if (*rc != STORE_OK)
		return 0;
	if (turn <= 0)
		e = side_move(live, MDB_NEXT);
	return turn >= 0 && e == 0 ? side_move(book, MDB_NEXT) : e;
}

/* Rows that hang together by their place, as those with equal hashes do, lie in one group of 256 keys. */
static bool
goes_on(const struct side *live, const struct side *book, const struct env_range *range)
{
	uint64_t seen = range->first - 1, key;

	if (!live->more && !book->more)
		return false;
	key = whose_turn(live, book) > 0 ? book->key : live->key;
	return range->most > 0 || seen >> 8 == key >> 8;
}

enum store_rc
txn_diff(struct txn *live, struct txn *book, struct env_range *range, env_diff_fn *fn, void *arg)
{
	struct side a = {.cursor = NULL}, b = {.cursor = NULL};
	enum store_rc rc = STORE_OK;
	int e = side_open(&a, live, range->first, range->last);

	if (e == 0)
		e = side_open(&b, book, range->first, range->last);
	while (e == 0 && rc == STORE_OK && goes_on(&a, &b, range)) {
		uint64_t key = whose_turn(&a, &b) > 0 ? b.key : a.key;

		e = diff_step(&a, &b, fn, arg, &rc);
		range->first = key + 1;
		range->most -= range->most > 0;
	}
	if (rc == STORE_OK && !a.more && !b.more)
		range->first = range->last + 1;
	side_close(&a);
	side_close(&b);
	/* either could not be read: the text is LMDB's */
	return rc != STORE_OK ? rc : row_rc(book, e);
}
