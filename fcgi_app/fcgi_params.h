/*
 * fcgi_params - the variables of a FastCGI request: name-value pairs to "NAME=value" strings. Pure.
 *
 * Works in place: a pair takes at least two bytes for its lengths, a string one for '=' and one for its end. Lengths that
 * reach beyond the bytes, or more pairs than there is room for, are refused as a whole. A pair whose name is empty or
 * holds '=' or NUL is left out: it would be taken for another one. A value ends at its first NUL.
 *
 * Source    FastCGI specification 3.4
 */
#ifndef FCGI_PARAMS_H
#define FCGI_PARAMS_H

#include "base/err.h"
#include "base/text.h"

/* `out` has room for `max` pointers; the last one used is NULL. They point into `bytes`, which are overwritten. */
enum err fcgi_params(char *bytes, size_t n, char **out, size_t max, struct why *why) MUST_CHECK;

#endif
