"""The elastic pool (SPEC 2): it has spare workers, grows with the load, replaces what dies, and does
not end when the system gives no more processes. That it shrinks after a minute is in unit/test_size.c.
"""

import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

from lib import fcgi
from lib.answers import chunk, hang, ok, slow, sse, stream
from lib.around import without_asan
from lib.pool import K1, PROGRAM, alive, config
from lib.upstream import wait_until

EVENTS = [chunk({"content": f"w{i}"}) for i in range(4)] + [chunk({}, "stop"), "[DONE]"]
NO_LIMIT = {"pool": {"max_in_flight": 0, "queue_size": 0, "queue_timeout": "0s"}}


def elastic(gate, least=2, spare=2, most=64, workers=0, **vary):
    return gate(
        workers=workers,
        server={
            "workers_min": least,
            "workers_spare": spare,
            "workers_max": most,
            "drain_timeout": "2s",
        },
        **{**NO_LIMIT, **vary},
    )


def test_grows_with_the_load(up, gate):
    up.default(slow(0.6))
    g = elastic(gate, 1, 1, 8)
    answers = [g.open(stream=False) for _ in range(6)]
    assert [a.finish().status for a in answers] == [200] * 6
    assert max(a.took for a in answers) < 2
    assert 6 <= len(g.worker_pids()) <= 8


def test_begins_small_and_keeps_spare_ones(up, gate):
    up.default(slow(1.0))
    g = elastic(gate, 1, 3)
    wait_until(lambda: len(g.worker_pids()) >= 3, 2, "three spare ones")
    time.sleep(1.2)
    assert len(g.worker_pids()) <= 4  # the first request of all found two spare ones
    answers = [g.open(stream=False) for _ in range(2)]
    up.wait_for(2)
    wait_until(lambda: len(g.worker_pids()) >= 5, 1, "three spare ones besides two busy ones")
    assert [a.finish().status for a in answers] == [200] * 2


def test_never_more_than_workers_max(up, gate):
    up.default(slow(0.3))
    g = elastic(gate, 1, 2, 4)
    answers = [g.open(stream=False) for _ in range(12)]
    most = 0
    for _ in range(60):
        most = max(most, len(g.worker_pids()))
        time.sleep(0.01)
    assert [a.finish().status for a in answers] == [200] * 12
    assert most == 4
    assert up.count() == 12


def test_a_burst_of_64_streams(up, gate):
    """From a pool at rest: all are served at once, by steps that double."""
    up.default(stream(EVENTS, "events", gap=0.5))
    g = elastic(gate, most=80)
    began = time.monotonic()
    answers = [g.open() for _ in range(64)]
    for a in answers:
        a.until(b"w0", 10)
    assert time.monotonic() - began < 2  # a third of a second on an idle machine
    assert all(a.finish(20).body == sse(EVENTS) for a in answers)
    assert 64 <= len(g.worker_pids()) <= 80
    g.assert_clean()


def test_slow_uploads_do_not_starve_others(up, gate):
    """More clients that never finish their body than the pool begins with."""
    g = elastic(gate, 2, 2, 32)
    uploads = []
    for _ in range(10):
        wire = fcgi.Wire(g.address)
        pairs = fcgi.variables(body=b"x" * 5000)
        wire.send(fcgi.begin() + fcgi.records(fcgi.PARAMS, fcgi.params(pairs)))
        wire.send(fcgi.record(fcgi.STDIN, b'{"model":'))
        uploads.append(wire)
    took = [g.ask().took for _ in range(5)]
    assert max(took) < 1.0, took
    assert len(g.worker_pids()) >= 12
    for wire in uploads:
        wire.close()
    assert g.ask().status == 200


def test_a_number_is_fixed(up, gate):
    up.default(slow(0.3))
    g = elastic(gate, 1, 1, 64, workers=3)
    answers = [g.open(stream=False) for _ in range(9)]
    for _ in range(20):
        assert len(g.worker_pids()) == 3
        time.sleep(0.01)
    assert [a.finish().status for a in answers] == [200] * 9


def test_auto_is_elastic(up, gate):
    up.default(slow(0.5))
    g = gate(
        workers=0,
        env={"SLUICE_WORKERS": "auto"},
        server={"workers_min": 1, "workers_spare": 1, "workers_max": 5},
        **NO_LIMIT,
    )
    answers = [g.open(stream=False) for _ in range(4)]
    assert [a.finish().status for a in answers] == [200] * 4
    assert len(g.worker_pids()) >= 4


def test_reload_changes_the_limits(up, gate):
    g = elastic(gate, 1, 1, 64)
    more = {"workers_min": 7, "workers_spare": 1, "workers_max": 64}
    g.reload(config(up.url, server=more))
    wait_until(lambda: len(g.worker_pids()) == 7, 2, "workers_min is in force")
    less = {"workers_min": 1, "workers_spare": 1, "workers_max": 3}
    g.reload(config(up.url, server=less))
    wait_until(lambda: len(g.worker_pids()) <= 3, 2, "workers_max is in force")
    assert g.ask().status == 200


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_worker_that_dies_with_a_request(up, gate, number):
    """As libfcgi's assertions end one: the lease is free at once, and the others do not notice."""
    up.script(K1, hang())
    g = elastic(gate, 2, 2, 8, allow=["worker"], accounts=1, pool={"max_in_flight": 1})
    dying = g.open()
    up.wait_for(1)
    lease = [p for p in g.worker_pids() if busy(p)]
    assert len(lease) == 1, lease
    before = set(g.worker_pids())
    os.kill(lease[0], number)
    wait_until(lambda: not alive(lease[0]), 2, "it is gone", 0.001)
    answer = g.ask()
    assert answer.status == 200 and answer.took < 1
    assert dying.finish(5).end is None
    wait_until(lambda: len(g.worker_pids()) >= len(before) - 1, 1, "its place is taken")
    g.assert_clean()


