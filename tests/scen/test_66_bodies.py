"""Bodies, over FastCGI and as plain CGI (SPEC 4.3, hosting.md 5): what is whole is taken, whatever
CONTENT_LENGTH says; what is cut never is.
"""

import time

import pytest

from lib import cgi, fcgi

HELLO = b'{"model":"m1","messages":[{"role":"user","content":"Hi"}]}'
MODES = pytest.mark.parametrize("mode", ["fcgi", "pipe", "socket"])
NOTHING = object()


def big(n):
    """A request of n bytes."""
    head, tail = b'{"model":"m1","messages":[{"role":"user","content":"', b'"}]}'
    return head + b"x" * (n - len(head) - len(tail)) + tail


@pytest.fixture
def send(up, gate):
    """send(mode, body, length): the answer, and the gate as send.gate."""

    def act(mode, body, length=NOTHING, conf={}, **vary):
        if length is not NOTHING:
            vary["CONTENT_LENGTH"] = length
        start(mode, conf)
        if mode == "fcgi":
            return act.gate.send(body, **vary)
        return cgi.start(act.gate, body, mode, **vary)

    def start(mode, conf):
        if act.gate is None:
            act.gate = gate(start=mode == "fcgi", **conf)
        return act.gate

    act.gate, act.start = None, start
    return act


@MODES
@pytest.mark.parametrize("length", [NOTHING, None, ""], ids=["given", "missing", "empty"])
def test_30_mb(up, send, mode, length):
    body = big(30_000_000)
    assert send(mode, body, length).finish().status == 200
    assert up.last.body == body
    assert up.last.header("Content-Length") == "30000000"


@MODES
@pytest.mark.parametrize(
    "length", ["-1", "-99999", "abc", "0x40", "1e3", "99999999999999999999", "58 58", "+", "NaN"]
)
def test_a_length_that_is_no_number_counts_as_none(up, send, mode, length):
    assert send(mode, HELLO, length).finish().status == 200
    assert up.last.body == HELLO


@MODES
def test_blanks_around_the_length(up, send, mode):
    assert send(mode, HELLO, f" {len(HELLO)} ").finish().status == 200


@MODES
@pytest.mark.parametrize("more", [1, 100, 70_000])
def test_shorter_than_announced_is_cut(up, send, mode, more):
    a = send(mode, HELLO, str(len(HELLO) + more)).finish()
    assert (a.status, a.error["type"]) == (400, "invalid_request_error")
    assert "CONTENT_LENGTH" in a.error["message"]
    assert up.count() == 0


@MODES
@pytest.mark.parametrize("n", [str(2**31), str(2**63 - 1), "33554433"])
def test_announced_too_large(up, send, mode, n):
    a = send(mode, HELLO, n).finish()
    assert (a.status, a.error["code"]) == (413, "request_too_large")
    assert up.count() == 0


@pytest.mark.parametrize("mode", ["pipe", "socket"])
def test_no_byte_is_taken_beyond_the_length(up, send, mode):
    """And nobody waits for an end of the input that may never come."""
    a = send(mode, HELLO, stdin=HELLO + b"garbage of the next request", whole=False)
    began = time.monotonic()
    assert a.finish().status == 200
    assert time.monotonic() - began < 2
    assert up.last.body == HELLO


@MODES
def test_a_length_that_cuts_is_no_request(up, send, mode):
    """Under CGI the length is the end. Over FastCGI the end is the server's, and the body is whole."""
    a = send(mode, HELLO, str(len(HELLO) - 5)).finish()
    assert a.status == (200 if mode == "fcgi" else 400)
    assert up.count() == (1 if mode == "fcgi" else 0)


@MODES
@pytest.mark.parametrize("length", ["0", None])
def test_no_body(up, send, mode, length):
    a = send(mode, b"", length).finish()
    assert (a.status, a.error["type"]) == (400, "invalid_request_error")


def begun(send, mode, part, n, conf={}, **vary):
    """A request whose body has n bytes, of which only the first have come."""
    vary["CONTENT_LENGTH"] = None if n is None else str(n)
    if mode != "fcgi":
        return send(mode, b"", conf=conf, stdin=part, whole=False, **vary)
    wire = fcgi.Wire(send.start(mode, conf).address)
    pairs = fcgi.variables(body=HELLO, **vary)
    wire.send(fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(pairs)))
    wire.send(fcgi.record(fcgi.STDIN, part))
    return fcgi.Answer(wire)


@MODES
@pytest.mark.parametrize("n", [len(HELLO), None], ids=["length", "no length"])
def test_a_body_that_stops(up, send, mode, n):
    a = begun(send, mode, HELLO[:30], n, {"server": {"client_timeout": "500ms"}}).finish(4)
    assert (a.status, a.error["code"]) == (408, "request_timeout")
    assert 0.4 < a.when(b"request_timeout") < 2
    assert up.count() == 0


@MODES
@pytest.mark.parametrize("n", [len(HELLO), None], ids=["length", "no length"])
def test_a_body_that_breaks_off(up, send, mode, n):
    """The connection ends (CGI: the server closes the input) in the middle."""
    a = begun(send, mode, HELLO[:30], n)
    time.sleep(0.1)
    if mode == "fcgi":
        a.close()
    else:
        a.no_more()
        assert a.finish().status == 400
    time.sleep(0.2)
    assert up.count() == 0
    assert send.gate.in_flight() == 0


@pytest.mark.parametrize("mode", ["pipe", "socket"])
def test_a_signal_while_the_body_comes(up, send, mode):
    a = begun(send, mode, HELLO[:30], len(HELLO))
    time.sleep(0.2)
    began = time.monotonic()
    a.terminate()
    a.wait(2)
    assert (a.end, a.step(1)) == (0, False)
    assert time.monotonic() - began < 1
    assert [e["outcome"] for e in send.gate.logs() if e["msg"] == "request"] == ["cancelled"]
    a.close()


# Refused before the body was read ------------------------------------------------------------------

UNKNOWN = {"auth": {"mode": "web-server"}}


@MODES
@pytest.mark.parametrize("length", [NOTHING, None], ids=["length", "no length"])
@pytest.mark.parametrize(
    "status, conf, vary",
    [
        (401, UNKNOWN, {}),
        (404, {}, {"path": "/nope"}),
        (405, {}, {"path": "/v1/models"}),
        (413, {"server": {"max_body": "1M"}}, {}),
    ],
)
def test_the_answer_comes_although_the_body_was_not_read(send, mode, length, status, conf, vary):
    a = send(mode, big(30_000_000), length, conf, **vary).finish()
    assert a.status == status
    assert a.took < 3
    if mode != "fcgi":
        assert a.failed is None and a.exited < 3


@pytest.mark.parametrize("mode", ["pipe", "socket"])
def test_the_rest_is_waited_for_only_so_long(send, mode):
    conf = {**UNKNOWN, "server": {"client_timeout": "500ms"}}
    a = begun(send, mode, HELLO[:30], 1000, conf).finish(4)
    assert a.status == 401
    assert 0.4 < a.took < 2


@pytest.mark.parametrize("mode", ["pipe", "socket"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_without_a_body_nothing_is_waited_for(send, mode, method):
    """The input may stay open for ever."""
    a = send(mode, b"", None, method=method, path="/healthz", whole=False).finish(3)
    assert a.status == (200 if method in ("GET", "HEAD") else 405)
    assert a.exited < 2
