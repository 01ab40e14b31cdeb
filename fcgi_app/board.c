#include "board.h"

#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

struct board *
board_new(void)
{
	struct board *board =
	    mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (board == MAP_FAILED)
		return NULL;
	board->tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (board->tell_fd >= 0)
		return board;
	munmap(board, sizeof *board);
	return NULL;
}

void
board_set(struct board *board, unsigned place, enum board_state state)
{
	if (place >= board->high)
		__atomic_store_n(&board->high, place + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&board->state[place], (uint8_t)state, __ATOMIC_SEQ_CST);
}

enum board_state
board_get(const struct board *board, unsigned place)
{
	return (enum board_state)__atomic_load_n(&board->state[place], __ATOMIC_SEQ_CST);
}

void
board_heard(struct board *board)
{
	eventfd_t n;

	(void)eventfd_read(board->tell_fd, &n);
	__atomic_store_n(&board->told, 0, __ATOMIC_SEQ_CST);
}

static void
tell(struct board *board)
{
	if (__atomic_exchange_n(&board->told, 1, __ATOMIC_SEQ_CST) == 0)
		(void)eventfd_write(board->tell_fd, 1);
}

/* Our own byte is written before the others are read, so of two that become busy at once one sees both. */
void
board_busy(struct board *board, unsigned place)
{
	uint32_t below, idle = 0;

	if (board == NULL)
		return;
	__atomic_store_n(&board->state[place], BOARD_BUSY, __ATOMIC_SEQ_CST);
	below = __atomic_load_n(&board->tell_below, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < board->high && idle < below; i++)
		idle += __atomic_load_n(&board->state[i], __ATOMIC_RELAXED) == BOARD_IDLE;
	if (idle < below)
		tell(board);
}

void
board_idle(struct board *board, unsigned place)
{
	uint8_t was;

	if (board == NULL)
		return;
	was = __atomic_exchange_n(&board->state[place], BOARD_IDLE, __ATOMIC_SEQ_CST);
	if (was == BOARD_STARTING)
		tell(board);
}

void
board_accepted(struct board *board, unsigned place)
{
	if (board != NULL)
		board->accepted[place]++;
}
