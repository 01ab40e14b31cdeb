/*
 * window - how many, and how much, in the last while: sums in WINDOW_BUCKETS buckets. Pure; lies inside other rows.
 *
 * Rules     nothing older than the window counts, and up to one bucket is forgotten early; another length empties it
 * Clock     one that stepped back by less than the window lets entries count that much longer; by more empties it
 * Units     lengths and times in milliseconds; values are the caller's
 * Source    SPEC.md section 9
 */
#ifndef STORE_WINDOW_H
#define STORE_WINDOW_H

#include "store/types.h"

#define WINDOW_BUCKETS 16
#define WINDOW_LATEST (INT64_C(1) << 53) /* ms; later times count as this one */

/* Part of rows. Bucket number b (time / width) stands at b % WINDOW_BUCKETS. All zero: empty. */
struct window {
	int64_t newest; /* number of the newest bucket, within 0 .. WINDOW_LATEST */
	uint32_t width_ms, spare;
	uint64_t sum[WINDOW_BUCKETS];
	uint32_t n[WINDOW_BUCKETS];
};
_Static_assert(sizeof(struct window) == 208, "window has no padding");

void window_clear(struct window *w);
/* One more, of this value. Counts stay at their largest value rather than wrap. */
void window_add(struct window *w, int64_t window_ms, struct wall_ms now, uint64_t value);
void window_sum(const struct window *w, int64_t window_ms, struct wall_ms now, uint64_t *n_out,
    uint64_t *sum_out);

#endif
