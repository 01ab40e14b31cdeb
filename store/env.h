/*
 * env - open and close the store, `live` and `book`; the only place where a transaction begins or ends.
 *
 * Every change is a function given to env_update(); every look is a function given to env_view(). Such a function may
 * run again from the start (map growth, resize by another process), so it only reads its arguments and writes rows:
 * no logging, no network, no result that is not overwritten by a second run.
 *
 * Rows      one unnamed MDB_INTEGERKEY database each, never MDB_WRITEMAP, never DUPSORT; `live` MDB_NOSYNC, `book` with
 *           full sync and a seal behind each row (seal.h), which txn_put() adds and txn_get() checks and takes off
 * Locking   env_update() takes the front lock (gate.h) with a limit of 2 s, then LMDB's own. `book` has a lock of its
 *           own, `book.lock`, with a limit too. Who has both took that of `book` first and ends his look at `live`
 *           before `book` is written to the disk, so no request ever waits for a disk.
 * Book      opened when first used; looked through whole once after each boot (verify.h). A missing or damaged one is
 *           made anew from `live` by the next env_save(), as `book.new` until it is complete; the damaged one is kept
 *           as book.damaged.<time of its last write>.
 * Errors    STORE_BUSY front lock not had in time; STORE_FULL map at its maximum or disk full; STORE_BAD other
 *           format, uuid or damaged; STORE_IO the rest. env_error() has the text of the last failure.
 * Caveats   open after fork, once per process, never in the master; a forked child must not use it (checked by
 *           getpid); lock.mdb must not be deleted while in use; state_dir must be local (network file systems are
 *           refused). Starts with a 64 MiB map, doubles up to the configured maximum. SIGXFSZ must be ignored.
 *           No transaction inside a transaction.
 * Recovery  a `live` that cannot be trusted (epoch.h) or is damaged is set aside and made anew from `book` by env_open(),
 *           while nobody else can come in
 * Ending    env_close() of the last user saves to `book`, syncs and marks the store clean; env_drop() does not, nor does
 *           a process that just exits: nothing is lost while the machine stays up.
 * Source    store.md decisions 1, 2, 5 to 8 and section 3
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H

#include "store/epoch.h"
#include "store/key.h"
#include "store/types.h"

struct env;
struct txn;

struct env_bytes {
	const void *p;
	size_t n;
};

typedef enum store_rc env_fn(struct txn *txn, void *arg);
/* Return STORE_OK to go on, anything else ends the walk with that code. */
typedef enum store_rc env_row_fn(uint64_t key, struct env_bytes row, void *arg);

/* The row KEY_HEADER. env.c makes and checks it; `next_channel` belongs to whoever numbers channels. */
struct env_header {
	uint32_t format; /* EPOCH_FORMAT */
	uint16_t next_channel, spare;
	char uuid[40];
	uint8_t spare2[16];
};
_Static_assert(sizeof(struct env_header) == 64, "the header row is 64 bytes");

/* Open the store in `dir` (dir and store are made when `create`; the parent of dir must exist). STORE_NONE: there is
 * none and `create` is false. On failure *why says what to do; on STORE_OK it is empty or has one warning worth a log
 * line (a doubtful file system, a `live` that was set aside). Waits at most 2 s for another process that is opening. */
enum store_rc env_open(const char *dir, uint64_t max_bytes, bool create, struct env **env_out,
    struct store_why *why) STORE_MUST_CHECK;
void env_close(struct env **env);
/* End without waiting for the disk: for a process that lives for one request only. */
void env_drop(struct env **env);

