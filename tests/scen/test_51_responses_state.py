"""What the Responses API keeps: previous_response_id, GET, DELETE and store, whichever API the channel
speaks (SPEC 4.1, 13; formats.md B.6, B.7).
"""

import json
import re
import time

import pytest

from lib import answers, wires
from lib.answers import error, plain, stream
from lib.pool import K1, K2, config, key
from lib.upstream import wait_until
from lib.wires import ask, events, serve

WIRES = wires.WIRES
each = pytest.mark.parametrize("wire", WIRES)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])


def post(g, text="Hi", streamed=False, headers=(), params=None, **extra):
    body = ask("responses", streamed, text=text, **extra)
    if extra.get("input"):
        body["input"] = extra["input"]
    return g.send(body, path="/v1/responses", headers=headers, **(params or {})).finish()


def response(answer):
    """The response object of a plain or streamed answer."""
    assert answer.status == 200, answer.out
    if answer.header("content-type") == "application/json":
        return answer.json()
    events = [json.loads(d) for _, d in answers_of(answer)]
    assert events[-1]["type"] in ("response.completed", "response.incomplete"), events[-1]
    return events[-1]["response"]


def answers_of(answer):
    from lib.fcgi import parse_sse

    return [(e[0], e[1]) for e in parse_sse(answer.body)]


def turns(wire, body):
    """(role, text) of what a channel was asked."""
    out = []
    for t in body["input"] if wire == "responses" else body["messages"]:
        content = t.get("content")
        if isinstance(content, list):
            content = "".join(p.get("text", "") for p in content)
        out.append((t.get("role"), content))
    return out


def numbered(wire, streamed=False, **extra):
    """Each answer has an id of its own, and the request's number as its text."""
    state = {"n": 0}

    def act(x):
        state["n"] += 1
        n = state["n"]
        doc = {**wires.answer(wire, f"answer {n}"), **extra}
        if wire != "responses":
            return serve(wire, f"answer {n}")(x)
        doc["id"] = f"resp_up{n}"
        if not x.request.json().get("stream"):
            return plain(doc)(x)
        parts = b"".join(events(wire, f"answer {n}"))
        parts = parts.replace(b'"resp_up"', b'"resp_up%d"' % n)
        for name, value in extra.items():
            parts = parts.replace(
                b'"object":"response"',
                b'"object":"response","%s":%s' % (name.encode(), json.dumps(value).encode()),
            )
        return stream(parts)(x)

    return act


@each
@modes
def test_continued(up, gate, wire, streamed):
    """Three turns, of which the client sends the new message alone."""
    g = gate(accounts=1, channel={"wire": wire})
    up.default(numbered(wire))
    first = response(post(g, "one", streamed))
    second = response(post(g, "two", streamed, previous_response_id=first["id"]))
    third = response(post(g, "three", streamed, previous_response_id=second["id"]))
    assert len({r["id"] for r in (first, second, third)}) == 3
    body = up.last.json()
    assert "previous_response_id" not in body
    assert turns(wire, body) == [
        ("user", "one"),
        ("assistant", "answer 1"),
        ("user", "two"),
        ("assistant", "answer 2"),
        ("user", "three"),
    ]
    # a branch from the first one
    post(g, "other", streamed, previous_response_id=first["id"])
    assert [t for _, t in turns(wire, up.last.json())] == ["one", "answer 1", "other"]
    if wire != "responses":
        assert third["previous_response_id"] == second["id"] and third["store"] is True


