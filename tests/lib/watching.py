"""watching - what scenarios of probes, balances and alerts share."""

import json

from .answers import error, ok, plain
from .pool import K1

MODELS = plain({"object": "list", "data": [{"id": "m1", "object": "model"}]})
REFUSED = error(401, "invalid_api_key", "Incorrect key")


def by_path(models=MODELS, chat=None):
    """One action for GET /models, another for everything else."""

    def act(x):
        return (models if x.request.target.endswith("/models") else chat or ok())(x)

    return act


def gets(up, cred=None):
    return [r for r in up.requests if r.method == "GET" and cred in (None, r.cred)]


def chats(up, cred=None):
    return [r for r in up.requests if r.method == "POST" and cred in (None, r.cred)]


def events(g, **like):
    rows = json.loads(g.ctl("events", "-n", "500", "--json").stdout)
    return [e for e in rows if all(e[k] == v for k, v in like.items())]


def fail(g, up, action, times, **ask):
    """`times` requests that A1, the only account, fails."""
    for _ in range(times):
        up.script(K1, action)
        g.ask(**ask)
