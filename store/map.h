/*
 * map - the LMDB handle under env.c: open `live`, grow its map, follow another process's growth, name what failed.
 *
 * Only env.c uses this; transactions are begun there. Every failure leaves its text in `error`.
 *
 * Errors    STORE_FULL map at its maximum or disk full; STORE_BAD damaged; STORE_IO the rest
 * Source    store.md decisions 7 and 8, section 3
 */
#ifndef STORE_MAP_H
#define STORE_MAP_H

#include "store/types.h"

#include <lmdb.h>
#include <sys/types.h>

#define MAP_PATH_BYTES 4096

struct map {
	MDB_env *mdb;
	uint64_t max_bytes, bytes; /* the map's maximum, and its size now */
	uint64_t want_bytes;       /* the size last asked for, for the message */
	uint64_t page_bytes, file_bytes;
	struct map_file {
		dev_t dev;
		ino_t ino;
	} lock_file, data_file;
	bool durable; /* sync each commit (without the head): for machines that have no boot id */
	bool dead;    /* without a map, or the files are not ours any more */
	struct store_why error;
	char dir[MAP_PATH_BYTES]; /* state_dir */
};

/* `fresh`: an empty or missing data file is what we expect. On failure nothing is open. */
enum store_rc map_open(struct map *map, bool fresh) STORE_MUST_CHECK;
void map_close(struct map *map);

/* Do what makes another try worth while after LMDB's error `e`. 0: try again, else the error that stays. */
int map_mend(struct map *map, int e, int tries) STORE_MUST_CHECK;

/* LMDB's or the system's error -> our code, with a text that says what to do. */
enum store_rc map_fail(struct map *map, int e);

/* In a write transaction: keep the file longer than used, so that a whole file never looks cut. */
void map_slack(struct map *map);

/* Are lock.mdb and data.mdb still the files that we opened? */
bool map_is_ours(const struct map *map);

#endif
