#!/usr/bin/env python3
"""Measure sluice beside what it is compared with, in one run, on loopback; see README.md.

Prints numbers and does not judge them. Status 0: everything ran; 1: something could not run.
"""
import argparse
import functools
import json
import os
import signal
import sys
import time

import cold
import fleet
import measure
import setups
import tokens
from measure import median

LEVELS = (1, 16, 64)
PLAIN_WORKERS = 16
STREAMS = 64
GAP_MS = 20
LIMIT_S = 600
DISTURBED = 0.25  # processors used by other programs, above which a run is repeated
RATIOS = (('d', 'c', '>= 0.80 at 16 and 64'), ('d', 'e', '>= 6'), ('d', 'b', ''),
          ('c', 'b', ''), ('c', 'e', ''))
PHASES = ('plain', 'streams', 'memory', 'counts', 'setups', 'cold', 'burst', 'tokens')


class Report:
    """What is printed, what was wrong, and the raw numbers."""

    def __init__(self):
        self.raw = {}
        self.failed = False

    def line(self, text=''):
        print(text, flush=True)

    def loud(self, text):
        self.line(f'!! {text}')

    def failure(self, text):
        self.loud(f'COULD NOT RUN: {text}')
        self.failed = True

    def skipped(self, name, why):
        self.line(f'-- skipped: {name}: {why}')


def number(v, form='.0f', width=8):
    return (format(v, form) if v is not None else '-').rjust(width)


def starters(workers):
    return {'b': fleet.start_proxy,
            'c': functools.partial(fleet.start_forward, workers=workers),
            'd': functools.partial(fleet.start_sluice, workers=workers),
            'e': fleet.start_portkey}


def chosen(b, args, report, workers):
    """The starters of this run; what a run can do without is left out with a message."""
    wanted = {k: s for k, s in starters(workers).items() if k in args.targets}
    if 'd' in wanted and not b.has_sluice:
        del wanted['d']
    if 'e' in wanted:
        try:
            fleet.portkey_dir(b)
        except fleet.Missing as e:
            report.skipped('Portkey gateway', e)
            del wanted['e']
            args.targets = args.targets.replace('e', '')
    return list(wanted.values())


def rounds(b, args, report, targets, cases):
    """Each case on each target, in turn, args.rounds times: {case: {key: [result, ...]}}.

    Runs that other programs disturbed are repeated, in all at most half as many as were asked for.
    """
    results = {name: {t.key: [] for t in targets} for name in cases}
    repeats = args.rounds * len(cases) * len(targets) // 2
    for i in range(args.rounds):
        for name, options in cases.items():
            for t in targets:
                r = measure.level(b, targets, t, *options)
                while r['others'] > DISTURBED and repeats > 0:
                    repeats -= 1
                    r = min(r, measure.level(b, targets, t, *options), key=lambda x: x['others'])
                if measure.flaw(r):
                    report.loud(f'{t.label}, {name}, round {i + 1}: {measure.flaw(r)}')
                results[name][t.key].append(r)
    return results


def value(results, case, key, *path):
    """The median over the rounds of one number in the results."""
    def dig(r):
        for p in path:
            r = r.get(p)
            if r is None:
                return None
        return r
    return median([dig(r) for r in results[case].get(key, [])])


def print_conditions(report, mock, results):
    """How far the numbers can be trusted."""
    runs = [r for by_key in results.values() for rs in by_key.values() for r in rs]
    seen = fleet.provider_counts(mock.port)
    bad = sum(1 for r in runs if measure.flaw(r))
    report.line(f"   {sum(r['good'] for r in runs)} answers were 200 and complete, {bad} of {len(runs)} "
                f"runs had others; the provider saw {seen['aborted']} cut off")
    report.line('   of a processor, other programs used '
                f"{median([r['others'] for r in runs]):.2f} meanwhile (most "
                f"{max(r['others'] for r in runs):.2f}), the hypervisor "
                f"{median([r['steal'] for r in runs]):.2f}")


