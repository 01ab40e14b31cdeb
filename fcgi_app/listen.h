/*
 * listen - the listening socket: found on descriptor 0, or bound here.
 *
 * A unix socket gets mode 0660 and belongs to the user that the program becomes; a stale socket file is replaced, one
 * that somebody listens on is not. TCP only on 127.0.0.1 or another loopback address.
 *
 * Errors    ERR_BAD_INPUT not an address; ERR_IO the system refused
 * Source    SPEC.md section 2; hosting.md 6, 10
 */
#ifndef LISTEN_H
#define LISTEN_H

#include "base/err.h"

#include <stdbool.h>

/* "unix:/path" or "127.0.0.1:9000" (any loopback address). */
enum err listen_open(const char *address, int *fd_out, struct why *why) MUST_CHECK;
/* Hand the socket file of "unix:/path" to its later user. */
enum err listen_own(const char *address, unsigned uid, unsigned gid, struct why *why) MUST_CHECK;
/* Remove the socket file of "unix:/path". */
void listen_remove(const char *address);

/* Is `fd` a listening socket? */
bool listen_is(int fd);

#endif
