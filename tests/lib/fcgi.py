"""fcgi - a small raw FastCGI client: plays the web server, well-behaved or not.

ask() sends a responder request and returns an Answer at once; the answer is read by
until()/finish() with a time limit, and every piece carries the time it came. Broken requests are
made of the same parts: params(), records(), Wire.send().
"""

import select
import socket
import struct
import time

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = 1, 2, 3, 4, 5, 6, 7
GET_VALUES, GET_VALUES_RESULT, UNKNOWN = 9, 10, 11
RESPONDER, AUTHORIZER = 1, 2


def record(kind, data=b"", request=1):
    pad = -len(data) % 8
    return struct.pack("!BBHHBx", 1, kind, request, len(data), pad) + data + b"\0" * pad


def records(kind, data, size=65528):
    """`data` in records of at most `size`, then the empty one that ends the stream."""
    parts = [record(kind, data[i : i + size]) for i in range(0, len(data), size)]
    return b"".join(parts) + record(kind)


def begin(role=RESPONDER, keep=False):
    return record(BEGIN, struct.pack("!HB5x", role, 1 if keep else 0))


def params(pairs):
    """Name-value pairs in FastCGI's coding; values are str or bytes."""
    out = []
    for name, value in pairs.items() if isinstance(pairs, dict) else pairs:
        n, v = (
            x if isinstance(x, bytes) else str(x).encode("utf-8", "surrogateescape")
            for x in (name, value)
        )
        for item in (n, v):
            out.append(
                bytes([len(item)]) if len(item) < 128 else struct.pack("!I", len(item) | 0x80000000)
            )
        out += [n, v]
    return b"".join(out)


def variables(
    method="POST",
    path="/v1/chat/completions",
    query="",
    body=b"",
    headers=(),
    ctype="application/json",
    **extra,
):
    """What lighttpd or nginx would pass. A variable given as None is left out."""
    pairs = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "test/1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "gate.test",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": "192.0.2.1",
        "REMOTE_PORT": "4711",
        "DOCUMENT_ROOT": "/nonexistent/htdocs",
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": path,
        "PATH_INFO": "",
        "REQUEST_URI": path + ("?" + query if query else ""),
        "QUERY_STRING": query,
        "CONTENT_TYPE": ctype if method == "POST" else "",
        "CONTENT_LENGTH": str(len(body)) if method == "POST" else "",
        "HTTP_HOST": "gate.test",
    }
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        pairs["HTTP_" + name.upper().replace("-", "_")] = value
    pairs.update(extra)
    return {name: value for name, value in pairs.items() if value is not None}


