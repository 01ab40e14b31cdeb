"""Watching without traffic (SPEC 10): recovery and active probes, balances, degradation, alerts, the
jobs themselves.
"""

import json
import os
import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.answers import chat_answer, error, hang, ok, plain, raw, reset, slow
from lib.pool import K1, K2, K3, alive, parse_time
from lib.upstream import Upstream, wait_until

MODELS = plain({"object": "list", "data": [{"id": "m1", "object": "model"}]})


def by_path(models=MODELS, chat=None):
    """One action for GET /models, another for everything else."""

    def act(x):
        return (models if x.request.target.endswith("/models") else chat or ok())(x)

    return act


def gets(up, cred=None):
    return [r for r in up.requests if r.method == "GET" and cred in (None, r.cred)]


def chats(up, cred=None):
    return [r for r in up.requests if r.method == "POST" and cred in (None, r.cred)]


def events(g, **like):
    rows = json.loads(g.ctl("events", "-n", "500", "--json").stdout)
    return [e for e in rows if all(e[k] == v for k, v in like.items())]


def recover(**more):
    return {"probe": {"recover_every": "1s", **more}}


def fail(g, up, action, times, **ask):
    """`times` requests that A1, the only account, fails."""
    for _ in range(times):
        up.script(K1, action)
        g.ask(**ask)


# Recovery ----------------------------------------------------------------------------------------


def test_disable_after_is_undone(up, gate):
    """A counted failure in a row too many disables; GET /models with the key brings it back."""
    up.default(by_path(error(503), ok()), K1)
    g = gate(
        accounts=1, pool={"disable_after": 2}, upstream={"max_attempts": 1}, **recover()
    )
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
    """Without a name in the configuration: the model that was served here; before that GET /models."""
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


# Balances ----------------------------------------------------------------------------------------


@pytest.fixture
def bank():
    upstream = Upstream()
    yield upstream
    upstream.stop()


def credits(n):
    return plain({"data": {"balance": n}})


def soon(zone_hours=0, minutes=1):
    """The next full minute as a time of day in a zone, and the seconds until then."""
    now = datetime.now(timezone.utc)
    then = now.replace(second=0, microsecond=0) + timedelta(minutes=minutes)
    return (then + timedelta(hours=zone_hours)).strftime("%H:%M"), (then - now).total_seconds()


def balance(bank, at, **more):
    return {
        "balance": {
            "url": bank.url + "/user/info",
            "credits": "/data/balance",
            "at": at,
            **more,
        },
        "cooldown": {"timezone": "Asia/Shanghai"},
    }


def test_balance_thaws(up, bank, gate):
    """At the channel's time, in its zone: who was out of credit and has some again serves again."""
    if soon()[1] < 8:
        time.sleep(soon()[1] + 0.1)
    at, left = soon(8)
    for cred, value in ((K1, "12.5"), (K2, 0), (K3, 7)):
        bank.default(credits(value), cred)
    g = gate(
        accounts=3, channel=balance(bank, [at]), breaker={"threshold": 9}, allow=["no balance"]
    )
    up.script(K1, error(402, "insufficient_quota", "no credit"))
    up.script(K2, error(402, "insufficient_quota", "no credit"))
    up.script(K3, error(429, headers={"Retry-After": "3000"}))
    g.ask()
    assert {a["state"] for a in g.accounts().values()} == {"cooling"}
    assert bank.count() == 0, "not before the time"
    bank.wait_for(3, timeout=left + 14)
    wait_until(lambda: g.account("A3")["credits"] is not None, 3, "written")
    a = g.accounts()
    assert [a[i]["state"] for i in ("A1", "A2", "A3")] == ["active", "cooling", "cooling"]
    assert [a[i]["credits"] for i in ("A1", "A2", "A3")] == [12.5, 0, 7]
    assert a["A1"]["cool"] is None and a["A1"]["consecutive_failures"] == 1
    assert events(g, account="A1", cause="balance", to="active")
    assert (bank.last.method, bank.last.target) == ("GET", "/v1/user/info")
    time.sleep(1.5)
    assert bank.count() == 3, "once"
    g.ctl("account", "credits", "A3", "8")
    assert g.account("A3")["state"] == "active", "its credits rose since it began to rest"


