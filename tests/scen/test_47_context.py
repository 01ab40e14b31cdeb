"""Conversations that the gateway keeps: X-Context: append, whatever serves next (SPEC 13)."""

import json
import os
import signal
import time

import pytest

from lib import cgi, wires
from lib.answers import chat_answer, error, hang, plain, stream
from lib.pool import K1
from lib.talk import heard
from lib.upstream import wait_until
from lib.wires import events, serve

ON = {"enabled": True}
CLIENTS = ["chat", "messages"]
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
clients = pytest.mark.parametrize("client", CLIENTS)


def open_talk(g, text="one", client="chat", session="s1", streamed=False, params=None, **extra):
    """A request of the conversation `session`; its answer is not read yet."""
    body = wires.ask(client, streamed, text=text, **extra)
    headers = [("X-Session-Id", session), ("X-Context", "append")]
    return g.send(body, path=wires.path(client), headers=headers, **(params or {}))


def talk(g, text="one", client="chat", **vary):
    answer = open_talk(g, text, client, **vary).finish()
    assert answer.status == 200, answer.out
    return answer


def turns(body):
    """(role, text) of what an upstream of any API was asked."""
    out = []
    if body.get("system"):
        system = body["system"]
        out.append(("system", system if isinstance(system, str) else text_of(system)))
    for t in body.get("messages") or body["input"]:
        out.append((t.get("role") or t["type"], text_of(t.get("content"))))
    return out


def text_of(content):
    if content is None or isinstance(content, str):
        return content
    return "".join(p.get("text", "") for p in content)


def numbered(wire):
    """The request's number is the answer's text."""
    state = {"n": 0}

    def act(x):
        state["n"] += 1
        return serve(wire, f"answer {state['n']}")(x)

    return act


@clients
@pytest.mark.parametrize("wire", wires.WIRES)
@modes
def test_appended(up, gate, client, wire, streamed):
    g = gate(accounts=1, channel={"wire": wire}, context=ON)
    up.default(numbered(wire))
    for text in ("one", "two", "three"):
        talk(g, text, client, streamed=streamed)
    assert turns(up.last.json()) == [
        ("user", "one"),
        ("assistant", "answer 1"),
        ("user", "two"),
        ("assistant", "answer 2"),
        ("user", "three"),
    ]


def lines(body):
    return [text for _, text in turns(body)]


def headers(session="s1", context="append"):
    return [("X-Session-Id", session), ("X-Context", context)]


# What it takes ------------------------------------------------------------------------------------


def test_refused(up, gate):
    """Nobody is asked, and the text says what is wrong."""
    g = gate(accounts=1, context=ON)

    def code(path="/v1/chat/completions", body=None, head=()):
        a = g.send(body or wires.ask("chat"), path=path, headers=head).finish()
        return a.status, a.json()["error"]["message"]

    for word in ("replace", "append, append", "1"):
        assert code(head=headers(context=word)) == (400, "X-Context takes one word: append")
    assert code(head=[("X-Context", "append")])[0] == 400
    assert "X-Session-Id" in code(head=[("X-Context", "append")])[1]
    assert code(head=headers("  "))[0] == 400
    assert code(head=headers("x" * 513))[0] == 400
    status, text = code("/v1/responses", wires.ask("responses"), headers())
    assert status == 400 and "previous_response_id" in text
    for path, body in (
        ("/v1/embeddings", {"model": "m1", "input": "x"}),
        ("/v1/messages/count_tokens", wires.ask("messages")),
    ):
        assert code(path, body, headers())[0] == 400
    a = g.send(wires.ask("messages"), path="/v1/messages", headers=headers(context="x")).finish()
    assert a.status == 400 and a.json()["type"] == "error"
    assert up.count() == 0
    for name in ("x" * 512, "ä\u4e2d 1", "\x01\x7f", "../../etc"):
        talk(g, session=name)
    assert len(up.last.json()["messages"]) == 1, "each of them is a conversation of its own"


def test_off(up, gate):
    g = gate(accounts=1)
    a = open_talk(g).finish()
    assert a.status == 400 and "context.enabled" in a.error["message"]
    assert up.count() == 0
    assert g.ask().status == 200


def test_explained_is_not_kept(up, gate):
    g = gate(accounts=1, context=ON, auth={"mode": "web-server", "admins": ["root"]})
    root = {"REMOTE_USER": "root"}
    act, go = gated()
    up.script(K1, act)
    o = open_talk(g, "one", params=root, streamed=True).until(b"slow")
    head = headers() + [("X-Sluice-Explain", "1")]
    a = g.send(wires.ask("chat", text="two"), headers=head, **root).finish()
    assert a.status == 200 and up.count() == 1, "it neither waits nor asks"
    go()
    o.finish()
    talk(g, "three", params=root)
    assert lines(up.last.json()) == ["one", "slow answer", "three"]


