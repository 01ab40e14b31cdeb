"""Every client speaks to every provider (SPEC 4.3, 4.4, 5; formats.md E): all pairs of the three APIs,
plain and streamed, with their errors, failover and odd shapes; the same API on both sides passes as it
is.
"""

import json

import pytest

from lib import wires
from lib.answers import error, hang, plain, stream
from lib.fcgi import parse_sse
from lib.pool import K1, K2, K3, config, key
from lib.upstream import wait_until
from lib.wires import CALL, FIGURES, WIRES, ask, events, serve

PAIRS = [(c, u) for c in WIRES for u in WIRES]
OTHERS = [(c, u) for c, u in PAIRS if c != u]
MODES = [False, True]
pairs = pytest.mark.parametrize("client,host", PAIRS)
others = pytest.mark.parametrize("client,host", OTHERS)
modes = pytest.mark.parametrize("streamed", MODES, ids=["plain", "stream"])
each = pytest.mark.parametrize("wire", WIRES)


def channel(wire, **more):
    return {"wire": wire, **more}


def send(g, wire, streamed=False, headers=(), **vary):
    return g.send(ask(wire, streamed, **vary), path=wires.path(wire), headers=headers)


def get(g, wire, streamed=False, headers=(), **vary):
    return send(g, wire, streamed, headers, **vary).finish()


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
        '"temperature": 0.7', '"temperature":  0.70,"x_unknown":[1E5, "\\u00e9\\/", 12345678901234567890]'
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
    doc = wires.fault(host, "temperature: must be \u2264 1 \"x\"", code="invalid_value")
    up.default(plain(doc, 400))
    a = get(g, client, streamed)
    assert a.status == 400 and up.count() == 1
    if client == host:
        assert a.json() == doc
        return
    _, message, code = wires.error_of(client, a.json())
    assert message == "temperature: must be \u2264 1 \"x\""
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
    """4.3, also where an escape hides it from a look at the bytes."""
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
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": 3}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]},
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


# Headers -----------------------------------------------------------------------------------------

CLIENT = [
    ("anthropic-version", "2023-01-01"),
    ("anthropic-beta", "a, b,c,a"),
    ("OpenAI-Beta", "responses=v1"),
    ("Idempotency-Key", "k1"),
    ("User-Agent", "x"),
    ("X-Foo", "1"),
]
PASSED = {"anthropic-version", "anthropic-beta", "openai-beta", "idempotency-key"}


@pairs
def test_headers(up, gate, client, host):
    """HDR-01, HDR-02, HDR-03, HDR-19: to its own API what that API knows, to another one nothing."""
    g = gate(accounts=1, channel=channel(host))
    up.default(serve(host))
    keys = [("Authorization", "Bearer client"), ("x-api-key", "client2"), ("api-key", "client3")]
    assert get(g, client, headers=CLIENT + keys).status == 200
    got = {n: up.last.header(n) for n in PASSED & up.last.names()}
    want = {}
    if host == "messages":
        want = {"anthropic-version": "2023-06-01"}
    if client == host:
        want = {"openai-beta": "responses=v1", "idempotency-key": "k1"}
        if host == "messages":
            want |= {"anthropic-version": "2023-01-01", "anthropic-beta": "a,b,c"}
    assert got == want
    assert b"client" not in up.last.head.lower() and b"x-foo" not in up.last.head.lower()
    assert up.last.all("authorization") == [f"Bearer {K1}"]


ACCOUNTS = [
    ("a key", {}, {"x-api-key": "sk-ant-api03-Zq7wL0pVx", "anthropic-version": "2023-06-01"}, {}),
    (
        "a login",
        {"api_key": "sk-ant-oat01-Zq7wL0pVx"},
        {
            "authorization": "Bearer sk-ant-oat01-Zq7wL0pVx",
            "anthropic-beta": "oauth-2025-04-20",
            "anthropic-version": "2023-06-01",
        },
        {},
    ),
    (
        "a login, and flags from everywhere",
        {"api_key": "sk-ant-oat01-Zq7wL0pVx", "headers": {"Anthropic-Beta": "d, a"}},
        {
            "authorization": "Bearer sk-ant-oat01-Zq7wL0pVx",
            "anthropic-beta": "a,b,d,oauth-2025-04-20",
            "anthropic-version": "2026-10-21",
        },
        {"anthropic-beta": "a,b", "anthropic-version": "2026-10-21"},
    ),
    (
        "a header of its own",
        {"headers": {"Authorization": "Bearer own-0123456", "anthropic-version": "v"}},
        {"authorization": "Bearer own-0123456", "anthropic-version": "v"},
        {"anthropic-version": "2023-06-01"},
    ),
]


