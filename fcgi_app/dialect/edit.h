/*
 * edit - replace a few values in the bytes of a JSON body; everything else stays byte for byte.
 *
 * Insertions are replacements of no bytes. Names and their escapes, white space, numbers and the
 * order of members are never touched: a provider's prompt cache and the client's own signatures
 * depend on them.
 *
 * Memory    the texts live in the given arena
 * Source    SPEC.md 5, 14; cases.md JSON-02, JSON-08
 */
#ifndef DIALECT_EDIT_H
#define DIALECT_EDIT_H

#include "dialect/read.h"

struct edit {
	struct span raw;  /* bytes of the body that go; none = insert before raw.p */
	struct span text; /* what comes instead */
};

/* The model's name, quoted as JSON; a body without "model" gets one. */
struct edit edit_model(
    struct arena *arena, const struct dialect_request *request, struct span model);
/* Ask for usage figures in a stream. False: the body does it already. */
bool edit_usage(const struct dialect_request *request, struct edit *edit_out);
/* Ask for a stream. False: the body does it already. */
bool edit_stream(const struct dialect_request *request, struct edit *edit_out);
/*
 * Quirks of hosts, edit_quirk.c.
 *
 * A top-level member goes, with a comma beside it. False: it is not there. List such an edit behind
 * those that insert, and not two of them: they might want the same comma.
 */
bool edit_remove(struct span body, const char *name, struct edit *edit_out);
/* A top-level member gets another name. */
bool edit_rename(struct span body, const char *from, const char *to, struct edit *edit_out);
/*
 * "role": "developer" becomes "system" in a list of messages. How many there are; the first `most`
 * of them are put into edits_out.
 */
size_t edit_roles(const struct scan_value *messages, struct edit *edits_out, size_t most);

/* Write the edited body. The edits may come in any order (and are sorted); none may overlap. */
void edit_apply(struct span body, struct edit *edits, size_t n, struct buf *out);

#endif
