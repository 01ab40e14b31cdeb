/*
 * beta - the flags of "anthropic-beta": several lists become one, each flag once.
 *
 * Source    SPEC.md 4.4; formats.md C.1; cases.md HDR-01
 */
#ifndef BETA_H
#define BETA_H

#include "base/arena.h"

#define BETA_OAUTH "oauth-2025-04-20" /* what a key that goes as "Authorization: Bearer" needs */

/* "a,b,c" in order of first appearance; empty where no list holds anything. */
struct span beta_merge(struct arena *arena, const struct span *lists, size_t n);

#endif
