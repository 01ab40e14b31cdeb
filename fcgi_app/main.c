/*
 * main - sluice.fcgi: options, configuration, one visible chain of preparations, then the pool or a single worker.
 *
 * Errors    wrong usage: message and exit status 2; anything else that keeps it from starting: message and 1
 * Source    SPEC.md section 2
 */
#include "base/clock.h"
#include "base/sandbox.h"
#include "listen.h"
#include "master.h"
#include "once.h"

#include <curl/curl.h>
#include <fcgiapp.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

struct options {
	const char *conf, *listen, *workers;
};

static const char usage_text[] =
    "usage: sluice.fcgi [-c FILE] [--listen unix:/PATH | 127.0.0.1:PORT] [--workers N | auto]\n"
    "\n"
    "  -c FILE        configuration (else SLUICE_CONFIG, sluice.json beside the program,\n"
    "                 ~/.config/sluice/sluice.json, /etc/sluice/sluice.json)\n"
    "  --listen ADDR  bind this socket and run a pool of workers on it\n"
    "  --workers N    run a pool of N workers (also SLUICE_WORKERS); without it and without\n"
    "                 --listen one process serves the socket on descriptor 0\n"
    "  --version, --help\n"
    "\n"
    "Started by a web server over FastCGI, or as a pool of its own: see sluice(8).\n";

static _Noreturn void
usage(int status)
{
	fputs(usage_text, status == 0 ? stdout : stderr);
	exit(status);
}

static _Noreturn void
fail(const char *text)
{
	fprintf(stderr, "sluice: %s\n", text);
	exit(1);
}

static void
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
	    {"workers", required_argument, NULL, 'w'}, {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c': o->conf = optarg; break;
		case 'l': o->listen = optarg; break;
		case 'w': o->workers = optarg; break;
		case 'V': printf("sluice %s\n", SLUICE_VERSION); exit(0);
		case 'h': usage(0);
		default: usage(2);
		}
	}
	if (optind != argc)
		usage(2);
	if (o->workers == NULL)
		o->workers = getenv("SLUICE_WORKERS");
}

/* A pool? *fixed_out is its number of workers, 0 = elastic. False: a single process on descriptor 0. */
static bool
wants_pool(const struct options *o, unsigned *fixed_out)
{
	int64_t n = 0;

	*fixed_out = 0;
	if (o->workers == NULL || o->workers[0] == '\0')
		return o->listen != NULL;
	if (strcmp(o->workers, "auto") == 0)
		return true;
	if (!text_i64(text_span(o->workers), 1, MASTER_WORKERS_MAX, &n)) {
		fprintf(stderr, "sluice: --workers takes 1 to %d or 'auto', not '%s'\n",
		    MASTER_WORKERS_MAX, o->workers);
		exit(2);
	}
	*fixed_out = (unsigned)n;
	return true;
}

static void
load(const char *path, struct conf **conf_out)
{
	struct conf_report report = {.n = 0};
	struct why why;

	if (conf_load(path, conf_out, &report, &why) == ERR_OK) {
		conf_report_release(&report);
		return;
	}
	for (size_t i = 0; i < report.n; i++)
		fprintf(stderr, "sluice: %s\n", report.at[i].text);
	if (report.n == 0)
		fprintf(stderr, "sluice: %s\n", why.text);
	exit(1);
}

/* The user that root becomes is the owner of what root made before. */
static void
become_user(const struct options *o, const struct conf *conf, struct log *log)
{
	bool stayed_root = false;
	struct why why;

	if (sandbox_drop_root(conf->server.user.p, conf->path.p, &stayed_root, &why) != ERR_OK)
		fail(why.text);
	if (stayed_root)
		log_fields(log, LOG_LEVEL_WARN, clock_wall(),
		    "running as root: set server.user, or let another user own the configuration",
		    LOG_Z("listen", o->listen == NULL ? "" : o->listen));
}

static int
open_socket(const struct options *o, const struct conf *conf)
{
	struct why why;
	int fd = STDIN_FILENO;
	unsigned uid, gid;

	if (o->listen == NULL) {
		if (listen_is(fd))
			return fd;
		fputs("sluice: descriptor 0 is no listening socket: start it from a web server, "
		      "or with --listen\n\n",
		    stderr);
		usage(2);
	}
	if (listen_open(o->listen, &fd, &why) != ERR_OK)
		fail(why.text);
	if (sandbox_later_user(conf->server.user.p, conf->path.p, &uid, &gid) &&
	    listen_own(o->listen, uid, gid, &why) != ERR_OK)
		fail(why.text);
	return fd;
}

static struct log *
open_log(const struct conf *conf)
{
	struct log *log = log_open(
	    conf->log.target.p, (enum log_level)conf->log.level, conf->log.format == CONF_LOG_JSON);
	struct why why;

	if (log == NULL) {
		err_why(
		    &why, "cannot open log.target '%s': %s", conf->log.target.p, strerror(errno));
		fail(why.text);
	}
	return log;
}

int
main(int argc, char **argv)
{
	struct options o = {NULL, NULL, NULL};
	struct worker_job job = {.generation = 1};
	char path[PATH_BYTES];
	struct why why;
	unsigned workers;
	bool pool;
	int status;

	sandbox_harden();
	if (once_is_asked())
		return once_run();
	parse(argc, argv, &o);
	if (conf_find(o.conf, path, sizeof path, &why) != ERR_OK)
		fail(why.text);
	load(path, &job.conf);
	job.loaded_at = clock_wall();
	pool = wants_pool(&o, &workers);
	job.conf_path = path;
	job.listen_fd = open_socket(&o, job.conf);
	job.log = open_log(job.conf);
	become_user(&o, job.conf, job.log);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || FCGX_Init() != 0)
		fail("libcurl or libfcgi does not start");
	if (trust_load(job.conf, &job.trust, &why) != ERR_OK)
		fail(why.text);
	status = pool ? master_run(&job, workers) : worker_run(&job);
	if (o.listen != NULL)
		listen_remove(o.listen);
	trust_free(&job.trust);
	conf_free(&job.conf);
	log_close(&job.log);
	return status;
}
