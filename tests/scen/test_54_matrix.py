"""What arrives of each feature, for each pair of APIs, plain and streamed: the table of README.md.

kept: not a byte differs, both ways. mapped: the other API says the same in its own words. dropped: left
out, and named in X-Sluice-Dropped. refused: 400 before anybody is asked. "-": the client's API has no
such thing. Anything else fails.
"""

import json
import os
import re

import pytest
from lib import matrix, wires
from lib.answers import plain, stream
from lib.fcgi import parse_sse
from lib.wires import ask, events

STREAMS = os.path.join(matrix.ROOT, "tests", "data", "streams")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "maximum": 12345678901234567890}},
    "required": ["a"],
    "additionalProperties": False,
}
BIG = "12345678901234567890"
MODEL = "claude-opus-4-6"  # whose abilities are known, on a channel of messages
TEXT = "Gr\u00fc\u00df \U0001f600 \u2028\\"


class Odd(AssertionError):
    """It is not clear what became of it."""


def need(true, what):
    if not true:
        raise Odd(what)


# What each API calls it: {feature: members of a request}, None where there is no such thing ---------


def turns(wire, content, system=None):
    system = [{"role": "system", "content": system}] if system else []
    key = "input" if wire == "responses" else "messages"
    return {key: (system if wire != "messages" else []) + [{"role": "user", "content": content}]}


def text(wire):
    system = {"chat": {}, "messages": {"system": "Be brief."}, "responses": {}}[wire]
    return {**turns(wire, TEXT, "Be brief."), **system}


def tools(wire):
    call = {"chat": "id", "messages": "id", "responses": "call_id"}[wire]
    args = '{"a":%s}' % BIG
    if wire == "chat":
        use = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": args}}
        more = [
            {"role": "assistant", "content": None, "tool_calls": [use]},
            {"role": "tool", "tool_call_id": "call_9", "content": "nine"},
        ]
        function = {"name": "f", "description": "d", "parameters": SCHEMA}
        tool, choice = {"type": "function", "function": function}, "required"
    elif wire == "messages":
        use = {"type": "tool_use", call: "call_9", "name": "f", "input": json.loads(args)}
        result = {"type": "tool_result", "tool_use_id": "call_9", "content": "nine"}
        more = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        tool, choice = {"name": "f", "description": "d", "input_schema": SCHEMA}, {"type": "any"}
    else:
        more = [
            {"type": "function_call", call: "call_9", "name": "f", "arguments": args},
            {"type": "function_call_output", call: "call_9", "output": "nine"},
        ]
        tool = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}
        choice = "required"
    said = turns(wire, "use it")
    key = next(iter(said))
    return {key: said[key] + more, "tools": [tool], "tool_choice": choice}


def image(wire, source=None):
    url = "data:image/png;base64," + PNG
    part = {
        "chat": {"type": "image_url", "image_url": {"url": url}},
        "messages": {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
        },
        "responses": {"type": "input_image", "image_url": url},
    }[wire]
    words = {"type": "input_text" if wire == "responses" else "text", "text": "look"}
    return turns(wire, [words, source or part])


def reasoning(wire):
    return {
        "chat": {"reasoning_effort": "high"},
        "messages": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        "responses": {
            "reasoning": {"effort": "high", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "store": False,
        },
    }[wire]


def structured(wire):
    return {
        "chat": {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "out", "schema": SCHEMA, "strict": True},
            }
        },
        "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "responses": {
            "text": {
                "format": {"type": "json_schema", "name": "out", "schema": SCHEMA, "strict": True}
            }
        },
    }[wire]


def stops(wire):
    return {"chat": {"stop": ["END"]}, "messages": {"stop_sequences": ["END"]}, "responses": None}[
        wire
    ]


def seed(wire):
    return {"chat": {"seed": 7}, "messages": {"top_k": 7}, "responses": None}[wire]


def several(wire):
    return {"n": 2} if wire == "chat" else None


