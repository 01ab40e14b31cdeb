"""talk - what a test says to the gateway, what it hears, and a provider that sends when told to."""

import http.client
import json
import os
import select
import subprocess
import threading
import time
from base64 import b64encode

from lib import answers, upstream

# As long as the READMEs make them; the web server knows it as alice.
TOKEN = "sl-" + "0123456789abcdef" * 2
KEY = "sl-test-key-0002"  # known to web server and gateway, see keys_file
ADMIN = ("admin", "admin-pw")
USER = ("bob", "bob-pw")


def basic(user):
    return {"Authorization": "Basic " + b64encode(":".join(user).encode()).decode()}


def bearer(token=TOKEN):
    return {"Authorization": "Bearer " + token}


def question(text="hello", model="m1", **fields):
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}


class Reply:
    """A whole answer. `ended` is "clean" or "broken" (the connection ended inside the framing)."""

    def __init__(self, status, headers, body, ended):
        self.status, self.headers, self.body, self.ended = status, headers, body, ended

    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return self.headers.get(name)

    def __repr__(self):
        return f"<{self.status} {self.ended} {dict(self.headers)} {self.body[:600]!r}>"


class Live:
    """An answer that is still coming."""

    def __init__(self, conn, sock, response):
        self.conn, self.sock, self.response = conn, sock, response
        self.status, self.headers = response.status, response.headers
        self.body, self.ended = b"", None

    def step(self):
        try:
            data = self.response.read1(65536)
            if not data:
                self.ended = "clean"
        except TimeoutError:
            raise
        except (http.client.HTTPException, OSError):
            data, self.ended = b"", "broken"
        self.body += data
        return data

    def until(self, what, timeout=10):
        limit = time.monotonic() + timeout
        while what not in self.body:
            left = limit - time.monotonic()
            assert (
                left > 0 and not self.ended
            ), f"{what!r} did not come ({self.ended}): {self.body[-1000:]!r}"
            self.sock.settimeout(left)
            self.step()
        return self

    def finish(self, timeout=30):
        limit = time.monotonic() + timeout
        while not self.ended:
            left = limit - time.monotonic()
            assert left > 0, f"no end within {timeout} s: {self.body[-1000:]!r}"
            self.sock.settimeout(left)
            self.step()
        self.close()
        return Reply(self.status, self.headers, self.body, self.ended)

    def close(self):
        self.response.close()
        self.conn.close()


class Curl:
    """An answer that curl reads, over any version of HTTP; `body` grows as it comes."""

    def __init__(self, url, question, *options):
        self.body = b""
        self.proc = subprocess.Popen(
            ["curl", "-sSN", "-H", "Content-Type: application/json", "-d", json.dumps(question)]
            + ["-H", "Authorization: " + bearer()["Authorization"], *options, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def until(self, what, timeout=10):
        """When it was there."""
        limit = time.monotonic() + timeout
        while what not in self.body:
            left = max(0, limit - time.monotonic())
            ready = select.select([self.proc.stdout], [], [], left)[0]
            data = ready and os.read(self.proc.stdout.fileno(), 65536)
            if not data:
                self.close()
                raise AssertionError(f"{what!r} did not come: {self.body!r} {self.errors!r}")
            self.body += data
        return time.monotonic()

    def finish(self, timeout=10):
        more, self.errors = self.proc.communicate(timeout=timeout)
        self.body += more
        return self.body

    def close(self):
        """curl goes away as a client does that is killed."""
        if self.proc.poll() is None:
            self.proc.kill()
        if not self.proc.stdout.closed:
            self.errors = self.proc.communicate()[1]


def chunks(body, size=16384):
    return (body[i : i + size] for i in range(0, len(body), size))


class Gate:
    """An upstream action that sends event n when the test calls let(n)."""

    def __init__(self, *events, end="keep"):
        self.events, self.end, self.allowed = events, end, 0
        self.sent, self.gone = 0, threading.Event()
        self.at = []  # when each event was sent

    def let(self, n=1):
        self.allowed += n
        return self

    def __call__(self, x):
        try:
            x.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            for i, event in enumerate(self.events):
                while self.allowed <= i:
                    x.pause(0.01)
                data = answers.sse([event])
                if i == len(self.events) - 1:
                    x.finishing()
                self.at.append(time.monotonic())
                x.send(b"%x\r\n%s\r\n" % (len(data), data))
                self.sent = i + 1
            x.send(b"0\r\n\r\n")
        except upstream.Gone:
            self.gone.set()
            raise


def texts(n):
    """Chat events with n content chunks t0, t1, ..."""
    return answers.chat_chunks(*[f"t{i}" for i in range(n)])
