"""Looking at the pool (SPEC 9, 14, 16, 17): status, limits, costs, usage, sessions, triggers."""

import json
import time

import pytest
from lib.answers import chat_answer, error, plain, slow
from lib.pool import K1, K2, K3, config, key, parse_time
from lib.upstream import wait_until
from test_10_pick import FLAT, together

GUESS = error(429)
STATED = error(429, headers={"Retry-After": "120"})
B1 = key(9)  # the account of the fallback channel


def two(up, fallback=True, more={}, **vary):
    """Channels oa and, as its fallback, an."""
    conf = config(up.url, **vary)
    conf["channels"]["an"] = {
        "provider": "openai-compatible",
        "base_url": up.url,
        "accounts": [{"id": "B1", "api_key": B1}],
        **more,
    }
    if fallback:
        conf["channels"]["oa"]["fallback"] = ["an"]
    return conf


def look(g, *args):
    return json.loads(g.ctl(*args, "--json").stdout)


def explain(g, model="m1", **options):
    words = [w for name, value in options.items() for w in (f"--{name}", value)]
    return look(g, "explain", "--model", model, *words)


def outs(doc, channel="oa"):
    """Who is out, and why."""
    c = next(c for c in doc["channels"] if c["channel"] == channel)
    return {a["id"]: a["out"] for a in c["accounts"]}


def seen(doc, id):
    return next(a for c in doc["channels"] for a in c["accounts"] if a["id"] == id)


def session(name):
    return [("X-Session-Id", name)]


def cool(g, up, cred, action):
    """One request whose first answer, by `cred`, is `action`."""
    up.script(cred, action)
    g.ask()


# Status ------------------------------------------------------------------------------------------


def test_quota_of_an_account(up, gate):
    g = gate(accounts=2, account={"A1": {"quota": {"rpd": 10, "tpd": 1000, "total_tokens": 90}}})
    assert g.account("A1")["quota"] == {
        "limits": {"rpd": 10, "tpd": 1000, "total_tokens": 90},
        "used": {"rpd": 0, "tpd": 0, "total_tokens": 0},
        "left": {"rpd": 10, "tpd": 1000, "total_tokens": 90},
        "ratio": 1.0,
    }
    for _ in range(2):
        assert g.ask().header("X-Sluice-Account") == "A1"
    assert g.account("A1")["quota"] == {
        "limits": {"rpd": 10, "tpd": 1000, "total_tokens": 90},
        "used": {"rpd": 2, "tpd": 18, "total_tokens": 18},
        "left": {"rpd": 8, "tpd": 982, "total_tokens": 72},
        "ratio": 0.8,
    }
    assert g.account("A2")["quota"] is None


def test_who_waits_is_counted(up, gate):
    up.default(slow(0.8))
    waits = {"max_in_flight": 1, "queue_size": 8, "queue_timeout": "5s"}
    g = gate(accounts=1, workers=4, pool=waits)
    asked = [g.open(stream=False) for _ in range(3)]
    wait_until(lambda: g.status()["totals"]["waiting"] == 2, 2, "two wait")
    doc = explain(g)
    assert (doc["channels"][0]["waiting"], doc["channels"][0]["result"]) == (2, "waits")
    assert (doc["would"]["by"], doc["would"]["account"]) == ("queue", None)
    assert [a.finish().status for a in asked] == [200] * 3
    assert g.status()["totals"]["waiting"] == 0


def test_bound_sessions_are_counted_while_they_live(up, gate):
    g = gate(sticky={"ttl": "1s"})
    for name in ("a", "b", "a"):
        g.ask(headers=session(name))
    g.ask()
    assert g.status()["sessions"] == {"bound": 2}
    wait_until(lambda: g.status()["sessions"] == {"bound": 0}, 3, "they have expired")
    assert look(g, "sessions") == []


