"""strict - what a strict provider of each API takes: strict.check(wire, body) fails on anything else.

Providers refuse a request for less: bytes that are no JSON, null members, roles out of turn, calls
without results, blank texts, ids in another alphabet.
"""

import json
import re

CALL_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
NAME = {
    w: re.compile(r"[A-Za-z0-9_-]{1,%d}\Z" % n)
    for w, n in (("chat", 64), ("messages", 128), ("responses", 128))
}
IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


def parse(data):
    """JSON as its RFC has it: UTF-8, no NaN, no member twice."""

    def members(pairs):
        out = dict(pairs)
        assert len(out) == len(pairs), f"a member twice: {[n for n, _ in pairs]}"
        return out

    def constant(text):
        raise AssertionError(f"not JSON: {text}")

    return json.loads(data.decode("utf-8"), parse_constant=constant, object_pairs_hook=members)


def arguments(text):
    assert isinstance(text, str), text
    assert isinstance(json.loads(text), dict), text


def base64_url(url):
    kind, _, data = url[5:].partition(";base64,")
    assert data and "data:" not in data and ";" not in kind, url[:80]
    return kind


def image_url(url):
    assert url.startswith(("http://", "https://")) or base64_url(url) in IMAGES, url[:80]


def some(value):
    assert isinstance(value, str) and value, value
    return value


# Chat --------------------------------------------------------------------------------------------


def chat_content(content):
    if isinstance(content, str):
        return
    assert isinstance(content, list) and content, content
    for part in content:
        kind = part["type"]
        if kind == "text":
            some(part["text"])
        elif kind == "image_url":
            image_url(part["image_url"]["url"])
        elif kind == "file":
            assert base64_url(part["file"]["file_data"]) == "application/pdf", part
        else:
            raise AssertionError(part)


def chat(doc):
    owed = set()
    assert isinstance(doc["messages"], list) and doc["messages"]
    for m in doc["messages"]:
        role = m["role"]
        assert (role == "tool") == bool(owed), (role, owed)
        if role == "tool":
            owed.remove(m["tool_call_id"])
            chat_content(m["content"])
        elif role == "assistant":
            calls = m.get("tool_calls")
            if calls is None or m["content"] is not None:
                chat_content(m["content"])
            assert calls is None or calls, m
            for c in calls or []:
                assert c["type"] == "function" and NAME["chat"].match(c["function"]["name"]), c
                assert len(some(c["id"])) <= 40, c
                arguments(c["function"]["arguments"])
                assert c["id"] not in owed, c
                owed.add(c["id"])
        else:
            assert role in ("system", "user", "developer"), m
            chat_content(m["content"])
            assert role != "user" or m["content"], m
    assert not owed, owed
    for t in doc.get("tools", []):
        assert t["type"] == "function" and NAME["chat"].match(t["function"]["name"]), t
        assert isinstance(t["function"].get("parameters", {}), dict), t
    assert "tools" not in doc or doc["tools"]
    assert "tool_choice" not in doc or "tools" in doc, doc
    assert not ("max_tokens" in doc and "max_completion_tokens" in doc)


# Messages ----------------------------------------------------------------------------------------


def block(b, role):
    kind = b["type"]
    if kind == "text":
        assert some(b["text"]).strip(), b
    elif kind == "image":
        source = b["source"]
        if source["type"] == "base64":
            assert source["media_type"] in IMAGES and some(source["data"]), b
        else:
            assert source["type"] == "url" and source["url"].startswith("http"), b
    elif kind == "document":
        assert b["source"]["type"] in ("base64", "text", "url", "content"), b
    elif kind == "tool_use":
        assert role == "assistant" and CALL_ID.match(b["id"]), b
        assert NAME["messages"].match(b["name"]) and isinstance(b["input"], dict), b
    elif kind == "tool_result":
        assert role == "user" and isinstance(b.get("is_error", False), bool), b
        content = b.get("content", "")
        for inner in content if isinstance(content, list) else []:
            block(inner, role)
    elif kind == "thinking":
        assert role == "assistant" and some(b["signature"]) and isinstance(b["thinking"], str), b
    else:
        assert kind == "redacted_thinking" and some(b["data"]), b


