/*
 * exchange - one request as a web server hands it over: variables, a body to read, a sink to write to.
 *
 * The pipeline knows nothing of FastCGI: fcgi.c fills this in, tests use memory.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "base/text.h"

#include <sys/types.h>

struct exchange {
	char **params; /* NULL-terminated "NAME=value" */
	int client_fd; /* tells that the client has gone, see watch.h; -1 = cannot be watched */
	void *io;
	/* Bytes of the body, as soon as some are there: 0 at its end, -1 when it broke off (errno as in fcgi.h). */
	ssize_t (*read)(void *io, char *dst, size_t n);
	/* False once the client's side is gone. write() may buffer, flush() does not. */
	bool (*write)(void *io, const char *bytes, size_t n);
	bool (*flush)(void *io);
	/* Write something the client never sees, so that a connection that is closed shows; may be NULL. */
	void (*probe)(void *io);
	bool cut; /* what was written breaks off: the web server must not take it for whole */
};

/* The value of a variable; empty when it is missing or empty. */
struct span exchange_param(const struct exchange *x, const char *name);

/* CONTENT_LENGTH; -1 = not given or not a number, which means nothing: the body is read to its end anyway. */
int64_t exchange_length(const struct exchange *x);

#endif
