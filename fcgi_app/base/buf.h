/*
 * buf - bytes that grow, up to a maximum given at birth.
 *
 * Always NUL-terminated once something was added. Beyond the maximum an append does nothing and `over` stays set, so a
 * chain of appends is checked once at its end. No memory: the process ends (the master replaces it).
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"
#include "base/text.h"

#include <string.h>

struct buf {
	char *p;
	size_t n, cap, max;
	bool over;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_release(struct buf *b); /* as after init */
void buf_clear(struct buf *b);   /* empty, memory kept */
void buf_shrink(
    struct buf *b, size_t keep_bytes); /* empty; memory given back if it is more than that */

void buf_grow_add(struct buf *b, const void *bytes, size_t n);
void buf_span(struct buf *b, struct span s);
void buf_z(struct buf *b, const char *z);
void buf_i64(struct buf *b, int64_t v);
void buf_print(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Room for n more bytes to be written at b->p + b->n by the caller, who then adds to b->n; NULL beyond the maximum. */
char *buf_room(struct buf *b, size_t n);
/* Remove the first n bytes. */
void buf_drop(struct buf *b, size_t n);

struct span buf_text(const struct buf *b);

/* Small appends are many: the common case is inline. */
static inline void
buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (b->over || n >= b->cap - b->n || b->cap == 0 || n == 0) {
		buf_grow_add(b, bytes, n);
		return;
	}
	memcpy(b->p + b->n, bytes, n);
	b->n += n;
	b->p[b->n] = '\0';
}

static inline void
buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

#endif
