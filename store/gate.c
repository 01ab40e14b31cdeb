#include "store/gate.h"

#include "store/why.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GATE_BYTES 4096
#define GATE_MAGIC "sluiceG1"
#define YIELDS 8 /* before sleeping */

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 30)
#	define HAVE_CLOCKLOCK 1
#endif

struct gate_page {
	char magic[8];
	char boot[64];
	uint64_t space; /* PID namespace of the process that made it, 0 = unknown */
	uint32_t mixed; /* a process of another PID namespace has come */
	uint32_t spare;
	pthread_mutex_t fair, plain;
};
#define WORDS_AT (GATE_BYTES - GATE_WORDS * sizeof(uint32_t))
_Static_assert(sizeof(struct gate_page) <= WORDS_AT, "the rest is for the queue's wake-up words");

struct gate {
	struct gate_page *page;
	pthread_mutex_t *held;
};

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
nap_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

enum store_rc
gate_flock(int fd, int how, int64_t wait_ms)
{
	int64_t until = 0;

	for (long us = 100;; us = us < 5000 ? us * 2 : us) {
		if (flock(fd, how | LOCK_NB) == 0)
			return STORE_OK;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return STORE_IO;
		if (until == 0)
			until = now_ms() + wait_ms;
		if (now_ms() >= until)
			return STORE_BUSY;
		nap_us(us);
	}
}

static uint64_t
pid_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int
mutex_init(pthread_mutex_t *m, int protocol)
{
	pthread_mutexattr_t attr;
	int e;

	pthread_mutexattr_init(&attr);
	e = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (e == 0)
		e = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (e == 0)
		e = pthread_mutexattr_setprotocol(&attr, protocol);
	if (e == 0)
		e = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return e;
}

static int
page_init(struct gate_page *page, const char *boot)
{
	int e;

	memset(page, 0, sizeof *page);
	e = mutex_init(&page->plain, PTHREAD_PRIO_NONE);
	if (e == 0 && mutex_init(&page->fair, PTHREAD_PRIO_INHERIT) != 0)
		e = mutex_init(&page->fair, PTHREAD_PRIO_NONE);
	if (e != 0)
		return e;
	page->space = pid_space();
	snprintf(page->boot, sizeof page->boot, "%s", boot);
	/* last, so that a page whose making was killed is made again */
	memcpy(page->magic, GATE_MAGIC, sizeof page->magic);
	return 0;
}

/* Blocks must exist before they are touched through the map: a hole on a full disk is a SIGBUS. */
static bool
file_fill(int fd)
{
	static const char zero[GATE_BYTES];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if (st.st_size >= GATE_BYTES)
		return true;
	if (pwrite(fd, zero, sizeof zero, 0) == (ssize_t)sizeof zero)
		return true;
	if (errno == 0)
		errno = ENOSPC;
	return false;
}

