"""Input that is wrong or hostile (REQ-10, 11; JSON; SEC; HDR-07, 12, 14; OPS-09): refused in the
API's shape, no upstream contact, state clean.
"""

import json
import threading

import pytest

from lib import fcgi
from lib.pool import Pool, config
from lib.upstream import Upstream, wait_until

GOOD = b'{"model":"m1","messages":[{"role":"user","content":"x"}]}'


def msg(extra):
    return GOOD[:-1] + b"," + extra + b"}"


BAD = {
    "brace": b"{",
    "empty": b"",
    "blank": b"  \n",
    "array": b"[]",
    "string": b'"x"',
    "number": b"1",
    "null": b"null",
    "model is a number": b'{"model":1,"messages":[{"role":"user","content":"x"}]}',
    "model is null": b'{"model":null,"messages":[{"role":"user","content":"x"}]}',
    "model is empty": b'{"model":"","messages":[{"role":"user","content":"x"}]}',
    "model is missing": b'{"messages":[{"role":"user","content":"x"}]}',
    "messages missing": b'{"model":"m1"}',
    "messages an object": b'{"model":"m1","messages":{}}',
    "messages a string": b'{"model":"m1","messages":"x"}',
    "messages null": b'{"model":"m1","messages":null}',
    "stream a string": msg(b'"stream":"true"'),
    "stream a number": msg(b'"stream":1'),
    "stream_options a string": msg(b'"stream":true,"stream_options":"x"'),
    "single quotes": b"{'model':'m1','messages':[]}",
    "trailing word": GOOD + b" x",
    "two documents": GOOD + GOOD,
    "trailing comma": GOOD[:-1] + b",}",
    "comment": b"/* x */" + GOOD,
    "inner comment": GOOD[:-1] + b"/**/}",
    "TRUE": msg(b'"a":TRUE'),
    "007": msg(b'"a":007'),
    "1.": msg(b'"a":1.'),
    ".5": msg(b'"a":.5'),
    "+1": msg(b'"a":+1'),
    "1e": msg(b'"a":1e'),
    "0x10": msg(b'"a":0x10'),
    "NaN": msg(b'"a":NaN'),
    "-Infinity": msg(b'"a":-Infinity'),
    "raw newline in a string": msg(b'"a":"b\nc"'),
    "raw tab": msg(b'"a":"b\tc"'),
    "raw NUL": msg(b'"a":"b\0c"'),
    "bytes FF FE": msg(b'"a":"\xff\xfe"'),
    "overlong": msg(b'"a":"\xc0\xaf"'),
    "utf-8 surrogate": msg(b'"a":"\xed\xa0\xbd"'),
    "cut utf-8": msg(b'"a":"\xe4\xbd"'),
    "bad escape": msg(b'"a":"\\x41"'),
    "short escape": msg(b'"a":"\\u12"'),
    "unclosed string": GOOD[:-1] + b',"a":"',
    "bare key": GOOD[:-1] + b",a:1}",
    "no colon": GOOD[:-1] + b',"a" 1}',
    "model twice": b'{"model":"m1","x":1,"model":"m2","messages":[{"role":"user","content":"x"}]}',
    "model twice, escaped": b'{"model":"m1","m\\u006fdel":"m2","messages":[{"role":"user","content":"x"}]}',
    "stream twice": msg(b'"stream":false,"stream":true'),
    "messages twice": msg(b'"messages":[]'),
    "NUL in the model": b'{"model":"m1\\u0000x","messages":[{"role":"user","content":"x"}]}',
    "NUL in a key": msg(b'"model\\u0000x":1'),
    "deeper than 256": msg(b'"a":' + b"[" * 300 + b"]" * 300),
    "very deep": msg(b'"a":' + b"[" * 200_000),
    "very deep objects": msg(b'"a":' + b'{"a":' * 100_000),
    "form": b"model=m1&messages=x",
    "xml": b"<x/>",
    "html": b"<html>",
}


@pytest.fixture(scope="module")
def shared():
    """One pool for all refusals: each must leave it clean."""
    up = Upstream()
    pool = Pool(config(up.url), workers=2)
    yield up, pool
    pool.close()
    up.stop()


