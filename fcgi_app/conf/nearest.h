/*
 * nearest - which of the valid names was probably meant.
 */
#ifndef CONF_NEAREST_H
#define CONF_NEAREST_H

#include "base/text.h"

struct nearest {
	struct span wanted, best;
	size_t distance;
	char list[240]; /* all that was offered: "a, b, c", cut */
	size_t n;
};

void nearest_init(struct nearest *nearest, struct span wanted);
void nearest_offer(struct nearest *nearest, struct span candidate);
/* "did you mean 'x'?" where one is near, else "valid: a, b, c", else "none is valid here". */
void nearest_text(const struct nearest *nearest, char *dst, size_t cap);

#endif
