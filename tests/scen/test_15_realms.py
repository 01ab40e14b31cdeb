"""Realms (SPEC 4.1, 7): a request confined to a label never leaves it."""

import pytest

from lib.answers import error, slow
from lib.pool import K1, K2, K3, key

REALMS = {"A1": {"realm": "global"}, "A2": {"realm": "cn"}, "A3": {"realm": "cn"}}
CN = {"X-Sluice-Realm": "cn"}


def test_header_confines(up, gate):
    g = gate(account=REALMS)
    assert g.ask().header("X-Sluice-Account") == "A1"
    assert g.ask(headers=CN).header("X-Sluice-Account") == "A2"
    assert g.ask(headers={"X-Sluice-Realm": "global"}).header("X-Sluice-Account") == "A1"


def test_the_web_servers_variable_wins(up, gate):
    g = gate(account=REALMS)
    a = g.ask(headers=CN, vary={"SLUICE_REALM": "global"})
    assert a.header("X-Sluice-Account") == "A1"
    a = g.ask(headers={"X-Sluice-Realm": "global"}, vary={"SLUICE_REALM": "cn"})
    assert a.header("X-Sluice-Account") == "A2"
    assert g.ask(headers=CN, vary={"SLUICE_REALM": ""}).header("X-Sluice-Account") == "A2"


def test_the_models_realm(up, gate):
    models = {"m1": {"targets": [{"channel": "oa", "model": "m1"}], "realm": "cn"}}
    g = gate(account=REALMS, models=models)
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert g.ask(model="m2").header("X-Sluice-Account") == "A1"
    a = g.ask(vary={"SLUICE_REALM": "global"})
    assert a.header("X-Sluice-Account") == "A1"


def test_failures_stay_inside(up, gate):
    up.script(K2, error(429, headers={"Retry-After": "60"}))
    up.script(K3, error(429, headers={"Retry-After": "40"}))
    g = gate(account=REALMS)
    assert g.ask(headers=CN).status == 429
    a = g.ask(headers=CN)
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert 38 <= int(a.header("Retry-After")) <= 40
    assert up.creds() == [K2, K3]
    assert g.ask().header("X-Sluice-Account") == "A1"


def test_accounts_without_a_realm_are_outside(up, gate):
    g = gate(accounts=2, account={"A2": {"realm": "cn"}})
    assert g.ask(headers=CN).header("X-Sluice-Account") == "A2"
    up.script(K2, error(402))
    g.ask(headers=CN)
    assert g.ask(headers=CN).status in (429, 503)
    assert K1 not in up.creds()


@pytest.mark.parametrize("realm", ["nowhere", "CN", "c", "cnn", "c n", "*", "x" * 5000])
def test_unknown_realm(up, gate, realm):
    g = gate(account=REALMS)
    a = g.ask(headers={"X-Sluice-Realm": realm})
    assert (a.status, a.error["code"], up.count()) == (503, "no_account", 0)
    assert a.header("Retry-After") is None
    g.assert_clean()


def test_full_realm_waits_while_others_are_idle(up, gate):
    up.default(slow(0.4), K2)
    waits = {"max_in_flight": 1, "queue_size": 4, "queue_timeout": "5s"}
    g = gate(accounts=2, workers=4, account=REALMS, pool=waits)
    first = g.open(stream=False, headers=CN)
    up.wait_for(1)
    second = g.open(stream=False, headers=CN)
    assert g.ask().took < 0.3
    assert [first.finish().status, second.finish().status] == [200, 200]
    assert up.creds() == [K2, K1, K2]


def test_the_realm_holds_on_the_fallback_channel(up, gate):
    up.default(error(500), K1)
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [
                {"id": "B1", "api_key": key(11), "priority": 1},
                {"id": "B2", "api_key": key(12), "priority": 2, "realm": "cn"},
            ],
        }
    }
    g = gate(
        accounts=1, account={"A1": {"realm": "cn"}}, channel={"fallback": ["ob"]}, channels=more
    )
    assert g.ask(headers=CN).header("X-Sluice-Account") == "B2"
    assert up.creds() == [K1, key(12)]


def health(g):
    a = g.get("/healthz")
    return a.status, a.json()


def test_healthz(up, gate):
    """Counts what could be picked now; a full one can't."""
    up.script(K2, error(429, headers={"Retry-After": "60"}))
    up.script(K3, slow(1.0))
    g = gate(workers=3, account=REALMS, pool={"max_in_flight": 1})
    assert health(g) == (
        200,
        {
            "service": "sluice",
            "healthy": 3,
            "total": 3,
            "realm_servable": {"global": 1, "cn": 2},
        },
    )
    busy = g.open(stream=False, headers=CN)
    up.wait_for(1, K3)
    s, h = health(g)
    assert (s, h["healthy"], h["realm_servable"]) == (200, 1, {"global": 1, "cn": 0})
    assert busy.finish().status == 200
    s, h = health(g)
    assert (h["healthy"], h["realm_servable"]) == (2, {"global": 1, "cn": 1})
    g.ctl("account", "disable", "A1", "A3")
    s, h = health(g)
    assert (s, h["healthy"], h["realm_servable"]) == (503, 0, {"global": 0, "cn": 0})
    g.ctl("account", "enable", "A3")
    assert health(g)[0] == 200


def test_healthz_counts_over_channels(up, gate):
    more = {
        "ob": {
            "provider": "openai-compatible",
            "base_url": up.url,
            "accounts": [
                {"id": "B1", "api_key": key(11), "realm": "cn"},
                {"id": "B2", "api_key": key(12), "realm": "eu", "enabled": False},
            ],
        }
    }
    s, h = health(gate(account=REALMS, channels=more))
    assert (h["healthy"], h["total"]) == (4, 5)
    assert h["realm_servable"] == {"global": 1, "cn": 3, "eu": 0}