@pytest.mark.parametrize("name", BAD)
def test_bad_bodies(shared, name):
    """REQ-11, JSON-07, SEC-05: 400, never 500: clients retry 5xx for ever."""
    up, g = shared
    up.clear()
    a = g.send(BAD[name]).finish()
    assert a.status == 400, (name, a.body)
    assert a.error["type"] == "invalid_request_error" and a.error["message"]
    assert a.header("Content-Type").startswith("application/json")
    assert a.header("X-Sluice-Attempts") == "0"
    assert a.header("x-should-retry") in (None, "false")
    assert up.count() == 0


def test_clean_after_all_that(shared):
    _, g = shared
    assert g.ask().status == 200
    g.assert_clean()
    assert len(g.worker_pids()) == 2


FINE = {
    "deep schema": msg(b'"a":' + b"[" * 200 + b"]" * 200),
    "huge number": msg(b'"a":1e400'),
    "long integer": msg(b'"a":123456789012345678901234567890'),
    "minus zero": msg(b'"a":-0'),
    "lone surrogate": msg(b'"a":"\\ud83d"'),
    "stream null": msg(b'"stream":null'),
    "whitespace": b" \r\n\t" + GOOD + b"\n\n",
    "empty messages": b'{"model":"m1","messages":[]}',
    "empty key": msg(b'"":1'),
    "nested dup": msg(b'"a":{"x":1,"x":2}'),
    "dup of a key we do not read": msg(b'"zz":1,"zz":2'),
    "escaped quote": msg(b'"a":"\\"\\\\\\/"'),
    "DEL and C1": msg(b'"a":"\x7f\xc2\x80"'),
    "noncharacter": msg(b'"a":"\xef\xbf\xbf"'),
    "null fields": msg(b'"tools":null'),
}


@pytest.mark.parametrize("name", FINE)
def test_unusual_but_right(shared, name):
    """What is JSON passes byte for byte; the upstream decides about the rest."""
    up, g = shared
    up.clear()
    a = g.send(FINE[name]).finish()
    if name == "empty messages" and a.status == 400:
        assert up.count() == 0
        return
    assert a.status == 200, a.body
    assert up.last.body == FINE[name]


def test_bom(shared):
    """JSON-07: strip or 400; never a BOM upstream."""
    up, g = shared
    up.clear()
    a = g.send(b"\xef\xbb\xbf" + GOOD).finish()
    assert a.status in (200, 400)
    assert all(r.body == GOOD for r in up.requests)


@pytest.mark.parametrize(
    "ctype",
    [
        "text/plain",
        "",
        None,
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ],
)
def test_content_types(shared, ctype):
    """REQ-11: never 500; upstream it is always application/json."""
    up, g = shared
    up.clear()
    a = g.send(GOOD, ctype=ctype).finish()
    assert a.status in (200, 400, 415)
    assert a.status == 200 or up.count() == 0
    for r in up.requests:
        assert r.header("content-type") == "application/json"


@pytest.mark.parametrize(
    "path,body",
    [
        ("/v1/embeddings", b'{"model":"m1"}'),
        ("/v1/embeddings", b'{"input":"x"}'),
        ("/v1/completions", b'{"prompt":1'),
        ("/v1/moderations", b"[]"),
        ("/v1/completions", b'{"model":"m1","model":"m2","prompt":"x"}'),
    ],
)
def test_bad_bodies_of_side_endpoints(shared, path, body):
    up, g = shared
    up.clear()
    a = g.send(body, path=path).finish()
    assert a.status == 400 and a.error["message"] and up.count() == 0


def test_body_limit(up, gate):
    """OPS-09: up to max_body passes, above it 413 in the API's shape."""
    g = gate(server={"max_body": "1M"})
    big = b'{"model":"m1","messages":[{"role":"user","content":"' + b"x" * 900_000 + b'"}]}'
    assert g.send(big).finish().status == 200
    up.clear()
    over = big.replace(b"xxx", b"yyyy")
    a = g.send(over).finish()
    assert a.status == 413 and a.error["message"]
    assert up.count() == 0
    g.assert_clean()


def test_default_limit_is_32_mib(up, gate):
    g = gate()
    body = b'{"model":"m1","messages":[{"role":"user","content":"' + b"x" * 31_000_000 + b'"}]}'
    assert g.send(body, timeout=20).finish().status == 200
    assert len(up.last.body) == len(body)
    up.clear()
    a = g.send(body + b" " * 3_000_000, timeout=20).finish()
    assert (a.status, up.count()) == (413, 0)