# What is sent -------------------------------------------------------------------------------------


def test_own_bytes(up, gate):
    """On the client's API all stands as it was sent, but for what is put before it."""
    g = gate(accounts=1, context=ON)
    talk(g, "one")
    text = (
        '{ "seed" : 1e3, "messages":[ {"content":"\\u0074wo" , "role":"user", "x":1.50} ,'
        '{"role":"assistant","content":"ok"},\n{"role":"user","content":"three"}], "model":"m1" }'
    )
    a = g.send(text.encode(), headers=headers()).finish()
    assert a.status == 200
    kept = '{"role":"user","content":"one"},{"role":"assistant","content":"hi"},'
    items = text[text.index('{"content"') : text.index("]")]
    want = (
        text[: text.index('[ {"c') + 1]
        + kept
        + items.replace(' ,{"', ',{"').replace(",\n{", ",{")
        + text[text.index("]") :]
    )
    assert up.last.body.decode() == want
    talk(g, "four")
    assert lines(up.last.json()) == ["one", "hi", "two", "ok", "three", "hi", "four"]


@pytest.mark.parametrize("wire", ["chat", "messages"])
@clients
def test_system(up, gate, client, wire):
    """It leads, is kept once, and another one takes its place; where there is none, ours does."""
    g = gate(accounts=1, channel={"wire": wire}, context={**ON, "system_prompt": "be ours"})
    up.default(numbered(wire))

    def say(text, system=None):
        if client == "messages":
            extra = {"system": system} if system else {}
            talk(g, text, client, **extra)
        else:
            more = [{"role": "system", "content": system}] if system else []
            talk(g, text, messages=more + [{"role": "user", "content": text}])
        return turns(up.last.json())

    assert say("one")[0] == ("system", "be ours")
    assert say("two", "be kind")[:2] == [("system", "be kind"), ("user", "one")]
    assert say("three")[:2] == [("system", "be kind"), ("user", "one")]
    assert say("four", "be kind")[:2] == [("system", "be kind"), ("user", "one")]
    assert say("five", "be brief")[0] == ("system", "be brief")
    got = say("six")
    assert got[0] == ("system", "be brief")
    assert lines(up.last.json())[1::2] == ["one", "two", "three", "four", "five", "six"]
    assert [r for r, _ in got].count("system") == 1
    # the bytes of the client's own are its own
    if client == wire == "messages":
        say("seven", "be  odd")
        assert b'"system": "be  odd"' in up.last.body


CALL = ("call_1", "f", '{"a":1}')


def test_cache_marks_do_not_add_up(up, gate):
    """A host of messages takes four."""
    g = gate(accounts=1, channel={"wire": "messages"}, context=ON)
    up.default(serve("messages"))
    for i in range(6):
        block = {"type": "text", "text": f"n{i}", "cache_control": {"type": "ephemeral"}}
        talk(g, client="messages", messages=[{"role": "user", "content": [block]}])
    assert up.last.body.count(b"cache_control") == 1


def test_result_finds_its_call(up, gate):
    """The call is in what is kept, the result alone is sent."""
    g = gate(accounts=1, channel={"wire": "chat"}, context=ON)
    up.script(K1, serve("chat", "", CALL))
    talk(g, "do it", tools=True)
    a = open_talk(g, "what now?").finish()
    assert a.status == 400 and "call_1" in a.error["message"] and "kept" in a.error["message"]
    result = [{"role": "tool", "tool_call_id": "call_2", "content": "?"}]
    assert open_talk(g, messages=result).finish().status == 400
    assert up.count() == 1
    result[0]["tool_call_id"] = "call_1"
    talk(g, messages=result, tools=True)
    assert heard("chat", up.last.json()) == [
        ("user", "do it"),
        ("call", *CALL),
        ("result", "call_1", "?"),
    ]


def test_run_and_append_are_one(up, gate):
    """/v1/run and X-Context by the same name go on with the same conversation."""
    g = gate(accounts=1, context=ON)
    up.default(numbered("chat"))
    talk(g, "one")
    a = g.send({"model": "m1", "input": "two", "session_id": "s1"}, path="/v1/run").finish()
    assert a.json()["content"] == "answer 2"
    talk(g, "three", "messages")
    assert lines(up.last.json()) == ["one", "answer 1", "two", "answer 2", "three"]


# Whose it is --------------------------------------------------------------------------------------


