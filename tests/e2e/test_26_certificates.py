"""Client certificates: the shipped files, an authority of our own, and one that nobody knows."""

import http.client
import json
import os
import ssl
import subprocess

import pytest
import stage as st
from lib.upstream import wait_until
from stage import ADMIN, USER, basic, bearer, question
from test_25_identity import client_of, is_status
from talk import Reply

APACHE = """\
ServerRoot {dir}/etc
ServerName localhost
PidFile {dir}/run/tls.pid
DefaultRuntimeDir {dir}/run
ErrorLog {dir}/log/tls
Listen 127.0.0.1:{port}
{modules}
DocumentRoot {dir}/htdocs
Define SLUICE_SOCKET {dir}/run/s
Define SLUICE_USERS {dir}/etc/htpasswd
Define SLUICE_TOKENS {dir}/etc/tokens.txt
Define SLUICE_CLIENT_CA {dir}/certs/ca.pem
<VirtualHost *>
SSLEngine on
SSLOptions +StdEnvVars
SSLCertificateFile {dir}/certs/server.pem
SSLCertificateKeyFile {dir}/certs/server.key
Include sluice/proxy_fcgi.conf
</VirtualHost>
"""
MODULES = (
    "mpm_event authn_core authn_file authz_core authz_user auth_basic rewrite env alias"
    " socache_shmcb ssl proxy proxy_fcgi"
)
LIGHTTPD = """\
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_access", "mod_openssl" )
server.document-root = "{dir}/htdocs"
server.errorlog = "{dir}/log/tls"
server.pid-file = "{dir}/run/tls.pid"
server.upload-dirs = ( "{dir}/run" )
ssl.pemfile = "{dir}/certs/server.pem"
ssl.privkey = "{dir}/certs/server.key"
$SERVER["socket"] == "127.0.0.1:{port}" {{
	ssl.engine = "enable"
}}
var.sluice_dir = "{dir}/etc/lighttpd"
var.sluice_socket = "{dir}/run/s"
var.sluice_users = "{dir}/etc/htpasswd"
var.sluice_tokens = "{dir}/etc/tokens-tls.conf"
var.sluice_client_ca = "{dir}/certs/ca.pem"
include "{dir}/etc/lighttpd/clientcert.conf"
include "{dir}/etc/lighttpd/external.conf"
"""


def openssl(*argv):
    subprocess.run(("openssl", *argv), check=True, capture_output=True)


def make_certificates(folder):
    """By ca: server, dora, boss, and late, which has run out. By rogue: evil, called dora, too."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def path(name):
        return os.path.join(folder, name)

    for ca in ("ca", "rogue"):
        openssl(
            "req", "-x509", *key, "-subj", f"/CN={ca}", "-days", "2",
            "-keyout", path(ca + ".key"), "-out", path(ca + ".pem"),
        )  # fmt: skip
    rows = (
        ("server", "localhost", "ca", "2"),
        ("dora", "dora", "ca", "2"),
        ("boss", "admin", "ca", "2"),
        ("late", "dora", "ca", "-1"),
        ("evil", "dora", "rogue", "2"),
    )
    for name, subject, ca, days in rows:
        openssl(
            "req", *key, "-subj", f"/O=test/CN={subject}",
            "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
        )  # fmt: skip
        openssl(
            "x509", "-req", "-in", path(name + ".csr"), "-days", days, "-CAcreateserial",
            "-CA", path(ca + ".pem"), "-CAkey", path(ca + ".key"), "-out", path(name + ".pem"),
        )  # fmt: skip
    for name in os.listdir(folder):
        os.chmod(path(name), 0o644)


def shipped_tokens(stage):
    """tokens.conf.example with its line for certificates in force, and the test's tokens."""
    with open(stage.path("etc/lighttpd/tokens.conf.example")) as f:
        text = f.read()
    assert "\n#auth.require := " in text
    with open(stage.path("etc/tokens.conf")) as f:
        text = text.replace("\n#auth.require := ", "\nauth.require := ") + f.read()
    stage._write("etc/tokens-tls.conf", text)


def start_tls(stage):
    """A second web server before the same gateway, with certificates."""
    os.mkdir(stage.path("certs"))
    make_certificates(stage.path("certs"))
    shipped_tokens(stage)
    stage.tls = st.free_port()
    values = {"dir": stage.dir, "port": stage.tls}
    conf = stage.path("etc/tls.conf")
    if stage.kind == "apache-proxy":
        values["modules"] = "\n".join(
            f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in MODULES.split()
        )
        stage._write("etc/tls.conf", APACHE.format(**values))
        argv = ["/usr/sbin/apache2", "-DFOREGROUND", "-f", conf]
    else:
        stage._write("etc/tls.conf", LIGHTTPD.format(**values))
        argv = ["/usr/sbin/lighttpd", "-D", "-f", conf]
    stage._spawn("tls", argv)
    wait_until(lambda: is_up(stage), 10, "the second web server")


