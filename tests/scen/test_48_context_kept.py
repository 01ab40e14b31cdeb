"""What is kept of conversations, whoever is killed, and `sluicectl context`."""

import json
import os
import random
import signal
import stat
import threading
import time

from lib.pool import key
from test_47_context import ON, lines, open_talk, talk

CLIENTS = 6
KILLS = 25


def export(g, session, client=None):
    """(role, text) of the turns that are kept."""
    words = ["--client", client] if client else []
    doc = json.loads(g.ctl("context", "export", *words, "--id", session).stdout)
    return [(t["role"], t["parts"][0]["text"]) for t in doc["turns"]]


def test_killed_while_appending(up, gate):
    """What was acknowledged is there and in order, and never half an exchange."""
    g = gate(
        accounts=1,
        workers=8,
        context=ON,
        pool={"max_in_flight": 100},
        allow=["worker", "killed", "ended", "signal", "slot", "lease", "kept"],
    )
    done, stop = {n: [] for n in range(CLIENTS)}, threading.Event()

    def client(n):
        i = 0
        while not stop.is_set():
            i += 1
            try:
                a = open_talk(g, f"{i}", session=f"s{n}", streamed=i % 2 == 0).finish(20)
                whole = a.status == 200 and (i % 2 == 1 or b"[DONE]" in a.body)
            except Exception:  # its worker was killed
                continue
            if whole:
                done[n].append(f"{i}")

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    [t.start() for t in threads]
    dice, kills, end = random.Random(1), 0, time.monotonic() + 10
    while kills < KILLS and time.monotonic() < end:
        time.sleep(0.06)
        try:
            os.kill(dice.choice(g.worker_pids()), signal.SIGKILL)
            kills += 1
        except (ProcessLookupError, IndexError):
            pass
    stop.set()
    [t.join(30) for t in threads]
    assert kills == KILLS and sum(map(len, done.values())) > 40
    for n in range(CLIENTS):
        turns = export(g, f"s{n}") if done[n] else []
        assert [role for role, _ in turns] == ["user", "assistant"] * (len(turns) // 2)
        asked = [text for role, text in turns if role == "user"]
        assert asked == sorted(set(asked), key=int)
        assert [text for text in done[n] if text not in asked] == []


def test_sluicectl(up, gate):
    g = gate(accounts=1, context=ON)
    talk(g, "one\x1b[2J", session="a")
    talk(g, "two", session="a")
    talk(g, "three", session="b")
    rows = json.loads(g.ctl("context", "list", "--json").stdout)
    assert [(r["client"], r["turns"]) for r in rows] == [("", 2), ("", 4)]
    a = rows[1]["session"]
    assert a in {l.get("session") for l in g.logs()}
    shown = g.ctl("context", "show", a).stdout
    assert "user       one?[2J\nassistant  hi\nuser       two\n" in shown
    assert json.loads(g.ctl("context", "show", a[:8], "--json").stdout) == json.loads(
        g.ctl("context", "export", "--id", "a").stdout
    )
    path = os.path.join(g.dir, "copy.json")
    g.ctl("context", "export", a, "-o", path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path) as f:
        text = f.read()
    assert [t["role"] for t in json.loads(text)["turns"]] == ["user", "assistant"] * 2
    assert key(1) not in text
    assert g.ctl("context", "drop", "--id", "a").stdout == "1 dropped\n"
    talk(g, "four", session="a")
    assert lines(up.last.json()) == ["four"]
    assert g.ctl("context", "drop", "--all").stdout == "2 dropped\n"
    assert json.loads(g.ctl("context", "list", "--json").stdout) == []
