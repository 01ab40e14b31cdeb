#include "store/disk.h"

#include "store/why.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

/* store.md, end of section 3 */
static const struct {
	uint32_t magic;
	bool refuse;
	const char *name;
} file_systems[] = {
    {0x6969, true, "NFS"},
    {0x517B, true, "SMB"},
    {0xFF534D42, true, "CIFS"},
    {0xFE534D42, true, "SMB2"},
    {0x01021997, true, "9p"},
    {0x5346414F, true, "AFS"},
    {0x6B414653, true, "AFS"},
    {0xC36400, true, "Ceph"},
    {0x73757245, true, "Coda"},
    {0x7461636F, true, "OCFS2"},
    {0x0BD00BD0, true, "Lustre"},
    {0x65735546, false, "FUSE"},
};

/* The layout of LMDB's data file, format 1, on 64-bit machines. */
struct lmdb_db {
	uint32_t pad; /* of the free list: the page size */
	uint16_t flags, depth;
	uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct lmdb_meta {
	uint64_t page_number;
	uint16_t page_pad, page_flags, lower, upper;
	uint32_t magic, version;
	uint64_t address, map_bytes;
	struct lmdb_db free_list, rows;
	uint64_t last_page, txn;
};
_Static_assert(sizeof(struct lmdb_meta) == 152, "LMDB's meta page");

#define LMDB_MAGIC 0xBEEFC0DEU
#define LMDB_P_META 0x08
#define LMDB_INTEGERKEY 0x08
#define MAP_SANE_BYTES (UINT64_C(1) << 44)

bool
disk_is_local(int64_t magic, const char **name_out)
{
	/* the kernel's field is a signed word on some machines */
	for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
		if (file_systems[i].magic == (uint32_t)magic) {
			*name_out = file_systems[i].name;
			return !file_systems[i].refuse;
		}
	return true;
}

static enum store_rc
place_check(int fd, const char *dir, struct store_why *why)
{
	const char *name = NULL;
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0) {
		why_say(why, "cannot ask for the file system: %s ('%s')", strerror(errno), dir);
		return STORE_IO;
	}
	if (!disk_is_local((int64_t)fs.f_type, &name)) {
		why_say(why,
		    "state_dir lies on %s, which cannot lock safely: choose a local directory ('%s')",
		    name, dir);
		return STORE_BAD;
	}
	if (name != NULL)
		why_say(why,
		    "state_dir lies on %s: locks may not hold there, better choose a local directory ('%s')",
		    name, dir);
	return STORE_OK;
}

static enum store_rc
rights_check(int fd, const char *dir, struct store_why *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		why_say(why, "cannot look at state_dir: %s ('%s')", strerror(errno), dir);
		return STORE_IO;
	}
	if (st.st_uid != geteuid()) {
		why_say(why,
		    "state_dir belongs to user %u, this process is user %u: run as its owner, or chown it ('%s')",
		    (unsigned)st.st_uid, (unsigned)geteuid(), dir);
		return STORE_BAD;
	}
	if ((st.st_mode & 0777) != 0700) {
		why_say(why, "state_dir has mode %04o, wants 0700: chmod 700 '%s'",
		    (unsigned)st.st_mode & 07777, dir);
		return STORE_BAD;
	}
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) != 0) {
		why_say(why,
		    "state_dir cannot be written: %s: mount it read-write, or choose another ('%s')",
		    strerror(errno), dir);
		return STORE_BAD;
	}
	return STORE_OK;
}

/* Without `create` nothing may come into being where no store was. */
static enum store_rc
was_there(int fd, const char *dir, struct store_why *why)
{
	struct stat st;

	if (fstatat(fd, "epoch", &st, 0) == 0 || fstatat(fd, "live", &st, 0) == 0)
		return STORE_OK;
	why_say(why, "no store yet: start the gateway, it makes one ('%s')", dir);
	return STORE_NONE;
}

static enum store_rc
no_dir(const char *dir, bool create, int e, struct store_why *why)
{
	const char *hint = e != ENOENT ? "see that the path is right and may be walked"
	                   : create    ? "make its parent directory"
	                               : "start the gateway, it makes it";

	why_say(why, "cannot open state_dir: %s: %s ('%s')", strerror(e), hint, dir);
	return e == ENOENT ? STORE_NONE : e == EMFILE || e == ENFILE ? STORE_IO : STORE_BAD;
}

enum store_rc
disk_dir(const char *dir, bool create, struct store_why *why)
{
	enum store_rc rc;
	int fd;

	why_say(why, "%s", "");
	if (create && mkdir(dir, 0700) != 0 && errno != EEXIST)
		return no_dir(dir, create, errno, why);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return no_dir(dir, create, errno, why);
	rc = rights_check(fd, dir, why);
	if (rc == STORE_OK)
		rc = place_check(fd, dir, why);
	if (rc == STORE_OK && !create)
		rc = was_there(fd, dir, why);
	close(fd);
	return rc;
}

