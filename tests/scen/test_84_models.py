"""What is remembered of each model on each channel, and `sluicectl models` (SPEC 12, 14, 16)."""

import collections
import json
import re
import threading
import time

from lib.answers import USAGE, error, hang, ok, slow
from lib.pool import K1, key, parse_time
from lib.upstream import wait_until
from lib.watching import events
from test_10_pick import FLAT, together
from test_42_exact import CALM, Dice, counters, loops
from test_61_book import power_cut

PATIENT = {"model_fail_after": 999}
STEADY = {"breaker": {"threshold": 999}, "routing": PATIENT}
WIDE = {"max_in_flight": 0}
NOTHING = {
    "calls": 0,
    "failures": 0,
    "success_rate": None,
    "first_ms": None,
    "cost": None,
    "ratio": None,
    "output_tokens": None,
    "consecutive_failures": 0,
    "rests_until": None,
}


def models(g):
    return {m["name"]: m for m in json.loads(g.ctl("models", "--json").stdout)}


def targets(g):
    """All targets by channel and model."""
    return {f"{t['channel']}/{t['model']}": t for m in models(g).values() for t in m["targets"]}


def target(g, model="m1", channel="oa"):
    return targets(g)[f"{channel}/{model}"]


def by_model(**actions):
    """One action for each model, ok() for others."""

    def act(x):
        return actions.get(x.request.json()["model"], ok())(x)

    return act


def second(up, **more):
    return {
        "provider": "openai-compatible",
        "base_url": up.url,
        "accounts": [{"id": "Z1", "api_key": key(9)}],
        **more,
    }


# The table -------------------------------------------------------------------------------------------


def test_the_resolved_table(up, gate):
    table = {
        "smart": {
            "targets": [
                {"channel": "oa", "model": "big", "weight": 5, "context_window": 128000},
                {
                    "channel": "oz",
                    "model": "small",
                    "weight": 0.5,
                    "cost": {"input": 0, "output": 0},
                },
            ],
            "max_output": 4096,
            "cost": {"input": 0.01, "output": 0.03},
            "tasks": ["code", "reasoning"],
            "strategy": "cost-first",
            "realm": "cn",
        },
        "small": {"targets": [{"channel": "oz"}], "context_window": 8000},
    }
    g = gate(
        accounts=1,
        account={"A1": {"realm": "cn"}},
        channel={"models": ["lit", "glm-*", "small"]},
        channels={"oz": second(up)},
        models=table,
    )
    got = models(g)
    assert list(got) == ["smart", "small", "lit"]
    big, small = got["smart"].pop("targets")
    assert got["smart"] == {
        "name": "smart",
        "from": "models",
        "strategy": "cost-first",
        "realm": "cn",
        "tasks": ["code", "reasoning"],
        "serves": True,
    }
    price = {"input": 0.01, "output": 0.03, "cached": 0.01}
    assert big == {
        "channel": "oa",
        "model": "big",
        "weight": 5,
        "context_window": 128000,
        "max_output": 4096,
        "price": price,
        "tasks": ["code", "reasoning"],
        "serves": True,
        "why": None,
        "until": None,
        **NOTHING,
    }
    assert (small["context_window"], small["max_output"]) == (8000, 4096)
    assert small["price"] == {"input": 0, "output": 0, "cached": 0}
    assert (small["serves"], small["why"]) == (False, "no account")  # no account of that realm
    assert got["small"]["strategy"] == "weighted-random" and got["small"]["realm"] is None
    assert got["small"]["targets"][0]["serves"] is True
    lit = got["lit"]
    assert (lit["from"], lit["targets"][0]["channel"], lit["targets"][0]["price"]) == (
        "channel",
        "oa",
        None,
    )
    text = g.ctl("models").stdout.splitlines()
    assert text[0].split()[:4] == ["MODEL", "TARGET", "WEIGHT", "WINDOW"]
    assert text[1].split()[:9] == "smart oa/big 5 128000 4096 0.01 / 0.03 yes".split()
    assert text[2].split()[:9] == "oz/small 0.5 8000 4096 0 / 0 no account".split()
    assert [line.split()[0] for line in text[3:]] == ["small", "lit"]


def test_usage(up, gate):
    g = gate()
    assert g.ctl("models", "--all", check=False).returncode == 2
    assert "example" in g.ctl("models", "--help").stdout
    assert g.ctl("models", "--json").stdout.strip() == "[]"  # nothing is known, nothing was asked


