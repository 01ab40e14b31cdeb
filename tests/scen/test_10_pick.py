"""Who is asked (SPEC 7): tiers, limits, the tried set, the gap, patterns, strategies, all cooling.
"""

import threading
import time

from lib.answers import error, plain, slow
from lib.pool import K1, K2, K3, key
from lib.upstream import wait_until

FLAT = {"tiers": False}
GUESS = plain({}, 429)  # a rate limit without a hint


def together(n, fn):
    """Run fn(i) n times at once; the results in order."""
    out = [None] * n

    def run(i):
        out[i] = fn(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    return out


def test_lower_priority_values_first(up, gate):
    g = gate(
        pool={"min_pick_gap": "0s"},
        account={"A1": {"priority": 7}, "A2": {"priority": -1}, "A3": {"priority": 7}},
    )
    for _ in range(6):
        g.ask()
    assert set(up.creds()) == {K2}


def test_next_tier_only_when_nobody_is_eligible(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert up.creds() == [K1, K2, K2]


def test_full_tier_falls_to_the_next(up, gate):
    up.script(K1, slow(1.0))
    g = gate(pool={"max_in_flight": 1})
    first = g.open(stream=False)
    up.wait_for(1, K1)
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert first.finish().header("X-Sluice-Account") == "A1"


def test_in_flight_limit_holds_for_each_account(up, gate):
    up.default(slow(0.15))
    g = gate(workers=12, pool={"max_in_flight": 2}, **FLAT)
    answers = together(24, lambda i: g.ask())
    assert {a.status for a in answers} <= {200, 429}
    assert max(up.max_in_flight.values()) <= 2, up.max_in_flight
    assert sum(a.status == 200 for a in answers) == up.count()
    wait_until(lambda: g.in_flight() == 0, 2, "nothing in flight")


def test_account_limit_overrides_the_pool(up, gate):
    up.default(slow(0.3))
    g = gate(workers=8, accounts=1, pool={"max_in_flight": 1}, account={"A1": {"max_in_flight": 4}})
    answers = together(6, lambda i: g.ask())
    assert up.max_in_flight[K1] == 4
    assert sorted(a.status for a in answers) == [200] * 4 + [429] * 2


def test_zero_means_no_limit(up, gate):
    up.default(slow(0.4))
    g = gate(workers=8, accounts=1, pool={"max_in_flight": 0})
    assert all(a.status == 200 for a in together(8, lambda i: g.ask()))
    assert up.max_in_flight[K1] == 8


def test_only_full_accounts(up, gate):
    """SPEC 4.3: only full accounts -> 429 with Retry-After: 1, nothing charged to anybody."""
    up.default(slow(1.0))
    g = gate(accounts=1, pool={"max_in_flight": 1})
    first = g.open(stream=False)
    up.wait_for(1)
    a = g.ask()
    assert (a.status, a.header("Retry-After"), a.error["code"]) == (429, "1", "pool_exhausted")
    assert a.header("X-Sluice-Attempts") == "0"
    assert a.took < 0.5
    assert first.finish().status == 200
    g.assert_clean()


def test_full_accounts_are_waited_for(up, gate):
    """SPEC 7 (a): up to queue_timeout, then 429."""
    up.default(slow(0.4))
    waits = {"max_in_flight": 1, "queue_size": 8, "queue_timeout": "600ms"}
    g = gate(accounts=1, workers=4, pool=waits)
    answers = together(3, lambda i: g.ask())
    assert sorted(a.status for a in answers) == [200, 200, 429]
    assert up.max_in_flight[K1] == 1
    late = next(a for a in answers if a.status == 429)
    assert 0.5 < late.took < 0.9 and late.error["code"] == "pool_exhausted"


def test_a_queue_of_size_0_does_not_wait(up, gate):
    up.default(slow(0.8))
    g = gate(accounts=1, pool={"max_in_flight": 1, "queue_size": 0, "queue_timeout": "3s"})
    first = g.open(stream=False)
    up.wait_for(1)
    a = g.ask()
    assert a.status == 429 and a.took < 0.3
    first.finish()


def test_client_leaves_while_it_waits_for_room(up, gate):
    up.script(K1, slow(0.6))
    waits = {"max_in_flight": 1, "queue_size": 8, "queue_timeout": "5s"}
    g = gate(accounts=1, pool=waits)
    first = g.open(stream=False)
    up.wait_for(1)
    second = g.open(stream=False)
    time.sleep(0.2)
    second.close()
    assert first.finish().status == 200
    time.sleep(0.2)
    assert up.count() == 1
    g.assert_clean()


def test_an_account_is_tried_once_for_a_request(up, gate):
    up.default(error(500))
    g = gate(accounts=5, upstream={"max_attempts": 4}, **FLAT)
    a = g.ask()
    assert a.status == 502
    assert up.count() == 4 and len(set(up.creds())) == 4


def test_fewer_accounts_than_attempts(up, gate):
    up.default(error(500))
    g = gate(accounts=2)
    assert g.ask().status == 502
    assert sorted(up.creds()) == [K1, K2]


def test_attempt_cap(up, gate):
    """COOL-16: twenty accounts that all say 429: at most max_attempts are asked and penalised."""
    up.default(GUESS)
    g = gate(accounts=20, **FLAT)
    a = g.ask()
    assert a.status == 429
    assert up.count() == 3
    assert g.status()["totals"]["cooling"] <= 3


def test_min_pick_gap_spreads_a_burst(up, gate):
    """Those picked less than the gap ago are left out; when all were, the least recently picked is
    taken.
    """
    g = gate(pool={"min_pick_gap": "5s"}, **FLAT)
    for _ in range(6):
        assert g.ask().status == 200
        time.sleep(0.005)  # picks are told apart by the millisecond
    creds = up.creds()
    assert len(set(creds[:3])) == 3
    assert creds[3:] == creds[:3]


def test_gap_holds_across_processes(up, gate):
    up.default(slow(0.2))
    g = gate(workers=4, accounts=4, pool={"min_pick_gap": "5s"}, **FLAT)
    together(4, lambda i: g.ask())
    assert sorted(up.creds()) == [key(n) for n in range(1, 5)]


def test_weight_zero_is_never_drawn(up, gate):
    g = gate(pool={"min_pick_gap": "0s"}, account={"A1": {"weight": 0}}, **FLAT)
    for _ in range(30):
        g.ask()
    assert K1 not in up.creds()
    assert {K2, K3} == set(up.creds())


def test_all_weights_zero_is_uniform(up, gate):
    nothing = {"success_factor": 0, "idle_weight_per_hour": 0, "credit_factor": 0}
    g = gate(accounts=2, pool={"min_pick_gap": "0s", **nothing}, **FLAT)
    for _ in range(30):
        g.ask()
    assert {K1, K2} == set(up.creds())


def test_account_switched_off(up, gate):
    g = gate(account={"A1": {"enabled": False}})
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert up.creds() == [K2]


def test_account_models(up, gate):
    g = gate(
        account={"A1": {"models": ["gpt-*"]}, "A2": {"models": ["m1"]}, "A3": {"models": ["none"]}}
    )
    assert g.ask(model="m1").header("X-Sluice-Account") == "A2"
    assert g.ask(model="gpt-4o").header("X-Sluice-Account") == "A1"


def test_model_that_no_channel_serves(up, gate):
    g = gate(channel={"models": ["gpt-*", "m1"]})
    a = g.ask(model="claude-x")
    assert a.status == 404
    assert a.error["code"] == "model_not_found"
    assert up.count() == 0
    assert g.ask(model="gpt-9").status == 200
    g.assert_clean()


def test_first_channel_whose_patterns_match(up, gate):
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [{"id": "B1", "api_key": key(11)}],
        }
    }
    g = gate(channel={"models": ["gpt-*"]}, channels=more)
    assert g.ask(model="gpt-4").header("X-Sluice-Channel") == "oa"
    assert g.ask(model="other").header("X-Sluice-Channel") == "ob"
    assert up.creds() == [K1, key(11)]


