"""The CONV cases in every pair of APIs: roles, limits, sampling, images, thoughts, stop reasons.
"""

import json

import pytest

from lib import grammar, wires
from lib.answers import chunk, plain, sse, stream, usage_chunk
from lib.talk import ask_with, heard
from lib.trio import OTHERS, PAIRS, Trio
from lib.wires import ask

others = pytest.mark.parametrize("client,host", OTHERS)
pairs = pytest.mark.parametrize("client,host", PAIRS)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
LIMIT = {"chat": "max_tokens", "messages": "max_tokens", "responses": "max_output_tokens"}


@pytest.fixture(scope="module")
def trio():
    t = Trio()
    yield t
    harmed = t.harmed()
    t.close()
    assert not harmed


def dropped(trio, client, host, body, **vary):
    a = trio.get(client, host, body, **vary)
    assert a.status == 200, a.out[:1000]
    return (a.header("x-sluice-dropped") or "").split(","), trio.up.last.json()


# Roles -------------------------------------------------------------------------------------------


@others
def test_conv_01_late_system(trio, client, host):
    """CONV-01: nothing is lost, the order is kept, and what was sent before stays a prefix."""
    items = [("system", "s1"), ("user", "a"), ("assistant", "b"), ("system", "s2")]
    items += [("developer", "D3")] if client != "messages" else []
    items += [("user", "c")]
    doc = trio.sent(client, host, ask_with(client, *items))
    got = json.dumps(heard(host, doc))
    texts = [f"{n}" for n in ("s1", '"a"', '"b"', "s2", "D3" if client != "messages" else "c", "c")]
    places = [got.index(t) for t in texts]
    assert places == sorted(places)
    more = trio.sent(client, host, ask_with(client, *items, ("assistant", "e"), ("user", "f")))
    assert heard(host, more)[: len(heard(host, doc))] == heard(host, doc)


FORMS = {
    "chat": [
        {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "x"}]},
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "S"}]},
                {"role": "user", "content": [{"type": "text", "text": "x"}]},
            ]
        },
        {"messages": [{"role": "developer", "content": "S"}, {"role": "user", "content": "x"}]},
    ],
    "messages": [
        {"system": "S"},
        {"system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]},
        {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "x"}]},
    ],
    "responses": [
        {"instructions": "S"},
        {"input": [{"role": "system", "content": "S"}, {"role": "user", "content": "x"}]},
        {
            "input": [
                {"role": "developer", "content": [{"type": "input_text", "text": "S"}]},
                {"type": "message", "role": "user", "content": "x"},
            ]
        },
    ],
}


@others
def test_conv_02_system_in_every_form(trio, client, host):
    for form in FORMS[client]:
        got = heard(host, trio.sent(client, host, ask(client, text="x", **form)))
        assert got[0][0] in ("system", "developer") and got[0][1] == "S", got
        assert got[1:] == [("user", "x")]


@others
def test_conv_03_same_role_twice(trio, client, host):
    items = [("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d")]
    items += [("call", "x", "f", "{}"), ("call", "y", "f", "{}"), ("result", "x", "1")]
    items += [("result", "y", "2"), ("user", "e")]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    assert got == [("user", "a|b"), ("assistant", "c|d"), *items[4:]]
    got = heard(host, trio.sent(client, host, ask_with(client, ("assistant", "b"), ("user", "c"))))
    assert got[-2:] == [("assistant", "b"), ("user", "c")] and len(got) <= 3


@others
def test_empty_contents(trio, client, host):
    """E.14: no content, null, only a system text, an empty assistant."""
    if client != "messages":
        doc = trio.sent(client, host, ask_with(client, ("system", "s")))
        assert "s" in json.dumps(heard(host, doc))
    items = [("user", "a"), ("assistant", ""), ("user", "b")]
    got = heard(host, trio.sent(client, host, ask_with(client, *items)))
    assert got == [("user", "a|b")] or got == [("user", "a"), ("user", "b")]
    for empty in ("", [], None):
        body = ask_with(client, ("user", "a"), ("user", "b"))
        body["input" if client == "responses" else "messages"][1]["content"] = empty
        trio.refused(client, host, body, "[1]")
    none = {"input": []} if client == "responses" else {"messages": []}
    trio.refused(client, host, {**ask(client), **none})


