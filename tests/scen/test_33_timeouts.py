"""The four time-outs (TMO-01..04, SPEC 5). Durations are short; bounds are what a loaded machine
still keeps.
"""

import json

import pytest

from lib.answers import chat_chunks, chunk, hang, raw, slow, sse, stream
from lib.pool import K1

SHORT = {
    "first_byte_timeout": "700ms",
    "idle_timeout": "700ms",
    "first_content_timeout": "5s",
    "plain_timeout": "700ms",
}


def test_no_total_limit_on_a_stream(up, gate):
    """TMO-01"""
    events = chat_chunks(*[f"w{i}" for i in range(8)])
    up.script(K1, stream(events, "events", gap=0.35))
    g = gate(upstream={**SHORT, "first_content_timeout": "1s"})
    a = g.ask(stream=True)
    assert a.body == sse(events) and a.took > 2.5
    g.assert_clean()


def dribble(x):
    x.send(b"HTTP/1.1 200 OK\r\n")
    for c in b"Content-Type: text/event-stream\r\nX-Long: " + b"a" * 200:
        x.pause(0.15)
        x.send(bytes([c]))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "action", [hang(), dribble, raw(HEAD, end="hold")], ids=["silent", "dribble", "head only"]
)
def test_first_byte(up, gate, action):
    """TMO-02: silent, a dribbled head (counts from the request's start), a head without a body."""
    up.script(K1, action)
    g = gate(upstream=SHORT)
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert 0.6 < a.took < 2
    a1 = g.account()
    assert (a1["last_error"]["kind"], a1["fails"], a1["in_flight"]) == ("network", 1, 0)
    assert up.requests[0].aborted_at


def test_plain_answers_have_their_own_limit(up, gate):
    """SPEC 5: a plain answer may take plain_timeout to its first byte."""
    up.script(K1, slow(0.8))
    g = gate(
        upstream={"first_byte_timeout": "300ms", "plain_timeout": "3s", "idle_timeout": "300ms"}
    )
    assert g.ask(stream=False).header("X-Sluice-Account") == "A1"
    up.script(K1, hang())
    g = gate(upstream={"first_byte_timeout": "3s", "plain_timeout": "400ms"})
    a = g.ask(stream=False)
    assert a.header("X-Sluice-Account") == "A2" and a.took < 1.5


def test_plain_answer_that_stalls(up, gate):
    up.script(
        K1,
        raw(
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"choices":[',
            end="hold",
        ),
    )
    g = gate(upstream={**SHORT, "plain_timeout": "5s"})
    a = g.ask(stream=False)
    assert a.header("X-Sluice-Account") == "A2" and 0.6 < a.took < 2


def test_stall_in_mid_stream(up, gate):
    """TMO-03"""
    head = sse([chunk({"content": w}) for w in ("a", "b", "c")])
    up.script(K1, stream(head, end="hold"))
    g = gate(upstream=SHORT)
    a = g.ask(stream=True)
    assert a.body.startswith(head) and b"[DONE]" not in a.body
    assert json.loads(a.events()[-1][1])["error"]["message"]
    assert 0.6 < a.took < 1.6
    a1 = g.account()
    assert (a1["fails"], a1["in_flight"], a1["last_error"]["kind"]) == (1, 0, "network")
    assert up.requests[0].aborted_at
    assert up.count() == 1


def test_heartbeats_do_not_feed_the_idle_timer(up, gate):
    up.script(K1, stream([chunk({"content": "a"})], end="hold"))
    g = gate(upstream={**SHORT, "heartbeat": "200ms"})
    a = g.ask(stream=True)
    assert a.took < 1.6 and "error" in json.loads(a.events()[-1][1])


def comments(x):
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for _ in range(100):
        x.send(b": PROCESSING\n\n")
        x.pause(0.1)


def test_comments_are_signs_of_life_but_no_content(up, gate):
    """TMO-04: the idle timer is reset by any byte, the first-content timer is not."""
    up.script(K1, comments)
    g = gate(
        upstream={
            "first_byte_timeout": "500ms",
            "idle_timeout": "500ms",
            "first_content_timeout": "1500ms",
        }
    )
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert 1.3 < a.took < 2.5


def test_role_chunk_is_no_content(up, gate):
    up.script(K1, stream([chunk({"role": "assistant", "content": ""})], end="hold"))
    g = gate(
        upstream={
            "first_byte_timeout": "500ms",
            "idle_timeout": "5s",
            "first_content_timeout": "1s",
        }
    )
    a = g.ask(stream=True)
    assert a.header("X-Sluice-Account") == "A2" and 0.8 < a.took < 2


def test_first_content_is_met(up, gate):
    """Comments, then content in time: the timer ends with the first content."""

    def act(x):
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for _ in range(6):
            x.send(b": wait\n\n")
            x.pause(0.1)
        for i in range(8):
            x.send(sse([chunk({"content": f"w{i}"})]))
            x.pause(0.1)
        x.send(sse([chunk({}, "stop"), "[DONE]"]))
        x.fin()

    up.script(K1, act)
    a = gate(upstream={"first_content_timeout": "1s", "idle_timeout": "500ms"}).ask(stream=True)
    assert a.header("X-Sluice-Account") == "A1" and a.events()[-1][1] == "[DONE]"


def test_long_silence_holds_only_one_worker(up, gate):
    up.script(K1, hang())
    g = gate(upstream={"first_byte_timeout": "2s"}, workers=2)
    silent = g.open()
    up.wait_for(1)
    for _ in range(5):
        assert g.ask().took < 0.5
    silent.finish()
    assert silent.status == 200 and silent.header("X-Sluice-Account") == "A2"
