"""Every client speaks to every provider (SPEC 4.3, 4.4, 5; formats.md E): all pairs of the three APIs,
plain and streamed, with their errors, failover and odd shapes; the same API on both sides passes as it
is.
"""

import json

import pytest

from lib import wires
from lib.answers import error, plain, stream
from lib.fcgi import parse_sse
from lib.pool import K1, K2, K3, config, key
from lib.upstream import wait_until
from lib.wires import CALL, FIGURES, WIRES, ask, events, get, send, serve

PAIRS = [(c, u) for c in WIRES for u in WIRES]
OTHERS = [(c, u) for c, u in PAIRS if c != u]
MODES = [False, True]
pairs = pytest.mark.parametrize("client,host", PAIRS)
others = pytest.mark.parametrize("client,host", OTHERS)
modes = pytest.mark.parametrize("streamed", MODES, ids=["plain", "stream"])
each = pytest.mark.parametrize("wire", WIRES)


def channel(wire, **more):
    return {"wire": wire, **more}


def read(wire, streamed, answer):
    assert answer.status == 200, answer.out
    if streamed:
        assert answer.header("content-type") == "text/event-stream"
        return wires.gathered(wire, answer.body)
    assert answer.header("content-type") == "application/json"
    assert int(answer.header("content-length")) == len(answer.body)
    return wires.meaning(wire, answer.json())


# The nine pairs ----------------------------------------------------------------------------------


@pairs
@modes
@pytest.mark.parametrize("call", [None, CALL], ids=["text", "tool"])
def test_pair(up, gate, client, host, streamed, call):
    """The channel is asked in its own API; the client gets the same meaning in its own."""
    g = gate(accounts=1, channel=channel(host))
    up.default(serve(host, call=call))
    a = get(g, client, streamed, tools=True, text="Hello \U0001f600")
    got = read(client, streamed, a)
    same = client == host
    assert got == {
        "text": "hello",
        "calls": [CALL] if call else [],
        "finish": "calls" if call else "stop",
        "model": "up-model" if same else "m1",
        **FIGURES,
    }
    assert up.last.target == "/v1" + wires.path(host)[3:]
    assert wires.said(host, up.last.json()) == ("Hello \U0001f600", ["f"])
    assert up.last.json()["model"] == "m1"
    tokens = g.account()["tokens"]
    assert (tokens["prompt"], tokens["completion"], tokens["cached"]) == (12, 5, 4)
    assert g.account()["success"] == 1 and g.in_flight() == 0


@each
@modes
def test_same_api_is_untouched(up, gate, wire, streamed):
    """JSON-02, SPEC 5: not a byte of body or answer changes."""
    g = gate(accounts=1, channel=channel(wire))
    body = json.dumps(ask(wire, streamed, temperature=0.7), indent=1).replace(
        '"temperature": 0.7',
        '"temperature":  0.70,"x_unknown":[1E5, "\\u00e9\\/", 12345678901234567890]',
    )
    sent = b"".join(events(wire)) if streamed else json.dumps(wires.answer(wire), indent=3).encode()
    for how in ["whole", "bytes"]:
        up.script(K1, stream(sent, how) if streamed else plain(sent))
        a = g.send(body.encode(), path=wires.path(wire)).finish()
        assert a.body == sent
        assert up.last.body == body.encode()
    assert a.header("x-sluice-dropped") is None


@others
def test_pieces(up, gate, client, host):
    """Converted event by event: what has come is there before the next event is sent."""
    g = gate(accounts=1, channel=channel(host))
    parts = events(host, "one ", "two")
    cut = wires.content_at(host) + 1
    rest = b"".join(parts[cut:])
    up.script(K1, stream(b"".join(parts[:cut]), then=[(0.6, rest)]))
    answer = send(g, client, True).until(b"one ", 3)
    assert b"two" not in answer.body
    assert wires.gathered(client, answer.finish().body)["text"] == "one two"


@others
def test_any_cut(up, gate, client, host):
    g = gate(accounts=1, channel=channel(host))
    up.default(stream(b"".join(events(host, "h\u00e9l", "lo", call=CALL)), "bytes"))
    got = wires.gathered(client, get(g, client, True).body)
    assert (got["text"], got["calls"]) == ("h\u00e9llo", [CALL])


