"""upstream - a scripted provider on a raw socket.

It tells accounts apart by credential, keeps every request's exact bytes and connection, and answers
by a script for each credential: a queue of actions, then a default. An action is a callable that
gets an Exchange; answers.py makes the usual ones. Nothing here outlives stop(): every wait also
watches the stop pipe.
"""

import json
import os
import select
import socket
import struct
import threading
import time

from .answers import LONGEST, ok

READ_LIMIT = 64 << 20


class Gone(Exception):
    """The gateway closed the connection, or the upstream is being stopped."""


class Request:
    """One request as it came: `head` and `body` are the exact bytes."""

    def __init__(self, head, conn, nth):
        self.head = head
        self.body = b""
        self.conn = conn  # number of the connection, from 1
        self.nth = nth  # how many-eth request on it, from 1
        self.peer = None  # the gateway's port
        self.at = time.monotonic()
        self.aborted_at = None  # when the gateway closed before the answer's end
        self.done_at = None
        self.complete = False  # the body came whole
        lines = head.split(b"\r\n")
        self.method, self.target, self.version = (lines[0].decode("latin-1").split(" ") + ["", ""])[
            :3
        ]
        self.headers = []
        for line in lines[1:]:
            if line:
                name, _, value = line.decode("latin-1").partition(":")
                self.headers.append((name, value.strip()))

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def header(self, name):
        return (self.all(name) or [None])[0]

    def names(self):
        return {n.lower() for n, _ in self.headers}

    @property
    def cred(self):
        value = self.header("authorization")
        if value and value.lower().startswith("bearer "):
            return value[7:]
        return self.header("x-api-key") or self.header("api-key")

    def json(self):
        return json.loads(self.body)


