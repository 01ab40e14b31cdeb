#include "store/cursor.h"

#include <string.h>

#define SHARD 450 /* 1,800 bytes: inside a leaf page */

enum store_rc
cursor_get(struct txn *txn, uint16_t channel, uint32_t *number_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_CURSOR, channel, 0), &bytes);

	*number_out = CURSOR_NOBODY;
	if (rc == STORE_OK && bytes.n == sizeof *number_out)
		memcpy(number_out, bytes.p, sizeof *number_out);
	return rc == STORE_NONE ? STORE_OK : rc;
}

enum store_rc
cursor_put(struct txn *txn, uint16_t channel, uint32_t number)
{
	return txn_put(txn, key_of(KEY_CURSOR, channel, 0), &number, sizeof number);
}

enum store_rc
cursor_smooth_get(struct txn *txn, uint16_t channel, int32_t *standings_out, uint32_t n)
{
	memset(standings_out, 0, n * sizeof *standings_out);
	for (uint32_t first = 0; first < n; first += SHARD) {
		struct env_bytes bytes;
		size_t want = (n - first < SHARD ? n - first : SHARD) * sizeof *standings_out;
		enum store_rc rc =
		    txn_get(txn, key_of(KEY_CURSOR, channel, 1 + first / SHARD), &bytes);

		if (rc == STORE_OK)
			memcpy(standings_out + first, bytes.p, bytes.n < want ? bytes.n : want);
		else if (rc != STORE_NONE)
			return rc;
	}
	return STORE_OK;
}

enum store_rc
cursor_smooth_put(struct txn *txn, uint16_t channel, const int32_t *standings, uint32_t n)
{
	for (uint32_t first = 0; first < n; first += SHARD) {
		uint32_t some = n - first < SHARD ? n - first : SHARD;
		enum store_rc rc = txn_put(txn, key_of(KEY_CURSOR, channel, 1 + first / SHARD),
		    standings + first, some * sizeof *standings);

		if (rc != STORE_OK)
			return rc;
	}
	return STORE_OK;
}
