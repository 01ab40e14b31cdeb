"""Attacks on conversations that are kept: taken away while they are used, calls that nobody can answer, bombs of
many small things.
"""

import json

import pytest

from lib.answers import chat_answer, chunk, error, plain, stream
from lib.pool import K1
from lib.wires import serve
from test_47_context import CALL, ON, headers, lines, talk


def late(action):
    """The action, once it is let go."""
    state = {"go": False}

    def act(x):
        while not state["go"]:
            x.pause(0.01)
        action(x)

    return act, lambda: state.update(go=True)


def result(g, id="call_1", text="done"):
    """The result of the call that the conversation ends with; its answer is not read yet."""
    message = {"role": "tool", "tool_call_id": id, "content": text}
    return g.send({"model": "m1", "messages": [message]}, headers=headers())


def test_gone_meanwhile(up, gate):
    """Dropped, or evicted by others, while its next request is answered: that is no conversation's beginning."""
    g = gate(accounts=1, workers=3, context={**ON, "max_session": "100k", "max_total": "200k"})
    for how in ("dropped", "evicted"):
        up.script(K1, serve("chat", "", CALL))
        talk(g, "do it", tools=True)
        act, go = late(serve("chat", "it is done"))
        up.script(K1, act)
        n = up.count()
        o = result(g)
        up.wait_for(n + 1)
        if how == "dropped":
            g.ctl("context", "drop", "--id", "s1")
        for i in range(4 if how == "evicted" else 0):
            talk(g, "x" * 60000, session=f"other {i}")
        go()
        a = o.finish()
        assert (a.status, a.header("x-sluice-context")) == (200, "not-kept"), how
        rows = json.loads(g.ctl("context", "list", "--json").stdout)
        assert all(r["bytes"] > 60000 for r in rows), rows
    talk(g, "anew")
    assert lines(up.last.json()) == ["anew"]


