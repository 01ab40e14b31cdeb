"""sites - every set-up: the shipped files it uses, the site configuration around them, its limits.

What a site must add itself is here: ports, certificate, logs, modules, paths.
"""

import dataclasses
import os

# Of talk.ADMIN and talk.USER, made by htpasswd -nbB -C 4.
HTPASSWD = """\
admin:$2y$04$StyVBj4fWLB3uLUvk17/yOly5xT2EjibIxgTlVfv2nEcoVrE83Yhy
bob:$2y$04$0z/evwvCjJziCqv4e7VvL.pd.4eoJzvhDhljh.dei9Ubs4Q8.JL3m
"""

LIGHTTPD = """\
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_access", "mod_openssl", "mod_deflate" )
server.document-root = "{dir}/htdocs"
server.errorlog = "{dir}/log/web"
server.pid-file = "{dir}/run/web.pid"
server.upload-dirs = ( "{dir}/run" )
server.feature-flags += ( "server.h2proto" => "enable", "server.h2c" => "enable" )
deflate.mimetypes = ( "text/event-stream", "application/json" )
$SERVER["socket"] == "127.0.0.1:{tls}" {{
	ssl.engine = "enable"
	ssl.pemfile = "{dir}/etc/cert.pem"
	ssl.privkey = "{dir}/etc/key.pem"
}}
var.sluice_dir = "{dir}/etc/lighttpd"
var.sluice_bin = "{dir}/bin/sluice.fcgi"
var.sluice_config = "{dir}/etc/sluice.json"
var.sluice_workers = "{workers}"
var.sluice_socket = "{dir}/run/s"
var.sluice_users = "{dir}/etc/htpasswd"
var.sluice_tokens = "{dir}/etc/tokens.conf"
include "{dir}/etc/lighttpd/{file}"
{more}
"""

LIGHTTPD_TOKEN = """\
$REQUEST_HEADER["Authorization"] == "Bearer {token}" {{
	auth.require = ( )
	setenv.set-environment = ( "REMOTE_USER" => "{name}" )
}}
$REQUEST_HEADER["X-Api-Key"] == "{token}" {{
	auth.require = ( )
	setenv.set-environment = ( "REMOTE_USER" => "{name}" )
}}
"""

APACHE = """\
ServerRoot {dir}/etc
ServerName localhost
PidFile {dir}/run/web.pid
DefaultRuntimeDir {dir}/run
ErrorLog {dir}/log/web
Timeout 300
Listen 127.0.0.1:{port}
Listen 127.0.0.1:{tls}
{modules}
{own}
Protocols h2 h2c http/1.1
DocumentRoot {dir}/htdocs
TypesConfig /dev/null
AddOutputFilterByType DEFLATE text/event-stream application/json
<Directory />
Require all denied
</Directory>
<Directory {dir}/htdocs>
Require all granted
{override}
</Directory>
Define SLUICE_BIN {dir}/bin/sluice.fcgi
Define SLUICE_CONFIG {dir}/etc/sluice.json
Define SLUICE_SOCKET {dir}/run/s
Define SLUICE_USERS {dir}/etc/htpasswd
Define SLUICE_TOKENS {dir}/etc/tokens.txt
{more}
<VirtualHost *:{port}>
{include}
{inside}
</VirtualHost>
<VirtualHost *:{tls}>
SSLEngine on
SSLCertificateFile {dir}/etc/cert.pem
SSLCertificateKeyFile {dir}/etc/key.pem
{include}
</VirtualHost>
"""
APACHE_MODULES = (
    "authn_core authn_file authz_core authz_user auth_basic rewrite env setenvif"
    " alias mime filter deflate ssl"
)
# What a host of web spaces allows: nothing of ours in its own configuration, which is Debian's.
SHARED = "AllowOverride AuthConfig FileInfo Options Limit\nOptions SymLinksIfOwnerMatch"
HTACCESS_TOKEN = """\
SetEnvIf Authorization "^Bearer {token}$" REMOTE_USER={name}
SetEnvIf X-Api-Key "^{token}$" REMOTE_USER={name}
"""
WRAPPER = """\
#!/bin/sh
exec {dir}/bin/sluice.fcgi -c {dir}/etc/sluice.json
"""

