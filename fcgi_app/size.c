#include "size.h"

/* With none idle nobody would notice that one is missing. */
static unsigned
wanted(const struct size_limits *limits)
{
	return limits->spare > 0 || limits->min >= limits->max ? limits->spare : 1;
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned
most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static unsigned
burst(struct size_memory *memory, struct mono_ms now)
{
	if (memory->step == 0 || now.v - memory->stepped_at.v > SIZE_STEP_FORGET_MS)
		memory->step = 1;
	else
		memory->step = least(memory->step * 2, SIZE_STEP_MOST);
	memory->stepped_at = now;
	return memory->step;
}

static unsigned
missing(const struct size_limits *limits, const struct size_view *view, struct mono_ms now,
    struct size_memory *memory)
{
	unsigned ready = view->idle + view->starting, n = 0;

	if (view->alive >= limits->max)
		return 0;
	if (view->alive < limits->min)
		n = limits->min - view->alive;
	if (ready + n < wanted(limits)) {
		n = wanted(limits) - ready;
		if (ready == 0 && view->alive > 0)
			n = most(n, burst(memory, now));
	}
	return least(n, limits->max - view->alive);
}

/* Not needed: above what is kept ready, and above the smallest pool. */
static unsigned
surplus(const struct size_limits *limits, const struct size_view *view)
{
	unsigned idle =
	    view->idle > wanted(limits) && view->starting == 0 ? view->idle - wanted(limits) : 0;

	return least(idle, view->alive > limits->min ? view->alive - limits->min : 0);
}

struct size_change
size_look(const struct size_limits *limits, const struct size_view *view, struct mono_ms now,
    struct size_memory *memory)
{
	struct size_change change = {missing(limits, view, now, memory), 0};
	unsigned over = surplus(limits, view);

	if (view->alive > limits->max) { /* the limit was lowered */
		change.stop = least(view->alive - limits->max, view->idle);
		memory->over = false;
		return change;
	}
	if (over == 0 || change.start > 0) {
		memory->over = false;
		return change;
	}
	if (!memory->over) {
		memory->over = true;
		memory->over_since = now;
		memory->over_least = over;
	}
	memory->over_least = least(memory->over_least, over);
	if (now.v - memory->over_since.v >= SIZE_QUIET_MS) {
		change.stop = memory->over_least;
		memory->over = false;
	}
	return change;
}

unsigned
size_tell_below(const struct size_limits *limits, const struct size_view *view)
{
	return view->alive < limits->max ? wanted(limits) : 0;
}
