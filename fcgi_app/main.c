/*
 * main - sluice.fcgi: options, configuration, one visible chain of preparations, then the pool or a single worker.
 *
 * Errors    wrong usage: message and exit status 2; anything else that keeps it from starting: message and 1
 * Source    SPEC.md section 2
 */
#include "base/clock.h"
#include "base/environment.h"
#include "base/sandbox.h"
#include "handover.h"
#include "listen.h"
#include "master.h"
#include "once.h"
#include "start.h"

#include <curl/curl.h>
#include <fcgiapp.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *conf, *listen, *workers;
	unsigned mode; /* of a unix socket */
	bool test;
};

static const char usage_text[] =
    "usage: sluice.fcgi [-c FILE] [--listen unix:/PATH | 127.0.0.1:PORT] [--workers N | auto]\n"
    "                   [--socket-mode MODE] [--test]\n"
    "\n"
    "  -c FILE        configuration (else SLUICE_CONFIG, sluice.json beside the program,\n"
    "                 ~/.config/sluice/sluice.json, /etc/sluice/sluice.json)\n"
    "  --listen ADDR  bind this socket and run a pool of workers on it\n"
    "  --workers N    run a pool of N workers, or one that grows and shrinks (also SLUICE_WORKERS);\n"
    "                 without it and without --listen one process serves the socket on descriptor 0\n"
    "  --socket-mode MODE  of the socket's file, octal; else 0660\n"
    "  --test         read the configuration, say what is wrong, and end\n"
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
	start_failed(text);
	exit(1);
}

static unsigned
take_mode(const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (*text < '0' || *text > '7' || *end != '\0' || mode > 0777) {
		fprintf(stderr,
		    "sluice: --socket-mode takes an octal mode such as 0660, not '%s'\n", text);
		exit(2);
	}
	return (unsigned)mode;
}

static void
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
	    {"workers", required_argument, NULL, 'w'},
	    {"socket-mode", required_argument, NULL, 'm'}, {"test", no_argument, NULL, 't'},
	    {"version", no_argument, NULL, 'V'}, {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c': o->conf = optarg; break;
		case 'l': o->listen = optarg; break;
		case 'w': o->workers = optarg; break;
		case 'm': o->mode = take_mode(optarg); break;
		case 't': o->test = true; break;
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
wants_pool(const struct options *o, bool own_socket, unsigned *fixed_out)
{
	int64_t n = 0;

	*fixed_out = 0;
	if (o->workers == NULL || o->workers[0] == '\0')
		return own_socket;
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

/* Bound here for the user that we become. */
static int
bind_socket(const struct options *o, const struct conf *conf)
{
	struct why why;
	int fd;
	unsigned uid, gid;

	if (listen_open(o->listen, o->mode, &fd, &why) != ERR_OK)
		fail(why.text);
	if (sandbox_later_user(conf->server.user.p, conf->path.p, &uid, &gid) &&
	    listen_own(o->listen, uid, gid, &why) != ERR_OK)
		fail(why.text);
	return fd;
}

/* What systemd passed on is for us, not for what we start. -1: nothing. */
static int
take_passed(void)
{
	int fd = listen_passed();

	environment_forget("LISTEN_PID");
	environment_forget("LISTEN_FDS");
	environment_forget("LISTEN_FDNAMES");
	return fd;
}

/* For people. */
static const char *
socket_name(const struct options *o, int fd)
{
	return o->listen != NULL ? o->listen : fd == STDIN_FILENO ? "descriptor 0" : "systemd";
}

static int
open_socket(const struct options *o, const struct conf *conf, int passed)
{
	if (o->listen != NULL)
		return bind_socket(o, conf);
	if (passed >= 0)
		return passed;
	if (listen_is(STDIN_FILENO))
		return STDIN_FILENO;
	fputs("sluice: descriptor 0 is no listening socket: start it from a web server, "
	      "or with --listen\n\n",
	    stderr);
	usage(2);
}

/* By what a later restart finds the program, which may have been replaced by then: never a link in /proc. */
static void
find_program(const char *word, char out[PATH_MAX])
{
	char here[PATH_MAX / 2];
	ssize_t n;

	if (word[0] == '/') {
		snprintf(out, PATH_MAX, "%s", word);
	} else if (strchr(word, '/') != NULL && getcwd(here, sizeof here) != NULL) {
		snprintf(out, PATH_MAX, "%s/%s", here, word);
	} else {
		n = readlink("/proc/self/exe", out, PATH_MAX - 1);
		out[n > 0 ? n : 0] = '\0';
	}
}

static void
find_and_load(const struct options *o, char path[PATH_MAX], struct worker_job *job)
{
	if (!start_conf(o->conf, path, &job->conf))
		exit(1);
	job->loaded_at = clock_wall();
	job->conf_path = path;
}

/* Everything that needs no socket, before the fork; what is here is shared by all workers. */
static void
prepare(struct worker_job *job)
{
	struct why why;

	if (!start_user(job->conf, &job->log))
		exit(1);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || FCGX_Init() != 0)
		fail("libcurl or libfcgi does not start");
	if (trust_load(job->conf, &job->trust, &why) != ERR_OK)
		fail(why.text);
}

static int
serve(const struct options *o, struct worker_job *job, char **argv)
{
	struct handover *from = calloc(1, sizeof *from);
	char program[PATH_MAX];
	struct master_start start = {.program = program, .argv = argv};
	bool goes_on, pool;
	int passed, status;

	if (from == NULL)
		die("no memory");
	goes_on = handover_take(from);
	passed = goes_on ? -1 : take_passed();
	find_program(argv[0], program);
	pool = wants_pool(o, o->listen != NULL || passed >= 0, &start.workers);
	start.from = goes_on ? from : NULL;
	job->listen_fd = goes_on ? from->listen_fd : open_socket(o, job->conf, passed);
	start.listen = socket_name(o, job->listen_fd);
	prepare(job);
	status = pool || goes_on ? master_run(job, &start) : worker_run(job);
	free(from);
	return status;
}

int
main(int argc, char **argv)
{
	struct options o = {.mode = LISTEN_MODE};
	struct worker_job job = {.generation = 1};
	char path[PATH_MAX];
	int status;

	sandbox_harden();
	if (once_is_asked())
		return once_run();
	environment_forget("REQUEST_METHOD"); /* what we start is no CGI either */
	parse(argc, argv, &o);
	find_and_load(&o, path, &job);
	if (o.test)
		prepare(&job);
	status = o.test ? 0 : serve(&o, &job, argv);
	if (o.listen != NULL && !o.test)
		listen_remove(o.listen);
	trust_free(&job.trust);
	conf_free(&job.conf);
	log_close(&job.log);
	return status;
}
