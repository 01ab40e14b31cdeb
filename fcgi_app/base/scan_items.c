#include "base/scan.h"

#include <string.h>

/* Where a text is that is known to be well-formed: which of the containers around are lists. */
struct level {
	bool lists[SCAN_DEPTH_MAX + 2];
	size_t depth;
};

/* Behind a string; p is behind its opening quote. */
static const char *
skip_string(const char *p, const char *end)
{
	while (p < end) {
		const char *quote = memchr(p, '"', (size_t)(end - p)), *back;

		if (quote == NULL)
			return end;
		/* an odd number of backslashes before it takes it in */
		for (back = quote; back > p && back[-1] == '\\'; back--)
			;
		p = quote + 1;
		if ((quote - back) % 2 == 0)
			return p;
	}
	return end;
}

static void
enter(struct level *level, bool list)
{
	if (level->depth < SCAN_DEPTH_MAX)
		level->depth++;
	level->lists[level->depth] = list;
}

size_t
scan_items(struct span text, size_t most)
{
	const char *p = text.p, *end = text.p + text.n;
	struct level level = {.depth = 0};
	bool begins = false; /* an element of a list may, here */
	size_t n = 0;

	while (p < end && n <= most) {
		char c = *p++;
		bool value = c == '"' || c == '{' || c == '[';

		n += value && begins && level.lists[level.depth];
		n += c == ',' && level.depth <= 2 && !level.lists[level.depth];
		begins = c == '[' || c == ',' ||
		         (begins && (c == ' ' || c == '\t' || c == '\n' || c == '\r'));
		if (c == '"')
			p = skip_string(p, end);
		else if (c == '{' || c == '[')
			enter(&level, c == '[');
		else if ((c == '}' || c == ']') && level.depth > 0)
			level.depth--;
	}
	return n;
}
