/*
 * disk - may this directory hold a store, and is its data file whole, asked before LMDB maps anything.
 *
 * LMDB opens an empty file as a new store and dies by SIGBUS in one that was cut; both are refused here.
 *
 * Errors    STORE_NONE nothing there; STORE_BAD not fit: *why says what mends it; STORE_IO the system refused
 * Source    store.md decision 8 and section 3
 */
#ifndef STORE_DISK_H
#define STORE_DISK_H

#include "store/types.h"

/* Check state_dir: a local, writable file system, this user's, mode 0700. Made (its parent must exist) when `create`.
 * On STORE_OK *why is empty or has a warning. */
enum store_rc disk_dir(const char *dir, bool create, struct store_why *why) STORE_MUST_CHECK;

/* May a store lie on a file system of this statfs magic? *name_out gets its name when not, or when it is doubtful. */
bool disk_is_local(int64_t magic, const char **name_out);

struct disk_data {
	uint64_t map_bytes; /* map size that the last commit knew */
	uint64_t page_bytes;
};

/* Read LMDB's two meta pages from the open data.mdb and compare them with the size of the file. STORE_NONE: empty. */
enum store_rc disk_data(int fd, struct disk_data *data_out, struct store_why *why) STORE_MUST_CHECK;

#endif
