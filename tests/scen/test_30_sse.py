"""The stream's bytes (SSE-01, 05, 07, 09, 13, 16, 20): any cut, any spelling, any end."""

import json
import os
import re

import pytest

from lib.answers import (
    chat_answer,
    chat_chunks,
    chunk,
    error,
    plain,
    slow,
    sse,
    stream,
    usage_chunk,
)
from lib.pool import K1
from lib.upstream import wait_until

ASKED = {"stream_options": {"include_usage": True}}
NAIVE = sse(chat_chunks("修复🌟é", "\\u4f60", usage=True))
# The same content in other spellings that the grammar allows.
SPELLINGS = {
    "usual": NAIVE,
    "no space": NAIVE.replace(b"data: ", b"data:"),
    "more spaces": NAIVE.replace(b"data: {", b"data:   {"),
    "CRLF": NAIVE.replace(b"\n", b"\r\n"),
    "CR": NAIVE.replace(b"\n", b"\r"),
    "BOM": b"\xef\xbb\xbf" + NAIVE,
    "event names and ids": NAIVE.replace(b"data: {", b"event: message\nid: 7\nretry: 5\ndata: {"),
    "comments": b": PROCESSING\n\n: again\n\n"
    + NAIVE.replace(b"\n\ndata", b"\n\n: keep-alive\n\ndata"),
    "unknown fields": NAIVE.replace(b"data: {", b"x-foo: bar\nnothing\ndata: {"),
    "pretty data lines": b"".join(
        b"".join(b"data: " + line + b"\n" for line in json.dumps(e, indent=1).encode().splitlines())
        + b"\n"
        if isinstance(e, dict)
        else b"data: [DONE]\n\n"
        for e in chat_chunks("a", "b", usage=True)
    ),
}


def without_heartbeats(body):
    """Comments that stand between events, each with its own blank line, are taken out."""
    return re.sub(rb"(?:\A|(?<=\n\n)):[^\n]*\n\n", b"", body)


@pytest.mark.parametrize("how", ["whole", "lines", "bytes"])
@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_and_cuts(up, gate, name, how):
    """SSE-01, SSE-05, SSE-07: same bytes to the client, same accounting."""
    body = SPELLINGS[name]
    up.script(K1, stream(body, how))
    g = gate(accounts=1)
    a = g.ask(stream=True, **ASKED)
    assert a.status == 200
    if name == "comments":
        assert a.events() == [
            (
                "",
                e
                if isinstance(e, str)
                else json.dumps(e, ensure_ascii=False, separators=(",", ":")),
            )
            for e in chat_chunks("修复🌟é", "\\u4f60", usage=True)
        ]
    else:
        assert a.body == body
    account = g.account()
    assert (account["success"], account["errors"], account["tokens"]["prompt"]) == (1, 0, 7)


def test_cut_at_every_offset(up, gate):
    """SSE-07: in two pieces, cut at each offset, with the usage chunk withheld."""
    body = b"data: " + json.dumps(chunk({"content": "é\\u4f60"})).encode() + b"\r\n\r\n"
    tail = sse([chunk({}, "stop"), usage_chunk(), "[DONE]"])
    want = body + sse([chunk({}, "stop"), "[DONE]"])
    g = gate(accounts=1, workers=1)
    for offset in range(1, len(body + tail)):
        up.script(K1, stream(body + tail, offset, gap=0.0005))
        assert g.ask(stream=True).body == want, f"cut at {offset}"
    assert g.account()["errors"] == 0


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("end", ["keep", "fin"])
def test_no_done(up, gate, framing, end):
    """SSE-13: a finish reason is a valid end; our client gets its [DONE]."""
    events = chat_chunks("x", done=False)
    up.script(K1, stream(events, framing=framing, end=end))
    g = gate(accounts=1)
    a = g.ask(stream=True)
    assert a.body == sse(events) + b"data: [DONE]\n\n"
    assert g.account()["success"] == 1


