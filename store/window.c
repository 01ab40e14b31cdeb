#include "store/window.h"

#include <string.h>

static uint32_t
width_of(int64_t window_ms)
{
	int64_t width = window_ms / WINDOW_BUCKETS + (window_ms % WINDOW_BUCKETS > 0);

	return width < 1 ? 1 : width > UINT32_MAX ? UINT32_MAX : (uint32_t)width;
}

static int64_t
bucket_at(uint32_t width_ms, struct wall_ms now)
{
	return now.v < 0 ? 0 : now.v > WINDOW_LATEST ? WINDOW_LATEST / width_ms : now.v / width_ms;
}

void
window_clear(struct window *w)
{
	memset(w->sum, 0, sizeof w->sum);
	memset(w->n, 0, sizeof w->n);
}

void
window_add(struct window *w, int64_t window_ms, struct wall_ms now, uint64_t value)
{
	uint32_t width = width_of(window_ms);
	int64_t b = bucket_at(width, now);
	size_t i = (size_t)(b % WINDOW_BUCKETS);

	if (w->width_ms != width || b - w->newest >= WINDOW_BUCKETS ||
	    w->newest - b >= WINDOW_BUCKETS) {
		window_clear(w);
		w->width_ms = width;
		w->newest = b;
	}
	while (w->newest < b) {
		w->newest++;
		w->sum[w->newest % WINDOW_BUCKETS] = 0;
		w->n[w->newest % WINDOW_BUCKETS] = 0;
	}
	w->n[i] += w->n[i] < UINT32_MAX;
	w->sum[i] = value > UINT64_MAX / WINDOW_BUCKETS - w->sum[i] ? UINT64_MAX / WINDOW_BUCKETS
	                                                            : w->sum[i] + value;
}

void
window_sum(const struct window *w, int64_t window_ms, struct wall_ms now, uint64_t *n_out,
    uint64_t *sum_out)
{
	uint32_t width = width_of(window_ms);
	int64_t b = bucket_at(width, now);
	int64_t oldest = b - window_ms / width + 1;

	*n_out = *sum_out = 0;
	if (w->width_ms != width || w->newest - b >= WINDOW_BUCKETS)
		return;
	if (oldest < w->newest - WINDOW_BUCKETS + 1)
		oldest = w->newest - WINDOW_BUCKETS + 1;
	for (int64_t at = oldest < 0 ? 0 : oldest; at <= w->newest; at++) {
		*n_out += w->n[at % WINDOW_BUCKETS];
		*sum_out += w->sum[at % WINDOW_BUCKETS];
	}
}
