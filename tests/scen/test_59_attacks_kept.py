"""Attacks on what is kept of responses, and on forms: processes killed, ids that collide, bodies that two readers
would understand in two ways.
"""

import fcntl
import os
import random
import re
import signal
import threading
import time

import pytest

from lib import wires
from lib.answers import plain, stream
from lib.upstream import wait_until
from lib.wires import ask


def post(g, text="Hi", streamed=False, params=None, **extra):
    return g.send(ask("responses", streamed, text=text, **extra), path="/v1/responses", **(params or {}))


def doc(id, text="yes"):
    return {**wires.answer("responses", text), "id": id, "store": True}


def test_killed_while_saving(up, gate):
    """What a client has seen the end of is there, whoever was killed."""
    g = gate(accounts=1, workers=16, channel={"wire": "chat"}, pool={"max_in_flight": 100},
             allow=["worker", "killed", "ended", "signal", "kept", "slot", "lease"])
    seen, stop = [], threading.Event()

    def client(n):
        while not stop.is_set():
            try:
                a = post(g, "x" * 100_000).finish(20)
                if a.status == 200:
                    seen.append(a.json()["id"])
            except Exception:
                pass

    threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
    [t.start() for t in threads]
    end = time.monotonic() + 3
    while time.monotonic() < end:
        time.sleep(0.1)
        pids = g.worker_pids()
        if pids:
            try:
                os.kill(random.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass
    stop.set()
    [t.join(30) for t in threads]
    assert len(seen) > 20
    missing = [i for i in seen if g.get("/v1/responses/" + i).status != 200]
    assert missing == []


def test_64_at_once(up, gate):
    g = gate(accounts=1, workers=64, channel={"wire": "chat"}, pool={"max_in_flight": 100})
    seen = []

    def client(n):
        for _ in range(4):
            a = post(g, "x" * 300_000).finish(60)
            seen.append((a.status, a.json().get("id")))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(64)]
    [t.start() for t in threads]
    [t.join(90) for t in threads]
    assert {s for s, _ in seen} == {200}
    missing = [i for _, i in seen if g.get("/v1/responses/" + i).status != 200]
    assert missing == []


