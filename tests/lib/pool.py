"""pool - sluice.fcgi in a directory of its own, for one test.

config() makes a configuration for a scripted upstream; Pool writes it, starts `sluice.fcgi
--listen`, waits until it accepts, and at the end stops it and checks what must hold after any test:
it ended in time, left no process, its log holds no unexpected warning and no sanitizer's report,
and no key stands in any file it wrote.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from datetime import datetime, timezone

from . import fcgi
from .upstream import wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build"))
PROGRAM = os.path.join(BUILD, "sluice.fcgi")
CTL = os.path.join(BUILD, "sluicectl")

# Warnings that any run may have: as root, and the state changes that the scenarios are about.
USUAL = [r"root", r"account .*(cool|disabl|breaker|active|rest)", r"model .*(cool|active)", r"upstream", r"attempt"]
# Sanitizer and crash marks that no run may have.
DEADLY = re.compile(
    r"AddressSanitizer|LeakSanitizer|UndefinedBehavior|runtime error:|Assertion|Segmentation|SIGSEGV|"
    r"SIGABRT|stack smashing|double free|panic|BUG"
)


MARK = "-Zq7wL0pVx"


def key(n):
    """The API key of account An: distinctive, so that it can be searched for in everything written."""
    return f"sk-{n:02d}{MARK}{n:02d}"


K1, K2, K3 = key(1), key(2), key(3)


def merge(base, more):
    """`more` over `base`, objects into objects."""
    out = dict(base)
    for name, value in more.items():
        out[name] = (
            merge(out[name], value)
            if isinstance(value, dict) and isinstance(out.get(name), dict)
            else value
        )
    return out


def config(base_url, accounts=3, tiers=True, account={}, channel={}, **sections):
    """One channel `oa` with accounts A1... With `tiers` A1 is always taken before A2 and so on, so
    that a scenario knows who is asked first. `account` changes single accounts by id, `channel` the
    channel, `sections` the rest.
    """
    rows = []
    for n in range(1, accounts + 1):
        row = {"id": f"A{n}", "api_key": key(n)}
        if tiers:
            row["priority"] = n
        rows.append(merge(row, account.get(f"A{n}", {})))
    base = {
        "state_dir": "state",
        "auth": {"mode": "open"},
        "server": {"drain_timeout": "2s"},
        "upstream": {
            "retry_backoff": "20ms",
            "retry_backoff_max": "100ms",
            "connect_timeout": "2s",
            "first_byte_timeout": "5s",
            "first_content_timeout": "8s",
            "idle_timeout": "5s",
            "plain_timeout": "8s",
        },
        "pool": {"queue_size": 0, "queue_timeout": "0s"},
        "probe": {"recover_every": "0s"},
        "channels": {
            "oa": merge(
                {"provider": "openai-compatible", "base_url": base_url, "accounts": rows}, channel
            )
        },
    }
    return merge(base, sections)


def parse_time(text):
    """A printed time as epoch seconds; it must be UTC with Z."""
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc).timestamp()


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def alive(pid):
    """Running, and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _memory():
    """A file system in memory, if it has room: what a pool writes is soon removed, it need not reach a disk."""
    path = "/dev/shm"
    if os.access(path, os.W_OK | os.X_OK) and shutil.disk_usage(path).free > 2 << 30:
        return path
    return None


