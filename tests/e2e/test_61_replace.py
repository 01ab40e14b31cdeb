"""Processes come and go: web servers' limits, our own, a new program on disk, sluicectl. Nothing is
lost, neither a request nor what is remembered.
"""

import contextlib
import json
import os
import shutil
import signal

import pytest
import sites
import stage as st
from lib import answers
from lib.upstream import wait_until
from load import Load, Running

CLIENTS = 8
OWN = ("lighttpd-spawn",) + sites.EXTERNAL  # with a master of ours
# mod_fcgid looks at its processes each second.
SCANS = "".join(f"Fcgid{what}ScanInterval 1\n" for what in ("Idle", "Error", "Zombie", "Busy"))
SCANS += "FcgidSpawnScore 0\nFcgidTerminationScore 0\n"  # else it makes us wait for processes
SOON = "FcgidMinProcessesPerClass 0\n"
SESSIONS = {"pool": {"strategy": "round-robin", "min_pick_gap": "0s"}}


@contextlib.contextmanager
def begun(kind, **how):
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


def all_answered(s, n=200):
    counts = Load(s.chat, n, CLIENTS).finish()
    assert counts == {"answer": n}, counts


class Memory:
    """A rest and a session, made by one process, that others must know."""

    def __init__(self, s):
        self.s = s
        s.up.default(answers.error(429, headers={"Retry-After": "600"}), "up-key-429")
        assert s.chat(model="e429").status == 429
        self.asked = s.up.count("up-key-429")
        self.account = self.session()

    def session(self):
        got = self.s.chat(headers={**st.bearer(), "X-Session-Id": "a conversation"})
        assert got.status == 200, got
        return got.header("X-Sluice-Account")

    def is_kept(self):
        assert self.s.chat(model="e429").status == 429
        assert self.s.up.count("up-key-429") == self.asked, "an account that rests was asked"
        assert {self.session() for _ in range(3)} == {self.account}


def new_version(s):
    """The program with another version, put in its place as package managers do."""
    with open(s.path("bin/sluice.fcgi"), "rb") as f:
        changed = f.read().replace(b"0.1.0", b"9.9.9")
    names = ["bin/sluice.fcgi"]
    if s.site.htaccess:
        names += [os.path.join("htdocs/llm", n) for n in ("sluice.fcgi", "sluice.cgi")]
    for path in filter(os.path.exists, map(s.path, names)):
        with open(path, "rb") as f:
            script = f.read(2) == b"#!"
        if script:
            shutil.copy(path, path + ".new")
        else:
            with open(path + ".new", "wb") as f:
                f.write(changed)
            shutil.copymode(path, path + ".new")
        os.rename(path + ".new", path)


def version(s):
    """Of the process that answers."""
    s.chat()
    return s.up.last.header("User-Agent")


OLD, NEW = "sluice/0.1.0", "sluice/9.9.9"


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", st.KINDS)
def test_new_program_under_load(kind):
    with begun(kind) as s:
        running = Running(s)
        assert version(s) == OLD
        load = Load(s.chat, 200, CLIENTS).until(20)
        new_version(s)
        if kind in OWN:
            done = s.ctl("--json", "restart")
            assert json.loads(done.stdout)["version"] == "9.9.9", done
        wait_until(lambda: version(s) == NEW, 10, "the new program serves")
        assert load.finish() == {"answer": 200}
        assert running.is_whole() is True
        wait_until(lambda: {version(s) for _ in range(5)} == {NEW}, 10, "nobody else does")


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", ["lighttpd-spawn"])
def test_new_program_by_restart_of_the_server(kind):
    with begun(kind) as s:
        new_version(s)
        assert version(s) == OLD
        s.procs["web"].send_signal(signal.SIGUSR1)
        wait_until(lambda: version(s) == NEW, 10, "the new program serves")


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", OWN)
def test_own_limit(kind):
    """A worker ends after four requests."""
    with begun(kind, config={"server": {"max_requests": 4}}) as s:
        memory, old, running = Memory(s), set(s.pids()), Running(s)
        all_answered(s)
        wait_until(lambda: len(old & set(s.pids())) <= 1, 10, "nobody is left but one who is busy")
        assert running.is_whole() is True
        memory.is_kept()


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1], ids=["HUP", "USR1"])
@pytest.mark.parametrize("kind", OWN)
def test_signals_to_the_master(kind, number):
    with begun(kind) as s:
        memory, running = Memory(s), Running(s)
        own = s.gateway()
        (master,) = [p for p, parent in own.items() if parent not in own]
        old = set(s.pids()) - {master}
        load = Load(s.chat, 200, CLIENTS).until(20)
        os.kill(master, number)
        assert load.finish() == {"answer": 200}
        assert running.is_whole() is True
        wait_until(lambda: not old & set(s.pids()), 10, "all were replaced")
        memory.is_kept()


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", sites.EXTERNAL)
def test_stop_and_start(kind):
    """Between them the server refuses, and serves again at once."""
    with begun(kind) as s:
        memory = Memory(s)
        assert s.ctl("stop").returncode == 0
        assert s.procs["sluice"].wait(10) == 0, "no worker had to be killed"
        assert s.chat().status in (502, 503)
        told = s.ctl("start", "--listen", "unix:" + s.path("run/s"), "--workers", "4")
        assert told.returncode == 0, told
        try:
            wait_until(lambda: s.chat().status == 200, 5, "served again")
            all_answered(s, 50)
            memory.is_kept()
        finally:
            s.ctl("stop")


@pytest.mark.cell("recycle")
@pytest.mark.parametrize(
    "limit",
    ["FcgidMaxRequestsPerProcess 9", SOON + "FcgidIdleTimeout 1", SOON + "FcgidProcessLifeTime 1"],
    ids=["requests", "idle", "life"],
)
@pytest.mark.parametrize("kind", sites.FCGID)
def test_limits_of_mod_fcgid(kind, limit):
    with begun(kind, more=SCANS, inside=limit) as s:
        memory, running = Memory(s), Running(s)
        old = set(s.pids())
        all_answered(s, 100)
        wait_until(lambda: len(old & set(s.pids())) <= 1, 20, "nobody is left but one who is busy")
        assert running.is_whole() is True
        all_answered(s, 50)
        memory.is_kept()
        assert "sending SIGKILL" not in s.log


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", sites.CGI)
def test_each_request_its_own_process(kind):
    with begun(kind) as s:
        memory = Memory(s)
        all_answered(s, 50)
        wait_until(lambda: not s.pids(), 5, "nobody is left")
        memory.is_kept()


@pytest.mark.cell("recycle")
@pytest.mark.parametrize("kind", ["apache-fcgid"])
def test_silence_is_no_end(kind):
    """Heartbeats keep a silent stream alive beyond FcgidIOTimeout."""
    with begun(kind, more=SCANS, inside="FcgidIOTimeout 4") as s:
        gate = st.Gate(*st.texts(4)).let(2)
        s.up.default(gate, "up-key-solo")
        live = s.stream(model="solo").until(b"t0")
        while live.body.count(b": hb") < 8:  # a second each
            live.until(live.body + b": hb")
        got = gate.let(9) and live.finish()
        assert got.body.endswith(b"data: [DONE]\n\n"), got
