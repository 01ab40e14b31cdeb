#include "worker.h"

#include "base/clock.h"
#include "base/heap.h"
#include "chores.h"
#include "fcgi.h"
#include "process.h"
#include "settle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 1000
#define FCGID_DRAIN_MS 6000 /* mod_fcgid kills 8 s after its first signal: SPEC.md section 2 */
#define ACCEPT_RETRY_MS 100
#define COMPLAINT_MS 60000 /* between two of them */

struct worker {
	struct worker_job *job;
	struct process p;
	struct fcgi *fcgi;
	int epoll_fd;
	int64_t served;
	bool trimmed; /* memory was given back since the last request */
	struct mono_ms next_tick, next_complaint;
	char conf_error[512];
};

static void
refresh_conf_error(struct worker *w)
{
	const char *error = w->job->board != NULL ? w->job->board->conf_error : w->conf_error;

	w->p.serve.conf_error = error[0] == '\0' ? NULL : error;
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
	if (err == ERR_OK && w->p.env != NULL)
		err = pool_open(w->p.env, conf, true, &pool, &why);
	if (err != ERR_OK) {
		trust_free(&trust);
		conf_free(&conf);
		text_clean(w->conf_error, sizeof w->conf_error, text_span(why.text));
		process_log(
		    &w->p, LOG_LEVEL_ERROR, "the configuration was not reloaded", w->conf_error);
		return;
	}
	pool_free(&w->p.pool);
	trust_free(&w->job->trust);
	conf_free(&w->job->conf);
	w->job->conf = conf;
	w->job->trust = trust;
	w->p.pool = pool;
	w->conf_error[0] = '\0';
	w->job->generation++;
	w->job->loaded_at = clock_wall();
	process_note_generation(&w->p);
	upstream_use(w->p.serve.up, trust);
	process_connect(&w->p);
	log_fields(w->job->log, LOG_LEVEL_INFO, clock_wall(), "configuration reloaded",
	    LOG_NUMBER("generation", (int64_t)w->job->generation));
}

static void
check_store(struct worker *w)
{
	struct wall_ms now = clock_wall();

	if (w->p.pool == NULL) {
		if (process_open_store(&w->p)) {
			process_note_generation(&w->p);
			process_connect(&w->p);
		}
		return;
	}
	if (env_check(w->p.env) != STORE_OK)
		process_log(&w->p, LOG_LEVEL_WARN, "housekeeping failed", env_error(w->p.env));
	if (w->p.serve.unreleased)
		w->p.serve.unreleased = !settle_release(w->p.env, w->p.slot);
	w->p.serve.degraded = chores_degraded(&w->p.serve, now);
	chores_run(&w->p.serve, now);
}

/* Once a second at most. */
static void
tick(struct worker *w)
{
	struct mono_ms now = clock_mono();

	if (now.v < w->next_tick.v)
		return;
	w->next_tick.v = now.v + TICK_MS;
	if (w->job->board == NULL && (w->p.watch.reload || conf_changed(w->job->conf)))
		reload(w);
	w->p.watch.reload = false;
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
	process_log(&w->p, LOG_LEVEL_WARN, message, why);
}

/* Out of descriptors or memory: the connection still waits, and epoll would report it without a pause. */
static void
rest_from_accepting(struct worker *w, const char *why)
{
	complain(w, "no connection can be accepted", why);
	watch_sleep(&w->p.watch, ACCEPT_RETRY_MS, clock_mono);
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
	board_accepted(w->job->board, w->job->number);
	board_busy(w->job->board, w->job->number);
	x = fcgi_begin(w->fcgi, fd, client_ms, &why);
	if (x == NULL) {
		if (why.text[0] != '\0')
			complain(w, "a connection was dropped", why.text);
		return;
	}
	refresh_conf_error(w);
	serve_exchange(&w->p.serve, x);
	fcgi_end(w->fcgi);
	chores_save_hard(&w->p.serve, clock_wall());
	w->served++;
	w->trimmed = false;
}

/* Nothing came for a second. What the requests took and nobody needs now goes back, once. */
static void
rest(struct worker *w)
{
	if (w->trimmed)
		return;
	heap_trim();
	w->trimmed = true;
}

static void
take_one(struct worker *w)
{
	serve_one(w);
	board_idle(w->job->board, w->job->number);
}

static bool
may_go_on(const struct worker *w)
{
	int64_t most = w->job->conf->server.max_requests;

	return !w->p.watch.stopping && !w->p.watch.replace && (most <= 0 || w->served < most);
}

/* Exclusive: one idle worker is woken for a connection, the one that was busy last. */
static bool
open_epoll(struct worker *w)
{
	struct epoll_event listen = {
	    .events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = w->job->listen_fd};
	struct epoll_event signals = {.events = EPOLLIN, .data.fd = w->p.watch.signal_fd};
	int flags = fcntl(w->job->listen_fd, F_GETFL);

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return w->epoll_fd >= 0 && flags >= 0 &&
	       fcntl(w->job->listen_fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
	       epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->job->listen_fd, &listen) == 0 &&
	       epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->p.watch.signal_fd, &signals) == 0;
}

static void
loop(struct worker *w)
{
	while (may_go_on(w)) {
		struct epoll_event events[2];
		int n = epoll_wait(w->epoll_fd, events, 2, TICK_MS);
		bool ready =
		    n == 0; /* whoever was woken for a connection may have died of something */

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == w->p.watch.signal_fd)
				watch_signals(&w->p.watch, clock_mono());
			else
				ready = true;
		}
		if (w->p.watch.stopping)
			break;
		if (n == 0)
			rest(w);
		if (ready) /* when told to leave, too: nobody else was woken for this connection */
			take_one(w);
		tick(w);
	}
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
	struct worker w = {.job = job, .p.job = job, .epoll_fd = -1, .trimmed = true};

	if (watch_open(&w.p.watch, drain_ms(job)) < 0 || !open_epoll(&w)) {
		process_log(&w.p, LOG_LEVEL_ERROR, "the worker cannot start", "signals or epoll");
		return 1;
	}
	w.fcgi = fcgi_new(&w.p.watch, clock_mono, job->listen_fd);
	process_open(&w.p, job);
	process_note_generation(&w.p);
	board_idle(job->board, job->number);
	loop(&w);
	process_close(&w.p);
	fcgi_free(&w.fcgi);
	close(w.epoll_fd);
	return 0;
}
