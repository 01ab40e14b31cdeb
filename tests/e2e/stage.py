"""stage - a web server with the shipped configuration, the gateway and a scripted provider.

All on loopback. Each Stage is a temp dir with its own processes; stop() ends them and says what was
left over. Configuration files of lighttpd/, apache/ and examples/ are copied, never edited: what a
test needs differently comes through the variables they document; `edits` are for tests of how a
broken site is found out. Started as root, everything runs as an
unprivileged user, so that both ways behave alike.
"""

import hashlib
import http.client
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))

import sites  # noqa: E402
from lib import answers, upstream  # noqa: E402, F401
from lib.upstream import wait_until  # noqa: E402
from talk import ADMIN, KEY, TOKEN, USER, Curl, Gate, Live  # noqa: E402, F401
from talk import basic, bearer, chunks, question, texts  # noqa: E402, F401

BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build"))
KINDS = sites.KINDS
CLIENTS = ((TOKEN, "alice"), (KEY, "carol"))


WAYS = {
    "1.1": "--http1.1",
    "1.1 TLS": "--http1.1 --cacert CERT",
    "1.1 gzip": "--http1.1 --compressed",
    "2": "--http2-prior-knowledge",
    "2 TLS": "--http2 --cacert CERT",
}
# Below a stage's directory; one is the copy in a web space.
PROGRAM = re.compile(r"/(bin|htdocs/llm)/sluice\.f?cgi( |$)")


def free_port():
    """Below those that the system gives to connections; by chance, as other stages look, too."""
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randint(10000, 32000))) as s:
                return s.getsockname()[1]
        except OSError:
            pass


