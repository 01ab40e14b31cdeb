"""Sessions (SPEC 11; STICK): a conversation stays on one account. Where nothing is bound the round
robin goes on to the next account, so two answers of one account in a row are no chance.
"""

import os
import re
import stat
import time

import pytest

from lib.answers import close, error, plain, slow
from lib.pool import K1, K2, K3, key
from lib.upstream import wait_until
from test_10_pick import together

ROUND = {"strategy": "round-robin"}
QUIET = {"breaker": {"threshold": 99}, "channel_breaker": {"triggers": []}}
HEADERS = [
    "X-Session-Id",
    "X-Claude-Code-Session-Id",
    "Session-Id",
    "X-Session-Affinity",
    "Thread-Id",
]
KEYS = [
    "metadata.conversation_id",
    "metadata.conversationId",
    "metadata.user_id",
    "conversation_id",
    "conversationId",
    "session_id",
    "prompt_cache_key",
    "previous_response_id",
]
NAMES = HEADERS + KEYS  # in the order in which they count


def sessions(gate, accounts=3, sticky={}, pool={}, **vary):
    """A pool whose unbound requests go round, and no failure of which opens a breaker."""
    return gate(
        accounts=accounts, tiers=False, pool={**ROUND, **pool}, sticky=sticky, **{**QUIET, **vary}
    )


def naming(pairs):
    """Arguments of ask() that name the conversation so."""
    body, headers = {}, {}
    for name, value in pairs.items():
        if name in HEADERS:
            headers[name] = value
        elif "." in name:
            outer, inner = name.split(".")
            body.setdefault(outer, {})[inner] = value
        else:
            body[name] = value
    return {"headers": headers, **body}


def ask(g, session="s1", **kw):
    """The account that served one request of the session."""
    a = g.ask(headers={"X-Session-Id": session}, **kw)
    assert a.status == 200, a.out
    return a.header("X-Sluice-Account")


def bound(g, session="s1", **kw):
    """The account the session stays on."""
    first = ask(g, session, **kw)
    assert [ask(g, session, **kw) for _ in range(2)] == [first] * 2, "not bound"
    return first


def key_of(account):
    return key(int(account[1:]))


# Names ---------------------------------------------------------------------------------------------


def test_nothing_binds_without_a_name(up, gate):
    g = sessions(gate)
    assert [g.ask().header("X-Sluice-Account") for _ in range(6)] == ["A1", "A2", "A3"] * 2


def test_each_name_binds(up, gate):
    g = sessions(gate)
    for name in NAMES:
        who = [g.ask(**naming({name: f"v-{name}"})).header("X-Sluice-Account") for _ in range(3)]
        assert len(set(who)) == 1, (name, who)


def test_names_count_in_their_order(up, gate):
    g = sessions(gate)
    home = {}
    for name in NAMES:
        home[name] = g.ask(**naming({name: f"v-{name}"})).header("X-Sluice-Account")
    for i, first in enumerate(NAMES):
        for second in NAMES[i + 1 :]:
            if home[first] == home[second]:
                continue
            both = naming({second: f"v-{second}", first: f"v-{first}"})
            assert g.ask(**both).header("X-Sluice-Account") == home[first], (first, second)


@pytest.mark.parametrize("name", ["conversation_id", "metadata.user_id", "prompt_cache_key"])
def test_numbers_name_a_conversation(up, gate, name):
    g = sessions(gate)
    who = [g.ask(**naming({name: 4711})).header("X-Sluice-Account") for _ in range(3)]
    assert len(set(who)) == 1


@pytest.mark.parametrize("value", ["", None, {}, [], {"id": "x"}, ["x"], True])
def test_what_is_no_name(up, gate, value):
    g = sessions(gate)
    who = [g.ask(**naming({"conversation_id": value})).header("X-Sluice-Account") for _ in range(3)]
    assert who == ["A1", "A2", "A3"]
    who = [
        g.ask(**naming({"conversation_id": value, "session_id": "s"})).header("X-Sluice-Account")
        for _ in range(3)
    ]
    assert len(set(who)) == 1  # the next name counts


