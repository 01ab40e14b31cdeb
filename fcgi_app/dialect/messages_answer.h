/*
 * messages_answer - what streams and plain answers of the Messages API have in common on their way to
 * a client.
 *
 * Source    formats.md C.6, E.4, E.6, E.8; cases.md TOOL-07, TOOL-16, CONV-16, CONV-17, CONV-19
 */
#ifndef DIALECT_MESSAGES_ANSWER_H
#define DIALECT_MESSAGES_ANSWER_H

#include "base/emit.h"
#include "dialect/flow.h"

/* "msg_...": the upstream's id, or one of our request's. */
struct span messages_answer_id(const struct flow_job *job, struct span id);
/* The name that the client gave a tool. */
struct span messages_answer_tool(const struct flow_job *job, struct span name);
/* What goes to a client as signature: its own wire's as it was, another one's sealed. */
struct span messages_answer_seal(struct span seal);
/* Legal always: a call makes it tool_use unless the answer was cut, filtered or paused. */
const char *messages_answer_reason(enum flow_finish finish, bool calls, bool refused);
/* The usage object, what is not known being 0. */
void messages_answer_usage(struct emit *e, const struct dialect_usage *usage);
/*
 * An input object of what a model gave as arguments: as it stands, closed where it was cut, {} for
 * none, {"_raw":"..."} for what is no object, {"input":"..."} for a custom tool's text.
 */
struct span messages_answer_input(struct arena *arena, struct span arguments, bool custom);

#endif
