/*
 * nonce - names that nobody can guess, made of the system's random bytes.
 */
#ifndef BASE_NONCE_H
#define BASE_NONCE_H

#include "base/arena.h"

/* Hex digits, 128 at most; not terminated. False: the system has no random bytes. */
bool nonce_hex(char *dst, size_t digits) __attribute__((warn_unused_result));
/* "resp_" and digits. Without random bytes the process ends. */
struct span nonce_name(struct arena *arena, const char *prefix, size_t digits);

#endif
