#include "base/scan.h"

#include <string.h>

/* Where we are in a text that is known to be well-formed. */
struct place {
	bool lists[SCAN_DEPTH_MAX +
	           1]; /* which of the containers around are; without any it is none */
	size_t depth;
	bool begins; /* an element may, if this is a list */
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
enter(struct place *place, bool list)
{
	if (place->depth < SCAN_DEPTH_MAX)
		place->depth++;
	place->lists[place->depth] = list;
	place->begins = true;
}

static void
leave(struct place *place)
{
	if (place->depth > 0)
		place->depth--;
	place->begins = false;
}

static bool
is_element(const struct place *place)
{
	return place->begins && place->lists[place->depth];
}

/* Of which another one follows. */
static bool
is_member(const struct place *place)
{
	return place->depth <= 2 && !place->lists[place->depth];
}

size_t
scan_items(struct span text, size_t most)
{
	const char *p = text.p, *end = text.p + text.n;
	struct place place = {.depth = 0};
	size_t n = 0;

	while (p < end && n <= most)
		switch (*p++) {
		case '"':
			n += is_element(&place);
			place.begins = false;
			p = skip_string(p, end);
			break;
		case '{':
			n += is_element(&place);
			enter(&place, false);
			break;
		case '[':
			n += is_element(&place);
			enter(&place, true);
			break;
		case '}':
		case ']': leave(&place); break;
		case ',':
			n += is_member(&place);
			place.begins = true;
			break;
		default: break;
		}
	return n;
}
