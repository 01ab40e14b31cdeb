"""Attacks on conversations that are kept: taken away while they are used, calls that nobody can answer, bombs of
many small things.
"""

import json

from lib.pool import K1
from lib.wires import serve
from test_47_context import CALL, ON, headers, lines, talk


def late(action):
    """The action, once it is let go."""
    state = {"go": False}

    def act(x):
        while not state["go"]:
            x.pause(0.01)
        action(x)

    return act, lambda: state.update(go=True)


def result(g, id="call_1", text="done"):
    """The result of the call that the conversation ends with; its answer is not read yet."""
    message = {"role": "tool", "tool_call_id": id, "content": text}
    return g.send({"model": "m1", "messages": [message]}, headers=headers())


def test_gone_meanwhile(up, gate):
    """Dropped, or evicted by others, while its next request is answered: that is no conversation's beginning."""
    g = gate(accounts=1, workers=3, context={**ON, "max_session": "100k", "max_total": "200k"})
    for how in ("dropped", "evicted"):
        up.script(K1, serve("chat", "", CALL))
        talk(g, "do it", tools=True)
        act, go = late(serve("chat", "it is done"))
        up.script(K1, act)
        n = up.count()
        o = result(g)
        up.wait_for(n + 1)
        if how == "dropped":
            g.ctl("context", "drop", "--id", "s1")
        for i in range(4 if how == "evicted" else 0):
            talk(g, "x" * 60000, session=f"other {i}")
        go()
        a = o.finish()
        assert (a.status, a.header("x-sluice-context")) == (200, "not-kept"), how
        rows = json.loads(g.ctl("context", "list", "--json").stdout)
        assert all(r["bytes"] > 60000 for r in rows), rows
    talk(g, "anew")
    assert lines(up.last.json()) == ["anew"]
