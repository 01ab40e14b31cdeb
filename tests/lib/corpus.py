"""corpus - texts to count tokens of: what lies in this tree, and what chance makes of many scripts."""

import glob
import os
import random

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = {
    "English": ["*.md", "*/README.md", "man/*", "tests/*/README.md"],
    "Chinese": ["tests/data/texts/zh-*.txt"],
    "stories": ["tests/data/texts/story-*.txt"],
    "code": ["fcgi_app/*.[ch]", "fcgi_app/*/*.[ch]", "store/*.[ch]", "tests/*/*.py"],
}
BLANKS = [0x9, 0xA, 0xB, 0xC, 0xD, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
BLANKS += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]  # all of Unicode's White_Space
ALMOST = [0x180E, 0x200B, 0x2060, 0xFEFF, 0x1C, 0x1F, 0x7F, 0x17F, 0x212A]  # none of them
EDGES = [0x0, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10FFFF]  # of UTF-8 and UTF-16
SCRIPTS = [(0x20, 0x7E), (0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0xA0, 0x24F), (0x370, 0x3FF)]
SCRIPTS += [(0x400, 0x52F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F)]
SCRIPTS += [(0x1100, 0x11FF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)]
SCRIPTS += [(0x300, 0x36F), (0x1E00, 0x1EFF), (0x1F300, 0x1FAFF), (0x2000, 0x2FFF)]
SCRIPTS += [(0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF), (0x31350, 0x323AF)]
WORDS = ["'s", "'T", "'re", "'VE", "'lL", "'d", "'M", "'", "\r\n", "\n\n", "//", "Ⅷ", "ǅ", "ʰ", "½"]
WORDS += ["<|endoftext|>", "👨‍👩‍👧", "🇨🇳", "e\u0301", "...", "    ", "\t", "/", "{}", '":"', "http://"]


def read(pattern):
    for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
        with open(path, encoding="utf-8") as f:
            yield f.read()


def texts(kind):
    """Whole files."""
    return [t for pattern in KINDS[kind] for t in read(pattern)]


def chunks(kind, size):
    """Parts of about so many characters, cut at lines."""
    out = []
    for text in texts(kind):
        part = ""
        for line in text.splitlines(keepends=True):
            part += line
            if len(part) >= size:
                out.append(part)
                part = ""
    return out


def found(chance, n):
    """Pieces of files, cut anywhere."""
    files = [t for kind in KINDS for t in texts(kind)]
    for _ in range(n):
        text = chance.choice(files)
        at = chance.randrange(len(text))
        yield text[at : at + chance.choice((1, 5, 20, 80, 200))]


def _atom(chance, of):
    what = chance.choice(of)
    if isinstance(what, tuple):
        return chr(chance.randint(*what))
    return chr(what) if isinstance(what, int) else what


def made(chance, n):
    """A few scripts mixed, in runs short and long."""
    every = SCRIPTS * 2 + BLANKS + ALMOST + EDGES + WORDS
    for _ in range(n):
        of = chance.sample(every, chance.randint(1, 8))
        text = ""
        for _ in range(chance.choice((1, 2, 4, 8, 16))):
            times = chance.choice((1, 1, 1, 2, 3, 9))
            atom = _atom(chance, of)
            text += atom * times if chance.random() < 0.5 else atom
            text += "".join(_atom(chance, of) for _ in range(times))
        yield text


def runs(chance):
    """One or two signs again and again: long pieces."""
    for atom in ["a", "A", "é", "À", "你", " ", "\n", "\u3000", "=", "-_", "0", "😀", "\u0301", "xY", "的 "]:
        for n in (127, 128, 129, 255, 256, 257, 300, 1200):
            yield atom * n
            yield chance.choice(WORDS) + atom * n + chance.choice(WORDS)


def mixed(seed, n):
    """About n texts, the same for the same seed."""
    chance = random.Random(seed)
    lines = [chr(c) * k + "x" + chr(c) + "." for c in BLANKS + ALMOST for k in range(4)]
    return [*lines, *runs(chance), *found(chance, n // 3), *made(chance, n - n // 3)]
