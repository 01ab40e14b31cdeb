/*
 * forward_transfer - one transfer on its way, as forward.c moves it and forward_end.c judges and ends it. For these two.
 */
#ifndef FORWARD_TRANSFER_H
#define FORWARD_TRANSFER_H

#include "forward.h"

#include "convert_error.h"
#include "convert_flow.h"

#define ERROR_BODY_MAX 65536         /* of it is classified */
#define ERROR_KEEP_MAX (1024 * 1024) /* of it goes to the client; what is longer is cut off */

enum mode {
	MODE_OPEN, /* no byte of the body yet that tells */
	MODE_EVENTS,
	MODE_PLAIN,
	MODE_RAW, /* sound, text: relayed as it comes */
};

/* Why we ended a transfer ourselves. */
enum stop {
	STOP_NOT,
	STOP_END,   /* the terminal event */
	STOP_ERROR, /* an in-band error */
	STOP_EMPTY, /* a terminal event with nothing before it */
	STOP_CLIENT,
	STOP_DRAIN,
	STOP_LATE, /* the time for a question of our own is over: nobody's failure */
	STOP_TIMEOUT,
	STOP_TOO_BIG,
	STOP_GRAMMAR, /* what cannot be read cannot be converted */
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
	struct convert_flow *flow;     /* NULL: events pass as they are */
	bool gathers;                  /* ... and the client wants a plain answer */
	struct convert_flow *listener; /* of what passes as it is, NULL: nobody wants it whole */
	struct buf *made;              /* by one call of the flow */
	struct convert_error_trail trail;
	int64_t length; /* Content-Length, -1 = not told */
	size_t blanks;  /* before the first byte that tells */
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

/* Can an answer be put into another shape or API? */
static inline bool
forward_converts(const struct transfer *t)
{
	return t->task->convert != NULL && t->task->convert->rq->endpoint->converts;
}

static inline bool
forward_is_success(const struct transfer *t)
{
	return t->out->status >= 200 && t->out->status < 300;
}

/* Bytes for the client: held back until the first content, or on their way with it. */
void forward_relay(struct transfer *t, struct span bytes);
void forward_hold(struct transfer *t, struct span bytes);
void forward_pass(struct transfer *t, struct span bytes);

/* Tell who wants to know that these events end it. */
void forward_ending(struct transfer *t, struct span events);

/* forward_media.c: how to take a body that may be of any type, by its first bytes. */
enum mode forward_media_mode(const struct transfer *t);
/* MODE_RAW: more of it for the client. */
void forward_media(struct transfer *t, struct span bytes);
/* It ended as such an answer may. */
bool forward_media_is_whole(const struct transfer *t);

/* forward_convert.c: is there anything to convert in a stream? */
void forward_begin_flow(struct transfer *t);
/* An event through the flow; `part` is what the channel's dialect finds in it. */
void forward_event(struct transfer *t, const struct sse_event *event, enum dialect_part part);
/* An event that passes as it is: what an error behind it must know, and who wants the answer whole. */
void forward_note(struct transfer *t, const struct sse_event *event, enum dialect_part part);
/* What the flow still owes. It was whole. */
void forward_end_flow(struct transfer *t);
/* A whole answer in another shape or API than the client wants. */
void forward_convert_body(struct transfer *t);

/* Find out what the whole was: verdict, message, reset. */
void forward_conclude(struct transfer *t, const struct upstream_end *end);
/*
 * After the commit every stream ends in the protocol's own way, or in an error event. Flushed by the caller's end.
 */
void forward_close(struct transfer *t);

#endif
