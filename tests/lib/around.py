"""around - a Pool whose program starts in surroundings of its own: another user, root directory, limits, descriptors.

The program is always a copy in the site's directory, so that any user may run it. `prefix` is a
command that becomes the program (setpriv, chroot, unshare); nothing in it may fork.
"""

import os
import shutil
import signal
import socket
import subprocess

import pytest

from .pool import BUILD, Pool
from .upstream import wait_until

NOBODY = 61000 + os.getpid() % 4000  # a user without a passwd entry; limits count what all its processes use
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change user, root or mounts")


def _sanitized():
    try:
        with open(os.path.join(BUILD, "sluice.fcgi"), "rb") as f:
            return b"__asan_init" in f.read()
    except FileNotFoundError:
        return False


SANITIZED = _sanitized()


# AddressSanitizer wants terabytes of addresses, /proc, threads.
without_asan = pytest.mark.skipif(SANITIZED, reason="not under AddressSanitizer")


def mounts(script):
    """A prefix that runs `script` in a mount namespace of its own and then becomes the rest."""
    return ["unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh"]


def libraries(program):
    """The shared libraries that `program` needs, as paths."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    words = [w for line in out.splitlines() for w in line.split() if w.startswith("/")]
    return sorted(set(words))


class Site(Pool):
    """`single`: one process on descriptor 0, as mod_fcgid starts it; else a pool of `workers`."""

    home = None  # on a disk: something may be mounted over /dev/shm

    def __init__(self, conf, single=False, workers=2, allow=()):
        super().__init__(conf, 0 if single else workers, "unix", None, allow, start=False)
        self.single = single
        if SANITIZED:  # as another user it may not look for leaks
            self.env["ASAN_OPTIONS"] = "detect_leaks=0"
        self.program = os.path.join(self.dir, "bin", "sluice.fcgi")
        os.mkdir(os.path.join(self.dir, "bin"))
        for name in ("sluice.fcgi", "sluicectl"):
            shutil.copy(os.path.join(BUILD, name), os.path.join(self.dir, "bin", name))

    def own(self, uid=NOBODY):
        """Give all of it to this user."""
        for folder, names, files in os.walk(self.dir):
            for name in [folder] + [os.path.join(folder, n) for n in names + files]:
                os.lchown(name, uid, uid)
        return self

    def path_of(self, *names):
        return os.path.join(self.dir, *names)

    def command(self, extra=()):
        argv = [self.program, "-c", self.path]
        if not self.single:
            argv += ["--listen", self.address, "--workers", str(self.workers)]
        return argv + list(extra)

    def _socket(self):
        listener = socket.socket(socket.AF_UNIX)
        path = self.address[5:]
        if os.path.exists(path):
            os.unlink(path)
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(64)
        return listener

    def start(self, wait=True, prefix=(), argv=None, closed=(), before=None, env=None, cwd=None):
        """`closed`: descriptors that are closed at its start; `before` runs in the child."""
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        listener = self._socket() if self.single else None

        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"} if env is None else env
        if SANITIZED:
            env = {**env, "ASAN_OPTIONS": "detect_leaks=0"}

        def child():
            if before:
                before()
            for fd in closed:
                os.close(fd)

        self.master = subprocess.Popen(
            list(prefix) + (argv or self.command()),
            stdin=listener or subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd=cwd or self.dir,
            preexec_fn=child,
        )
        os.close(log)
        if listener:
            listener.close()
        if wait:
            wait_until(self._accepts, 10, "the program accepts connections", 0.02)
            self.get("/healthz")
        return self

    def complaint(self, timeout=10, **around):
        """Start it where it cannot work; its exit status and what it said."""
        self.start(wait=False, **around)
        try:
            status = self.master.wait(timeout)
        except subprocess.TimeoutExpired:
            self.master.send_signal(signal.SIGKILL)
            self.master.wait()
            raise AssertionError(f"it went on; log: {self.log_text()[-2000:]}")
        said = self.log_text()
        os.truncate(self.log_path, 0)  # no log: what is said before there is one is plain text
        return status, said

    def cage(self):
        """A root directory with nothing but the programs, their libraries and resolv.conf; the prefix to get in."""
        for library in libraries(self.program):
            inside = self.dir + os.path.dirname(library)
            os.makedirs(inside, exist_ok=True)
            shutil.copy(library, inside)
        os.mkdir(self.path_of("etc"))
        if os.path.exists("/etc/resolv.conf"):
            shutil.copy("/etc/resolv.conf", self.path_of("etc"))
        return ["chroot", self.dir]

    def inside(self):
        """The command line as seen from inside the cage."""
        return [a.replace(self.dir + "/", "/") for a in self.command()]
