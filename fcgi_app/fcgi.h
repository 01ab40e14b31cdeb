/*
 * fcgi - one FastCGI request: from an accepted connection to an exchange and back.
 *
 * The caller accepts. One request a connection: a kept one is never served (it would pin a worker), a second request on
 * it is refused as not multiplexed. Only the role RESPONDER is played; others are told so. Broken bodies are told
 * apart from ended ones. A hostile peer ends nothing but its own connection.
 *
 * Limits    FCGI_HEAD_MS from the accept to the last variable; FCGI_PARAMS_BYTES, FCGI_PARAMS_MAX of variables;
 *           client_timeout for each piece of the body (request.c has the whole), and for each piece of the answer
 * Memory    one per worker: 40 kB and what the largest variables needed, of which 16 kB are kept
 * Source    FastCGI specification; hosting.md 5, 10, 12
 */
#ifndef FCGI_H
#define FCGI_H

#include "base/err.h"
#include "exchange.h"
#include "watch.h"

#define FCGI_HEAD_MS 10000 /* a web server sends the variables at once */
#define FCGI_PARAMS_BYTES 1048576
#define FCGI_PARAMS_MAX 1024 /* pointers, with the last NULL */

struct fcgi;

/* `listen_fd`: who waits there goes before a peer that only has to be let finish. */
struct fcgi *fcgi_new(struct watch *watch, struct mono_ms (*clock)(void), int listen_fd);
void fcgi_free(struct fcgi **f);

/*
 * Take `fd` over and read the variables. NULL: no request to be served; fd is closed, `why` says what came instead ("":
 * nothing did). The exchange is good until fcgi_end(). Its read() gives -1 with errno EAGAIN when nothing came in time,
 * ECANCELED when the drain is over; others: the peer broke off.
 */
struct exchange *fcgi_begin(struct fcgi *f, int fd, int64_t client_timeout_ms, struct why *why);
/* Write what is buffered and the end record, close. */
void fcgi_end(struct fcgi *f);

#endif
