"""Plain CGI: one process for one request; the state is in the store (SPEC 2, 5; hosting.md 3, 5)."""

import fcntl
import json
import os
import shutil
import time

import pytest

from lib import cgi
from lib.answers import chat_answer, chat_chunks, chunk, error, hang, ok, plain, slow, sse, stream
from lib.pool import K1, K2, PROGRAM
from lib.upstream import wait_until
from lib.watching import by_path, gets

WAYS = pytest.mark.parametrize("how", ["pipe", "socket"])


@pytest.fixture
def once(gate):
    """A configuration and no process."""
    return lambda **vary: gate(start=False, **vary)


def ledger(g):
    return json.loads(g.ctl("usage", "--json").stdout)


@WAYS
def test_plain(up, once, how):
    answer = b'\n {"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'
    body = b'{ "model":"m1","x":1E5, "messages":[{"role":"user","content":"Hi"}]}'
    up.script(K1, plain(answer))
    g = once()
    a = cgi.start(g, body, how).finish()
    assert (a.status, a.body) == (200, answer)
    assert up.last.body == body
    assert a.out.startswith(b"Status: 200 OK\r\n")
    assert a.header("X-Sluice-Account") == "A1" and a.header("X-Request-Id").startswith("req_")
    assert g.account()["success"] == 1
    assert [e["status"] for e in g.logs() if e["msg"] == "request"] == [200]


@WAYS
def test_stream_event_by_event(up, once, how):
    chunks = chat_chunks("a", "b", "c", "d")
    up.script(K1, stream(chunks, "events", gap=0.4))
    a = cgi.open(once(), how=how).finish()
    assert a.body == sse(chunks)
    # 1.2 s apart; what is collected comes at once
    assert a.when(b'"d"') - a.when(b'"a"') > 0.4
    assert a.header("X-Accel-Buffering") == "no"


@WAYS
def test_who_saw_the_end_sees_its_effects(up, once, how):
    g = once(accounts=1)
    for n in range(1, 6):
        a = cgi.open(g, stream=n % 2, how=how)
        while not a.eof:
            a.step(5)
        assert (g.in_flight(), g.account()["success"]) == (0, n)
        a.finish()


def test_heads_options_and_unknown_paths(up, once):
    g = once()
    assert cgi.get(g, "/nope").error["code"] == "not_found"
    a = cgi.get(g, "/v1/models", method="HEAD")
    assert (a.status, a.body) == (200, b"")
    a = cgi.get(g, "/v1/chat/completions", method="GET")
    assert (a.status, a.header("Allow")) == (405, "POST, OPTIONS")
    a = cgi.get(g, "/healthz")
    assert (a.status, a.json()["healthy"]) == (200, 3)
    assert up.count() == 0


def test_errors_end_with_0_too(up, once):
    up.script(K1, error(400, "context_length_exceeded", "too long"))
    g = once()
    a = cgi.ask(g)
    assert (a.status, a.end) == (400, 0)
    a = cgi.start(g, b"{").finish()
    assert (a.status, a.error["type"]) == (400, "invalid_request_error")


def test_a_cooldown_is_remembered_by_the_next_process(up, once):
    up.script(K1, error(429, "rate_limit_exceeded", headers={"Retry-After": "60"}))
    g = once()
    assert cgi.ask(g).header("X-Sluice-Account") == "A2"
    for _ in range(3):
        assert cgi.ask(g).header("X-Sluice-Account") == "A2"
    assert (up.count(K1), up.count(K2)) == (1, 4)
    assert 50 < g.cooling_for("A1") <= 60


def test_a_session_is_kept(up, once):
    g = once(accounts=4, tiers=False)
    first = cgi.ask(g, vary={"HTTP_X_SESSION_ID": "s1"}).header("X-Sluice-Account")
    for _ in range(6):
        a = cgi.ask(g, vary={"HTTP_X_SESSION_ID": "s1"})
        assert a.header("X-Sluice-Account") == first


def test_limits_hold_over_processes(up, once):
    up.default(slow(0.6))
    g = once(accounts=1, account={"A1": {"max_in_flight": 2}}, pool={"queue_timeout": "0s"})
    running = [cgi.open(g, stream=False) for _ in range(2)]
    up.wait_for(2)
    a = cgi.ask(g)
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert g.in_flight() == 2
    assert [r.finish().status for r in running] == [200, 200]
    assert g.in_flight() == 0


def test_a_waiter_gets_the_place_of_another_process(up, once):
    up.default(slow(0.4))
    limit = {"A1": {"max_in_flight": 1}}
    g = once(accounts=1, account=limit, pool={"queue_size": 8, "queue_timeout": "5s"})
    first = cgi.open(g, stream=False)
    up.wait_for(1)
    assert cgi.ask(g).status == 200
    first.finish()


