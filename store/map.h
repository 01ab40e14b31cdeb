/*
 * map - the LMDB handle under env.c: open `live` or `book`, grow its map, follow another process's growth, name what
 * failed.
 *
 * Only env*.c use this; transactions are begun in env.c. Every failure leaves its text in *error.
 *
 * Errors    STORE_FULL map at its maximum or disk full; STORE_BAD damaged; STORE_IO the rest
 * Source    store.md decisions 7 and 8, section 3
 */
#ifndef STORE_MAP_H
#define STORE_MAP_H

#include "store/types.h"

#include <lmdb.h>
#include <sys/types.h>

enum map_sync {
	MAP_SYNC_NONE, /* never: good as long as the machine stays up */
	MAP_SYNC_DATA, /* each commit without the head: the newest may be lost, nothing is damaged */
	MAP_SYNC_ALL,  /* what is committed is on the disk */
};

struct map {
	MDB_env *mdb;
	const char *name;        /* of the folder below `dir` */
	struct store_why *error; /* of all maps of this process */
	enum map_sync sync;
	bool loose;                /* whoever opens it has looked whether the file was cut */
	uint64_t start_bytes;      /* size of a new map */
	uint64_t max_bytes, bytes; /* the map's maximum, and its size now */
	uint64_t want_bytes;       /* the size last asked for, for the message */
	uint64_t page_bytes, file_bytes;
	struct map_file {
		dev_t dev;
		ino_t ino;
	} lock_file, data_file;
	bool dead;       /* without a map, or the files are not ours any more */
	const char *dir; /* state_dir */
};

/* `fresh`: an empty or missing data file is what we expect. On failure nothing is open. */
enum store_rc map_open(struct map *map, bool fresh) STORE_MUST_CHECK;
void map_close(struct map *map);

/* Do what makes another try worth while after LMDB's error `e`. 0: try again, else the error that stays. */
int map_mend(struct map *map, int e, int tries) STORE_MUST_CHECK;

/* LMDB's or the system's error -> our code, with a text that says what to do. */
enum store_rc map_fail(struct map *map, int e);

/* Keep the file longer than used, so that a whole file never looks cut. */
void map_slack(struct map *map);

/* Are lock.mdb and data.mdb still the files that we opened? */
bool map_is_ours(const struct map *map);

#endif
