/*
 * lock - locks on single bytes of a file, which die with their holder: OFD locks, POSIX where the kernel has none.
 *
 * The bytes need not be there. Names a file of state_dir; it is made when it is missing, and must not be deleted while in use.
 *
 * Caveats   never fork without exec while holding one: the child would keep it. One open file per process and name.
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "store/types.h"

struct lock {
	int fd;
	bool posix;
};

/* False: errno says why. */
bool lock_open(const char *dir, const char *name, struct lock *lock_out) STORE_MUST_CHECK;
/* With all its locks. */
void lock_close(struct lock *lock);
/* 0, or the error: EAGAIN, EACCES: somebody else has it. Does not wait. */
int lock_take(struct lock *lock, uint64_t byte) STORE_MUST_CHECK;
/* Has somebody else that byte? Yes, where it cannot be told. One's own locks do not show. */
bool lock_is_taken(const struct lock *lock, uint64_t byte);

#endif
