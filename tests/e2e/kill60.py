#!/usr/bin/python3
"""kill60 - workers are killed at random under load; each may cost no more than its own answer.

    kill60.py [SECONDS] [SET-UP]     60 seconds of lighttpd-external unless said otherwise

Every client must get an answer, an error, or an end that can be told from a good one. Nothing may
hang, and at the end no lease may be left. Prints how many of each.
"""

import collections
import os
import random
import signal
import sys
import threading
import time

import stage as st
from stage import answers, question, texts
from lib.upstream import wait_until

CLIENTS = 12
LONGEST = 15  # seconds that any request may take


def kind(got, stream):
    """What the client makes of it; "wrong" is what must not happen."""
    if got.ended == "broken":
        return "broken"
    if got.status != 200:
        return "error" if got.status in (429, 500, 502, 503, 504) else f"wrong: status {got.status}"
    if not stream:
        try:
            return "answer" if got.json()["choices"] else "wrong: no choices"
        except (ValueError, KeyError):
            return "wrong: not an answer"
    if got.body.endswith(b"data: [DONE]\n\n"):
        return "answer" if b"t9" in got.body else "wrong: end mark after a piece"
    if b'data: {"error"' in got.body or b"</html>" in got.body:
        return "told"
    # A worker that dies in the instant in which lighttpd first reads from it: lighttpd takes the
    # piece for the whole and counts it. Only the missing end mark tells.
    return "cut" if got.header("Content-Length") else "wrong: clean end of a piece"


def client(s, number, until, seen, wrong):
    rng = random.Random(number)
    while time.monotonic() < until:
        stream = rng.random() < 0.7
        began = time.monotonic()
        try:
            got = s.ask("/v1/chat/completions", question(stream=stream), timeout=LONGEST)
            what = kind(got, stream)
        except TimeoutError:
            got, what = None, "wrong: hangs"
        except OSError as e:  # refused, reset: nothing was promised yet
            got, what = e, "broken"
        seen[what] += 1
        if what.startswith("wrong") or time.monotonic() - began > LONGEST:
            wrong.append((what, got))


def killer(s, until, seen):
    rng = random.Random(60)
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.05, 0.3))
        pids = s.pids()
        if pids:
            try:
                os.kill(rng.choice(pids), signal.SIGKILL)
                seen["killed"] += 1
            except ProcessLookupError:
                pass


def run(seconds, name="lighttpd-external"):
    """The counts by outcome. Raises AssertionError if anything went wrong."""
    s = st.Stage(name, workers=8)
    try:
        slow = answers.stream(texts(10), how="events", gap=0.02)
        s.up.default(lambda x: (slow if x.request.json().get("stream") else answers.slow(0.1))(x))
        seen, wrong, until = collections.Counter(), [], time.monotonic() + seconds
        threads = [
            threading.Thread(target=client, args=(s, i, until, seen, wrong)) for i in range(CLIENTS)
        ]
        threads.append(threading.Thread(target=killer, args=(s, until, seen)))
        for t in threads:
            t.start()
        for t in threads:
            t.join(seconds + 2 * LONGEST)
        assert not any(t.is_alive() for t in threads), f"a client hangs: {dict(seen)}"
        assert not wrong, f"{len(wrong)} wrong, first: {wrong[0]}\n{s.log}"
        wait_until(lambda: s.in_flight() == 0, 5, "no lease left")
        assert s.status()["totals"]["waiting"] == 0
        assert s.chat().status == 200
        assert seen["killed"] >= seconds and seen["answer"] > seen["killed"], dict(seen)
        return dict(seen)
    finally:
        s.stop()


if __name__ == "__main__":
    print(run(float(sys.argv[1] if len(sys.argv) > 1 else 60), *sys.argv[2:3]))
