"""The fallback chain (SPEC 5, 7, 9; RET-07, RET-08): its order, its budget, its end."""

import time

import pytest

from lib.answers import chunk, error, plain, slow, stream
from lib.pool import K1, config, key
from test_41_channels import B1, QUIET, chain, channel, gate, said, who  # noqa: F401

C1 = key(15)


def three(up, **oa):
    return {
        "others": {"ob": channel(up, "B"), "oc": channel(up, "C")},
        "fallback": ("ob", "oc"),
        "breaker": QUIET,
        "oa": oa,
    }


def test_fallback_in_order(up, gate):
    up.script(K1, error(500), error(500))
    up.script(B1, error(500))
    g = chain(gate, up, **three(up))
    a = g.ask()
    assert who(a) == ("oc", "C1") and a.header("X-Sluice-Attempts") == "3"
    assert who(g.ask()) == ("ob", "B1")
    assert up.creds() == [K1, B1, C1, K1, B1]


def test_the_first_fallback_that_is_not_open(up, gate):
    up.default(error(500), B1)
    others = {
        "ob": channel(
            up, "B", channel_breaker={"triggers": ["consecutive_fail"], "consecutive_fail": 1}
        ),
        "oc": channel(up, "C"),
    }
    up.default(error(500), K1)
    g = chain(gate, up, QUIET, fallback=("ob", "oc"), others=others)
    assert [who(g.ask()) for _ in range(3)] == [("oc", "C1")] * 3
    assert up.count(B1) == 1
    assert said(g, "ob") == [("warn", "open: consecutive_fail (1 >= 1)")]


def test_cyclic_fallbacks(up, gate):
    """RET-07: each channel is visited once; check tells of it."""
    up.default(error(500))
    others = {"ob": channel(up, "B", fallback=["oa"])}
    g = chain(gate, up, QUIET, others=others, upstream={"max_attempts": 9})
    a = g.ask()
    assert a.status == 502 and up.creds() == [K1, B1]
    done = g.ctl("check", "-v")
    assert "oa" in done.stdout + done.stderr and "fallback" in done.stdout + done.stderr


def test_a_fallback_path_starts_no_further_chain(up, gate):
    up.default(error(500))
    others = {"ob": channel(up, "B", fallback=["oc"]), "oc": channel(up, "C")}
    g = chain(gate, up, QUIET, others=others, upstream={"max_attempts": 9})
    assert g.ask().status == 502
    assert up.creds() == [K1, B1]


BUDGET = [
    # attempts, accounts of oa, of ob, of oc: who is asked
    (4, 3, 3, 3, "AAAB"),
    (3, 1, 3, 3, "ABB"),
    (3, 5, 5, 5, "AAB"),
    (2, 3, 3, 3, "AB"),
    (1, 3, 3, 3, "A"),
    (6, 2, 2, 3, "AABBCC"),
    (5, 1, 1, 1, "ABC"),
]


@pytest.mark.parametrize("attempts,a,b,c,order", BUDGET)
def test_attempts_are_bounded_over_channels(up, gate, attempts, a, b, c, order):
    """RET-08: the first channel leaves one; the last upstream error is what the client sees."""
    up.default(error(500, None, "oops"))
    others = {"ob": channel(up, "B", b), "oc": channel(up, "C", c)}
    g = chain(
        gate,
        up,
        QUIET,
        a,
        ("ob", "oc"),
        others,
        upstream={"max_attempts": attempts, "retry_backoff": "1ms"},
    )
    answer = g.ask()
    first = {key(n): "A" for n in range(1, 11)}
    first.update({key(n): "B" for n in range(11, 15)})
    asked = "".join(first.get(k, "C") for k in up.creds())
    assert asked == order
    assert answer.header("X-Sluice-Attempts") == str(len(order))
    assert (answer.status, answer.error["message"]) == (502, "oops")


def test_a_dead_key_is_asked_once(up, gate):
    """REQ-06: then the next channel."""
    up.default(error(401, "invalid_api_key"), K1)
    g = chain(gate, up, QUIET)
    assert [who(g.ask()) for _ in range(3)] == [("ob", "B1")] * 3
    assert up.count(K1) == 1


def test_the_callers_fault_stays(up, gate):
    up.script(K1, error(400, "bad_request"))
    g = chain(gate, up, QUIET)
    assert g.ask().status == 400
    assert up.creds() == [K1]


def test_after_the_commit_there_is_no_fallback(up, gate):
    up.script(K1, stream([chunk({"content": "begun"})], end="rst"))
    g = chain(gate, up, QUIET)
    a = g.ask(stream=True)
    assert a.events()[-1][1].startswith('{"error"') and up.creds() == [K1]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_fallbacks_model(up, gate, streamed):
    """By the models table, else the same name."""
    up.script(K1, error(500), error(500))
    models = {
        "smart": {
            "targets": [{"channel": "oa", "model": "gpt-x"}, {"channel": "ob", "model": "deep-y"}],
            "strategy": "task",
        },
        "plain": {"targets": [{"channel": "oa", "model": "gpt-z"}]},
    }
    g = chain(gate, up, QUIET, models=models)
    a = g.ask(model="smart", stream=streamed)
    assert a.header("X-Sluice-Model") == "deep-y"
    assert [r.json()["model"] for r in up.requests] == ["gpt-x", "deep-y"]
    g.ask(model="plain", stream=streamed)
    assert [r.json()["model"] for r in up.requests[2:]] == ["gpt-z", "gpt-z"]


