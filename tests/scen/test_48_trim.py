"""How what the gateway keeps of a conversation is made to fit (SPEC 13; cases.md CTX)."""

import json

import pytest

from lib import wires
from lib.answers import chat_answer, error, plain
from lib.pool import K1, config, key
from lib.wires import serve

CTX = ["chat", "messages"]
TOO_LONG = error(400, "context_length_exceeded", "maximum context length is 100 tokens")


def model(window, **more):
    return {"m1": {"targets": [{"channel": "oa", "model": "m1", "context_window": window, **more}]}}


def send(g, *messages, client="chat", session="s1", **extra):
    """New messages of the conversation; texts are the user's."""
    body = wires.ask(client, **extra)
    body["messages"] = [
        {"role": "user", "content": m} if isinstance(m, str) else m for m in messages
    ]
    head = [("X-Session-Id", session), ("X-Context", "append")]
    return g.send(body, path=wires.path(client), headers=head).finish()


def say(g, *messages, **vary):
    a = send(g, *messages, **vary)
    assert a.status == 200, a.out
    return a


def lines(up):
    return [m["content"] for m in up.last.json()["messages"]]


def quiet(wire="chat", text="hi"):
    """Answers that tell no usage, so that nothing is learnt of how we count."""

    def act(x):
        doc = wires.answer(wire, text)
        doc["usage"] = None
        if x.request.json().get("stream"):
            return serve(wire, text)(x)
        return plain(doc)(x)

    return act


@pytest.fixture(autouse=True)
def unmeasured(up):
    up.default(quiet())


def words(n, word="word"):
    return " ".join([word] * n)


def trimmed(answer):
    """(messages, tokens) of what was left out."""
    told = answer.header("x-sluice-trimmed")
    return tuple(int(n) for n in told.split(",")) if told else None


def test_dynamic(up, gate):
    """Whole rounds go, the oldest first, until the rest fits; what leads and the newest stay. What
    is stored stays whole, so that a larger window sees all of it.
    """
    large = {"m2": {"targets": [{"channel": "oa", "model": "m2"}]}}
    small = model(2000, max_output=500)
    g = gate(accounts=1, context={"enabled": True}, models={**small, **large})
    say(g, {"role": "system", "content": "be brief"}, words(400, "a"))
    assert trimmed(say(g, words(400, "b"))) is None
    assert trimmed(say(g, words(400, "c"))) is None
    a = say(g, words(400, "d"))
    got = lines(up)
    n, tokens = trimmed(a)
    assert got[0] == "be brief" and got[-1] == words(400, "d")
    assert n == 2 and 250 < tokens < 700, (n, tokens)
    assert got[1] == words(400, "b"), [t[:8] for t in got]
    a = say(g, "all of it?", model="m2")
    assert trimmed(a) is None and len(lines(up)) == 10
    assert lines(up)[1] == words(400, "a")


def test_by_target(up, gate):
    """Each target is given what fits it; one too small for the newest message is not asked."""
    targets = [
        {"channel": "oa", "model": "small", "context_window": 1000, "weight": 1},
        {"channel": "ob", "model": "large", "context_window": 100000, "weight": 1},
    ]
    cost = [{"cost": {"input": n, "output": n}} for n in (1, 2)]
    conf = config(
        up.url,
        accounts=1,
        context={"enabled": True},
        models={"m1": {"targets": [{**t, **c} for t, c in zip(targets, cost)]}},
        routing={"default": "cost-first"},
    )
    other = {"id": "B1", "api_key": key(4)}
    conf["channels"]["ob"] = {**conf["channels"]["oa"], "accounts": [other]}
    g = gate(conf=conf)
    for word in ("alpha", "beta", "gamma"):
        a = say(g, words(300, word))
    assert trimmed(a)[0] >= 2 and up.last.json()["model"] == "small" and len(lines(up)) < 5
    up.script(K1, error(500))
    a = say(g, "and now?")
    assert trimmed(a) is None and up.last.json()["model"] == "large" and len(lines(up)) == 7
    n = up.count(K1)
    a = say(g, words(1200, "delta"))
    assert up.last.json()["model"] == "large" and up.count(K1) == n


