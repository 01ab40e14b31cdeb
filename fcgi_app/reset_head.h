/*
 * reset_head - what rate-limit headers state: when to come back, and which window was refused.
 *
 * Order     retry-after-ms, Retry-After (the larger if repeated), anthropic-ratelimit-*-reset, x-codex-*,
 *           x-ratelimit-reset-*; a refused subscription window is never shortened by Retry-After
 * Rules     a dimension counts when its remaining is 0 or not given; of several the latest, an empty one before one
 *           that is not given
 * Source    SPEC.md section 6; formats.md A.7, C.9, F.14
 */
#ifndef RESET_HEAD_H
#define RESET_HEAD_H

#include "reset.h"

struct reset_time reset_head_find(const struct reset_headers *headers, struct wall_ms now);

/* bits */
enum reset_window {
	RESET_WINDOW_ACCOUNT = 1, /* five hours, seven days */
	RESET_WINDOW_MODEL = 2,   /* the weekly window of one model family */
};
/* Which anthropic-ratelimit-unified windows say "rejected". */
unsigned reset_head_windows(const struct reset_headers *headers);
/* A token dimension is empty and the request dimension is not: the limit is a model's. */
bool reset_head_tokens_only(const struct reset_headers *headers);

/*
 * One value by its looks: "6m0s", RFC 3339, an HTTP date, epoch milliseconds, epoch seconds, or seconds from now. Absolute
 * times are moved by -skew_ms.
 */
bool reset_head_value(struct span value, struct wall_ms now, int64_t skew_ms, struct wall_ms *out);

#endif
