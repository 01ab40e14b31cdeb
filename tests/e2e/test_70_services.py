"""What starts the gateway where no web server does: systemd's units, spawn-fcgi."""

import os
import re
import shutil
import stat
import subprocess
import time

import pytest
import stage  # noqa: F401 (sets the path)
from lib.answers import chat_chunks, ok, stream
from lib.around import Site
from lib.pool import BUILD, K1, config
from lib.upstream import Upstream, wait_until

UNITS = os.path.join(stage.ROOT, "examples", "systemd")


def need(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def up():
    upstream = Upstream()
    yield upstream
    upstream.stop()


@pytest.fixture
def site(up):
    s = Site(config(up.url), workers=2)
    yield s
    s.close()


def serves(s, up):
    up.script(K1, ok(), stream(chat_chunks("a", "b")))
    assert s.ask().status == 200, s.log_text()
    assert b"[DONE]" in s.ask(stream=True).body


def installed(folder, tmp_path):
    """The shipped units, with programs that are there."""
    out = []
    for name in ("sluice.socket", "sluice.service"):
        with open(os.path.join(UNITS, folder, name)) as f:
            text = re.sub(r"(/usr/local|%h/.local)/(bin|lib/sluice)/", BUILD + "/", f.read())
        (tmp_path / name).write_text(text)
        out.append(str(tmp_path / name))
    return out


@need("systemd-analyze")
@pytest.mark.parametrize("folder", [".", "user"])
def test_units_are_well_formed(folder, tmp_path):
    argv = ["systemd-analyze", "verify", "--man=no"] + (["--user"] if folder == "user" else [])
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        argv + installed(folder, tmp_path), capture_output=True, text=True, env=env
    )
    assert (done.returncode, done.stderr) == (0, "")


@need("systemd-analyze")
def test_service_is_confined(tmp_path):
    argv = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager"]
    done = subprocess.run(
        argv + installed(".", tmp_path)[1:], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_service_waits_for_the_drain():
    """Or systemd would cut answers that the gateway lets end."""
    with open(os.path.join(UNITS, "sluice.service")) as f:
        seconds = int(re.search(r"^TimeoutStopSec=(\d+)$", f.read(), re.M)[1])
    options = subprocess.run(
        [os.path.join(BUILD, "sluicectl"), "options"], capture_output=True, text=True, check=True
    ).stdout
    drain = int(re.search(r"server\.drain_timeout\s.*?\"?(\d+)s\"?", options)[1])
    assert seconds >= drain + 10


@need("systemd-socket-activate")
def test_socket_on_standard_input(site, up):
    """As StandardInput=socket gives it; started by the first connection."""
    argv = ["systemd-socket-activate", "--inetd", "-l", site.address[5:]]
    site.start(
        wait=False, argv=argv + [site.program, "-c", site.path, "--workers", "2"]
    )
    wait_until(lambda: os.path.exists(site.address[5:]), 5, "systemd listens", 0.02)
    serves(site, up)
    assert len(site.worker_pids()) == 2
    site.stop()
    lines = [line for line in site.log_lines() if line.startswith("{")]
    with open(site.log_path, "w") as f:  # what systemd-socket-activate says is not ours
        f.write("".join(line + "\n" for line in lines))


@need("spawn-fcgi")
def test_spawn_fcgi(site, up):
    path = site.address[5:]
    argv = ["spawn-fcgi", "-s", path, "-M", "0660", "-b", "1024", "-n", "--"]
    site.start(argv=argv + [site.program, "-c", site.path, "--workers", "2"])
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    serves(site, up)
    began = time.monotonic()
    site.stop()
    assert time.monotonic() - began < 3
