"""How long an account rests (SPEC 6, 8; COOL, HDR-10): stated resets, caps, doubling, breaker,
clearing.
"""

import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.answers import error, ok, plain, slow
from lib.pool import K1, K2, config, parse_time

GUESS = plain({}, 429)


def utc8(seconds):
    return (datetime.now(timezone(timedelta(hours=8))) + timedelta(seconds=seconds)).strftime(
        "%Y-%m-%d %H:%M:%S"
    )


def http_date(seconds, form="%a, %d %b %Y %H:%M:%S GMT"):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime(form)


# what, body, headers, seconds: all of them state a reset
STATED = [
    (
        "text zh 11140",
        lambda: {"code": 11140, "msg": f"rate limit, 将在 {utc8(90)} UTC+8 重置"},
        {},
        90,
    ),
    (
        "text en",
        lambda: {"code": 11140, "msg": f"rate limit, will reset at {utc8(90)} UTC+8"},
        {},
        90,
    ),
    ("text no code", lambda: {"msg": f"Too many requests, will reset at {utc8(90)} UTC+8"}, {}, 90),
    ("try again in 6m0s", lambda: {"error": {"message": "Please try again in 6m0s"}}, {}, 360),
    (
        "try again in 1h2m3.5s",
        lambda: {"error": {"message": "Please try again in 1h2m3.5s."}},
        {},
        3723.5,
    ),
    (
        "retryDelay",
        lambda: [{"error": {"message": "x", "details": [{"retryDelay": "34s"}]}}],
        {},
        34,
    ),
    (
        "resets_at",
        lambda: {"error": {"message": "x", "resets_at": int(time.time()) + 600}},
        {},
        600,
    ),
    ("Retry-After", dict, {"Retry-After": "45"}, 45),
    ("Retry-After fraction", dict, {"Retry-After": "45.5"}, 45.5),
    ("Retry-After IMF date", dict, lambda: {"Retry-After": http_date(120)}, 120),
    (
        "Retry-After asctime",
        dict,
        lambda: {"Retry-After": http_date(120, "%a %b %d %H:%M:%S %Y")},
        120,
    ),
    (
        "Retry-After RFC 850",
        dict,
        lambda: {"Retry-After": http_date(120, "%A, %d-%b-%y %H:%M:%S GMT")},
        120,
    ),
    ("Retry-After twice", dict, [("Retry-After", "20"), ("Retry-After", "50")], 50),
    ("retry-after-ms first", dict, {"retry-after-ms": "30500", "Retry-After": "99"}, 30.5),
    (
        "text before header",
        lambda: {"error": {"message": "try again in 70s"}},
        {"Retry-After": "5"},
        70,
    ),
    ("x-ratelimit, remaining not given", dict, {"x-ratelimit-reset-requests": "90s"}, 90),
    (
        "x-ratelimit, remaining 0",
        dict,
        {
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "6m0s",
            "x-ratelimit-remaining-requests": "9",
            "x-ratelimit-reset-requests": "2h",
        },
        360,
    ),
    ("epoch seconds", dict, lambda: {"x-ratelimit-reset": str(int(time.time()) + 100)}, 100),
    ("epoch ms", dict, lambda: {"x-ratelimit-reset": str(int(time.time() * 1000) + 100_000)}, 100),
    ("RFC 3339", dict, lambda: {"x-ratelimit-reset": http_date(100, "%Y-%m-%dT%H:%M:%SZ")}, 100),
]


@pytest.mark.parametrize(
    "body,headers,seconds", [s[1:] for s in STATED], ids=[s[0] for s in STATED]
)
def test_stated_resets(up, gate, body, headers, seconds):
    """COOL-01: an authoritative reset beats any local back-off, whatever carries it."""
    up.script(K1, plain(body(), 429, headers() if callable(headers) else headers))
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert abs(g.cooling_for() - seconds) <= 2
    cool = g.account()["cool"]
    assert (cool["kind"], cool["status"]) == ("soft_rate", 429)
    assert (
        "reset_at" not in cool or abs(parse_time(cool["reset_at"]) - parse_time(cool["until"])) >= 1
    )


NONSENSE = [
    {"Retry-After": v}
    for v in ("99999999999999999999", "-5", "1e3", "", "soon", "nan", "0x10", "inf")
] + [
    {"x-ratelimit-reset": v} for v in ("9999-12-31T23:59:59Z", "4102444800000", "1000000000", "-1")
]


@pytest.mark.parametrize("headers", NONSENSE, ids=[str(h) for h in NONSENSE])
def test_absurd_resets(up, gate, headers):
    """COOL-06: never negative, never "not cooled", never beyond the cap."""
    up.script(K1, plain({}, 429, headers))
    g = gate()
    assert g.ask().status == 200
    assert 50 < g.cooling_for() <= 86401


