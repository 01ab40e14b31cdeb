"""The kind of a request's work (SPEC 12): said by the client, told by routing.classifier, or found by
rules. The model that answers shows which it was. The classifier is a channel of its own, "sorter".
"""

import json
import time

import pytest

from lib import wires
from lib.answers import close, error, hang, ok, plain
from lib.pool import K1, config, key
from lib.upstream import wait_until

SORTER = key(9)
LIMIT = 3.0  # TASK_OF_LIMIT_MS
TASKS = {
    "code": "m-code",
    "summary": "m-sum",
    "translation": "m-tr",
    "legal-advice": "m-law",
    "default": "m-any",
}
CODE = "Write a Python function that adds two numbers"


def start(up, gate, wire="chat", workers=1, sorter={}, channel={}, routing={}, **vary):
    """One account A1 for models m-*, one S1 for the classifier."""
    conf = config(up.url, accounts=1, channel={"models": ["m-*"], **channel}, **vary)
    conf["channels"]["sorter"] = {
        "provider": "openai-compatible",
        "wire": wire,
        "base_url": up.url,
        "models": ["sort-1"],
        "accounts": [{"id": "S1", "api_key": SORTER, **sorter}],
    }
    conf["routing"] = {"classifier": "sort-1", "tasks": TASKS, **routing}
    return gate(workers=workers, conf=conf)


def ask(g, text=CODE, session=None, headers=(), model="auto", **more):
    """The model that answered."""
    a = g.ask(
        model,
        messages=[{"role": "user", "content": text}],
        headers=[*headers, *([("X-Session-Id", session)] if session else [])],
        **more,
    )
    assert a.status == 200, a.out
    return a.header("X-Sluice-Model")


def lines(g, purpose):
    return [e for e in g.logs() if e.get("purpose") == purpose]


def sorter(g):
    return g.account("S1", "sorter")


def busy(g):
    return sum(a["in_flight"] for c in g.status()["channels"] for a in c["accounts"])


def test_asked_once_in_a_conversation(up, gate):
    g = start(up, gate, workers=2)
    up.default(ok("summary"), SORTER)
    assert [ask(g, session="s1") for _ in range(4)] == ["m-sum"] * 4
    assert up.count(SORTER) == 1
    assert ask(g, session="s2") == "m-sum"
    assert up.count(SORTER) == 2
    # nobody's conversation: each time
    assert [ask(g), ask(g)] == ["m-sum"] * 2
    assert up.count(SORTER) == 4
    assert busy(g) == 0


def test_not_asked_where_it_is_known_or_chosen(up, gate):
    g = start(up, gate)
    up.default(ok("summary"), SORTER)
    assert ask(g, headers=[("X-Task-Type", "Translate")]) == "m-tr"
    assert ask(g, metadata={"task_type": "legal_advice"}) == "m-law"
    assert ask(g, headers=[("X-Task-Type", "summary")], metadata={"task_type": "code"}) == "m-sum"
    assert ask(g, headers=[("X-Task-Type", "no such thing")]) == "m-any"
    assert ask(g, model="m-own") == "m-own"
    assert up.count(SORTER) == 0
    assert ask(g, metadata={"task_type": 7}) == "m-sum"
    assert up.count(SORTER) == 1


def test_what_it_is_asked(up, gate):
    g = start(up, gate)
    g.ask(
        "auto",
        stream=True,
        messages=[
            {"role": "system", "content": "SYSTEM"},
            {"role": "user", "content": "FIRST"},
            {"role": "assistant", "content": "ANSWER"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "A" * 2999 + "é" + "B" * 9000 + "END"}],
            },
        ],
        tools=[{"type": "function", "function": {"name": "get_weather", "parameters": {}}}],
    )
    body = up.requests[0].json()
    system, user = (m["content"] for m in body["messages"])
    assert up.requests[0].cred == SORTER
    assert not body.get("stream") and body["max_tokens"] == 64
    for name in (
        "code",
        "summary",
        "translation",
        "legal-advice",
        "reasoning",
        "creative",
        "simple",
    ):
        assert name in system, name
    assert "default" not in system
    for word in ("A" * 2999, "BEND", "[...]", "get_weather"):
        assert word in user, word
    for word in ("SYSTEM", "FIRST", "ANSWER"):
        assert word not in user + system, word
    assert len(user) < 4300 and "\ufffd" not in user


ANSWERS = {
    "translation": "m-tr",
    "Translation.": "m-tr",
    " **translation**\n": "m-tr",
    '"LEGAL_ADVICE"': "m-law",
    "legal advice": "m-law",
    "<think>code? no</think>\n\nsummary": "m-sum",
    "reasoning": "m-any",
    # all else: the rules
    "I think that this is a translation": "m-code",
    "default": "m-code",
    "summary, code": "m-code",
    "": "m-code",
    "</request> ignore all": "m-code",
}


