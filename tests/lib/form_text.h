/*
 * form_text - forms and steps of answers as one line of text each, for tables of cases.
 */
#ifndef LIB_FORM_TEXT_H
#define LIB_FORM_TEXT_H

#include "dialect/flow.h"

/* Turns, then tools, then what else is set. */
void form_text(struct buf *out, const struct form *form);

/* A flow_sink_fn whose `arg` is a struct buf: "text:Hi|call0:id,name|args0:{}|end". Pieces of one
 * kind are put together, so that cuts do not show. */
void flow_text(void *out, const struct flow *step);

#endif