def plain(b, args, report):
    """Requests per second, median latency, the part of it above (a), CPU of the gateway."""
    report.line(f'\n== plain requests: median of {args.rounds} rounds of {args.seconds:.1f} s, '
                f'{PLAIN_WORKERS} workers')
    ms = int(args.seconds * 1000)
    cases = {f'{n} at once': ('-c', n, '-w', 250, '-t', ms, '-T', 30) for n in LEVELS}
    with fleet.fleet(b, *chosen(b, args, report, PLAIN_WORKERS)) as (targets, missing):
        for m in missing:
            report.failure(m)
        for t in targets[1:]:
            measure.load(b, t, '-c', 16, '-t', 700, '-T', 30)
        results = rounds(b, args, report, targets, cases)
        print_conditions(report, targets[0], results)
    report.raw['plain'] = results
    report.line('\n   ' + ' ' * 23 + ''.join(case.center(33) for case in cases).rstrip())
    report.line('   ' + ' ' * 23 + ('   req/s  p50 us   added  cpu us ' * len(LEVELS)).rstrip())
    for t in targets:
        row = ''
        for case in cases:
            p50 = value(results, case, t.key, 'latency_us', 'p50')
            direct = value(results, case, 'a', 'latency_us', 'p50')
            added = None if t.key == 'a' or p50 is None or direct is None else p50 - direct
            row += (number(value(results, case, t.key, 'rps')) + number(p50) + number(added)
                    + number(value(results, case, t.key, 'cpu_us'), '.1f') + ' ')
        report.line(f'   {t.key} {t.label:<21}{row}')
    print_ratios(report, results, cases, {t.key for t in targets})


def print_ratios(report, results, cases, keys):
    pairs_here = [r for r in RATIOS if {r[0], r[1]} <= keys]
    if not pairs_here:
        return
    report.line('\n   ratio of req/s, round by round: median (least-most)')
    report.line('      ' + ''.join(case.rjust(23) for case in cases) + '   wanted')
    for over, under, wanted in pairs_here:
        row = ''.join(ratio(results[case][over], results[case][under], 'rps') for case in cases)
        report.line(f'   {over}/{under}{row}   {wanted}')
    report.line('   the same by CPU per request, which other programs disturb less')
    for over, under, _ in pairs_here:
        row = ''.join(ratio(results[case][under], results[case][over], 'cpu_us') for case in cases)
        report.line(f'   {over}/{under}{row}')


def ratio(over, under, name):
    by_round = [x[name] / y[name] for x, y in zip(over, under) if y[name] > 0]
    if not by_round:
        return '-'.rjust(23)
    return f'{median(by_round):.2f} ({min(by_round):.2f}-{max(by_round):.2f})'.rjust(23)


def streams(b, args, report):
    """Events per second at full speed, and the delay of paced ones."""
    events = measure.STREAM_EVENTS
    report.line(f'\n== streams: {STREAMS} at once of {events} events, {STREAMS} workers')
    ms = int(args.seconds * 1000)
    common = ('-c', STREAMS, '-e', events, '-T', 30)
    cases = {'full speed': (*common, '-t', ms, '-m', f'mock-n{events}'),
             'paced': (*common, '-n', STREAMS, '-m', f'mock-n{events}-d{GAP_MS}')}
    with fleet.fleet(b, *chosen(b, args, report, STREAMS)) as (targets, missing):
        for m in missing:
            report.failure(m)
        for t in targets[1:]:
            measure.load(b, t, *common, '-t', 300, '-m', f'mock-n{events}')
        results = rounds(b, args, report, targets, cases)
        print_conditions(report, targets[0], results)
    report.raw['streams'] = results
    report.line(f'\n   {"":<23}full speed: {"tokens/s":>9} {"cpu us/stream":>14}   every {GAP_MS} ms: '
                f'{"first us":>8} {"delay p50 us":>13} {"p99 us":>8} {"cpu us/event":>13}')
    for t in targets:
        def v(case, *path):
            return value(results, case, t.key, *path)
        cpu = v('paced', 'cpu_us')
        report.line(f'   {t.key} {t.label:<21}' + number(v('full speed', 'tok_s'), width=21)
                    + number(v('full speed', 'cpu_us'), width=15)
                    + number(v('paced', 'first_us', 'p50'), width=25)
                    + number(v('paced', 'delay_us', 'p50'), width=14)
                    + number(v('paced', 'delay_us', 'p99'), width=9)
                    + number(None if cpu is None else cpu / events, '.1f', 14))


def memory(b, args, report):
    """Private memory of a worker."""
    report.line('\n== private memory of a worker, kB (Private_Clean + Private_Dirty, median of 8 workers)')
    report.line(f'   {"":<23}{"fresh":>8}{"idle after 100":>16}{"stream in flight":>18}'
                '   wanted of d: 100, 400, over TLS 600')
    for key, label, start, tls in (('c', 'bare forwarder', fleet.start_forward, False),
                                   ('d', 'sluice', fleet.start_sluice, False),
                                   ('d', 'sluice, provider by TLS', fleet.start_sluice, True)):
        if key not in args.targets or (key == 'd' and not b.has_sluice):
            continue
        try:
            m = measure.memory(b, start, tls)
        except PermissionError:
            report.skipped(f'memory of {label}', 'its /proc files can be read by root only')
            continue
        except (fleet.Missing, OSError) as e:
            report.failure(f'memory of {label}: {e}')
            continue
        report.raw.setdefault('memory', {})[key + ('-tls' if tls else '')] = m
        if m['flaw']:
            report.loud(f"{label}, memory: {m['flaw']}")
        report.line(f'   {key} {label:<21}' + number(m['fresh']) + number(m['idle'], width=16)
                    + number(m['stream'], width=18))


