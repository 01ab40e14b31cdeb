"""Streams that go well: byte identity, stream_options, the usage chunk (SPEC 5, 14; formats.md
A.6).
"""

import json

import pytest

from lib.answers import chat_chunks, chunk, plain, sse, stream, usage_chunk
from lib.pool import K1

BODY = {"model": "m1", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


def inserted(original, sent):
    """What was put into `original` to get `sent`; None if anything else changed."""
    head = 0
    while head < len(original) and original[head] == sent[head]:
        head += 1
    tail = len(original) - head
    return sent[head : len(sent) - tail] if sent[len(sent) - tail :] == original[head:] else None


def test_asked_usage_is_byte_identical_both_ways(up, gate):
    answer = sse(chat_chunks("Hel", "lo", usage=True))
    up.script(K1, stream(answer, "events"))
    body = b'{"stream":true , "stream_options":{"include_usage":true},"model":"m1","messages":[]}'
    body = body.replace(b"[]", b'[{"role":"user","content":"x"}]')
    a = gate().send(body).finish()
    assert (a.status, a.body) == (200, answer)
    assert up.last.body == body
    assert up.last.header("Accept") in (None, "*/*", "text/event-stream")


def test_stream_head(up, gate):
    a = gate().ask(stream=True)
    assert a.header("Content-Type").startswith("text/event-stream")
    assert a.header("Cache-Control") == "no-cache"
    assert a.header("X-Accel-Buffering") == "no"
    assert a.header("Content-Length") is None
    assert (a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == ("A1", "1")


def test_option_is_added_and_the_chunk_withheld(up, gate):
    up.script(K1, stream(chat_chunks("Hel", "lo", usage=True)))
    body = b'{"model":"m1","messages":[{"role":"user","content":"x"}],"stream":true}'
    g = gate()
    a = g.send(body).finish()
    assert a.body == sse(chat_chunks("Hel", "lo", usage=False))
    added = inserted(body, up.last.body)
    assert added and up.last.json()["stream_options"] == {"include_usage": True}, up.last.body
    assert {k: v for k, v in up.last.json().items() if k != "stream_options"} == json.loads(body)
    assert g.account()["tokens"]["prompt"] == 7


@pytest.mark.parametrize(
    "options,sent",
    [
        (b'{"include_usage":false}', {"include_usage": True}),
        (b"{}", {"include_usage": True}),
        (
            b'{ "include_obfuscation" : false }',
            {"include_usage": True, "include_obfuscation": False},
        ),
        (b"null", {"include_usage": True}),
    ],
)
def test_option_is_edited_in_place(up, gate, options, sent):
    up.script(K1, stream(chat_chunks("x", usage=True)))
    body = (
        b'{"model":"m1","stream_options":'
        + options
        + b',"messages":[{"role":"user","content":"x"}],"stream":true}'
    )
    a = gate().send(body).finish()
    assert a.body == sse(chat_chunks("x", usage=False))
    assert up.last.json()["stream_options"] == sent
    before, after = body.split(options)
    assert up.last.body.startswith(before) and up.last.body.endswith(after)


def test_quirk_no_stream_options(up, gate):
    body = b'{"model":"m1","messages":[{"role":"user","content":"x"}],"stream":true}'
    assert gate(channel={"quirks": {"no_stream_options": True}}).send(body).finish().status == 200
    assert up.last.body == body


def test_plain_request_gets_no_option(up, gate):
    assert gate().ask(stream=False).status == 200
    assert "stream_options" not in up.last.json()


@pytest.mark.parametrize("value", [b"false", b"null"])
def test_stream_false_and_null_are_plain(up, gate, value):
    body = b'{"model":"m1","messages":[{"role":"user","content":"x"}],"stream":' + value + b"}"
    a = gate().send(body).finish()
    assert (a.status, up.last.body) == (200, body)
    assert a.header("Content-Type").startswith("application/json")


def test_usage_in_the_finish_chunk_passes(up, gate):
    """DeepSeek, Zhipu: usage beside the finish reason is not a usage chunk."""
    events = [
        chunk({"content": "x"}),
        chunk({}, "stop", usage={"prompt_tokens": 11, "completion_tokens": 3}),
        "[DONE]",
    ]
    up.script(K1, stream(events))
    g = gate()
    assert g.ask(stream=True).body == sse(events)
    assert g.account()["tokens"]["prompt"] == 11


def test_running_usage_in_every_chunk(up, gate):
    """Cumulative figures: the last one counts."""
    events = [
        chunk({"content": "a"}, usage={"prompt_tokens": 4, "completion_tokens": 1}),
        chunk({"content": "b"}, usage={"prompt_tokens": 4, "completion_tokens": 2}),
        chunk({}, "stop", usage={"prompt_tokens": 4, "completion_tokens": 3}),
        "[DONE]",
    ]
    up.script(K1, stream(events))
    g = gate()
    assert g.ask(stream=True).body == sse(events)
    assert g.account()["tokens"]["completion"] == 3


def test_null_usage_in_chunks_is_not_a_usage_chunk(up, gate):
    events = [
        chunk({"content": "a"}, usage=None),
        chunk({}, "stop", usage=None),
        usage_chunk(),
        "[DONE]",
    ]
    up.script(K1, stream(events))
    assert gate().ask(stream=True).body == sse([events[0], events[1], events[3]])


def test_empty_choices_without_usage_pass(up, gate):
    """Azure's prompt_filter_results chunk is preamble, not usage."""
    events = [
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "object": ""}
    ] + chat_chunks("x")
    up.script(K1, stream(events))
    assert gate().ask(stream=True).body == sse(events)


def test_events_are_not_held_back(up, gate):
    up.script(K1, stream(chat_chunks("e1", "e2", "e3"), "events", gap=0.15))
    a = gate().open()
    a.finish()
    t = [a.when(b'"%s"' % e) for e in (b"e1", b"e2", b"e3")]
    assert 0.1 < t[1] - t[0] < 0.25 and 0.1 < t[2] - t[1] < 0.25, t


def test_preamble_is_held_until_the_first_content(up, gate):
    up.script(K1, stream(chat_chunks("content"), "events", gap=0.2))
    a = gate().open()
    a.finish()
    assert a.when(b'"role"') >= 0.18


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"refusal": "no"},
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        },
        {"function_call": {"name": "f", "arguments": ""}},
    ],
)
def test_what_counts_as_content(up, gate, delta):
    """Content commits: it must come before the next event, which is 1 s away."""
    up.script(
        K1,
        stream(
            [chunk({"role": "assistant", "content": ""}), chunk(delta)],
            then=[(1.0, sse([chunk({}, "stop"), "[DONE]"]))],
        ),
    )
    a = gate().open()
    a.finish()
    first = next(iter(delta)).encode()
    assert a.when(b'"' + first + b'":' if first != b"content" else b'"x"') < 0.7
    assert a.body.endswith(b"data: [DONE]\n\n")


