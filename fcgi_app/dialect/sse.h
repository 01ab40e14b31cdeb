/*
 * sse - cut a stream of bytes into server-sent events, without changing a byte.
 *
 * Feed what arrived, then take events until there is none. An event is the run of bytes up to and including the empty
 * line that ends it; lines end in LF, CR or CRLF, each possibly split between reads. Leading BOM, comments, unknown
 * fields and stray empty lines are part of the raw bytes: joined in order, the raw bytes of all events are the stream.
 *
 * CR        An empty line that ends in CR may be half of a CRLF. If the line before it ended in CR alone, the event is
 *           over at once and an LF that follows opens the next event's bytes; otherwise the next byte is waited for.
 *           So the events depend on the bytes only, never on how reads cut them.
 * Time      linear in the bytes, whatever the cuts
 * Memory    one event and what came after it; bytes handed out go at the next sse_feed()
 * Errors    ERR_TOO_BIG an event beyond the maximum; it stays so until sse_clear()
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
	struct buf bytes;  /* not yet dropped; what was handed out comes first */
	struct buf joined; /* data of several lines */
	size_t max;        /* bytes of one event */
	size_t start;      /* where the next event begins */
	size_t line;       /* where the current line begins */
	size_t scanned;    /* bytes looked at */
	size_t end;        /* end of the complete event at `start`; 0 = not found yet */
	bool after_cr;     /* the byte before `scanned` ended a line: an LF now belongs to it */
	bool empty_cr;     /* ... and that line was empty: the event is over with the LF or without */
	bool cr_alone;     /* the last line ended in CR without LF */
	bool begun;        /* the first event was taken: no BOM from here */
	bool over;         /* an event was too big */
};

void sse_init(struct sse *s, size_t max_event_bytes);
void sse_release(struct sse *s);
void sse_clear(struct sse *s); /* for the next stream */

enum err sse_feed(struct sse *s, struct span bytes, struct why *why) MUST_CHECK;
/* The next complete event; its spans are good until the next call with this sse. False: feed more. */
bool sse_next(struct sse *s, struct sse_event *event_out);
/*
 * At the end of input: the next event, complete or not; the last one counts even though its empty line is missing.
 * False: nothing is left, or the rest was too big.
 */
bool sse_last(struct sse *s, struct sse_event *event_out);
/* Bytes held that were not yet handed out. */
struct span sse_rest(const struct sse *s);

#endif
