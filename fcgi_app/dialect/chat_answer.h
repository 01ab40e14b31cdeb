/*
 * chat_answer - what a chat answer says, streamed or whole: ids, names put back, finish reasons,
 * usage, seals.
 *
 * Source    formats.md A.5, A.6, E.2, E.3, E.6, E.8, E.12
 */
#ifndef DIALECT_CHAT_ANSWER_H
#define DIALECT_CHAT_ANSWER_H

#include "base/emit.h"
#include "dialect/flow.h"

/* "chatcmpl-..." from the upstream's id, else from our own. */
struct span chat_answer_id(const struct flow_job *job, struct span upstream);

/* The tool whose name was sent in another form; NULL: it went as it is. */
const struct form_name *chat_answer_name(const struct flow_job *job, struct span sent);

const char *chat_answer_finish(enum flow_finish finish);

void chat_answer_usage(struct emit *e, const char *key, const struct dialect_usage *usage);

/* Elements of reasoning_details: the seal, and which bytes of reasoning_content it belongs to; or what
 * a host of this wire sent. */
void chat_answer_seal(struct emit *e, struct span seal, bool redacted, size_t first, size_t end);

/* An element of annotations. */
void chat_answer_citation(struct emit *e, struct span raw);

/* The free text in {"input":"..."}; what is no such object is the text itself. */
struct span chat_answer_unwrap(struct arena *arena, struct span arguments);

#endif
