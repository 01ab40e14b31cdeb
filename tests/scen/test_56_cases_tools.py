"""The TOOL cases in every pair of APIs: calls, results, ids, arguments, both directions."""

import json

import pytest

from lib import grammar, wires
from lib.answers import USAGE, chunk, plain, sse, stream, usage_chunk
from lib.talk import ask_with, heard
from lib.trio import OTHERS, Trio
from lib.wires import ask

others = pytest.mark.parametrize("client,host", OTHERS)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
each = pytest.mark.parametrize("wire", wires.WIRES)


@pytest.fixture(scope="module")
def trio():
    t = Trio()
    yield t
    harmed = t.harmed()
    t.close()
    assert not harmed


def calls_of(client, a, streamed):
    if streamed:
        assert grammar.end(client, a.body) == "whole"
        return wires.GATHER[client](a.events())
    return a.json()


def chat_stream(*deltas, finish="tool_calls"):
    return stream(sse([*map(chunk, deltas), chunk({}, finish), usage_chunk(), "[DONE]"]))


def call_delta(index=None, id=None, name=None, arguments=None, **more):
    function = {"name": name, "arguments": arguments}
    function = {k: v for k, v in function.items() if v is not None}
    made = {"index": index, "id": id, "function": function, **more}
    return {"tool_calls": [{k: v for k, v in made.items() if v is not None}]}


A, B = {"a": 1}, {"b": 2}
DELTAS = {
    "TOOL-04 name and id again, empty": [
        call_delta(0, "c1", "f", ""),
        call_delta(0, "", "", '{"a"'),
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": ":"}}]},
        call_delta(0, "c1", "f", "1}"),
    ],
    "TOOL-05 no index, whole": [call_delta(None, "c1", "f", '{"a":1}')],
    "TOOL-05 no index, pieces": [
        call_delta(None, "c1", "f", '{"a"'),
        call_delta(None, None, None, ":1}"),
    ],
    "arguments as an object": [
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": A}}]}
    ],
    "index 5": [call_delta(5, "c1", "f", '{"a":1}')],
    "text between": [
        call_delta(0, "c1", "f", '{"a"'),
        {"content": ""},
        call_delta(0, arguments=":1}"),
    ],
}
TWO = {
    "interleaved": [
        call_delta(0, "c1", "f", '{"a"'),
        call_delta(1, "c2", "g", '{"b"'),
        call_delta(0, arguments=":1}"),
        call_delta(1, arguments=":2}"),
    ],
    "both in one chunk": [
        {
            "tool_calls": call_delta(0, "c1", "f", '{"a":1}')["tool_calls"]
            + call_delta(1, "c2", "g", '{"b":2}')["tool_calls"]
        }
    ],
    "no index, told apart by id": [
        call_delta(None, "c1", "f", '{"a":1}'),
        call_delta(None, "c2", "g", '{"b":2}'),
    ],
    "index 0 for both": [call_delta(0, "c1", "f", '{"a":1}'), call_delta(0, "c2", "g", '{"b":2}')],
}


def gathered(client, a):
    assert grammar.end(client, a.body) == "whole"
    return [(i, n, json.loads(v)) for i, n, v in wires.gathered(client, a.body)["calls"]]


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize("name", [*DELTAS, *TWO])
def test_tool_04_05_deltas_of_wilder_hosts(trio, client, name):
    deltas = DELTAS.get(name) or TWO[name]
    a = trio.get(client, "chat", ask(client, True, tools=True), chat_stream(*deltas))
    want = [("c1", "f", A), ("c2", "g", B)]
    got = gathered(client, a)
    assert got == want[: len(got)] and len(got) == (2 if name in TWO else 1)