def test_empty_header_is_absent(up, gate):
    g = sessions(gate)
    both = {"X-Session-Id": "", "Thread-Id": "t"}
    first = g.ask(headers=both).header("X-Sluice-Account")
    assert g.ask(headers={"Thread-Id": "t"}).header("X-Sluice-Account") == first


U1, U2 = "3f1c9c52-0d0f-4b6e-9b0c-0f6a2b9f0a11", "aa1c9c52-0d0f-4b6e-9b0c-0f6a2b9f0a22"
OLD = f"user_{'ab' * 32}_account__session_"
OLD_ACCOUNT = f"user_{'cd' * 32}_account_{U2}_session_"


def new_form(session, device="d1"):
    return '{"device_id":"%s","account_uuid":"","session_id":"%s"}' % (device, session)


def test_claude_codes_user_id(up, gate):
    """Both forms yield their session part: one user's sessions are apart, one session is one."""
    g = sessions(gate)

    def who(user):
        return g.ask(metadata={"user_id": user}).header("X-Sluice-Account")

    first = who(OLD + U1)
    assert [who(OLD + U1), who(OLD_ACCOUNT + U1), who(new_form(U1)), who(new_form(U1, "d2"))] == [
        first
    ] * 4
    second = who(OLD + U2)
    assert second != first and who(new_form(U2)) == second
    third = who("somebody@example.org")
    assert third not in (first, second) and who("somebody@example.org") == third


def test_configured_names(up, gate):
    g = sessions(gate, sticky={"headers": ["X-My-Talk"], "keys": ["a.b.c"]})
    for kw in ({"headers": {"X-My-Talk": "1"}}, {"a": {"b": {"c": "1"}}}):
        who = [g.ask(**kw).header("X-Sluice-Account") for _ in range(3)]
        assert len(set(who)) == 1, kw
    who = [g.ask(headers={"X-Session-Id": "s"}).header("X-Sluice-Account") for _ in range(3)]
    assert len(set(who)) == 3


def test_switched_off(up, gate):
    g = sessions(gate, sticky={"enabled": False})
    assert [ask(g) for _ in range(3)] == ["A1", "A2", "A3"]


def test_two_clients_never_share(up, gate):
    g = sessions(gate, auth={"mode": "web-server"})

    def who(user):
        kw = {"headers": {"X-Session-Id": "s1"}, "vary": {"REMOTE_USER": user}}
        return g.ask(**kw).header("X-Sluice-Account")

    home = {user: who(user) for user in ("ann", "bob", "cy")}
    assert len(set(home.values())) == 3
    for user in ("bob", "cy", "ann", "cy", "bob"):
        assert who(user) == home[user]


# Binding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_first_binding_is_atomic(up, gate, streamed):
    up.default(slow(0.15))
    g = sessions(gate, accounts=4, workers=8, pool={"max_in_flight": 0})
    for n in range(3):
        up.clear()
        headers = {"X-Session-Id": f"n{n}"}
        answers = together(8, lambda i: g.ask(stream=streamed, headers=headers))
        assert {a.status for a in answers} == {200}
        assert len(set(up.creds())) == 1 and up.count() == 8


def test_accounts_without_a_session_are_preferred(up, gate):
    """Not only by the round robin: also where one account would always be drawn."""
    g = sessions(gate, accounts=4, pool={"strategy": "fill-first"})
    assert [ask(g, f"s{n}") for n in range(4)] == ["A1", "A2", "A3", "A4"]
    assert ask(g, "s5") == "A1"  # all have one: then all are good
    assert [ask(g, f"s{n}") for n in range(4)] == ["A1", "A2", "A3", "A4"]
    assert g.ask().header("X-Sluice-Account") == "A1"  # and this binds nobody who names nothing


def test_preference_knows_who_can_serve(up, gate):
    g = sessions(gate, pool={"strategy": "fill-first"})
    assert ask(g, "s1") == "A1"
    g.ctl("account", "disable", "A2", "A3")
    assert ask(g, "s2") == "A1"


