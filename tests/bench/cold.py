"""Phases cold and burst: one process for each request, and many streams at once at a pool without work."""
import os
import subprocess
import time

import fleet
import measure
from measure import median

LIBS = ('-lfcgi', '-lcurl', '-ljson-c', '-llmdb', '-lssl', '-lcrypto', '-lpcre2-8')
BURST = 64
POOLS = (('started: 64 workers', 64), ('as many as needed', None))


def trivial(b):
    """A program that does nothing, linked as ours is."""
    out, source = b.program('trivial'), b.file('trivial.c', 'int main(void) { return 0; }\n')
    subprocess.run([os.environ.get('CC', 'cc'), '-O2', '-fPIE', '-pie', '-Wl,-z,relro', '-Wl,-z,now',
                    '-Wl,--no-as-needed', '-o', out, source, *LIBS], check=True)
    return out


def spawned(command, env, body, b):
    """(CPU seconds, wall seconds, output) of one process."""
    with open(body, 'rb') as stdin, open(b.file('cold.out'), 'w+b') as out:
        t0 = time.monotonic()
        p = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(p.pid, 0)
        wall = time.monotonic() - t0
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return used.ru_utime + used.ru_stime, wall, out.read()


def run(b, args, report):
    """CPU time of one plain CGI request beyond what loading the libraries takes."""
    report.line(f'\n== plain CGI: one process for a request, {args.count} in turn')
    if not b.has_sluice:
        return
    with fleet.fleet(b) as (targets, _):
        conf = fleet.sluice_command(b, targets[0])[-1]
        body = b.file('cold.body', fleet.BODY)
        env = {'PATH': os.environ['PATH'], 'SLUICE_CONFIG': conf, 'GATEWAY_INTERFACE': 'CGI/1.1',
               'REQUEST_METHOD': 'POST', 'SCRIPT_NAME': '/llm', 'PATH_INFO': '/v1/chat/completions',
               'REQUEST_URI': '/llm/v1/chat/completions', 'SERVER_PROTOCOL': 'HTTP/1.1',
               'CONTENT_TYPE': 'application/json', 'CONTENT_LENGTH': str(len(fleet.BODY))}
        nothing, ours = [trivial(b)], [b.sluice]
        if b'"choices"' not in spawned(ours, env, body, b)[2]:
            report.failure('plain CGI: no answer')
            return
        rows = [(spawned(nothing, env, body, b), spawned(ours, env, body, b))
                for _ in range(args.count)]
    if any(b'"choices"' not in r[1][2] for r in rows):
        report.loud('plain CGI: a request got no answer')
    load_ms, cpu_ms = (median([r[i][0] for r in rows]) * 1000 for i in (0, 1))
    own_ms = median([r[1][0] - r[0][0] for r in rows]) * 1000
    rps = 1 / median([r[1][1] for r in rows])
    report.raw['cold'] = {'load_ms': load_ms, 'cpu_ms': cpu_ms, 'own_ms': own_ms, 'rps': rps}
    report.line(f'   CPU: {cpu_ms:.2f} ms, of it loading the libraries {load_ms:.2f}, own '
                f'{own_ms:.2f} (wanted: at most 2); {rps:.0f} requests/s one after the other')


def burst(b, args, report):
    """The first event of many streams that come at once, to a pool that has just been started."""
    report.line(f'\n== burst: {BURST} streams at once at a fresh pool, ms until the first event')
    report.line(f'   {"":<23}{"p50":>8}{"p99":>8}{"workers then":>15}')
    raw = report.raw.setdefault('burst', {})
    for label, workers in POOLS:
        rows = []
        for _ in range(min(3, args.rounds)):
            start = (lambda b, mock, w=workers: fleet.start_sluice(b, mock, w))
            with fleet.fleet(b, start) as (targets, missing):
                if missing:
                    report.failure(missing[0])
                    return
                time.sleep(1)
                r = measure.load(b, targets[1], '-c', BURST, '-n', BURST, '-e', 20, '-m',
                                 'mock-n20-d50', '-T', 60)
                r['workers'] = len(measure.children_of(targets[1].processes[0].pid))
            if measure.flaw(r):
                report.loud(f'burst, {label}: {measure.flaw(r)}')
            rows.append(r)
        raw[label] = rows
        p50, p99 = (median([r['first_us'].get(p) for r in rows]) for p in ('p50', 'p99'))
        report.line(f'   {label:<23}{(p50 or 0) / 1000:>8.1f}{(p99 or 0) / 1000:>8.1f}'
                    f'{median([r["workers"] for r in rows]):>15.0f}')
