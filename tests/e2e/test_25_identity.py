"""Who calls: nobody gets past the web server unknown, nobody is taken for another."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import stage as st
from lib.upstream import wait_until
from stage import ADMIN, USER, basic, bearer, question
from talk import Reply

pytestmark = pytest.mark.cell("auth")
BOSS = "sl-test-boss-0003"  # a token whose client is called as the admin
CHAT = json.dumps(question()).encode()
WRONG = basic(("admin", "wrong"))


@pytest.fixture(scope="module", params=st.KINDS)
def stage(request):
    known, st.CLIENTS = st.CLIENTS, (*st.CLIENTS, (BOSS, "admin"))
    try:
        s = st.Stage(request.param)
    finally:
        st.CLIENTS = known
    yield s
    s.stop()


def raw(stage, target, headers=(), body=None, method=None):
    """Byte for byte what no HTTP library sends. `headers` may hold a name twice."""
    lines = [f"{method or ('POST' if body else 'GET')} {target} HTTP/1.1", "Host: localhost"]
    lines += [f"{k}: {v}" for k, v in (headers.items() if isinstance(headers, dict) else headers)]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines.append("Connection: close\r\n\r\n")
    with socket.create_connection(("127.0.0.1", stage.port), 20) as s:
        s.sendall("\r\n".join(lines).encode() + (body or b""))
        response = http.client.HTTPResponse(s)
        response.begin()
        return Reply(response.status, response.headers, response.read(), "clean")


def client_of(stage, got):
    """Whom the gateway took the request's client for: its log says it."""
    row = re.compile(r'\{[^\n]*"id":"%s"[^\n]*"client":("[^"]*")' % got.header("X-Request-Id"))
    found = []

    def look():
        for name in os.listdir(stage.path("log")):
            with open(stage.path("log", name), errors="replace") as f:
                found.extend(row.findall(f.read()))
        return found

    wait_until(look, 5, "the request's log line")
    return json.loads(found[0])


# Behind the host: paths that would be good with credentials, or look good to one side.
CHATS = [
    "/llm/v1/chat/completions",
    "/llm/v1/chat/completions/",
    "/llm/v1/v1/chat/completions",
    "/llm/openai/v1/chat/completions",
    "//llm/v1/chat/completions",
    "/llm//v1/chat/completions",
    "/llm/./v1/chat/completions",
    "/./llm/v1/chat/completions",
    "/x/../llm/v1/chat/completions",
    "/x/..//llm/v1/chat/completions",
    "/x/%2e%2e/llm/v1/chat/completions",
    "/x%2f..%2fllm/v1/chat/completions",
    "/x%2f..%2f..%2fllm/v1/chat/completions",
    "/%6c%6cm/v1/chat/completions",
    "/llm%2fv1/chat/completions",
    "/llm%252fv1/chat/completions",
    "/llm;x/v1/chat/completions",
    "/llm/;x/v1/chat/completions",
    "/LLM/v1/chat/completions",
    "/llm\\v1/chat/completions",
    "/llm/v1/chat/completions%00",
    "/llm/v1/chat/completions%0a/healthz",
    "/llm/%0a/healthz%0a/../../v1/chat/completions",
    "/llm/v1/chat/completions?x=/healthz",
    "/llm/healthz/v1/chat/completions",
    "/llm/healthz/../v1/chat/completions",
    "/llm/healthz/..%2fv1/chat/completions",
    "/llm/healthz%2f..%2fv1/chat/completions",
    "/llm/healthz;/v1/chat/completions",
    "/llm/healthz%3f/../v1/chat/completions",
    "/llm/v1/chat/completions/healthz",
    "/llm/v1/chat/completions/..%2f..%2f../healthz/../v1/chat/completions",
    "/llm/status/../v1/chat/completions",
    "http://localhost/llm/v1/chat/completions",
    "http://localhost//llm/v1/chat/completions",
    "http://other/llm/healthz/../v1/chat/completions",
]


def let_in(stage, cases):
    """Those of (case, answer) that were not refused by the web server itself."""
    bad = [c for c in cases if not 300 <= c[1].status < 500 or c[1].header("X-Request-Id")]
    assert stage.up.count() == 0, bad
    return bad


def test_nobody_reaches_the_gateway_by_spelling(stage):
    assert let_in(stage, [(t, raw(stage, t, body=CHAT)) for t in CHATS]) == []


