#include "ctl/doctor_run.h"

#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/doctor_flow.h"
#include "ctl/doctor_local.h"
#include "ctl/doctor_row.h"
#include "ctl/doctor_web.h"
#include "ctl/human.h"

#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define ARENA_MAX (16u << 20)
#define OUTPUT_MAX (1u << 20)
#define MEASURED_MAX 8192
#define QUICK_S 5
#define LONG_S 45 /* beyond FcgidIOTimeout's 40 s */
#define SILENCE_MAX_S 60

/* What must be known before a check can say anything. */
enum need { NEED_NOTHING, NEED_CONF, NEED_STATE, NEED_URL, NEED_REACHED, NEED_THERE, NEED_ECHO };

static const struct check {
	const char *name;
	void (*run)(struct doctor *d);
	enum need need;
	const char *meaning; /* of a problem, for whoever uses the gateway */
} checks[] = {
    {"configuration", doctor_local_conf, NEED_NOTHING,
        "no command works, and the gateway does not start anew"},
    {"state_dir", doctor_local_state_dir, NEED_CONF, "every request gets 503"},
    {"store", doctor_local_store, NEED_STATE, "every request gets 503"},
    {"tokens", doctor_local_tokens, NEED_CONF, "tokens are estimated for every model"},
    {"reach", doctor_web_reach, NEED_URL, "no client comes through"},
    {"gateway", doctor_web_gateway, NEED_REACHED, "no client comes through"},
    {"access", doctor_web_access, NEED_THERE,
        "this client gets no answer, and doctor cannot go on"},
    {"set-up", doctor_web_setup, NEED_ECHO, ""},
    {"gateway's store", doctor_web_state, NEED_ECHO, "every request gets 503"},
    {"anonymous", doctor_web_anonymous, NEED_THERE, "strangers spend your accounts"},
    {"example token", doctor_web_shipped, NEED_THERE, "strangers spend your accounts"},
    {"forged user", doctor_web_forged, NEED_ECHO, "any client can be any other, an admin, too"},
    {"authorization", doctor_web_bearer, NEED_ECHO, "client keys cannot be checked"},
    {"x-api-key", doctor_web_api_key, NEED_ECHO, "client keys cannot be checked"},
    {"paths", doctor_web_paths, NEED_ECHO, "SDKs get 404"},
    {"admin paths", doctor_web_admin, NEED_THERE, "clients see your accounts"},
    {"streaming", doctor_flow_stream, NEED_ECHO, "clients see nothing until the answer is whole"},
    {"compression", doctor_flow_compressed, NEED_ECHO,
        "clients see nothing until the answer is whole"},
    {"body", doctor_flow_body, NEED_ECHO, "long conversations and images are refused"},
    {"chunked body", doctor_flow_chunked, NEED_ECHO, "uploads of some SDKs are refused"},
    {"first silence", doctor_flow_first, NEED_ECHO,
        "a model that thinks for longer is cut before it says a word"},
    {"later silence", doctor_flow_between, NEED_ECHO,
        "a stream that pauses is cut; upstream.heartbeat must be shorter"},
};

static bool
is_met(const struct doctor *d, enum need need)
{
	switch (need) {
	case NEED_NOTHING: return true;
	case NEED_CONF: return d->a.conf != NULL;
	case NEED_STATE: return d->has_state;
	case NEED_URL: return d->peer.url != NULL;
	case NEED_REACHED: return d->reached;
	case NEED_THERE: return d->there;
	case NEED_ECHO: return d->echoed;
	}
	return false;
}

static const char *const results[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_PROBLEM] = "problem"};

/* Of a file that is ours to find the whole path. */
static const char *
where(const struct doctor *d, const struct doctor_remedy *remedy)
{
	bool conf = strcmp(remedy->file, "sluice.json") == 0 && d->conf_path[0] != '\0';

	return conf ? d->conf_path : remedy->file;
}

static void
print_text(struct ctl *ctl, const struct doctor *d, const struct check *check)
{
	const struct doctor_finding *f = &d->found;
	struct doctor_remedy remedy;

	fprintf(ctl->out, "%-8s %-16s %s\n", results[f->result], check->name, f->text);
	if (f->result == DOCTOR_PROBLEM)
		fprintf(ctl->out, "%26s%s\n", "", check->meaning);
	if (f->trouble != DOCTOR_NO_TROUBLE) {
		remedy = doctor_remedy(d->setup, f->trouble);
		fprintf(ctl->out, "%26smend:  %s\n%26swhere: %s\n", "", remedy.directive, "",
		    where(d, &remedy));
	}
	fflush(ctl->out);
}

