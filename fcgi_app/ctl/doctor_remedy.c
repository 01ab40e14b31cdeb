#include "ctl/doctor_remedy.h"

#define BIT(setup) (1u << (setup))
#define ANY (BIT(DOCTOR_SETUP__MAX) - 1)
#define FCGID BIT(DOCTOR_FCGID)
#define FCGID_HTACCESS BIT(DOCTOR_FCGID_HTACCESS)
#define PROXY BIT(DOCTOR_PROXY_FCGI)
#define CGI BIT(DOCTOR_APACHE_CGI)
#define CGI_HTACCESS BIT(DOCTOR_CGI_HTACCESS)
#define HTACCESS (FCGID_HTACCESS | CGI_HTACCESS)
#define APACHE (BIT(DOCTOR_APACHE) | FCGID | PROXY | CGI | HTACCESS)
#define LIGHTTPD_CGI BIT(DOCTOR_LIGHTTPD_CGI)
#define LIGHTTPD                                                                             \
	(BIT(DOCTOR_LIGHTTPD) | BIT(DOCTOR_LIGHTTPD_SPAWN) | BIT(DOCTOR_LIGHTTPD_EXTERNAL) | \
	    LIGHTTPD_CGI)
#define NGINX BIT(DOCTOR_NGINX)

/* Instead of a file's name: that of the set-up. */
static const char main_file[] = "", auth_file[] = "a";

static const char conf_file[] = "sluice.json";
static const char plain_cgi[] =
    ".htaccess (shipped: apache/htaccess/cgi/.htaccess), and the program as sluice.cgi beside it";
static const char nginx_site[] =
    "/etc/nginx/sluice/nginx-site.conf (shipped: examples/nginx-site.conf)";
static const char shell[] = "the command line";
static const char server_only[] =
    "the server configuration, which only the machine's administrator can change";