def test_whether_an_account_can_serve(up, gate):
    """As a pick sees it now: full, cooling, disabled, channel open."""
    g = gate(accounts=1, workers=3, pool={"max_in_flight": 1}, channel={"models": ["m1"]})
    assert (target(g)["serves"], target(g)["why"]) == (True, None)
    up.script(K1, slow(1.5))
    running = g.open(stream=False)
    up.wait_for(1)
    assert (target(g)["serves"], target(g)["why"]) == (False, "full")
    assert running.finish().status == 200
    up.script(K1, error(429, headers={"Retry-After": "120"}))
    g.ask()
    t = target(g)
    assert (t["serves"], t["why"]) == (False, "cooling")
    assert 110 < parse_time(t["until"]) - time.time() <= 121
    assert re.search(r"  cooling (1m 5\ds|2m 0s) ", g.ctl("models").stdout)
    g.ctl("account", "disable", "A1")
    assert (target(g)["serves"], target(g)["why"]) == (False, "no account")


# What is counted -------------------------------------------------------------------------------------


def test_figures(up, gate):
    price = {"input": 2, "output": 4}
    g = gate(
        accounts=1,
        models={"priced": {"targets": [{"channel": "oa", "model": "p", "cost": price}]}},
        upstream={"max_attempts": 1},
        **STEADY,
    )
    up.default(by_model(bad=error(500)))
    for _ in range(3):
        assert g.ask(model="priced").status == 200
    assert g.ask(model="priced", stream=True).status == 200
    for _ in range(2):
        g.ask(model="bad")
    assert g.ask(model="free-text").status == 200
    got = models(g)
    assert {n: m["from"] for n, m in got.items()} == {
        "priced": "models",
        "bad": "store",
        "free-text": "store",
    }
    t = target(g, "p")
    assert (t["calls"], t["failures"], t["success_rate"]) == (4, 0, 1)
    assert 0 <= t["first_ms"] < 1000 and t["output_tokens"] == USAGE["completion_tokens"]
    one = (USAGE["prompt_tokens"] * 2 + USAGE["completion_tokens"] * 4) / 1000
    assert abs(t["cost"] - 4 * one) < 1e-9
    t = target(g, "bad")
    assert (t["calls"], t["failures"], t["success_rate"], t["first_ms"]) == (2, 2, 0, None)
    assert t["consecutive_failures"] == 2 and t["cost"] is None


def test_what_says_nothing_of_a_model(up, gate):
    """The caller's faults, limits, other endpoints, and clients that go away."""
    g = gate(accounts=1, upstream={"max_attempts": 1}, cooldown={"not_found": "1ms"}, **STEADY)
    answers = {
        "fault": error(400, "invalid_request_error"),
        "limit": error(429, headers={"retry-after-ms": "1"}),
        "none": error(404, "model_not_found", "The model does not exist"),
    }
    up.default(by_model(**answers, gone=hang(3)))
    for model in answers:
        g.ask(model=model)
        time.sleep(0.002)
    g.send(b'{"model":"embed","input":"x"}', path="/v1/embeddings").finish()
    gone = g.open(model="gone")
    up.wait_for(len(answers) + 2)
    gone.close()
    wait_until(lambda: g.in_flight() == 0, 3, "it was noticed")
    assert g.ask(model="good").status == 200
    assert list(targets(g)) == ["oa/good"]


def test_each_attempt_counts_for_its_model(up, gate):
    """A request that is answered at the second attempt: one failure, one success."""
    up.script(K1, error(500))
    g = gate(accounts=2, **STEADY)
    assert g.ask().status == 200
    t = target(g)
    assert (t["calls"], t["failures"], t["consecutive_failures"]) == (2, 1, 0)


# Resting ---------------------------------------------------------------------------------------------


def test_a_model_rests_and_comes_back(up, gate):
    routing = {"model_fail_after": 2, "model_cooldown": "5m"}
    up.script(K1, slow(2), error(500), error(500))
    g = gate(
        accounts=1,
        workers=4,
        upstream={"max_attempts": 1},
        routing=routing,
        breaker={"threshold": 99},
        channel={"models": ["m1"]},
    )
    running = g.open(stream=False)
    up.wait_for(1)
    for _ in range(2):
        assert g.ask().status == 502
    t = target(g)
    assert (t["serves"], t["why"], t["consecutive_failures"]) == (False, "resting", 2)
    assert 290 < parse_time(t["rests_until"]) - time.time() <= 301
    assert t["until"] == t["rests_until"]
    assert models(g)["m1"]["serves"] is False
    assert re.search(r"  resting (4m 5\ds|5m 0s) ", g.ctl("models").stdout)
    assert running.finish().status == 200  # it works again
    t = target(g)
    assert (t["serves"], t["rests_until"], t["consecutive_failures"]) == (True, None, 0)
    rests, back = events(g, model="m1")
    assert (rests["account"], rests["channel"], rests["level"]) == ("", "oa", "warn")
    assert (rests["from"], rests["to"], rests["cause"]) == ("active", "cooling", "server")
    assert (back["from"], back["to"], back["cause"]) == ("cooling", "active", "success")
    lines = [e["msg"] for e in g.logs() if e.get("msg", "").startswith("model ")]
    assert lines == ["model [oa/m1] cooling: server", "model [oa/m1] active: success"]
    assert "oa m1  active -> cooling until" in g.ctl("events").stdout


