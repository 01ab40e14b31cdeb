"""sluicectl doctor: finds nothing in what is shipped, and names the line and the file of what is broken."""

import json
import os

import pytest
import stage as st

IGNORED = "fastcgi_buffering on; fastcgi_ignore_headers X-Accel-Buffering;"
STREAMS = [
    (
        "lighttpd-spawn",
        [("lighttpd/spawn.conf", "server.stream-response-body = 2", "")],
        "server.stream-response-body = 2",
        "lighttpd/spawn.conf",
    ),
    (
        "lighttpd-external",
        [("lighttpd/external.conf", "server.stream-response-body = 2", "")],
        "server.stream-response-body = 2",
        "lighttpd/external.conf",
    ),
    (
        "apache-proxy",
        [("sluice/proxy_fcgi.conf", 'llm" flushpackets=on', 'llm"')],
        "flushpackets=on",
        "apache/proxy_fcgi.conf",
    ),
    (
        "apache-fcgid",
        [("sluice/fcgid.conf", "FcgidOutputBufferSize 0", "")],
        "FcgidOutputBufferSize 0",
        "apache/fcgid.conf",
    ),
    (
        "lighttpd-cgi",
        [("lighttpd/cgi.conf", "server.stream-response-body = 2", "")],
        "server.stream-response-body = 2",
        "lighttpd/cgi.conf",
    ),
    (
        "nginx",
        # the gateway's X-Accel-Buffering: no would make up for it
        [("examples/nginx.conf", "fastcgi_buffering off;", IGNORED)],
        "fastcgi_buffering off",
        "examples/nginx.conf",
    ),
]
BODIES = [
    (
        "nginx",
        [("examples/nginx.conf", "client_max_body_size 34m;", "")],
        "client_max_body_size",
        "examples/nginx.conf",
    ),
    (
        "lighttpd-cgi",
        [("lighttpd/cgi.conf", "max-request-size = 34816", "max-request-size = 100")],
        "server.max-request-size",
        "lighttpd/cgi.conf",
    ),
    (
        "apache-fcgid",
        [("sluice/fcgid.conf", "FcgidMaxRequestLen 35651584", "")],
        "FcgidMaxRequestLen",
        "apache/fcgid.conf",
    ),
    (
        "lighttpd-external",
        [("lighttpd/external.conf", "max-request-size = 34816", "max-request-size = 100")],
        "server.max-request-size",
        "lighttpd/external.conf",
    ),
]
SILENCES = [
    (
        "apache-fcgid",
        [("sluice/fcgid.conf", "FcgidIOTimeout 3600", "FcgidIOTimeout 2")],
        "FcgidIOTimeout",
        "apache/fcgid.conf",
    ),
    (
        "apache-proxy",
        [("sluice/proxy_fcgi.conf", "timeout=3600", "timeout=2")],
        "timeout=3600",
        "apache/proxy_fcgi.conf",
    ),
    (
        "apache-cgid",
        [("sluice/cgi.conf", "CGIDScriptTimeout 3600", "CGIDScriptTimeout 2")],
        "CGIDScriptTimeout",
        "apache/cgi.conf",
    ),
    (
        "nginx",
        [("examples/nginx.conf", "fastcgi_read_timeout 1h", "fastcgi_read_timeout 2s")],
        "fastcgi_read_timeout",
        "examples/nginx.conf",
    ),
]


def doctor(s, *argv, token=st.TOKEN, base=None, silence=1):
    given = ("--token", token) if token else ()
    silent = ("--silence", str(silence))
    done = s.ctl("doctor", "--url", base or s.base, *given, *silent, "--json", *argv)
    assert done.returncode in (0, 1) and not done.stderr, done
    doc = json.loads(done.stdout)
    found = {c["check"]: c for c in doc["checks"]}
    wrong = [c for c in doc["checks"] if c["result"] == "problem"]
    assert len(wrong) == doc["problems"] and done.returncode == (1 if wrong else 0), doc
    assert all(c["remedy"] and c["meaning"] for c in wrong), wrong
    assert not os.path.exists(s.path("state/doctor")), "the nonce was left behind"
    return doc, found


