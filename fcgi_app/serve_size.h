/*
 * serve_size - how large a request is for each of its targets.
 *
 * Counted once, and only where it matters: where the bytes could be more than some window takes, where prices differ and
 * decide, or for an explanation. Elsewhere a guess by the bytes will do.
 *
 * Source    SPEC.md sections 12, 13
 */
#ifndef SERVE_SIZE_H
#define SERVE_SIZE_H

#include "serve_job.h"
#include "walk_elect.h"

struct walk_size serve_size(struct serve_job *j);
/* Tokens that the answer may have, as the client says; 0 = it does not. */
int64_t serve_size_limit(const struct serve_job *j);

#endif
