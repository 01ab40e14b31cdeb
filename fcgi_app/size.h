/*
 * size - how many workers an elastic pool should start or stop now. Pure: no process, no clock.
 *
 * Idle workers below `spare`: as many are started as are missing. None idle at all: 1, 2, 4 ... 32 at each further look,
 * so that a burst has its workers after a few steps. More idle ones than needed for SIZE_QUIET_MS on end: those that
 * nobody needed in that time are stopped. A fixed pool has min == max.
 *
 * Source    SPEC.md section 2
 */
#ifndef SIZE_H
#define SIZE_H

#include "store/types.h"

#include <stdbool.h>

#define SIZE_QUIET_MS 60000
#define SIZE_STEP_MOST 32
#define SIZE_STEP_FORGET_MS 1000 /* the next burst begins with one again */

struct size_limits {
	unsigned min, spare, max;
};

/* Workers that are not told to end; busy ones are what is left of `alive`. */
struct size_view {
	unsigned alive, idle, starting;
};

/* What is kept from one look to the next; zero at first. */
struct size_memory {
	bool over; /* more idle ones than needed ... */
	struct mono_ms over_since;
	unsigned over_least; /* ... and never fewer than so many too many */
	unsigned step;       /* the last one of a burst */
	struct mono_ms stepped_at;
};

/* Never both. */
struct size_change {
	unsigned start, stop;
};

struct size_change size_look(const struct size_limits *limits, const struct size_view *view,
    struct mono_ms now, struct size_memory *memory);

/* A worker that becomes busy and leaves fewer idle ones than this tells the master; 0 = nothing could be done. */
unsigned size_tell_below(const struct size_limits *limits, const struct size_view *view);

#endif
