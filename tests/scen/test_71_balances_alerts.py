"""Watching without traffic (SPEC 10): balances, degradation, alerts."""

import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.answers import error, ok, plain
from lib.pool import K1, K2, K3, alive
from lib.upstream import Upstream, wait_until
from lib.watching import REFUSED, events, fail


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


@pytest.mark.waits
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


def test_alert_by_command(up, gate, tmp_path):
    """Once for each incident, the event on standard input and in variables, no key in either."""
    out = tmp_path / "out"
    what = "$SLUICE_CHANNEL/$SLUICE_ACCOUNT $SLUICE_TO $SLUICE_CAUSE $SLUICE_STATUS"
    line = f'cat >> {out}; echo "{what}" >> {out}; env >> {out}.env; echo noise; echo noise >&2'
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


@pytest.mark.waits
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


@pytest.mark.waits
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
    with open(f"/proc/{number}/task/{number}/children") as f:
        started = [int(p) for p in f.read().split()]
    assert len(started) == 1
    wait_until(lambda: not alive(number), 12, "it is ended after 10 s")
    wait_until(lambda: not alive(started[0]), 1, "and what it started")
    wait_until(lambda: "not done within 10 s" in g.log_text(), 3, "and it is said")
