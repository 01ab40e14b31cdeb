"""Failures inside a stream (RET-01, 02, 04, 06, SSE-21; SPEC 4.3, 5): before the commit another
account, after it never.
"""

import json

import pytest

from lib.answers import chat_chunks, chunk, error, plain, raw, sse, stream
from lib.pool import K1, K2

OVER = {"error": {"message": "Overloaded", "type": "overloaded_error", "param": None, "code": None}}
RATE = {
    "error": {
        "code": "1302",
        "message": "too many requests at once",
        "type": "rate_limit_error",
        "param": None,
    }
}
ROLE = chunk({"role": "assistant", "content": ""})

BEFORE = [
    ("in-band rate", stream([RATE, "[DONE]"]), "soft_rate"),
    (
        "named event",
        stream(b"event: error\ndata: " + json.dumps(RATE).encode() + b"\n\ndata: [DONE]\n\n"),
        "soft_rate",
    ),
    ("no space", stream(b"event:error\ndata:" + json.dumps(RATE).encode() + b"\n\n"), "soft_rate"),
    ("after the role chunk", stream([ROLE, RATE]), "soft_rate"),
    ("after comments", stream(b": wait\n\n" + sse([ROLE, RATE])), "soft_rate"),
    (
        "in-band credit",
        stream([ROLE, {"error": {"code": "insufficient_quota", "message": "x"}}]),
        "hard_credit",
    ),
    ("in-band overload", stream([ROLE, OVER]), "overload"),
    (
        "in-band 502",
        stream(
            [
                {
                    "error": {"code": 502, "message": "Provider disconnected"},
                    "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
                }
            ]
        ),
        "server",
    ),
    (
        "in-band key",
        stream([{"error": {"code": "invalid_api_key", "message": "bad key"}}]),
        "auth_failed",
    ),
    ("flat code", stream([{"code": 14018, "msg": "credits exhausted"}]), "hard_credit"),
    ("nothing", stream(b"", framing="close"), "server"),
    ("nothing, chunked", stream(b""), "server"),
    ("only comments", stream(b": ping\n\n: ping\n\n", framing="close"), "server"),
    ("only [DONE]", stream(["[DONE]"]), "server"),
    ("only the role", stream([ROLE], framing="close"), "server"),
    ("role and reset", stream([ROLE], end="rst"), "network|server"),
    ("role and cut", stream([ROLE], end="fin"), "network|server"),
    ("html", plain(b"<html>gateway</html>", ctype="text/html"), "server"),
    ("html as sse", plain(b"<html>gateway</html>", ctype="text/event-stream"), "server"),
    (
        "head only",
        raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        ),
        "network|server",
    ),
    ("length 0", plain(b"", ctype="text/event-stream"), "server"),
]


@pytest.mark.parametrize("action,kind", [b[1:] for b in BEFORE], ids=[b[0] for b in BEFORE])
def test_before_the_commit(up, gate, action, kind):
    """RET-02, RET-04: the client gets A2's stream only; A1 is charged as for a real answer of that
    kind.
    """
    good = sse(chat_chunks("from A2"))
    up.script(K1, action)
    up.script(K2, stream(good))
    g = gate()
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == (
        200,
        "A2",
        "2",
    )
    assert a.body == good
    a1 = g.account()
    if kind != "overload":
        assert a1["last_error"]["kind"] in kind.split("|")
    assert a1["success"] == 0 and a1["in_flight"] == 0
    if kind in ("soft_rate", "hard_credit", "overload"):
        assert a1["cool"]["kind"] == kind
    if kind == "server":
        assert a1["fails"] == 1
    g.assert_clean("A2")


@pytest.mark.parametrize(
    "action,kind",
    [b[1:] for b in BEFORE if "server" in b[2]],
    ids=[b[0] for b in BEFORE if "server" in b[2]],
)
def test_single_account_gives_502(up, gate, action, kind):
    """RET-04"""
    up.default(action)
    a = gate(accounts=1).ask(stream=True)
    assert a.status == 502
    assert a.error["code"] == "upstream_error"
    assert a.header("Content-Type").startswith("application/json")


def test_in_band_reset_time(up, gate):
    up.script(
        K1,
        stream([{"error": {"code": "rate_limit_exceeded", "message": "Please try again in 90s."}}]),
    )
    g = gate()
    g.ask(stream=True)
    assert abs(g.cooling_for() - 90) < 2