@others
def test_beginning_of_the_answer(trio, client, host):
    """E.14: a last assistant message with blanks at its end."""
    got = heard(host, trio.sent(client, host, ask_with(client, ("user", "a"), ("assistant", "{ "))))
    assert got[:1] == [("user", "a")] and got[1][0] == "assistant" and got[1][1].strip() == "{"
    assert host != "messages" or got[1][1] == "{"


# Limits and sampling -----------------------------------------------------------------------------


@others
def test_conv_05_limits(trio, client, host):
    doc = trio.sent(client, host, {**ask(client), LIMIT[client]: 4000})
    found = {k: v for k, v in doc.items() if k.startswith("max_")}
    assert list(found.values()) == [4000]
    if client != "messages":
        doc = trio.sent(client, host, {**ask(client), LIMIT[client]: None})
        found = {k: v for k, v in doc.items() if k.startswith("max_")}
        assert (len(found) == 1 and found["max_tokens"] > 0) if host == "messages" else not found
    for bad in (0, -1, "x", 1.5, [], True):
        trio.refused(client, host, {**ask(client), LIMIT[client]: bad}, LIMIT[client])


@pytest.mark.parametrize("host", ["messages", "anthropic", "responses"])
def test_conv_05_both_names(trio, host):
    body = {**ask("chat"), "max_tokens": 50, "max_completion_tokens": 100}
    doc = trio.sent("chat", host, body)
    assert [v for k, v in doc.items() if k.startswith("max_")] == [100]


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[1] == "messages"])
def test_conv_05_budget_below_the_limit(trio, client, host):
    """The strict provider checks that the budget stays below."""
    effort = {"chat": {"reasoning_effort": "high"}, "responses": {"reasoning": {"effort": "high"}}}
    for limit in (1000, 1024, 1025, 3000, 100_000):
        trio.sent(client, host, {**ask(client), LIMIT[client]: limit, **effort[client]})
        body = {**ask(client), LIMIT[client]: limit, **effort[client], "temperature": 0.2}
        names, doc = dropped(trio, client, host, body)
        assert ("temperature" in doc) != ("temperature" in names)
        assert "thinking" not in doc or "temperature" not in doc


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_conv_06_sampling(trio, client):
    names, doc = dropped(trio, client, "messages", {**ask(client), "temperature": 1.7})
    assert doc["temperature"] == 1 and "temperature" in names
    body = {**ask(client), "temperature": 0.2, "top_p": 0.5}
    names, doc = dropped(trio, client, "anthropic", body, model="anthropic/claude-sonnet-4-5")
    assert ("temperature" in doc) + ("top_p" in doc) <= 1 and set(names) & {"temperature", "top_p"}
    doc = trio.sent(client, "messages", ask(client))
    assert "temperature" not in doc and "top_p" not in doc
    body = {**ask(client), "temperature": 0.2}
    names, doc = dropped(trio, client, "anthropic", body, model="anthropic/claude-opus-4-7")
    assert "temperature" not in doc and names == ["temperature"]


LOST = {
    ("chat", "messages"): {
        "logprobs": True,
        "seed": 7,
        "logit_bias": {"1": 2},
        "frequency_penalty": 1,
        "store": True,
        "x_vendor": {"a": 1},
    },
    ("chat", "responses"): {"seed": 7, "stop": ["x"], "logit_bias": {"1": 2}, "x_vendor": 1},
    ("messages", "chat"): {"top_k": 5, "x_vendor": 1, "container": "c"},
    ("messages", "responses"): {"top_k": 5, "stop_sequences": ["x"], "x_vendor": 1},
    ("responses", "chat"): {"truncation": "auto", "max_tool_calls": 3, "x_vendor": 1},
    ("responses", "messages"): {"max_tool_calls": 3, "x_vendor": 1, "top_logprobs": 2},
}


@others
def test_conv_07_what_has_no_counterpart(trio, client, host):
    """CONV-07: named, each by its own name, or sent; never silent."""
    for name, value in LOST[client, host].items():
        names, doc = dropped(trio, client, host, {**ask(client), name: value})
        assert (name in names) != (name in doc) or name == "logprobs", (name, names, doc)
        assert name == "top_k" or name not in doc or host == "chat", name


@pytest.mark.parametrize("host", ["messages", "responses"])
def test_conv_07_refused(trio, host):
    trio.refused("chat", host, {**ask("chat"), "n": 2}, "'n'")
    trio.refused("chat", host, {**ask("chat"), "modalities": ["audio"]}, "modalities")
    assert trio.sent("chat", host, {**ask("chat"), "n": 1})
    for host in ("chat", "messages"):
        trio.refused("responses", host, {**ask("responses"), "background": True}, "background")


