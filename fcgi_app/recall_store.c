#include "recall_store.h"

#include "keeping.h"

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
	return (struct kept_limits){now, s->conf->context.ttl_ms, keeping_bytes(s)};
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

enum store_rc
recall_store_get(const struct recall_store *at, struct arena *arena, struct span *text_out)
{
	struct recall_job job = job_of(at);
	enum store_rc rc;

	job.arena = arena;
	rc = keeping_view(at->s, get_in, &job, at->now);
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
	rc = keeping_add(at->s, put_in, &job, at->now);
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

	return keeping_change(at->s, del_in, &job, at->now);
}

bool
recall_store_sweep(struct serve *s, struct wall_ms now, unsigned most)
{
	struct recall_job job = {.limits = limits_of(s, now), .most = most};

	return env_book_update(s->env, sweep_in, &job) == STORE_OK && job.removed >= most;
}
