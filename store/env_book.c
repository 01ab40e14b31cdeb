#include "store/env_body.h"

#include "store/disk.h"
#include "store/seal.h"
#include "store/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW "book.new"
#define DAMAGED "book.damaged."
#define NOTE_MAGIC "sluiceB1"
#define PATH_BYTES 4096
#define FAILED_WAIT_MS 100
#define CHANGE_WAIT_MS 5000 /* what is not kept is lost: a slow disk has more time */
#define QUEUE_WAIT_MS 10000

/* What `book.lock` holds, and behind it how often the lock was taken. A note of another `live` or another boot says
 * nothing. */
struct note_file {
	char magic[8];
	char uuid[40], boot[64];
	struct env_note note;
};
_Static_assert(sizeof(struct note_file) == 136, "note_file has no padding");

static enum store_rc
say(struct env *env, const char *what, int e)
{
	bool full = e == ENOSPC || e == EDQUOT;

	why_say(&env->error, "%s: %s%s ('%s')", what, strerror(e),
	    full                        ? ": free disk space"
	    : e == EACCES || e == EROFS ? ": all files in state_dir must belong to this user, on a "
	                                  "writable disk"
	                                : "",
	    env->dir);
	return full ? STORE_FULL : STORE_IO;
}

static const char *
path_of(const struct env *env, const char *rest, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%s", env->dir, rest);
	return path;
}

static bool
is_there(const struct env *env, const char *name)
{
	char path[PATH_BYTES];
	struct stat st;

	return lstat(path_of(env, name, path), &st) == 0;
}

/* ---- the lock and the note in it ---- */

static uint64_t
turns(const struct env *env)
{
	uint64_t n = 0;

	if (pread(env->book_lock, &n, sizeof n, sizeof(struct note_file)) != (ssize_t)sizeof n)
		return 0;
	return n;
}

static void
count_turn(const struct env *env)
{
	uint64_t n = turns(env) + 1;

	if (pwrite(env->book_lock, &n, sizeof n, sizeof(struct note_file)) < 0)
		return; /* then nobody waits longer than for one */
}

/* The limit is meant for one holder: behind many that do their work there is more time. */
static enum store_rc
take_turn(const struct env *env, int64_t wait_ms)
{
	enum store_rc rc;
	int64_t waited = 0;
	uint64_t before;

	do {
		before = turns(env);
		rc = gate_flock(env->book_lock, LOCK_EX, wait_ms);
		waited += wait_ms;
	} while (rc == STORE_BUSY && wait_ms > 0 && waited < QUEUE_WAIT_MS && turns(env) != before);
	if (rc == STORE_OK)
		count_turn(env);
	return rc;
}