def test_no_hint_is_about_a_minute(up, gate):
    """COOL-07"""
    up.script(K1, GUESS)
    g = gate()
    g.ask()
    assert 57 <= g.cooling_for() <= 60.5
    assert "no hint" in g.account()["cool"]["reason"]


def test_two_caps(up, gate):
    """COOL-04: a stated reset is not clipped by the cap for guesses."""
    up.script(K1, error(429, headers={"Retry-After": "30"}))
    g = gate(cooldown={"soft_rate": "1s", "soft_rate_max": "2s", "stated_max": "24h"})
    g.ask()
    assert 28 <= g.cooling_for() <= 30.5
    time.sleep(2.1)
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert up.count(K1) == 1


def test_stated_cap_keeps_the_reset(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "172800"}))
    g = gate(cooldown={"stated_max": "1h"})
    g.ask()
    cool = g.account()["cool"]
    assert 3590 <= parse_time(cool["until"]) - time.time() <= 3601
    assert parse_time(cool["reset_at"]) - time.time() > 172000


@pytest.mark.parametrize("status", [503, 504])
def test_day_long_retry_after_on_5xx(up, gate, status):
    """COOL-18: 5xx is no quota statement: at most soft_rate_max."""
    up.script(K1, plain(b"", status, {"Retry-After": "86400"}))
    g = gate(cooldown={"soft_rate_max": "60s"})
    assert g.ask().status == 200
    cool = g.account()["cool"]
    assert cool is None or parse_time(cool["until"]) - time.time() <= 61


def test_guesses_double(up, gate):
    """The exact deadline stands in the log line of the transition."""
    up.script(K1, GUESS, GUESS, GUESS, GUESS)
    g = gate(cooldown={"soft_rate": "300ms", "soft_rate_max": "1s"}, breaker={"threshold": 99})
    for streak, seconds in ((1, 0.3), (2, 0.6), (3, 1.0), (4, 1.0)):
        before = time.time()
        assert g.ask().header("X-Sluice-Account") == "A2"
        until = [x for x in g.logs() if x.get("to") == "cooling"][-1]["until_ms"] / 1000
        assert before + seconds - 0.01 <= until <= time.time() + seconds
        assert g.account()["soft_streak"] == streak
        time.sleep(max(0, until + 0.02 - time.time()))
        assert g.account()["state"] == "active"
    assert g.ask().header("X-Sluice-Account") == "A1"
    assert g.account()["soft_streak"] == 0


def test_one_incident_counts_once(up, gate):
    """SPEC 6: failures of leases taken before the last counted failure raise neither streak nor
    breaker count.
    """
    up.script(K1, *[slow(0.4, GUESS)] * 3)
    g = gate(workers=4)
    answers = [g.open(stream=False) for _ in range(3)]
    assert [a.finish().status for a in answers] == [200] * 3
    a = g.account()
    assert (a["soft_streak"], a["fails"]) == (1, 1)
    assert g.cooling_for() <= 60.5


def test_a_deadline_never_moves_earlier(up, gate):
    up.script(
        K1,
        slow(0.2, error(429, headers={"Retry-After": "500"})),
        slow(0.5, error(429, headers={"Retry-After": "5"})),
    )
    g = gate()
    answers = [g.open(stream=False) for _ in range(2)]
    [a.finish() for a in answers]
    assert g.cooling_for() > 490


def test_old_success_does_not_end_a_newer_cooldown(up, gate):
    up.script(K1, slow(0.6), error(429, headers={"Retry-After": "300"}))
    g = gate()
    old = g.open(stream=False)
    up.wait_for(1, K1)
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert old.finish().header("X-Sluice-Account") == "A1"
    assert g.account()["state"] == "cooling"


def test_old_success_does_not_end_a_newer_guess(up, gate):
    """SPEC 8: only a success whose lease was taken after the last counted failure ends a guess."""
    up.script(K1, slow(0.6), GUESS)
    g = gate()
    old = g.open(stream=False)
    up.wait_for(1, K1)
    g.ask()
    assert old.finish().status == 200
    a = g.account()
    assert (a["state"], a["soft_streak"]) == ("cooling", 1)
    assert a["consecutive_failures"] == 0


def test_consecutive_means_consecutive(up, gate):
    """COOL-20"""
    up.script(K1, error(500), *[ok()] * 5, error(500), ok(), error(500))
    g = gate(workers=3)
    for _ in range(9):
        assert g.ask().status == 200
    a = g.account()
    assert (a["state"], a["fails"], a["errors"], a["success"]) == ("active", 1, 3, 6)


