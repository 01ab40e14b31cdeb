"""Retry and what the client sees at the end (SPEC 4.3, 5; RET)."""

import time

import pytest

from lib.answers import chat_answer, close, early, error, hang, ok, plain, reset, slow
from lib.pool import K1, K2, K3
from lib.upstream import Blackhole, wait_until


def test_backoff_grows_for_server_failures(up, gate):
    """SPEC 5: server failures wait retry_backoff * 2^i, plus or minus 25 %."""
    up.default(error(500))
    g = gate(upstream={"retry_backoff": "200ms", "retry_backoff_max": "8s"})
    assert g.ask().status == 502
    t = [r.at for r in up.requests]
    assert 0.15 <= t[1] - t[0] <= 0.29 and 0.30 <= t[2] - t[1] <= 0.54, t


def test_backoff_maximum(up, gate):
    up.default(error(500))
    g = gate(upstream={"retry_backoff": "200ms", "retry_backoff_max": "200ms"})
    assert g.ask().took < 0.7


@pytest.mark.parametrize(
    "action", [error(429), error(402), error(401, "invalid_api_key"), error(404, "model_not_found")]
)
def test_rate_credit_and_auth_move_on_at_once(up, gate, action):
    up.script(K1, action)
    g = gate(upstream={"retry_backoff": "2s", "retry_backoff_max": "2s"})
    a = g.ask()
    assert a.status == 200 and a.took < 0.5


LAST = [
    ("rate", error(429, headers={"Retry-After": "30"}), 429, 5),
    ("overload", error(503), 503, 5),
    ("server", error(500, None, "kaputt"), 502, 5),
    ("network", close(), 502, 5),
    ("html", plain(b"<html>x</html>", ctype="text/html"), 502, 5),
    ("empty", plain(b""), 502, 5),
]


@pytest.mark.parametrize("action,status,accounts", [x[1:] for x in LAST], ids=[x[0] for x in LAST])
@pytest.mark.parametrize("streamed", [False, True])
def test_when_all_attempts_fail(up, gate, action, status, accounts, streamed):
    up.default(action)
    g = gate(accounts=accounts)
    a = g.ask(stream=streamed)
    assert a.status == status
    assert a.header("Content-Type").startswith("application/json")
    assert a.error["code"] == "upstream_error" and a.error["message"]
    assert a.header("x-should-retry") == "false"
    assert a.header("X-Sluice-Attempts") == "3"
    if status == 429:
        assert a.header("Retry-After") == "1"  # others were left
    assert b"127.0.0.1" not in a.out and b"<html" not in a.body


def test_time_outs_end_as_504(up, gate):
    up.default(hang())
    g = gate(accounts=2, upstream={"plain_timeout": "300ms", "first_byte_timeout": "300ms"})
    a = g.ask()
    assert (a.status, a.error["code"], up.count()) == (504, "upstream_error", 2)


def test_upstreams_message_reaches_the_client(up, gate):
    up.default(error(500, "E77", "the database caught fire"))
    assert "the database caught fire" in gate().ask().error["message"]


def test_last_kind_decides(up, gate):
    up.script(K1, error(429))
    up.script(K2, error(503))
    up.script(K3, error(500))
    assert gate().ask().status == 502


def test_attempts_are_bounded_in_all(up, gate):
    """RET-08"""
    up.default(error(500))
    g = gate(accounts=8, upstream={"max_attempts": 4})
    a = g.ask()
    assert up.count() == 4
    assert a.header("X-Sluice-Attempts") == "4"


def test_one_attempt_means_one(up, gate):
    up.script(K1, error(500))
    g = gate(upstream={"max_attempts": 1})
    assert (g.ask().status, up.count()) == (502, 1)


