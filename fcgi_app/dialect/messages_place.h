/*
 * messages_place - what every part of the reader of Messages requests needs: where it stands, how it
 * refuses, the members of an object.
 *
 * Errors    "'messages[3].content[1].source.data' must be a string"
 * Source    formats.md C.2; cases.md JSON-08
 */
#ifndef DIALECT_MESSAGES_PLACE_H
#define DIALECT_MESSAGES_PLACE_H

#include "dialect/form.h"

struct messages_reader {
	struct arena *arena;
	struct form *form;
	struct why *why;
};

/* Where something stands: "messages[3]", ".content[1]", ".source"; index SIZE_MAX: none. */
struct messages_place {
	const struct messages_place *up;
	const char *name;
	size_t index;
};

/* `member` may be NULL: the place itself. Always ERR_BAD_INPUT. */
enum err messages_place_refuse(struct messages_reader *r, const struct messages_place *place,
    const char *member, const char *text) MUST_CHECK;
/*
 * The members of an object by name, null as absent. What is not asked for, and is not null, goes to
 * the extras as "PREFIX.NAME", or under its name alone with an empty prefix; NULL: to nowhere.
 */
void messages_place_pick(struct messages_reader *r, struct span object, const char *const *names,
    struct scan_value *values_out, size_t n, const char *prefix);
/* Name a member that has no place in the form; once for all that stand near each other. */
void messages_place_extra(
    struct messages_reader *r, const char *prefix, struct span name, struct span raw);
/* A string, decoded; empty if it is absent and not wanted. */
enum err messages_place_text(struct messages_reader *r, const struct messages_place *place,
    const char *member, const struct scan_value *v, bool wanted, struct span *out) MUST_CHECK;

#endif