@others
def test_dropped(up, gate, client, host):
    """What the other API cannot say is named, once, and the header stays short."""
    g = gate(accounts=1, channel=channel(host))
    up.default(serve(host))
    extra = {f"x_{i:03}{'y' * 20}": i for i in range(40)}
    names = get(g, client, **extra).header("x-sluice-dropped")
    assert names.startswith("x_000") and names.endswith(",...") and len(names) <= 512
    assert "x_0" not in up.last.body.decode()
    assert get(g, client).header("x-sluice-dropped") is None
    names = get(g, client, **{"x_\r\nX-Evil: 1": 1})
    assert names.header("x-evil") is None


# Shapes ------------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("ctype", ["application/json", "text/event-stream", "text/plain", None])
def test_object_for_a_stream(up, gate, client, host, ctype):
    """SSE-17: the stream is made of it."""
    g = gate(accounts=1, channel=channel(host))
    up.default(plain(wires.answer(host, call=CALL), ctype=ctype))
    got = read(client, True, get(g, client, True))
    assert got == {"text": "hello", "calls": [CALL], "finish": "calls", "model": "m1", **FIGURES}
    assert g.account()["success"] == 1


@pairs
@pytest.mark.parametrize("ctype", ["application/json", "text/event-stream", "text/plain", None])
@pytest.mark.parametrize("how", ["whole", "bytes"])
def test_stream_for_an_object(up, gate, client, host, ctype, how):
    """SSE-17: the answer is gathered."""
    g = gate(accounts=1, channel=channel(host))
    body = b": wait\n\n" + b"".join(events(host, call=CALL, *("hel", "lo")))
    up.default(stream(body, how, ctype=ctype))
    got = read(client, False, get(g, client))
    assert got == {"text": "hello", "calls": [CALL], "finish": "calls", "model": "m1", **FIGURES}
    tokens = g.account()["tokens"]
    assert (tokens["prompt"], tokens["completion"], tokens["cached"]) == (12, 5, 4)


@pairs
def test_force_stream(up, gate, client, host):
    """SSE-18: the channel is asked for a stream, the client gets its object."""
    g = gate(accounts=1, channel=channel(host, quirks={"force_stream": True}))
    up.default(serve(host))
    assert read(client, False, get(g, client))["text"] == "hello"
    assert up.last.json()["stream"] is True
    assert up.last.header("accept") == "text/event-stream"
    if host == "chat":
        assert up.last.json()["stream_options"]["include_usage"] is True


@each
def test_event_stream_header_over_json(up, gate, wire):
    """SSE-18: one Content-Type, the right one, and the right length."""
    g = gate(accounts=1, channel=channel(wire))
    up.default(plain(wires.answer(wire), ctype="text/event-stream"))
    a = get(g, wire)
    assert a.all("content-type") == ["application/json"]
    assert int(a.header("content-length")) == len(a.body) and a.json() == wires.answer(wire)


def test_side_endpoints_are_not_converted(up, gate):
    """Embeddings and the like go to chat channels alone; count_tokens to messages channels alone."""
    g = gate(accounts=1, channel=channel("messages"))
    side = {"/v1/embeddings": "input", "/v1/completions": "prompt", "/v1/moderations": "input"}
    for path, member in side.items():
        a = g.send({"model": "m1", member: "x"}, path=path).finish()
        assert (a.status, a.error["code"]) == (404, "model_not_found"), path
    assert up.count() == 0
    up.default(plain({"input_tokens": 7}))
    a = g.send(
        {k: v for k, v in ask("messages").items() if k != "max_tokens"},
        path="/v1/messages/count_tokens",
    ).finish()
    assert a.json() == {"input_tokens": 7} and up.last.target == "/v1/messages/count_tokens"


# Errors ------------------------------------------------------------------------------------------


@pairs
@modes
def test_client_fault(up, gate, client, host, streamed):
    """Byte for byte on the same API, in the client's shape with message and code on another."""
    g = gate(channel=channel(host))
    doc = wires.fault(host, 'temperature: must be \u2264 1 "x"', code="invalid_value")
    up.default(plain(doc, 400))
    a = get(g, client, streamed)
    assert a.status == 400 and up.count() == 1
    if client == host:
        assert a.json() == doc
        return
    _, message, code = wires.error_of(client, a.json())
    assert message == 'temperature: must be \u2264 1 "x"'
    assert code == (None if host == "messages" else "invalid_value")
    g.assert_clean()


