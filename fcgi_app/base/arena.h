/*
 * arena - the memory of one request: everything it makes lives here and ends with arena_reset().
 *
 * Foreign objects (JSON documents, curl lists) are registered with arena_defer() and freed by the reset, newest first.
 * Allocation does not fail: past the ceiling or without memory the process ends; size limits must have answered 413
 * before. Under AddressSanitizer each allocation is its own malloc, so overruns are seen.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/buf.h"

struct arena;

struct arena *arena_new(size_t max_bytes);
void arena_free(struct arena **arena);
/* Another ceiling from now on. */
void arena_limit(struct arena *arena, size_t max_bytes);
/* Free all, keep one block for the next request. */
void arena_reset(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t n)
    __attribute__((malloc, returns_nonnull)); /* zeroed */
char *arena_z(struct arena *arena, struct span s) __attribute__((returns_nonnull));
struct span arena_copy(struct arena *arena, struct span s);
/* The parts one after the other, NUL-terminated. */
char *arena_join(struct arena *arena, const struct span *parts, size_t n)
    __attribute__((returns_nonnull));
char *arena_print(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A buffer that the reset releases. */
struct buf *arena_buf(struct arena *arena, size_t max_bytes);

void arena_defer(struct arena *arena, void (*free_fn)(void *), void *object);

#endif