def test_conv_07_stops(trio):
    doc = trio.sent("chat", "messages", {**ask("chat"), "stop": "x"})
    assert doc["stop_sequences"] == ["x"]
    five = ["a", " ", "", "b", "c", "d", "e"]
    doc = trio.sent("chat", "messages", {**ask("chat"), "stop": five})
    assert doc["stop_sequences"] == ["a", "b", "c", "d", "e"]
    doc = trio.sent("messages", "chat", {**ask("messages"), "stop_sequences": list("abcd")})
    assert doc["stop"] == list("abcd")
    names, doc = dropped(
        trio, "messages", "openai", {**ask("messages"), "stop_sequences": list("abcde")}
    )
    assert doc["stop"] == list("abcd") and names == ["stop_sequences"]


SCHEMA = {"type": "object", "properties": {"z": {}, "a": {}}, "additionalProperties": False}
SHAPED = {
    "chat": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "o", "schema": SCHEMA, "strict": True},
        }
    },
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "responses": {
        "text": {"format": {"type": "json_schema", "name": "o", "schema": SCHEMA, "strict": True}}
    },
}


@others
def test_conv_07_structured_output(trio, client, host):
    """As a format, or in words; the schema keeps its order."""
    trio.sent(client, host, {**ask(client), **SHAPED[client]})
    sent = trio.up.last.body.decode().replace("\\", "").replace(" ", "")
    assert '"properties":{"z":{},"a":{}}' in sent


# Images ------------------------------------------------------------------------------------------

DATA = "iVBORw0KGgo="
URLS = {
    f"data:image/jpg;base64,{DATA}": f"data:image/jpeg;base64,{DATA}",
    f"data:image/png;charset=x;base64,{DATA}": f"data:image/png;base64,{DATA}",
    f"data:IMAGE/PNG;base64,{DATA}": f"data:image/png;base64,{DATA}",
    f"data:image/webp;BASE64,{DATA}": f"data:image/webp;base64,{DATA}",
    f"data:;base64,{DATA}": f"data:image/png;base64,{DATA}",
    "https://example.org/x.svg?a=1&b=2": "https://example.org/x.svg?a=1&b=2",
    f"data:image/svg+xml;base64,{DATA}": None,
    "data:image/png;base64,": None,
    "data:image/png;base64,#*": None,
    "data:image/png,xyz": None,
    f"data:text/plain;base64,{DATA}": None,
    "": None,
    "ftp://example.org/x.png": None,
    "file:///etc/passwd": None,
    "/etc/passwd": None,
    "javascript:alert(1)": None,
}


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[0] != "messages"])
@pytest.mark.parametrize("url", URLS)
def test_conv_08_images_by_url(trio, client, host, url):
    """CONV-08: normal form, URLs stay URLs, the rest is refused by us."""
    body = ask_with(client, ("user", "x"), ("image", url), ("user", "y"))
    if URLS[url] is None:
        trio.refused(client, host, body, "[1]")
        return
    got = heard(host, trio.sent(client, host, body))
    assert ("image", URLS[url]) in got
    escaped = json.dumps({**body, "model": f"m-{host}"}).replace("/", "\\/").encode()
    assert trio.get(client, host, escaped).status == 200
    assert ("image", URLS[url]) in heard(host, trio.up.last.json())


SOURCES = [
    ({"type": "base64", "media_type": "image/png", "data": DATA}, f"data:image/png;base64,{DATA}"),
    ({"type": "base64", "media_type": "IMAGE/JPG", "data": DATA}, f"data:image/jpeg;base64,{DATA}"),
    ({"type": "url", "url": "https://x.org/a"}, "https://x.org/a"),
    ({"type": "url", "url": "file:///etc/passwd"}, None),
    ({"type": "base64", "media_type": "image/svg+xml", "data": DATA}, None),
    ({"type": "base64", "media_type": "image/png", "data": ""}, None),
    ({"type": "base64", "media_type": "image/png", "data": f"data:image/png;base64,{DATA}"}, None),
    ({"type": "base64", "media_type": "image/png"}, None),
    ({"type": "base64", "data": DATA}, None),
    ({"type": "file", "file_id": "f"}, None),
    ({"type": "x"}, None),
    ({}, None),
]


