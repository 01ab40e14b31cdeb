"""What an upstream answer means and does (SPEC 6, 8): each kind's effect on the account, and who is
asked next.
"""

import base64
import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.answers import close, error, ok, plain, raw, reset
from lib.pool import K1, K2, K3, parse_time


def flat(code, msg, status, **kw):
    """CodeBuddy's envelope."""
    return plain({"code": code, "msg": msg, "requestId": "r"}, status, **kw)


# what, A1's action, kind, checks of A1 after one request that A2 serves
CASES = [
    (
        "401 with a key code",
        error(401, "invalid_api_key", "Incorrect API key provided: sk-x"),
        "auth_failed",
        dict(state="disabled", errors=1, rate_limited=0),
    ),
    (
        "401 authentication_error",
        error(401, None, "invalid x-api-key", type="authentication_error"),
        "auth_failed",
        dict(state="disabled"),
    ),
    (
        "403 about the key",
        error(403, None, "Your API key has been disabled"),
        "auth_failed",
        dict(state="disabled"),
    ),
    ("11140 illegal", flat(11140, "request illegal", 403), "auth_failed", dict(state="disabled")),
    (
        "session dead once",
        flat(12153, "session dead", 401),
        "session_dead",
        dict(state="active", session_dead=1, errors=1, fails=1),
    ),
    (
        "402",
        error(402, "invalid_request_error", "Insufficient Balance"),
        "hard_credit",
        dict(state="cooling", errors=1, fails=1),
    ),
    ("402 without words", plain(b"", 402), "hard_credit", dict(state="cooling")),
    (
        "429 insufficient_quota",
        error(429, "insufficient_quota", "You exceeded your current quota"),
        "hard_credit",
        dict(state="cooling"),
    ),
    (
        "403 arrears",
        error(
            403, "Arrearage", "Access denied, please make sure your account is in good standing."
        ),
        "hard_credit",
        dict(state="cooling"),
    ),
    ("14018", flat(14018, "credits exhausted", 402), "hard_credit", dict(state="cooling")),
    (
        "14018 under 200",
        flat(14018, "credits exhausted", 200),
        "hard_credit",
        dict(state="cooling"),
    ),
    (
        "balance in Chinese",
        error(429, "1113", "余额不足或无可用资源包,请充值。"),
        "hard_credit",
        dict(state="cooling"),
    ),
    (
        "429 bare",
        plain(b"", 429),
        "soft_rate",
        dict(state="cooling", errors=1, fails=1, rate_limited=1, soft_streak=1),
    ),
    ("425", plain(b"", 425), "soft_rate", dict(state="cooling", rate_limited=1)),
    (
        "429 rate_limit_exceeded",
        error(429, "rate_limit_exceeded", "Rate limit reached"),
        "soft_rate",
        dict(state="cooling"),
    ),
    (
        "rate wording under 400",
        flat(11140, "provider side rate limit, try later", 400),
        "soft_rate",
        dict(state="cooling", soft_streak=1),
    ),
    (
        "rate wording under 403",
        flat(11140, "provider side rate limit, try later", 403),
        "soft_rate",
        dict(state="cooling"),
    ),
    (
        "rate wording under 200",
        flat(11140, "provider side rate limit, try later", 200),
        "soft_rate",
        dict(state="cooling"),
    ),
    (
        "rate wording under 503",
        error(503, None, "Too many requests, slow down"),
        "soft_rate",
        dict(state="cooling"),
    ),
    (
        "6004",
        flat(6004, "usage exceeds frequency limit", 429),
        "model_rate",
        dict(state="active", errors=1, rate_limited=1, fails=0, soft_streak=0, cool=None),
    ),
    (
        "model missing 404",
        error(404, "model_not_found", "The model `m1` does not exist"),
        "model_missing",
        dict(state="active", errors=1, rate_limited=1, fails=0),
    ),
    (
        "model missing 403",
        error(403, "model_not_found", "You do not have access to the model m1"),
        "model_missing",
        dict(state="active", fails=0),
    ),
    (
        "11102",
        flat(11102, "model not in this plan", 400),
        "model_missing",
        dict(state="active", fails=0),
    ),
    (
        "404 bare",
        plain(b"", 404),
        "not_found",
        dict(state="cooling", errors=1, fails=1, soft_streak=0),
    ),
    (
        "404 page",
        plain(b"<html>404</html>", 404, ctype="text/html"),
        "not_found",
        dict(state="cooling", errors=1),
    ),
    ("503", plain(b"", 503), "overload", dict(state="cooling", errors=0, fails=0)),
    (
        "529",
        error(529, None, "Overloaded", type="overloaded_error"),
        "overload",
        dict(state="cooling", errors=0),
    ),
    (
        "500 overloaded",
        error(500, None, "The server is overloaded", type="overloaded_error"),
        "overload",
        dict(state="cooling", errors=0, fails=0),
    ),
    ("500", error(500), "server", dict(state="active", errors=1, fails=1, consecutive_failures=1)),
    (
        "502 page",
        plain(b"<html>Bad Gateway</html>", 502, ctype="text/html"),
        "server",
        dict(state="active", errors=1),
    ),
    ("504", plain(b"", 504), "server", dict(state="active", errors=1)),
    ("520", plain(b"", 520), "server", dict(state="active", errors=1)),
    ("408", plain(b"", 408), "server", dict(state="active", errors=1)),
    ("409", plain(b"", 409), "server", dict(state="active", errors=1)),
    (
        "302",
        plain(b"", 302, {"Location": "http://127.0.0.1:1/"}),
        "server",
        dict(state="active", errors=1),
    ),
    (
        "200 page",
        plain(b"<html>login</html>", ctype="text/html"),
        "server",
        dict(state="active", errors=1),
    ),
    ("200 empty", plain(b""), "server", dict(state="active", errors=1)),
    ("200 {}", plain(b"{}"), "server", dict(state="active", errors=1)),
    ("200 no choices", plain({"choices": []}), "server", dict(state="active", errors=1)),
    (
        "200 cut by length",
        plain(b'{"choices":[{"mess', declared=500, end="fin"),
        "server",
        dict(state="active", errors=1),
    ),
    (
        "200 cut, close-delimited",
        plain(b'{"choices":[{"mess', framing="close"),
        "server",
        dict(state="active", errors=1),
    ),
    (
        "403 waf page",
        plain(
            b"<!DOCTYPE html><title>Just a moment...</title>",
            403,
            {"Server": "cloudflare"},
            ctype="text/html",
        ),
        "server",
        dict(state="active"),
    ),
    ("reset", reset(), "network", dict(state="active", errors=1, fails=1)),
    ("closed without an answer", close(), "network", dict(state="active", errors=1, fails=1)),
    ("garbage", raw(b"\x00\x01garbage\r\n\r\n"), "network|server", dict(state="active", errors=1)),
    (
        "header line of 110 kB",
        raw(b"HTTP/1.1 200 OK\r\nX-Big: " + b"a" * 110_000 + b"\r\n\r\n{}"),
        "network|server",
        dict(state="active", errors=1),
    ),
    ("401 unexplained", plain(b"", 401), "unexplained", dict(state="active", errors=0, fails=0)),
    (
        "403 unexplained",
        plain({"error": {"message": "no"}}, 403),
        "unexplained",
        dict(state="active", errors=0),
    ),
]


