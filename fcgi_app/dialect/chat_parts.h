/*
 * chat_parts - the content of chat messages, as clients of many hosts write it: strings, parts, data
 * URLs, thoughts.
 *
 * Errors    ERR_BAD_INPUT names the place: "'messages[3].content[1].image_url' ..."
 * Source    formats.md A.2, A.8, E.1; cases.md CONV-08
 */
#ifndef DIALECT_CHAT_PARTS_H
#define DIALECT_CHAT_PARTS_H

#include "dialect/form.h"

struct chat_reader {
	struct arena *arena;
	struct form *form;
	struct why *why;
	size_t at; /* the message being read */
};

/*
 * Find members of an object by name; null is like absent, the last of a name counts. Others go to the
 * extras as "<where>.<name>".
 */
void chat_parts_pick(struct chat_reader *r, struct span object, const char *const *names,
    struct scan_value *out, size_t n, const char *where);

/* A string, decoded; empty if absent. ERR_BAD_INPUT for other types: "'<where>.<name>' must be". */
enum err chat_parts_text(struct chat_reader *r, const struct scan_value *value, const char *where,
    const char *name, struct span *out) MUST_CHECK;

/* A message's content: null, a string, an array of parts. Empty texts give no part. */
enum err chat_parts_read(
    struct chat_reader *r, const struct scan_value *content, struct form_turn *turn) MUST_CHECK;

/* Thoughts that a client hands back: the text, and details that may hold our seals. */
enum err chat_parts_thoughts(struct chat_reader *r, struct span text,
    const struct scan_value *details, struct form_turn *turn) MUST_CHECK;

/* "text-<first byte>-<behind the last>" or "redacted": which part of a message's reasoning text a
 * seal belongs to. What chat_flow_write gives and chat_parts_thoughts() reads. */
#define CHAT_PARTS_REDACTED "redacted"

#endif
