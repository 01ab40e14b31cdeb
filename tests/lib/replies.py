"""replies - what the hosts of hosts.py answer, plain and streamed, each in its own words."""

import json

from . import answers
from .hosts import DEEPSEEK, OPENAI, RESPONSES


def spoken(host, items, sealed=True):
    """An answer as this host can give it, with who made it. `sealed`: it was asked for encrypted content."""
    out = []
    words = "".join(i[1] for i in items if i[0] == "thought")
    if host is DEEPSEEK and words:
        out.append(("thought", words, "", host.name))
    for n, (kind, *rest) in enumerate(items):
        if kind == "thought" and host.wire == "messages":
            out.append((kind, rest[0], f"sig+{host.name}/{n}==", host.name))
        elif kind == "thought" and host is RESPONSES:
            out.append((kind, rest[0], f"enc+{n}/==" if sealed else "", host.name))
        elif kind == "hidden" and host.wire == "messages":
            out.append((kind, f"{rest[0]}+{host.name}/==", host.name))
        elif kind in ("assistant", "call"):
            out.append((kind, *rest))
    return out


def _usage(host, prompt):
    if host.wire == "messages":
        return {"input_tokens": prompt, "output_tokens": 20}
    if host.wire == "responses":
        return {"input_tokens": prompt, "output_tokens": 20, "total_tokens": prompt + 20}
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


def _call(c):
    return {"id": c[1], "type": "function", "function": {"name": c[2], "arguments": c[3]}}


def _block(i):
    return {
        "thought": lambda: {"type": "thinking", "thinking": i[1], "signature": i[2]},
        "hidden": lambda: {"type": "redacted_thinking", "data": i[1]},
        "assistant": lambda: {"type": "text", "text": i[1]},
        "call": lambda: {"type": "tool_use", "id": i[1], "name": i[2], "input": json.loads(i[3])},
    }[i[0]]()


def _item(i, n):
    """As it is in the end."""
    if i[0] == "thought":
        item = {"type": "reasoning", "id": f"rs_{n}"}
        item["summary"] = [{"type": "summary_text", "text": i[1]}]
        return {**item, "encrypted_content": i[2]} if i[2] else item
    if i[0] == "assistant":
        part = {"type": "output_text", "text": i[1], "annotations": []}
        return {"type": "message", "id": f"msg_{n}", "role": "assistant", "content": [part]}
    call = {"call_id": i[1], "name": i[2], "arguments": i[3]}
    return {"type": "function_call", "id": f"fc_{n}", "status": "completed", **call}


def _response(host, items, prompt):
    return {
        "id": "resp_up",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": host.model,
        "output": [_item(i, n) for n, i in enumerate(items)],
        "usage": _usage(host, prompt),
    }


def _plain(host, items, prompt):
    if host.wire == "responses":
        return _response(host, items, prompt)
    calls = [_call(i) for i in items if i[0] == "call"]
    text = "".join(i[1] for i in items if i[0] == "assistant")
    if host.wire == "messages":
        return {
            "id": "msg_up",
            "type": "message",
            "role": "assistant",
            "model": host.model,
            "content": [_block(i) for i in items],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": _usage(host, prompt),
        }
    message = {"role": "assistant", "content": text or (None if host is OPENAI else "")}
    for i in items:
        if i[0] == "thought":
            message["reasoning_content"] = i[1]
    if calls:
        message["tool_calls"] = calls
    doc = answers.chat_answer(finish="tool_calls" if calls else "stop", usage=_usage(host, prompt))
    doc["choices"][0]["message"] = message
    return doc


def _halves(text):
    half = len(text) // 2
    return [t for t in (text[:half], text[half:]) if t]


