"""In-flight leases and clients that go (LEASE-01, 02, 05..11; SPEC 5, 7)."""

import time

import pytest

from lib.answers import chat_chunks, chunk, hang, slow, sse, stream
from lib import fcgi
from lib.pool import K1
from lib.upstream import wait_until


def trickle(seconds=20, every=0.1):
    def act(x):
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for i in range(int(seconds / every)):
            x.send(sse([chunk({"content": f"t{i} "})]))
            x.pause(every)
        x.send(sse([chunk({}, "stop"), "[DONE]"]))
        x.fin()

    return act


def test_lease_is_seen_and_freed(up, gate):
    up.script(K1, slow(0.5))
    g = gate()
    a = g.open()
    up.wait_for(1)
    s = g.status()
    assert s["totals"]["in_flight"] == 1
    assert g.account()["in_flight"] == 1
    a.finish()
    assert g.in_flight() == 0


@pytest.mark.parametrize("listen", ["unix", "tcp"])
@pytest.mark.parametrize("streamed", [True, False])
def test_client_goes_while_the_upstream_is_silent(up, gate, listen, streamed):
    """LEASE-07, SPEC 5: within 100 ms the upstream is closed and the lease free."""
    up.script(K1, hang())
    g = gate(listen=listen)
    a = g.open(stream=streamed)
    up.wait_for(1)
    time.sleep(0.3)
    gone = time.monotonic()
    a.close()
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed", 0.002)
    assert up.requests[0].aborted_at - gone < 0.2
    wait_until(lambda: g.in_flight() == 0, 0.5, "the lease is free")
    g.assert_clean()
    assert up.count() == 1


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_client_goes_in_mid_stream(up, gate, listen):
    """LEASE-08: nobody's failure."""
    up.script(K1, trickle())
    g = gate(listen=listen)
    a = g.open().until(b"t3 ")
    gone = time.monotonic()
    a.close()
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed")
    assert up.requests[0].aborted_at - gone < 0.5
    wait_until(lambda: g.in_flight() == 0, 1, "the lease is free")
    g.assert_clean()
    assert g.account()["success"] == 0


def test_client_resets_in_mid_stream(up, gate):
    up.script(K1, trickle())
    g = gate(listen="tcp")
    a = g.open().until(b"t2 ")
    a.wire.reset()
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed")
    g.assert_clean()


def test_client_goes_in_a_silent_stretch(up, gate):
    up.script(K1, stream([chunk({"content": "begun"})], end="hold"))
    g = gate()
    a = g.open().until(b"begun")
    gone = time.monotonic()
    a.close()
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed", 0.002)
    assert up.requests[0].aborted_at - gone < 0.2
    g.assert_clean()


def test_cancelled_usage_is_estimated(up, gate):
    """LEASE-09: a cancelled stream is not free."""
    up.script(K1, trickle())
    g = gate()
    a = g.open().until(b"t8 ")
    a.close()
    wait_until(lambda: g.in_flight() == 0, 1, "the lease is free")
    tokens = g.account()["tokens"]
    assert tokens["completion"] > 0 and tokens["prompt"] > 0
    wait_until(
        lambda: any("cancelled" in str(x) for x in g.logs()), 2, "a log line that says cancelled"
    )


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_half_close_is_no_disconnect(up, gate, listen):
    """LEASE-06 (a): the whole answer still comes."""
    up.script(K1, slow(0.4, stream(chat_chunks("a", "b"), "events", gap=0.1)))
    g = gate(listen=listen)
    a = g.open()
    a.wire.half_close()
    assert a.finish().body == sse(chat_chunks("a", "b"))
    g.assert_clean()
    assert g.account()["success"] == 1


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_half_close_while_the_upstream_is_silent(up, gate, listen):
    """LEASE-06 (b): it is also how lighttpd's tcp-fin-propagate says that the client has gone
    (hosting.md 3), so it must not hold a lease for long.
    """
    up.script(K1, hang())
    g = gate(listen=listen)
    a = g.open()
    up.wait_for(1)
    a.wire.half_close()
    wait_until(lambda: up.requests[0].aborted_at, 3, "the upstream was closed")
    wait_until(lambda: g.in_flight() == 0, 1, "the lease is free")
    g.assert_clean()
    a.close()


