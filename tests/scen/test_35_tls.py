"""https to providers (SPEC 5): who is trusted, who is not, and that nothing is done twice for it."""

import subprocess
import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.answers import chat_answer, chat_chunks, plain, stream
from lib.pool import K1, PROGRAM
from lib.tls import Authority, Relay
from lib.upstream import Upstream, wait_until
from lib.watching import MODELS, REFUSED


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority(str(tmp_path_factory.mktemp("ours")))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return Authority(str(tmp_path_factory.mktemp("theirs")), "Somebody else's root")


@pytest.fixture
def relay():
    """relay(context, up): TLS in front of an upstream."""
    relays = []

    def start(context, up):
        relays.append(Relay(context, up.port))
        return relays[-1]

    yield start
    for r in relays:
        r.stop()


def trusting(authority):
    return {"upstream": {"ca_file": authority.bundle}}


def test_own_authority(up, gate, relay, ours):
    """Plain, streamed and large; one connection, and so one handshake, for all of them."""
    front = relay(ours.context(), up)
    g = gate(base_url=front.url, workers=1, accounts=1, **trusting(ours))
    for _ in range(3):
        assert g.ask().json()["choices"][0]["message"]["content"] == "hi"
    up.script(K1, stream(chat_chunks("a", "b"), "events", gap=0.05))
    answer = g.ask(stream=True)
    assert answer.body.count(b'"content":"') >= 2 and answer.body.endswith(b"data: [DONE]\n\n")
    assert g.ask(user="x" * 300_000).status == 200 and len(up.last.body) > 300_000
    assert front.connections == 1
    assert up.last.header("authorization") == f"Bearer {K1}"


def test_beside_the_system_s(up, gate, relay, ours):
    """A bundle of many authorities, as the system has it, with ours at its end."""
    front = relay(ours.context(), up)
    g = gate(
        base_url=front.url, accounts=1, workers=2, upstream={"ca_file": ours.system_bundle()}
    )
    up.default(plain(chat_answer(), headers={"Connection": "close"}, end="fin"))
    assert {g.ask().status for _ in range(6)} == {200}
    assert front.connections == 6, "each one new"


def test_reload_to_another_authority(up, gate, relay, ours, theirs):
    """The next configuration's authorities count, and only they."""
    front = relay(ours.context(), up)
    g = gate(base_url=front.url, accounts=1, **trusting(ours), breaker={"threshold": 9})
    assert g.ask().status == 200
    g.reload({**g.conf, "upstream": {**g.conf["upstream"], "ca_file": theirs.bundle}})
    wait_until(lambda: g.ask().status != 200, 5, "refused")
    g.reload({**g.conf, "upstream": {**g.conf["upstream"], "ca_file": ours.bundle}})
    wait_until(lambda: g.ask().status == 200, 5, "trusted again")


# what, host and days of the certificate, whose it is, whom we trust
REFUSALS = [
    ("an unknown authority", "127.0.0.1", 2, "theirs", "ours"),
    ("only the system's are trusted", "127.0.0.1", 2, "ours", None),
    ("another host", "api.example.com", 2, "ours", "ours"),
    ("another address", "127.0.0.2", 2, "ours", "ours"),
    ("expired", "127.0.0.1", -1, "ours", "ours"),
]


@pytest.mark.parametrize("what,host,days,signed,trusted", REFUSALS, ids=[r[0] for r in REFUSALS])
def test_refused(up, gate, relay, ours, theirs, what, host, days, signed, trusted):
    """Nothing of the request, and no key, goes to a host that is not who it should be."""
    by_name = {"ours": ours, "theirs": theirs}
    front = relay(by_name[signed].context(host, days), up)
    more = trusting(by_name[trusted]) if trusted else {}
    g = gate(base_url=front.url, accounts=1, pool={"all_cooling": "off"}, **more)
    answer = g.ask()
    assert answer.status in (502, 503), what
    assert up.count() == 0, what
    attempts = [line for line in g.logs() if line.get("attempts")][-1]["attempts"]
    assert {a["kind"] for a in attempts} == {"network"}, what
    assert g.account()["state"] != "disabled", what


def test_goes_to_who_can_prove_it(up, gate, relay, ours, theirs):
    """A channel whose provider is not who it should be fails; its fallback serves."""
    bad, good = relay(theirs.context(), up), relay(ours.context(), up)
    other = {
        "provider": "openai-compatible",
        "base_url": good.url,
        "accounts": [{"id": "B1", "api_key": "sk-B1-Zq7wL0pVxB1"}],
    }
    g = gate(
        base_url=bad.url,
        accounts=1,
        channel={"fallback": ["good"]},
        channels={"good": other},
        **trusting(ours),
    )
    assert g.ask().status == 200
    assert up.creds() == ["sk-B1-Zq7wL0pVxB1"]


def test_each_channel_its_own(up, gate, relay, ours, theirs):
    """A channel's authorities are not the other's, in one worker. libcurl has a cache of its own."""
    a, b, c = (relay(x.context(), up) for x in (ours, theirs, theirs))

    def channel(n, front, authority, models):
        account = {"id": f"B{n}", "api_key": f"sk-B{n}-Zq7wL0pVxB{n}"}
        return {
            "provider": "openai-compatible",
            "base_url": front.url,
            "models": models,
            "accounts": [account],
            **trusting(authority),
        }

    g = gate(
        base_url=a.url,
        accounts=1,
        workers=1,
        channel={"models": ["m1"], **trusting(ours)},
        channels={"b": channel(1, b, theirs, ["m2"]), "c": channel(2, c, ours, ["m3"])},
    )
    assert [g.ask(m).status for m in ("m1", "m2", "m3", "m1", "m2")] == [200, 200, 502, 200, 200]
    assert (a.connections, b.connections) == (1, 1)


def test_no_file(gate):
    """Said before anything is served."""
    g = gate(base_url="https://127.0.0.1:9/v1", start=False, upstream={"ca_file": "/nonexistent"})
    argv = [PROGRAM, "-c", g.path, "--listen", g.address, "--workers", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 1
    assert "upstream.ca_file '/nonexistent'" in done.stderr


@pytest.mark.waits
def test_errands(up, gate, relay, ours):
    """Probes, balances and alerts go the same way, and check the same."""
    bank = Upstream()
    try:
        front, till = relay(ours.context(), up), relay(ours.context(), bank)
        at = datetime.now(timezone.utc).replace(second=0, microsecond=0) + timedelta(minutes=1)
        if (at - datetime.now(timezone.utc)).total_seconds() < 4:
            at += timedelta(minutes=1)
        bank.default(plain({"data": {"balance": 7}}))
        g = gate(
            base_url=front.url,
            accounts=2,
            channel={
                "balance": {
                    "url": till.url + "/credits",
                    "credits": "/data/balance",
                    "at": [at.strftime("%H:%M")],
                },
                "cooldown": {"timezone": "UTC"},
            },
            alerts={"url": till.url + "/hook"},
            allow=["A1", "alert"],
            **trusting(ours),
        )
        up.script(K1, MODELS, REFUSED)
        assert "A1" in g.ctl("probe", "oa/A1", "--models").stdout
        assert (up.last.method, up.count()) == ("GET", 1)
        g.ask()
        bank.wait_for(1, timeout=6)
        assert (bank.last.target, bank.last.cred) == ("/v1/hook", None)
        left = (at - datetime.now(timezone.utc)).total_seconds()
        time.sleep(max(0, left))
        wait_until(lambda: g.account("A2")["credits"] == 7, 60, "the balance came in")
    finally:
        bank.stop()
