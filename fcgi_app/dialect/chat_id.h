/*
 * chat_id - ids for calls that came without one.
 */
#ifndef DIALECT_CHAT_ID_H
#define DIALECT_CHAT_ID_H

#include "base/arena.h"

/* "call_" and 24 hex digits of a hash over all three: legal on every wire. */
struct span chat_id_make(
    struct arena *arena, struct span answer, size_t position, struct span name);

#endif
