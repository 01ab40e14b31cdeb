"""Every member of a request in every wrong way, from each API to each: the answer is 200 or a 400 in
the client's shape, and what goes up is a request that a strict provider takes.
"""

import pytest

from lib import rich, wires
from lib.trio import PAIRS, Trio

pytestmark = pytest.mark.broad


@pytest.fixture(scope="module")
def trio():
    t = Trio()
    yield t
    t.close()


@pytest.mark.parametrize("client,host", PAIRS)
def test_members(trio, client, host):
    pids = trio.pool.worker_pids()
    seen = {200: 0, 400: 0}
    faults = []
    for what, body in rich.spoiled(client, model=f"m-{host}"):
        a = trio.send(client, host, body).finish()
        found, trio.faults = trio.faults, []
        faults += [(what, f) for f in found]
        if a.status not in seen:
            faults.append((what, a.out))
            continue
        seen[a.status] += 1
        if a.status == 200:
            if a.header("content-type") == "text/event-stream":
                wires.GATHER[client](a.events())
            else:
                trio.read(client, a)
            continue
        if trio.up.count() > 0 or not wires.error_of(client, a.json())[1]:
            faults.append((what, a.out))
    assert not faults, (len(faults), faults[:5])
    assert seen[200] and (seen[400] or client == host), seen
    assert trio.pool.worker_pids() == pids and trio.harmed() == []
