#include "process.h"

#include "base/clock.h"
#include "chores.h"
#include "judge.h"
#include "page_models.h"
#include "store/queue.h"
#include "store/tally.h"

#include <sys/random.h>
#include <unistd.h>

#define ARENA_SLACK (16u << 20)
#define ARENA_TURNS 16   /* bytes in memory for each of a kept conversation: its turns are small */
#define ARENA_ITEM 8192u /* for each message or part, however often it is read and copied */

void
process_log(struct process *p, enum log_level level, const char *message, const char *why)
{
	log_fields(p->job->log, level, clock_wall(), message, LOG_Z("why", why));
}

static enum store_rc
write_generation(struct txn *txn, void *arg)
{
	const struct worker_job *job = arg;
	enum store_rc rc = tally_set(txn, TALLY_GENERATION, job->generation);

	return rc == STORE_OK ? tally_set(txn, TALLY_LOADED_MS, (uint64_t)job->loaded_at.v) : rc;
}

/* STORE_NONE: the store says something else. */
static enum store_rc
has_generation(struct txn *txn, void *arg)
{
	const struct worker_job *job = arg;
	uint64_t generation = 0, loaded_ms = 0;
	enum store_rc rc = tally_get(txn, TALLY_GENERATION, &generation);

	if (rc == STORE_OK)
		rc = tally_get(txn, TALLY_LOADED_MS, &loaded_ms);
	if (rc != STORE_OK)
		return rc;
	return generation == job->generation && loaded_ms == (uint64_t)job->loaded_at.v
	           ? STORE_OK
	           : STORE_NONE;
}

/* The first worker of a pool writes; the others would only take memory and time for it. */
void
process_note_generation(struct process *p)
{
	if (p->env == NULL || env_view(p->env, has_generation, p->job) == STORE_OK)
		return;
	if (env_update(p->env, write_generation, p->job) != STORE_OK)
		process_log(p, LOG_LEVEL_WARN, "the generation was not written", env_error(p->env));
}

/* What a former owner of our slot left in queues and quotas. */
static enum store_rc
forget(struct txn *txn, void *arg)
{
	const struct process *p = arg;
	struct slot_row lease;
	enum store_rc rc = queue_forget(txn, p->slot);

	return rc == STORE_OK && slot_left(p->slot, &lease)
	           ? judge_inherit(txn, p->pool, &lease, clock_wall())
	           : rc;
}

/* A former owner of our slot is forgotten; the secret of session keys is read. */
static void
enter_pool(struct process *p)
{
	struct why why;

	if (env_update(p->env, forget, p) != STORE_OK)
		process_log(p, LOG_LEVEL_WARN, "the leavings of a dead worker were not cleared",
		    env_error(p->env));
	p->serve.has_secret =
	    session_secret(p->job->conf->state_dir.p, &p->serve.secret, &why) == ERR_OK;
	if (!p->serve.has_secret)
		process_log(p, LOG_LEVEL_ERROR, "sessions are not kept", why.text);
}

bool
process_open_store(struct process *p)
{
	const struct conf *conf = p->job->conf;
	struct store_why store_why;
	struct why why;
	enum store_rc rc = env_open(
	    conf->state_dir.p, (uint64_t)conf->store.max_size_bytes, true, &p->env, &store_why);

	if (rc == STORE_OK && store_why.text[0] != '\0')
		process_log(
		    p, LOG_LEVEL_WARN, "the store was opened with a warning", store_why.text);
	if (rc == STORE_OK)
		rc = slot_open(p->env, &p->slot, &store_why);
	if (rc != STORE_OK) {
		err_why(&why, "store: %s", store_why.text);
	} else if (pool_open(p->env, conf, true, &p->pool, &why) == ERR_OK) {
		enter_pool(p);
		return true;
	}
	text_clean(p->store_error, sizeof p->store_error, text_span(why.text));
	slot_close(&p->slot);
	env_close(&p->env);
	process_log(p, LOG_LEVEL_ERROR, "the store cannot be opened", p->store_error);
	return false;
}

static size_t
arena_bytes(const struct conf *conf)
{
	size_t body = (size_t)conf->server.max_body_bytes;
	size_t session = (size_t)conf->context.max_session_bytes;

	return body * 4 + (session < body ? session : body) * ARENA_TURNS +
	       FORM_ITEMS_MAX * ARENA_ITEM + ARENA_SLACK;
}

void
process_connect(struct process *p)
{
	p->serve.conf = p->job->conf;
	arena_limit(p->serve.arena, arena_bytes(p->job->conf));
	p->serve.pool = p->pool;
	p->serve.env = p->pool == NULL ? NULL : p->env;
	p->serve.slot = p->slot;
	p->serve.listen_fd = p->job->listen_fd;
	p->serve.board = p->job->board;
	p->serve.place = p->job->number;
	p->serve.store_error = p->store_error;
	p->serve.generation = p->job->generation;
	p->serve.loaded_at = p->job->loaded_at;
	p->serve.checked_root[0] = '\0';
	p->serve.exposed = false;
	p->serve.degraded = chores_degraded(&p->serve, clock_wall());
}

void
process_open(struct process *p, struct worker_job *job)
{
	p->job = job;
	p->serve.up = upstream_new(job->trust);
	p->serve.watch = &p->watch;
	p->serve.log = job->log;
	p->serve.arena = arena_new(arena_bytes(job->conf));
	buf_init(&p->serve.body, (size_t)job->conf->server.max_body_bytes);
	if (getrandom(&p->serve.random, sizeof p->serve.random, 0) < 0 || p->serve.random == 0)
		p->serve.random = (uint64_t)clock_wall().v << 16 | (uint64_t)getpid();
	process_open_store(p);
	process_connect(p);
}

void
process_close(struct process *p)
{
	upstream_free(&p->serve.up);
	tokens_close(&p->serve.tokens);
	pool_free(&p->pool);
	slot_close(&p->slot);
	env_close(&p->env);
	buf_release(&p->serve.body);
	page_models_forget(&p->serve);
	arena_free(&p->serve.arena);
	close(p->watch.signal_fd);
}