def blocks(m):
    if isinstance(m["content"], str):
        assert m["content"].strip(), m
        return []
    assert m["content"], m
    for b in m["content"]:
        block(b, m["role"])
    return m["content"]


def messages(doc):
    owed = []
    assert doc["max_tokens"] > 0
    for i, m in enumerate(doc["messages"]):
        assert m["role"] == ("assistant" if i % 2 else "user"), [m["role"] for m in doc["messages"]]
        found = blocks(m)
        results = [b["tool_use_id"] for b in found if b["type"] == "tool_result"]
        assert sorted(results) == sorted(owed), (results, owed)
        assert [b["type"] for b in found[: len(owed)]] == ["tool_result"] * len(owed), found
        owed = [b["id"] for b in found if b["type"] == "tool_use"]
        assert len(set(owed)) == len(owed), owed
    assert doc["messages"] and not owed
    system = doc.get("system", "x")
    for b in [] if isinstance(system, str) else system:
        assert b["type"] == "text" and b["text"].strip(), b
    assert system, "an empty system"
    for t in doc.get("tools", []):
        assert NAME["messages"].match(t["name"]) and t["input_schema"]["type"] == "object", t
    assert "tools" not in doc or doc["tools"]
    assert "tool_choice" not in doc or "tools" in doc, doc
    thinking = doc.get("thinking", {})
    assert thinking.get("budget_tokens", 0) < doc["max_tokens"], doc
    assert 0 <= doc.get("temperature", 0) <= 1, doc["temperature"]
    assert all(s.strip() for s in doc.get("stop_sequences", []))


# Responses ---------------------------------------------------------------------------------------

PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal"},
}


def item_content(role, content):
    if isinstance(content, str):
        return
    assert content, (role, content)
    for part in content:
        assert part["type"] in PARTS[role], (role, part)
        if part["type"].endswith("_text"):
            some(part["text"])
        if part["type"] == "input_image":
            image_url(part["image_url"])


def item(i, owed):
    kind = i.get("type", "message")
    if kind == "message":
        item_content(i["role"], i["content"])
    elif kind == "function_call":
        assert NAME["responses"].match(i["name"]) and len(some(i["call_id"])) <= 64, i
        assert "id" not in i or i["id"].startswith("fc_"), i
        assert i["call_id"] not in owed, i
        arguments(i["arguments"])
        owed.add(i["call_id"])
    elif kind == "function_call_output":
        owed.remove(i["call_id"])
        if not isinstance(i["output"], str):
            item_content("user", i["output"])
    else:
        assert kind == "reasoning" and some(i["encrypted_content"]), i


def responses(doc):
    owed = set()
    if isinstance(doc["input"], str):
        assert doc["input"]
    else:
        assert doc["input"]
        for i in doc["input"]:
            item(i, owed)
    assert not owed, owed
    assert "previous_response_id" not in doc and doc.get("max_output_tokens", 16) >= 16, doc
    for t in doc.get("tools", []):
        assert t["type"] == "function" and NAME["responses"].match(t["name"]), t
    assert "tool_choice" not in doc or doc["tools"], doc


CHECKS = {"chat": chat, "messages": messages, "responses": responses}


def check(wire, data, made=True):
    """`made`: by a conversion; what the client wrote itself must only be JSON."""
    if not made:
        return json.loads(data)
    doc = parse(data)
    json.dumps(doc, ensure_ascii=False).encode()  # no surrogate stands alone
    nulls = [n for n, v in doc.items() if v is None]
    assert not nulls and some(doc["model"]), nulls
    CHECKS[wire](doc)
    return doc