def test_a_fallback_that_lacks_the_model_is_passed_over(up, gate):
    up.script(K1, error(500))
    others = {"ob": channel(up, "B", models=["gpt-*"]), "oc": channel(up, "C")}
    g = chain(gate, up, QUIET, fallback=("ob", "oc"), others=others)
    assert who(g.ask()) == ("oc", "C1")
    assert up.creds() == [K1, C1]


def test_fallback_when_full(up, gate):
    """SPEC 7 (a) comes first: wait as long as the queue allows."""
    up.default(slow(1.5), K1)
    g = chain(
        gate,
        up,
        workers=4,
        pool={"max_in_flight": 1},
        oa={"pool": {"queue_size": 4, "queue_timeout": "400ms"}},
    )
    busy = g.open(stream=False)
    up.wait_for(1)
    a = g.ask()
    assert who(a) == ("ob", "B1") and 0.35 < a.took < 0.9
    assert who(busy.finish()) == ("oa", "A1")
    assert said(g) == []  # full is active


def test_fallback_comes_before_trying_who_rests(up, gate):
    """SPEC 7 (b)"""
    up.script(K1, plain({}, 429))
    g = chain(gate, up, QUIET)
    assert [who(g.ask()) for _ in range(4)] == [("ob", "B1")] * 4
    assert up.count(K1) == 1


@pytest.mark.parametrize("triggers", [[], ["pool_exhausted"]])
def test_who_rests_is_the_last_resort(up, gate, triggers):
    up.script(K1, plain({}, 429))
    g = chain(gate, up, {"triggers": triggers})
    assert who(g.ask()) == ("ob", "B1")
    up.script(B1, error(500))
    a = g.ask()
    assert a.status == 200 and who(a) == ("oa", "A1") and a.header("X-Sluice-Attempts") == "2"
    assert up.creds() == [K1, B1, B1, K1]


def test_a_last_resort_says_little(up, gate):
    """While the fallback is ill too, the breaker does not flap with each request."""
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    g = chain(gate, up)
    g.ask()
    up.default(error(500), B1)
    for _ in range(6):
        assert g.ask().status in (429, 502)
    assert said(g) == [("warn", "open: pool_exhausted (no account active)")]


def test_being_a_fallback_does_not_close_a_channel(up, gate):
    """ob is exhausted, and has a fallback of its own: who comes by the chain sees it open, too."""
    up.default(error(500), K1)
    up.script(B1, error(429, headers={"Retry-After": "60"}))
    soon = {"recovery_timeout": "100ms", "reopen": "100ms"}
    ob = channel(up, "B", fallback=["oc"], models=["m1", "b"], channel_breaker=soon)
    others = {"ob": ob, "oc": channel(up, "C")}
    g = chain(gate, up, QUIET, fallback=("ob", "oc"), others=others, oa={"models": ["m1"]})
    for _ in range(3):
        assert who(g.ask(model="b")) == ("oc", "C1")
        time.sleep(0.12)
        assert who(g.ask()) == ("oc", "C1")
    assert said(g, "ob") == [("warn", "open: pool_exhausted (no account active)")]


def test_all_open(up, gate):
    up.default(error(500))
    one = {"triggers": ["consecutive_fail"], "consecutive_fail": 1}
    others = {"ob": channel(up, "B", channel_breaker={**one, "recovery_timeout": "90s"})}
    g = chain(gate, up, one, others=others)
    assert g.ask().status == 502
    a = g.ask()
    assert (a.status, a.error["code"]) == (503, "channel_open")
    assert 58 <= int(a.header("Retry-After")) <= 60
    assert up.creds() == [K1, B1]


def test_all_exhausted(up, gate):
    """The earliest return of the whole chain."""
    up.script(K1, error(429, headers={"Retry-After": "55"}))
    up.script(B1, error(429, headers={"Retry-After": "25"}))
    g = chain(gate, up)
    g.ask()
    a = g.ask()
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert 23 <= int(a.header("Retry-After")) <= 25
    assert up.count() == 2


def test_reload_takes_the_fallback_away(up, gate):
    """pool_exhausted opens only what has one."""
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    g = chain(gate, up)
    assert [who(g.ask())[0] for _ in range(2)] == ["ob", "ob"]
    g.reload(config(up.url, accounts=1))
    a = g.ask()
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert said(g)[-1] == ("info", "closed: no fallback is usable")


def test_events_of_a_channel(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    g = chain(gate, up)
    for _ in range(2):
        g.ask()
    events = g.ctl("events", "--json").stdout
    assert events.count('"pool_exhausted"') == 1
    lines = [x.split("  ")[1:] for x in g.ctl("events").stdout.splitlines()]
    assert [x[0] for x in lines] == ["oa/A1", "oa"]
    assert lines[1][1].startswith("closed -> open until 20")
    assert lines[1][2:] == ["pool_exhausted", "(open: pool_exhausted (no account active))"]


def test_the_session_comes_home(up, gate):
    """STICK-05: from the fallback back to the account it had on the first channel."""
    g = chain(gate, up, accounts=3, pool={"strategy": "round-robin"}, tiers=False)
    kw = {"headers": {"X-Session-Id": "s1"}}
    g.ask()
    home = who(g.ask(**kw))
    g.ctl("account", "disable", "--channel", "oa", "--all")
    assert who(g.ask(**kw)) == ("ob", "B1")
    g.ctl("account", "enable", "--channel", "oa", "--all")
    assert who(g.ask(**kw))[0] == "oa" and home[0] == "oa"