def test_the_breaker_goes_round(up, gate):
    """closed, open, half-open with its probes, closed: as status and explain tell it."""
    up.script(K1, error(500))
    rules = {
        "triggers": ["consecutive_fail"],
        "consecutive_fail": 1,
        "recovery_timeout": "1s",
        "half_open_requests": 3,
        "half_open_success": 2,
    }
    g = gate(accounts=1, workers=4, channel_breaker=rules, allow=["channel"])
    usual = {"triggers": ["consecutive_fail"], "probes_sent": 0, "probes_ok": 0}
    assert g.channel()["breaker"] == {"state": "closed", "until": None, "trigger": None, **usual}
    assert g.ask().status == 502
    a = g.ask()
    assert (a.status, a.error["code"]) == (503, "channel_open")
    doc, breaker = explain(g), g.channel()["breaker"]
    until = breaker.pop("until")
    assert -1 < parse_time(until) - time.time() < 2
    assert breaker == {"state": "open", "trigger": "consecutive_fail", **usual}
    assert doc["channels"][0]["result"] == "open"
    assert doc["channels"][0]["earliest"] == until
    assert doc["refusal"]["code"] == "channel_open"
    time.sleep(1.1)
    doc = explain(g)
    assert doc["channels"][0]["breaker"]["state"] == "half-open"
    assert doc["channels"][0]["breaker_news"].startswith("half-open")
    assert doc["would"]["permit"] is True
    assert g.channel()["breaker"]["state"] == "open"  # explain did not move it
    up.script(K1, slow(0.6))
    probe = g.open(stream=False)
    up.wait_for(2)
    assert g.channel()["breaker"] == {
        "state": "half-open",
        "until": None,
        "trigger": "consecutive_fail",
        "triggers": ["consecutive_fail"],
        "probes_sent": 1,
        "probes_ok": 0,
    }
    assert probe.finish().status == 200
    assert g.channel()["breaker"]["probes_ok"] == 1
    assert g.ask().status == 200
    assert g.channel()["breaker"] == {"state": "closed", "until": None, "trigger": None, **usual}


def test_an_open_channel_stands_above_the_table(up, gate):
    up.script(K1, error(500))
    rules = {"triggers": ["consecutive_fail"], "consecutive_fail": 1}
    g = gate(accounts=1, channel_breaker=rules, allow=["channel"])
    assert "channel oa" not in g.ctl("status").stdout
    g.ask()
    g.ask()
    assert "channel oa: open by consecutive_fail, " in g.ctl("status").stdout


# Limits ------------------------------------------------------------------------------------------


def test_limits_are_empty_where_nobody_rests(up, gate):
    g = gate()
    g.ask()
    assert look(g, "limits") == []


def test_limits_tell_stated_and_effective_times(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "500"}, message="slow down"))
    up.script(K2, GUESS)
    up.script(K3, error(404, "model_not_found", "no such model"))
    g = gate(cooldown={"stated_max": "100s"})
    began = time.time()
    assert g.ask().status == 404
    rows = {r["account"]: r for r in look(g, "limits")}
    assert set(rows) == {"A1", "A2", "A3"}
    for row in rows.values():
        assert list(row) == [
            "channel",
            "account",
            "model",
            "kind",
            "until",
            "left_s",
            "reset_at",
            "guessed",
            "reason",
            "rule",
            "status",
        ]
        assert abs(parse_time(row["until"]) - time.time() - row["left_s"]) < 3
    a1, a2, a3 = rows["A1"], rows["A2"], rows["A3"]
    assert (a1["kind"], a1["status"], a1["reason"]) == ("soft_rate", 429, "slow down")
    assert abs(parse_time(a1["until"]) - began - 100) < 3
    assert abs(parse_time(a1["reset_at"]) - began - 500) < 3
    assert (a1["guessed"], a1["model"]) == (False, None)
    assert (a2["guessed"], a2["reset_at"]) == (True, None)
    assert (a3["model"], a3["kind"], a3["status"]) == ("m1", "model_missing", 404)
    text = g.ctl("limits").stdout
    assert "oa/A1" in text and "(guessed)" in text and "slow down" in text


def test_limits_come_in_the_order_of_their_ends(up, gate):
    for cred, s in ((K1, 50), (K2, 20), (K3, 80)):
        up.script(cred, error(429, headers={"Retry-After": str(s)}))
    g = gate()
    g.ask()
    assert [r["account"] for r in look(g, "limits")] == ["A2", "A1", "A3"]


def test_an_open_account_breaker_is_a_limit(up, gate):
    up.script(K1, error(500))
    g = gate(accounts=2, breaker={"threshold": 1, "backoff": ["60s"]})
    g.ask()
    (row,) = look(g, "limits")
    assert (row["account"], row["kind"], row["model"]) == ("A1", "breaker", None)
    assert 55 <= row["left_s"] <= 60
    assert row["until"] == g.account("A1")["breaker_until"]
    g.ctl("account", "revive", "A1")
    assert look(g, "limits") == []


# Costs and usage ---------------------------------------------------------------------------------

