/*
 * value - small questions about one value of a document that was read before.
 *
 * Source    formats.md A.6, C.7
 */
#ifndef DIALECT_VALUE_H
#define DIALECT_VALUE_H

#include "base/scan.h"

/* Neither absent nor one of the ways to say "nothing": null, false, 0, "", {}, []. */
bool value_says(const struct scan_value *v);
/* Bytes of a string's text, near enough: hosts that escape everything must not look verbose. */
size_t value_bytes(const struct scan_value *v);
/* A string's text for people, cut and cleaned: escapes of letters become '?'. For anything else `dst` stays. */
void value_copy(char *dst, size_t cap, const struct scan_value *v);
/* The last member of that name; absent if there is none, or no object. */
struct scan_value value_member(const struct scan_value *object, const char *name);

#endif
