"""What clients make of an answer through the gateway: on the same API what they make of the provider's
own, on another one the same meaning (formats.md E.0, E.6, E.8), with recorded answers cut anywhere.
"""

import hashlib
import json
import os
import re
import zlib

import packages
import pytest
import recorded
import stage as st
from lib import wires

WIRES = wires.WIRES
CLIENTS = {
    "chat": ["maker chat", "vercel chat", "vercel compatible", "langchain chat"],
    "messages": ["maker messages", "vercel messages", "langchain messages"],
    "responses": ["maker responses", "vercel responses", "langchain responses"],
}
FAULTS = {
    400: "-",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    401: "invalid_api_key",
    500: "-",
}
TAKES_PIECES = {"langchain responses"}  # it knows of no response.failed, whoever sends it
SERVER = ["InternalServerError", "ServiceUnavailableError"]
SEEDS = 3
CUT = {
    "chat": "openai/chat-stream.resp.sse",
    "messages": "anthropic/messages-stream.resp.sse",
    "responses": "openai/responses-stream.resp.sse",
}
NOT_ONE = {"spliced-message-start"}  # two answers in one stream: clients differ on it


def ways(client):
    return ["plain", "stream", "helper"] if client.startswith("maker") else ["plain", "stream"]


def creds(wire, status=""):
    """Enough accounts for all that fail."""
    return [f"up-key-{wire}{status}-{i}" for i in range(100 if status else 1)]


def config(up, mock):
    """A channel for each API, one for each fault on it, and one with the mock."""
    rows = {}
    for wire in WIRES:
        for status in ["", *FAULTS]:
            rows[f"{wire}{status}"] = {
                "provider": "openai-compatible",
                "wire": wire,
                "base_url": up.url,
                "pool": {"max_in_flight": 64},
                "accounts": [{"id": c[7:], "api_key": c} for c in creds(wire, status)],
            }
        rows["mock-" + wire] = {
            **rows[wire],
            "base_url": mock + "/v1",
            "accounts": [{"id": "mock", "api_key": "up-key-mock"}],
        }
    models = {
        f"by-{name}": {"targets": [{"channel": name, "model": f"by-{name}"}]} for name in rows
    }
    return {
        "channels": rows,
        "models": models,
        "channel_breaker": {"triggers": []},
        "routing": {"model_fail_after": 1000000},  # faults are asked for again and again
    }


@pytest.fixture(scope="module", params=("lighttpd-spawn", "apache-proxy"))
def stage(request):
    packages.install()
    up, port = st.upstream.Upstream(), st.free_port()
    mock = packages.aimock(port, os.path.join(packages.HERE, "sdk", "aimock.json"))
    s = st.Stage(request.param, workers=12, up=up, config=config(up, f"http://127.0.0.1:{port}"))
    s.mock = f"http://127.0.0.1:{port}"
    yield s
    s.stop()
    up.stop()
    mock.terminate()
    mock.wait(10)