def _chat_events(host, items, prompt):
    deltas, ncalls = [{"role": "assistant", "content": ""}], 0
    for i in items:
        if i[0] == "thought":
            deltas += [{"reasoning_content": t} for t in _halves(i[1])]
        elif i[0] == "assistant":
            deltas += [{"content": t} for t in _halves(i[1])]
        else:
            begin = {**_call(i), "index": ncalls}
            begin["function"] = {**begin["function"], "arguments": ""}
            deltas.append({"tool_calls": [begin]})
            for t in _halves(i[3]):
                deltas.append({"tool_calls": [{"index": ncalls, "function": {"arguments": t}}]})
            ncalls += 1
    end = answers.chunk({}, "tool_calls" if ncalls else "stop")
    parts = [answers.chunk(d) for d in deltas] + [end]
    return [answers.sse([e]) for e in [*parts, answers.usage_chunk(_usage(host, prompt)), "[DONE]"]]


def _deltas(i):
    if i[0] == "thought":
        given = [{"type": "thinking_delta", "thinking": t} for t in _halves(i[1])]
        return given + [{"type": "signature_delta", "signature": i[2]}]
    if i[0] == "assistant":
        return [{"type": "text_delta", "text": t} for t in _halves(i[1])]
    if i[0] == "call":
        return [{"type": "input_json_delta", "partial_json": t} for t in _halves(i[3])]
    return []


def _messages_events(host, items, prompt):
    doc = _plain(host, items, prompt)
    start = {**doc, "content": [], "stop_reason": None}
    out = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for n, i in enumerate(items):
        empty = {"thinking": "", "signature": "", "text": "", "input": {}}
        block = {k: empty.get(k, v) for k, v in _block(i).items()}
        out.append({"type": "content_block_start", "index": n, "content_block": block})
        out += [{"type": "content_block_delta", "index": n, "delta": d} for d in _deltas(i)]
        out.append({"type": "content_block_stop", "index": n})
    delta = {"stop_reason": doc["stop_reason"], "stop_sequence": None}
    out.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}})
    return [
        b"event: %s\n" % e["type"].encode() + answers.sse([e])
        for e in [*out, {"type": "message_stop"}]
    ]


PIECES = {
    "thought": ("response.reasoning_summary_text.delta", {"summary_index": 0}),
    "assistant": ("response.output_text.delta", {"content_index": 0}),
    "call": ("response.function_call_arguments.delta", {}),
}


def _responses_events(host, items, prompt):
    doc = _response(host, items, prompt)
    begun = {**doc, "status": "in_progress", "output": [], "usage": None}
    out = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for n, i in enumerate(items):
        empty = {"summary": [], "content": [], "arguments": ""}
        whole, (kind, more) = _item(i, n), PIECES[i[0]]
        item = {k: empty.get(k, v) for k, v in whole.items()}
        out.append({"type": "response.output_item.added", "output_index": n, "item": item})
        at = {"output_index": n, "item_id": item["id"], **more}
        text = i[3] if i[0] == "call" else i[1]
        out += [{"type": kind, **at, "delta": t} for t in _halves(text)]
        out.append({"type": "response.output_item.done", "output_index": n, "item": whole})
    out.append({"type": "response.completed", "response": doc})
    return [
        b"event: %s\n" % e["type"].encode() + answers.sse([{**e, "sequence_number": n}])
        for n, e in enumerate(out)
    ]


EVENTS = {"chat": _chat_events, "messages": _messages_events, "responses": _responses_events}


def events(host, items, prompt):
    """Of a streamed answer, as bytes, one for each."""
    return EVENTS[host.wire](host, items, prompt)


def answer(host, items, streamed, prompt, cut=False):
    """An action: the answer, plain or streamed; cut: it breaks off behind the first content."""
    if not streamed:
        return answers.plain(_plain(host, items, prompt))
    parts = events(host, items, prompt)
    if cut:
        some = max(len(parts) - 4, {"chat": 2, "messages": 4, "responses": 4}[host.wire])
        return answers.stream(b"".join(parts[:some]), end="rst")
    return answers.stream(b"".join(parts), how="events")
