"""What differs between hosts of one API (SPEC 3, 4.4; formats.md A.9, C.1, D.7): headers, credentials,
quirks, addresses.
"""

import pytest

from lib.pool import K1, config
from lib.wires import WIRES, get, serve

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


@pytest.mark.parametrize("client,host", [(c, u) for c in WIRES for u in WIRES])
def test_headers(up, gate, client, host):
    """HDR-01, HDR-02, HDR-03, HDR-19: to its own API what that API knows, to another one nothing."""
    g = gate(accounts=1, channel={"wire": host})
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


@pytest.mark.parametrize(
    "account,want,sent", [a[1:] for a in ACCOUNTS], ids=[a[0] for a in ACCOUNTS]
)
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
    (
        {"max_tokens": "max_tokens"},
        {"max_tokens": 8, "max_completion_tokens": 9},
        {"max_tokens": 8},
    ),
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
    g = gate(accounts=1, channel={"quirks": quirks})
    base = {"model": "m1", "messages": [{"role": "user", "content": "x"}]}
    a = g.send({**sent, **base, **sent}, path="/v1/chat/completions").finish()
    assert a.status == 200 and up.last.json() == {**base, **want}


AZURE = [
    ("", "/openai/v1/chat/completions"),
    ("/openai", "/openai/v1/chat/completions"),
    ("/openai/v1", "/openai/v1/chat/completions"),
    (
        "?api-version=2024-06-01",
        "/openai/deployments/m%2F1/chat/completions?api-version=2024-06-01",
    ),
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
