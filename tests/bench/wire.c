#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

uint64_t
wire_now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

void *
wire_grown(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (p == NULL) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

void
wire_reserve(struct wire_bytes *b, size_t more)
{
	if (b->n + more <= b->cap)
		return;
	while (b->cap < b->n + more)
		b->cap = b->cap == 0 ? 8192 : b->cap * 2;
	b->p = wire_grown(b->p, b->cap);
}

void
wire_put(struct wire_bytes *b, const char *p, size_t n)
{
	if (n == 0)
		return;
	wire_reserve(b, n);
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void
wire_putf(struct wire_bytes *b, const char *format, ...)
{
	char text[2048];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < sizeof text)
		wire_put(b, text, (size_t)n);
}

const char *
wire_header(const char *head, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = strstr(head, "\r\n"); p != NULL; p = strstr(p, "\r\n")) {
		p += 2;
		if (strncasecmp(p, name, n) == 0 && p[n] == ':')
			return p + n + 1 + strspn(p + n + 1, " ");
	}
	return NULL;
}

long
wire_option(const char *text, long min, long max)
{
	char *end = NULL;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != 0 || v < min || v > max) {
		fprintf(stderr, "'%s' is not a number from %ld to %ld\n", text, min, max);
		exit(2);
	}
	return v;
}
