/*
 * fcgi - one FastCGI connection, over libfcgi: from an accepted descriptor to an exchange and back.
 *
 * libfcgi accepts nothing by itself here: the caller accepts, with time limits, so that a silent peer cannot hold a
 * worker. A kept connection is never served (it would pin a worker). Broken bodies are told apart from ended ones.
 *
 * Source    hosting.md 10, 12
 */
#ifndef FCGI_H
#define FCGI_H

#include "exchange.h"

struct fcgi;

struct fcgi *fcgi_new(void);
void fcgi_free(struct fcgi **f);

/*
 * Take `fd` over and read the variables. NULL: not a FastCGI request in time; fd is closed. The exchange is good until
 * fcgi_end().
 */
struct exchange *fcgi_begin(
    struct fcgi *f, int fd, int64_t params_timeout_ms, int64_t client_timeout_ms);
/* Write what is buffered and the end record, close. */
void fcgi_end(struct fcgi *f);

#endif