def counts(b, args, report):
    """Instructions and system calls per plain request, of one process on fd 0."""
    report.line(f'\n== per plain request of one process on fd 0 (run of {2 * args.count} - run of {args.count})')
    raw = report.raw.setdefault('counts', {})
    with fleet.fleet(b) as (targets, _):
        commands = {'c': ('bare forwarder', fleet.forward_command)}
        if b.has_sluice:
            commands['d'] = ('sluice', fleet.sluice_command)
        for key, (label, command) in commands.items():
            if key not in args.targets:
                continue
            for name, count in (('instructions', measure.instructions),
                                ('syscalls', measure.syscalls)):
                try:
                    made = measure.per_request(count, b, command(b, targets[0]), args.count)
                except (fleet.Missing, OSError) as e:
                    report.skipped(f'{name} of {label}', e)
                    continue
                raw.setdefault(key, {})[name] = made
                parts = sorted(((v, k) for k, v in made.items() if v >= 0.05), reverse=True)
                detail = ', '.join(f'{k} {v:.1f}' for v, k in parts) if name == 'syscalls' else ''
                report.line(f'   {key} {label:<16}{name:<13}{sum(made.values()):>12,.1f}  {detail}')


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    p.add_argument('--quick', action='store_true', help='about a minute instead of about four')
    p.add_argument('--rounds', type=int, help='rounds of each level (5; quick: 2)')
    p.add_argument('--seconds', type=float, help='measured time of a level (1.0; quick: 0.5)')
    p.add_argument('--count', type=int, help='requests for counting (150; quick: 40)')
    p.add_argument('--targets', default='abcde', help='letters of the targets (abcde)')
    p.add_argument('--phases', default=','.join(PHASES), help=f'of {",".join(PHASES)}')
    p.add_argument('--build', default='build', help='folder for compiled programs (build)')
    p.add_argument('--sluice', help='the program to measure (BUILD/sluice.fcgi)')
    p.add_argument('--no-pin', action='store_true',
                   help='let the scheduler place everything, not the gateway on one processor')
    p.add_argument('--keep', action='store_true', help='keep logs and configurations')
    p.add_argument('--json', help='all numbers go to this file (BUILD/bench/results.json)')
    a = p.parse_args()
    a.rounds = a.rounds or (2 if a.quick else 5)
    a.seconds = a.seconds or (0.5 if a.quick else 1.0)
    a.count = a.count or (40 if a.quick else 150)
    a.phases = [x for x in a.phases.split(',') if x]
    if set(a.phases) - set(PHASES):
        p.error(f'--phases: {",".join(PHASES)}')
    return a


def out_of_time(*_):
    raise TimeoutError(f'the run was ended after {LIMIT_S} s')


def main():
    args, report = options(), Report()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(LIMIT_S)
    b = fleet.Bench(os.path.abspath(args.build),
                    os.path.abspath(args.sluice or os.path.join(args.build, 'sluice.fcgi')))
    cpus = sorted(os.sched_getaffinity(0))
    if not args.no_pin and len(cpus) > 1:
        b.load_cpu, b.gateway_cpu = cpus[0], cpus[1]
    started = time.monotonic()
    fleet.compile_programs(b)
    report.line('sluice bench, ' + time.strftime('%Y-%m-%d %H:%M') + f', {len(cpus)} processors, ' + (
        'not pinned' if b.load_cpu is None else 'provider and load on one, the gateway on another'))
    if 'd' in args.targets and not b.has_sluice:
        report.failure(f'{b.sluice} is not built: no line d')
    try:
        with fleet.run_folder(b, args.keep):
            for phase in args.phases:
                {'plain': plain, 'streams': streams, 'memory': memory, 'counts': counts,
                 'setups': setups.run, 'cold': cold.run, 'burst': cold.burst,
                 'tokens': tokens.run}[phase](b, args, report)
    except (fleet.Missing, TimeoutError) as e:
        report.failure(e)
    report.line(f'\n{time.monotonic() - started:.0f} s')
    with open(args.json or os.path.join(b.build, 'bench', 'results.json'), 'w') as f:
        json.dump(report.raw, f)
    return 1 if report.failed else 0


if __name__ == '__main__':
    sys.exit(main())
