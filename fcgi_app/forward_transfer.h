/*
 * forward_transfer - one transfer on its way, as forward.c moves it and forward_end.c judges and ends it. For these two.
 */
#ifndef FORWARD_TRANSFER_H
#define FORWARD_TRANSFER_H

#include "forward.h"

#define ERROR_BODY_MAX 65536         /* of it is classified */
#define ERROR_KEEP_MAX (1024 * 1024) /* of it goes to the client; what is longer is cut off */

enum mode {
	MODE_OPEN, /* no byte of the body yet that tells */
	MODE_EVENTS,
	MODE_PLAIN,
};

/* Why we ended a transfer ourselves. */
enum stop {
	STOP_NOT,
	STOP_END,   /* the terminal event */
	STOP_ERROR, /* an in-band error */
	STOP_EMPTY, /* a terminal event with nothing before it */
	STOP_CLIENT,
	STOP_DRAIN,
	STOP_TIMEOUT,
	STOP_TOO_BIG,
};

struct transfer {
	const struct forward_task *task;
	const struct conf_policy *policy;
	struct forward_outcome *out;
	struct redact redact;
	struct arena *scratch; /* of one event: redacted copies; made when a key is found */
	struct sse sse;
	struct buf *body;
	struct buf *held;
	struct buf *error_event; /* data of an in-band error */
	struct reset_headers headers;
	enum mode mode;
	enum stop stop;
	bool in_block;        /* behind a status line, before the empty line */
	bool dirty;           /* written since the last flush */
	bool error_relayed;   /* the upstream's own error event went to the client */
	bool last_ends_blank; /* what was relayed last ended with an empty line */
	bool probed;          /* a half-closed connection was written to */
	unsigned probes; /* heartbeats that were to find out whether a half-closed client reads */
	struct mono_ms last_byte, last_sent;
	const char *timeout_text;
};

static inline bool
forward_committed(const struct transfer *t)
{
	return t->task->respond->committed;
}

static inline bool
forward_is_success(const struct transfer *t)
{
	return t->out->status >= 200 && t->out->status < 300;
}

/* Find out what the whole was: verdict, message, reset. */
void forward_conclude(struct transfer *t, const struct upstream_end *end);
/*
 * After the commit every stream ends in the protocol's own way, or in an error event. Flushed by the caller's end.
 */
void forward_close(struct transfer *t);

#endif
