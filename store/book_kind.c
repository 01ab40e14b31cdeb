#include "store/book_kind.h"

#include "store/account.h"
#include "store/cooldown.h"

#include <string.h>

static book_mend_fn mend_hot, mend_pair;

/*
 * Kinds that are not here die with `live`: slots, who waits, when jobs are due, where the robins stand, prices; bindings
 * by account are counted anew.
 */
const struct book_kind book_kinds[BOOK_KINDS] = {
    {KEY_CHANNEL, BOOK_ANY, BOOK_NOW_ALL, NULL},
    {KEY_TEXT, BOOK_ANY, BOOK_NOW_NOT, NULL},
    {KEY_HOT, BOOK_ANY, BOOK_NOW_SHARD, mend_hot},
    {KEY_STAT, BOOK_ANY, BOOK_NOW_ACCOUNT, NULL},
    {KEY_NOTE, BOOK_ANY, BOOK_NOW_ACCOUNT, NULL},
    {KEY_PAIR, BOOK_ANY, BOOK_NOW_NOT, mend_pair},
    {KEY_EVENT, BOOK_GROWS, BOOK_NOW_ALL, NULL},
    {KEY_TALLY, BOOK_ANY, BOOK_NOW_ALL, NULL},
    {KEY_BREAKER, BOOK_ANY, BOOK_NOW_ALL, NULL},
    {KEY_LEDGER, BOOK_DAYS, BOOK_NOW_NOT, NULL},
    {KEY_QUOTA, BOOK_ANY, BOOK_NOW_NOT, NULL},
    {KEY_STICKY, BOOK_SLICES, BOOK_NOW_NOT, NULL},
    {KEY_TARGET, BOOK_ANY, BOOK_NOW_NOT, NULL},
    {KEY_TASK, BOOK_SLICES, BOOK_NOW_NOT, NULL},
};

static void
mend_hot(unsigned char *rows, size_t n)
{
	for (size_t at = 0; at + sizeof(struct account_row) <= n;
	     at += sizeof(struct account_row)) {
		struct account_row row;

		memcpy(&row, rows + at, sizeof row);
		row.picked_txn = row.failed_txn = row.cool_txn = 0;
		memcpy(rows + at, &row, sizeof row);
	}
}

static void
mend_pair(unsigned char *bytes, size_t n)
{
	struct cooldown_row row;

	if (n < sizeof row)
		return;
	memcpy(&row, bytes, sizeof row);
	row.set_txn = 0;
	memcpy(bytes, &row, sizeof row);
}