SPOOFS = [
    {"Remote-User": "admin"},
    {"Remote_User": "admin"},
    {"REMOTE_USER": "admin"},
    {"Redirect-Remote-User": "admin", "Redirect-Status": "200"},
    {"Auth-Type": "Basic", "X-Forwarded-User": "admin"},
    {"Ssl-Client-S-Dn-Cn": "admin", "Ssl-Client-Verify": "SUCCESS"},
    {"Sluice-Key": st.TOKEN, "Sluice-Mount": "/"},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer ."},
    {"Authorization": f"Bearer {st.TOKEN} x"},
    {"Authorization": f"Bearer {st.TOKEN}, Bearer {st.TOKEN}"},
    {"Authorization": f"Bearer {st.TOKEN}0"},
    {"Authorization": f"Bearer {st.TOKEN[:-1]}"},
    {"Authorization": f"Basic {st.TOKEN}"},
    {"Authorization": st.TOKEN},
    {"X-Api-Key": f"Bearer {st.TOKEN}"},
    {"X-Api-Key": f"{st.TOKEN}, {st.TOKEN}"},
    {"X_Api_Key": st.TOKEN},
    {"Api-Key": "x"},
    {"Cookie": f"Authorization=Bearer {st.TOKEN}"},
    {"Proxy-Authorization": f"Bearer {st.TOKEN}"},
    basic(("admin", "")),
    basic(("admin", "bob-pw")),
    basic(("alice", "")),
    basic(("alice", st.TOKEN)),
    basic(("", "")),
    basic(("nobody", "nothing")),
]


def test_what_is_no_credential(stage):
    asked = [(h, raw(stage, "/llm/v1/chat/completions", h, CHAT)) for h in SPOOFS]
    assert let_in(stage, asked) == []


def test_a_credential_in_the_query_is_none(stage):
    target = f"/llm/v1/chat/completions?key={st.TOKEN}&api_key={st.TOKEN}&REMOTE_USER=admin"
    got = raw(stage, target, body=CHAT)
    assert got.status in (401, 403) and stage.up.count() == 0, got


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer " + st.TOKEN), ("Authorization", "Bearer " + st.KEY)],
        [("Authorization", "Bearer " + st.TOKEN), ("Authorization", "Bearer x")],
        [("Authorization", "Bearer x"), ("Authorization", "Bearer " + st.TOKEN)],
    ],
    ids=["two", "then-bad", "bad-then"],
)
def test_a_header_twice_is_refused(stage, headers):
    got = raw(stage, "/llm/v1/chat/completions", headers, CHAT)
    assert got.status in (400, 401, 403) and stage.up.count() == 0, got


@pytest.mark.parametrize(
    "headers, client",
    [
        (bearer(), "alice"),
        (bearer(st.KEY), "carol"),
        ({"X-Api-Key": st.TOKEN}, "alice"),
        (basic(USER), "bob"),
        (basic(ADMIN), "admin"),
        ({**bearer(), "X-Api-Key": st.TOKEN}, "alice"),
        ({**bearer(), "Remote-User": "bob"}, "alice"),
        # A token beside a password: the token names the client, and the password is not looked at.
        ({**basic(USER), "X-Api-Key": st.TOKEN}, "alice"),
        ({**basic(("bob", "wrong")), "X-Api-Key": st.TOKEN}, "alice"),
        ({**WRONG, "X-Api-Key": st.TOKEN}, "alice"),
    ],
    ids=lambda v: v if isinstance(v, str) else "+".join(v),
)
def test_who_it_is(stage, headers, client):
    got = raw(stage, "/llm/v1/chat/completions", headers, CHAT)
    assert got.status == 200, got
    assert client_of(stage, got) == client
    sent = stage.up.last.head
    assert not any(t.encode() in sent for t in (st.TOKEN, st.KEY)) and b"Basic" not in sent


@pytest.mark.parametrize(
    "headers, clients",
    [
        ([*bearer().items(), ("X-Api-Key", st.KEY)], ("alice", "carol")),
        ([("X-Api-Key", st.TOKEN), ("X-Api-Key", st.KEY)], ("alice", "carol")),
        ([("X-Api-Key", st.TOKEN), ("X-Api-Key", "x")], ("alice",)),
        ([*basic(USER).items(), ("Authorization", "Bearer " + st.TOKEN)], ("bob", "alice")),
    ],
    ids=["tokens", "x-api-keys", "x-api-key", "password"],
)
def test_two_credentials_are_never_a_third_client(stage, headers, clients):
    """One of the two, or nobody."""
    got = raw(stage, "/llm/v1/chat/completions", headers, CHAT)
    assert got.status in (400, 401, 403) or client_of(stage, got) in clients, got


STATUSES = [
    "/llm/status",
    "/llm/status/",
    "/llm/status?x",
    "/llm/status/x",
    "/llm/status;x",
    "//llm/status",
    "/llm//status",
    "/llm/./status",
    "/llm/x/../status",
    "/llm/x/%2e%2e/status",
    "/llm/x%2f..%2fstatus",
    "/llm/%73tatus",
    "/llm/%2573tatus",
    "/llm%2fstatus",
    "/llm/x%2fstatus",
    "/llm;x/status",
    "/llm/;/status",
    "/LLM/STATUS",
    "/llm/Status",
    "/llm/x/status",
    "/llm/%0a/status",
    "/llm/x%0d%0a/status",
    "/llm/%01/status",
    "/llm/status%0a",
    "/llm/v1/models/%0a/../../../status",
    "/llm/healthz/status",
    "/llm/healthz/../status",
    "/llm/v1/status",
    "/llm/v1/models/../../status",
    "/llm/v1/models/..%2f..%2fstatus",
    "/llm/v1/chat/completions/status",
    "/llm/openai/status",
    "/llm/v1/../status",
    "/status",
    "http://localhost/llm/status",
    "http://localhost/llm/x/status",
    "http://localhost/llm/../llm/status",
]


