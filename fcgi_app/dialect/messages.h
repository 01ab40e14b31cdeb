/*
 * messages - Anthropic's Messages API: how its answers, events and errors look.
 *
 * Usage     the wire counts cached tokens beside input_tokens, our figures as part of the prompt; a
 *           later figure that is not null replaces an earlier one, member by member
 * Errors    {"type":"error","error":{"type","message"}}; our code, if any, as details.error_code
 * Source    formats.md C, D.10, E.8, E.9; SPEC.md 4.3; cases.md SSE-15
 */
#ifndef DIALECT_MESSAGES_H
#define DIALECT_MESSAGES_H

#include "dialect/dialect.h"
#include "dialect/form.h"

#define MESSAGES_TOKENS_MAX (INT64_C(1) << 40) /* beyond it a figure is nonsense */

/* Add a usage object, member by member: what it does not have, or has in no sensible form, stays. */
void messages_usage(const struct scan_value *object, struct dialect_usage *usage);

void messages_error_body(
    struct buf *out, int status, const char *type, const char *code, struct span message);
void messages_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message);

enum dialect_part messages_event(const struct sse_event *event, struct dialect_tap *tap);
bool messages_answer(struct span body, struct dialect_tap *tap);

/*
 * False: a tool loop is running whose calls no thought that goes along precedes; with thinking by budget the API
 * refuses that. messages_parts.c.
 */
bool messages_may_think(const struct form *form, const struct form_target *target);

/*
 * Where calls or results stand in a conversation the API wants tools beside it, though none are offered any more: one
 * that must not be called. messages_tools.c.
 */
bool messages_wants_tool(const struct form_turn *turns, size_t nturns);
#define MESSAGES_TOOL                                                \
	"[{\"name\":\"none\",\"description\":\"Not to be called.\"," \
	"\"input_schema\":{\"type\":\"object\"}}]"
#define MESSAGES_TOOL_CHOICE "{\"type\":\"none\"}"

#endif
