"""What must hold exactly, whatever 4 to 16 real processes do at once (SPEC 7, 9, 15): limits, order,
fairness, sums. Choices of the tests come from fixed seeds.
"""

import collections
import json
import os
import random
import signal
import threading
import time

import pytest

from lib.answers import USAGE, chat_answer, error, ok, plain, slow
from lib.pool import K1, K2, key
from lib.upstream import wait_until
from test_10_pick import FLAT, together

CALM = {"breaker": {"threshold": 999}, "channel_breaker": {"triggers": []}}


class Dice:
    """A seeded generator for many threads."""

    def __init__(self, seed):
        self._random, self._lock = random.Random(seed), threading.Lock()

    def __call__(self):
        with self._lock:
            return self._random.random()


def loops(threads, rounds, fn):
    """fn(thread, round) in so many threads, so many times each; all results."""
    out = together(threads, lambda i: [fn(i, n) for n in range(rounds)])
    return [x for row in out for x in row]


def mixed(dice, fail=0.15, longest=0.03):
    """An upstream of every mood: quick, slow, streaming as asked, failing."""

    def act(x):
        mood = dice()
        if mood < fail / 3:
            action = error(500)
        elif mood < fail * 2 / 3:
            action = error(429, headers={"retry-after-ms": "60"})
        elif mood < fail:
            action = error(503)
        else:
            action = ok()
        return slow(dice() * longest, action)(x)

    return act


def chi_square(counts, expected):
    return sum((c - e) ** 2 / e for c, e in zip(counts, expected))


def counters(g):
    """Sums over all accounts."""
    rows = g.accounts().values()
    sums = {k: sum(a[k] for a in rows) for k in ("calls", "success", "errors", "in_flight")}
    for k in ("prompt", "completion"):
        sums[k] = sum(a["tokens"][k] for a in rows)
    return sums


def attempts(g):
    """All attempts of the log, as (account, kind)."""
    return [
        (a["account"], a["kind"])
        for line in g.logs()
        if line.get("msg") == "request"
        for a in line["attempts"]
    ]


# In flight -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seed,strategy", [(1, "adaptive"), (2, "round-robin"), (3, "least-in-flight")]
)
def test_never_above_the_limit(up, gate, seed, strategy):
    limits = {"A1": 1, "A2": 2, "A3": 3, "A4": 1, "A5": 2}
    dice = Dice(seed)
    up.default(mixed(dice))
    g = gate(
        accounts=5,
        workers=12,
        account={id: {"max_in_flight": n} for id, n in limits.items()},
        pool={"strategy": strategy, "queue_size": 32, "queue_timeout": "5s", "min_pick_gap": "0s"},
        cooldown={"overload": "50ms"},
        **CALM,
        **FLAT,
    )
    answers = loops(12, 15, lambda i, n: g.ask(stream=dice() < 0.5))
    assert {a.status for a in answers} <= {200, 429, 502, 503}
    assert sum(a.status == 200 for a in answers) > 60
    for id, limit in limits.items():
        k = key(int(id[1:]))
        assert up.max_in_flight.get(k, 0) <= limit, (id, up.max_in_flight)
    sums = counters(g)
    assert sums["in_flight"] == 0
    assert sums["calls"] == up.count() == sum(int(a.header("X-Sluice-Attempts")) for a in answers)
    kinds = collections.Counter(kind for _, kind in attempts(g))
    assert sums["success"] == kinds["ok"] == sum(a.status == 200 for a in answers)
    assert sums["errors"] == kinds["server"] + kinds["soft_rate"]
    assert sums["calls"] == sum(kinds.values())
    assert sums["prompt"] == 7 * kinds["ok"] and sums["completion"] == 2 * kinds["ok"]


def test_never_above_the_limit_while_workers_die(up, gate):
    """A new lease may overlap a dead worker's connection for a moment: that is one more, not two."""
    dice = Dice(4)
    up.default(mixed(dice, fail=0))
    g = gate(
        accounts=2,
        workers=8,
        pool={"max_in_flight": 2, "queue_size": 32, "queue_timeout": "5s", "min_pick_gap": "0s"},
        allow=["worker"],
        **CALM,
        **FLAT,
    )
    done = threading.Event()

    def killer():
        while not done.wait(0.12):
            pids = g.worker_pids()
            if pids:
                os.kill(pids[int(dice() * len(pids))], signal.SIGKILL)

    thread = threading.Thread(target=killer)
    thread.start()
    answers = loops(8, 20, lambda i, n: g.ask(stream=dice() < 0.5))
    done.set()
    thread.join()
    good = sum(bool(a.end) and a.status == 200 for a in answers)
    assert all(a.status == 200 for a in answers if a.end), {a.status for a in answers if a.end}
    assert good > 120
    assert max(up.max_in_flight.values()) <= 3, up.max_in_flight
    wait_until(lambda: g.in_flight() == 0, 2, "nothing in flight")
    sums = counters(g)
    assert good <= sums["success"] == sums["calls"] <= up.count()
    assert sums["prompt"] == 7 * sums["success"]
    g.assert_clean()


