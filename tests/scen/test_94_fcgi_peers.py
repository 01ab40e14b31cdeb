"""Peers that speak FastCGI wrongly, slowly or not at all (SPEC 2, 5; hosting.md 5, 10): each ends
nothing but its own connection. The process stays the same, whatever came.
"""

import os
import resource
import socket
import struct
import time

import pytest

from lib import fcgi
from lib.answers import chat_answer, plain
from lib.pool import K1

BODY = b'{"model":"m1","messages":[{"role":"user","content":"x"}]}'
DROPPED = "a connection was dropped"
HEAD_S = 10  # for the variables


def variables(body=BODY, **extra):
    return fcgi.params(fcgi.variables(body=body, **extra))


def head(keep=False, role=fcgi.RESPONDER, **extra):
    return fcgi.begin(role, keep) + fcgi.records(fcgi.PARAMS, variables(**extra))


def whole(**extra):
    return head(**extra) + fcgi.records(fcgi.STDIN, BODY)


def wire(g, data=b""):
    w = fcgi.Wire(g.address)
    w.send(data)
    return w


def closed_within(w, seconds):
    """Seconds until our side sees the end; None if it does not."""
    began = time.monotonic()
    a = fcgi.Answer(w)
    a.drain(seconds)
    return time.monotonic() - began if a.eof else None


class Steady:
    """The same workers before and after, and the next request is served at once."""

    def __init__(self, g):
        self.g, self.pids = g, sorted(g.worker_pids())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        a = self.g.ask()
        assert (a.status, a.took < 1) == (200, True), (a.out, a.took)
        assert sorted(self.g.worker_pids()) == self.pids
        assert self.g.in_flight() == 0


# Broken at once ----------------------------------------------------------------------------------

REFUSED = {
    "garbage": b"\xff" * 5000,
    "http": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "version 2": b"\x02" + fcgi.begin()[1:],
    "a version that turns wrong": fcgi.begin() + b"\x00" * 8,
    "variables without a begin": fcgi.records(fcgi.PARAMS, variables()),
    "a begin of 4 bytes": fcgi.record(fcgi.BEGIN, b"\0\1\0\0"),
    "the begin twice": fcgi.begin() + fcgi.begin(),
    "the body among the variables": fcgi.begin() + fcgi.record(fcgi.STDIN, BODY),
    "lengths of 2 GiB": fcgi.begin() + fcgi.records(fcgi.PARAMS, b"\xff" * 8 + b"x" * 30),
    # what makes libfcgi add up its lengths, fail to allocate, and abort
    "lengths of 2 GiB - 2": fcgi.begin()
    + fcgi.records(fcgi.PARAMS, b"\xff\xff\xff\xfe" * 2 + b"x" * 30),
    "a name of 2 GiB": fcgi.begin()
    + fcgi.records(fcgi.PARAMS, b"\xff\xff\xff\xe0\x10" + b"x" * 30),
    "variables that are cut": fcgi.begin() + fcgi.records(fcgi.PARAMS, variables()[:-3]),
    "2,000 variables": fcgi.begin() + fcgi.records(fcgi.PARAMS, b"\x01\x00A" * 2000),
    "an unknown kind": fcgi.begin() + fcgi.record(99, b"x"),
}


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_refused_at_once(up, gate, listen):
    """Closed within a moment though the peer keeps its side open, in the same process."""
    g = gate(workers=1, listen=listen, allow=[DROPPED])
    for what, data in REFUSED.items():
        with Steady(g):
            w = wire(g, data)
            took = closed_within(w, 2)
            assert took is not None and took < 1, what
            w.close()
    assert up.count() == len(REFUSED)


def test_the_log_names_it_but_is_not_filled(up, gate):
    g = gate(workers=1, allow=[DROPPED])
    for _ in range(20):
        closed_within(wire(g, REFUSED["http"]), 2)
    g.ask()
    lines = [x for x in g.logs() if x["msg"] == DROPPED]
    assert [x["why"] for x in lines] == ["no FastCGI"]


@pytest.mark.parametrize("role", [2, 3, 9])
def test_roles_that_are_not_played(up, gate, role):
    """AUTHORIZER, FILTER: refused as the protocol has it. An answer 200 would let everybody in."""
    g = gate(workers=1, allow=[DROPPED])
    with Steady(g):
        for extra in ({"method": "GET", "path": "/healthz"}, {}):
            a = fcgi.Answer(wire(g, whole(role=role, **extra)))
            a.finish(2)
            assert (a.end, a.out) == ((0, 3), b"")  # FCGI_UNKNOWN_ROLE
    assert up.count() == 1