def is_up(stage):
    assert stage.procs["tls"].poll() is None, "the second web server ended"
    try:
        return ask(stage, path="/healthz").status == 200
    except OSError:
        return False


@pytest.fixture(
    scope="module",
    params=["apache-proxy", "lighttpd-external", "apache-proxy:dn", "lighttpd-external:dn"],
)
def stage(request):
    kind, _, variable = request.param.partition(":")
    auth = {"user_variables": ["SSL_CLIENT_S_DN_CN"]} if variable else {}
    s = st.Stage(kind, config={"auth": auth})
    try:
        start_tls(s)
        s.variable = variable
        yield s
    finally:
        tls = s.procs.get("tls")
        if tls and tls.poll() is None:
            tls.terminate()
            tls.wait(15)
        s.stop()


def ask(stage, cert=None, headers=(), path="/v1/chat/completions", tls13=True):
    context = ssl.create_default_context(cafile=stage.path("certs/ca.pem"))
    context.check_hostname = False
    if not tls13:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if cert:
        context.load_cert_chain(
            stage.path("certs", cert + ".pem"), stage.path("certs", cert + ".key")
        )
    conn = http.client.HTTPSConnection("127.0.0.1", stage.tls, timeout=20, context=context)
    try:
        if path.startswith("/v1/chat"):
            body = json.dumps(question())
            conn.request("POST", "/llm" + path, body, dict(headers))
        else:
            conn.request("GET", "/llm" + path, headers=dict(headers))
        response = conn.getresponse()
        return Reply(response.status, response.headers, response.read(), "clean")
    finally:
        conn.close()


def is_refused(stage, *args, **how):
    """By the handshake or by the web server, before the gateway."""
    try:
        got = ask(stage, *args, **how)
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return True
    return got.status in (401, 403) and not got.header("X-Request-Id")


@pytest.mark.parametrize("tls13", [True, False], ids=["1.3", "1.2"])
def test_a_certificate_names_the_client(stage, tls13):
    got = ask(stage, "dora", tls13=tls13)
    assert got.status == 200 and client_of(stage, got) == "dora", got


@pytest.mark.parametrize("tls13", [True, False], ids=["1.3", "1.2"])
@pytest.mark.parametrize("cert", [None, "evil", "late"])
def test_no_good_certificate_no_upstream(stage, cert, tls13):
    assert is_refused(stage, cert, tls13=tls13)
    assert is_refused(stage, cert, {"Ssl-Client-S-Dn-Cn": "dora"}, tls13=tls13)
    assert stage.up.count() == 0


def test_tokens_work_beside_certificates(stage):
    if stage.variable:
        got = ask(stage, headers=bearer())
        assert got.status == 401 and stage.up.count() == 0, "only the certificate counts"
        return
    got = ask(stage, headers=bearer())
    assert got.status == 200 and client_of(stage, got) == "alice", got
    assert is_refused(stage, headers=bearer("sl-test-wrong-0009"))


def test_a_bad_certificate_is_not_mended_by_its_name(stage):
    """With a token it is the token's client, or nobody; never the name in the certificate."""
    try:
        got = ask(stage, "evil", bearer())
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return
    assert got.status in (401, 403) or client_of(stage, got) == "alice", got


def test_certificate_and_token_are_one_of_both(stage):
    got = ask(stage, "dora", bearer())
    assert got.status == 200 and client_of(stage, got) in ("dora", "alice"), got


def test_certificate_and_password_are_one_of_both(stage):
    got = ask(stage, "dora", basic(USER))
    assert got.status == 200 and client_of(stage, got) in ("dora", "bob"), got


@pytest.mark.parametrize(
    "path", ["/status", "/x/status", "/status/", "/v1/../status", "/healthz/status"]
)
def test_admin_paths_never_by_certificate(stage, path):
    for cert in (None, "dora", "boss"):
        for headers in ({}, bearer(), basic(USER)):
            got = ask(stage, cert, headers, path=path)
            assert got.status >= 300 and not is_status(got), (cert, headers, got)


def test_admin_paths_by_password(stage):
    got = ask(stage, None, basic(ADMIN), path="/status")
    assert is_status(got) or (stage.variable and got.status == 401), got
