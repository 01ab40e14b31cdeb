/*
 * memory - an exchange without a web server: variables and a body are given, the answer is gathered.
 */
#ifndef TESTS_LIB_MEMORY_H
#define TESTS_LIB_MEMORY_H

#include "base/buf.h"
#include "exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_PARAMS_MAX 32

struct memory {
	struct exchange x;
	char *params[MEMORY_PARAMS_MAX + 1]; /* copies */
	struct span body;
	size_t read_n, piece; /* bytes a read, 0 = all that fit */
	int read_errno;       /* at the end of the body, instead of its end */
	struct buf out;
	size_t writes_left; /* then the client is gone */
	unsigned flushes;
	bool flush_fails;
};

static inline ssize_t
memory_read(void *io, char *dst, size_t n)
{
	struct memory *m = io;
	struct span left = text_from(m->body, m->read_n);

	if (left.n == 0 && m->read_errno != 0) {
		errno = m->read_errno;
		return -1;
	}
	if (m->piece > 0 && n > m->piece)
		n = m->piece;
	if (n > left.n)
		n = left.n;
	if (n > 0)
		memcpy(dst, left.p, n);
	m->read_n += n;
	return (ssize_t)n;
}

static inline bool
memory_write(void *io, const char *bytes, size_t n)
{
	struct memory *m = io;

	if (m->writes_left == 0)
		return false;
	m->writes_left--;
	buf_add(&m->out, bytes, n);
	return true;
}

static inline bool
memory_flush(void *io)
{
	struct memory *m = io;

	m->flushes++;
	return !m->flush_fails;
}

/* `params` is NULL-terminated; it is copied, the body is not. Ends with memory_release(). */
static inline void
memory_init(struct memory *m, const char *const *params, struct span body)
{
	*m = (struct memory){.body = body, .writes_left = SIZE_MAX};
	for (size_t i = 0; i < MEMORY_PARAMS_MAX && params[i] != NULL; i++)
		m->params[i] = strdup(params[i]);
	buf_init(&m->out, (size_t)64 << 20);
	m->x = (struct exchange){.params = m->params,
	    .client_fd = -1,
	    .io = m,
	    .read = memory_read,
	    .write = memory_write,
	    .flush = memory_flush};
}

static inline void
memory_release(struct memory *m)
{
	for (char **p = m->params; *p != NULL; p++)
		free(*p);
	buf_release(&m->out);
}

/* What was written, as a string. */
static inline const char *
memory_text(const struct memory *m)
{
	return m->out.p == NULL ? "" : m->out.p;
}

#endif