@pytest.mark.parametrize("client", ["messages", "responses"])
@modes
def test_tool_05_missing_ids_map_back(trio, client, streamed):
    """TOOL-05: made ids are unique, and come back with the next turn."""
    deltas = [call_delta(0, "", "f", '{"a":1}'), call_delta(1, None, "f", '{"b":2}')]
    message = {"role": "assistant", "content": None, "tool_calls": []}
    for d in deltas:
        message["tool_calls"] += d["tool_calls"]
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": USAGE,
    }
    answer = chat_stream(*deltas) if streamed else plain(body)
    a = trio.get(client, "chat", ask(client, streamed, tools=True), answer)
    doc = calls_of(client, a, streamed)
    calls = wires.meaning(client, doc)["calls"]
    ids = [c[0] for c in calls]
    assert len(set(ids)) == 2 and all(ids)
    items = [("user", "x"), *(("call", *c) for c in calls), *(("result", i, i) for i in ids)]
    got = heard("chat", trio.sent(client, "chat", ask_with(client, *items)))
    assert [g[1] for g in got if g[0] == "result"] == [g[1] for g in got if g[0] == "call"]


@pytest.mark.parametrize("client", ["chat", "messages"])
def test_tool_02_arguments_only_when_done(trio, client):
    """TOOL-02: two calls of a responses host that come whole; each block is begun before it goes on."""
    parts, item = [], {"type": "function_call", "status": "completed"}
    for n, (cid, name, arguments) in enumerate([("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]):
        item = {**item, "id": f"fc_{n}", "call_id": cid, "name": name}
        at = {"output_index": n, "item_id": item["id"]}
        parts += [
            {"type": "response.output_item.added", **at, "item": {**item, "arguments": ""}},
            {"type": "response.function_call_arguments.done", **at, "arguments": arguments},
            {"type": "response.output_item.done", **at, "item": {**item, "arguments": arguments}},
        ]
    parts = wires.events("responses")[:1] + [sse([p]) for p in parts]
    body = b"".join(parts) + wires.events("responses")[-1]
    a = trio.get(client, "responses", ask(client, True), stream(body))
    assert gathered(client, a) == [("c1", "f", A), ("c2", "g", B)]


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_tool_03_indexes_with_gaps(trio, client):
    """TOOL-03: blocks 0, 1 and 3 of messages: calls 0 and 1."""
    start, _ = wires.events("messages")[:2]
    end = b"".join(wires.events("messages", call=wires.CALL)[-2:])
    made = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "t"}}
    ]
    made += [{"type": "content_block_stop", "index": 0}]
    for i, cid, name, text in ((1, "c1", "f", '{"a":1}'), (3, "c2", "g", '{"b":2}')):
        block = {"type": "tool_use", "id": cid, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": text}
        made += [
            {"type": "content_block_start", "index": i, "content_block": block},
            {"type": "content_block_delta", "index": i, "delta": delta},
            {"type": "content_block_stop", "index": i},
        ]
    a = trio.get(client, "messages", ask(client, True), stream(start + sse(made) + end))
    assert gathered(client, a) == [("c1", "f", A), ("c2", "g", B)]
    if client == "chat":
        found = [json.loads(d) for _, d in a.events()[:-1]]
        calls = [c for d in found for x in d["choices"] for c in x["delta"].get("tool_calls", [])]
        assert [c["index"] for c in calls if c.get("id")] == [0, 1]


BROKEN = ['{"a":', "[1]", '"x"', "1", "x", '{"a":1} x', '{"a":NaN}', "{'a':1}", '{"a":1}{"b":2}']


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[0] != "messages"])
@pytest.mark.parametrize("arguments", BROKEN)
def test_tool_07_req_12_arguments_of_the_history(trio, client, host, arguments):
    """TOOL-07, REQ-12: one 400 that names the place; nobody is asked."""
    items = [("user", "x"), ("call", "c", "f", arguments), ("result", "c", "1")]
    place = "messages[1]" if client == "chat" else "input[1]"
    before = len(trio.pool.log_lines())
    trio.refused(client, host, ask_with(client, *items), place, "arguments")
    assert len(trio.pool.log_lines()) - before <= 3


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[0] != "messages"])
def test_arguments_of_nothing(trio, client, host):
    """E.14: "" and blanks are an empty object; an object instead of a string is one."""
    for arguments, want in (("", {}), ("  ", {}), ("{}", {}), (' {"a":1} ', A)):
        items = [("user", "x"), ("call", "c", "f", arguments), ("result", "c", "1")]
        got = heard(host, trio.sent(client, host, ask_with(client, *items)))
        assert json.loads(got[1][3]) == want