NAMELESS = {
    "no id": {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    "an empty id": {
        "tool_calls": [{"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    },
    "a call of old": {"function_call": {"name": "f", "arguments": "{}"}},
}


@pytest.mark.parametrize("what", NAMELESS)
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_calls_without_ids(up, gate, what, streamed):
    """Nobody could send their results: kept, they would be the end of the conversation. A client of another API
    gets ids, and answers by them.
    """
    g = gate(accounts=1, context=ON, allow=["not kept"])
    said = {"role": "assistant", "content": None, **NAMELESS[what]}
    if streamed:
        pieces = [{**c, "index": i} for i, c in enumerate(said.get("tool_calls", []))]
        delta = {**said, "tool_calls": pieces} if pieces else said
        act = stream([chunk(delta), chunk({}, "tool_calls"), "[DONE]"])
    else:
        answer = chat_answer(finish="tool_calls")
        answer["choices"][0]["message"] = said
        act = plain(answer)
    up.script(K1, act)
    talk(g, "one", streamed=streamed)
    talk(g, "two")
    assert lines(up.last.json()) == ["two"] and "not kept" in g.log_text()
    up.script(K1, act)
    a = talk(g, "three", "messages", streamed=streamed, session="s2")
    assert a.header("x-sluice-context") is None and g.log_text().count("not kept") == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_calls_of_run(up, gate, streamed):
    """It has no place for results: what the host calls unasked is left out, what it says is kept."""
    g = gate(accounts=1)

    def run(text):
        body = {"model": "m1", "input": text, "session_id": "s1", "stream": streamed}
        a = g.send(body, path="/v1/run").finish()
        assert a.status == 200, a.out

    up.script(K1, serve("chat", "so", CALL), serve("chat", "", CALL))
    run("one")
    run("two")
    run("three")
    assert lines(up.last.json()) == ["one", "so", "two", "three"]


def test_what_run_leaves_out(up, gate):
    """It counts nowhere: not as the answer's limit, not instead of a default, not as the task."""
    target = {"channel": "oa", "model": "m1", "context_window": 2000}
    g = gate(
        accounts=1,
        models={"m1": {"targets": [target], "defaults": {"temperature": 0.5}, "tasks": ["code"]}},
        routing={"tasks": {"code": "m1"}},
    )

    def run(**extra):
        return g.send({"model": "m1", "input": "x", **extra}, path="/v1/run").finish()

    a = run(max_tokens=10**9, temperature=2)
    assert a.header("x-sluice-dropped") == "run.max_tokens,run.temperature"
    assert (a.status, up.last.json()["temperature"]) == (200, 0.5)
    assert "max_tokens" not in up.last.json()
    run(metadata={"task_type": "code"})
    assert g.logs()[-1]["task"] == ""
    name = [("X-Session-Id", b"\xff\xfe")]
    a = g.send({"model": "m1", "input": "x"}, path="/v1/run", headers=name).finish()
    assert a.status == 400 and "UTF-8" in a.json()["error"]


@pytest.mark.parametrize("note", ["N" * 200_000, "word " * 3000], ids=["letters", "words"])
def test_note_without_end(up, gate, note):
    """A summary longer than asked for leads like a system text: it would be what does not fit, for as long as it is
    kept. What is asked of a model with a small window is made to fit that.
    """
    models = {
        "m1": {"targets": [{"channel": "oa", "model": "m1", "context_window": 3000}]},
        "sum": {"targets": [{"channel": "oa", "model": "sum", "context_window": 2000}]},
    }
    context = {**ON, "trim": "summary", "summary_model": "sum"}
    g = gate(accounts=1, workers=1, context=context, models=models)
    asked = []

    def act(x):
        doc = x.request.json()
        if doc["model"] == "sum":
            asked.append(doc["messages"][-1]["content"])
        return plain(chat_answer(note if doc["model"] == "sum" else "hi", usage=None))(x)

    up.default(act)
    for word in ("time", "people", "year", "way", "day", "man", "thing", "woman", "life"):
        talk(g, " ".join([word] * 400))
    led = [m["content"] for m in up.last.json()["messages"] if m["role"] == "system"]
    assert len(led) == 1 and "characters left out" in led[0] and 500 < len(led[0]) < 6000
    assert asked and max(len(text.split()) for text in asked) < 1500
    assert "no summary" not in g.log_text()


def test_names_of_clients(up, gate):
    """Models of clients' own making, as many as are remembered, do not keep out those that the configuration names."""
    g = gate(
        accounts=1,
        models={"good": {"targets": [{"channel": "oa", "model": "g1"}]}},
        routing={"model_fail_after": 3},
        breaker={"threshold": 100},
        channel_breaker={"triggers": []},
        upstream={"max_attempts": 1},
    )
    for i in range(520):
        assert g.ask(f"made-up-{i}").status == 200
    up.default(error(500))
    assert [g.ask("good").status for _ in range(4)] == [502, 502, 502, 503]


def many(n, item=b'"x"'):
    return b"[" + b",".join([item] * n) + b"]"


BOMBS = {
    "messages": ("/v1/chat/completions", b'{"role":"user","content":"x"}', b'"messages":%s'),
    "parts": ("/v1/chat/completions", b'"x"', b'"messages":[{"role":"user","content":%s}]'),
    "tools": (
        "/v1/chat/completions",
        b'{"type":"function","function":{"name":"f"}}',
        b'"messages":[{"role":"user","content":"x"}],"tools":%s',
    ),
    "results": (
        "/v1/messages",
        b'{"type":"text","text":"x"}',
        b'"max_tokens":9,"messages":[{"role":"user","content":'
        b'[{"type":"tool_result","tool_use_id":"t","content":%s}]}]',
    ),
    "counted": ("/v1/messages/count_tokens", b'{"role":"user","content":"x"}', b'"messages":%s'),
    "items": ("/v1/responses", b'{"role":"user","content":"x"}', b'"input":%s'),
    "run": ("/v1/run", b'"x"', b'"input":%s'),
}


def test_too_many_things(up, gate):
    """Each takes far more memory than its few bytes: refused before anything is made of them."""
    g = gate(
        accounts=1,
        workers=1,
        context=ON,
        models={"m1": {"targets": [{"channel": "oa", "model": "m1", "context_window": 1000000}]}},
    )
    pids = g.worker_pids()
    for what, (path, item, body) in BOMBS.items():
        for n, status in ((70000, 413), (2000, 200)):
            text = b'{"model":"m1",' + body % many(n, item) + b"}"
            a = g.send(text, path=path, timeout=30).finish()
            fine = a.status == status or (what == "results" and n < 70000 and a.status == 400)
            assert fine, (what, n, a.out[:400])
    count = up.count()
    text = b'{"model":"m1","messages":[{"role":"user","content":"x"}]'
    text += b"".join(b',"x%d":1' % i for i in range(70000)) + b"}"
    assert g.send(text, timeout=30).finish().status == 413 and up.count() == count
    # what is passed on as it is has as many as it likes
    body = b'{"model":"m1","input":' + many(70000) + b"}"
    assert g.send(body, path="/v1/embeddings", timeout=30).finish().status == 200
    assert g.worker_pids() == pids


def test_too_many_things_together(up, gate):
    """What is kept, and what comes on top of it."""
    g = gate(accounts=1, workers=1, context=ON)
    pids = g.worker_pids()
    parts = b'{"model":"m1","messages":[{"role":"user","content":' + many(40000) + b"}]}"
    statuses = [g.send(parts, headers=headers(), timeout=30).finish() for _ in range(2)]
    assert [a.status for a in statuses] == [200, 400]
    assert statuses[1].error["code"] == "conversation_too_large"
    turn = b'{"role":"user","content":"x"}'
    turns = b'{"model":"m1","messages":' + many(59999, turn) + b"}"
    assert g.send(turns, headers=headers("s2"), timeout=30).finish().status == 200
    a = g.send({"model": "m1", "messages": [{"role": "user", "content": "x"}]}, headers=headers("s2"))
    assert a.finish().error["code"] == "conversation_too_large"
    first = b'{"model":"m1","input":' + many(40000, turn) + b"}"
    id = g.send(first, path="/v1/responses", timeout=30).finish().json()["id"]
    more = first[:-1] + b',"previous_response_id":"' + id.encode() + b'"}'
    a = g.send(more, path="/v1/responses", timeout=30).finish()
    assert (a.status, a.error["code"]) == (400, "conversation_too_large")
    assert g.worker_pids() == pids
