#include "store/env.h"

#include "store/disk.h"
#include "store/gate.h"
#include "store/map.h"
#include "store/why.h"

#include <lmdb.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct env {
	struct map map;
	struct gate *gate;
	struct epoch epoch;
	pid_t pid;
	bool inside; /* a transaction is open */
	bool open;   /* env_open() is done: only then a close may mark the store clean */
};

struct txn {
	struct env *env;
	MDB_txn *mdb;
	MDB_dbi rows;
	int failed; /* first LMDB error inside, even if the function ignored it */
};

enum how {
	LOOK,        /* a read transaction */
	LOOK_LOCKED, /* a write transaction that is never committed: works in a foreign PID namespace */
	CHANGE,
};

static enum store_rc
bad(struct env *env, const char *text)
{
	why_say(&env->map.error, "%s", text);
	return STORE_BAD;
}

static enum store_rc
usable(struct env *env)
{
	if (env->pid != getpid()) {
		why_say(&env->map.error,
		    "the store was opened by process %ld and used in its child %ld: open it after fork",
		    (long)env->pid, (long)getpid());
		return STORE_BAD;
	}
	if (env->inside)
		return bad(env, "a transaction was begun inside a transaction");
	return env->map.dead ? STORE_BAD : STORE_OK; /* the text is that of what killed it */
}

static int
begin(struct txn *txn, enum how how)
{
	int e = mdb_txn_begin(txn->env->map.mdb, NULL, how == LOOK ? MDB_RDONLY : 0, &txn->mdb);

	if (e != 0)
		return e;
	e = mdb_dbi_open(txn->mdb, NULL, MDB_INTEGERKEY, &txn->rows);
	if (e != 0)
		mdb_txn_abort(txn->mdb);
	else if (how == CHANGE)
		map_slack(&txn->env->map);
	return e;
}

static int
end(struct txn *txn, enum store_rc rc, enum how how)
{
	if (txn->failed == 0 && rc == STORE_OK && how == CHANGE)
		return mdb_txn_commit(txn->mdb);
	mdb_txn_abort(txn->mdb);
	return txn->failed;
}

/* Returns 0 with fn's answer in *rc_out, or what LMDB refused for good. */
static int
run(struct env *env, enum how how, env_fn *fn, void *arg, enum store_rc *rc_out)
{
	for (int tries = 0;; tries++) {
		struct txn txn = {.env = env};
		int e = begin(&txn, how);

		if (e == 0) {
			env->inside = true;
			*rc_out = fn(&txn, arg);
			e = end(&txn, *rc_out, how);
			env->inside = false;
		}
		if (e != 0)
			e = map_mend(&env->map, e, tries);
		else
			return 0;
		if (e != 0)
			return e;
	}
}

static enum store_rc
run_locked(struct env *env, enum how how, env_fn *fn, void *arg)
{
	enum store_rc rc = gate_enter(env->gate, GATE_WAIT_MS), fn_rc = STORE_OK;
	int e;

	if (rc != STORE_OK) {
		why_say(&env->map.error,
		    rc == STORE_BUSY
		        ? "the store was locked for more than 2 s: look for a stopped process ('%s')"
		        : "the front lock failed: end all processes, then start again ('%s')",
		    env->map.dir);
		return rc;
	}
	e = run(env, how, fn, arg, &fn_rc);
	gate_leave(env->gate);
	return e == 0 ? fn_rc : map_fail(&env->map, e);
}

enum store_rc
env_update(struct env *env, env_fn *fn, void *arg)
{
	enum store_rc rc = usable(env);

	return rc == STORE_OK ? run_locked(env, CHANGE, fn, arg) : rc;
}

enum store_rc
env_view(struct env *env, env_fn *fn, void *arg)
{
	enum store_rc rc = usable(env), fn_rc = STORE_OK;
	int e;

	if (rc != STORE_OK)
		return rc;
	e = run(env, LOOK, fn, arg, &fn_rc);
	if (e == 0)
		return fn_rc;
	/* our process id is taken in another PID namespace, or all reader slots are in use */
	if (e == EAGAIN || e == MDB_READERS_FULL)
		return run_locked(env, LOOK_LOCKED, fn, arg);
	return map_fail(&env->map, e);
}

