/*
 * weigh - how large a request's prompt is for each model that may get it.
 *
 * Counted by dialect/tokens.h, once for all models that count alike, and only when somebody asks: most requests are so
 * much smaller than any window that their bytes tell.
 *
 * Source    SPEC.md sections 12, 13
 */
#ifndef WEIGH_H
#define WEIGH_H

#include "dialect/tokens.h"

#define WEIGH_KINDS_MAX 8 /* ways to count that are remembered */

struct weigh {
	struct tokens *tokens;   /* NULL: all is estimated */
	const struct form *form; /* the conversation as it will be sent; NULL: it cannot be read */
	bool least;              /* it is trimmed: only what must be kept has to fit */
	unsigned nkinds;
	struct weigh_kind {
		struct tokens_model by;
		int64_t prompt;
	} kinds[WEIGH_KINDS_MAX];
};

/* Tokens of the prompt for this model, not corrected; -1: it cannot be read. */
int64_t weigh_prompt(struct weigh *w, struct span model);
/* The same of what was counted already, else 0. */
int64_t weigh_counted(const struct weigh *w, struct span model);

#endif
