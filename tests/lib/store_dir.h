/*
 * store_dir - a state directory that lives for one test, and children that use it.
 */
#ifndef TESTS_LIB_STORE_DIR_H
#define TESTS_LIB_STORE_DIR_H

#include "store/env.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define TEST_MAX_BYTES (256 * MIB)

struct store_dir {
	char path[64];
};

static inline int
store_dir_unlink(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static inline int
store_dir_setup(void **state)
{
	struct store_dir *dir = calloc(1, sizeof *dir);

	assert_non_null(dir);
	snprintf(dir->path, sizeof dir->path, "/tmp/sluice-store-XXXXXX");
	assert_non_null(mkdtemp(dir->path));
	*state = dir;
	return 0;
}

static inline int
store_dir_teardown(void **state)
{
	struct store_dir *dir = *state;

	chmod(dir->path, 0700);
	nftw(dir->path, store_dir_unlink, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
	return 0;
}

static inline const char *
store_dir_file(const struct store_dir *dir, const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", dir->path, name);
	return path;
}

static inline struct env *
store_dir_open(const struct store_dir *dir)
{
	struct store_why why = {""};
	struct env *env = NULL;
	enum store_rc rc = env_open(dir->path, TEST_MAX_BYTES, true, &env, &why);

	if (rc != STORE_OK)
		fprintf(stderr, "env_open: %d %s\n", (int)rc, why.text);
	return rc == STORE_OK ? env : NULL;
}

/* Start a child that runs `fn` and exits with what it returns. */
static inline pid_t
child_start(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		_exit(fn(arg));
	}
	return pid;
}

/* Its exit status; 128 + n when it died of signal n. */
static inline int
child_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Bytes that children and the test see alike. */
static inline void *
shared_bytes(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static inline double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void
nap_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Wait until a child has set *flag; false after 5 s. */
static inline bool
wait_flag(volatile int *flag)
{
	for (int i = 0; i < 5000 && *flag == 0; i++)
		nap_ms(1);
	return *flag != 0;
}

#endif
