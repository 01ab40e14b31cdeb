"""The table of models (SPEC 3, 4.1, 12): what /v1/models tells, models_file, defaults, prices by name."""

import json
import os

import pytest

from lib import wires
from lib.answers import chat_answer, plain
from lib.pool import K1, config, key

FACTS = """// facts, with a comment
{
  "big":  { "context_window": 200000, "max_output": 32000, "cost": { "input": 0.0025, "output": 0.01, "cached": 0.00025 } },
  "free": { "context_window": 8000, "cost": { "input": 0, "output": 0 } }
}"""
ANTHROPIC = {"Anthropic-Version": "2023-06-01"}


def channel(up, n, **more):
    account = {"id": f"B{n}", "api_key": key(n), **more.pop("account", {})}
    return {"provider": "openai-compatible", "base_url": up.url, "accounts": [account], **more}


def table(up, **more):
    """oa: A1 in realm cn. ob: B2, elsewhere, which falls back to oa."""
    conf = config(
        up.url,
        accounts=1,
        account={"A1": {"realm": "cn"}},
        channel={"models": ["big-2026-01-31", "m*"]},
        models_file="facts.json",
        models={
            "smart": {
                "targets": [
                    {"channel": "oa", "model": "big", "context_window": 100000},
                    {"channel": "ob", "model": "vendor/big", "max_output": 9},
                ]
            },
            "free": {"targets": [{"channel": "ob"}], "realm": "eu"},
            "dim": {"targets": [{"channel": "ob", "model": "m9"}], "max_output": 7},
        },
        routing={"tasks": {"code": "smart", "default": "free"}},
        auth={"mode": "open", "admins": ["boss"]},
        **more,
    )
    conf["channels"]["ob"] = channel(
        up, 2, models=["big", "b*"], fallback=["oa"], account={"realm": "eu"}
    )
    return conf


def write_facts(g, text):
    with open(os.path.join(g.dir, "facts.json"), "w") as f:
        f.write(text)


@pytest.fixture
def tabled(up, gate):
    g = gate(conf=table(up), workers=1, start=False)
    write_facts(g, FACTS)
    return g.start()


def listed(g, **vary):
    a = g.get("/v1/models", **vary)
    assert a.status == 200, a.out
    return {m["id"]: m for m in a.json()["data"]}


def available(g):
    return {id for id, m in listed(g).items() if m["available"]}