@pytest.mark.parametrize("action,kind,want", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_next_account_serves(up, gate, action, kind, want):
    up.script(K1, action)
    g = gate(accounts=2)
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == (
        200,
        "A2",
        "2",
    )
    assert up.creds() == [K1, K2]
    a1 = g.account()
    assert {k: a1[k] for k in want} == want
    if kind not in ("unexplained", "overload"):
        assert a1["last_error"]["kind"] in kind.split("|")
    if want["state"] == "cooling":
        assert a1["cool"]["kind"] == kind and a1["cool"]["reason"] and a1["cool"]["rule"]
    if want["state"] == "disabled":
        assert a1["disabled"] and a1["disabled_reason"]
    assert a1["in_flight"] == 0
    g.assert_clean("A2")


# The request's fault: the body goes to the client as it is, nobody else is asked, nobody is charged.
FAULTS = [
    (
        "400",
        400,
        {
            "error": {
                "message": "Invalid value: 'my billing quota text'",
                "type": "invalid_request_error",
            }
        },
    ),
    (
        "400 unsupported",
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'max_tokens'",
                "code": "unsupported_parameter",
            }
        },
    ),
    ("400 bare", 400, b""),
    ("413", 413, {"error": {"message": "too big"}}),
    ("422", 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}),
    ("content filter", 400, {"error": {"code": "content_filter", "message": "flagged"}}),
    (
        "context length",
        400,
        {
            "error": {
                "code": "context_length_exceeded",
                "message": "This model's maximum context length is 128000 tokens.",
            }
        },
    ),
    ("11128", 400, {"code": 11128, "msg": "Illegal API invocation from an unapproved channel"}),
    ("11101", 400, {"code": 11101, "msg": "non-stream not supported"}),
]


