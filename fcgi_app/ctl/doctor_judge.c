#include "ctl/doctor_judge.h"

#include "base/json.h"
#include "base/scan.h"

/* Where the READMEs put it, and which file of ours that is. */
#define APACHE_AUTH "/etc/apache2/sluice/auth.conf (shipped: apache/auth.conf)"
#define FCGID_HTACCESS ".htaccess beside the program (shipped: apache/htaccess/fcgid/.htaccess)"
#define CGI_HTACCESS ".htaccess beside the program (shipped: apache/htaccess/cgi/.htaccess)"
#define LIGHTTPD_AUTH "/etc/lighttpd/sluice/auth.conf (shipped: lighttpd/auth.conf)"
#define NGINX "/etc/nginx/sluice/nginx.conf (shipped: examples/nginx.conf)"

const struct doctor_setup_row doctor_judge_setups[DOCTOR_SETUP__MAX] = {
    [DOCTOR_UNKNOWN] = {"unknown", "an unknown web server", "the web server's configuration",
        "the web server's configuration"},
    [DOCTOR_APACHE] = {"apache", "Apache, by which module is not known",
        "the <VirtualHost>, or in a web space its .htaccess", APACHE_AUTH},
    [DOCTOR_FCGID] = {"apache-fcgid", "Apache, mod_fcgid in the server configuration",
        "/etc/apache2/sluice/fcgid.conf (shipped: apache/fcgid.conf)", APACHE_AUTH},
    [DOCTOR_FCGID_HTACCESS] = {"htaccess-fcgid", "Apache, mod_fcgid by .htaccess", FCGID_HTACCESS,
        FCGID_HTACCESS},
    [DOCTOR_PROXY_FCGI] = {"apache-proxy", "Apache, mod_proxy_fcgi",
        "/etc/apache2/sluice/proxy_fcgi.conf (shipped: apache/proxy_fcgi.conf)", APACHE_AUTH},
    [DOCTOR_APACHE_CGI] = {"apache-cgid", "Apache, plain CGI in the server configuration",
        "/etc/apache2/sluice/cgi.conf (shipped: apache/cgi.conf)", APACHE_AUTH},
    [DOCTOR_CGI_HTACCESS] = {"htaccess-cgi", "Apache, plain CGI by .htaccess", CGI_HTACCESS,
        CGI_HTACCESS},
    [DOCTOR_LIGHTTPD] = {"lighttpd", "lighttpd, how is not known",
        "lighttpd's configuration of the site", LIGHTTPD_AUTH},
    [DOCTOR_LIGHTTPD_SPAWN] = {"lighttpd-spawn", "lighttpd, which starts the gateway",
        "/etc/lighttpd/sluice/spawn.conf (shipped: lighttpd/spawn.conf)", LIGHTTPD_AUTH},
    [DOCTOR_LIGHTTPD_EXTERNAL] = {"lighttpd-external", "lighttpd, the gateway runs by itself",
        "/etc/lighttpd/sluice/external.conf (shipped: lighttpd/external.conf)", LIGHTTPD_AUTH},
    [DOCTOR_LIGHTTPD_CGI] = {"lighttpd-cgi", "lighttpd, plain CGI",
        "/etc/lighttpd/sluice/cgi.conf (shipped: lighttpd/cgi.conf)", LIGHTTPD_AUTH},
    [DOCTOR_NGINX] = {"nginx", "nginx, the gateway runs by itself", NGINX, NGINX},
};

static struct span
read_text(const struct json *doc, const char *path)
{
	struct span text;

	return json_text(doc, path, &text) ? text : (struct span){"", 0};
}

