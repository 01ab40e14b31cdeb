"""Channels (SPEC 9): the breaker's triggers and lines, half-open probes."""

import re
import time

import pytest

from lib.answers import chunk, close, error, hang, ok, plain, slow, stream
from lib.pool import K1, K2, key
from lib.upstream import wait_until
from test_10_pick import together
from test_60_workers import kill, worker_of

B1 = key(11)
QUIET = {"triggers": []}


@pytest.fixture
def gate(gate):
    """Breakers that open are what this is about."""
    return lambda allow=(), **vary: gate(allow=[r"channel \[", *allow], **vary)


def channel(up, first, n=1, **more):
    """Section for another channel: accounts `first`1 .. with the keys 11.. (B) or 15.. (C)."""
    base = {"B": 10, "C": 14}[first]
    rows = [{"id": f"{first}{i}", "api_key": key(base + i), "priority": i} for i in range(1, n + 1)]
    return {"provider": "openai-compatible", "base_url": up.url, "accounts": rows, **more}


def chain(gate, up, breaker={}, accounts=1, fallback=("ob",), others=None, oa={}, **vary):
    """oa with a fallback list; account breakers stay out of the way."""
    others = {"ob": channel(up, "B")} if others is None else others
    vary.setdefault("breaker", {"threshold": 99})
    return gate(
        accounts=accounts,
        channel={"fallback": list(fallback), "channel_breaker": breaker, **oa},
        channels=others,
        **vary,
    )


def said(g, name="oa"):
    """(level, line) of what was said of a channel's breaker."""
    mark = f"channel [{name}] "
    return [
        (x["level"], x["msg"][len(mark) :]) for x in g.logs() if x.get("msg", "").startswith(mark)
    ]


def who(a):
    return (a.header("X-Sluice-Channel"), a.header("X-Sluice-Account"))


def fail(g, n):
    for _ in range(n):
        assert g.ask().status == 502


# Triggers and their lines --------------------------------------------------------------------------


def test_error_rate(up, gate):
    up.script(K1, *[ok()] * 11, *[error(500)] * 9)
    rate = {"triggers": ["error_rate"], "error_rate": 0.3}
    g = gate(
        accounts=1,
        channel_breaker=rate,
        breaker={"threshold": 99},
        upstream={"max_attempts": 1},  # a second pick would look, too
    )
    assert [g.ask().status for _ in range(20)] == [200] * 11 + [502] * 9
    assert said(g) == []  # looked at when the next one picks
    a = g.ask()
    assert (a.status, a.error["code"]) == (503, "channel_open")
    assert 59 <= int(a.header("Retry-After")) <= 60
    assert a.header("X-Sluice-Attempts") == "0" and up.count() == 20
    assert said(g) == [("warn", "open: error_rate (45.0% >= 30%)")]
    assert g.ask().status == 503
    assert len(said(g)) == 1


def test_error_rate_needs_requests(up, gate):
    up.default(error(500))
    rate = {"triggers": ["error_rate"], "error_min_requests": 4}
    g = gate(accounts=1, channel_breaker=rate, breaker={"threshold": 99})
    fail(g, 4)
    assert g.ask().status == 503
    assert said(g) == [("warn", "open: error_rate (100.0% >= 50%)")]


def test_error_rate_forgets(up, gate):
    up.script(K1, *[error(500)] * 3)
    rate = {"triggers": ["error_rate"], "error_min_requests": 4, "error_window": "1s"}
    g = gate(accounts=1, channel_breaker=rate, breaker={"threshold": 99})
    fail(g, 3)
    time.sleep(1.3)
    assert [g.ask().status for _ in range(4)] == [200] * 4
    assert said(g) == []


COUNTS = [
    ("server", error(500), True),
    ("network", close(), True),
    ("overload", error(503), True),
    ("auth", error(401, "invalid_api_key"), True),
    ("rate", plain({}, 429), False),
    ("client", error(400, "bad_request"), False),
    ("missing", error(404, "model_not_found"), False),
]


@pytest.mark.parametrize("action,counts", [c[1:] for c in COUNTS], ids=[c[0] for c in COUNTS])
def test_what_the_error_rate_counts(up, gate, action, counts):
    """Rate limits are the business of pool_exhausted; what the caller is to blame for is nobody's."""
    up.default(action)
    g = gate(
        accounts=8,
        channel_breaker={"triggers": ["error_rate"], "error_min_requests": 4},
        upstream={"max_attempts": 1},
        breaker={"threshold": 99},
    )
    for _ in range(4):
        g.ask()
    up.default(ok())
    assert (g.ask().status == 503) == counts, said(g)