def test_announced_too_large_is_refused_early(up, gate):
    """413 before reading everything."""
    g = gate()
    wire = fcgi.Wire(g.address)
    wire.send(
        fcgi.begin()
        + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(CONTENT_LENGTH="99000000000")))
    )
    wire.send(fcgi.record(fcgi.STDIN, b"x" * 1000))
    a = fcgi.Answer(wire)
    a.until(lambda a: b"\r\n\r\n" in a.out, 5)
    assert a.status == 413
    a.close()
    assert g.ask().status == 200


# FastCGI that is broken --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "length,status",
    [
        (None, 200),
        ("", 200),
        ("0", 200),
        ("1", None),
        (str(len(GOOD) - 10), None),
        (str(len(GOOD) + 10), 400),
        ("999999", 400),
        ("abc", None),
        ("-5", None),
        ("99999999999999999999", None),
        ("+57", None),
        (" 57", None),
    ],
)
def test_content_length(shared, length, status):
    """HDR-12: read to the end of STDIN; shorter than announced is 400; never a hang, never a part
    of it upstream.
    """
    up, g = shared
    up.clear()
    a = g.send(GOOD, CONTENT_LENGTH=length).finish(10)
    assert a.status == status if status else a.status in (200, 400, 413)
    if a.status == 200:
        assert up.last.body == GOOD
    else:
        assert up.count() == 0


@pytest.mark.parametrize("size", [1, 7, 100])
def test_small_records(shared, size):
    """HDR-14: PARAMS split over records, inside a length field too; STDIN in crumbs."""
    up, g = shared
    up.clear()
    a = g.send(GOOD, params_size=size, stdin_size=size, headers={"X-Request-Id": "cut-up"}).finish()
    assert a.status == 200 and a.header("X-Request-Id") == "cut-up"
    assert up.last.body == GOOD


def test_params_byte_by_byte(shared):
    up, g = shared
    wire = fcgi.Wire(g.address)
    data = (
        fcgi.begin()
        + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=GOOD)), 50)
        + fcgi.records(fcgi.STDIN, GOOD)
    )
    for i in range(0, len(data), 11):
        wire.send(data[i : i + 11])
    assert fcgi.Answer(wire).finish().status == 200


def test_many_and_large_headers(shared):
    """HDR-14"""
    up, g = shared
    headers = {f"X-H{i}": "v" * 200 for i in range(60)}
    headers["Cookie"] = "c" * 16_000
    headers["OpenAI-Beta"] = "b" * 9_000
    up.clear()
    a = g.ask(headers=headers)
    assert a.status == 200
    assert up.last.header("OpenAI-Beta") in ("b" * 9_000, None)


BROKEN = {
    "nothing": b"",
    "one byte": b"\x01",
    "half a header": fcgi.begin()[:6],
    "begin only": fcgi.begin(),
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "version 9": b"\x09" + fcgi.begin()[1:],
    "params cut": fcgi.begin() + fcgi.record(fcgi.PARAMS, b"\x0e\x03CONTENT_LE"),
    "no stdin": fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=GOOD))),
    "stdin cut": fcgi.begin()
    + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=GOOD)))
    + fcgi.record(fcgi.STDIN, GOOD[:30]),
    "lengths of 2 GiB": fcgi.begin()
    + fcgi.record(fcgi.PARAMS, b"\xff\xff\xff\xff" * 2 + b"x" * 30),
    "unknown role": fcgi.begin(role=9),
    "zeros": b"\0" * 64,
    "random": bytes(range(256)),
    "stdin before params": fcgi.begin() + fcgi.record(fcgi.STDIN, GOOD),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_fastcgi(up, gate, name):
    """The worker survives (or is replaced), nothing goes up, the pool serves on."""
    g = gate(allow=["a connection was dropped"])
    for _ in range(3):
        wire = fcgi.Wire(g.address)
        try:
            wire.send(BROKEN[name])
            wire.half_close()
            fcgi.Answer(wire).drain(0.3)
        except OSError:
            pass
        wire.close()
    a = g.ask()
    assert a.status == 200
    assert up.count() == 1
    assert g.in_flight() == 0


@pytest.mark.waits
def test_silent_connections_do_not_pin_the_pool(up, gate):
    """A peer that sends nothing, or half a request, is dropped or at least is not in the way of
    others.
    """
    g = gate(workers=3, server={"client_timeout": "2s"}, allow=["a connection was dropped"])
    wires = [fcgi.Wire(g.address) for _ in range(2)]
    wires[1].send(fcgi.begin())
    assert g.ask().took < 1
    wires += [fcgi.Wire(g.address) for _ in range(3)]
    a = g.open()
    assert a.finish(15).status == 200
    for w in wires:
        w.close()