class Direct:
    """What the maker's package makes of each recorded answer at the provider itself."""

    def __init__(self, stage, wire):
        self.replayer = recorded.Replayer(wire)
        self.stage, self.wire = stage, wire
        self.serve()
        own = f"maker {wire}"
        names = list(self.replayer.streams)
        found = self.run([(own, "stream", f"replay {n} 0", ()) for n in names])
        whole = self.run([(own, "helper", f"replay {n} 0", ()) for n in names])
        self.broken = {n for n, got in zip(names, found) if "ok" not in got} | NOT_ONE
        self.meaning = {n: g["ok"]["meaning"] for n, g in zip(names, found) if n not in self.broken}
        for name, got in zip(names, whole):
            if "ok" in got and name not in self.broken:
                self.replayer.objects[name] = plain(wire, got["ok"]["raw"])
        names = list(self.replayer.objects)
        found = self.run([(own, "plain", f"object {n}", ()) for n in names])
        assert all("ok" in got for got in found), found
        self.plain = {n: g["ok"]["meaning"] for n, g in zip(names, found)}

    def serve(self):
        for cred in [c for status in ["", *FAULTS] for c in creds(self.wire, status)]:
            self.stage.up.default(self.replayer, cred)

    def run(self, calls, url=None, key=None, model=None):
        given = {
            "url": url or self.stage.up.url[: -len("/v1")],
            "key": key or creds(self.wire)[0],
            "calls": [
                {
                    "client": c,
                    "way": w,
                    "text": t,
                    "tools": sorted(tools),
                    "model": model or f"by-{self.wire}",
                }
                for c, w, t, tools in calls
            ],
        }
        return packages.node("clients.cjs", given)

    def through(self, calls, model=None):
        return self.run(calls, self.stage.base, st.TOKEN, model)

    def calls(self, client):
        """Each answer for each way of a client."""
        for way in ways(client):
            for name in self.plain if way == "plain" else self.meaning:
                seed = zlib.crc32(f"{client} {way} {name}".encode()) % SEEDS + 1
                want = (self.plain if way == "plain" else self.meaning)[name]
                text = f"object {name}" if way == "plain" else f"replay {name} {seed}"
                yield (client, way, text, {c[1] for c in want["calls"]}), want


def plain(wire, raw):
    """The provider's own plain answer, out of what its package gathers of a stream."""
    if wire == "responses":
        raw = {k: v for k, v in raw.items() if k not in ("output_text", "output_parsed")}
    return json.dumps(raw).encode()


_made = {}


@pytest.fixture(params=WIRES)
def direct(request, stage):
    """Per channel's API; made once for each stage."""
    wire = request.param
    if (stage, wire) not in _made:
        _made[stage, wire] = Direct(stage, wire)
    d = _made[stage, wire]
    d.serve()
    return d


def given_id(wire, name):
    """E.0: what another API does not allow; its hash tells apart what would look the same."""
    plain = re.sub("[^A-Za-z0-9_-]", "_", name) if wire == "messages" else name
    if plain == name and len(name) <= {"chat": 40, "messages": 128, "responses": 64}[wire]:
        return name
    assert wire == "messages"
    return f"{plain[:7]}_{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def expected(wire, want):
    """The canonical meaning in the words of another API."""
    out = {**want, "calls": [[given_id(wire, i), n, a] for i, n, a in want["calls"]]}
    total = out.pop("total", None)
    if total and total > out["prompt"] + out["completion"]:  # E.8: reasoning was left out
        out["completion"] = total - out["prompt"]
    return out


def shown(call, meaning):
    """LangChain reads what was asked off the first event, where only this API itself has it."""
    late = call[:2] == ("langchain messages", "stream")
    return {**meaning, "prompt": None, "cached": None} if late else meaning


def compare(want, got):
    """Fields that differ; None is what this package does not show."""
    out = {}
    for name, value in want.items():
        mine = got.get(name)
        if name == "reasoning" and None not in (mine, value):
            value, mine = "".join(value.split()), "".join(mine.split())
        if mine != value and mine is not None and value is not None:
            out[name] = (value, mine)
    return out


def failed(calls, wants, gots, test):
    bad = []
    for call, want, got in zip(calls, wants, gots):
        if "ok" not in got:
            bad.append((call[:3], got))
        elif diff := test(call, want, got["ok"]):
            bad.append((call[:3], diff))
    return bad


def tell(bad):
    return f"{len(bad)} differ:\n" + "\n".join(str(b)[:600] for b in bad[:12])


def test_same_api(direct):
    """All that a package tells is what it tells at the provider."""
    calls, wants = zip(*[c for client in CLIENTS[direct.wire] for c in direct.calls(client)])
    told = direct.run(calls)
    ours = direct.through(calls)

    def differs(_, want, got):
        return {k: (want.get(k), got.get(k)) for k in want if want[k] != got.get(k)}

    known = [(c, w["ok"], o) for c, w, o in zip(calls, told, ours) if "ok" in w]
    assert len(known) > len(calls) * 0.9, [w for w in told if "ok" not in w][:5]
    bad = failed(*zip(*known), differs)
    assert not bad, tell(bad)


