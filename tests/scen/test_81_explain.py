"""explain (SPEC 7, 16): it says what a pick then does, and changes nothing."""

import time

import pytest
from lib.answers import chat_answer, error, plain, slow
from lib.pool import K1, K2, K3, key, parse_time
from lib.upstream import wait_until
from test_10_pick import FLAT
from test_80_looking import B1, GUESS, STATED, cool, explain, look, outs, seen, session, two

# Explain: the same as a pick ---------------------------------------------------------------------


def situation_tiers(up, gate):
    return gate()


def situation_next_tier(up, gate):
    g = gate()
    cool(g, up, K1, STATED)
    return g


def situation_disabled(up, gate):
    g = gate()
    g.ctl("account", "disable", "A1")
    return g


def situation_breaker(up, gate):
    g = gate(breaker={"threshold": 1})
    cool(g, up, K1, error(500))
    return g


def situation_model_rests(up, gate):
    up.script(K1, error(404, "model_not_found", "no such model"))
    g = gate()
    g.ask()
    return g


def situation_quota(up, gate):
    g = gate(account={"A1": {"quota": {"rpd": 1}}})
    g.ask()
    return g


def situation_probe(up, gate):
    g = gate(accounts=2)
    for cred in (K1, K2):
        up.script(cred, GUESS)
    g.ask()
    return g


def situation_nobody_may_be_probed(up, gate):
    g = gate(accounts=2)
    for cred in (K1, K2):
        up.script(cred, STATED)
    g.ask()
    return g


def situation_probing_is_off(up, gate):
    g = gate(accounts=1, pool={"all_cooling": "off"})
    cool(g, up, K1, GUESS)
    return g


def situation_all_disabled(up, gate):
    g = gate(accounts=2)
    g.ctl("account", "disable", "--all")
    return g


def situation_no_model(up, gate):
    g = gate(accounts=1)
    up.script(K1, error(404, "model_not_found", "no such model"))
    g.ask()
    return g


def situation_fallback(up, gate):
    g = gate(conf=two(up, accounts=1))
    up.script(K1, STATED)
    g.ask()
    return g


def situation_fallback_before_a_probe(up, gate):
    conf = two(up, accounts=1, channel_breaker={"triggers": []})
    g = gate(conf=conf)
    up.script(K1, GUESS)
    g.ask()
    return g


def situation_last_chance(up, gate):
    conf = two(up, accounts=1, channel_breaker={"triggers": []})
    g = gate(conf=conf)
    up.script(K1, GUESS)
    up.script(B1, STATED)
    g.ask()
    return g


def situation_free_before_paid(up, gate):
    used = {"prompt_tokens": 5, "completion_tokens": 5}
    costs = lambda n: plain(chat_answer(usage={**used, "credit": n}))
    up.default(costs(1))
    up.default(costs(0), K3)
    g = gate(pool={"min_pick_gap": "0s"}, **FLAT)
    wait_until(lambda: g.ask().header("X-Sluice-Account") == "A3", 5, "A3 was tried")
    return g


def situation_session(up, gate):
    g = gate(**FLAT)
    for n in range(4):
        g.ask(headers=session(f"other{n}"))
    g.ask(headers=session("mine"))
    return g


def situation_session_detour(up, gate):
    g = gate()
    g.ask(headers=session("mine"))
    cool(g, up, K1, error(429, headers={"Retry-After": "20"}))
    return g


def strategy(name):
    def situation(up, gate):
        g = gate(pool={"strategy": name, "min_pick_gap": "0s"}, **FLAT)
        up.script(K2, error(503))
        for _ in range(5):
            g.ask()
        return g

    situation.__name__ = f"situation_{name}"
    return situation


SITUATIONS = [f for name, f in sorted(globals().items()) if name.startswith("situation_")] + [
    strategy(s)
    for s in ("round-robin", "least-in-flight", "least-used", "lru", "fill-first", "quota")
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda f: f.__name__[10:])
def test_what_explain_says_is_done(up, gate, situation):
    """Five times: who is named is asked, how it is refused is how the client hears it."""
    g = situation(up, gate)
    up.default(plain(chat_answer()))
    for _ in range(5):
        doc = explain(g, session="mine")
        before = up.count()
        a = g.ask(headers=session("mine"))
        if doc["would"] is None:
            end = doc["refusal"]
            assert (a.status, a.error["code"]) == (end["status"], end["code"]), doc
            if end["retry_after_s"] is not None:
                assert abs(int(a.header("Retry-After")) - end["retry_after_s"]) <= 1
            assert up.count() == before
        else:
            assert doc["refusal"] is None
            assert a.header("X-Sluice-Channel") == doc["would"]["channel"], doc
            if doc["would"]["share"] == 1:
                assert a.header("X-Sluice-Account") == doc["would"]["account"], doc
            else:
                share = seen(doc, a.header("X-Sluice-Account"))["share"]
                assert 0 < share <= doc["would"]["share"], doc


