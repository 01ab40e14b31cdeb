/*
 * request - what the client wants: from the web server's variables and the body to one checked value.
 *
 * In two steps, because access is decided between them: request_head() reads variables only, request_body() the body.
 *
 * Errors    request_body(): ERR_TOO_BIG 413, ERR_BAD_INPUT 400, ERR_TIMEOUT 408 (503 when the drain is over), ERR_IO
 *           the client's side broke off, ERR_STORE 503: a large form cannot be held
 * Memory    strings live in the request's arena or in the body; the body is the caller's buffer
 * Source    SPEC.md sections 4, 5; hosting.md 5, 7
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "conf/conf.h"
#include "dialect/read.h"
#include "endpoint.h"
#include "exchange.h"

#define REQUEST_MODEL_MAX 255 /* bytes of a model's name: what the store holds of one */
/* Bytes of the body a second, beyond stall_ms: as Apache's mod_reqtimeout. */
#define REQUEST_MIN_RATE 500

struct request {
	struct span id; /* X-Request-Id: the client's if it is well-formed, else ours */
	struct span method;
	char path[PATH_MAX_BYTES];
	const struct endpoint *endpoint; /* NULL: unknown path */
	struct span client;
	/* of the body */
	struct dialect_request read;
	struct span model;   /* decoded; "" where a body may have none */
	struct span session; /* of run: the conversation's name, the client's or ours */
	bool stream, wants_usage;
	int64_t swallowed; /* bytes of a body of which nothing is kept */
	/* of multipart/form-data: Content-Type, the whole, and the model's value in it; `read` is empty then */
	struct span form_type, form, form_model;
};

/* How much may come, and how slowly: in stall_ms and a second for each REQUEST_MIN_RATE bytes. */
struct request_limits {
	int64_t max_bytes, stall_ms;
	const char *spool_dir; /* for forms that are too large for memory: spool.h */
	struct mono_ms (*clock)(void);
};

/* `fresh_id` is ours, unique. */
void request_head(
    struct request *rq, const struct exchange *x, const struct conf *conf, struct span fresh_id);

enum err request_body(struct request *rq, const struct exchange *x, struct arena *arena,
    const struct request_limits *limits, struct buf *body, struct why *why) MUST_CHECK;

#endif