def busy(pid):
    """Does this worker wait for an upstream? It has a TCP socket then."""
    try:
        with open("/proc/net/tcp") as f:
            inodes = {line.split()[9] for line in f.readlines()[1:]}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:[") and target[8:-1] in inodes:
                return True
    except PermissionError:
        pytest.skip("only root sees the descriptors of a worker")
    except OSError:
        pass
    return False


def test_all_die_at_once(up, gate):
    g = elastic(gate, 4, 2, 8, allow=["worker"])
    for _ in range(3):
        pids = g.worker_pids()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert g.ask().took < 1
        wait_until(lambda: len(set(g.worker_pids()) - set(pids)) >= 4, 1, "four new ones")


def test_the_system_gives_no_more_processes(up, gate):
    """25 processes for this user: the pool goes on with what there is, and says so once."""
    if os.getuid() != 0:
        pytest.skip("only root becomes somebody else")
    up.default(slow(0.2))
    g = elastic(gate, 2, 2, 64, start=False, allow=["fork failed"])
    program = os.path.join(g.dir, "sluice.fcgi")
    shutil.copy(PROGRAM, program)
    for path in (g.dir, g.path, program):
        os.chown(path, 61234, 61234)

    def limited():
        resource.setrlimit(resource.RLIMIT_NPROC, (25, 25))

    with open(g.log_path, "w") as log:
        g.master = subprocess.Popen(
            [program, "-c", g.path, "--listen", g.address],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**g.env, "ASAN_OPTIONS": "detect_leaks=0"},  # which needs a process more
            cwd=g.dir,
            user=61234,
            group=61234,
            extra_groups=[],
            preexec_fn=limited,
        )
    wait_until(lambda: os.path.exists(g.address[5:]), 5, "it listens")
    answers = [g.open(stream=False) for _ in range(60)]
    assert [a.finish(20).status for a in answers] == [200] * 60
    assert 20 <= len(g.worker_pids()) <= 24
    before = cpu(g.master.pid)
    time.sleep(1.5)
    assert cpu(g.master.pid) - before < 0.3  # it does not spin
    assert sum("fork failed" in line for line in g.log_lines()) == 1
    g.signal(signal.SIGUSR1)
    old = set(g.worker_pids())
    wait_until(lambda: not old & set(g.worker_pids()), 20, "all were replaced all the same")
    assert g.ask().status == 200


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_sigusr1_is_rolling(up, gate):
    """Never fewer that are ready than before, running answers end whole, nothing is lost."""
    up.default(stream(EVENTS, "events", gap=0.3))
    g = elastic(gate, 6, 2, 32)
    streams = [g.open() for _ in range(4)]
    for a in streams:
        a.until(b"w0")
    old = set(g.worker_pids())
    g.signal(signal.SIGUSR1)
    up.default(ok())
    least, seen = 99, 0
    limit = time.monotonic() + 8
    while old & set(g.worker_pids()) and time.monotonic() < limit:
        least = min(least, len(g.worker_pids()))
        assert g.ask().status == 200
        seen += 1
    assert least >= 6 and seen > 3
    assert all(a.finish().body == sse(EVENTS) for a in streams)
    wait_until(lambda: not old & set(g.worker_pids()), 3, "all were replaced")
    assert len(g.worker_pids()) >= 6
    g.assert_clean()


@without_asan  # which wants descriptors of its own
def test_new_workers_do_not_come_up(up, gate):
    """Then the old ones go on, and are replaced as soon as it works again."""
    up.default(slow(0.1))
    g = elastic(gate, workers=4, allow=["worker"])
    old = set(g.worker_pids())
    resource.prlimit(g.master.pid, resource.RLIMIT_NOFILE, (5, 1024))  # taken by what is shared
    g.signal(signal.SIGUSR1)
    answers = [g.open(stream=False) for _ in range(8)]
    assert [a.finish().status for a in answers] == [200] * 8
    time.sleep(0.5)
    assert old <= set(g.worker_pids())
    assert "the worker cannot start" in g.log_text()
    resource.prlimit(g.master.pid, resource.RLIMIT_NOFILE, (1024, 1024))
    wait_until(lambda: not old & set(g.worker_pids()), 5, "all were replaced")
    assert len(g.worker_pids()) == 4 and g.ask().status == 200


def test_sigusr1_again_and_again_under_load(up, gate):
    g = elastic(gate, 3, 2, 16)
    for i in range(120):
        if i % 4 == 0:
            g.signal(signal.SIGUSR1)
        answer = g.ask()
        assert answer.status == 200 and answer.took < 0.9, (i, answer.took)
    g.assert_clean()