# Injection ---------------------------------------------------------------------------------------

EVIL = [
    "m1\r\nX-Evil: 1",
    "m1\n2026-01-01 INFO admin login",
    "m1\u001b[2Jx",
    "m1\u2028x",
    "m1\u0085x",
    '"},{"x":"',
    "../../etc",
    "http://127.0.0.1/x",
    "%0d%0aX-Evil:1",
    "{{7*7}}",
    "\ud83d",
]


@pytest.mark.parametrize("model", EVIL)
def test_evil_model_names(shared, model):
    """HDR-07, SEC-06: no extra header anywhere, one escaped log line."""
    up, g = shared
    up.clear()
    before = len(g.log_lines())
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "x"}]}).encode()
    a = g.send(body).finish()
    assert a.status in (200, 400, 404)
    assert "x-evil" not in a.names() and b"\r\nX-Evil" not in a.out
    for r in up.requests:
        assert r.body == body and "x-evil" not in r.names()
    new = wait_until(lambda: g.log_lines()[before:], 2, "a log line")
    assert len(new) == 1 and json.loads(new[0])
    assert "\x1b" not in new[0]


def test_model_name_of_a_megabyte(shared):
    up, g = shared
    up.clear()
    a = g.ask(model="m" * 1_000_000)
    assert a.status in (200, 400, 404)
    assert len(a.out) - len(a.body) < 20_000
    assert max(len(line) for line in g.log_lines()) < 20_000


@pytest.mark.parametrize("name", ["OpenAI-Beta", "Idempotency-Key", "X-Request-Id", "X-Session-Id"])
@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0b", "\x1b[2J"]
)
def test_crlf_in_header_values(shared, name, value):
    """HDR-07: a value with CR, LF or NUL never becomes a header, up or down."""
    up, g = shared
    up.clear()
    a = g.ask(headers={name: value})
    assert a.status in (200, 400)
    assert b"X-Evil" not in a.out.split(b"\r\n\r\n")[0]
    for r in up.requests:
        assert (
            "x-evil" not in r.names()
            and b"\nX-Evil" not in r.head
            and b"\rX-Evil" not in r.head
            and b"\0" not in r.head
        )


def test_client_cannot_disable_an_account(shared):
    """SPEC 6: the classifier only sees bytes that came from an upstream."""
    up, g = shared
    for words in ("invalid_api_key", "insufficient_quota", "12153", "account deactivated"):
        a = g.ask(model="m1", user=words, headers={"X-Error": words})
        assert a.status == 200
        assert g.send(b'{"model":"' + words.encode()).finish().status == 400
    g.assert_clean()


def test_query_string_goes_nowhere(shared):
    up, g = shared
    up.clear()
    assert g.ask(vary={"query": "api_key=x&model=zz&" + "q" * 5000}).status == 200
    assert up.last.target == "/v1/chat/completions"


def test_keep_conn_flag_is_harmless(shared):
    """A web server that asks to keep the connection must not pin a worker."""
    up, g = shared
    wire = fcgi.Wire(g.address)
    wire.send(
        fcgi.begin(keep=True)
        + fcgi.records(fcgi.PARAMS, fcgi.params(fcgi.variables(body=GOOD)))
        + fcgi.records(fcgi.STDIN, GOOD)
    )
    a = fcgi.Answer(wire)
    a.until(lambda a: a.end is not None, 5)
    for _ in range(4):
        assert g.ask().took < 1
    wire.close()


def test_a_burst_of_rubbish_and_good_requests(up, gate):
    """Mixed load: every good one is served, every bad one refused, nothing stays."""
    g = gate(workers=4, pool={"max_in_flight": 0})
    bad = [
        BAD[n] for n in ("brace", "NaN", "model twice", "deeper than 256", "bytes FF FE", "empty")
    ]
    wrong = []

    def client(seed):
        for i in range(12):
            if (i + seed) % 3:
                a = g.ask(stream=bool(i % 2))
                wrong.append(a.status) if a.status != 200 else None
            else:
                a = g.send(bad[(i + seed) % len(bad)]).finish()
                wrong.append(a.status) if a.status != 400 else None

    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert wrong == []
    wait_until(lambda: g.in_flight() == 0, 2, "nothing in flight")
    g.assert_clean()
