#include "ctl/doctor_down.h"

#include "pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_https(const struct doctor *d)
{
	return text_starts_fold(text_span(d->peer.url), "https:");
}

void
doctor_down_silent(struct doctor *d, const struct doctor_answer *a)
{
	struct span error = text_span(a->error);

	if (a->fault == DOCTOR_FAULT_TIMEOUT)
		doctor_problem(d, DOCTOR_HANGS,
		    "connected to %s, but no answer in %lld s: the gateway hangs, or all of its workers are busy",
		    d->peer.url, (long long)(a->end_ms / 1000));
	else if (a->fault == DOCTOR_FAULT_TLS && text_has_fold(error, "wrong version number"))
		doctor_problem(d, DOCTOR_SCHEME, "no TLS on the port of %s", d->peer.url);
	else if (a->fault == DOCTOR_FAULT_TLS)
		doctor_problem(
		    d, DOCTOR_BAD_TLS, "no HTTP answer from %s: %s", d->peer.url, a->error);
	else if (a->fault == DOCTOR_FAULT_BROKEN && !is_https(d))
		doctor_problem(d, DOCTOR_SCHEME,
		    "%s takes the connection and closes it without an answer: a port with TLS? (%s)",
		    d->peer.url, a->error);
	else
		doctor_problem(
		    d, DOCTOR_UNREACHABLE, "no HTTP answer from %s: %s", d->peer.url, a->error);
}

/* Apache and nginx answer in the clear. */
bool
doctor_down_scheme(struct doctor *d, const struct doctor_answer *a)
{
	struct span body = buf_text(&a->body);

	if (a->status != 400 || a->ours || is_https(d) ||
	    (!text_has_fold(body, "SSL-enabled server port") &&
	        !text_has_fold(body, "sent to HTTPS port")))
		return false;
	doctor_problem(d, DOCTOR_SCHEME, "the port of %s wants TLS", d->peer.url);
	return true;
}

/* " (mode 0660, user:group)" of a unix socket, or why it cannot be one. */
static void
describe_socket(const char *listen, char *text, size_t cap)
{
	const struct passwd *pw;
	const struct group *gr;
	struct stat st;

	text[0] = '\0';
	if (strncmp(listen, "unix:", 5) != 0)
		return;
	if (stat(listen + 5, &st) != 0) {
		snprintf(text, cap, " (%s)", strerror(errno));
		return;
	}
	pw = getpwuid(st.st_uid);
	gr = getgrgid(st.st_gid);
	snprintf(text, cap, " (mode %04o, %s:%s)", (unsigned)st.st_mode & 07777,
	    pw == NULL ? "?" : pw->pw_name, gr == NULL ? "?" : gr->gr_name);
}

/* 0 = none runs; -1 = not known. Makes no file. */
static pid_t
find_pool(const struct doctor *d, struct pidfile_text *text)
{
	char path[PATH_MAX];
	pid_t pid;
	int fd;

	if (d->a.conf == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/%s", d->a.conf->state_dir.p, PIDFILE_NAME);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	pid = pidfile_holder(fd, text);
	close(fd);
	return pid;
}

void
doctor_down_gateway(struct doctor *d, int status)
{
	struct pidfile_text pool = {.pid = 0};
	pid_t pid = find_pool(d, &pool);
	char socket[200];

	if (status == 500) {
		doctor_problem(d, DOCTOR_FAILS, "the web server fails by itself (HTTP 500)");
	} else if (pid > 0) {
		describe_socket(pool.listen, socket, sizeof socket);
		doctor_problem(d, DOCTOR_SOCKET,
		    "the web server answers HTTP %d by itself: it does not reach pool %d, which runs on %.200s%s",
		    status, (int)pid, pool.listen, socket);
	} else if (pid == 0) {
		doctor_problem(d, DOCTOR_NO_POOL,
		    "the web server answers HTTP %d by itself, and no pool runs on this state_dir ('%.200s')",
		    status, d->a.conf->state_dir.p);
	} else {
		doctor_problem(d, DOCTOR_DOWN,
		    "the web server answers HTTP %d by itself: it has no gateway to ask", status);
	}
}

bool
doctor_down_unfit(struct doctor *d, const struct doctor_answer *a)
{
	if (!text_is(doctor_error(d, a, "code"), "misconfigured"))
		return false;
	if (text_has_fold(doctor_error(d, a, "message"), "cannot start"))
		doctor_problem(d, DOCTOR_CONFIG,
		    "the gateway cannot start: its configuration has a fault, see the first line or the web server's error log");
	else
		doctor_problem(d, DOCTOR_EXPOSED,
		    "the configuration lies below the document root, so the gateway serves nobody");
	return true;
}
