#include "ctl/daemon.h"

#include "base/clock.h"
#include "base/emit.h"
#include "base/sandbox.h"
#include "ctl/args.h"
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 20
#define MASTER_GRACE_MS 10000 /* beyond the drain: the master kills its workers after 5 s of them */
#define DRAIN_UNKNOWN_MS 600000
#define KILLED_MS 5000
#define RESTART_MS (TRIAL_LIMIT_MS + 20000)
#define OUTPUT_MAX 16384

static bool
load(struct ctl *ctl, struct daemon *d)
{
	struct conf_report report = {.n = 0};
	struct why why;
	bool ok = conf_find(ctl->conf_given, d->path, sizeof d->path, &why) == ERR_OK &&
	          conf_load(d->path, &d->conf, &report, &why) == ERR_OK;

	for (size_t i = 0; i < report.n && !ok; i++)
		fprintf(ctl->err, "sluicectl: %s\n", report.at[i].text);
	if (!ok && report.n == 0)
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
	conf_report_release(&report);
	if (ok)
		snprintf(d->dir, sizeof d->dir, "%s", d->conf->state_dir.p);
	return ok;
}

/* What is made here must belong to the user that serves. */
static bool
become_user(struct ctl *ctl, const struct daemon *d)
{
	bool stayed_root = false;
	struct why why;

	const char *user = d->conf == NULL ? "" : d->conf->server.user.p;

	if (sandbox_drop_root(user, d->path, &stayed_root, &why) == ERR_OK)
		return true;
	fprintf(ctl->err, "sluicectl: %s\n", why.text);
	return false;
}

static bool
open_file(struct ctl *ctl, struct daemon *d, bool create)
{
	const char *dir = d->dir;

	if (create && mkdir(dir, 0700) != 0 && errno != EEXIST) {
		fprintf(
		    ctl->err, "sluicectl: cannot make state_dir '%s': %s\n", dir, strerror(errno));
		return false;
	}
	d->fd = pidfile_open(dir);
	if (d->fd >= 0 || (!create && errno == ENOENT))
		return true;
	fprintf(
	    ctl->err, "sluicectl: cannot open '%s/%s': %s\n", dir, PIDFILE_NAME, strerror(errno));
	return false;
}

bool
daemon_open(struct ctl *ctl, struct daemon *d, bool create)
{
	*d = (struct daemon){.fd = -1};
	if ((load(ctl, d) || (!create && d->path[0] != '\0' && daemon_salvage(d))) &&
	    become_user(ctl, d) && open_file(ctl, d, create))
		return true;
	daemon_close(d);
	return false;
}

void
daemon_close(struct daemon *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	conf_free(&d->conf);
}

pid_t
daemon_pid(struct daemon *d)
{
	return d->fd < 0 ? 0 : pidfile_holder(d->fd, &d->text);
}

bool
daemon_is_foreign(struct ctl *ctl, struct daemon *d)
{
	if (daemon_pid(d) >= 0)
		return false;
	fprintf(ctl->err,
	    "sluicectl: '%s/%s' is locked by a process that is not to be seen from here, in another "
	    "container or on another machine: ask there\n",
	    d->conf->state_dir.p, PIDFILE_NAME);
	return true;
}

void
daemon_say(struct ctl *ctl, const struct daemon *d, const char *done, bool changed)
{
	struct buf out;
	struct emit e;

	if (!ctl->json) {
		fprintf(ctl->out, "%s", done);
		if (d->text.pid != 0)
			fprintf(ctl->out, ": sluice %s, pid %lld, on %s", d->text.version,
			    (long long)d->text.pid, d->text.listen);
		fputc('\n', ctl->out);
		return;
	}
	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	emit_object(&e, NULL);
	emit_z(&e, "done", done);
	emit_bool(&e, "changed", changed);
	emit_i64(&e, "pid", d->text.pid);
	emit_z(&e, "version", d->text.version);
	emit_z(&e, "listen", d->text.listen);
	emit_i64(&e, "killed", d->text.killed);
	emit_end(&e);
	fprintf(ctl->out, "%.*s\n", (int)out.n, out.p);
	buf_release(&out);
}

bool
daemon_wait_gone(struct ctl *ctl, struct daemon *d, pid_t pid, int64_t ms)
{
	struct mono_ms begin = clock_mono(), now = begin;
	bool shown = isatty(STDERR_FILENO) == 1 && !ctl->json, told = false;

	for (; daemon_pid(d) == pid && now.v - begin.v < ms; now = clock_mono()) {
		if (shown && now.v - begin.v >= 1000) {
			fprintf(ctl->err, "\rrunning answers may end, %lld s   ",
			    (long long)(now.v - begin.v) / 1000);
			told = true;
		}
		poll(NULL, 0, LOOK_MS);
	}
	if (told)
		fputc('\n', ctl->err);
	return daemon_pid(d) != pid;
}

