/*
 * form_pack - a turn of the one form as it is kept, and back: JSON of our own, which no API has to like.
 *
 * Kept      all that a writer of any API may need: texts, pictures, calls, results, thoughts with their seals, raw JSON
 *           as it stands. Not kept: places in the client's list (`at`, `in`, `of`).
 * Back      a turn packed and unpacked is written alike by every writer. Unpacking checks all it reads: the store may
 *           have been written by another version, or be damaged.
 * Memory    unpacked spans live in the arena
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

#endif
