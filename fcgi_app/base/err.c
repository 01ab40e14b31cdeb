#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
err_why(struct why *why, const char *fmt, ...)
{
	va_list ap;

	if (why == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof why->text, fmt, ap);
	va_end(ap);
}

void
err_prefix(struct why *why, const char *fmt, ...)
{
	char old[sizeof why->text];
	va_list ap;
	int n;

	if (why == NULL)
		return;
	memcpy(old, why->text, sizeof old);
	va_start(ap, fmt);
	n = vsnprintf(why->text, sizeof why->text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof why->text)
		snprintf(why->text + n, sizeof why->text - (size_t)n, ": %s", old);
}

_Noreturn void
err_die(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sluice: %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}
