#include "base/guard.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 8

struct mapped {
	char path[40];
	int fd;
	size_t page;
	struct span file;
};

/* A file of eights, in memory. */
static struct mapped
map(void)
{
	struct mapped m = {
	    .path = "/tmp/sluice-guard-XXXXXX", .page = (size_t)sysconf(_SC_PAGESIZE)};
	size_t n = PAGES * m.page - 100;
	char *bytes = malloc(n);
	void *p;

	m.fd = mkstemp(m.path);
	assert_true(m.fd >= 0 && bytes != NULL);
	memset(bytes, '8', n);
	assert_int_equal(write(m.fd, bytes, n), (ssize_t)n);
	free(bytes);
	p = mmap(NULL, n, PROT_READ, MAP_SHARED, m.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	m.file = (struct span){p, n};
	return m;
}

static void
unmap(struct mapped *m)
{
	munmap((void *)(uintptr_t)m->file.p, m->file.n);
	close(m->fd);
	unlink(m->path);
}

static char
byte_at(const struct mapped *m, size_t at)
{
	return *(const volatile char *)(m->file.p + at);
}

static void
cut(void **state)
{
	struct mapped a = map(), b = map();

	(void)state;
	guard_add(a.file);
	guard_add(b.file);
	assert_false(guard_is_lost(a.file));
	assert_int_equal(byte_at(&a, 5 * a.page), '8');
	assert_int_equal(ftruncate(a.fd, (off_t)(2 * a.page)), 0);
	assert_int_equal(byte_at(&a, 0), '8');
	assert_false(guard_is_lost(a.file));
	assert_int_equal(byte_at(&a, 5 * a.page), 0);
	assert_true(guard_is_lost(a.file));
	assert_int_equal(byte_at(&a, 0), 0); /* all of it or nothing */
	assert_int_equal(byte_at(&a, a.file.n - 1), 0);
	assert_false(guard_is_lost(b.file));
	assert_int_equal(byte_at(&b, b.file.n - 1), '8');
	guard_remove(a.file);
	unmap(&a);
	assert_int_equal(ftruncate(b.fd, 0), 0);
	assert_int_equal(byte_at(&b, 0), 0);
	assert_true(guard_is_lost(b.file));
	guard_remove(b.file);
	assert_false(guard_is_lost(b.file));
	unmap(&b);
}

/* More than there is room for; and places are free again. */
static void
many(void **state)
{
	struct mapped m = map();

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < GUARD_MOST + 3; i++)
			guard_add((struct span){m.file.p + 100 * i, 100});
		for (size_t i = 0; i < GUARD_MOST + 3; i++)
			guard_remove((struct span){m.file.p + 100 * i, 100});
	}
	guard_add(m.file);
	assert_int_equal(ftruncate(m.fd, 0), 0);
	assert_int_equal(byte_at(&m, 0), 0);
	assert_true(guard_is_lost(m.file));
	guard_remove(m.file);
	unmap(&m);
}

/* What nobody guards is a fault as ever. */
static void
others(void **state)
{
	struct mapped guarded = map(), m = map();
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		guard_add(guarded.file);
		if (ftruncate(m.fd, 0) != 0)
			_exit(2);
		_exit(byte_at(&m, 0) == 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	unmap(&guarded);
	unmap(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cut),
	    cmocka_unit_test(many),
	    cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
