"""sites - the site configuration around the shipped files: ports, logs, modules, paths."""

import os

# Of talk.ADMIN and talk.USER, made by htpasswd -nbB -C 4.
HTPASSWD = """\
admin:$2y$04$StyVBj4fWLB3uLUvk17/yOly5xT2EjibIxgTlVfv2nEcoVrE83Yhy
bob:$2y$04$0z/evwvCjJziCqv4e7VvL.pd.4eoJzvhDhljh.dei9Ubs4Q8.JL3m
"""

LIGHTTPD = """\
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_access" )
server.document-root = "{dir}/htdocs"
server.errorlog = "{dir}/log/web"
server.pid-file = "{dir}/run/web.pid"
server.upload-dirs = ( "{dir}/run" )
server.feature-flags += ( "server.h2proto" => "enable", "server.h2c" => "enable" )
var.sluice_dir = "{dir}/etc/lighttpd"
var.sluice_bin = "{dir}/bin/sluice.fcgi"
var.sluice_config = "{dir}/etc/sluice.json"
var.sluice_workers = "{workers}"
var.sluice_socket = "{dir}/run/s"
var.sluice_users = "{dir}/etc/htpasswd"
var.sluice_tokens = "{dir}/etc/tokens.conf"
include "{dir}/etc/lighttpd/{file}"
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
Listen 127.0.0.1:{port}
{modules}
{own}
Protocols h2c http/1.1
DocumentRoot {dir}/htdocs
<Directory />
Require all denied
</Directory>
<Directory {dir}/htdocs>
Require all granted
</Directory>
Define SLUICE_BIN {dir}/bin/sluice.fcgi
Define SLUICE_CONFIG {dir}/etc/sluice.json
Define SLUICE_SOCKET {dir}/run/s
Define SLUICE_USERS {dir}/etc/htpasswd
Define SLUICE_TOKENS {dir}/etc/tokens.txt
<VirtualHost *>
Include sluice/{file}
</VirtualHost>
"""
APACHE_MODULES = (
    "mpm_event authn_core authn_file authz_core authz_user auth_basic rewrite env alias http2"
)

KINDS = {
    "lighttpd-spawn": "spawn.conf",
    "lighttpd-external": "external.conf",
    "apache-proxy": "proxy_fcgi.conf",
    "apache-fcgid": "fcgid.conf",
}
EXTERNAL = ("lighttpd-external", "apache-proxy")  # the gateway runs by itself


def files(directory, clients):
    """Passwords and tokens: {name: text}. `clients` are (token, name) pairs."""
    return {
        "etc/htpasswd": HTPASSWD,
        "etc/tokens.txt": "".join(f"{token} {name}\n" for token, name in clients),
        "etc/tokens.conf": "".join(
            LIGHTTPD_TOKEN.format(token=token, name=name) for token, name in clients
        ),
    }


def main(kind, directory, port, workers):
    """The server's own configuration, and how to start it in the foreground."""
    conf = os.path.join(directory, "etc/main.conf")
    values = {"dir": directory, "port": port, "workers": workers, "file": KINDS[kind]}
    if kind.startswith("lighttpd"):
        return LIGHTTPD.format(**values), ["/usr/sbin/lighttpd", "-D", "-f", conf]
    modules, own = APACHE_MODULES.split() + ["proxy", "proxy_fcgi"], ""
    if kind == "apache-fcgid":
        modules[-2:] = ["fcgid"]
        own = f"FcgidIPCDir {directory}/run\nFcgidProcessTableFile {directory}/run/shm\n"
        own += "FcgidSpawnScore 0\nFcgidTerminationScore 0"  # as apache/README.md says
    values["modules"] = "\n".join(
        f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in modules
    )
    return APACHE.format(own=own, **values), ["/usr/sbin/apache2", "-DFOREGROUND", "-f", conf]