def test_a_mix_with_a_pool_of_workers(up, gate):
    """One store: what a CGI process learns, the workers know."""
    up.script(K1, error(429, "rate_limit_exceeded", headers={"Retry-After": "60"}))
    g = gate()
    assert cgi.ask(g).header("X-Sluice-Account") == "A2"
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert up.count(K1) == 1
    assert g.status()["config"]["generation"] == 1


# The client goes ---------------------------------------------------------------------------------


def gone_at_once(up, g, a, since):
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed", 0.002)
    assert up.requests[0].aborted_at - since < 0.3
    a.wait()
    assert a.end == 0
    wait_until(lambda: g.in_flight() == 0, 0.5, "the lease is free")
    g.assert_clean()
    row = [r for r in ledger(g) if r["account"] == "A1"]
    assert sum(r["cancelled"] for r in row) == 1
    assert any(e.get("outcome") == "cancelled" for e in g.logs())


@WAYS
@pytest.mark.parametrize("by", ["close", "terminate"])
@pytest.mark.parametrize("streamed", [True, False])
def test_client_goes_while_the_upstream_is_silent(up, once, how, by, streamed):
    up.script(K1, hang())
    g = once()
    a = cgi.open(g, stream=streamed, how=how)
    up.wait_for(1)
    time.sleep(0.2)
    since = time.monotonic()
    getattr(a, by)()
    gone_at_once(up, g, a, since)
    a.close()


@WAYS
@pytest.mark.parametrize("by", ["close", "terminate"])
def test_client_goes_in_mid_stream(up, once, how, by):
    up.script(K1, stream([chunk({"content": "begun"})], end="hold"))
    g = once()
    a = cgi.open(g, how=how).until(b"begun")
    since = time.monotonic()
    getattr(a, by)()
    gone_at_once(up, g, a, since)
    a.close()


@pytest.mark.parametrize("by", ["close", "terminate"])
def test_client_goes_while_it_waits_in_the_queue(up, once, by):
    up.default(hang())
    limit = {"A1": {"max_in_flight": 1}}
    g = once(accounts=1, account=limit, pool={"queue_size": 8, "queue_timeout": "9s"})
    first = cgi.open(g)
    up.wait_for(1)
    second = cgi.open(g)
    waiting = lambda: g.status()["totals"]["waiting"]
    wait_until(lambda: waiting() == 1, 3, "it waits")
    getattr(second, by)()
    second.wait(1)
    assert waiting() == 0
    second.close()
    first.terminate()
    first.wait()
    first.close()
    assert up.count() == 1


def test_a_killed_process_leaves_no_lease(up, once):
    up.script(K1, hang(), ok())
    g = once(accounts=1, account={"A1": {"max_in_flight": 1}})
    a = cgi.open(g)
    up.wait_for(1)
    a.kill().close()
    assert cgi.ask(g).status == 200
    assert g.in_flight() == 0


@WAYS
def test_a_reader_that_takes_nothing_has_gone(up, once, how):
    up.script(K1, plain(chat_answer("x" * 6_000_000)))
    g = once(server={"client_timeout": "400ms"})
    a = cgi.open(g, stream=False, how=how)
    a.wait(8)
    a.close()
    assert a.end == 0
    assert any(e.get("outcome") == "ok" and e["bytes_out"] < 6_000_000 for e in g.logs()) or any(
        e.get("outcome") == "cancelled" for e in g.logs()
    )


def test_a_slow_reader_gets_all(up, once):
    text = "x" * 600_000
    up.script(K1, plain(chat_answer(text)))
    a = cgi.open(once(server={"client_timeout": "1s"}), stream=False)
    while not a.eof:
        assert len(a.out) < 1_000_000
        a.drain(0.02)
        time.sleep(0.02)
    assert a.finish().json()["choices"][0]["message"]["content"] == text


# How it is started --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["-c", "/etc/passwd"],
        ["--listen", "127.0.0.1:1"],
        ["--workers", "9"],
        ["-h", "x y"],
        ["--nope"],
    ],
)
def test_the_query_string_is_no_command_line(up, once, argv):
    """A server makes `?--help` or `?-c+FILE` to arguments (RFC 3875, 4.4)."""
    a = cgi.start(once(), method="GET", path="/healthz", query="+".join(argv), argv=argv).finish()
    assert (a.status, a.json()["service"]) == (200, "sluice")


def test_a_file_beside_the_program(up, once):
    g = once()
    os.mkdir(g.dir + "/bin")
    program = shutil.copy(PROGRAM, g.dir + "/bin/sluice.cgi")
    os.rename(g.path, g.dir + "/bin/sluice.json")
    g.path = g.dir + "/bin/sluice.json"
    a = cgi.start(g, method="GET", path="/healthz", program=program, env={"SLUICE_CONFIG": None})
    assert a.finish().json()["total"] == 3


