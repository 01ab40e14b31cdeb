"""rich - a valid request of each API that uses nearly all of it, and ways to spoil it.

spoiled() replaces each member, at any depth, by a value of each JSON type, leaves it out, and says it
twice.
"""

import copy
import json

PNG = "iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "enum": [1, 2]}},
    "required": ["a"],
    "additionalProperties": False,
}

CHAT = {
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        {
            "role": "user",
            "name": "joe",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": "so",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a":1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
        {"role": "assistant", "content": "b", "refusal": None},
        {"role": "user", "content": "go"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "x", "parameters": SCHEMA, "strict": True},
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "max_tokens": 100,
    "max_completion_tokens": 100,
    "temperature": 0.5,
    "top_p": 0.9,
    "n": 1,
    "stop": ["x", "y"],
    "seed": 7,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.1,
    "logit_bias": {"1": 2},
    "logprobs": True,
    "top_logprobs": 2,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "o", "schema": SCHEMA, "strict": True},
    },
    "reasoning_effort": "low",
    "user": "u",
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "prompt_cache_key": "k",
    "verbosity": "low",
    "stream": False,
    "store": False,
}

MESSAGES = {
    "max_tokens": 5000,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                },
                {
                    "type": "document",
                    "title": "t",
                    "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "xx"},
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "2"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                        },
                    ],
                },
                {"type": "text", "text": "go"},
            ],
        },
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "end"},
    ],
    "tools": [
        {
            "name": "f",
            "description": "x",
            "input_schema": SCHEMA,
            "cache_control": {"type": "ephemeral"},
        }
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "temperature": 1,
    "top_p": 0.95,
    "top_k": 5,
    "stop_sequences": ["x", "y"],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    "metadata": {"user_id": "u"},
    "service_tier": "auto",
    "stream": False,
}

RESPONSES = {
    "instructions": "s",
    "input": [
        {"type": "message", "role": "developer", "content": "d"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {
                    "type": "input_image",
                    "image_url": f"data:image/png;base64,{PNG}",
                    "detail": "low",
                },
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "content": [{"type": "reasoning_text", "text": "hm"}],
            "encrypted_content": "xx",
        },
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "so", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a":1}',
            "status": "completed",
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "2"}],
        },
        {"role": "user", "content": "go"},
    ],
    "tools": [
        {"type": "function", "name": "f", "description": "x", "parameters": SCHEMA, "strict": True}
    ],
    "tool_choice": {"type": "function", "name": "f"},
    "parallel_tool_calls": False,
    "max_output_tokens": 100,
    "temperature": 0.5,
    "top_p": 0.9,
    "text": {
        "format": {"type": "json_schema", "name": "o", "schema": SCHEMA, "strict": True},
        "verbosity": "low",
    },
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "top_logprobs": 2,
    "truncation": "auto",
    "user": "u",
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "prompt_cache_key": "k",
    "stream": False,
    "store": False,
}

REQUESTS = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}
VALUES = [None, True, False, 0, -1, 10**30, 1.5, "", "x", "\ud83d\u2028\0", [], [1], ["x"], [[]]]
VALUES += [{}, {"x": 1}, [{}], [None]]


def places(value, path=()):
    """The path of every member and element."""
    pairs = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for name, inner in pairs:
        yield (*path, name)
        if name not in ("properties", "schema", "parameters", "input_schema"):
            yield from places(inner, (*path, name))


def with_value(body, path, value):
    body = copy.deepcopy(body)
    at = body
    for name in path[:-1]:
        at = at[name]
    if value is places:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return body


def spoiled(client, **extra):
    """(what, body as bytes) of every way to spoil a request."""
    body = {**REQUESTS[client], **extra}
    for path in places(body):
        where = ".".join(map(str, path))
        if where == "model":
            continue
        for value in VALUES:
            yield f"{where} = {value!r}", json.dumps(with_value(body, path, value)).encode()
        yield f"without {where}", json.dumps(with_value(body, path, places)).encode()
