/*
 * count - POST /v1/messages/count_tokens where no host can be asked, and the size of each prompt in the log: counts of
 * ours.
 *
 * A channel of Anthropic's API is asked; what came of it changes no account's state. Of other channels, and where the
 * host has no such endpoint, the answer is dialect/tokens.h's, with X-Sluice-Estimated: 1 unless it is exact. Each
 * worker remembers such a channel for ten minutes, and asks nobody there meanwhile: agents that start send forty of
 * these at once.
 *
 * Source    SPEC.md 4.1, 6; formats.md C.10, G; cases.md REQ-09
 */
#ifndef COUNT_H
#define COUNT_H

#include "serve_job.h"

/* The walk has begun at a channel that cannot be asked: answered. */
bool count_here(struct serve_job *j, struct mono_ms now);
/* Nobody counted, as the host has no such endpoint: answered. */
bool count_instead(struct serve_job *j, struct mono_ms now);

/* Before the log line: the prompt of a conversation, unless somebody counted it or it is large. */
void count_for_log(struct serve_job *j);

#endif