def is_status(got):
    return got.status == 200 and b'"accounts"' in got.body


def test_admin_paths_never_by_token(stage):
    """Not even by that of a client whose name is the admin's."""
    bad = []
    for headers in (
        {},
        bearer(BOSS),
        {"X-Api-Key": BOSS},
        bearer(),
        basic(USER),
        {**basic(USER), "X-Api-Key": BOSS},
        {**WRONG, "X-Api-Key": BOSS},
    ):
        with ThreadPoolExecutor(16) as many:  # lighttpd takes a second for a wrong password
            gots = many.map(lambda target: raw(stage, target, headers), STATUSES)
            asked = [(target, headers, got) for target, got in zip(STATUSES, gots)]
        bad += [a for a in asked if not 300 <= a[2].status < 500 or is_status(a[2])]
    assert bad == []


@pytest.mark.needs("HTTP/2")
def test_the_same_over_http2(stage):
    host = stage.url(http2=True).removesuffix("/llm")
    for targets, headers in (
        (CHATS, {"Content-Type": "application/json"}),
        (STATUSES, bearer(BOSS)),
        (STATUSES, {"X-Api-Key": BOSS}),
    ):
        argv = ["curl", "-s", "--http2-prior-knowledge", "--path-as-is", "-m", "20"]
        argv += ["-w", "\n%{http_version} %{http_code} %header{x-request-id}\n"]
        argv += [a for k, v in headers.items() for a in ("-H", f"{k}: {v}")]
        argv += ["-d", CHAT] if targets is CHATS else []
        for target in (t for t in targets if t.startswith("/")):
            got = subprocess.run([*argv, host + target], capture_output=True, timeout=30).stdout
            end = got.strip().rpartition(b"\n")[2].split()
            assert end[0] in (b"0", b"2") and (end[1] == b"000" or b"300" <= end[1] < b"500"), got
            assert b'"accounts"' not in got and stage.up.count() == 0, (target, got)
            assert targets is STATUSES or len(end) == 2, f"the gateway was asked: {target} {got}"


def test_admin_paths_by_password(stage):
    assert is_status(raw(stage, "/llm/status", basic(ADMIN)))
    got = raw(stage, "/llm/status", {**basic(ADMIN), "X-Api-Key": st.TOKEN})
    assert is_status(got) or got.status in (401, 403), got


@pytest.mark.parametrize("target", ["/llm/healthz", "/llm/healthz?x", "/llm//healthz"])
def test_healthz_tells_anybody_the_same(stage, target):
    got = raw(stage, target)
    assert got.status == 200 and got.json()["service"] == "sluice", got
    assert b"up-key" not in got.body and b"a1" not in got.body


@pytest.mark.parametrize("model", ["status", "org/admin", "m%2Fdebug"])
def test_a_model_may_be_called_as_an_admin_path(stage, model):
    got = raw(stage, "/llm/v1/models/" + model, bearer())
    if stage.kind.startswith("htaccess"):  # which asks for a password there
        got = raw(stage, "/llm/v1/models/" + model, basic(ADMIN))
    assert got.status == 404, got
    if got.header("X-Request-Id"):
        assert got.json()["error"]["message"], got


def test_nginx_takes_a_token_as_documented(tmp_path):
    """nginx refuses to start when a line of a map is too long: the README's own command, and nginx -t."""
    with open(os.path.join(st.ROOT, "examples/README.md")) as f:
        line = next(x for x in f if x.startswith("sed -i") and "CHANGE-ME" in x)
    shutil.copy(os.path.join(st.ROOT, "examples/nginx-site.conf"), tmp_path)
    site = str(tmp_path / "nginx-site.conf")
    subprocess.run(
        ["sh", "-c", line.replace("/etc/nginx/sluice/nginx-site.conf", site)], check=True
    )
    text = (tmp_path / "nginx-site.conf").read_text()
    assert "CHANGE-ME" not in text and " alice;" in text, text
    conf = tmp_path / "main.conf"
    conf.write_text(
        f"pid {tmp_path}/pid; events {{ }} http {{ map '' $sluice_given {{ }} include {site}; }}"
    )
    done = subprocess.run(
        ["/usr/sbin/nginx", "-t", "-c", str(conf), "-e", "stderr"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