class Wire:
    """One connection to the responder. `address` is unix:/path or host:port."""

    def __init__(self, address, timeout=5.0):
        if address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            target = address[5:]
        else:
            self.sock = socket.socket(socket.AF_INET)
            host, _, port = address.rpartition(":")
            target = (host, int(port))
        self.sock.settimeout(timeout)
        until = time.monotonic() + timeout
        while True:
            try:
                self.sock.connect(target)
                return
            except BlockingIOError:  # a unix socket whose backlog is full
                if time.monotonic() > until:
                    raise
                time.sleep(0.005)

    def send(self, data):
        self.sock.sendall(data)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """RST on TCP; on a unix socket a close with unread data has that effect."""
        if self.sock.family == socket.AF_INET:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Answer:
    """The answer to one request, as far as it was read."""

    def __init__(self, wire):
        self.wire = wire
        self.at = time.monotonic()
        self.pieces = []  # (seconds since the request, bytes) of each STDOUT record
        self.out = b""
        self.errors = b""
        self.end = None  # (application status, protocol status) of the end record
        self.ends = {}  # the same of each request's end record
        self.others = {}  # what came in records of other kinds
        self.eof = False
        self.failed = None  # the OSError that ended it
        self.took = None
        self._in = b""

    # Reading

    def step(self, timeout):
        """Read what is there, waiting at most `timeout`. False at the end, or when nothing came."""
        if self.end or self.eof:
            return False
        if not select.select([self.wire.sock], [], [], max(0, timeout))[0]:
            return False
        try:
            data = self.wire.sock.recv(1 << 18)
        except OSError as e:
            self.failed, data = e, b""
        if not data:
            self.eof, self.took = True, time.monotonic() - self.at
            return False
        self._in += data
        self._take()
        return True

    def _take(self):
        while len(self._in) >= 8:
            _, kind, request, length, pad = struct.unpack("!BBHHBx", self._in[:8])
            if len(self._in) < 8 + length + pad:
                return
            data, self._in = self._in[8 : 8 + length], self._in[8 + length + pad :]
            if kind == STDOUT and data:
                self.out += data
                self.pieces.append((time.monotonic() - self.at, data))
            elif kind == STDERR:
                self.errors += data
            elif kind == END:
                self.ends[request] = struct.unpack("!IB3x", data)
                if request == 1:
                    self.end = self.ends[request]
                    self.took = time.monotonic() - self.at
            elif kind != STDOUT:
                self.others[kind] = self.others.get(kind, b"") + data

    def until(self, what, timeout=5.0):
        """Read until `what` (bytes, or a function of this answer) is there."""
        true = what if callable(what) else lambda a: what in a.body
        limit = time.monotonic() + timeout
        while not true(self):
            left = limit - time.monotonic()
            if self.end or self.eof or left <= 0:
                raise AssertionError(
                    f"did not come within {timeout} s: {what!r}; got {self.out[-2000:]!r}"
                )
            self.step(left)
        return self

    def finish(self, timeout=20.0):
        """Read to the end record (or the connection's end)."""
        limit = time.monotonic() + timeout
        while not (self.end or self.eof):
            left = limit - time.monotonic()
            if left <= 0:
                raise AssertionError(f"no end within {timeout} s; got {self.out[-2000:]!r}")
            self.step(left)
        self.wire.close()
        return self

    def to_close(self, timeout=5.0):
        """Read on, behind the end record too, until the other side closes."""
        limit = time.monotonic() + timeout
        while not self.eof:
            if not select.select([self.wire.sock], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError(f"not closed within {timeout} s; got {self.out[-500:]!r}")
            try:
                data = self.wire.sock.recv(1 << 18)
            except OSError as e:
                self.failed, data = e, b""
            self.eof = not data
            self._in += data
            self._take()
        self.wire.close()
        return self

    def drain(self, seconds):
        """Read for that long, or to the end."""
        limit = time.monotonic() + seconds
        while not (self.end or self.eof) and time.monotonic() < limit:
            self.step(limit - time.monotonic())
        return self

    def close(self):
        self.wire.close()

    # Looking

    def _split(self):
        head, mark, body = self.out.partition(b"\r\n\r\n")
        return (head, body) if mark else (None, b"")

    @property
    def body(self):
        return self._split()[1]

    @property
    def headers(self):
        head = self._split()[0]
        assert (
            head is not None
        ), f"no complete head: {self.out[:500]!r} end={self.end} failed={self.failed}"
        pairs = []
        for line in head.split(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            pairs.append((name, value.strip()))
        return pairs

    @property
    def status(self):
        return int((self.header("Status") or "200").split()[0])

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def header(self, name):
        return (self.all(name) or [None])[0]

    def names(self):
        return {n.lower() for n, _ in self.headers}

    def json(self):
        import json

        return json.loads(self.body)

    @property
    def error(self):
        """The OpenAI error object of the body."""
        doc = self.json()
        assert set(doc) == {"error"} and {"message", "type", "code"} <= set(doc["error"]), doc
        return doc["error"]

    def events(self):
        """[(event name, data)] of an SSE body; comments are left out."""
        return parse_sse(self.body)

    def when(self, needle):
        """Seconds after the request at which the body first held `needle`."""
        have = b""
        for t, data in self.pieces:
            have += data
            if needle in have:
                return t
        raise AssertionError(f"never came: {needle!r}")


def parse_sse(body):
    out, name, data = [], "", None
    for line in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line == b"":
            if data is not None:
                out.append((name, b"\n".join(data).decode("utf-8", "replace")))
            name, data = "", None
        elif line.startswith(b":"):
            continue
        else:
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"event":
                name = value.decode()
            elif field == b"data":
                data = (data or []) + [value]
    if data is not None:
        out.append((name, b"\n".join(data).decode("utf-8", "replace") + "<unterminated>"))
    return out


def ask(
    address,
    body=b"",
    role=RESPONDER,
    timeout=5.0,
    params_size=65528,
    stdin_size=65528,
    stdin=None,
    **vary,
):
    """Send one request. `vary` goes to variables(); `stdin` overrides the bytes actually sent."""
    wire = Wire(address, timeout)
    pairs = variables(body=body, **vary)
    head = begin(role) + records(PARAMS, params(pairs), params_size)
    try:
        wire.send(head + records(STDIN, body if stdin is None else stdin, stdin_size))
    except (BrokenPipeError, ConnectionResetError):
        pass  # answered before the body was read: the answer may still be there
    return Answer(wire)