def test_in_band_request_fault(up, gate):
    """SPEC 4.3: a request fault seen at 200 becomes 400; nobody else is asked."""
    up.script(
        K1,
        stream(
            [
                ROLE,
                {
                    "error": {
                        "code": "context_length_exceeded",
                        "message": "maximum context length is 9 tokens",
                    }
                },
            ]
        ),
    )
    g = gate()
    a = g.ask(stream=True)
    assert a.status == 400 and "maximum context length" in a.error["message"]
    assert up.count() == 1
    g.assert_clean()


@pytest.mark.parametrize(
    "events",
    [
        sse([OVER]),
        sse([OVER, "[DONE]"]),
        b"event: error\ndata: " + json.dumps(OVER).encode() + b"\n\n",
        b"event:error\ndata:" + json.dumps(OVER).encode() + b"\n\ndata:[DONE]\n\n",
    ],
)
def test_after_the_commit(up, gate, events):
    """RET-01, SSE-21: no switch; the upstream's event passes byte for byte; no [DONE] after an
    error.
    """
    head = sse([ROLE, chunk({"content": "begun"})])
    up.script(K1, stream(head + events))
    g = gate()
    a = g.ask(stream=True)
    assert a.status == 200 and a.header("X-Sluice-Account") == "A1"
    done = events.rfind(b"[DONE]")
    want = events if done < 0 else events[: events.rfind(b"data:")]
    assert a.body == head + want
    assert up.creds() == [K1]
    a1 = g.account()
    assert a1["success"] == 0 and a1["in_flight"] == 0
    assert a1["cool"]["kind"] == "overload"


def test_rate_limit_after_the_commit_cools(up, gate):
    up.script(K1, stream(sse([ROLE, chunk({"content": "begun"}), RATE])))
    g = gate()
    a = g.ask(stream=True)
    assert b"too many requests" in a.body and b"[DONE]" not in a.body
    assert g.account()["cool"]["kind"] == "soft_rate"
    assert g.ask(stream=True).header("X-Sluice-Account") == "A2"


def test_error_ends_the_stream_even_if_the_line_stays_open(up, gate):
    up.script(K1, stream([ROLE, chunk({"content": "begun"}), OVER], end="hold"))
    a = gate().ask(stream=True)
    assert a.took < 1
    assert a.events()[-1][1].startswith('{"error"')


def test_error_without_end_before_the_commit(up, gate):
    up.script(K1, stream([ROLE, RATE], end="hold"))
    a = gate().ask(stream=True)
    assert (a.header("X-Sluice-Account"), a.took < 1) == ("A2", True)


def test_failed_stream_is_not_billed(up, gate):
    """USE-06"""
    up.script(K1, stream([RATE]))
    up.script(K2, error(401, "invalid_api_key"))
    g = gate()
    assert g.ask(stream=True).header("X-Sluice-Account") == "A3"
    for x in ("A1", "A2"):
        assert g.account(x)["tokens"] == {"prompt": 0, "completion": 0, "cached": 0, "reasoning": 0}


def test_message_that_names_another_status(up, gate):
    """SSE-21: the code decides, not a text such as [HTTP 502]."""
    up.script(
        K1,
        stream(
            [ROLE, {"error": {"code": "insufficient_quota", "message": "upstream said [HTTP 502]"}}]
        ),
    )
    g = gate()
    g.ask(stream=True)
    assert g.account()["cool"]["kind"] == "hard_credit"


def test_key_in_a_stream_is_redacted(up, gate):
    up.script(
        K1, stream([chunk({"content": f"the key is {K1}."}), chunk({}, "stop"), "[DONE]"], "bytes")
    )
    a = gate().ask(stream=True)
    assert K1.encode() not in a.body and b"[redacted]" in a.body


def test_content_that_looks_like_an_error_is_content(up, gate):
    """The classifier reads error fields only."""
    body = sse(
        [
            chunk({"content": '{"error":{"code":"insufficient_quota"}}'}),
            chunk({"content": "data: [DONE]"}),
            chunk({}, "stop"),
            "[DONE]",
        ]
    )
    up.script(K1, stream(body))
    g = gate()
    assert g.ask(stream=True).body == body
    assert g.account()["success"] == 1
