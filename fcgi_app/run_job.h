/*
 * run_job - what POST /v1/run leaves to us: the conversation's name, the model, the task.
 *
 * Session   session_id of the body, else X-Session-Id, else one is made. It is the name that X-Session-Id gives on the
 *           other paths: both lead to the same conversation.
 * Model     without one: "auto", where tasks choose among models (route.h), else the first entry of `models`
 * Source    SPEC.md 4.1, 12, 13
 */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include "serve_job.h"

/* Of requests of run alone. False: it was answered. */
bool run_job_begin(struct serve_job *j);
/* The key of a request's conversation: of run its own, else session_key(). Of no kind: it has none, or we have no secret. */
void run_job_session(const struct serve_job *j, struct session_key *key_out);

#endif
