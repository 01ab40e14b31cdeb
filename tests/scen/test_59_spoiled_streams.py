"""Streams of an upstream in every broken way, from each API to each: the client gets a whole answer or
its own error event, a plain client a whole object or an error, and the worker lives.
"""

import json

import pytest

from lib import grammar, rich, wires
from lib.answers import stream
from lib.trio import OTHERS, PAIRS, Trio
from lib.wires import CALL

pytestmark = pytest.mark.broad


@pytest.fixture(scope="module")
def trio():
    t = Trio()
    yield t
    t.close()


def shuffled(parts):
    """(what, bytes) of every event dropped, doubled, swapped, moved to the end, replaced, cut."""
    for i in range(len(parts)):
        rest = parts[:i] + parts[i + 1 :]
        yield f"without {i}", rest
        yield f"{i} twice", parts[: i + 1] + parts[i:]
        yield f"{i} last", rest + [parts[i]]
        yield f"{i} first", [parts[i]] + rest
        yield f"end at {i}", parts[:i]
        yield f"only {i}", [parts[i]]
        yield f"cut in {i}", parts[:i] + [parts[i][: len(parts[i]) // 2]]
        if i + 1 < len(parts):
            yield f"{i} swapped", parts[:i] + [parts[i + 1], parts[i]] + parts[i + 2 :]
        for text in (b"{", b"{}", b"[]", b"null", b"1", b'"x"', b"x", b"", b"[DONE]"):
            yield f"{i} is {text}", parts[:i] + [b"data: " + text + b"\n\n"] + parts[i + 1 :]


def spoiled(parts):
    """Every member of every event in a wrong type."""
    for i, part in enumerate(parts):
        head, _, data = part.partition(b"data: ")
        if not data.startswith(b"{"):
            continue
        doc = json.loads(data)
        for path in rich.places(doc):
            where = ".".join(map(str, path))
            for value in (*rich.VALUES[::3], rich.places):
                made = head + b"data: " + json.dumps(rich.with_value(doc, path, value)).encode()
                yield f"{i}: {where} = {value!r}", parts[:i] + [made + b"\n\n"] + parts[i + 1 :]


def check(trio, client, host, what, body):
    for streamed in (True, False):
        ask = wires.ask(client, streamed, tools=True)
        a = trio.send(client, host, ask, stream(body)).finish()
        kind = a.header("content-type")
        assert trio.up.count() == 1, (what, a.out)  # nobody rests
        if a.status != 200:
            assert a.status in (400, 429, 502, 503, 504), (what, a.out)
            assert wires.error_of(client, a.json())[1]
        elif client == host:
            pass
        elif streamed:
            assert kind == "text/event-stream"
            grammar.end(client, a.body)
        else:
            assert int(a.header("content-length")) == len(a.body)
            plain(client, a.json())


def plain(client, doc):
    if client == "chat":
        assert doc["choices"][0]["finish_reason"] and doc["choices"][0]["message"]
    elif client == "messages":
        assert doc["stop_reason"] and isinstance(doc["content"], list)
    else:
        assert doc["status"] in ("completed", "incomplete"), doc["status"]


def run(trio, client, host, ways):
    pids = trio.pool.worker_pids()
    faults = []
    for what, parts in ways:
        try:
            check(trio, client, host, what, b"".join(parts))
        except Exception as e:
            faults.append(f"{what}: {type(e).__name__} {e}"[:1500])
    assert not faults, (len(faults), faults[:4])
    assert trio.pool.worker_pids() == pids
    assert trio.pool.in_flight() == 0


@pytest.mark.parametrize("client,host", PAIRS)
def test_events(trio, client, host):
    run(trio, client, host, shuffled(wires.events(host, "hel", "lo", call=CALL)))


@pytest.mark.parametrize("client,host", OTHERS)
def test_members(trio, client, host):
    run(trio, client, host, spoiled(wires.events(host, "hel", "lo", call=CALL)))