def test_credits_by_hand(up, gate):
    """`account credits` acts like a balance refresh; the breaker stays."""
    g = gate(
        accounts=1,
        account={"A1": {"credits": 5}},
        breaker={"threshold": 2},
        pool={"all_cooling": "off"},
        upstream={"max_attempts": 1},
    )
    fail(g, up, error(429, headers={"Retry-After": "3000"}), 1)
    assert "usage" in g.ctl("account", "credits", "A1", "lots", check=False).stderr
    assert g.ctl("account", "credits", "A1", "-1", check=False).returncode == 2
    g.ctl("account", "credits", "A1", "5")
    assert (g.account()["state"], g.account()["credits"]) == ("cooling", 5)
    g.ctl("account", "credits", "A1", "0")
    assert g.account()["state"] == "cooling"
    done = g.ctl("account", "credits", "oa/A1", "0.25", "--json")
    assert json.loads(done.stdout) == {"changed": 1, "rest_ended": True}
    a = g.account()
    assert (a["state"], a["credits"], a["soft_streak"]) == ("active", 0.25, 0)
    fail(g, up, error(402, "insufficient_quota", "no credit"), 1)
    a = g.account()
    assert a["breaker_until"] and a["cool"]["kind"] == "hard_credit"
    g.ctl("account", "credits", "A1", "0.25")
    a = g.account()
    assert a["cool"] is None and a["breaker_until"] and a["state"] == "cooling"


# Degradation -------------------------------------------------------------------------------------


def test_degrade_by_hand(up, gate):
    g = gate(accounts=1, degrade={"message": "Closed today"}, allow=["degraded"])
    assert json.loads(g.ctl("degrade", "--json").stdout) == {"degrade": "auto", "degraded": False}
    g.ctl("degrade", "on")
    time.sleep(1.3)
    a = g.ask()
    assert a.status == 503 and a.json()["error"]["message"] == "Closed today"
    assert a.json()["error"]["code"] == "degraded" and up.count() == 0
    assert g.get("/v1/models").status == 200
    assert json.loads(g.ctl("degrade", "--json").stdout) == {"degrade": "on", "degraded": True}
    g.stop()
    g.start()
    assert g.ask().status == 503, "from the first request of a new worker on"
    g.ctl("degrade", "auto")
    time.sleep(1.3)
    assert g.ask().status == 200
    assert g.ctl("degrade", "perhaps", check=False).returncode == 2
    assert [e["to"] for e in events(g, cause="degrade")] == ["degraded", "normal"]


def test_degrade_by_itself(up, gate):
    g = gate(
        accounts=4,
        degrade={"below": 0.5, "message": "Back soon"},
        workers=4,
        allow=["degraded"],
    )
    g.ctl("account", "disable", "A1", "A2")
    time.sleep(1.3)
    assert g.ask().status == 200, "half of them is not below half"
    g.ctl("account", "disable", "A3")
    time.sleep(1.3)
    a = g.ask()
    assert (a.status, a.json()["error"]["message"]) == (503, "Back soon")
    g.ctl("degrade", "off")
    time.sleep(1.3)
    assert g.ask().status == 200, "the operator's word"
    g.ctl("degrade", "auto")
    time.sleep(1.3)
    assert g.ask().status == 503
    g.ctl("account", "enable", "A3")
    time.sleep(1.3)
    assert g.ask().status == 200
    assert [e["level"] for e in events(g, cause="degrade", to="degraded")] == ["alert", "alert"]
    assert events(g, rule="1 of 4 accounts active")


# Alerts ------------------------------------------------------------------------------------------

