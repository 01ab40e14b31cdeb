"""cgi - plain CGI: one process of sluice.fcgi for one request, as a web server starts it.

start() gives the answer at once, to be read like one of fcgi.py's: until(), finish(), headers, body.
`gate` is a Pool that was not started: it has the directory, the configuration, the log and sluicectl.
Two ways to hand a request over, as servers do: pipes (mod_cgi, lighttpd), or one socket for both
directions (mod_cgid).
"""

import json
import os
import select
import signal
import socket
import subprocess
import time

from . import fcgi
from .pool import PROGRAM


class Process(fcgi.Answer):
    """A running CGI process and its answer. `end` is its exit status."""

    def __init__(self, child, to, out):
        super().__init__(None)
        self.child, self.to, self.source = child, to, out
        self.exited = None  # seconds since the request
        self._closed = False

    def step(self, timeout):
        if self.end is not None or self.eof:
            return False
        if not select.select([self.source], [], [], max(0, timeout))[0]:
            return False
        try:
            data = os.read(self.source.fileno(), 1 << 18)
        except OSError as e:
            self.failed, data = e, b""
        if not data:
            self.eof, self.took = True, time.monotonic() - self.at
            return False
        self.out += data
        self.pieces.append((time.monotonic() - self.at, data))
        return True

    def feed(self, data):
        """More of the body."""
        self.to.send(data) if hasattr(self.to, "send") else (self.to.write(data), self.to.flush())

    def no_more(self):
        """The body's end, as the server tells it."""
        if hasattr(self.to, "shutdown"):
            self.to.shutdown(socket.SHUT_WR)
        else:
            self.to.close()

    def finish(self, timeout=20.0):
        """Read to the end, and until the process has ended with 0."""
        limit = time.monotonic() + timeout
        while not self.eof:
            left = limit - time.monotonic()
            assert left > 0, f"no end within {timeout} s; got {self.out[-2000:]!r}"
            self.step(left)
        self.wait(max(0.1, limit - time.monotonic()))
        assert self.end == 0, f"exit status {self.end}; got {self.out[-2000:]!r}"
        self.close()
        return self

    def wait(self, timeout=5.0):
        """Until the process has ended."""
        self.end = self.child.wait(timeout)
        self.exited = time.monotonic() - self.at
        if self.child.stderr is not None:
            self.errors += self.child.stderr.read()
            self.child.stderr.close()
        return self

    def close(self):
        """The server takes the answer no more."""
        if self._closed:
            return
        self._closed = True
        for side in {id(s): s for s in (self.to, self.source)}.values():
            try:
                side.close()
            except OSError:
                pass

    def terminate(self):
        self.child.send_signal(signal.SIGTERM)

    def kill(self):
        self.child.kill()
        return self.wait()


def start(
    gate,
    body=b"",
    how="pipe",
    stdin=None,
    whole=True,
    argv=(),
    env=None,
    errors=False,
    program=PROGRAM,
    **vary,
):
    """One request. `vary` goes to fcgi.variables(); `stdin` overrides the bytes actually sent;
    `whole` False leaves the body open. `errors` keeps standard error from the gate's log.
    """
    variables = {"SLUICE_CONFIG": gate.path, **gate.env, **fcgi.variables(body=body, **vary)}
    variables.update(env or {})
    variables = {k: v for k, v in variables.items() if v is not None}
    log = (
        subprocess.PIPE
        if errors
        else os.open(gate.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    )
    if how == "socket":
        ours, theirs = socket.socketpair()
        child = subprocess.Popen(
            [program, *argv], stdin=theirs, stdout=theirs, stderr=log, env=variables, cwd="/"
        )
        theirs.close()
        answer = Process(child, ours, ours)
    else:
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            [program, *argv], stdin=pipe, stdout=pipe, stderr=log, env=variables, cwd="/"
        )
        answer = Process(child, child.stdin, child.stdout)
    if not errors:
        os.close(log)
    data = body if stdin is None else stdin
    try:
        if data and how == "socket":
            answer.to.sendall(data)
        elif data:
            answer.feed(data)
        if whole:
            answer.no_more()
    except (BrokenPipeError, ConnectionResetError):
        pass  # answered before the body was read: the answer may still be there
    return answer


def open(
    gate,
    model="m1",
    stream=True,
    how="pipe",
    path="/v1/chat/completions",
    errors=False,
    vary={},
    **extra,
):
    """A chat request whose answer is not read yet."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **extra}
    if stream:
        body["stream"] = True
    return start(gate, json.dumps(body).encode(), how, path=path, errors=errors, **vary)


def ask(gate, model="m1", stream=False, timeout=20.0, **extra):
    """A chat request and its whole answer."""
    return open(gate, model, stream, **extra).finish(timeout)


def get(gate, path, method="GET", **vary):
    return start(gate, method=method, path=path, **vary).finish()
