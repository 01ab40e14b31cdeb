#include "base/text.h"
#include "ctl/daemon.h"

#include <stdlib.h>
#include <string.h>

#define READ_MAX (1u << 20)

/* The string behind `"state_dir":`; empty = there is none, or none that could be told without reading it all. */
static struct span
find_state_dir(struct span text)
{
	struct span rest = text_from(text, text_find(text, SPAN("\"state_dir\"")));
	struct span value;

	if (rest.n == 0)
		return SPAN("state");
	rest = text_trim(text_from(rest, strlen("\"state_dir\"")));
	if (!text_starts(rest, ":"))
		return SPAN("");
	rest = text_trim(text_from(rest, 1));
	if (!text_starts(rest, "\""))
		return SPAN("");
	rest = text_from(rest, 1);
	value = (struct span){rest.p, text_find(rest, SPAN("\""))};
	/* a name that is written otherwise than it reads */
	if (text_find(value, SPAN("\\")) < value.n || text_find(value, SPAN("$")) < value.n)
		return SPAN("");
	return value;
}

bool
daemon_salvage(struct daemon *d)
{
	FILE *file = fopen(d->path, "re");
	const char *slash = strrchr(d->path, '/');
	struct span dir = {"", 0};
	char *text = malloc(READ_MAX);
	int n;

	if (text == NULL)
		die("no memory");
	if (file != NULL) {
		dir = find_state_dir((struct span){text, fread(text, 1, READ_MAX, file)});
		fclose(file);
	}
	if (text_starts(dir, "/"))
		n = snprintf(d->dir, sizeof d->dir, "%.*s", (int)dir.n, dir.p);
	else
		n = snprintf(d->dir, sizeof d->dir, "%.*s/%.*s",
		    slash == NULL ? 0 : (int)(slash - d->path), d->path, (int)dir.n, dir.p);
	explicit_bzero(text, READ_MAX); /* it has keys */
	free(text);
	return dir.n > 0 && (size_t)n < sizeof d->dir;
}