REFUSED = error(401, "invalid_api_key", "Incorrect key")


def test_alert_by_command(up, gate, tmp_path):
    """Once for each incident, the event on standard input and in variables, no key in either."""
    out = tmp_path / "out"
    line = f'cat >> {out}; echo "$SLUICE_CHANNEL/$SLUICE_ACCOUNT $SLUICE_TO $SLUICE_CAUSE $SLUICE_STATUS" >> {out}; env >> {out}.env; echo noise; echo noise >&2'
    g = gate(
        workers=4,
        accounts=3,
        alerts={"command": line},
        allow=["A1", "A2"],
        env={"SECRET_KEY": "sk-secret"},
    )
    up.default(REFUSED, K1)
    assert g.ask().status == 200
    wait_until(lambda: out.exists() and out.read_text().count("\n") >= 2, 4, "the alert")
    first = out.read_text().splitlines()
    event = json.loads(first[0])
    assert first[1] == "oa/A1 disabled auth_failed 401"
    assert (event["account"], event["level"], event["to"]) == ("A1", "alert", "disabled")
    assert event["text"] == "account [oa/A1] disabled: auth_failed"
    time.sleep(2.2)
    assert len(out.read_text().splitlines()) == 2, "once"
    up.default(REFUSED, K2)
    g.ask()
    wait_until(lambda: len(out.read_text().splitlines()) == 4, 4, "the next incident")
    assert "oa/A2 disabled auth_failed 401" in out.read_text()
    env = open(f"{out}.env").read()
    assert "SECRET_KEY" not in env and "PATH=" in env
    assert K1 not in env + out.read_text()


def test_alert_by_url(up, bank, gate):
    """Another try where it did not arrive."""
    bank.script(None, error(500), ok())
    g = gate(accounts=2, alerts={"url": bank.url + "/hook"}, allow=["A1", "alerts.url"])
    up.default(REFUSED, K1)
    g.ask()
    bank.wait_for(1)
    bank.wait_for(2, timeout=14)
    assert bank.last.target == "/v1/hook" and bank.last.cred is None
    event = bank.last.json()
    assert event == bank.requests[0].json()
    assert (event["channel"], event["account"], event["cause"]) == ("oa", "A1", "auth_failed")
    time.sleep(2.2)
    assert bank.count() == 2


def test_alert_of_the_past(up, bank, gate):
    """What is older than the setting by more than an hour is not told; what is news is."""
    g = gate(accounts=2, alerts={"url": bank.url}, allow=["A1"], start=False)
    g.write({**g.conf, "alerts": {}})
    g.start()
    up.default(REFUSED, K1)
    g.ask()
    g.reload({**g.conf, "alerts": {"url": bank.url}})
    bank.wait_for(1)
    time.sleep(1.5)
    assert bank.count() == 1


def test_slow_command_blocks_nobody(up, gate, tmp_path):
    pid = tmp_path / "pid"
    g = gate(
        workers=1,
        accounts=2,
        alerts={"command": f"echo $$ > {pid}; sleep 50; :"},
        allow=["A1", "alerts.command"],
    )
    up.default(REFUSED, K1)
    g.ask()
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 4, "the command runs")
    began = time.monotonic()
    assert g.ask(timeout=9).status == 200
    assert time.monotonic() - began < 3.5
    for _ in range(3):
        began = time.monotonic()
        assert g.ask().status == 200
        assert time.monotonic() - began < 0.5
    number = int(pid.read_text())
    wait_until(lambda: not alive(number), 12, "it is ended after 10 s")
    wait_until(lambda: "not done within 10 s" in g.log_text(), 3, "and it is said")


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
    g.reload_conf = None
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
    g.write({**g.conf, "channels": {"oa": {**g.conf["channels"]["oa"], "rules": [{"text": "/a(?/", "kind": "client"}]}}})
    done = g.ctl("check", check=False)
    assert done.returncode == 1 and "is no regular expression" in done.stdout + done.stderr