def unprivileged():
    """The user everything runs as; None if that is who we are."""
    if os.geteuid() != 0:
        return None
    for name in ("www-data", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


def make_certificate(directory):
    """Signed by itself, for the name "localhost": cert.pem, key.pem."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        + ["-keyout", os.path.join(directory, "key.pem")]
        + ["-out", os.path.join(directory, "cert.pem")],
        check=True,
        capture_output=True,
    )


class Stage:
    """`kind` is one of sites.SITES; "apache-proxy+prefork" is Apache with that MPM."""

    def __init__(self, kind, workers=4, config=None, up=None, edits=(), more="", inside=""):
        self.name, self.workers, self.edits = kind, workers, edits
        self.lines = more, inside
        self.kind, _, mpm = kind.partition("+")
        self.site, self.mpm = sites.SITES[self.kind], mpm or "event"
        self.user = unprivileged()
        self.dir = tempfile.mkdtemp(prefix="sluice-", dir="/tmp")
        self.up = up or upstream.Upstream()
        self.mine = up is None
        self.procs = {}
        self.ports, self.curls = {}, []
        try:
            self._files(config or {})
            self._start()
        except Exception as e:
            log = self.log
            self.stop(check=False)
            raise AssertionError(f"{e}\n{log}") from e

    # Files

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def _write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def config(self):
        """The gateway's configuration before the test's own changes."""
        return {
            "state_dir": "../state",
            "auth": {"admins": ["admin"]},
            "upstream": {"heartbeat": "1s", "retry_backoff": "50ms"},
            "pool": {"min_pick_gap": "0s"},
            "channels": {
                "solo": {
                    "provider": "openai-compatible",
                    "base_url": self.up.url,
                    "models": ["solo"],
                    "pool": {"max_in_flight": 1, "queue_timeout": "3s"},
                    "accounts": [{"id": "s1", "api_key": "up-key-solo"}],
                },
                "pair": {
                    "provider": "openai-compatible",
                    "base_url": self.up.url,
                    "models": ["pair"],
                    "pool": {"max_in_flight": 2, "queue_timeout": "10s"},
                    "accounts": [{"id": "p1", "api_key": "up-key-pair"}],
                },
                **{
                    f"e{n}": {
                        "provider": "openai-compatible",
                        "base_url": self.up.url,
                        "models": [f"e{n}"],
                        "accounts": [{"id": f"x{n}", "api_key": f"up-key-{n}"}],
                    }
                    for n in (400, 401, 404, 429, 500)
                },
                "up": {
                    "provider": "openai-compatible",
                    "base_url": self.up.url,
                    "pool": {"max_in_flight": 64},
                    "accounts": [
                        {"id": "a1", "api_key": "up-key-1"},
                        {"id": "a2", "api_key": "up-key-2"},
                    ],
                },
            },
            "models": {"m1": {"targets": [{"channel": "up", "model": "m1"}]}},
        }

    def _files(self, changes):
        for d in ("etc", "bin", "htdocs", "run", "log", "state"):
            os.mkdir(self.path(d))
        os.chmod(self.path("state"), 0o700)
        for name in ("sluice.fcgi", "sluicectl"):
            source = os.path.join(BUILD, name)
            assert os.path.exists(source), f"{source} is missing: make it first"
            shutil.copy2(source, self.path("bin", name))
        for folder, name in (("lighttpd",) * 2, ("apache", "sluice"), ("examples",) * 2):
            shutil.copytree(os.path.join(ROOT, folder), self.path("etc", name))
        for file, old, new in self.edits:
            with open(self.path("etc", file)) as f:
                text = f.read()
            assert old in text, f"{old!r} is not in {file}"
            self._write(os.path.join("etc", file), text.replace(old, new))
        doc = self.config()
        for section, value in changes.items():
            doc[section] = {**doc.get(section, {}), **value} if isinstance(value, dict) else value
        self._write("etc/sluice.json", json.dumps(doc, indent=1), 0o600)
        self._write(
            "etc/clients.json",
            json.dumps([{"id": "carol", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}]),
            0o600,
        )
        for name, text in sites.files(self.dir, CLIENTS).items():
            self._write(name, text)
        if self.site.htaccess:
            self._webspace()
        make_certificate(self.path("etc"))
        if self.user:
            for base, dirs, files in os.walk(self.dir):
                for name in [base] + [os.path.join(base, f) for f in dirs + files]:
                    os.chown(name, self.user.pw_uid, self.user.pw_gid)

    def _webspace(self):
        """A folder of the document root, and the rest at home, outside of it."""
        os.makedirs(self.path("home/.config"))
        os.symlink(self.path("etc"), self.path("home/.config/sluice"))
        os.symlink(self.path("etc/htpasswd"), self.path("home/.sluice-htpasswd"))
        os.mkdir(self.path("htdocs/llm"))
        with open(self.path("etc/sluice", self.site.file, ".htaccess")) as f:
            shipped = f.read()
        for name, text in sites.webspace(self.kind, self.dir, shipped).items():
            if text is None:
                shutil.copy2(self.path("bin/sluice.fcgi"), self.path("htdocs/llm", name))
            else:
                self._write("htdocs/llm/" + name, text, 0o755)

    # Processes

    def _ids(self):
        u = self.user
        return {"user": u.pw_uid, "group": u.pw_gid, "extra_groups": []} if u else {}

    def _spawn(self, name, argv):
        env = {k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "LSAN_"))}
        env.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME=self.dir)
        with open(self.path("log", name + ".out"), "ab") as out:
            self.procs[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *argv],  # ends with us, however we end
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.dir,
                env=env,
                start_new_session=True,
                **self._ids(),
            )

    def _start(self):
        if self.kind in sites.EXTERNAL:
            listen = ["--listen", "unix:" + self.path("run/s"), "--workers", str(self.workers)]
            program = [self.path("bin/sluice.fcgi"), "-c", self.path("etc/sluice.json")]
            self._spawn("sluice", program + listen)
            wait_until(lambda: self._serves("sluice", self._socket), 10, "the gateway's socket")
        for _ in range(3):  # a port may be taken between choosing and binding it
            self.ports = {name: free_port() for name in ("port", "tls", "h2c")}
            values = (self.ports, self.workers, self.mpm, *self.lines)
            text, argv = sites.main(self.kind, self.dir, *values)
            self._write("etc/main.conf", text)
            self._spawn("web", argv)
            try:
                return wait_until(lambda: self._serves("web", self.listening), 10, "web server")
            except ChildProcessError:
                pass
        raise AssertionError("the web server does not start")

    def _socket(self):
        return os.path.exists(self.path("run/s"))

    def _serves(self, name, ready):
        code = self.procs[name].poll()
        if code is not None:
            raise ChildProcessError(f"{name} ended with {code}")
        return ready()

    @property
    def port(self):
        return self.ports["port"]

    def listening(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    @property
    def log(self):
        """What all processes wrote."""
        out = []
        for name in sorted(os.listdir(self.path("log"))):
            with open(self.path("log", name), errors="replace") as f:
                out.append(f"--- {name}\n{f.read()[-6000:]}")
        return "\n".join(out)

    def gateway(self):
        """{pid: parent} of the gateway's processes, masters included."""
        return {p: parent for p, parent in self._processes() if self._is_gateway(self._cmdline(p))}

    def _is_gateway(self, cmdline):
        return cmdline.startswith(self.dir) and PROGRAM.match(cmdline[len(self.dir) :])

    def pids(self):
        """The processes that serve requests."""
        own = self.gateway()
        return [
            p for p, parent in own.items() if parent in own or "--workers" not in self._cmdline(p)
        ]

    @staticmethod
    def _cmdline(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""

    @staticmethod
    def _processes():
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat") as f:
                        fields = f.read().rpartition(")")[2].split()
                    if fields[0] not in "ZX":
                        yield int(name), int(fields[1])
                except OSError:
                    pass

    def left(self):
        """Processes of this stage that live."""
        return [p for p, _ in self._processes() if self.dir in self._cmdline(p)]

    def stop(self, check=True):
        for name in ("web", "sluice"):
            proc = self.procs.get(name)
            if proc and proc.poll() is None:
                proc.terminate()
                try:
                    proc.wait(15)
                except subprocess.TimeoutExpired:
                    proc.kill()
        for pid in self.left():  # a server of before a restart, or the one after it
            if self.path("etc/main.conf") in self._cmdline(pid):
                os.kill(pid, signal.SIGTERM)
        if self.mine:
            self.up.stop()
        try:
            wait_until(lambda: not self.left(), 12, "no process left")
            if check:
                self.check_secrets()
        finally:
            for pid in self.left():
                os.kill(pid, signal.SIGKILL)
            if not os.environ.get("SLUICE_KEEP"):
                shutil.rmtree(self.dir, ignore_errors=True)

    def check_secrets(self):
        """No key of an upstream in anything that was written."""
        for base, _, files in os.walk(self.dir):
            for name in files:
                where = os.path.join(base, name)
                if where in (self.path("etc/sluice.json"),) or not os.path.isfile(where):
                    continue
                with open(where, "rb") as f:
                    assert b"up-key-" not in f.read(), f"an upstream key stands in {where}"

    # Asking

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}/llm"

    def url(self, tls=False, http2=False):
        """The same for another protocol. nginx wants a port of its own for HTTP/2 without TLS."""
        if tls:
            return f"https://127.0.0.1:{self.ports['tls']}/llm"
        port = self.ports["h2c" if http2 and self.site.server == "nginx" else "port"]
        return f"http://127.0.0.1:{port}/llm"

    def open(self, path, body=None, headers=None, method=None, chunked=False, timeout=30):
        """Send a request and come back with the head of the answer."""
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        all_headers = {**(bearer() if headers is None else headers)}
        if body is not None:
            all_headers.setdefault("Content-Type", "application/json")
        conn.request(
            method or ("GET" if body is None else "POST"),
            "/llm" + path,
            body=chunks(body) if chunked else body,
            headers=all_headers,
            encode_chunked=chunked,
        )
        return Live(conn, conn.sock, conn.getresponse())

    def ask(self, path, body=None, headers=None, **how):
        return self.open(path, body, headers, **how).finish()

    def chat(self, text="hello", model="m1", headers=None, **fields):
        return self.ask("/v1/chat/completions", question(text, model, **fields), headers)

    def stream(self, text="hello", model="m1", **fields):
        return self.open("/v1/chat/completions", question(text, model, stream=True, **fields))

    def curl(self, way="1.1", **fields):
        """A stream that curl reads; `way` is one of WAYS."""
        options = WAYS[way].replace("CERT", self.path("etc/cert.pem")).split()
        url = self.url(tls="TLS" in way, http2=way.startswith("2")) + "/v1/chat/completions"
        version = ["-w", "\nversion %{http_version}"]
        self.curls.append(Curl(url, question(stream=True, **fields), *version, *options))
        return self.curls[-1]

    def close_curls(self):
        while self.curls:
            self.curls.pop().close()

    def ctl(self, *argv):
        return subprocess.run(
            [self.path("bin/sluicectl"), "-c", self.path("etc/sluice.json"), *argv],
            timeout=20,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **self._ids(),
        )

    def status(self):
        done = self.ctl("status", "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def in_flight(self):
        return self.status()["totals"]["in_flight"]
