/*
 * steps - the steps of an answer as text, one a line, to compare and to write tests with.
 *
 *	start ID MODEL        text T     refusal T     thought T    seal T    redacted T
 *	call N ID NAME        args N T   callend N     cite JSON    break
 *	finish REASON STOP    usage PROMPT COMPLETION CACHED WRITTEN REASONING    end
 *
 * A custom call is "custom N ID NAME". Texts reach to the end of the line; "\n" in them is a line end.
 */
#ifndef LIB_STEPS_H
#define LIB_STEPS_H

#include "dialect/flow.h"

/* A flow_sink_fn; the argument is a struct buf. */
void steps_note(void *out, const struct flow *step);
/* The other way: give the steps that the text names. */
void steps_give(const char *text, flow_sink_fn *sink, void *arg);

#endif