def test_records_about_the_connection(up, gate):
    """GET_VALUES is answered, unknown ones are named, and the request is served."""
    ask = fcgi.record(fcgi.GET_VALUES, fcgi.params({"FCGI_MPXS_CONNS": ""}), request=0)
    odd = fcgi.record(77, b"xx", request=0)
    g = gate(workers=1)
    with Steady(g):
        a = fcgi.Answer(wire(g, ask + odd + whole())).finish()
        assert a.status == 200
        assert fcgi.params({"FCGI_MPXS_CONNS": "0"}) in a.others[fcgi.GET_VALUES_RESULT]
        assert a.others[fcgi.UNKNOWN] == struct.pack("!B7x", 77)


def test_one_request_a_connection(up, gate):
    """FCGI_KEEP_CONN: answered, then closed. A second request beside it is refused (CANT_MPX)."""
    g = gate(workers=1)
    second = fcgi.record(fcgi.BEGIN, struct.pack("!HB5x", 1, 1), request=2)
    with Steady(g):
        w = wire(g, fcgi.begin(keep=True) + second + head()[len(fcgi.begin()) :])
        w.send(fcgi.record(fcgi.STDIN, b"of another", request=2))
        w.send(fcgi.records(fcgi.STDIN, BODY))
        a = fcgi.Answer(w)
        a.to_close(3)
        assert a.ends == {2: (0, 1), 1: (0, 0)} and a.status == 200
    assert up.requests[0].body == BODY


# Slow --------------------------------------------------------------------------------------------

SLOW = {
    "silent": (b"", b""),
    "half a begin": (fcgi.begin()[:5], b""),
    "begin alone": (fcgi.begin(), b""),
    "a byte a second": (fcgi.begin(), fcgi.records(fcgi.PARAMS, b"\x01\x01Ab" * 900, 9)),
    "records of nobody": (fcgi.begin(), fcgi.record(fcgi.STDIN, b"x" * 400, request=7) * 50),
    "records of the connection": (fcgi.begin(), fcgi.record(50, b"x" * 400, request=0) * 50),
}


@pytest.mark.waits
@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_a_peer_has_ten_seconds_for_its_head(up, gate, listen):
    """In all, not for each byte. Others are served at once, by who is free and then by all."""
    g = gate(workers=len(SLOW) + 1, listen=listen, allow=[DROPPED])
    pids = sorted(g.worker_pids())
    began = time.monotonic()
    wires = {what: (wire(g, first), more) for what, (first, more) in SLOW.items()}
    ends = {}
    at = 0
    while len(ends) < len(wires) and time.monotonic() - began < HEAD_S + 5:
        assert g.ask().took < 1
        for what, (w, more) in wires.items():
            try:
                if what not in ends and more:
                    w.send(more[at : at + 1])
                if what not in ends and fcgi.Answer(w).drain(0.05).eof:
                    ends[what] = time.monotonic() - began
            except OSError:
                ends[what] = time.monotonic() - began
        at += 1
        time.sleep(0.5)
    assert set(ends) == set(SLOW), ends
    assert all(HEAD_S - 1 < t < HEAD_S + 4 for t in ends.values()), ends
    assert sorted(g.worker_pids()) == pids and g.in_flight() == 0


def test_variables_have_a_size(up, gate):
    """1 MiB, and the memory is given back."""
    g = gate(workers=1, allow=[DROPPED])
    fine = fcgi.variables(body=BODY, headers={f"X-{i}": "v" * 60_000 for i in range(17)})
    with Steady(g):
        a = fcgi.Answer(wire(g, fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(fine))))
        a.wire.send(fcgi.records(fcgi.STDIN, BODY))
        assert a.finish().status == 200

    def endless(w):
        piece = fcgi.record(fcgi.PARAMS, fcgi.params({"X": "v" * 60_000}))
        for _ in range(2000):
            w.send(piece)

    with Steady(g):
        for _ in range(3):
            with pytest.raises(OSError):
                endless(wire(g, fcgi.begin()))
    (pid,) = g.worker_pids()
    with open(f"/proc/{pid}/status") as f:
        peak = int(next(x for x in f if x.startswith("VmHWM")).split()[1])
    assert peak < (40_000 if "asan" not in os.environ.get("SLUICE_BUILD", "") else 900_000)