PRICED = {
    "models": {
        "m1": {
            "targets": [{"channel": "oa", "model": "m1"}],
            "cost": {"input": 1, "output": 2, "cached": 0.5},
        },
        "gift": {
            "targets": [{"channel": "oa", "model": "gift"}],
            "cost": {"input": 0, "output": 0},
        },
    }
}


def test_costs(up, gate):
    g = gate(accounts=1, pool={"cost_ttl": "2s"}, **PRICED)
    assert look(g, "costs") == []
    for model in ("m1", "gift", "nobody knows"):
        assert g.ask(model).status == 200
    rows = {r["model"]: r for r in look(g, "costs")}
    assert set(rows) == {"m1", "gift"}
    for r in rows.values():
        assert list(r) == ["channel", "account", "model", "price", "tier", "at", "age_s"]
        assert (r["channel"], r["account"]) == ("oa", "A1")
        assert r["age_s"] <= 2 and abs(parse_time(r["at"]) - time.time()) < 3
    # 7 in and 2 out cost 0.011, that is 11/9 for 1,000
    assert (rows["m1"]["price"], rows["m1"]["tier"]) == (1.222223, "paid")
    assert (rows["gift"]["price"], rows["gift"]["tier"]) == (0.0, "free")
    assert seen(explain(g), "A1")["cost_tier"] == "paid"
    time.sleep(2.1)
    assert {r["tier"] for r in look(g, "costs")} == {"unmeasured"}
    assert "oa/A1" in g.ctl("costs").stdout


def test_usage_is_the_sum_of_the_outcomes(up, gate):
    conf = config(up.url, accounts=3, auth={"mode": "web-server"}, **PRICED)
    g = gate(conf=conf, workers=4)
    user = lambda name: {"REMOTE_USER": name}
    up.script(K1, error(500), error(429, headers={"Retry-After": "1"}))
    for n in range(6):
        assert g.ask(vary=user("ann")).status == 200
    for n in range(3):
        assert g.ask("free as air", stream=True, vary=user("bob")).status == 200
    up.default(slow(5))
    gone = g.open(stream=False, vary=user("bob"))
    up.wait_for(up.count() + 0)
    time.sleep(0.2)
    gone.close()
    wait_until(lambda: g.in_flight() == 0, 3, "it was settled")
    rows = look(g, "usage")
    for row in rows:
        assert list(row) == [
            "day",
            "client",
            "channel",
            "account",
            "model",
            "requests",
            "failed",
            "cancelled",
            "prompt",
            "completion",
            "cached",
            "cache_write",
            "reasoning",
            "cost",
            "estimated",
        ]
        assert row["day"] == time.strftime("%Y-%m-%d", time.gmtime())
        assert row["channel"] == "oa"
    total = lambda name, **of: sum(
        r[name] for r in rows if all(r[k] == v for k, v in of.items()) and r[name] is not None
    )
    accounts = g.accounts()
    for id, a in accounts.items():
        assert total("requests", account=id) == a["calls"], id
        assert total("failed", account=id) == a["errors"], id
        assert total("prompt", account=id) == a["tokens"]["prompt"], id
        assert total("completion", account=id) == a["tokens"]["completion"], id
    assert total("requests") == up.count()
    assert (total("failed"), total("cancelled")) == (2, 1)
    assert total("requests", client="ann") == 6 + 2
    assert total("requests", client="bob") == 3 + 1
    assert {r["cost"] is None for r in rows if r["model"] == "free as air"} == {True}
    assert round(total("cost", client="ann"), 6) == round(6 * 0.011, 6)
    assert look(g, "usage", "--days", "1") == rows
    text = g.ctl("usage", "--days", "400").stdout
    assert text.splitlines()[-1].split()[:3] == ["all", "-", str(up.count())]


def test_no_table_sends_what_a_caller_said_to_the_terminal(up, gate):
    up.default(plain(chat_answer(usage={"prompt_tokens": 5, "completion_tokens": 5, "credit": 1})))
    g = gate(accounts=2, auth={"mode": "web-server"})
    up.script(K1, error(404, "model_not_found", "no such \x1b[31m model"))
    assert g.ask(vary={"REMOTE_USER": "eve\x1b[31m"}).status == 403
    assert g.ask(vary={"REMOTE_USER": "eve"}).status == 200
    for command in ("usage", "costs", "limits", "events", "status", "sessions"):
        text = g.ctl(command).stdout
        assert "\x1b" not in text and "\r" not in text, command
    assert {r["client"] for r in look(g, "usage")} == {"eve"}


