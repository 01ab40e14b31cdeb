/*
 * spool - a large body: the first MiB in memory, beyond it a file without a name in state_dir, read as one text.
 *
 * The file has no name, so it goes with the process, whatever becomes of that; its bytes are mapped, so that each
 * attempt sends the same ones from wherever it must.
 *
 * Errors    ERR_STORE the disk is full or faulty: the text says so
 * Memory    the buffer is the caller's; file and map end with the arena's reset
 */
#ifndef SPOOL_H
#define SPOOL_H

#include "base/arena.h"

#define SPOOL_MEMORY (1024 * 1024)

struct spool;

/* `buf`, empty, takes what arrives. */
struct spool *spool_new(struct arena *arena, struct buf *buf, const char *dir);
/* Bytes that have come, the buffer's included. */
size_t spool_size(const struct spool *s);
/* After bytes were added to the buffer. */
enum err spool_step(struct spool *s, struct why *why) MUST_CHECK;
/* All of it. */
enum err spool_text(struct spool *s, struct span *text_out, struct why *why) MUST_CHECK;

#endif