@pytest.mark.parametrize("status,body", [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_request_is_at_fault(up, gate, status, body, streamed):
    text = body if isinstance(body, bytes) else json.dumps(body, indent=3).encode()
    up.script(K1, plain(text, status))
    g = gate()
    a = g.ask(stream=streamed)
    assert (a.status, a.body) == (status, text)
    assert up.count() == 1
    assert (a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == ("A1", "1")
    g.assert_clean()


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize(
    "path,body",
    [
        ("/v1/embeddings", b'{"model":"m1","input":"x"}'),
        ("/v1/completions", b'{"model":"m1","prompt":"x"}'),
        ("/v1/moderations", b'{"model":"m1","input":"x"}'),
    ],
)
def test_missing_side_endpoints_are_the_clients_fault(up, gate, status, path, body):
    up.script(K1, plain(b"no such thing", status, ctype="text/plain"))
    g = gate()
    a = g.send(body, path=path).finish()
    assert (a.status, a.body) == (status, b"no such thing")
    assert up.count() == 1
    g.assert_clean()


@pytest.mark.parametrize("status", [200, 500, 502])
def test_request_fault_seen_at_200_or_500_becomes_400(up, gate, status):
    """REQ-02"""
    up.script(K1, error(status, "context_length_exceeded", "maximum context length is 9 tokens"))
    g = gate()
    a = g.ask()
    assert a.status == 400
    assert "maximum context length is 9 tokens" in a.json()["error"]["message"]
    assert up.count() == 1
    g.assert_clean()


def test_bad_keys(up, gate):
    """REQ-05: a bad key leaves the rotation at once; all bad is our 503, not the client's 401."""
    bad = error(401, "invalid_api_key", f"Incorrect API key provided: {K1}.")
    up.script(K1, bad)
    g = gate(allow=["disabled"])
    assert [g.ask().status for _ in range(2)] == [200, 200]
    assert up.creds() == [K1, K2, K2]
    assert g.account()["state"] == "disabled"
    up.default(bad)
    a = g.ask()
    assert a.status == 503
    assert b"sk-" not in a.out
    assert g.ask().error["code"] == "no_account"
    assert g.status()["totals"]["disabled"] == 3


def test_auth_failed_after(up, gate):
    up.default(error(401, "invalid_api_key", "bad key"), K1)
    g = gate(cooldown={"auth_failed_after": 2})
    g.ask()
    assert g.account()["state"] == "active"
    g.ask()
    assert g.account()["state"] == "disabled"


def test_session_dead_three_in_a_row(up, gate):
    dead = flat(12153, "session offline", 401)
    up.script(K1, dead, dead, ok(), dead, dead, dead)
    g = gate()
    for want in (1, 2, 0, 1, 2):
        assert g.ask().status == 200
        assert g.account()["session_dead"] == want
    assert g.account()["state"] != "disabled"
    g.ask()
    a = g.account()
    assert a["state"] == "disabled" and a["disabled_reason"]


def test_402_and_403_move_on(up, gate):
    """REQ-07"""
    up.script(K1, error(402))
    up.script(K2, error(403, "validation_required", "validation required"))
    g = gate()
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Account")) == (200, "A3")
    assert up.creds() == [K1, K2, K3]
    assert g.account("A1")["cool"]["kind"] == "hard_credit"


def test_unexplained_twice_is_the_clients(up, gate):
    """SPEC 6: if a second account gives the same, stop and treat as `client`."""
    up.default(plain(b'{"error":"forbidden"}', 403))
    g = gate()
    a = g.ask()
    assert (a.status, a.body) == (403, b'{"error":"forbidden"}')
    assert up.count() == 2
    g.assert_clean()


def test_hard_credit_until_four_in_the_zone(up, gate):
    up.script(K1, error(402))
    g = gate(cooldown={"hard_credit_until": "04:00", "timezone": "Asia/Shanghai"})
    g.ask()
    now = datetime.now(timezone.utc)
    four = now.astimezone(timezone(timedelta(hours=8))).replace(
        hour=4, minute=0, second=0, microsecond=0
    )
    if four <= now:
        four += timedelta(days=1)
    assert abs(parse_time(g.account()["cool"]["until"]) - four.timestamp()) < 2


@pytest.mark.parametrize(
    "provider,code", [("openai", "rate_limit_exceeded"), ("gemini", "rate_limit_exceeded")]
)
def test_limits_per_model_of_a_provider(up, gate, provider, code):
    up.script(K1, error(429, code, "Rate limit reached for m1"))
    g = gate(channel={"provider": provider})
    assert g.ask().header("X-Sluice-Account") == "A2"
    a = g.account()
    assert (a["state"], [m["model"] for m in a["rate_limited_models"]]) == ("active", ["m1"])
    assert g.ask(model="m2").header("X-Sluice-Account") == "A1"
    assert g.ask(model="m1").header("X-Sluice-Account") == "A2"
    assert g.account()["soft_streak"] == 0


def test_model_rate_is_that_model_only(up, gate):
    at = datetime.now(timezone(timedelta(hours=8))) + timedelta(seconds=90)
    up.script(
        K1,
        flat(
            6004,
            f"usage exceeds frequency limit, your usage will reset at {at:%Y-%m-%d %H:%M:%S} UTC+8",
            429,
        ),
    )
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A2"
    (m,) = g.account()["rate_limited_models"]
    assert m["model"] == "m1" and m["reason"]
    assert abs(parse_time(m["until"]) - at.timestamp()) <= 2
    assert g.ask(model="m2").header("X-Sluice-Account") == "A1"


def test_model_rate_is_capped(up, gate):
    up.script(K1, flat(6004, "limit", 429, headers={"Retry-After": "86400"}))
    g = gate(cooldown={"soft_rate_max": "10m"})
    g.ask()
    (m,) = g.account()["rate_limited_models"]
    assert 590 <= parse_time(m["until"]) - time.time() <= 601
    assert parse_time(m["reset_at"]) - time.time() > 86000


def test_models_are_timed_each_by_itself(up, gate):
    up.script(
        K1,
        flat(6004, "limit", 429, headers={"Retry-After": "1"}),
        flat(6004, "limit", 429, headers={"Retry-After": "60"}),
    )
    g = gate()
    g.ask(model="m1"), g.ask(model="m2")
    assert len(g.account()["rate_limited_models"]) == 2
    time.sleep(1.1)
    assert [m["model"] for m in g.account()["rate_limited_models"]] == ["m2"]
    assert g.ask(model="m1").header("X-Sluice-Account") == "A1"


def test_model_missing_everywhere(up, gate):
    """SPEC 4.3: only this model is missing on every account -> 404 model_not_found."""
    up.default(error(404, "model_not_found", "The model `m1` does not exist"))
    g = gate(accounts=2)
    a = g.ask()
    assert (a.status, a.error["code"]) == (404, "model_not_found")
    assert up.count() == 2
    a = g.ask()
    assert (a.status, a.error["code"], up.count()) == (404, "model_not_found", 2)
    up.default(ok())
    assert g.ask(model="m2").status == 200


def test_not_found_is_short_and_flat(up, gate):
    up.script(K1, plain(b"", 404))
    g = gate(cooldown={"not_found": "30s"})
    g.ask()
    assert 28 <= g.cooling_for() <= 30.5


def test_overload_is_short(up, gate):
    """COOL-15: one spaced retry, then 200; nobody is out for longer than the setting."""
    for k in (K1, K2):
        up.script(k, error(529, None, "Overloaded", type="overloaded_error"))
    g = gate(accounts=2, cooldown={"overload": "7s"})
    a = g.ask()
    assert a.status == 200
    assert up.creds() == [K1, K2, K1]  # the first of the two once more
    accounts = g.accounts()
    for x in accounts.values():
        assert x["errors"] == 0
        assert x["cool"] is None or parse_time(x["cool"]["until"]) - time.time() <= 7.5


def test_overload_stops_after_two(up, gate):
    """SPEC 6: after two accounts the request burns no third; one more try of the first."""
    up.default(error(503))
    g = gate(accounts=5, upstream={"max_attempts": 5})
    a = g.ask()
    assert a.status == 503
    assert up.creds() == [K1, K2, K1]


def test_redacted(up, gate):
    """SPEC 4.3: any of our keys in an upstream's body becomes [redacted]."""
    up.script(
        K1,
        plain(
            f'{{"error":{{"message":"key {K2} and {base64.b64encode(K1.encode()).decode()}","x":1}}}}',
            400,
        ),
    )
    a = gate().ask()
    assert a.status == 400
    assert a.body.count(b"[redacted]") == 2 and K2.encode() not in a.body
    assert base64.b64encode(K1.encode()) not in a.body


def test_rules_of_the_channel_come_first(up, gate):
    """COOL-12: a 429 that is really "not entitled"."""
    up.script(K1, error(429, None, "Extra plan required for long context"))
    g = gate(channel={"rules": [{"status": 429, "text": "extra plan REQUIRED", "kind": "client"}]})
    a = g.ask()
    assert (a.status, up.count()) == (429, 1)
    g.assert_clean()
    assert g.ask().header("X-Sluice-Account") == "A1"


@pytest.mark.parametrize(
    "rule",
    [
        {"code": "q1"},
        {"type": "t1"},
        {"text": "/strange +words/"},
        {"status": 418},
        {"header": "x-mark"},
    ],
)
def test_what_a_rule_can_match(up, gate, rule):
    up.script(K1, error(418, "q1", "some strange   words", {"X-Mark": "yes"}, type="t1"))
    g = gate(channel={"rules": [{**rule, "kind": "hard_credit"}]})
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert g.account()["cool"]["kind"] == "hard_credit"


def test_never_disabled_by_overload_or_garbage(up, gate):
    """REQ-14"""
    up.script(K1, error(500, None, "overloaded"))
    up.script(K2, plain(b"<html>", ctype="text/html"))
    up.script(K3, plain(b'{"choices":', declared=900, end="fin"))
    g = gate()
    assert g.ask().status in (200, 502, 503)
    assert g.status()["totals"]["disabled"] == 0


def test_transport_fault_right_after_connect(up, gate):
    """REQ-15: the request is retried and nobody rests for it."""
    up.on_connect = ["rst"]
    g = gate(accounts=2)
    assert g.ask().status == 200
    a = g.account()
    assert (a["state"], a["cool"], a["in_flight"]) == ("active", None, 0)


def test_disable_after(up, gate):
    up.default(error(500), K1)
    g = gate(pool={"disable_after": 2}, breaker={"threshold": 5})
    g.ask(), g.ask()
    assert g.account()["state"] == "disabled"