def test_rounds(up, gate):
    g = gate(accounts=1, context={"enabled": True, "trim": "rounds", "rounds": 2})
    for text in ("one", "two"):
        assert trimmed(say(g, text)) is None
    a = say(g, "three")
    assert lines(up) == ["two", "hi", "three"] and trimmed(a)[0] == 2
    say(g, "four")
    assert lines(up) == ["three", "hi", "four"]


def test_max_tokens(up, gate):
    """Whatever the window is."""
    g = gate(accounts=1, context={"enabled": True, "max_tokens": 150})
    say(g, words(100, "a"))
    say(g, words(100, "b"))
    assert lines(up) == [words(100, "b")]
    a = send(g, words(300, "c"))
    assert a.status == 400 and "150" in a.error["message"]


def test_never_of_others(up, gate):
    """What a client sends whole is its own."""
    g = gate(accounts=1, context={"enabled": True, "max_tokens": 50}, models=model(100))
    a = g.ask(messages=[{"role": "user", "content": words(40)}] * 5)
    assert trimmed(a) is None
    assert a.status == 400 or len(up.last.json()["messages"]) == 5


def call_of(arguments, id="call_1"):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
        ],
    }


def test_call_that_cannot_shrink(up, gate):
    """CTX-02: refused, never half of it, never for ever."""
    g = gate(accounts=1, context={"enabled": True, "max_tokens": 2500})
    call = call_of(json.dumps({"text": "x y " * 125000}))
    result = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
    a = send(g, "do it", call, result)
    assert a.status == 400 and "does not fit" in a.error["message"], a.out[:500]
    assert a.error["code"] == "context_length_exceeded"
    assert up.count() == 0
    # once it is old it goes, with its result
    g.reload({**g.conf, "context": {"enabled": True, "max_tokens": 0}})
    say(g, "do it", call, result)
    g.reload({**g.conf, "context": {"enabled": True, "max_tokens": 2500}})
    say(g, "and now?")
    assert all(
        m["role"] not in ("tool",) and not m.get("tool_calls") for m in up.last.json()["messages"]
    )
    assert lines(up)[-1] == "and now?"


@pytest.mark.parametrize("client", CTX)
def test_huge_result(up, gate, client):
    """CTX-03: what leads and the newest message survive, the result is shortened with a mark; its
    neighbours are as they were sent.
    """
    g = gate(
        accounts=1,
        channel={"wire": client},
        context={"enabled": True, "max_tokens": 25000, "max_session": "16M"},
    )
    up.default(quiet(client))
    huge = "0123456789 \U0001f389 " * (400000 if client == "chat" else 60000)
    if client == "chat":
        say(
            g,
            {"role": "system", "content": "be brief"},
            "look",
            call_of('{"a" : 1}'),
            {"role": "tool", "tool_call_id": "call_1", "content": huge},
            "what is in it?",
        )
        m = up.last.json()["messages"]
        result = m[3]["content"]
        assert m[0]["content"] == "be brief" and m[4]["content"] == "what is in it?"
        assert b'{\\"a\\" : 1}' in up.last.body
    else:
        use = {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
        done = {"type": "tool_result", "tool_use_id": "call_1", "content": huge}
        ask = {"type": "text", "text": "what is in it?", "x_odd": 1}
        say(
            g,
            "look",
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [done]},
            {"role": "user", "content": [ask]},
            client="messages",
            system="be brief",
        )
        body = up.last.json()
        result = body["messages"][2]["content"][0]["content"]
        assert body["system"] == "be brief" and b'"x_odd": 1' in up.last.body
        result = result if isinstance(result, str) else result[0]["text"]
    assert 1000 < len(result) < 400000
    assert result.startswith("0123456789") and result.rstrip().endswith("\U0001f389")
    assert "\ufffd" not in result


