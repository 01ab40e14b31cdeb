/*
 * fcgi - one FastCGI request, over libfcgi: from an accepted connection to an exchange and back.
 *
 * The caller accepts. libfcgi parses records and variables and writes the answer's records. What the peer sends goes to
 * it through the guard (fcgi_guard.h) and a pipe, so that it finds nothing that makes it wait, loop or abort: every wait
 * is ours, has a time limit, looks at the signals, and ends with the drain. A hostile peer ends nothing but its own
 * connection.
 *
 * One request a connection: a kept one is never served (it would pin a worker), a second request on it is refused as not
 * multiplexed. Only the role RESPONDER is played; others are told so. Broken bodies are told apart from ended ones.
 *
 * Limits    FCGI_HEAD_MS from the accept to the last variable; FCGI_GUARD_PARAMS_BYTES, FCGI_GUARD_PARAMS_MAX of
 *           variables; client_timeout for each piece of the body (request.c has the whole), and for each piece of the
 *           answer
 * Memory    one per worker: 40 kB, libfcgi's 17 kB and the variables while a request runs
 * Source    FastCGI specification; hosting.md 5, 10, 12
 */
#ifndef FCGI_H
#define FCGI_H

#include "base/err.h"
#include "exchange.h"
#include "watch.h"

#define FCGI_HEAD_MS 10000 /* a web server sends the variables at once */

struct fcgi;

/* FCGX_Init() went before. `listen_fd`: who waits there goes before a peer that only has to be let finish. */
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
