"""Waiting for room (SPEC 7 a): in line over all processes, woken when a lease is freed, gone when it
is pointless.
"""

import glob
import os
import signal
import time

from lib.answers import error, hang, slow
from lib.upstream import wait_until
from lib.pool import K1, K2, key
from test_10_pick import FLAT, together
from test_60_workers import kill, worker_of

ONE = {"max_in_flight": 1, "queue_size": 8, "queue_timeout": "5s"}
STEP = 0.08  # between two that shall stand in line in this order


def line_up(g, n, first=0, **extra):
    """n requests that wait, one behind the other; `user` numbers them."""
    out = []
    for i in range(first, first + n):
        out.append(g.open(stream=False, user=str(i), **extra))
        time.sleep(STEP)
    return out


def order(up):
    return [int(r.json()["user"]) for r in up.requests if "user" in r.json()]


def sockets(pid):
    n = 0
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            n += os.readlink(fd).startswith("socket:")
        except OSError:
            pass
    return n


def waiter_of(g, up):
    """The one worker that has a client but no upstream connection."""
    running = worker_of(g, up)
    idle = min(sockets(p) for p in g.worker_pids())
    (waiter,) = [p for p in g.worker_pids() if p != running and sockets(p) > idle]
    return waiter


def test_waits_and_is_served(up, gate):
    up.default(slow(0.4))
    g = gate(accounts=1, workers=3, pool=ONE)
    answers = together(3, lambda i: g.ask())
    assert [a.status for a in answers] == [200] * 3
    assert up.max_in_flight[K1] == 1
    assert all(a.header("X-Sluice-Attempts") == "1" for a in answers)
    g.assert_clean()


def test_first_come_first_served(up, gate):
    up.script(K1, slow(1.0))
    g = gate(accounts=1, workers=8, pool=ONE)
    answers = line_up(g, 7)
    assert [a.finish().status for a in answers] == [200] * 7
    assert order(up) == list(range(7))


def test_who_comes_at_the_release_goes_behind(up, gate):
    """A newcomer finds the account free, but others wait for it: here one whose process is slow to
    wake up.
    """
    up.script(K1, slow(0.7))
    g = gate(accounts=1, workers=4, pool=ONE)
    first = g.open(stream=False, user="0")
    up.wait_for(1)
    (second,) = line_up(g, 1, 1)
    sleeper = waiter_of(g, up)
    os.kill(sleeper, signal.SIGSTOP)
    try:
        assert first.finish().status == 200
        third = g.open(stream=False, user="2")
        time.sleep(0.4)
        assert up.count() == 1, "somebody did not wait for its turn"
    finally:
        os.kill(sleeper, signal.SIGCONT)
    assert [a.finish().status for a in (second, third)] == [200, 200]
    assert order(up) == [0, 1, 2]


def test_size_bound(up, gate):
    up.script(K1, slow(0.8))
    g = gate(accounts=1, workers=6, pool={**ONE, "queue_size": 2})
    served = line_up(g, 3)
    for _ in range(2):
        a = g.ask()
        assert (a.status, a.header("Retry-After")) == (429, "1")
        assert (a.error["code"], a.header("X-Sluice-Attempts")) == ("pool_exhausted", "0")
        assert a.header("X-Sluice-Account") is None
        assert a.took < 0.4
    assert [a.finish().status for a in served] == [200] * 3
    assert order(up) == [0, 1, 2]


def test_size_bound_is_exact_over_processes(up, gate):
    up.default(slow(0.5))
    g = gate(accounts=1, workers=12, pool={**ONE, "queue_size": 3})
    answers = together(10, lambda i: g.ask())
    assert sorted(a.status for a in answers) == [200] * 4 + [429] * 6
    assert up.count() == 4


def test_time_out(up, gate):
    up.default(slow(1.2))
    g = gate(accounts=1, workers=4, pool={**ONE, "queue_timeout": "400ms"})
    first = g.open(stream=False)
    up.wait_for(1)
    a, b = together(2, lambda i: g.ask())
    for late in (a, b):
        assert (late.status, late.header("Retry-After")) == (429, "1")
        assert late.error["code"] == "pool_exhausted"
        assert late.header("x-should-retry") is None
        assert 0.38 < late.took < 0.8
    assert first.finish().status == 200
    assert g.ask().status == 200  # their places are free
    g.assert_clean()


def test_a_client_that_leaves_frees_its_place(up, gate):
    up.script(K1, slow(1.2))
    g = gate(accounts=1, workers=5, pool={**ONE, "queue_size": 1})
    first = g.open(stream=False, user="0")
    up.wait_for(1)
    (second,) = line_up(g, 1, 1)
    assert g.ask().status == 429
    second.close()
    time.sleep(0.25)
    third = g.open(stream=False, user="3")
    time.sleep(STEP)
    assert g.ask().status == 429  # the third stands there now
    assert [first.finish().status, third.finish().status] == [200, 200]
    assert order(up) == [0, 3]
    g.assert_clean()


def test_a_client_that_leaves_holds_nobody_up(up, gate):
    up.script(K1, slow(0.6))
    g = gate(accounts=1, workers=5, pool=ONE)
    answers = line_up(g, 4)
    answers[1].close()
    assert [answers[i].finish().status for i in (0, 2, 3)] == [200] * 3
    assert order(up) == [0, 2, 3]


