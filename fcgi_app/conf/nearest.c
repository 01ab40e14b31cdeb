#include "conf/nearest.h"

#include <stdio.h>

#define FAR 3 /* edits; as many as a name of 6 bytes or more may differ by */

void
nearest_init(struct nearest *nearest, struct span wanted)
{
	*nearest = (struct nearest){.wanted = wanted, .distance = FAR + 1};
}

void
nearest_offer(struct nearest *nearest, struct span candidate)
{
	size_t most = nearest->wanted.n >= 6 ? FAR : nearest->wanted.n >= 4 ? 2 : 1;
	size_t distance = text_distance(nearest->wanted, candidate, most);
	char name[80];

	if (distance <= most && distance < nearest->distance) {
		nearest->distance = distance;
		nearest->best = candidate;
	}
	text_clean(name, sizeof name, candidate);
	if (nearest->n + 1 < sizeof nearest->list) {
		int n = snprintf(nearest->list + nearest->n, sizeof nearest->list - nearest->n,
		    "%s%s", nearest->n > 0 ? ", " : "", name);

		nearest->n += n > 0 ? (size_t)n : 0;
	}
}

void
nearest_text(const struct nearest *nearest, char *dst, size_t cap)
{
	char name[80];

	text_clean(name, sizeof name, nearest->best);
	if (nearest->distance <= FAR)
		snprintf(dst, cap, "did you mean '%s'?", name);
	else if (nearest->n > 0)
		snprintf(dst, cap, "valid: %s%s", nearest->list,
		    nearest->n >= sizeof nearest->list ? "..." : "");
	else
		snprintf(dst, cap, "there is none to name here");
}
