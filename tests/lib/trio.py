"""trio - one pool with a channel for each API, shared by many cases.

The model's name chooses the channel: "m-chat", "m-messages", "m-responses", and channels of single
providers. The upstream checks every converted request as a strict provider would; what it finds
wrong is in `faults`, and Trio.ask() fails with it.
"""

import json

from . import answers, strict, wires
from .pool import Pool, config, key
from .upstream import Upstream

OTHERS = [(c, u) for c in wires.WIRES for u in wires.WIRES if c != u]
PAIRS = [(c, u) for c in wires.WIRES for u in wires.WIRES]
MORE = {
    "openai": "chat",
    "deepseek": "chat",
    "zhipu": "chat",
    "anthropic": "messages",
}


class Trio:
    def __init__(self, workers=1, **sections):
        self.up = Upstream()
        self.wire_of = {**{w: w for w in wires.WIRES}, **MORE}
        base = {
            "server": {"max_requests": 0},
            "pool": {"max_in_flight": 0, "min_pick_gap": "0s"},
            "breaker": {"threshold": 1000000},
            "channel_breaker": {"triggers": []},
            "cooldown": {"overload": "0s", "not_found": "0s"},
        }
        conf = config(self.up.url, **{**base, **sections})
        conf["channels"] = {name: self._channel(n, name) for n, name in enumerate(self.wire_of)}
        self.pool = Pool(conf, workers)
        self.faults, self.answer, self.asked = [], None, None
        self.up.default(self._act)

    def _channel(self, n, name):
        return {
            "provider": name if name in MORE else "openai-compatible",
            "wire": self.wire_of[name],
            "base_url": self.up.url,
            "models": [f"m-{name}", f"{name}/*"],
            "accounts": [{"id": f"A{n}", "api_key": key(n + 1)}],
        }

    def _act(self, x):
        """As self.answer says; else the right answer."""
        wire = next(w for w in wires.WIRES if x.request.target.endswith(wires.path(w)[3:]))
        try:
            strict.check(wire, x.request.body, made=wire != self.asked)
        except Exception as e:
            self.faults.append(f"{type(e).__name__}: {e}\n{x.request.body[:1500]!r}")
        answer = self.answer or wires.serve(wire)
        answer(x)

    def close(self):
        """No account may have come to harm, unless a test said so."""
        self.pool.close()
        self.up.stop()

    def send(self, client, host, body, answer=None, headers=(), path=None, model=None):
        """A request (bytes, or an object whose model is put in) of API `client` to channel `host`."""
        self.up.clear()
        self.answer, self.asked = answer, client
        if isinstance(body, dict):
            body = json.dumps({**body, "model": model or f"m-{host}"}).encode()
        return self.pool.send(body, path=path or wires.path(client), headers=headers)

    def get(self, client, host, body, answer=None, **vary):
        a = self.send(client, host, body, answer, **vary).finish(30)
        faults, self.faults = self.faults, []
        assert not faults, faults[0]
        return a

    def sent(self, client, host, body, **vary):
        """What the upstream got of it."""
        a = self.get(client, host, body, **vary)
        assert a.status == 200, a.out[:3000]
        assert self.up.count() == 1
        return self.up.last.json()

    def refused(self, client, host, body, *words, **vary):
        """One 400 in the client's shape that holds the words, and nobody was asked. Its message."""
        a = self.get(client, host, body, **vary)
        assert (a.status, self.up.count()) == (400, 0), (a.status, self.up.count(), a.body[:500])
        kind, message, _ = wires.error_of(client, a.json())
        assert kind == "invalid_request_error"
        assert a.header("x-sluice-attempts") == "0"
        for word in words:
            assert word in message, (word, message)
        return message

    def read(self, client, answer, streamed=False):
        """The meaning of the client's answer."""
        assert answer.status == 200, answer.out[:3000]
        if streamed:
            return wires.gathered(client, answer.body)
        return wires.meaning(client, answer.json())

    def harmed(self):
        """Accounts that were blamed for anything, or that are not free."""
        found = []
        for c in self.pool.status()["channels"]:
            for a in c["accounts"]:
                names = ("fails", "errors", "rate_limited", "in_flight", "consecutive_failures")
                bad = {n: a[n] for n in names if a[n]}
                if a["state"] != "active" or a["cool"] or bad:
                    found.append((c["name"], a["state"], a["cool"], bad))
        return found