def test_own_refusals_never_count(up, gate):
    """COOL-19"""
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    g = gate(accounts=1, channel_breaker={"triggers": ["error_rate"], "error_min_requests": 2})
    assert [g.ask().status for _ in range(30)] == [429] * 30
    time.sleep(1.1)
    assert g.ask().status == 200
    assert said(g) == []


def test_latency(up, gate):
    up.default(slow(0.3))
    g = gate(accounts=1, channel_breaker={"triggers": ["latency"], "latency": "200ms"})
    assert g.ask().status == 200
    assert g.ask().status == 503
    ((level, line),) = said(g)
    assert level == "warn" and re.fullmatch(r"open: latency \([34]\d\dms >= 200ms\)", line), line


def test_latency_is_that_of_the_first_content(up, gate):
    events = [chunk({"content": f"w{i}"}) for i in range(5)] + [chunk({}, "stop"), "[DONE]"]
    up.default(stream(events, "events", gap=0.1))
    g = gate(accounts=1, channel_breaker={"triggers": ["latency"], "latency": "250ms"})
    assert [g.ask(stream=True).status for _ in range(2)] == [200, 200]
    assert said(g) == []
    up.default(stream(events, "events", first=1.0))
    assert g.ask(stream=True).status == 200  # a mean of a third of a second
    up.default(ok())
    assert g.ask().status == 503


def test_consecutive_fail(up, gate):
    up.script(K1, error(500), error(500), ok(), *[error(500)] * 3)
    three = {"triggers": ["consecutive_fail"], "consecutive_fail": 3}
    g = gate(accounts=1, channel_breaker=three, breaker={"threshold": 99})
    assert [g.ask().status for _ in range(6)] == [502, 502, 200, 502, 502, 502]
    assert g.ask().status == 503
    assert said(g) == [("warn", "open: consecutive_fail (3 >= 3)")]


def test_pool_exhausted(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "1"}))
    g = chain(gate, up)
    assert who(g.ask()) == ("ob", "B1")
    for _ in range(4):
        a = g.ask()
        assert who(a) == ("ob", "B1") and a.header("X-Sluice-Attempts") == "1"
    assert said(g) == [("warn", "open: pool_exhausted (no account active)")]
    time.sleep(1.1)
    assert [who(g.ask()) for _ in range(2)] == [("oa", "A1")] * 2
    assert said(g)[1:] == [("info", "closed: an account is active")]


def test_pool_exhausted_closes_for_the_operator_too(up, gate):
    up.script(K1, error(401, "invalid_api_key"))
    g = chain(gate, up)
    assert [who(g.ask())[0] for _ in range(3)] == ["ob"] * 3
    g.ctl("account", "revive", "A1")
    assert who(g.ask()) == ("oa", "A1")


def test_pool_exhausted_without_a_fallback(up, gate):
    """Such a channel stays selectable: the client gets its 429 with the true Retry-After."""
    up.script(K1, error(429, headers={"Retry-After": "50"}))
    g = gate(accounts=1)
    g.ask()
    a = g.ask()
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert 48 <= int(a.header("Retry-After")) <= 50
    assert said(g) == []


def test_no_trigger_never_opens(up, gate):
    up.default(error(500))
    g = gate(accounts=1, channel_breaker=QUIET, breaker={"threshold": 99})
    fail(g, 25)
    assert said(g) == [] and up.count() == 25


def test_an_open_channel_survives_kill_9(up, gate):
    up.default(error(500))
    g = gate(
        accounts=1,
        channel_breaker={"triggers": ["consecutive_fail"], "consecutive_fail": 2},
        breaker={"threshold": 99},
    )
    fail(g, 2)
    assert g.ask().status == 503
    g.kill_all()
    g.start()
    assert g.ask().status == 503
    assert up.count() == 2 and len(said(g)) == 1


def test_healthz_knows_of_open_channels(up, gate):
    """SPEC 4.1: 200 while some account could be picked now."""
    up.default(error(500))
    quick = {"triggers": ["consecutive_fail"], "consecutive_fail": 1, "recovery_timeout": "600ms"}
    g = gate(accounts=2, channel_breaker=quick, breaker={"threshold": 99})
    assert g.get("/healthz").status == 200
    fail(g, 1)
    assert g.ask().status == 503
    h = g.get("/healthz")
    assert (h.status, h.json()["healthy"], h.json()["total"]) == (503, 0, 2)
    time.sleep(0.7)
    assert g.get("/healthz").status == 200