def file_id(wire):
    part = {
        "chat": {"type": "file", "file": {"file_id": "file-1"}},
        "messages": {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
        "responses": {"type": "input_file", "file_id": "file-1"},
    }[wire]
    return image(wire, part)


def hosted(wire):
    tool = {
        "chat": None,
        "messages": {"type": "bash_20250124", "name": "bash"},
        "responses": {"type": "code_interpreter", "container": {"type": "auto"}},
    }[wire]
    return tool and {"tools": [tool]}


# Where each API has it ------------------------------------------------------------------------------


def parts_of(wire, body, role="user"):
    found = [t for t in body["input" if wire == "responses" else "messages"] if "role" in t]
    content = [t["content"] for t in found if t["role"] == role]
    flat = [p for c in content for p in ([{"text": c}] if isinstance(c, str) else c or [])]
    if role == "system" and wire == "messages":
        system = body.get("system", [])
        flat += [{"text": system}] if isinstance(system, str) else system
    return flat


def has_text(wire, body, raw):
    words = [p.get("text") for p in parts_of(wire, body)]
    system = [p.get("text") for r in ("system", "developer") for p in parts_of(wire, body, r)]
    need(TEXT in words, body)
    need("Be brief." in system + [body.get("instructions")], body)


def has_tools(wire, body, raw):
    tool = body["tools"][0].get("function", body["tools"][0])
    schema = tool.get("parameters") or tool.get("input_schema")
    need((tool["name"], tool["description"]) == ("f", "d") and schema == SCHEMA, body)
    need(raw.count(BIG.encode()) == 2, "digits of a number are lost")
    need(body["tool_choice"] in ("required", {"type": "any"}), body["tool_choice"])
    if wire == "chat":
        (call,) = next(m["tool_calls"] for m in body["messages"] if m.get("tool_calls"))
        got = (call["id"], json.loads(call["function"]["arguments"]))
        answer = next(m for m in body["messages"] if m["role"] == "tool")
        result = (answer["tool_call_id"], answer["content"])
    elif wire == "messages":
        use = next(p for p in parts_of(wire, body, "assistant") if p["type"] == "tool_use")
        answer = next(p for p in parts_of(wire, body) if p.get("type") == "tool_result")
        got, said = (use["id"], use["input"]), answer["content"]
        result = (answer["tool_use_id"], said if isinstance(said, str) else said[0]["text"])
    else:
        items = {i.get("type"): i for i in body["input"]}
        use, answer = items["function_call"], items["function_call_output"]
        got = (use["call_id"], json.loads(use["arguments"]))
        result = (answer["call_id"], answer["output"])
    need(got == ("call_9", {"a": int(BIG)}) and result == ("call_9", "nine"), (got, result))


def has_image(wire, body, raw):
    part = parts_of(wire, body)[1]
    need(parts_of(wire, body)[0]["text"] == "look", body)
    if wire == "messages":
        need(part["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}, part)
        return
    url = part["image_url"]
    need((url["url"] if wire == "chat" else url) == "data:image/png;base64," + PNG, part)


def has_effort(wire, body, raw):
    got = {
        "chat": lambda: body["reasoning_effort"],
        "messages": lambda: body["output_config"]["effort"],
        "responses": lambda: body["reasoning"]["effort"],
    }[wire]()
    need(got == "high", body)
    need(wire != "messages" or body["thinking"]["type"] == "adaptive", body)


def has_schema(wire, body, raw):
    got = {
        "chat": lambda: body["response_format"]["json_schema"]["schema"],
        "messages": lambda: body["output_config"]["format"]["schema"],
        "responses": lambda: body["text"]["format"]["schema"],
    }[wire]()
    need(got == SCHEMA and BIG.encode() in raw, body)


def has_stops(wire, body, raw):
    need((body.get("stop") or body.get("stop_sequences")) == ["END"], body)


def has_seed(wire, body, raw):
    need(body.get("seed", body.get("top_k")) == 7, body)


def has_several(wire, body, raw):
    need(body["n"] == 2, body)


def has_file_id(wire, body, raw):
    need(b'"file-1"' in raw, body)


def has_hosted(wire, body, raw):
    need(body["tools"][0].get("type") in ("bash_20250124", "code_interpreter"), body)


# What is answered -----------------------------------------------------------------------------------

THOUGHTS = {
    "chat": "zhipu/chat-stream-thinking.resp.sse",
    "messages": "anthropic/messages-stream-thinking.resp.sse",
    "responses": "vercel-ai-chunks/openai-reasoning-encrypted-content.1.chunks.txt",
}


def thoughts(host):
    """A recorded stream with reasoning, as events."""
    with open(os.path.join(STREAMS, THOUGHTS[host]), "rb") as f:
        body = f.read()
    if host != "responses":
        return body
    lines = body.split(b'{"type":"response.created"')[1].splitlines()
    lines[0] = b'{"type":"response.created"' + lines[0]
    named = [(json.loads(x)["type"].encode(), x) for x in lines if x]
    return b"".join(b"event: %s\ndata: %s\n\n" % pair for pair in named)


def thought(wire, body, streamed):
    """The reasoning that an answer tells."""
    docs = (
        [json.loads(d) for _, d in parse_sse(body) if d != "[DONE]"]
        if streamed
        else [json.loads(body)]
    )
    out = ""
    for doc in docs:
        if wire == "chat":
            message = (
                doc["choices"][0]["delta" if streamed else "message"] if doc["choices"] else {}
            )
            out += message.get("reasoning_content") or ""
        elif wire == "messages" and streamed:
            out += doc.get("delta", {}).get("thinking", "")
        elif wire == "messages":
            out += "".join(b["thinking"] for b in doc["content"] if b["type"] == "thinking")
        elif streamed and doc["type"].startswith("response.reasoning_"):
            out += doc.get("delta", "") if isinstance(doc.get("delta"), str) else ""
        elif not streamed:
            summaries = [i["summary"] for i in doc["output"] if i["type"] == "reasoning"]
            out += "".join(p["text"] for s in summaries for p in s)
    return "".join(out.split())


def answered(wire, streamed, a, call=None):
    """The usual answer, in the client's words."""
    got = wires.gathered(wire, a.body) if streamed else wires.meaning(wire, a.json())
    calls = [(i, name, json.loads(args)) for i, name, args in got["calls"]]
    want = [(call[0], call[1], json.loads(call[2]))] if call else []
    need((got["text"], calls) == ("hello", want), got)
    need({k: got[k] for k in wires.FIGURES} == wires.FIGURES, got)


# One cell -------------------------------------------------------------------------------------------

FEATURES = {
    "text": (text, has_text),
    "tools": (tools, has_tools),
    "images": (image, has_image),
    "reasoning": (reasoning, has_effort),
    "structured output": (structured, has_schema),
    "errors": (text, has_text),
    "stop texts": (stops, has_stops),
    "seed, top_k": (seed, has_seed),
    "n: 2": (several, has_several),
    "file ids": (file_id, has_file_id),
    "hosted tools": (hosted, has_hosted),
}
# Of these an API gives no place to all that the other one has.
PARTS = {"stop texts": ["stop", "stop_sequences"], "seed, top_k": ["seed", "top_k"]}
PARTS["hosted tools"] = ["tools"]


def serve(host, streamed, call):
    body = b"".join(events(host, "hel", "lo", call=call))
    return body if streamed else json.dumps(wires.answer(host, call=call)).encode()


def said_by_host(up, feature, host, streamed):
    """Makes the host say it; what it says."""
    if feature == "errors" and streamed:
        body = b"".join(events(host)[: wires.content_at(host) + 1]) + wires.in_band(host)
    elif feature == "errors":
        body = json.dumps(wires.fault(host, "no good")).encode()
    elif feature == "reasoning" and streamed:
        body = thoughts(host)
    else:
        body = serve(host, streamed, wires.CALL if feature == "tools" else None)
    if feature == "reasoning" and not streamed:
        up.default(stream(thoughts(host)))  # which is gathered
    else:
        up.default(stream(body) if streamed else plain(body, 400 if feature == "errors" else 200))
    return body


def check_answer(feature, client, host, streamed, a):
    if feature == "errors" and streamed:
        need(wires.error_event(client, a.body) == "Overloaded", a.body)
    elif feature == "errors":
        need(a.status == 400 and wires.error_of(client, a.json())[1] == "no good", a.body)
    elif feature == "reasoning":
        told = thought(host, thoughts(host), True)
        need(told and thought(client, a.body, streamed) == told, a.body)
    else:
        answered(client, streamed, a, wires.CALL if feature == "tools" else None)


def cell(g, up, feature, client, host, streamed):
    """One of the words above."""
    ask_for, has = FEATURES[feature]
    members = ask_for(client)
    if members is None:
        return "-"
    sent = json.dumps({**ask(client, streamed, MODEL), **members}).encode()
    body = said_by_host(up, feature, host, streamed)
    asked = up.count()
    a = g.send(sent, path=wires.path(client)).finish()
    if up.count() == asked:
        need(a.status == 400 and wires.error_of(client, a.json())[1], a)
        return "refused"
    gathered = feature == "reasoning" and not streamed
    if client == host:
        need(up.last.body == sent and (gathered or a.body == body), (up.last.body, a.body))
        need(a.header("x-sluice-dropped") is None, a)
        return "kept"
    check_answer(feature, client, host, streamed, a)
    dropped = (a.header("x-sluice-dropped") or "").split(",")
    if any(name.split("[")[0].split(".")[0] in PARTS.get(feature, []) for name in dropped):
        need(a.status == 200, a)
        return "dropped"
    has(host, up.last.json(), up.last.body)
    return "mapped"


@pytest.mark.parametrize("client,host", matrix.PAIRS)
def test_row(up, gate, client, host):
    g = gate(accounts=1, channel={"wire": host}, allow=["."])
    cells, odd = {}, []
    for feature in FEATURES:
        cells[feature] = ()
        for streamed in (False, True):
            try:
                cells[feature] += (cell(g, up, feature, client, host, streamed),)
            except Exception as e:  # all cells of a row are tried
                odd.append(f"{feature}, {'stream' if streamed else 'plain'}: {e!r:.900}")
    assert not odd, "\n".join(odd)
    line = matrix.row(client, host, cells)
    matrix.write(client, host, FEATURES, line)
    assert line in matrix.told(), f"README.md differs: make matrix\n{line}"


def next_turn(wire, doc):
    """What a client says next: the whole answer as it came, and the results of its calls."""
    hi = {"role": "user", "content": "Hi"}
    if wire == "responses":
        calls = [i["call_id"] for i in doc["output"] if i["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": c, "output": "1"} for c in calls]
        return {"input": [hi, *doc["output"], *results]}
    if wire == "messages":
        calls = [b["id"] for b in doc["content"] if b["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c, "content": "1"} for c in calls]
        answer = {"role": "assistant", "content": doc["content"]}
        return {"messages": [hi, answer, {"role": "user", "content": results or "go on"}]}
    message = doc["choices"][0]["message"]
    calls = [c["id"] for c in message.get("tool_calls") or []]
    return {
        "messages": [
            hi,
            message,
            *({"role": "tool", "tool_call_id": c, "content": "1"} for c in calls),
        ]
    }


SEALS = {
    "messages": rb'"signature": ?"(E[^"]+)"',
    "responses": rb'"encrypted_content": ?"(g[^"]+)"',
}


@pytest.mark.parametrize("host", SEALS)
@pytest.mark.parametrize("client", matrix.WIRES)
def test_reasoning_comes_back(up, gate, client, host):
    """What only its maker can read goes through a client of any API, back to the same channel."""
    g = gate(accounts=1, channel={"wire": host})
    up.default(stream(thoughts(host)))
    asked = {**ask(client, False, MODEL), **reasoning(client)}
    a = g.send(asked, path=wires.path(client)).finish()
    assert (b'"sl1.' in a.body) == (client != host)
    again = {**asked, **next_turn(client, a.json())}
    assert g.send(again, path=wires.path(client)).finish().status == 200
    assert b"sl1." not in up.last.body
    (seal,) = re.findall(SEALS[host], up.last.body)
    assert seal in re.findall(SEALS[host], thoughts(host))


@pytest.mark.parametrize("host", matrix.WIRES)
def test_gathered_answer_repeats_the_request(up, gate, host):
    """B.4: what a plain answer of responses says of its request is what was asked, on its own API, too."""
    g = gate(accounts=1, channel={"wire": host, "quirks": {"force_stream": True}})
    up.default(stream(b"".join(events(host))))
    asked = {**ask("responses", False, MODEL), **tools("responses"), "instructions": "Be brief."}
    doc = g.send({**asked, "store": False}, path=wires.path("responses")).finish().json()
    assert doc["instructions"] == "Be brief." and doc["tools"][0]["name"] == "f"
    assert doc["tool_choice"] == "required" and doc["store"] is False
