"""hosts - providers as strict as the real ones: what each refuses beyond strict.py, and what it must be told of a
conversation (journey.py) that others have served, too. What they answer: replies.py.

A conversation is a list of items: ("system" | "user" | "assistant", text), ("image", url),
("thought", text, seal, maker), ("hidden", data, maker), ("call", id, name, arguments), ("result", id, text, failed).
"""

import dataclasses
import json
import re

from . import strict
from .pool import key

SPOKEN = ("thought", "hidden", "assistant", "call")  # of the assistant


@dataclasses.dataclass(frozen=True)
class Host:
    name: str  # of its channel
    provider: str
    wire: str
    model: str
    first: int  # number of its first account's key
    prefix: str  # of its ids

    @property
    def keys(self):
        return key(self.first), key(self.first + 1)


OPENAI = Host("oa", "openai", "chat", "gpt-4o", 1, "call_")
ANTHROPIC = Host("an", "anthropic", "messages", "claude-sonnet-4-5", 3, "toolu_")
DEEPSEEK = Host("ds", "deepseek", "chat", "deepseek-v4-pro", 5, "call_00_")
OTHER = Host("an2", "openai-compatible", "messages", "claude-sonnet-4-5", 7, "toolu_x")
RESPONSES = Host("rs", "openai", "responses", "gpt-5", 9, "call_r")
HOSTS = (OPENAI, ANTHROPIC, DEEPSEEK)
ALL = (*HOSTS, OTHER, RESPONSES)
MODELS = {h.model for h in ALL}
BY_KEY = {k: h for h in ALL for k in h.keys}

# What it refuses -------------------------------------------------------------------------------------

KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
BLOCKS = {
    "text": {"type", "text"},
    "image": {"type", "source"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
FIELDS = {
    "oa": {"max_completion_tokens", "max_tokens", "reasoning_effort"},
    "ds": {"max_tokens", "reasoning_effort", "thinking"},
}


def only(found, allowed):
    assert set(found) <= allowed, sorted(set(found) - allowed)


def chat(host, doc):
    fields = {"model", "messages", "tools", "tool_choice", "stream", "stream_options"}
    only(doc, fields | FIELDS[host.name])
    more = {"reasoning_content"} if host is DEEPSEEK else set()
    for i, m in enumerate(doc["messages"]):
        only(m, KEYS[m["role"]] | (more if m["role"] == "assistant" else set()))
        assert m["role"] != "system" or i == 0 or doc["messages"][i - 1]["role"] == "system", i
        if m["role"] == "assistant":
            null = host is OPENAI and m.get("tool_calls")
            assert isinstance(m["content"], str) or (null and m["content"] is None), m
            assert m["content"] or m.get("tool_calls"), "an empty answer"
        elif m["role"] != "user":
            assert isinstance(m["content"], str), m
    if host is DEEPSEEK and doc.get("thinking", {}).get("type") != "disabled":
        calls = [m for m in doc["messages"] if m.get("tool_calls")]
        for m in calls:
            assert isinstance(
                m.get("reasoning_content"), str
            ), "The reasoning_content in the thinking mode must be passed back to the API"


def messages(host, doc):
    fields = {"model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream"}
    only(doc, fields | {"thinking"})
    for m in doc["messages"]:
        only(m, {"role", "content"})
        for b in m["content"] if isinstance(m["content"], list) else []:
            only(b, BLOCKS[b["type"]])
    blocks = [b for m in doc["messages"] if isinstance(m["content"], list) for b in m["content"]]
    ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
    assert len(set(ids)) == len(ids), f"`tool_use` ids must be unique: {ids}"
    assert "tools" in doc or not ids, "requests which have `tool_use` blocks must define tools"
    # of an answer whose calls have their results last, the first block
    last = doc["messages"][-2:]
    results = isinstance(last[-1]["content"], list) and any(
        b["type"] == "tool_result" for b in last[-1]["content"]
    )
    if results and doc.get("thinking", {}).get("type") == "enabled":
        first = last[0]["content"][0]["type"]
        assert first in (
            "thinking",
            "redacted_thinking",
        ), f"Expected `thinking` or `redacted_thinking`, but found `{first}`"


ITEMS = {
    "message": {"type", "role", "content"},
    "reasoning": {"type", "summary", "encrypted_content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
}


def responses(host, doc):
    fields = {"model", "input", "instructions", "max_output_tokens", "tools", "stream", "store"}
    only(doc, fields | {"include", "reasoning"})
    for i, after in zip(doc["input"], doc["input"][1:] + [{}]):
        only(i, ITEMS[i.get("type", "message")] | {"status"})
        follows = after.get("type") in ("reasoning", "message", "function_call")
        assert i.get("type") != "reasoning" or follows, "without its required following item"


CHECKS = {"chat": chat, "messages": messages, "responses": responses}


def check(host, body):
    """The request as an object; AssertionError: this host answers 400."""
    doc = strict.check(host.wire, body)
    assert doc["model"] in MODELS, doc["model"]  # a fallback is asked for the other one's
    CHECKS[host.wire](host, doc)
    return doc


# What it heard ---------------------------------------------------------------------------------------


def _of_part(role, p):
    if p["type"] in ("text", "input_text", "output_text"):
        return (role, p["text"])
    if p["type"] == "input_image":
        return ("image", p["image_url"])
    if p["type"] == "image_url":
        return ("image", p["image_url"]["url"])
    if p["type"] == "image":
        s = p["source"]
        return ("image", f"data:{s['media_type']};base64,{s['data']}")
    if p["type"] == "tool_use":
        return ("call", p["id"], p["name"], json.dumps(p["input"], separators=(",", ":")))
    if p["type"] == "tool_result":
        content = p.get("content", "")
        text = content if isinstance(content, str) else "".join(b["text"] for b in content)
        text = "" if text == "(no output)" else text  # a failed call must say something
        return ("result", p["tool_use_id"], text, p.get("is_error", False))
    if p["type"] == "thinking":
        return ("thought", p["thinking"], p["signature"])
    return ("hidden", p["data"])


def _of_content(role, content):
    content = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [_of_part(role, p) for p in content if p.get("text") != ""]


def _of_item(i):
    if "role" in i:
        role = "system" if i["role"] == "developer" else i["role"]
        return _of_content(role, i["content"])
    if i["type"] == "reasoning":
        return [("thought", "".join(p["text"] for p in i["summary"]), i["encrypted_content"])]
    if i["type"] == "function_call":
        return [("call", i["call_id"], i["name"], i["arguments"])]
    return [("result", i["call_id"], i["output"], False)]


def heard(host, doc):
    """The items of a request."""
    if host.wire == "responses":
        lead = _of_content("system", doc.get("instructions"))
        return lead + [item for i in doc["input"] for item in _of_item(i)]
    out = _of_content("system", doc.get("system", []))
    for m in doc["messages"]:
        if m["role"] == "tool":
            out.append(("result", m["tool_call_id"], m["content"], False))
            continue
        if "reasoning_content" in m:
            out.append(("thought", m["reasoning_content"], ""))
        out += _of_content(m["role"], m["content"])
        for c in m.get("tool_calls", []):
            out.append(("call", c["id"], c["function"]["name"], c["function"]["arguments"]))
    return out


# What it must hear -----------------------------------------------------------------------------------


def turns(items):
    """Runs of items: an answer, results that stand together, a message with its picture."""
    runs = []
    for item in items:
        before = runs[-1][0][0] if runs else None
        joins = (item[0] in SPOKEN and before in SPOKEN) or item[0] == before == "result"
        if joins or (item[0] == "image" and before == "user"):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _due_answer(host, run):
    thoughts = [i for i in run if i[0] in ("thought", "hidden")]
    rest = [i for i in run if i not in thoughts]
    if host.wire != "chat":
        own = [i for i in run if i in rest or (i[-1] == host.name and i[-2])]
        return [i if i in rest else i[:-1] for i in own]
    text = "".join(i[1] for i in rest if i[0] == "assistant")
    calls = [i for i in rest if i[0] == "call"]
    out = [("assistant", text)] * bool(text) + calls
    if host is DEEPSEEK and calls:
        words = "\n\n".join(i[1] for i in thoughts if i[0] == "thought")
        out.insert(0, ("thought", words, ""))
    return out


def _due_result(kind, id, text, failed):
    told = not failed or text.lower().startswith("error")
    return (kind, id, text if told else "Error: " + text, False)


def due(host, items):
    """What of a conversation this host must be sent, each item in its own words."""
    out = []
    for run in turns(items):
        if run[0][0] in SPOKEN:
            out += _due_answer(host, run)
        elif run[0][0] == "result" and host.wire != "messages":
            out += [_due_result(*i) for i in run]
        else:
            out += run
    return out


LEFT_OUT = re.compile(r"\n\[\.\.\. (\d+) characters left out \.\.\.\]\n")


def is_shortened(got, want):
    """An item whose text is the other's without its middle."""
    parts = [LEFT_OUT.split(p) for p in got if isinstance(p, str) and LEFT_OUT.search(p)]
    if got[0] != want[0] or len(got) != len(want) or len(parts) != 1 or len(parts[0]) != 3:
        return False
    head, n, tail = parts[0]
    at = next(i for i, p in enumerate(got) if isinstance(p, str) and LEFT_OUT.search(p))
    whole = want[at]
    same = got[:at] == want[:at] and got[at + 1 :] == want[at + 1 :]
    ends = whole.startswith(head) and whole.endswith(tail)
    return same and ends and len(whole) == len(head) + int(n) + len(tail)


def numbered(items):
    """The same with ids by the order of their calls, as a host may want another id than the one it was; and
    results that stand together in that order.
    """
    numbers, out, n = {}, [], 0
    for i in items:
        if i[0] == "call":
            numbers[i[1]] = n = n + 1
        at = len(out)
        if i[0] in ("call", "result"):
            i = (i[0], numbers[i[1]], *i[2:])
        while i[0] == "result" and at > 0 and out[at - 1][0] == "result" and out[at - 1] > i:
            at -= 1
        out.insert(at, i)
    return out


# What the gateway keeps --------------------------------------------------------------------------------


def _compact(arguments):
    return json.dumps(json.loads(arguments), separators=(",", ":"))


def told(item):
    """An item as kept() has it: nobody says who made it."""
    return item[:-1] if item[0] in ("thought", "hidden") else item


def kept(role, part):
    """An item out of `sluicectl context export`."""
    kind, text = part["kind"], part.get("text", "")
    if kind == "image":
        return ("image", f"data:{part['media_type']};base64,{part['data']}")
    if kind == "call":
        return ("call", part["call_id"], part["name"], _compact(part["arguments"]))
    if kind == "result":
        text = "".join(p["text"] for p in part.get("parts", []))
        return ("result", part["result_of"], text, part.get("is_error", False))
    if kind == "thought":
        seal = (part["seal"].split(".", 3)[3],) if "seal" in part else ("",)
        return ("hidden", *seal) if part.get("redacted") else ("thought", text, *seal)
    return (role, text)