@pytest.mark.parametrize("host", ["chat", "responses"])
@pytest.mark.parametrize("source,want", SOURCES)
def test_conv_08_images_of_messages(trio, host, source, want):
    content = [{"type": "text", "text": "x"}, {"type": "image", "source": source}]
    body = {**ask("messages"), "messages": [{"role": "user", "content": content}]}
    if want is None:
        trio.refused("messages", host, body, "[0]")
    else:
        assert heard(host, trio.sent("messages", host, body))[1] == ("image", want)


# Thoughts ----------------------------------------------------------------------------------------

THOUGHTS = [
    {"type": "thinking", "thinking": "hm", "signature": "sig"},
    {"type": "thinking", "thinking": "hm", "signature": ""},
    {"type": "thinking", "thinking": "hm"},
    {"type": "redacted_thinking", "data": "xx"},
]


@pytest.mark.parametrize("host", ["chat", "openai", "responses"])
@pytest.mark.parametrize("block", THOUGHTS)
def test_conv_09_thoughts_of_others(trio, host, block):
    """CONV-09: to another provider: left out or as text, no signature, no empty message."""
    turn = [("user", "a"), ("assistant", "b"), ("user", "c")]
    for content in ([block, {"type": "text", "text": "b"}], [block]):
        body = ask_with("messages", *turn)
        body["messages"][1]["content"] = content
        doc = trio.sent("messages", host, body)
        assert "sig" not in json.dumps(doc) and "xx" not in json.dumps(doc)
        assert ("assistant", "b") in heard(trio.wire_of[host], doc) or len(content) == 1


def test_conv_09_same_provider(trio):
    body = ask_with("messages", ("user", "a"), ("assistant", "b"), ("user", "c"))
    body["messages"][1]["content"] = [*THOUGHTS, {"type": "text", "text": "b"}]
    data = json.dumps({**body, "model": "m-messages"}, indent=1).encode()
    assert trio.get("messages", "messages", data).status == 200
    assert trio.up.last.body == data


SIGNATURE = "Eq" + "x/+=" * 100


def thinking_stream():
    start = wires.events("messages")[0]
    end = b"".join(wires.events("messages")[2:])
    begin = {"type": "content_block_start", "index": 0}
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [{"type": "thinking_delta", "thinking": t} for t in ("h", "m")]
    deltas.append({"type": "signature_delta", "signature": SIGNATURE})
    made = [{**begin, "content_block": block}]
    made += [{"type": "content_block_delta", "index": 0, "delta": d} for d in deltas]
    made.append({"type": "content_block_stop", "index": 0})
    text = {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "text", "text": ""},
    }
    end = end.replace(b'"index":0', b'"index":1')
    return start + sse(made) + sse([text]) + end