@pytest.mark.parametrize("shift", range(4))
def test_inside_of_a_character(up, gate, shift):
    """CTX-04: the limit falls in each byte of one, also where it is written as an escaped pair."""
    g = gate(accounts=1, context={"enabled": True, "max_tokens": 400})
    text = "x" * shift + "\U0001f389" * 3000
    body = json.dumps(
        {
            "model": "m1",
            "messages": [
                {"role": "user", "content": "look"},
                call_of("{}"),
                {"role": "tool", "tool_call_id": "call_1", "content": text},
            ],
        }
    )
    assert "\\ud83c\\udf89" in body
    head = [("X-Session-Id", "s1"), ("X-Context", "append")]
    a = g.send(body.encode(), headers=head).finish()
    assert a.status == 200, a.out
    got = lines(up)[2]
    assert got.startswith("x" * shift + "\U0001f389") and len(got) < 2000
    got.encode("utf-8")  # no half of a pair
    assert "\ufffd" not in got


def test_excerpts_end_at_characters(up, gate):
    """CTX-04: of what is too long to be told whole, in errors and in the log."""
    g = gate(accounts=1, workers=1, context={"enabled": True}, allow=["."])
    for shift in range(4):
        text = "x" * shift + "\U0001f389" * 3000
        a = send(g, "look", {"role": "tool", "tool_call_id": text, "content": "?"})
        assert a.status == 400 and text[:10] in a.error["message"] and len(a.body) < 1000
        up.script(K1, error(500, message=text))
        a = g.ask()
        assert a.status == 502 and text[:10] in a.error["message"]
    g.ctl("account", "show", "A1")
    with open(g.log_path, "rb") as f:
        log = f.read().decode("utf-8")
    for told in (log, a.body.decode("utf-8"), g.ctl("events", "--json").stdout):
        assert "\ufffd" not in told
        json.dumps([json.loads(line) for line in told.splitlines()], ensure_ascii=False).encode()


# A host that finds it too long --------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_too_long_for_the_host(up, gate, streamed):
    """It is asked once more, with less, on the same account; the client sees the answer alone."""
    g = gate(accounts=2, context={"enabled": True})
    for i in range(6):
        say(g, words(50, f"w{i}"))
    n = up.count()
    up.script(K1, TOO_LONG)
    a = say(g, "and now?", stream=streamed)
    assert a.header("x-sluice-account") == "A1" and up.count() == n + 2
    got = trimmed(a)
    assert got[0] >= 2 and lines(up)[-1] == "and now?" and len(lines(up)) == 13 - got[0]
    g.assert_clean()
    # once, then it is the client's
    up.script(K1, TOO_LONG, TOO_LONG)
    n = up.count()
    a = send(g, "and then?")
    assert (a.status, a.error["code"]) == (400, "context_length_exceeded") and up.count() == n + 2
    say(g, "still whole?")
    assert len(lines(up)) == 15


def test_too_long_of_others(up, gate):
    g = gate(accounts=1, context={"enabled": True})
    up.script(K1, TOO_LONG)
    a = g.ask(messages=[{"role": "user", "content": words(50)}] * 5)
    assert (a.status, a.error["code"]) == (400, "context_length_exceeded")
    assert up.count() == 1 and trimmed(a) is None


# previous_response_id -----------------------------------------------------------------------------


def respond(g, text, previous=None, **extra):
    body = wires.ask("responses", text=text, **extra)
    if previous:
        body["previous_response_id"] = previous
    a = g.send(body, path="/v1/responses").finish()
    assert a.status == 200, a.out
    return a


@pytest.mark.parametrize("wire", wires.WIRES)
def test_recalled(up, gate, wire):
    """What previous_response_id leads to is trimmed, too; the items that stay are as they were."""
    g = gate(accounts=1, channel={"wire": wire}, context={"max_tokens": 300})
    up.default(quiet(wire, "fine"))
    id = None
    for word in ("alpha", "beta", "gamma"):
        id = respond(g, words(100, word), id).json()["id"]
    a = respond(g, "and now?", id, instructions="be brief")
    n, tokens = trimmed(a)
    body = up.last.json()
    items = body["input"] if wire == "responses" else body["messages"]
    texts = [wires_text(t) for t in items if t.get("role") in ("user", "assistant")]
    assert n == 2 and texts == [words(100, "beta"), "fine", words(100, "gamma"), "fine", "and now?"]
    if wire == "responses":
        assert body["instructions"] == "be brief"
    up.script(K1, error(400, "context_length_exceeded", "too long"))
    m = trimmed(respond(g, "and then?", a.json()["id"]))
    assert m[0] > n


