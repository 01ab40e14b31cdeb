"""Phase tokens: exact counts of 100 kB of text, beside npm's gpt-tokenizer and tiktoken; what processes share."""
import json
import os
import random
import re
import subprocess
import sys

import fleet

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib import corpus  # noqa: E402

PACKAGES = {'gpt-tokenizer': '4.0.0', 'tiktoken': '1.0.22'}
BYTES = 100_000
TIMES = 50
ENCODINGS = ('o200k', 'cl100k')


def packages_dir(b):
    folder = os.path.abspath(os.path.join(b.build, 'tokenizers'))
    modules = os.path.join(folder, 'node_modules')
    if all(os.path.isdir(os.path.join(modules, name)) for name in PACKAGES):
        return modules
    fleet.find_program('node')
    os.makedirs(folder, exist_ok=True)
    wanted = [f'{name}@{version}' for name, version in PACKAGES.items()]
    try:
        subprocess.run([fleet.find_program('npm'), 'install', '--no-package-lock', '--no-audit', '--no-fund',
                        '--ignore-scripts', *wanted], cwd=folder, check=True, timeout=180, capture_output=True)
    except (subprocess.SubprocessError, OSError) as e:
        raise fleet.Missing(f'npm could not install them ({e})') from e
    return modules


def clauses(seed):
    """Chinese without end: the first half of one clause and the second of another, so that few come twice."""
    chance = random.Random(seed)
    parts = [c for kind in ('Chinese', 'stories') for t in corpus.texts(kind) for c in re.findall(r'[^，。；：、？！\n]+[，。；：、？！\n]+', t)]
    while True:
        a, b = chance.choice(parts), chance.choice(parts)
        yield a[:len(a) // 2] + b[len(b) // 2:]


def cut(pieces, size=BYTES):
    """The first so many bytes, and as many more, for what is to be warm before."""
    text = bytearray()
    for piece in pieces:
        text += piece.encode()
        if len(text) > 2 * size:
            break
    return [bytes(part).decode(errors='ignore') for part in (text[:size], text[size:2 * size])]


def samples():
    code = corpus.texts('code')
    random.Random(1).shuffle(code)
    return {'English': cut(corpus.texts('English')), 'Chinese': cut(clauses(1)), 'source': cut(code)}


def packed(b, name, text):
    """As tokens.c reads it."""
    data = text.encode()
    with open(b.file(name), 'wb') as f:
        f.write(b'%d\n%s' % (len(data), data))
    return b.file(name)


def ours(b, encoding, text, before):
    program = [b.program('tokens'), os.path.join(b.build, 'sluice.tokens')]
    done = subprocess.run([*program, encoding, packed(b, 'text', text), str(TIMES), packed(b, 'before', before)],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def theirs(b, modules, text, before):
    files = [b.file('before.txt', before), b.file('text.txt', text)]
    done = subprocess.run(['node', os.path.join(HERE, 'tokens.cjs'), *files], check=True, capture_output=True,
                          text=True, env={**os.environ, 'NODE_PATH': modules})
    return json.loads(done.stdout)


def speed(report, kind, encoding, rows):
    size = BYTES / 1e6
    gpt = rows.get('gpt-tokenizer')
    for name, row in rows.items():
        ratio = f"  {gpt['first_ms'] / row['first_ms']:5.1f} x new, {gpt['ms'] / row['ms']:4.1f} x again" if (
            gpt and name == 'sluice') else ''
        report.line(f"   {kind:<8} {encoding:<7} {name:<14} {row['tokens']:>6} tokens  new {row['first_ms']:7.2f} ms "
                    f"{size / row['first_ms'] * 1000:6.1f} MB/s  again {row['ms']:7.2f} ms "
                    f"{size / row['ms'] * 1000:6.1f} MB/s{ratio}")
        if row['tokens'] != rows['sluice']['tokens']:
            report.loud(f'{kind}, {encoding}: {name} counts otherwise')


def mapping(pid, name):
    """{field: kB} of what a process has mapped of a file."""
    sums, inside = {}, False
    with open(f'/proc/{pid}/smaps') as f:
        for line in f:
            if re.match('[0-9a-f]+-', line):
                inside = line.rstrip().endswith(name)
            elif inside and line.rstrip().endswith('kB'):
                field, value = line.split()[:2]
                sums[field[:-1]] = sums.get(field[:-1], 0) + int(value)
    return sums


def shared(b, report, text):
    """Two processes that have counted: the tables are there once."""
    command = [b.program('tokens'), os.path.join(b.build, 'sluice.tokens'), 'o200k', packed(b, 'text', text), 'hold']
    pair = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for p in pair:
            p.stdout.readline()
        rows = [mapping(p.pid, 'sluice.tokens') for p in pair]
    finally:
        for p in pair:
            p.stdin.close()
            p.wait(10)
            p.stdout.close()
    private = [r['Private_Clean'] + r['Private_Dirty'] for r in rows]
    report.raw['tokens']['shared'] = rows
    report.line('   tables in two processes that counted: ' + '; '.join(
        f"{r['Rss']} kB there, {p} kB private, share {r['Pss']} kB" for r, p in zip(rows, private)))


def run(b, args, report):
    report.line(f'\n== tokens of {BYTES // 1000} kB: a new text (warm by another one), and the same again')
    raw = report.raw.setdefault('tokens', {})
    if not os.path.exists(os.path.join(b.build, 'sluice.tokens')):
        report.skipped('tokens', 'there are no tables: make tokenizer')
        return
    try:
        modules = packages_dir(b)
    except fleet.Missing as e:
        report.skipped('gpt-tokenizer and tiktoken', e)
        modules = None
    texts = samples()
    for kind, (text, before) in texts.items():
        others = theirs(b, modules, text, before) if modules else {}
        for encoding in ENCODINGS:
            rows = {'sluice': ours(b, encoding, text, before), **others.get(encoding, {})}
            raw.setdefault(kind, {})[encoding] = rows
            speed(report, kind, encoding, rows)
    shared(b, report, texts['English'][0])