def test_conv_10_signature_passes(trio):
    """CONV-10: byte for byte, cut anywhere; and so does turn 2."""
    body = thinking_stream()
    for offset in range(0, len(body), 40):
        a = trio.get("messages", "messages", ask("messages", True), stream(body, [offset]))
        assert a.body == body
    again = ask_with("messages", ("user", "a"), ("assistant", "b"), ("user", "c"))
    block = {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    again["messages"][1]["content"] = [block, {"type": "text", "text": "b"}]
    assert trio.sent("messages", "messages", again)["messages"][1]["content"][0] == block


@modes
def test_conv_10_signature_through_chat(trio, streamed):
    """CONV-10: a chat client that hands reasoning_details back gives the provider its signature."""
    a = trio.get("chat", "messages", ask("chat", streamed), stream(thinking_stream()))
    details = []
    if streamed:
        assert grammar.end("chat", a.body) == "whole"
        for _, d in a.events()[:-1]:
            for c in json.loads(d)["choices"]:
                details += c["delta"].get("reasoning_details", [])
    else:
        details = a.json()["choices"][0]["message"]["reasoning_details"]
    body = ask_with("chat", ("user", "a"), ("assistant", "hello"), ("user", "c"))
    message = body["messages"][1]
    message |= {"reasoning_content": "hm", "reasoning_details": details}
    sent = trio.sent("chat", "messages", body)["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    other = json.dumps(trio.sent("chat", "anthropic", body))
    assert "Eqx" not in other  # another channel cannot read it


def test_conv_11_reasoning_comes_back(trio):
    """CONV-11: unchanged on the same API; for a messages client where the provider wants it."""
    items = [("user", "a"), ("call", "c", "f", "{}"), ("result", "c", "1")]
    body = ask_with("chat", *items)
    body["messages"][1]["reasoning_content"] = "hm"
    assert trio.sent("chat", "deepseek", body)["messages"] == body["messages"]
    body = ask_with("messages", *items)
    body["messages"][1]["content"].insert(0, THOUGHTS[0])
    assert ("thought", "hm") in heard("chat", trio.sent("messages", "deepseek", body))
    assert ("thought", "hm") not in heard("chat", trio.sent("messages", "openai", body))


def reasoning_only(content):
    message = {"role": "assistant", "content": content, "reasoning_content": "hm"}
    doc = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    deltas = [{"role": "assistant", "content": content}, {"reasoning_content": "hm"}]
    return doc, sse([*map(chunk, deltas), chunk({}, "stop"), usage_chunk(), "[DONE]"])


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize("content", [None, ""])
def test_conv_17_reasoning_only(trio, client, content):
    """CONV-17: something is there, streamed or not."""
    doc, events = reasoning_only(content)
    a = trio.get(client, "chat", ask(client), plain(doc))
    parts = a.json()["content" if client == "messages" else "output"]
    assert parts and "hm" in json.dumps(parts)
    a = trio.get(client, "chat", ask(client, True), stream(events))
    assert grammar.end(client, a.body) == "whole" and b'"hm"' in a.body


# Stop reasons ------------------------------------------------------------------------------------

LEGAL = {
    "chat": {"stop", "length", "tool_calls", "content_filter"},
    "messages": {"end_turn", "max_tokens", "tool_use", "refusal", "stop_sequence", "pause_turn"},
    "responses": {"completed", "incomplete"},
}
REASONS = {
    "messages": {
        "refusal": "content_filter",
        "pause_turn": "stop",
        "model_context_window_exceeded": "length",
        "foo": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
    },
    "chat": {
        "content_filter": "refusal",
        "function_call": "end_turn",
        "foo": "end_turn",
        "eos": "end_turn",
        "length": "max_tokens",
        "sensitive": "refusal",
    },
}


@pytest.mark.parametrize("client,host", [p for p in OTHERS if p[1] != "responses"])
@modes
def test_conv_16_stop_reasons(trio, client, host, streamed):
    """CONV-16: always a legal value."""
    for reason, want in REASONS[host].items():
        old = b'"end_turn"' if host == "messages" else b'"stop"'
        text = b"".join(wires.events(host)) if streamed else json.dumps(wires.answer(host)).encode()
        text = text.replace(old, json.dumps(reason).encode())
        a = trio.get(client, host, ask(client, streamed), (stream if streamed else plain)(text))
        got = reason_of(client, a, streamed)
        assert got in LEGAL[client], (reason, got)
        if client != "responses":
            assert got == want, (reason, got)
        else:
            cut = want in ("length", "content_filter", "refusal", "max_tokens")
            assert got == ("incomplete" if cut else "completed"), (reason, got)


def reason_of(client, a, streamed):
    assert a.status == 200, a.out
    if not streamed:
        doc = a.json()
        return (
            doc["choices"][0]["finish_reason"]
            if client == "chat"
            else doc.get("stop_reason") or doc["status"]
        )
    assert grammar.end(client, a.body) == "whole"
    docs = [json.loads(d) for _, d in a.events() if d != "[DONE]"]
    if client == "chat":
        return [c["finish_reason"] for d in docs for c in d["choices"] if c["finish_reason"]][0]
    if client == "messages":
        return [d["delta"]["stop_reason"] for d in docs if d["type"] == "message_delta"][0]
    return docs[-1]["response"]["status"]


@pytest.mark.parametrize("host", ["messages", "chat"])
def test_conv_16_no_reason(trio, host):
    """null and absent: a whole answer still has one."""
    for client in {"messages": ["chat", "responses"], "chat": ["messages", "responses"]}[host]:
        doc = wires.answer(host)
        if host == "messages":
            doc["stop_reason"] = None
        else:
            doc["choices"][0]["finish_reason"] = None
        assert reason_of(client, trio.get(client, host, ask(client), plain(doc)), False)


@pairs
@modes
def test_conv_19_name_in_the_answer(trio, client, host, streamed):
    a = trio.get(client, host, ask(client, streamed))
    want = b'"up-model"' if client == host else b'"m-%s"' % host.encode()
    assert want in a.body and (client == host or b"up-model" not in a.body)
