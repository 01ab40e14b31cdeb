"""Attacks on conversions: depth, length, number, size. Always a 200 or a 400, in linear time, in bounded
memory, and the worker lives.
"""

import json
import time

import pytest

from lib import grammar, wires
from lib.answers import plain, stream
from lib.around import SANITIZED
from lib.talk import ask_with, heard
from lib.trio import OTHERS, Trio
from lib.wires import ask

pytestmark = pytest.mark.broad

others = pytest.mark.parametrize("client,host", OTHERS)
SOON = 10  # seconds: far more than a linear way takes, far less than a square one
LIST = {"chat": "messages", "messages": "messages", "responses": "input"}


@pytest.fixture(scope="module")
def trio():
    t = Trio(server={"max_body": "64M", "max_requests": 0})
    yield t
    harmed = t.harmed()
    t.close()
    assert not harmed


@pytest.fixture(autouse=True)
def alive(trio):
    pids = trio.pool.worker_pids()
    yield
    assert trio.pool.worker_pids() == pids and trio.pool.in_flight() == 0


def raw(client, host, place, text):
    """A request with `text` put at a place: "schema", "arguments", "extra", "content"."""
    body = ask_with(client, ("user", "x"), ("call", "c", "f", "{}"), ("result", "c", "1"))
    body |= {"model": f"m-{host}", "tools": ask(client, tools=True)["tools"], "x_extra": 0}
    out = json.dumps(body)
    if place == "schema":
        return out.replace('"integer"', text, 1).encode()
    if place == "extra":
        return out.replace('"x_extra": 0', f'"x_extra": {text}').encode()
    if client == "messages":
        return out.replace('"input": {}', f'"input": {{"a": {text}}}').encode()
    inner = json.dumps(f'{{"a": {text}}}')
    return out.replace('"arguments": "{}"', f'"arguments": {inner}').encode()


@others
@pytest.mark.parametrize("place", ["schema", "arguments", "extra"])
def test_depth(trio, client, host, place):
    """240 levels pass where they are kept; far more are a 400, never a crash."""
    for depth, opens, closes in ((200, "[", "]"), (100_000, "[", "]"), (50_000, '{"a":', "}")):
        inner = opens * depth + ("1" if opens != "[" else "") + closes * depth
        a = trio.send(client, host, raw(client, host, place, inner)).finish()
        trio.faults = [f for f in trio.faults if "RecursionError" not in f]
        assert a.status == (200 if depth == 200 else 400) or place == "arguments", (
            depth,
            a.out[:300],
        )
        assert a.status in (200, 400)
        if a.status == 400:
            assert trio.up.count() == 0 and wires.error_of(client, a.json())[1]
        elif depth == 200 and place != "extra":
            sent = trio.up.last.body
            assert b"[" * 200 in sent.replace(b" ", b"")


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) << 10


def timed(action):
    began = time.monotonic()
    value = action()
    return time.monotonic() - began, value


@others
def test_long_histories(trio, client, host):
    """Twice the messages, about twice the time."""
    took = []
    for n in (5_000, 10_000):
        turns = [item for i in range(n) for item in (("user", f"u{i}"), ("assistant", f"a{i}"))]
        body = json.dumps(
            {**ask_with(client, *turns, ("user", "end")), "model": f"m-{host}"}
        ).encode()
        seconds, a = timed(lambda: trio.send(client, host, body).finish(30))
        assert a.status == 200 and not trio.faults
        took.append(seconds)
    assert took[1] < 3 * took[0] + 2, took
    assert heard(host, trio.up.last.json())[-1] == ("user", "end")


@others
@pytest.mark.parametrize("apart", [False, True])
def test_many_calls(trio, client, host, apart):
    """10,000 calls in one turn, or in as many turns."""
    n, items = 10_000, [("user", "x")]
    calls = [("call", f"c{i}", "f", '{"a":1}') for i in range(n)]
    results = [("result", f"c{i}", "r") for i in reversed(range(n))]
    if apart:
        items += [x for c, r in zip(calls, reversed(results)) for x in (c, r)]
    else:
        items += calls + results
    body = json.dumps({**ask_with(client, *items), "model": f"m-{host}"}).encode()
    seconds, a = timed(lambda: trio.send(client, host, body).finish(30))
    assert a.status == 200 and not trio.faults, (a.out[:300], trio.faults[:1])
    assert seconds < SOON, seconds
    results = [i for i in items if i[0] == "result"]
    results[7] = ("result", "other", "r")
    items = [i for i in items if i[0] != "result"] + results
    body = json.dumps({**ask_with(client, *items), "model": f"m-{host}"}).encode()
    seconds, a = timed(lambda: trio.send(client, host, body).finish(30))
    assert a.status == 400 and seconds < SOON, (a.status, seconds)


