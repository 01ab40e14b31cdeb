"""HTTP/2 to a provider that offers it with TLS (SPEC 5): nginx stands in front of the scripted one."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from lib import wires
from lib.answers import chat_chunks, close, error, hang, stream
from lib.pool import K1
from lib.tls import Authority
from lib.upstream import wait_until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
CONF = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error warn;
events {{ worker_connections 64; }}
http {{
	access_log off;
	client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
	uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
	keepalive_requests {requests};
	server {{
		listen 127.0.0.1:{port} ssl http2;
		ssl_certificate {cert}; ssl_certificate_key {key};
		client_max_body_size 64m;
		location / {{
			proxy_pass http://127.0.0.1:{to}; proxy_http_version 1.1; proxy_buffering off;
			proxy_request_buffering off; proxy_set_header Connection "";
			proxy_set_header X-Proto $server_protocol; proxy_set_header X-Conn $connection;
			proxy_next_upstream off;
		}}
	}}
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


class Front:
    def __init__(self, folder, authority, to, requests=1000):
        self.folder = str(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        cert, key = authority.issue()
        self.conf = os.path.join(self.folder, "nginx.conf")
        with open(self.conf, "w") as f:
            f.write(
                CONF.format(
                    dir=folder, port=self.port, cert=cert, key=key, to=to, requests=requests
                )
            )
        self.url = f"https://127.0.0.1:{self.port}/v1"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [NGINX, "-c", self.conf, "-e", os.path.join(self.folder, "error")],
            stderr=subprocess.DEVNULL,
        )

        def accepts():
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                return False

        wait_until(accepts, 5, "nginx listens")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(5)


@pytest.fixture
def front(up, gate, tmp_path):
    authority = Authority(str(tmp_path))
    fronts = []

    def begin(accounts=1, requests=1000, **vary):
        fronts.append(Front(tmp_path, authority, up.port, requests))
        upstream = {"ca_file": authority.bundle, **vary.pop("upstream", {})}
        return fronts[0], gate(
            base_url=fronts[0].url, workers=1, accounts=accounts, upstream=upstream, **vary
        )

    yield begin
    for f in fronts:
        if f.process.poll() is None:
            f.stop()


def test_all_of_it(up, front):
    """Plain, streamed, large, converted, an error: one connection, HTTP/2."""
    _, g = front()
    for _ in range(3):
        assert g.ask().json()["choices"][0]["message"]["content"] == "hi"
    up.script(K1, stream(chat_chunks("a", "b"), "events", gap=0.05))
    answer = g.ask(stream=True)
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert len({round(at, 2) for at, _ in answer.pieces}) > 2
    assert g.ask(user="x" * 300_000).status == 200 and len(up.last.body) > 300_000
    a = g.send(wires.ask("messages"), path="/v1/messages").finish()
    assert a.json()["content"][0]["text"] == "hi"
    up.script(K1, error(400, message="no"))
    assert g.ask().status == 400
    assert {r.header("x-proto") for r in up.requests} == {"HTTP/2.0"}
    assert len({r.header("x-conn") for r in up.requests}) == 1
    g.assert_clean()


def test_a_connection_that_ends(up, front):
    """A host that closes after each request (GOAWAY), or that was started anew: nobody notices."""
    nginx, g = front(requests=1)
    for _ in range(4):
        assert g.ask().status == 200
    nginx.stop()
    nginx.start()
    assert g.ask().status == 200 and up.count() == 5
    g.assert_clean()


def test_no_answer(up, front):
    """A host that ends without an answer is an attempt; nothing is sent twice to one account."""
    _, g = front(accounts=2)
    up.script(K1, close())
    a = g.ask()
    assert a.status == 200 and a.header("x-sluice-attempts") == "2"
    assert up.count(K1) == 1


def test_a_host_that_dies(up, front):
    """In the middle of a stream, and before it began."""
    nginx, g = front(upstream={"max_attempts": 1}, allow=[".*"])
    up.script(K1, stream(b"".join(wires.events("chat")[:2]), end="hold"))
    answer = g.open().until(b"hel", 3)
    nginx.stop(signal.SIGKILL)
    assert b'"error"' in answer.finish().body
    nginx.start()
    up.script(K1, hang())
    answer = g.open()
    up.wait_for(2)
    time.sleep(0.1)
    nginx.stop(signal.SIGKILL)
    assert answer.finish().status in (502, 504)
    assert up.count() == 2


def test_client_gone(up, front):
    """The host is told at once."""
    _, g = front()
    up.script(K1, stream(b"".join(wires.events("chat")[:2]), end="hold"))
    g.open().until(b"hel", 3).close()
    wait_until(lambda: g.in_flight() == 0, 3, "the lease is free")
    wait_until(lambda: up.last.aborted_at, 3, "the transfer is ended")
    assert g.ask().status == 200
    g.assert_clean()