def test_list(up, tabled):
    g, got = tabled, listed(tabled)
    assert list(got) == ["smart", "free", "dim", "auto", "big-2026-01-31", "big"]
    created = got["smart"].pop("created")
    assert abs(created - os.stat(g.path).st_mtime) < 60
    price = {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000025"}
    assert got["smart"] == {
        "id": "smart",
        "object": "model",
        "owned_by": "oa",
        "context_length": 200000,
        "max_output": 32000,
        "available": True,
        "pricing": price,
    }
    zero = {"prompt": "0", "completion": "0", "input_cache_read": "0"}
    assert got["free"]["pricing"] == zero and got["free"]["max_output"] is None
    assert "pricing" not in got["dim"]  # unknown is not free
    assert (got["dim"]["max_output"], got["dim"]["context_length"]) == (7, None)
    assert (got["auto"]["owned_by"], got["auto"]["pricing"]) == ("sluice", price)
    assert got["big-2026-01-31"]["context_length"] == 200000  # by its name without the date
    one = g.get("/v1/models/smart").json()
    assert one.pop("created") == created and one == got["smart"]
    assert g.get("/v1/models/m1").status == 404  # a pattern, not a name
    assert up.count() == 0


def test_what_changes_shows_at_once(up, tabled):
    g = tabled
    assert available(g) == {"smart", "free", "dim", "auto", "big-2026-01-31", "big"}
    g.ctl("account", "disable", "ob/B2")
    assert available(g) == {"smart", "dim", "auto", "big-2026-01-31"}  # dim: by the fallback
    g.ctl("account", "disable", "oa/A1")
    assert available(g) == set()
    g.ctl("account", "enable", "ob/B2")
    assert available(g) == {"smart", "free", "dim", "auto", "big"}
    conf = table(up)
    conf["models"] = {"other": {"targets": [{"channel": "ob"}]}}
    conf["routing"] = {}
    g.reload(conf)
    assert list(listed(g)) == ["other", "big-2026-01-31", "big"]


def test_realms(tabled):
    g = tabled
    cn = listed(g, SLUICE_REALM="cn")
    assert list(cn) == ["smart", "auto", "big-2026-01-31"]
    assert cn["smart"]["context_length"] == 100000  # of the target that this client may reach
    assert list(listed(g, headers={"X-Sluice-Realm": "eu"})) == [
        "smart",
        "free",
        "dim",
        "auto",
        "big",
    ]
    assert list(listed(g, SLUICE_REALM="cn", headers={"X-Sluice-Realm": "eu"})) == list(cn)
    assert listed(g, SLUICE_REALM="x" * 500) == {}
    assert g.get("/v1/models/big", SLUICE_REALM="cn").status == 404
    assert len(listed(g)) == 6


def test_anthropics_shape(tabled):
    g = tabled

    def ask(query="", path="/v1/models", headers=ANTHROPIC):
        return g.get(path, headers=headers, QUERY_STRING=query)

    doc = ask().json()
    ids = [m["id"] for m in doc["data"]]
    assert ids == ["smart", "free", "dim", "auto", "big-2026-01-31", "big"]
    assert (doc["first_id"], doc["last_id"], doc["has_more"]) == ("smart", "big", False)
    smart = doc["data"][0]
    assert smart.pop("created_at").endswith("Z")
    assert smart == {
        "type": "model",
        "id": "smart",
        "display_name": "smart",
        "max_input_tokens": 200000,
        "max_tokens": 32000,
        "available": True,
    }
    assert "object" in listed(g)["smart"]  # each client its own, in turn
    assert ask(headers={"X-Api-Key": "k"}).json() == ask().json()
    assert ask(path="/v1/models/smart").json()["type"] == "model"
    gone = ask(path="/v1/models/nope")
    assert (gone.status, gone.json()["type"]) == (404, "error")
    assert gone.json()["error"]["type"] == "not_found_error"
    for query, want, more in (
        ("limit=2", ids[:2], True),
        ("limit=2&after_id=free", ids[2:4], True),
        ("limit=2&after_id=auto", ids[4:], False),
        ("after_id=big", [], False),
        ("after_id=nope", [], False),
        ("limit=2&before_id=auto", ids[1:3], True),
        ("limit=9&before_id=dim", ids[:2], False),
        ("limit=0", ids, False),
        ("limit=x&after_id=big%2D2026-01-31", ids[5:], False),
    ):
        part = ask(query).json()
        assert ([m["id"] for m in part["data"]], part["has_more"]) == (want, more), query
        assert part["first_id"] == (want[0] if want else None)


def test_facts_are_part_of_the_configuration(up, tabled):
    g = tabled
    write_facts(g, FACTS.replace("200000", "2"))
    done = g.ctl("check", check=False)
    assert done.returncode == 1 and "facts.json:3: key 'big.context_window'" in done.stderr
    g.allow.append("configuration")
    g.reload()
    assert listed(g)["big"]["context_length"] == 200000  # what was good stays
    write_facts(g, FACTS.replace("200000", "300000"))
    g.reload()
    assert listed(g)["big"]["context_length"] == 300000


def test_prices_by_name(up, gate):
    """formats.md H.5: a dated name without an entry is priced; an unknown one is not free."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
    usage["prompt_tokens_details"] = {"cached_tokens": 400}
    up.default(plain(chat_answer(usage=usage)))
    g = gate(accounts=1, workers=1, models_file="facts.json", start=False)
    write_facts(g, FACTS)
    g.start()
    for model in ("vendor/big-20260131", "free", "unheard-of"):
        assert g.ask(model).status == 200
    cost = {r["model"]: r["cost"] for r in json.loads(g.ctl("usage", "--json").stdout)}
    assert cost == {"vendor/big-20260131": 0.0116, "free": 0, "unheard-of": None}
    rows = json.loads(g.ctl("models", "--json").stdout)
    known = {m["name"]: m["targets"][0] for m in rows}
    figures = {n: (t["context_window"], t["max_output"]) for n, t in known.items()}
    assert figures == {
        "vendor/big-20260131": (200000, 32000),
        "free": (8000, None),
        "unheard-of": (None, None),
    }


def test_defaults(up, gate):
    """SPEC 3: fields put in where the client left them out, by target; all else byte for byte."""
    target = {"channel": "oa", "model": "m1"}
    conf = config(
        up.url,
        accounts=1,
        models={
            "m1": {"targets": [target]},
            "hot": {
                "targets": [
                    target,
                    {"channel": "ob", "weight": 0, "defaults": {"top_k": 4}},
                ],
                "defaults": {"temperature": 0.5, "stop": ["\n"]},
            },
        },
    )
    conf["channels"]["ob"] = channel(up, 2, wire="messages")
    g = gate(conf=conf, workers=1)
    body = b'{ "messages": [{"role": "user", "content": "x"}], "stop": null, "model": "%s" }'
    assert g.send(body % b"m1").finish().status == 200
    assert up.last.body == body % b"m1"
    assert g.send(body % b"hot").finish().status == 200
    assert up.last.cred == K1
    assert up.last.body == b'{"temperature":0.5,' + (body % b"m1")[1:]


def test_defaults_of_another_api(up, gate):
    conf = config(up.url, accounts=1, channel={"wire": "messages"})
    defaults = {"max_completion_tokens": 33, "top_k": 4, "metadata": {"user_id": "u"}}
    conf["models"] = {"m1": {"targets": [{"channel": "oa"}], "defaults": defaults}}
    g = gate(conf=conf, workers=1)
    up.default(wires.serve("messages"))
    assert g.ask().status == 200
    sent = up.last.json()
    assert (sent["max_tokens"], sent["top_k"], sent["metadata"]) == (33, 4, {"user_id": "u"})
    assert g.ask(max_tokens=5).status == 200
    assert up.last.json()["max_tokens"] == 5
