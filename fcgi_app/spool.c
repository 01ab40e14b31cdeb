#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct spool {
	struct buf *buf;
	const char *dir;
	int fd; /* -1: all is in the buffer */
	size_t in_file;
	void *map;
};

static void
release(void *object)
{
	struct spool *s = object;

	if (s->map != NULL)
		munmap(s->map, s->in_file);
	if (s->fd >= 0)
		close(s->fd);
}

struct spool *
spool_new(struct arena *arena, struct buf *buf, const char *dir)
{
	struct spool *s = arena_alloc(arena, sizeof *s);

	*s = (struct spool){.buf = buf, .dir = dir, .fd = -1};
	arena_defer(arena, release, s);
	return s;
}

size_t
spool_size(const struct spool *s)
{
	return s->in_file + s->buf->n;
}

static enum err
fail(int e, struct why *why)
{
	bool full = e == ENOSPC || e == EDQUOT || e == EFBIG;

	err_why(why, full ? "there is no room on the disk for a body of this size, try again later"
	                  : "a body of this size cannot be held now, try again later");
	return ERR_STORE;
}

/* File systems without O_TMPFILE: a name for a moment. */
static int
open_named(const char *dir)
{
	char path[4096];
	int fd;

	if ((size_t)snprintf(path, sizeof path, "%s/body.XXXXXX", dir) >= sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static enum err
spill(struct spool *s, struct why *why)
{
	const char *at = s->buf->p;
	size_t left = s->buf->n;

	if (s->fd < 0)
		s->fd = open(s->dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (s->fd < 0)
		s->fd = open_named(s->dir);
	if (s->fd < 0)
		return fail(errno, why);
	while (left > 0) {
		ssize_t n = write(s->fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(n < 0 ? errno : ENOSPC, why);
		at += n;
		left -= (size_t)n;
		s->in_file += (size_t)n;
	}
	buf_clear(s->buf);
	return ERR_OK;
}

enum err
spool_step(struct spool *s, struct why *why)
{
	return s->buf->n >= SPOOL_MEMORY ? spill(s, why) : ERR_OK;
}

enum err
spool_text(struct spool *s, struct span *text_out, struct why *why)
{
	if (s->fd < 0) {
		*text_out = buf_text(s->buf);
		return ERR_OK;
	}
	if (s->buf->n > 0 && spill(s, why) != ERR_OK)
		return ERR_STORE;
	if (s->map == NULL) {
		void *map = mmap(NULL, s->in_file, PROT_READ, MAP_PRIVATE, s->fd, 0);

		if (map == MAP_FAILED)
			return fail(errno, why);
		s->map = map;
	}
	*text_out = (struct span){s->map, s->in_file};
	return ERR_OK;
}
