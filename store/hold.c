#include "store/hold.h"

#include "store/lock.h"

#include <errno.h>

enum store_rc
hold_take(struct env *env, uint64_t name, struct hold *hold_out)
{
	struct lock lock;
	int e;

	*hold_out = (struct hold){.fd = -1};
	if (!lock_open(env_dir(env), "holds.lock", &lock))
		return STORE_IO;
	e = lock_take(&lock, name >> 2);
	if (e == 0) {
		*hold_out = (struct hold){lock.fd, name};
		return STORE_OK;
	}
	lock_close(&lock);
	errno = e;
	return e == EAGAIN || e == EACCES ? STORE_BUSY : STORE_IO;
}

void
hold_release(struct hold *hold)
{
	struct lock lock = {.fd = hold->fd};

	lock_close(&lock);
	hold->fd = -1;
}