/* Commits when `fn` returns STORE_OK, else nothing changes and fn's code is returned. */
enum store_rc env_update(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;
enum store_rc env_view(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;

/* The text of this process's last failed call. */
const char *env_error(const struct env *env);
/* Leave one there: for what belongs to the store and is no transaction. */
void env_say(struct env *env, const char *text);
const char *env_dir(const struct env *env);
/* What env_open() decided: is the store new, was an old one set aside. */
const struct epoch *env_epoch(const struct env *env);
/* The words of gate.h: GATE_WORDS futexes. */
uint32_t *env_words(struct env *env);
struct env *txn_env(struct txn *txn);
/* Number of this write transaction: grows with each one that commits; the low 32 bits, compare by difference. */
uint32_t txn_number(struct txn *txn);
/* Number of the newest transaction of `live` that this one sees; in full. */
uint64_t txn_seen(const struct txn *txn);
/* Number of the newest transaction of `live` that was committed by anybody; 0 = cannot be told. */
uint64_t env_newest(struct env *env);

/* Bytes in use (without free pages), size of the map, maximum: for status and doctor. */
struct env_size {
	uint64_t used_bytes, map_bytes, max_bytes;
};
enum store_rc env_size(struct env *env, struct env_size *size_out) STORE_MUST_CHECK;

/* Housekeeping, at most once a second: reader check, are the lock and data files still those we opened (STORE_BAD if
 * not: this and every later call; the process should end). */
enum store_rc env_check(struct env *env) STORE_MUST_CHECK;

/* Rows. The bytes of txn_get() live in the map until the next write in this transaction: copy them out. */
enum store_rc txn_get(struct txn *txn, uint64_t key, struct env_bytes *row_out) STORE_MUST_CHECK;
enum store_rc txn_put(struct txn *txn, uint64_t key, const void *row, size_t n) STORE_MUST_CHECK;
/* STORE_OK also when there was no such row. */
enum store_rc txn_del(struct txn *txn, uint64_t key) STORE_MUST_CHECK;
/* Visit rows with first <= key <= last in order; `fn` must not write. */
enum store_rc txn_walk(
    struct txn *txn, uint64_t first, uint64_t last, env_row_fn *fn, void *arg) STORE_MUST_CHECK;
/* The first and the last key between `first` and `last`. STORE_NONE: there is none. */
enum store_rc txn_ends(struct txn *txn, uint64_t first, uint64_t last, uint64_t *first_out,
    uint64_t *last_out) STORE_MUST_CHECK;

/* ---- book ---- */

/* `wait_ms` 0 asks once; else that long for one holder, 10 s for several that come one after the other. STORE_BUSY:
 * another process has it. Dies with the process. */
enum store_rc env_book_lock(struct env *env, int64_t wait_ms) STORE_MUST_CHECK;
void env_book_unlock(struct env *env);

/* As env_update() and env_view(), for `book`; both take the lock themselves. STORE_NONE: there is no `book` yet. */
enum store_rc env_book_update(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;
enum store_rc env_book_view(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;
/* The same with the lock held. */
enum store_rc env_book_update_held(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;

typedef enum store_rc env_both_fn(struct txn *live, struct txn *book, void *arg);
/* Change `book` after what `live` has: one transaction in each, `live` is only read. Only with the lock held. A new
 * `book` is empty, and given away as complete when `fn` returns STORE_OK. */
enum store_rc env_save(struct env *env, env_both_fn *fn, void *arg) STORE_MUST_CHECK;

struct env_range {
	uint64_t first, last;
	uint64_t most; /* rows to look at; then on to the end of the last one's group of 256 keys */
};

/* Visit the keys of the range whose rows differ: `row` is that of `live`, or NULL where it has none. The bytes live as
 * long as the transaction on `live`. `fn` must not write; anything but STORE_OK ends the walk. range->first is moved
 * behind what was seen, and range->most is what is left of it: first > last when all was seen. */
typedef enum store_rc env_diff_fn(uint64_t key, const struct env_bytes *row, void *arg);
enum store_rc txn_diff(struct txn *live, struct txn *book, struct env_range *range, env_diff_fn *fn,
    void *arg) STORE_MUST_CHECK;

/* What was saved last, by whichever process; kept in `book.lock`. Only a hint unless read with the lock held. */
struct env_note {
	uint64_t txn; /* `book` has of `live` what is up to this transaction; 0 = unknown */
	uint64_t
	    cursor; /* ... but of what is saved in slices: where the next one begins, 0 = all */
	uint32_t failed; /* the last save was in vain */
	uint32_t spare;
};
/* All zero when nothing is known of this `live`. */
void env_note_get(struct env *env, struct env_note *note_out);
/* With the lock held, else it may be overwritten. May fail, then it is as if nothing had been saved. */
void env_note_put(struct env *env, const struct env_note *note);

#endif