@others
def test_many_tools_and_parts(trio, client, host):
    tool = json.dumps(ask(client, tools=True)["tools"][0])
    tools = [json.loads(tool.replace('"name": "f"', f'"name": "f{i}.x"')) for i in range(5_000)]
    part = {"chat": "text", "messages": "text", "responses": "input_text"}[client]
    content = [{"type": part, "text": f"t{i}"} for i in range(20_000)]
    body = {**ask(client), LIST[client]: [{"role": "user", "content": content}], "tools": tools}
    seconds, a = timed(lambda: trio.get(client, host, body))
    assert a.status == 200 and seconds < SOON, (a.out[:300], seconds)
    assert len({t.get("function", t)["name"] for t in trio.up.last.json()["tools"]}) == 5_000


@others
def test_many_members(trio, client, host):
    body = {**ask(client), **{f"x{i}": i for i in range(50_000)}}
    seconds, a = timed(lambda: trio.get(client, host, body))
    assert a.status in (200, 400) and seconds < SOON, (a.out[:300], seconds)
    body = json.dumps({**ask(client), "model": f"m-{host}", "x": 1}).encode()
    body = body.replace(b'"x": 1', b",".join([b'"x": 1'] * 50_000))
    seconds, a = timed(lambda: trio.send(client, host, body).finish())
    assert a.status in (200, 400) and seconds < SOON, (a.out[:300], seconds)


@others
def test_large_images(trio, client, host):
    """What the provider takes passes, 30 MB are refused with their place; memory comes back."""
    most = 6_000_000 if host == "messages" else 20_000_000
    small = ask_with(client, ("user", "x"), ("image", "data:image/png;base64,AAAA"))
    text = json.dumps({**small, "model": f"m-{host}"}).encode()
    pid = trio.pool.worker_pids()[0]
    a = trio.send(client, host, text.replace(b"AAAA", b"A" * most)).finish(30)
    assert a.status == 200 and not trio.faults and len(trio.up.last.body) > most
    a = trio.send(client, host, text.replace(b"AAAA", b"A" * 40_000_000)).finish(30)
    assert a.status == 400 and trio.up.count() == 0
    assert "[1]" in wires.error_of(client, a.json())[1]
    assert trio.get(client, host, ask(client)).status == 200
    assert SANITIZED or rss(pid) < 64 << 20, rss(pid)


@others
def test_long_words(trio, client, host):
    """Names, ids and roles of a megabyte: short messages, no crash."""
    long = "n" * 1_000_000
    items = [("user", "x"), ("call", long, "f", "{}"), ("result", long, "1")]
    assert trio.get(client, host, ask_with(client, *items)).status == 200
    items = [("user", "x"), ("call", "c", long, "{}"), ("result", "c", "1")]
    assert trio.get(client, host, ask_with(client, *items)).status == 200
    for bad in (
        ask_with(client, (long, "x")),
        ask_with(client, ("user", "x"), ("result", long, "1")),
        {**ask(client), LIST[client]: [{"role": "user", "content": [{"type": long}]}]},
        {**ask(client), "tools": [{"type": long, "name": long}], "tool_choice": long},
    ):
        a = trio.get(client, host, bad)
        assert a.status in (200, 400) and len(a.body) < 2000, a.body[:3000]


NUMBERS = ["1e400", "-1e400", "1e-400", "9" * 400, "0." + "0" * 400 + "1", "-0", "1E+2", "0.1e1"]


@others
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(trio, client, host, number):
    for name in ("temperature", "top_p", "max_tokens", "max_output_tokens", "seed", "n", "top_k"):
        body = json.dumps({**ask(client), "model": f"m-{host}", name: "@"})
        a = trio.get(client, host, body.replace('"@"', number).encode())
        assert a.status in (200, 400), (name, a.out[:300])


@others
def test_large_answers(trio, client, host):
    """An answer of a megabyte, whole and streamed, and one of 20,000 pieces."""
    text = 'x"\\\u00e9' * 200_000
    seconds, a = timed(lambda: trio.get(client, host, ask(client), plain(wires.answer(host, text))))
    assert trio.read(client, a)["text"] == text and seconds < SOON
    a = trio.get(client, host, ask(client, True), plain(wires.answer(host, text)))
    assert trio.read(client, a, True)["text"] == text
    body = b"".join(wires.events(host, *(["ab"] * 20_000)))
    seconds, a = timed(lambda: trio.get(client, host, ask(client, True), stream(body)))
    assert grammar.end(client, a.body) == "whole" and seconds < SOON
    seconds, a = timed(lambda: trio.get(client, host, ask(client), stream(body)))
    assert trio.read(client, a)["text"] == "ab" * 20_000 and seconds < SOON


@pytest.fixture(scope="module")
def fragile():
    """One whose accounts may fail."""
    t = Trio()
    yield t
    t.close()


@others
def test_deep_answers(fragile, client, host):
    trio, pids = fragile, fragile.pool.worker_pids()
    for depth in (200, 100_000):
        call = ("c", "f", '{"a":1}')
        text = json.dumps(wires.answer(host, "", call))
        deep = "[" * depth + "]" * depth
        text = text.replace('{"a": 1}', f'{{"a": {deep}}}').replace(
            '{\\"a\\":1}', f'{{\\"a\\":{deep}}}'
        )
        for streamed in (False, True):
            a = trio.send(client, host, ask(client, streamed), plain(text)).finish()
            assert a.status in (200, 502), (depth, a.out[:200])
    assert trio.pool.worker_pids() == pids
