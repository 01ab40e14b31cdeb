#include "ctl/doctor_remedy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Whatever is found in whatever set-up: something to do, and a place to do it. */
static void
test_every_pair(void **state)
{
	(void)state;
	for (int s = 0; s < DOCTOR_SETUP__MAX; s++)
		for (int t = DOCTOR_NO_TROUBLE + 1; t < DOCTOR_TROUBLE__MAX; t++) {
			struct doctor_remedy got =
			    doctor_remedy((enum doctor_setup)s, (enum doctor_trouble)t);

			if (strlen(got.directive) < 8 || strlen(got.file) < 8)
				fail_msg("set-up %d, trouble %d: '%s' into '%s'", s, t,
				    got.directive, got.file);
		}
}

static void
test_rows(void **state)
{
	static const struct {
		enum doctor_setup setup;
		enum doctor_trouble trouble;
		const char *directive, *file;
	} rows[] = {
	    {DOCTOR_FCGID, DOCTOR_COLLECTED, "FcgidOutputBufferSize 0", "apache/fcgid.conf"},
	    {DOCTOR_FCGID_HTACCESS, DOCTOR_COLLECTED, "plain CGI instead, which streams",
	        "apache/htaccess/cgi/.htaccess"},
	    {DOCTOR_PROXY_FCGI, DOCTOR_COLLECTED, "flushpackets=on", "apache/proxy_fcgi.conf"},
	    {DOCTOR_LIGHTTPD_SPAWN, DOCTOR_COLLECTED, "server.stream-response-body = 2",
	        "lighttpd/spawn.conf"},
	    {DOCTOR_LIGHTTPD_CGI, DOCTOR_COLLECTED, "server.stream-response-body = 2",
	        "lighttpd/cgi.conf"},
	    {DOCTOR_NGINX, DOCTOR_COLLECTED, "fastcgi_buffering off", "examples/nginx.conf"},
	    {DOCTOR_FCGID, DOCTOR_BODY, "FcgidMaxRequestLen", "/etc/apache2/sluice/fcgid.conf"},
	    {DOCTOR_FCGID_HTACCESS, DOCTOR_BODY, "plain CGI instead, which takes any length",
	        "apache/htaccess/cgi/.htaccess"},
	    {DOCTOR_NGINX, DOCTOR_BODY, "client_max_body_size", "nginx"},
	    {DOCTOR_LIGHTTPD_EXTERNAL, DOCTOR_BODY, "server.max-request-size",
	        "lighttpd/external.conf"},
	    {DOCTOR_LIGHTTPD_EXTERNAL, DOCTOR_CHUNKED, "server.stream-request-body",
	        "lighttpd/external.conf"},
	    {DOCTOR_FCGID, DOCTOR_SILENT_FIRST, "FcgidIOTimeout", "apache/fcgid.conf"},
	    {DOCTOR_PROXY_FCGI, DOCTOR_SILENT_BETWEEN, "timeout=3600", "apache/proxy_fcgi.conf"},
	    {DOCTOR_CGI_HTACCESS, DOCTOR_SILENT_FIRST, "CGIDScriptTimeout", "administrator"},
	    {DOCTOR_LIGHTTPD_SPAWN, DOCTOR_SILENT_BETWEEN, "server.max-write-idle",
	        "lighttpd/spawn.conf"},
	    {DOCTOR_NGINX, DOCTOR_SILENT_FIRST, "fastcgi_read_timeout", "nginx"},
	    {DOCTOR_FCGID, DOCTOR_NO_BEARER, "CGIPassAuth On", "apache/auth.conf"},
	    {DOCTOR_CGI_HTACCESS, DOCTOR_NO_BEARER, "CGIPassAuth On", ".htaccess"},
	    {DOCTOR_LIGHTTPD, DOCTOR_REFUSED, "tokens.conf", "/etc/sluice/tokens.conf"},
	    {DOCTOR_APACHE, DOCTOR_REFUSED, "SetEnvIf Authorization", ".htaccess"},
	    {DOCTOR_NGINX, DOCTOR_REFUSED, "map $sluice_given $sluice_client",
	        "examples/nginx-site.conf"},
	    {DOCTOR_CGI_HTACCESS, DOCTOR_PATHS, "sluice.cgi/$1", "apache/htaccess/cgi/.htaccess"},
	    {DOCTOR_APACHE_CGI, DOCTOR_SILENT_FIRST, "CGIDScriptTimeout", "apache/cgi.conf"},
	    {DOCTOR_UNKNOWN, DOCTOR_NOT_THERE, "--url", "command line"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct doctor_remedy got = doctor_remedy(rows[i].setup, rows[i].trouble);

		if (strstr(got.directive, rows[i].directive) == NULL ||
		    strstr(got.file, rows[i].file) == NULL)
			fail_msg("row %zu: '%s' into '%s'", i, got.directive, got.file);
	}
}

/* The words of a text that are files of ours must be in the tree; how many there are. */
static unsigned
check_files(const char *text)
{
	static const struct {
		const char *prefix, *folder;
	} ours[] = {{"apache/", "apache/"}, {"lighttpd/", "lighttpd/"}, {"examples/", "examples/"},
	    {"/etc/apache2/sluice/", "apache/"}, {"/etc/lighttpd/sluice/", "lighttpd/"},
	    {"/etc/nginx/sluice/", "examples/"}};
	struct span rest = text_span(text), word;
	unsigned n = 0;

	while (text_token(&rest, " (),;\"", &word))
		for (size_t i = 0; i < NELEM(ours); i++) {
			char path[256];

			if (!text_starts(word, ours[i].prefix))
				continue;
			word = text_from(word, strlen(ours[i].prefix));
			snprintf(path, sizeof path, "%s%.*s", ours[i].folder, (int)word.n, word.p);
			if (access(path, R_OK) != 0)
				fail_msg("'%s' names %s, which is not there", text, path);
			n++;
			break;
		}
	return n;
}

/* From the root of the tree. */
static void
test_files_are_shipped(void **state)
{
	(void)state;
	for (int s = 0; s < DOCTOR_SETUP__MAX; s++) {
		const struct doctor_setup_row *row = &doctor_judge_setups[s];
		bool known = strchr(row->id, '-') != NULL || s == DOCTOR_NGINX;

		if ((check_files(row->file) < 1 || check_files(row->auth) < 1) && known)
			fail_msg(
			    "%s: no file of ours in '%s', '%s'", row->id, row->file, row->auth);
		for (int t = DOCTOR_NO_TROUBLE + 1; t < DOCTOR_TROUBLE__MAX; t++) {
			struct doctor_remedy got =
			    doctor_remedy((enum doctor_setup)s, (enum doctor_trouble)t);

			check_files(got.directive);
			check_files(got.file);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_pair),
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_files_are_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
