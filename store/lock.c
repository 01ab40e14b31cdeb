#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PATH_BYTES 4200

static struct flock
byte_of(uint64_t byte)
{
	return (struct flock){
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

bool
lock_open(const char *dir, const char *name, struct lock *lock_out)
{
	char path[PATH_BYTES];
	int fd;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path) {
		errno = ENAMETOOLONG;
		return false;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	*lock_out = (struct lock){.fd = fd};
	return true;
}

void
lock_close(struct lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}

int
lock_take(struct lock *lock, uint64_t byte)
{
	struct flock flock = byte_of(byte);

	if (!lock->posix && fcntl(lock->fd, F_OFD_SETLK, &flock) == 0)
		return 0;
	if (!lock->posix && errno != EINVAL)
		return errno;
	lock->posix = true;
	return fcntl(lock->fd, F_SETLK, &flock) == 0 ? 0 : errno;
}

bool
lock_is_taken(const struct lock *lock, uint64_t byte)
{
	struct flock flock = byte_of(byte);

	if (!lock->posix && fcntl(lock->fd, F_OFD_GETLK, &flock) == 0)
		return flock.l_type != F_UNLCK;
	if (!lock->posix && errno != EINVAL)
		return true;
	return fcntl(lock->fd, F_GETLK, &flock) != 0 || flock.l_type != F_UNLCK;
}