@pytest.mark.parametrize("host", ["chat", "responses"])
@pytest.mark.parametrize("value", [3, "x", [1], True])
def test_tool_07_input_of_messages(trio, host, value):
    items = [("user", "x"), ("call", "c", "f", value), ("result", "c", "1")]
    body = ask_with("messages", *items[:1], *items[2:])
    block = {"type": "tool_use", "id": "c", "name": "f", "input": value}
    body["messages"].insert(1, {"role": "assistant", "content": [block]})
    trio.refused("messages", host, body, "messages[1]", "input")


@pytest.mark.parametrize("client", ["chat", "messages"])
@modes
@pytest.mark.parametrize("arguments", ["", "[1]", '{"a":', "null", "x"])
def test_tool_07_arguments_of_an_answer(trio, client, streamed, arguments):
    """TOOL-07: a whole messages answer always holds an object, whatever the host gave."""
    host = "responses" if client == "chat" else "chat"
    call = ("c1", "f", arguments)
    answer = stream(b"".join(wires.events(host, call=call))) if streamed else None
    a = trio.get(client, host, ask(client, streamed), answer or plain(wires.answer(host, "", call)))
    assert a.status == 200
    if streamed:
        assert grammar.end(client, a.body) == "whole"
    elif client == "messages":
        assert isinstance(a.json()["content"][0]["input"], dict)


IDS = [
    "toolu_1",
    "call:1.2",
    "x" * 200,
    "\u00e9\U0001f600",
    "a b",
    "c\"\\'",
    "c\n\u2028",
    "-",
    "id" * 20,
]


@others
def test_tool_09_13_ids(trio, client, host):
    """TOOL-09, TOOL-13: any id, both on the call and its result, and different ones stay different."""
    items = [("user", "x"), *(("call", i, "f", "{}") for i in IDS)]
    items += [("result", i, str(n)) for n, i in enumerate(IDS)]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    calls = [g[1] for g in got if g[0] == "call"]
    assert [g[1:] for g in got if g[0] == "result"] == [(i, str(n)) for n, i in enumerate(calls)]
    assert len(set(calls)) == len(IDS) and calls[0] == "toolu_1"


@others
def test_ids_that_look_alike(trio, client, host):
    """E.0: what becomes the same text must not become the same id."""
    ids = ["a:b", "a.b", "a_b", "a b"]
    items = [("user", "x"), *(("call", i, "f", "{}") for i in ids)]
    items += [("result", i, "r") for i in reversed(ids)]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    assert len({g[1] for g in got if g[0] == "call"}) == 4


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
CONTENTS = {
    "a string": ("two", "two"),
    "texts": ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
    "empty list": ([], ""),
    "empty string": ("", ""),
    "missing": (None, ""),
}


@pytest.mark.parametrize("host", ["chat", "responses"])
@pytest.mark.parametrize("is_error", [False, True])
def test_tool_10_contents_of_results(trio, host, is_error):
    """TOOL-10: every form of a result's content; an error is marked."""
    for name, (content, want) in CONTENTS.items():
        body = ask_with(
            "messages", ("user", "x"), ("call", "c", "f", "{}"), ("result", "c", content)
        )
        block = body["messages"][2]["content"][0]
        if content is None:
            del block["content"]
        if is_error:
            block["is_error"] = True
        got = heard(host, trio.sent("messages", host, body))[-1]
        text = got[2] if want else got[2].replace("(no output)", "")
        assert got[:2] == ("result", "c"), name
        assert text.startswith("Error") == is_error and text.endswith(want), (name, text)


