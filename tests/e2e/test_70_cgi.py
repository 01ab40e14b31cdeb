"""Shared hosting: plain CGI by .htaccess alone. One process a request, the state remembered between them."""

import pytest
import stage as st
from stage import Gate, bearer, question, texts, upstream

ME = bearer(st.KEY)


@pytest.fixture(scope="module")
def stage():
    s = st.Stage(st.CGI, config={"auth": {"mode": "keys"}})
    yield s
    s.stop()


def test_plain(stage):
    got = stage.chat(headers=ME)
    assert got.status == 200 and got.json()["choices"][0]["message"]["content"] == "hi", got


def test_events_come_one_by_one(stage):
    gate = Gate(*texts(3)).let(2)
    stage.up.default(gate)
    live = stage.open("/v1/chat/completions", question(stream=True), ME)
    for i in range(3):
        live.until(b"t%d" % i)
        assert b"t%d" % (i + 1) not in live.body, "an event came that was not sent yet"
        gate.let()
    got = gate.let(9) and live.finish()
    assert got.body.endswith(b"data: [DONE]\n\n"), got


@pytest.mark.parametrize("chunked", [False, True])
def test_200_kb(stage, chunked):
    body = b'{"model":"m1","messages":[{"role":"user","content":"%s"}]}' % (b"x" * 200_000)
    assert stage.ask("/v1/chat/completions", body, ME, chunked=chunked).status == 200
    assert stage.up.last.body == body


def test_a_cooldown_outlives_the_process(stage):
    stage.up.default(upstream.error(429, "rate_limit_exceeded", "slow down", {"Retry-After": "30"}), "up-key-1")
    for _ in range(8):
        assert stage.chat(headers=ME).status == 200
    assert stage.up.count("up-key-1") <= 1


def test_no_key_no_upstream(stage):
    for headers in ({}, bearer(), {"Remote-User": "admin"}):
        assert stage.chat(headers=headers).status == 401
    assert stage.up.count() == 0
