"""recorded - the providers' recorded answers, replayed as the question's text asks.

"replay NAME SEED": the stream, cut at random places; "object NAME": the plain answer, recorded or
what a client made of the stream; "cut NAME": half of the stream, and the end.
"""

import glob
import json
import os
import random

import stage as st
from lib import answers, wires

STREAMS = os.path.join(st.ROOT, "tests", "data", "streams")
CUTS = 40
CHUNKS = {
    "chat": ["groq-tool-call", "mistral-text", "moonshotai-stream", "xai-tool-call"]
    + ["alibaba-tool-call", "deepseek-tool-call"],
    "messages": ["anthropic-text", "anthropic-message-delta-input-tokens"]
    + ["duplicate-message-start", "spliced-message-start"],
    "responses": ["lmstudio-basic.1", "openai-reasoning-encrypted-content.1"],
}
PLAIN = {
    "chat": ["openai/chat-simple.resp", "zhipu/chat-simple.resp"]
    + [f"vercel-ai-chunks/{n}" for n in ("alibaba-tool-call", "moonshotai-tool-call")]
    + ["vercel-ai-chunks/deepseek-text"],
    "messages": ["anthropic/messages-simple.resp"],
    "responses": ["openai/responses-simple.resp"],
}
FILES = {
    "chat": ["*/chat-*", "kimi/*"],
    "messages": ["*/messages-*"],
    "responses": ["*/responses-*"],
}


def _read(name):
    with open(os.path.join(STREAMS, name), "rb") as f:
        return f.read()


def _framed(wire, lines):
    """Payload lines as events; those of chat end as its streams do."""
    out = b""
    for line in lines.splitlines():
        if line.strip() and wire != "chat":
            out += b"event: %s\n" % json.loads(line)["type"].encode()
        out += b"data: " + line + b"\n\n" if line.strip() else b""
    return out + (b"data: [DONE]\n\n" if wire == "chat" else b"")


def streams(wire):
    """{name: bytes} of the streams of an API."""
    found = sorted(p for g in FILES[wire] for p in glob.glob(f"{STREAMS}/{g}.resp.sse"))
    names = [os.path.relpath(p, STREAMS) for p in found]
    out = {n: _read(n) for n in names}
    for name in CHUNKS[wire]:
        parts = _answers(_read(f"vercel-ai-chunks/{name}.chunks.txt"))
        out |= {name + ("" if i == 0 else f"#{i}"): _framed(wire, p) for i, p in enumerate(parts)}
    return out


def _answers(lines):
    """A file may hold those of several questions."""
    first = b'{"type":"response.created"'
    head, *parts = lines.split(first)
    return ([head] if head else []) + [first + p for p in parts]


def objects(wire):
    return {name: _read(name + ".json") for name in PLAIN[wire]}


class Replayer:
    """An upstream's action."""

    def __init__(self, wire):
        self.wire, self.streams, self.objects = wire, streams(wire), objects(wire)

    def __call__(self, x):
        text, _ = wires.said(self.wire, x.request.json())
        what, name, *seed = text.split(" ")
        getattr(self, "_" + what)(name, *seed)(x)

    def _replay(self, name, seed):
        body = self.streams[name]
        chance = random.Random(f"{name} {seed}")
        cuts = sorted(chance.sample(range(1, len(body)), min(CUTS, len(body) - 1)))
        return answers.stream(body, how=cuts, gap=0.0002)

    def _object(self, name):
        return answers.plain(self.objects[name])

    def _cut(self, name):
        body = self.streams[name]
        return answers.stream(body[: body.index(b"\n\n", len(body) // 2) + 2], end="fin")

    def _fault(self, status, code):
        kinds = {"400": "invalid_request_error", "429": "rate_limit_error", "500": "api_error"}
        kinds |= {"401": "authentication_error", "404": "not_found_error"}
        code = None if code == "-" else code
        return answers.plain(
            wires.fault(self.wire, f"model: told {status}", kinds[status], code), int(status)
        )
