"""Processes that die, reload, restart (SPEC 2, 3, 7, 15; COOL-22, OPS-07): nothing is lost, nothing
leaks.
"""

import glob
import os
import random
import signal
import time

import pytest

from lib.answers import chunk, error, hang, plain, slow, sse, stream
from lib.pool import K1, K2, alive, config, key
from lib.upstream import wait_until


def need_descriptors(g):
    """Workers are not dumpable: to others than root the kernel does not show their descriptors."""
    try:
        os.listdir(f"/proc/{g.worker_pids()[0]}/fd")
    except PermissionError:
        pytest.skip("only root sees the descriptors of a worker")


def worker_of(g, up, request=None):
    """The worker that holds a connection to the upstream: any, or that of this request."""
    need_descriptors(g)
    inodes = established(up.port, request and request.peer)
    for pid in g.worker_pids():
        for fd in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                if os.readlink(fd) in inodes:
                    return pid
            except OSError:
                pass
    raise AssertionError("no worker holds an upstream connection")


def kill(pid):
    """kill -9, and wait until the kernel has let go of what it held."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), 2, "the process is gone", 0.001)


def established(port, own=None):
    """Inodes of TCP sockets connected to 127.0.0.1:port, from the port `own` if given."""
    out = set()
    with open("/proc/net/tcp") as f:
        for line in f.readlines()[1:]:
            parts = line.split()
            if own and not parts[1].endswith(":%04X" % own):
                continue
            if parts[2].endswith(":%04X" % port) and parts[3] == "01":
                out.add(f"socket:[{parts[9]}]")
    return out


@pytest.mark.parametrize("streamed", [True, False])
def test_kill_9_frees_the_lease_at_the_next_pick(up, gate, streamed):
    up.script(K1, stream([chunk({"content": "begun"})], end="hold") if streamed else hang())
    g = gate(accounts=1, pool={"max_in_flight": 1}, allow=["worker"])
    a = g.open(stream=streamed)
    up.wait_for(1)
    if streamed:
        a.until(b"begun")
    assert g.account()["in_flight"] == 1
    kill(worker_of(g, up))
    b = g.ask()
    assert b.status == 200, b.out
    assert b.took < 1
    assert g.account()["in_flight"] == 0
    g.assert_clean()
    wait_until(lambda: len(g.worker_pids()) == 2, 2, "the worker was replaced")


def test_in_flight_counts_only_living_holders(up, gate):
    """SPEC 17: even before any pick."""
    up.default(hang())
    g = gate(workers=3, allow=["worker"])
    answers = [g.open() for _ in range(3)]
    up.wait_for(3)
    assert g.in_flight() == 3
    for pid in g.worker_pids():
        kill(pid)
    assert g.in_flight() == 0
    assert all(a.finish().end is None for a in answers)


def test_killed_workers_are_replaced_at_once(up, gate):
    g = gate(workers=3, allow=["worker"])
    for _ in range(5):
        old = g.worker_pids()
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        assert g.ask().status == 200
        wait_until(lambda: len(set(g.worker_pids()) - set(old)) == 3, 2, "three new workers")
    g.assert_clean()


def test_one_crash_does_not_stop_the_others(up, gate):
    up.script(K1, hang(), slow(1.0))
    g = gate(workers=3, allow=["worker"])
    dying = g.open()
    up.wait_for(1)
    pid = worker_of(g, up)
    other = g.open(stream=False)
    up.wait_for(2)
    os.kill(pid, signal.SIGKILL)
    dying.finish(5)
    assert dying.end is None  # no end record: the web server sees a broken answer
    assert other.finish().status == 200


def test_restart_keeps_cooldowns(up, gate):
    """COOL-22: kill -9 of everything; deadline and streak survive."""
    up.script(K1, plain({}, 429), plain({}, 429))
    g = gate(cooldown={"soft_rate": "1500ms"}, breaker={"threshold": 99})
    g.ask()
    time.sleep(1.6)
    g.ask()
    before = g.account()
    assert (before["soft_streak"], before["state"]) == (2, "cooling")
    g.kill_all()
    g.start()
    after = g.account()
    assert {k: after[k] for k in ("soft_streak", "cool", "errors", "calls", "fails")} == {
        k: before[k] for k in ("soft_streak", "cool", "errors", "calls", "fails")
    }
    assert g.ask().header("X-Sluice-Account") == "A2"
    time.sleep(3.1)
    up.script(K1, plain({}, 429))
    g.ask()
    assert g.account()["soft_streak"] == 3


def test_clean_restart_keeps_everything(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "300"}))
    up.script(K2, error(401, "invalid_api_key"))
    g = gate()
    g.ask()
    before = g.status()["channels"]
    g.stop()
    g.start()
    assert g.status()["channels"] == before
    assert g.ask().header("X-Sluice-Account") == "A3"


def test_status_with_the_server_down(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "300"}))
    g = gate()
    g.ask()
    g.stop()
    assert g.account()["state"] == "cooling"
    g.ctl("account", "clear", "A1")
    g.start()
    assert g.ask().header("X-Sluice-Account") == "A1"


def test_reload_keeps_state(up, gate):
    """OPS-07: state is keyed by identity; unrelated settings, reordering and new accounts change
    nothing.
    """
    up.script(K1, error(429, headers={"Retry-After": "300"}))
    g = gate()
    g.ask()
    before = g.account()
    conf = config(up.url, accounts=4, upstream={"max_attempts": 2})
    conf["channels"]["oa"]["accounts"].reverse()
    g.reload(conf)
    assert g.account() == before
    assert g.account("A4")["state"] == "active"
    assert g.ask().header("X-Sluice-Account") == "A2"


def test_reload_counts_generations(up, gate):
    who = {"auth": {"mode": "web-server", "admins": ["boss"]}}
    g = gate(**who)
    seen = lambda: g.get("/status", REMOTE_USER="boss").json()["config"]
    before = seen()
    g.reload(config(up.url, log={"level": "debug"}, **who))
    after = seen()
    assert after["generation"] > before["generation"] and after["error"] is None


def test_reload_takes_effect_in_every_worker(up, gate):
    g = gate(workers=3)
    assert {g.ask().header("X-Sluice-Account") for _ in range(6)} == {"A1"}
    g.reload(config(up.url, account={"A1": {"enabled": False}}))
    assert {g.ask().header("X-Sluice-Account") for _ in range(9)} == {"A2"}


def test_running_requests_keep_the_old_configuration(up, gate):
    events = [chunk({"content": f"w{i}"}) for i in range(5)] + [chunk({}, "stop"), "[DONE]"]
    up.script(K1, stream(events, "events", gap=0.2))
    g = gate()
    a = g.open().until(b"w0")
    g.reload(config(up.url, account={"A1": {"enabled": False}}))
    assert a.finish().body == sse(events)
    assert g.ask().header("X-Sluice-Account") == "A2"
    assert g.in_flight() == 0


@pytest.mark.parametrize(
    "broken",
    ["{", '{"chanels":{}}', '{"channels":{"oa":{"provider":"openai","accounts":[]}},"x":1}', ""],
)
def test_broken_file_keeps_the_old_configuration(up, gate, broken):
    g = gate(auth={"mode": "web-server", "admins": ["boss"]}, allow=["config", "sluice.json"])
    g.reload(broken)
    for _ in range(4):
        assert (
            g.send({"model": "m1", "messages": [{"role": "user", "content": "x"}]}, REMOTE_USER="a")
            .finish()
            .status
            == 200
        )
    s = g.get("/status", REMOTE_USER="boss").json()
    assert s["config"]["error"] and "sluice.json" in s["config"]["error"]
    assert "sluice.json" in g.log_text()
    g.reload(config(up.url, auth={"mode": "web-server", "admins": ["boss"]}))
    assert g.get("/status", REMOTE_USER="boss").json()["config"]["error"] is None


def test_broken_file_at_the_start(up, gate):
    """It ends with a message that names file and key, and serves nothing."""
    g = gate(conf='{"chanels": {}}', start=False, allow=["."])
    g.start(wait=False)
    assert g.master.wait(5) == 1
    text = g.log_text()
    assert "sluice.json" in text and "chanels" in text and "channels" in text
    open(g.log_path, "w").close()  # plain text is right here; nothing else to check


def test_file_readable_by_others_is_refused(up, gate):
    g = gate(start=False, allow=["."])
    os.chmod(g.path, 0o644)
    g.start(wait=False)
    assert g.master.wait(5) == 1
    assert "chmod" in g.log_text()
    open(g.log_path, "w").close()


def test_changed_key_clears_disabled_of_that_account(up, gate):
    """SPEC 3, OPS-07."""
    bad = error(401, "invalid_api_key", "bad")
    up.default(bad, K1)
    up.default(bad, K2)
    g = gate()
    assert g.ask().header("X-Sluice-Account") == "A3"
    assert [g.account(x)["state"] for x in ("A1", "A2")] == ["disabled"] * 2
    g.reload(config(up.url, account={"A1": {"api_key": key(15)}}))
    assert g.ask().header("X-Sluice-Account") == "A1"
    assert up.last.cred == key(15)
    a = g.accounts()
    assert (a["A1"]["state"], a["A2"]["state"]) == ("active", "disabled")


def test_operators_disable_outlives_everything(up, gate):
    g = gate()
    g.ctl("account", "disable", "A1")
    g.kill_all()
    g.start()
    assert g.account()["state"] == "disabled"
    assert g.ask().header("X-Sluice-Account") == "A2"


def test_sigterm_lets_answers_finish(up, gate):
    events = [chunk({"content": f"w{i}"}) for i in range(5)] + [chunk({}, "stop"), "[DONE]"]
    up.script(K1, stream(events, "events", gap=0.2))
    g = gate(server={"drain_timeout": "5s"})
    a = g.open().until(b"w0")
    g.master.terminate()
    assert a.finish().body == sse(events)
    g.master.wait(5)


def test_sigterm_ends_after_the_drain(up, gate):
    up.script(K1, stream([chunk({"content": "begun"})], end="hold"))
    g = gate(
        server={"drain_timeout": "1s"},
        upstream={"idle_timeout": "30s"},
        allow=["drain", "stop", "shut"],
    )
    a = g.open().until(b"begun")
    began = time.monotonic()
    g.master.terminate()
    a.finish(6)
    assert time.monotonic() - began < 4
    assert b"[DONE]" not in a.body
    assert a.events()[-1][1].startswith('{"error"')
    g.master.wait(5)


def test_sigterm_of_an_idle_pool_is_quick(up, gate):
    g = gate(workers=4)
    assert g.ask().status == 200
    assert g.stop() < 1.5


def test_workers_end_with_their_master(up, gate):
    """SPEC 2: workers end when the process that was started is gone."""
    g = gate(workers=3)
    pids = g.worker_pids()
    os.kill(g.master.pid, signal.SIGKILL)
    g.master.wait(5)
    wait_until(lambda: not any(alive(p) for p in pids), 4, "the workers ended")


def test_max_requests_recycles(up, gate):
    g = gate(workers=1, server={"max_requests": 3})
    pids = set()
    for _ in range(9):
        assert g.ask().status == 200
        pids.update(g.worker_pids())
    wait_until(lambda: len(g.worker_pids()) == 1, 2, "one worker")
    assert len(pids | set(g.worker_pids())) >= 3
    g.assert_clean()


def test_sigusr1_replaces_all_workers(up, gate):
    g = gate(workers=3)
    old = set(g.worker_pids())
    g.signal(signal.SIGUSR1)
    for _ in range(10):
        assert g.ask().status == 200
        time.sleep(0.02)
    wait_until(
        lambda: len(g.worker_pids()) == 3 and not old & set(g.worker_pids()), 5, "all replaced"
    )


def test_killed_at_random_moments(up, gate):
    """OPS-05 in small: others go on, counters add up, no lease stays."""
    up.default(slow(0.01))
    g = gate(workers=4, allow=["worker"])
    good = 0
    dice = random.Random(7)
    for i in range(40):
        a = g.open(stream=False)
        if i % 2:
            time.sleep(dice.random() * 0.02)
            pids = g.worker_pids()
            if pids:
                os.kill(dice.choice(pids), signal.SIGKILL)
        a.finish(5)
        good += bool(a.end) and a.status == 200
    assert good >= 15
    wait_until(lambda: g.in_flight() == 0, 2, "nothing in flight")
    total = sum(x["success"] for x in g.accounts().values())
    assert good <= total <= 40
    assert g.ask().status == 200
    g.assert_clean()


def test_files_are_private(up, gate):
    g = gate()
    g.ask()
    for folder, dirs, names in os.walk(os.path.join(g.dir, "state")):
        assert os.stat(folder).st_mode & 0o777 == 0o700, folder
        for name in names:
            assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0, name


def test_not_dumpable(up, gate):
    """SPEC 18: keys are in memory, so no core dumps."""
    g = gate()
    g.ask()
    for pid in g.worker_pids():
        with open(f"/proc/{pid}/limits") as f:
            core = next(line for line in f if line.startswith("Max core file size"))
        assert core.split()[4] == "0", core


def test_no_descriptors_leak(up, gate):
    """OPS-12 in small."""
    up.default(
        stream(
            [chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), "[DONE]"],
            "events",
            gap=0.005,
        )
    )
    g = gate(workers=1)
    need_descriptors(g)

    def fds():
        (pid,) = g.worker_pids()
        return len(os.listdir(f"/proc/{pid}/fd"))

    for i in range(20):
        g.ask(stream=True)
    base = fds()
    for i in range(60):
        a = g.open()
        a.close() if i % 3 == 0 else a.finish()
    g.ask()
    assert fds() <= base + 2
    assert g.in_flight() == 0
