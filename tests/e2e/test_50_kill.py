"""Workers killed under load; SECONDS sets how long."""

import os

import kill60
import pytest


@pytest.mark.parametrize(
    "kind,share",
    [
        ("lighttpd-external", 1.0),
        ("lighttpd-spawn", 0.1),
        ("apache-proxy", 0.1),
        ("apache-fcgid", 0.1),
    ],
)
def test_killed_workers(kind, share):
    kill60.run(max(5, share * float(os.environ.get("SECONDS", 60))), kind)
