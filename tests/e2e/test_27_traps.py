"""Set-ups that are not ours and look right: names that the web server did not look at."""

import http.client

import pytest
import stage as st
from lib.upstream import wait_until
from stage import ADMIN, USER, basic, bearer
from talk import Reply
from test_25_identity import client_of, is_status

# As on many pages: Debian's fastcgi_params passes $remote_user, which nginx reads from the request.
NGINX = """\
daemon off;
pid {dir}/run/trap.pid;
error_log {dir}/log/trap;
events {{ }}
http {{
	access_log off;
	client_body_temp_path {dir}/run/trap-body;
	fastcgi_temp_path {dir}/run/trap-fastcgi;
	proxy_temp_path {dir}/run/trap-proxy;
	scgi_temp_path {dir}/run/trap-scgi;
	uwsgi_temp_path {dir}/run/trap-uwsgi;
	server {{
		listen 127.0.0.1:{port};
		location /open/ {{
			include /etc/nginx/fastcgi_params;
			fastcgi_pass unix:{dir}/run/s;
		}}
		location /llm/ {{
			auth_basic "llm";
			auth_basic_user_file {dir}/etc/htpasswd;
			include /etc/nginx/fastcgi_params;
			fastcgi_param AUTH_TYPE Basic;
			fastcgi_pass unix:{dir}/run/s;
		}}
	}}
}}
"""
# The page for a failed login comes from the gateway, and there with the name that failed.
APACHE = """\
ServerRoot {dir}/etc
ServerName localhost
PidFile {dir}/run/trap.pid
DefaultRuntimeDir {dir}/run
ErrorLog {dir}/log/trap
Listen 127.0.0.1:{port}
{modules}
DocumentRoot {dir}/htdocs
ProxyPass "/open" "unix:{dir}/run/s|fcgi://sluice/open"
ProxyPass "/llm" "unix:{dir}/run/s|fcgi://sluice/llm"
<Location "/llm">
AuthType Basic
AuthName "llm"
AuthBasicProvider file
AuthUserFile {dir}/etc/htpasswd
Require valid-user
ErrorDocument 401 /open/status
</Location>
"""
MODULES = (
    "mpm_event authn_core authn_file authz_core authz_user auth_basic env proxy proxy_fcgi"
).split()


class Trap:
    """The web server of such a set-up, before a stage's gateway."""

    def __init__(self, stage, text, argv):
        self.stage, self.port = stage, st.free_port()
        modules = "\n".join(
            f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in MODULES
        )
        stage._write("etc/trap.conf", text.format(dir=stage.dir, port=self.port, modules=modules))
        stage._spawn("trap", [a.format(dir=stage.dir) for a in argv])
        wait_until(self.is_up, 10, "the web server")

    def is_up(self):
        assert self.stage.procs["trap"].poll() is None, "the web server ended"
        try:
            return self.ask("/open/healthz").status == 200
        except OSError:
            return False

    def ask(self, path, headers=()):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            conn.request("GET", path, headers=dict(headers))
            response = conn.getresponse()
            return Reply(response.status, response.headers, response.read(), "clean")
        finally:
            conn.close()

    def stop(self):
        self.stage.procs["trap"].terminate()
        self.stage.procs["trap"].wait(15)


@pytest.fixture(scope="module")
def gateway():
    s = st.Stage(
        "apache-proxy", config={"auth": {"user_variables": ["REMOTE_USER", "REDIRECT_REMOTE_USER"]}}
    )
    yield s
    s.stop()


@pytest.fixture
def nginx(gateway):
    trap = Trap(
        gateway, NGINX, ["/usr/sbin/nginx", "-c", "{dir}/etc/trap.conf", "-e", "{dir}/log/trap"]
    )
    yield trap
    trap.stop()


@pytest.fixture
def apache(gateway):
    trap = Trap(gateway, APACHE, ["/usr/sbin/apache2", "-DFOREGROUND", "-f", "{dir}/etc/trap.conf"])
    yield trap
    trap.stop()


def test_nginx_passes_a_name_it_did_not_look_at(nginx):
    for user in (ADMIN, ("admin", ""), ("anybody", "x")):
        for path in ("/open/v1/models", "/open/status"):
            got = nginx.ask(path, basic(user))
            assert got.status == 401 and "auth_basic" in got.json()["error"]["message"], got


def test_nginx_that_looks_says_so(nginx):
    got = nginx.ask("/llm/v1/models", basic(USER))
    assert got.status == 200 and client_of(nginx.stage, got) == "bob", got
    assert is_status(nginx.ask("/llm/status", basic(ADMIN)))
    for headers in ({}, basic(("admin", "wrong")), bearer()):
        assert nginx.ask("/llm/status", headers).status == 401


def test_apache_passes_the_name_of_a_failed_login(apache):
    for headers in (basic(("admin", "wrong")), basic(("admin", "")), {}):
        got = apache.ask("/llm/v1/models", headers)
        assert got.status == 401 and not is_status(got) and b"accounts" not in got.body, got
        assert got.header("X-Request-Id"), "the error document is the gateway's"
    assert is_status(apache.ask("/llm/status", basic(ADMIN)))
