#include "store/epoch.h"

#include "store/gate.h"
#include "store/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_WAIT_MS GATE_WAIT_MS
#define ASIDE "live.unclean."
#define UNKNOWN_BOOT "-"
#define MARKER_BOOT "shm-" /* with a marker's number */

/* The file `epoch`. */
struct facts {
	unsigned format, clean,
	    made; /* made: `live` is complete; before that it may be thrown away */
	char uuid[40], boot[64];
};

static enum store_rc
say(struct store_why *why, const char *what, int e)
{
	why_say(why, "%s: %s%s", what, strerror(e),
	    e == ENOSPC || e == EDQUOT ? ": free disk space"
	    : e == EACCES || e == EPERM
	        ? ": all files of the state directory must belong to this user"
	        : "");
	return e == ENOSPC || e == EDQUOT ? STORE_FULL : STORE_IO;
}

/* Whole of a small file as text; false with errno. */
static bool
small_read(int at, const char *name, char *text, size_t cap)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, cap - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n >= 0;
}

static bool
all_written(int fd, const char *text)
{
	size_t n = strlen(text);

	errno = ENOSPC; /* what a short write means */
	return write(fd, text, n) == (ssize_t)n;
}

static enum store_rc
facts_write(int door, const struct facts *facts, struct store_why *why)
{
	char text[256];
	int fd =
	    openat(door, "epoch.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int e = 0;

	if (fd < 0)
		return say(why, "cannot write 'epoch'", errno);
	snprintf(text, sizeof text, "format %u\nuuid %s\nboot %s\nclean %u\nmade %u\n",
	    facts->format, facts->uuid, facts->boot, facts->clean, facts->made);
	if (!all_written(fd, text) || fsync(fd) != 0)
		e = errno;
	close(fd);
	if (e == 0 && (renameat(door, "epoch.new", door, "epoch") != 0 || fsync(door) != 0))
		e = errno;
	return e == 0 ? STORE_OK : say(why, "cannot write 'epoch'", e);
}

/* STORE_NONE: there is none. */
static enum store_rc
facts_read(int door, struct facts *facts, struct store_why *why)
{
	char text[512];

	*facts = (struct facts){.format = EPOCH_FORMAT};
	if (!small_read(door, "epoch", text, sizeof text))
		return errno == ENOENT ? STORE_NONE : say(why, "cannot read 'epoch'", errno);
	if (sscanf(text, "format %u", &facts->format) == 1 && facts->format != EPOCH_FORMAT) {
		why_say(why,
		    "the store has format %u, this program knows %d: use the program that made it",
		    facts->format, EPOCH_FORMAT);
		return STORE_BAD;
	}
	if (sscanf(text,
	        "format %u\nuuid %39[0-9a-f-]\nboot %63[0-9A-Za-z-]\nclean %1u\nmade %1u\n",
	        &facts->format, facts->uuid, facts->boot, &facts->clean, &facts->made) == 5)
		return STORE_OK;
	why_say(why,
	    "the file 'epoch' is damaged: stop all processes and remove it; 'live' is then set "
	    "aside and begun anew");
	return STORE_BAD;
}

static bool
uuid_new(char *uuid, size_t cap)
{
	unsigned char r[16];

	if (getrandom(r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r)
		return false;
	snprintf(uuid, cap, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
	    r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13],
	    r[14], r[15]);
	return true;
}

/* Remove a folder of plain files; what cannot be removed stays. */
static void
folder_remove(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	unlinkat(at, name, AT_REMOVEDIR);
}

static void
asides_remove(int door)
{
	int fd = openat(door, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (strncmp(e->d_name, ASIDE, strlen(ASIDE)) == 0)
			folder_remove(door, e->d_name);
	closedir(d);
}

static bool
live_exists(int door)
{
	struct stat st;

	return fstatat(door, "live", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static enum store_rc
live_set_aside(struct epoch *epoch, struct store_why *why)
{
	struct stat st = {0};

	/* the last write's time is what a person looks for, and needs no clock */
	if (fstatat(epoch->door, "live/data.mdb", &st, 0) != 0)
		st.st_mtime = 0;
	asides_remove(epoch->door);
	snprintf(epoch->aside, sizeof epoch->aside, ASIDE "%lld", (long long)st.st_mtime);
	return renameat(epoch->door, "live", epoch->door, epoch->aside) == 0
	           ? STORE_OK
	           : say(why, "cannot set 'live' aside", errno);
}

/* Make the store's facts those of this boot, in use; on the disk before anything in `live` changes. */
static enum store_rc
facts_begin(const struct epoch *epoch, struct facts *facts, struct store_why *why)
{
	facts->clean = 0;
	memcpy(facts->boot, epoch->boot, sizeof facts->boot);
	return facts_write(epoch->door, facts, why);
}

enum store_rc
epoch_anew(struct epoch *epoch, bool keep_old, struct store_why *why)
{
	struct facts facts = {.format = EPOCH_FORMAT};
	enum store_rc rc = STORE_OK;

	if (live_exists(epoch->door) && keep_old)
		rc = live_set_aside(epoch, why);
	else
		folder_remove(epoch->door, "live");
	if (rc == STORE_OK && live_exists(epoch->door))
		rc = say(why, "cannot remove an unfinished 'live'", EEXIST);
	if (rc == STORE_OK && !uuid_new(facts.uuid, sizeof facts.uuid))
		rc = say(why, "no random bytes for the uuid", errno);
	if (rc != STORE_OK)
		return rc;
	epoch->fresh = true;
	epoch->was_clean = false;
	memcpy(epoch->uuid, facts.uuid, sizeof epoch->uuid);
	return facts_begin(epoch, &facts, why);
}

/* store.md decision 2, row by row. */
static enum epoch_fate
fate_of(const struct facts *facts, bool known, bool same, bool live)
{
	if (!known)
		return live ? EPOCH_ASIDE : EPOCH_DISCARD;
	if (!facts->made || !live)
		return EPOCH_DISCARD;
	return same || facts->clean ? EPOCH_KEEP : EPOCH_ASIDE;
}

enum origin { ORIGIN_NONE, ORIGIN_MARKER, ORIGIN_KERNEL };

/* Where the name of a boot comes from. */
static enum origin
origin_of(const char *boot)
{
	if (strcmp(boot, UNKNOWN_BOOT) == 0)
		return ORIGIN_NONE;
	return strncmp(boot, MARKER_BOOT, strlen(MARKER_BOOT)) == 0 ? ORIGIN_MARKER : ORIGIN_KERNEL;
}

/*
 * One process sees /proc, another, in a chroot, does not: who names the boot in another way than the others takes their
 * name. They hold their lock, so the machine has not been down since they came.
 */
static void
take_name(struct epoch *epoch, const struct facts *facts)
{
	if (!epoch->alone && origin_of(epoch->boot) != origin_of(facts->boot))
		snprintf(epoch->boot, sizeof epoch->boot, "%s", facts->boot);
}

static enum store_rc
decide(struct epoch *epoch, struct facts *facts, bool known, struct store_why *why)
{
	bool same;

	if (known)
		take_name(epoch, facts);
	same = known && strcmp(facts->boot, epoch->boot) == 0;
	epoch->fate = fate_of(facts, known, same, live_exists(epoch->door));
	if (!epoch->alone && (!same || epoch->fate != EPOCH_KEEP)) {
		why_say(why,
		    "the store is in use but its 'epoch' or 'live' was taken away: stop all "
		    "processes that use it, then start again");
		return STORE_BAD;
	}
	epoch->was_clean = epoch->fate == EPOCH_KEEP && facts->clean;
	if (epoch->fate != EPOCH_KEEP || (same && !facts->clean))
		return STORE_OK; /* nothing to write: the usual case */
	return facts_begin(epoch, facts, why);
}

/* Be counted as a user; learns whether there are others. Only called behind the door. */
static enum store_rc
users_join(struct epoch *epoch, struct store_why *why)
{
	enum store_rc rc;

	epoch->users =
	    openat(epoch->door, "users.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (epoch->users < 0)
		return say(why, "cannot open 'users.lock'", errno);
	epoch->alone = flock(epoch->users, LOCK_EX | LOCK_NB) == 0;
	rc = gate_flock(epoch->users, LOCK_SH, OPEN_WAIT_MS);
	if (rc == STORE_BUSY)
		why_say(why,
		    "the store is being closed by a process that does not end: look for a stopped "
		    "one, or a slow disk");
	return rc == STORE_IO ? say(why, "cannot lock 'users.lock'", errno) : rc;
}

static void
drop(struct epoch *epoch)
{
	if (epoch->users >= 0)
		close(epoch->users);
	if (epoch->door >= 0)
		close(epoch->door);
	epoch->users = epoch->door = -1;
}

static enum store_rc
door_open(const char *dir, struct epoch *epoch, struct store_why *why)
{
	enum store_rc rc;

	epoch->door = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (epoch->door < 0)
		return say(why, dir, errno);
	rc = gate_flock(epoch->door, LOCK_EX, OPEN_WAIT_MS);
	if (rc == STORE_BUSY)
		why_say(why,
		    "another process has been opening the store for more than 2 s: look for a "
		    "stopped one");
	return rc == STORE_IO ? say(why, "cannot lock the state directory", errno) : rc;
}

static enum store_rc
enter(const char *boot, struct epoch *epoch, struct store_why *why)
{
	struct facts facts;
	enum store_rc rc = users_join(epoch, why), known;

	if (rc != STORE_OK)
		return rc;
	snprintf(epoch->boot, sizeof epoch->boot, "%s", boot);
	known = facts_read(epoch->door, &facts, why);
	if (known != STORE_OK && known != STORE_NONE)
		return known;
	rc = decide(epoch, &facts, known == STORE_OK, why);
	memcpy(epoch->uuid, facts.uuid, sizeof epoch->uuid);
	return rc;
}

/* Cuts the line's end off. */
static bool
boot_is_sane(char *boot)
{
	boot[strspn(boot, "0123456789abcdef-")] = '\0';
	return strlen(boot) >= 32;
}

static bool
is_private(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       (st->st_mode & 077) == 0;
}

/* A marker that dies with the machine. Others may write there, so only a file that is surely ours counts. */
static bool
boot_from_marker(int door, char *boot, size_t cap)
{
	char path[96], text[60]; /* and MARKER_BOOT before it */
	struct stat st;
	bool ours;
	int fd;

	if (fstat(door, &st) != 0)
		return false;
	snprintf(path, sizeof path, "/dev/shm/sluice.%u.%llx.%llx", (unsigned)geteuid(),
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return false;
	ours = is_private(fd, &st);
	if (ours && st.st_size == 0)
		ours = uuid_new(text, sizeof text) && all_written(fd, text);
	close(fd);
	if (!ours || !small_read(AT_FDCWD, path, text, sizeof text) || !boot_is_sane(text))
		return false;
	snprintf(boot, cap, MARKER_BOOT "%s", text);
	return true;
}

static void
boot_read(int door, char *boot, size_t cap)
{
	if (small_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, cap) &&
	    boot_is_sane(boot))
		return;
	if (!boot_from_marker(door, boot, cap))
		snprintf(boot, cap, "%s", UNKNOWN_BOOT);
}

enum store_rc
epoch_enter_as(const char *dir, const char *boot, struct epoch *epoch_out, struct store_why *why)
{
	struct epoch epoch = {.door = -1, .users = -1};
	char read[64];
	enum store_rc rc = door_open(dir, &epoch, why);

	if (rc == STORE_OK && boot == NULL) {
		boot_read(epoch.door, read, sizeof read);
		boot = read;
	}
	if (rc == STORE_OK)
		rc = enter(boot, &epoch, why);
	if (rc != STORE_OK) {
		drop(&epoch);
		return rc;
	}
	*epoch_out = epoch;
	return STORE_OK;
}

enum store_rc
epoch_enter(const char *dir, struct epoch *epoch_out, struct store_why *why)
{
	return epoch_enter_as(dir, NULL, epoch_out, why);
}

enum store_rc
epoch_ready(struct epoch *epoch, struct store_why *why)
{
	struct facts facts;
	enum store_rc rc = STORE_OK;

	if (epoch->fresh) {
		rc = facts_read(epoch->door, &facts, why);
		facts.made = 1;
		if (rc == STORE_OK)
			rc = facts_write(epoch->door, &facts, why);
	}
	if (rc == STORE_OK)
		flock(epoch->door, LOCK_UN);
	return rc;
}

bool
epoch_last(struct epoch *epoch)
{
	return epoch->users >= 0 && flock(epoch->users, LOCK_EX | LOCK_NB) == 0;
}

enum store_rc
epoch_leave(struct epoch *epoch, bool clean, struct store_why *why)
{
	struct facts facts;
	enum store_rc rc = STORE_OK;

	if (clean && epoch_last(epoch)) {
		rc = facts_read(epoch->door, &facts, why);
		facts.clean = 1;
		/* an epoch that is not ours any more (removed, of another store) stays as it is */
		if (rc == STORE_OK && strcmp(facts.uuid, epoch->uuid) == 0)
			rc = facts_write(epoch->door, &facts, why);
	}
	drop(epoch);
	return rc;
}
