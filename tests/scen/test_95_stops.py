"""Clients that go and signals that come, in each phase of a request (SPEC 2, 5; hosting.md 3, 4, 10),
in a single process as mod_fcgid runs it: what is abandoned is let go of at once, so that the next
request is not late; what is running ends within the drain, and no body is cut short.
"""

import os
import signal
import socket
import subprocess
import time

import pytest

from lib import fcgi
from lib.answers import chat_chunks, chunk, error, hang, raw, slow, sse, stream
from lib.pool import K1, PROGRAM, Pool, config
from lib.upstream import Blackhole, wait_until

BODY = b'{"model":"m1","messages":[{"role":"user","content":"x"}]}'


class Single(Pool):
    """One process without a master, its listening socket on descriptor 0."""

    def start(self, wait=True):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address[5:])
        self.listener.listen(64)
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.master = subprocess.Popen(
            [PROGRAM, "-c", self.path],
            stdin=self.listener,
            stdout=log,
            stderr=log,
            env=self.env,
            cwd=self.dir,
        )
        os.close(log)
        self.get("/healthz")
        return self

    def worker_pids(self):
        return [self.master.pid]

    def close(self):
        super().close()
        self.listener.close()


@pytest.fixture
def single(up):
    """single(**sections): the same as gate, but one process."""
    pools = []

    def start(allow=(), **vary):
        vary.setdefault("server", {"drain_timeout": "1s"})
        pools.append(Single(config(vary.pop("base_url", up.url), **vary), 0, allow=allow))
        return pools[-1]

    yield start
    for pool in pools:
        pool.close()


def upload(g, sent=20, **extra):
    """A request whose body has come in part."""
    wire = fcgi.Wire(g.address)
    wire.send(fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=BODY))))
    wire.send(fcgi.record(fcgi.STDIN, BODY[:sent]))
    return fcgi.Answer(wire)


def rest_of(answer, sent=20):
    answer.wire.send(fcgi.records(fcgi.STDIN, BODY[sent:]))
    return answer


def trickle(x):
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for i in range(300):
        x.send(sse([chunk({"content": f"t{i} "})]))
        x.pause(0.05)


HELD = stream([chunk({"content": "begun"})], end="hold")
PREAMBLE = stream([chunk({"role": "assistant", "content": ""})], end="hold")
HALF = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", end="hold")

# what the upstream does; whether a stream is asked for; what the client waits for before it goes
PHASES = {
    "first byte": (hang(), True, None),
    "first byte, plain": (hang(), False, None),
    "half a plain answer": (HALF, False, None),
    "before the commit": (PREAMBLE, True, None),
    "silent stream": (HELD, True, b"begun"),
    "writing stream": (trickle, True, b"t2 "),
}


def begun(g, up, phase, action, streamed, mark):
    up.script(K1, action)
    a = g.open(stream=streamed)
    up.wait_for(1)
    a.until(mark) if mark else time.sleep(0.2)
    return a


# The client goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("phase", PHASES)
def test_next_request_is_not_late(up, single, phase, how):
    """SPEC 5: the upstream is left within 100 ms, nobody is blamed, the ledger says cancelled."""
    g = single()
    a = begun(g, up, phase, *PHASES[phase])
    gone = time.monotonic()
    a.wire.send(fcgi.record(fcgi.ABORT)) if how == "abort" else a.close()
    assert g.ask().took < 0.5
    wait_until(lambda: up.requests[0].aborted_at, 1, "the upstream was left")
    assert up.requests[0].aborted_at - gone < 0.2
    g.assert_clean()
    rows = [x for x in g.logs() if x.get("outcome") == "cancelled"]
    assert len(rows) == 1
    books = g.ctl("usage", "--json").stdout
    assert '"cancelled":1' in books.replace(" ", "")


def test_client_goes_while_connecting(up, single):
    hole = Blackhole()
    try:
        g = single(base_url=hole.url, upstream={"connect_timeout": "8s"})
        a = g.open()
        wait_until(lambda: g.in_flight() == 1, 2, "the lease is taken")
        a.close()
        wait_until(lambda: g.in_flight() == 0, 0.4, "the lease is free")
        assert g.get("/healthz").took < 0.5
        g.assert_clean()
    finally:
        hole.stop()


