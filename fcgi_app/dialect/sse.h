/*
 * sse - cut a stream of bytes into server-sent events, without changing a byte.
 *
 * Feed what arrived; take events one by one. An event is the run of bytes up to and including the empty line that ends
 * it; lines end in LF, CR or CRLF, each possibly split between reads. Leading BOM, comments and unknown fields are part
 * of the raw bytes. Time is linear in the bytes, whatever the cuts; memory is one event and what came after it.
 *
 * Errors    ERR_TOO_BIG an event beyond the maximum
 * Source    formats.md 0.1, 0.2; cases.md SSE-01..16
 */
#ifndef DIALECT_SSE_H
#define DIALECT_SSE_H

#include "base/buf.h"

struct sse_event {
	struct span raw;  /* as it came, with its empty line */
	struct span name; /* "event" field, may be empty */
	struct span data; /* joined "data" lines; empty also when there was none */
	bool has_data;
	bool comment; /* only comment lines (or nothing) in it */
};

struct sse {
	struct buf bytes;    /* not yet taken */
	struct buf joined;   /* data of several lines */
	size_t scanned;      /* bytes of `bytes` already looked at for the end of the event */
	size_t taken;        /* bytes of the event handed out last, dropped at the next call */
	size_t line;         /* start of the current line */
	bool after_cr;       /* the last byte of the event before was CR: a leading LF belongs to it */
	bool started;        /* the BOM has been looked for */
};

void sse_init(struct sse *s, size_t max_event_bytes);
void sse_release(struct sse *s);
void sse_clear(struct sse *s); /* for the next stream */

enum err sse_feed(struct sse *s, struct span bytes, struct why *why) MUST_CHECK;
/* The next complete event; its spans are good until the next call with this sse. False: feed more. */
bool sse_next(struct sse *s, struct sse_event *event_out);
/* At the end of input: what is left as one event even though its empty line is missing. False: nothing is left. */
bool sse_last(struct sse *s, struct sse_event *event_out);
/* Bytes held that are not yet an event. */
struct span sse_rest(const struct sse *s);

#endif
