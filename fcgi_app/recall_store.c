#include "recall_store.h"

#include "store/book.h"

/* One call in the store; its function may run again from the start. */
struct recall_job {
	struct kept_key key;
	struct kept_limits limits;
	struct env_bytes text;
	struct arena *arena;
	char *copy;
	size_t n;
	unsigned most, removed;
};

static struct kept_limits
limits_of(struct serve *s, struct wall_ms now)
{
	struct kept_limits limits = {
	    now, s->conf->context.ttl_ms, (uint64_t)s->conf->context.max_total_bytes};
	struct env_size size;

	/* hard facts must always find room beside them */
	if (env_size(s->env, &size) == STORE_OK && limits.max_bytes > size.max_bytes / 2)
		limits.max_bytes = size.max_bytes / 2;
	return limits;
}

static struct recall_job
job_of(const struct recall_store *at)
{
	return (struct recall_job){
	    .key = {{at->client.p, at->client.n}, {at->id.p, at->id.n}},
	    .limits = limits_of(at->s, at->now),
	};
}

static char *
room(size_t n, void *arg)
{
	struct recall_job *job = arg;

	job->copy = arena_alloc(job->arena, n + 1);
	job->n = n;
	return job->copy;
}

static enum store_rc
get_in(struct txn *txn, void *arg)
{
	struct recall_job *job = arg;

	return kept_get(txn, &job->key, &job->limits, room, job);
}

static enum store_rc
put_in(struct txn *txn, void *arg)
{
	const struct recall_job *job = arg;

	return kept_put(txn, &job->key, job->text, &job->limits);
}

static enum store_rc
del_in(struct txn *txn, void *arg)
{
	const struct recall_job *job = arg;

	return kept_del(txn, &job->key, &job->limits);
}

static enum store_rc
sweep_in(struct txn *txn, void *arg)
{
	struct recall_job *job = arg;

	return kept_sweep(txn, &job->limits, job->most, &job->removed);
}

/* There is no `book` before the first save, which also makes a damaged one anew: then ask once more. */
static bool
is_made(struct serve *s, enum store_rc rc, bool missing, struct wall_ms now)
{
	struct book_report report;

	if (rc == STORE_BAD)
		log_fields(s->log, LOG_LEVEL_ERROR, now,
		    "the responses that are kept cannot be read: they are given up",
		    LOG_Z("why", env_error(s->env)));
	return (rc == STORE_BAD || missing) && book_save(s->env, &report) == STORE_OK;
}

static enum store_rc
look(struct serve *s, env_fn *fn, struct recall_job *job)
{
	enum store_rc rc = env_book_view(s->env, fn, job);

	return is_made(s, rc, false, job->limits.now) ? env_book_view(s->env, fn, job) : rc;
}

static enum store_rc
change(struct serve *s, env_fn *fn, struct recall_job *job, bool make)
{
	enum store_rc rc = env_book_update(s->env, fn, job);

	return is_made(s, rc, make && rc == STORE_NONE, job->limits.now)
	           ? env_book_update(s->env, fn, job)
	           : rc;
}

enum store_rc
recall_store_get(const struct recall_store *at, struct arena *arena, struct span *text_out)
{
	struct recall_job job = job_of(at);
	enum store_rc rc;

	job.arena = arena;
	rc = look(at->s, get_in, &job);
	if (rc == STORE_OK)
		*text_out = (struct span){job.copy, job.n};
	return rc;
}

/* No room although little is kept: what else is in the store needs it. */
static enum store_rc
make_room(struct serve *s, const struct recall_job *full)
{
	struct recall_job job = {.limits = full->limits, .most = 64};

	job.limits.max_bytes /= 4;
	return env_book_update(s->env, sweep_in, &job);
}

enum store_rc
recall_store_put(const struct recall_store *at, struct span text)
{
	struct recall_job job = job_of(at);
	enum store_rc rc;

	job.text = (struct env_bytes){text.p, text.n};
	rc = change(at->s, put_in, &job, true);
	if (rc == STORE_FULL && text.n < job.limits.max_bytes / 2) {
		rc = make_room(at->s, &job);
		if (rc == STORE_OK)
			rc = env_book_update(at->s->env, put_in, &job);
	}
	return rc;
}

enum store_rc
recall_store_del(const struct recall_store *at)
{
	struct recall_job job = job_of(at);

	return change(at->s, del_in, &job, false);
}

bool
recall_store_sweep(struct serve *s, struct wall_ms now, unsigned most)
{
	struct recall_job job = {.limits = limits_of(s, now), .most = most};

	return env_book_update(s->env, sweep_in, &job) == STORE_OK && job.removed >= most;
}