def test_realm_of_a_model(up, gate):
    g = gate(
        account={"A1": {"realm": "global"}, "A2": {"realm": "cn"}},
        models={"m1": {"targets": [{"channel": "oa", "model": "m1"}], "realm": "cn"}},
    )
    assert g.ask().header("X-Sluice-Account") == "A2"
    up.script(K2, error(429, headers={"Retry-After": "60"}))
    assert g.ask().status == 429
    assert set(up.creds()) == {K2}


# All cooling -------------------------------------------------------------------------------------


def test_stated_reset_is_not_probed(up, gate):
    """COOL-03"""
    up.script(K1, error(429, headers={"Retry-After": "3600"}))
    g = gate(accounts=1)
    answers = [g.ask() for _ in range(5)]
    assert up.count() == 1
    for a in answers:
        assert a.status == 429
        assert 3595 <= int(a.header("Retry-After")) <= 3600
        assert a.header("x-should-retry") == "false"
    for a in answers[1:]:
        assert a.error["code"] == "pool_exhausted" and a.header("X-Sluice-Attempts") == "0"
        assert a.took < 0.2


def test_guessed_cooldown_is_probed_by_one(up, gate):
    """SPEC 7 (b): the earliest of the guessed ones is tried, at most one such probe at a time."""
    up.script(K1, GUESS, slow(0.6))
    g = gate(accounts=1, workers=4)
    g.ask()
    answers = together(3, lambda i: g.ask())
    assert up.count() == 2
    assert sorted(a.status for a in answers) == [200, 429, 429]
    assert g.account()["cool"] is None  # a success ends a guessed cooldown


