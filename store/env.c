#include "store/env.h"

#include "store/env_body.h"

#include <errno.h>
#include <unistd.h>

enum how {
	LOOK,        /* a read transaction */
	LOOK_LOCKED, /* a write transaction that is never committed: works in a foreign PID namespace */
	CHANGE,
};

void
env_say(struct env *env, const char *text)
{
	why_say(&env->error, "%s", text);
}

enum store_rc
env_bad(struct env *env, const char *text)
{
	env_say(env, text);
	return STORE_BAD;
}

enum store_rc
env_usable(struct env *env)
{
	if (env->pid != getpid()) {
		why_say(&env->error,
		    "the store was opened by process %ld and used in its child %ld: open it after fork",
		    (long)env->pid, (long)getpid());
		return STORE_BAD;
	}
	if (env->inside)
		return env_bad(env, "a transaction was begun inside a transaction");
	return env->live.dead ? STORE_BAD : STORE_OK; /* the text is that of what killed it */
}

static int
begin(struct txn *txn, enum how how)
{
	int e = mdb_txn_begin(txn->map->mdb, NULL, how == LOOK ? MDB_RDONLY : 0, &txn->mdb);

	if (e != 0)
		return e;
	txn->looks = how != CHANGE;
	txn->sealed = txn->map == &txn->env->book;
	e = mdb_dbi_open(txn->mdb, NULL, MDB_INTEGERKEY, &txn->rows);
	if (e != 0)
		mdb_txn_abort(txn->mdb);
	else if (how == CHANGE)
		map_slack(txn->map);
	return e;
}

static int
end(struct txn *txn, enum store_rc rc)
{
	if (txn->failed == 0 && rc == STORE_OK && !txn->looks)
		return mdb_txn_commit(txn->mdb);
	mdb_txn_abort(txn->mdb);
	return txn->failed;
}

/*
 * A process that dies between writing what it commits and telling of it, which on a slow disk is a while, leaves that to
 * the next writer: a look would miss it. Of `book`, whose lock we hold: nobody else is just about to tell.
 */
static bool
is_behind(const struct txn *txn)
{
	MDB_envinfo info;

	return txn->sealed && mdb_env_info(txn->map->mdb, &info) == 0 &&
	       info.me_last_txnid > mdb_txn_id(txn->mdb);
}

/* Returns 0 with fn's answer in *rc_out, or what LMDB refused for good. */
static int
run(struct env *env, struct map *map, enum how how, env_fn *fn, void *arg, enum store_rc *rc_out)
{
	for (int tries = 0;; tries++) {
		struct txn txn = {.env = env, .map = map};
		int e = begin(&txn, how);

		if (e == 0 && how == LOOK && is_behind(&txn)) {
			mdb_txn_abort(txn.mdb);
			how = LOOK_LOCKED;
			e = begin(&txn, how);
		}
		if (e == 0) {
			env->inside = true;
			*rc_out = fn(&txn, arg);
			e = end(&txn, *rc_out);
			env->inside = false;
		}
		if (e != 0)
			e = map_mend(map, e, tries);
		else
			return 0;
		if (e != 0)
			return e;
	}
}

static enum store_rc
front_enter(struct env *env)
{
	enum store_rc rc = gate_enter(env->gate, GATE_WAIT_MS);

	if (rc != STORE_OK)
		why_say(&env->error,
		    rc == STORE_BUSY
		        ? "the store was locked for more than 2 s: look for a stopped process ('%s')"
		        : "the front lock failed: end all processes, then start again ('%s')",
		    env->dir);
	return rc;
}

static enum store_rc
run_locked(struct env *env, struct map *map, enum how how, env_fn *fn, void *arg)
{
	enum store_rc rc = map == &env->live ? front_enter(env) : STORE_OK, fn_rc = STORE_OK;
	int e;

	if (rc != STORE_OK)
		return rc;
	e = run(env, map, how, fn, arg, &fn_rc);
	if (map == &env->live)
		gate_leave(env->gate);
	return e == 0 ? fn_rc : map_fail(map, e);
}

/* Our process id is taken in another PID namespace, or all reader slots are in use. */
static bool
no_reader(int e)
{
	return e == EAGAIN || e == MDB_READERS_FULL;
}

enum store_rc
env_run(struct env *env, struct map *map, bool change, env_fn *fn, void *arg)
{
	enum store_rc fn_rc = STORE_OK;
	int e;

	if (change)
		return run_locked(env, map, CHANGE, fn, arg);
	e = run(env, map, LOOK, fn, arg, &fn_rc);
	if (e == 0)
		return fn_rc;
	return no_reader(e) ? run_locked(env, map, LOOK_LOCKED, fn, arg) : map_fail(map, e);
}

enum store_rc
env_update(struct env *env, env_fn *fn, void *arg)
{
	enum store_rc rc = env_usable(env);

	return rc == STORE_OK ? env_run(env, &env->live, true, fn, arg) : rc;
}

