/*
 * env_body - what env.c, env_book.c and env_open.c know of each other; nobody else includes it.
 */
#ifndef STORE_ENV_BODY_H
#define STORE_ENV_BODY_H

#include "store/env.h"
#include "store/gate.h"
#include "store/map.h"
#include "store/why.h"

#include <lmdb.h>

#include <sys/types.h>

struct env {
	struct map live, book; /* book.mdb is NULL until it is used */
	struct gate *gate;
	struct epoch epoch;
	pid_t pid;
	bool inside;       /* a transaction is open */
	bool open;         /* env_open() is done: only then a close may mark the store clean */
	int book_lock;     /* descriptor of `book.lock`, -1 until it is used */
	bool book_suspect; /* LMDB found it damaged: look it through before it is used again */
	struct store_why error;
	char dir[4000];
};

struct txn {
	struct env *env;
	struct map *map;
	MDB_txn *mdb;
	MDB_dbi rows;
	bool looks;  /* changes nothing */
	bool sealed; /* of `book` */
	int failed;  /* first LMDB error inside, even if the function ignored it */
};

/* Leave a text; returns STORE_BAD. */
enum store_rc env_bad(struct env *env, const char *text);
/* STORE_BAD: of another process, inside a transaction, or dead. */
enum store_rc env_usable(struct env *env) STORE_MUST_CHECK;

/* With the lock held: have `book` open. `make`: as an empty `book.new` where there is none, or a damaged one; else
 * STORE_NONE and STORE_BAD. */
enum store_rc env_book_have(struct env *env, bool make) STORE_MUST_CHECK;
/* With the lock held: the new `book` is complete. */
enum store_rc env_book_done(struct env *env) STORE_MUST_CHECK;
/* Look through the file of `book` before it is opened to make `live` from it. STORE_NONE: there is no `book`. */
enum store_rc env_book_sound(struct env *env) STORE_MUST_CHECK;
/* In the exclusive opening: fill a new `live` from an open `book`. */
enum store_rc env_restore(struct env *env, env_both_fn *fn, void *arg) STORE_MUST_CHECK;
/* A transaction on `live`, or on `book` with the lock held. */
enum store_rc env_run(
    struct env *env, struct map *map, bool change, env_fn *fn, void *arg) STORE_MUST_CHECK;

#endif