def test_situations_are_what_they_are_called(up, gate):
    """The last test is only worth something if each situation is another one."""
    by, where = {}, {}
    for situation in SITUATIONS:
        up.clear()
        up.default(plain(chat_answer()))
        doc = explain(situation(up, gate), session="mine")
        name = situation.__name__[10:]
        by[name] = doc["would"]["by"] if doc["would"] else doc["refusal"]["code"]
        where[name] = doc["would"] and doc["would"]["channel"]
    assert by["probe"] == by["last_chance"] == "probe"
    assert by["session"] == "session"
    assert by["session_detour"] == by["tiers"] == by["fallback"] == "draw"
    assert by["nobody_may_be_probed"] == by["probing_is_off"] == "pool_exhausted"
    assert (by["all_disabled"], by["no_model"]) == ("no_account", "model_not_found")
    assert where["fallback"] == where["fallback_before_a_probe"] == "an"
    assert where["last_chance"] == "oa"


def test_every_reason_why_an_account_is_out(up, gate):
    account = {
        "A1": {"realm": "cn"},
        "A2": {"models": ["gpt-*"]},
        "A3": {"weight": 0},
        "A5": {"enabled": False},
        "A9": {"quota": {"rpm": 1}},
        "A10": {"priority": 1},
        "A11": {"max_in_flight": 1},
        "A12": {"priority": 2},
    }
    g = gate(accounts=12, workers=4, account=account, breaker={"threshold": 2}, **FLAT)
    order = ["A4", "A6", "A7", "A8", "A9", "A11"]

    def alone(id):
        """Only this one may serve."""
        g.ctl("account", "disable", *[i for i in order if i != id], "A1", "A10", "A12")
        g.ctl("account", "enable", id)

    def hit(id, *actions):
        alone(id)
        up.script(key(int(id[1:])), *actions)
        for _ in actions:
            g.ask()

    hit("A4", STATED)
    hit("A6", error(500), error(500))
    hit("A7", error(404, "model_not_found", "no such model"))
    hit("A8", error(429, "6004", "model limit"))
    alone("A9")
    assert g.ask().status == 200
    alone("A11")
    up.script(key(11), slow(3))
    running = g.open(stream=False)
    up.wait_for(1, key(11))
    g.ctl("account", "enable", "--all")
    doc = explain(g)
    assert outs(doc) == {
        "A1": None,
        "A2": "does not serve the model",
        "A3": "weight 0",
        "A4": "cooling",
        "A5": "disabled",
        "A6": "breaker open",
        "A7": "model missing",
        "A8": "model cooling",
        "A9": "quota used up",
        "A10": "a better priority is free",
        "A11": "full",
        "A12": "a better priority is free",
    }
    assert seen(doc, "A11")["in_flight"] == 1
    assert doc["would"] == {
        "channel": "oa",
        "model": "m1",
        "account": "A1",
        "by": "draw",
        "permit": False,
        "share": 1.0,
    }
    now = parse_time(doc["now"])
    for id, left in {"A4": 120, "A6": 1800, "A9": None}.items():
        until = parse_time(seen(doc, id)["until"])
        assert (abs(until - now - left) < 20) if left else (0 < until - now <= 60)
    assert seen(doc, "A5")["until"] is None
    assert set(outs(explain(g, realm="cn")).values()) >= {None, "other realm"}
    assert outs(explain(g, model="gpt-x"))["A2"] is None
    assert running.finish().status == 200


def test_terms_of_the_weight(up, gate):
    account = {
        "A1": {"credits": 100, "weight": 2},
        "A2": {"credits": 50},
        "A3": {"priority": 1, "credits": 999},
    }
    g = gate(account=account, tiers=False)
    doc = explain(g)
    a1, a2, a3 = (seen(doc, id) for id in ("A1", "A2", "A3"))
    assert a1["terms"] == {"credits": 10.0, "idle": 5.0, "success": 1.5}
    assert a2["terms"] == {"credits": 5.0, "idle": 5.0, "success": 1.5}
    assert (a1["score"], a2["score"]) == (33.0, 11.5)
    assert (a1["share"], a2["share"], a3["share"]) == (0.7416, 0.2584, 0.0)
    assert a3["out"] == "a better priority is free"
    assert (a1["weight"], a1["factor"], a1["cost_tier"]) == (2.0, 1.0, "unmeasured")
    assert [a["id"] for a in doc["channels"][0]["accounts"]] == ["A1", "A2", "A3"]
    assert doc["would"]["share"] == 0.7416


