"""wires - the three APIs of conversations: what a client asks, what a provider answers, and what both
mean, so that any pair of them can be compared.

The same conversation, the same answer and the same errors in "chat", "messages" and "responses". An
answer's meaning is a dict: text, calls [(id, name, arguments)], finish, prompt, completion, cached.
"""

import json

from . import answers
from .fcgi import parse_sse

WIRES = ["chat", "messages", "responses"]
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
FIGURES = {"prompt": 12, "completion": 5, "cached": 4}
CALL = ("call_1", "f", '{"a":1}')
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def path(wire):
    return PATHS[wire]


# What a client asks ------------------------------------------------------------------------------


def ask(wire, stream=False, model="m1", text="Hi", tools=False, **extra):
    body = {"model": model}
    if wire == "responses":
        body["input"] = text
    else:
        body["messages"] = [{"role": "user", "content": text}]
    if wire == "messages":
        body["max_tokens"] = 100
    if tools:
        body["tools"] = [_tool(wire)]
    if stream:
        body["stream"] = True
    if stream and wire == "chat":
        body["stream_options"] = {"include_usage": True}
    return {**body, **extra}


def send(g, wire, stream=False, headers=(), **vary):
    """Ask a pool; the Answer is not read yet."""
    return g.send(ask(wire, stream, **vary), path=path(wire), headers=headers)


def get(g, wire, stream=False, headers=(), **vary):
    return send(g, wire, stream, headers, **vary).finish()


def _tool(wire):
    if wire == "messages":
        return {"name": "f", "input_schema": SCHEMA}
    function = {"name": "f", "parameters": SCHEMA}
    return (
        {"type": "function", "function": function}
        if wire == "chat"
        else {"type": "function", **function}
    )


def said(wire, body):
    """The user's text and the names of the tools, out of a request."""
    if wire == "responses":
        turns = body["input"]
        turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
    else:
        turns = body["messages"]
    content = [t for t in turns if t.get("role") == "user"][-1]["content"]
    if not isinstance(content, str):
        content = "".join(p["text"] for p in content)
    tools = [t.get("function", t)["name"] for t in body.get("tools", [])]
    return content, tools


# What a provider answers -------------------------------------------------------------------------


