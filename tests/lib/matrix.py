"""matrix - what arrives of a feature, for each API of a client on a channel of each API.

A row of the table is a pair of APIs, made by its own test; the whole is BUILD/matrix.md and stands in
README.md:

    python3 tests/lib/matrix.py    prints it, and puts it there
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build"))
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- made by make matrix -->\n", "<!-- end of matrix -->\n"
WIRES = ["chat", "messages", "responses"]
PAIRS = [(c, h) for c in WIRES for h in WIRES]


def row(client, host, cells):
    """`cells`: {feature: (plain, streamed)}; one word where both agree."""
    said = [
        plain if plain == streamed else f"plain: {plain}; stream: {streamed}"
        for plain, streamed in cells.values()
    ]
    return "| " + " | ".join([f"{client} on {host}", *said]) + " |\n"


def head(features):
    names = ["client on channel", *features]
    return "| " + " | ".join(names) + " |\n" + "| " + " | ".join("---" for _ in names) + " |\n"


def told():
    """The table that README.md has."""
    with open(README) as f:
        return f.read().partition(BEGIN)[2].partition(END)[0]


def _path(client, host):
    return os.path.join(BUILD, "matrix", f"{client}-{host}")


def write(client, host, features, line):
    os.makedirs(os.path.dirname(_path(client, host)), exist_ok=True)
    with open(_path(client, host), "w") as f:
        f.write(line)
    lines = []
    for pair in PAIRS:
        try:
            with open(_path(*pair)) as f:
                lines.append(f.read())
        except OSError:
            pass
    made = os.path.join(BUILD, "matrix.md")
    with open(f"{made}.{os.getpid()}", "w") as f:
        f.write(head(features) + "".join(lines))
    os.replace(f"{made}.{os.getpid()}", made)


def main():
    with open(os.path.join(BUILD, "matrix.md")) as f:
        made = f.read()
    with open(README) as f:
        before, _, rest = f.read().partition(BEGIN)
    with open(README, "w") as f:
        f.write(before + BEGIN + made + END + rest.partition(END)[2])
    sys.stdout.write(made)


if __name__ == "__main__":
    main()
