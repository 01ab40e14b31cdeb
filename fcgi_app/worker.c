#include "worker.h"

#include "base/clock.h"
#include "chores.h"
#include "fcgi.h"
#include "judge.h"
#include "serve.h"
#include "settle.h"
#include "store/queue.h"
#include "store/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 1000
#define FCGID_DRAIN_MS 6000 /* mod_fcgid kills 8 s after its first signal: SPEC.md section 2 */
#define ARENA_SLACK (16u << 20)
#define ACCEPT_RETRY_MS 100
#define COMPLAINT_MS 60000 /* between two of them */

struct worker {
	struct worker_job *job;
	struct serve serve;
	struct watch watch;
	struct env *env;
	struct slot *slot;
	struct pool *pool;
	struct fcgi *fcgi;
	int epoll_fd;
	int64_t served;
	struct mono_ms next_tick, next_complaint;
	char conf_error[512], store_error[512];
};

static void
log_why(struct worker *w, enum log_level level, const char *message, const char *why)
{
	log_fields(w->job->log, level, clock_wall(), message, LOG_Z("why", why));
}

static enum store_rc
write_generation(struct txn *txn, void *arg)
{
	const struct worker_job *job = arg;
	enum store_rc rc = tally_set(txn, TALLY_GENERATION, job->generation);

	return rc == STORE_OK ? tally_set(txn, TALLY_LOADED_MS, (uint64_t)job->loaded_at.v) : rc;
}

/* For sluicectl, which has no other way to know which configuration the workers have. */
static void
note_generation(struct worker *w)
{
	if (w->env != NULL && env_update(w->env, write_generation, w->job) != STORE_OK)
		log_why(w, LOG_LEVEL_WARN, "the generation was not written", env_error(w->env));
}

/* What a former owner of our slot left in queues and quotas. */
static enum store_rc
forget(struct txn *txn, void *arg)
{
	const struct worker *w = arg;
	struct slot_row lease;
	enum store_rc rc = queue_forget(txn, w->slot);

	return rc == STORE_OK && slot_left(w->slot, &lease)
	           ? judge_inherit(txn, w->pool, &lease, clock_wall())
	           : rc;
}

/* A former owner of our slot is forgotten; the secret of session keys is read. */
static void
enter_pool(struct worker *w)
{
	struct why why;

	if (env_update(w->env, forget, w) != STORE_OK)
		log_why(w, LOG_LEVEL_WARN, "the leavings of a dead worker were not cleared",
		    env_error(w->env));
	w->serve.has_secret =
	    session_secret(w->job->conf->state_dir.p, &w->serve.secret, &why) == ERR_OK;
	if (!w->serve.has_secret)
		log_why(w, LOG_LEVEL_ERROR, "sessions are not kept", why.text);
}

/* Without the store requests get 503; it is tried again every second. */
static bool
open_store(struct worker *w)
{
	const struct conf *conf = w->job->conf;
	struct store_why store_why;
	struct why why;
	enum store_rc rc = env_open(
	    conf->state_dir.p, (uint64_t)conf->store.max_size_bytes, true, &w->env, &store_why);

	if (rc == STORE_OK && store_why.text[0] != '\0')
		log_why(w, LOG_LEVEL_WARN, "the store was opened with a warning", store_why.text);
	if (rc != STORE_OK)
		err_why(&why, "store: %s", store_why.text);
	else if (slot_open(w->env, &w->slot, &store_why) != STORE_OK)
		err_why(&why, "store: %s", store_why.text);
	else if (pool_open(w->env, conf, true, &w->pool, &why) == ERR_OK) {
		note_generation(w);
		enter_pool(w);
		return true;
	}
	text_clean(w->store_error, sizeof w->store_error, text_span(why.text));
	slot_close(&w->slot);
	env_close(&w->env);
	log_why(w, LOG_LEVEL_ERROR, "the store cannot be opened", w->store_error);
	return false;
}

