/*
 * why - say in words what failed. store/ has no logging of its own; the text travels in struct store_why.
 */
#ifndef STORE_WHY_H
#define STORE_WHY_H

#include "store/types.h"

#include <stdarg.h>
#include <stdio.h>

/* `why` may be NULL. A text that is too long is cut: say what to do first, paths last. */
static inline void __attribute__((format(printf, 2, 3)))
why_say(struct store_why *why, const char *fmt, ...)
{
	va_list ap;

	if (why == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof why->text, fmt, ap);
	va_end(ap);
}

#endif
