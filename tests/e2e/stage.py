"""stage - a web server with the shipped configuration, the gateway behind it and a scripted provider, all on loopback.

Each Stage is a temp dir with its own processes; stop() ends them and says what was left over. Configuration files of
lighttpd/ and apache/ are copied, never edited: what a test needs differently comes through the variables they document.
Started as root, everything runs as an unprivileged user, so that both ways behave alike.
"""

import hashlib
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import upstream  # noqa: E402
from upstream import wait_until  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("SLUICE_BUILD", "build"))
KINDS = ("lighttpd-spawn", "lighttpd-external", "apache-proxy", "apache-fcgid")
CGI = "apache-cgi"  # apache/htaccess; the gateway checks clients itself
TOKEN = "sl-test-alice-0001"  # known to the web server as alice
KEY = "sl-test-key-0002"  # known to web server and gateway, see keys_file
ADMIN = ("admin", "admin-pw")
USER = ("bob", "bob-pw")
# Of the two passwords above, made by htpasswd -nbB -C 4.
HTPASSWD = """\
admin:$2y$04$StyVBj4fWLB3uLUvk17/yOly5xT2EjibIxgTlVfv2nEcoVrE83Yhy
bob:$2y$04$0z/evwvCjJziCqv4e7VvL.pd.4eoJzvhDhljh.dei9Ubs4Q8.JL3m
"""
APACHE_MODULES = "mpm_event authn_core authn_file authz_core authz_user auth_basic rewrite env alias http2"


def basic(user):
    return {"Authorization": "Basic " + b64encode(":".join(user).encode()).decode()}


def bearer(token=TOKEN):
    return {"Authorization": "Bearer " + token}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


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


# Talking to the gateway


class Reply:
    """A whole answer. `ended` is "clean" or "broken" (the connection ended inside the framing)."""

    def __init__(self, status, headers, body, ended):
        self.status, self.headers, self.body, self.ended = status, headers, body, ended

    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return self.headers.get(name)

    def __repr__(self):
        return f"<{self.status} {self.ended} {dict(self.headers)} {self.body[:600]!r}>"


class Live:
    """An answer that is still coming."""

    def __init__(self, conn, response):
        self.conn, self.response, self.status, self.headers = conn, response, response.status, response.headers
        self.body, self.ended = b"", None

    def step(self):
        try:
            data = self.response.read1(65536)
            if not data:
                self.ended = "clean"
        except TimeoutError:
            raise
        except (http.client.HTTPException, OSError):
            data, self.ended = b"", "broken"
        self.body += data
        return data

    def until(self, what, timeout=10):
        limit = time.monotonic() + timeout
        while what not in self.body:
            left = limit - time.monotonic()
            assert left > 0 and not self.ended, f"{what!r} did not come ({self.ended}): {self.body[-1000:]!r}"
            self.conn.sock.settimeout(left)
            self.step()
        return self

    def finish(self, timeout=30):
        limit = time.monotonic() + timeout
        while not self.ended:
            left = limit - time.monotonic()
            assert left > 0, f"no end within {timeout} s: {self.body[-1000:]!r}"
            if self.conn.sock:
                self.conn.sock.settimeout(left)
            self.step()
        self.close()
        return Reply(self.status, self.headers, self.body, self.ended)

    def close(self):
        self.response.close()
        self.conn.close()


def chunks(body, size=16384):
    return (body[i : i + size] for i in range(0, len(body), size))


# The gate: events whose sending the test decides


class Gate:
    """An upstream action that sends event n when the test calls let(n)."""

    def __init__(self, *events, end="keep"):
        self.events, self.end, self.allowed = events, end, 0
        self.sent, self.gone = 0, threading.Event()

    def let(self, n=1):
        self.allowed += n
        return self

    def __call__(self, x):
        try:
            x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i, event in enumerate(self.events):
                while self.allowed <= i:
                    x.pause(0.01)
                data = upstream.sse([event])
                if i == len(self.events) - 1:
                    x.finishing()
                x.send(b"%x\r\n%s\r\n" % (len(data), data))
                self.sent = i + 1
            x.send(b"0\r\n\r\n")
        except upstream.Gone:
            self.gone.set()
            raise


def texts(n):
    """Chat events with n content chunks t0, t1, ..."""
    return upstream.chat_chunks(*[f"t{i}" for i in range(n)])


# The stage