def test_kill_9_of_everything_in_the_middle(up, gate):
    dice = Dice(5)
    up.default(mixed(dice, fail=0))
    g = gate(accounts=3, workers=6, pool={"max_in_flight": 2, "min_pick_gap": "0s"}, **CALM, **FLAT)
    good = 0
    for _ in range(3):
        answers, stop = [], threading.Event()

        def client():
            while not stop.is_set():
                try:
                    answers.append(g.ask())
                except (OSError, AssertionError):
                    return

        threads = [threading.Thread(target=client) for _ in range(4)]
        [t.start() for t in threads]
        time.sleep(0.25)
        g.kill_all()
        stop.set()
        [t.join(10) for t in threads]
        good += sum(bool(a.end) and a.status == 200 for a in answers)
        g.start()
        sums = counters(g)
        assert sums["in_flight"] == 0
        assert good <= sums["success"] == sums["calls"] <= up.count()
    assert good > 30
    assert all(a.status == 200 for a in together(6, lambda i: g.ask()))
    g.assert_clean()


# Fairness ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["adaptive", "weighted-random"])
def test_equal_accounts_are_drawn_alike(up, gate, strategy):
    """Chi-square, 3 degrees of freedom: above 30.7 once in a million runs."""
    pool = {"strategy": strategy, "min_pick_gap": "0s", "max_in_flight": 0}
    g = gate(accounts=4, workers=4, pool=pool, **FLAT)
    loops(4, 100, lambda i, n: g.ask())
    counts = [up.count(key(n)) for n in range(1, 5)]
    assert sum(counts) == 400
    assert chi_square(counts, [100] * 4) < 30.7, counts


@pytest.mark.parametrize("strategy", ["adaptive", "weighted-random"])
def test_weights_are_followed(up, gate, strategy):
    pool = {"strategy": strategy, "min_pick_gap": "0s", "max_in_flight": 0}
    account = {f"A{n}": {"weight": n} for n in range(1, 5)}
    g = gate(accounts=4, workers=4, pool=pool, account=account, **FLAT)
    if strategy == "adaptive":  # idle time and success are unequal until each was asked
        while len(set(up.creds())) < 4:
            g.ask()
        up.clear()
    loops(4, 100, lambda i, n: g.ask())
    counts = [up.count(key(n)) for n in range(1, 5)]
    assert chi_square(counts, [40, 80, 120, 160]) < 30.7, counts


def test_nobody_starves(up, gate):
    """More accounts than the short list holds: each has its turn."""
    g = gate(accounts=12, workers=4, **FLAT)
    loops(4, 60, lambda i, n: g.ask())
    counts = [up.count(key(n)) for n in range(1, 13)]
    assert sum(counts) == 240 and min(counts) >= 5, counts


def test_round_robin_is_exact(up, gate):
    """Over eight processes, and over a kill -9 of all of them."""
    g = gate(accounts=5, workers=8, pool={"strategy": "round-robin", "max_in_flight": 0}, **FLAT)
    loops(8, 12, lambda i, n: g.ask())
    g.ask()
    g.kill_all()
    g.start()
    loops(8, 12, lambda i, n: g.ask())
    [g.ask() for _ in range(7)]
    assert [up.count(key(n)) for n in range(1, 6)] == [40] * 5


def smooth(weights, n):
    """The reference: each gains its weight, the largest is taken and pays the sum; of equal ones the
    one whose last turn is longest ago.
    """
    now, last, out = [0] * len(weights), [-1] * len(weights), []
    for turn in range(n):
        now = [a + b for a, b in zip(now, weights)]
        best = max(range(len(now)), key=lambda i: (now[i], -last[i]))
        now[best] -= sum(weights)
        last[best] = turn
        out.append(best + 1)
    return out


