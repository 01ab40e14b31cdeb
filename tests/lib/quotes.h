/*
 * quotes - JSON in tables of cases, with ' instead of ".
 */
#ifndef LIB_QUOTES_H
#define LIB_QUOTES_H

#include "base/arena.h"

static inline struct span
quotes(struct arena *into, const char *text)
{
	char *out = arena_z(into, text_span(text));

	for (char *p = out; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	return text_span(out);
}

#endif
