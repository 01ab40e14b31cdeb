#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 2048

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){.max = max_bytes};
}

void
buf_release(struct buf *b)
{
	free(b->p);
	buf_init(b, b->max);
}

void
buf_clear(struct buf *b)
{
	b->n = 0;
	b->over = false;
	if (b->p != NULL)
		b->p[0] = '\0';
}

void
buf_shrink(struct buf *b, size_t keep_bytes)
{
	if (b->cap > keep_bytes)
		buf_release(b);
	else
		buf_clear(b);
}

char *
buf_room(struct buf *b, size_t n)
{
	size_t cap = b->cap == 0 ? FIRST_BYTES : b->cap;

	if (!b->over && b->cap > n && b->n < b->cap - n)
		return b->p + b->n; /* the common case: cap is at most max + 1 */
	if (b->over || n > b->max || b->n > b->max - n) {
		b->over = true;
		return NULL;
	}
	while (cap < b->n + n + 1)
		cap *= 2;
	if (cap > b->cap) {
		if (cap > b->max + 1)
			cap = b->max + 1;
		b->p = realloc(b->p, cap);
		if (b->p == NULL)
			die("no memory for %zu bytes", cap);
		b->cap = cap;
	}
	return b->p + b->n;
}

void
buf_grow_add(struct buf *b, const void *bytes, size_t n)
{
	char *room = buf_room(b, n);

	if (room == NULL)
		return;
	if (n > 0)
		memcpy(room, bytes, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void
buf_span(struct buf *b, struct span s)
{
	buf_add(b, s.p, s.n);
}

void
buf_z(struct buf *b, const char *z)
{
	buf_add(b, z, strlen(z));
}

void
buf_i64(struct buf *b, int64_t v)
{
	char digits[24];
	size_t at = sizeof digits;
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		digits[--at] = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (v < 0)
		digits[--at] = '-';
	buf_add(b, digits + at, sizeof digits - at);
}

void
buf_print(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	char *room;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("bad format '%s'", fmt);
	room = buf_room(b, (size_t)n);
	if (room != NULL) {
		vsnprintf(room, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

void
buf_drop(struct buf *b, size_t n)
{
	if (n >= b->n) {
		buf_clear(b);
		return;
	}
	memmove(b->p, b->p + n, b->n - n + 1);
	b->n -= n;
}

struct span
buf_text(const struct buf *b)
{
	return (struct span){b->p, b->n};
}