enum store_rc
env_view(struct env *env, env_fn *fn, void *arg)
{
	enum store_rc rc = env_usable(env);

	return rc == STORE_OK ? env_run(env, &env->live, false, fn, arg) : rc;
}

/* ---- both at once ---- */

/* One look beside one change; the look ends before the change is committed. */
struct pair {
	struct env *env;
	struct txn from, to;
	env_both_fn *fn;
	void *arg;
	bool locked; /* look with a write transaction */
	enum store_rc rc;
};

static enum store_rc
pair_call(struct pair *p)
{
	return p->to.sealed ? p->fn(&p->from, &p->to, p->arg) : p->fn(&p->to, &p->from, p->arg);
}

/* What `book` gets must not outlast what `live` has. */
static int
sync_first(const struct pair *p)
{
	return p->to.sealed && p->rc == STORE_OK && p->from.map->sync == MAP_SYNC_DATA
	           ? mdb_env_sync(p->from.map->mdb, 1)
	           : 0;
}

/* Returns what LMDB refused, with the map that it was in *map_out. */
static int
pair_once(struct pair *p, struct map **map_out)
{
	int e = begin(&p->to, CHANGE);

	*map_out = p->to.map;
	if (e != 0)
		return e;
	e = begin(&p->from, p->locked ? LOOK_LOCKED : LOOK);
	if (e != 0) {
		*map_out = p->from.map;
		mdb_txn_abort(p->to.mdb);
		return e;
	}
	p->env->inside = true;
	p->rc = pair_call(p);
	p->env->inside = false;
	e = end(&p->from, STORE_NONE);
	if (p->locked)
		gate_leave(p->env->gate); /* before the disk is waited for */
	if (e == 0)
		e = sync_first(p);
	if (e != 0) {
		*map_out = p->from.map;
		mdb_txn_abort(p->to.mdb);
		return e;
	}
	e = end(&p->to, p->rc);
	if (e == 0)
		map_slack(p->to.map);
	return e;
}

static enum store_rc
pair_run(struct env *env, struct map *from, struct map *to, env_both_fn *fn, void *arg)
{
	bool locked = false;

	for (int tries = 0;; tries++) {
		struct pair p = {.env = env,
		    .from = {.env = env, .map = from},
		    .to = {.env = env, .map = to},
		    .fn = fn,
		    .arg = arg,
		    .locked = locked};
		struct map *map;
		enum store_rc rc = locked ? front_enter(env) : STORE_OK;
		int e;

		if (rc != STORE_OK)
			return rc;
		e = pair_once(&p, &map);
		gate_leave(env->gate);
		if (e == 0)
			return p.rc;
		if (map == from && !locked && no_reader(e)) {
			locked = true;
			continue;
		}
		e = map_mend(map, e, tries);
		if (e != 0)
			return map_fail(map, e);
	}
}

enum store_rc
env_save(struct env *env, env_both_fn *fn, void *arg)
{
	enum store_rc rc = env_usable(env);

	if (rc == STORE_OK)
		rc = env_book_have(env, true);
	if (rc != STORE_OK)
		return rc;
	rc = pair_run(env, &env->live, &env->book, fn, arg);
	if (rc == STORE_BAD)
		env->book_suspect = true;
	return rc == STORE_OK ? env_book_done(env) : rc;
}

enum store_rc
env_restore(struct env *env, env_both_fn *fn, void *arg)
{
	return pair_run(env, &env->book, &env->live, fn, arg);
}

const char *
env_error(const struct env *env)
{
	return env->error.text;
}

const char *
env_dir(const struct env *env)
{
	return env->dir;
}

const struct epoch *
env_epoch(const struct env *env)
{
	return &env->epoch;
}

uint32_t *
env_words(struct env *env)
{
	return gate_words(env->gate);
}

uint64_t
env_newest(struct env *env)
{
	MDB_envinfo info;

	if (env_usable(env) != STORE_OK || mdb_env_info(env->live.mdb, &info) != 0)
		return 0;
	return info.me_last_txnid;
}

enum store_rc
env_size(struct env *env, struct env_size *size_out)
{
	enum store_rc rc = env_usable(env);
	MDB_stat st;
	int e;

	if (rc != STORE_OK)
		return rc;
	e = mdb_env_stat(env->live.mdb, &st);
	if (e != 0)
		return map_fail(&env->live, e);
	*size_out = (struct env_size){
	    .used_bytes =
	        (2 + st.ms_branch_pages + st.ms_leaf_pages + st.ms_overflow_pages) * st.ms_psize,
	    .map_bytes = env->live.bytes,
	    .max_bytes = env->live.max_bytes,
	};
	return STORE_OK;
}

enum store_rc
env_check(struct env *env)
{
	enum store_rc rc = env_usable(env);
	int dead, e;

	if (rc != STORE_OK)
		return rc;
	if (!map_is_ours(&env->live)) {
		env->live.dead = true;
		return env_bad(env,
		    "the files under 'live' were replaced while in use: stop all processes, then start again");
	}
	e = mdb_reader_check(env->live.mdb, &dead);
	return e == 0 ? STORE_OK : map_fail(&env->live, e);
}
