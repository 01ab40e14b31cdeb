/*
 * responses_order - checks that a Responses stream keeps the grammar of its events (formats.md B.5),
 * and tells it in short: "created in_progress +0:message part0 'Hi' text.done part.done -0 completed".
 */
#ifndef LIB_RESPONSES_ORDER_H
#define LIB_RESPONSES_ORDER_H

#include "base/arena.h"

/* Fails the test where the grammar is broken. `output` is that of the last event, as below. */
void responses_order(
    struct arena *arena, struct span stream, struct buf *order_out, struct buf *output_out);
/* The "output" of a response object, the ids cut to their prefix. */
void responses_order_output(struct span response, struct buf *output_out);

#endif
