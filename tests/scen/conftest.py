"""Fixtures: `up`, a scripted upstream, and `gate`, which starts a pool in front of it and checks it
at the end.
"""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib.pool import Pool, config  # noqa: E402
from lib.upstream import Upstream  # noqa: E402


@pytest.fixture
def up():
    upstream = Upstream()
    yield upstream
    upstream.stop()


@pytest.fixture
def gate(up):
    """gate(accounts=3, workers=2, listen="unix", **sections): see lib.pool.config and Pool."""
    pools = []

    def start(
        workers=2, listen="unix", env=None, allow=(), base_url=None, conf=None, start=True, **vary
    ):
        if conf is None:
            conf = config(base_url or up.url, **vary)
        pools.append(Pool(conf, workers, listen, env, allow, start=False))
        return pools[-1].start() if start else pools[-1]

    yield start
    faults = []
    for pool in pools:
        try:
            pool.close()
        except AssertionError as e:
            faults.append(str(e))
    assert not faults, "\n".join(faults)


def pytest_collection_modifyitems(items):
    """What mostly waits comes first, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)
