"""Cost tiers (SPEC 7, 14): free before unmeasured before paid, a hard filter by measured cost."""

import time

import pytest

from lib.answers import USAGE, chat_answer, chat_chunks, error, plain, stream, usage_chunk
from lib.pool import K1, K2, K3, config
from test_10_pick import FLAT, together

NO_GAP = {"min_pick_gap": "0s"}
LRU = {"strategy": "lru"}  # spreads wherever it may: what stays with one account was filtered


def cost(credit, **kw):
    return plain(chat_answer(usage={**USAGE, "credit": credit}), **kw)


def cost_streamed(credit):
    events = chat_chunks("hi", done=False) + [usage_chunk({**USAGE, "credit": credit}), "[DONE]"]
    return stream(events)


def names(g, n, **kw):
    out = []
    for _ in range(n):
        out.append(g.ask(**kw).header("X-Sluice-Account"))
        time.sleep(0.002)  # picks are told apart by the millisecond
    return out


@pytest.mark.parametrize("strategy", ["adaptive", "lru", "round-robin", "weighted-random"])
def test_free_is_a_hard_filter(up, gate, strategy):
    up.default(cost(0.5))
    up.default(cost(0), K2)
    g = gate(pool={"strategy": strategy, **NO_GAP}, account={"A2": {"weight": 0.01}}, **FLAT)
    for _ in range(20):  # until the free one was found
        if g.ask().header("X-Sluice-Account") == "A2":
            break
    assert names(g, 12) == ["A2"] * 12


def test_unmeasured_before_paid(up, gate):
    up.default(cost(0.25))
    g = gate(accounts=5, pool=NO_GAP, **FLAT)
    assert sorted(names(g, 5)) == ["A1", "A2", "A3", "A4", "A5"]
    assert len(set(names(g, 25))) > 2  # all paid: no ranking among them


def test_paid_is_no_ranking(up, gate):
    up.default(cost(0.001), K1)
    up.default(cost(900), K2)
    g = gate(accounts=2, pool=LRU, **FLAT)
    assert names(g, 8) == ["A1", "A2"] * 4


def test_priority_comes_before_cost(up, gate):
    up.default(cost(0.5), K1)
    up.default(cost(0), K2)
    g = gate(accounts=2, pool=LRU)
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    assert names(g, 2) == ["A2", "A2"]
    time.sleep(1.1)
    assert names(g, 4) == ["A1"] * 4


def test_next_tier_when_the_free_ones_rest(up, gate):
    up.default(cost(0), K1)
    up.default(cost(0.5), K2)
    g = gate(pool=LRU, **FLAT)
    assert names(g, 3) == ["A1"] * 3
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    assert names(g, 1) == ["A2"]  # in the same request
    assert names(g, 2) == ["A3", "A3"]  # A2 is known as paid, A3 says nothing of its price
    time.sleep(1.1)
    assert names(g, 3) == ["A1"] * 3


def test_by_account_and_model(up, gate):
    """What is known of one model says nothing about another."""
    up.default(cost(0), K1)
    g = gate(pool=LRU, **FLAT)
    assert names(g, 3) == ["A1"] * 3
    assert names(g, 3, model="m2") == ["A2", "A3", "A1"]
    assert names(g, 2, model="m2") == ["A1", "A1"]


def test_streams_tell_their_cost(up, gate):
    up.default(cost_streamed(0), K2)
    up.default(cost_streamed(0.5), K1, K3)
    g = gate(pool=LRU, **FLAT)
    assert names(g, 6, stream=True) == ["A1", "A2", "A2", "A2", "A2", "A2"]


def test_prices_expire(up, gate):
    up.default(cost(0), K1)
    g = gate(accounts=2, pool={**LRU, "cost_ttl": "1s"}, **FLAT)
    assert names(g, 4) == ["A1"] * 4
    time.sleep(1.1)
    assert names(g, 1) == ["A2"]
    assert names(g, 3) == ["A1"] * 3  # measured again


def test_a_price_that_changes(up, gate):
    """Smoothed, but paid at once when it costs again."""
    up.default(cost(0), K1)
    g = gate(accounts=2, pool=LRU, **FLAT)
    assert names(g, 3) == ["A1"] * 3
    up.default(cost(0.5), K1)
    assert names(g, 3) == ["A1", "A2", "A2"]  # A2 gives no credit: it stays unmeasured


def test_failures_are_no_observation(up, gate):
    usage = {**USAGE, "credit": 0}
    up.script(K1, plain({"error": {"message": "x"}, "usage": usage}, 500))
    g = gate(accounts=2, pool=LRU, **FLAT)
    assert names(g, 5) == ["A2", "A1", "A2", "A1", "A2"]


