#include "store/env_body.h"

#include "store/book.h"
#include "store/disk.h"
#include "store/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVE_START_BYTES (UINT64_C(64) << 20) /* store.md decision 7 */
#define BOOK_START_BYTES (UINT64_C(16) << 20)
#define BAD_MAX 160

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

/* *foreign_out: it is sound, but of another program version. */
static enum store_rc
header_check(struct env *env, bool *foreign_out)
{
	struct env_header header = {.format = EPOCH_FORMAT};
	enum store_rc rc = env_view(env, header_read, &header);

	if (rc == STORE_NONE)
		return env_bad(env,
		    "live/data.mdb is no store of this program: put the right one back, or stop all "
		    "processes, move 'live' away and start again");
	if (rc != STORE_OK)
		return rc;
	*foreign_out = header.format != EPOCH_FORMAT;
	if (*foreign_out)
		return env_bad(env, "'live' has another format: use the program that made it");
	if (strncmp(header.uuid, env->epoch.uuid, sizeof header.uuid) != 0)
		return env_bad(env,
		    "'live' belongs to another store than 'epoch': put the files of one store together, or "
		    "stop all processes, move 'live' away and start again");
	return STORE_OK;
}

/* The machine may have been down since it was closed, and the file copied: look before LMDB does. */
static enum store_rc
live_sound(struct env *env)
{
	char path[4096];
	struct disk_data data;
	enum store_rc rc = STORE_OK;
	int fd;

	snprintf(path, sizeof path, "%s/live/data.mdb", env->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return STORE_OK; /* opening it says why */
	if (disk_data(fd, "live", &data, &env->error) == STORE_OK)
		rc = verify_file(fd, "live", NULL, NULL, &env->error);
	close(fd);
	return rc;
}

static enum store_rc
live_open(struct env *env, bool *foreign_out)
{
	enum store_rc rc = env->epoch.was_clean ? live_sound(env) : STORE_OK;

	if (rc == STORE_OK)
		rc = map_open(&env->live, false);
	if (rc == STORE_OK)
		rc = header_check(env, foreign_out);
	return rc;
}

/* A new `live`, from `book` where it is open. */
static enum store_rc
live_make(struct env *env)
{
	struct env_header header = {.format = EPOCH_FORMAT};
	enum store_rc rc = map_open(&env->live, true);

	memcpy(header.uuid, env->epoch.uuid, sizeof header.uuid);
	if (rc == STORE_OK)
		rc = env_update(env, header_write, &header);
	if (rc == STORE_OK && env->book.mdb != NULL)
		rc = env_restore(env, book_restore, NULL);
	return rc;
}

static enum store_rc
both_bad(struct env *env, const char *live_bad)
{
	struct store_why why = env->error;

	why_say(&env->error,
	    "neither 'live' nor 'book' can be used: restore a snapshot, or stop all processes and move "
	    "both away to begin with nothing; 'live': %.70s; 'book': %.80s",
	    live_bad, why.text);
	return STORE_BAD;
}

/* What the log is told of a new `live`. */
static void
tell_rebuilt(const struct env *env, const char *reason, bool from_book, struct store_why *notice)
{
	if (from_book || env->epoch.aside[0] != '\0')
		why_say(notice, "'live' was made anew%s: %s%s%s", from_book ? " from 'book'" : "",
		    reason, env->epoch.aside[0] == '\0' ? "" : "; the old one is kept as ",
		    env->epoch.aside);
}

/* `bad`: why `live` cannot be used although it was to be kept, or "". */
static enum store_rc
rebuild(struct env *env, const char *bad, struct store_why *notice)
{
	bool is_bad = bad[0] != '\0', unclean = env->epoch.fate == EPOCH_ASIDE;
	const char *reason = is_bad    ? bad
	                     : unclean ? "the machine went down without a clean end"
	                               : "it is missing or was never finished";
	enum store_rc found = env_book_sound(env), rc;

	if (found == STORE_BAD)
		return both_bad(env, reason);
	if (found == STORE_NONE && is_bad)
		return env_bad(env, bad);
	if (found != STORE_OK && found != STORE_NONE)
		return found;
	rc = epoch_anew(&env->epoch, is_bad || unclean, &env->error);
	if (rc == STORE_OK)
		rc = live_make(env);
	if (rc == STORE_OK)
		tell_rebuilt(env, reason, found == STORE_OK, notice);
	return rc;
}

static enum store_rc
live_or_rebuild(struct env *env, struct store_why *notice)
{
	char bad[BAD_MAX] = "";
	bool foreign = false;
	enum store_rc rc;

	if (env->epoch.fate == EPOCH_KEEP) {
		rc = live_open(env, &foreign);
		if (rc != STORE_BAD || foreign || !env->epoch.alone)
			return rc;
		map_close(&env->live);
		snprintf(bad, sizeof bad, "%.*s", BAD_MAX - 1, env->error.text);
	}
	return rebuild(env, bad, notice);
}

static enum store_rc
open_inside(struct env *env, struct store_why *notice)
{
	struct store_why *why = &env->error;
	enum store_rc rc = epoch_enter(env->dir, &env->epoch, why);

	if (rc != STORE_OK)
		return rc;
	/* without a boot id nothing tells whether `live` survived, so it must survive anything */
	if (strcmp(env->epoch.boot, "-") == 0)
		env->live.sync = MAP_SYNC_DATA;
	rc = gate_open(env->dir, env->epoch.boot, env->epoch.alone, &env->gate, why);
	if (rc == STORE_OK)
		rc = live_or_rebuild(env, notice);
	if (rc == STORE_OK)
		rc = epoch_ready(&env->epoch, why);
	env->open = rc == STORE_OK;
	return rc;
}

static struct env *
env_new(const char *dir, uint64_t max_bytes, struct store_why *why)
{
	struct env *env = calloc(1, sizeof *env);

	if (env == NULL ||
	    (size_t)snprintf(env->dir, sizeof env->dir, "%s", dir) >= sizeof env->dir) {
		why_say(why, env == NULL ? "out of memory" : "the path of state_dir is too long");
		free(env);
		return NULL;
	}
	env->epoch.door = env->epoch.users = env->book_lock = -1;
	env->pid = getpid();
	env->live = env->book = (struct map){
	    .dir = env->dir,
	    .error = &env->error,
	    .max_bytes = max_bytes & ~UINT64_C(0xffff), /* whole pages, whatever their size */
	    .start_bytes = LIVE_START_BYTES,
	};
	env->live.name = "live";
	env->book.name = "book";
	env->book.sync = MAP_SYNC_ALL;
	env->book.loose = true;
	env->book.start_bytes = BOOK_START_BYTES;
	return env;
}

/* A small store is enough for most; who has more accounts must hear of it before it is full. */
static void
tell_small(const struct env *env, struct store_why *notice)
{
	if (notice->text[0] == '\0' && env->live.bytes < env->live.want_bytes &&
	    env->live.bytes < LIVE_START_BYTES)
		why_say(notice,
		    "addresses are short, the store has room for %llu MiB instead of %llu: raise 'ulimit -v'",
		    (unsigned long long)(env->live.bytes >> 20),
		    (unsigned long long)(env->live.want_bytes >> 20));
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
	env = env_new(dir, max_bytes, why);
	if (env == NULL)
		return STORE_IO;
	rc = open_inside(env, &notice);
	if (rc == STORE_OK)
		tell_small(env, &notice);
	why_say(why, "%s", rc == STORE_OK ? notice.text : env->error.text);
	if (rc != STORE_OK)
		env_close(&env);
	else
		*env_out = env;
	return rc;
}

/* The last user leaves everything on the disk. */
static bool
end_clean(struct env *env)
{
	if (env->live.dead || !epoch_last(&env->epoch))
		return false;
	/* a `book` that cannot be written does not make a synced `live` worse */
	(void)!book_save_all(env, &(struct book_report){.rows = 0});
	return mdb_env_sync(env->live.mdb, 1) == 0;
}

static void
leave(struct env *e, bool wait)
{
	if (e->pid == getpid()) {
		/* an open that failed changed nothing in `live` */
		bool clean = e->open ? wait && end_clean(e) : e->epoch.was_clean;

		map_close(&e->book);
		map_close(&e->live);
		gate_close(&e->gate);
		if (e->book_lock >= 0)
			close(e->book_lock);
		if (epoch_leave(&e->epoch, clean, NULL) != STORE_OK)
			e->open = false; /* stays unclean: the safe side */
	}
	free(e);
}

void
env_close(struct env **env)
{
	struct env *e = *env;

	*env = NULL;
	if (e != NULL)
		leave(e, true);
}

void
env_drop(struct env **env)
{
	struct env *e = *env;

	*env = NULL;
	if (e != NULL)
		leave(e, false);
}