def test_slow_upload_has_a_least_rate(up, gate):
    """client_timeout, and a second for each 500 bytes: never a worker for ever."""
    g = gate(workers=1, server={"client_timeout": "1s"})
    body = BODY[:-1] + b',"x":"' + b"y" * 2000 + b'"}'
    with Steady(g):
        w = wire(g, head(body=body))
        began = time.monotonic()
        a = fcgi.Answer(w)
        for i in range(100):  # 10 bytes each 200 ms: each piece in time, the whole not
            w.send(fcgi.record(fcgi.STDIN, body[i * 10 : i * 10 + 10]))
            a.drain(0.2)
            if a.out:
                break
        assert a.finish().status == 408 and a.error["code"] == "request_timeout"
        assert 0.9 < time.monotonic() - began < 3
    up.clear()
    w = wire(g, head(body=body))
    for i in range(0, len(body), 200):  # 1,000 bytes a second
        w.send(fcgi.record(fcgi.STDIN, body[i : i + 200]))
        time.sleep(0.2)
    w.send(fcgi.record(fcgi.STDIN))
    assert fcgi.Answer(w).finish().status == 200 and up.last.body == body


def test_stalled_upload(up, gate):
    """No byte for client_timeout: 408, whatever else comes on the connection."""
    noise = fcgi.record(fcgi.STDIN, b"z" * 100, request=5)
    g = gate(workers=1, server={"client_timeout": "1s"})
    with Steady(g):
        w = wire(g, head() + fcgi.record(fcgi.STDIN, BODY[:20]))
        a = fcgi.Answer(w)
        for _ in range(40):
            w.send(noise)
            if a.drain(0.1).out:
                break
        assert a.finish().status == 408 and 0.9 < a.at + a.took - a.at < 3
    assert up.count() == 1


# The body ----------------------------------------------------------------------------------------


def test_body_without_end(up, gate):
    """Larger than max_body: 413 arrives, and the peer is cut off."""
    g = gate(workers=1, server={"max_body": "1M"})
    with Steady(g):
        w = wire(g, head(CONTENT_LENGTH=None))
        piece = fcgi.record(fcgi.STDIN, b" " * 60_000)
        a = fcgi.Answer(w)
        began = time.monotonic()
        try:
            while time.monotonic() - began < 10:
                w.send(piece)
        except OSError:
            pass
        assert time.monotonic() - began < 4
        assert a.finish().status == 413


@pytest.mark.parametrize("length", [str(len(BODY) + 9), "0", "7", "x", None])
def test_announced_length_is_only_checked_upwards(up, gate, length):
    g = gate(workers=1)
    a = fcgi.Answer(wire(g, whole(CONTENT_LENGTH=length))).finish()
    assert a.status == (400 if length == str(len(BODY) + 9) else 200)


EARLY = {
    "401": (401, {"auth": {"mode": "web-server"}}, {}),
    "404": (404, {}, {"path": "/v1/nothing"}),
    "405": (405, {}, {"method": "DELETE"}),
    "413": (413, {"server": {"max_body": "64k"}}, {"CONTENT_LENGTH": "9999999"}),
}


@pytest.mark.parametrize("listen", ["unix", "tcp"])
@pytest.mark.parametrize("what", EARLY)
def test_early_refusal_arrives(up, gate, listen, what):
    """Also at a server that reads only when it has sent the whole body (mod_fcgid)."""
    status, conf, extra = EARLY[what]
    g = gate(workers=1, listen=listen, **conf)
    w = wire(g, head(**extra))
    time.sleep(0.1)
    w.send(fcgi.records(fcgi.STDIN, b"x" * 8_000_000))
    a = fcgi.Answer(w).finish()
    assert (a.status, a.end) == (status, (0, 0))
    assert g.get("/healthz").took < 1


def test_early_refusal_frees_the_worker(up, gate):
    """The peer goes on sending, or only stays: who waits is served at once."""
    g = gate(workers=1, server={"max_body": "64k"})
    for more in (b"", b"x" * 1000):
        w = wire(g, head(CONTENT_LENGTH="9999999") + fcgi.record(fcgi.STDIN, b"x" * 100))
        a = fcgi.Answer(w).until(lambda a: a.end, 2)
        assert a.status == 413
        if more:
            w.send(fcgi.record(fcgi.STDIN, more))
        b = g.ask()
        assert b.status == 200 and b.took < 0.5
        w.close()
    began = time.monotonic()
    w = wire(g, head(CONTENT_LENGTH="9999999"))
    fcgi.Answer(w).to_close(4)  # nobody waits: it is let finish, but not for long
    assert time.monotonic() - began < 3


