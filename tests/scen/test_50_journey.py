"""A conversation of twelve turns over all APIs, while accounts fail (SPEC 13): each request that any host gets
holds all of it, in the host's own words.
"""

import json
import os
import random
import signal
import socket

import pytest
from lib import hosts, journey, wander
from lib.pool import config
from lib.upstream import wait_until

QUIET = ["worker", "killed", "ended", "connect"]
CHAT, MESSAGES, BOTH = ("chat",), ("messages",), ("chat", "messages", "messages")


@pytest.fixture
def set_out(gate, up):
    """A journey through a pool of its own."""

    def start(kind=journey.Journey, window=None, context={}, more={}, **vary):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            dead = "http://127.0.0.1:%d/v1" % nobody.getsockname()[1]
        conf = config(up.url, context={"enabled": True, **context}, **more)
        conf.update(journey.sections(up, dead, window))
        g = gate(conf=conf, allow=QUIET)

        def kill():
            pid = g.worker_pids()[0]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: len(set(g.worker_pids()) - {pid}) == 2, 5, "another worker")

        def send(body, path, head):
            return g.send(body, path=path, headers=head).finish()

        j = kind(up, send, kill, **vary)
        j.pool = g
        return j

    return start


def kept(j):
    """What is kept is all that was said, whoever was sent how much of it."""
    doc = json.loads(j.pool.ctl("context", "export", "--id", j.session).stdout)
    got = [hosts.kept(t["role"], p) for t in doc["turns"] for p in t["parts"]]
    assert got == [hosts.told(i) for i in j.said]


WAYS = [(CHAT, 0), (CHAT, 1), (MESSAGES, 2), (MESSAGES, 0), (BOTH, 1), (BOTH, 2)]


@pytest.mark.parametrize("clients,rotation", WAYS, ids=[f"{'+'.join(c)}-{r}" for c, r in WAYS])
def test_appended(set_out, clients, rotation):
    j = set_out(clients=clients, rotation=rotation, think=rotation > 0)
    j.walk(journey.PLAN)
    assert all(j.served.count(h) > 1 for h in hosts.HOSTS), [h.name for h in j.served]
    kept(j)


def test_with_responses(set_out):
    """Where OpenAI is asked by its other API, too."""
    of = (hosts.RESPONSES, *hosts.HOSTS)
    j = set_out(clients=BOTH, think=True, of=of)
    j.walk(journey.PLAN)
    assert set(of) <= set(j.served), [h.name for h in j.served]
    kept(j)


@pytest.mark.parametrize("clients", [("run",), ("run", *BOTH)], ids="+".join)
def test_run(set_out, clients):
    """/v1/run knows no tools. It goes on with what others append to, and they with what it adds."""
    j = set_out(clients=clients)
    j.walk(journey.without_tools(journey.PLAN), tools=False)
    kept(j)


@pytest.mark.parametrize("rotation", range(3))
def test_previous_response_id(set_out, rotation):
    set_out(clients=("responses",), rotation=rotation, think=rotation > 0).walk(journey.PLAN)


@pytest.mark.parametrize(
    "trim,clients,rotation",
    [("dynamic", CHAT, 1), ("dynamic", BOTH, 2), ("rounds", MESSAGES, 0), ("summary", BOTH, 1)],
)
def test_trimmed(set_out, trim, clients, rotation):
    """Through windows too small for it: pairs are never parted, and what is told of it is true."""
    j = set_out(
        window={"context_window": 1000, "max_output": 200},
        context={"trim": trim, "rounds": 3, "summary_model": "sum"},
        clients=clients,
        rotation=rotation,
        trims=True,
    )
    j.walk(journey.longer(journey.PLAN))
    assert all(j.trimmed[7:]), j.trimmed
    kept(j)


@pytest.mark.parametrize("seed", range(3))
def test_wandering(set_out, seed):
    j = set_out(
        lambda *a, **vary: wander.Wanderer(seed, *a, **vary), more=wander.PATIENT, clients=BOTH
    )
    j.walk(wander.plan(random.Random(seed)))
    kept(j)
