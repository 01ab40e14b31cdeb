#include "once.h"

#include "base/clock.h"
#include "base/sandbox.h"
#include "cgi.h"
#include "chores.h"
#include "listen.h"
#include "process.h"
#include "respond.h"
#include "settle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSE_ARENA 262144
#define REFUSE_TIMEOUT_MS 10000 /* while no configuration says how long */

struct once {
	struct worker_job job;
	struct process p;
	struct cgi *cgi;
	char path[PATH_MAX];
};

bool
once_is_asked(void)
{
	return getenv("REQUEST_METHOD") != NULL && !listen_is(STDIN_FILENO);
}

static bool
complain(const char *text)
{
	fprintf(stderr, "sluice: %s\n", text);
	return false;
}

static bool
load(struct once *o)
{
	struct conf_report report = {.n = 0};
	struct why why;
	bool ok = conf_find(NULL, o->path, sizeof o->path, &why) == ERR_OK;

	if (!ok)
		return complain(why.text);
	ok = conf_load(o->path, &o->job.conf, &report, &why) == ERR_OK;
	for (size_t i = 0; i < report.n && !ok; i++)
		complain(report.at[i].text);
	if (!ok && report.n == 0)
		complain(why.text);
	conf_report_release(&report);
	return ok;
}

static bool
become_user(struct once *o)
{
	const struct conf *conf = o->job.conf;
	bool stayed_root = false;
	struct why why;

	if (sandbox_drop_root(conf->server.user.p, conf->path.p, &stayed_root, &why) != ERR_OK)
		return complain(why.text);
	if (stayed_root)
		log_fields(o->job.log, LOG_LEVEL_WARN, clock_wall(),
		    "running as root: set server.user, or let another user own the configuration",
		    LOG_Z("listen", ""));
	return true;
}

/* All that must be there before the request can be looked at. */
static bool
prepare(struct once *o)
{
	const struct conf *conf;
	struct why why;

	if (!load(o))
		return false;
	conf = o->job.conf;
	o->job.loaded_at = clock_wall();
	o->job.log = log_open(
	    conf->log.target.p, (enum log_level)conf->log.level, conf->log.format == CONF_LOG_JSON);
	if (o->job.log == NULL) {
		err_why(
		    &why, "cannot open log.target '%s': %s", conf->log.target.p, strerror(errno));
		return complain(why.text);
	}
	if (!become_user(o))
		return false;
	return trust_later(conf, &o->job.trust, &why) == ERR_OK || complain(why.text);
}

static struct exchange *
begin(struct once *o, int64_t client_timeout_ms)
{
	return cgi_begin(&o->cgi, &(struct cgi_side){.in = STDIN_FILENO,
	                              .out = STDOUT_FILENO,
	                              .params = environ,
	                              .client_timeout_ms = client_timeout_ms,
	                              .watch = &o->p.watch,
	                              .clock = clock_mono});
}

/* The client learns that it is not his fault; the reason stands in the server's log. */
static void
refuse(struct once *o)
{
	struct arena *arena = arena_new(REFUSE_ARENA);
	struct respond respond = {
	    .x = begin(o, REFUSE_TIMEOUT_MS), .arena = arena, .dialect = &dialect_chat};
	struct respond_error error = {.status = 503,
	    .code = "misconfigured",
	    .message = SPAN("the gateway cannot start, see the web server's error log"),
	    .retry_after_s = -1};

	respond.head_only = text_is(exchange_param(respond.x, "REQUEST_METHOD"), "HEAD");
	respond_error(&respond, &error);
	cgi_end(&o->cgi);
	arena_free(&arena);
}

/* mod_cgi holds the answer's last bytes back until its pipe of errors is closed, too. */
static void
let_errors_go(void)
{
	struct stat st;
	int nowhere = -1;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) == STDERR_FILENO)
		close(nowhere);
}

/* Nobody waits for this any more. */
static void
tidy_up(struct process *p)
{
	if (p->env == NULL)
		return;
	if (p->serve.unreleased)
		p->serve.unreleased = !settle_release(p->env, p->slot);
	chores_save_hard(&p->serve, clock_wall());
	if (env_check(p->env) != STORE_OK)
		process_log(p, LOG_LEVEL_WARN, "housekeeping failed", env_error(p->env));
	chores_run_stored(&p->serve, clock_wall());
}

static void
serve(struct once *o)
{
	struct exchange *x = begin(o, o->job.conf->server.client_timeout_ms);

	process_open(&o->p, &o->job);
	serve_exchange(&o->p.serve, x);
	cgi_end(&o->cgi);
	let_errors_go();
	tidy_up(&o->p);
	env_drop(&o->p.env);
	process_close(&o->p);
}

int
once_run(void)
{
	struct once o = {.job = {.listen_fd = -1, .generation = 1}};

	sandbox_harden();
	if (watch_open(&o.p.watch, 0) < 0)
		complain("cannot wait for signals");
	o.p.watch.by_hangup = true;
	if (prepare(&o))
		serve(&o);
	else
		refuse(&o);
	trust_free(&o.job.trust);
	conf_free(&o.job.conf);
	log_close(&o.job.log);
	return 0;
}
