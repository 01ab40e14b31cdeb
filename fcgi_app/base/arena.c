#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#	define OWN_MALLOC 1
#elif defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define OWN_MALLOC 1
#	endif
#endif
#ifndef OWN_MALLOC
#	define OWN_MALLOC 0
#endif

#define BLOCK_BYTES 16384
#define ALIGN 16

struct block {
	struct block *next;
	size_t used, cap;
	_Alignas(ALIGN) char bytes[];
};

struct deferred {
	struct deferred *next;
	void (*free_fn)(void *);
	void *object;
};

struct arena {
	struct block *blocks; /* newest first; the last one is kept by a reset */
	struct deferred *deferred;
	size_t used, max;
};

static void *
must_alloc(size_t n)
{
	void *p = malloc(n);

	if (p == NULL)
		die("no memory for %zu bytes", n);
	return p;
}

struct arena *
arena_new(size_t max_bytes)
{
	struct arena *arena = must_alloc(sizeof *arena);

	*arena = (struct arena){.max = max_bytes};
	return arena;
}

void
arena_limit(struct arena *arena, size_t max_bytes)
{
	arena->max = max_bytes > arena->used ? max_bytes : arena->used;
}

static struct block *
add_block(struct arena *arena, size_t n)
{
	size_t cap = OWN_MALLOC || n > BLOCK_BYTES ? n : BLOCK_BYTES;
	struct block *block = must_alloc(sizeof *block + cap);

	*block = (struct block){.next = arena->blocks, .cap = cap};
	arena->blocks = block;
	return block;
}

void *
arena_alloc(struct arena *arena, size_t n)
{
	struct block *block = arena->blocks;
	size_t need = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	void *p;

	if (need < n || need > arena->max - arena->used)
		die("request needs more than %zu bytes", arena->max);
	if (block == NULL || OWN_MALLOC || block->cap - block->used < need)
		block = add_block(arena, OWN_MALLOC ? n : need);
	p = block->bytes + block->used;
	block->used += OWN_MALLOC ? n : need;
	arena->used += need;
	memset(p, 0, n);
	return p;
}

void
arena_reset(struct arena *arena)
{
	/* the deferred records live in the blocks: run them first */
	for (struct deferred *d = arena->deferred; d != NULL; d = d->next)
		d->free_fn(d->object);
	arena->deferred = NULL;
	while (arena->blocks != NULL) {
		struct block *block = arena->blocks;

		if (!OWN_MALLOC && block->next == NULL && block->cap == BLOCK_BYTES) {
			block->used = 0;
			break;
		}
		arena->blocks = block->next;
		free(block);
	}
	arena->used = 0;
}

void
arena_free(struct arena **arena)
{
	if (*arena == NULL)
		return;
	arena_reset(*arena);
	free((*arena)->blocks);
	free(*arena);
	*arena = NULL;
}

char *
arena_z(struct arena *arena, struct span s)
{
	char *z = arena_alloc(arena, s.n + 1);

	if (s.n > 0)
		memcpy(z, s.p, s.n);
	return z;
}

struct span
arena_copy(struct arena *arena, struct span s)
{
	return (struct span){arena_z(arena, s), s.n};
}

char *
arena_join(struct arena *arena, const struct span *parts, size_t n)
{
	size_t total = 0, at = 0;
	char *z;

	for (size_t i = 0; i < n; i++)
		total += parts[i].n;
	z = arena_alloc(arena, total + 1);
	for (size_t i = 0; i < n; i++) {
		if (parts[i].n > 0)
			memcpy(z + at, parts[i].p, parts[i].n);
		at += parts[i].n;
	}
	return z;
}

char *
arena_print(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	char *z;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("bad format '%s'", fmt);
	z = arena_alloc(arena, (size_t)n + 1);
	vsnprintf(z, (size_t)n + 1, fmt, again);
	va_end(again);
	return z;
}

static void
free_buf(void *object)
{
	buf_release(object);
}

struct buf *
arena_buf(struct arena *arena, size_t max_bytes)
{
	struct buf *b = arena_alloc(arena, sizeof *b);

	buf_init(b, max_bytes);
	arena_defer(arena, free_buf, b);
	return b;
}

void
arena_defer(struct arena *arena, void (*free_fn)(void *), void *object)
{
	struct deferred *d = arena_alloc(arena, sizeof *d);

	*d = (struct deferred){arena->deferred, free_fn, object};
	arena->deferred = d;
}
