#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Else the first file of the store would become descriptor 2, and messages would be written into it. */
static void
fill_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0 &&
		    open("/", O_RDONLY | O_DIRECTORY) < 0) /* a root without /dev */
			_exit(1);
}

/* A parent that ignores SIGCHLD would hide the end of our children. */
static void
reset_signals(void)
{
	const int numbers[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE,
	    SIGQUIT, SIGRTMIN};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		signal(numbers[i], SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
}

static void
put_in_order(void)
{
	fill_descriptors();
	reset_signals();
	umask(077);
	/* one thread works at a time, but the C library would reserve 64 MiB of addresses for each */
	mallopt(M_ARENA_MAX, 1);
}

void
sandbox_begin(void)
{
	sigset_t none;

	put_in_order();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void
sandbox_harden(void)
{
	struct rlimit none = {0, 0};

	put_in_order();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_IGN);
}

/* The passwd entry of `user`, else of the owner of `path` unless that is root. NULL with *missing_out: there is none. */
static struct passwd *
later_user(const char *user, const char *path, bool *missing_out)
{
	struct passwd *pw = NULL;
	struct stat st;

	*missing_out = false;
	if (geteuid() != 0)
		return NULL;
	if (user[0] != '\0')
		pw = getpwnam(user);
	else if (stat(path, &st) != 0 || st.st_uid == 0)
		return NULL;
	else
		pw = getpwuid(st.st_uid);
	*missing_out = pw == NULL;
	return pw;
}

bool
sandbox_later_user(const char *user, const char *path, unsigned *uid_out, unsigned *gid_out)
{
	bool missing;
	const struct passwd *pw = later_user(user, path, &missing);

	if (pw == NULL)
		return false;
	*uid_out = pw->pw_uid;
	*gid_out = pw->pw_gid;
	return true;
}

enum err
sandbox_drop_root(const char *user, const char *path, bool *stayed_root_out, struct why *why)
{
	bool missing;
	const struct passwd *pw = later_user(user, path, &missing);

	*stayed_root_out = false;
	if (missing) {
		err_why(
		    why, "server.user '%s' or the owner of '%s' has no passwd entry", user, path);
		return ERR_CONFIG;
	}
	if (pw == NULL) {
		*stayed_root_out = geteuid() == 0;
		return ERR_OK;
	}
	if (initgroups(pw->pw_name, pw->pw_gid) != 0 || setgid(pw->pw_gid) != 0 ||
	    setuid(pw->pw_uid) != 0) {
		err_why(why, "cannot become user '%s': %s", pw->pw_name, strerror(errno));
		return ERR_IO;
	}
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the change of user may have reset it */
	return ERR_OK;
}
