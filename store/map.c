#include "store/map.h"

#include "store/disk.h"
#include "store/why.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READERS_MAX 512  /* store.md decision 8; only the first opener's value counts */
#define LOCK_BYTES 40960 /* enough for lock.mdb with READERS_MAX */
#define TRIES_MAX 64
#define PATH_BYTES 4096

/* The file is kept this many pages longer than used (a hole, no blocks): LMDB does not write a page that one
 * transaction both added and freed, so without slack a whole file may look cut. */
#define SLACK_PAGES 256

#define GRAIN_BYTES UINT64_C(0x10000) /* whole pages, whatever their size */
#define LEAST_BYTES (UINT64_C(1) << 20)
#define RESERVE_BYTES (UINT64_C(32) << 20) /* bodies, TLS, the stack of a resolver's thread */

_Static_assert(sizeof(size_t) == 8, "8-byte integer keys need a 64-bit machine");

enum store_rc
map_fail(struct map *map, int e)
{
	const char *text = mdb_strerror(e);
	struct store_why *why = map->error;

	switch (e) {
	case MDB_MAP_FULL:
		why_say(why, "the store is full at %llu MiB: raise store.max_size",
		    (unsigned long long)(map->bytes >> 20));
		return STORE_FULL;
	case ENOSPC:
	case EDQUOT:
		why_say(
		    why, "%s: free disk space; nothing committed is lost ('%s')", text, map->dir);
		return STORE_FULL;
	case EIO:
	case EFBIG:
		why_say(why,
		    "%s: the disk is full or faulty, or a file size limit (ulimit -f) is too low ('%s')",
		    text, map->dir);
		return STORE_IO;
	case EACCES:
	case EPERM:
	case EROFS:
		why_say(why,
		    "%s: all files in state_dir must belong to this user, on a writable disk ('%s')",
		    text, map->dir);
		return STORE_IO;
	case ENOMEM:
		why_say(why, "no address space for a map of %llu MiB: raise 'ulimit -v'",
		    (unsigned long long)(map->want_bytes >> 20));
		return STORE_IO;
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_PANIC:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
		why_say(why, "%s: stop all processes, move '%s/%s' away, start again", text,
		    map->dir, map->name);
		return STORE_BAD;
	default: why_say(why, "%s ('%s')", text, map->dir); return STORE_IO;
	}
}

static const char *
path_of(const struct map *map, const char *rest, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%s%s", map->dir, map->name, rest);
	return path;
}

static bool
file_id(const struct map *map, const char *rest, struct map_file *id_out)
{
	char path[PATH_BYTES];
	struct stat st;

	if (stat(path_of(map, rest, path), &st) != 0)
		return false;
	*id_out = (struct map_file){st.st_dev, st.st_ino};
	return true;
}

/* Look at data.mdb before LMDB maps it. */
static enum store_rc
data_check(struct map *map, bool fresh, struct disk_data *data_out)
{
	char path[PATH_BYTES];
	int fd = open(path_of(map, "/data.mdb", path), O_RDONLY | O_CLOEXEC);
	enum store_rc rc = STORE_NONE;

	if (fd < 0 && errno != ENOENT)
		return map_fail(map, errno);
	if (fd >= 0) {
		rc = map->loose ? disk_heads(fd, map->name, data_out, map->error)
		                : disk_data(fd, map->name, data_out, map->error);
		close(fd);
	}
	if (rc == STORE_NONE && fresh) {
		*data_out = (struct disk_data){.map_bytes = 0};
		return STORE_OK;
	}
	if (rc == STORE_NONE) {
		why_say(map->error,
		    "%s/data.mdb is empty or missing although a store was there: put a copy back, "
		    "or stop all processes, move '%s' away and start again",
		    map->name, map->name);
		return STORE_BAD;
	}
	return rc;
}