def test_smooth_round_robin_is_exact(up, gate):
    weights = [5, 3, 2]
    g = gate(
        workers=8,
        pool={"strategy": "weighted-round-robin", "max_in_flight": 0},
        account={f"A{n + 1}": {"weight": w} for n, w in enumerate(weights)},
        **FLAT,
    )
    for _ in range(20):
        g.ask()
        time.sleep(0.002)  # picks are told apart by the millisecond
    order = [int(k[3:5]) for k in up.creds()]
    assert order == smooth(weights, 20)
    up.clear()
    loops(8, 10, lambda i, n: g.ask())
    assert [up.count(key(n)) for n in (1, 2, 3)] == [40, 24, 16]


def test_least_recently_used_is_exact(up, gate):
    """In every run of five picks each of five accounts stands once."""
    g = gate(accounts=5, workers=4, pool={"strategy": "lru"}, **FLAT)
    for _ in range(25):
        g.ask()
        time.sleep(0.002)
    creds = up.creds()
    assert all(len(set(creds[i : i + 5])) == 5 for i in range(21))


# The queue -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [11, 12])
def test_queue_order_over_sixteen_processes(up, gate, seed):
    dice = random.Random(seed)
    up.script(K1, slow(1.4))
    up.default(slow(0.005))
    wait = {"max_in_flight": 1, "queue_size": 32, "queue_timeout": "10s"}
    g = gate(accounts=1, workers=16, pool=wait)
    waiting = []
    for n in range(14):
        waiting.append(g.open(stream=dice.random() < 0.5, user=str(n)))
        time.sleep(0.06 + dice.random() * 0.03)
    assert [a.finish().status for a in waiting] == [200] * 14
    assert [int(r.json()["user"]) for r in up.requests] == list(range(14))


def test_no_wake_up_is_lost(up, gate):
    """While somebody waits, no freed lease stays unused."""
    up.default(slow(0.02))
    wait = {"max_in_flight": 2, "queue_size": 32, "queue_timeout": "10s"}
    g = gate(accounts=1, workers=14, pool=wait)
    answers = loops(12, 8, lambda i, n: g.ask())
    assert [a.status for a in answers] == [200] * 96
    assert up.max_in_flight[K1] == 2
    starts = sorted(r.at for r in up.requests)
    gaps = sorted(b - a for a, b in zip(starts, starts[1:]))
    assert gaps[-1] < 0.2, gaps[-5:]
    assert max(a.took for a in answers) < 2.5


# Half-open -----------------------------------------------------------------------------------------


def test_half_open_budget_is_never_exceeded(up, gate):
    """Round after round over eight processes, all probes fail: at most two each time."""
    dice = Dice(21)
    up.script(K1, error(500), error(500))
    up.default(ok())
    up.default(lambda x: slow(0.02 + dice() * 0.05, error(500))(x), K1, K2)
    breaker = {
        "triggers": ["consecutive_fail"],
        "consecutive_fail": 2,
        "recovery_timeout": "150ms",
        "reopen": "150ms",
        "half_open_requests": 2,
        "half_open_success": 1,
    }
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [{"id": "B1", "api_key": key(11), "max_in_flight": 0}],
        }
    }
    g = gate(
        accounts=2,
        workers=8,
        pool={"max_in_flight": 0},
        breaker={"threshold": 999},
        channel={"fallback": ["ob"], "channel_breaker": breaker},
        channels=more,
        allow=[r"channel \["],
        upstream={"max_attempts": 2},
        **FLAT,
    )
    while not any("open: consecutive" in x["msg"] for x in g.logs()):
        assert g.ask().status == 200
    before = up.count(K1) + up.count(K2)
    up.max_in_flight.clear()
    until = time.monotonic() + 2
    answers = loops(8, 400, lambda i, n: g.ask() if time.monotonic() < until else None)
    answers = [a for a in answers if a]
    assert {a.status for a in answers} == {200}
    assert {a.header("X-Sluice-Channel") for a in answers} == {"ob"}
    rounds = sum("half-open:" in x.get("msg", "") for x in g.logs())
    probes = up.count(K1) + up.count(K2) - before
    assert rounds >= 4
    assert probes <= 2 * rounds and probes >= 2 * (rounds - 1), (probes, rounds)
    assert up.max_in_flight.get(K1, 0) + up.max_in_flight.get(K2, 0) <= 2 + 1


