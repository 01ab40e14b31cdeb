/*
 * recall - responses that clients refer to: the conversation behind previous_response_id, and what is kept of an answer.
 *
 * A kept response belongs to the client that made it. Where the account that answered keeps it, too, and serves again,
 * its id goes up as it came; all others get the history before the new input.
 *
 * Kept      what ended well, unless the client said "store": false; in `book` (store/kept.h) for context.ttl, by
 *           context.max_session and context.max_total (keeping.h). It is there before the client sees the end of the
 *           answer.
 * Source    SPEC.md 4.1, 13, 15; formats.md B.6, B.7; cases.md CONV-13, TOOL-14
 */
#ifndef RECALL_H
#define RECALL_H

#include "dialect/history.h"
#include "request.h"
#include "respond.h"

struct serve;
struct serve_job;

struct recall {
	bool keeps;                     /* the answer is to be kept */
	bool found;                     /* what it refers to */
	bool kept;                      /* the answer is */
	struct history from;            /* what it refers to */
	struct span carried;            /* its items, marked */
	struct dialect_request written; /* the request as the client wrote it */
	struct span plain;              /* the body for hosts of other APIs, once it is made */
};

/*
 * What the request refers to. False: it was answered, as there is no such response of this client. Once the walk and
 * `convert` have begun.
 */
bool recall_begin(struct serve_job *j);
/* At the walk's first place: the account that keeps it, too, is preferred from now on. */
void recall_bind(struct serve_job *j);
/* The body with all that it refers to, for hosts of other APIs; empty where it refers to nothing. */
struct span recall_whole(struct serve_job *j);
/* Before the request is aimed at the walk's present channel: the body with what that channel may have. */
enum err recall_aim(struct serve_job *j, struct why *why) MUST_CHECK;
/* The client's own bytes, for the account that keeps what they refer to; empty for all others. */
struct span recall_native(struct serve_job *j, size_t account);
/* Such an account has forgotten it: the history does. */
bool recall_is_lost(const struct serve_job *j);
/* The walk's plain answer, before the client gets it; or the events that end a stream, likewise. */
void recall_keep_plain(struct serve_job *j);
void recall_keep_events(void *job, struct span events);

/* GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items. */
void recall_page(struct serve *s, const struct request *rq, struct respond *r);

#endif
