/*
 * ask - a question of our own to a model, in the middle of a request: for a summary, for the kind of a task.
 *
 * It goes the way of every request (route, pick, lease, settlement) as the same client's, with no session, no context and
 * no question inside it, before the request itself takes a lease. The whole has `limit_ms`; the client that goes away and
 * the end of the drain stop it.
 *
 * Memory    in the request's arena
 * Source    SPEC.md sections 12, 13
 */
#ifndef ASK_H
#define ASK_H

#include "serve_job.h"

struct ask {
	struct span model, system, text;
	int64_t max_tokens, limit_ms;
};

struct ask_answer {
	bool ok;
	struct span text;
	struct why why; /* of what was not ok */
};

void ask_run(struct serve_job *job, const struct ask *ask, struct ask_answer *answer_out);

#endif