def test_a_killed_waiter_is_skipped(up, gate):
    """The master stands still, so that nobody takes over the dead worker's place."""
    up.script(K1, slow(1.0))
    g = gate(accounts=1, workers=4, pool={**ONE, "queue_timeout": "10s"}, allow=["worker"])
    first = g.open(stream=False, user="0")
    up.wait_for(1)
    second = line_up(g, 1, 1)
    waiter = waiter_of(g, up)
    third = g.open(stream=False, user="2")
    time.sleep(STEP)
    g.signal(signal.SIGSTOP)
    try:
        kill(waiter)
        assert first.finish().status == 200
        a = third.finish(3)
    finally:
        g.signal(signal.SIGCONT)
    assert a.status == 200
    wait_until(lambda: up.requests[0].done_at, 2, "the provider has ended its first answer")
    assert up.requests[1].at - up.requests[0].done_at < 0.6
    assert order(up) == [0, 2]
    assert second[0].finish().end is None
    assert g.ask().status == 200


def test_a_killed_holder_is_replaced_by_who_waits(up, gate):
    """No time-out to wait for: the next look finds the dead."""
    up.script(K1, hang())
    g = gate(accounts=1, workers=3, pool=ONE, allow=["worker"])
    dying = g.open(stream=False)
    up.wait_for(1)
    (waiting,) = line_up(g, 1)
    kill(worker_of(g, up))
    t = time.monotonic()
    assert waiting.finish().status == 200
    assert time.monotonic() - t < 0.8
    assert dying.finish().end is None
    g.assert_clean()


def test_woken_at_once(up, gate):
    """Not by looking every quarter of a second."""
    up.default(slow(0.1))
    g = gate(accounts=1, workers=8, pool=ONE)
    assert all(a.status == 200 for a in together(8, lambda i: g.ask()))
    gaps = sorted(b.at - a.done_at for a, b in zip(up.requests, up.requests[1:]))
    assert gaps[len(gaps) // 2] < 0.06, gaps
    assert gaps[-1] < 0.25, gaps


def test_a_cooldown_that_ends_serves_who_waits(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    up.script(K2, slow(0.1), slow(3.0))
    g = gate(accounts=2, workers=4, pool=ONE)
    assert g.ask().header("X-Sluice-Account") == "A2"
    busy = g.open(stream=False)
    up.wait_for(3)
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A1")
    assert a.took < 2
    assert busy.finish().status == 200


def test_pointless_waiting_ends(up, gate):
    """Who waits learns at the release that the account rests now, and leaves the queue."""
    up.script(K1, slow(0.4, error(429, headers={"Retry-After": "300"})))
    g = gate(accounts=1, workers=4, pool={**ONE, "queue_timeout": "4s"})
    first = g.open(stream=False)
    up.wait_for(1)
    waiting = line_up(g, 2)
    assert first.finish().status == 429
    for a in waiting:
        a.finish()
        assert (a.status, a.error["code"]) == (429, "pool_exhausted")
        assert 295 <= int(a.header("Retry-After")) <= 300
        assert a.took < 1.5
    g.ctl("account", "clear", "A1")
    for _ in range(6):  # whichever worker takes it: nobody stands there any more
        a = g.ask()
        assert a.status == 200 and a.took < 0.5, (a.out, a.took)


def test_others_are_not_held_up(up, gate):
    """Who waits for an account that serves his model does not stand in the way of other models."""
    up.default(slow(0.8), K1)
    g = gate(
        workers=4,
        accounts=2,
        pool=ONE,
        account={"A1": {"models": ["m1"]}, "A2": {"models": ["m2"]}},
    )
    first = g.open(stream=False)
    up.wait_for(1)
    (waiting,) = line_up(g, 1)
    a = g.ask(model="m2")
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert a.took < 0.4
    assert first.finish().status == waiting.finish().status == 200


def test_a_retry_waits_for_who_was_not_tried(up, gate):
    """Its only other account is full: the second attempt waits for that one."""
    up.script(K1, error(401, "invalid_api_key"))
    up.script(K2, slow(0.6))
    g = gate(
        accounts=2, workers=3, pool=ONE, account={"A2": {"priority": 0}, "A1": {"priority": 1}}
    )
    first = g.open(stream=False)
    up.wait_for(1, K2)
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == (
        200,
        "A2",
        "2",
    )
    assert first.finish().status == 200


def test_each_channel_has_its_queue(up, gate):
    up.default(slow(0.8), K1)
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [{"id": "B1", "api_key": key(11)}],
        }
    }
    g = gate(accounts=1, workers=4, pool=ONE, channel={"models": ["m1"]}, channels=more)
    answers = line_up(g, 2)
    a = g.ask(model="other")
    assert a.status == 200 and a.took < 0.4
    assert [x.finish().status for x in answers] == [200] * 2


def test_other_strategies_wait_too(up, gate):
    up.default(slow(0.3))
    g = gate(accounts=2, workers=6, pool={**ONE, "strategy": "round-robin"}, **FLAT)
    assert [a.status for a in together(6, lambda i: g.ask())] == [200] * 6
    assert (up.count(K1), up.count(K2)) == (3, 3)
    assert max(up.max_in_flight.values()) == 1


def test_sigterm_while_one_waits(up, gate):
    """SPEC 2: running answers may finish; who only waits is sent away at once."""
    up.script(K1, slow(1.0))
    g = gate(accounts=1, workers=3, pool={**ONE, "queue_timeout": "30s"})
    first = g.open(stream=False)
    up.wait_for(1)
    (waiting,) = line_up(g, 1)
    t = time.monotonic()
    g.master.terminate()
    waiting.finish(4)
    assert (waiting.status, waiting.header("Retry-After")) == (429, "1")
    assert time.monotonic() - t < 0.5
    assert first.finish(4).status == 200
    g.master.wait(4)
    assert up.count() == 1
