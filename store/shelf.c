#include "store/shelf.h"

#include <string.h>

#define VERSION 1
#define PAGE 4096
#define ROWS_BYTES 512 /* the rows beside the text */

uint64_t
shelf_key(enum key_kind kind, uint64_t number)
{
	return key_hashed(kind, number);
}

static uint64_t
piece_key(struct shelf_place at, uint64_t piece)
{
	return key_hashed(at.kind, at.number << 16 | (at.piece + piece));
}

uint64_t
shelf_room(uint64_t n)
{
	return (n + n / SHELF_PIECE * 24 + PAGE - 1) / PAGE * PAGE + ROWS_BYTES;
}

bool
shelf_is_past(int64_t at_ms, struct wall_ms now, int64_t ttl_ms)
{
	int64_t old = now.v - at_ms;

	return old >= ttl_ms || -old > ttl_ms;
}

enum store_rc
shelf_sums(struct txn *book, enum key_kind kind, struct shelf_sum *sum_out)
{
	struct env_bytes row;
	enum store_rc rc = txn_get(book, shelf_key(kind, 0), &row);

	*sum_out = (struct shelf_sum){.version = VERSION, .next = 1};
	if (rc == STORE_NONE)
		return STORE_OK;
	if (rc == STORE_OK && row.n != sizeof *sum_out)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(sum_out, row.p, sizeof *sum_out);
	return rc;
}

enum store_rc
shelf_sums_put(struct txn *book, enum key_kind kind, const struct shelf_sum *sum)
{
	return txn_put(book, shelf_key(kind, 0), sum, sizeof *sum);
}

void
shelf_sums_less(struct shelf_sum *sum, uint64_t bytes)
{
	sum->rows -= sum->rows > 0;
	sum->bytes -= bytes < sum->bytes ? bytes : sum->bytes;
}

enum store_rc
shelf_put(struct txn *book, struct shelf_place at, struct env_bytes text)
{
	enum store_rc rc = STORE_OK;
	uint64_t piece = 0;

	for (size_t done = 0; done < text.n && rc == STORE_OK; done += SHELF_PIECE) {
		size_t n = text.n - done < SHELF_PIECE ? text.n - done : SHELF_PIECE;

		rc = txn_put(book, piece_key(at, piece++), (const char *)text.p + done, n);
	}
	return rc;
}

enum store_rc
shelf_copy(struct txn *book, struct shelf_place at, size_t n, char *dst)
{
	uint64_t piece = 0;

	for (size_t done = 0; done < n;) {
		struct env_bytes row;
		enum store_rc rc = txn_get(book, piece_key(at, piece++), &row);

		if (rc != STORE_OK)
			return rc == STORE_NONE ? STORE_BAD : rc;
		if (row.n == 0 || row.n > n - done)
			return STORE_BAD;
		memcpy(dst + done, row.p, row.n);
		done += row.n;
	}
	return STORE_OK;
}

enum store_rc
shelf_get(struct txn *book, struct shelf_place at, struct env_bytes *piece_out)
{
	return txn_get(book, piece_key(at, 0), piece_out);
}

enum store_rc
shelf_put_end(struct txn *book, struct shelf_place at)
{
	return txn_put(book, piece_key(at, 0), "", 0);
}

enum store_rc
shelf_walk(struct txn *book, struct shelf_place at, uint64_t end, env_row_fn *fn, void *arg)
{
	if (at.piece >= end)
		return STORE_OK;
	return txn_walk(book, piece_key(at, 0), piece_key(at, end - at.piece - 1), fn, arg);
}

enum store_rc
shelf_del(struct txn *book, struct shelf_place at, uint64_t pieces)
{
	enum store_rc rc = STORE_OK;

	for (uint64_t piece = 0; piece < pieces && rc == STORE_OK; piece++)
		rc = txn_del(book, piece_key(at, piece));
	return rc;
}

enum store_rc
shelf_evict(struct txn *book, const struct shelf_eviction *eviction, struct shelf_sum *sum,
    unsigned *removed_out)
{
	enum store_rc rc = STORE_OK;

	*removed_out = 0;
	while (*removed_out < eviction->most && rc == STORE_OK) {
		uint64_t first, last;

		rc = txn_ends(
		    book, shelf_key(eviction->kind, 1), key_last_of(eviction->kind), &first, &last);
		if (rc == STORE_OK)
			rc = eviction->drop(book, first & ~(UINT64_C(0xff) << 56),
			    sum->bytes > eviction->most_bytes, sum, eviction->limits);
		*removed_out += rc == STORE_OK;
	}
	return rc == STORE_NONE ? STORE_OK : rc;
}

enum store_rc
shelf_sweep(struct txn *book, const struct shelf_eviction *eviction, unsigned *removed_out)
{
	struct shelf_sum sum;
	enum store_rc rc = shelf_sums(book, eviction->kind, &sum);

	*removed_out = 0;
	if (rc == STORE_OK)
		rc = shelf_evict(book, eviction, &sum, removed_out);
	return rc == STORE_OK && *removed_out > 0 ? shelf_sums_put(book, eviction->kind, &sum) : rc;
}
