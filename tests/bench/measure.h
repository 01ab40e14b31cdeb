/*
 * measure - clocks and medians for figures.
 */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include <stdlib.h>
#include <time.h>

static inline double
measure_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline int
measure_by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The values are put in order. */
static inline double
measure_median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, measure_by_size);
	return values[n / 2];
}

#endif
