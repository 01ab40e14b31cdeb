/*
 * task_of - the kind of work of one request: what its client says, else what a cheap model or our rules take it for.
 *
 * Client        X-Task-Type, then metadata.task_type; any name
 * Guessed       only where the caller wants it: nobody chose a model. routing.classifier is asked once per conversation
 *               and remembered (store/told.h) for sticky.ttl; its answer counts if it is one of the names that it was
 *               given: those of the configuration, and our own. Else, and when it takes longer than
 *               TASK_OF_LIMIT_MS, the rules of task.h; then it is not asked again for a while.
 * Memory        in the request's arena
 * Source        SPEC.md section 12
 */
#ifndef TASK_OF_H
#define TASK_OF_H

#include "serve_job.h"

#define TASK_OF_LIMIT_MS \
	3000 /* for a queue and an answer of one word; a person waits for what comes behind it */

/*
 * As the client or the configuration spells it; "" = none is known. Before the request takes its lease. For an admin's
 * explain, and inside a question of our own, nobody is asked.
 */
struct span task_of(struct serve_job *j, bool guess);

#endif