@pytest.fixture
def broken(request):
    """broken(kind, edits): a stage with a fault."""
    made = []

    def make(kind, edits=(), **how):
        made.append(st.Stage(kind, edits=edits, **how))
        return made[-1]

    yield make
    for s in made:
        s.stop()


def check(found, name, directive, file):
    got = found[name]
    assert got["result"] == "problem", got
    assert directive in got["remedy"]["directive"] and file in got["remedy"]["file"], got


# What a set-up cannot do, by its nature. HTTP/2 has no chunked bodies.
CANNOT = {"htaccess-fcgid": {"streaming", "body", "chunked body"}}


def problems(doc):
    return {c["check"] for c in doc["checks"] if c["result"] == "problem"}


def test_nothing_wrong(stage):
    doc, found = doctor(stage)
    assert problems(doc) == CANNOT.get(stage.kind, set()) and doc["skipped"] <= 1, doc
    assert len(found["streaming"]["measured"]["arrivals_ms"]) == 10
    assert found["set-up"]["measured"]["path_info"] == "/v1/doctor", found["set-up"]
    assert found["authorization"]["result"] == found["x-api-key"]["result"] == "ok", found


def test_the_setup_is_found_out(stage):
    doc, found = doctor(stage, "--http2", base=stage.url(http2=True))
    assert "HTTP/2" in found["reach"]["text"] and found["reach"]["result"] == "ok", found["reach"]
    assert problems(doc) == CANNOT.get(stage.kind, set()) - {"chunked body"}, doc
    assert doc["setup"] == stage.kind


def test_over_tls(stage):
    """Of a certificate that nobody signed; HTTP/2 is agreed on."""
    base = stage.url(tls=True)
    _, found = doctor(stage, base=base)
    assert found["reach"]["remedy"]["directive"].endswith("--ca-file FILE"), found["reach"]
    doc, found = doctor(stage, "--http2", "--ca-file", stage.path("etc/cert.pem"), base=base)
    assert "HTTP/2, TLS, certificate good" in found["reach"]["text"], found["reach"]
    assert problems(doc) == CANNOT.get(stage.kind, set()) - {"chunked body"}, doc
    assert doc["setup"] == stage.kind


@pytest.mark.parametrize("kind", ["htaccess-fcgid"])
def test_a_web_space_is_sent_to_what_can(broken, kind):
    _, found = doctor(broken(kind))
    for name in CANNOT[kind]:
        check(found, name, "plain CGI instead", "apache/htaccess/cgi/.htaccess")
    assert "128 kB" in found["body"]["text"], found["body"]
    assert "no .htaccess can make mod_fcgid stream" in found["streaming"]["remedy"]["directive"]


@pytest.mark.parametrize("kind", ["apache-proxy", "lighttpd-spawn", "nginx", "htaccess-cgi"])
def test_whoever_comes_may_in(broken, kind):
    """auth.mode "open" behind a web server that asks, as shipped."""
    doc, found = doctor(broken(kind, config={"auth": {"mode": "open"}}))
    assert not problems(doc), doc
    assert "refused by the web server" in found["anonymous"]["text"], found["anonymous"]


def test_by_name_and_password(stage):
    who = ("--user", ":".join(st.USER), "--silence", "1")
    done = stage.ctl("doctor", "--url", stage.base + "/v1/", *who)
    assert done.returncode in (0, 1), done
    assert "accepted as 'bob', by REMOTE_USER" in done.stdout, done.stdout


TOKENS = {"apache": "tokens.txt", "lighttpd": "tokens.conf", "nginx": "nginx-site.conf"}