def test_legacy_completions_stream(up, gate):
    part = {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "m1",
        "choices": [{"text": "abc", "index": 0, "logprobs": None, "finish_reason": None}],
    }
    last = {
        **part,
        "choices": [{"text": "", "index": 0, "logprobs": None, "finish_reason": "stop"}],
    }
    up.script(K1, stream([part, last, {**usage_chunk(), "object": "text_completion"}, "[DONE]"]))
    a = gate().send(b'{"model":"m1","prompt":"x","stream":true}', path="/v1/completions").finish()
    assert a.body == sse([part, last, "[DONE]"])
    assert up.last.json()["stream_options"] == {"include_usage": True}


def test_several_choices_interleave(up, gate):
    """n=2: the stream ends with [DONE], not with the first finish reason."""

    def part(i, **kw):
        c = chunk(**kw)
        c["choices"][0]["index"] = i
        return c

    events = [
        part(0, delta={"content": "a"}),
        part(1, delta={"content": "b"}),
        part(0, finish="stop"),
        part(1, delta={"content": "c"}),
        part(1, finish="stop"),
        "[DONE]",
    ]
    up.script(K1, stream(events, "events", gap=0.02))
    assert gate().ask(stream=True, n=2).body == sse(events)


def test_stream_and_plain_count_alike(up, gate):
    """USE-08"""
    g = gate()
    g.ask(stream=False)
    one = g.account()["tokens"]
    g.ask(stream=True)
    two = g.account()["tokens"]
    assert two == {k: 2 * v for k, v in one.items()}


def test_stream_without_usage_is_estimated(up, gate):
    up.script(K1, stream(chat_chunks("some words", " and more words of text")))
    g = gate()
    g.ask(stream=True)
    tokens = g.account()["tokens"]
    assert tokens["prompt"] > 0 and 3 <= tokens["completion"] <= 40


def test_a_json_error_to_a_stream_request_is_json(up, gate):
    up.script(
        K1,
        plain(
            {
                "error": {
                    "message": "bad",
                    "type": "invalid_request_error",
                    "param": "n",
                    "code": None,
                }
            },
            400,
        ),
    )
    a = gate().ask(stream=True)
    assert a.status == 400
    assert a.header("Content-Type").startswith("application/json")
    assert a.error["param"] == "n"
