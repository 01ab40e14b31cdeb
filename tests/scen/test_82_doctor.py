"""/v1/doctor, the gateway's side of `sluicectl doctor`: for the operator alone, and what it does."""

import http.server
import json
import os
import pwd
import socket
import threading
import time

import pytest

from lib.around import without_asan

NONCE = "0123456789abcdef" * 2


def let_in(g, nonce=NONCE, valid=300, mode=0o600):
    """What sluicectl leaves in state_dir."""
    path = os.path.join(g.dir, "state", "doctor")
    with open(path, "w") as f:
        f.write(f"{nonce} {int((time.time() + valid) * 1000)}\n")
    os.chmod(path, mode)


def ask(g, query="", body=b"", nonce=NONCE, **vary):
    headers = {"X-Sluice-Doctor": nonce} if nonce else {}
    return g.send(
        body,
        method=vary.pop("method", "POST" if body else "GET"),
        path="/v1/doctor",
        query=query,
        headers={**headers, **vary.pop("headers", {})},
        **vary,
    )


def unlike_nothing(answer):
    """As any unknown path, but for the request's own id."""
    return (answer.status, answer.body, sorted(n for n in answer.names()))


@pytest.mark.parametrize(
    "how",
    [
        {"nonce": None},
        {"nonce": ""},
        {"nonce": NONCE[:-1] + "0"},
        {"nonce": NONCE[:-1]},
        {"nonce": NONCE + "0"},
        {"method": "POST"},
        {"method": "DELETE"},
        {"method": "OPTIONS"},
        {"method": "HEAD"},
    ],
    ids=str,
)
def test_hidden_from_others(gate, how):
    g = gate()
    let_in(g, valid=300 if how.get("nonce") or "nonce" in how else -1)
    got = ask(g, **how).finish()
    other = g.get("/v1/doctors", method=how.get("method", "GET"))
    assert unlike_nothing(got) == unlike_nothing(other) and got.status == 404, got.body


@pytest.mark.parametrize(
    "how", [{"valid": -1}, {"valid": 0}, {"valid": 700}, {"mode": 0o644}, {"mode": 0o660}], ids=str
)
def test_a_pass_that_does_not_hold(gate, how):
    g = gate()
    let_in(g, **how)
    assert ask(g).finish().status == 404
    let_in(g)
    assert ask(g).finish().status == 200


def test_no_pass_at_all_and_a_link(gate):
    g = gate()
    assert ask(g).finish().status == 404
    let_in(g)
    path = os.path.join(g.dir, "state", "doctor")
    os.rename(path, path + ".real")
    os.symlink(path + ".real", path)
    assert ask(g).finish().status == 404


def test_a_client_must_be_admitted(gate):
    g = gate(auth={"mode": "web-server", "admins": ["root"]})
    let_in(g)
    assert ask(g).finish().status == 401
    assert ask(g, REMOTE_USER="alice").finish().json()["client"] == "alice"
    assert ask(g, nonce=None, REMOTE_USER="alice").finish().status == 404
    assert ask(g, nonce=None, REMOTE_USER="root").finish().json()["admin"] is True


def test_echo(gate):
    g = gate(auth={"mode": "web-server", "user_variables": ["SSL_CLIENT_S_DN", "REMOTE_USER"]})
    let_in(g)
    got = (
        ask(
            g,
            headers={"X-Api-Key": "k-secret", "Remote-User": "mallory"},
            REMOTE_USER="alice",
            REDIRECT_HTTP_AUTHORIZATION="Bearer t-secret",
            PATH_INFO="/v1/doctor",
            SCRIPT_NAME="/llm",
            FCGI_ROLE="RESPONDER",
        )
        .finish()
        .json()
    )
    assert got["client"] == "alice" and got["user_variables"] == ["REMOTE_USER"], got
    assert got["authorization"] == ["REDIRECT_HTTP_AUTHORIZATION"] and got["api_key"] is True
    assert got["mode"] == "external" and got["pid"] in g.worker_pids(), got
    assert got["route"] == "/v1/doctor" and got["store_error"] is None
    assert got["variables"]["SCRIPT_NAME"] == "/llm" and got["variables"]["FCGI_ROLE"], got
    assert "secret" not in json.dumps(got) and "mallory" not in json.dumps(got), got