def test_wrong_token(stage):
    _, found = doctor(stage, token="sl-nobody-00000001")
    assert found["access"]["result"] == "problem" and "token" in found["access"]["text"], found
    assert TOKENS[stage.site.server] in found["access"]["remedy"]["file"], found
    assert "streaming" not in found


def test_no_token(stage):
    doc, found = doctor(stage, token=None)
    assert not problems(doc) and found["access"]["result"] == "note", doc


def test_no_gateway_at_this_address(stage):
    _, found = doctor(stage, base=stage.base[:-4] + "/other")
    check(found, "gateway", "--url", "")
    assert "access" not in found


def test_no_server_at_all(stage):
    _, found = doctor(stage, base=f"http://127.0.0.1:{st.free_port()}/llm")
    assert found["reach"]["result"] == "problem" and "gateway" not in found, found


def test_another_gateways_sluicectl(stage):
    """Its nonce opens nothing here."""
    path = stage.path("other.json")
    with open(stage.path("etc/sluice.json")) as f:
        doc = json.load(f)
    os.mkdir(stage.path("other"), 0o700)
    doc["state_dir"] = stage.path("other")
    with open(path, "w") as f:
        json.dump(doc, f)
    os.chmod(path, 0o600)
    for name in (path, stage.path("other")):
        if stage.user:
            os.chown(name, stage.user.pw_uid, stage.user.pw_gid)
    done = stage.ctl("-c", path, "doctor", "--url", stage.base, "--token", st.TOKEN, "--json")
    access = {c["check"]: c for c in json.loads(done.stdout)["checks"]}["access"]
    assert done.returncode == 1 and access["result"] == "problem", done
    assert "does not know this sluicectl" in access["text"] and "-c FILE" in str(access["remedy"])
    os.unlink(path)


@pytest.mark.parametrize("kind, edits, directive, file", STREAMS, ids=lambda v: str(v)[:20])
def test_a_stream_that_is_collected(broken, kind, edits, directive, file):
    s = broken(kind, edits)
    _, found = doctor(s)
    check(found, "streaming", directive, file)
    assert "all 10 events came at once after" in found["streaming"]["text"], found["streaming"]
    assert min(found["streaming"]["measured"]["arrivals_ms"]) >= 850
    assert found["compression"]["result"] == "note"


@pytest.mark.parametrize("kind, edits, directive, file", BODIES, ids=lambda v: str(v)[:20])
def test_a_body_that_is_refused(broken, kind, edits, directive, file):
    _, found = doctor(broken(kind, edits))
    check(found, "body", directive, file)
    check(found, "chunked body", directive, file)
    assert found["streaming"]["result"] == "ok"


def test_chunked_bodies_refused(broken):
    s = broken(
        "lighttpd-external",
        [("lighttpd/external.conf", "server.stream-response-body = 2", STREAM_BOTH)],
    )
    _, found = doctor(s)
    check(found, "chunked body", "server.stream-request-body", "lighttpd/external.conf")
    assert "HTTP 411" in found["chunked body"]["text"] and found["body"]["result"] == "ok"


STREAM_BOTH = "server.stream-response-body = 2\nserver.stream-request-body = 2"


@pytest.mark.parametrize("kind, edits, directive, file", SILENCES, ids=lambda v: str(v)[:20])
def test_silences_that_are_cut(broken, kind, edits, directive, file):
    _, found = doctor(broken(kind, edits), silence=5)
    for name in ("first silence", "later silence"):
        check(found, name, directive, file)
        assert "of the gateway" not in found[name]["text"], found[name]
    # Apache keeps a client of mod_proxy_fcgi for KeepAliveTimeout, 5 s, before it breaks the connection
    assert 1900 <= found["later silence"]["measured"]["end_ms"] <= 9000, found["later silence"]
    assert found["first silence"]["measured"]["end_ms"] <= 4900, found["first silence"]


