/*
 * sandbox - steps that make a process less useful to an intruder and its memory less readable.
 *
 * umask 077, no new privileges, not dumpable, no core dumps, SIGPIPE and SIGXFSZ ignored. And what a parent may have
 * left in disorder: descriptors 0 to 2 that are closed, signals that are ignored or blocked.
 *
 * Source    SPEC.md section 18; style.md 8.12; store.md section 3 (RLIMIT_FSIZE)
 */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include "base/err.h"

#include <stdbool.h>

/* The first call of a program, before it opens anything: descriptors, signals, umask. */
void sandbox_begin(void);
/*
 * The same and the rest, for what serves strangers. Signals that are blocked stay so until watch_open(): one that comes
 * while a master becomes a new program (handover.h) waits for that, and does not end it.
 */
void sandbox_harden(void);
/* Started as root: become `user`, or the owner of `path`. *stayed_root_out tells that the owner is root. */
enum err sandbox_drop_root(
    const char *user, const char *path, bool *stayed_root_out, struct why *why) MUST_CHECK;

/* Who sandbox_drop_root() would make of us; false = we stay who we are. */
bool sandbox_later_user(const char *user, const char *path, unsigned *uid_out, unsigned *gid_out);

#endif
