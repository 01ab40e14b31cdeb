#!/usr/bin/python3
"""A stand-in for an LLM provider: prints its port, then answers chats word by word.

The account with key-beta is rate-limited.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from lib import answers, upstream  # noqa: E402
from lib.upstream import wait_until  # noqa: E402

WORDS = """Each word of this answer reached you as it was made, through your own web server,
by way of a pool of accounts."""


def answer(x):
    asked = x.request.json()
    if not asked.get("stream"):
        return answers.ok("hello")(x)
    words = [w + " " for w in WORDS.split()]
    usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    return answers.stream(answers.chat_chunks(*words, usage=usage), how="events", gap=0.08)(x)


up = upstream.Upstream()
up.default(answer)
up.default(
    answers.error(
        429, "rate_limit_exceeded", "Rate limit reached, try again in 2m0s", {"Retry-After": "120"}
    ),
    "key-beta",
)
print(up.port, flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
up.stop()
