/*
 * cgi - the request of plain CGI: descriptors of the web server as an exchange.
 *
 * Body      ends where CONTENT_LENGTH says, else with the input; a GET or the like without a length has none
 * Answer    buffered, so that what is refused early can wait until the rest of the body is taken away: a server that
 *           reads and writes one socket loses the answer else. That is bounded by CGI_DRAIN_BYTES and CGI_DRAIN_MS.
 * Gone      a client that takes or sends no byte for the time limit, whose side is closed, or whom the server's SIGTERM
 *           reports (watch.h)
 * Source    SPEC.md sections 2, 5; hosting.md 3, 5
 */
#ifndef CGI_H
#define CGI_H

#include "exchange.h"
#include "watch.h"

#define CGI_DRAIN_BYTES (64 << 20)
#define CGI_DRAIN_MS 10000

struct cgi;

struct cgi_side {
	int in, out;   /* stay the caller's, but lead to nowhere after cgi_end() */
	char **params; /* the environment */
	int64_t client_timeout_ms;
	struct watch *watch;
	struct mono_ms (*clock)(void);
};

/* SIGPIPE must be ignored. The exchange is good until cgi_end(). */
struct exchange *cgi_begin(struct cgi **cgi_out, const struct cgi_side *side);
/* Write what is buffered, and close both sides: the server sees the answer's end. */
void cgi_end(struct cgi **cgi);

#endif