static enum store_rc
header_read(struct txn *txn, void *arg)
{
	struct env_header *header = arg;
	struct env_bytes row;
	enum store_rc rc = txn_get(txn, key_of(KEY_HEADER, 0, 0), &row);

	if (rc == STORE_OK && row.n != sizeof *header)
		return STORE_NONE;
	if (rc == STORE_OK)
		memcpy(header, row.p, sizeof *header);
	return rc;
}

static enum store_rc
header_write(struct txn *txn, void *arg)
{
	return txn_put(txn, key_of(KEY_HEADER, 0, 0), arg, sizeof(struct env_header));
}

static enum store_rc
header_settle(struct env *env)
{
	struct env_header header = {.format = EPOCH_FORMAT};
	enum store_rc rc;

	if (env->epoch.fresh) {
		memcpy(header.uuid, env->epoch.uuid, sizeof header.uuid);
		return env_update(env, header_write, &header);
	}
	rc = env_view(env, header_read, &header);
	if (rc == STORE_NONE)
		return bad(env,
		    "live/data.mdb is no store of this program: put the right one back, or stop all "
		    "processes, move 'live' away and start again");
	if (rc != STORE_OK)
		return rc;
	if (header.format != EPOCH_FORMAT)
		return bad(env, "'live' has another format: use the program that made it");
	if (strncmp(header.uuid, env->epoch.uuid, sizeof header.uuid) != 0)
		return bad(env,
		    "'live' belongs to another store than 'epoch': put the files of one store together, or "
		    "stop all processes, move 'live' away and start again");
	return STORE_OK;
}

static enum store_rc
open_inside(struct env *env, struct store_why *notice)
{
	struct store_why *why = &env->map.error;
	enum store_rc rc = epoch_enter(env->map.dir, &env->epoch, why);

	if (rc != STORE_OK)
		return rc;
	if (env->epoch.set_aside)
		*notice = *why;
	/* without a boot id nothing tells whether `live` survived, so it must survive anything */
	env->map.durable = strcmp(env->epoch.boot, "-") == 0;
	rc = gate_open(env->map.dir, env->epoch.boot, env->epoch.alone, &env->gate, why);
	if (rc == STORE_OK)
		rc = map_open(&env->map, env->epoch.fresh);
	if (rc == STORE_OK)
		rc = header_settle(env);
	if (rc == STORE_OK)
		rc = epoch_ready(&env->epoch, why);
	env->open = rc == STORE_OK;
	return rc;
}

enum store_rc
env_open(
    const char *dir, uint64_t max_bytes, bool create, struct env **env_out, struct store_why *why)
{
	struct store_why notice;
	enum store_rc rc = disk_dir(dir, create, &notice);
	struct env *env;

	if (rc != STORE_OK) {
		why_say(why, "%s", notice.text);
		return rc;
	}
	env = calloc(1, sizeof *env);
	if (env == NULL ||
	    (size_t)snprintf(env->map.dir, sizeof env->map.dir, "%s", dir) >= sizeof env->map.dir) {
		why_say(why, env == NULL ? "out of memory" : "the path of state_dir is too long");
		free(env);
		return STORE_IO;
	}
	env->epoch.door = env->epoch.users = -1;
	env->pid = getpid();
	env->map.max_bytes = max_bytes & ~UINT64_C(0xffff); /* whole pages, whatever their size */
	rc = open_inside(env, &notice);
	why_say(why, "%s", rc == STORE_OK ? notice.text : env->map.error.text);
	if (rc != STORE_OK)
		env_close(&env);
	else
		*env_out = env;
	return rc;
}

void
env_close(struct env **env)
{
	struct env *e = *env;
	bool clean;

	if (e == NULL)
		return;
	*env = NULL;
	if (e->pid == getpid()) {
		/* an open that failed changed nothing in `live` */
		clean = e->open ? !e->map.dead : e->epoch.was_clean;
		if (clean && e->open)
			clean = epoch_last(&e->epoch) && mdb_env_sync(e->map.mdb, 1) == 0;
		map_close(&e->map);
		gate_close(&e->gate);
		if (epoch_leave(&e->epoch, clean, NULL) != STORE_OK)
			e->open = false; /* stays unclean: the safe side */
	}
	free(e);
}

