"""talk - conversations in the words of any API, and back: one history for every pair.

A conversation is a list of items: ("system" | "developer" | "user" | "assistant", text),
("call", id, name, arguments as text), ("result", id, text), ("image", url), ("thought", text).
"""

import json

from .wires import ask

PARTS = {"chat": "text", "messages": "text", "responses": "input_text"}


def ask_with(client, *items, **extra):
    """A request of `client` that holds them."""
    write = {"chat": _chat, "messages": _messages, "responses": _responses}[client]
    body = ask(client, **extra)
    body["input" if client == "responses" else "messages"] = write(items)
    return body


def _chat(items):
    out = []
    for kind, *rest in items:
        if kind == "call":
            function = {"name": rest[1], "arguments": rest[2]}
            call = {"id": rest[0], "type": "function", "function": function}
            if not out or out[-1]["role"] != "assistant":
                out.append({"role": "assistant", "content": None})
            out[-1].setdefault("tool_calls", []).append(call)
        elif kind == "result":
            out.append({"role": "tool", "tool_call_id": rest[0], "content": rest[1]})
        elif kind == "image":
            part = {"type": "image_url", "image_url": {"url": rest[0]}}
            out.append({"role": "user", "content": [part]})
        else:
            out.append({"role": kind, "content": rest[0]})
    return out


def _block(kind, rest):
    if kind == "call":
        value = json.loads(rest[2]) if isinstance(rest[2], str) else rest[2]
        return "assistant", {"type": "tool_use", "id": rest[0], "name": rest[1], "input": value}
    if kind == "result":
        return "user", {"type": "tool_result", "tool_use_id": rest[0], "content": rest[1]}
    if kind == "image":
        media, _, data = rest[0].removeprefix("data:").partition(";base64,")
        source = {"type": "base64", "media_type": media, "data": data}
        if not rest[0].startswith("data:"):
            source = {"type": "url", "url": rest[0]}
        return "user", {"type": "image", "source": source}
    return kind, {"type": "text", "text": rest[0]}


def _messages(items):
    out = []
    for kind, *rest in items:
        role, made = _block(kind, rest)
        joins = kind in ("call", "result") and out and out[-1]["role"] == role
        if joins and kind == "result":
            joins = out[-1]["content"][-1]["type"] == "tool_result"
        if joins:
            out[-1]["content"].append(made)
        else:
            out.append({"role": role, "content": [made]})
    return out


def _responses(items):
    out = []
    for kind, *rest in items:
        if kind == "call":
            call = {"call_id": rest[0], "name": rest[1], "arguments": rest[2]}
            out.append({"type": "function_call", **call})
        elif kind == "result":
            out.append({"type": "function_call_output", "call_id": rest[0], "output": rest[1]})
        elif kind == "image":
            part = {"type": "input_image", "image_url": rest[0]}
            out.append({"role": "user", "content": [part]})
        else:
            out.append({"role": kind, "content": rest[0]})
    return out


# And back ----------------------------------------------------------------------------------------


def heard(host, doc):
    """The items of a request that a provider got; texts that stand together are one."""
    found = {"chat": _of_chat, "messages": _of_messages, "responses": _of_responses}[host](doc)
    out = []
    for item in found:
        if out and len(item) == 2 and item[0] == out[-1][0] and item[0] in ("user", "assistant"):
            out[-1] = (item[0], out[-1][1] + "|" + item[1])
        else:
            out.append(item)
    return out


def text_of(content):
    if isinstance(content, str):
        return content
    return "|".join(p["text"] for p in content or [] if "text" in p)


def _parts(role, content):
    if isinstance(content, str):
        yield (role, content)
        return
    for p in content or []:
        if p["type"] == "image_url":
            yield ("image", p["image_url"]["url"])
        elif p["type"] == "input_image":
            yield ("image", p["image_url"])
        else:
            yield (role, p["text"])


def _of_chat(doc):
    for m in doc["messages"]:
        if m["role"] == "tool":
            yield ("result", m["tool_call_id"], text_of(m["content"]))
            continue
        if m.get("reasoning_content"):
            yield ("thought", m["reasoning_content"])
        yield from (p for p in _parts(m["role"], m["content"]) if p[1])
        for c in m.get("tool_calls", []):
            yield ("call", c["id"], c["function"]["name"], c["function"]["arguments"])


def _of_block(role, b):
    if b["type"] == "tool_use":
        return ("call", b["id"], b["name"], json.dumps(b["input"], separators=(",", ":")))
    if b["type"] == "tool_result":
        return ("result", b["tool_use_id"], text_of(b.get("content", "")))
    if b["type"] == "image":
        s = b["source"]
        if s["type"] == "url":
            return ("image", s["url"])
        return ("image", f"data:{s['media_type']};base64,{s['data']}")
    if b["type"] == "thinking":
        return ("thought", b["thinking"])
    return (role, b["text"])


def _of_messages(doc):
    system = doc.get("system", [])
    for b in [{"text": system}] if isinstance(system, str) else system:
        yield ("system", b["text"])
    for m in doc["messages"]:
        content = m["content"]
        for b in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield _of_block(m["role"], b)


def _of_responses(doc):
    if doc.get("instructions"):
        yield ("system", doc["instructions"])
    if isinstance(doc["input"], str):
        yield ("user", doc["input"])
        return
    for i in doc["input"]:
        kind = i.get("type", "message")
        if kind == "message":
            yield from _parts(i["role"], i["content"])
        elif kind == "function_call":
            yield ("call", i["call_id"], i["name"], i["arguments"])
        elif kind == "function_call_output":
            yield ("result", i["call_id"], text_of(i["output"]))
        elif kind == "reasoning":
            yield ("thought", "".join(p["text"] for p in i["summary"]))
