"""The processes of a measurement: provider, web servers, gateways; all on loopback, all ended here."""
import contextlib
import ctypes
import dataclasses
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {
    'mock': (['mock.c', 'reply.c', 'wire.c'], []),
    'load': (['load.c', 'samples.c', 'wire.c'], []),
    'forward': (['forward.c', 'wire.c'], ['-lfcgi', '-lcurl']),
}
PORTKEY = {'private': True, 'dependencies': {'@portkey-ai/gateway': '1.15.2'},
           # with the version npm would pick every stream is answered with 500
           'overrides': {'@hono/node-server': '1.13.8'}}
BODY = json.dumps({'model': 'mock', 'messages': [{'role': 'user', 'content': 'hi'}]})
ACCOUNTS = 100
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Missing(Exception):
    """A program or file that a measurement needs is not there."""


@dataclasses.dataclass
class Target:
    key: str
    label: str
    port: int
    headers: tuple = ()
    processes: list = dataclasses.field(default_factory=list)
    url: str = ''  # of a provider, where it is not http at its port
    ca_file: str = ''


@dataclasses.dataclass
class Bench:
    """Where things are, and on which processors they run (None: anywhere)."""
    build: str
    sluice: str
    run: str = ''
    load_cpu: int | None = None
    gateway_cpu: int | None = None
    serial: int = 0

    def program(self, name):
        return os.path.join(self.build, 'bench', name)

    def file(self, name, text=None, mode=0o600):
        path = os.path.join(self.run, name)
        if text is not None:
            with open(path, 'w', opener=lambda p, f: os.open(p, f, mode)) as f:
                f.write(text)
        return path

    def unique(self, name):
        self.serial += 1
        return f'{name}{self.serial}'

    @property
    def has_sluice(self):
        return os.access(self.sluice, os.X_OK)


def compile_programs(b):
    os.makedirs(os.path.join(b.build, 'bench'), exist_ok=True)
    newest = max(os.path.getmtime(os.path.join(HERE, f))
                 for f in os.listdir(HERE) if f.endswith(('.c', '.h')))
    for name, (sources, libs) in PROGRAMS.items():
        out = b.program(name)
        if os.path.exists(out) and os.path.getmtime(out) > newest:
            continue
        subprocess.run([os.environ.get('CC', 'cc'), '-std=gnu11', '-D_GNU_SOURCE', '-O2', '-o', out,
                        *[os.path.join(HERE, s) for s in sources], *libs], check=True)


def find_program(name):
    path = shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
    if path is None:
        raise Missing(f'{name} is not installed')
    return path


def portkey_dir(b):
    """The folder of Portkey's gateway, installed on first use."""
    folder = os.path.abspath(os.path.join(b.build, 'bench', 'portkey'))
    start = os.path.join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js')
    if os.path.exists(start):
        return folder, start
    find_program('node')
    npm = find_program('npm')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'package.json'), 'w') as f:
        json.dump(PORTKEY, f)
    try:
        subprocess.run([npm, 'install', '--no-audit', '--no-fund', '--ignore-scripts'], cwd=folder,
                       check=True, timeout=180, capture_output=True)
    except (subprocess.SubprocessError, OSError) as e:
        raise Missing(f'npm could not install it ({e})') from e
    if not os.path.exists(start):
        raise Missing(f'npm installed no {start}')
    return folder, start


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def spawn(b, command, cpu=None, log=None, **more):
    """Start a process in a session of its own, that ends with us."""
    def before_exec():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        soft = min(16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    more.setdefault('stdin', subprocess.DEVNULL)
    with open(b.file(f'{log or "process"}.log'), 'ab') as out:
        more.setdefault('stdout', out)
        return subprocess.Popen(command, stderr=out, start_new_session=True,
                                preexec_fn=before_exec, **more)


def stop(processes):
    for sig, wait_s in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        for p in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, sig)
        deadline = time.monotonic() + wait_s
        for p in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(max(0, deadline - time.monotonic()))


def answers(target):
    headers = {'Content-Type': 'application/json', 'Authorization': 'Bearer sk-client'}
    headers.update(h.split(': ', 1) for h in target.headers)
    try:
        c = http.client.HTTPConnection('127.0.0.1', target.port, timeout=5)
        c.request('POST', '/v1/chat/completions', BODY, headers)
        answer = c.getresponse()
        text = answer.read()
        c.close()
        return answer.status, text
    except (OSError, http.client.HTTPException) as e:
        return 0, str(e).encode()


def wait_ready(target, limit_s=20):
    deadline = time.monotonic() + limit_s
    while True:
        status, text = answers(target)
        if status == 200:
            return target
        if time.monotonic() > deadline:
            raise Missing(f'{target.label} does not answer: status {status}, {text[:200]!r}')
        time.sleep(0.02)


def start_mock(b):
    port = free_port()
    t = Target('a', 'provider, directly', port)
    t.processes.append(spawn(b, [b.program('mock'), '-p', str(port), '-T', '1200'], b.load_cpu, 'mock'))
    return wait_ready(t)