static void
print_json(struct emit *e, const struct doctor *d, const struct check *check)
{
	const struct doctor_finding *f = &d->found;
	struct doctor_remedy remedy;

	emit_object(e, NULL);
	emit_z(e, "check", check->name);
	emit_z(e, "result", results[f->result]);
	emit_z(e, "text", f->text);
	emit_z(e, "meaning", f->result == DOCTOR_PROBLEM ? check->meaning : NULL);
	emit_raw(e, "measured", d->measured.n > 0 ? buf_text(&d->measured) : SPAN("null"));
	if (f->trouble != DOCTOR_NO_TROUBLE) {
		remedy = doctor_remedy(d->setup, f->trouble);
		emit_object(e, "remedy");
		emit_z(e, "directive", remedy.directive);
		emit_z(e, "file", where(d, &remedy));
		emit_end(e);
	} else {
		emit_null(e, "remedy");
	}
	emit_end(e);
}

struct sums {
	unsigned problems, skipped;
};

/* A word about what is running, for who waits; it is gone when the finding comes. */
static void
show_progress(struct ctl *ctl, const char *name)
{
	if (ctl->json || isatty(STDERR_FILENO) != 1)
		return;
	if (name != NULL)
		fprintf(ctl->err, "...      %s", name);
	else
		fputs("\r\033[K", ctl->err);
	fflush(ctl->err);
}

static void
run_checks(struct doctor *d, struct emit *e, struct sums *sums)
{
	for (size_t i = 0; i < NELEM(checks) && !d->interrupted; i++) {
		if (!is_met(d, checks[i].need)) {
			sums->skipped += d->peer.url != NULL || checks[i].need < NEED_URL;
			continue;
		}
		buf_clear(&d->measured);
		show_progress(d->ctl, checks[i].name);
		checks[i].run(d);
		show_progress(d->ctl, NULL);
		if (d->interrupted)
			return;
		if (d->ctl->json)
			print_json(e, d, &checks[i]);
		else
			print_text(d->ctl, d, &checks[i]);
		sums->problems += d->found.result == DOCTOR_PROBLEM;
	}
}

static void
sum_up(struct doctor *d, const struct sums *sums)
{
	if (d->interrupted)
		fprintf(d->ctl->err, "sluicectl: interrupted\n");
	else if (!d->ctl->json) {
		fprintf(
		    d->ctl->out, "%u problem%s", sums->problems, sums->problems == 1 ? "" : "s");
		if (sums->skipped > 0)
			fprintf(d->ctl->out, "; %u check%s could not be made", sums->skipped,
			    sums->skipped == 1 ? "" : "s");
		if (sums->problems > 0 && d->peer.url != NULL)
			fputs(
			    "; after a change in the web server's files reload it, then ask again",
			    d->ctl->out);
		fputc('\n', d->ctl->out);
	}
}

static int
examine(struct doctor *d)
{
	struct sums sums = {0, 0};
	struct buf out;
	struct emit e;
	int status;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	emit_object(&e, NULL);
	emit_z(&e, "url", d->peer.url);
	emit_array(&e, "checks");
	run_checks(d, &e, &sums);
	emit_end(&e);
	emit_z(&e, "setup", d->reached ? doctor_judge_setups[d->setup].id : NULL);
	emit_i64(&e, "problems", sums.problems);
	emit_i64(&e, "skipped", sums.skipped);
	emit_end(&e);
	buf_char(&out, '\n');
	status = sums.problems > 0 || d->interrupted ? CTL_FAILED : CTL_DONE;
	sum_up(d, &sums);
	if (d->ctl->json && human_print(d->ctl, &out) != CTL_DONE)
		status = CTL_FAILED;
	buf_release(&out);
	return status;
}

/* One line from standard input, which a terminal does not show. */
static bool
read_secret(struct ctl *ctl, const char *what, char *line, size_t cap)
{
	struct termios old, quiet;
	bool terminal = tcgetattr(STDIN_FILENO, &old) == 0, ok;

	if (terminal) {
		fprintf(ctl->err, "%s: ", what);
		quiet = old;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	}
	ok = fgets(line, (int)cap, stdin) != NULL;
	if (terminal) {
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
		fputc('\n', ctl->err);
	}
	if (ok)
		line[strcspn(line, "\r\n")] = '\0';
	if (!ok || line[0] == '\0')
		fprintf(ctl->err, "sluicectl: no %s on standard input\n", what);
	return ok && line[0] != '\0';
}