def wires_text(t):
    content = t["content"]
    return content if isinstance(content, str) else "".join(p["text"] for p in content)


# Summaries ----------------------------------------------------------------------------------------


WORDS = (
    "time people year way day man thing woman life child world school state family group".split()
)
WORDS += (
    "country problem hand part place case week company system program question work night".split()
)


def summing(up, note="they spoke of words"):
    """Answers that number the questions for a summary."""
    asked = []

    def act(x):
        doc = x.request.json()
        if doc["model"] == "sum":
            asked.append(doc["messages"])
            return plain(chat_answer(f"{note} {len(asked)}", usage=None))(x)
        return quiet()(x)

    up.default(act)
    return asked


def summary(**context):
    return {"enabled": True, "trim": "summary", "summary_model": "sum", **context}


@pytest.mark.parametrize("client", CTX)
def test_summary(up, gate, client):
    """What goes is told in a note behind the system text, which serves for several turns; the next
    one is made of it.
    """
    g = gate(accounts=1, context=summary(), models=model(3000, max_output=400))
    asked = summing(up)
    lead = {"system": "be brief"} if client == "messages" else {}
    notes = []
    for word in WORDS[:24]:
        a = say(g, words(200, word), client=client, **lead)
        body = up.last.json()["messages"]
        note = [m["content"] for m in body if m["role"] == "system"]
        assert (note[0] == "be brief") if lead else True
        notes.append(note[-1].partition("\n")[2] if note and "Summary" in note[-1] else None)
        assert body[-1]["content"] == words(200, word)
        assert (trimmed(a) is None) == (notes[-1] is None)
    seen = [n for n in notes if n]
    assert notes[0] is None and len(seen) > 6 and seen[0] == "they spoke of words 1"
    assert len(asked) == len(set(seen)) <= len(seen) // 2, (len(asked), seen)
    assert words(200, WORDS[0]) in asked[0][-1]["content"]
    assert "they spoke of words 1" in asked[1][-1]["content"]
    assert words(200, WORDS[0]) not in asked[1][-1]["content"]
    # what is kept holds no notes
    head = [("X-Session-Id", "s1"), ("X-Context", "append")]
    g.reload({**g.conf, "models": {}})
    g.send(wires.ask("chat"), headers=head).finish()
    assert not any("Summary" in (m["content"] or "") for m in up.last.json()["messages"])


def test_summary_in_vain(up, gate):
    """Nobody can write it: what goes has no note, and nobody is asked again at once."""
    g = gate(
        accounts=1,
        workers=1,
        context=summary(),
        models=model(2000, max_output=400),
        allow=["no summary could be had"],
    )
    asked = []

    def act(x):
        if x.request.json()["model"] == "sum":
            asked.append(1)
            return error(500)(x)
        return quiet()(x)

    up.default(act)
    for i in range(9):
        a = say(g, words(300, f"w{i}"))
    assert trimmed(a)[0] > 2 and len(asked) == 1
    assert all(m["role"] != "system" for m in up.last.json()["messages"])


def test_summary_of_recalled(up, gate):
    g = gate(accounts=1, channel={"wire": "responses"}, context=summary(max_tokens=1000))
    asked = []

    def act(x):
        doc = x.request.json()
        asked.extend([doc] if doc["model"] == "sum" else [])
        return quiet("responses", "noted" if doc["model"] == "sum" else "fine")(x)

    up.default(act)
    id, told = None, []
    for word in WORDS[:18]:
        a = respond(g, words(90, word), id)
        id = a.json()["id"]
        first = up.last.json()["input"]
        told.append("noted" in json.dumps(first))
    assert told[0] is False and told[-1] is True
    assert 1 <= len(asked) < told.count(True)
