/*
 * convert_flow - one answer on its way from a channel's API, or from another shape of the same one, to the client's.
 *
 * A stream is converted event by event, or gathered for a client that wants a plain answer; a plain answer is written
 * as the client's plain one, or as a stream. Where it is wanted whole (convert.h: gathers) it is gathered beside that.
 *
 * Keys      the caller redacts what comes in and what goes out
 * Memory    in the request's arena
 * Source    SPEC.md 4.3, 4.4; formats.md E.3, E.5, E.11; cases.md SSE-17, SSE-18
 */
#ifndef CONVERT_FLOW_H
#define CONVERT_FLOW_H

#include "convert.h"

struct convert_flow;

/* Of the way that `c` was aimed at. `plain`: what the client is to get. */
struct convert_flow *convert_flow_begin(const struct convert *c, bool plain);
/* What passes as it is, only gathered. */
struct convert_flow *convert_flow_listen(const struct convert *c);
/* The whole answer, once it has ended; NULL: not yet, or nobody wants it. Calls, names and seals are the channel's. */
const struct flow_answer *convert_flow_answer(const struct convert_flow *f);
/* An event that the channel's dialect finds no error in. What the client gets by it is added to `out`. */
void convert_flow_event(struct convert_flow *f, const struct sse_event *event, struct buf *out);
/* A plain answer of the channel that its dialect has accepted. */
void convert_flow_body(struct convert_flow *f, struct span body, struct buf *out);
/* The answer was whole: what is still owed; of a plain one, all. */
void convert_flow_end(struct convert_flow *f, struct buf *out);
/* The stream breaks off: an event in the client's own grammar. */
void convert_flow_error(
    struct convert_flow *f, int status, const char *code, struct span message, struct buf *out);

#endif