# Half-open -----------------------------------------------------------------------------------------

HALF = {
    "triggers": ["consecutive_fail"],
    "consecutive_fail": 2,
    "recovery_timeout": "400ms",
    "half_open_requests": 3,
    "half_open_success": 2,
    "reopen": "60s",
}


def half_open(gate, up, k=K1, accounts=1, breaker=HALF, **vary):
    """A channel that has just been opened and whose recovery time is over."""
    up.script(k, error(500), error(500))
    g = chain(gate, up, breaker, accounts, upstream={"max_attempts": 2}, **vary)
    for _ in range(2):
        assert who(g.ask())[0] in ("ob", None)
    assert who(g.ask())[0] in ("ob", None)
    assert said(g) == [("warn", "open: consecutive_fail (2 >= 2)")]
    up.clear()
    time.sleep(0.45)
    return g


def test_closes_after_probes(up, gate):
    g = half_open(gate, up)
    assert who(g.ask()) == ("oa", "A1")
    assert said(g)[1:] == [
        ("info", "half-open: recovery time over (needs 2/3)"),
        ("info", "probe ok (1/2 ok, 1/3 sent)"),
    ]
    assert who(g.ask()) == ("oa", "A1")
    assert said(g)[3:] == [("info", "closed: probes passed (2/3)")]
    assert [who(g.ask()) for _ in range(3)] == [("oa", "A1")] * 3
    assert len(said(g)) == 4


def test_opens_again_when_too_few_remain(up, gate):
    """Probes that fail before their commit go on to the fallback: the client does not see it."""
    g = half_open(gate, up)
    up.default(error(500), K1)
    for n in (1, 2):
        a = g.ask()
        assert a.status == 200 and who(a) == ("ob", "B1") and a.header("X-Sluice-Attempts") == "2"
        assert up.count(K1) == n
    assert said(g)[2:] == [
        ("info", "probe failed (0/2 ok, 1/3 sent)"),
        ("warn", "open: probes failed, next try in 60s"),
    ]
    a = g.ask()
    assert who(a) == ("ob", "B1") and a.header("X-Sluice-Attempts") == "1"
    assert up.count(K1) == 2


def test_reopens_for_its_own_time(up, gate):
    g = half_open(gate, up, breaker={**HALF, "reopen": "700ms"})
    up.script(K1, error(500), error(500))
    assert [who(g.ask())[0] for _ in range(3)] == ["ob"] * 3
    assert said(g)[-1] == ("warn", "open: probes failed, next try in 700ms")
    time.sleep(0.45)
    assert who(g.ask())[0] == "ob"
    time.sleep(0.35)
    assert who(g.ask())[0] == "oa"


def test_a_streamed_probe(up, gate):
    g = half_open(gate, up)
    up.script(K1, stream([b": nothing\n\n"], end="fin"))
    a = g.ask(stream=True)
    assert who(a) == ("ob", "B1") and a.header("X-Sluice-Attempts") == "2"
    assert b"[DONE]" in a.body and b"error" not in a.body
    assert [who(g.ask(stream=True))[0] for _ in range(2)] == ["oa", "oa"]
    assert said(g)[-1] == ("info", "closed: probes passed (2/3)")


def test_permits_over_eight_processes(up, gate):
    """Never more than half_open_requests; the others take the fallback."""
    g = half_open(gate, up, workers=8, accounts=2, pool={"max_in_flight": 0})
    up.default(slow(0.5), K1, K2)
    answers = together(16, lambda i: g.ask())
    assert [a.status for a in answers] == [200] * 16
    served = [who(a)[0] for a in answers]
    sent = up.count(K1) + up.count(K2)
    assert served.count("oa") == sent and sum(up.max_in_flight.get(k, 0) for k in (K1, K2)) <= 3
    # eight at once: three of them are probes; the second batch may come when it has closed
    first = [r for r in up.requests if r.at - up.requests[0].at < 0.4]
    assert sum(r.cred in (K1, K2) for r in first) == 3
    assert said(g)[-1] == ("info", "closed: probes passed (2/3)")


def test_a_dead_workers_permit_comes_back(up, gate):
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1}
    g = half_open(gate, up, breaker=one, workers=4, allow=["worker"])
    up.script(K1, hang())
    dying = g.open(stream=False)
    up.wait_for(1, K1)
    assert who(g.ask()) == ("ob", "B1")
    pids = set(g.worker_pids())
    kill(worker_of(g, up, up.requests[0]))
    assert who(g.ask()) == ("oa", "A1")
    assert said(g)[-1] == ("info", "closed: probes passed (1/1)")
    assert dying.finish().end is None
    wait_until(lambda: set(g.worker_pids()) != pids and len(g.worker_pids()) == 4, 3)