/* Returns 0 or an errno. The caller holds the file's lock. */
static int
page_map(int fd, const char *boot, bool alone, struct gate_page **page_out)
{
	struct gate_page *page;
	int e = 0;

	errno = 0;
	if (!file_fill(fd))
		return errno;
	page = mmap(NULL, GATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return errno;
	if (alone || memcmp(page->magic, GATE_MAGIC, sizeof page->magic) != 0 ||
	    strncmp(page->boot, boot, sizeof page->boot) != 0)
		e = page_init(page, boot);
	if (e != 0) {
		munmap(page, GATE_BYTES);
		return e;
	}
	if (page->space == 0 || page->space != pid_space())
		__atomic_store_n(&page->mixed, 1, __ATOMIC_RELEASE);
	*page_out = page;
	return 0;
}

static enum store_rc
say(struct store_why *why, const char *dir, int e)
{
	const char *hint = e == ENOSPC || e == EDQUOT   ? "free disk space"
	                   : e == EACCES || e == EPERM  ? "it must belong to this user"
	                   : e == ENOMEM || e == EMFILE ? "raise the process's limits"
	                                                : "see the system's log";

	why_say(why, "gate: %s: %s ('%s/gate')", strerror(e), hint, dir);
	return e == ENOSPC || e == EDQUOT ? STORE_FULL : STORE_IO;
}

enum store_rc
gate_open(
    const char *dir, const char *boot, bool alone, struct gate **gate_out, struct store_why *why)
{
	struct gate_page *page = NULL;
	char path[4096];
	struct gate *gate;
	enum store_rc rc;
	int fd, e;

	if ((size_t)snprintf(path, sizeof path, "%s/gate", dir) >= sizeof path)
		return say(why, dir, ENAMETOOLONG);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return say(why, dir, errno);
	rc = gate_flock(fd, LOCK_EX, GATE_WAIT_MS);
	e = rc == STORE_OK ? page_map(fd, boot, alone, &page) : errno;
	flock(fd, LOCK_UN); /* the map keeps the file, and with it the lock, beyond close() */
	close(fd);
	if (rc == STORE_BUSY) {
		why_say(why, "gate: a stopped process holds '%s': continue or end it", path);
		return rc;
	}
	if (e != 0)
		return say(why, dir, e);
	gate = calloc(1, sizeof *gate);
	if (gate == NULL) {
		munmap(page, GATE_BYTES);
		return say(why, dir, ENOMEM);
	}
	gate->page = page;
	*gate_out = gate;
	return STORE_OK;
}

void
gate_close(struct gate **gate)
{
	if (*gate == NULL)
		return;
	munmap((*gate)->page, GATE_BYTES);
	free(*gate);
	*gate = NULL;
}

/* For kernels that refuse CLOCK_MONOTONIC with priority inheritance (before 5.14), and old C libraries. */
static int
lock_polling(pthread_mutex_t *m, int64_t wait_ms)
{
	int64_t until = now_ms() + wait_ms;
	int e;

	while ((e = pthread_mutex_trylock(m)) == EBUSY && now_ms() < until)
		nap_us(1000);
	return e;
}

/*
 * A transaction takes some 20 us, a sleeper's turn more: unlocking hands over to the first sleeper, so once somebody
 * sleeps everybody comes to sleep, and each transaction costs two switches of process. Let the others run first. Nobody
 * barges in on a sleeper: for trylock the lock is his.
 */
static int
lock_soon(pthread_mutex_t *m)
{
	int e = pthread_mutex_trylock(m);

	for (int i = 0; e == EBUSY && i < YIELDS; i++) {
		sched_yield();
		e = pthread_mutex_trylock(m);
	}
	return e;
}

static int
lock(pthread_mutex_t *m, int64_t wait_ms)
{
	int e = wait_ms <= 0 ? pthread_mutex_trylock(m) : lock_soon(m);

	if (e != EBUSY || wait_ms <= 0)
		return e;
#ifdef HAVE_CLOCKLOCK
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	e = pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &until);
	if (e != EINVAL && e != ENOTSUP)
		return e;
#endif
	return lock_polling(m, wait_ms);
}

enum store_rc
gate_enter(struct gate *gate, int64_t wait_ms)
{
	struct gate_page *page = gate->page;
	bool mixed = __atomic_load_n(&page->mixed, __ATOMIC_ACQUIRE) != 0;
	pthread_mutex_t *m = mixed ? &page->plain : &page->fair;
	int e = lock(m, wait_ms);

	if (e == EOWNERDEAD)
		e = pthread_mutex_consistent(m); /* the gate guards no bytes of its own */
	if (e == EBUSY || e == ETIMEDOUT)
		return STORE_BUSY;
	if (e != 0)
		return STORE_IO;
	gate->held = m;
	return STORE_OK;
}

void
gate_leave(struct gate *gate)
{
	if (gate->held == NULL)
		return;
	pthread_mutex_unlock(gate->held);
	gate->held = NULL;
}

uint32_t *
gate_words(struct gate *gate)
{
	return (uint32_t *)(void *)((char *)gate->page + WORDS_AT);
}