# Sessions ----------------------------------------------------------------------------------------


def test_sessions_are_listed_by_hash_alone(up, gate):
    g = gate(accounts=2, auth={"mode": "web-server"}, **FLAT)
    names = ["project-tiger", "anna@example.org"]
    for name in names:
        for user in ("ann", "bob"):
            g.ask(headers=session(name), vary={"REMOTE_USER": user})
    rows = look(g, "session", "list")
    assert len(rows) == 4 and len({r["session"] for r in rows}) == 4
    for r in rows:
        assert list(r) == [
            "session",
            "channel",
            "account",
            "bound_at",
            "last_used",
            "expires_at",
            "left_s",
        ]
        assert len(r["session"]) == 12 and int(r["session"], 16) >= 0
        assert 1700 < r["left_s"] <= 1800
    texts = [g.ctl(*c).stdout for c in (["sessions"], ["session", "list"], ["sessions", "--json"])]
    assert texts[0] == texts[1] and json.loads(texts[2]) == rows
    hashes = {l["session"] for l in g.logs() if l.get("session")}
    assert hashes == {r["session"] for r in rows}
    for text in [*texts, g.log_text(), json.dumps(explain(g, session=names[0], client="ann"))]:
        assert not any(name in text for name in names)


def test_session_drop(up, gate):
    g = gate(accounts=2, auth={"mode": "web-server"}, **FLAT)
    ann = {"REMOTE_USER": "ann"}
    for name in ("one", "two", "three"):
        g.ask(headers=session(name), vary=ann)
    g.ask(vary=ann, conversation_id="four")
    hashes = [r["session"] for r in look(g, "sessions")]
    assert look(g, "session", "drop", hashes[0]) == {"dropped": 1}
    assert look(g, "session", "drop", hashes[1][:6].upper()) == {"dropped": 1}
    left = [r["session"] for r in look(g, "sessions")]
    assert left == hashes[2:] and g.status()["sessions"]["bound"] == 2
    done = [
        g.ctl("session", "drop", "--id", name, "--client", "ann", check=False).returncode
        for name in ("one", "two", "three", "four")
    ]
    assert sorted(done) == [0, 0, 1, 1]
    assert look(g, "sessions") == []
    for words, status in (
        (["drop", hashes[0]], 1),
        (["drop", "--id", "one"], 1),
        (["drop", "xyz"], 2),
        (["drop", "12345"], 2),
        (["drop"], 2),
        (["drop", "--client", "ann"], 2),
        (["drop", hashes[0], "--id", "one"], 2),
        (["drop", "--id"], 2),
        (["xdrop"], 2),
        ([], 2),
    ):
        assert g.ctl("session", *words, check=False).returncode == status, words


def test_a_dropped_session_is_a_new_one(up, gate):
    g = gate(accounts=2, pool={"min_pick_gap": "0s"}, **FLAT)
    first = g.ask(headers=session("a")).header("X-Sluice-Account")
    assert explain(g, session="a")["would"] == {
        "channel": "oa",
        "account": first,
        "model": "m1",
        "by": "session",
        "permit": False,
        "share": 1.0,
    }
    g.ctl("session", "drop", "--id", "a")
    doc = explain(g, session="a")
    assert doc["channels"][0]["session"] is None and doc["would"]["by"] == "draw"
    g.ctl("account", "disable", first)
    assert g.ask(headers=session("a")).header("X-Sluice-Account") != first
    assert len(look(g, "sessions")) == 1


# Triggers ----------------------------------------------------------------------------------------


def test_triggers_are_switched_for_all_workers_at_the_next_pick(up, gate):
    up.default(slow(0.1))
    rules = {"triggers": [], "consecutive_fail": 1}
    g = gate(
        accounts=1,
        workers=6,
        pool={"max_in_flight": 0},
        channel_breaker=rules,
        allow=["channel"],
    )
    six = lambda: {a.status for a in together(6, lambda i: g.ask())}
    assert six() == {200}  # every worker has looked at the breaker
    up.script(K1, error(500))
    assert g.ask().status == 502
    assert g.channel()["breaker"]["state"] == "closed"
    done = look(g, "channel", "triggers", "oa", "consecutive_fail")
    assert done == {"channel": "oa", "triggers": ["consecutive_fail"], "switched": True}
    assert g.channel()["breaker"]["triggers"] == ["consecutive_fail"]
    assert six() == {503}
    assert g.channel()["breaker"]["state"] == "open"
    assert look(g, "channel", "list")[0]["switched"] is True
    look(g, "channel", "triggers", "oa", "none")
    assert six() == {200}
    assert g.channel()["breaker"]["state"] == "closed"


