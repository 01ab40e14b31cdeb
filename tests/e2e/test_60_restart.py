"""The web server restarts and stops: what runs ends as it should, no request is lost, nobody is killed."""

import contextlib
import signal
import time

import pytest
import sites
import stage as st
from lib.upstream import wait_until
from load import Load, Running, Static

SIGNALS = {
    "lighttpd": {"restart": signal.SIGUSR1, "quit": signal.SIGINT, "stop": signal.SIGTERM},
    "apache": {"restart": signal.SIGUSR1, "quit": signal.SIGWINCH, "stop": signal.SIGTERM},
    "nginx": {"restart": signal.SIGHUP, "quit": signal.SIGQUIT, "stop": signal.SIGTERM},
}
SHORT_GRACE = 'server.feature-flags += ( "server.graceful-shutdown-timeout" => 2 )'
LIGHTTPD = tuple(k for k, s in sites.SITES.items() if s.server == "lighttpd")
PATIENT = tuple(k for k in st.KINDS if k not in LIGHTTPD + sites.FCGID)
CLIENTS = 8
NOT_SERVED = {"ConnectionRefusedError", "ConnectionResetError", "RemoteDisconnected"}
CUT = NOT_SERVED | {"BrokenPipeError", "broken", 500, 502, 503}


@contextlib.contextmanager
def begun(kind, **how):
    """A stage with as many processes as clients: mod_fcgid loses who waits for one to start."""
    s = st.Stage(kind, workers=CLIENTS + 1, **how)
    try:
        s.up.default(st.answers.slow(0.3))
        Load(s.chat, 2 * CLIENTS, CLIENTS).finish()
        s.up.default(st.answers.ok())
        yield s
    except AssertionError as e:
        raise AssertionError(f"{e}\n{s.log}") from e
    finally:
        s.stop()


def say(s, what):
    """Send the signal; come back when the server has taken it up."""
    web = s.procs["web"]
    before = {p for p, parent in s._processes() if parent == web.pid}
    told = s.log.count("raceful")
    web.send_signal(SIGNALS[s.site.server][what])

    def taken():
        now = {p for p, parent in s._processes() if parent == web.pid}
        return web.poll() is not None or s.log.count("raceful") > told or now != before

    wait_until(taken, 15, f"the server has heard of {what}")


def nobody_was_killed(s):
    assert "sending SIGKILL" not in s.log
    if s.kind in sites.SPAWNED:
        wait_until(lambda: "state stopped\n" in pool(s), 10, "the pool has stopped")
    if s.kind in sites.SPAWNED + sites.EXTERNAL:
        assert "killed 0\n" in pool(s), pool(s)


def pool(s):
    with open(s.path("state/pool.pid")) as f:
        return f.read()


def gone(s, within=15):
    """The server has ended, with what it had started; what runs by itself is as it was."""
    s.procs["web"].wait(within)
    if s.kind in sites.EXTERNAL:
        assert s.procs["sluice"].poll() is None
        wait_until(lambda: s.in_flight() == 0, 10, "no lease is left")
    else:
        wait_until(lambda: not s.pids(), within, "no process of the gateway is left")
    nobody_was_killed(s)


def lost(s, counts):
    """Requests without an answer, but for what the set-up is known to refuse."""
    allowed = {503} if sites.SITES[s.kind].modules == "cgid" else set()
    return {what: n for what, n in counts.items() if what not in allowed | {"answer"}}


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("kind", st.KINDS)
def test_restart_under_load(kind):
    """A running stream ends whole; each request is answered, as soon as the server can."""
    with begun(kind) as s:
        running, static, old = Running(s), Static(s), set(s.pids())
        load = Load(s.chat, clients=CLIENTS).until(20)
        say(s, "restart")
        whole = running.is_whole()
        counts, waited = load.finish(), static.stop()
        # lighttpd 1.4.69 sometimes signals itself twice, which cuts.
        assert whole is True or (kind == "lighttpd-external" and "broken" in whole), whole
        assert not lost(s, counts), counts
        assert counts["answer"] > 150 and load.slowest() < waited + 6, load.slowest()
        assert s.chat().status == 200
        if kind not in sites.EXTERNAL:
            wait_until(lambda: not old & set(s.pids()), 15, "the old processes are gone")
            assert "sending SIGKILL" not in s.log
        else:
            assert old == set(s.pids()), "the pool has nothing to do with it"


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("kind", st.KINDS)
def test_graceful_stop_under_load(kind):
    """What runs is answered, what comes later is refused by the system."""
    with begun(kind) as s:
        running = Running(s)
        load = Load(s.chat, clients=CLIENTS).until(20)
        say(s, "quit")
        whole, counts = running.is_whole(), load.finish()
        assert whole is True, whole
        assert set(counts) <= NOT_SERVED | {"answer"} and counts["answer"] >= 20, counts
        gone(s)


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("kind", st.KINDS)
def test_stop_under_load(kind):
    """Clients are cut by the server; none takes a piece for the whole."""
    with begun(kind) as s:
        running = Running(s)
        load = Load(s.chat, clients=CLIENTS).until(20)
        say(s, "stop")
        counts, got = load.finish(), running.finish(let=False)
        assert set(counts) <= CUT | {"answer"}, counts
        assert b"[DONE]" not in getattr(got, "body", b"")
        gone(s)


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("what", ["quit", "stop"])
@pytest.mark.parametrize("kind", st.KINDS)
def test_idle(kind, what):
    """Restarted twice and stopped while nothing runs: nobody waits for a kill."""
    with begun(kind) as s:
        for _ in range(2):
            say(s, "restart")
            wait_until(lambda: Load(s.chat, 1, 1).finish()["answer"], 10, "served again")
        began = time.monotonic()
        say(s, what)
        gone(s)
        assert time.monotonic() - began < 7


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("kind", LIGHTTPD + sites.FCGID)
def test_restart_during_a_long_stream(kind):
    """Longer than the server's patience: an error event where the server lets us tell, else a broken end."""
    with begun(kind, more=SHORT_GRACE if kind in LIGHTTPD else "") as s:
        running = Running(s)
        say(s, "restart")
        got = running.finish(let=False)
        assert b"[DONE]" not in getattr(got, "body", b""), got
        if kind in LIGHTTPD:
            assert got.ended == "broken", got
        else:
            assert got.ended == "clean" and b'"the gateway is restarting"' in got.body, got
        assert "sending SIGKILL" not in s.log
        began = time.monotonic()
        assert s.chat().status == 200
        assert time.monotonic() - began < 8, "lighttpd waits for the gateway to end"
        wait_until(lambda: s.in_flight() == 0, 10, "no lease is left")


@pytest.mark.cell("graceful")
@pytest.mark.parametrize("kind", PATIENT)
def test_a_stream_outlives_two_restarts(kind):
    """Its old server waits for it, however long."""
    with begun(kind) as s:
        live = Running(s)
        for _ in range(2):
            say(s, "restart")
            assert not lost(s, Load(s.chat, 50).finish())
        assert live.is_whole() is True