def test_chain(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"}, pool={"max_in_flight": 100})
    prev, times = None, []
    for i in range(250):
        t = time.monotonic()
        a = post(g, f"turn {i} " + "x" * 200, **({"previous_response_id": prev} if prev else {})).finish(20)
        times.append(time.monotonic() - t)
        assert a.status == 200, a.out
        prev = a.json()["id"]
    assert sum(times[-20:]) < 20 * sum(times[:20]) + 1, "linear in what is said"
    assert len(up.last.json()["messages"]) == 499


@pytest.mark.parametrize("body", [
    '{"model":"m1","input":"a","previous_response_id":"%(a)s","previous_response_id":"resp_bob"}',
    '{"model":"m1","input":"a","previous_response_id":"resp_bob","previous_response_id":"%(a)s"}',
    '{"model":"m1","input":"a","previous_response_id":"%(a)s","previous\\u005fresponse_id":"resp_bob"}',
    '{"model":"m1","input":"a","previous\\u005fresponse_id":"resp_bob"}',
    '{"model":"m1","input":"a","previous_response_id":null,"previous_response_id":"resp_bob"}',
    '{"model":"m1","input":"a","previous_response_id":"resp_bob","previous_response_id":null}',
])
def test_twice(up, gate, body):
    """Whatever the host would take: never an id that is not this client's."""
    g = gate(accounts=1, channel={"wire": "responses"})
    up.default(plain(doc("resp_alice")))
    a = post(g).finish()
    assert a.status == 200
    n = up.count()
    a = g.send((body % {"a": "resp_alice"}).encode(), path="/v1/responses").finish()
    assert up.count() == n or b"resp_bob" not in up.last.body


@pytest.mark.parametrize("id", ["a" * 512, "a" * 513, "..", "a/b", "x\u0000y", "\U0001f600", "a b", "a%2Fb", "", 'q"\\', "a?b", "input_items"])
def test_odd_ids(up, gate, id):
    g = gate(accounts=1, channel={"wire": "responses"})
    up.default(plain(doc(id)))
    a = post(g).finish()
    assert a.status == 200 and a.json()["id"] == id
    b = post(g, previous_response_id=id).finish()
    assert b.status in (200, 400)


def test_collides(up, gate):
    """Two clients get the same id from the host: each has its own."""
    g = gate(accounts=1, channel={"wire": "responses"}, auth={"mode": "web-server"})
    alice, bob = {"REMOTE_USER": "alice"}, {"REMOTE_USER": "bob"}
    up.default(plain(doc("resp_same", "for alice")))
    assert post(g, params=alice).finish().status == 200
    up.default(plain(doc("resp_same", "for bob")))
    assert post(g, params=bob).finish().status == 200
    assert b"for alice" in g.get("/v1/responses/resp_same", **alice).body
    assert b"for bob" in g.get("/v1/responses/resp_same", **bob).body
    assert g.get("/v1/responses/resp_same", method="DELETE", **bob).status == 200
    assert g.get("/v1/responses/resp_same", **bob).status == 404
    assert g.get("/v1/responses/resp_same", **alice).status == 200


def test_huge_id(up, gate):
    g = gate(accounts=1, channel={"wire": "responses"})
    t = time.monotonic()
    a = post(g, previous_response_id="\u0001" * 1_000_000).finish()
    assert a.status == 400 and len(a.body) < 2000 and up.count() == 0
    a = post(g, previous_response_id="r" * 1_000_000).finish()
    assert a.status == 400 and len(a.body) < 2000 and up.count() == 0
    assert time.monotonic() - t < 2


def test_deleted_in_use(up, gate):
    g = gate(accounts=1, channel={"wire": "chat"}, pool={"max_in_flight": 10})
    first = post(g, "one").finish().json()["id"]
    up.default(stream(b"".join(wires.events("chat", "two")), "events", gap=0.1))
    o = post(g, "two", True, previous_response_id=first)
    up.wait_for(2)  # the history is read
    assert g.get("/v1/responses/" + first, method="DELETE").status == 200
    o.finish()
    id = re.search(rb'"id":"(resp_[^"]*)"', o.body).group(1).decode()
    items = g.get("/v1/responses/" + id + "/input_items").json()["data"]
    assert len(items) == 3


def test_stopped_in_the_book(up, gate):
    """A process that is stopped with the lock of `book`: after the first, nobody waits long for it."""
    g = gate(accounts=1, channel={"wire": "chat"}, allow=["kept", "saving", "book"])
    id = post(g).finish().json()["id"]
    with open(g.dir + "/state/book.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wait_until(lambda: "saving failed" in g.log_text(), 20, "it is noticed")
        began = time.monotonic()
        for _ in range(3):
            assert post(g).finish().status == 200
            assert g.get("/v1/responses/" + id).status == 503
            assert post(g, previous_response_id=id).finish().status == 503
            assert g.ask().status == 200
        assert time.monotonic() - began < 2
    assert g.get("/v1/responses/" + id).status == 200


def test_damaged(up, gate):
    """Damage in the texts: nothing wrong is given out, and what comes after is kept again."""
    g = gate(accounts=1, workers=2, channel={"wire": "chat"}, allow=["kept"])
    ids = [post(g, "needle%d " % i + "x" * 200_000).finish().json()["id"] for i in range(5)]
    path = g.dir + "/state/book/data.mdb"
    data = open(path, "rb").read()
    with open(path, "r+b") as f:
        at = -1
        while (at := data.find(b"x" * 3000, at + 1)) >= 0:
            f.seek(at + 100)
            f.write(b"damaged")
            at += 3000
    for i in ids:
        for path in ("", "/input_items"):
            a = g.get("/v1/responses/" + i + path)
            assert a.status == 404 and b"damaged" not in a.body
    assert post(g, previous_response_id=ids[0]).finish().status == 400
    new = [post(g).finish().json()["id"] for _ in range(6)]
    got = [g.get("/v1/responses/" + i).status for i in new]
    assert got == [200] * 6
