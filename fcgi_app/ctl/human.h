/*
 * human - how tables of sluicectl say times, and how a list that is gathered grows.
 */
#ifndef CTL_HUMAN_H
#define CTL_HUMAN_H

#include "base/buf.h"
#include "ctl/ctl_command.h"
#include "store/types.h"

#define HUMAN_TIME 24
/* "4m 10s", rounded up; "-" for what is over. */
void human_left(int64_t ms, char out[HUMAN_TIME]);
/* "2026-01-05 10:00:00", UTC; "-" for never. */
void human_time(struct wall_ms t, char out[HUMAN_TIME]);

/* Room for one more behind n elements of `size` bytes; the process ends without memory. For lists that begin as NULL. */
void *human_grow(void *list, size_t n, size_t size) __attribute__((returns_nonnull));

/* Print it: CTL_DONE, or CTL_FAILED with a word when it did not fit into its maximum. */
int human_print(struct ctl *ctl, const struct buf *text);

#endif