def test_stream(gate):
    g = gate()
    let_in(g)
    a = ask(g, "do=stream&n=5&gap=100").finish()
    assert a.status == 200 and a.header("Content-Type") == "text/event-stream"
    events = [data for _, data in a.events()]
    assert [json.loads(e)["n"] for e in events[:-1]] == [1, 2, 3, 4, 5] and events[-1] == "[DONE]"
    sent = [json.loads(e)["ms"] for e in events[:-1]]
    assert all(90 <= b - a < 1000 for a, b in zip(sent, sent[1:])), sent
    assert a.when(b'"n":1,') < 0.3 < a.when(b'"n":4,'), a.pieces


def test_silence_before_the_first_byte(gate):
    g = gate()
    let_in(g)
    a = ask(g, "do=stream&n=1&first=600")
    a.drain(0.4)
    assert a.out == b""
    a.finish()
    assert a.when(b"[DONE]") >= 0.59 and a.status == 200


@pytest.mark.parametrize(
    "query",
    ["do=dance", "x=1", "n=51", "n=0", "gap=60001", "gap=-1", "first=60001", "n=50&gap=60000"]
    + ["do=stream&n=1e1", "do=stream&n", "do=stream&n=3&gap=60000&first=1"],
)
def test_bounds(gate, query):
    g = gate()
    let_in(g)
    a = ask(g, query).finish()
    assert a.status == 400 and a.error["message"], a.body


def test_swallow(gate):
    g = gate(server={"max_body": "256k"})
    let_in(g)
    body = bytes(range(256)) * 800
    sum = 0xCBF29CE484222325
    for byte in body:
        sum = (sum ^ byte) * 0x100000001B3 & (1 << 64) - 1
    for length in (str(len(body)), None, ""):
        a = ask(g, "do=swallow", body, CONTENT_LENGTH=length).finish()
        assert a.json() == {"bytes": len(body), "sum": f"{sum:016x}"}, a.body
    assert ask(g, "do=swallow", b"x" * 300_000).finish().status == 413


def test_a_client_that_leaves_frees_the_worker(gate):
    g = gate(workers=1)
    let_in(g)
    for query in ("do=stream&n=2&gap=60000", "do=stream&n=1&first=60000"):
        a = ask(g, query)
        a.drain(0.3)
        a.close()
        began = time.monotonic()
        assert ask(g).finish().status == 200
        assert time.monotonic() - began < 2


def test_a_stop_ends_it(gate):
    g = gate(workers=1, server={"drain_timeout": "1s"})
    let_in(g)
    a = ask(g, "do=stream&n=2&gap=60000").until(b'"n":1')
    assert g.stop(5) < 3
    assert b"[DONE]" not in a.drain(1).body


def test_works_without_a_store(gate):
    g = gate(allow=["store"], start=False)
    os.mkdir(os.path.join(g.dir, "state"), 0o700)
    os.mkdir(os.path.join(g.dir, "state", "live"), 0o700)
    with open(os.path.join(g.dir, "state", "epoch"), "w") as f:
        f.write("nonsense")
    let_in(g)
    g.start()
    got = ask(g).finish()
    assert got.status == 200 and got.json()["store_error"], got.body
    assert g.get("/v1/models").status == 503


def test_holds_no_lease_and_asks_nobody(up, gate):
    g = gate()
    let_in(g)
    a = ask(g, "do=stream&n=2&gap=400").until(b'"n":1')
    assert g.in_flight() == 0 and up.count() == 0
    a.finish()


# The command, as far as it needs no web server; the rest is in e2e/test_70_doctor.py.


