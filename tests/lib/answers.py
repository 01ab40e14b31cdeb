"""answers - actions for the scripted upstream, and the valid answers of the OpenAI wire format.

An action is a callable that gets an Exchange (see upstream.py) and writes the answer, whatever
shape it has.
"""

import gzip
import json

LONGEST = 60.0  # seconds that any single action may take


def _head(status, headers, reason=None):
    reason = reason or {200: "OK", 429: "Too Many Requests"}.get(status, "Status")
    lines = [f"HTTP/1.1 {status} {reason}"]
    pairs = headers.items() if isinstance(headers, dict) else headers
    lines += [f"{name}: {value}" for name, value in pairs]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _bytes(body):
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, echoed
        return json.dumps(body, separators=(",", ":")).encode()


def pieces(body, how):
    """Cut `body`: "whole", "events", "lines", "bytes", an offset, or a list of offsets."""
    if how == "whole":
        return [body]
    if how == "bytes":
        return [body[i : i + 1] for i in range(len(body))]
    if how == "lines":
        return body.splitlines(keepends=True)
    if how == "events":
        parts = body.split(b"\n\n")
        return [p + b"\n\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    offsets = [how] if isinstance(how, int) else list(how)
    edges = [0] + offsets + [len(body)]
    return [body[a:b] for a, b in zip(edges, edges[1:]) if b > a]


def plain(
    body,
    status=200,
    headers=(),
    delay=0.0,
    ctype="application/json",
    framing="length",
    end="keep",
    packed=False,
    before=b"",
    declared=None,
):
    """An answer in one piece. `before` is sent first, as it is (a 103 block); `declared` overrides
    Content-Length.
    """
    data = _bytes(body)
    if packed:
        data = gzip.compress(data)

    def act(x):
        if before:
            x.send(before)
        x.pause(delay)
        pairs = list(headers.items() if isinstance(headers, dict) else headers)
        if ctype is not None:
            pairs.insert(0, ("Content-Type", ctype))
        if packed:
            pairs.append(("Content-Encoding", "gzip"))
        out = data
        if framing == "length":
            pairs.append(("Content-Length", str(len(data) if declared is None else declared)))
        elif framing == "chunked":
            pairs.append(("Transfer-Encoding", "chunked"))
            out = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"
        else:
            pairs.append(("Connection", "close"))
        x.finishing()
        x.send(_head(status, pairs) + out)
        if framing == "close" or end == "fin":
            x.fin()
        elif end == "rst":
            x.pause(0.05)  # RST throws away what the peer has not read
            x.rst()
        elif end == "hold":
            x.hold()

    return act


def stream(
    body,
    how="whole",
    gap=0.0,
    first=0.0,
    headers=(),
    status=200,
    ctype="text/event-stream",
    framing="chunked",
    end="keep",
    then=(),
):
    """A streamed answer. `gap` seconds between pieces, `first` before the first one; `then` are
    (pause, bytes) pairs that follow. `end`: keep (terminal chunk, connection stays), fin, rst, hold
    (line stays open, nothing more comes).
    """
    data = body if isinstance(body, bytes) else sse(body)

    def act(x):
        pairs = list(headers.items() if isinstance(headers, dict) else headers)
        if ctype is not None:
            pairs.insert(0, ("Content-Type", ctype))
        pairs.append(
            ("Transfer-Encoding", "chunked") if framing == "chunked" else ("Connection", "close")
        )
        wrap = (lambda b: b"%x\r\n%s\r\n" % (len(b), b)) if framing == "chunked" else (lambda b: b)
        parts = [(gap if i else first, p) for i, p in enumerate(pieces(data, how))] + list(then)
        x.send(_head(status, pairs))
        for i, (wait, part) in enumerate(parts):
            x.pause(wait)
            if i == len(parts) - 1:
                x.finishing()
            if part:
                x.send(wrap(part))
        x.finishing()
        if end == "hold":
            x.hold()
        elif end == "rst":
            x.pause(0.05)
            x.rst()
        elif end == "fin" or framing != "chunked":
            x.fin()
        else:
            x.send(b"0\r\n\r\n")

    return act


def raw(data, end="fin", gap=0.0, how="whole"):
    """Bytes as they are, head included."""

    def act(x):
        for i, part in enumerate(pieces(data, how)):
            if i:
                x.pause(gap)
            x.send(part)
        x.finishing()
        {"fin": x.fin, "hold": x.hold, "keep": lambda: None}[end]() if end != "rst" else (
            x.pause(0.05),
            x.rst(),
        )

    return act


def hang(seconds=LONGEST):
    """Read the request and never answer."""
    return lambda x: x.hold(seconds)


def close(delay=0.0):
    """Read the whole request, then FIN without an answer."""

    def act(x):
        x.pause(delay)
        x.fin()

    return act


def reset(delay=0.0):
    def act(x):
        x.pause(delay)
        x.rst()

    return act


def early(action):
    """Run `action` when the head has come, before the body is read."""

    def act(x):
        action(x)

    act.early = True
    return act


def sse(events):
    """Events as `data:` lines; dicts become compact JSON, strings stay, bytes are raw."""
    out = b""
    for event in events:
        out += event if isinstance(event, bytes) else b"data: " + _bytes(event) + b"\n\n"
    return out


# Valid answers -----------------------------------------------------------------------------------

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


def chat_answer(text="hi", model="m1", usage=USAGE, finish="stop", **extra):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": usage,
        **extra,
    }