@pytest.mark.parametrize("host", ["chat", "responses"])
def test_tool_10_image_in_a_result(trio, host):
    """TOOL-10: moved behind the results where they can hold none; never lost."""
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": PNG}]
    items = [("user", "x"), ("call", "c", "f", "{}"), ("call", "d", "f", "{}")]
    body = ask_with(
        "messages", *items, ("result", "c", parts), ("result", "d", "two"), ("user", "go")
    )
    doc = trio.sent("messages", host, body)
    assert "iVBORw0KGgo=" in json.dumps(doc)
    got = heard(host, doc)
    kinds = [g[0] for g in got]
    assert kinds.index("result") == 3 and kinds[4] == "result"
    if host == "chat":
        assert kinds[5] == "image" and got[-1] == ("user", "go")


@others
def test_tool_11_12_calls_and_results(trio, client, host):
    """TOOL-11, TOOL-12: calls together, results after them, text before; all of them present."""
    items = [
        ("user", "u"),
        ("assistant", "t"),
        ("call", "x", "f", '{"a":1}'),
        ("call", "y", "g", "{}"),
    ]
    items += [("result", "y", "2"), ("result", "x", "1"), ("assistant", "ok"), ("user", "v")]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    assert got[:4] == items[:4] or json.loads(got[2][3]) == A
    assert sorted(g[1:] for g in got if g[0] == "result") == [("x", "1"), ("y", "2")]
    assert got[-2:] == items[-2:]


HISTORIES = {
    "TOOL-14 a result without a call": [("user", "a"), ("result", "x", "1"), ("user", "b")],
    "TOOL-14 only a result": [("result", "x", "1")],
    "a result before its call": [("user", "a"), ("result", "x", "1"), ("call", "x", "f", "{}")],
    "a missing result": [("user", "a"), ("call", "x", "f", "{}"), ("user", "b")],
    "one of two missing": [
        ("user", "a"),
        ("call", "x", "f", "{}"),
        ("call", "y", "f", "{}"),
        ("result", "x", "1"),
    ],
    "an id twice": [
        ("user", "a"),
        ("call", "x", "f", "{}"),
        ("call", "x", "g", "{}"),
        ("result", "x", "1"),
    ],
    "a call at the end": [("user", "a"), ("call", "x", "f", "{}")],
    "another id": [("user", "a"), ("call", "x", "f", "{}"), ("result", "X", "1")],
    "no name": [("user", "a"), ("call", "x", "", "{}"), ("result", "x", "1")],
    "no id": [("user", "a"), ("call", "", "f", "{}"), ("result", "", "1")],
}


@others
@pytest.mark.parametrize("name", HISTORIES)
def test_tool_14_histories_that_do_not_pair(trio, client, host, name):
    message = trio.refused(client, host, ask_with(client, *HISTORIES[name]))
    assert ("input[" if client == "responses" else "messages[") in message


@others
def test_results_twice(trio, client, host):
    """E.14: the last one counts."""
    items = [("user", "a"), ("call", "x", "f", "{}"), ("result", "x", "1"), ("result", "x", "2")]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    assert [g for g in got if g[0] == "result"] == [("result", "x", "2")]


