/*
 * serve_aim - where a request goes next: to one of its targets, or along the fallback chain; and its body as it is spoken
 * there.
 *
 * A model that is no entry of `models` has nothing to choose, and costs nothing of this.
 *
 * Source    SPEC.md sections 5, 9, 12
 */
#ifndef SERVE_AIM_H
#define SERVE_AIM_H

#include "serve_job.h"

/* The request's candidates, and its walk, which is nowhere yet where there is something to choose. False: answered. */
bool serve_aim_begin(struct serve_job *j);
/* To the first place. False: answered. Once what the prompt consists of is known. */
bool serve_aim_first(struct serve_job *j);
/* The body for that place. False: answered, or there is no such place. */
bool serve_aim_body(struct serve_job *j);
/* On to the next place that can say what this request asks for. False: there is none. */
bool serve_aim_next(struct serve_job *j);
/* Before a pick: what the breakers say. */
void serve_aim_look(struct serve_job *j);

#endif