def test_of_another_client(up, gate):
    """A name is of the client who says it."""
    g = gate(accounts=1, context=ON, auth={"mode": "web-server"})
    alice, bob = {"REMOTE_USER": "alice"}, {"REMOTE_USER": "bob"}
    talk(g, "alice 1", params=alice)
    talk(g, "bob 1", params=bob)
    talk(g, "alice 2", params=alice)
    assert lines(up.last.json()) == ["alice 1", "hi", "alice 2"]
    talk(g, "bob 2", params=bob)
    assert lines(up.last.json()) == ["bob 1", "hi", "bob 2"]
    assert open_talk(g).finish().status == 401


def test_no_names_in_the_store(up, gate):
    """STICK-06: nor in the log, nor in what operators are shown."""
    g = gate(accounts=1, context=ON, auth={"mode": "open", "admins": ["root"]})
    name = "carol@example.org-conversation"
    talk(g, session=name, streamed=True)
    talk(g, session=name)
    g.send({"model": "m1", "input": "x", "session_id": name}, path="/v1/run").finish()
    open_talk(g, session=name, tools=3).finish()
    shown = [g.get("/status", REMOTE_USER="root").body.decode()]
    assert "sessions" in shown[0]
    for words in (["status"], ["context", "list"], ["session", "list"], ["events"], ["usage"]):
        shown.append(g.ctl(*words, "--json").stdout)
    hash = json.loads(shown[2])[0]["session"]
    shown.append(g.ctl("context", "show", hash).stdout)
    assert hash in g.log_text() and name not in "".join(shown)
    g.stop()
    for folder, _, names in os.walk(g.dir):
        for file in names:
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    assert name.encode() not in f.read(), file


# Two at once --------------------------------------------------------------------------------------


def gated():
    """A stream that has begun; its rest comes when it is let go."""
    parts = b"".join(events("chat", "slow", " answer"))
    cut = parts.index(b" answer")
    state = {"go": False}
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

    def act(x):
        x.send(head + parts[:cut])
        while not state["go"]:
            x.pause(0.01)
        x.finishing()
        x.send(parts[cut:])
        x.fin()

    return act, lambda: state.update(go=True)


def test_second_waits(up, gate):
    """What the first one adds is what the second one goes on with."""
    g = gate(accounts=1, workers=3, context=ON)
    act, go = gated()
    up.script(K1, act)
    first = open_talk(g, "one", streamed=True).until(b"slow")
    second = open_talk(g, "two")
    other = talk(g, "other", session="s2")  # nobody else waits
    assert other.status == 200 and second.step(0.05) is False
    go()
    assert first.finish().status == 200
    assert second.finish().status == 200
    assert lines(up.last.json()) == ["one", "slow answer", "two"]
    talk(g, "three")
    assert lines(up.last.json()) == ["one", "slow answer", "two", "hi", "three"]


def test_second_is_refused(up, gate):
    g = gate(accounts=1, workers=3, context={**ON, "on_conflict": "refuse"})
    act, go = gated()
    up.script(K1, act)
    first = open_talk(g, "one", streamed=True).until(b"slow")
    a = open_talk(g, "two").finish()
    assert (a.status, a.error["code"]) == (409, "conversation_busy")
    a = open_talk(g, "two", "messages").finish()
    assert a.status == 409 and a.json()["type"] == "error"
    go()
    first.finish()
    talk(g, "three")
    assert lines(up.last.json()) == ["one", "slow answer", "three"]
    assert up.count() == 2


def test_waits_in_vain(up, gate):
    g = gate(accounts=1, workers=3, context=ON, upstream={"first_byte_timeout": "150ms"})
    up.script(K1, gated()[0])
    first = open_talk(g, "one", streamed=True).until(b"slow")
    a = open_talk(g, "two").finish()
    assert (a.status, a.error["code"]) == (409, "conversation_busy")
    # who gives up is not waited for
    gone = open_talk(g, "three")
    gone.close()
    first.close()
    wait_until(lambda: g.in_flight() == 0, 5, "it is given up")
    talk(g, "four")
    assert lines(up.last.json()) == ["four"]


# What is not kept ---------------------------------------------------------------------------------


def test_nothing_of_what_failed(up, gate):
    """Not the user's message either."""
    g = gate(accounts=2, context=ON)
    talk(g, "one")
    up.script(K1, error(400, "bad"))
    assert open_talk(g, "two").finish().status == 400
    parts = events("chat")
    up.script(K1, stream(b"".join(parts[:2]), end="fin"))
    cut = open_talk(g, "three", streamed=True).finish()
    assert b"error" in cut.body and b"[DONE]" not in cut.body
    up.script(K1, stream(b"".join(parts[:2]), end="hold"))
    o = open_talk(g, "four", streamed=True).until(b"hel")
    o.close()
    wait_until(lambda: g.in_flight() == 0, 5, "it is given up")
    up.script(K1, hang())
    o = open_talk(g, "five")
    wait_until(lambda: g.in_flight() == 1, 5, "it runs")
    o.close()
    wait_until(lambda: g.in_flight() == 0, 5, "it is given up")
    # a failure that the next account mends is none
    up.script(K1, error(500))
    talk(g, "six")
    talk(g, "seven")
    assert lines(up.last.json()) == ["one", "hi", "six", "hi", "seven"]