@pairs
def test_context_length(up, gate, client, host):
    """E.9: agents shorten by themselves when they are told in the words that they know."""
    g = gate(accounts=1, channel=channel(host))
    text = "prompt is too long: 9 tokens > 8 maximum"
    if host != "messages":
        text = "This model's maximum context length is 8 tokens."
    up.default(plain(wires.fault(host, text, code="context_length_exceeded"), 400))
    _, message, code = wires.error_of(client, get(g, client).json())
    if client == "messages":
        assert "prompt is too long" in message or client == host
    elif client != host:
        assert code == "context_length_exceeded"


@each
def test_own_errors(up, gate, wire):
    """E.9: errors of ours are in the shape of the API that was called."""
    g = gate(accounts=1, channel=channel("chat", models=["m1"]))
    cases = [
        (b"{", 400, "invalid_request_error"),
        (json.dumps(ask(wire, model="other")).encode(), 404, "not_found_error"),
    ]
    for body, status, kind in cases:
        a = g.send(body, path=wires.path(wire)).finish()
        got = wires.error_of(wire, a.json())
        assert a.status == status
        assert got[0] == (kind if wire == "messages" else "invalid_request_error")
    up.default(error(429, code="rate_limit_exceeded"))
    a = get(g, wire)
    assert a.status == 429 and wires.error_of(wire, a.json())[0] == "rate_limit_error"
    assert up.count() == 1


@pairs
def test_failover_before_the_commit(up, gate, client, host):
    """RET-02: the client never sees the first account, nor anything of what it began."""
    g = gate(channel=channel(host))
    head = b"".join(events(host)[: wires.content_at(host)])
    up.script(K1, stream(head + wires.in_band(host)))
    up.script(K2, stream(head, framing="close"))
    up.script(K3, stream(b"".join(events(host))))
    got = read(client, True, get(g, client, True))
    assert got["text"] == "hello" and up.creds()[0] == K1 and len(up.creds()) == 3


@pairs
def test_error_after_the_commit(up, gate, client, host):
    """In-band errors end the stream in the client's own grammar, without its end marker."""
    g = gate(accounts=2, channel=channel(host))
    up.default(stream(b"".join(events(host)[: wires.content_at(host) + 1]) + wires.in_band(host)))
    a = get(g, client, True)
    assert a.status == 200 and b"hel" in a.body and up.count() == 1
    assert wires.error_event(client, a.body) == "Overloaded"
    for end in [b"[DONE]", b"message_stop", b"response.completed"]:
        assert end not in a.body
    if client == "responses" and client != host:
        found = [json.loads(d)["sequence_number"] for _, d in parse_sse(a.body)]
        assert found == list(range(len(found)))


@pairs
@pytest.mark.parametrize("end", ["fin", "rst", "keep"])
def test_cut_after_the_commit(up, gate, client, host, end):
    g = gate(accounts=2, channel=channel(host))
    up.default(stream(b"".join(events(host)[: wires.content_at(host) + 1]), end=end))
    a = get(g, client, True)
    assert b"hel" in a.body and up.count() == 1
    assert wires.error_event(client, a.body)
    if client == "responses":
        found = [json.loads(d)["sequence_number"] for _, d in parse_sse(a.body)]
        assert found == list(range(len(found)))
    assert g.account()["errors"] == 1


@pairs
def test_cut_while_gathering(up, gate, client, host):
    """Nothing was sent: another account answers."""
    g = gate(accounts=2, channel=channel(host, quirks={"force_stream": True}))
    up.script(K1, stream(b"".join(events(host)[: wires.content_at(host) + 1]), end="fin"))
    up.script(K2, serve(host))
    assert read(client, False, get(g, client))["text"] == "hello"
    assert up.creds() == [K1, K2]


@others
def test_broken_grammar(up, gate, client, host):
    """What cannot be read cannot be converted: the client's own error, and the account's failure."""
    g = gate(accounts=2, channel=channel(host))
    broken = b"data: {not json\n\n"
    up.default(
        stream(b"".join(events(host)[: wires.content_at(host) + 1]) + broken + events(host)[-1])
    )
    a = get(g, client, True)
    assert wires.error_event(client, a.body) and g.account()["errors"] == 1
    assert b"not json" not in a.body


@pairs
def test_client_gone(up, gate, client, host):
    """The upstream's transfer ends, nobody is blamed."""
    g = gate(accounts=1, channel=channel(host))
    head = b"".join(events(host)[: wires.content_at(host) + 1])
    up.default(stream(head, end="hold"))
    answer = send(g, client, True).until(b"hel", 3)
    answer.close()
    wait_until(lambda: up.last.aborted_at, 3, "the transfer is ended")
    wait_until(lambda: g.in_flight() == 0, 3, "the lease is free")
    g.assert_clean()