/* The first row that fits counts; the last of each trouble fits all. */
static const struct row {
	enum doctor_trouble trouble;
	unsigned setups;
	const char *directive, *file;
} rows[] = {
    {DOCTOR_CONFIG, ANY, "sluicectl check, as root or as the gateway's user, names each fault",
        conf_file},

    {DOCTOR_STATE_DIR, ANY,
        "chown -R USER DIR && chmod 700 DIR, or where it is missing install -d -m 0700 -o USER DIR; USER owns sluice.json, DIR is on a local disk",
        shell},

    {DOCTOR_STORE, ANY, "what sluicectl(8) says of this message under DIAGNOSTICS", shell},

    {DOCTOR_NO_TOKENS, ANY,
        "make tokenizer && make install, in the source; or put sluice.tokens of another machine beside the program; then sluicectl restart",
        shell},

    {DOCTOR_UNREACHABLE, ANY, "the right --url, and a web server that runs", shell},

    {DOCTOR_HANGS, ANY,
        "sluicectl status shows what runs; sluicectl restart, or of a stopped process (state T in ps) kill -CONT PID",
        shell},

    {DOCTOR_SCHEME, ANY, "http:// for a port without TLS, https:// for one with it", shell},

    {DOCTOR_BAD_TLS, ANY,
        "a certificate for this name from a known authority; for one of your own: --ca-file FILE",
        "the web server's TLS settings"},

    {DOCTOR_FAILS, APACHE,
        "Apache's ErrorLog has the reason: a line in .htaccess that is wrong or not allowed there, or under CGI and mod_fcgid a program that he may not run (0755) or that does not start",
        main_file},
    {DOCTOR_FAILS, ANY, "the web server's error log has the reason", main_file},

    {DOCTOR_NO_POOL, APACHE,
        "systemctl start sluice, or sluicectl start; under CGI and mod_fcgid a program that Apache's user may run (0755): its ErrorLog has the reason",
        shell},
    {DOCTOR_NO_POOL, LIGHTTPD,
        "systemctl start sluice, or sluicectl start; with spawn.conf (\"bin-path\") or cgi.conf a program that lighttpd's user may run (0755): lighttpd's error log has the reason",
        shell},
    {DOCTOR_NO_POOL, ANY, "systemctl start sluice, or sluicectl start", shell},

    {DOCTOR_SOCKET, APACHE,
        "Define SLUICE_SOCKET, with the path of this socket; Apache's user may open it and walk its folders",
        "before the Include in the <VirtualHost>"},
    {DOCTOR_SOCKET, LIGHTTPD,
        "var.sluice_socket, with the path of this socket; lighttpd's user may open it and walk its folders; for 3 s after the gateway came up ask again",
        "/etc/lighttpd/sluice/settings.conf (shipped: lighttpd/settings.conf)"},
    {DOCTOR_SOCKET, NGINX,
        "map \"\" $sluice_socket, with the path of this socket; nginx's user may open it and walk its folders",
        nginx_site},
    {DOCTOR_SOCKET, ANY, "this socket, which the web server's user may open", main_file},

    {DOCTOR_DOWN, APACHE,
        "a gateway that runs, at a socket of ProxyPass that Apache's user may open; with CGI and mod_fcgid a program that he may run (0755); Apache's ErrorLog has the reason",
        main_file},
    {DOCTOR_DOWN, LIGHTTPD,
        "a gateway that runs, at a \"socket\" that lighttpd's user may open; with \"bin-path\" or CGI a program that he may run (0755); lighttpd's error log has the reason",
        main_file},
    {DOCTOR_DOWN, NGINX,
        "a gateway that runs, at a $sluice_socket that nginx's user may open; nginx's error_log has the reason",
        nginx_site},
    {DOCTOR_DOWN, ANY, "a gateway that runs; the web server's error log has the reason", main_file},

    {DOCTOR_NOT_THERE, APACHE,
        "Include sluice/proxy_fcgi.conf, sluice/fcgid.conf or sluice/cgi.conf, inside of the <VirtualHost> of this name; --url is the mount, such as https://HOST/llm, in a web space the folder",
        main_file},
    {DOCTOR_NOT_THERE, LIGHTTPD,
        "include \"sluice/settings.conf\" and \"sluice/spawn.conf\" (or external, cgi); --url is the mount, such as https://HOST/llm",
        main_file},
    {DOCTOR_NOT_THERE, NGINX,
        "include sluice/nginx.conf; inside of the server { } of this name; --url is the mount, such as https://HOST/llm",
        "nginx's configuration of the site"},
    {DOCTOR_NOT_THERE, ANY, "the mount of the gateway as --url, such as https://HOST/llm", shell},

    {DOCTOR_NOT_OURS, ANY,
        "sluicectl -c FILE doctor, alone and on the gateway's machine, with the gateway's configuration; or credentials of one of auth.admins",
        shell},

    {DOCTOR_EXPOSED, ANY, "move it out of the document root; then SLUICE_CONFIG or -c names it",
        conf_file},

    {DOCTOR_AUTH_MODE, ANY, "\"auth\": { \"mode\": \"web-server\" }", conf_file},

    {DOCTOR_OPEN, APACHE, "Require valid-user, with AuthType Basic, instead of Require all granted",
        auth_file},
    {DOCTOR_OPEN, LIGHTTPD,
        "auth.require = ( \"\" => ( \"method\" => \"basic\", \"realm\" => \"llm\", \"require\" => \"valid-user\" ) )",
        auth_file},
    {DOCTOR_OPEN, NGINX, "auth_basic $sluice_realm; auth_basic_user_file $sluice_users;",
        auth_file},
    {DOCTOR_OPEN, ANY, "a rule that lets only known clients in", auth_file},

    {DOCTOR_REFUSED, APACHE,
        "for a token a line \"TOKEN NAME\" (in .htaccess SetEnvIf Authorization \"^Bearer TOKEN$\" REMOTE_USER=NAME), for a user htpasswd -B FILE NAME",
        "/etc/sluice/tokens.txt or /etc/sluice/htpasswd; in a web space .htaccess or its AuthUserFile"},
    {DOCTOR_REFUSED, LIGHTTPD,
        "for a token a block as in lighttpd/tokens.conf.example, for a user htpasswd -B /etc/sluice/htpasswd NAME",
        "/etc/sluice/tokens.conf or /etc/sluice/htpasswd"},
    {DOCTOR_REFUSED, NGINX,
        "for a token a line \"TOKEN NAME;\" below map $sluice_given $sluice_client, for a user htpasswd -B /etc/sluice/htpasswd NAME",
        "/etc/nginx/sluice/nginx-site.conf (shipped: examples/nginx-site.conf) or /etc/sluice/htpasswd"},
    {DOCTOR_REFUSED, ANY, "credentials that the web server knows", auth_file},

    {DOCTOR_CHECK_FAILS, APACHE,
        "an AuthUserFile that is there and that Apache's user may read (chgrp www-data, chmod 640); ErrorLog has the reason",
        auth_file},
    {DOCTOR_CHECK_FAILS, LIGHTTPD,
        "an auth.backend.htpasswd.userfile that is there and that lighttpd's user may read; lighttpd's error log has the reason",
        auth_file},
    {DOCTOR_CHECK_FAILS, NGINX,
        "an auth_basic_user_file that is there and that nginx's user may read (chgrp www-data, chmod 640); nginx's error_log has the reason",
        nginx_site},
    {DOCTOR_CHECK_FAILS, ANY, "a file of passwords that the web server can read", auth_file},

    {DOCTOR_SHIPPED, LIGHTTPD, "openssl rand -hex 16 in place of sl-alice-CHANGE-ME, both times",
        "/etc/sluice/tokens.conf"},
    {DOCTOR_SHIPPED, NGINX, "openssl rand -hex 16 in place of sl-alice-CHANGE-ME", nginx_site},
    {DOCTOR_SHIPPED, APACHE, "openssl rand -hex 16 in place of sl-alice-CHANGE-ME",
        "/etc/sluice/tokens.txt; in a web space .htaccess"},
    {DOCTOR_SHIPPED, ANY, "openssl rand -hex 16 in place of sl-alice-CHANGE-ME", auth_file},

    {DOCTOR_NO_USER, APACHE,
        "Require valid-user with AuthType Basic, or for tokens Require env REMOTE_USER and what sets it: RewriteRule ... [E=REMOTE_USER:NAME], in .htaccess SetEnvIf",
        auth_file},
    {DOCTOR_NO_USER, LIGHTTPD,
        "auth.require, or for tokens setenv.set-environment = ( \"REMOTE_USER\" => \"NAME\" )",
        auth_file},
    {DOCTOR_NO_USER, NGINX,
        "fastcgi_param REMOTE_USER $sluice_user; and no include of fastcgi_params, whose REMOTE_USER would come first",
        auth_file},
    {DOCTOR_NO_USER, ANY, "a rule that sets REMOTE_USER, or another of auth.user_variables",
        auth_file},

    {DOCTOR_FORGED, ANY,
        "no rule that makes a variable of auth.user_variables from a request's header; \"user_variables\": [\"REMOTE_USER\"] in sluice.json",
        auth_file},

    {DOCTOR_NO_BEARER, APACHE, "CGIPassAuth On", auth_file},
    {DOCTOR_NO_BEARER, LIGHTTPD,
        "no setenv.set-request-header or setenv.unset-request-header for Authorization", auth_file},
    {DOCTOR_NO_BEARER, NGINX, "fastcgi_param HTTP_AUTHORIZATION $http_authorization;", main_file},
    {DOCTOR_NO_BEARER, ANY, "let the Authorization header pass", main_file},

    {DOCTOR_NO_API_KEY, APACHE, "no RequestHeader unset for X-Api-Key", auth_file},
    {DOCTOR_NO_API_KEY, LIGHTTPD, "no setenv.unset-request-header for X-Api-Key", auth_file},
    {DOCTOR_NO_API_KEY, NGINX, "fastcgi_pass_request_headers on;", main_file},
    {DOCTOR_NO_API_KEY, ANY, "let the X-Api-Key header pass", main_file},

    {DOCTOR_PATHS, PROXY,
        "ProxyFCGISetEnvIf \"reqenv('SCRIPT_NAME') =~ m#^(/llm)(/.*)$#\" PATH_INFO \"$2\"",
        main_file},
    {DOCTOR_PATHS, FCGID_HTACCESS,
        "RewriteRule \"^(?!sluice\\.fcgi(?:/|$))(.*)$\" \"sluice.fcgi/$1\" [END]", main_file},
    {DOCTOR_PATHS, CGI_HTACCESS,
        "RewriteRule \"^(?!sluice\\.cgi(?:/|$))(.*)$\" \"sluice.cgi/$1\" [END]", main_file},
    {DOCTOR_PATHS, NGINX,
        "fastcgi_split_path_info ^(/llm)(/.*)$; fastcgi_param PATH_INFO $fastcgi_path_info;",
        main_file},
    {DOCTOR_PATHS, ANY,
        "pass all paths below the mount; \"server\": { \"mount\": \"/llm\" } in sluice.json if it cannot be found out",
        main_file},

    {DOCTOR_SLASH, HTACCESS, "AllowEncodedSlashes NoDecode, which is not allowed in .htaccess",
        server_only},
    {DOCTOR_SLASH, APACHE, "AllowEncodedSlashes NoDecode", "the <VirtualHost>"},
    {DOCTOR_SLASH, ANY, "let paths pass as they are", main_file},

    {DOCTOR_ADMIN_OPEN, HTACCESS,
        "Require expr \"%{REQUEST_URI} !~ m#/(status|metrics|ui|admin|debug)(/|$)#\" in a <RequireAll> with what lets clients in",
        auth_file},
    {DOCTOR_ADMIN_OPEN, APACHE,
        "<LocationMatch \"^/llm/(status|metrics|ui|admin|debug)(/|$)\"> Require user admin",
        auth_file},
    {DOCTOR_ADMIN_OPEN, LIGHTTPD,
        "auth.require with \"require\" => \"user=admin\" for ^/llm/(status|metrics|ui|admin|debug)(/|$)",
        auth_file},
    {DOCTOR_ADMIN_OPEN, NGINX,
        "location ~ \"^/llm/(status|metrics|ui|admin|debug)(/|$)\" with its if ($remote_user ...)",
        auth_file},
    {DOCTOR_ADMIN_OPEN, ANY, "\"auth\": { \"admins\": [] } or only your own name in it", conf_file},

    {DOCTOR_COLLECTED, FCGID, "FcgidOutputBufferSize 0", main_file},
    {DOCTOR_COLLECTED, FCGID_HTACCESS,
        "plain CGI instead, which streams; no .htaccess can make mod_fcgid stream", plain_cgi},
    {DOCTOR_COLLECTED, PROXY, "flushpackets=on, at the end of the ProxyPass line", main_file},
    {DOCTOR_COLLECTED, CGI | CGI_HTACCESS,
        "SetEnv no-gzip 1, and no filter (SetOutputFilter, AddOutputFilterByType) for this path",
        main_file},
    {DOCTOR_COLLECTED, APACHE,
        "flushpackets=on (mod_proxy_fcgi) or FcgidOutputBufferSize 0 (mod_fcgid)", main_file},
    {DOCTOR_COLLECTED, LIGHTTPD, "server.stream-response-body = 2", main_file},
    {DOCTOR_COLLECTED, NGINX, "fastcgi_buffering off;", main_file},
    {DOCTOR_COLLECTED, ANY, "switch off that answers are buffered", main_file},

    {DOCTOR_COMPRESSED, APACHE, "SetEnv no-gzip 1", auth_file},
    {DOCTOR_COMPRESSED, LIGHTTPD, "no \"text/event-stream\" in deflate.mimetypes", main_file},
    {DOCTOR_COMPRESSED, NGINX, "gzip off;", main_file},
    {DOCTOR_COMPRESSED, ANY, "do not compress text/event-stream", main_file},

    {DOCTOR_BODY, FCGID, "FcgidMaxRequestLen 35651584", main_file},
    {DOCTOR_BODY, FCGID_HTACCESS,
        "plain CGI instead, which takes any length; no .htaccess can lift mod_fcgid's 128 kB",
        plain_cgi},
    {DOCTOR_BODY, APACHE, "LimitRequestBody 0, and under mod_fcgid FcgidMaxRequestLen 35651584",
        main_file},
    {DOCTOR_BODY, LIGHTTPD, "server.max-request-size = 34816", main_file},
    {DOCTOR_BODY, NGINX, "client_max_body_size 34m;", main_file},
    {DOCTOR_BODY, ANY, "a limit for bodies above server.max_body", main_file},

    {DOCTOR_CHUNKED, FCGID, "FcgidMaxRequestLen 35651584", main_file},
    {DOCTOR_CHUNKED, FCGID_HTACCESS,
        "plain CGI instead, which takes any length; no .htaccess can lift mod_fcgid's 128 kB",
        plain_cgi},
    {DOCTOR_CHUNKED, APACHE, "LimitRequestBody 0", main_file},
    {DOCTOR_CHUNKED, LIGHTTPD,
        "no server.stream-request-body = 2 (it refuses bodies without a length), server.max-request-size = 34816",
        main_file},
    {DOCTOR_CHUNKED, NGINX, "client_max_body_size 34m;", main_file},
    {DOCTOR_CHUNKED, ANY, "take bodies without Content-Length", main_file},

    {DOCTOR_SILENT_FIRST, FCGID, "FcgidIOTimeout 3600", main_file},
    {DOCTOR_SILENT_FIRST, FCGID_HTACCESS,
        "plain CGI instead, which waits as long as the host's TimeOut; no .htaccess can lift mod_fcgid's 40 s",
        plain_cgi},
    {DOCTOR_SILENT_FIRST, PROXY, "timeout=3600, at the end of the ProxyPass line", main_file},
    {DOCTOR_SILENT_FIRST, CGI, "CGIDScriptTimeout 3600 (mod_cgid) or TimeOut 3600 (mod_cgi)",
        main_file},
    {DOCTOR_SILENT_FIRST, CGI_HTACCESS,
        "CGIDScriptTimeout 3600 (mod_cgid) or TimeOut 3600 (mod_cgi), which are not allowed in .htaccess",
        server_only},
    {DOCTOR_SILENT_FIRST, APACHE,
        "timeout=3600 (mod_proxy_fcgi) or FcgidIOTimeout 3600 (mod_fcgid)", main_file},
    {DOCTOR_SILENT_FIRST, LIGHTTPD_CGI, "no cgi.limits with \"read-timeout\"", main_file},
    {DOCTOR_SILENT_FIRST, LIGHTTPD, "no \"read-timeout\" in fastcgi.server", main_file},
    {DOCTOR_SILENT_FIRST, NGINX, "fastcgi_read_timeout 1h;", main_file},
    {DOCTOR_SILENT_FIRST, ANY, "a longer time-out for answers", main_file},

    {DOCTOR_SILENT_BETWEEN, FCGID, "FcgidIOTimeout 3600", main_file},
    {DOCTOR_SILENT_BETWEEN, FCGID_HTACCESS,
        "plain CGI instead, which waits as long as the host's TimeOut; no .htaccess can lift mod_fcgid's 40 s",
        plain_cgi},
    {DOCTOR_SILENT_BETWEEN, PROXY, "timeout=3600, at the end of the ProxyPass line", main_file},
    {DOCTOR_SILENT_BETWEEN, CGI, "CGIDScriptTimeout 3600 (mod_cgid) or TimeOut 3600 (mod_cgi)",
        main_file},
    {DOCTOR_SILENT_BETWEEN, CGI_HTACCESS,
        "CGIDScriptTimeout 3600 (mod_cgid) or TimeOut 3600 (mod_cgi), which are not allowed in .htaccess; \"upstream\": { \"heartbeat\": \"5s\" } in sluice.json helps streams",
        server_only},
    {DOCTOR_SILENT_BETWEEN, APACHE,
        "timeout=3600 (mod_proxy_fcgi) or FcgidIOTimeout 3600 (mod_fcgid)", main_file},
    {DOCTOR_SILENT_BETWEEN, LIGHTTPD, "server.max-write-idle = 3600, and no \"read-timeout\"",
        main_file},
    {DOCTOR_SILENT_BETWEEN, NGINX, "fastcgi_read_timeout 1h;", main_file},
    {DOCTOR_SILENT_BETWEEN, ANY, "a longer time-out for silent connections", main_file},
};

struct doctor_remedy
doctor_remedy(enum doctor_setup setup, enum doctor_trouble trouble)
{
	for (size_t i = 0; i < NELEM(rows); i++) {
		const char *file = rows[i].file;

		if (rows[i].trouble != trouble || (rows[i].setups & BIT(setup)) == 0)
			continue;
		if (file == main_file)
			file = doctor_judge_setups[setup].file;
		else if (file == auth_file)
			file = doctor_judge_setups[setup].auth;
		return (struct doctor_remedy){rows[i].directive, file};
	}
	die("no remedy for trouble %d", (int)trouble);
}
