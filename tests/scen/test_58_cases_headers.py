"""The HDR cases in every pair of APIs, with REQ-10, REQ-12 and SEC-02 where conversions are about."""

import gzip
import json
import re

import pytest

from lib import wires
from lib.answers import error, plain, stream
from lib.pool import K1, K2, config, key
from lib.talk import ask_with
from lib.trio import OTHERS, PAIRS, Trio
from lib.wires import ask

others = pytest.mark.parametrize("client,host", OTHERS)
pairs = pytest.mark.parametrize("client,host", PAIRS)
each = pytest.mark.parametrize("wire", wires.WIRES)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])


@pytest.fixture(scope="module")
def trio():
    t = Trio(cooldown={"soft_rate": "1ms", "soft_rate_max": "1ms", "stated_max": "1ms"})
    yield t
    t.close()


SENT = {"host", "content-type", "content-length", "accept", "authorization", "user-agent"}
SENT |= {"accept-encoding"}
BETA = {"openai-beta", "idempotency-key", "anthropic-version", "anthropic-beta"}
FOREIGN = [
    ("Proxy-Authorization", "Basic x"),
    ("Connection", "X-Foo"),
    ("X-Foo", "1"),
    ("TE", "trailers"),
    ("Upgrade", "h2c"),
    ("Cookie", "a=b"),
    ("X-Forwarded-For", "1.2.3.4"),
    ("Forwarded", "for=1.2.3.4"),
    ("Referer", "http://x/"),
    ("X-Goog-Api-Key", "client5"),
    ("X-Stainless-Lang", "js"),
    ("OpenAI-Organization", "org-client"),
    ("anthropic-dangerous-direct-browser-access", "true"),
    ("Proxy", "http://trap"),
    ("X-Api-Base-Url", "http://trap"),
    ("X-Forwarded-Host", "trap"),
]
KEYS = [("Authorization", "Bearer client1"), ("x-api-key", "client2"), ("api-key", "client3")]


@pairs
@modes
def test_hdr_01_02_03_what_goes_up(trio, client, host, streamed):
    """HDR-01, HDR-02, HDR-03, HDR-05: a list of what may pass, one credential, no encodings."""
    more = [("anthropic-version", "2023-01-01"), ("anthropic-beta", "a,b"), ("OpenAI-Beta", "x")]
    more += [("Idempotency-Key", "k"), ("Accept-Encoding", "br, zstd, snappy, *;q=0")]
    a = trio.get(client, host, ask(client, streamed), headers=FOREIGN + KEYS + more)
    assert a.status == 200
    names = trio.up.last.names()
    allowed = SENT | (
        BETA if client == host else {"anthropic-version"} if host == "messages" else set()
    )
    assert names <= allowed, names - allowed
    head = trio.up.last.head.lower()
    assert b"client" not in head and b"trap" not in head
    assert len(trio.up.last.all("authorization")) == 1
    assert trio.up.last.header("accept-encoding") in (None, "identity")
    assert trio.up.last.header("content-length") == str(len(trio.up.last.body))


UPSTREAM = [
    ("Set-Cookie", "a=b"),
    ("Server", "x"),
    ("request-id", "req_1"),
    ("openai-organization", "org-1"),
    ("anthropic-organization-id", "org-2"),
    ("anthropic-ratelimit-requests-remaining", "1"),
    ("x-ratelimit-remaining-requests", "1"),
    ("openai-processing-ms", "7"),
    ("Location", "http://x/"),
    ("X-Foo", "1"),
]


@pairs
@modes
def test_hdr_04_what_comes_down(trio, client, host, streamed):
    """HDR-04: no cookies, no ids of the account; the request's id under its own name."""
    body = b"".join(wires.events(host)) if streamed else wires.answer(host)
    answer = (stream if streamed else plain)(body, headers=UPSTREAM)
    a = trio.get(client, host, ask(client, streamed), answer)
    assert a.status == 200 and a.header("x-upstream-request-id") == "req_1"
    assert not a.names() & {n.lower() for n, _ in UPSTREAM} - {"x-request-id"}
    assert b"org-" not in a.out
    assert len(a.all("content-type")) == 1 and len(a.all("content-length")) <= 1
    if not streamed:
        assert int(a.header("content-length")) == len(a.body)


@others
@modes
def test_hdr_05_encodings(trio, client, host, streamed):
    """HDR-05: what comes packed all the same is unpacked; what cannot be is no answer."""
    data = b"".join(wires.events(host)) if streamed else json.dumps(wires.answer(host)).encode()
    ctype = "text/event-stream" if streamed else "application/json"
    packed = plain(gzip.compress(data), headers=[("Content-Encoding", "gzip")], ctype=ctype)
    a = trio.get(client, host, ask(client, streamed), packed)
    assert trio.read(client, a, streamed)["text"] == "hello"
    assert a.header("content-encoding") is None
    for name in ("br", "snappy", "gzip, br"):
        odd = plain(b"\x0b\x02\x80xyz", headers=[("Content-Encoding", name)], ctype=ctype)
        a = trio.get(client, host, ask(client, streamed), odd)
        assert a.status == 502 and wires.error_of(client, a.json()), name


@pairs
def test_hdr_07_line_ends_in_values(trio, client, host):
    """HDR-07: never a header of their own, up or down."""
    evil = "x\r\nX-Evil: 1"
    for name in (
        "anthropic-beta",
        "anthropic-version",
        "OpenAI-Beta",
        "Idempotency-Key",
        "X-Session-Id",
    ):
        a = trio.get(client, host, ask(client), headers=[(name, evil)])
        assert a.header("x-evil") is None
        assert trio.up.count() == 0 or "x-evil" not in trio.up.last.names()
    a = trio.get(client, host, ask(client), model=f"m-{host}\r\nX-Evil: 1")
    assert a.status in (400, 404) and a.header("x-evil") is None and trio.up.count() == 0
    assert wires.error_of(client, a.json())


