"""A conversation of twelve turns through the web server, from host to host while accounts fail: what each host
gets holds all of it (tests/scen/test_50_journey.py has it in all its ways).
"""

import json
import os
import signal
import socket
import subprocess

import packages
import pytest
import stage as st
from lib import hosts, journey
from talk import Reply


@pytest.fixture(scope="module", params=("lighttpd-spawn", "apache-proxy"))
def stage(request):
    up = st.upstream.Upstream()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = "http://127.0.0.1:%d/v1" % nobody.getsockname()[1]
        config = {**journey.sections(up, dead), "context": {"enabled": True}}
        s = st.Stage(request.param, up=up, config=config)
        yield s
        s.stop()
    up.stop()


@pytest.fixture
def rested(stage):
    """What went before is over: no account rests."""
    assert stage.ctl("account", "clear", "--all").returncode == 0
    return stage


def kill(stage):
    def act():
        pid, n = stage.pids()[0], len(stage.pids())
        os.kill(pid, signal.SIGKILL)
        st.wait_until(lambda: pid not in stage.pids() and len(stage.pids()) == n, 10, "another")

    return act


def walk(stage, send, **vary):
    j = journey.Journey(stage.up, send, kill(stage), clients=("chat", "messages"), **vary)
    j.walk(journey.PLAN)
    assert all(j.served.count(h) > 1 for h in hosts.HOSTS), [h.name for h in j.served]


@pytest.mark.cell("streams")
def test_journey(rested):
    def send(body, path, head):
        return rested.ask(path, body, {**st.bearer(), **head})

    walk(rested, send, session="direct")


class Sdk:
    """The makers' own packages, with the conversation's name in their default headers."""

    def __init__(self, url, session):
        packages.install()
        given = {"url": url, "key": st.TOKEN}
        given["headers"] = {"X-Context": "append", "X-Session-Id": session}
        self.proc = subprocess.Popen(
            ["node", os.path.join(packages.HERE, "sdk", "talk.cjs"), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NODE_PATH": os.path.join(packages.SDK, "node_modules")},
        )

    def send(self, body, path, head):
        line = json.dumps({"path": path, "body": body})
        self.proc.stdin.write(line.encode() + b"\n")
        self.proc.stdin.flush()
        told = json.loads(self.proc.stdout.readline())
        return Reply(told["status"], told["headers"], json.dumps(told["body"]).encode(), "clean")

    def close(self):
        self.proc.stdin.close()
        self.proc.stdout.close()
        self.proc.wait(10)


def test_journey_of_the_sdks(rested):
    sdk = Sdk(rested.base, "sdk")
    try:
        walk(rested, sdk.send, session="sdk", folds=True)
    finally:
        sdk.close()
