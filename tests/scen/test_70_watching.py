"""Watching without traffic (SPEC 10): recovery and active probes, and the jobs themselves."""

import json
import time

import pytest

from lib.answers import error, hang, ok, plain, reset, slow
from lib.pool import K1, K2, K3, parse_time
from lib.upstream import Upstream, wait_until
from lib.watching import MODELS, REFUSED, by_path, chats, events, fail, gets


def recover(**more):
    return {"probe": {"recover_every": "1s", **more}}


@pytest.fixture
def bank():
    upstream = Upstream()
    yield upstream
    upstream.stop()


# Recovery ----------------------------------------------------------------------------------------


def test_disable_after_is_undone(up, gate):
    """A counted failure in a row too many disables; GET /models with the key brings it back."""
    up.default(by_path(error(503), ok()), K1)
    g = gate(accounts=1, pool={"disable_after": 2}, upstream={"max_attempts": 1}, **recover())
    fail(g, up, error(500), 2)
    assert g.account()["state"] == "disabled"
    wait_until(lambda: g.account()["last_probe"], 4, "a probe")
    a = g.account()
    assert (a["state"], a["last_probe"]["result"]) == ("disabled", "failed")
    assert abs(parse_time(a["last_probe"]["at"]) - time.time()) < 5
    assert (a["errors"], a["consecutive_failures"]) == (2, 2), "a failed probe changes nothing"
    up.default(by_path(), K1)
    wait_until(lambda: g.account()["state"] == "active", 4, "it is back")
    a = g.account()
    assert (a["last_probe"]["result"], a["consecutive_failures"], a["disabled"]) == (
        "healthy",
        0,
        False,
    )
    assert (a["calls"], a["success"]) == (2, 0), "a probe is no request"
    last = gets(up)[-1]
    assert (last.target, last.cred, last.body) == ("/v1/models", K1, b"")
    assert events(g, account="A1", to="active", cause="probe", rule="probe: GET /models")
    assert g.ask().status == 200
    seen = len(gets(up))
    time.sleep(2.2)
    assert len(gets(up)) == seen, "an active account is not probed for recovery"


@pytest.mark.parametrize(
    "action", [reset(), error(401, "invalid_api_key", "Incorrect API key")], ids=["network", "auth"]
)
def test_breaker_of_network_or_auth(up, gate, action):
    up.default(by_path(error(401, "invalid_api_key", "Incorrect API key")), K1)
    g = gate(
        accounts=1,
        breaker={"threshold": 2},
        cooldown={"auth_failed_after": 9},
        upstream={"max_attempts": 1},
        **recover(),
    )
    fail(g, up, action, 2)
    a = g.account()
    assert a["breaker_until"] and a["breaker_step"] == 1
    wait_until(lambda: g.account()["last_probe"], 4, "a probe")
    a = g.account()
    assert (a["state"], a["fails"], a["breaker_step"], a["disabled"]) == ("cooling", 0, 1, False)
    up.default(by_path(), K1)
    wait_until(lambda: g.account()["state"] == "active", 4, "it is back")
    assert g.account()["breaker_step"] == 1, "only the chat path takes the back-off's step back"
    assert g.ask().status == 200
    assert g.account()["breaker_step"] == 0


