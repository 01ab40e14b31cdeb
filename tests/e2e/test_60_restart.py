"""The web server restarts gracefully: a running stream goes on, new requests are served."""

import signal
import time

import pytest
import stage as st
from stage import Gate, texts
from lib.upstream import wait_until


@pytest.mark.parametrize("kind", ["lighttpd-external", "apache-proxy"])
def test_graceful_restart(kind):
    s = st.Stage(kind)
    try:
        gate = Gate(*texts(4)).let(2)
        s.up.default(gate, "up-key-solo")
        live = s.stream(model="solo").until(b"t0")
        s.procs["web"].send_signal(signal.SIGUSR1)
        began = time.monotonic()
        time.sleep(0.3)
        wait_until(s.listening, 5, "a server that listens")
        assert s.chat().status == 200
        assert time.monotonic() - began < 5
        got = gate.let(9) and live.finish()
        assert got.ended == "clean" and got.body.endswith(b"data: [DONE]\n\n"), got
    finally:
        s.stop()
