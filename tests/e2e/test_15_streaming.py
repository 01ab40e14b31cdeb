"""Events pass one by one in every set-up, over every HTTP; and a hundred streams at once.

The provider sends event n only when event n-1 has reached the client: whatever collects
events would wait for ever, and no clock is needed to tell. The delays are only noted.
"""

import threading

import pytest
import sites
import stage as st
from stage import Gate, answers, texts
from lib.upstream import wait_until

PREFORK = ("apache-proxy+prefork", "apache-fcgid+prefork", "apache-cgid+prefork")
EVENTS = 8
CROWD = 100
WAYS = [pytest.param(w, marks=pytest.mark.cell("HTTP/2") if w[0] == "2" else ()) for w in st.WAYS]


@pytest.fixture(scope="module", params=st.KINDS + PREFORK)
def stage(request):
    s = st.Stage(request.param, workers=CROWD)
    yield s
    s.stop()


def version(way):
    return b"version " + way.split()[0].encode()


@pytest.mark.needs("streams")
@pytest.mark.cell("streams")
@pytest.mark.parametrize("way", WAYS)
def test_in_lock_step(stage, way, record_property):
    gate, delays = Gate(*texts(EVENTS)).let(2), []
    stage.up.default(gate)
    curl = stage.curl(way)
    for i in range(EVENTS):
        came = curl.until(b'"t%d"' % i)
        assert gate.sent <= i + 2, "the provider was not held back"
        delays.append(1000 * (came - gate.at[i + 1]))
        gate.let()
    gate.let(9)
    got = curl.finish()
    assert b"data: [DONE]\n\n" in got and got.endswith(version(way)), got[-200:]
    record_property("delays", [stage.name, way, delays[1:]])


@pytest.mark.cell("HTTP/2")
@pytest.mark.parametrize("way", ["2", "2 TLS"])
def test_whole_over_http2(stage, way):
    stage.up.default(answers.stream(texts(EVENTS), how="events", gap=0.01))
    got = stage.curl(way).finish()
    assert b'"t7"' in got and got.endswith(b"data: [DONE]\n\n\nversion 2"), got


@pytest.mark.parametrize("stage", ["htaccess-fcgid"], indirect=True)
def test_where_nothing_streams_the_whole_comes_at_the_end(stage):
    gate = Gate(*texts(EVENTS)).let(99)
    stage.up.default(gate)
    live = stage.stream()  # comes back with the head, and the head with the rest
    assert gate.sent == len(gate.events)
    got = live.finish()
    assert got.ended == "clean" and got.body.endswith(b"data: [DONE]\n\n"), got
    assert all(b'"t%d"' % i in got.body for i in range(EVENTS)), got


@pytest.mark.cell("client gone")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("silent", [False, True], ids=["writing", "silent"])
def test_client_gone(stage, way, silent):
    events = texts(300)
    action = Gate(*events).let(2) if silent else answers.stream(events, how="events", gap=0.05)
    stage.up.default(action, "up-key-solo")
    curl = stage.curl(way, model="solo")
    curl.until(b'"t0"')
    curl.close()
    wait_until(lambda: stage.up.last.aborted_at, 5, "the upstream transfer is ended")
    wait_until(lambda: stage.in_flight() == 0, 5, "lease free")
    stage.up.default(answers.ok(), "up-key-solo")
    assert stage.chat(model="solo").status == 200


def crowd(stage, together):
    """CROWD streams, of which `together` are held until all of them run."""

    def action(x):
        while not arrived.is_set() and stage.up.running() < together:
            x.pause(0.01)
        arrived.set()
        answers.stream(texts(EVENTS), how="events", gap=0.02)(x)

    arrived, got = threading.Event(), []
    stage.up.default(action)

    def client():
        try:
            got.append(
                stage.open("/v1/chat/completions", st.question(stream=True), timeout=90).finish(90)
            )
        except OSError as e:
            got.append(e)

    threads = [threading.Thread(target=client) for _ in range(CROWD)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    return got


@pytest.mark.cell("streams")
def test_a_hundred_at_once(stage):
    """mod_fcgid starts processes step by step; all others must run at the same time."""
    together = 1 if stage.kind in sites.FCGID else CROWD
    got = crowd(stage, together)
    assert len(got) == CROWD, got
    for one in got:
        assert getattr(one, "status", one) == 200 and one.ended == "clean", one
        assert one.body.endswith(b"data: [DONE]\n\n"), one
        found = [one.body.find(b'"t%d"' % i) for i in range(EVENTS)]
        assert -1 not in found and found == sorted(found), one
    wait_until(lambda: stage.in_flight() == 0, 5, "no lease left")
