"""One measurement each: a load level, streams, memory of a worker, events counted per request."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import time

import fleet

TICK_S = 1 / os.sysconf('SC_CLK_TCK')
STREAM_EVENTS = 50


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def session_cpu_s(leaders):
    """CPU time of every process in the sessions of these processes, dead children included."""
    sessions, total = {p.pid for p in leaders}, 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/stat') as f:
                fields = f.read().rpartition(')')[2].split()
            if int(fields[3]) in sessions:
                total += sum(map(int, fields[11:15]))
    return total * TICK_S


def machine_cpu_s():
    """CPU time of all programs, and the time that a hypervisor kept for itself."""
    with open('/proc/stat') as f:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, f.readline().split()[1:])
    return (user + nice + system + irq + softirq) * TICK_S, steal * TICK_S


def load(b, target, *options):
    command = [b.program('load'), '-p', str(target.port), *map(str, options)]
    for h in target.headers:
        command += ['-H', h]
    p = fleet.spawn(b, command, b.load_cpu, 'load', stdout=subprocess.PIPE)
    try:
        out, _ = p.communicate(timeout=120)
    except BaseException:
        fleet.stop([p])
        raise
    try:
        return json.loads(out)
    except ValueError:
        return {'good': 0, 'bad': 1, 'unfinished': 0, 'rps': 0, 'tok_s': 0, 'latency_us': {},
                'delay_us': {}, 'first_us': {}, 'error': f'load ended with {p.returncode}'}


def level(b, targets, target, *options):
    """A load run with the CPU that it took: of the target per answer, and of all other programs."""
    ours = [p for t in targets for p in t.processes]
    before = machine_cpu_s(), session_cpu_s(ours), session_cpu_s(target.processes)
    children, t0 = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    r = load(b, target, *options)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.monotonic() - t0
    all_s, steal_s = (x - y for x, y in zip(machine_cpu_s(), before[0]))
    ours_s = session_cpu_s(ours) - before[1]
    load_s = used.ru_utime + used.ru_stime - children.ru_utime - children.ru_stime
    r['cpu_us'] = (session_cpu_s(target.processes) - before[2]) * 1e6 / max(1, r['good'])
    r['others'] = max(0, all_s - ours_s - load_s) / wall
    r['steal'] = steal_s / wall
    return r


def flaw(r):
    """What was not right in a load run, or None."""
    if r['bad'] or r['unfinished'] or not r['good']:
        return f"{r['good']} good, {r['bad']} BAD, {r['unfinished']} unfinished: {r['error']}"
    return None


# Memory.

def children_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as f:
        return [int(x) for x in f.read().split()]


def private_kb(pid):
    with open(f'/proc/{pid}/smaps_rollup') as f:
        text = f.read()
    return sum(int(re.search(rf'^{k}:\s+(\d+)', text, re.M)[1])
               for k in ('Private_Clean', 'Private_Dirty'))


def memory(b, start, tls=False, workers=8):
    """Median private kB of a pool's workers: fresh, after 100 requests each, with a stream."""
    result = {}

    def pool(b, mock):
        provider = fleet.behind_tls(b, mock) if tls else mock
        try:
            target = start(b, provider, workers)
        except fleet.Missing:
            fleet.stop(provider.processes if tls else [])
            raise
        target.processes += provider.processes if tls else []
        return target
    with fleet.fleet(b, pool) as (targets, missing):
        if missing:
            raise fleet.Missing(missing[0])
        target = targets[1]
        master = target.processes[0].pid

        def now():
            return median([private_kb(p) for p in children_of(master)])
        # the readiness check went to one worker; the median is that of untouched ones
        time.sleep(0.5)
        result['fresh'] = now()
        result['flaw'] = flaw(load(b, target, '-c', workers * 4, '-n', workers * 120))
        time.sleep(2.5)  # what is idle for a second gives memory back
        result['idle'] = now()
        with fleet_stream(b, target, workers):
            result['stream'] = now()
    return result


@contextlib.contextmanager
def fleet_stream(b, target, count):
    """While open, `count` streams are under way."""
    p = fleet.spawn(b, [b.program('load'), '-p', str(target.port), '-c', str(count), '-n',
                        str(count), '-e', '40', '-m', 'mock-n40-d50'], b.load_cpu, 'load')
    try:
        time.sleep(1)
        yield
    finally:
        fleet.stop([p])


# Events counted per plain request, in a single process on fd 0: the difference of two runs.

def counted_run(b, prefix, command, requests):
    """Serve so many requests in one process started under a tool; ends it by SIGTERM."""
    sock = b.file(b.unique('fd0-') + '.sock')
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sock)
        listener.listen(64)
        p = fleet.spawn(b, prefix + command, b.gateway_cpu, 'counted', stdin=listener)
    target = None
    try:
        target = fleet.behind_lighttpd(b, 'x', 'single process', sock, p)
        r = load(b, target, '-c', 1, '-n', requests, '-T', 100)
        if flaw(r):
            raise fleet.Missing(flaw(r))
        os.killpg(p.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(20)
    finally:
        fleet.stop(target.processes if target else [p])


def instructions(b, command, n):
    out = b.file(b.unique('callgrind-'))
    counted_run(b, [fleet.find_program('valgrind'), '--tool=callgrind', '-q',
                    f'--callgrind-out-file={out}.%p'], command, n)
    total = 0
    for name in os.listdir(b.run):
        if name.startswith(os.path.basename(out) + '.'):
            with open(os.path.join(b.run, name), errors='replace') as f:
                found = re.search(r'^(?:totals|summary): (\d+)', f.read(), re.M)
            total += int(found[1]) if found else 0
    if total == 0:
        raise fleet.Missing('callgrind wrote no totals')
    return {'instructions': total}


def syscalls(b, command, n):
    out = b.file(b.unique('strace-'))
    counted_run(b, [fleet.find_program('strace'), '-f', '-c', '-o', out], command, n)
    counts = {}
    with open(out) as f:
        for line in f:
            row = line.split()
            if len(row) >= 5 and row[0][0].isdigit() and row[-1] != 'total':
                counts[row[-1]] = int(row[3])
    return counts


def per_request(count, b, command, n):
    """What `count` counts for one request more: (run of 2n - run of n) / n, by name."""
    one, two = count(b, command, n), count(b, command, 2 * n)
    return {k: (two[k] - one.get(k, 0)) / n for k in two}
