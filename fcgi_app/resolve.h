/*
 * resolve - the addresses of a host, found without a thread.
 *
 * libcurl looks names up in a thread. On a host that limits processes (RLIMIT_NPROC counts threads too) there may be
 * none left; the call then fails through nobody's fault. Here the caller waits instead, as long as resolv.conf says.
 *
 * Source    libcurl's manual, CURLOPT_RESOLVE
 */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "base/arena.h"

/* "+host:port:address,address" for libcurl; NULL: no such host, or nobody answers. `is_proxy` is for the port. */
const char *resolve_entry(struct arena *arena, struct span url, bool is_proxy);

#endif
