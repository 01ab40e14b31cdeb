"""Quotas (SPEC 7, 10): reserved with the lease, settled with it; 90 % halves the weight; spent ones
come back with the minute or the day.
"""

import math
import signal
import time

import pytest

from lib.answers import chat_answer, error, hang, plain, slow
from lib.pool import K1, K2
from lib.upstream import wait_until
from test_10_pick import FLAT, together
from test_60_workers import kill, worker_of

NO_GAP = {"min_pick_gap": "0s"}


def quota(**limits):
    return {"A1": {"quota": limits}}


def used(total):
    return plain(chat_answer(usage={"prompt_tokens": total - 1, "completion_tokens": 1}))


def within_a_minute(seconds=4):
    """Windows are clock minutes: do not begin at the end of one."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left + 0.05)


def until_minute():
    return 60 - time.time() % 60


def until_day(offset_h=0):
    return 86400 - (time.time() + offset_h * 3600) % 86400


def assert_refused(a, seconds):
    assert (a.status, a.error["code"]) == (429, "pool_exhausted"), a.out
    assert a.header("X-Sluice-Attempts") == "0"
    assert abs(int(a.header("Retry-After")) - math.ceil(seconds)) <= 1, (
        a.header("Retry-After"),
        seconds,
    )
    assert a.header("x-should-retry") == ("false" if seconds > 61 else None)


def test_requests_per_minute(up, gate):
    g = gate(accounts=1, account=quota(rpm=3))
    within_a_minute()
    assert [g.ask().status for _ in range(3)] == [200] * 3
    a = g.ask()
    assert_refused(a, until_minute())
    assert up.count() == 3
    g.assert_clean()


def test_requests_per_day(up, gate):
    """The day starts in the channel's timezone."""
    g = gate(accounts=1, account=quota(rpd=2), cooldown={"timezone": "Asia/Shanghai"})
    within_a_minute()
    assert [g.ask().status for _ in range(2)] == [200] * 2
    assert_refused(g.ask(), until_day(8))
    assert up.count() == 2


def test_the_longer_window_is_told(up, gate):
    g = gate(accounts=1, account=quota(rpm=1, rpd=1))
    within_a_minute()
    assert g.ask().status == 200
    assert_refused(g.ask(), until_day())


@pytest.mark.parametrize("limit,until", [("tpm", until_minute), ("tpd", until_day)])
def test_tokens_used(up, gate, limit, until):
    up.script(K1, used(600), used(600))
    g = gate(accounts=1, account=quota(**{limit: 1000}))
    within_a_minute()
    assert [g.ask().status for _ in range(2)] == [200] * 2
    assert_refused(g.ask(), until())
    assert up.count() == 2


def test_tokens_are_reserved_and_settled(up, gate):
    """Two of 400 fit under 1,000 at once; what they really took is little, so then there is room."""
    up.default(slow(0.5))
    g = gate(accounts=1, workers=4, account=quota(tpm=1000))
    within_a_minute(6)
    answers = together(3, lambda i: g.ask(max_tokens=400))
    assert sorted(a.status for a in answers) == [200, 200, 429]
    assert_refused(next(a for a in answers if a.status == 429), until_minute() + 0.5)
    for _ in range(3):
        assert g.ask(max_tokens=900).status == 200
    assert up.count() == 5


def test_max_completion_tokens_are_reserved(up, gate):
    up.default(slow(0.5))
    g = gate(accounts=1, workers=4, account=quota(tpd=1000))
    answers = together(3, lambda i: g.ask(max_completion_tokens=400))
    assert sorted(a.status for a in answers) == [200, 200, 429]


def test_the_prompt_is_estimated(up, gate):
    g = gate(accounts=1, account=quota(tpm=1000))
    within_a_minute()
    assert g.ask(user="x" * 400).status == 200
    assert g.ask(user="x" * 400000).status != 200
    assert up.count() == 1


def test_total(up, gate):
    """What cannot come back by itself is no reason to wait."""
    up.default(used(700))
    g = gate(accounts=1, account=quota(total_tokens=1000))
    assert [g.ask().status for _ in range(2)] == [200] * 2
    a = g.ask()
    assert (a.status, a.error["code"]) == (503, "no_account")
    assert a.header("Retry-After") is None
    assert up.count() == 2


def test_the_next_account_serves(up, gate):
    g = gate(accounts=2, account=quota(rpm=1))
    within_a_minute()
    assert [g.ask().header("X-Sluice-Account") for _ in range(3)] == ["A1", "A2", "A2"]


def test_a_spent_quota_is_not_waited_for(up, gate):
    """It is no full account: no queue."""
    waits = {"queue_size": 8, "queue_timeout": "5s"}
    g = gate(accounts=1, account=quota(rpd=1), pool=waits)
    assert g.ask().status == 200
    a = g.ask()
    assert a.status == 429 and a.took < 0.5


def test_a_spent_quota_is_not_probed(up, gate):
    g = gate(accounts=1, account=quota(rpd=1), pool={"all_cooling": "any"})
    assert g.ask().status == 200
    assert g.ask().status == 429
    assert up.count() == 1


