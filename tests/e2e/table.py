"""table - which set-up can do what, made from the outcome of the tests.

A test says by @pytest.mark.cell("streams") for which column it counts; its row is its parameter
`stage` or `kind`. A cell is "yes" if all its tests passed, "no" with the reason of sites.CANNOT; sites.BUT has exceptions.
@pytest.mark.needs("silence") only skips where sites.CANNOT has it. With SLUICE_TABLE=FILE the
table is written there, the measured delays beside it, and README.md must contain the table:

    table.py FILE    puts it there
"""

import collections
import difflib
import os
import statistics
import sys

import sites

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- made by make e2e -->\n", "<!-- end -->\n"


def row_of(item):
    params = item.callspec.params if hasattr(item, "callspec") else {}
    name = params.get("stage") or params.get("kind")
    return name if isinstance(name, str) and name.partition("+")[0] in sites.SITES else None


def names(item, *markers):
    return [name for m in markers for mark in item.iter_markers(m) for name in mark.args]


def parts():
    """README.md: what stands before the table, the table, and the rest."""
    with open(README) as f:
        before, _, rest = f.read().partition(BEGIN)
    return before, *rest.partition(END)[::2]


def put(made):
    before, _, after = parts()
    with open(README, "w") as f:
        f.write(before + BEGIN + made + END + after)


class Table:
    """The plugin. Outcomes are gathered where pytest was started, not in xdist's workers."""

    def __init__(self, path):
        self.path, self.differs = path, ""
        self.outcomes, self.delays = collections.defaultdict(list), {}

    def pytest_runtest_logreport(self, report):
        for key, value in report.user_properties:
            if key == "cell" and (report.when == "call" or report.outcome != "passed"):
                self.outcomes[tuple(value)].append(report.outcome)
            elif key == "delays" and report.when == "call":
                self.delays[tuple(value[:2])] = statistics.median(value[2])

    def cell(self, kind, column):
        got = self.outcomes.get((kind, column), [])
        why = sites.cannot(kind, column)
        if "failed" in got:
            return "fails"
        if why:
            return "no: " + why
        if "passed" not in got:
            return "not tested"
        but = sites.BUT.get(kind, {}).get(column)
        return f"yes, but {but}" if but else "yes"

    def render(self):
        rows = [("set-up", *sites.COLUMNS), ("---",) * (1 + len(sites.COLUMNS))]
        rows += [(k, *(self.cell(k, c) for c in sites.COLUMNS)) for k in sites.KINDS]
        return "".join("| " + " | ".join(row) + " |\n" for row in rows)

    def render_delays(self):
        ways = sorted({way for _, way in self.delays})
        rows = [("ms from upstream to client", *ways), ("---",) * (1 + len(ways))]
        for name in dict.fromkeys(n for n, _ in self.delays):
            got = [self.delays.get((name, way)) for way in ways]
            rows.append((name, *("-" if ms is None else f"{ms:.1f}" for ms in got)))
        return "".join("| " + " | ".join(row) + " |\n" for row in rows)

    def pytest_sessionfinish(self, session):
        made = self.render()
        for path, text in ((self.path, made), (self.path + ".delays", self.render_delays())):
            with open(path, "w") as f:
                f.write(text)
        told = parts()[1]
        if told != made:
            diff = difflib.unified_diff(told.splitlines(), made.splitlines(), "README.md", "made")
            self.differs = "\n".join(diff)
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        if self.differs:
            terminalreporter.section("the table of set-ups in README.md differs")
            terminalreporter.write_line(f"{self.differs}\npython3 tests/e2e/table.py {self.path}")


if __name__ == "__main__":
    with open(sys.argv[1]) as made_by_e2e:
        put(made_by_e2e.read())
