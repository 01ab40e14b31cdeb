/*
 * chat_tools - tools, the choice among them, and calls, as chat clients write them.
 *
 * Source    formats.md A.2, A.3
 */
#ifndef DIALECT_CHAT_TOOLS_H
#define DIALECT_CHAT_TOOLS_H

#include "dialect/chat_parts.h"

enum err chat_tools_read(struct chat_reader *r, const struct scan_value *tools) MUST_CHECK;
/* The pair from before there were tools: functions, and function_call in the request. */
enum err chat_tools_functions(struct chat_reader *r, const struct scan_value *functions) MUST_CHECK;
enum err chat_tools_choice(struct chat_reader *r, const struct scan_value *choice) MUST_CHECK;

/* An assistant message's tool_calls. */
enum err chat_tools_calls(
    struct chat_reader *r, const struct scan_value *calls, struct form_turn *turn) MUST_CHECK;
/* An assistant message's function_call; it gets an id made from its place and name. */
enum err chat_tools_old_call(
    struct chat_reader *r, const struct scan_value *call, struct form_turn *turn) MUST_CHECK;

#endif
