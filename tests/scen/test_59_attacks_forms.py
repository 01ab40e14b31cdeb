"""Attacks on forms: bodies that two readers would understand in two ways, hosts that answer early, and what is left
over.
"""

import os
import signal

import pytest

from lib import cgi
from lib.answers import early, error, hang, plain
from lib.around import SANITIZED
from lib.pool import K1, K2
from lib.upstream import wait_until

TYPE = "multipart/form-data; boundary=B"


def part(name, value, extra=b""):
    return b'--B\r\nContent-Disposition: form-data; name="' + name + b'"' + extra + b"\r\n\r\n" + value + b"\r\n"


MODEL = part(b"model", b"m1")
EVIL = part(b"model", b"evil")


def post(g, body, **vary):
    return g.send(body, path="/v1/audio/transcriptions", ctype=TYPE, **vary)


# What one reader takes for the model, and another does not.
TWO_MODELS = {
    "behind the end": MODEL + b"--B--\r\n" + EVIL + b"--B--\r\n",
    "behind an end that goes on": MODEL + b"--B--x\r\n" + EVIL + b"--B--\r\n",
    "before, by bare line feeds": b"\n" + EVIL.replace(b"\r", b"") + b"--B--\n\r\n" + MODEL + b"--B--\r\n",
    "an empty file name": part(b"model", b"evil", b'; filename=""') + MODEL + b"--B--\r\n",
    "a folded header": EVIL.replace(b"data; ", b"data;\r\n ") + MODEL + b"--B--\r\n",
    "a blank before the colon": EVIL.replace(b"tion:", b"tion :") + MODEL + b"--B--\r\n",
    "named twice": EVIL.replace(b'name="', b'name="x"; name="') + MODEL + b"--B--\r\n",
    "two dispositions": EVIL.replace(b"--B\r\n", b'--B\r\nContent-Disposition: form-data; name="x"\r\n') + MODEL + b"--B--\r\n",
    "name*": EVIL.replace(b'name="model"', b"name*=utf-8''model") + MODEL + b"--B--\r\n",
    "a line end inside": EVIL.replace(b"\r\nContent-D", b"\r\nX: y\nContent-D") + MODEL + b"--B--\r\n",
    "a parameter without a value": EVIL.replace(b"data; ", b"data; x; ") + MODEL + b"--B--\r\n",
    "escaped": EVIL.replace(b'"model"', b'"mo\\del"') + MODEL + b"--B--\r\n",
}


@pytest.mark.parametrize("what", TWO_MODELS)
def test_two_models(up, gate, what):
    g = gate(accounts=1)
    up.default(plain({"text": "hi"}))
    a = post(g, TWO_MODELS[what]).finish()
    assert a.status == 400 or b"evil" not in up.last.body


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_nothing_left(up, gate):
    """Neither descriptors nor maps nor files."""
    g = gate(accounts=1, workers=1)
    up.default(plain({"text": "hi"}))
    big = MODEL + part(b"file", os.urandom(3_000_000), b'; filename="x"') + b"--B--\r\n"
    post(g, big).finish()
    (pid,) = g.worker_pids()
    before, maps = fds(pid), len(open(f"/proc/{pid}/maps").readlines())
    for _ in range(15):
        post(g, big).finish()
        post(g, big[:-5]).finish()
        post(g, big).close()
    wait_until(lambda: g.in_flight() == 0, 5, "all are given up")
    assert post(g, big).finish().status == 200
    assert fds(pid) <= before + 2
    assert SANITIZED or len(open(f"/proc/{pid}/maps").readlines()) <= maps + 3


def test_killed(up, gate):
    g = gate(accounts=1, workers=1, allow=["worker", "slot", "lease", "kill"])
    up.default(hang())
    big = MODEL + part(b"file", os.urandom(30_000_000), b'; filename="x"') + b"--B--\r\n"
    o = post(g, big)
    up.wait_for(1)
    (pid,) = g.worker_pids()
    assert any("deleted" in os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd"))
    os.kill(pid, signal.SIGKILL)
    o.close()
    wait_until(lambda: g.in_flight() == 0, 8, "lease comes back")
    state = os.path.join(g.dir, "state")
    assert not [n for n in os.listdir(state) if n.startswith(("body", "#"))]


@pytest.mark.parametrize("status", [400, 401, 413, 429, 500, 200])
def test_early(up, gate, status):
    """The host answers while the body is still on its way."""
    g = gate(accounts=2)
    big = MODEL + part(b"file", os.urandom(20_000_000), b'; filename="x"') + b"--B--\r\n"
    act = plain({"text": "early"}, end="fin") if status == 200 else error(status, "early")
    up.script(K1, early(act))
    up.script(K2, plain({"text": "hi"}))
    a = post(g, big).finish(20)
    assert a.status == (status if status in (400, 413) else 200), a.out


def test_cgi(up, gate):
    g = gate(accounts=2, start=False)
    big = part(b"file", os.urandom(30_000_000), b'; filename="x"') + MODEL + b"--B--\r\n"
    up.script(K1, error(500))
    up.script(K2, plain(b"\0\xff\r\n\r\n" * 1000, ctype="audio/mpeg"))
    a = cgi.start(g, big, "pipe", path="/v1/audio/transcriptions", ctype=TYPE).finish()
    assert a.status == 200, a.out[:500]
    assert a.body == b"\0\xff\r\n\r\n" * 1000
    assert [r.body == big for r in up.requests] == [True, True]
