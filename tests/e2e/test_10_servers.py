"""Each shipped configuration, unchanged, with the gateway behind it."""

import json
import os
import signal
import socket
import threading
import time

import pytest
import stage as st
from stage import ADMIN, USER, Gate, answers, basic, bearer, question, texts
from lib.upstream import wait_until

LETTERS = "abcdefghijklmnopqrstuvwxyz012345"


def long_question(size):
    return json.dumps(question(LETTERS * (size // 32))).encode()


def test_plain(stage):
    got = stage.chat()
    assert got.status == 200 and got.json()["choices"][0]["message"]["content"] == "hi", got
    assert got.header("Content-Type").startswith("application/json")
    assert got.header("X-Sluice-Account") in ("a1", "a2") and got.header("X-Request-Id"), got
    assert stage.up.last.cred in ("up-key-1", "up-key-2")


def test_answer_bytes_pass_unchanged(stage):
    body = (
        b'{"choices" : [ {"index":0,"message":{"role":"assistant",'
        b'"content":"\\u00e9 \xc3\xa9 1e3"}, "n": 1.0}],"x":1e400}'
    )
    stage.up.default(answers.plain(body))
    assert stage.chat().body == body


@pytest.mark.cell("streams")
def test_events_come_one_by_one(stage):
    gate = Gate(*texts(6)).let(2)
    stage.up.default(gate)
    live = stage.stream()
    for i in range(6):
        live.until(b"t%d" % i)
        assert b"t%d" % (i + 1) not in live.body, "an event came that was not sent yet"
        gate.let()
    got = gate.let(9) and live.finish()
    assert got.ended == "clean" and got.body.endswith(b"data: [DONE]\n\n"), got
    assert got.header("Content-Type").startswith("text/event-stream")


def bearer_line():
    return "Authorization: " + bearer()["Authorization"]


@pytest.mark.cell("big body")
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("size", [200_000, 30_000_000], ids=["200kB", "30MB"])
def test_large_bodies(stage, size, chunked):
    body = long_question(size)
    got = stage.ask("/v1/chat/completions", body, chunked=chunked)
    assert got.status == 200, got
    assert stage.up.last.body == body


@pytest.mark.cell("chunked")
@pytest.mark.parametrize("size", [1_000, 100_000])
def test_chunked_bodies(stage, size):
    test_large_bodies(stage, size, True)


def test_large_answer(stage):
    text = LETTERS * 100_000
    stage.up.default(answers.ok(text))
    assert stage.chat().json()["choices"][0]["message"]["content"] == text


@pytest.mark.cell("big body")
def test_body_above_our_limit_is_413_in_json(stage):
    got = stage.ask("/v1/chat/completions", long_question((32 << 20) + 1000))
    assert got.status == 413 and got.json()["error"]["message"], got
    assert stage.up.count() == 0


def refused_by_the_web_server(got):
    """Not by the gateway, which gives each answer an id."""
    assert got.status in (401, 403) and not got.header("X-Request-Id"), got


@pytest.mark.cell("auth")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("sl-test-alice-0002"),
        bearer(""),
        basic(("bob", "no")),
        {"X-Api-Key": "sl-nobody-0001"},
        {"Remote-User": "admin"},
        {"Remote_User": "admin"},
        {"X-Remote-User": "admin"},
        {"Redirect-Remote-User": "admin"},
    ],
    ids=lambda h: " ".join(h) + str(sum(map(len, h.values()))),
)
def test_no_credentials_no_upstream(stage, headers):
    refused_by_the_web_server(stage.chat(headers=headers))
    assert stage.up.count() == 0


@pytest.mark.cell("auth")
@pytest.mark.parametrize(
    "headers",
    [bearer(), basic(USER), {"X-Api-Key": st.TOKEN}],
    ids=["bearer", "basic", "x-api-key"],
)
def test_credentials_pass_and_stay_here(stage, headers):
    assert stage.chat(headers=headers).status == 200
    assert st.TOKEN.encode() not in stage.up.last.head and b"Basic" not in stage.up.last.head


@pytest.mark.cell("auth")
@pytest.mark.parametrize("path", ["/status", "/metrics", "/ui/"])
def test_admin_pages_are_for_the_admin(stage, path):
    got = stage.ask(path, headers=basic(ADMIN))
    if got.status == 404:
        pytest.skip(f"{path} is not built into this version")
    assert got.status == 200, got
    for headers in ({}, bearer(), basic(USER), {"Remote-User": "admin"}):
        refused_by_the_web_server(stage.ask(path, headers=headers))
        refused_by_the_web_server(stage.ask("//v1/.." + path, headers=headers))


@pytest.mark.cell("auth")
def test_healthz_is_for_anyone(stage):
    got = stage.ask("/healthz", headers={})
    assert got.status == 200 and got.json()["service"] == "sluice", got


@pytest.mark.cell("auth")
@pytest.mark.parametrize(
    "path",
    [
        "//status",
        "/./status",
        "/%73tatus",
        "/healthz/../status",
        "/healthz%2f..%2fstatus",
        "/status/healthz",
        "/status%3f/healthz",
        "/sluice.cgi/status",
        "/sluice.fcgi/status?x=/healthz",
        "/v1/models/healthz",
    ],
)
def test_no_way_around(stage, path):
    """However a path is spelled, the door for /healthz opens nothing else."""
    strangers = ({}, bearer(), basic(USER)) if "models" not in path else ({},)
    wrong = (basic((ADMIN[0], "no")),) if path == "/status/healthz" else ()
    for headers in strangers + wrong:
        got = stage.ask(path, headers=headers)
        assert got.status >= 400 or b'"service":"sluice"' in got.body, got
        assert b"accounts" not in got.body and b'"m1"' not in got.body, got
    got = stage.ask(path + "/v1/chat/completions", question(), headers={})
    assert got.status in (400, 401, 403, 404) and stage.up.count() == 0, got


def test_models(stage):
    got = stage.ask("/v1/models")
    assert {"m1", "solo"} <= {m["id"] for m in got.json()["data"]} and stage.up.count() == 0, got


def test_head_and_options(stage):
    for headers in (bearer(), {}):
        assert stage.ask("/v1/models", headers=headers, method="HEAD").body == b""
        assert stage.ask("/v1/messages", headers=headers, method="OPTIONS").status in (
            204,
            401,
            403,
            404,
            405,
        )
    assert stage.up.count() == 0


def test_many_headers(stage):
    headers = {**bearer(), **{f"X-Pad-{i}": "p" * 60 for i in range(40)}, "X-Long": "l" * 3000}
    assert stage.chat(headers=headers).status == 200


def test_upstream_error_passes(stage):
    stage.up.default(answers.error(400, "bad_thing", "no such thing"), "up-key-400")
    got = stage.chat(model="e400")
    assert got.status == 400 and got.json()["error"]["code"] == "bad_thing", got


def test_unknown_path_is_404_in_json(stage):
    got = stage.ask("/v1/nothing", {})
    assert got.status == 404 and got.json()["error"]["message"], got
    assert stage.up.count() == 0


@pytest.mark.cell("client gone")
def test_client_leaves_a_running_stream(stage):
    events = texts(400)
    stage.up.default(answers.stream(events, how="events", gap=0.05), "up-key-solo")
    live = stage.stream(model="solo").until(b"t1")
    live.close()
    wait_until(lambda: stage.up.last.aborted_at, 4, "the upstream transfer is ended")
    wait_until(lambda: stage.in_flight() == 0, 4, "lease free")
    stage.up.default(answers.ok(), "up-key-solo")
    assert stage.chat(model="solo").status == 200


@pytest.mark.cell("client gone")
def test_client_leaves_a_silent_stream(stage):
    """Noticed at the second heartbeat at the latest."""
    gate = Gate(*texts(3)).let(2)
    stage.up.default(gate, "up-key-solo")
    live = stage.stream(model="solo").until(b"t0")
    live.close()
    assert gate.gone.wait(5), "the upstream transfer goes on"
    wait_until(lambda: stage.in_flight() == 0, 4, "lease free")


@pytest.mark.needs("early gone")
def test_client_leaves_before_the_first_byte(stage):
    stage.up.default(answers.hang(), "up-key-solo")
    body = json.dumps(question(model="solo", stream=True)).encode()
    with socket.create_connection(("127.0.0.1", stage.port)) as client:
        # In two parts: lighttpd does not watch a connection whose request was there at once.
        client.sendall(b"POST /llm/v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
        time.sleep(0.5)
        client.sendall(b"%s\r\n" % bearer_line().encode())
        client.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        stage.up.wait_for(1, "up-key-solo")
    wait_until(lambda: stage.up.last.aborted_at, 4, "the upstream transfer is ended")
    wait_until(lambda: stage.in_flight() == 0, 4, "lease free")


@pytest.mark.needs("streams")
def test_heartbeat(stage):
    gate = Gate(*texts(2)).let(2)
    stage.up.default(gate)
    live = stage.stream().until(b"t0").until(b"\n\n:", 5)
    gate.let(9)
    got = live.finish()
    assert got.body.endswith(b"data: [DONE]\n\n") and all(
        e[:5] in (b"data:", b"") or e[:1] == b":" for e in got.body.split(b"\n\n")
    ), got


@pytest.mark.needs("streams")
def test_killed_worker(stage):
    """An error or a broken end, never a good one; the lease is free at the next pick."""
    gate = Gate(*texts(4)).let(2)
    stage.up.default(gate, "up-key-solo")
    live = stage.stream(model="solo").until(b"t0")
    for pid in stage.pids():
        os.kill(pid, signal.SIGKILL)
    got = live.finish()
    assert b"[DONE]" not in got.body, got
    stage.up.default(answers.ok(), "up-key-solo")
    got = stage.chat(model="solo")
    assert got.status == 200, got
    assert stage.in_flight() == 0
