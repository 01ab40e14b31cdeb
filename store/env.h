/*
 * env - open and close `live`; the only place where a transaction begins or ends.
 *
 * Every change is a function given to env_update(); every look is a function given to env_view(). Such a function may
 * run again from the start (map growth, resize by another process), so it only reads its arguments and writes rows:
 * no logging, no network, no result that is not overwritten by a second run.
 *
 * Rows      one unnamed MDB_INTEGERKEY database, MDB_NOSYNC, never MDB_WRITEMAP, never DUPSORT
 * Locking   env_update() takes the front lock (gate.h) with a limit of 2 s, then LMDB's own
 * Errors    STORE_BUSY front lock not had in time; STORE_FULL map at its maximum or disk full; STORE_BAD other
 *           format, uuid or damaged; STORE_IO the rest. env_error() has the text of the last failure.
 * Caveats   open after fork, once per process, never in the master; a forked child must not use it (checked by
 *           getpid); lock.mdb must not be deleted while in use; state_dir must be local (network file systems are
 *           refused). Starts with a 64 MiB map, doubles up to the configured maximum.
 * Source    store.md decisions 1, 2, 5 to 8 and section 3
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H

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

/* Open the store in `dir` (created 0700 when `create`). On failure *why says what to do. */
enum store_rc env_open(const char *dir, uint64_t max_bytes, bool create, struct env **env_out,
    struct store_why *why) STORE_MUST_CHECK;
void env_close(struct env **env);

enum store_rc env_update(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;
enum store_rc env_view(struct env *env, env_fn *fn, void *arg) STORE_MUST_CHECK;

/* The text of this process's last failed call. */
const char *env_error(const struct env *env);
const char *env_dir(const struct env *env);
struct env *txn_env(struct txn *txn);

/* Bytes in use, size of the map, maximum: for status and doctor. */
struct env_size {
	uint64_t used_bytes, map_bytes, max_bytes;
};
enum store_rc env_size(struct env *env, struct env_size *size_out) STORE_MUST_CHECK;

/* Housekeeping, at most once a second: reader check, is the lock file still the one we opened. */
enum store_rc env_check(struct env *env) STORE_MUST_CHECK;

/* Rows. The bytes of txn_get() live in the map until the next write in this transaction: copy them out. */
enum store_rc txn_get(struct txn *txn, uint64_t key, struct env_bytes *row_out) STORE_MUST_CHECK;
enum store_rc txn_put(struct txn *txn, uint64_t key, const void *row, size_t n) STORE_MUST_CHECK;
/* STORE_OK also when there was no such row. */
enum store_rc txn_del(struct txn *txn, uint64_t key) STORE_MUST_CHECK;
/* Visit rows with first <= key <= last in order; `fn` must not write. */
enum store_rc txn_walk(
    struct txn *txn, uint64_t first, uint64_t last, env_row_fn *fn, void *arg) STORE_MUST_CHECK;

#endif
