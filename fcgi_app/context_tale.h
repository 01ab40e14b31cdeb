/*
 * context_tale - turns of a conversation as plain text, for a model that is to read it: who says what, calls and results.
 * Pure.
 *
 * Bounds    long texts are shortened in the middle, and so is the whole; pictures and thoughts are only named, or left out
 */
#ifndef CONTEXT_TALE_H
#define CONTEXT_TALE_H

#include "dialect/form.h"

#define CONTEXT_TALE_PART 4000 /* bytes of one text */
#define CONTEXT_TALE_MAX 98304 /* of all */

/* The turns from .. to - 1, behind what is in `out`. */
void context_tale(
    struct arena *arena, const struct form *form, size_t from, size_t to, struct buf *out);

#endif