def test_it_is_remembered(up, gate):
    """Over a restart, and over a power cut."""
    g = gate(
        accounts=1,
        upstream={"max_attempts": 1},
        routing={"model_fail_after": 2},
        breaker={"threshold": 99},
        allow=["store"],
    )
    up.default(by_model(bad=error(500)))
    for model in ("good", "bad", "bad"):
        g.ask(model=model)
    before = targets(g)
    assert before["oa/bad"]["why"] == "resting" and before["oa/good"]["calls"] == 1
    g.stop()
    assert targets(g) == before
    g.start()
    assert targets(g) == before
    power_cut(g)  # what the stop had saved
    assert any("made anew from 'book'" in line for line in g.log_lines())
    assert targets(g) == before


# Alone -----------------------------------------------------------------------------------------------


def test_a_model_that_fails_alone_spares_the_account(up, gate):
    up.default(by_model(m1=error(500)))
    g = gate(
        accounts=1,
        upstream={"max_attempts": 1},
        breaker={"threshold": 3},
        routing=PATIENT,
    )
    assert g.ask().status == 502  # who is to blame?
    assert g.account()["fails"] == 1
    assert g.ask(model="m2").status == 200
    for _ in range(6):
        assert g.ask().status == 502
    a = g.account()
    assert (a["state"], a["breaker_until"], a["fails"]) == ("active", None, 0)
    assert (a["errors"], a["consecutive_failures"], a["window"]["failures"]) == (7, 0, 1)
    assert a["last_error"]["kind"] == "server"
    assert g.ask(model="m2").status == 200
    assert target(g)["consecutive_failures"] == 7
    assert events(g) == []


def test_a_model_that_fails_with_all_others_does_not(up, gate):
    g = gate(
        accounts=1,
        upstream={"max_attempts": 1},
        breaker={"threshold": 3},
        routing=PATIENT,
    )
    assert g.ask(model="m2").status == 200  # before: no witness
    up.default(error(500))
    for model in ("m1", "m2", "m1"):
        assert g.ask(model=model).status == 502
    assert g.account()["breaker_until"] is not None


# Exactness -------------------------------------------------------------------------------------------


def sums(g):
    rows = targets(g).values()
    return sum(t["calls"] for t in rows), sum(t["failures"] for t in rows)


def test_exact_over_eight_processes(up, gate):
    dice = Dice(11)
    kinds = collections.Counter()

    def act(x):
        failed = dice() < 0.3
        kinds[(x.request.json()["model"], failed)] += 1
        return (error(500) if failed else ok())(x)

    up.default(act)
    g = gate(accounts=3, workers=8, pool=WIDE, routing=PATIENT, **CALM, **FLAT)
    answers = loops(8, 15, lambda i, n: g.ask(model=f"m{n % 3}", stream=i % 2 == 0))
    assert {a.status for a in answers} <= {200, 502}
    for model in ("m0", "m1", "m2"):
        t = target(g, model)
        good, bad = kinds[(model, False)], kinds[(model, True)]
        assert (t["calls"], t["failures"]) == (good + bad, bad)
    assert sums(g)[0] == up.count() == counters(g)["calls"]


def test_kill_9_in_between(up, gate):
    """What the models' rows say is what the accounts' say: both are written in one transaction."""
    dice = Dice(12)
    up.default(lambda x: slow(dice() * 0.01, error(500) if dice() < 0.3 else ok())(x))
    g = gate(accounts=2, workers=8, pool=WIDE, routing=PATIENT, **CALM, **FLAT)
    for _ in range(2):
        stop = threading.Event()

        def client(n):
            while not stop.is_set():
                try:
                    g.ask(model=f"m{n % 3}")
                except (OSError, AssertionError):
                    return

        threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
        [t.start() for t in threads]
        time.sleep(0.15)
        g.kill_all()
        stop.set()
        [t.join(10) for t in threads]
        g.start()
        calls, failures = sums(g)
        of_accounts = counters(g)
        assert calls - failures == of_accounts["success"] > 10
        assert failures == of_accounts["errors"] > 0
    assert all(a.status in (200, 502) for a in together(6, lambda i: g.ask()))
