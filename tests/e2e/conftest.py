import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sites  # noqa: E402
import stage as st  # noqa: E402
import table  # noqa: E402

FIRST = ("test_90_patience", "test_50_kill")  # they take longest, whatever else runs


def pytest_configure(config):
    config.addinivalue_line("markers", "cell(name): counts for this column of the table")
    config.addinivalue_line("markers", "needs(name): skipped where sites.CANNOT has it")
    path = os.environ.get("SLUICE_TABLE")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(table.Table(path))


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items):
    """One process of xdist for all that share a stage; skips by what a set-up cannot do."""
    items.sort(key=lambda item: item.module.__name__ not in FIRST)
    for item in items:
        row, module = table.row_of(item), item.module.__name__
        shared = module == "test_90_patience" or not row
        item.add_marker(pytest.mark.xdist_group(module if shared else f"{module}-{row}"))
        if not row:
            continue
        for name in table.names(item, "cell"):
            assert name in sites.COLUMNS, f"{item.name}: no column {name}"
            item.user_properties.append(("cell", [row.partition("+")[0], name]))
        for name in table.names(item, "cell", "needs"):
            if why := sites.cannot(row, name):
                item.add_marker(pytest.mark.skip(reason=f"{row}: no {name}: {why}"))


@pytest.fixture(scope="module", params=st.KINDS)
def stage(request):
    """Each set-up, kept for all tests of a file."""
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
    yield
    if "stage" in request.fixturenames:
        s.close_curls()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure comes with what the processes wrote."""
    report = (yield).get_result()
    s = item.funcargs.get("stage") if hasattr(item, "funcargs") else None
    if report.failed and s and os.path.isdir(s.dir):
        report.sections.append(("logs of " + s.name, s.log))