@pytest.mark.parametrize(
    "kind, file",
    [
        ("apache-proxy", "auth.conf"),
        ("apache-fcgid", "auth.conf"),
        ("apache-cgid", "auth.conf"),
        ("htaccess-cgi", "htaccess/cgi/.htaccess"),
    ],
)
def test_authorization_is_hidden(broken, kind, file):
    """Only a note, as web servers check tokens here."""
    _, found = doctor(broken(kind, [(f"sluice/{file}", "CGIPassAuth On", "")]))
    got = found["authorization"]
    assert got["result"] == "note" and got["remedy"]["directive"] == "CGIPassAuth On", got
    assert f"apache/{file}" in got["remedy"]["file"]


@pytest.mark.parametrize("kind", ["apache-proxy", "apache-fcgid"])
def test_names_of_models_with_a_slash(broken, kind):
    _, found = doctor(broken(kind))
    assert found["paths"]["result"] == "note", found["paths"]
    mend = found["paths"]["remedy"]["directive"]
    edits = [("sluice/auth.conf", "RewriteEngine On", "RewriteEngine On\n" + mend)]
    _, found = doctor(broken(kind, edits))
    assert found["paths"]["result"] == "ok", found["paths"]


OPEN_APACHE = [
    ("sluice/auth.conf", "Require env REMOTE_USER", "Require all granted"),
]
OPEN_LIGHTTPD = [
    (
        "lighttpd/auth.conf",
        'auth.require = ( "" => ( "method" => "basic", '
        '"realm" => "llm", "require" => "valid-user" ) )',
        "",
    )
]


@pytest.mark.parametrize(
    "kind, edits", [("apache-proxy", OPEN_APACHE), ("lighttpd-spawn", OPEN_LIGHTTPD)]
)
def test_nobody_is_asked_who_he_is(broken, kind, edits):
    """Then the gateway still refuses, and with a bad token no user is set."""
    _, found = doctor(broken(kind, edits), token="sl-nobody-00000001")
    assert "gateway" in found["anonymous"]["text"], found["anonymous"]
    check(found, "access", "REMOTE_USER", "auth.conf")


@pytest.mark.parametrize(
    "kind, edits", [("apache-proxy", OPEN_APACHE), ("lighttpd-spawn", OPEN_LIGHTTPD)]
)
def test_nobody_asks_at_all(broken, kind, edits):
    """Open on purpose: a note, no problem."""
    doc, found = doctor(broken(kind, edits, config={"auth": {"mode": "open"}}), token=None)
    assert not problems(doc) and doc["setup"] == kind, doc
    assert 'auth.mode is "open"' in found["anonymous"]["text"], found["anonymous"]
    assert "without a name" in found["access"]["text"], found["access"]


def test_everybody_is_somebody(broken):
    edits = [("sluice/auth.conf", "CGIPassAuth On", "CGIPassAuth On\nSetEnv REMOTE_USER x")]
    _, found = doctor(broken("apache-proxy", OPEN_APACHE + edits))
    check(found, "anonymous", "Require valid-user", "apache/auth.conf")


def test_a_header_becomes_the_user(broken):
    forge = "RewriteRule ^ - [E=REMOTE_USER:%{HTTP:Remote-User}]\nRewriteMap"
    edits = [("sluice/auth.conf", "RewriteMap", forge)]
    _, found = doctor(broken("apache-proxy", OPEN_APACHE + edits))
    check(found, "forged user", "user_variables", "apache/auth.conf")


def test_the_gateway_is_not_running(broken):
    s = broken("apache-proxy")
    s.procs["sluice"].terminate()
    s.procs["sluice"].wait(10)
    _, found = doctor(s)
    check(found, "gateway", "ErrorLog", "")


def test_the_configuration_is_exposed(broken):
    """Its folder, which is ServerRoot here, is a document root."""
    root = ("sluice/auth.conf", "RewriteEngine On", 'RewriteEngine On\nDocumentRoot "../etc"')
    _, found = doctor(broken("apache-fcgid", [root]))
    check(found, "access", "document root", "sluice.json")
