#include "store/account.h"

#include <string.h>

#define VERSION 1

static uint64_t
hot_key(struct account_ref ref)
{
	return key_of(KEY_HOT, ref.channel, ref.number / ACCOUNT_SHARD);
}

enum store_rc
account_shard(
    struct txn *txn, uint16_t channel, uint32_t shard, const char **rows_out, unsigned *n_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_HOT, channel, shard), &bytes);

	if (rc == STORE_NONE) {
		*rows_out = NULL;
		*n_out = 0;
		return STORE_OK;
	}
	if (rc != STORE_OK)
		return rc;
	if (bytes.n % sizeof(struct account_row) != 0)
		return STORE_BAD;
	*rows_out = bytes.p;
	*n_out = (unsigned)(bytes.n / sizeof(struct account_row));
	return STORE_OK;
}

enum store_rc
account_get(struct txn *txn, struct account_ref ref, struct account_row *row_out)
{
	const char *rows;
	unsigned n, at = ref.number % ACCOUNT_SHARD;
	enum store_rc rc = account_shard(txn, ref.channel, ref.number / ACCOUNT_SHARD, &rows, &n);

	if (rc != STORE_OK)
		return rc;
	if (at < n)
		account_copy(row_out, rows, at);
	if (at < n && row_out->version == VERSION)
		return STORE_OK;
	*row_out = (struct account_row){.version = VERSION, .credits_micros = ACCOUNT_NO_CREDITS};
	return STORE_NONE;
}

enum store_rc
account_put(struct txn *txn, struct account_ref ref, const struct account_row *row)
{
	struct account_row rows[ACCOUNT_SHARD] = {0};
	const char *old;
	unsigned n, at = ref.number % ACCOUNT_SHARD;
	enum store_rc rc = account_shard(txn, ref.channel, ref.number / ACCOUNT_SHARD, &old, &n);

	if (rc != STORE_OK)
		return rc;
	if (n > ACCOUNT_SHARD)
		return STORE_BAD;
	if (n > 0)
		memcpy(rows, old, n * sizeof *rows);
	rows[at] = *row;
	rows[at].version = VERSION;
	if (n <= at)
		n = at + 1;
	return txn_put(txn, hot_key(ref), rows, n * sizeof *rows);
}

/* Copy a row of exactly `n` bytes; another size is another version and counts as damaged. */
static enum store_rc
fixed_get(struct txn *txn, uint64_t key, void *row, size_t n)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key, &bytes);

	if (rc == STORE_OK && bytes.n != n)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(row, bytes.p, n);
	return rc;
}

enum store_rc
account_stat_get(struct txn *txn, struct account_ref ref, struct account_stat *stat_out)
{
	*stat_out = (struct account_stat){.version = VERSION};
	return fixed_get(
	    txn, key_of(KEY_STAT, ref.channel, ref.number), stat_out, sizeof *stat_out);
}

enum store_rc
account_stat_put(struct txn *txn, struct account_ref ref, const struct account_stat *stat)
{
	return txn_put(txn, key_of(KEY_STAT, ref.channel, ref.number), stat, sizeof *stat);
}

enum store_rc
account_note_get(struct txn *txn, struct account_ref ref, struct account_note *note_out)
{
	*note_out = (struct account_note){.version = VERSION};
	return fixed_get(
	    txn, key_of(KEY_NOTE, ref.channel, ref.number), note_out, sizeof *note_out);
}

enum store_rc
account_note_put(struct txn *txn, struct account_ref ref, const struct account_note *note)
{
	return txn_put(txn, key_of(KEY_NOTE, ref.channel, ref.number), note, sizeof *note);
}

void
account_window_add(struct account_stat *stat, bool failed)
{
	uint64_t carry = failed;

	for (unsigned i = 0; i < ACCOUNT_WINDOW / 64; i++) {
		uint64_t out = stat->failed_bits[i] >> 63;

		stat->failed_bits[i] = stat->failed_bits[i] << 1 | carry;
		carry = out;
	}
	if (stat->window_n < ACCOUNT_WINDOW)
		stat->window_n++;
}

void
account_window(
    const struct account_stat *stat, unsigned n, unsigned *calls_out, unsigned *failures_out)
{
	unsigned failures = 0;

	if (n > stat->window_n)
		n = stat->window_n;
	for (unsigned i = 0; i < n; i++)
		failures += stat->failed_bits[i / 64] >> (i % 64) & 1;
	*calls_out = n;
	*failures_out = failures;
}