enum store_rc
env_book_lock(struct env *env, int64_t wait_ms)
{
	enum store_rc rc = env_usable(env);
	char path[PATH_BYTES];

	if (rc != STORE_OK)
		return rc;
	if (env->book_lock < 0)
		env->book_lock = open(path_of(env, "book.lock", path),
		    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (env->book_lock < 0)
		return say(env, "cannot open 'book.lock'", errno);
	rc = take_turn(env, wait_ms);
	if (rc == STORE_BUSY)
		why_say(&env->error,
		    "'book' is locked by another process: look for a stopped one, or a slow disk ('%s')",
		    env->dir);
	return rc == STORE_IO ? say(env, "cannot lock 'book.lock'", errno) : rc;
}

void
env_book_unlock(struct env *env)
{
	flock(env->book_lock, LOCK_UN);
}

static bool
note_read(struct env *env, struct note_file *file)
{
	return env->book_lock >= 0 &&
	       pread(env->book_lock, file, sizeof *file, 0) == (ssize_t)sizeof *file &&
	       memcmp(file->magic, NOTE_MAGIC, sizeof file->magic) == 0 &&
	       strncmp(file->boot, env->epoch.boot, sizeof file->boot) == 0;
}

void
env_note_get(struct env *env, struct env_note *note_out)
{
	struct note_file file;

	if (note_read(env, &file) && strncmp(file.uuid, env->epoch.uuid, sizeof file.uuid) == 0)
		*note_out = file.note;
	else
		*note_out = (struct env_note){.txn = 0};
}

void
env_note_put(struct env *env, const struct env_note *note)
{
	struct note_file file = {.magic = NOTE_MAGIC, .note = *note};

	memcpy(file.uuid, env->epoch.uuid, sizeof file.uuid);
	memcpy(file.boot, env->epoch.boot, sizeof file.boot);
	if (env->book_lock < 0)
		return;
	if (pwrite(env->book_lock, &file, sizeof file, 0) != (ssize_t)sizeof file &&
	    ftruncate(env->book_lock, 0) != 0)
		return;
}

/* ---- the files ---- */

static bool
row_holds(uint64_t key, const void *row, size_t n, void *arg)
{
	bool *is_ours = arg;
	struct env_header header;

	if (key == key_of(KEY_HEADER, 0, 0) && n == sizeof header + SEAL_BYTES) {
		memcpy(&header, row, sizeof header);
		*is_ours = header.format == EPOCH_FORMAT;
	}
	return seal_holds(key, row, n);
}

static enum store_rc
file_check(struct env *env, int fd, bool whole)
{
	bool is_ours = false;
	struct disk_data data;
	enum store_rc rc = disk_data(fd, "book", &data, &env->error);

	if (rc == STORE_NONE)
		return env_bad(env, "the store is damaged: book/data.mdb is empty");
	if (rc == STORE_IO || (rc == STORE_OK && !whole))
		return rc;
	/* what looks cut may only lack pages that nothing refers to */
	rc = verify_file(fd, "book", row_holds, &is_ours, &env->error);
	if (rc == STORE_OK && !is_ours)
		return env_bad(env, "book/data.mdb is no store of this program");
	return rc;
}

/* STORE_NONE: there is no `book`. */
static enum store_rc
book_check(struct env *env, bool whole)
{
	char path[PATH_BYTES];
	int fd = open(path_of(env, "book/data.mdb", path), O_RDONLY | O_CLOEXEC);
	enum store_rc rc;

	if (fd < 0 && errno == ENOENT)
		return is_there(env, "book")
		           ? env_bad(env, "the store is damaged: book/data.mdb is missing")
		           : STORE_NONE;
	if (fd < 0)
		return say(env, "cannot open 'book'", errno);
	rc = file_check(env, fd, whole);
	close(fd);
	return rc;
}

static bool
folder_sync(const struct env *env, const char *name)
{
	char path[PATH_BYTES];
	int fd = open(path_of(env, name, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Remove `name` and the two files that LMDB makes in it. */
static void
folder_remove(const struct env *env, const char *name)
{
	char path[PATH_BYTES];
	int fd = open(path_of(env, name, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	unlinkat(fd, "data.mdb", 0);
	unlinkat(fd, "lock.mdb", 0);
	close(fd);
	rmdir(path);
}

static void
damaged_remove(const struct env *env)
{
	DIR *d = opendir(env->dir);

	if (d == NULL)
		return;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (strncmp(e->d_name, DAMAGED, strlen(DAMAGED)) == 0)
			folder_remove(env, e->d_name);
	closedir(d);
}

/* Put the new `book` in the place of a damaged one: at no moment there is none, where the file system can swap. */
static bool
replace_damaged(const struct env *env)
{
	char old[PATH_BYTES], new[PATH_BYTES], aside[PATH_BYTES], name[64];
	struct stat st;

	if (stat(path_of(env, "book/data.mdb", old), &st) != 0)
		st.st_mtime = 0;
	snprintf(name, sizeof name, DAMAGED "%lld", (long long)st.st_mtime);
	damaged_remove(env);
	path_of(env, "book", old);
	path_of(env, NEW, new);
	path_of(env, name, aside);
	if (renameat2(AT_FDCWD, new, AT_FDCWD, old, RENAME_EXCHANGE) == 0)
		return rename(new, aside) == 0;
	return rename(old, aside) == 0 && rename(new, old) == 0;
}

static bool
put_in_place(const struct env *env)
{
	char from[PATH_BYTES], to[PATH_BYTES];

	return folder_sync(env, NEW) &&
	       (is_there(env, "book")
	               ? replace_damaged(env)
	               : rename(path_of(env, NEW, from), path_of(env, "book", to)) == 0) &&
	       folder_sync(env, ".");
}

static enum store_rc
open_as(struct env *env, const char *name, bool fresh)
{
	enum store_rc rc;

	env->book.name = name;
	rc = map_open(&env->book, fresh);
	if (rc != STORE_OK)
		map_close(&env->book);
	return rc;
}

static bool
is_good(const struct env *env)
{
	return !env->book.dead && !env->book_suspect && map_is_ours(&env->book);
}

enum store_rc
env_book_have(struct env *env, bool make)
{
	struct note_file file;
	bool whole = env->book_suspect;
	enum store_rc rc;

	if (env->book.mdb != NULL && is_good(env))
		return STORE_OK;
	map_close(&env->book);
	/* once after each boot: within one, what was read once stays as it is in the page cache */
	rc = book_check(env, whole || !note_read(env, &file));
	if (rc == STORE_OK)
		rc = open_as(env, "book", false);
	if (rc == STORE_OK)
		env->book_suspect = false;
	if ((rc != STORE_NONE && rc != STORE_BAD) || !make)
		return rc;
	folder_remove(env, NEW);
	return open_as(env, NEW, true);
}

enum store_rc
env_book_done(struct env *env)
{
	if (strcmp(env->book.name, NEW) != 0)
		return STORE_OK;
	if (!put_in_place(env)) {
		enum store_rc rc = say(env, "cannot finish a new 'book'", errno);

		map_close(&env->book);
		return rc;
	}
	env->book.name = "book";
	env->book_suspect = false;
	return STORE_OK;
}

enum store_rc
env_book_sound(struct env *env)
{
	enum store_rc rc = book_check(env, true);

	return rc == STORE_OK ? open_as(env, "book", false) : rc;
}

/* ---- transactions ---- */

static enum store_rc
run_held(struct env *env, bool change, env_fn *fn, void *arg)
{
	enum store_rc rc = env_book_have(env, false);

	if (rc == STORE_OK)
		rc = env_run(env, &env->book, change, fn, arg);
	if (rc == STORE_BAD)
		env->book_suspect = true;
	return rc;
}

/* Where saving fails already, as behind a stopped process, no request waits long for the same. */
static int64_t
patience(struct env *env, bool change)
{
	struct env_note note;

	env_note_get(env, &note);
	return note.failed ? FAILED_WAIT_MS : change ? CHANGE_WAIT_MS : GATE_WAIT_MS;
}

static enum store_rc
book_run(struct env *env, bool change, env_fn *fn, void *arg)
{
	enum store_rc rc = env_book_lock(env, patience(env, change));

	if (rc != STORE_OK)
		return rc;
	rc = run_held(env, change, fn, arg);
	env_book_unlock(env);
	return rc;
}

enum store_rc
env_book_update_held(struct env *env, env_fn *fn, void *arg)
{
	return run_held(env, true, fn, arg);
}

enum store_rc
env_book_update(struct env *env, env_fn *fn, void *arg)
{
	return book_run(env, true, fn, arg);
}

enum store_rc
env_book_view(struct env *env, env_fn *fn, void *arg)
{
	return book_run(env, false, fn, arg);
}
