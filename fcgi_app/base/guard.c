#include "base/guard.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

static struct guard {
	const char *volatile p; /* NULL: free */
	volatile size_t n;
	volatile sig_atomic_t lost;
} guards[GUARD_MOST];

static struct guard *
find(const char *at)
{
	for (size_t i = 0; i < NELEM(guards); i++)
		if (guards[i].p != NULL && (uintptr_t)at >= (uintptr_t)guards[i].p &&
		    (uintptr_t)at - (uintptr_t)guards[i].p < guards[i].n)
			return &guards[i];
	return NULL;
}

/* Other pages in the place of those that are gone; then the read is done again. mmap() is a system call alone. */
static void
on_bus(int number, siginfo_t *info, void *context)
{
	struct guard *guard = find(info->si_addr);

	(void)context;
	if (guard == NULL || mmap((void *)(uintptr_t)guard->p, guard->n, PROT_READ,
	                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
	else
		guard->lost = 1;
}

void
guard_add(struct span file)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
	size_t i = 0;

	while (i < NELEM(guards) && guards[i].p != NULL)
		i++;
	if (i == NELEM(guards))
		return;
	guards[i].lost = 0;
	guards[i].n = file.n;
	guards[i].p = file.p;
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

void
guard_remove(struct span file)
{
	struct guard *guard = find(file.p);

	if (guard != NULL)
		guard->p = NULL;
}

bool
guard_is_lost(struct span file)
{
	const struct guard *guard = find(file.p);

	return guard != NULL && guard->lost;
}
