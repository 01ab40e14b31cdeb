"""Conversations that the gateway keeps: X-Context: append, whatever serves next (SPEC 13)."""

import json
import os
import signal
import threading
import time

import pytest

from lib import answers, wires
from lib.answers import error, plain, stream
from lib.pool import K1, K2, config, key
from lib.upstream import wait_until
from lib.wires import serve

ON = {"enabled": True}
CLIENTS = ["chat", "messages"]
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
clients = pytest.mark.parametrize("client", CLIENTS)


def open_talk(g, text="one", client="chat", session="s1", streamed=False, params=None, **extra):
    """A request of the conversation `session`; its answer is not read yet."""
    body = wires.ask(client, streamed, text=text, **extra)
    headers = [("X-Session-Id", session), ("X-Context", "append")]
    return g.send(body, path=wires.path(client), headers=headers, **(params or {}))


def talk(g, text="one", client="chat", **vary):
    answer = open_talk(g, text, client, **vary).finish()
    assert answer.status == 200, answer.out
    return answer


def turns(body):
    """(role, text) of what an upstream of any API was asked."""
    out = []
    if body.get("system"):
        system = body["system"]
        out.append(("system", system if isinstance(system, str) else text_of(system)))
    for t in body.get("messages") or body["input"]:
        out.append((t.get("role") or t["type"], text_of(t.get("content"))))
    return out


def text_of(content):
    if content is None or isinstance(content, str):
        return content
    return "".join(p.get("text", "") for p in content)


def numbered(wire):
    """The request's number is the answer's text."""
    state = {"n": 0}

    def act(x):
        state["n"] += 1
        return serve(wire, f"answer {state['n']}")(x)

    return act


@clients
@pytest.mark.parametrize("wire", wires.WIRES)
@modes
def test_appended(up, gate, client, wire, streamed):
    g = gate(accounts=1, channel={"wire": wire}, context=ON)
    up.default(numbered(wire))
    for text in ("one", "two", "three"):
        talk(g, text, client, streamed=streamed)
    assert turns(up.last.json()) == [
        ("user", "one"),
        ("assistant", "answer 1"),
        ("user", "two"),
        ("assistant", "answer 2"),
        ("user", "three"),
    ]