@each
@modes
def test_got_and_deleted(up, gate, wire, streamed):
    g = gate(accounts=1, channel={"wire": wire})
    up.default(numbered(wire))
    made = response(post(g, "one", streamed))
    path = "/v1/responses/" + made["id"]
    got = g.get(path)
    assert got.status == 200 and got.json() == made
    assert got.header("content-type") == "application/json"
    items = g.get(path + "/input_items").json()
    assert items["object"] == "list" and items["data"] == [{"role": "user", "content": "one"}]
    n = up.count()
    assert g.get(path, query="stream=true").status == 400
    assert g.get(path, method="HEAD").status == 200
    assert g.get(path + "/cancel").status == 404
    assert g.send({}, path=path).finish().status == 405
    gone = g.get(path, method="DELETE")
    assert gone.status == 200
    assert gone.json() == {"id": made["id"], "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        a = g.get(path, method=method)
        assert a.status == 404 and a.json()["error"]["code"] == "response_not_found"
    a = post(g, "two", previous_response_id=made["id"])
    assert (a.status, a.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert up.count() == n, "all this is no business of the upstream"


def test_unknown(up, gate):
    """Nothing is asked of anybody."""
    g = gate(accounts=1, channel={"wire": "chat"})
    a = post(g, previous_response_id="resp_nobody")
    assert a.status == 400
    e = a.json()["error"]
    assert (e["code"], e["param"]) == ("previous_response_not_found", "previous_response_id")
    assert e["type"] == "invalid_request_error" and "resp_nobody" in e["message"]
    for odd in (7, [], {}, True):
        assert post(g, previous_response_id=odd).status == 400
    for odd in ("", "x" * 5000, "\u0000", "a/b"):
        assert post(g, previous_response_id=odd).status == 400
    assert up.count() == 0
    assert post(g, previous_response_id=None).status == 200
    for odd in ("x" * 1000, "..", "%00", "a/b"):
        assert g.get("/v1/responses/" + odd).status in (400, 404, 405)


def test_of_another_client(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"}, auth={"mode": "web-server"})
    alice, bob = {"REMOTE_USER": "alice"}, {"REMOTE_USER": "bob"}
    made = response(post(g, params=alice))
    path = "/v1/responses/" + made["id"]
    n = up.count()
    a = post(g, params=bob, previous_response_id=made["id"])
    assert (a.status, a.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert g.get(path, **bob).status == 404
    assert g.get(path, method="DELETE", **bob).status == 404
    assert g.get(path).status == 401
    assert up.count() == n
    assert g.get(path, **alice).json() == made
    assert post(g, params=alice, previous_response_id=made["id"]).status == 200


@each
@modes
def test_not_stored(up, gate, wire, streamed):
    g = gate(accounts=1, channel={"wire": wire})
    up.default(numbered(wire))
    made = response(post(g, "one", streamed, store=False))
    assert g.get("/v1/responses/" + made["id"]).status == 404
    assert post(g, previous_response_id=made["id"]).status == 400
    # what is kept can be gone on with without keeping the rest
    made = response(post(g, "two", streamed))
    more = response(post(g, "three", streamed, store=False, previous_response_id=made["id"]))
    assert [t for _, t in turns(wire, up.last.json())] == ["two", "answer 2", "three"]
    assert g.get("/v1/responses/" + more["id"]).status == 404


@each
def test_nothing_of_what_failed(up, gate, wire):
    g = gate(accounts=1, channel={"wire": wire})
    up.script(K1, error(400, "bad"))
    assert post(g).status == 400
    parts = events(wire)
    up.script(K1, stream(b"".join(parts[: wires.content_at(wire) + 1]), end="fin"))
    a = post(g, streamed=True)
    found = re.findall(rb'"id":"(resp_[^"]*)"', a.body)
    assert b"response.failed" in a.body and found
    for id in found:
        assert g.get("/v1/responses/" + id.decode()).status == 404
    up.script(K1, stream(b"".join(parts[: wires.content_at(wire) + 1]), end="hold"))
    o = g.send(ask("responses", True), path="/v1/responses").until(b"response.output_text.delta", 5)
    id = re.search(rb'"id":"(resp_[^"]*)"', o.body).group(1).decode()
    o.close()
    wait_until(lambda: g.in_flight() == 0, 5, "it is given up")
    assert g.get("/v1/responses/" + id).status == 404


def test_expires(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"}, context={"ttl": "1s"})
    made = response(post(g))
    assert g.get("/v1/responses/" + made["id"]).status == 200
    time.sleep(1.1)
    assert g.get("/v1/responses/" + made["id"]).status == 404
    a = post(g, previous_response_id=made["id"])
    assert (a.status, a.json()["error"]["code"]) == (400, "previous_response_not_found")


def test_bounds(up, gate):
    """A conversation that is too large is not kept; of all, the oldest go first."""
    g = gate(
        accounts=1,
        channel={"wire": "chat"},
        context={"max_session": "20k", "max_total": "60k"},
    )
    small = [response(post(g, "x" * 9000))["id"] for _ in range(3)]
    large = response(post(g, "x" * 30000))["id"]
    assert g.get("/v1/responses/" + large).status == 404
    assert [g.get("/v1/responses/" + i).status for i in small] == [200] * 3
    more = [response(post(g, "x" * 9000))["id"] for _ in range(4)]
    found = [g.get("/v1/responses/" + i).status == 200 for i in small + more]
    assert found == sorted(found) and found[-1] and not found[0]


def test_survives(up, gate):
    """A restart, and kill -9 of everything."""
    g = gate(accounts=1, channel={"wire": "messages"})
    up.default(numbered("messages"))
    made = response(post(g, "one"))
    g.stop()
    g.start()
    assert g.get("/v1/responses/" + made["id"]).json() == made
    second = response(post(g, "two", True, previous_response_id=made["id"]))
    g.kill_all()
    g.start()
    post(g, "three", previous_response_id=second["id"])
    assert [t for _, t in turns("messages", up.last.json())][-2:] == ["answer 2", "three"]


def test_seen_by_all(up, gate):
    """The end of a stream is the end: the next request, in another process, finds it."""
    g = gate(accounts=1, workers=4, channel={"wire": "chat"})
    for _ in range(20):
        o = g.send(ask("responses", True), path="/v1/responses")
        o.until(b"event: response.completed", 5)
        id = re.search(rb'"id":"(resp_[^"]*)"', o.body).group(1).decode()
        assert g.get("/v1/responses/" + id).status == 200
        o.finish()


def test_ids_are_nobodys_choice(up, gate):
    """The client's X-Request-Id does not name the response."""
    g = gate(accounts=1, channel={"wire": "chat"})
    ids = {response(post(g, headers=[("X-Request-Id", "same")]))["id"] for _ in range(3)}
    assert len(ids) == 3


# Whose it is ---------------------------------------------------------------------------------------


def test_stays_with_its_account(up, gate):
    """CONV-13: an id that the host keeps, too, goes back to its account as it came; elsewhere the
    history does.
    """
    g = gate(
        accounts=2, tiers=False, channel={"wire": "responses"}, account={"A2": {"weight": 1000}}
    )
    up.default(numbered("responses", store=True))
    made = post(g, "one")
    at = made.header("x-sluice-account")
    other = "A1" if at == "A2" else "A2"
    id = response(made)["id"]
    for _ in range(3):
        text = '{"model":"m1",  "input":"go\\u0020on","previous_response_id":"%s"}' % id
        a = g.send(text.encode(), path="/v1/responses").finish()
        assert a.header("x-sluice-account") == at
        assert up.last.body == text.encode()
        id = response(a)["id"]
    g.ctl("account", "disable", "oa/" + at)
    a = post(g, "more", previous_response_id=id)
    assert a.status == 200 and a.header("x-sluice-account") == other
    body = up.last.json()
    assert "previous_response_id" not in body
    assert turns("responses", body)[:2] == [("user", "one"), ("assistant", "answer 1")]
    assert turns("responses", body)[-1] == ("user", "more")
    assert len(body["input"]) == 9
    assert not any("id" in item for item in body["input"])


def test_host_forgot(up, gate):
    """The account that kept it knows it no more: it gets the history, and no blame."""
    g = gate(accounts=1, channel={"wire": "responses"})
    up.script(K1, numbered("responses", store=True))
    id = response(post(g, "one"))["id"]
    up.script(K1, error(400, "previous_response_not_found", "Previous response not found"))
    up.default(numbered("responses"))
    a = post(g, "two", previous_response_id=id)
    assert a.status == 200
    assert up.count() == 3
    assert turns("responses", up.last.json()) == [
        ("user", "one"),
        ("assistant", "answer 1"),
        ("user", "two"),
    ]
    g.assert_clean()


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "because"}],
    "encrypted_content": "gAAA",
}


def two_channels(up, wire):
    return {
        "conf": {
            **config(up.url, accounts=2, tiers=False, channel={"wire": "responses"}),
            "channels": {
                "oa": {
                    "provider": "openai-compatible",
                    "wire": "responses",
                    "base_url": up.url,
                    "models": ["m1"],
                    "accounts": [{"id": "A1", "api_key": key(1)}, {"id": "A2", "api_key": key(2)}],
                },
                "ob": {
                    "provider": "openai-compatible",
                    "wire": wire,
                    "base_url": up.url,
                    "models": ["m2"],
                    "accounts": [{"id": "B1", "api_key": key(3)}],
                },
            },
        }
    }


@each
def test_reasoning_stays_with_its_channel(up, gate, wire):
    """What only one organisation can read goes back there, also after others had their turn."""
    g = gate(**two_channels(up, wire))
    output = [REASONING, {**REASONING, "id": "rs_2", "encrypted_content": None}, wires._item("hello")]
    up.script(K1, plain(wires._response(output, id="resp_a")))
    up.script(K2, plain(wires._response(output, id="resp_a")))
    a = post(g, "one", model="m1")
    assert g.get("/v1/responses/resp_a").json()["output"] == output
    up.default(numbered(wire), key(3))
    b = response(post(g, "two", model="m2", previous_response_id="resp_a"))
    assert b"gAAA" not in up.last.body and b"because" not in up.last.body
    assert [t for _, t in turns(wire, up.last.json())] == ["one", "hello", "two"]
    up.default(numbered("responses"))
    post(g, "three", model="m1", previous_response_id=b["id"])
    body = up.last.json()
    assert [i.get("type") for i in body["input"]].count("reasoning") == 1
    assert body["input"][1] == REASONING
    assert body["input"][0]["content"] == "one" and body["input"][-1]["content"] == "three"


@each
def test_call_is_filled_in(up, gate, wire):
    """TOOL-14: only the call's result comes, the call is in what was kept."""
    g = gate(accounts=1, channel={"wire": wire})
    up.script(K1, serve(wire, None, wires.CALL))
    made = response(post(g, "go", tools=True))
    up.default(serve(wire))
    item = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    a = post(g, input=[item], previous_response_id=made["id"], tools=True)
    assert a.status == 200, a.out
    text = up.last.body.decode()
    assert "call_1" in text and "42" in text and '"f"' in text
    if wire == "responses":
        kinds = [i.get("type") for i in up.last.json()["input"]]
        assert kinds == [None, "function_call", "function_call_output"]
    # without it the result is nobody's
    n = up.count()
    if wire != "responses":
        assert post(g, input=[item], tools=True).status == 400
        assert up.count() == n


def test_instructions_are_of_one_request(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"})
    made = response(post(g, "one", instructions="be brief"))
    post(g, "two", previous_response_id=made["id"])
    assert "be brief" not in up.last.body.decode()


def test_digits_are_kept(up, gate):
    g = gate(accounts=1, channel={"wire": "responses"})
    up.default(numbered("responses"))
    body = b'{"model":"m1","input":[{"role":"user","content":"x","n":12345678901234567890.10}]}'
    id = g.send(body, path="/v1/responses").finish().json()["id"]
    post(g, "two", previous_response_id=id)
    assert b'"n":12345678901234567890.10' in up.last.body


def test_no_keys_are_kept(up, gate):
    """A host that tells our key: what is kept is what the client got."""
    g = gate(accounts=1, channel={"wire": "responses"})
    up.script(K1, plain(wires._response([wires._item("it is " + K1)], id="resp_k")))
    post(g)
    assert g.get("/v1/responses/resp_k").json()["output"][0]["content"][0]["text"].startswith(
        "it is [redacted]"
    )


def test_explain_changes_nothing(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"}, auth={"mode": "web-server", "admins": ["root"]})
    who = {"REMOTE_USER": "root"}
    id = response(post(g, params=who))["id"]
    n = up.count()
    a = post(g, params=who, headers=[("X-Sluice-Explain", "1")], previous_response_id=id)
    assert a.status == 200 and up.count() == n
