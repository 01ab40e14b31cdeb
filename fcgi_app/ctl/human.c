#include "ctl/human.h"

#include "base/date.h"

#include <stdlib.h>

void
human_left(int64_t ms, char out[HUMAN_TIME])
{
	long long s = ms <= 0 ? 0 : (ms - 1) / 1000 + 1;

	if (s == 0)
		snprintf(out, HUMAN_TIME, "-");
	else if (s >= 86400)
		snprintf(out, HUMAN_TIME, "%lldd %lldh", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(out, HUMAN_TIME, "%lldh %lldm", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(out, HUMAN_TIME, "%lldm %llds", s / 60, s % 60);
	else
		snprintf(out, HUMAN_TIME, "%llds", s);
}

void
human_time(struct wall_ms t, char out[HUMAN_TIME])
{
	struct date_civil c;

	if (t.v <= 0) {
		snprintf(out, HUMAN_TIME, "-");
		return;
	}
	date_split(t.v / 1000, &c);
	snprintf(out, HUMAN_TIME, "%04u-%02u-%02u %02u:%02u:%02u", (unsigned)c.year % 10000,
	    (unsigned)c.month % 100, (unsigned)c.day % 100, (unsigned)c.hour % 100,
	    (unsigned)c.minute % 100, (unsigned)c.second % 100);
}

void *
human_grow(void *list, size_t n, size_t size)
{
	void *grown = list;

	if ((n & (n - 1)) == 0) /* full at each power of two */
		grown = realloc(list, (n == 0 ? 1 : 2 * n) * size);
	if (grown == NULL)
		die("no memory for %zu rows", n);
	return grown;
}

int
human_print(struct ctl *ctl, const struct buf *text)
{
	if (text->over) {
		fprintf(ctl->err, "sluicectl: there is more than %zu bytes to say\n", text->max);
		return CTL_FAILED;
	}
	fwrite(text->p, 1, text->n, ctl->out);
	return CTL_DONE;
}