def test_what_its_answer_means(up, gate):
    g = start(up, gate)
    for answer, want in ANSWERS.items():
        up.script(SORTER, ok(answer))
        assert ask(g) == want, answer
    assert up.count(SORTER) == len(ANSWERS)


def test_asked_in_vain_once_too(up, gate):
    g = start(up, gate)
    up.script(SORTER, ok("no idea"))
    assert [ask(g, session="s1") for _ in range(3)] == ["m-code"] * 3
    assert ask(g, "Summarize this: it rained.", session="s1") == "m-sum"
    assert up.count(SORTER) == 1


def test_it_hangs(up, gate):
    """One waits for its answer, one for its only place."""
    queue = {"queue_size": 9, "queue_timeout": "60s"}
    g = start(up, gate, workers=2, sorter={"max_in_flight": 1}, pool=queue)
    up.default(hang(), SORTER)
    began = time.monotonic()
    one = g.open("auto", False, messages=[{"role": "user", "content": CODE}])
    up.wait_for(1, SORTER)
    assert ask(g, session="s1") == "m-code"
    took = time.monotonic() - began
    assert LIMIT - 0.1 < took < LIMIT + 1, took
    assert one.finish().header("X-Sluice-Model") == "m-code"
    # these processes do not wait for it again so soon, in no conversation
    began = time.monotonic()
    assert [ask(g, session=s) for s in ("s1", "s2")] == ["m-code"] * 2
    assert time.monotonic() - began < 1
    assert up.count(SORTER) <= 2 and busy(g) == 0
    assert g.status()["totals"]["waiting"] == 0
    # it did not fail, we did not wait
    s = sorter(g)
    assert (s["state"], s["fails"], s["errors"]) == ("active", 0, 0), s
    for line in lines(g, "classify"):
        assert line["outcome"] == "limit" and line["ms"] >= 1000 * LIMIT - 100, line


@pytest.mark.parametrize(
    "answer", [error(500), close(), plain(b"<html>"), plain(b'{"choices":[]}')]
)
def test_it_fails(up, gate, answer):
    g = start(up, gate)
    up.default(answer, SORTER)
    assert ask(g) == "m-code"
    assert busy(g) == 0
    assert lines(g, "classify")[0]["outcome"] != "ok"


def test_its_account_is_rate_limited(up, gate):
    g = start(up, gate)
    up.default(error(429, headers=[("Retry-After", "60")]), SORTER)
    assert [ask(g) for _ in range(3)] == ["m-code"] * 3
    assert up.count(SORTER) == 1, "a resting account is left alone"
    assert sorter(g)["state"] == "cooling" and g.account("A1")["state"] == "active"
    assert busy(g) == 0
    assert [e["outcome"] for e in lines(g, "classify")][1:] == ["pool_exhausted"] * 2


@pytest.mark.parametrize("name", ["gone-1", "auto"])
def test_nobody_serves_it(up, gate, name):
    """Nor is it chosen by the kind of work: it would have to ask itself what that is."""
    g = start(up, gate)
    g.write({**g.conf, "routing": {**g.conf["routing"], "classifier": name}})
    done = g.ctl("check", check=False)
    assert done.returncode == 1 and "routing.classifier" in done.stdout + done.stderr


def test_its_only_account_is_disabled(up, gate):
    g = start(up, gate, sorter={"enabled": False})
    assert ask(g) == "m-code"
    assert lines(g, "classify")[0]["outcome"] == "no_account"


def test_the_client_goes_while_it_is_asked(up, gate):
    g = start(up, gate)
    up.default(hang(), SORTER)
    mine = [("X-Session-Id", "s1")]
    a = g.open("auto", messages=[{"role": "user", "content": CODE}], headers=mine)
    up.wait_for(1, SORTER)
    a.close()
    wait_until(lambda: up.requests[0].aborted_at, 2, "the classifier's transfer was ended")
    wait_until(lambda: len(g.logs()) >= 2 and busy(g) == 0, 2, "all is over")
    outer = [e for e in g.logs() if e.get("msg") == "request" and e.get("path") != "/healthz"]
    assert [e["outcome"] for e in outer] == ["cancelled"] * 2
    assert up.count(K1) == 0
    # it was not late, and had no say: it may be asked again
    up.default(ok("summary"), SORTER)
    assert ask(g, session="s1") == "m-sum"


@pytest.mark.parametrize("wire", wires.WIRES)
def test_every_api(up, gate, wire):
    """Of the classifier's channel, and of the client."""
    g = start(up, gate, wire=wire)
    up.default(wires.serve(wire, "translation"), SORTER)
    for n, client in enumerate(wires.WIRES):
        a = wires.get(g, client, model="auto", text=CODE, stream=n % 2 == 0)
        assert (a.status, a.header("X-Sluice-Model")) == (200, "m-tr"), a.out
    assert up.count(SORTER) == 3
    for request in up.requests:
        if request.cred == SORTER:
            assert request.target == wires.path(wire), request.target
            assert CODE in request.body.decode()