@pytest.mark.parametrize("step", [1, 2])
def test_another_api(direct, step):
    """E: text, calls, usage, reasoning and finish arrive in the words of the client's API."""
    wire = WIRES[(WIRES.index(direct.wire) + step) % len(WIRES)]
    calls, wants = zip(*[c for client in CLIENTS[wire] for c in direct.calls(client)])
    gots = direct.through(calls)
    wants = [expected(wire, w) for w in wants]
    bad = failed(calls, wants, gots, lambda c, want, got: compare(want, shown(c, got["meaning"])))
    assert not bad, tell(bad)


def everybody(text, tools=()):
    """Every way of every package asks it."""
    names = [c for wire in WIRES for c in CLIENTS[wire]]
    return [(c, way, text, tools) for c in names for way in ways(c)]


@pytest.mark.parametrize(
    "status,name,ours",
    [
        (400, "BadRequestError", [400]),
        (401, SERVER, [502, 503]),
        (404, "NotFoundError", [404]),
        (429, "RateLimitError", [429]),
        (500, SERVER, [502]),
    ],
)
def test_faults(direct, status, name, ours):
    """E.9: the class and status of each package's own error; a bad key of ours is not the client's."""
    calls = everybody(f"fault {status} {FAULTS[status]}")
    gots = direct.through(calls, f"by-{direct.wire}{status}")
    told = {c: g.get("error") for c, g in zip(calls, gots)}
    assert all(told.values()), told
    for call, error in told.items():
        assert error["status"] in ours and error["message"], (call, error)
        if call[0].startswith("maker"):
            assert error["name"] in name and error["type"], (call, error)


def test_cut(direct):
    """A stream that ends early is an error to every package, not a short answer."""
    calls = [c for c in everybody(f"cut {CUT[direct.wire]}") if c[1] != "plain"]
    gots = direct.through(calls)
    short = [(c, g) for c, g in zip(calls, gots) if "error" not in g and c[0] not in TAKES_PIECES]
    assert not short, short


MOCKED = ["say", "think", "use tools", "too long"]


def mocked(stage, wire, client, url, key, model):
    """All that the mock has, by each way of one API's packages."""
    tools = {"use tools": ["clock", "weather"]}
    calls = [
        {"client": c, "way": way, "model": model, "text": text, "tools": tools.get(text, [])}
        for c in client
        for way in ways(c)
        for text in MOCKED
    ]
    return calls, packages.node("clients.cjs", {"url": url, "key": key, "calls": calls})


@pytest.mark.parametrize("host", WIRES)
@pytest.mark.parametrize("wire", WIRES)
def test_mock(stage, wire, host):
    """Another provider, by other people: what it says on an API is what clients of each one get."""
    own = CLIENTS[wire] if wire == host else [f"maker {host}"]
    model = f"by-mock-{host}"
    asked, direct = mocked(stage, host, own, stage.mock, "up-key-mock", model)
    calls, ours = mocked(stage, wire, CLIENTS[wire], stage.base, st.TOKEN, model)
    whole = {(c["client"], c["way"], c["text"]): g["ok"]["meaning"] for c, g in zip(asked, direct)}
    bad = []
    for call, got in zip(calls, ours):
        way = (call["client"] if wire == host else own[0], call["way"], call["text"])
        want = whole[way] if wire == host else expected(wire, whole[way])
        if "ok" not in got:
            bad.append((way, got))
        elif diff := compare(want, shown((call["client"], call["way"]), got["ok"]["meaning"])):
            bad.append((call["client"], way, diff))
    assert not bad, tell(bad)