def test_half_open_closes_once(up, gate):
    """Sixteen processes see one transition each, not sixteen."""
    up.script(K1, error(500), error(500))
    breaker = {
        "triggers": ["consecutive_fail"],
        "consecutive_fail": 2,
        "recovery_timeout": "300ms",
        "half_open_requests": 4,
        "half_open_success": 4,
    }
    g = gate(
        accounts=1,
        workers=16,
        pool={"max_in_flight": 0},
        breaker={"threshold": 999},
        channel_breaker=breaker,
        allow=[r"channel \["],
        upstream={"max_attempts": 1},
    )
    assert [g.ask().status for _ in range(3)] == [502, 502, 503]
    time.sleep(0.35)
    up.default(slow(0.2))
    answers = together(16, lambda i: g.ask())
    good = sum(a.status == 200 for a in answers)
    assert good >= 4 and {a.status for a in answers} <= {200, 503}
    said = [x["msg"].split("] ")[1] for x in g.logs() if x.get("msg", "").startswith("channel [")]
    assert [s.split(":")[0] for s in said if not s.startswith("probe")] == [
        "open",
        "half-open",
        "closed",
    ]
    first = [r for r in up.requests[2:] if r.at < up.requests[2].at + 0.15]
    assert len(first) == 4


# Sessions and sums ---------------------------------------------------------------------------------


def test_sessions_never_split(up, gate):
    """Twenty conversations at random over eight processes: each has one account."""
    dice = Dice(31)
    g = gate(accounts=4, workers=8, pool={"max_in_flight": 0}, **CALM, **FLAT)

    def one(i, n):
        session = int(dice() * 20)
        a = g.ask(headers={"X-Session-Id": f"s{session}"})
        return session, a.status, a.header("X-Sluice-Account")

    homes = collections.defaultdict(set)
    for session, status, account in loops(8, 30, one):
        assert status == 200
        homes[session].add(account)
    assert all(len(h) == 1 for h in homes.values()), homes
    assert len({a for h in homes.values() for a in h}) == 4


def test_tokens_add_up(up, gate):
    """Usage of every size, plain and streamed, over processes: nothing is lost, nothing twice."""
    dice = Dice(41)
    told, lock = collections.Counter(), threading.Lock()

    def act(x):
        usage = {"prompt_tokens": int(dice() * 1000), "completion_tokens": int(dice() * 100)}
        with lock:
            told["prompt"] += usage["prompt_tokens"]
            told["completion"] += usage["completion_tokens"]
        return plain(chat_answer(usage={**USAGE, **usage, "total_tokens": sum(usage.values())}))(x)

    up.default(act)
    g = gate(accounts=3, workers=6, pool={"max_in_flight": 0}, **FLAT)
    assert {a.status for a in loops(6, 40, lambda i, n: g.ask())} == {200}
    sums = counters(g)
    assert (sums["calls"], sums["success"]) == (240, 240)
    assert (sums["prompt"], sums["completion"]) == (told["prompt"], told["completion"])


def test_the_ledger_is_the_sum_of_outcomes(up, gate):
    """Rows by client and model add up to what was answered."""
    dice = Dice(51)
    up.default(mixed(dice))
    g = gate(
        accounts=4,
        workers=6,
        auth={"mode": "web-server"},
        pool={"max_in_flight": 0},
        cooldown={"overload": "50ms"},
        **CALM,
        **FLAT,
    )

    def one(i, n):
        who, model = f"c{i % 3}", f"m{n % 2}"
        return who, model, g.ask(model=model, stream=dice() < 0.5, vary={"REMOTE_USER": who})

    answers = loops(6, 25, one)
    rows = json.loads(g.ctl("usage", "--json").stdout)
    kinds = collections.Counter(kind for _, kind in attempts(g))
    assert sum(r["requests"] for r in rows) == up.count() == sum(kinds.values())
    assert sum(r["failed"] for r in rows) == sum(n for kind, n in kinds.items() if kind != "ok")
    for who in ("c0", "c1", "c2"):
        for model in ("m0", "m1"):
            good = sum(a.status == 200 for w, m, a in answers if (w, m) == (who, model))
            mine = [r for r in rows if (r["client"], r["model"]) == (who, model)]
            assert sum(r["requests"] - r["failed"] for r in mine) == good
            assert sum(r["prompt"] for r in mine) == 7 * good
            assert sum(r["completion"] for r in mine) == 2 * good
