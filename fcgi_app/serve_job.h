/*
 * serve_job - one request on its way through the pipeline: what front, attempt, answer and serve share.
 */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include "context.h"
#include "convert.h"
#include "recall.h"
#include "record.h"
#include "request.h"
#include "serve.h"
#include "walk.h"
#include "weigh.h"

struct serve_job {
	struct serve *s;
	struct exchange *x;
	struct request rq;
	struct respond respond;
	struct record record;
	struct walk walk;
	struct convert convert; /* aimed at the walk's present channel */
	struct recall recall;   /* of responses: the conversation that it goes on with */
	struct context context; /* that we keep, and what is trimmed */
	struct span task;       /* what kind of work it is; "" = not known */
	struct weigh weigh;     /* how large its prompt is */
	const int64_t *prompts; /* tokens as each target's model counts them; NULL: not counted */
	bool explain;           /* an admin asks what would happen: nothing is to happen */
	bool inner; /* a question of our own (ask.h) inside another request: it asks none itself */
};

/* From the route on, of a job whose request is read: until the client has its answer. */
void serve_job_run(struct serve_job *j);

/* A line about this request, at the present time. */
void serve_job_log(
    const struct serve_job *j, enum log_level level, const char *message, const char *why);

/* xorshift64*: spreads picks and back-offs, guards nothing. */
static inline uint64_t
serve_job_random(struct serve *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * 2685821657736338717ULL;
}

#endif