static void
connect_serve(struct worker *w)
{
	w->serve.conf = w->job->conf;
	w->serve.pool = w->pool;
	w->serve.env = w->pool == NULL ? NULL : w->env;
	w->serve.slot = w->slot;
	w->serve.listen_fd = w->job->listen_fd;
	w->serve.store_error = w->store_error;
	w->serve.generation = w->job->generation;
	w->serve.loaded_at = w->job->loaded_at;
	w->serve.checked_root[0] = '\0';
	w->serve.exposed = false;
	w->serve.degraded = chores_degraded(&w->serve, clock_wall());
}

static void
refresh_conf_error(struct worker *w)
{
	const char *error = w->job->board != NULL ? w->job->board->conf_error : w->conf_error;

	w->serve.conf_error = error[0] == '\0' ? NULL : error;
}

/* Without a master: take a changed file into force; a broken one leaves the old in force. */
static void
reload(struct worker *w)
{
	struct conf *conf = NULL;
	struct trust *trust = NULL;
	struct pool *pool = NULL;
	struct conf_report report = {.n = 0};
	struct why why;
	enum err err = conf_load(w->job->conf_path, &conf, &report, &why);

	conf_report_release(&report);
	if (err == ERR_OK)
		err = trust_load(conf, &trust, &why);
	if (err == ERR_OK && w->env != NULL)
		err = pool_open(w->env, conf, true, &pool, &why);
	if (err != ERR_OK) {
		trust_free(&trust);
		conf_free(&conf);
		text_clean(w->conf_error, sizeof w->conf_error, text_span(why.text));
		log_why(w, LOG_LEVEL_ERROR, "the configuration was not reloaded", w->conf_error);
		return;
	}
	pool_free(&w->pool);
	trust_free(&w->job->trust);
	conf_free(&w->job->conf);
	w->job->conf = conf;
	w->job->trust = trust;
	w->pool = pool;
	w->conf_error[0] = '\0';
	w->job->generation++;
	w->job->loaded_at = clock_wall();
	note_generation(w);
	upstream_use(w->serve.up, trust);
	connect_serve(w);
	log_fields(w->job->log, LOG_LEVEL_INFO, clock_wall(), "configuration reloaded",
	    LOG_NUMBER("generation", (int64_t)w->job->generation));
}

static void
check_store(struct worker *w)
{
	struct wall_ms now = clock_wall();

	if (w->pool == NULL) {
		if (open_store(w))
			connect_serve(w);
		return;
	}
	if (env_check(w->env) != STORE_OK)
		log_why(w, LOG_LEVEL_WARN, "housekeeping failed", env_error(w->env));
	if (w->serve.unreleased)
		w->serve.unreleased = !settle_release(w->env, w->slot);
	w->serve.degraded = chores_degraded(&w->serve, now);
	chores_run(&w->serve, now);
}

/* Once a second at most. */
static void
tick(struct worker *w)
{
	struct mono_ms now = clock_mono();

	if (now.v < w->next_tick.v)
		return;
	w->next_tick.v = now.v + TICK_MS;
	if (w->job->board == NULL && (w->watch.reload || conf_changed(w->job->conf)))
		reload(w);
	w->watch.reload = false;
	check_store(w);
}

/* What a peer can bring about at will must not fill the log. */
static void
complain(struct worker *w, const char *message, const char *why)
{
	struct mono_ms now = clock_mono();

	if (now.v < w->next_complaint.v)
		return;
	w->next_complaint.v = now.v + COMPLAINT_MS;
	log_why(w, LOG_LEVEL_WARN, message, why);
}

/* Out of descriptors or memory: the connection still waits, and epoll would report it without a pause. */
static void
rest_from_accepting(struct worker *w, const char *why)
{
	complain(w, "no connection can be accepted", why);
	watch_sleep(&w->watch, ACCEPT_RETRY_MS, clock_mono);
}