bool
doctor_judge_seen(struct arena *arena, struct span json, struct doctor_seen *seen_out)
{
	static const char *const flags[] = {"admin", "api_key"};
	struct scan_value flag[NELEM(flags)];
	const struct json *doc;
	struct why why;

	if (json_parse(arena, json, &doc, &why) != ERR_OK ||
	    scan_pick(json, flags, flag, NELEM(flags), &why) != ERR_OK ||
	    !text_is(read_text(doc, "service"), "sluice") || json_at(doc, "variables") == NULL)
		return false;
	*seen_out = (struct doctor_seen){
	    .version = read_text(doc, "version"),
	    .mode = read_text(doc, "mode"),
	    .route = read_text(doc, "route"),
	    .client = read_text(doc, "client"),
	    .auth_mode = read_text(doc, "auth_mode"),
	    .user_variable = read_text(doc, "user_variables.0"),
	    .authorization = read_text(doc, "authorization.0"),
	    .store_error = read_text(doc, "store_error"),
	    .software = read_text(doc, "variables.SERVER_SOFTWARE"),
	    .role = read_text(doc, "variables.FCGI_ROLE"),
	    .script_name = read_text(doc, "variables.SCRIPT_NAME"),
	    .path_info = read_text(doc, "variables.PATH_INFO"),
	    .script_filename = read_text(doc, "variables.SCRIPT_FILENAME"),
	    .document_root = read_text(doc, "variables.DOCUMENT_ROOT"),
	    .auth_type = read_text(doc, "variables.AUTH_TYPE"),
	    .admin = flag[0].type == SCAN_TRUE,
	    .api_key = flag[1].type == SCAN_TRUE,
	};
	if (!json_i64(doc, "pid", &seen_out->pid))
		seen_out->pid = 0;
	return true;
}

enum doctor_setup
doctor_judge_server(struct span server)
{
	if (text_has_fold(server, "apache"))
		return DOCTOR_APACHE;
	if (text_has_fold(server, "lighttpd"))
		return DOCTOR_LIGHTTPD;
	return text_has_fold(server, "nginx") ? DOCTOR_NGINX : DOCTOR_UNKNOWN;
}

static bool
is_below(struct span path, struct span folder)
{
	return folder.n > 1 && path.n > folder.n && path.p[folder.n] == '/' &&
	       text_equal((struct span){path.p, folder.n}, folder);
}

/* A program below the document root was put there for want of the server configuration. */
static enum doctor_setup
judge_apache(const struct doctor_seen *seen)
{
	bool inside = is_below(seen->script_filename, seen->document_root);

	if (text_is(seen->mode, "cgi"))
		return inside ? DOCTOR_CGI_HTACCESS : DOCTOR_APACHE_CGI;
	if (text_starts(seen->script_filename, "proxy:") || !text_is(seen->mode, "single"))
		return DOCTOR_PROXY_FCGI;
	return inside ? DOCTOR_FCGID_HTACCESS : DOCTOR_FCGID;
}

enum doctor_setup
doctor_judge_setup(const struct doctor_seen *seen)
{
	enum doctor_setup server = doctor_judge_server(seen->software);

	if (server == DOCTOR_APACHE)
		return judge_apache(seen);
	if (server != DOCTOR_LIGHTTPD)
		return server;
	if (text_is(seen->mode, "cgi"))
		return DOCTOR_LIGHTTPD_CGI;
	return text_is(seen->mode, "external") ? DOCTOR_LIGHTTPD_EXTERNAL : DOCTOR_LIGHTTPD_SPAWN;
}

enum doctor_flow
doctor_judge_flow(const struct doctor_arrivals *a, int64_t *late_out)
{
	int64_t least = INT64_MAX, most = 0;
	size_t late = 0;

	*late_out = 0;
	if (a->n < a->wanted || a->n == 0)
		return DOCTOR_CUT;
	for (size_t i = 0; i < a->n; i++)
		if (a->came[i] - a->sent[i] < least)
			least = a->came[i] - a->sent[i];
	for (size_t i = 0; i < a->n; i++) {
		int64_t lay = a->came[i] - a->sent[i] - least;

		late += lay > a->gap_ms / 2;
		most = lay > most ? lay : most;
	}
	*late_out = most;
	if (late * 3 <= a->n) /* a busy machine delays one or another */
		return DOCTOR_STREAMS;
	return a->came[a->n - 1] - a->came[0] <= a->gap_ms / 2 ? DOCTOR_AT_ONCE : DOCTOR_LUMPS;
}

size_t
doctor_judge_sent(struct span stream, int64_t *sent, size_t max)
{
	struct span line;
	size_t n = 0;

	while (n < max && text_token(&stream, "\n", &line)) {
		struct span rest = text_from(line, text_find(line, SPAN("\"ms\":")) + 5);
		struct span number = {rest.p, text_find(rest, SPAN("}"))};

		if (text_starts(line, "data:") && text_i64(number, 0, INT64_MAX, &sent[n]))
			n++;
	}
	return n;
}
