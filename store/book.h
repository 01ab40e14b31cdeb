/*
 * book - what outlives a power cut: rows of `live` saved to `book`, and back.
 *
 * Nothing is marked on the request's path: a save compares the rows of both, so it finds whatever differs, whoever
 * wrote it, also what an earlier save failed to write. `book` is always `live` as it was at one moment, but for hard
 * facts, which may be newer, and what is saved in slices.
 *
 * Kinds     the table in book_kind.c: a line for each kind of key that is saved
 * Rows      as in `live`, each with a seal (seal.h); KEY_HEADER of its own, written with the first save
 * Reset     numbers of transactions in rows become 0 when `live` is made anew, as it counts from the start again
 * Errors    as in env.h; what failed is tried again by the next save, requests go on meanwhile
 * Source    SPEC.md section 15; store.md decisions 1 and 2
 */
#ifndef STORE_BOOK_H
#define STORE_BOOK_H

#include "store/account.h"

#define BOOK_PERIOD_MS 4000 /* claimed once a second at most, so that nothing is older than 5 s */

struct book_report {
	bool
	    news; /* it ended otherwise than the one before, of whichever process: worth a log line */
	unsigned rows; /* written or deleted */
};

/* Save all that differs: the job, claimed by one process. Of kinds that may have a million rows a slice each time. */
enum store_rc book_save(struct env *env, struct book_report *report_out) STORE_MUST_CHECK;
/* The same without slices, for env_close(). */
enum store_rc book_save_all(struct env *env, struct book_report *report_out) STORE_MUST_CHECK;

/* Save hard facts of these accounts (there may be none), with the events and what belongs to channels; after the
 * client's answer is finished. On STORE_OK they are on the disk. Waits up to 2 s for other saves: then all that differs
 * is saved, which spares those who wait behind. */
enum store_rc book_save_now(struct env *env, const struct account_ref *refs, size_t n,
    struct book_report *report_out) STORE_MUST_CHECK;

/* Fill a new `live`; an env_both_fn for env_open(). */
enum store_rc book_restore(struct txn *live, struct txn *book, void *arg) STORE_MUST_CHECK;

#endif
