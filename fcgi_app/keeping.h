/*
 * keeping - reading and changing `book` while serving: what is kept of responses and of conversations.
 *
 * A `book` that is missing is made, as is one that is damaged, which is logged: what was in it is lost then.
 *
 * Bounds    responses and conversations may each have context.max_total, but no more than a quarter of store.max_size:
 *           what must outlive a power cut always finds room beside them
 * Errors    as in env.h; env_error() has the text
 */
#ifndef KEEPING_H
#define KEEPING_H

#include "serve.h"

/* Bytes that each of the two may have. */
uint64_t keeping_bytes(struct serve *s);

/* `fn` may run again from the start. STORE_NONE: there is no `book`, or it said so. */
enum store_rc keeping_view(
    struct serve *s, env_fn *fn, void *arg, struct wall_ms now) STORE_MUST_CHECK;
enum store_rc keeping_change(
    struct serve *s, env_fn *fn, void *arg, struct wall_ms now) STORE_MUST_CHECK;
/* The same of what may be the first that is kept. */
enum store_rc keeping_add(
    struct serve *s, env_fn *fn, void *arg, struct wall_ms now) STORE_MUST_CHECK;

#endif