NGINX = """\
daemon off;
pid {dir}/run/web.pid;
error_log {dir}/log/web;
worker_processes 2;
events {{ worker_connections 1024; }}
http {{
	access_log off;
	client_body_temp_path {dir}/run/body;
	fastcgi_temp_path {dir}/run/fastcgi;
	proxy_temp_path {dir}/run/proxy;
	scgi_temp_path {dir}/run/scgi;
	uwsgi_temp_path {dir}/run/uwsgi;
	gzip on;
	gzip_types text/event-stream application/json;
	include {dir}/etc/nginx-site.conf;
	server {{
		listen 127.0.0.1:{port};
		listen 127.0.0.1:{h2c} http2;
		listen 127.0.0.1:{tls} ssl http2;
		ssl_certificate {dir}/etc/cert.pem;
		ssl_certificate_key {dir}/etc/key.pem;
		include {dir}/etc/examples/{file};
	}}
}}
"""
NGINX_SITE = """\
map "" $sluice_socket {{ default unix:{dir}/run/s; }}
map "" $sluice_users {{ default {dir}/etc/htpasswd; }}
map $sluice_given $sluice_client {{
	default "";
{tokens}}}
"""


@dataclasses.dataclass(frozen=True)
class Site:
    server: str  # lighttpd, apache, nginx
    file: str  # below the server's folder; of a .htaccess its folder
    runs: str  # external: by itself; spawned, fcgid, cgi: by the web server
    modules: str = ""

    @property
    def htaccess(self):
        return self.file.startswith("htaccess/")


SITES = {
    "lighttpd-spawn": Site("lighttpd", "spawn.conf", "spawned"),
    "lighttpd-external": Site("lighttpd", "external.conf", "external"),
    "lighttpd-cgi": Site("lighttpd", "cgi.conf", "cgi"),
    "apache-proxy": Site("apache", "proxy_fcgi.conf", "external", "proxy proxy_fcgi"),
    "apache-fcgid": Site("apache", "fcgid.conf", "fcgid", "fcgid"),
    "apache-cgid": Site("apache", "cgi.conf", "cgi", "cgid"),
    "htaccess-fcgid": Site("apache", "htaccess/fcgid", "fcgid", "fcgid"),
    "htaccess-cgi": Site("apache", "htaccess/cgi", "cgi", "cgid"),
    "nginx": Site("nginx", "nginx.conf", "external"),
}
KINDS = tuple(SITES)
EXTERNAL = tuple(k for k, s in SITES.items() if s.runs == "external")
SPAWNED = tuple(k for k, s in SITES.items() if s.runs == "spawned")
FCGID = tuple(k for k, s in SITES.items() if s.runs == "fcgid")
CGI = tuple(k for k, s in SITES.items() if s.runs == "cgi")

# What a set-up cannot do, and why: tests of it are skipped with these words, and the table says them.
COLUMNS = (
    "streams", "auth", "big body", "client gone", "graceful", "recycle", "chunked", "HTTP/2"
)  # fmt: skip
APACHE_LATE = {"early gone": "Apache tells of a gone client only when something is written"}
CANNOT = {
    "apache-proxy": APACHE_LATE,
    "apache-fcgid": APACHE_LATE,
    "apache-cgid": APACHE_LATE,
    "htaccess-cgi": APACHE_LATE,
    "htaccess-fcgid": {
        **APACHE_LATE,
        "streams": "mod_fcgid collects 64 KiB",
        "big body": "mod_fcgid refuses above 128 KiB",
        "client gone": "nothing is written before the end",
        "silence": "FcgidIOTimeout is 40 s",
    },
    "+prefork": {"HTTP/2": "mod_http2 does not work with prefork"},
}
# What it can do but for this, which is the web server's own; the table says it.
CGID_LATE = {"graceful": "for an instant mod_cgid answers 503"}
FCGID_LATE = {"graceful": "mod_fcgid loses a request that waits for a process to start"}
BUT = {
    "apache-fcgid": FCGID_LATE,
    "apache-cgid": CGID_LATE,
    "htaccess-fcgid": FCGID_LATE,
    "htaccess-cgi": CGID_LATE,
}


