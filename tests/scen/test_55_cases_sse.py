"""The SSE cases for converted streams, in every pair of APIs; those of passed streams are in
test_30_sse.py and test_31_stream_errors.py.
"""

import json

import pytest

from lib import grammar, wires
from lib.answers import plain, sse, stream
from lib.trio import OTHERS, PAIRS, Trio
from lib.wires import CALL, FIGURES, ask, events

pytestmark = pytest.mark.broad

others = pytest.mark.parametrize("client,host", OTHERS)
pairs = pytest.mark.parametrize("client,host", PAIRS)
TEXT = "\u4fee\u590d\U0001f31f\u00e9"
WILD = ("w", "f", json.dumps({"a": TEXT}, ensure_ascii=False, separators=(",", ":")))


@pytest.fixture(scope="module")
def trio():
    t = Trio(upstream={"heartbeat": "100ms", "max_event": "256k"})
    yield t
    t.close()


def streamed(trio, client, host, body, how="whole", **vary):
    a = trio.get(client, host, ask(client, True, tools=True), stream(body, how, **vary))
    assert a.status == 200, a.out[:2000]
    return a


def raw_utf8(parts):
    """As most hosts write it: no escapes."""
    out = []
    for part in parts:
        head, mark, data = part.partition(b"data: ")
        if data.startswith(b"{"):
            text = json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":"))
            data = text.encode() + b"\n\n"
        out.append(head + mark + data)
    return out


def spellings(body):
    """The same events in every way that the grammar allows."""
    lines = b"".join(
        b"data: " + line[6:].replace(b'"type":', b'\ndata: "type":', 1)
        if line.startswith(b"data: {")
        else line
        for line in body.splitlines(keepends=True)
    )
    return {
        "usual": body,
        "no space": body.replace(b"data: ", b"data:").replace(b"event: ", b"event:"),
        "more spaces": body.replace(b"data: {", b"data:   {"),
        "CRLF": body.replace(b"\n", b"\r\n"),
        "CR": body.replace(b"\n", b"\r"),
        "BOM": b"\xef\xbb\xbf" + body,
        "ids, retry, unknown fields": body.replace(b"data: {", b"id: 7\nretry: 5\nx: y\ndata: {"),
        "comments": b": PROCESSING\n\n: a\n" + body.replace(b"\n\n", b"\n\n: keep-alive\n\n"),
        "several data lines": lines,
        "blank lines": b"\n\n\n" + body.replace(b"\n\n", b"\n\n\n\n"),
    }


WANT = {"text": TEXT, "calls": [WILD], "finish": "calls"}


def meant(client, a):
    got = wires.gathered(client, a.body)
    return {k: got[k] for k in WANT}


@others
def test_sse_01_05_spellings(trio, client, host):
    """SSE-01, SSE-05: one leading space goes, comments are no data; any spelling, any piece."""
    body = b"".join(raw_utf8(events(host, TEXT[:1], TEXT[1:], call=WILD)))
    for name, spelt in spellings(body).items():
        for how in ("whole", "lines", "bytes"):
            a = streamed(trio, client, host, spelt, how)
            got = meant(client, a)
            calls = [(i, n, json.loads(v)) for i, n, v in got["calls"]]
            assert (got["text"], calls) == (TEXT, [("w", "f", {"a": TEXT})]), (name, how)
            assert b"PROCESSING" not in b"".join(
                line for line in a.body.splitlines() if not line.startswith(b":")
            )