def chunk(delta=None, finish=None, model="m1", **extra):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": model,
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
        **extra,
    }


def usage_chunk(usage=USAGE, model="m1"):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": model,
        "choices": [],
        "usage": usage,
    }


def chat_chunks(*texts, usage=False, done=True, role=True, finish="stop", model="m1"):
    """The events of a chat stream: role, one for each text, the finish, the usage, [DONE]."""
    out = [chunk({"role": "assistant", "content": ""}, model=model)] if role else []
    out += [chunk({"content": t}, model=model) for t in texts]
    out += [chunk({}, finish, model=model)] if finish else []
    out += [usage_chunk(model=model)] if usage else []
    return out + (["[DONE]"] if done else [])


def ok(text="hi"):
    """The right answer to whatever was asked: plain or streamed chat, completion, embedding,
    moderation.
    """

    def act(x):
        path = x.request.target.split("?")[0]
        try:
            asked = x.request.json()
        except ValueError:
            asked = {}
        model = asked.get("model", "m1")
        if path.endswith("/embeddings"):
            body = {
                "object": "list",
                "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                "model": model,
                "usage": {"prompt_tokens": 7, "total_tokens": 7},
            }
        elif path.endswith("/moderations"):
            body = {
                "id": "modr-1",
                "model": model,
                "results": [{"flagged": False, "categories": {}}],
            }
        elif path.endswith("/chat/completions") and asked.get("stream"):
            usage = (asked.get("stream_options") or {}).get("include_usage")
            return stream(chat_chunks(text, usage=bool(usage), model=model))(x)
        elif path.endswith("/completions") and "prompt" in asked:
            body = {
                "id": "cmpl-1",
                "object": "text_completion",
                "created": 1700000000,
                "model": model,
                "choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": "stop"}],
                "usage": USAGE,
            }
        else:
            body = chat_answer(text, model)
        return plain(body)(x)

    return act


def slow(seconds, action=None):
    """Think first, then act."""

    def act(x):
        x.pause(seconds)
        (action or ok())(x)

    return act


def error(status, code=None, message="boom", headers=(), type=None, **kw):
    """An error in OpenAI's envelope."""
    return plain(
        {"error": {"message": message, "type": type, "param": None, "code": code}},
        status,
        headers,
        **kw,
    )