def test_client_goes_between_attempts(up, single):
    """No attempt starts for a client that has gone."""
    up.default(error(500), K1)
    g = single(upstream={"retry_backoff": "3s", "retry_backoff_max": "3s"})
    a = g.open()
    up.wait_for(1)
    time.sleep(0.1)
    a.close()
    assert g.get("/healthz").took < 0.5
    assert up.count() == 1 and g.in_flight() == 0


def test_client_goes_during_its_upload(up, single):
    g = single()
    upload(g).close()
    assert g.ask().took < 0.5
    assert up.count() == 1
    g.assert_clean()


# Signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("single_process", [True, False])
def test_signals_do_not_cut_a_body_short(up, single, gate, number, single_process):
    """hosting.md 10: libfcgi's read gave half of it and called it whole."""
    g = single() if single_process else gate(workers=1, server={"drain_timeout": "1s"})
    (pid,) = g.worker_pids()
    a = upload(g)
    time.sleep(0.2)  # taken by now
    for sent in (20, 30, 40):
        os.kill(pid, getattr(signal, number))
        time.sleep(0.1)
        a.wire.send(fcgi.record(fcgi.STDIN, BODY[sent : sent + 10]))
    rest_of(a, 50).finish()
    assert a.status == 200 and up.last.body == BODY


@pytest.mark.parametrize("phase", PHASES)
def test_sigterm(up, single, phase):
    """The drain, then an error: as an event behind a stream's bytes, and never like a clean end."""
    g = single(upstream={"idle_timeout": "30s", "first_byte_timeout": "30s"})
    a = begun(g, up, phase, *PHASES[phase])
    began = time.monotonic()
    g.master.terminate()
    a.finish(5)
    assert 0.8 < time.monotonic() - began < 2.5
    g.master.wait(1)
    if PHASES[phase][2]:
        assert a.events()[-1][1].startswith('{"error"') and b"[DONE]" not in a.body
    else:
        assert a.status == 503 and a.error["message"]
    assert a.end == (0, 0)


def test_sigterm_when_idle(up, single):
    g = single()
    g.ask()
    assert g.stop() < 0.5


def test_sigterm_lets_an_answer_end(up, single):
    up.script(K1, slow(0.4, stream(chat_chunks("a", "b"), "events", gap=0.1)))
    g = single(server={"drain_timeout": "5s"})
    a = g.open()
    up.wait_for(1)
    g.master.terminate()
    assert a.finish().body == sse(chat_chunks("a", "b"))
    g.master.wait(1)


def test_sigterm_during_an_upload(up, single):
    """A body that never ends: 503 after the drain."""
    g = single()
    a = upload(g)
    time.sleep(0.1)
    began = time.monotonic()
    g.master.terminate()
    a.finish(5)
    assert a.status == 503 and 0.8 < time.monotonic() - began < 2.5
    g.master.wait(1)
    assert up.count() == 0


def test_sigterm_between_attempts(up, single):
    up.default(error(500), K1)
    g = single(upstream={"retry_backoff": "9s", "retry_backoff_max": "9s"})
    a = g.open()
    up.wait_for(1)
    time.sleep(0.1)
    began = time.monotonic()
    g.master.terminate()
    a.finish(5)
    assert a.status in (200, 503) and time.monotonic() - began < 3  # the last one may be quick
    g.master.wait(1)


def test_sigterm_with_a_silent_connection(up, single):
    """Nothing was asked: it is given a second, not the whole drain."""
    g = single(server={"drain_timeout": "30s"})
    wire = fcgi.Wire(g.address)
    time.sleep(0.2)
    assert g.stop() < 2.5
    wire.close()


def test_sigterm_while_the_peer_does_not_read(up, single):
    def flood(x):
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for _ in range(3000):
            x.send(sse([chunk({"content": "y" * 8000})]))

    up.script(K1, flood)
    g = single()
    a = g.open()
    up.wait_for(1)
    time.sleep(0.5)
    assert g.stop() < 2.5
    a.close()


@pytest.mark.waits
def test_single_process_ends_before_mod_fcgid_kills_it(up, single):
    """Whatever drain_timeout says: 8 s after the first signal comes SIGKILL. A second changes nothing."""
    up.script(K1, HELD)
    g = single(server={"drain_timeout": "30s"}, upstream={"idle_timeout": "60s"})
    a = g.open().until(b"begun")
    began = time.monotonic()
    g.master.terminate()
    time.sleep(1)
    g.master.terminate()
    a.finish(9)
    assert 5 < time.monotonic() - began < 7.5
    assert a.events()[-1][1].startswith('{"error"')
    g.master.wait(1)