def test_probe_goes_to_the_earliest(up, gate):
    up.script(K1, GUESS)
    up.script(K2, plain({}, 404))
    g = gate(accounts=2, cooldown={"soft_rate": "60s", "not_found": "30s"})
    assert g.ask().status >= 400
    up.clear()
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert up.creds() == [K2]


def test_probe_failure_never_escalates(up, gate):
    """SPEC 6: a probe made while cooling never escalates."""
    up.script(K1, GUESS, GUESS, GUESS)
    g = gate(accounts=1)
    for _ in range(3):
        assert g.ask().status == 429
    assert up.count() == 3
    a = g.account()
    assert a["soft_streak"] == 1
    assert g.cooling_for() < 62


def test_all_cooling_off(up, gate):
    up.script(K1, GUESS)
    g = gate(accounts=1, pool={"all_cooling": "off"})
    g.ask()
    a = g.ask()
    assert (a.status, up.count()) == (429, 1)
    assert 55 <= int(a.header("Retry-After")) <= 60


def test_all_cooling_any_takes_stated_resets(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "3600"}))
    g = gate(accounts=1, pool={"all_cooling": "any"})
    g.ask()
    assert g.ask().status == 200
    assert up.count() == 2


def test_disabled_is_never_probed(up, gate):
    up.default(error(401, "invalid_api_key", "Incorrect API key provided"))
    g = gate(accounts=1, pool={"all_cooling": "any"})
    g.ask()
    a = g.ask()
    assert (a.status, a.error["code"], up.count()) == (503, "no_account", 1)
    assert a.header("Retry-After") is None


def test_hard_credit_is_never_probed(up, gate):
    up.default(error(402))
    g = gate(accounts=1, pool={"all_cooling": "any"})
    g.ask()
    assert g.ask().status in (429, 503)
    assert up.count() == 1


def test_breaker_open_is_probed(up, gate):
    up.script(K1, error(500))
    g = gate(accounts=1, breaker={"threshold": 1})
    g.ask()
    assert g.account()["breaker_until"]
    assert g.ask().status == 200
    a = g.account()
    assert (a["breaker_until"], a["breaker_step"], a["state"]) == (None, 0, "active")


def test_retry_after_is_the_earliest_return_rounded_up(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "50"}))
    up.script(K2, error(429, headers={"Retry-After": "20.2"}))
    g = gate(accounts=2)
    g.ask()
    a = g.ask()
    assert a.status == 429 and a.header("Retry-After") in ("20", "21")
    assert a.header("x-should-retry") is None or a.header("x-should-retry") == "true"


def test_local_refusals_count_for_nobody(up, gate):
    """COOL-19"""
    for k in (K1, K2, K3):
        up.script(k, error(429, headers={"Retry-After": "3"}))
    g = gate()
    g.ask()
    before = g.accounts()
    assert all(g.ask().status == 429 for _ in range(30))
    after = g.accounts()
    assert before == after
    assert up.count() == 3
    time.sleep(3.0)
    assert g.channel()["breaker"]["state"] == "closed"
    assert g.ask().status == 200


def test_cooldown_ends_by_itself(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A2"
    time.sleep(1.1)
    assert g.account()["state"] == "active"
    assert g.ask().header("X-Sluice-Account") == "A1"


def test_herd_on_returning_accounts(up, gate):
    """RET-13"""
    for k in (K1, K2, K3):
        up.script(k, error(429, headers={"Retry-After": "1"}))
    g = gate(workers=10, pool={"max_in_flight": 2}, **FLAT)
    g.ask()
    up.default(slow(0.1))
    time.sleep(1.05)
    up.max_in_flight.clear()
    together(30, lambda i: g.ask())
    assert max(up.max_in_flight.values()) <= 2
