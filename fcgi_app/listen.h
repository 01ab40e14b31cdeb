/*
 * listen - the listening socket: found on descriptor 0, passed on by systemd, or bound here.
 *
 * A unix socket belongs to the user that the program becomes; a stale socket file is replaced, one that somebody listens
 * on is not. Its directory is locked meanwhile, so of two starts at once one fails. TCP only on 127.0.0.1 or another
 * loopback address.
 *
 * Errors    ERR_BAD_INPUT not an address; ERR_IO the system refused
 * Source    SPEC.md section 2; hosting.md 6, 10
 */
#ifndef LISTEN_H
#define LISTEN_H

#include "base/err.h"

#include <stdbool.h>

#define LISTEN_MODE 0660

/* "unix:/path" or "127.0.0.1:9000" (any loopback address). `mode` is that of the socket file. */
enum err listen_open(const char *address, unsigned mode, int *fd_out, struct why *why) MUST_CHECK;
/* Hand the socket file of "unix:/path" to its later user. */
enum err listen_own(const char *address, unsigned uid, unsigned gid, struct why *why) MUST_CHECK;
/* Remove the socket file of "unix:/path". */
void listen_remove(const char *address);

/* Is `fd` a listening socket? */
bool listen_is(int fd);
/* The first socket that systemd has passed to us (LISTEN_PID, LISTEN_FDS); -1 = none. */
int listen_passed(void);

#endif