def test_abort_record(up, gate):
    """FCGI_ABORT_REQUEST ends the request."""
    up.script(K1, hang())
    g = gate()
    a = g.open()
    up.wait_for(1)
    a.wire.send(fcgi.record(fcgi.ABORT))
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed")
    wait_until(lambda: g.in_flight() == 0, 1, "the lease is free")


def test_resets_before_the_stream_starts(up, gate):
    """LEASE-02"""
    up.default(slow(0.02))
    g = gate(workers=4, listen="tcp")
    for i in range(200):
        a = g.open()
        a.wire.reset() if i % 2 else a.close()
    wait_until(lambda: up.running() == 0 and g.in_flight() == 0, 10, "nothing in flight", 0.1)
    assert g.ask(stream=True).status == 200
    assert len(g.worker_pids()) == 4
    g.assert_clean()


def test_close_in_the_same_moment_as_the_last_byte(up, gate):
    """LEASE-05: no double release."""
    g = gate(accounts=1, workers=4, pool={"max_in_flight": 2})
    for i in range(100):
        a = g.open()
        a.until(lambda a: b"[DONE]" in a.out if i % 2 else a.out)
        a.close()
    wait_until(lambda: g.in_flight() == 0, 3, "nothing in flight")
    up.default(slow(0.2))
    up.max_in_flight.clear()
    answers = [g.open(stream=False) for _ in range(4)]
    codes = sorted(a.finish().status for a in answers)
    assert codes == [200, 200, 429, 429]
    assert up.max_in_flight[K1] == 2
    assert g.account()["in_flight"] == 0


def test_abort_during_upload(up, gate):
    """LEASE-10: no lease before the body is complete."""
    g = gate(workers=2)
    for _ in range(6):
        wire = fcgi.Wire(g.address)
        head = fcgi.begin() + fcgi.records(
            fcgi.PARAMS, fcgi.params(fcgi.variables(CONTENT_LENGTH="27000000"))
        )
        wire.send(head + b"".join(fcgi.record(fcgi.STDIN, b"x" * 65528) for _ in range(20)))
        wire.close()
    a = g.ask()
    assert a.status == 200
    assert up.count() == 1
    assert g.in_flight() == 0


def test_slow_upload_takes_no_lease(up, gate):
    g = gate(workers=2)
    wire = fcgi.Wire(g.address)
    body = b'{"model":"m1","messages":[{"role":"user","content":"x"}]}'
    wire.send(fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=body))))
    wire.send(fcgi.record(fcgi.STDIN, body[:20]))
    time.sleep(0.3)
    assert g.in_flight() == 0 and up.count() == 0
    wire.send(fcgi.record(fcgi.STDIN, body[20:]) + fcgi.record(fcgi.STDIN))
    a = fcgi.Answer(wire).finish()
    assert a.status == 200 and up.last.body == body


def test_client_that_takes_no_byte(up, gate):
    """SPEC 5: a client that takes no byte for client_timeout has gone."""

    def flood(x):
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        part = sse([chunk({"content": "y" * 8000})])
        for _ in range(4000):
            x.send(part)

    up.script(K1, flood)
    g = gate(server={"client_timeout": "1s"})
    a = g.open().until(b"yyy")
    wait_until(lambda: up.requests[0].aborted_at, 6, "the upstream was closed")
    wait_until(lambda: g.in_flight() == 0, 1, "the lease is free")
    g.assert_clean()
    a.close()


def test_settled_before_the_end_record(up, gate):
    """SPEC 5: whoever saw the end of an answer sees its effects."""
    g = gate(workers=3)
    for i in range(1, 16):
        g.ask(stream=bool(i % 2))
        a = g.account()
        assert (a["calls"], a["success"], a["in_flight"]) == (i, i, 0)
