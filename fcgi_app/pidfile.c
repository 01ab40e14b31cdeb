#include "pidfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const states[] = {
    [PIDFILE_STARTING] = "starting",
    [PIDFILE_READY] = "ready",
    [PIDFILE_STOPPING] = "stopping",
    [PIDFILE_STOPPED] = "stopped",
};

void
pidfile_print(const struct pidfile_text *text, char out[PIDFILE_BYTES])
{
	int n = snprintf(out, PIDFILE_BYTES,
	    "pid %lld\nstate %s\nserial %lld\nkilled %lld\nversion %s\nprogram %s\nlisten %s\nwhy %s\n"
	    "end\n",
	    (long long)text->pid, states[text->state], (long long)text->serial,
	    (long long)text->killed, text->version, text->program, text->listen, text->why);

	if (n > 0 && n < PIDFILE_BYTES)
		memset(out + n, '\n', PIDFILE_BYTES - (size_t)n);
}

static bool
take_state(struct span value, enum pidfile_state *state_out)
{
	for (size_t i = 0; i < NELEM(states); i++)
		if (text_is(value, states[i])) {
			*state_out = (enum pidfile_state)i;
			return true;
		}
	return false;
}

/* Words that are not known are of another version. */
static bool
take_line(struct span word, struct span value, struct pidfile_text *text)
{
	if (text_is(word, "pid"))
		return text_i64(value, 1, INT_MAX, &text->pid);
	if (text_is(word, "state"))
		return take_state(value, &text->state);
	if (text_is(word, "serial"))
		return text_i64(value, 0, INT64_MAX, &text->serial);
	if (text_is(word, "killed"))
		return text_i64(value, 0, INT_MAX, &text->killed);
	if (text_is(word, "version"))
		text_clean(text->version, sizeof text->version, value);
	else if (text_is(word, "program"))
		text_clean(text->program, sizeof text->program, value);
	else if (text_is(word, "listen"))
		text_clean(text->listen, sizeof text->listen, value);
	else if (text_is(word, "why"))
		text_clean(text->why, sizeof text->why, value);
	return true;
}

bool
pidfile_parse(struct span bytes, struct pidfile_text *text_out)
{
	struct pidfile_text text = {.pid = 0};
	struct span line;

	while (text_token(&bytes, "\n", &line)) {
		size_t blank = text_find(line, SPAN(" "));

		if (text_is(line, "end")) {
			if (text.pid == 0)
				return false;
			*text_out = text;
			return true;
		}
		if (!take_line((struct span){line.p, blank}, text_from(line, blank + 1), &text))
			return false;
	}
	return false;
}

int
pidfile_open(const char *state_dir)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", state_dir, PIDFILE_NAME);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct flock
byte_at(off_t at)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

bool
pidfile_lock(int fd)
{
	struct flock lock = byte_at(0);

	return fcntl(fd, F_SETLK, &lock) == 0;
}

bool
pidfile_lock_start(int fd)
{
	struct flock lock = byte_at(1);

	return fcntl(fd, F_SETLKW, &lock) == 0;
}

bool
pidfile_is_of(int fd, const char *state_dir)
{
	char path[PATH_MAX];
	struct stat ours, there;

	snprintf(path, sizeof path, "%s/%s", state_dir, PIDFILE_NAME);
	return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

bool
pidfile_write(int fd, const struct pidfile_text *text)
{
	char bytes[PIDFILE_BYTES];

	pidfile_print(text, bytes);
	return pwrite(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes;
}

pid_t
pidfile_holder(int fd, struct pidfile_text *text_out)
{
	struct flock lock = byte_at(0);
	char bytes[PIDFILE_BYTES];
	ssize_t n = pread(fd, bytes, sizeof bytes, 0);

	if (n < 0 || !pidfile_parse((struct span){bytes, (size_t)n}, text_out))
		*text_out = (struct pidfile_text){.pid = 0};
	if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid > 0 ? lock.l_pid : -1; /* else a signal would go to more than one */
}
