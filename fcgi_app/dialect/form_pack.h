/*
 * form_pack - a turn of the one form as it is kept, and back: JSON of our own, which no API has to like.
 *
 * Kept      all that a writer of any API may need: texts, pictures, calls, results, thoughts with their seals. What is raw
 *           JSON in the form stands as a text here, so that no byte of it changes and no depth adds up. Not kept: places
 *           in the client's list (`at`, `in`, `of`), but whether the turn stood in the list at all.
 * Back      a turn packed and unpacked is written alike by every writer. Its `at` is 0, or SIZE_MAX outside of a list; who
 *           puts it into a list numbers it. Unpacking checks all it reads: the store may have been written by another
 *           version, or be damaged. Whether calls and results pair up is form_check()'s business, of the whole.
 * Document  {"role","parts":[{"kind",...}]}, of a part the members of the table in form_pack.c that say something
 * Memory    unpacked spans borrow from the text, or live in the arena
 * Errors    ERR_BAD_INPUT: not such a text; `why` names the member
 * Source    SPEC.md sections 13, 15
 */
#ifndef DIALECT_FORM_PACK_H
#define DIALECT_FORM_PACK_H

#include "base/buf.h"
#include "base/err.h"
#include "dialect/form.h"

void form_pack(const struct form_turn *turn, struct buf *out);
enum err form_unpack(
    struct arena *arena, struct span text, struct form_turn *turn_out, struct why *why) MUST_CHECK;

/* "user"; as roles are called in what is kept. */
const char *form_pack_role(enum form_role role);
/* "text", "call" */
const char *form_pack_kind(enum form_kind kind);

#endif
