"""count_tokens: asked of a channel of Anthropic's API, estimated for all others, and never a reason to
think better or worse of an account (SPEC 4.1, 6; formats.md C.10, G).
"""

import pytest

from lib.answers import close, error, hang, plain
from lib.pool import K1, K2, config, key
from test_10_pick import together

PATH = "/v1/messages/count_tokens"
BODY = {"model": "m1", "messages": [{"role": "user", "content": "The quick brown fox. " * 40}]}


def count(g, body=BODY, **vary):
    return g.send(body, path=PATH, **vary).finish()


def test_asked(up, gate):
    """As it is, and back as it is."""
    g = gate(accounts=1, channel={"wire": "messages"})
    sent = b'{ "model":"m1","messages":[{"role":"user","content":"Hi"}],"x":1.50 }'
    up.default(plain(b'{"input_tokens": 17,"context_management":{}}'))
    a = g.send(sent, path=PATH, headers=[("anthropic-beta", "b1")]).finish()
    assert (a.status, a.body) == (200, b'{"input_tokens": 17,"context_management":{}}')
    assert a.header("x-sluice-estimated") is None
    assert up.last.target == "/v1/messages/count_tokens" and up.last.body == sent
    assert up.last.header("anthropic-beta") == "b1"
    assert up.last.header("anthropic-version")
    account = g.account()
    assert (account["calls"], account["success"]) == (0, 0)
    assert g.in_flight() == 0


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_estimated(up, gate, wire):
    g = gate(accounts=1, channel={"wire": wire})
    a = count(g)
    assert a.status == 200 and a.header("x-sluice-estimated") == "1"
    assert list(a.json()) == ["input_tokens"]
    assert 180 <= a.json()["input_tokens"] <= 220
    assert a.header("x-sluice-attempts") == "0" and a.header("x-sluice-account") is None
    assert up.count() == 0


@pytest.mark.parametrize("status", [404, 405, 501])
def test_not_there(up, gate, status):
    """Faces of Anthropic's API without the endpoint."""
    g = gate(accounts=2, channel={"wire": "messages"})
    up.default(error(status, message="no such path"))
    a = count(g)
    assert a.status == 200 and a.header("x-sluice-estimated") == "1"
    assert 180 <= a.json()["input_tokens"] <= 220
    g.assert_clean()


def test_forty_at_start_up(up, gate):
    """REQ-09: each worker asks once; all clients get an estimate, and nobody's health suffers."""
    g = gate(accounts=2, workers=3, channel={"wire": "messages"})
    up.default(error(404, message="no such path"))
    answers = together(45, lambda i: count(g))
    assert {a.status for a in answers} == {200}
    assert {a.header("x-sluice-estimated") for a in answers} == {"1"}
    assert all(180 <= a.json()["input_tokens"] <= 220 for a in answers)
    assert 1 <= up.count() <= 3
    g.assert_clean()
    assert g.in_flight() == 0 and g.channel()["breaker"]["state"] == "closed"


def test_a_model_that_is_not_there_says_nothing_of_others(up, gate):
    g = gate(accounts=1, workers=1, channel={"wire": "messages"})
    up.script(K1, error(404, type="not_found_error", message="model: m1"))
    assert count(g).header("x-sluice-estimated") == "1"
    up.default(plain({"input_tokens": 5}))
    assert count(g).json() == {"input_tokens": 5}


@pytest.mark.parametrize(
    "fault",
    [
        error(429, message="rate limit", headers=[("Retry-After", "100")]),
        error(500),
        error(401, message="invalid x-api-key", type="authentication_error"),
        error(402, code="insufficient_quota"),
        error(529, type="overloaded_error"),
        plain("<html>", ctype="text/html"),
        close(),
    ],
    ids=["429", "500", "401", "402", "529", "html", "closed"],
)
def test_says_nothing_of_health(up, gate, fault):
    """Not of the account, the model, the channel or the ledger; the next account is asked."""
    g = gate(accounts=2, channel={"wire": "messages"})
    up.script(K1, fault)
    up.default(plain({"input_tokens": 5}), K2)
    a = count(g)
    assert (a.status, a.json()) == (200, {"input_tokens": 5}), a.out
    assert up.creds()[:2] == [K1, K2]
    g.assert_clean()
    for account in g.accounts().values():
        assert account["window"] == {"calls": 0, "failures": 0}
        assert account["calls"] == 0
    assert g.ctl("usage", "--json").stdout.strip() == "[]"
    up.script(K1, *[fault] * 9)
    up.script(K2, *[fault] * 9)
    assert count(g).status >= 400
    g.assert_clean()
    assert g.channel()["breaker"]["state"] == "closed"


