#include "samples.h"

#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

void
samples_add(struct samples *s, uint64_t us)
{
	if (s->n == s->cap) {
		s->cap = s->cap == 0 ? 65536 : s->cap * 2;
		s->us = wire_grown(s->us, s->cap * sizeof *s->us);
	}
	s->us[s->n++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static int
sample_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

void
samples_print(const char *name, struct samples *s)
{
	if (s->n > 0)
		qsort(s->us, s->n, sizeof *s->us, sample_order);
	printf(",\"%s\":{\"n\":%zu", name, s->n);
	static const struct {
		const char *name;
		size_t permille;
	} quantiles[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}};
	for (size_t i = 0; s->n > 0 && i < sizeof quantiles / sizeof *quantiles; i++)
		printf(",\"%s\":%u", quantiles[i].name,
		    s->us[(s->n - 1) * quantiles[i].permille / 1000]);
	if (s->n > 0)
		printf(",\"max\":%u", s->us[s->n - 1]);
	printf("}");
}
