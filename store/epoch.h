/*
 * epoch - which boot, which format, which store: whether `live` may be opened as it is.
 *
 * The file `epoch` in state_dir holds the boot id, the clean flag, the store's uuid and its format. Same boot: `live`
 * is good whatever died. Another boot: a `live` that was not closed cleanly is never opened but set aside (renamed to
 * live.unclean.<time of its last write>, one kept) and a new one begun, by epoch_anew(), once it is known from what.
 *
 * Door      opening holds an exclusive flock on state_dir itself from epoch_enter() to epoch_ready(), at most 2 s
 * Users     each process holds a shared flock on `users.lock` from epoch_enter() to epoch_leave(); the one that can
 *           make it exclusive is the last. kill -9 drops the lock, so a dead process never keeps the store busy.
 * Clean     written only by the last user, after it has synced `live`; cleared, and on the disk, before `live` is
 *           opened again. A process that ends without epoch_leave() just leaves the store unclean.
 * Errors    STORE_BUSY the door was not had in 2 s; STORE_BAD other format, damaged, or in use under another boot id
 * Source    store.md decision 2
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H

#include "store/types.h"

#define EPOCH_FORMAT 1

enum epoch_fate {
	EPOCH_KEEP,    /* `live` may be opened */
	EPOCH_DISCARD, /* there is none, or it was never finished */
	EPOCH_ASIDE,   /* the machine went down without a clean end */
};

struct epoch {
	char boot
	    [64]; /* boot id of this boot, else a marker's under /dev/shm; "-" when neither can be had */
	char uuid[40];  /* of this store, made once for each `live` */
	char aside[64]; /* what the old `live` was renamed to by epoch_anew(), or "" */
	enum epoch_fate fate;
	bool fresh;      /* `live` is to be made: epoch_anew() was called */
	bool alone;      /* nobody else had the store open at epoch_enter() */
	bool was_clean;  /* the store was marked clean until now */
	int door, users; /* descriptors, -1 when not held */
};

/* Decide under an exclusive lock. Unless `live` may be kept, nothing is changed yet and epoch_anew() must follow. On
 * STORE_OK epoch_ready() or epoch_leave() must follow soon: nobody else can open the store until then. On failure
 * nothing is held. */
enum store_rc epoch_enter(
    const char *dir, struct epoch *epoch_out, struct store_why *why) STORE_MUST_CHECK;
/* The same with a given boot id ("-": none can be had); for tests and epoch_enter(). */
enum store_rc epoch_enter_as(const char *dir, const char *boot, struct epoch *epoch_out,
    struct store_why *why) STORE_MUST_CHECK;

/* Begin a new `live` under a new uuid, before epoch_ready(), alone; afterwards there is none. An old one is set aside
 * when `keep_old`, else removed. */
enum store_rc epoch_anew(
    struct epoch *epoch, bool keep_old, struct store_why *why) STORE_MUST_CHECK;

/* `live` is complete and open: record that it exists, let the next process in. */
enum store_rc epoch_ready(struct epoch *epoch, struct store_why *why) STORE_MUST_CHECK;

/* Is this process the last user? If so nobody can come in until epoch_leave(); sync `live` now. */
bool epoch_last(struct epoch *epoch);

/* End the use. `clean`: mark the store clean, if epoch_last() says so (asked again here). */
enum store_rc epoch_leave(struct epoch *epoch, bool clean, struct store_why *why);

#endif