def test_cut_short_is_whole(up, gate):
    """The host's own limit ended it; of calls what nobody can run is left out."""
    g = gate(accounts=1, context=ON)
    up.script(K1, plain(chat_answer("to be", finish="length")))
    talk(g, "one")
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a'}}
    message = {"role": "assistant", "content": "I call", "tool_calls": [call]}
    answer = chat_answer(finish="length")
    answer["choices"][0]["message"] = message
    up.script(K1, plain(answer))
    talk(g, "two")
    answer = chat_answer(finish="tool_calls")
    answer["choices"][0]["message"] = message
    up.script(K1, plain(answer))
    talk(g, "three")
    talk(g, messages=[{"role": "tool", "tool_call_id": "call_1", "content": "no such call"}])
    assert heard("chat", up.last.json()) == [
        ("user", "one"),
        ("assistant", "to be"),
        ("user", "two"),
        ("assistant", "I call"),
        ("user", "three"),
        ("assistant", "I call"),
        ("call", "call_1", "f", "{}"),
        ("result", "call_1", "no such call"),
    ]


def test_too_large(up, gate):
    """Nothing makes it larger than it may be; it goes on from where it was."""
    g = gate(accounts=1, context={**ON, "max_session": "20k"})
    up.script(K1, plain(chat_answer("x" * 30000)))
    a = talk(g, "one")
    assert a.header("x-sluice-context") == "not-kept"
    a = open_talk(g, "y" * 30000).finish()
    assert (a.status, a.error["code"]) == (400, "conversation_too_large")
    a = talk(g, "two")
    assert a.header("x-sluice-context") is None
    assert lines(up.last.json()) == ["two"]


def test_expires(up, gate):
    g = gate(accounts=1, context={**ON, "ttl": "300ms"})
    talk(g, "one")
    time.sleep(0.4)
    talk(g, "two")
    assert lines(up.last.json()) == ["two"]


def test_survives(up, gate):
    """kill -9 of the worker that serves, and of everything."""
    g = gate(accounts=1, context=ON, allow=["a worker ended"])
    talk(g, "one")
    up.script(K1, gated()[0])
    o = open_talk(g, "two", streamed=True).until(b"slow")
    for pid in g.worker_pids():
        os.kill(pid, signal.SIGKILL)
    o.finish()
    talk(g, "three")
    assert lines(up.last.json()) == ["one", "hi", "three"]
    g.kill_all()
    g.start()
    talk(g, "four")
    assert lines(up.last.json()) == ["one", "hi", "three", "hi", "four"]


def test_seen_by_all(up, gate):
    """The end of a stream is the end: the next request, in another process, goes on from there."""
    g = gate(accounts=1, workers=4, context={**ON, "on_conflict": "refuse"})
    for i in range(10):
        o = open_talk(g, f"n{i}", streamed=True).until(b"[DONE]")
        talk(g, f"m{i}")
        o.finish()
    assert len(up.last.json()["messages"]) == 39


def test_one_process_a_request(up, gate):
    """Plain CGI: one is killed while it streams, the next one goes on from what was whole."""
    g = gate(accounts=1, context=ON, start=False)
    up.default(numbered("chat"))
    for text in ("one", "two"):
        a = cgi.open(
            g, vary={"headers": headers()}, stream=text == "two", messages=user(text)
        ).finish()
        assert a.status == 200, a.out
    up.script(K1, gated()[0])
    a = cgi.open(g, vary={"headers": headers()}, stream=True, messages=user("three")).until(b"slow")
    a.kill()
    a = cgi.open(g, vary={"headers": headers()}, stream=False, messages=user("four")).finish()
    assert a.status == 200
    assert lines(up.last.json()) == ["one", "answer 1", "two", "answer 2", "four"]


def user(text):
    return [{"role": "user", "content": text}]


def test_damaged(up, gate):
    """What cannot be read is given up, and the log says so."""
    g = gate(accounts=1, workers=1, context=ON, allow=["cannot be read", "given up"])
    talk(g, "a text to be found")
    path = os.path.join(g.dir, "state", "book", "data.mdb")
    with open(path, "r+b") as f:
        data = f.read()
        at = data.index(b"a text to be found")
        while at >= 0:
            f.seek(at)
            f.write(b"A")
            at = data.find(b"a text to be found", at + 1)
    open_talk(g, "two").finish()
    assert "cannot be read" in g.log_text()
    talk(g, "three")
    assert lines(up.last.json()) == ["two", "hi", "three"]