@pytest.mark.parametrize(
    "framing,end", [("chunked", "keep"), ("chunked", "fin"), ("close", "fin"), ("chunked", "rst")]
)
def test_no_finish_reason_is_an_error(up, gate, framing, end):
    """SSE-13, SPEC 5: a cut stream never looks like a clean end, whatever the transport says."""
    events = chat_chunks("some", "text", done=False, finish=None)
    up.script(K1, stream(events, framing=framing, end=end))
    g = gate()
    a = g.ask(stream=True)
    assert a.body.startswith(sse(events))
    last = json.loads(a.events()[-1][1])
    assert last["error"]["message"]
    assert b"[DONE]" not in a.body
    account = g.account()
    assert (account["success"], account["fails"], account["in_flight"]) == (0, 1, 0)
    assert up.count() == 1


def test_cut_inside_an_event(up, gate):
    """The half event goes nowhere: the error event must stand alone."""
    whole = sse(chat_chunks("some", done=False, finish=None))
    up.script(K1, stream(whole + b'data: {"choices":[{"delta":{"content":"ha', framing="close"))
    a = gate().ask(stream=True)
    assert a.body.startswith(whole)
    assert "error" in json.loads(a.events()[-1][1])
    assert all(json.loads(data) for _, data in a.events())


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r\n"])
def test_last_event_without_a_blank_line(up, gate, tail):
    """SSE-16"""
    head = sse([chunk({"content": "x"})])
    last = b"data: " + json.dumps(chunk({}, "stop")).encode()
    up.script(K1, stream(head + last + tail, framing="close"))
    g = gate(accounts=1)
    a = g.ask(stream=True)
    events = [data for _, data in a.events()]
    assert [json.loads(e) for e in events[:-1]] == [chunk({"content": "x"}), chunk({}, "stop")]
    assert events[-1] == "[DONE]"
    assert g.account()["success"] == 1


def test_done_without_a_blank_line(up, gate):
    up.script(K1, stream(sse(chat_chunks("x"))[:-2], framing="close"))
    g = gate(accounts=1)
    a = g.ask(stream=True)
    assert a.events()[-1][1] == "[DONE]"
    assert a.body.count(b"[DONE]") == 1
    assert g.account()["success"] == 1


def test_error_json_without_newline_to_a_stream_request(up, gate):
    """SSE-16: a JSON error body, under 200 and an SSE type, is classified."""
    up.script(
        K1,
        plain(
            b'{"error":{"code":"insufficient_quota","message":"no money"}}',
            ctype="text/event-stream",
        ),
    )
    g = gate()
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert g.account()["cool"]["kind"] == "hard_credit"


def test_terminal_event_ends_our_stream(up, gate):
    """The upstream keeps the line open after [DONE]: the client does not wait, the lease is free."""
    up.script(K1, stream(chat_chunks("x"), end="hold"))
    g = gate(accounts=1)
    a = g.ask(stream=True)
    assert a.took < 0.5
    assert a.body == sse(chat_chunks("x"))
    assert g.in_flight() == 0
    assert g.account()["success"] == 1
    assert g.ask(stream=True).status == 200


def test_data_after_done_is_ignored(up, gate):
    up.script(
        K1, stream(sse(chat_chunks("x")) + sse([chunk({"content": "late"})]) + b"data: [DONE]\n\n")
    )
    a = gate().ask(stream=True)
    assert a.body == sse(chat_chunks("x"))


def test_data_after_done_does_not_poison_the_next_request(up, gate):
    up.script(K1, stream(sse(chat_chunks("x")), then=[(0.2, sse([chunk({"content": "late"})]))]))
    g = gate(workers=1, accounts=1)
    assert b"late" not in g.ask(stream=True).body
    a = g.ask(stream=True)
    assert a.status == 200 and b"late" not in a.body


def test_a_line_that_never_ends(up, gate):
    """SSE-09: at max_event an in-band error, the upstream closed, memory bounded, other workers
    undisturbed.
    """

    def forever(x):
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        x.send(sse([chunk({"content": "start"})]) + b"data: ")
        while True:
            x.send(b"a" * 65536)

    up.script(K1, forever)
    g = gate(upstream={"max_event": "1M"}, workers=2)
    a = g.open()
    up.wait_for(1)
    assert g.ask().status == 200
    a.finish(15)
    assert "error" in json.loads(a.events()[-1][1])
    assert b"[DONE]" not in a.body
    wait_until(lambda: up.requests[0].aborted_at, 2, "the upstream was closed")
    for pid in g.worker_pids():
        with open(f"/proc/{pid}/status") as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
        assert rss < 80_000 or "san" in os.environ.get("SLUICE_BUILD", ""), f"{rss} kB"
    assert g.in_flight() == 0