def test_without_a_url(gate):
    g = gate()
    out = g.ctl("doctor").stdout
    assert [line.split()[:2] for line in out.split("\n")[:3]] == [
        ["ok", "configuration"],
        ["ok", "state_dir"],
        ["ok", "store"],
    ], out
    assert "0 problems" in out
    doc = json.loads(g.ctl("doctor", "--json").stdout)
    assert doc["url"] is None and doc["setup"] is None and doc["problems"] == 0
    assert [c["check"] for c in doc["checks"]] == ["configuration", "state_dir", "store", "tokens"]
    assert set(doc["checks"][0]) == {"check", "result", "text", "meaning", "measured", "remedy"}


def test_local_faults(gate):
    g = gate()
    g.stop()
    os.chmod(os.path.join(g.dir, "state"), 0o755)
    done = g.ctl("doctor", check=False)
    assert done.returncode == 1 and "problem  state_dir" in done.stdout, done.stdout
    assert "mend: " in done.stdout and "where: " in done.stdout, done.stdout
    assert "1 check could not be made" in done.stdout, done.stdout
    os.chmod(os.path.join(g.dir, "state"), 0o700)
    g.write("{ nonsense")
    doc = json.loads(g.ctl("doctor", "--json", check=False).stdout)
    assert [c["result"] for c in doc["checks"]] == ["problem"] and doc["skipped"] == 3, doc
    assert "sluicectl check" in doc["checks"][0]["remedy"]["directive"]


# What a web server may say instead of the gateway.


class Web(http.server.BaseHTTPRequestHandler):
    """self.server.say(path, credentials) -> status, body, of the gateway?"""

    protocol_version = "HTTP/1.0"

    def do_GET(self):
        status, body, ours = self.server.say(self.path, self.headers.get("Authorization", ""))
        self.send_response(status)
        if ours:
            self.send_header("X-Sluice-Attempts", "0")
        self.end_headers()
        self.wfile.write(body.encode())

    def version_string(self):
        return self.server.named

    def log_message(self, *args):
        pass


@pytest.fixture
def web():
    """web(say, server="Apache") -> port."""
    servers = []

    def start(say, server="Apache"):
        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
        s.say, s.named = say, server
        threading.Thread(target=s.serve_forever, daemon=True).start()
        servers.append(s)
        return s.server_address[1]

    yield start
    for s in servers:
        s.shutdown()
        s.server_close()


def examine(g, url, *argv):
    done = g.ctl("doctor", "--url", url, "--json", *argv, check=False, timeout=30)
    return {c["check"]: c for c in json.loads(done.stdout)["checks"]}


def refusal(message, code="misconfigured"):
    return json.dumps({"error": {"message": message, "type": "x", "param": None, "code": code}})


def test_the_gateway_cannot_start(gate, web):
    """As plain CGI says it."""
    answer = (503, refusal("the gateway cannot start, see the web server's error log"), True)
    found = examine(gate(), f"http://127.0.0.1:{web(lambda *a: answer)}")["gateway"]
    assert found["result"] == "problem" and "cannot start" in found["text"], found
    assert "sluicectl check" in found["remedy"]["directive"]
    assert found["remedy"]["file"].startswith("/") and found["remedy"]["file"].endswith(".json")


def test_no_pool_and_a_pool_that_is_not_reached(gate, web):
    g = gate()
    url = f"http://127.0.0.1:{web(lambda *a: (503, 'busy', False))}"
    found = examine(g, url)["gateway"]
    assert f"pool {g.master.pid}, which runs on unix:" in found["text"], found
    assert "(mode 0660, " in found["text"] and "SLUICE_SOCKET" in found["remedy"]["directive"]
    g.stop()
    found = examine(g, url)["gateway"]
    assert "no pool runs on this state_dir" in found["text"], found
    assert "sluicectl start" in found["remedy"]["directive"], found
    url = f"http://127.0.0.1:{web(lambda *a: (503, '', False), 'lighttpd/1.4')}"
    assert "bin-path" in examine(g, url)["gateway"]["remedy"]["directive"]


