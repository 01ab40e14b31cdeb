/*
 * book_kind - the table of what is saved to `book`: a line for each kind of key.
 */
#ifndef STORE_BOOK_KIND_H
#define STORE_BOOK_KIND_H

#include "store/key.h"

#include <stddef.h>

/* How rows of a kind change in `live`. */
enum book_how {
	BOOK_ANY,    /* compare every row */
	BOOK_GROWS,  /* a row never changes: new ones at the end, old ones go from the front */
	BOOK_SLICES, /* there may be a million: the next part with each save */
	BOOK_DAYS,   /* the same, but the newest days always */
};

/* What of a kind is saved together with hard facts. */
enum book_now {
	BOOK_NOW_NOT,
	BOOK_NOW_ALL,
	BOOK_NOW_SHARD,   /* the accounts' shards */
	BOOK_NOW_ACCOUNT, /* the accounts' rows */
};

/* Make a saved row fit for a new `live`. */
typedef void book_mend_fn(unsigned char *row, size_t n);

struct book_kind {
	enum key_kind kind;
	enum book_how how;
	enum book_now now;
	book_mend_fn *mend;
};

#define BOOK_KINDS 14
#define BOOK_MEND_MAX 2048 /* rows that are mended lie inside a page: store.md decision 6 */

/* Ranges of keys in rising order. */
extern const struct book_kind book_kinds[BOOK_KINDS];

#endif