static unsigned
sync_flags(enum map_sync sync)
{
	switch (sync) {
	case MAP_SYNC_NONE: return MDB_NOSYNC;
	case MAP_SYNC_DATA: return MDB_NOMETASYNC;
	case MAP_SYNC_ALL: break;
	}
	return 0;
}

/* LMDB makes lock.mdb longer and writes into it through a map: without blocks, on a full disk, that is a SIGBUS. */
static int
lock_blocks(int fd)
{
	static const char zero[LOCK_BYTES];
	struct stat st;

	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOCK_BYTES) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return errno;
	if (fstat(fd, &st) != 0)
		return errno;
	errno = ENOSPC; /* what a short write means */
	return st.st_size > 0 || pwrite(fd, zero, sizeof zero, 0) == (ssize_t)sizeof zero ? 0
	                                                                                  : errno;
}

/* Only while LMDB has it not open: closing any descriptor of it lets go of this process's locks. */
static int
lock_fill(const struct map *map)
{
	char path[PATH_BYTES];
	int e, fd = open(path_of(map, "/lock.mdb", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	e = lock_blocks(fd);
	close(fd);
	return e;
}

static int
handle_open(struct map *map)
{
	/* NOTLS: a reader slot is given back after each look, else the 513th worker would have none */
	unsigned flags = MDB_NOTLS | sync_flags(map->sync);
	char path[PATH_BYTES];
	int e = lock_fill(map), fd;

	if (e == 0)
		e = mdb_env_create(&map->mdb);
	if (e != 0)
		return e;
	e = mdb_env_set_maxreaders(map->mdb, READERS_MAX);
	if (e == 0)
		e = mdb_env_set_mapsize(map->mdb, map->bytes);
	if (e == 0)
		e = mdb_env_open(map->mdb, path_of(map, "", path), flags, 0600);
	if (e == 0)
		e = mdb_env_get_fd(map->mdb, &fd);
	if (e == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		e = errno;
	if (e != 0) {
		mdb_env_close(map->mdb);
		map->mdb = NULL;
	}
	return e;
}

static uint64_t
map_start(const struct map *map, uint64_t existing)
{
	uint64_t start = map->start_bytes < map->max_bytes ? map->start_bytes : map->max_bytes;

	return existing > start ? existing : start;
}

/* Are there addresses for so much more? A failed remap would leave LMDB without a map, so ask first. */
static bool
room_for(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, bytes);
	return true;
}

/* The least that serves: what is used, and a little to write into. */
static uint64_t
map_least(const struct map *map, const struct disk_data *data)
{
	uint64_t used = (data->last_page + 1) * data->page_bytes;
	uint64_t least = used + (used / 8 < LEAST_BYTES ? LEAST_BYTES : used / 8);

	least = (least + GRAIN_BYTES - 1) & ~(GRAIN_BYTES - 1);
	return least < map->want_bytes ? least : map->want_bytes;
}

/*
 * Where addresses are limited (ulimit -v) a smaller map than wanted: it may be of any size that holds what is used, in
 * each process another. Half of what is left, and a reserve, stay for requests. `have`: mapped already.
 */
static uint64_t
map_fit(const struct map *map, uint64_t have, uint64_t least)
{
	uint64_t bytes = map->want_bytes;

	while (bytes > least && bytes > have && !room_for((bytes - have) * 2 + RESERVE_BYTES)) {
		uint64_t low = have > least ? have : least;

		bytes = (low + (bytes - low) / 2) & ~(GRAIN_BYTES - 1);
	}
	return bytes > least ? bytes : least;
}

enum store_rc
map_open(struct map *map, bool fresh)
{
	char path[PATH_BYTES];
	struct disk_data data;
	enum store_rc rc;
	MDB_stat st;
	int e;

	if (mkdir(path_of(map, "", path), 0700) != 0 && errno != EEXIST)
		return map_fail(map, errno);
	rc = data_check(map, fresh, &data);
	if (rc != STORE_OK)
		return rc;
	map->want_bytes = map_start(map, data.map_bytes);
	map->bytes = map_fit(map, 0, map_least(map, &data));
	map->file_bytes = 0;
	map->dead = false;
	e = handle_open(map);
	if (e != 0)
		return map_fail(map, e);
	if (mdb_env_stat(map->mdb, &st) == 0)
		map->page_bytes = st.ms_psize;
	if (file_id(map, "/lock.mdb", &map->lock_file) &&
	    file_id(map, "/data.mdb", &map->data_file))
		return STORE_OK;
	rc = map_fail(map, errno);
	map_close(map);
	return rc;
}

void
map_close(struct map *map)
{
	if (map->mdb != NULL)
		mdb_env_close(map->mdb);
	map->mdb = NULL;
}

/* To `want`, or near it. 0: to the size that another process gave it. */
static int
remap(struct map *map, uint64_t want)
{
	struct disk_data data = {.map_bytes = want};
	MDB_envinfo info;
	uint64_t bytes;
	int e;

	if (want == 0 && data_check(map, false, &data) != STORE_OK)
		return MDB_CORRUPTED;
	map->want_bytes = data.map_bytes;
	bytes = map_fit(map, map->bytes, want == 0 ? map_least(map, &data) : map->bytes);
	if (want != 0 && bytes <= map->bytes)
		return ENOMEM;
	if (bytes > map->bytes && !room_for(bytes - map->bytes))
		return ENOMEM;
	e = mdb_env_set_mapsize(map->mdb, bytes);
	if (e == 0)
		e = mdb_env_info(map->mdb, &info);
	if (e == 0)
		map->bytes = info.me_mapsize;
	else
		map->dead = true;
	return e;
}

static int
grow(struct map *map)
{
	uint64_t want = map->bytes * 2 < map->max_bytes ? map->bytes * 2 : map->max_bytes;

	return want > map->bytes ? remap(map, want) : MDB_MAP_FULL;
}

/* After a failed write of a head LMDB refuses everything until it is opened anew. */
static int
reopen(struct map *map)
{
	int e;

	map_close(map);
	e = handle_open(map);
	map->dead = e != 0;
	return e;
}

int
map_mend(struct map *map, int e, int tries)
{
	int dead;

	if (tries >= TRIES_MAX)
		return e;
	switch (e) {
	case MDB_MAP_RESIZED: return remap(map, 0);
	case MDB_MAP_FULL:
		/* one that was killed while it read holds every page freed since */
		return mdb_reader_check(map->mdb, &dead) == 0 && dead > 0 ? 0 : grow(map);
	case MDB_PANIC: return tries == 0 ? reopen(map) : e;
	case MDB_READERS_FULL:
		return tries == 0 && mdb_reader_check(map->mdb, &dead) == 0 && dead > 0 ? 0 : e;
	default: return e;
	}
}

void
map_slack(struct map *map)
{
	MDB_envinfo info;
	struct stat st;
	uint64_t need;
	int fd;

	if (mdb_env_info(map->mdb, &info) != 0)
		return;
	need = (info.me_last_pgno + 1 + SLACK_PAGES / 2) * map->page_bytes;
	if (need <= map->file_bytes || mdb_env_get_fd(map->mdb, &fd) != 0 || fstat(fd, &st) != 0)
		return;
	map->file_bytes = (uint64_t)st.st_size;
	if (need <= map->file_bytes)
		return;
	/* counted as done even when refused (a file size limit), so that it is not asked for each time */
	map->file_bytes = need + SLACK_PAGES / 2 * map->page_bytes;
	if (ftruncate(fd, (off_t)map->file_bytes) != 0)
		return;
}

static bool
is_same(const struct map *map, const char *rest, struct map_file was)
{
	struct map_file is;

	return file_id(map, rest, &is) && is.dev == was.dev && is.ino == was.ino;
}

bool
map_is_ours(const struct map *map)
{
	return is_same(map, "/lock.mdb", map->lock_file) &&
	       is_same(map, "/data.mdb", map->data_file);
}
