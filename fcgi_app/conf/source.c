#include "conf/source.h"

#include "conf/wipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source *
source_note(struct arena *arena, const char *path)
{
	struct source *source = arena_alloc(arena, sizeof *source);

	source->path = arena_z(arena, text_span(path));
	source->present = stat(path, &source->st) == 0;
	return source;
}

static enum err
read_all(int fd, char *p, size_t cap, size_t *n_out, struct why *why)
{
	size_t n = 0;

	while (n < cap) {
		ssize_t got = read(fd, p + n, cap - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err_why(why, "cannot read: %s", strerror(errno));
			return ERR_IO;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*n_out = n;
	return ERR_OK;
}

static enum err
read_open(struct arena *work, int fd, size_t max, struct source *source,
    struct source_text *text_out, struct why *why)
{
	size_t room;

	if (fstat(fd, &source->st) != 0) {
		err_why(why, "cannot look at it: %s", strerror(errno));
		return ERR_IO;
	}
	if (!S_ISREG(source->st.st_mode)) {
		err_why(why, "is not a regular file");
		return ERR_IO;
	}
	if (source->st.st_size < 0 || (uint64_t)source->st.st_size > max) {
		err_why(why, "is larger than %zu bytes", max);
		return ERR_TOO_BIG;
	}
	/* files of /proc say 0: then as much as is allowed, up to a page */
	room = source->st.st_size > 0 ? (size_t)source->st.st_size : max < 4096 ? max : 4096;
	text_out->p = wipe_room(work, room + 1);
	return read_all(fd, text_out->p, room, &text_out->n, why);
}

enum err
source_read(struct arena *arena, struct arena *work, const char *path, size_t max,
    struct source_text *text_out, struct source **source_out, struct why *why)
{
	struct source *source = arena_alloc(arena, sizeof *source);
	/* a fifo must not hold us up */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum err err;

	if (fd < 0) {
		err_why(why, "cannot open: %s", strerror(errno));
		return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
	}
	err = read_open(work, fd, max, source, text_out, why);
	close(fd);
	if (err != ERR_OK)
		return err;
	source->path = arena_z(arena, text_span(path));
	source->present = true;
	*source_out = source;
	return ERR_OK;
}

/* In single quotes, for a shell. */
static void
quote(const char *path, char *dst, size_t cap)
{
	size_t n = 0;

	dst[n++] = '\'';
	for (; *path != '\0' && n + 6 < cap; path++) {
		if (*path == '\'') {
			memcpy(dst + n, "'\\'", 3);
			n += 3;
		}
		dst[n++] = (unsigned char)*path < 0x20 ? '?' : *path;
	}
	dst[n++] = '\'';
	dst[n] = '\0';
}

enum err
source_private(const struct source *source, struct why *why)
{
	uid_t me = geteuid(), owner = source->st.st_uid;
	char quoted[300];

	quote(source->path, quoted, sizeof quoted);
	/* root may be about to become the owner: see the end of SPEC.md section 2 */
	if (me != 0 && owner != me && owner != 0) {
		err_why(why,
		    "holds keys but belongs to user %lu, neither us (%lu) nor root: chown %lu %s",
		    (unsigned long)owner, (unsigned long)me, (unsigned long)me, quoted);
		return ERR_CONFIG;
	}
	if ((source->st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		err_why(why,
		    "holds keys but has mode %04o, so that others could reach it: chmod 600 %s",
		    (unsigned)(source->st.st_mode & 07777), quoted);
		return ERR_CONFIG;
	}
	return ERR_OK;
}

bool
source_changed(const struct source *source)
{
	const struct stat *was = &source->st;
	struct stat now;

	if (stat(source->path, &now) != 0)
		return source->present;
	if (!source->present)
		return true;
	return now.st_dev != was->st_dev || now.st_ino != was->st_ino ||
	       now.st_size != was->st_size || now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != was->st_mtim.tv_nsec ||
	       now.st_ctim.tv_sec != was->st_ctim.tv_sec ||
	       now.st_ctim.tv_nsec != was->st_ctim.tv_nsec;
}

bool
source_is_below(const struct source *source, const char *directory)
{
	char root[PATH_MAX], file[PATH_MAX];
	size_t n;

	if (realpath(directory, root) == NULL || realpath(source->path, file) == NULL)
		return false;
	n = strlen(root);
	if (n > 0 && root[n - 1] == '/')
		n--; /* of "/" only */
	return strncmp(root, file, n) == 0 && (file[n] == '/' || file[n] == '\0');
}
