"""A pool of one's own: start, stop, restart, a new program on disk, and what is left by kill -9
(SPEC 2).
"""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib.answers import chunk, ok, sse, stream
from lib.pool import CTL, K1, PROGRAM, alive, config
from lib.upstream import wait_until

EVENTS = [chunk({"content": f"w{i}"}) for i in range(8)] + [chunk({}, "stop"), "[DONE]"]
BROKEN = "#!/bin/sh\necho 'sluice: this program is broken' >&2\nexit 1\n"


class Running:
    """The process that a pidfile names, as Pool's master wants it."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return None if alive(self.pid) else 0

    def wait(self, timeout=5):
        wait_until(lambda: not alive(self.pid), timeout, "the master has ended")

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def send_signal(self, number):
        os.kill(self.pid, number)


@pytest.fixture
def own(gate):
    """own(...): as gate, but for `sluicectl start`, with a copy of the program that can be replaced."""

    def make(start=True, **vary):
        vary.setdefault("workers", 0)
        allow = ["pool.log", *vary.pop("allow", [])]
        g = gate(start=False, log={"target": "log"}, allow=allow, **vary)
        g.conf["log"]["target"] = g.log_path
        g.write(g.conf)
        g.program = os.path.join(g.dir, "sluice.fcgi")
        shutil.copy(PROGRAM, g.program)
        if start:
            begin(g)
        return g

    return make


def begin(g, *more):
    workers = ["--workers", str(g.workers)] if g.workers else []
    done = g.ctl("--json", "start", "--listen", g.address, "--program", g.program, *workers, *more)
    told = json.loads(done.stdout)
    assert told["done"] == "started", told
    g.master = Running(told["pid"])
    return told


def replace(path, content):
    """As a package manager does: a new file takes the name."""
    if isinstance(content, bytes):
        with open(path + ".new", "wb") as f:
            f.write(content)
    else:
        with open(path + ".new", "w") as f:
            f.write(content)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def new_program():
    """The same program as another file, which is what an update brings."""
    with open(PROGRAM, "rb") as f:
        return f.read() + b"\n"


def pidfile(g):
    with open(os.path.join(g.dir, "state", "pool.pid")) as f:
        return f.read()


class Load:
    """Requests one after the other, from several clients, until it is stopped."""

    def __init__(self, g, clients=4):
        self.g, self.going, self.good, self.bad, self.slowest = g, True, 0, [], 0.0
        self.threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self):
        while self.going:
            try:
                answer = self.g.ask()
                if answer.status != 200:
                    self.bad.append(answer.out)
                self.slowest = max(self.slowest, answer.took)
                self.good += 1
            except Exception as e:  # a refused connection, a cut answer
                self.bad.append(e)

    def stop(self):
        self.going = False
        for t in self.threads:
            t.join(20)
        assert not self.bad, self.bad[:3]
        assert self.good > 20
        return self


def test_start_stop(up, own):
    g = own()
    assert g.ask().status == 200
    assert os.getsid(g.master.pid) == g.master.pid != os.getsid(0)
    assert os.readlink(f"/proc/{g.master.pid}/cwd") == "/"
    assert os.stat(g.address[5:]).st_mode & 0o777 == 0o660
    assert "stopped" in g.ctl("stop").stdout
    assert not alive(g.master.pid) and not os.path.exists(g.address[5:])
    assert "no pool runs here" in g.ctl("stop").stdout


def test_a_faulty_configuration(up, own):
    """It keeps nobody from stopping, and nothing from running on."""
    g = own()
    whole = json.loads(json.dumps(g.conf))
    for text in (
        json.dumps({**whole, "chanels": 1}),
        json.dumps(whole).replace('"channels"', '"channels'),
        json.dumps(whole).replace('"state_dir": "state"', '"state_dir" : "./state"') + "}",
    ):
        with open(g.path, "w") as f:
            f.write(text)
        done = g.ctl("restart", check=False)
        assert done.returncode == 1 and g.path in done.stderr, done
        assert "not restarted, the running pool goes on" in done.stderr, done
        assert g.ask().status == 200
    done = g.ctl("stop")
    assert "stopped" in done.stdout and not alive(g.master.pid), done
    done = g.ctl("restart", check=False)
    assert "no pool runs here" in done.stderr and "goes on" not in done.stderr, done
    assert g.ctl("start", check=False).returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_usual_socket_cannot_be_made(own):
    """Beside a configuration in a folder of root."""
    g = own(start=False)
    user = pwd.getpwnam("nobody")
    g.conf["log"]["target"] = os.path.join(g.dir, "state", "log")
    g.write(g.conf)
    os.mkdir(os.path.join(g.dir, "state"), 0o700)
    os.chmod(g.dir, 0o755)
    for name in ("state", "sluice.json"):
        os.chown(os.path.join(g.dir, name), user.pw_uid, user.pw_gid)
    done = g.ctl("start", "--program", g.program, check=False)
    assert done.returncode == 1 and "cannot listen" in done.stderr, done
    assert "try --listen unix:/run/sluice/sluice.sock" in done.stderr, done


def test_stop_of_what_another_has_started(own):
    """As lighttpd and spawn-fcgi do: with the socket on descriptor 0."""
    g = own(start=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(g.dir, "s0"))
        s.listen()
        argv = [g.program, "-c", g.path, "--workers", "1"]
        with subprocess.Popen(argv, stdin=s, env=g.env) as pool:
            pidfile = os.path.join(g.dir, "state", "pool.pid")
            wait_until(
                lambda: os.path.exists(pidfile) and "ready" in open(pidfile).read(), 5, "the pool"
            )
            done = g.ctl("stop")
            assert "stopped" in done.stdout and "may start it anew: stop lighttpd" in done.stderr
            assert pool.wait(5) == 0


def test_start_twice(up, own):
    """For cron: it says so, and all is well."""
    g = own()
    pids = g.worker_pids()
    for _ in range(3):
        done = g.ctl("start")
        assert f"already running: sluice 0.1.0, pid {g.master.pid}" in done.stdout
    assert json.loads(g.ctl("start", "--json").stdout)["changed"] is False
    assert "not on" not in g.ctl("start", "--listen", g.address).stdout
    elsewhere = f"unix:{g.dir}/elsewhere"
    assert f"\nnot on {elsewhere}: stop it first" in g.ctl("start", "--listen", elsewhere).stdout
    assert set(pids) <= set(g.worker_pids())


def test_many_starts_at_once(up, own):
    """cron and a person: one pool, and everybody is told of the same."""
    g = own(start=False)
    argv = [CTL, "-c", g.path, "--json", "start", "--listen", g.address, "--program", g.program]
    starts = [subprocess.Popen(argv, stdout=subprocess.PIPE, env=g.env) for _ in range(6)]
    told = [json.loads(p.communicate(timeout=30)[0]) for p in starts]
    assert [p.returncode for p in starts] == [0] * 6
    assert sorted(t["done"] for t in told) == ["already running"] * 5 + ["started"]
    assert len({t["pid"] for t in told}) == 1
    g.master = Running(told[0]["pid"])
    assert g.ask().status == 200


def test_two_masters_for_one_socket(up, gate):
    """Two at once find the same stale file: one of them listens, the other says why not."""
    for _ in range(4):
        g = gate(workers=1, start=False)
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(g.address[5:])
        argv = [PROGRAM, "-c", g.path, "--listen", g.address, "--workers", "1"]
        both = [
            subprocess.Popen(argv, stderr=subprocess.PIPE, env=g.env, stdin=subprocess.DEVNULL)
            for _ in range(2)
        ]
        wait_until(lambda: any(p.poll() is not None for p in both), 5, "one has ended")
        (loser,) = [p for p in both if p.poll() is not None]
        (g.master,) = [p for p in both if p is not loser]
        assert loser.returncode == 1
        assert b"another process listens" in loser.communicate()[1]
        assert g.ask().status == 200
        g.stop()
        g.master.stderr.close()


def test_default_socket_and_program(up, own):
    g = own(start=False)
    told = json.loads(g.ctl("--json", "start", "--workers", "1").stdout)
    g.master = Running(told["pid"])
    g.address = f"unix:{g.dir}/sluice.sock"
    assert told["listen"] == g.address
    assert g.ask().status == 200
    assert len(g.worker_pids()) == 1


def test_socket_mode(up, own):
    g = own(start=False)
    begin(g, "--socket-mode", "0666")
    assert os.stat(g.address[5:]).st_mode & 0o777 == 0o666
    g.ctl("restart")
    assert os.stat(g.address[5:]).st_mode & 0o777 == 0o666


@pytest.mark.parametrize("mode", ["", "9", "01777", "0660x", "-1"])
def test_socket_mode_that_is_none(mode):
    done = subprocess.run([PROGRAM, "--socket-mode", mode], capture_output=True, text=True)
    assert done.returncode == 2 and "octal" in done.stderr


def test_start_says_why_not(up, own):
    g = own(start=False)
    g.address = "unix:/nonexistent/s"
    done = g.ctl("start", "--listen", g.address, "--program", g.program, check=False)
    assert done.returncode == 1
    assert "cannot listen on '/nonexistent/s'" in done.stderr and "not started" in done.stderr
    g.write('{"chanels": {}}')
    done = g.ctl("start", check=False)
    assert done.returncode == 1 and "chanels" in done.stderr
    done = g.ctl("restart", check=False)
    assert done.returncode == 1


def test_restart_of_none(up, own):
    g = own(start=False)
    done = g.ctl("restart", check=False)
    assert done.returncode == 1 and "no pool runs here" in done.stderr


def test_restart_under_load_loses_nothing(up, own):
    """A new file on disk, running streams end whole, nobody is refused or waits."""
    up.script(K1, *[stream(EVENTS, "events", gap=0.4)] * 3)
    g = own(pool={"max_in_flight": 0, "queue_size": 0, "queue_timeout": "0s"})
    streams = [g.open() for _ in range(3)]
    for a in streams:
        a.until(b"w0")
    load = Load(g)
    time.sleep(0.3)
    for _ in range(3):
        old = set(g.worker_pids())
        replace(g.program, new_program())
        done = json.loads(g.ctl("--json", "restart", timeout=40).stdout)
        assert done["done"] == "restarted" and done["pid"] == g.master.pid
        assert os.stat(f"/proc/{g.master.pid}/exe").st_ino == os.stat(g.program).st_ino
        time.sleep(0.3)
        assert set(g.worker_pids()) - old
    assert load.stop().slowest < 1.5
    assert all(a.finish().body == sse(EVENTS) for a in streams)
    wait_until(lambda: len(g.worker_pids()) <= 12, 5, "the old workers are gone")
    g.assert_clean()


@pytest.mark.parametrize("numbers", [["SIGHUP"], ["SIGUSR1"], ["SIGRTMIN"], ["SIGHUP", "SIGRTMIN"]])
def test_signals_while_it_restarts(up, own, numbers):
    """They find a program that has just begun, and are not to end it."""
    g = own(workers=2)
    load, going = Load(g, 1), time.monotonic() + 2
    while time.monotonic() < going and alive(g.master.pid):
        for number in [signal.SIGRTMIN, *[getattr(signal, n) for n in numbers]]:
            os.kill(g.master.pid, number)
        time.sleep(0.0007)
    load.going = False
    assert alive(g.master.pid)
    load.stop()
    wait_until(lambda: "state ready" in pidfile(g), 5, "it is ready")
    g.ctl("restart")


def test_a_stop_while_it_restarts(up, own):
    """Neither lost nor taken by halves: no worker outlives the master."""
    g = own(workers=2)
    for delay in range(0, 60, 4):
        os.kill(g.master.pid, signal.SIGRTMIN)
        time.sleep(delay / 1000)
        pids = [g.master.pid, *g.worker_pids()]
        g.ctl("stop")
        assert "state stopped" in pidfile(g), delay
        # its lock is gone a moment before it is
        wait_until(lambda: not any(alive(p) for p in pids), 1, f"all have ended, {delay} ms")
        begin(g)


def test_restart_replaces_all_workers(up, own):
    g = own(workers=5)
    old = set(g.worker_pids())
    g.ctl("restart")
    wait_until(lambda: not old & set(g.worker_pids()), 5, "all were replaced")
    assert len(g.worker_pids()) == 5
    assert g.ask().status == 200
    with open(os.path.join(g.dir, "state", "pool.pid")) as f:
        assert "serial 1\n" in f.read()


def test_restart_takes_the_configuration(up, own):
    g = own()
    assert g.ask().header("X-Sluice-Account") == "A1"
    conf = config(up.url, account={"A1": {"enabled": False}}, log={"target": g.log_path})
    g.write(conf)
    g.ctl("restart")
    wait_until(lambda: g.ask().header("X-Sluice-Account") == "A2", 3, "it is in force")


@pytest.mark.parametrize("how", ["script", "no program", "not executable", "gone"])
def test_broken_program_keeps_the_old_one(up, own, how):
    up.script(K1, stream(EVENTS, "events", gap=0.1))
    g = own(allow=["not restarted"])
    a = g.open().until(b"w0")
    old = set(g.worker_pids())
    if how == "gone":
        os.unlink(g.program)
    else:
        replace(g.program, {"script": BROKEN}.get(how, "\x7fELF no program"))
    if how == "not executable":
        os.chmod(g.program, 0o644)
    for _ in range(2):
        done = g.ctl("restart", check=False)
        assert done.returncode == 1 and "the running pool goes on" in done.stderr
    if how == "script":
        assert "this program is broken" in done.stderr
    assert g.ask().status == 200
    assert a.finish().body == sse(EVENTS)
    assert old <= set(g.worker_pids())
    replace(g.program, new_program())
    assert "restarted" in g.ctl("restart").stdout
    assert g.ask().status == 200


def test_broken_configuration_keeps_the_old_one(up, own):
    """Found between the look of sluicectl and that of the program, so here by signal."""
    g = own(allow=["not restarted", "sluice.json"])
    old = set(g.worker_pids())
    good = g.conf
    g.write('{"chanels": {}}')
    g.signal(signal.SIGRTMIN)
    wait_until(lambda: "not restarted" in g.log_text(), 5, "it was tried")
    assert "chanels" in g.log_text()
    assert g.ask().status == 200 and old <= set(g.worker_pids())
    g.write(good)
    assert "restarted" in g.ctl("restart").stdout


@pytest.mark.parametrize("number", ["SIGRTMIN", "SIGHUP", "SIGUSR1"])
def test_signals_while_it_becomes_the_new_program(up, gate, number):
    """They wait until it listens to them: what a signal does by default is to end it."""
    g = gate(workers=1, allow=["not restarted"])
    limit = time.monotonic() + 10
    g.signal(signal.SIGRTMIN)
    while g.log_text().count('"restarting"') < 3 and time.monotonic() < limit:
        g.signal(getattr(signal, number))
        time.sleep(0.002)
        if number != "SIGRTMIN":
            g.signal(signal.SIGRTMIN)
        assert g.master.poll() is None, f"ended by signal {-g.master.returncode}"
    assert g.log_text().count('"restarting"') >= 3
    assert g.ask().status == 200


def test_restart_in_the_foreground(up, gate):
    """As under systemd: the process that was started stays."""
    g = gate(workers=2, allow=["pool.log"])
    old = set(g.worker_pids())
    for _ in range(3):
        assert "restarted" in g.ctl("restart").stdout
        assert g.ask().status == 200
    assert g.master.poll() is None
    assert not old & set(g.worker_pids())
    assert "already running" in g.ctl("start").stdout
    assert "stopped" in g.ctl("stop").stdout
    assert g.master.wait(2) == 0


@pytest.mark.parametrize("way", ["stdin", "systemd"])
def test_restart_on_an_inherited_socket(up, gate, way):
    """lighttpd's and spawn-fcgi's descriptor 0; LISTEN_FDS of systemd."""
    g = gate(workers=0, start=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(g.address[5:])
        s.listen(64)
        argv = [PROGRAM, "-c", g.path]
        if way == "stdin":
            argv += ["--workers", "auto"]
            g.master = subprocess.Popen(argv, stdin=s, env=g.env, stderr=subprocess.DEVNULL)
        else:
            sh = 'exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
            argv = ["/bin/sh", "-c", sh, "sh", *argv]
            g.master = subprocess.Popen(argv, stdin=s, env=g.env, stderr=subprocess.DEVNULL)
    assert g.ask().status == 200
    name = {"stdin": "descriptor 0", "systemd": "systemd"}[way]
    assert f"already running: sluice 0.1.0, pid {g.master.pid}, on {name}" in g.ctl("start").stdout
    old = set(g.worker_pids())
    assert len(old) >= 2
    for _ in range(2):
        assert "restarted" in g.ctl("restart").stdout
        assert g.ask().status == 200
    wait_until(lambda: not old & set(g.worker_pids()), 5, "all were replaced")
    assert g.master.poll() is None


def test_stop_during_a_stream(up, own):
    """It ends within the drain with an error event, and without one that must be killed."""
    up.script(K1, stream(EVENTS[:2], "events", end="hold"))
    g = own(server={"drain_timeout": "1s"}, allow=["drain", "stop", "shut"])
    a = g.open().until(b"w1")
    began = time.monotonic()
    done = g.ctl("stop", timeout=20)
    assert 0.8 < time.monotonic() - began < 4
    assert "killed" not in done.stderr
    a.finish(5)
    assert a.events()[-1][1].startswith('{"error"') and b"[DONE]" not in a.body


@pytest.mark.parametrize("first", [None, signal.SIGTERM])
def test_stop_at_once(up, gate, first):
    """SIGQUIT: no drain, also where one has begun; still an error event, and nobody is killed."""
    up.script(K1, stream(EVENTS[:2], "events", end="hold"))
    g = gate(workers=2, server={"drain_timeout": "60s"}, allow=["drain", "stop", "shut"])
    a = g.open().until(b"w1")
    if first:
        g.signal(first)
    g.signal(signal.SIGQUIT)
    assert g.master.wait(4) == 0
    a.finish(5)
    assert a.events()[-1][1].startswith('{"error"') and b"[DONE]" not in a.body
    with open(os.path.join(g.dir, "state", "pool.pid")) as f:
        assert "killed 0\n" in f.read()


def test_stop_lets_a_stream_end(up, own):
    up.script(K1, stream(EVENTS, "events", gap=0.1))
    g = own(server={"drain_timeout": "10s"})
    a = g.open().until(b"w0")
    assert "stopped" in g.ctl("stop", timeout=20).stdout
    assert a.finish().body == sse(EVENTS)


def test_stop_says_what_was_killed(up, own):
    """A worker that is stopped in the middle ends by SIGKILL, after drain and grace."""
    g = own(workers=2, server={"drain_timeout": "0s"})
    os.kill(g.worker_pids()[0], signal.SIGSTOP)
    done = g.ctl("stop", timeout=30)
    assert "1 workers did not end in time: killed" in done.stderr
    assert not alive(g.master.pid)


def test_kill_9_of_the_master(up, own):
    """Its workers end; while one still answers, start works again."""
    up.script(K1, stream(EVENTS, "events", gap=0.2))
    g = own(server={"drain_timeout": "5s"})
    first, pids = g.master, g.worker_pids()
    a = g.open().until(b"w0")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    told = begin(g)
    assert told["pid"] != first.pid
    assert g.ask().status == 200
    assert a.finish().body == sse(EVENTS)
    wait_until(lambda: not any(alive(p) for p in pids), 5, "the workers ended")
    assert g.ask().status == 200
    g.assert_clean()


def test_a_stale_handover_is_not_believed(up, gate):
    g = gate(workers=2, env={"SLUICE_HANDOVER": "1 1 0 -1 0 1i"})
    assert g.ask().status == 200
    assert len(g.worker_pids()) == 2


@pytest.mark.skipif(
    subprocess.run(["unshare", "-p", "-f", "true"], capture_output=True).returncode != 0,
    reason="no PID namespace can be made here",
)
@pytest.mark.parametrize("what", ["start", "stop", "restart"])
def test_a_pool_of_another_container(up, own, what):
    """There it has no pid, and is neither overlooked nor signalled."""
    g = own(workers=2)
    more = ["--listen", f"unix:{g.dir}/other", "--program", g.program] if what == "start" else []
    done = subprocess.run(
        ["unshare", "-p", "-f", CTL, "-c", g.path, what, *more],
        capture_output=True,
        text=True,
        timeout=20,
        env=g.env,
    )
    assert done.returncode == 1 and "in another container" in done.stderr, done
    assert "state ready\nserial 0\n" in pidfile(g)
    assert g.ask().status == 200


def test_test(up, gate):
    """--test: what a restart asks first."""
    g = gate(start=False)
    run = lambda: subprocess.run([PROGRAM, "-c", g.path, "--test"], capture_output=True, text=True)
    assert run().returncode == 0
    assert not os.path.exists(os.path.join(g.dir, "state"))
    g.write('{"chanels": {}}')
    done = run()
    assert done.returncode == 1 and "chanels" in done.stderr


def test_two_pools_on_one_state(up, own, gate):
    """The second one serves, too; whoever was first is meant by stop, then the other."""
    up.default(ok())
    g = own()
    second = Running(
        subprocess.Popen(
            [PROGRAM, "-c", g.path, "--listen", f"unix:{g.dir}/second", "--workers", "1"],
            stdin=subprocess.DEVNULL,
            env=g.env,
        ).pid
    )
    wait_until(lambda: os.path.exists(f"{g.dir}/second"), 5, "it listens")
    time.sleep(0.3)
    assert f"pid {g.master.pid}" in g.ctl("start").stdout
    g.ctl("stop")
    assert not alive(g.master.pid)
    time.sleep(1.5)  # it looks once a second
    assert f"pid {second.pid}" in g.ctl("start").stdout
    assert "stopped" in g.ctl("stop").stdout
    wait_until(lambda: not alive(second.pid), 3, "it has ended")
