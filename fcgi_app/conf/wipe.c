#include "conf/wipe.h"

#include <string.h>

struct wipe {
	size_t n;
	char bytes[];
};

static void
wipe_now(void *object)
{
	struct wipe *wipe = object;

	explicit_bzero(wipe->bytes, wipe->n);
}

char *
wipe_room(struct arena *arena, size_t n)
{
	struct wipe *wipe = arena_alloc(arena, sizeof *wipe + n);

	wipe->n = n;
	arena_defer(arena, wipe_now, wipe);
	return wipe->bytes;
}

struct span
wipe_copy(struct arena *arena, struct span secret)
{
	char *p = wipe_room(arena, secret.n + 1);

	if (secret.n > 0)
		memcpy(p, secret.p, secret.n);
	return (struct span){p, secret.n};
}
