/*
 * clock - reading the time. Only main, worker, serve and ctl call this; everything else takes `now`.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "store/types.h"

#include <time.h>

static inline struct wall_ms
clock_wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (struct wall_ms){(int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000};
}

static inline struct mono_ms
clock_mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct mono_ms){(int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000};
}

#endif