def test_sessions_share_an_account_when_they_must(up, gate):
    g = sessions(gate, accounts=2)
    homes = {s: bound(g, s) for s in ("s1", "s2", "s3", "s4")}
    assert set(homes.values()) == {"A1", "A2"}
    assert {s: ask(g, s) for s in homes} == homes


def test_a_binding_is_for_one_channel(up, gate):
    """STICK-05: what the fallback channel served leaves the session where it was."""
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [{"id": f"B{n}", "api_key": key(10 + n)} for n in (1, 2, 3)],
            "pool": ROUND,
        }
    }
    g = sessions(gate, channel={"fallback": ["ob"]}, channels=more)
    ask(g, "other")
    home = bound(g)
    for k in (K1, K2, K3):
        up.script(k, error(429, headers={"Retry-After": "2"}))
    away = [ask(g) for _ in range(4)]
    assert away[0][0] == "B" and len(set(away)) == 1, away
    time.sleep(2.1)
    assert [ask(g) for _ in range(3)] == [home] * 3


# Trouble -------------------------------------------------------------------------------------------


def test_full_is_a_detour(up, gate):
    """Nor does it wait for its own account while others are free."""
    g = sessions(gate, workers=4, pool={"max_in_flight": 1, "queue_size": 8, "queue_timeout": "5s"})
    home = bound(g)
    up.script(key_of(home), slow(0.8))
    busy = g.open(stream=False, headers={"X-Session-Id": "s1"})
    wait_until(lambda: up.running(key_of(home)) == 1)
    a = g.ask(headers={"X-Session-Id": "s1"})
    assert a.header("X-Sluice-Account") != home and a.took < 0.5
    assert busy.finish().header("X-Sluice-Account") == home
    assert [ask(g) for _ in range(3)] == [home] * 3


SHORT = [
    ("server", error(500)),
    ("network", close()),
    ("html", plain(b"<html>x</html>", ctype="text/html")),
    ("overload", error(503)),
    ("stated", error(429, headers={"Retry-After": "1"})),
    ("guessed", plain({}, 429)),
    ("not found", plain({}, 404)),
]


@pytest.mark.parametrize("trouble", [s[1] for s in SHORT], ids=[s[0] for s in SHORT])
def test_short_trouble_is_a_detour(up, gate, trouble):
    rests = {"soft_rate": "1s", "overload": "1s", "not_found": "1s"}
    g = sessions(gate, cooldown=rests)
    home = bound(g)
    up.script(key_of(home), trouble)
    assert ask(g) != home  # the same request is served elsewhere
    assert ask(g) in {"A1", "A2", "A3"}  # perhaps it rests still
    time.sleep(1.1)
    assert [ask(g) for _ in range(3)] == [home] * 3


LASTING = [
    ("stated", error(429, headers={"Retry-After": "120"})),
    ("credit", error(402)),
    ("auth", error(401, "invalid_api_key")),
    ("model", error(404, "model_not_found")),
]


@pytest.mark.parametrize("trouble", [s[1] for s in LASTING], ids=[s[0] for s in LASTING])
def test_lasting_trouble_moves(up, gate, trouble):
    """STICK-01, STICK-03: re-bound to the account that served."""
    g = sessions(gate)
    home = bound(g)
    up.script(key_of(home), trouble)
    there = ask(g)
    assert there != home
    n = up.count(key_of(home))
    assert [ask(g) for _ in range(3)] == [there] * 3
    assert up.count(key_of(home)) == n
    g.ctl("account", "revive", home)
    assert [ask(g) for _ in range(3)] == [there] * 3


def test_detour_max_is_the_line(up, gate):
    g = sessions(gate, sticky={"detour_max": "10s"})
    home = bound(g)
    up.script(key_of(home), error(429, headers={"Retry-After": "11"}))
    assert ask(g) != home
    g.ctl("account", "clear", home)
    assert ask(g) != home  # moved
    home = ask(g)
    up.script(key_of(home), error(429, headers={"Retry-After": "9"}))
    assert ask(g) != home
    g.ctl("account", "clear", home)
    assert ask(g) == home  # a detour