@others
@modes
def test_tool_16_cut_call(trio, client, host, streamed):
    """TOOL-16: a call cut by the limit is no finished call."""
    call = ("c1", "f", '{"a":"xyz"}')
    parts = wires.events(host, "t", call=call)
    text = b"".join(parts).replace(b'\\":\\"xyz\\"}', b'\\":\\"x', 1)
    names = {"chat": (b'"tool_calls"', b'"length"'), "messages": (b'"tool_use"', b'"max_tokens"')}
    if host == "responses":
        cut = [p for p in parts if b"arguments.done" not in p]
        last = cut[-1].replace(b"response.completed", b"response.incomplete")
        last = last.replace(b'"completed","error"', b'"incomplete","error"')
        last = last.replace(
            b'"incomplete_details":null', b'"incomplete_details":{"reason":"max_output_tokens"}'
        )
        text = b"".join(cut[:-1]) + last
    else:
        old, new = names[host]
        at = text.rindex(old)
        text = text[:at] + new + text[at + len(old) :]
    a = trio.get(client, host, ask(client, streamed, tools=True), stream(text))
    assert a.status == 200, a.out
    if streamed:
        assert grammar.end(client, a.body) == "whole"
    want = {"chat": b'"length"', "messages": b'"max_tokens"', "responses": b'"max_output_tokens"'}
    assert want[client] in a.body
    assert b'finish_reason":"tool_calls' not in a.body and b'stop_reason":"tool_use' not in a.body


NONE = {"chat": "none", "messages": {"type": "none"}, "responses": "none"}
ANY = {"chat": "required", "messages": {"type": "any"}, "responses": "required"}
AUTO = {"chat": "auto", "messages": {"type": "auto"}, "responses": "auto"}
NAMED = {
    "chat": {"type": "function", "function": {"name": "f"}},
    "messages": {"type": "tool", "name": "f"},
    "responses": {"type": "function", "name": "f"},
}


