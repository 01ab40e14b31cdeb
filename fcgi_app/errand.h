/*
 * errand - one short HTTP call that no client waits for: probes, balances, alerts.
 *
 * It has ERRAND_LIMIT_MS in all, and a worker that is at errands comes back to its socket: when it was away for
 * ERRAND_AWAY_MS and a request waits that no other worker takes, the call is given up and nothing is known of it. A
 * signal to end does the same at once. A kept connection that dies without an answer is nobody's failure: the call is
 * made once more, as none of them does harm twice.
 *
 * Memory    the answer lives in the serve's arena, which the caller resets when it is done with it
 * Source    SPEC.md section 10
 */
#ifndef ERRAND_H
#define ERRAND_H

#include "serve.h"

#define ERRAND_LIMIT_MS 10000
#define ERRAND_AWAY_MS 2000
#define ERRAND_BODY_MAX 262144 /* of an answer is read */

struct errand_answer {
	bool interrupted; /* given up: nothing is known */
	bool cut;         /* the body is longer than ERRAND_BODY_MAX; the rest is not known */
	enum classify_transport transport;
	int status; /* 0 = none */
	struct span content_type, body;
	struct reset_headers headers;
	char text[160]; /* what went wrong below HTTP */
};

/* Callbacks of `call` are filled in here. */
void errand_run(
    struct serve *s, const struct upstream_call *call, struct errand_answer *answer_out);

/* What an answer to an account's call means; keys in it are redacted first. `model` as for classify.h. */
void errand_classify(struct serve *s, const struct upstream_call *call,
    const struct errand_answer *answer, struct span model, struct classify_finding *finding_out);

/* Somebody waits for this worker: begin nothing more. Asked between errands and while one runs. */
bool errand_must_return(const struct serve *s);

#endif