def test_disabled_by_the_operator_moves(up, gate):
    g = sessions(gate)
    home = bound(g)
    g.ctl("account", "disable", home)
    there = ask(g)
    assert there != home
    g.ctl("account", "enable", home)
    assert [ask(g) for _ in range(3)] == [there] * 3


def test_removed_account_moves(up, gate):
    g = sessions(gate)
    home = bound(g)
    conf = g.conf
    rows = conf["channels"]["oa"]["accounts"]
    conf["channels"]["oa"]["accounts"] = [r for r in rows if r["id"] != home]
    g.reload(conf)
    assert bound(g) != home


def test_another_realm_moves(up, gate):
    g = sessions(
        gate, account={"A1": {"realm": "cn"}, "A2": {"realm": "eu"}, "A3": {"realm": "eu"}}
    )

    def who(realm):
        headers = {"X-Session-Id": "s1", "X-Sluice-Realm": realm}
        return g.ask(headers=headers).header("X-Sluice-Account")

    assert who("cn") == "A1"
    there = who("eu")
    assert there != "A1"
    assert [ask(g), ask(g), who("eu")] == [there] * 3


def test_a_model_that_it_lacks_moves(up, gate):
    g = sessions(gate, account={"A1": {"models": ["m1"]}, "A2": {"models": ["m1"]}})
    assert bound(g) == "A1"
    assert ask(g, model="m2") == "A3"
    assert [ask(g) for _ in range(2)] == ["A3"] * 2


def test_unbind_moves_always(up, gate):
    g = sessions(gate, sticky={"on_trouble": "unbind"})
    home = bound(g)
    up.script(key_of(home), error(500))
    there = ask(g)
    assert there != home
    assert [ask(g) for _ in range(3)] == [there] * 3


def two_homes(gate, up, **vary):
    """A session on A2, while A1 would be taken by whoever is not bound."""
    g = gate(accounts=2, **{**QUIET, **vary})
    g.ctl("account", "disable", "A1")
    assert ask(g) == "A2"
    g.ctl("account", "enable", "A1")
    assert ask(g) == "A2"
    return g


DEAD = [
    ("auth", error(401, "invalid_api_key")),
    ("credit", error(402)),
    ("stated", error(429, headers={"Retry-After": "600"})),
]


@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize("trouble", [d[1] for d in DEAD], ids=[d[0] for d in DEAD])
def test_nobody_served_a_lasting_trouble(up, gate, trouble, attempts):
    """Dropped: when all is well again the session is free."""
    up.script(K1, error(500))
    g = two_homes(gate, up, upstream={"max_attempts": attempts})
    up.script(K2, trouble)
    assert g.ask(headers={"X-Session-Id": "s1"}).status >= 400
    g.ctl("account", "revive", "--all")
    up.forget(K1)
    assert ask(g) == "A1"


@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize("trouble", [s[1] for s in SHORT[:5]], ids=[s[0] for s in SHORT[:5]])
def test_nobody_served_a_short_trouble(up, gate, trouble, attempts):
    up.script(K1, error(500))
    g = two_homes(gate, up, upstream={"max_attempts": attempts})
    up.script(K2, trouble, trouble)
    assert g.ask(headers={"X-Session-Id": "s1"}).status >= 400
    g.ctl("account", "revive", "--all")
    up.forget(K2)
    assert ask(g) == "A2"


def test_a_first_request_that_nobody_served_binds_nothing(up, gate):
    up.script(K1, error(400, "bad_request"), error(500))
    up.script(K2, error(500))
    g = gate(accounts=2, upstream={"max_attempts": 2}, **QUIET)
    for _ in range(2):
        assert g.ask(headers={"X-Session-Id": "s1"}).status >= 400
    g.ctl("account", "disable", "A1")
    assert ask(g) == "A2"
    g.ctl("account", "enable", "A1")
    assert ask(g) == "A2"


def test_a_bad_request_leaves_the_binding(up, gate):
    g = two_homes(gate, up)
    up.script(K2, error(400, "bad_request"))
    assert g.ask(headers={"X-Session-Id": "s1"}).status == 400
    assert ask(g) == "A2"