def test_the_web_server_fails(gate, web):
    g = gate()
    found = examine(g, f"http://127.0.0.1:{web(lambda *a: (500, '<html>', False))}")["gateway"]
    assert "fails by itself (HTTP 500)" in found["text"], found
    assert "ErrorLog" in found["remedy"]["directive"] and ".htaccess" in found["remedy"]["file"]

    def say(path, credentials):
        if path == "/healthz":
            return 200, "{}", True
        return (500, "<html>", False) if credentials else (401, "", False)

    found = examine(g, f"http://127.0.0.1:{web(say)}", "--user", "a:b")["access"]
    assert "when it looks at a name and password" in found["text"], found
    assert "AuthUserFile" in found["remedy"]["directive"], found
    assert ".htaccess" in found["remedy"]["file"], found


def test_the_token_of_the_example(gate, web):
    def say(path, credentials):
        if path == "/healthz" or credentials == "Bearer sl-alice-CHANGE-ME":
            return 200, "{}", True
        return 401, "", False

    found = examine(gate(), f"http://127.0.0.1:{web(say, 'nginx')}")["example token"]
    assert found["result"] == "problem", found
    assert "openssl rand" in found["remedy"]["directive"] and "site" in found["remedy"]["file"]


def test_tls_where_there_is_none_and_the_reverse(gate, web):
    g = gate()
    found = examine(g, f"https://127.0.0.1:{web(lambda *a: (200, '', True))}")["reach"]
    assert "no TLS on the port" in found["text"], found
    assert "http://" in found["remedy"]["directive"], found
    told = "You're speaking plain HTTP to an SSL-enabled server port."
    found = examine(g, f"http://127.0.0.1:{web(lambda *a: (400, told, False))}")["reach"]
    assert "wants TLS" in found["text"], found
    with socket.create_server(("127.0.0.1", 0)) as s:  # as lighttpd

        def close():
            peer, _ = s.accept()
            peer.recv(4096)
            peer.close()

        threading.Thread(target=close, daemon=True).start()
        found = examine(g, f"http://127.0.0.1:{s.getsockname()[1]}")["reach"]
    assert "a port with TLS?" in found["text"], found


@pytest.mark.waits
def test_connected_but_no_answer(gate):
    with socket.create_server(("127.0.0.1", 0)) as s:
        found = examine(gate(), f"http://127.0.0.1:{s.getsockname()[1]}")["reach"]
    assert "no answer in 20 s: the gateway hangs" in found["text"], found
    assert "sluicectl status" in found["remedy"]["directive"], found


@without_asan  # which another user may not look into
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user(gate):
    """As root on a state_dir that is not the gateway's user's nothing is written."""
    g = gate(start=False)
    user = pwd.getpwnam("nobody")
    state = os.path.join(g.dir, "state")
    os.mkdir(state, 0o700)
    os.chmod(g.dir, 0o755)
    os.chown(os.path.join(g.dir, "sluice.json"), user.pw_uid, user.pw_gid)
    for argv in (["doctor"], ["status"], ["tick"], ["events"]):
        done = g.ctl(*argv, check=False)
        assert done.returncode == 1, done
        assert f"chown -R {user.pw_uid}:{user.pw_gid} '{state}'" in done.stdout + done.stderr, done
    assert not os.listdir(state)
    with open(os.path.join(state, "epoch"), "w") as f:
        f.write("of root")
    os.chown(state, user.pw_uid, user.pw_gid)
    done = g.ctl("doctor", check=False)
    assert "'epoch' in " in done.stdout and "chown -R" in done.stdout, done.stdout
    assert os.listdir(state) == ["epoch"]


@pytest.mark.parametrize(
    "argv",
    [
        ["--token", "x"],
        ["--long"],
        ["--url"],
        ["--url", "ftp://host/"],
        ["--url", "host/llm"],
        ["--url", "http://u:p@host/llm"],
        ["--url", "http://host/llm?x"],
        ["--url", "http://h/", "--token", "x", "--user", "y:z"],
        ["--url", "http://h/", "--silence", "61"],
        ["--url", "http://h/", "--token", "a\nb"],
        ["word"],
    ],
    ids=" ".join,
)
def test_usage(gate, argv):
    g = gate(start=False)
    done = g.ctl("doctor", *argv, check=False)
    assert done.returncode == 2 and done.stderr.startswith("sluicectl: "), done