def test_a_line_that_never_ends_before_the_commit(up, gate):
    def forever(x):
        x.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: "
        )
        while True:
            x.send(b"a" * 65536)

    up.script(K1, forever)
    g = gate(upstream={"max_event": "1M"})
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")


def test_big_events_pass(up, gate):
    """An event with an image can pass 4 MiB (formats.md 0.1)."""
    events = [chunk({"content": "x" * 5_000_000}), chunk({}, "stop"), "[DONE]"]
    up.script(K1, stream(events))
    assert gate().ask(stream=True).body == sse(events)


def test_endless_preamble_commits_at_last(up, gate):
    """SPEC 5: at most 1M is held back; beyond it the stream commits."""
    pre = [chunk({"role": "assistant", "content": ""}, pad="x" * 10_000)] * 150
    up.script(
        K1,
        stream(sse(pre), then=[(1.0, sse([chunk({"content": "x"}), chunk({}, "stop"), "[DONE]"]))]),
    )
    a = gate().open().finish()
    assert a.pieces[0][0] < 0.9
    assert a.body == sse(pre + [chunk({"content": "x"}), chunk({}, "stop"), "[DONE]"])


def test_invalid_json_events_pass_as_they_are(up, gate):
    body = (
        sse([chunk({"content": "x"})]) + b"data: not json\n\n" + sse([chunk({}, "stop"), "[DONE]"])
    )
    up.script(K1, stream(body))
    assert gate().ask(stream=True).body == body


def test_compressed_stream(up, gate):
    import gzip

    body = sse(chat_chunks("x"))

    def act(x):
        data = gzip.compress(body)
        x.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
            % len(data)
            + data
        )

    up.script(K1, act)
    a = gate().ask(stream=True)
    assert a.body == body and "content-encoding" not in a.names()


def test_heartbeat_only_between_events(up, gate):
    """SSE-20: half an event, three heartbeats, the rest."""
    first = sse([chunk({"content": "one"})])
    half = sse([chunk({"content": "two"})])
    rest = sse([chunk({}, "stop"), "[DONE]"])
    up.script(K1, stream(first + half[:20], then=[(1.3, half[20:] + rest)]))
    g = gate(upstream={"heartbeat": "300ms"})
    a = g.ask(stream=True)
    assert without_heartbeats(a.body) == first + half + rest


def test_heartbeat_after_the_commit(up, gate):
    """TMO-07: a comment each heartbeat while a committed stream is silent; the rest is untouched."""
    events = chat_chunks("x")
    cut = len(sse(events[:2]))
    up.script(K1, stream(events, cut, gap=1.35))
    g = gate(upstream={"heartbeat": "300ms"})
    a = g.ask(stream=True)
    beats = [t for t, data in a.pieces if data.startswith(b":")]
    assert 3 <= len(beats) <= 5, a.pieces
    assert all(data.endswith(b"\n\n") or data.endswith(b"\n") for _, data in a.pieces)
    assert without_heartbeats(a.body) == sse(events)


def test_nothing_is_sent_before_the_commit(up, gate):
    """RET-06: silent for several heartbeats, then 429: a clean 200 from A2."""
    up.script(K1, slow(1.0, error(429)))
    g = gate(upstream={"heartbeat": "200ms"})
    a = g.ask(stream=True)
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert a.pieces[0][0] > 0.9
    assert not a.body.startswith(b":")


def test_no_heartbeat_into_plain_json(up, gate):
    up.script(K1, slow(0.8, plain(chat_answer())))
    a = gate(upstream={"heartbeat": "200ms"}).ask()
    assert a.json()["choices"]


def test_comments_of_the_upstream(up, gate):
    """SSE-05: never as data, and they hold back nothing."""
    body = b": PROCESSING\n\n"
    up.script(
        K1,
        stream(
            body * 3 + sse([chunk({"content": "x"})]),
            then=[(0.3, body), (0.3, sse([chunk({}, "stop"), "[DONE]"]))],
        ),
    )
    a = gate().ask(stream=True)
    assert [d for _, d in a.events()][-1] == "[DONE]" and len(a.events()) == 3
    assert b"data: : PROC" not in a.body and b"data: PROC" not in a.body