@pytest.mark.parametrize(
    "break_it, word",
    [
        (lambda g: g.write("{ not json"), "sluice.json"),
        (lambda g: os.unlink(g.path), "sluice.json"),
        (lambda g: os.chmod(g.path, 0o644), "sluice.json"),
        (lambda g: g.write(json.dumps(g.conf).replace("state_dir", "state_dri")), "state_dri"),
        (
            lambda g: g.write({**g.conf, "log": {"target": "/nonexistent/log"}}),
            "log.target",
        ),
        (
            lambda g: g.write(
                {**g.conf, "channels": {"oa": {**g.conf["channels"]["oa"], **TLS}}},
            ),
            "/nonexistent/ca.pem",
        ),
    ],
)
@WAYS
def test_a_broken_configuration(up, once, how, break_it, word):
    """A CGI answer for the client that names nothing, the reason for the log."""
    g = once()
    break_it(g)
    body = json.dumps({"model": "m1", "messages": []}).encode() + b" " * 300_000
    a = cgi.start(g, body, how, errors=True).finish()
    assert (a.status, a.error["code"]) == (503, "misconfigured")
    assert a.out.startswith(b"Status: 503 ")
    assert b"/" not in a.body.replace(b"application/json", b"")
    assert word in a.errors.decode()
    said = [e for e in a.errors.decode().splitlines() if "running as root" not in e]
    assert all(line.startswith("sluice: ") for line in said)


TLS = {"base_url": "https://127.0.0.1:1/v1", "upstream": {"ca_file": "/nonexistent/ca.pem"}}


def test_without_a_store(up, once):
    g = once(allow=["store"])
    with open(g.dir + "/state", "w"):
        pass
    a = cgi.ask(g)
    assert (a.status, a.error["code"]) == (503, "store_unavailable")
    assert g.dir not in a.body.decode()


def test_a_configuration_below_the_document_root(up, once):
    g = once(allow=["document root"])
    a = cgi.ask(g, vary={"DOCUMENT_ROOT": g.dir})
    assert (a.status, a.error["code"]) == (503, "misconfigured")


def test_users_come_from_the_server_alone(up, once):
    g = once(auth={"mode": "web-server"})
    assert cgi.ask(g).status == 401
    assert cgi.ask(g, vary={"HTTP_REMOTE_USER": "eve"}).status == 401
    assert cgi.ask(g, vary={"REMOTE_USER": "ann"}).status == 200


# Afterwards ----------------------------------------------------------------------------------------


def test_what_is_due_is_done_after_the_answer(up, once):
    """Saving and sweeping in the store; nothing that asks a provider: that is for `tick`."""
    up.default(by_path(), K1)
    up.script(K1, error(500))
    g = once(accounts=2, pool={"disable_after": 1}, allow=["A1"], probe={"recover_every": "1s"})
    for _ in range(4):
        cgi.ask(g)
        time.sleep(0.4)
    assert os.path.exists(g.dir + "/state/book/data.mdb")
    assert (g.account()["state"], gets(up)) == ("disabled", [])
    g.ctl("tick")
    assert (g.account()["state"], len(gets(up))) == ("active", 1)


@pytest.mark.waits
def test_nobody_waits_for_what_is_done_afterwards(up, once):
    """A slow disk: here somebody else holds the lock of `book`. mod_cgi waits for the end of standard
    error, too.
    """
    g = once(accounts=1)
    cgi.ask(g)
    time.sleep(4.1)
    with open(g.dir + "/state/book.lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        a = cgi.open(g, stream=False, errors=True)
        while not a.eof:
            assert a.step(3) or a.eof
        said = a.child.stderr.read()
        assert a.child.poll() is None
        assert (a.status, a.took < 2) == (200, True)
        assert json.loads(said.splitlines()[-1])["status"] == 200
    a.finish()


def test_no_reader_is_left_behind(up, once):
    """150 processes one after the other, more than LMDB would have room for."""
    g = once(accounts=1)
    for _ in range(150):
        assert cgi.get(g, "/healthz").status == 200
    assert not [e for e in g.logs() if e["level"] == "error"]


def test_many_at_once(up, once):
    up.default(slow(0.3))
    g = once(accounts=8, tiers=False)
    running = [cgi.open(g, stream=n % 2 == 0, how=("pipe", "socket")[n % 2]) for n in range(24)]
    assert [a.finish().status for a in running] == [200] * 24
    assert sum(a["success"] for a in g.accounts().values()) == 24
    assert g.in_flight() == 0
