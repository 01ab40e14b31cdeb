/*
 * epoch - which boot, which format, which store: whether `live` may be opened as it is.
 *
 * The file `epoch` in state_dir holds the boot id, the clean flag, the store's uuid and its format. Same boot: `live`
 * is good whatever died. Another boot: a `live` that was not closed cleanly is never opened but set aside (renamed to
 * live.unclean.<time>, one kept) and a new one begun.
 *
 * Source    store.md decision 2
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H

#include "store/types.h"

#define EPOCH_FORMAT 1

struct epoch {
	char boot[64];  /* boot id of this boot; a marker under /dev/shm where the kernel's cannot be read */
	char uuid[40];  /* of this store, made once */
	bool fresh;     /* live was made or set aside just now */
	bool set_aside; /* ... because the machine went down without a clean end */
};

/* Decide under an exclusive lock; leaves `live` either good to open or absent. */
enum store_rc epoch_enter(
    const char *dir, struct epoch *epoch_out, struct store_why *why) STORE_MUST_CHECK;

#endif