def _usage(wire):
    f = FIGURES
    if wire == "chat":
        return {
            "prompt_tokens": f["prompt"],
            "completion_tokens": f["completion"],
            "total_tokens": f["prompt"] + f["completion"],
            "prompt_tokens_details": {"cached_tokens": f["cached"]},
        }
    if wire == "messages":
        return {
            "input_tokens": f["prompt"] - f["cached"],
            "cache_read_input_tokens": f["cached"],
            "cache_creation_input_tokens": 0,
            "output_tokens": f["completion"],
        }
    return {
        "input_tokens": f["prompt"],
        "input_tokens_details": {"cached_tokens": f["cached"]},
        "output_tokens": f["completion"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": f["prompt"] + f["completion"],
    }


def _item(text=None, call=None):
    if call:
        return {
            "type": "function_call",
            "id": "fc_1",
            "call_id": call[0],
            "name": call[1],
            "arguments": call[2],
            "status": "completed",
        }
    return {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def _response(output, status="completed", **extra):
    return {
        "id": "resp_up",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "up-model",
        "output": output,
        "usage": _usage("responses") if status == "completed" else None,
        **extra,
    }


def answer(wire, text="hello", call=None):
    """A plain answer, as an object."""
    if wire == "chat":
        message = {"role": "assistant", "content": text}
        if call:
            function = {"name": call[1], "arguments": call[2]}
            message["tool_calls"] = [{"id": call[0], "type": "function", "function": function}]
        return {
            "id": "chatcmpl-up",
            "object": "chat.completion",
            "created": 1700000000,
            "model": "up-model",
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            ],
            "usage": _usage(wire),
        }
    if wire == "messages":
        blocks = [{"type": "text", "text": text}] if text else []
        if call:
            blocks.append(
                {"type": "tool_use", "id": call[0], "name": call[1], "input": json.loads(call[2])}
            )
        return {
            "id": "msg_up",
            "type": "message",
            "role": "assistant",
            "model": "up-model",
            "content": blocks,
            "stop_reason": "tool_use" if call else "end_turn",
            "stop_sequence": None,
            "usage": _usage(wire),
        }
    return _response(([_item(text)] if text else []) + ([_item(call=call)] if call else []))


def _named(event):
    return (
        b"event: %s\ndata: " % event["type"].encode()
        + json.dumps(event, separators=(",", ":")).encode()
        + b"\n\n"
    )


def _messages_events(texts, call):
    start = {**answer("messages", ""), "content": [], "stop_reason": None}
    start["usage"] = {**start["usage"], "output_tokens": 1}
    out = [{"type": "message_start", "message": start}]
    block = {"type": "text", "text": ""}
    if texts:
        out.append({"type": "content_block_start", "index": 0, "content_block": block})
        for t in texts:
            delta = {"type": "text_delta", "text": t}
            out.append({"type": "content_block_delta", "index": 0, "delta": delta})
        out.append({"type": "content_block_stop", "index": 0})
    if call:
        i = 1 if texts else 0
        block = {"type": "tool_use", "id": call[0], "name": call[1], "input": {}}
        out.append({"type": "content_block_start", "index": i, "content_block": block})
        for piece in (call[2][:3], call[2][3:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            out.append({"type": "content_block_delta", "index": i, "delta": delta})
        out.append({"type": "content_block_stop", "index": i})
    delta = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    usage = {"output_tokens": FIGURES["completion"]}
    return out + [
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses_events(texts, call):
    out = [
        {"type": "response.created", "response": _response([], "in_progress")},
        {"type": "response.in_progress", "response": _response([], "in_progress")},
    ]
    items = []
    if texts:
        whole = "".join(texts)
        at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        item = {**_item(""), "content": [], "status": "in_progress"}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        out += [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", **at, "part": part},
        ]
        out += [{"type": "response.output_text.delta", **at, "delta": t} for t in texts]
        out += [
            {"type": "response.output_text.done", **at, "text": whole},
            {"type": "response.content_part.done", **at, "part": {**part, "text": whole}},
            {"type": "response.output_item.done", "output_index": 0, "item": _item(whole)},
        ]
        items.append(_item(whole))
    if call:
        at = {"item_id": "fc_1", "output_index": len(items)}
        item = {**_item(call=call), "arguments": "", "status": "in_progress"}
        kind = "response.function_call_arguments"
        out += [
            {"type": "response.output_item.added", "output_index": len(items), "item": item},
            {"type": kind + ".delta", **at, "delta": call[2][:3]},
            {"type": kind + ".delta", **at, "delta": call[2][3:]},
            {"type": kind + ".done", **at, "arguments": call[2]},
            {
                "type": "response.output_item.done",
                "output_index": len(items),
                "item": _item(call=call),
            },
        ]
        items.append(_item(call=call))
    out.append({"type": "response.completed", "response": _response(items)})
    return [{**e, "sequence_number": i} for i, e in enumerate(out)]


def _chat_events(texts, call):
    def piece(delta, finish=None):
        return answers.chunk(delta, finish, model="up-model")

    out = [piece({"role": "assistant", "content": ""})]
    out += [piece({"content": t}) for t in texts]
    if call:
        begin = {
            "index": 0,
            "id": call[0],
            "type": "function",
            "function": {"name": call[1], "arguments": ""},
        }
        out.append(piece({"tool_calls": [begin]}))
        for part in (call[2][:3], call[2][3:]):
            out.append(piece({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}))
    out.append(piece({}, "tool_calls" if call else "stop"))
    return out + [answers.usage_chunk(_usage("chat"), "up-model"), "[DONE]"]


def events(wire, *texts, call=None):
    """The events of a streamed answer, as bytes, one for each."""
    texts = texts or (() if call else ("hel", "lo"))
    if wire == "chat":
        return [answers.sse([e]) for e in _chat_events(texts, call)]
    made = (_messages_events if wire == "messages" else _responses_events)(texts, call)
    return [_named(e) for e in made]


def content_at(wire):
    """The index of the first event of events() that carries content."""
    return {"chat": 1, "messages": 2, "responses": 4}[wire]


def serve(wire, text="hello", call=None, **vary):
    """The right answer to plain and streamed requests alike."""

    def act(x):
        if x.request.json().get("stream"):
            half = len(text or "") // 2
            texts = (text[:half], text[half:]) if text else ()
            return answers.stream(b"".join(events(wire, *texts, call=call)), **vary)(x)
        return answers.plain(answer(wire, text, call))(x)

    return act


def fault(wire, message="no good", kind="invalid_request_error", code=None):
    """An error document."""
    if wire == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def in_band(wire, message="Overloaded", kind="overloaded_error", code="server_is_overloaded"):
    """An error event, as bytes."""
    if wire == "chat":
        return answers.sse([fault(wire, message, kind, code)])
    if wire == "messages":
        return _named(fault(wire, message, kind))
    response = _response([], "failed", error={"code": code, "message": message})
    return _named({"type": "response.failed", "sequence_number": 99, "response": response})


# What it means -----------------------------------------------------------------------------------

FINISH = {"end_turn": "stop", "tool_use": "calls", "tool_calls": "calls", "max_tokens": "length"}


def _figures(wire, usage):
    if wire == "messages":
        cached = usage.get("cache_read_input_tokens") or 0
        return {
            "prompt": usage["input_tokens"]
            + cached
            + (usage.get("cache_creation_input_tokens") or 0),
            "completion": usage["output_tokens"],
            "cached": cached,
        }
    side = ("prompt", "completion") if wire == "chat" else ("input", "output")
    details = usage.get(side[0] + "_tokens_details") or {}
    assert usage["total_tokens"] == usage[side[0] + "_tokens"] + usage[side[1] + "_tokens"]
    return {
        "prompt": usage[side[0] + "_tokens"],
        "completion": usage[side[1] + "_tokens"],
        "cached": details.get("cached_tokens", 0),
    }


def meaning(wire, doc):
    """Of a plain answer."""
    text, calls = "", []
    if wire == "chat":
        choice = doc["choices"][0]
        text = choice["message"].get("content") or ""
        for c in choice["message"].get("tool_calls") or []:
            calls.append((c["id"], c["function"]["name"], c["function"]["arguments"]))
        finish = choice["finish_reason"]
    elif wire == "messages":
        for b in doc["content"]:
            if b["type"] == "text":
                text += b["text"]
            if b["type"] == "tool_use":
                calls.append((b["id"], b["name"], json.dumps(b["input"], separators=(",", ":"))))
        finish = doc["stop_reason"]
    else:
        for item in doc["output"]:
            if item["type"] == "message":
                text += "".join(p["text"] for p in item["content"])
            if item["type"] == "function_call":
                calls.append((item["call_id"], item["name"], item["arguments"]))
        finish = {"completed": "calls" if calls else "stop", "incomplete": "length"}[doc["status"]]
    return {
        "text": text,
        "calls": calls,
        "finish": FINISH.get(finish, finish),
        "model": doc["model"],
        **_figures(wire, doc["usage"]),
    }


def _gather_chat(parts):
    message, calls, doc = {"content": ""}, {}, {}
    assert parts[-1][1] == "[DONE]"
    for part in parts[:-1]:
        chunk = json.loads(part[1])
        assert "error" not in chunk, chunk
        doc["model"] = chunk["model"]
        if chunk.get("usage"):
            doc["usage"] = chunk["usage"]
        for choice in chunk["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            for c in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(c["index"], {"function": {"arguments": ""}})
                if c.get("id"):
                    call["id"], call["function"]["name"] = c["id"], c["function"]["name"]
                call["function"]["arguments"] += c["function"].get("arguments") or ""
            if choice.get("finish_reason"):
                doc["choices"] = [{"message": message, "finish_reason": choice["finish_reason"]}]
    message["tool_calls"] = [calls[i] for i in sorted(calls)]
    return doc


def _gather_messages(parts):
    doc, inputs, opened = None, {}, None
    for part in parts:
        e = json.loads(part[1])
        assert part[0] == e["type"], part
        if e["type"] == "message_start":
            doc = e["message"]
        elif e["type"] == "content_block_start":
            assert opened is None and e["index"] == len(doc["content"]), e
            opened = e["index"]
            doc["content"].append(e["content_block"])
            inputs[opened] = ""
        elif e["type"] == "content_block_delta":
            assert opened == e["index"], e
            if e["delta"]["type"] == "text_delta":
                doc["content"][opened]["text"] += e["delta"]["text"]
            if e["delta"]["type"] == "input_json_delta":
                inputs[opened] += e["delta"]["partial_json"]
        elif e["type"] == "content_block_stop":
            if inputs[opened]:
                doc["content"][opened]["input"] = json.loads(inputs[opened])
            opened = None
        elif e["type"] == "message_delta":
            doc["stop_reason"] = e["delta"]["stop_reason"]
            doc["usage"] = {**doc["usage"], **e["usage"]}
    assert opened is None and json.loads(parts[-1][1])["type"] == "message_stop"
    return doc


def _gather_responses(parts):
    found = [json.loads(p[1]) for p in parts]
    assert [e["sequence_number"] for e in found] == list(range(len(found)))
    assert [p[0] for p in parts] == [e["type"] for e in found]
    assert found[0]["type"] == "response.created" and found[-1]["type"] == "response.completed"
    text = "".join(e["delta"] for e in found if e["type"] == "response.output_text.delta")
    doc = found[-1]["response"]
    assert text == meaning("responses", doc)["text"]
    done = [e["item"] for e in found if e["type"] == "response.output_item.done"]
    assert done == doc["output"]
    return doc


GATHER = {"chat": _gather_chat, "messages": _gather_messages, "responses": _gather_responses}


def gathered(wire, body):
    """The meaning of a streamed answer; it must follow the grammar of its API."""
    return meaning(wire, GATHER[wire](parse_sse(body)))


def error_of(wire, doc):
    """(type, message, code) of an error document in the right shape."""
    if wire == "messages":
        assert doc["type"] == "error", doc
        details = doc["error"].get("details") or {}
        return doc["error"]["type"], doc["error"]["message"], details.get("error_code")
    assert set(doc["error"]) == {"message", "type", "param", "code"}, doc
    return doc["error"]["type"], doc["error"]["message"], doc["error"]["code"]


def error_event(wire, body):
    """The message of the error that ends a stream, which must not look finished."""
    last = parse_sse(body)[-1]
    doc = json.loads(last[1])
    if wire == "responses":
        assert last[0] == doc["type"] == "response.failed", last
        assert doc["response"]["status"] == "failed", last
        assert isinstance(doc["sequence_number"], int)
        return doc["response"]["error"]["message"]
    if wire == "messages":
        assert last[0] == "error", last
    return error_of(wire, doc)[1]
