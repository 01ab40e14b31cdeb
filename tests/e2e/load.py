"""load - short requests from several clients at once, and what became of each.

Each has a connection of its own: one that is idle when a server closes is lost at any keep-alive's end.
"""

import collections
import threading
import time

from lib.upstream import wait_until
from talk import Gate, texts

Tried = collections.namedtuple("Tried", "began took outcome")
LONGEST = 60  # seconds until a request counts as hanging


def outcome(ask):
    """ "answer", the status of another one, "broken", or the kind of error; "wrong" must never be."""
    try:
        got = ask()
        if got.ended == "broken" or got.status != 200:
            return "broken" if got.ended == "broken" else got.status
        return "answer" if got.json()["choices"] else "wrong"
    except TimeoutError:
        return "hangs"
    except (ValueError, KeyError):
        return "wrong"
    except OSError as e:  # refused, reset, or closed without a byte
        return type(e).__name__


class Load:
    """`n` requests by `clients` threads; they begin at once."""

    def __init__(self, ask, n=200, clients=8):
        self.ask, self.n, self.tried, self.asked = ask, n, [], 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._client) for _ in range(clients)]
        for t in self.threads:
            t.start()

    def _may(self):
        with self.lock:
            self.asked += 1
            return self.asked <= self.n

    def _client(self):
        while self._may():
            began = time.monotonic()
            what = outcome(self.ask)
            self.tried.append(Tried(began, time.monotonic() - began, what))

    def until(self, n):
        wait_until(lambda: len(self.tried) >= n, LONGEST, f"{n} answers")
        return self

    def finish(self):
        """How many of each outcome."""
        for t in self.threads:
            t.join(2 * LONGEST)
        assert not any(t.is_alive() for t in self.threads), "a client hangs"
        return collections.Counter(t.outcome for t in self.tried)

    def slowest(self):
        return max(t.took for t in self.tried)


class Running:
    """A stream that goes on when the test lets it, also where nothing comes before the end."""

    def __init__(self, s):
        self.gate, self.got = Gate(*texts(4)).let(2), None
        s.up.default(self.gate, "up-key-solo")
        self.thread = threading.Thread(target=self._run, args=(s,))
        self.thread.start()
        wait_until(lambda: self.gate.sent == 2, 20, "the stream runs")

    def _run(self, s):
        try:
            self.got = s.stream(model="solo", timeout=LONGEST).finish(LONGEST)
        except OSError as e:
            self.got = e

    def finish(self, let=True):
        """The reply, or the error instead of one."""
        if let:
            self.gate.let(9)
        self.thread.join(LONGEST)
        assert self.got is not None, "the stream hangs"
        return self.got

    def is_whole(self):
        got = self.finish()
        whole = getattr(got, "ended", "") == "clean" and got.body.endswith(b"data: [DONE]\n\n")
        return whole or repr(got)


class Static:
    """Asks for a file all the time: how long the server itself makes people wait."""

    def __init__(self, s):
        self.s, self.going, self.slowest = s, True, 0.0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while self.going:
            began = time.monotonic()
            try:
                self.s.ask("/../static.txt")
            except OSError:
                pass
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.02)

    def stop(self):
        self.going = False
        self.thread.join(LONGEST)
        return self.slowest