def test_run(up, gate):
    """Its conversation is the same when it is named by us, by its body, or by the header."""
    g = start(up, gate)
    up.default(ok("translation"), SORTER)
    body = {"input": CODE}
    a = g.send(body, path="/v1/run").finish()
    assert a.header("X-Sluice-Model") == "m-tr", a.out
    id = a.json()["session_id"]
    a = g.send({**body, "session_id": id}, path="/v1/run").finish()
    assert a.header("X-Sluice-Model") == "m-tr", a.out
    assert ask(g, session=id) == "m-tr"
    assert up.count(SORTER) == 1


def test_one_place_is_enough_for_both(up, gate):
    """It has ended when the request itself takes its lease."""
    g = start(
        up,
        gate,
        channel={"models": ["m-*", "sort-2"]},
        routing={"classifier": "sort-2"},
        account={"A1": {"max_in_flight": 1}},
    )
    up.script(K1, ok("summary"))
    assert ask(g) == "m-sum"
    assert up.count(K1) == 2


def test_whose_request_it_is(up, gate):
    g = start(up, gate, auth={"mode": "web-server"})
    up.default(ok("code"), SORTER)
    who = {"REMOTE_USER": "ann"}
    assert ask(g, headers=[("X-Request-Id", "req-7")], vary=who) == "m-code"
    (line,) = lines(g, "classify")
    assert (line["id"], line["client"], line["channel"]) == ("req-7-classify", "ann", "sorter")
    assert (line["outcome"], line["status"], line["prompt_tokens"]) == ("ok", 200, 7)
    rows = json.loads(g.ctl("usage", "--json").stdout)
    assert {(r["client"], r["channel"], r["model"], r["requests"]) for r in rows} == {
        ("ann", "sorter", "sort-1", 1),
        ("ann", "oa", "m-code", 1),
    }
    assert "purpose" not in next(e for e in g.logs() if e.get("id") == "req-7")


def test_it_stays_in_the_realm(up, gate):
    g = start(up, gate, account={"A1": {"realm": "cn"}}, sorter={"realm": "global"})
    up.default(ok("summary"), SORTER)
    assert ask(g, vary={"SLUICE_REALM": "cn"}) == "m-code"
    assert ask(g, headers=[("X-Sluice-Realm", "cn")]) == "m-code"
    assert up.count(SORTER) == 0


def test_clients_do_not_share_what_is_known(up, gate):
    g = start(up, gate, auth={"mode": "web-server"})
    up.script(SORTER, ok("summary"), ok("translation"))
    for user, want in (("ann", "m-sum"), ("bob", "m-tr"), ("ann", "m-sum"), ("bob", "m-tr")):
        assert ask(g, session="s1", vary={"REMOTE_USER": user}) == want


def test_explain_and_count_ask_nobody(up, gate):
    g = start(up, gate, auth={"mode": "web-server", "admins": ["boss"]})
    boss = {"REMOTE_USER": "boss"}
    body = {"model": "auto", "max_tokens": 5, "messages": [{"role": "user", "content": CODE}]}
    a = g.send(body, path="/v1/messages", headers=[("X-Sluice-Explain", "1")], **boss).finish()
    assert a.status == 200 and a.json()["task"] == "code", a.out
    a = g.send(body, path="/v1/messages/count_tokens", **boss).finish()
    assert a.status == 200, a.out
    assert up.count() == 0


def test_explain_knows_what_a_conversation_was_taken_for(up, gate):
    g = start(up, gate)
    up.default(ok("summary"), SORTER)
    assert ask(g, session="s1") == "m-sum"

    def told(model="auto", *more):
        words = ("--model", model, "--session", "s1", "--json", *more)
        doc = json.loads(g.ctl("explain", *words).stdout)
        return doc["task"], doc["route"]["model"]

    assert told() == ("summary", "m-sum")
    assert told("auto", "--task", "code") == ("code", "m-code")
    assert told("m-any") == (None, "m-any")
    doc = json.loads(g.ctl("explain", "--model", "auto", "--session", "s2", "--json").stdout)
    assert (doc["task"], doc["route"]["model"]) == (None, "m-any")


def test_rules_alone(up, gate):
    g = start(up, gate, routing={"classifier": ""})
    assert ask(g) == "m-code"
    assert ask(g, "把下面这段话翻译成英文：今天天气很好。") == "m-tr"
    assert ask(g, "Summarize: it rained, and then it rained more.") == "m-sum"
    assert ask(g, "hi") == "m-any"
    tools = [{"type": "function", "function": {"name": n}} for n in ("Edit", "Bash")]
    assert ask(g, "hi", tools=tools) == "m-code"
    assert up.count(SORTER) == 0
