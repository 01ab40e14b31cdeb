/*
 * chat_calls - the tool calls of one answer, put together from the pieces that hosts send.
 *
 * Entries are told apart by "index", else by id, else by their place; a new id with a name is a new
 * call even where a host says index 0 for all. The first name and id count; they may be missing,
 * repeated, "" or null later on. A call without an id gets one. Arguments are pieces of text, or for
 * some hosts the object itself.
 *
 * Steps     FLOW_CALL once the name is known, and the id, or that none will come; FLOW_CALL_END when
 *           another call begins and these arguments are a whole object, else at the end
 * Limits    4096 calls; what comes for more is left out
 * Source    formats.md A.6 rule 3, A.8; cases.md TOOL-04, TOOL-05, TOOL-07
 */
#ifndef DIALECT_CHAT_CALLS_H
#define DIALECT_CHAT_CALLS_H

#include "dialect/flow.h"

struct chat_calls;

struct chat_calls *chat_calls_new(struct arena *arena);
/* A delta's or message's tool_calls. `answer` is the answer's id, for made ids. */
void chat_calls_add(struct chat_calls *c, const struct scan_value *list, struct span answer,
    flow_sink_fn *sink, void *arg);
/* A function_call from before there were tools. */
void chat_calls_old(struct chat_calls *c, const struct scan_value *function, struct span answer,
    flow_sink_fn *sink, void *arg);
/* What is still owed. */
void chat_calls_end(struct chat_calls *c, struct span answer, flow_sink_fn *sink, void *arg);
size_t chat_calls_count(const struct chat_calls *c); /* FLOW_CALLs given */

/* A string's raw bytes decoded into `scratch`, or borrowed; empty for anything else. */
struct span chat_calls_text(struct buf *scratch, const struct scan_value *value);

#endif