def test_a_client_that_leaves_keeps_its_binding(up, gate):
    """LEASE-08"""
    g = two_homes(gate, up)
    up.script(K2, slow(2.0))
    a = g.open(headers={"X-Session-Id": "s1"})
    wait_until(lambda: up.running(K2) == 1)
    a.close()
    wait_until(lambda: g.in_flight() == 0, 2)
    assert ask(g) == "A2"


# Time ----------------------------------------------------------------------------------------------


def test_use_renews_and_rest_expires(up, gate):
    g = sessions(gate, sticky={"ttl": "1500ms"})
    home = bound(g)
    for _ in range(4):
        time.sleep(0.7)
        assert ask(g) == home
    time.sleep(1.6)
    assert ask(g) != home


def test_a_detour_does_not_renew(up, gate):
    g = sessions(gate, sticky={"ttl": "1200ms"})
    home = bound(g)
    up.script(key_of(home), error(429, headers={"Retry-After": "2"}))
    assert ask(g) != home
    time.sleep(0.7)
    assert ask(g) != home
    time.sleep(0.7)  # the binding's time is over by now
    there = ask(g)
    assert there != home
    time.sleep(0.7)
    assert ask(g) == there


def test_bindings_survive_kill_9(up, gate):
    g = sessions(gate)
    homes = {s: bound(g, s) for s in ("s1", "s2", "s3")}
    g.kill_all()
    g.start()
    assert {s: ask(g, s) for s in ("s3", "s1", "s2")} == homes


def test_bindings_survive_a_reload(up, gate):
    g = sessions(gate, workers=3)
    home = bound(g)
    conf = g.conf
    conf["channels"]["oa"]["accounts"].reverse()
    g.reload(conf)
    assert [ask(g) for _ in range(4)] == [home] * 4


# Secrets -------------------------------------------------------------------------------------------


def test_only_hashes_are_kept(up, gate):
    """STICK-06"""
    g = sessions(gate, log={"level": "info"})
    secret = "ann.smith-7391@example.org"
    for name in ("X-Session-Id", "metadata.user_id", "prompt_cache_key", "previous_response_id"):
        assert g.ask(**naming({name: secret})).status == 200
    up.script(K1, error(500))
    ask(g, secret)
    g.stop()
    path = os.path.join(g.dir, "state", "secret")
    assert os.path.getsize(path) == 32
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    seen = set()
    for folder, _, names in os.walk(g.dir):
        for name in names:
            if not os.path.isfile(os.path.join(folder, name)):
                continue
            with open(os.path.join(folder, name), "rb") as f:
                assert b"ann.smith" not in f.read(), name
            seen.add(name)
    assert "secret" in seen and "log" in seen
    lines = [x for x in g.logs() if x.get("msg") == "request" and x["path"].startswith("/v1/chat")]
    assert len(lines) == 5 and all(re.fullmatch("[0-9a-f]{12}", x["session"]) for x in lines)
    header, again = lines[0]["session"], lines[4]["session"]
    assert header == again and len({x["session"] for x in lines}) == 3


def test_another_pool_hashes_otherwise(up, gate):
    """Keyed: the hash cannot be tried out without the pool's secret."""
    hashes = set()
    for _ in range(2):
        g = sessions(gate)
        ask(g)
        hashes |= {x["session"] for x in g.logs() if x.get("session")}
    assert len(hashes) == 2


def test_the_session_stays_here(up, gate):
    """No client header names a session to the upstream."""
    g = sessions(gate)
    for name in HEADERS:
        g.ask(headers={name: "talk-4711"})
    assert all(b"talk-4711" not in r.head for r in up.requests)


def test_hostile_names(up, gate):
    g = sessions(gate)
    for value in ("x" * 8000, "a\x01b", "\u00e9\u4fee", "' OR 1=1 --", "../../x", "%00"):
        who = [ask(g, value) for _ in range(2)]
        assert who[0] == who[1], value
    big = "y" * 200000
    who = [g.ask(prompt_cache_key=big).header("X-Sluice-Account") for _ in range(2)]
    assert who[0] == who[1]
    who = {g.ask(prompt_cache_key=big + "z").header("X-Sluice-Account") for _ in range(2)}
    assert len(who) == 1