class Exchange:
    """What an action works with: the request, and the wire back."""

    def __init__(self, up, sock, request):
        self.up, self.sock, self.request = up, sock, request
        self.keep = True
        self._counted = True

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            self._aborted()

    def pause(self, seconds):
        """Sleep, but notice at once when the gateway goes."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return
            ready = select.select([self.sock, self.up._stop_r], [], [], left)[0]
            if self.up._stop_r in ready:
                raise Gone
            if ready:
                self._peek()

    def _peek(self):
        try:
            if self.sock.recv(1, socket.MSG_PEEK) == b"":
                self._aborted()
        except OSError:
            self._aborted()
        time.sleep(0.002)  # bytes of a next request lie there: don't spin

    def _aborted(self):
        self.request.aborted_at = time.monotonic()
        raise Gone

    def hold(self, seconds=LONGEST):
        self.pause(seconds)
        raise Gone

    def finishing(self):
        """The last bytes follow: from now on this request counts no more as running."""
        if self._counted:
            self._counted = False
            self.up._running(self.request.cred, -1)

    def fin(self):
        self.keep = False

    def rst(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.keep = False


class Upstream:
    def __init__(self):
        self.requests = []
        self.connections = 0
        self.max_in_flight = {}
        self.on_connect = (
            []
        )  # actions for the next connections, before anything is read: "rst", "fin"
        self._scripts, self._defaults, self._in_flight = {}, {}, {}
        self._lock = threading.Lock()
        self._threads, self._socks = [], set()
        self._stop_r, self._stop_w = os.pipe()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self._accepting = self._spawn(self._accept)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    # Scripting

    def script(self, cred, *actions):
        """Queue actions for the next requests with this credential."""
        with self._lock:
            self._scripts.setdefault(cred, []).extend(actions)

    def default(self, action, *creds):
        """What follows when the queue is empty; without credentials, for all of them."""
        with self._lock:
            for cred in creds or (None,):
                self._defaults[cred] = action

    def forget(self, *creds):
        """Drop what is left of their scripts."""
        with self._lock:
            for cred in creds:
                self._scripts.pop(cred, None)

    # Looking

    def count(self, cred=None):
        with self._lock:
            return sum(1 for r in self.requests if cred is None or r.cred == cred)

    def creds(self):
        """Credentials in the order of the requests."""
        with self._lock:
            return [r.cred for r in self.requests]

    @property
    def last(self):
        return self.requests[-1]

    def running(self, cred=None):
        with self._lock:
            return sum(n for c, n in self._in_flight.items() if cred is None or c == cred)

    def wait_for(self, n, cred=None, timeout=5.0):
        """Until n requests have come."""
        wait_until(
            lambda: self.count(cred) >= n,
            timeout,
            f"{n} upstream requests, {self.count(cred)} came",
        )

    def clear(self):
        with self._lock:
            self.requests.clear()
            self.max_in_flight.clear()

    # Running

    def stop(self):
        os.close(self._stop_w)
        self.close_port()
        with self._lock:
            socks = list(self._socks)
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(5)
        os.close(self._stop_r)

    def close_port(self):
        """From now on connections are refused."""
        try:
            self._listener.shutdown(
                socket.SHUT_RDWR
            )  # at once, even while the other thread waits on it
        except OSError:
            pass
        self._accepting.join(5)
        self._listener.close()

    def open_port(self):
        self._listener = socket.create_server(
            ("127.0.0.1", self.port), backlog=512, reuse_port=False
        )
        self._accepting = self._spawn(self._accept)

    def _spawn(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self):
        listener = self._listener
        while True:
            try:
                ready = select.select([listener, self._stop_r], [], [], 0.05)[0]
                if self._stop_r in ready or listener.fileno() < 0:
                    return
                if not ready:
                    continue
                sock, _ = listener.accept()
            except (OSError, ValueError):
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.connections += 1
                number = self.connections
                first = self.on_connect.pop(0) if self.on_connect else None
                self._socks.add(sock)
            if first:
                if first == "rst":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._drop(sock)
            else:
                self._spawn(self._serve, sock, number)

    def _drop(self, sock):
        with self._lock:
            self._socks.discard(sock)
        sock.close()

    def _running(self, cred, step):
        with self._lock:
            n = self._in_flight[cred] = self._in_flight.get(cred, 0) + step
            self.max_in_flight[cred] = max(n, self.max_in_flight.get(cred, 0))

    def _action(self, cred):
        with self._lock:
            queue = self._scripts.get(cred)
            if queue:
                return queue.pop(0)
            return self._defaults.get(cred) or self._defaults.get(None) or ok()

    def _serve(self, sock, number):
        buffered, nth = b"", 0
        try:
            while True:
                nth += 1
                head, buffered = self._read_head(sock, buffered)
                if head is None:
                    return
                request = Request(head, number, nth)
                request.peer = sock.getpeername()[1]
                action = self._action(request.cred)
                x = Exchange(self, sock, request)
                self._running(request.cred, +1)
                with self._lock:
                    self.requests.append(request)
                try:
                    if not getattr(action, "early", False):
                        request.body, buffered = self._read_body(sock, request, buffered)
                        request.complete = True
                    action(x)
                    request.done_at = time.monotonic()
                finally:
                    x.finishing()
                if not x.keep:
                    return
        except (Gone, OSError, ValueError):
            pass
        finally:
            self._drop(sock)

    def _more(self, sock):
        ready = select.select([sock, self._stop_r], [], [], LONGEST)[0]
        if sock not in ready:
            raise Gone
        data = sock.recv(1 << 18)
        if not data:
            raise Gone
        return data

    def _read_head(self, sock, buffered):
        while b"\r\n\r\n" not in buffered:
            try:
                buffered += self._more(sock)
            except Gone:
                return None, b""
        head, _, rest = buffered.partition(b"\r\n\r\n")
        return head + b"\r\n\r\n", rest

    def _read_body(self, sock, request, buffered):
        if (request.header("transfer-encoding") or "").lower() == "chunked":
            return self._read_chunks(sock, buffered)
        length = min(int(request.header("content-length") or 0), READ_LIMIT)
        parts, have = [buffered], len(buffered)
        if length and request.header("expect"):
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while have < length:
            parts.append(self._more(sock))
            have += len(parts[-1])
        data = b"".join(parts)
        return data[:length], data[length:]

    def _read_chunks(self, sock, buffered):
        body = b""
        while True:
            while b"\r\n" not in buffered:
                buffered += self._more(sock)
            line, _, buffered = buffered.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            while len(buffered) < size + 2:
                buffered += self._more(sock)
            body, buffered = body + buffered[:size], buffered[size + 2 :]
            if size == 0:
                return body, buffered


class Blackhole:
    """A port whose backlog is full: a connect() to it neither succeeds nor fails."""

    def __init__(self):
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.port = self._listener.getsockname()[1]
        self._fill = []
        for _ in range(8):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", self.port))
            self._fill.append(sock)
        time.sleep(0.05)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self):
        for sock in self._fill + [self._listener]:
            sock.close()


def wait_until(true, timeout=5.0, what="condition", step=0.01):
    """Poll until true() holds; its value. Fails with `what` after `timeout` seconds.

    The longer it has waited, the longer until its next look: a look may be a program that starts.
    """
    began = time.monotonic()
    while True:
        value = true()
        if value:
            return value
        past = time.monotonic() - began
        if past > timeout:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(max(step, min(past / 20, 0.5)))