@others
def test_tool_18_choice(trio, client, host):
    """TOOL-18: none, auto, required, named, one at a time: in all directions."""
    for choice in (NONE, ANY, AUTO, NAMED):
        doc = trio.sent(client, host, ask(client, tools=True, tool_choice=choice[client]))
        got = doc.get("tool_choice")
        if choice is NONE:
            assert got == NONE[host] or "tools" not in doc
        elif choice is AUTO:
            assert got in (None, AUTO[host])
        else:
            assert got == choice[host]
    one = {"parallel_tool_calls": False}
    if client == "messages":
        one = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    doc = trio.sent(client, host, ask(client, tools=True, **one))
    if host == "messages":
        assert doc["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    else:
        assert doc["parallel_tool_calls"] is False


@others
def test_tool_18_choice_without_tools(trio, client, host):
    """A choice among no tools: not sent, or a 400 where one is forced; never another meaning."""
    doc = trio.sent(client, host, ask(client, tool_choice=NONE[client]))
    assert "tools" not in doc
    a = trio.get(client, host, ask(client, tool_choice=NAMED[client]))
    assert a.status == 400 or "tool_choice" not in trio.up.last.json()


BIG = '{"id":2512292042121000001,"u":18446744073709551616,"f":1.10,"e":1E5,"n":-0,"z":0.30000000000000004}'


@others
def test_tool_19_digits_of_the_history(trio, client, host):
    items = [("user", "x"), ("call", "c", "f", "{}"), ("result", "c", "1")]
    body = json.dumps({**ask_with(client, *items), "model": f"m-{host}"})
    empty = '"input": {}' if client == "messages" else '"arguments": "{}"'
    assert empty in body
    big = BIG if client == "messages" else json.dumps(BIG)
    body = body.replace(empty, empty.split(":")[0] + ": " + big)
    assert trio.get(client, host, body.encode()).status == 200
    sent = trio.up.last.body.decode()
    assert (BIG if host == "messages" else json.dumps(BIG)[1:-1]) in sent


@others
@modes
def test_tool_19_digits_of_an_answer(trio, client, host, streamed):
    call = ("c1", "f", BIG)
    text = b"".join(wires.events(host, call=call))
    if not streamed:
        text = json.dumps(wires.answer(host, "", ("c1", "f", "{}")))
        empty = '"input": {}' if host == "messages" else '"arguments": "{}"'
        big = BIG if host == "messages" else json.dumps(BIG)
        text = text.replace(empty, empty.split(":")[0] + ": " + big).encode()
    a = trio.get(client, host, ask(client, streamed), stream(text) if streamed else plain(text))
    if streamed:
        name = {"chat": "arguments", "messages": "partial_json", "responses": "delta"}[client]
        found = []
        for _, d in a.events():
            found += pieces(json.loads(d), name) if d != "[DONE]" else []
        assert BIG in "".join(found)
    else:
        assert (BIG if client == "messages" else json.dumps(BIG)[1:-1]) in a.body.decode()


def pieces(value, name):
    """Texts of members of that name, but not those of whole items."""
    if isinstance(value, dict):
        for k, v in value.items():
            if k == name and isinstance(v, str):
                yield v
            elif k not in ("item", "response"):
                yield from pieces(v, name)
    elif isinstance(value, list):
        for v in value:
            yield from pieces(v, name)


@pytest.mark.parametrize("client", ["messages", "responses"])
@modes
def test_tool_20_reasoning_and_a_call(trio, client, streamed):
    """TOOL-20: separate items or blocks, with all that a client reads."""
    call = call_delta(0, "c1", "f", '{"a":1}', type="function")
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", **call}
    doc = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    answer = chat_stream({"reasoning_content": "hm"}, call) if streamed else plain(doc)
    a = trio.get(client, "chat", ask(client, streamed, tools=True), answer)
    got = calls_of(client, a, streamed)
    if client == "responses":
        assert [i["type"] for i in got["output"]] == ["reasoning", "function_call"]
        assert got["output"][0]["summary"] == [{"type": "summary_text", "text": "hm"}]
        item = got["output"][1]
        assert (item["call_id"], item["arguments"], item["status"]) == (
            "c1",
            '{"a":1}',
            "completed",
        )
        assert item["id"].startswith("fc_") and isinstance(got["created_at"], int)
        assert got["model"] == "m-chat" and got["status"] == "completed"
    else:
        assert [b["type"] for b in got["content"]] == ["thinking", "tool_use"]


NAMES = ["f" * 64, "f" * 65, "f" * 1000, "a.b", "a:b", "\u00e9", "with space", "mcp__x__y-1"]


@others
@modes
def test_names_of_tools(trio, client, host, streamed):
    """E.0: any name is sent in a legal form, and comes back as it was."""
    tool = ask(client, tools=True)["tools"][0]
    tools = [
        json.loads(json.dumps(tool).replace('"name": "f"', f'"name": {json.dumps(n)}'))
        for n in NAMES
    ]
    body = {**ask(client, streamed), "tools": tools}
    trio.get(client, host, body)
    sent = [t.get("function", t)["name"] for t in trio.up.last.json()["tools"]]
    assert len(set(sent)) == len(NAMES)
    for name, other in zip(NAMES, sent):
        a = trio.get(client, host, body, wires.serve(host, "", ("c1", other, "{}")))
        assert trio.read(client, a, streamed)["calls"][0][1] == name


SCHEMAS = [
    None,
    {},
    {"type": "object"},
    {"properties": {"a": {}}},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]},
    {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {}}}},
    {"type": "object", "properties": {"z": {}, "a": {}}, "x": 18446744073709551616},
]


@others
def test_schemas(trio, client, host):
    """E.14: a tool without parameters, a root of alternatives, a reference, no type."""
    name = {"chat": "parameters", "messages": "input_schema", "responses": "parameters"}[client]
    for schema in SCHEMAS:
        tool = ask(client, tools=True)["tools"][0]
        inner = tool.get("function", tool)
        inner.pop(name)
        if schema is not None:
            inner[name] = schema
        a = trio.get(client, host, {**ask(client), "tools": [tool]})
        assert a.status == 200 or (client == "messages" and schema is None), (schema, a.out)
        if schema and "x" in schema:
            assert "18446744073709551616" in trio.up.last.body.decode()