static void
serve_one(struct worker *w)
{
	int64_t client_ms = w->job->conf->server.client_timeout_ms;
	int fd = accept4(w->job->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct exchange *x;
	struct why why;

	if (fd < 0) { /* another worker was faster, or the peer is gone */
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			rest_from_accepting(w, strerror(errno));
		return;
	}
	if (w->job->board != NULL)
		w->job->board->accepted[w->job->number % NELEM(w->job->board->accepted)]++;
	x = fcgi_begin(w->fcgi, fd, client_ms, &why);
	if (x == NULL) {
		if (why.text[0] != '\0')
			complain(w, "a connection was dropped", why.text);
		return;
	}
	refresh_conf_error(w);
	serve_exchange(&w->serve, x);
	fcgi_end(w->fcgi);
	chores_save_hard(&w->serve, clock_wall());
	w->served++;
}

static bool
may_go_on(const struct worker *w)
{
	int64_t most = w->job->conf->server.max_requests;

	return !w->watch.stopping && !w->watch.replace && (most <= 0 || w->served < most);
}

/* Exclusive: one idle worker is woken for a connection, the one that was busy last. */
static bool
open_epoll(struct worker *w)
{
	struct epoll_event listen = {
	    .events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = w->job->listen_fd};
	struct epoll_event signals = {.events = EPOLLIN, .data.fd = w->watch.signal_fd};
	int flags = fcntl(w->job->listen_fd, F_GETFL);

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return w->epoll_fd >= 0 && flags >= 0 &&
	       fcntl(w->job->listen_fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
	       epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->job->listen_fd, &listen) == 0 &&
	       epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->watch.signal_fd, &signals) == 0;
}

static void
loop(struct worker *w)
{
	while (may_go_on(w)) {
		struct epoll_event events[2];
		int n = epoll_wait(w->epoll_fd, events, 2, TICK_MS);
		bool ready = false;

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == w->watch.signal_fd)
				watch_signals(&w->watch, clock_mono());
			else
				ready = true;
		}
		if (w->watch.stopping || w->watch.replace)
			break;
		if (ready)
			serve_one(w);
		tick(w);
	}
}

static void
close_all(struct worker *w)
{
	upstream_free(&w->serve.up);
	pool_free(&w->pool);
	slot_close(&w->slot);
	env_close(&w->env);
	fcgi_free(&w->fcgi);
	buf_release(&w->serve.body);
	arena_free(&w->serve.arena);
	close(w->epoll_fd);
	close(w->watch.signal_fd);
}

static int64_t
drain_ms(const struct worker_job *job)
{
	int64_t ms = job->conf->server.drain_timeout_ms;

	return job->board == NULL && ms > FCGID_DRAIN_MS ? FCGID_DRAIN_MS : ms;
}

int
worker_run(struct worker_job *job)
{
	struct worker w = {.job = job, .epoll_fd = -1};

	if (watch_open(&w.watch, drain_ms(job)) < 0 || !open_epoll(&w)) {
		log_why(&w, LOG_LEVEL_ERROR, "the worker cannot start", "signals or epoll");
		return 1;
	}
	w.fcgi = fcgi_new(&w.watch, clock_mono, job->listen_fd);
	w.serve.up = upstream_new(job->trust);
	w.serve.watch = &w.watch;
	w.serve.log = job->log;
	w.serve.arena = arena_new((size_t)job->conf->server.max_body_bytes * 4 + ARENA_SLACK);
	buf_init(&w.serve.body, (size_t)job->conf->server.max_body_bytes);
	if (getrandom(&w.serve.random, sizeof w.serve.random, 0) < 0 || w.serve.random == 0)
		w.serve.random = (uint64_t)clock_wall().v << 16 | (uint64_t)getpid();
	open_store(&w);
	connect_serve(&w);
	loop(&w);
	close_all(&w);
	return 0;
}
