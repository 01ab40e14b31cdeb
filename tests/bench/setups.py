"""Phase setups: what each set-up of tests/e2e/sites.py adds, with its shipped configuration."""
import contextlib
import os
import sys
import types

import fleet
import measure
from measure import median

EVENTS, GAP_MS, STREAMS, CLIENTS, WORKERS = 25, 20, 8, 8, 16
E2E = os.path.join(fleet.HERE, '..', 'e2e')
PACED = ('-c', STREAMS, '-n', STREAMS, '-e', EVENTS, '-m', f'mock-n{EVENTS}-d{GAP_MS}', '-T', 30)


def stages(b):
    """The module that starts a set-up; it takes the programs from the folder of ours."""
    os.environ.setdefault('SLUICE_BUILD', os.path.dirname(b.sluice))
    sys.path.insert(0, E2E)
    import stage
    return stage


@contextlib.contextmanager
def on_cpu(cpu):
    """What is started meanwhile stays on that processor."""
    before = os.sched_getaffinity(0)
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def figures(b, args, port, *how):
    """Of one round: requests/s, and first event and one-way delay of paced streams, in us."""
    target = types.SimpleNamespace(port=port, headers=())
    ms = int(args.seconds * 1000)
    plain = measure.load(b, target, *how, '-c', CLIENTS, '-w', 200, '-t', ms, '-T', 30)
    paced = measure.load(b, target, *how, *PACED)
    return {'rps': plain['rps'], 'first': paced['first_us'].get('p50'),
            'delay': paced['delay_us'].get('p50'), 'late': paced['delay_us'].get('p99'),
            'flaw': measure.flaw(plain) or measure.flaw(paced)}


def one(b, args, report, mock, kind):
    """The rounds of a set-up, each beside one of the provider alone."""
    st = stages(b)
    provider = types.SimpleNamespace(url=f'http://127.0.0.1:{mock.port}/v1')
    how = ('-u', '/llm/v1/chat/completions', '-a', st.TOKEN)
    with on_cpu(b.gateway_cpu):
        stage = st.Stage(kind, WORKERS, up=provider)
    rounds = []
    try:
        measure.load(b, types.SimpleNamespace(port=stage.port, headers=()), *how, '-c', CLIENTS, '-n', CLIENTS, '-T', 30)
        for i in range(min(3, args.rounds)):
            rounds.append((figures(b, args, mock.port), figures(b, args, stage.port, *how)))
            if flaw := rounds[-1][1]['flaw']:
                report.loud(f'{kind}, round {i + 1}: {flaw}')
    finally:
        stage.stop(check=False)
    return rounds


def added(rounds, name):
    both = [(r[name], d[name]) for d, r in rounds if None not in (r[name], d[name])]
    return median([r - d for r, d in both])


def run(b, args, report):
    report.line(f'\n== set-ups, shipped files: {CLIENTS} clients for plain requests; {STREAMS} '
                f'streams of {EVENTS} events, one every {GAP_MS} ms')
    report.line(f'   {"":<18}{"req/s":>9}{"of direct":>11}   added to the first event, us'
                '   to each event, us: p50       p99')
    raw = report.raw.setdefault('setups', {})
    with fleet.fleet(b) as (targets, _):
        for kind in stages(b).KINDS:
            try:
                rounds = one(b, args, report, targets[0], kind)
            except (AssertionError, OSError) as e:
                report.skipped(kind, str(e).split('\n', maxsplit=1)[0])
                continue
            raw[kind] = rounds
            share = median([r['rps'] / d['rps'] for d, r in rounds if d['rps']])

            def cell(name, width):
                v = added(rounds, name)
                return ('-' if v is None else f'{v:,.0f}').rjust(width)
            report.line(f'   {kind:<18}{median([r["rps"] for _, r in rounds]):>9,.0f}{share:>11.4f}'
                        + cell('first', 31) + cell('delay', 26) + cell('late', 10))
