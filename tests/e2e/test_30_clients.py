"""Clients that leave at bad moments: no lease leaks, nothing hangs, nothing is asked twice."""

import json
import socket
import struct
import threading
import time

import pytest
import stage as st
from stage import answers, bearer, question, texts, upstream
from lib.upstream import wait_until


@pytest.fixture(scope="module", params=["lighttpd-external", "apache-proxy"])
def stage(request):
    s = st.Stage(request.param, workers=8, config={"upstream": {"heartbeat": "1s"}})
    yield s
    s.stop()


def raw(body, length=None):
    """A chat request as bytes."""
    return (
        b"POST /llm/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s"
        % (bearer()["Authorization"].encode(), length or len(body), body)
    )


def connect(stage):
    return socket.create_connection(("127.0.0.1", stage.port), 20)


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def body(**fields):
    return json.dumps(question(**fields)).encode()


def test_two_hundred_resets_at_once(stage):
    stage.up.default(answers.slow(0.05, answers.stream(texts(3), how="events", gap=0.02)))
    for _ in range(200):
        client = connect(stage)
        client.sendall(raw(body(stream=True)))
        reset(client)
    wait_until(lambda: stage.in_flight() == 0, 10, "no lease left")
    wait_until(lambda: stage.up.running() == 0, 10, "no transfer left")
    stage.up.default(answers.ok())
    assert stage.chat().status == 200


def test_clients_that_leave_with_the_last_byte(stage):
    stage.up.default(answers.stream(texts(1)), "up-key-pair")
    for _ in range(100):
        client = connect(stage)
        client.sendall(raw(body(model="pair", stream=True)))
        got = b""
        while b"[DONE]" not in got:
            data = client.recv(65536)
            assert data, got
            got += data
        client.close()
    stage.up.clear()
    stage.up.default(answers.slow(0.2), "up-key-pair")
    got = []
    threads = [
        threading.Thread(target=lambda: got.append(stage.chat(model="pair"))) for _ in range(8)
    ]
    for t in threads:
        t.start()
    seen = 0
    while any(t.is_alive() for t in threads):
        seen = max(seen, stage.in_flight())
        time.sleep(0.02)
    assert stage.up.max_in_flight["up-key-pair"] == 2 and seen <= 2
    assert {g.status for g in got} <= {200, 429}, got
    assert stage.up.count() == sum(g.status == 200 for g in got) and stage.in_flight() == 0


def test_client_that_only_closes_its_sending_side(stage):
    if stage.kind.startswith("lighttpd"):
        pytest.skip("tcp-fin-propagate: such a client counts as gone")
    stage.up.default(answers.slow(0.5, answers.stream(texts(5), how="events", gap=0.1)))
    client = connect(stage)
    client.sendall(raw(body(stream=True)))
    client.shutdown(socket.SHUT_WR)
    got = b""
    while data := client.recv(65536):
        got += data
    client.close()
    assert b"data: [DONE]" in got, got


def test_uploads_that_are_given_up(stage):
    def give_up():
        client = connect(stage)
        try:
            client.sendall(raw(b"{" + b" " * 8_000_000, 27_000_000))
        except OSError:
            pass
        client.close()

    threads = [threading.Thread(target=give_up) for _ in range(20)]
    for t in threads:
        t.start()
    seen = 0
    while any(t.is_alive() for t in threads):
        seen = max(seen, stage.in_flight())
    assert seen == 0, "a lease before the body was complete"
    assert stage.chat().status == 200
    assert stage.up.count() == 1 and stage.in_flight() == 0


def test_client_that_reads_nothing(stage):
    """Back-pressure reaches the provider; when the client goes, so does the transfer."""
    done = threading.Event()

    def flood(x):
        try:
            x.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            data = answers.sse([answers.chunk({"content": "x" * 60000})])
            for _ in range(2000):  # 120 MB
                x.send(b"%x\r\n%s\r\n" % (len(data), data))
        except upstream.Gone:
            done.set()
            raise

    stage.up.default(flood)
    client = connect(stage)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.sendall(raw(body(stream=True)))
    stage.up.wait_for(1)
    time.sleep(1)
    assert stage.up.running() == 1, "120 MB went somewhere"
    reset(client)
    assert done.wait(5)
    wait_until(lambda: stage.in_flight() == 0, 5, "no lease left")
