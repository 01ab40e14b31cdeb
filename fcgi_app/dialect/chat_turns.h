/*
 * chat_turns - chat messages as turns of the form.
 *
 * System and developer messages keep their place; tool messages that stand together are one turn;
 * function_call and the "function" message after it become a call and a result with an id made from
 * their place.
 *
 * Source    formats.md A.2, A.8; cases.md CONV-01, CONV-03
 */
#ifndef DIALECT_CHAT_TURNS_H
#define DIALECT_CHAT_TURNS_H

#include "dialect/chat_parts.h"

enum err chat_turns_read(struct chat_reader *r, const struct scan_value *messages) MUST_CHECK;

#endif
