/*
 * samples - every measured time of a run, and its quantiles at the end.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

struct samples {
	uint32_t *us;
	size_t n, cap;
};

void samples_add(struct samples *s, uint64_t us);

/* Sort, and print ,"NAME":{"n":..,"p50":..,"p90":..,"p99":..,"max":..} to stdout. */
void samples_print(const char *name, struct samples *s);

#endif
