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

/* What the head in force says of one of the two trees. */
struct disk_tree {
	uint64_t root; /* DISK_NO_ROOT: empty */
	uint64_t branch_pages, leaf_pages, overflow_pages, entries;
	unsigned depth;
};
#define DISK_NO_ROOT UINT64_MAX

struct disk_data {
	uint64_t map_bytes; /* map size that the last commit knew */
	uint64_t page_bytes, last_page;
	uint64_t txn[2]; /* transactions that wrote the heads */
	struct disk_tree free_list, rows;
};

/* Read LMDB's two heads from the open data.mdb of `name`, a folder. STORE_NONE: the file is empty. */
enum store_rc disk_heads(
    int fd, const char *name, struct disk_data *data_out, struct store_why *why) STORE_MUST_CHECK;
/* The same, and the file must be as long as they say. */
enum store_rc disk_data(
    int fd, const char *name, struct disk_data *data_out, struct store_why *why) STORE_MUST_CHECK;

#endif