def test_small_refused_body_does_not_linger(up, gate):
    g = gate(workers=1, auth={"mode": "web-server"})
    began = time.monotonic()
    for _ in range(20):
        a = fcgi.Answer(wire(g, whole()))
        a.to_close(2)
        assert a.status == 401
    assert time.monotonic() - began < 1


# Aborts ------------------------------------------------------------------------------------------

ABORT = fcgi.record(fcgi.ABORT)
ABORTS = {
    "before the variables": fcgi.begin() + ABORT,
    "among the variables": fcgi.begin() + fcgi.record(fcgi.PARAMS, b"\x01\x01Ab") + ABORT,
    "before the body": head() + ABORT,
    "in the body": head() + fcgi.record(fcgi.STDIN, BODY[:9]) + ABORT,
    "behind the body, in the same moment": whole() + ABORT,
    "of another request": head()
    + fcgi.record(fcgi.ABORT, request=4)
    + fcgi.records(fcgi.STDIN, BODY),
}


@pytest.mark.parametrize("what", ABORTS)
def test_abort(up, gate, what):
    """The end record, no answer, nothing upstream; at once."""
    g = gate(workers=1)
    with Steady(g):
        a = fcgi.Answer(wire(g, ABORTS[what]))
        a.to_close(2)
        assert a.end == (0, 0) and a.took < 1
        served = what == "of another request"
        assert (b"Status: 200" in a.out) == served
        assert up.count() == int(served)


CLOSES = {
    "at once": b"",
    "behind the begin": fcgi.begin(),
    "in the variables": fcgi.begin() + fcgi.record(fcgi.PARAMS, b"\x01\x05Ab"),
    "before the body": head(),
    "in the body": head() + fcgi.record(fcgi.STDIN, BODY[:9]),
    "in a record's head": head() + fcgi.record(fcgi.STDIN, BODY)[:5],
    "behind the body": whole(),
}


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_closed_at_each_stage(up, gate, listen):
    g = gate(workers=1, listen=listen, allow=[DROPPED])
    for what, data in CLOSES.items():
        for how in ("close", "reset"):
            with Steady(g):
                w = wire(g, data)
                time.sleep(0.05)
                getattr(w, how)()
    g.assert_clean()


# The answer --------------------------------------------------------------------------------------


def test_peer_that_never_reads(up, gate):
    """A plain answer larger than the sockets hold: over after client_timeout."""
    up.script(K1, plain(chat_answer("y" * 4_000_000)))
    g = gate(workers=1, server={"client_timeout": "1s"})
    w = wire(g, whole())
    up.wait_for(1)
    began = time.monotonic()
    a = g.ask()
    assert a.status == 200 and 0.5 < time.monotonic() - began < 4
    assert g.in_flight() == 0
    g.assert_clean()
    w.close()


def test_peer_that_reads_slowly(up, gate):
    """As long as some is taken each client_timeout, all of it comes."""
    answer = chat_answer("y" * 1_500_000)
    up.script(K1, plain(answer))
    g = gate(workers=1, server={"client_timeout": "1s"})
    w = fcgi.Wire(g.address)
    w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    w.send(whole())
    a = fcgi.Answer(w)
    while not (a.end or a.eof) and time.monotonic() - a.at < 15:
        time.sleep(0.15)
        a.step(1)
    assert a.end == (0, 0) and a.status == 200
    assert a.took > 1 and len(a.body) > 1_500_000


# Descriptors -------------------------------------------------------------------------------------


@pytest.mark.waits
def test_no_descriptor_for_a_connection(up, gate):
    """EMFILE: it waits without spinning, says so, and serves when there is room again."""
    g = gate(workers=1, allow=["no connection can be accepted"])
    (pid,) = g.worker_pids()
    g.ask()
    time.sleep(1.2)  # past the tick, which opens files
    used = {int(n) for n in os.listdir(f"/proc/{pid}/fd")}
    free = next(n for n in range(len(used) + 1) if n not in used)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, hard))
    a = g.send(method="GET", path="/healthz")

    def cpu():
        with open(f"/proc/{pid}/stat") as f:
            parts = f.read().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu()
    a.drain(1.5)
    assert not a.out and cpu() - before < 0.5
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert a.finish(3).status == 200
    assert g.worker_pids() == [pid]
    assert [x["why"] for x in g.logs() if "accepted" in x["msg"]] == ["Too many open files"]
