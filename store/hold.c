#include "store/hold.h"

#include "store/lock.h"
#include "store/why.h"

#include <errno.h>
#include <string.h>

static enum store_rc
failed(struct env *env, int e)
{
	struct store_why why;

	why_say(&why, "holds.lock: %s: all files in state_dir must belong to this user ('%s')",
	    strerror(e), env_dir(env));
	env_say(env, why.text);
	return STORE_IO;
}

enum store_rc
hold_take(struct env *env, uint64_t name, struct hold *hold_out)
{
	struct lock lock;
	int e;

	*hold_out = (struct hold){.fd = -1};
	if (!lock_open(env_dir(env), "holds.lock", &lock))
		return failed(env, errno);
	e = lock_take(&lock, name >> 2);
	if (e == 0) {
		*hold_out = (struct hold){lock.fd};
		return STORE_OK;
	}
	lock_close(&lock);
	return e == EAGAIN || e == EACCES ? STORE_BUSY : failed(env, e);
}

void
hold_release(struct hold *hold)
{
	struct lock lock = {.fd = hold->fd};

	lock_close(&lock);
	hold->fd = -1;
}
