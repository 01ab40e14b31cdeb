/*
 * verify - is a data file sound, asked without LMDB and without a map, so that damage is an answer and not a signal.
 *
 * Looks at every page that the head in force reaches: kind, number, limits, order of keys, totals, no page used twice,
 * none both used and free. What it cannot see: bits in parts of pages that hold nothing, and in rows, where the caller
 * has no check of its own for them.
 *
 * Caveats   nobody may write to the file meanwhile
 * Memory    one page for each level, one bit for each page of the file, and the largest row
 * Errors    STORE_BAD damaged: *why says where; STORE_IO out of memory
 * Source    store.md decision 2 and section 3; the layout is that of LMDB 0.9 on 64-bit machines
 */
#ifndef STORE_VERIFY_H
#define STORE_VERIFY_H

#include "store/types.h"

/* Is this row sound? */
typedef bool verify_row_fn(uint64_t key, const void *row, size_t n, void *arg);

/* `name` is the folder of the file, for the text. `fn` may be NULL. */
enum store_rc verify_file(
    int fd, const char *name, verify_row_fn *fn, void *arg, struct store_why *why) STORE_MUST_CHECK;

#endif
