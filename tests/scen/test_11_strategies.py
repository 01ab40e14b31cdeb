"""The other strategies (SPEC 7): each honours the exclusions."""

import collections

from lib.answers import slow
from lib.pool import K1, K2, K3
from test_10_pick import FLAT, together


def test_round_robin_has_one_cursor_for_all_processes(up, gate):
    g = gate(workers=3, pool={"strategy": "round-robin"}, **FLAT)
    for _ in range(9):
        g.ask()
    assert collections.Counter(up.creds()) == {K1: 3, K2: 3, K3: 3}
    assert up.creds()[:3] == up.creds()[3:6] == up.creds()[6:]


def test_fill_first(up, gate):
    g = gate(pool={"strategy": "fill-first"}, **FLAT)
    for _ in range(5):
        g.ask()
    assert len(set(up.creds())) == 1


def test_least_recently_used(up, gate):
    g = gate(pool={"strategy": "lru"}, **FLAT)
    for _ in range(6):
        g.ask()
    assert len(set(up.creds()[:3])) == 3 and up.creds()[3:] == up.creds()[:3]


def test_least_in_flight(up, gate):
    up.default(slow(0.3))
    g = gate(workers=6, pool={"strategy": "least-in-flight"}, **FLAT)
    together(6, lambda i: g.ask())
    assert collections.Counter(up.creds()) == {K1: 2, K2: 2, K3: 2}


def test_weighted_random_follows_weights(up, gate):
    g = gate(
        accounts=2, pool={"strategy": "weighted-random"}, account={"A1": {"weight": 9}}, **FLAT
    )
    for _ in range(60):
        g.ask()
    assert up.count(K1) > 35, up.count(K1)  # 54 expected; below 35 once in 10^11


def test_weighted_round_robin_is_exact(up, gate):
    g = gate(
        accounts=2, pool={"strategy": "weighted-round-robin"}, account={"A1": {"weight": 3}}, **FLAT
    )
    for _ in range(16):
        g.ask()
    assert (up.count(K1), up.count(K2)) == (12, 4)
