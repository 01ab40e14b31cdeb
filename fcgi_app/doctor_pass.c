#include "doctor_pass.h"

#include "base/nonce.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES 64

bool
doctor_pass_opens(struct span file, struct span shown, struct wall_ms now)
{
	struct span nonce, expiry;
	int64_t until;

	if (!text_token(&file, " \n", &nonce) || !text_token(&file, " \n", &expiry) ||
	    !text_i64(expiry, 0, INT64_MAX, &until))
		return false;
	if (nonce.n != DOCTOR_NONCE - 1 || until <= now.v || until > now.v + DOCTOR_PASS_MS)
		return false;
	return text_same_secret(nonce, shown);
}

static bool
pass_path(const char *state_dir, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/doctor", state_dir) < PATH_MAX;
}

bool
doctor_pass_shown(const char *state_dir, struct span shown, struct wall_ms now)
{
	char path[PATH_MAX], text[TEXT_BYTES];
	struct stat st;
	ssize_t n = -1;
	int fd;

	if (shown.n != DOCTOR_NONCE - 1 || !pass_path(state_dir, path))
		return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 077) == 0)
		n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && doctor_pass_opens((struct span){text, (size_t)n}, shown, now);
}

/* Only into an empty file of ours: what lies there may be anything. */
static enum err
write_pass(int fd, struct wall_ms now, char nonce_out[DOCTOR_NONCE], struct why *why)
{
	char text[TEXT_BYTES];
	int n;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		err_why(why, "another doctor is at work");
		return ERR_IO;
	}
	if (!nonce_hex(nonce_out, DOCTOR_NONCE - 1)) {
		err_why(why, "no random numbers: %s", strerror(errno));
		return ERR_IO;
	}
	n = snprintf(
	    text, sizeof text, "%s %lld\n", nonce_out, (long long)(now.v + DOCTOR_PASS_MS));
	if (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0 ||
	    pwrite(fd, text, (size_t)n, 0) != (ssize_t)n) {
		err_why(why, "'doctor' in state_dir cannot be written: %s", strerror(errno));
		return ERR_IO;
	}
	return ERR_OK;
}

enum err
doctor_pass_make(const char *state_dir, struct wall_ms now, char nonce_out[DOCTOR_NONCE],
    int *fd_out, struct why *why)
{
	char path[PATH_MAX];
	enum err err;
	int fd;

	if (!pass_path(state_dir, path)) {
		err_why(why, "state_dir has too long a name");
		return ERR_IO;
	}
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err_why(why, "'%s' cannot be made: %s", path, strerror(errno));
		return ERR_IO;
	}
	err = write_pass(fd, now, nonce_out, why);
	if (err != ERR_OK)
		close(fd);
	else
		*fd_out = fd;
	return err;
}

void
doctor_pass_end(const char *state_dir, int *fd)
{
	char path[PATH_MAX];

	if (*fd < 0)
		return;
	if (pass_path(state_dir, path) && unlink(path) != 0)
		errno = 0; /* it is worth nothing in ten minutes */
	close(*fd);
	*fd = -1;
}