const char *
env_error(const struct env *env)
{
	return env->map.error.text;
}

const char *
env_dir(const struct env *env)
{
	return env->map.dir;
}

const struct epoch *
env_epoch(const struct env *env)
{
	return &env->epoch;
}

uint32_t
txn_number(struct txn *txn)
{
	return (uint32_t)mdb_txn_id(txn->mdb);
}

struct env *
txn_env(struct txn *txn)
{
	return txn->env;
}

enum store_rc
env_size(struct env *env, struct env_size *size_out)
{
	enum store_rc rc = usable(env);
	MDB_stat st;
	int e;

	if (rc != STORE_OK)
		return rc;
	e = mdb_env_stat(env->map.mdb, &st);
	if (e != 0)
		return map_fail(&env->map, e);
	*size_out = (struct env_size){
	    .used_bytes =
	        (2 + st.ms_branch_pages + st.ms_leaf_pages + st.ms_overflow_pages) * st.ms_psize,
	    .map_bytes = env->map.bytes,
	    .max_bytes = env->map.max_bytes,
	};
	return STORE_OK;
}

enum store_rc
env_check(struct env *env)
{
	enum store_rc rc = usable(env);
	int dead, e;

	if (rc != STORE_OK)
		return rc;
	if (!map_is_ours(&env->map)) {
		env->map.dead = true;
		return bad(env,
		    "the files under 'live' were replaced while in use: stop all processes, then start again");
	}
	e = mdb_reader_check(env->map.mdb, &dead);
	return e == 0 ? STORE_OK : map_fail(&env->map, e);
}

static enum store_rc
row_rc(struct txn *txn, int e)
{
	if (e == 0)
		return STORE_OK;
	if (e == MDB_NOTFOUND)
		return STORE_NONE;
	if (txn->failed == 0)
		txn->failed = e;
	return e == MDB_MAP_FULL ? STORE_FULL : STORE_IO;
}

enum store_rc
txn_get(struct txn *txn, uint64_t key, struct env_bytes *row_out)
{
	MDB_val k = {sizeof key, &key}, v;
	int e = mdb_get(txn->mdb, txn->rows, &k, &v);

	if (e == 0)
		*row_out = (struct env_bytes){v.mv_data, v.mv_size};
	return row_rc(txn, e);
}

enum store_rc
txn_put(struct txn *txn, uint64_t key, const void *row, size_t n)
{
	MDB_val k = {sizeof key, &key}, v;
	int e;

	/* LMDB only reads it */
	v = (MDB_val){n, (void *)(uintptr_t)row};
	e = mdb_put(txn->mdb, txn->rows, &k, &v, 0);
	return row_rc(txn, e);
}

enum store_rc
txn_del(struct txn *txn, uint64_t key)
{
	MDB_val k = {sizeof key, &key};
	int e = mdb_del(txn->mdb, txn->rows, &k, NULL);

	return e == MDB_NOTFOUND ? STORE_OK : row_rc(txn, e);
}

enum store_rc
txn_walk(struct txn *txn, uint64_t first, uint64_t last, env_row_fn *fn, void *arg)
{
	uint64_t key = first;
	MDB_val k = {sizeof key, &key}, v;
	enum store_rc rc = STORE_OK;
	MDB_cursor *cursor;
	int e = mdb_cursor_open(txn->mdb, txn->rows, &cursor);

	if (e != 0)
		return row_rc(txn, e);
	e = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
	while (e == 0 && rc == STORE_OK) {
		memcpy(&key, k.mv_data, sizeof key);
		if (key > last)
			break;
		rc = fn(key, (struct env_bytes){v.mv_data, v.mv_size}, arg);
		if (rc == STORE_OK)
			e = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
	}
	mdb_cursor_close(cursor);
	return rc != STORE_OK || e == MDB_NOTFOUND ? rc : row_rc(txn, e);
}
