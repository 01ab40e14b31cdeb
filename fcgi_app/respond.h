/*
 * respond - the sink to the client: a head once, then bytes; errors in the shape of the API that was called.
 *
 * Once the first body byte went out the answer is committed: no other attempt may follow. Whether the client is still
 * there is known after a flush.
 *
 * Source    SPEC.md sections 4.3, 4.4
 */
#ifndef RESPOND_H
#define RESPOND_H

#include "base/arena.h"
#include "dialect/dialect.h"
#include "exchange.h"

struct respond {
	struct exchange *x;
	struct arena *arena;
	const struct dialect *dialect; /* for the shape of errors */
	struct span request_id;
	struct span origin; /* of a CORS request that the configuration allows */
	bool head_only;     /* HEAD */
	bool preflight;     /* OPTIONS of CORS */
	bool service;       /* X-Service: sluice, of /healthz */
	bool estimated;     /* X-Sluice-Estimated: the answer is a guess of ours */
	bool committed, gone;
	int status;
	uint64_t bytes;
	/* the attempt that serves; empty before any was made */
	struct span channel, account, model, upstream_id;
	struct span dropped; /* X-Sluice-Dropped */
	struct span trimmed; /* X-Sluice-Trimmed */
	bool not_kept;       /* X-Sluice-Context: not-kept */
	unsigned attempts;
};

struct respond_head {
	int status;
	struct span content_type;
	int64_t length;        /* -1 = a stream */
	int64_t retry_after_s; /* -1 = none */
	bool no_retry;         /* x-should-retry: false */
	const char *allow;     /* Allow header of a 405, or NULL */
};

struct respond_error {
	int status;
	const char *type; /* NULL: by the status */
	const char *code; /* NULL: null */
	struct span message;
	int64_t retry_after_s; /* -1 = none */
	bool no_retry;
	const char *allow;
};

void respond_head(struct respond *r, const struct respond_head *head);
void respond_bytes(struct respond *r, struct span bytes);
void respond_flush(struct respond *r);

/* A whole answer: head with its length, and the body. */
void respond_whole(struct respond *r, const struct respond_head *head, struct span body);
void respond_json(struct respond *r, int status, struct span body);
/* Before the commit: a document. */
void respond_error(struct respond *r, const struct respond_error *error);
/* After the commit: an event of the protocol, and no end marker. */
void respond_error_event(struct respond *r, int status, const char *code, struct span message);

#endif
