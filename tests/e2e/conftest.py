import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import stage as st  # noqa: E402


@pytest.fixture(scope="module", params=st.KINDS)
def stage(request):
    """One of the four set-ups, kept for all tests of a file."""
    s = st.Stage(request.param)
    yield s
    s.stop()


@pytest.fixture(autouse=True)
def fresh(request):
    """Each test begins with an upstream that answers and remembers nothing."""
    if "stage" in request.fixturenames:
        s = request.getfixturevalue("stage")
        s.up.clear()
        s.up.default(st.answers.ok())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure comes with what the processes wrote."""
    report = (yield).get_result()
    s = item.funcargs.get("stage") if hasattr(item, "funcargs") else None
    if report.failed and s:
        report.sections.append(("logs of " + s.kind, s.log))