class Pool:
    home = _memory()

    def __init__(self, conf, workers=2, listen="unix", env=None, allow=(), start=True):
        self.dir = tempfile.mkdtemp(prefix="sl-", dir=self.home)
        os.chmod(self.dir, 0o700)
        self.path = os.path.join(self.dir, "sluice.json")
        self.log_path = os.path.join(self.dir, "log")
        self.workers, self.allow = workers, list(allow)
        self.env = {"PATH": os.environ["PATH"], **(env or {})}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env.setdefault(name, os.environ[name])
        if listen == "unix":
            self.address = "unix:" + os.path.join(self.dir, "s")
        else:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.address = "127.0.0.1:%d" % free.getsockname()[1]
        self.master = None
        self._seen = set()
        self.write(conf)
        if start:
            self.start()

    # Files

    def write(self, conf):
        """Write the configuration: a dict, or text as it is. Replaced in one step, as an editor
        would.
        """
        text = conf if isinstance(conf, str) else json.dumps(conf, indent=1, ensure_ascii=False)
        self.conf = conf
        fd = os.open(self.path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w") as f:
            f.write(text)
        os.rename(self.path + ".new", self.path)

    def log_text(self):
        try:
            with open(self.log_path, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def log_lines(self):
        return self.log_text().split("\n")[:-1]

    def logs(self):
        """The log's lines as objects."""
        return [json.loads(line) for line in self.log_lines() if line.startswith("{")]

    # Processes

    def start(self, wait=True):
        assert os.access(
            PROGRAM, os.X_OK
        ), f"{PROGRAM} is missing: run make first, or set SLUICE_BUILD"
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        argv = [PROGRAM, "-c", self.path, "--listen", self.address]
        if self.workers:
            argv += ["--workers", str(self.workers)]
        self.master = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, cwd=self.dir
        )
        os.close(log)
        if wait:
            wait_until(self._accepts, 10, "the program accepts connections", 0.02)
            self.get("/healthz")  # answered by a worker that has opened the store
        return self

    def _accepts(self):
        assert (
            self.master.poll() is None
        ), f"ended with {self.master.returncode}: {self.log_text()[-3000:]}"
        try:
            fcgi.Wire(self.address, 1).close()
        except OSError:
            return False
        return not self.workers or len(self.worker_pids()) >= self.workers

    def worker_pids(self):
        pids = [p for p in _children(self.master.pid) if alive(p)]
        self._seen.update(pids)
        return pids

    def signal(self, number):
        self.master.send_signal(number)

    def reload(self, conf=None):
        """Give it another configuration and wait until every worker may have taken it."""
        if conf is not None:
            self.write(conf)
        self.signal(signal.SIGHUP)
        time.sleep(0.3)

    def kill_all(self):
        """kill -9 of master and workers at once: the master replaces none of them, and none sees it end."""
        _kill(self.master.pid, signal.SIGSTOP)
        pids = self.worker_pids() + [self.master.pid]
        for pid in pids:
            _kill(pid, signal.SIGKILL)
        self.master.wait(5)
        wait_until(lambda: not any(alive(p) for p in pids), 5, "all processes are gone")

    def stop(self, timeout=5.0):
        """SIGTERM; the seconds it took to end."""
        if self.master is None or self.master.poll() is not None:
            return 0.0
        self.worker_pids()
        began = time.monotonic()
        self.master.terminate()
        try:
            self.master.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise AssertionError(
                f"did not end within {timeout} s of SIGTERM; log: {self.log_text()[-2000:]}"
            )
        took = time.monotonic() - began
        wait_until(lambda: not self._left(), 2, f"no process left of {sorted(self._seen)}")
        return took

    def _left(self):
        return [p for p in self._seen if alive(p)]

    def close(self):
        """Stop, check what must hold after any test, and clean up."""
        try:
            self.stop()
            self._check_log()
            self._check_secrets()
        finally:
            for pid in self._left():
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.dir, ignore_errors=True)

    def _check_log(self):
        text = self.log_text()
        assert not DEADLY.search(text), text[-6000:]
        for line in self.log_lines():
            try:
                entry = json.loads(line)
            except ValueError:
                raise AssertionError(f"a log line is not JSON: {line!r}")
            if str(entry.get("level", "info")).lower() in (
                "warn",
                "warning",
                "error",
                "err",
                "crit",
            ):
                words = json.dumps(entry, ensure_ascii=False)
                assert any(
                    re.search(p, words, re.I) for p in USUAL + self.allow
                ), f"unexpected: {line}"

    def _check_secrets(self):
        for folder, _, names in os.walk(self.dir):
            for name in names:
                path = os.path.join(folder, name)
                if path == self.path or not os.path.isfile(path):
                    continue
                with open(path, "rb") as f:
                    data = f.read()
                assert MARK.encode() not in data, f"a key stands in {name}"

    # Asking

    def send(self, body=b"", **vary):
        """Any request; the Answer is not read yet."""
        return fcgi.ask(
            self.address, body if isinstance(body, bytes) else json.dumps(body).encode(), **vary
        )

    def get(self, path, method="GET", **vary):
        return self.send(method=method, path=path, **vary).finish()

    def open(
        self, model="m1", stream=True, headers=(), path="/v1/chat/completions", vary={}, **extra
    ):
        """A chat request whose answer is not read yet."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **extra}
        if stream:
            body["stream"] = True
        return self.send(body, headers=headers, path=path, **vary)

    def ask(self, model="m1", stream=False, timeout=20.0, **extra):
        """A chat request and its whole answer."""
        return self.open(model, stream, **extra).finish(timeout)

    # Looking

    def ctl(self, *args, check=True, timeout=10):
        """Run sluicectl; its CompletedProcess."""
        done = subprocess.run(
            [CTL, "-c", self.path, *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.env,
            stdin=subprocess.DEVNULL,
        )
        assert not DEADLY.search(done.stderr), done.stderr
        if check:
            assert (
                done.returncode == 0
            ), f"sluicectl {' '.join(args)}: {done.returncode} {done.stdout} {done.stderr}"
        return done

    def status(self):
        return json.loads(self.ctl("status", "--json").stdout)

    def channel(self, name="oa"):
        return next(c for c in self.status()["channels"] if c["name"] == name)

    def account(self, id="A1", channel="oa"):
        return next(a for a in self.channel(channel)["accounts"] if a["id"] == id)

    def accounts(self):
        """All of channel oa's accounts by id, from one status."""
        return {a["id"]: a for a in self.channel()["accounts"]}

    def cooling_for(self, id="A1"):
        """Seconds until account `id` is out of its cooldown."""
        cool = self.account(id)["cool"]
        assert cool is not None, f"{id} is not cooling"
        return parse_time(cool["until"]) - time.time()

    def in_flight(self):
        return self.status()["totals"]["in_flight"]

    def assert_clean(self, *ids):
        """No cooldown, no failure count, nothing in flight."""
        accounts = self.accounts()
        for id in ids or accounts:
            a = accounts[id]
            got = {
                k: a[k]
                for k in (
                    "state",
                    "cool",
                    "fails",
                    "consecutive_failures",
                    "soft_streak",
                    "errors",
                    "rate_limited",
                    "in_flight",
                    "breaker_until",
                    "disabled",
                    "session_dead",
                    "rate_limited_models",
                )
            }
            assert got == {
                "state": "active",
                "cool": None,
                "fails": 0,
                "consecutive_failures": 0,
                "soft_streak": 0,
                "errors": 0,
                "rate_limited": 0,
                "in_flight": 0,
                "breaker_until": None,
                "disabled": False,
                "session_dead": 0,
                "rate_limited_models": [],
            }, f"{id}: {got}"
