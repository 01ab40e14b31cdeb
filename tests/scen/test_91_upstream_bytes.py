"""Upstream bytes that never end, or end in an error that no client would see as one: bounded in time
and memory, and never like a clean end.
"""

import json
import time

import pytest

from lib.answers import chat_answer, chunk, plain, raw, sse, stream
from lib.pool import K1

ROLE = chunk({"role": "assistant", "content": ""})
BEGUN = chunk({"content": "begun"})
SHORT = {"first_byte_timeout": "1s", "plain_timeout": "1s", "idle_timeout": "1s"}


def head(status, *more):
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", *more, "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def endless(begin, piece, gap=0.0):
    def act(x):
        x.send(begin)
        while True:
            x.send(piece)
            x.pause(gap)

    return act


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "action,kind",
    [
        (endless(head(500), b"x" * 65536), "server"),
        (endless(head(500), b"x", 0.1), "server"),
        (endless(head(429, "Retry-After: 60"), b'{"a":"' + b"x" * 65536), "soft_rate"),
        (endless(head(429, "Retry-After: 60"), b" ", 0.1), "soft_rate"),
        (raw(head(429, "Retry-After: 60") + b"{", end="hold"), "soft_rate"),
    ],
    ids=["flood 500", "trickle 500", "flood 429", "trickle 429", "stalled 429"],
)
def test_error_body_without_end(up, gate, streamed, action, kind):
    """The client gets the next account's answer soon, and the status still speaks."""
    up.script(K1, action)
    g = gate(upstream=SHORT)
    a = g.open(stream=streamed).finish(6)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert a.took < 4
    assert g.account()["last_error"]["kind"] == kind
    if kind == "soft_rate":
        assert 50 < g.cooling_for() < 61


def test_long_error_body_is_cut(up, gate):
    """A request fault goes to the client with its status, but not without bounds."""
    up.default(endless(head(400), b"x" * 65536))
    a = gate(upstream=SHORT).ask()
    assert a.status == 400
    assert 60_000 < len(a.body) <= 1 << 20


def test_json_that_trickles_to_a_stream_request(up, gate):
    """first_content_timeout holds whatever it is that comes instead of content."""
    up.script(K1, endless(head(200), b" {", 0.1))
    g = gate(upstream={"first_content_timeout": "1s"})
    a = g.open().finish(6)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")


def test_blanks_before_a_stream_are_read_in_linear_time(up, gate):
    up.script(K1, endless(head(200), b" " * 65536))
    g = gate(upstream={"max_event": "16M"})
    began = time.monotonic()
    a = g.open().finish(15)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "event",
    [
        {**chunk({}, "error")},
        {"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "gone"}}]},
        [{"error": {"code": 503, "message": "gone", "status": "UNAVAILABLE"}}],
        {"type": "error", "code": "1302", "message": "gone"},
        b'event: error\ndata: {"type":"error","message":"gone"}\n\n',
        b'event: error\ndata: boom "error"\n\n',
        b"event: error\n\n",
    ],
    ids=["finish", "choice", "list", "flat", "named", "text", "empty"],
)
def test_error_of_another_shape_after_the_commit(up, gate, event):
    """SPEC 4.3: what clients look at is a member "error" of the event; a stream that ends without it
    and without [DONE] looks to them like a clean end.
    """
    up.script(K1, stream(sse([ROLE, BEGUN, event, "[DONE]"]), framing="close"))
    g = gate()
    a = g.ask(stream=True)
    last = json.loads(a.events()[-1][1])
    assert last["error"]["message"]
    assert "disk" not in last["error"]["message"]  # libcurl's idea of a callback that stops it
    assert b"[DONE]" not in a.body
    assert sum(b'"error":' in line for line in a.body.split(b"\n")) == 1
    assert g.account()["success"] == 0


def test_own_words_for_what_is_too_large(up, gate):
    up.default(plain(chat_answer("x" * 2_000_000)))
    a = gate(accounts=1, upstream={"max_event": "1M"}).ask()
    assert a.status == 502 and "too large" in a.error["message"]


WHOLE = json.dumps(chat_answer("hi")).encode()
TAKEN = {
    "model twice": WHOLE[:-1] + b',"model":"m1"}',
    "usage twice": WHOLE[:-1] + b',"usage":{"prompt_tokens":7,"prompt_tokens":7}}',
    "not UTF-8": WHOLE.replace(b'"hi"', b'"h\xff"'),
    "cut in a character": WHOLE.replace(b'"hi"', b'"h\xc3"'),
    "NUL in a name": WHOLE[:-1] + b',"x\\u0000y":1}',
}


@pytest.mark.parametrize("name", TAKEN)
def test_answers_that_clients_can_read(up, gate, name):
    """Careless JSON of an upstream is an answer: not asked for again, and no failure."""
    up.script(K1, plain(TAKEN[name]))
    g = gate()
    a = g.ask()
    assert (a.status, a.body, up.count()) == (200, TAKEN[name], 1)
    assert g.account()["tokens"]["prompt"] == 7
    g.assert_clean()


@pytest.mark.parametrize("extra", [b'"model":"m1"', b'"x":"\xff"', b'"x\\u0000y":1'])
def test_streams_that_clients_can_read(up, gate, extra):
    """So is a stream whose last chunk is careless."""
    finish = json.dumps(chunk({}, "stop")).encode()[:-1] + b"," + extra + b"}"
    body = sse([ROLE, BEGUN]) + b"data: " + finish + b"\n\n"
    up.script(K1, stream(body, framing="close"))
    g = gate()
    a = g.ask(stream=True)
    assert a.body == body + b"data: [DONE]\n\n"
    assert g.account()["success"] == 1


def test_codes_in_another_encoding_count(up, gate):
    text = "余额不足".encode("gbk")
    body = b'{"error":{"code":"insufficient_quota","message":"' + text + b'"}}'
    up.script(K1, plain(body, 400))
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert g.account()["cool"]["kind"] == "hard_credit"
    json.loads(g.ctl("events", "--json").stdout)


def with_trailer(status, headers, body, trailer):
    """The connection is kept: a close without a word may cost the next request an attempt."""
    return raw(
        b"HTTP/1.1 %d X\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n\r\n"
        % (status, headers, len(body), body, trailer),
        end="keep",
    )


def test_trailers_are_no_headers(up, gate):
    """HDR-10: only the final header block counts."""
    up.script(
        K1,
        with_trailer(200, b"Content-Type: application/json\r\n", WHOLE, b"Content-Type: text/html"),
        with_trailer(200, b"", WHOLE, b"HTTP/1.1 500 x: y"),
        with_trailer(429, b"Retry-After: 20\r\n", b"{}", b"Retry-After: 9999"),
    )
    g = gate()
    assert g.ask().header("Content-Type") == "application/json"
    assert g.ask().header("X-Sluice-Account") == "A1"
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert 15 < g.cooling_for() < 21


def test_header_that_looks_like_a_status_line(up, gate):
    headers = b"Content-Length: %d\r\nHTTP/1.1 500: x\r\n" % len(WHOLE)
    up.script(K1, raw(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n" + WHOLE))
    assert gate().ask().header("X-Sluice-Account") == "A1"