@pytest.mark.parametrize(
    "name,action,times",
    [
        ("server breaker", error(500), 2),
        ("mixed breaker", None, 2),
        ("soft rate", error(429), 1),
        ("stated", error(429, headers={"Retry-After": "300"}), 1),
        ("hard credit", error(402, "insufficient_quota", "no credit"), 1),
        ("key refused", error(401, "invalid_api_key", "Incorrect API key"), 1),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_models_bring_nobody_else_back(up, gate, name, action, times):
    """GET /models proves neither the chat path nor a limit."""
    up.default(by_path(), K1)
    g = gate(
        accounts=1,
        breaker={"threshold": 2},
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
        **recover(),
    )
    if action is None:
        fail(g, up, reset(), 1)
        fail(g, up, error(500), 1)
    else:
        fail(g, up, action, times)
    before = g.account()
    assert before["state"] != "active"
    time.sleep(2.5)
    after = g.account()
    for key in ("state", "cool", "breaker_until", "breaker_step", "soft_streak", "disabled"):
        assert after[key] == before[key], name
    assert not gets(up) and len(chats(up)) == times


def test_operator_keeps_it_disabled(up, gate):
    up.default(by_path(), K1)
    g = gate(accounts=1, pool={"disable_after": 1}, upstream={"max_attempts": 1})
    fail(g, up, error(500), 1)
    g.ctl("account", "disable", "A1")
    g.write({**g.conf, "probe": {"recover_every": "1s"}})
    g.reload()
    time.sleep(2.2)
    assert g.account()["state"] == "disabled" and not gets(up)


def test_chat_after_half_the_time(up, gate):
    """recover_chat: one token on the model that failed, not before half of the rest is over."""
    up.default(by_path(error(404)), K1)
    g = gate(
        accounts=1,
        cooldown={"soft_rate": "8s"},
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
        **recover(recover_chat=True),
    )
    fail(g, up, error(429), 1, model="m7")
    began = time.time()
    assert g.account()["soft_streak"] == 1
    wait_until(lambda: g.account()["state"] == "active", 7.5, "it is back before its time")
    asked = chats(up)[-1]
    assert 3.9 < time.time() - began < 7.5 and len(chats(up)) == 2
    body = asked.json()
    assert (body["model"], body["max_tokens"], len(body["messages"])) == ("m7", 1, 1)
    a = g.account()
    assert (a["soft_streak"], a["cool"], a["last_probe"]["result"]) == (0, None, "healthy")
    assert (a["calls"], a["success"], a["errors"]) == (1, 0, 1)


def test_failed_chat_never_escalates(up, gate):
    """A probe made while cooling never escalates; a stated reset may move the deadline later."""
    up.default(error(429), K1)
    g = gate(
        accounts=1,
        cooldown={"soft_rate": "6s"},
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
        **recover(recover_chat=True),
    )
    fail(g, up, error(429), 1)
    before = g.account()
    wait_until(lambda: len(chats(up)) >= 2, 6, "a probe")
    wait_until(lambda: g.account()["last_probe"], 2, "its result")
    after = g.account()
    assert after["last_probe"]["result"] == "rate_limited"
    for key in ("cool", "soft_streak", "fails", "consecutive_failures", "errors", "breaker_step"):
        assert after[key] == before[key], key
    up.script(K1, error(429, headers={"Retry-After": "120"}))
    wait_until(lambda: g.cooling_for() > 60, 4, "the stated time")
    after = g.account()
    assert (after["soft_streak"], after["fails"]) == (before["soft_streak"], before["fails"])
    seen = len(chats(up))
    time.sleep(2.2)
    assert len(chats(up)) == seen, "a stated rest is not probed"


@pytest.mark.parametrize(
    "action",
    [error(402, "insufficient_quota", "no credit"), error(429, headers={"Retry-After": "4"})],
    ids=["hard credit", "stated"],
)
def test_chat_leaves_credit_and_stated(up, gate, action):
    up.default(by_path(), K1)
    g = gate(
        accounts=1,
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
        **recover(recover_chat=True),
    )
    fail(g, up, action, 1)
    time.sleep(3)
    assert len(up.requests) == 1 and g.account()["state"] == "cooling"


def test_chat_ends_a_server_breaker(up, gate):
    up.default(by_path(error(404)), K1)
    g = gate(
        accounts=1,
        breaker={"threshold": 2, "backoff": ["6s"]},
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
        **recover(recover_chat=True),
    )
    fail(g, up, error(500), 2)
    assert g.account()["state"] == "cooling"
    wait_until(lambda: g.account()["state"] == "active", 5.5, "it is back before its time")
    assert g.account()["breaker_step"] == 0


# Active probes -----------------------------------------------------------------------------------


def active(every="1s", **more):
    return {"probe": {"recover_every": "0s", "active_every": every, **more}}


@pytest.mark.parametrize(
    "what,action,want",
    [
        ("healthy", ok(), ("active", "healthy", 0)),
        ("rate", error(429), ("cooling", "rate_limited", 1)),
        ("auth", error(401, "invalid_api_key", "Incorrect key"), ("disabled", "failed", 1)),
        ("server", error(500), ("active", "failed", 1)),
        ("not an answer", plain({"hello": 1}), ("active", "failed", 1)),
        ("its own fault", error(400, None, "bad"), ("active", "failed", 0)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_active(up, gate, what, action, want):
    up.default(action, K1)
    g = gate(accounts=1, channel={"models": ["m1"]}, allow=["A1"], **active("600s"))
    wait_until(lambda: g.account()["last_probe"], 4, "a probe")
    a = g.account()
    assert (a["state"], a["last_probe"]["result"], a["consecutive_failures"]) == want
    body = up.requests[0].json()
    assert (body["model"], body["messages"]) == ("m1", [{"role": "user", "content": "Hi"}])
    if what == "rate":
        assert a["cool"]["kind"] == "soft_rate" and a["soft_streak"] == 1
    if what == "auth":
        assert events(g, account="A1", to="disabled", level="alert", cause="auth_failed")
        assert "Incorrect key" in a["disabled_reason"]
    assert len(up.requests) == 1


def test_active_failures_open_the_breaker(up, gate):
    up.default(error(500), K1)
    g = gate(accounts=1, channel={"models": ["m1"]}, **active())
    wait_until(lambda: g.account()["state"] == "cooling", 8, "three failures")
    assert len(up.requests) == 3
    time.sleep(1.5)
    assert len(up.requests) == 3, "one that rests is not asked"


def test_active_may_disable(up, gate):
    up.default(error(500), K1)
    up.default(error(429), K2)
    g = gate(
        accounts=2, channel={"models": ["m1"]}, allow=["A1"], **active("600s", on_failure="disable")
    )
    wait_until(lambda: g.account("A2")["last_probe"], 4, "a probe")
    a = g.accounts()
    assert (a["A1"]["state"], a["A2"]["state"]) == ("disabled", "cooling")
    assert a["A1"]["disabled_reason"].startswith("probe: server")


def test_active_asks_for_what_is_used(up, gate):
    """No name in the configuration: the model that was served here; before that GET /models."""
    up.default(by_path(error(500)))
    g = gate(accounts=1, **active())
    wait_until(lambda: g.account()["last_probe"], 4, "a probe")
    assert g.account()["last_probe"]["result"] == "failed" and not chats(up)
    g.assert_clean()
    g.ask(model="deep-9")
    wait_until(lambda: len(chats(up)) >= 2, 4, "a chat")
    assert chats(up)[-1].json()["model"] == "deep-9"


def test_a_model_that_is_limited(up, gate):
    """On a provider with limits per model the model rests, not the account."""
    up.default(error(429, "rate_limit_exceeded", "slow down"), K1)
    g = gate(
        accounts=1,
        channel={"provider": "openai", "models": ["gpt-x"]},
        **active("600s"),
    )
    wait_until(lambda: g.account()["last_probe"], 4, "a probe")
    a = g.account()
    assert a["state"] == "active" and a["last_probe"]["result"] == "rate_limited"
    assert [m["model"] for m in a["rate_limited_models"]] == ["gpt-x"]
    assert up.last.json()["max_completion_tokens"] == 1


def test_silent_provider_holds_nobody_up(up, gate):
    """One worker, a probe that gets no answer: requests wait about 2 s, not 10."""
    up.default(by_path(hang(), ok()), K1)
    up.default(by_path(hang(), ok()), K2)
    g = gate(accounts=2, workers=1, **active())
    wait_until(lambda: gets(up), 4, "a probe")
    began = time.monotonic()
    assert g.ask(timeout=9).status == 200
    assert time.monotonic() - began < 3.5


def test_probe_is_given_up_on_sigterm(up, gate):
    up.default(by_path(hang(), ok()))
    g = gate(accounts=1, workers=1, **active())
    wait_until(lambda: gets(up), 4, "a probe")
    assert g.stop() < 2


# Jobs --------------------------------------------------------------------------------------------


def test_one_of_four_workers(up, gate):
    """Each round of probes is one process's: no account is asked twice in it."""
    up.default(slow(0.2, MODELS))
    g = gate(workers=4, accounts=3, **active("2s"))
    time.sleep(3.9)
    for cred in (K1, K2, K3):
        times = [r.at for r in gets(up, cred)]
        assert 1 <= len(times) <= 2, times
        assert all(b - a > 1.5 for a, b in zip(times, times[1:])), times


def test_rounds_go_on_in_parts(up, gate):
    """More accounts than one run asks."""
    up.default(by_path())
    g = gate(workers=2, accounts=20, tiers=False, **active("600s"))
    wait_until(lambda: len(gets(up)) >= 20, 6, "all are asked")
    time.sleep(1.3)
    assert sorted(r.cred for r in gets(up)) == sorted({r.cred for r in gets(up)})


def test_tick_without_workers(up, bank, gate):
    """`sluicectl tick` runs what is due, once, with no worker alive."""
    up.default(by_path(), K1)
    g = gate(accounts=2, alerts={"url": bank.url}, pool={"disable_after": 1}, allow=["A1"])
    up.script(K1, error(500))
    g.ask()
    wait_until(lambda: bank.count() == 1, 4, "the alert of a worker")
    g.kill_all()
    g.write({**g.conf, "probe": {"recover_every": "60s"}})
    assert g.account()["state"] == "disabled"
    run = json.loads(g.ctl("tick", "--json", timeout=30).stdout)["run"]
    assert run >= 1 and g.account()["state"] == "active"
    g.ctl("tick", timeout=30)
    assert len(gets(up)) == 1 and bank.count() == 1
    assert g.ctl("tick", "now", check=False).returncode == 2


def test_probe_command(up, gate):
    """Each account's result, and the state that follows."""
    up.default(by_path(), K1)
    up.default(error(429), K2)
    up.default(REFUSED, K3)
    g = gate(channel={"models": ["m1"]}, allow=["A3"])
    rows = json.loads(g.ctl("probe", "--json").stdout)
    assert [(r["account"], r["result"], r["status"]) for r in rows] == [
        ("oa/A1", "healthy", 200),
        ("oa/A2", "rate_limited", 429),
        ("oa/A3", "failed", 401),
    ]
    states = {i: a["state"] for i, a in g.accounts().items()}
    assert states == {"A1": "active", "A2": "cooling", "A3": "disabled"}
    assert {a["last_probe"]["result"] for a in g.accounts().values()} == {
        "healthy",
        "rate_limited",
        "failed",
    }
    up.default(ok(), K2)
    assert "healthy" in g.ctl("probe", "A2").stdout
    assert g.account("A2")["state"] == "active", "a guessed rest ends with a chat's success"
    assert "GET /models" in g.ctl("probe", "oa/A1", "--models").stdout
    assert up.last.method == "GET"
    assert g.ctl("probe", "nobody", check=False).returncode == 1
    assert g.ctl("probe", "--fast", check=False).returncode == 2


def test_regex_is_checked_as_it_is_used(up, gate):
    """What only PCRE2 knows is good; what it refuses is a fault at load."""
    g = gate(start=False, channel={"rules": [{"text": "/(?<=no )credit\\b/", "kind": "client"}]})
    assert g.ctl("check").returncode == 0
    channel = {**g.conf["channels"]["oa"], "rules": [{"text": "/a(?/", "kind": "client"}]}
    g.write({**g.conf, "channels": {"oa": channel}})
    done = g.ctl("check", check=False)
    assert done.returncode == 1 and "is no regular expression" in done.stdout + done.stderr
