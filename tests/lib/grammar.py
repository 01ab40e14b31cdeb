"""grammar - whether a converted stream follows the grammar of its API to its end.

grammar.end(client, body) is "whole" or "error" (the API's own error event); anything else fails.
"""

import json

from .fcgi import parse_sse

DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "redacted_thinking": set(),
}


def end(client, body):
    parts = parse_sse(body)
    assert parts, "an empty stream"
    for _, data in parts:
        assert not data.endswith("<unterminated>"), data
    check = {"chat": _chat, "messages": _messages, "responses": _responses}[client]
    return check([(n, d if d == "[DONE]" else json.loads(d)) for n, d in parts])


def _chat(parts):
    docs = [d for _, d in parts]
    calls, finish = set(), None
    failed = docs[-1] != "[DONE]"
    for d in docs[:-1]:
        assert d != "[DONE]" and d["object"] == "chat.completion.chunk" and d["id"], d
        for c in d["choices"]:
            assert finish is None and c["index"] == 0, d
            finish = c["finish_reason"]
            for call in c["delta"].get("tool_calls", []):
                if call["index"] not in calls:
                    assert call["index"] == len(calls) and call["id"], d
                    assert call["function"]["name"], d
                    calls.add(call["index"])
    if failed:
        assert docs[-1]["error"]["message"], docs[-1]
        return "error"
    assert finish in ("stop", "length", "tool_calls", "content_filter"), finish
    return "whole"


def _messages(parts):
    opened, blocks, told = None, 0, None
    for at, (name, d) in enumerate(parts):
        kind = d["type"]
        assert name == kind and told in (None, "message_delta"), (name, d, told)
        assert (kind == "message_start") == (at == 0) or kind == "error", d
        if kind == "content_block_start":
            assert opened is None and told is None and d["index"] == blocks, d
            opened, blocks = d["content_block"]["type"], blocks + 1
            assert opened != "tool_use" or (d["content_block"]["id"] and d["content_block"]["name"])
        elif kind == "content_block_delta":
            assert d["index"] == blocks - 1 and d["delta"]["type"] in DELTAS[opened], (d, opened)
        elif kind == "content_block_stop":
            assert opened is not None and d["index"] == blocks - 1, d
            opened = None
        elif kind == "message_delta":
            assert opened is None and told is None and d["delta"]["stop_reason"], d
            told = kind
        elif kind in ("message_stop", "error"):
            assert at == len(parts) - 1 and (kind == "error" or told), d
        else:
            assert kind in ("message_start", "ping"), d
    last = parts[-1][1]
    if last["type"] == "error":
        assert last["error"]["message"]
        return "error"
    assert last["type"] == "message_stop", last
    return "whole"


ENDS = {"response.completed": "completed", "response.incomplete": "incomplete"}


def _responses(parts):
    opened, done = {}, {}
    for at, (name, d) in enumerate(parts):
        kind = d["type"]
        assert name == kind and d["sequence_number"] == at, (at, name, d)
        assert at > 1 or kind in (("response.created",), ("response.in_progress",))[at] + (
            "response.failed",
        ), d
        if kind == "response.output_item.added":
            assert d["output_index"] == len(opened), d
            opened[d["output_index"]] = d["item"]["id"]
        elif kind == "response.output_item.done":
            assert opened[d["output_index"]] == d["item"]["id"] and d["output_index"] not in done
            done[d["output_index"]] = d["item"]
        elif "output_index" in d:
            assert opened[d["output_index"]] == d["item_id"] and d["output_index"] not in done, d
    last = parts[-1][1]
    assert all(d["type"] not in (*ENDS, "response.failed") for _, d in parts[:-1])
    if last["type"] == "response.failed":
        assert last["response"]["error"]["message"] and last["response"]["status"] == "failed"
        return "error"
    assert last["response"]["status"] == ENDS[last["type"]], last["type"]
    assert last["response"]["output"] == [done[i] for i in sorted(opened)], last
    return "whole"