@others
def test_sse_06_07_cut_at_every_offset(trio, client, host):
    """SSE-06, SSE-07: inside characters, escapes, "data", between two line ends."""
    parts = raw_utf8(events(host, "\u00e9", "\U0001f31f\u4f60", call=WILD))
    at = wires.content_at(host)
    parts[at] = parts[at].replace("\u00e9".encode(), b"\\u00e9\\ud83c\\udf1f")
    body = b"".join(parts)
    want = None
    for offset in range(0, len(body), 2 + len(body) // 600):
        got = meant(client, streamed(trio, client, host, body, [offset], gap=0.0002))
        want = want or got
        assert got == want, offset
    assert want["text"] == "\u00e9\U0001f31f" + "\U0001f31f\u4f60"
    assert [json.loads(c[2]) for c in want["calls"]] == [{"a": TEXT}]


@others
def test_sse_09_a_line_that_never_ends(trio, client, host):
    """SSE-09: at max_event an error event, or the failure of a request."""
    head = b"".join(events(host)[: wires.content_at(host) + 1])
    endless = b"data: " + b"a" * 600_000
    a = streamed(trio, client, host, head + endless, end="hold")
    assert grammar.end(client, a.body) == "error" and len(a.body) < 20_000
    a = trio.get(client, host, ask(client, True), stream(endless, end="hold"))
    assert a.status == 502 and wires.error_of(client, a.json())
    assert trio.pool.in_flight() == 0


@others
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_sse_13_no_end_marker(trio, client, host, framing):
    """SSE-13: a finish reason is an end; the client gets its own end marker. Without it: an error."""
    parts = events(host)
    if host == "responses":  # its last event is both
        a = streamed(trio, client, host, b"".join(parts[:-1]), framing=framing)
        assert grammar.end(client, a.body) == "error"
        return
    a = streamed(trio, client, host, b"".join(parts[:-1]), framing=framing)
    assert grammar.end(client, a.body) == "whole"
    assert wires.gathered(client, a.body)["completion"] == FIGURES["completion"]
    cut = len(parts) - (3 if host == "chat" else 2)
    a = streamed(trio, client, host, b"".join(parts[:cut]), framing=framing)
    assert grammar.end(client, a.body) == "error"


@pairs
@pytest.mark.parametrize("end", ["data: [DONE]", "data: DONE", "data:[DONE]", "data: {}", ": x"])
def test_sse_15_more_behind_the_end(trio, client, host, end):
    """SSE-15: what follows the end is nothing to the client."""
    parts = events(host, "hel", "lo")
    body = b"".join(parts) + end.encode() + b"\n\n" + parts[wires.content_at(host)]
    a = streamed(trio, client, host, body)
    assert wires.gathered(client, a.body)["text"] == "hello"


@others
def test_sse_16_no_blank_line_at_the_end(trio, client, host):
    """SSE-16: the last event counts without one."""
    body = b"".join(events(host, "hel", "lo"))
    for cut in (1, 2):
        a = streamed(trio, client, host, body[:-cut], framing="close")
        assert wires.gathered(client, a.body)["text"] == "hello"
    doc = json.dumps(wires.fault(host, "no good")).encode()
    for ctype in ("application/json", "text/event-stream"):
        a = trio.get(client, host, ask(client, True), stream(doc, ctype=ctype, status=400))
        assert a.status == 400 and wires.error_of(client, a.json())[1] == "no good"


@pairs
def test_sse_20_heartbeats_between_events(trio, client, host):
    """SSE-20: half an event, some heartbeats, the rest."""
    parts = events(host, "hel", "lo")
    cut = wires.content_at(host) + 1
    rest = b"".join(parts[cut:])
    head = b"".join(parts[:cut]) + rest[:20]
    a = streamed(trio, client, host, head, then=[(0.25, rest[20:])])
    assert a.body.count(b": hb\n\n") >= 1
    assert wires.gathered(client, a.body)["text"] == "hello"


ODD = 'boom [HTTP 502] "\u2028" \U0001f600'


def in_band(host, name):
    if host == "responses" and name == "flat":
        doc = {"type": "error", "code": "server_error", "message": ODD, "param": None}
        return b"event: error\n" + sse([{**doc, "sequence_number": 9}])
    if host == "chat" and name == "flat":
        return b"event: error\n" + sse([{"message": ODD, "code": "server_error"}])
    if host == "messages" and name == "flat":
        return sse([wires.fault(host, ODD, "api_error")])  # without its event line
    return wires.in_band(host, ODD, "server_error", "server_error")


@pairs
@pytest.mark.parametrize("name", ["usual", "flat"])
def test_sse_21_error_keeps_its_text(trio, client, host, name):
    """SSE-21: in the client's own shape, with the upstream's message; before and after the commit."""
    error = in_band(host, name)
    head = b"".join(events(host)[: wires.content_at(host) + 1])
    a = streamed(trio, client, host, head + error)
    if client == host:
        assert a.body == head + error or name == "flat"
    else:
        assert wires.error_event(client, a.body) == ODD
        assert grammar.end(client, a.body) == "error"
    a = trio.get(client, host, ask(client, True), stream(error))
    assert a.status == 502 and wires.error_of(client, a.json())[1] == ODD


@others
def test_error_that_is_no_json(trio, client, host):
    """E.14: an HTML page, plain text, nothing: our own words in the client's shape."""
    for status, text in ((400, b"<html>no</html>"), (500, b"oops"), (502, b""), (200, b"<html>")):
        a = trio.get(client, host, ask(client), plain(text, status, ctype="text/html"))
        assert a.status == (400 if status == 400 else 502), (status, a.out)
        assert wires.error_of(client, a.json())[1]
        assert b"<html" not in a.body


@others
def test_big_events(trio, client, host):
    """One event of 200 kB, and 5,000 small ones."""
    big = "x" * 200_000
    if host != "responses":  # where the last event repeats all of it
        a = streamed(trio, client, host, b"".join(events(host, big)))
        assert wires.gathered(client, a.body)["text"] == big
    many = ["ab"] * 5000
    a = streamed(trio, client, host, b"".join(events(host, *many)))
    assert wires.gathered(client, a.body)["text"] == "ab" * 5000


def chat(*deltas, finish="stop", usage=None):
    made = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
    return sse([{"id": "c", "model": "m", "object": "chat.completion.chunk", **m} for m in made])


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_chat_streams_of_wilder_hosts(trio, client):
    """E.14: no role chunk, usage in the finish chunk, in every chunk, in the choice."""
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    figures = {"prompt": 12, "completion": 5, "cached": 0}
    for body in (
        chat({"content": "hello"}, usage=usage),
        chat({"content": "hello"}).replace(b',"usage":null', b"")
        + sse([{"choices": [], "usage": usage}, "[DONE]"]),
        sse(
            [
                {
                    "choices": [
                        {
                            "index": 0,
                            "delta": {"content": "hello"},
                            "finish_reason": "stop",
                            "usage": usage,
                        }
                    ]
                }
            ]
        ),
    ):
        got = wires.gathered(client, streamed(trio, client, "chat", body).body)
        assert {**got, **figures} == got and got["text"] == "hello", body
