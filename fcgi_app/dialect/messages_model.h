/*
 * messages_model - what the models behind the Messages API accept, by their names: one table.
 *
 * Names     as providers spell them, in any case, with '.' or '-' between the figures, and with
 *           what hosts put around: "anthropic/claude-opus-4.7", "claude-opus-4-7-20260101"
 * Unknown   a name with "claude" is taken for a newest one; any other model, behind another host's
 *           Anthropic face, for one that takes what the first models with thinking took
 * Source    formats.md C.2, C.3, E.1, E.7, H.2; cases.md CONV-05, CONV-06
 */
#ifndef DIALECT_MESSAGES_MODEL_H
#define DIALECT_MESSAGES_MODEL_H

#include "dialect/form.h"

enum messages_thinks { MESSAGES_THINKS_NEVER, MESSAGES_THINKS_BUDGET, MESSAGES_THINKS_ADAPTIVE };

struct messages_model {
	const char *pattern;
	enum messages_thinks thinks;
	bool always;        /* thinking cannot be off */
	bool no_sampling;   /* temperature, top_p, top_k are refused */
	bool one_of_two;    /* temperature and top_p together are refused */
	bool no_prefill;    /* the last message must be a user's */
	bool structured;    /* output_config.format, strict tools */
	bool xhigh;         /* knows this effort */
	bool hosted;        /* web_search_... and other tools of the API itself */
	int64_t max_output; /* tokens, where less than the default */
};

const struct messages_model *messages_model_of(struct span name);

/* How a request's wish to think is said to a model. */
struct messages_thinking {
	enum { MESSAGES_UNSAID, MESSAGES_OFF, MESSAGES_BUDGET, MESSAGES_ADAPTIVE } kind;
	int64_t budget;     /* of MESSAGES_BUDGET; at least 1,024, less than *max_tokens */
	const char *effort; /* output_config.effort, or NULL */
	bool lost;          /* the wish could not be kept */
};

/*
 * A limit that the client gave (`given`) stays: a quarter of it is left for the answer, and with
 * less than 1,024 for thinking there is none. Otherwise *max_tokens grows up to `cap`, -1 = no cap.
 */
struct messages_thinking messages_model_think(const struct messages_model *model,
    const struct form *form, bool given, int64_t cap, int64_t *max_tokens);

#endif