def test_bound_accounts_come_last_for_a_new_session(up, gate):
    g = gate(accounts=2, pool={"min_pick_gap": "0s"}, **FLAT)
    bound = g.ask(headers=session("a")).header("X-Sluice-Account")
    doc = explain(g, session="b")
    assert outs(doc)[bound] == "has sessions, others have none"
    assert doc["channels"][0]["prefers_unbound"] is True
    assert set(outs(explain(g)).values()) == {None}  # without a session it does not matter


def test_route_and_chain(up, gate):
    conf = two(up, accounts=1, more={"models": ["m1", "x-1"]})
    conf["channels"]["oa"]["fallback"] = ["an", "cc"]
    conf["channels"]["cc"] = {**conf["channels"]["an"], "models": ["other"]}
    conf["channels"]["cc"]["accounts"] = [{"id": "C1", "api_key": key(10)}]
    conf["models"] = {"smart": {"targets": [{"channel": "oa", "model": "x-1"}]}}
    doc = explain(gate(conf=conf), model="smart")
    assert doc["route"] == {"channel": "oa", "model": "x-1", "entry": True}
    assert doc["chain"] == [
        {"channel": "oa", "wire": "chat", "model": "x-1", "passed_over": None},
        {"channel": "an", "wire": "chat", "model": "x-1", "passed_over": None},
        {"channel": "cc", "wire": "chat", "model": None, "passed_over": "does not serve the model"},
    ]
    assert [c["channel"] for c in doc["channels"]] == ["oa", "an"]
    assert doc["model"] == "smart"
    assert doc["session"] is doc["client"] is doc["realm"] is None


def test_explain_for_people(up, gate):
    g = gate(accounts=2)
    cool(g, up, K1, STATED)
    text = g.ctl("explain", "--model", "m1").stdout
    assert "would take oa/A2 by draw (100%)" in text
    assert "cooling, 1m 5" in text or "cooling, 2m 0s left" in text
    g.ctl("account", "disable", "--all")
    assert "would refuse: 503 no_account" in g.ctl("explain", "--model", "m1").stdout


# Explain: changes nothing ------------------------------------------------------------------------


def everything(g):
    """All that can be looked at, without what time alone changes."""
    s = g.status()
    del s["now"]
    docs = [look(g, *c.split()) for c in ("limits", "costs", "usage", "session list", "events")]
    for doc in docs:
        for row in doc:
            row.pop("left_s", None), row.pop("age_s", None)
    return [s, *docs]


def test_explain_changes_nothing(up, gate):
    conf = two(up, **FLAT, auth={"mode": "web-server", "admins": ["boss"]})
    conf["pool"].update({"strategy": "round-robin", "cost_explore": "1s", "all_cooling": "any"})
    conf["channel_breaker"] = {"recovery_timeout": "1s", "triggers": ["consecutive_fail"]}
    g = gate(conf=conf)
    boss = {"REMOTE_USER": "boss"}
    up.script(K1, STATED)
    for name in ("a", "b", "c"):
        g.ask(headers=session(name), vary=boss)
    time.sleep(1.1)
    before, asked = everything(g), up.count()
    for n in range(6):
        doc = explain(g, session="abcdef"[n], client="boss")
        a = g.ask(headers=[*session("abcdef"[n]), ("X-Sluice-Explain", "1")], vary=boss)
        assert a.status == 200 and a.json()["would"] == doc["would"]
        assert a.json()["session"] == doc["session"]
    assert everything(g) == before
    assert up.count() == asked
    lines = [l for l in g.logs() if l.get("outcome") == "explained"]
    assert len(lines) == 6 and all(l["attempts"] == [] for l in lines)


def test_explain_header_is_for_admins(up, gate):
    g = gate(accounts=2, auth={"mode": "web-server", "admins": ["boss"]})
    ask = lambda user, value="1", **more: g.ask(
        headers=[("X-Sluice-Explain", value)], vary={"REMOTE_USER": user}, **more
    )
    a = ask("boss")
    assert (a.status, a.header("X-Sluice-Attempts")) == (200, "0")
    doc, local = a.json(), explain(g, client="boss")
    assert doc.pop("now") and local.pop("now")
    assert doc == local
    a = ask("carol")
    assert (a.status, a.error["code"]) == (403, "forbidden")
    assert up.count() == 0
    assert ask("carol", "0").json()["object"] == "chat.completion"
    assert up.count() == 1
    a = g.get("/v1/models", REMOTE_USER="carol", headers=[("X-Sluice-Explain", "1")])
    assert a.status == 200  # there is nothing to explain
    assert ask("boss", stream=True).json()["would"]["account"] == "A1"


def test_nobody_is_admin_without_a_list(up, gate):
    g = gate(accounts=1)
    a = g.ask(headers=[("X-Sluice-Explain", "1")])
    assert (a.status, a.error["code"]) == (403, "forbidden")
    assert up.count() == 0
