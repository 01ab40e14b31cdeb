/*
 * answer - what the client gets at the end: the upstream's answer, or an error of ours in the shape of its API.
 *
 * Source    SPEC.md sections 4.3, 4.4
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "serve_job.h"

/* An error of ours before any upstream was involved. */
void answer_refuse(struct serve_job *j, int status, const char *code, const char *message);
/* The path does not take this method: 405 with Allow. */
void answer_method(struct serve_job *j);
/* The state cannot be used: 503, and the reason in the log. */
void answer_store_failed(struct serve_job *j, const struct why *why);
/* A plain answer that served; a stream is out already. */
void answer_deliver(struct serve_job *j);
/* What would happen to this request now; its walk has begun. */
void answer_explain(struct serve_job *j);
/* Nobody served. */
void answer_give_up(struct serve_job *j);

#endif
