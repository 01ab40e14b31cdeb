/*
 * board - what a master and its workers know of each other without the store: one piece of shared memory.
 *
 * Each process has a place of its own. A worker that becomes busy tells the master only when too few idle ones are
 * left, so the usual request costs one written byte and a look at the others' bytes.
 *
 * Memory    shared by fork; ends with the last process. With `board` NULL (no master) nothing is done.
 * Source    SPEC.md section 2
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define BOARD_PLACES 1024 /* as many processes as the store takes: store/slot.h */

enum board_state { BOARD_NONE, BOARD_STARTING, BOARD_IDLE, BOARD_BUSY };

struct board {
	char conf_error[512];            /* why the file on disk is not in force; "" = it is */
	int tell_fd;                     /* an eventfd, read by the master */
	uint32_t tell_below;             /* idle workers */
	uint32_t told;                   /* and not looked at since */
	uint32_t high;                   /* places from here on were never used */
	uint32_t accepted[BOARD_PLACES]; /* requests taken */
	uint8_t state[BOARD_PLACES];     /* enum board_state */
};

/* NULL: errno tells. */
struct board *board_new(void);

/* The master's: a process begins at its place, or has ended. */
void board_set(struct board *board, unsigned place, enum board_state state);
enum board_state board_get(const struct board *board, unsigned place);
/* Take what was told. */
void board_heard(struct board *board);

/* A worker's own. The first board_idle() tells the master that it is up. */
void board_busy(struct board *board, unsigned place);
void board_idle(struct board *board, unsigned place);
/* One more request was taken. */
void board_accepted(struct board *board, unsigned place);

#endif