@pytest.mark.parametrize("account,want,sent", [a[1:] for a in ACCOUNTS], ids=[a[0] for a in ACCOUNTS])
def test_anthropic_accounts(up, gate, account, want, sent):
    """HDR-01, C.1: one credential, one version, all flags once."""
    row = {"id": "A1", "api_key": "sk-ant-api03-Zq7wL0pVx", **account}
    conf = config(up.url)
    conf["channels"] = {"an": {"provider": "anthropic", "base_url": up.url, "accounts": [row]}}
    g = gate(conf=conf)
    up.default(serve("messages"))
    assert get(g, "messages", headers=list(sent.items())).status == 200
    names = ["authorization", "x-api-key", "api-key", "anthropic-beta", "anthropic-version"]
    assert {n: up.last.all(n) for n in names if up.last.all(n)} == {n: [v] for n, v in want.items()}


# Quirks ------------------------------------------------------------------------------------------

ROLES = [{"role": "developer", "content": "x"}, {"role": "user", "content": "developer"}]
QUIRKS = [
    ({}, {"messages": ROLES}, {"messages": ROLES}),
    (
        {"developer_as_system": True},
        {"messages": ROLES},
        {"messages": [{"role": "system", "content": "x"}, ROLES[1]]},
    ),
    ({"max_tokens": "max_tokens"}, {"max_completion_tokens": 9}, {"max_tokens": 9}),
    ({"max_tokens": "max_completion_tokens"}, {"max_tokens": 9}, {"max_completion_tokens": 9}),
    ({"max_tokens": "max_tokens"}, {"max_tokens": 8, "max_completion_tokens": 9}, {"max_tokens": 8}),
    ({"no_stream_options": True}, {"stream": True, "stream_options": {}}, {"stream": True}),
    (
        {"no_stream_options": True, "max_tokens": "max_tokens"},
        {"stream_options": None, "max_completion_tokens": 9, "max_tokens": 8},
        {"max_tokens": 8},
    ),
]


@pytest.mark.parametrize("quirks,sent,want", QUIRKS)
def test_quirks(up, gate, quirks, sent, want):
    """A.9: on the same API, too, as edits."""
    g = gate(accounts=1, channel=channel("chat", quirks=quirks))
    base = {"model": "m1", "messages": [{"role": "user", "content": "x"}]}
    a = g.send({**sent, **base, **sent}, path="/v1/chat/completions").finish()
    assert a.status == 200 and up.last.json() == {**base, **want}


AZURE = [
    ("", "/openai/v1/chat/completions"),
    ("/openai", "/openai/v1/chat/completions"),
    ("/openai/v1", "/openai/v1/chat/completions"),
    ("?api-version=2024-06-01", "/openai/deployments/m%2F1/chat/completions?api-version=2024-06-01"),
    (
        "/openai/deployments/d1?api-version=v",
        "/openai/deployments/d1/chat/completions?api-version=v",
    ),
]


@pytest.mark.parametrize("base,want", AZURE)
def test_azure(up, gate, base, want):
    """D.7"""
    conf = config(up.url)
    conf["channels"] = {
        "az": {
            "provider": "azure",
            "base_url": up.url[:-3] + base,
            "accounts": [{"id": "A1", "api_key": K1}],
        }
    }
    g = gate(conf=conf)
    up.default(serve("chat"))
    assert get(g, "messages", model="m/1").status == 200
    assert up.last.target == want and up.last.all("api-key") == [K1]
    assert up.last.header("authorization") is None
