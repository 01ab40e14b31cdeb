/*
 * ask - a question of our own to a model, in the middle of a request: for a summary, for the kind of a task.
 *
 * It goes the way of every request (route, pick, lease, settlement) as the same client's and within his realm, with no
 * session, no context and no question inside it, before the request itself takes a lease: there is one at a time. The
 * whole has `limit_ms`, queues and back-offs included; the client that goes away and the end of the drain stop it. Its
 * time being over is nobody's failure.
 *
 * Log       a line of its own, with `purpose` behind the request's id and as a field
 * Memory    in the request's arena
 * Source    SPEC.md sections 12, 13
 */
#ifndef ASK_H
#define ASK_H

#include "serve_job.h"

struct ask {
	const char *purpose; /* one word: "summary", "classify" */
	struct span model, system, text;
	int64_t max_tokens, limit_ms;
};

struct ask_answer {
	bool ok;
	bool late; /* the limit was over */
	struct span text;
	struct why why; /* of what was not ok */
};

/* Not for a job that is a question itself, or one that is only explained. */
void ask_run(struct serve_job *job, const struct ask *ask, struct ask_answer *answer_out);

#endif