def test_breaker_opens_and_backs_off(up, gate):
    up.script(K1, *[error(500)] * 4)
    g = gate(breaker={"threshold": 2, "backoff": ["2s", "1h"]})
    g.ask()
    assert g.account()["fails"] == 1
    g.ask()
    a = g.account()
    assert (a["state"], a["fails"], a["breaker_step"], a["consecutive_failures"]) == (
        "cooling",
        0,
        1,
        2,
    )
    assert 0 < parse_time(a["breaker_until"]) - time.time() <= 2
    assert g.ask().header("X-Sluice-Account") == "A2"
    time.sleep(2.1)
    g.ask(), g.ask()
    a = g.account()
    assert a["breaker_step"] == 2
    assert 3590 < parse_time(a["breaker_until"]) - time.time() <= 3600


def test_success_resets_the_breaker(up, gate):
    up.script(K1, error(500), ok())
    g = gate(breaker={"threshold": 1, "backoff": ["500ms"]})
    g.ask()
    assert g.account()["breaker_step"] == 1
    time.sleep(0.6)
    assert g.ask().header("X-Sluice-Account") == "A1"
    a = g.account()
    assert (a["breaker_step"], a["breaker_until"], a["consecutive_failures"]) == (0, None, 0)


def test_rate_limits_feed_the_breaker_too(up, gate):
    """SPEC 8: a soft rate is also a counted failure; the two tracks run side by side."""
    up.script(K1, GUESS)
    g = gate(breaker={"threshold": 1})
    g.ask()
    a = g.account()
    assert a["cool"] and a["breaker_until"] and a["breaker_step"] == 1


def test_early_hints_do_not_count(up, gate):
    """HDR-10: only the final block's headers."""
    hints = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 999\r\nX-A: 1\r\n\r\n"
    up.script(K1, error(429, headers={"Retry-After": "5"}, before=hints))
    up.script(
        K2,
        plain(
            b'{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}',
            before=hints,
        ),
    )
    g = gate()
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
    assert 3 <= g.cooling_for() <= 5.5
    g.assert_clean("A2")


def test_account_clear(up, gate):
    """COOL-05: eligible in all workers at once; streak and model cooldowns go, "disabled" stays."""
    up.script(
        K1, plain({"code": 6004, "msg": "limit"}, 429), error(429, headers={"Retry-After": "3600"})
    )
    up.script(K2, error(401, "invalid_api_key"))
    g = gate(workers=4)
    g.ask(model="mx"), g.ask(model="m1")
    assert g.account("A1")["state"] == "cooling" and g.account("A2")["state"] == "disabled"
    g.ctl("account", "clear", "A1")
    a = g.account("A1")
    assert (a["state"], a["soft_streak"], a["rate_limited_models"]) == ("active", 0, [])
    up.clear()
    answers = [g.open(stream=False) for _ in range(3)]
    assert {x.finish().header("X-Sluice-Account") for x in answers} == {"A1"}
    g.ctl("account", "clear", "--all")
    assert g.account("A2")["state"] == "disabled"
    g.ctl("account", "revive", "A2")
    assert g.account("A2")["state"] == "active"


def test_disable_and_enable(up, gate):
    g = gate()
    g.ctl("account", "disable", "oa/A1")
    assert g.account()["state"] == "disabled"
    assert g.ask().header("X-Sluice-Account") == "A2"
    g.ctl("account", "enable", "oa/A1")
    assert g.ask().header("X-Sluice-Account") == "A1"


def test_disable_an_account_that_the_workers_do_not_know_yet(up, gate):
    """SPEC 16: exit status 0 means done. A4 stands in the file, but nobody has reloaded it."""
    g = gate()
    more = config(up.url, accounts=4)
    g.write(more)
    done = g.ctl("account", "disable", "A4", check=False)
    g.reload()
    if done.returncode == 0:
        assert g.account("A4")["state"] == "disabled", done.stdout
    else:
        assert "A4" in done.stderr


def test_why_an_account_is_away(up, gate):
    """COOL-23"""
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    up.script(K2, plain({"msg": f"Too many requests, will reset at {utc8(90)} UTC+8"}, 429))
    g = gate()
    g.ask()
    for x in ("A1", "A2"):
        cool = g.account(x)["cool"]
        assert (
            cool["kind"] == "soft_rate" and cool["until"] and cool["rule"] and cool["status"] == 429
        )
        assert cool["reason"] and "no hint" not in cool["reason"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_times_do_not_depend_on_the_hosts_zone(up, gate, zone):
    up.script(K1, plain({"code": 11140, "msg": f"rate limit, will reset at {utc8(90)} UTC+8"}, 429))
    g = gate(env={"TZ": zone, "LC_ALL": "de_DE.UTF-8"})
    g.ask()
    assert abs(g.cooling_for() - 90) <= 2


def test_time_without_zone_is_the_channels(up, gate):
    up.script(
        K1, plain({"error": {"code": "1308", "message": f"已达到使用上限。您的限额将在 {utc8(90)} 重置。"}}, 429)
    )
    g = gate(channel={"provider": "zhipu"})
    g.ask()
    assert abs(g.cooling_for() - 90) <= 2
