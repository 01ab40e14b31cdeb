"""A store that is full (SPEC 15): a clear error, requests go on, and no lease stays."""

import threading

from lib.answers import error, ok
from lib.upstream import wait_until


def test_no_lease_stays_when_it_cannot_be_settled(up, gate):
    up.default(error(404, "model_not_found", "The model does not exist"))
    g = gate(
        workers=6,
        accounts=1,
        pool={"max_in_flight": 50},
        store={"max_size": "1M"},
        allow=["could not be settled", "full"],
    )
    seen = []

    def client(n):
        for i in range(600):  # each name leaves rows
            seen.append(g.ask(model=f"model-{n}-{i}-" + "z" * 90).status)
            if i % 20 == 0 and "could not be settled" in g.log_text():
                return

    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert "could not be settled" in g.log_text(), "the store did not get full"
    assert set(seen) <= {404, 503}
    wait_until(lambda: g.in_flight() == 0, 3, "no lease stays")
    up.default(ok())
    assert g.ask().status == 200
