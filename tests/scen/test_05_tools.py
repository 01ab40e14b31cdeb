"""The test tools themselves: what a scenario relies on must hold without the program."""

import socket
import threading
import time

import pytest

from lib.answers import chat_chunks, close, hang, ok, pieces, plain, reset, sse, stream
from lib import fcgi
from lib.upstream import Blackhole, wait_until


class Client:
    """A raw HTTP client with one connection."""

    def __init__(self, up):
        self.sock = socket.create_connection(("127.0.0.1", up.port), 5)

    def post(self, key="k", body=b'{"model":"m1"}', path="/v1/chat/completions"):
        self.sock.sendall(
            b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-One: 1\r\nContent-Length: %d\r\n\r\n"
            % (path.encode(), key.encode(), len(body))
            + body
        )
        return self

    def read(self, end=None, timeout=5):
        self.sock.settimeout(timeout)
        got = b""
        while end is None or not got.endswith(end):
            data = self.sock.recv(65536)
            if not data:
                return got
            got += data
        return got


def test_requests_are_kept_exactly(up):
    c = Client(up).post()
    c.read(b"}")
    c.post("other", b"{}").read(b"}")
    first, second = up.requests
    assert first.head.startswith(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nX-One: 1\r\n"
    )
    assert (first.body, first.cred, second.cred) == (b'{"model":"m1"}', "k", "other")
    assert (first.conn, first.nth, second.conn, second.nth) == (1, 1, 1, 2)
    assert up.count() == 2 and up.count("k") == 1 and up.connections == 1


def test_script_then_default(up):
    up.script("k", plain(b"one", 429))
    up.default(plain(b"two", 500), "k")
    c = Client(up)
    assert (
        b" 429 " in c.post().read(b"one")
        and b" 500 " in c.post().read(b"two")
        and b" 500 " in c.post().read(b"two")
    )


@pytest.mark.parametrize("how", ["whole", "lines", "events", "bytes", 7, [1, 5, 9]])
def test_pieces_join(how):
    body = sse(chat_chunks("a", "é")) + b"tail"
    assert b"".join(pieces(body, how)) == body


def test_stream_framing(up):
    up.script("k", stream(["[DONE]"], "bytes"))
    got = Client(up).post().read(b"0\r\n\r\n")
    assert got.count(b"\r\n1\r\n") >= 10


def test_fin_rst_and_hang(up):
    up.script("k", close(), reset(), hang())
    assert Client(up).post().read() == b""
    with pytest.raises(ConnectionResetError):
        Client(up).post().read()
    c = Client(up).post()
    with pytest.raises(TimeoutError):
        c.read(timeout=0.2)
    c.sock.close()
    wait_until(lambda: up.requests[2].aborted_at, 2, "the abort was noticed")


def test_running_is_counted(up):
    up.default(hang(0.2))
    clients = [Client(up).post() for _ in range(3)]
    up.wait_for(3)
    assert up.running("k") == 3 and up.max_in_flight["k"] == 3
    [c.sock.close() for c in clients]
    wait_until(lambda: up.running() == 0, 2)


def test_port_closes_and_opens(up):
    up.close_port()
    with pytest.raises(ConnectionRefusedError):
        Client(up)
    up.open_port()
    assert b" 200 " in Client(up).post().read(b"}")


def test_blackhole():
    hole = Blackhole()
    try:
        with pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", hole.port), 0.5)
    finally:
        hole.stop()


def test_fastcgi_answer_is_parsed():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond():
            sock, _ = server.accept()
            sock.recv(65536)
            sock.sendall(fcgi.record(fcgi.STDOUT, b"Status: 418 Tea\r\nX-A: 1\r\n\r\nda"))
            time.sleep(0.2)
            sock.sendall(
                fcgi.record(fcgi.STDOUT, b"ta: x\n\n: c\n\n")
                + fcgi.record(fcgi.STDERR, b"e")
                + fcgi.record(fcgi.STDOUT)
                + fcgi.record(fcgi.END, b"\0\0\0\7\0\0\0\0")
            )
            sock.close()

        thread = threading.Thread(target=respond)
        thread.start()
        a = fcgi.ask("127.0.0.1:%d" % server.getsockname()[1], b"{}").finish()
        thread.join()
    assert (a.status, a.header("x-a"), a.body, a.errors, a.end) == (
        418,
        "1",
        b"data: x\n\n: c\n\n",
        b"e",
        (7, 0),
    )
    assert a.events() == [("", "x")]
    assert a.when(b"data: x") >= 0.15


def test_params_coding():
    assert fcgi.params({"A": "b", "C" * 200: ""}) == b"\1\1Ab" + b"\x80\0\0\xc8\0" + b"C" * 200


def test_default_action_knows_the_endpoints(up):
    up.default(ok())
    c = Client(up)
    assert b'"embedding"' in c.post(path="/v1/embeddings").read(b"}")
    assert b"[DONE]" in c.post(body=b'{"stream":true}').read(b"0\r\n\r\n")