def test_switched_off(up, gate):
    up.default(cost(0), K1)
    up.default(cost(0.5), K2, K3)
    g = gate(pool={**LRU, "cost_tiers": False}, **FLAT)
    assert names(g, 6) == ["A1", "A2", "A3"] * 2


def test_prices_survive_kill_9(up, gate):
    up.default(cost(0), K1)
    g = gate(pool=LRU, **FLAT)
    assert names(g, 2) == ["A1"] * 2
    g.kill_all()
    g.start()
    assert names(g, 3) == ["A1"] * 3


# Exploring -----------------------------------------------------------------------------------------


def test_explores_once_in_a_while(up, gate):
    up.default(cost(0.5))
    up.default(cost(0), K1)
    pool = {**LRU, "cost_explore": "500ms", "max_in_flight": 0}
    g = gate(accounts=20, workers=4, pool=pool, **FLAT)
    names(g, 1)
    t = time.monotonic()
    while time.monotonic() - t < 2.2:
        together(4, lambda i: g.ask())
    took = time.monotonic() - t
    others = [r.at for r in up.requests if r.cred != K1]
    assert 3 <= len(others) <= took / 0.5 + 1, len(others)
    assert all(b - a > 0.4 for a, b in zip(others, others[1:])), others
    assert up.count(K1) > 20


def test_does_not_explore_by_itself(up, gate):
    up.default(cost(0), K1)
    g = gate(pool=LRU, **FLAT)
    names(g, 40)
    assert up.count(K1) == 40


# Configured prices ---------------------------------------------------------------------------------


def target(model="m1", **more):
    return {"channel": "oa", "model": model, **more}


FREE, PAID = {"input": 0, "output": 0}, {"input": 0.01, "output": 0.03}
STAYS, SPREADS = ["A1"] * 4, ["A1", "A2", "A3", "A1"]
# what, models, sequence by lru, sequence by fill-first: free stays in both, paid spreads in both
CONFIGURED = [
    ("nothing is known", {}, SPREADS, STAYS),
    ("free entry", {"m1": {"targets": [target()], "cost": FREE}}, STAYS, STAYS),
    ("paid entry", {"m1": {"targets": [target()], "cost": PAID}}, SPREADS, SPREADS),
    ("free target", {"m1": {"targets": [target(cost=FREE)]}}, STAYS, STAYS),
    ("paid target", {"m1": {"targets": [target(cost=PAID)]}}, SPREADS, SPREADS),
    ("target before entry", {"m1": {"targets": [target(cost=FREE)], "cost": PAID}}, STAYS, STAYS),
    (
        "entry of the target's own model",
        {
            "m1": {"targets": [target("up")]},
            "up": {"targets": [target("up")], "cost": FREE},
        },
        STAYS,
        STAYS,
    ),
    (
        "own model before the alias",
        {
            "m1": {"targets": [target("up")], "cost": PAID},
            "up": {"targets": [target("up")], "cost": FREE},
        },
        STAYS,
        STAYS,
    ),
    ("the alias at last", {"m1": {"targets": [target("up")], "cost": PAID}}, SPREADS, SPREADS),
    (
        "another channel's target",
        {"x": {"targets": [{"channel": "oz", "model": "m1", "cost": PAID}]}},
        SPREADS,
        STAYS,
    ),
]


@pytest.mark.parametrize(
    "models,lru,fill", [c[1:] for c in CONFIGURED], ids=[c[0] for c in CONFIGURED]
)
def test_configured(up, gate, models, lru, fill):
    more = {
        "oz": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [{"id": "Z1", "api_key": "sk-15-Zq7wL0pVx15"}],
        }
    }
    vary = {"models": models, "channels": more, **FLAT}
    assert names(gate(pool=LRU, **vary), 4) == lru
    assert names(gate(pool={"strategy": "fill-first"}, **vary), 4) == fill


def test_the_upstreams_word_beats_the_configuration(up, gate):
    up.default(cost(0), K1)
    g = gate(pool=LRU, models={"m1": {"targets": [target()], "cost": PAID}}, **FLAT)
    assert names(g, 4) == STAYS


def test_reload_brings_a_price(up, gate):
    g = gate(pool=LRU, **FLAT)
    assert names(g, 3) == ["A1", "A2", "A3"]
    g.reload(config(up.url, pool=LRU, models={"m1": {"targets": [target()], "cost": FREE}}, **FLAT))
    assert names(g, 4) == STAYS
