#include "listen.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024 /* a short one turns bursts into errors: hosting.md 6 */
#define LOCK_MS 2000
#define LOCK_LOOK_MS 20
#define PASSED_FD 3 /* sd_listen_fds(3) */

bool
listen_is(int fd)
{
	int on = 0;
	socklen_t n = sizeof on;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0 && on != 0;
}

int
listen_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t number;

	if (pid == NULL || fds == NULL || !text_i64(text_span(pid), getpid(), getpid(), &number) ||
	    !text_i64(text_span(fds), 1, INT_MAX, &number) || !listen_is(PASSED_FD))
		return -1;
	fcntl(PASSED_FD, F_SETFD, FD_CLOEXEC);
	return PASSED_FD;
}

/*
 * Between the look at a stale file and the listening on a new one nobody else may do the same. -1: it cannot be locked
 * (and then it cannot be helped), or somebody holds it for longer than any start takes.
 */
static int
lock_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[sizeof((struct sockaddr_un *)NULL)->sun_path + 2] = ".";
	int fd;

	if (slash != NULL)
		text_clean(dir, sizeof dir, (struct span){path, (size_t)(slash - path) + 1});
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int64_t waited = 0; fd >= 0 && waited < LOCK_MS; waited += LOCK_LOOK_MS) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		poll(NULL, 0, LOCK_LOOK_MS);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Somebody listens, or a stale file that may go. */
static enum err
clear_stale(const struct sockaddr_un *address, struct why *why)
{
	struct stat st;
	int fd, rc;

	if (lstat(address->sun_path, &st) != 0)
		return ERR_OK;
	if (!S_ISSOCK(st.st_mode)) {
		err_why(why, "'%s' exists and is no socket", address->sun_path);
		return ERR_IO;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		err_why(why, "socket: %s", strerror(errno));
		return ERR_IO;
	}
	rc = connect(fd, (const struct sockaddr *)address, sizeof *address);
	if (rc == 0 || errno != ECONNREFUSED) {
		err_why(why, "another process listens on '%s'", address->sun_path);
		close(fd);
		return ERR_IO;
	}
	close(fd);
	if (unlink(address->sun_path) != 0) {
		err_why(
		    why, "cannot remove the stale '%s': %s", address->sun_path, strerror(errno));
		return ERR_IO;
	}
	return ERR_OK;
}

static enum err
bind_and_listen(
    int fd, const struct sockaddr *address, socklen_t n, const char *name, struct why *why)
{
	if (bind(fd, address, n) != 0 || listen(fd, BACKLOG) != 0) {
		err_why(why, "cannot listen on '%s': %s", name, strerror(errno));
		close(fd);
		return ERR_IO;
	}
	return ERR_OK;
}

/* Made with no rights for others (umask), then given its mode. */
static enum err
bind_unix(const struct sockaddr_un *address, unsigned mode, int *fd_out, struct why *why)
{
	enum err err = clear_stale(address, why);
	int fd;

	if (err != ERR_OK)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err_why(why, "socket: %s", strerror(errno));
		return ERR_IO;
	}
	err = bind_and_listen(
	    fd, (const struct sockaddr *)address, sizeof *address, address->sun_path, why);
	if (err != ERR_OK)
		return err;
	if (chmod(address->sun_path, (mode_t)mode) != 0) {
		err_why(why, "chmod '%s': %s", address->sun_path, strerror(errno));
		close(fd);
		return ERR_IO;
	}
	*fd_out = fd;
	return ERR_OK;
}

static enum err
open_unix(const char *path, unsigned mode, int *fd_out, struct why *why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	enum err err;
	int lock;

	if (strlen(path) == 0 || strlen(path) >= sizeof address.sun_path) {
		err_why(why, "a socket path has 1 to %zu bytes, not %zu: '%s'",
		    sizeof address.sun_path - 1, strlen(path), path);
		return ERR_BAD_INPUT;
	}
	memcpy(address.sun_path, path, strlen(path));
	lock = lock_directory(path);
	err = bind_unix(&address, mode, fd_out, why);
	if (lock >= 0)
		close(lock);
	return err;
}

static enum err
open_tcp(struct span host, struct span port, int *fd_out, struct why *why)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	char name[64];
	int64_t number;
	int fd, one = 1;
	enum err err;

	text_clean(name, sizeof name, host);
	if (!text_i64(port, 1, 65535, &number) ||
	    inet_pton(AF_INET, name, &address.sin_addr) != 1 ||
	    ntohl(address.sin_addr.s_addr) >> 24 != 127) {
		err_why(
		    why, "--listen takes unix:/path or a loopback address such as 127.0.0.1:9000");
		return ERR_BAD_INPUT;
	}
	address.sin_port = htons((uint16_t)number);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err_why(why, "socket: %s", strerror(errno));
		return ERR_IO;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	err = bind_and_listen(fd, (const struct sockaddr *)&address, sizeof address, name, why);
	if (err == ERR_OK)
		*fd_out = fd;
	return err;
}

enum err
listen_open(const char *address, unsigned mode, int *fd_out, struct why *why)
{
	struct span a = text_span(address);
	size_t colon = text_find(a, SPAN(":"));

	if (text_starts(a, "unix:"))
		return open_unix(address + 5, mode, fd_out, why);
	return open_tcp((struct span){a.p, colon}, text_from(a, colon + 1), fd_out, why);
}

enum err
listen_own(const char *address, unsigned uid, unsigned gid, struct why *why)
{
	if (strncmp(address, "unix:", 5) != 0 || chown(address + 5, uid, gid) == 0)
		return ERR_OK;
	err_why(why, "chown '%s': %s", address + 5, strerror(errno));
	return ERR_IO;
}

void
listen_remove(const char *address)
{
	if (strncmp(address, "unix:", 5) == 0 && unlink(address + 5) != 0 && errno != ENOENT)
		return; /* the next start replaces it */
}