@pytest.mark.parametrize("streamed", [False, True])
def test_no_double_post_on_a_reused_connection(up, gate, streamed):
    """cases.md, library facts: once written whole a request is never re-sent to that account; the
    end without answer on a reused connection is an attempt but nobody's failure.
    """
    up.script(K1, ok(), close())
    g = gate(workers=1)
    assert g.ask(stream=streamed).status == 200
    a = g.ask(stream=streamed)
    assert (a.status, a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == (
        200,
        "A2",
        "2",
    )
    assert up.creds() == [K1, K1, K2]
    assert [r.conn for r in up.requests[:2]] == [1, 1], "the connection was not reused"
    g.assert_clean()


def test_no_double_post_with_one_account(up, gate):
    up.script(K1, ok(), close())
    g = gate(workers=1, accounts=1)
    assert g.ask().status == 200
    assert g.ask().status == 502
    assert up.count() == 2
    assert g.account()["errors"] == 0


def test_idle_connection_closed_by_the_peer(up, gate):
    """Closed before the request was written: sent again at once to the same account, no attempt,
    nobody's failure.
    """
    up.script(K1, plain(chat_answer(), end="fin"))
    g = gate(workers=1, accounts=1)
    assert g.ask().status == 200
    time.sleep(0.1)
    a = g.ask()
    assert (a.status, a.header("X-Sluice-Attempts")) == (200, "1")
    assert up.count() == 2
    g.assert_clean()


def test_refused_connection(up, gate):
    """LEASE-01: each fails fast, no lease stays, and the pool works once the port is open."""
    g = gate(
        accounts=1,
        pool={"max_in_flight": 2},
        breaker={"threshold": 99},
        channel_breaker={"triggers": []},
    )
    up.close_port()
    for _ in range(10):
        a = g.ask(stream=True)
        assert a.status == 502 and a.took < 1
    assert g.in_flight() == 0
    up.open_port()
    assert g.ask(stream=True).status == 200


def test_no_attempt_for_a_client_that_left(up, gate):
    """RET-14"""
    up.script(K1, slow(0.6, error(500)))
    g = gate(upstream={"retry_backoff": "300ms", "retry_backoff_max": "300ms"})
    a = g.open()
    up.wait_for(1)
    time.sleep(0.2)
    a.close()
    time.sleep(1.0)
    assert up.count() == 1
    assert g.in_flight() == 0


def test_client_leaves_during_the_backoff(up, gate):
    up.script(K1, error(500))
    g = gate(upstream={"retry_backoff": "1s", "retry_backoff_max": "1s"})
    a = g.open()
    up.wait_for(1)
    time.sleep(0.1)
    a.close()
    wait_until(lambda: g.in_flight() == 0, 1, "nothing in flight")
    time.sleep(1.2)
    assert up.count() == 1


def test_bodies_of_retries_are_the_same(up, gate):
    up.script(K1, error(500))
    up.script(K2, reset())
    g = gate()
    assert g.ask(temperature=0.1).status == 200
    assert len({r.body for r in up.requests}) == 1 and up.count() == 3


def test_connect_time_out(up, gate):
    """TMO-05: its own short limit, and other workers serve on."""
    hole = Blackhole()
    try:
        more = {
            "ob": {
                "provider": "openai-compatible",
                "base_url": hole.url,
                "models": ["slow"],
                "accounts": [{"id": "B1", "api_key": "sk-hole-000001"}],
            }
        }
        g = gate(channel={"models": ["m1"]}, channels=more, upstream={"connect_timeout": "700ms"})
        a = g.open(model="slow", stream=False)
        t = time.monotonic()
        assert g.ask().status == 200
        assert time.monotonic() - t < 0.5
        a.finish()
        assert a.status == 504 and 0.6 < a.took < 2
    finally:
        hole.stop()


def test_upstream_closes_while_the_body_is_sent(up, gate):
    """LEASE-11: no worker dies of SIGPIPE."""
    up.script(K1, early(reset()))
    g = gate(workers=1)
    before = g.worker_pids()
    body = b'{"model":"m1","messages":[{"role":"user","content":"' + b"y" * 5_000_000 + b'"}]}'
    a = g.send(body).finish()
    assert a.status == 200 and a.header("X-Sluice-Account") in ("A1", "A2")
    assert g.worker_pids() == before
    assert g.in_flight() == 0


def test_early_answer_before_the_body_is_read(up, gate):
    """An upstream that refuses at once: its answer counts, not the broken pipe."""
    up.script(K1, early(error(413, None, "too big for us", end="hold")))
    g = gate(workers=1, accounts=1)
    body = b'{"model":"m1","messages":[{"role":"user","content":"' + b"y" * 5_000_000 + b'"}]}'
    a = g.send(body).finish()
    assert (a.status, a.error["message"]) == (413, "too big for us")
    g.assert_clean()


def test_the_log_line_tells_the_attempts(up, gate):
    """SPEC 14: attempts with kind and status each."""
    up.script(K1, error(429))
    up.script(K2, error(500))
    g = gate()
    assert g.ask(headers={"X-Request-Id": "walk"}).status == 200
    (line,) = wait_until(lambda: [x for x in g.logs() if x.get("id") == "walk" and "attempts" in x])
    walk = [(a["account"], a["kind"], a["status"]) for a in line["attempts"]]
    assert walk == [("A1", "soft_rate", 429), ("A2", "server", 500), ("A3", "ok", 200)]


def test_attempts_used_up_by_limits_and_nobody_left(up, gate):
    """The client is told when the first returns, not to come again at once."""
    up.default(error(429, headers={"Retry-After": "90"}))
    a = gate(accounts=3, upstream={"max_attempts": 3}).ask()
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert 88 <= int(a.header("Retry-After")) <= 90
    assert up.count() == 3


def test_attempts_used_up_by_limits_and_somebody_left(up, gate):
    up.default(error(429, headers={"Retry-After": "90"}))
    a = gate(accounts=4, upstream={"max_attempts": 3}).ask()
    assert (a.status, a.error["code"], a.header("Retry-After")) == (429, "upstream_error", "1")