/* Its own time is over: nothing else helps. */
static bool
kill_it(struct ctl *ctl, struct daemon *d, pid_t pid)
{
	fprintf(ctl->err, "sluicectl: pid %d did not end in time: killed\n", (int)pid);
	kill(pid, SIGKILL);
	return daemon_wait_gone(ctl, d, pid, KILLED_MS);
}

static int
stop_it(struct ctl *ctl, struct daemon *d, pid_t pid)
{
	int64_t drain = d->conf == NULL ? DRAIN_UNKNOWN_MS : d->conf->server.drain_timeout_ms;

	if (kill(pid, SIGTERM) != 0) {
		fprintf(ctl->err, "sluicectl: cannot stop pid %d: %s\n", (int)pid, strerror(errno));
		return CTL_FAILED;
	}
	if (!daemon_wait_gone(ctl, d, pid, drain + MASTER_GRACE_MS) && !kill_it(ctl, d, pid))
		return CTL_FAILED;
	if (d->text.killed > 0)
		fprintf(ctl->err, "sluicectl: %lld workers did not end in time: killed\n",
		    (long long)d->text.killed);
	daemon_say(ctl, d, "stopped", true);
	if (strncmp(d->text.listen, "unix:", 5) != 0 && strchr(d->text.listen, ':') == NULL)
		fprintf(ctl->err,
		    "sluicectl: what had started it may start it anew: stop lighttpd, or systemctl stop sluice.socket sluice.service\n");
	return CTL_DONE;
}

int
daemon_stop_run(struct ctl *ctl, int argc, char **argv)
{
	struct daemon d;
	pid_t pid;
	int status = CTL_DONE;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!daemon_open(ctl, &d, false))
		return CTL_FAILED;
	pid = daemon_pid(&d);
	if (pid > 0) {
		status = stop_it(ctl, &d, pid);
	} else if (daemon_is_foreign(ctl, &d)) {
		status = CTL_FAILED;
	} else {
		d.text.pid = 0;
		daemon_say(ctl, &d, "no pool runs here", false);
	}
	daemon_close(&d);
	return status;
}

/* The file's serial grows when the new program is up, or when it was found unfit. */
static int
wait_restarted(struct ctl *ctl, struct daemon *d, pid_t pid, int64_t serial)
{
	struct mono_ms begin = clock_mono();

	while (daemon_pid(d) == pid && clock_mono().v - begin.v < RESTART_MS) {
		if (d->text.serial > serial && d->text.why[0] != '\0') {
			fprintf(ctl->err,
			    "sluicectl: not restarted, the running pool goes on: %s\n",
			    d->text.why);
			return CTL_FAILED;
		}
		if (d->text.serial > serial && d->text.state == PIDFILE_READY) {
			daemon_say(ctl, d, "restarted", true);
			return CTL_DONE;
		}
		poll(NULL, 0, LOOK_MS);
	}
	fprintf(ctl->err, "sluicectl: %s; see its log\n",
	    daemon_pid(d) == pid ? "the new program is not ready" : "the pool has ended");
	return CTL_FAILED;
}

int
daemon_restart_run(struct ctl *ctl, int argc, char **argv)
{
	struct daemon d;
	pid_t pid;
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!daemon_open(ctl, &d, false))
		return CTL_FAILED;
	pid = daemon_pid(&d);
	if (pid == 0) {
		fprintf(ctl->err,
		    "sluicectl: no pool runs here: sluicectl start (mod_fcgid and CGI need none)\n");
	} else if (d.conf == NULL) {
		fprintf(ctl->err, "sluicectl: not restarted, the running pool goes on\n");
	} else if (pid > 0) {
		int64_t serial = d.text.serial;

		if (kill(pid, SIGRTMIN) == 0)
			status = wait_restarted(ctl, &d, pid, serial);
		else
			fprintf(ctl->err, "sluicectl: cannot restart pid %d: %s\n", (int)pid,
			    strerror(errno));
	} else if (!daemon_is_foreign(ctl, &d)) {
		fprintf(ctl->err, "sluicectl: the pool has just ended: sluicectl start\n");
	}
	daemon_close(&d);
	return status;
}