struct wanted {
	const char *url, *token, *user, *ca_file;
	bool insecure, http2, longer;
	int64_t silence_s;
	char url_text[2048], secret[1024];
};

/* The mount: no slash and no /v1 at the end, so that an SDK's base URL does, too. */
static bool
read_url(struct ctl *ctl, struct wanted *w)
{
	struct span url = text_span(w->url);

	if ((!text_starts_fold(url, "http://") && !text_starts_fold(url, "https://")) ||
	    strpbrk(w->url, "?#@ \t\r\n") != NULL || url.n >= sizeof w->url_text) {
		fprintf(ctl->err,
		    "sluicectl: --url wants http://HOST/MOUNT or https://HOST/MOUNT, not '%s'\n",
		    w->url);
		return false;
	}
	while (url.n > 0 && url.p[url.n - 1] == '/')
		url.n--;
	if (text_ends(url, "/v1"))
		url.n -= strlen("/v1");
	memcpy(w->url_text, url.p, url.n);
	w->url_text[url.n] = '\0';
	return true;
}

static bool
read_credentials(struct ctl *ctl, struct wanted *w)
{
	char password[512];

	if (w->token != NULL && w->user != NULL) {
		fprintf(ctl->err, "sluicectl: one of --token and --user\n");
		return false;
	}
	if (w->token != NULL && strcmp(w->token, "-") == 0) {
		w->token = w->secret;
		return read_secret(ctl, "token", w->secret, sizeof w->secret);
	}
	if (w->user != NULL && strchr(w->user, ':') == NULL) {
		if (!read_secret(ctl, "password", password, sizeof password))
			return false;
		snprintf(w->secret, sizeof w->secret, "%.400s:%s", w->user, password);
		explicit_bzero(password, sizeof password);
		w->user = w->secret;
	}
	if (w->token == NULL || strpbrk(w->token, "\r\n") == NULL)
		return true;
	fprintf(ctl->err, "sluicectl: a token is one line\n");
	return false;
}

static bool
read_wanted(struct ctl *ctl, int argc, char **argv, struct wanted *w)
{
	const struct args_option options[] = {{.name = "--url", .text = &w->url},
	    {.name = "--token", .text = &w->token}, {.name = "--user", .text = &w->user},
	    {.name = "--ca-file", .text = &w->ca_file},
	    {.name = "--insecure", .flag = &w->insecure}, {.name = "--http2", .flag = &w->http2},
	    {.name = "--long", .flag = &w->longer},
	    {.name = "--silence", .number = &w->silence_s, .min = 1, .max = SILENCE_MAX_S}};

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return false;
	if (w->url == NULL && (w->token != NULL || w->user != NULL || w->ca_file != NULL ||
	                          w->insecure || w->http2 || w->longer || w->silence_s > 0)) {
		fprintf(ctl->err, "sluicectl: that goes with --url; see --help\n");
		return false;
	}
	return w->url == NULL || (read_url(ctl, w) && read_credentials(ctl, w));
}

/* Signals end a call and then the run, so that nothing is left in state_dir. */
static void
hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
doctor_run(struct ctl *ctl, int argc, char **argv)
{
	struct wanted w = {.url = NULL};
	struct doctor d = {.ctl = ctl, .pass_fd = -1};
	struct why why;
	int status;

	if (!read_wanted(ctl, argc, argv, &w))
		return CTL_USAGE;
	d.peer = (struct doctor_peer){.url = w.url == NULL ? NULL : w.url_text,
	    .token = w.token,
	    .user = w.user,
	    .ca_file = w.ca_file,
	    .insecure = w.insecure,
	    .http2 = w.http2};
	d.silence_ms = 1000 * (w.silence_s > 0 ? w.silence_s : w.longer ? LONG_S : QUICK_S);
	if (conf_find(ctl->conf_given, d.conf_path, sizeof d.conf_path, &why) != ERR_OK)
		d.conf_path[0] = '\0';
	d.arena = arena_new(ARENA_MAX);
	buf_init(&d.measured, MEASURED_MAX);
	hold_signals();
	status = examine(&d);
	if (d.a.conf != NULL)
		doctor_pass_end(d.a.conf->state_dir.p, &d.pass_fd);
	attach_close(&d.a);
	doctor_call_release(&d.hello);
	buf_release(&d.measured);
	arena_free(&d.arena);
	explicit_bzero(w.secret, sizeof w.secret);
	return status;
}