def cannot(name, what):
    """Why the set-up cannot do it; None if it can."""
    kind, plus, mpm = name.partition("+")
    return CANNOT.get(plus + mpm, {}).get(what) or CANNOT.get(kind, {}).get(what)


def able(what):
    """The set-ups that can."""
    return tuple(k for k in KINDS if not cannot(k, what))


def files(directory, clients):
    """Passwords and tokens, {name: text}. `clients` are (token, name) pairs."""

    def lines(form):
        return "".join(form.format(token=token, name=name) for token, name in clients)

    return {
        "etc/htpasswd": HTPASSWD,
        "etc/tokens.txt": lines("{token} {name}\n"),
        "etc/tokens.conf": lines(LIGHTTPD_TOKEN),
        "etc/tokens.htaccess": lines(HTACCESS_TOKEN),
        "etc/nginx-site.conf": NGINX_SITE.format(
            dir=directory, tokens=lines("\t\t{token} {name};\n")
        ),
    }


def webspace(kind, directory, shipped):
    """The folder of a set-up without server configuration: {name: text}, as its README says."""
    site = SITES[kind]
    with open(os.path.join(directory, "etc/tokens.htaccess")) as f:
        tokens = f.read()
    text = shipped.replace("/HOME", os.path.join(directory, "home")) + tokens
    program = {"fcgid": "sluice.fcgi", "cgi": "sluice.cgi"}[site.runs]
    # mod_fcgid passes no SLUICE_CONFIG, and the home of the user who runs this is not ours.
    script = WRAPPER.format(dir=directory) if site.runs == "fcgid" else None
    return {".htaccess": text, program: script}


def main(kind, directory, ports, workers, mpm="event", more="", inside=""):
    """The server's own configuration, and how to start it in the foreground.

    `more` are lines of the test; those `inside` come after ours in Apache's <VirtualHost>.
    """
    conf = os.path.join(directory, "etc/main.conf")
    site = SITES[kind]
    values = {"dir": directory, "workers": workers, "file": site.file, **ports}
    values.update(more=more, inside=inside)
    if site.server == "lighttpd":
        return LIGHTTPD.format(**values), ["/usr/sbin/lighttpd", "-D", "-f", conf]
    if site.server == "nginx":
        argv = ["/usr/sbin/nginx", "-c", conf, "-e", directory + "/log/web"]
        return NGINX.format(**values), argv
    return apache(site, values, mpm), ["/usr/sbin/apache2", "-DFOREGROUND", "-f", conf]


def apache(site, values, mpm):
    modules = f"mpm_{mpm} {APACHE_MODULES} {site.modules}".split()
    run, own = values["dir"] + "/run", []
    if mpm == "prefork":
        modules = ["cgi" if m == "cgid" else m for m in modules]
    else:
        modules.append("http2")  # which does not work with prefork
    if "cgid" in modules:
        own.append(f"ScriptSock {run}/cgid")
    if "fcgid" in modules:
        own += [f"FcgidIPCDir {run}", f"FcgidProcessTableFile {run}/shm", "FcgidConnectTimeout 20"]
        if not site.htaccess:  # as apache/README.md says
            own += ["FcgidSpawnScore 0", "FcgidTerminationScore 0"]
    return APACHE.format(
        own="\n".join(own),
        modules="\n".join(
            f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in modules
        ),
        include="" if site.htaccess else f"Include sluice/{site.file}",
        override=SHARED if site.htaccess else "",
        **values,
    )
