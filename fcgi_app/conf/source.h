/*
 * source - the files a configuration is made of: opened with care, and remembered so that a change shows.
 *
 * Errors    ERR_IO cannot be opened or read, or is no regular file; ERR_TOO_BIG; ERR_CONFIG others may read or write it
 * Source    SPEC.md section 3
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include "base/arena.h"

#include <sys/stat.h>

struct source {
	const struct source *next;
	const char *path;
	bool present;
	struct stat st; /* as it was when it was read */
};

/* Remember `path` as it is now, there or not: for directories. */
struct source *source_note(struct arena *arena, const char *path);

/*
 * Read a regular file of at most `max` bytes into work's memory, which is wiped when that arena ends, as keys may stand in
 * it. The text may be written to. *source_out lives in `arena`.
 */
struct source_text {
	char *p;
	size_t n;
};
enum err source_read(struct arena *arena, struct arena *work, const char *path, size_t max,
    struct source_text *text_out, struct source **source_out, struct why *why) MUST_CHECK;

/* May only its owner read and write it, and is the owner us or root? `why` has the command that mends it. */
enum err source_private(const struct source *source, struct why *why) MUST_CHECK;

/* One stat(). */
bool source_changed(const struct source *source);

/* Is it below this directory, all links followed? */
bool source_is_below(const struct source *source, const char *directory);

#endif
