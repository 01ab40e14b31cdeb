/*
 * responses_flow_out - the events of a Responses stream: items, their parts, and the response object.
 *
 * Order     formats.md B.5: an item begins, then its parts with their pieces, then it ends; items of
 *           calls may be open together with others, messages and reasoning come one by one
 * Memory    all texts are kept until the end, which repeats them
 * Source    formats.md B.5, E.11
 */
#ifndef DIALECT_RESPONSES_FLOW_OUT_H
#define DIALECT_RESPONSES_FLOW_OUT_H

#include "dialect/responses.h"

/* An item that is being written, or was. */
struct responses_flow_out {
	struct responses_item out;
	size_t index; /* output_index */
	bool done, wrapped;
	struct buf *text;       /* of the part that is open; NULL: none is; calls: arguments */
	struct buf *citations;  /* of that part */
	size_t ncitations, cap; /* of `parts` */
	struct responses_part *parts;
	struct span json; /* the whole, once done */
};

struct flow_writer {
	struct flow_job job;
	struct span id;
	int64_t sequence;
	bool started, finished, has_usage;
	enum flow_finish finish;
	struct dialect_usage usage;
	struct responses_flow_out **items;
	size_t nitems, cap;
	size_t *calls; /* index of an item, by number of the call */
	size_t ncalls, cap_calls;
	struct responses_flow_out *open; /* the message or reasoning that goes on */
	struct responses_flow_out
	    *waiting; /* a call that ended: how is known by what comes after it */
	struct emit e;
};

void *responses_flow_grow(struct arena *arena, void *old, size_t n, size_t *cap, size_t size);
void responses_flow_begin(struct flow_writer *w, const char *type, struct buf *out);
void responses_flow_close(struct flow_writer *w);
void responses_flow_begin_of(struct flow_writer *w, const struct responses_flow_out *item,
    const char *type, struct buf *out);
struct span responses_flow_output(const struct flow_writer *w);
void responses_flow_object(
    struct flow_writer *w, const char *type, struct responses_object *o, struct buf *out);
struct responses_flow_out *responses_flow_new(
    struct flow_writer *w, enum responses_kind kind, const char *status);
void responses_flow_put_item(struct flow_writer *w, const struct responses_flow_out *item,
    const char *type, struct buf *out);
struct responses_part *responses_flow_part(const struct responses_flow_out *item);
void responses_flow_begin_part(
    struct flow_writer *w, struct responses_flow_out *item, bool refusal, struct buf *out);
void responses_flow_end_part(
    struct flow_writer *w, struct responses_flow_out *item, struct buf *out);
void responses_flow_end_open(struct flow_writer *w, const char *status, struct buf *out);
void responses_flow_piece(struct flow_writer *w, const struct responses_flow_out *item,
    const char *type, struct span text, struct buf *out);
void responses_flow_end_call(
    struct flow_writer *w, struct responses_flow_out *item, const char *status, struct buf *out);
void responses_flow_end_waiting(struct flow_writer *w, struct buf *out);
struct responses_flow_out *responses_flow_open(
    struct flow_writer *w, enum responses_kind kind, struct buf *out);

#endif