def test_switched_triggers_outlive_a_restart_and_can_be_given_back(up, gate):
    g = gate(accounts=1)
    assert look(g, "channel", "triggers", "oa") == {
        "channel": "oa",
        "triggers": ["pool_exhausted", "error_rate"],
        "switched": False,
    }
    g.ctl("channel", "triggers", "oa", "latency", "error_rate")
    g.stop()
    g.start()
    assert g.channel()["breaker"]["triggers"] == ["error_rate", "latency"]
    assert explain(g)["channels"][0]["breaker"]["triggers"] == ["error_rate", "latency"]
    done = look(g, "channel", "triggers", "oa", "default")
    assert done["triggers"] == ["pool_exhausted", "error_rate"] and done["switched"] is False
    events = [e for e in look(g, "events") if e["cause"] == "operator"]
    assert [e["rule"] for e in events] == ["error_rate latency", "triggers as configured"]
    assert {e["channel"] for e in events} == {"oa"}


def test_channel_list(up, gate):
    g = gate(conf=two(up))
    cool(g, up, K1, STATED)
    oa, an = look(g, "channel", "list")
    assert oa == {
        "name": "oa",
        "provider": "openai-compatible",
        "fallback": ["an"],
        "accounts": 3,
        "active": 2,
        "breaker": g.channel()["breaker"],
        "switched": False,
        "window": {"requests": 2, "failures": 0, "first_content_ms": None},
    }
    assert (an["name"], an["active"], an["window"]["requests"]) == ("an", 1, 0)
    lines = g.ctl("channel", "list").stdout.splitlines()
    assert lines[1].split()[:2] == ["oa", "openai-compatible"] and "2/3" in lines[1]


# The commands ------------------------------------------------------------------------------------

COMMANDS = ["explain", "limits", "costs", "usage", "session", "sessions", "channel"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(up, gate, command):
    g = gate(accounts=1, start=False)
    done = g.ctl(command, "--help")
    assert f"sluicectl [-c FILE] {command}" in done.stdout and "example:\n" in done.stdout
    assert command in g.ctl("--help").stdout


@pytest.mark.parametrize(
    "words, status, says",
    [
        ("limits --jsno", 2, "did you mean '--json'?"),
        ("limits now", 2, "takes no 'now'"),
        ("usage --day 3", 2, "did you mean '--days'?"),
        ("usage --days 0", 2, "from 1 to 400"),
        ("usage --days", 2, "wants a value"),
        ("explain", 2, "--model"),
        ("explain --model", 2, "wants a value"),
        ("explain --modle m1", 2, "did you mean '--model'?"),
        ("channel triggers", 2, "usage:"),
        ("channel triggers oa eror_rate", 2, "did you mean 'error_rate'?"),
        ("channel triggers oa none error_rate", 2, "no trigger 'none'"),
        ("channel triggers oaa", 1, "did you mean 'oa'?"),
        ("channel trigger oa", 2, "did you mean 'triggers'?"),
        ("disable a1", 2, "no command 'disable'; did you mean 'account disable'?"),
        ("sessionz", 2, "did you mean 'session"),
        ("limitz", 2, "did you mean 'limits'?"),
    ],
)
def test_slips(up, gate, words, status, says):
    done = gate(accounts=1).ctl(*words.split(), check=False)
    assert (done.returncode, done.stdout) == (status, ""), done
    assert says in done.stderr


def test_a_model_that_nobody_serves(up, gate):
    g = gate(accounts=1, channel={"models": ["m1"]})
    done = g.ctl("explain", "--model", "m2", check=False)
    assert done.returncode == 1 and "no channel serves the model 'm2'" in done.stderr


def test_commands_work_while_nothing_runs(up, gate):
    g = gate(accounts=2)
    cool(g, up, K1, STATED)
    g.ask(headers=session("a"))
    g.stop()
    assert [r["account"] for r in look(g, "limits")] == ["A1"]
    assert explain(g, session="a")["would"]["account"] == "A2"
    assert len(look(g, "sessions")) == 1 and len(look(g, "usage")) == 2
