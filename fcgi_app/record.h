/*
 * record - the log line of a request, and those of transitions.
 *
 * Source    SPEC.md sections 8, 14
 */
#ifndef RECORD_H
#define RECORD_H

#include "base/log.h"
#include "forward.h"
#include "pick.h"
#include "request.h"
#include "store/journal.h"

#define RECORD_ATTEMPTS_MAX 16

struct record {
	struct mono_ms arrived;
	const char *session; /* brief hash, or NULL */
	const char *outcome; /* "ok", "client", "cancelled", a code of our own */
	const char *routing; /* how the target was chosen; NULL: there was no choice */
	struct span task;    /* what kind of work it is; "" = not known */
	/* of a question of our own (ask.h): "summary", "classify"; else NULL */
	const char *purpose;
	unsigned n;
	struct record_attempt {
		struct span channel, account, model;
		const char *kind;
		int status;
	} attempts[RECORD_ATTEMPTS_MAX];
	struct mono_ms first_byte; /* of the last attempt */
	struct dialect_usage usage;
	int64_t estimated_tokens; /* of the prompt, by our own count; 0 = not counted */
};

void record_attempt(struct record *record, const struct conf_channel *channel,
    const struct pick_lease *lease, struct span model, const struct forward_outcome *outcome);

void record_request(struct log *log, const struct record *record, const struct request *rq,
    const struct respond *respond, struct wall_ms wall, struct mono_ms now);

void record_event(struct log *log, const struct journal_row *event, struct span request_id);

#endif