class Stage:
    def __init__(self, kind, workers=4, config=None, up=None):
        self.kind, self.workers = kind, workers
        self.user = unprivileged()
        self.dir = tempfile.mkdtemp(prefix="sluice-", dir="/tmp")
        self.up = up or upstream.Upstream()
        self.mine = up is None
        self.procs = {}
        self.port = None
        try:
            self._files(config or {})
            self._start()
        except BaseException as e:
            self.stop(check=False)
            if isinstance(e, AssertionError):
                raise AssertionError(f"{e}\n{self.log}") from e
            raise

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
                "solo": {"provider": "openai-compatible", "base_url": self.up.url, "models": ["solo"],
                         "pool": {"max_in_flight": 1, "queue_timeout": "3s"},
                         "accounts": [{"id": "s1", "api_key": "up-key-solo"}]},
                "pair": {"provider": "openai-compatible", "base_url": self.up.url, "models": ["pair"],
                         "pool": {"max_in_flight": 2, "queue_timeout": "10s"},
                         "accounts": [{"id": "p1", "api_key": "up-key-pair"}]},
                **{f"e{n}": {"provider": "openai-compatible", "base_url": self.up.url, "models": [f"e{n}"],
                             "accounts": [{"id": f"x{n}", "api_key": f"up-key-{n}"}]}
                   for n in (400, 401, 404, 429, 500)},
                "resp": {"provider": "openai-compatible", "base_url": self.up.url, "wire": "responses",
                         "models": ["r1"], "accounts": [{"id": "r1", "api_key": "up-key-resp"}]},
                "up": {"provider": "openai-compatible", "base_url": self.up.url,
                       "pool": {"max_in_flight": 64},
                       "accounts": [{"id": "a1", "api_key": "up-key-1"}, {"id": "a2", "api_key": "up-key-2"}]},
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
        shutil.copytree(os.path.join(ROOT, "lighttpd"), self.path("etc", "lighttpd"))
        shutil.copytree(os.path.join(ROOT, "apache"), self.path("etc", "sluice"))
        doc = self.config()
        for section, value in changes.items():
            doc[section] = {**doc.get(section, {}), **value} if isinstance(value, dict) else value
        self._write("etc/sluice.json", json.dumps(doc, indent=1), 0o600)
        self._write("etc/clients.json", json.dumps(
            [{"id": "carol", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}]), 0o600)
        self._write("etc/htpasswd", HTPASSWD)
        self._write("etc/tokens.txt", f"{TOKEN} alice\n{KEY} carol\n")
        self._write("etc/tokens.conf", "".join(
            f'$REQUEST_HEADER["{header}"] == "{prefix}{token}" {{\n\tauth.require = ( )\n'
            f'\tsetenv.add-environment = ( "REMOTE_USER" => "{name}" )\n}}\n'
            for header, prefix in (("Authorization", "Bearer "), ("X-Api-Key", ""))
            for token, name in ((TOKEN, "alice"), (KEY, "carol"))))
        if self.user:
            for base, dirs, files in os.walk(self.dir):
                for name in [base] + [os.path.join(base, f) for f in dirs + files]:
                    os.chown(name, self.user.pw_uid, self.user.pw_gid)

    def _lighttpd(self):
        config = "spawn" if self.kind == "lighttpd-spawn" else "external"
        settings = {"dir": "etc/lighttpd", "bin": "bin/sluice.fcgi", "config": "etc/sluice.json",
                    "socket": "run/s", "users": "etc/htpasswd", "tokens": "etc/tokens.conf"}
        self._write("etc/main.conf", "\n".join(
            ['server.bind = "127.0.0.1"', f"server.port = {self.port}", 'server.modules = ( "mod_access" )']
            + [f'server.{name} = "{self.path(path)}"' for name, path in
               (("document-root", "htdocs"), ("errorlog", "log/web"), ("pid-file", "run/web.pid"))]
            + [f'server.feature-flags += ( "server.{name}" => "enable" )' for name in ("h2proto", "h2c")]
            + [f'server.upload-dirs = ( "{self.path("run")}" )', f'var.sluice_workers = "{self.workers}"']
            + [f'var.sluice_{name} = "{self.path(path)}"' for name, path in settings.items()]
            + [f'include "{self.path("etc/lighttpd", config)}.conf"\n']))
        return ["/usr/sbin/lighttpd", "-D", "-f", self.path("etc/main.conf")]

    def _apache(self):
        name, modules = {"apache-fcgid": ("fcgid", ["fcgid"]), "apache-proxy": ("proxy_fcgi", ["proxy", "proxy_fcgi"]),
                         CGI: (None, ["cgid", "mime"])}[self.kind]
        modules += APACHE_MODULES.split()
        settings = {"BIN": "bin/sluice.fcgi", "CONFIG": "etc/sluice.json", "SOCKET": "run/s",
                    "USERS": "etc/htpasswd", "TOKENS": "etc/tokens.txt"}
        lines = [f"ServerRoot {self.path('etc')}", f"PidFile {self.path('run/web.pid')}", "ServerName localhost",
                 f"DefaultRuntimeDir {self.path('run')}", f"Listen 127.0.0.1:{self.port}",
                 f"ErrorLog {self.path('log/web')}", "Timeout 60", "GracefulShutdownTimeout 60"]
        lines += [f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in modules]
        if name == "fcgid":
            lines += [f"FcgidIPCDir {self.path('run')}", f"FcgidProcessTableFile {self.path('run/shm')}"]
        lines += ["Protocols h2c http/1.1", f"DocumentRoot {self.path('htdocs')}", "<Directory />", "Require all denied",
                  "</Directory>", f"<Directory {self.path('htdocs')}>", "Require all granted", "</Directory>"]
        lines += [f"Define SLUICE_{key} {self.path(path)}" for key, path in settings.items()]
        if name:
            lines += ["<VirtualHost *>", f"Include sluice/{name}.conf", "</VirtualHost>"]
        else:
            os.mkdir(self.path("htdocs/llm"))
            shutil.copy2(self.path("etc/sluice/htaccess"), self.path("htdocs/llm/.htaccess"))
            shutil.copy2(self.path("bin/sluice.fcgi"), self.path("htdocs/llm/sluice.cgi"))
            lines += [f"ScriptSock {self.path('run/cgid')}", "TypesConfig /dev/null",
                      f"SetEnv SLUICE_CONFIG {self.path('etc/sluice.json')}", f"<Directory {self.path('htdocs/llm')}>",
                      "AllowOverride AuthConfig FileInfo Options", "</Directory>"]
        self._write("etc/main.conf", "\n".join(lines + [""]))
        return ["/usr/sbin/apache2", "-DFOREGROUND", "-f", self.path("etc/main.conf")]

    # Processes

    def _spawn(self, name, argv):
        ids = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        with open(self.path("log", name + ".out"), "ab") as out:
            self.procs[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir, start_new_session=True,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.dir, **self._sanitizers()}, **ids)
        return self.procs[name]

    @staticmethod
    def _sanitizers():
        return {k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "LSAN_"))}

    def _start(self):
        if self.kind in ("lighttpd-external", "apache-proxy"):
            self._spawn("sluice", [self.path("bin/sluice.fcgi"), "-c", self.path("etc/sluice.json"), "--listen",
                                   "unix:" + self.path("run/s"), "--workers", str(self.workers)])
            wait_until(lambda: os.path.exists(self.path("run/s")) or self._dead("sluice"), 10, "the gateway's socket")
        for _ in range(3):  # the port may be taken between choosing and binding it
            self.port = free_port()
            self._spawn("web", self._lighttpd() if self.kind.startswith("lighttpd") else self._apache())
            if wait_until(lambda: self._listening() or self.procs["web"].poll() is not None, 10, "web server") is True:
                if self._listening():
                    return
        raise AssertionError("the web server does not start")

    def _dead(self, name):
        code = self.procs[name].poll()
        assert code is None, f"{name} ended with {code}"
        return False

    def _listening(self):
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
        return {p: s for p, s in self._processes() if self.path("bin/sluice.fcgi") in self._cmdline(p)}

    def pids(self):
        """The processes that serve requests."""
        own = self.gateway()
        return [p for p, parent in own.items() if parent in own or "--workers" not in self._cmdline(p)]

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

    def open(self, path, body=None, headers=None, method=None, chunked=False, timeout=30):
        """Send a request and come back with the head of the answer."""
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        all_headers = {**(bearer() if headers is None else headers)}
        if body is not None:
            all_headers.setdefault("Content-Type", "application/json")
        conn.request(method or ("GET" if body is None else "POST"), "/llm" + path,
                     body=chunks(body) if chunked else body, headers=all_headers, encode_chunked=chunked)
        return Live(conn, conn.getresponse())

    def ask(self, path, body=None, headers=None, **how):
        return self.open(path, body, headers, **how).finish()

    def chat(self, text="hello", model="m1", headers=None, **fields):
        return self.ask("/v1/chat/completions", question(text, model, **fields), headers)

    def stream(self, text="hello", model="m1", **fields):
        return self.open("/v1/chat/completions", question(text, model, stream=True, **fields))

    def ctl(self, *argv):
        ids = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        return subprocess.run([self.path("bin/sluicectl"), "-c", self.path("etc/sluice.json"), *argv], timeout=20,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, **ids)

    def status(self):
        done = self.ctl("status", "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def in_flight(self):
        return self.status()["totals"]["in_flight"]


def question(text="hello", model="m1", **fields):
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}