def test_a_probe_is_one_attempt(up, gate):
    """Nor does its request come back for another permit when the chain is used up."""
    g = half_open(gate, up, accounts=2)
    conf = g.conf
    conf["upstream"]["max_attempts"] = 4
    g.reload(conf)
    up.default(error(500))
    assert g.ask().status == 502
    assert up.creds() == [K1, B1]
    assert said(g)[-1] == ("info", "probe failed (0/2 ok, 1/3 sent)")


NEUTRAL = [
    ("client", error(400, "bad_request"), 400),
    ("context", error(400, "context_length_exceeded", "maximum context length"), 400),
]


@pytest.mark.parametrize("action,status", [n[1:] for n in NEUTRAL], ids=[n[0] for n in NEUTRAL])
def test_a_probe_that_says_nothing_gives_its_permit_back(up, gate, action, status):
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1}
    g = half_open(gate, up, breaker=one)
    up.script(K1, action)
    assert g.ask().status == status
    assert who(g.ask()) == ("oa", "A1")
    assert said(g)[-1] == ("info", "closed: probes passed (1/1)")


def test_a_cancelled_probe_gives_its_permit_back(up, gate):
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1}
    g = half_open(gate, up, breaker=one)
    up.script(K1, hang())
    a = g.open()
    up.wait_for(1, K1)
    assert who(g.ask()) == ("ob", "B1")
    a.close()
    wait_until(lambda: up.requests[0].aborted_at, 2)
    wait_until(lambda: g.in_flight() == 0, 2)
    assert who(g.ask()) == ("oa", "A1")


def test_half_open_without_a_fallback(up, gate):
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1}
    up.script(K1, error(500), error(500))
    g = gate(accounts=1, workers=3, channel_breaker=one, breaker={"threshold": 99})
    fail(g, 2)
    a = g.ask()
    assert (a.status, a.header("Retry-After")) == (503, "1")
    time.sleep(0.45)
    up.script(K1, slow(0.5))
    probe = g.open(stream=False)
    up.wait_for(3)
    a = g.ask()
    assert (a.status, a.error["code"], a.header("Retry-After")) == (503, "channel_open", "1")
    assert probe.finish().status == 200
    assert g.ask().status == 200


def test_a_failed_probe_without_a_fallback(up, gate):
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1, "reopen": "30s"}
    up.script(K1, error(500), error(500), error(500, None, "still ill"))
    g = gate(
        accounts=2, channel_breaker=one, breaker={"threshold": 99}, upstream={"max_attempts": 1}
    )
    fail(g, 2)
    g.ask()
    time.sleep(0.45)
    a = g.ask()
    assert (a.status, a.error["message"]) == (502, "still ill")
    a = g.ask()
    assert a.status == 503 and 28 <= int(a.header("Retry-After")) <= 30


def test_not_half_open_while_nobody_is_active(up, gate):
    up.script(K1, error(500), error(429, headers={"Retry-After": "1"}))
    two = {**HALF, "reopen": "800ms"}
    g = chain(gate, up, two, upstream={"max_attempts": 2})
    assert [who(g.ask())[0] for _ in range(3)] == ["ob"] * 3
    assert said(g) == [("warn", "open: consecutive_fail (2 >= 2)")]
    time.sleep(0.5)  # its time is over, but A1 rests
    assert who(g.ask())[0] == "ob"
    time.sleep(0.6)  # A1 is back, but it is looked at `reopen` later
    assert who(g.ask())[0] == "ob"
    time.sleep(0.4)
    assert who(g.ask()) == ("oa", "A1")


def test_an_account_that_goes_on_failing_does_not_open_it_again(up, gate):
    """consecutive_fail of what the probes have passed by is no news."""
    one = {**HALF, "half_open_requests": 1, "half_open_success": 1}
    up.default(error(500), K1)
    g = chain(gate, up, one, accounts=2, upstream={"max_attempts": 2})
    for _ in range(2):
        assert g.ask().status == 200
    g.ctl("account", "disable", "A1")
    assert who(g.ask())[0] == "ob"
    time.sleep(0.45)
    assert [who(g.ask()) for _ in range(4)] == [("oa", "A2")] * 4
    assert len(said(g)) == 3
