#include "base/heap.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* A sanitizer has a heap of its own, about which mallinfo2() knows nothing. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#	if __GLIBC_PREREQ(2, 33)
#		define GLIBC_HEAP 1
#	endif
#endif
#ifndef GLIBC_HEAP
#	define GLIBC_HEAP 0
#endif

#define LARGEST 65536      /* below what malloc would take by mmap */
#define CACHED 1032        /* from here down malloc caches what is freed, some of each size: */
#define STEP 16            /* ... the distance of their sizes, */
#define CACHES (512 << 10) /* ... and all of them, which mallinfo2() counts as used */

struct heap_plug {
	struct heap_plug *next;
};

#if GLIBC_HEAP

/* Freed as it is malloc would cache it, as a new hole; grown in its place it goes back into the end. */
static void
put_back(void *p)
{
	void *grown = realloc(p, CACHED + STEP);

	free(grown == NULL ? p : grown);
}

/* Take what malloc has of this size below its end. */
static struct heap_plug *
take(struct heap_plug *plug, size_t n, const char *end, size_t *left)
{
	while (*left >= n) {
		struct heap_plug *hole = malloc(n);

		if (hole == NULL)
			break;
		if ((const char *)hole >= end) {
			put_back(hole);
			break;
		}
		hole->next = plug;
		plug = hole;
		*left -= n;
	}
	return plug;
}

struct heap_plug *
heap_plug(void)
{
	struct mallinfo2 info = mallinfo2();
	const char *end = (const char *)sbrk(0) - info.keepcost;
	size_t left = info.fordblks - info.keepcost + CACHES;
	struct heap_plug *plug = NULL;

	if (info.arena == 0)
		return NULL; /* another malloc is in use */
	for (size_t n = LARGEST; n > CACHED; n /= 2)
		plug = take(plug, n, end, &left);
	for (size_t n = CACHED; n > STEP; n -= STEP)
		plug = take(plug, n, end, &left);
	return plug;
}

void
heap_trim(void)
{
	malloc_trim(0);
}

#else

struct heap_plug *
heap_plug(void)
{
	return NULL;
}

void
heap_trim(void)
{
}

#endif

void
heap_unplug(struct heap_plug **plug)
{
	while (*plug != NULL) {
		struct heap_plug *next = (*plug)->next;

		free(*plug);
		*plug = next;
	}
}