@others
def test_hdr_07_line_ends_in_names(trio, client, host):
    """What is dropped is named in a header: names of the client's choice."""
    for name in ("a\r\nX-Evil: 1", "\0", "\u2028", "\U0001f600", ",", "a,b", " ", "x" * 5000, '"'):
        a = trio.get(client, host, {**ask(client), name: 1})
        assert a.status == 200 or (a.status == 400 and "\0" in name), (name, a.out)
        assert a.header("x-evil") is None and len(a.header("x-sluice-dropped") or "") <= 512
        assert re.fullmatch(r"[!-~]*", a.header("x-sluice-dropped") or ""), name


@pairs
def test_hdr_10_early_hints(trio, client, host):
    """HDR-10: only the final block's headers count."""
    before = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 999\r\nrequest-id: early\r\n\r\n"
    a = trio.get(client, host, ask(client), plain(wires.answer(host), before=before))
    assert a.status == 200 and a.header("x-upstream-request-id") is None
    doc = wires.fault(host, "slow down", "rate_limit_error")
    limited = plain(doc, 429, before=before, headers=[("Retry-After", "5")])
    a = trio.get(client, host, ask(client), limited)
    assert a.status == 429 and wires.error_of(client, a.json())[1]
    assert "999" not in (a.header("retry-after") or "")


SPELLINGS = ["/v1{}", "/v1/v1{}", "/v1{}/", "//v1{}", "/v1/{}", "/v1{}?beta=true"]


@pairs
def test_hdr_17_spellings(trio, client, host):
    end = wires.path(client)[3:]
    for spelling in SPELLINGS:
        path, _, query = spelling.format(end).partition("?")
        a = trio.get(client, host, ask(client), path=path)
        assert a.status == 200 and trio.up.last.target == "/v1" + wires.path(host)[3:], spelling


@each
def test_req_10_wrong_paths(trio, wire):
    for path in (
        "/v1/response",
        "/v1/message",
        "/v1/messages/x",
        "/V1/messages",
        "/v1/messages/batches",
    ):
        a = trio.get(wire, wire, ask(wire), path=path)
        assert (a.status, trio.up.count()) == (404, 0), path
        a.json()


@others
def test_sec_02_client_chooses_no_upstream(trio, client, host):
    """SEC-02: members that name an upstream go nowhere in a conversion."""
    trap = "http://127.0.0.1:1/trap"
    extra = {
        "api_base": trap,
        "base_url": trap,
        "api_key": "client",
        "extra_body": {"base_url": trap},
    }
    a = trio.get(client, host, {**ask(client), **extra})
    assert a.status == 200 and b"trap" not in trio.up.last.body
    assert trio.up.last.header("host") == f"127.0.0.1:{trio.up.port}"
    a = trio.get(client, host, ask(client), model=trap)
    assert a.status == 404 and trio.up.count() == 0


def chain(up, *hosts):
    rows = {}
    for i, wire in enumerate(hosts):
        account = {"id": f"A{i}", "api_key": key(i + 1)}
        row = {
            "provider": "openai-compatible",
            "wire": wire,
            "base_url": up.url,
            "accounts": [account],
        }
        rows[f"c{i}"] = {**row, "fallback": [f"c{(i + 1) % len(hosts)}"]}
    return {**config(up.url), "channels": rows}


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[0] != "messages"])
def test_req_12_cyclic_fallbacks(up, gate, client, host):
    """REQ-12: broken arguments, fallbacks in a circle: one 400, a few log lines."""
    third = next(w for w in wires.WIRES if w not in (client, host))
    g = gate(conf=chain(up, host, third, host), allow=["fallback"])
    items = [("user", "x"), ("call", "c", "f", '{"a":'), ("result", "c", "1")]
    before = len(g.log_lines())
    a = g.send(ask_with(client, *items), path=wires.path(client)).finish()
    assert (a.status, up.count()) == (400, 0)
    assert "arguments" in wires.error_of(client, a.json())[1]
    assert len(g.log_lines()) - before <= 4
    for row in g.status()["channels"]:
        assert all(x["state"] == "active" and not x["errors"] for x in row["accounts"])


@pytest.mark.parametrize("client,host", OTHERS)
def test_hdr_19_idempotency_key(up, gate, client, host):
    """HDR-19: through failover to the same API unchanged; to another one not at all."""
    g = gate(
        accounts=2,
        channel={"wire": client, "fallback": ["other"]},
        channels={
            "other": {
                "provider": "openai-compatible",
                "wire": host,
                "base_url": up.url,
                "accounts": [{"id": "B1", "api_key": key(3)}],
            }
        },
    )
    up.default(wires.serve(host))
    up.script(K1, error(500))
    up.script(K2, error(500))
    a = g.send(ask(client), path=wires.path(client), headers=[("Idempotency-Key", "k1")]).finish()
    assert a.status == 200, a.out
    assert [r.header("idempotency-key") for r in up.requests] == ["k1", "k1", None]


@pairs
def test_hdr_13_too_large(up, gate, client, host):
    """HDR-13: above our limit a 413 in the client's shape."""
    g = gate(accounts=1, channel={"wire": host}, server={"max_body": "100k"})
    a = g.send(ask(client, text="x" * 200_000), path=wires.path(client)).finish()
    assert (a.status, up.count()) == (413, 0)
    kind, message, _ = wires.error_of(client, a.json())
    assert kind == ("request_too_large" if client == "messages" else "invalid_request_error")