static bool
root_is_sane(const struct lmdb_db *db, uint64_t last_page)
{
	return db->root == DISK_NO_ROOT || (db->root >= 2 && db->root <= last_page);
}

static bool
is_head(const struct lmdb_meta *m, uint64_t number)
{
	return m->magic == LMDB_MAGIC && m->version == 1 && m->page_number == number &&
	       (m->page_flags & LMDB_P_META) != 0;
}

static bool
meta_is_sane(const struct lmdb_meta *m)
{
	uint64_t page = m->free_list.pad;

	if (page < 512 || page > 65536 || (page & (page - 1)) != 0)
		return false;
	if (m->map_bytes > MAP_SANE_BYTES || m->last_page >= m->map_bytes / page)
		return false;
	/* another program's keys would be compared wrongly */
	if (m->rows.root != DISK_NO_ROOT && (m->rows.flags & 0x7fff) != LMDB_INTEGERKEY)
		return false;
	return root_is_sane(&m->free_list, m->last_page) && root_is_sane(&m->rows, m->last_page);
}

static bool
head_read(int fd, uint64_t number, uint64_t page, struct lmdb_meta *m)
{
	return pread(fd, m, sizeof *m, (off_t)(number * page)) == (ssize_t)sizeof *m &&
	       is_head(m, number) && meta_is_sane(m);
}

static enum store_rc
damaged(struct store_why *why, const char *name, const char *what)
{
	why_say(why,
	    "the store is damaged: %s/data.mdb %s: stop all processes, move '%s' away, start again",
	    name, what, name);
	return STORE_BAD;
}

static struct disk_tree
tree_of(const struct lmdb_db *db)
{
	return (struct disk_tree){
	    .root = db->root,
	    .branch_pages = db->branch_pages,
	    .leaf_pages = db->leaf_pages,
	    .overflow_pages = db->overflow_pages,
	    .entries = db->entries,
	    .depth = db->depth,
	};
}

static enum store_rc
heads_read(int fd, const char *name, struct disk_data *data_out, struct store_why *why)
{
	struct lmdb_meta m[2], *newest;
	struct stat st;

	if (!head_read(fd, 0, 0, &m[0])) {
		if (fstat(fd, &st) == 0 && st.st_size == 0)
			return STORE_NONE;
		return damaged(why, name, "has no valid head");
	}
	if (!head_read(fd, 1, m[0].free_list.pad, &m[1]) ||
	    m[1].free_list.pad != m[0].free_list.pad)
		return damaged(why, name, "has no valid second head");
	newest = m[0].txn < m[1].txn ? &m[1] : &m[0];
	*data_out = (struct disk_data){
	    .map_bytes = m[0].map_bytes > m[1].map_bytes ? m[0].map_bytes : m[1].map_bytes,
	    .page_bytes = m[0].free_list.pad,
	    .last_page = m[0].last_page > m[1].last_page ? m[0].last_page : m[1].last_page,
	    .txn = {m[0].txn, m[1].txn},
	    .free_list = tree_of(&newest->free_list),
	    .rows = tree_of(&newest->rows),
	};
	return STORE_OK;
}

static enum store_rc
heads_and_size(int fd, const char *name, struct disk_data *data_out, struct store_why *why)
{
	enum store_rc rc = heads_read(fd, name, data_out, why);
	struct stat st;

	/* asked after reading the heads: a file that others write only grows */
	if (rc == STORE_OK &&
	    (fstat(fd, &st) != 0 ||
	        (uint64_t)st.st_size < (data_out->last_page + 1) * data_out->page_bytes))
		return damaged(why, name, "was cut");
	return rc;
}

/* A head may be caught while another process is writing it. */
static enum store_rc
patiently(enum store_rc (*ask)(int, const char *, struct disk_data *, struct store_why *), int fd,
    const char *name, struct disk_data *data_out, struct store_why *why)
{
	enum store_rc rc = STORE_BAD;

	for (int tries = 0; tries < 3 && rc == STORE_BAD; tries++) {
		if (tries > 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		rc = ask(fd, name, data_out, why);
	}
	return rc;
}

enum store_rc
disk_heads(int fd, const char *name, struct disk_data *data_out, struct store_why *why)
{
	return patiently(heads_read, fd, name, data_out, why);
}

enum store_rc
disk_data(int fd, const char *name, struct disk_data *data_out, struct store_why *why)
{
	return patiently(heads_and_size, fd, name, data_out, why);
}
