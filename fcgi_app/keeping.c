#include "keeping.h"

#include "store/book.h"

uint64_t
keeping_bytes(struct serve *s)
{
	uint64_t bytes = (uint64_t)s->conf->context.max_total_bytes;
	struct env_size size;

	if (env_size(s->env, &size) == STORE_OK && bytes > size.max_bytes / 4)
		bytes = size.max_bytes / 4;
	return bytes;
}

/* There is no `book` before the first save, which also makes a damaged one anew: then ask once more. */
static bool
is_made(struct serve *s, enum store_rc rc, bool missing, struct wall_ms now)
{
	struct book_report report;

	if (rc == STORE_BAD)
		log_fields(s->log, LOG_LEVEL_ERROR, now,
		    "what is kept of conversations cannot be read: it is given up",
		    LOG_Z("why", env_error(s->env)));
	return (rc == STORE_BAD || missing) && book_save(s->env, &report) == STORE_OK;
}

enum store_rc
keeping_view(struct serve *s, env_fn *fn, void *arg, struct wall_ms now)
{
	enum store_rc rc = env_book_view(s->env, fn, arg);

	return is_made(s, rc, false, now) ? env_book_view(s->env, fn, arg) : rc;
}

enum store_rc
keeping_change(struct serve *s, env_fn *fn, void *arg, struct wall_ms now)
{
	enum store_rc rc = env_book_update(s->env, fn, arg);

	return is_made(s, rc, false, now) ? env_book_update(s->env, fn, arg) : rc;
}

enum store_rc
keeping_add(struct serve *s, env_fn *fn, void *arg, struct wall_ms now)
{
	enum store_rc rc = env_book_update(s->env, fn, arg);

	return is_made(s, rc, rc == STORE_NONE, now) ? env_book_update(s->env, fn, arg) : rc;
}