def behind_tls(b, mock):
    """The provider once more, over TLS; its authority stands behind those of the system."""
    folder = b.file(b.unique('tls'))
    os.mkdir(folder)
    relay = spawn(b, [sys.executable, os.path.join(HERE, '..', 'lib', 'tls.py'), str(mock.port)],
                  b.load_cpu, 'tls', cwd=folder, stdout=subprocess.PIPE)
    port = int(relay.stdout.readline() or 0)
    if port == 0:
        stop([relay])
        raise Missing('no provider over TLS: openssl is needed')
    return Target('a', 'provider over TLS', port, url=f'https://127.0.0.1:{port}/v1',
                  ca_file=os.path.join(folder, 'system.pem'), processes=[relay])


def provider_counts(port):
    c = http.client.HTTPConnection('127.0.0.1', port, timeout=5)
    c.request('GET', '/__stats')
    return json.loads(c.getresponse().read())


def start_lighttpd(b, name, modules, handler):
    port = free_port()
    listed = ', '.join(f'"{m}"' for m in modules)
    conf = b.file(f'{name}.conf', f'''server.modules = ( {listed} )
server.document-root = "{b.file('www')}"
server.bind = "127.0.0.1"
server.port = {port}
server.max-fds = 8192
server.max-connections = 2048
server.listen-backlog = 1024
server.max-keep-alive-requests = 100000000
server.max-keep-alive-idle = 60
server.stream-response-body = 2
{handler}
''')
    return port, spawn(b, [find_program('lighttpd'), '-D', '-f', conf], b.gateway_cpu, name)


def start_proxy(b, mock):
    name = b.unique('proxy')
    port, web = start_lighttpd(b, name, ['mod_proxy'], 'proxy.server = ( "" => (( "host" => '
                               f'"127.0.0.1", "port" => {mock.port} )) )')
    return wait_ready(Target('b', 'lighttpd mod_proxy', port, (), [web]))


def behind_lighttpd(b, key, label, sock, responder):
    """The target that is lighttpd in front of a FastCGI responder on a unix socket."""
    deadline = time.monotonic() + 10
    while not os.path.exists(sock) and time.monotonic() < deadline:
        time.sleep(0.01)
    port, web = start_lighttpd(b, b.unique('web'), ['mod_fastcgi'], 'fastcgi.server = ( "" => (( '
                               f'"socket" => "{sock}", "check-local" => "disable", '
                               '"tcp-fin-propagate" => "enable" )) )')
    target = Target(key, label, port, (), [responder, web])
    try:
        return wait_ready(target)
    except Missing:
        stop(target.processes)
        raise


def forward_command(b, mock):
    return [b.program('forward'), '-u', f'http://127.0.0.1:{mock.port}']


def start_forward(b, mock, workers):
    name = b.unique('forward')
    sock = b.file(f'{name}.sock')
    p = spawn(b, forward_command(b, mock) + ['-s', sock, '-n', str(workers)], b.gateway_cpu, name)
    return behind_lighttpd(b, 'c', 'bare forwarder', sock, p)


def sluice_command(b, mock):
    name = b.unique('sluice')
    accounts = [{'id': f'a{i:03}', 'api_key': f'sk-bench-{i:03}'} for i in range(ACCOUNTS)]
    conf = b.file(f'{name}.json', json.dumps({
        'state_dir': f'{name}.state', 'auth': {'mode': 'open'},
        'pool': {'max_in_flight': 0, 'min_pick_gap': '0ms'},
        'channels': {'mock': {'provider': 'openai-compatible', 'accounts': accounts,
                              'base_url': mock.url or f'http://127.0.0.1:{mock.port}/v1'}},
        **({'upstream': {'ca_file': mock.ca_file}} if mock.ca_file else {})}, indent=1))
    return [b.sluice, '-c', conf]


def start_sluice(b, mock, workers=None):
    """A pool of so many workers; without a number as many as are needed."""
    if not b.has_sluice:
        raise Missing(f'{b.sluice} is not built')
    name = b.unique('pool')
    sock = b.file(f'{name}.sock')
    fixed = [] if workers is None else ['--workers', str(workers)]
    p = spawn(b, sluice_command(b, mock) + ['--listen', f'unix:{sock}', *fixed], b.gateway_cpu, name)
    return behind_lighttpd(b, 'd', 'sluice', sock, p)


def start_portkey(b, mock):
    folder, start = portkey_dir(b)
    port = free_port()
    p = spawn(b, [find_program('node'), start, '--headless', f'--port={port}'], b.gateway_cpu,
              'portkey', cwd=folder, env={**os.environ, 'NODE_ENV': 'production'})
    headers = ('x-portkey-provider: openai',
               f'x-portkey-custom-host: http://127.0.0.1:{mock.port}/v1')
    target = Target('e', 'Portkey gateway', port, headers, [p])
    try:
        return wait_ready(target)
    except Missing:
        stop(target.processes)
        raise


@contextlib.contextmanager
def fleet(b, *starters):
    """Start the provider and what the starters start from it; yields targets and what is missing."""
    mock = start_mock(b)
    targets, missing = [mock], []
    try:
        for start in starters:
            try:
                targets.append(start(b, mock))
            except Missing as e:
                missing.append(str(e))
        yield targets, missing
    finally:
        stop([p for t in reversed(targets) for p in t.processes])


@contextlib.contextmanager
def run_folder(b, keep):
    b.run = tempfile.mkdtemp(prefix='sluice-bench-')
    os.mkdir(b.file('www'))
    try:
        yield
    finally:
        if keep:
            print(f'logs and configurations: {b.run}')
        else:
            shutil.rmtree(b.run, ignore_errors=True)
