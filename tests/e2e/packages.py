"""packages - npm packages below build/, installed once; afterwards nothing asks the network.

The versions are those that run on node 20, each with its neighbours.
"""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import pytest
import stage as st

SDK = os.path.join(st.BUILD, "sdk")
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {
    "openai": "6.49.0",
    "@anthropic-ai/sdk": "1.14.0",
    "ai": "6.0.326",
    "@ai-sdk/openai": "3.0.141",
    "@ai-sdk/openai-compatible": "2.0.92",
    "@ai-sdk/anthropic": "3.0.140",
    "@langchain/core": "1.4.0",
    "@langchain/openai": "1.5.8",
    "@langchain/anthropic": "1.5.11",
    "@copilotkit/aimock": "1.43.0",
}


def _missing(packages, folder):
    for name, version in packages.items():
        try:
            with open(os.path.join(folder, "node_modules", name, "package.json")) as f:
                if json.load(f)["version"] == version:
                    continue
        except (OSError, ValueError):
            pass
        yield f"{name}@{version}"


def install(packages=PACKAGES, folder=SDK, seconds=240):
    """Skips the test where they cannot be had."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may run tests
        if not list(_missing(packages, folder)):
            return
        options = ["--no-package-lock", "--no-audit", "--no-fund"]
        done = subprocess.run(
            ["npm", "install", *options, *[f"{n}@{v}" for n, v in packages.items()]],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if done.returncode:
            pytest.skip("npm cannot install: " + done.stderr[-300:])


class Node:
    """A script of sdk/, which takes a second to load its packages and so stays: one line in, one line out."""

    def __init__(self, script, modules):
        self.said, self.errors = b"", tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["node", os.path.join(HERE, "sdk", script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "NODE_PATH": os.path.join(modules, "node_modules")},
        )

    def ask(self, given, timeout):
        self.process.stdin.write(json.dumps(given).encode() + b"\n")
        self.process.stdin.flush()
        end = time.monotonic() + timeout
        while b"\n" not in self.said:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.process.stdout], [], [], left)[0], "node is silent"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            assert data, self.complaint()
            self.said += data
        line, _, self.said = self.said.partition(b"\n")
        return json.loads(line)

    def complaint(self):
        self.process.wait(10)
        self.errors.seek(0)
        return f"node ended with {self.process.returncode}: {self.errors.read().decode()}"

    def end(self):
        self.process.kill()
        self.process.wait(10)


_nodes = {}  # by script; they end with their input, when this process does


def node(script, given, timeout=120, modules=SDK):
    """What the script says to `given`, both as JSON; its packages are in `modules`."""
    if script not in _nodes:
        _nodes[script] = Node(script, modules)
    try:
        return _nodes[script].ask(given, timeout)
    except BaseException:
        _nodes.pop(script).end()
        raise


def aimock(port, fixtures, folder=SDK):
    """@copilotkit/aimock as the provider on `port`, answering already."""
    proc = subprocess.Popen(
        [
            "setpriv",
            "--pdeathsig",
            "TERM",
            "node",
            folder + "/node_modules/@copilotkit/aimock/dist/cli.js",
        ]
        + ["-p", str(port), "-f", fixtures, "--log-level", "silent", "--latency", "1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    st.wait_until(lambda: proc.poll() is not None or st.answers_at(port), 20, "aimock")
    assert proc.poll() is None, f"aimock ended with {proc.returncode}"
    return proc