def test_success_heals_nothing(up, gate):
    """A cooldown stays although tokens could be counted meanwhile."""
    g = gate(accounts=1, channel={"wire": "messages"}, pool={"all_cooling": "any"})
    body = {**BODY, "max_tokens": 9}
    up.script(K1, error(429, message="rate limit"))
    assert g.send(body, path="/v1/messages").finish().status == 429
    before = g.account()
    assert before["cool"]
    up.default(plain({"input_tokens": 5}))
    assert count(g).status == 200
    assert g.account()["cool"] == before["cool"]


def test_fault_of_the_client(up, gate):
    g = gate(accounts=2, channel={"wire": "messages"})
    up.script(K1, error(400, message="messages.0: bad", type="invalid_request_error"))
    a = count(g)
    assert a.status == 400 and "messages.0: bad" in a.body.decode()
    assert up.count() == 1
    for odd in ({}, {"model": "m1"}, {"model": "m1", "messages": []}, {"model": 1, "messages": [{}]}):
        assert count(g, odd).status == 400
    assert up.count() == 1


@pytest.mark.parametrize(
    "content",
    [7, [{"type": "image", "source": 7}], [7]],
)
def test_unreadable(up, gate, content):
    g = gate(accounts=1, channel={"wire": "chat"})
    a = count(g, {"model": "m1", "messages": [{"role": "user", "content": content}]})
    assert a.status == 400 and a.json()["type"] == "error"
    assert "messages" in a.json()["error"]["message"]


def test_all_that_is_sent_counts(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"})
    last = count(g).json()["input_tokens"]
    text = "Every word of it is counted, wherever it stands. " * 10
    tool = {"name": "f", "description": text, "input_schema": {"type": "object"}}
    for more in (
        {"system": text},
        {"system": [{"type": "text", "text": text}, {"type": "text", "text": text}]},
        {"system": [{"type": "text", "text": text * 3}], "tools": [tool]},
        {"system": text * 3, "tools": [{**tool, "input_schema": {"type": "object", "title": text}}]},
    ):
        n = count(g, {**BODY, **more}).json()["input_tokens"]
        assert n > last, more
        last = n
    data = "iVBORw0KGgoAAAANSUhEUgAAAyAAAAJY" + "A" * 400000  # a PNG of 800 x 600
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    n = count(g, {"model": "m1", "messages": [{"role": "user", "content": [image]}]}).json()
    assert 700 <= n["input_tokens"] <= 800
    n = count(g, {"model": "claude-3-5-sonnet", "messages": [{"role": "user", "content": [image]}]})
    assert 640 <= n.json()["input_tokens"] <= 660


def test_which_channel(up, gate):
    """The channel that would serve the model decides; the name is the one that it has there."""
    conf = config(up.url, accounts=1, channel={"wire": "chat", "models": ["m1"]})
    conf["channels"]["an"] = {
        "provider": "openai-compatible",
        "wire": "messages",
        "base_url": up.url,
        "models": ["m2"],
        "accounts": [{"id": "B1", "api_key": key(2)}],
    }
    conf["models"] = {"best": {"targets": [{"channel": "an", "model": "m2"}]}}
    g = gate(conf=conf)
    up.default(plain({"input_tokens": 5}))
    assert count(g).header("x-sluice-estimated") == "1"
    a = count(g, {**BODY, "model": "best"})
    assert a.json() == {"input_tokens": 5} and up.last.json()["model"] == "m2"
    assert a.header("x-sluice-channel") == "an"
    assert count(g, {**BODY, "model": "none"}).status == 404


def test_gone_client(up, gate):
    g = gate(accounts=1, channel={"wire": "messages"})
    up.default(hang())
    o = g.send(BODY, path=PATH)
    up.wait_for(1)
    o.close()
    from lib.upstream import wait_until

    wait_until(lambda: g.in_flight() == 0, 5, "the lease is given back")
    g.assert_clean()