@pairs
@modes
def test_heartbeat(up, gate, client, host, streamed):
    """SSE-20: comments only between events; never into a plain answer."""
    g = gate(accounts=1, channel=channel(host), upstream={"heartbeat": "100ms"})
    parts = events(host)
    cut = wires.content_at(host) + 1
    rest = b"".join(parts[cut:])
    head = b"".join(parts[:cut]) + rest[:9]
    up.default(stream(head, then=[(0.5, rest[9:])]))
    a = get(g, client, streamed)
    assert (b": hb\n\n" in a.body) == streamed
    assert read(client, streamed, a)["text"] == "hello"


@pairs
def test_no_key_reaches_the_client(up, gate, client, host):
    """SPEC 4.3"""
    g = gate(accounts=1, channel=channel(host))
    up.script(K1, stream(b"".join(events(host, "a " + K1, " b"))))
    a = get(g, client, True)
    assert K1.encode() not in a.body and b"[redacted]" in a.body
    up.script(K1, plain(wires.answer(host, "your key is " + K1)))
    a = get(g, client)
    assert K1.encode() not in a.body and b"[redacted]" in a.body
    up.script(K1, plain(wires.fault(host, "bad: " + K1), 400))
    a = get(g, client)
    assert K1.encode() not in a.body and b"[redacted]" in a.body


@others
def test_no_escaped_key_reaches_the_client(up, gate, client, host):
    """What an escape hides from a look at the bytes is plain when it was converted."""
    g = gate(accounts=1, channel=channel(host))
    escaped = (K1.encode(), b"\\u0073" + K1[1:].encode())
    up.script(K1, stream(b"".join(events(host, "a " + K1, " b")).replace(*escaped)))
    a = get(g, client, True)
    assert K1.encode() not in a.body and b"[redacted]" in a.body
    up.script(
        K1, plain(json.dumps(wires.answer(host, "your key is " + K1)).encode().replace(*escaped))
    )
    a = get(g, client)
    assert K1.encode() not in a.body and b"[redacted]" in a.body


# Channels of several APIs ------------------------------------------------------------------------


def several(up, *hosts, first=(), **more):
    """A channel for each API, the first with all others as its fallback."""
    rows = {}
    for i, wire in enumerate(hosts):
        rows[f"c{i}"] = {
            "provider": "openai-compatible",
            "wire": wire,
            "base_url": up.url,
            "accounts": [{"id": f"A{i}", "api_key": key(i + 1)}],
        }
    rows["c0"]["fallback"] = [f"c{i}" for i in range(1, len(hosts))]
    base = config(up.url, **more)
    base["channels"] = rows
    return base


@pairs
@modes
def test_fallback_of_another_api(up, gate, client, host, streamed):
    """A failure before the commit leads to a channel of any other API."""
    g = gate(conf=several(up, client, host))
    up.script(K1, error(500))
    up.script(K2, serve(host))
    a = get(g, client, streamed)
    assert read(client, streamed, a)["text"] == "hello"
    assert (a.header("x-sluice-channel"), a.header("x-sluice-attempts")) == ("c1", "2")
    assert [r.target for r in up.requests] == ["/v1" + wires.path(w)[3:] for w in (client, host)]


BAD_HISTORY = {
    "chat": {
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ]
    },
    "messages": {
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": 3}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}],
            },
        ]
    },
    "responses": {
        "input": [
            {"role": "user", "content": "x"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a'},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
        ]
    },
}


@others
def test_history_that_breaks(up, gate, client, host):
    """One 400 that names the place, before anybody is asked."""
    g = gate(channel=channel(host))
    a = get(g, client, **BAD_HISTORY[client])
    assert a.status == 400 and up.count() == 0
    _, message, _ = wires.error_of(client, a.json())
    assert ("input[1]" if client == "responses" else "messages[1]") in message
    assert a.header("x-sluice-attempts") == "0"
    g.assert_clean()


@others
def test_history_that_only_its_own_api_takes(up, gate, client, host):
    """Where the client's API is served first, the others are passed over, not tried with rubbish."""
    g = gate(conf=several(up, client, host))
    up.script(K1, error(500, message="boom"))
    a = get(g, client, **BAD_HISTORY[client])
    assert a.status == 502 and up.creds() == [K1]
    assert "boom" in wires.error_of(client, a.json())[1]
