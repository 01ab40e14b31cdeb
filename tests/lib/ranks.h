/*
 * ranks - the file of token ranks that `make tokenizer` made, for unit tests: BUILD/unit/test_x has BUILD/sluice.tokens.
 */
#ifndef LIB_RANKS_H
#define LIB_RANKS_H

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline const char *
ranks_path(void)
{
	static char path[PATH_MAX + 32];
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	self[n < 0 ? 0 : n] = '\0';
	if (strrchr(self, '/') != NULL)
		*strrchr(self, '/') = '\0';
	snprintf(path, sizeof path, "%s/../sluice.tokens", self);
	return path;
}

/* xorshift64*, with a seed of the test's own. */
static inline unsigned
ranks_random(unsigned long long *state, unsigned below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (unsigned)((*state * 2685821657736338717ULL) >> 33) % below;
}

#endif