def test_parallel_requests_never_exceed(up, gate):
    g = gate(accounts=2, workers=8, account=quota(rpm=5), pool={"max_in_flight": 0, **NO_GAP})
    within_a_minute(6)
    answers = together(24, lambda i: g.ask())
    assert [a.status for a in answers] == [200] * 24
    assert up.count(K1) == 5
    assert together(8, lambda i: g.ask().header("X-Sluice-Account")) == ["A2"] * 8


def test_parallel_tokens_never_exceed(up, gate):
    up.default(slow(0.2))
    g = gate(accounts=1, workers=12, account=quota(tpd=2000), pool={"max_in_flight": 0})
    answers = together(24, lambda i: g.ask(max_tokens=500))
    assert up.max_in_flight[K1] == 3  # 500 and the prompt each
    assert sum(a.status == 200 for a in answers) == up.count() >= 3
    assert {a.status for a in answers} == {200, 429}


def test_failures_count_as_requests(up, gate):
    up.script(K1, error(500), error(500))
    g = gate(accounts=1, account=quota(rpd=2), channel_breaker={"triggers": []})
    assert [g.ask().status for _ in range(3)] == [502, 502, 429]


def test_what_never_reached_the_upstream_does_not_count(up, gate):
    quiet = {"breaker": {"threshold": 99}, "channel_breaker": {"triggers": []}}
    g = gate(accounts=1, account=quota(rpd=2, tpd=500), **quiet)
    up.close_port()
    assert [g.ask(max_tokens=100).status for _ in range(6)] == [502] * 6
    up.open_port()
    assert [g.ask().status for _ in range(3)] == [200, 200, 429]


def test_high_use_halves_the_weight(up, gate):
    """A third of the draws instead of a half: 200 draws, 67 and 100 expected, 4 sigma apart."""
    up.script(K1, used(950000))
    g = gate(
        accounts=2,
        account={"A1": {"priority": 0, "quota": {"tpd": 1000000}}, "A2": {"priority": 1}},
        pool={"strategy": "weighted-random"},
    )
    assert g.ask().header("X-Sluice-Account") == "A1"
    conf = g.conf
    for a in conf["channels"]["oa"]["accounts"]:
        a["priority"] = 0
    g.reload(conf)
    up.clear()
    for _ in range(200):
        g.ask()
    assert 40 <= up.count(K1) <= 94, up.count(K1)


def test_high_use_raises_one_event(up, gate):
    up.default(used(950))
    g = gate(accounts=1, account=quota(tpd=10000))
    for _ in range(9):
        assert g.ask().status == 200
    told = [x for x in g.logs() if x.get("cause") == "quota"]
    assert told == []
    assert g.ask().status == 200  # 9,500
    told = [x for x in g.logs() if x.get("cause") == "quota"]
    assert [(x["level"], x["msg"], x["rule"]) for x in told] == [
        ("warn", "account [oa/A1] active: quota", "90% of the quota of the day used")
    ]
    up.default(used(20))
    for _ in range(3):
        g.ask()
    assert len([x for x in g.logs() if x.get("cause") == "quota"]) == 1
    events = g.ctl("events", "--json").stdout
    assert events.count('"quota"') == 1


def test_use_survives_kill_9(up, gate):
    g = gate(accounts=1, account=quota(rpd=2))
    assert [g.ask().status for _ in range(2)] == [200] * 2
    g.kill_all()
    g.start()
    assert g.ask().status == 429
    assert up.count() == 2


def test_use_survives_a_reload(up, gate):
    g = gate(accounts=1, account=quota(rpd=2))
    assert g.ask().status == 200
    conf = g.conf
    conf["channels"]["oa"]["accounts"][0]["quota"]["rpd"] = 3
    g.reload(conf)
    assert [g.ask().status for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_dead_workers_reservation_comes_back(up, gate, replaced):
    """Whether its successor finds the lease, or the next pick that needs it."""
    up.script(K1, hang())
    g = gate(accounts=1, workers=3, account=quota(tpd=1000), allow=["worker"])
    dying = g.open(stream=False, max_tokens=800)
    up.wait_for(1)
    assert g.ask(max_tokens=800).status == 429
    pid = worker_of(g, up)
    if not replaced:
        g.signal(signal.SIGSTOP)
    try:
        kill(pid)
        if replaced:
            wait_until(lambda: len(g.worker_pids()) == 3, 3, "the worker was replaced")
            g.get("/healthz")
            time.sleep(0.2)
        assert g.ask(max_tokens=800).status == 200
    finally:
        g.signal(signal.SIGCONT)
    assert dying.finish().end is None


def test_a_request_larger_than_the_limit(up, gate):
    """It will never fit: nothing to wait for, and others are not harmed."""
    g = gate(accounts=1, account=quota(tpm=1000))
    within_a_minute()
    a = g.ask(max_tokens=5000)
    assert (a.status, a.error["code"], up.count()) == (503, "no_account", 0)
    assert g.ask().status == 200


def test_strategy_quota_takes_who_has_most_left(up, gate):
    up.default(used(100))
    g = gate(
        accounts=2,
        pool={"strategy": "quota"},
        account={"A1": {"quota": {"tpd": 1}}, "A2": {"quota": {"tpd": 5000}}},
        **FLAT,
    )
    assert {g.ask().header("X-Sluice-Account") for _ in range(8)} == {"A2"}
    assert up.count(K2) == 8
