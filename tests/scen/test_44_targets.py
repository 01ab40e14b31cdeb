"""Targets of a model (SPEC 12): strategies, windows, rests of one target, the next one after a failure."""

import json
import time
from collections import Counter

import pytest
from lib import wires
from lib.answers import chat_answer, error, plain, slow
from lib.pool import K1, K2, key
from test_10_pick import together
from test_41_channels import B1, QUIET, channel

C1 = key(15)
D1 = key(19)
NAMES = {K1: "a", K2: "a", key(3): "a", B1: "b", C1: "c", D1: "d"}
WORDS = "word " * 3000  # about 3,000 tokens


def smart(*changes, **entry):
    """An entry with the targets oa/a, ob/b, oc/c, each changed as said."""
    rows = [{"channel": "o" + x, "model": x} for x in "abc"[: len(changes)]]
    return {"smart": {"targets": [{**r, **c} for r, c in zip(rows, changes)], **entry}}


@pytest.fixture
def gate(gate, up):
    """Channels oa, ob and oc with one account each, whose breakers stay out of the way."""

    def start(models, accounts=1, oa={}, ob={}, oc={}, more={}, **vary):
        vary.setdefault("breaker", {"threshold": 99})
        quiet = {"channel_breaker": QUIET}
        return gate(
            accounts=accounts,
            channel={**quiet, **oa},
            channels={
                "ob": channel(up, "B", **{**quiet, **ob}),
                "oc": channel(up, "C", **{**quiet, **oc}),
                **more,
            },
            models=models,
            **vary,
        )

    return start


def asked(up):
    """Letters of the targets in the order in which they were asked."""
    return "".join(NAMES.get(c, "?") for c in up.creds())


def targets(g, *more):
    doc = json.loads(g.ctl("explain", "--model", "smart", "--json", *more).stdout)
    return {t["model"]: t for t in doc["targets"]}


# Strategies ----------------------------------------------------------------------------------------


def test_weights(up, gate):
    g = gate(smart({"weight": 3}, {"weight": 1}, {"weight": 0}))
    answers = [g.ask(model="smart") for _ in range(80)]
    seen = Counter(a.header("X-Sluice-Model") for a in answers)
    assert set(seen) == {"a", "b"} and 42 <= seen["a"] <= 76, seen
    for a, r in zip(answers, up.requests):
        assert a.header("X-Sluice-Model") == r.json()["model"] == NAMES[r.cred]


def test_failures_lessen_a_weight(up, gate):
    g = gate(smart({}, {}), routing={"model_fail_after": 99})
    up.default(error(500), K1)
    for _ in range(60):
        assert g.ask(model="smart").status == 200
    seen = targets(g)
    assert seen["a"]["success_rate"] == 0 and seen["a"]["share"] < 0.06
    assert up.count(K1) < 25


def test_sessions_stay(up, gate):
    g = gate(smart({}, {}, {}))
    first = {}
    for n in range(24):
        for _ in range(3):
            a = g.ask(model="smart", headers=[("X-Session-Id", f"s{n}")])
            assert first.setdefault(n, a.header("X-Sluice-Model")) == a.header("X-Sluice-Model")
    assert set(first.values()) == {"a", "b", "c"}


def test_sessions_of_others_stay_when_a_target_goes(up, gate):
    g = gate(smart({}, {}, {}))
    ask = lambda n: g.ask(model="smart", headers=[("X-Session-Id", f"s{n}")])  # noqa: E731
    before = [ask(n).header("X-Sluice-Model") for n in range(12)]
    g.ctl("account", "disable", "ob/B1")
    for n, was in enumerate(before):
        now = ask(n).header("X-Sluice-Model")
        assert now == was if was != "b" else now in "ac"


def test_turns_of_the_responses_api_stay(up, gate):
    g = gate(smart({}, {}, {}))
    previous, models = {}, []
    for _ in range(7):
        body = {"model": "smart", "input": "Hi", **previous}
        a = g.send(body, path="/v1/responses").finish()
        previous = {"previous_response_id": a.json()["id"]}
        models.append(a.header("X-Sluice-Model"))
    assert len(set(models)) == 1


def test_performance(up, gate):
    up.default(slow(0.08), K1)
    up.default(slow(0.001), B1)
    up.default(slow(0.04), C1)
    g = gate(smart({}, {}, {}, strategy="performance"))
    models = [g.ask(model="smart").header("X-Sluice-Model") for _ in range(8)]
    assert sorted(models[:3]) == ["a", "b", "c"]  # who is not measured comes first
    assert models[3:] == ["b"] * 5


def test_performance_wants_success(up, gate):
    """The fast one fails too often; when all do, the best rate wins."""
    up.default(slow(0.03), K1)
    up.default(error(500), B1)
    g = gate(
        smart({}, {}, strategy="performance"), routing={"model_fail_after": 99, "fallback": "task"}
    )
    for _ in range(4):
        assert g.ask(model="smart").header("X-Sluice-Model") == "a"
    assert up.count(B1) == 1
    up.script(K1, error(500), error(500))
    g.ask(model="smart")
    g.ask(model="smart")
    assert targets(g)["a"]["success_rate"] < 0.95
    assert asked(up)[-2:] == "ab" and g.ask(model="smart").header("X-Sluice-Model") == "a"


COST = {"input": 1, "output": 1}


@pytest.mark.parametrize(
    "costs,order",
    [
        (({"input": 2, "output": 2}, COST, {"input": 3, "output": 3}), "bac"),
        ((None, COST, {"input": 0, "output": 0}), "cba"),  # unknown last, zero is free
        # for a short prompt and a long answer
        (({"input": 1, "output": 9}, {"input": 9, "output": 1}, None), "bac"),
    ],
)
def test_cost_first(up, gate, costs, order):
    up.default(error(503))
    g = gate(
        smart(*[{} if c is None else {"cost": c} for c in costs], strategy="cost-first"),
        upstream={"max_attempts": 3, "retry_backoff": "1ms"},
    )
    assert g.ask(model="smart").status == 503
    assert asked(up) == order


def test_cost_first_counts_the_prompt(up, gate):
    """The price of the prompt outweighs that of the answer where the prompt is long."""
    g = gate(
        smart({"cost": {"input": 1, "output": 9}}, {"cost": {"input": 9, "output": 1}}),
        routing={"default": "cost-first"},
    )
    # by tokens, not by bytes
    blank = [{"role": "user", "content": "x" + " " * 20000 + "y"}]
    assert g.ask(model="smart", max_tokens=400, messages=blank).header("X-Sluice-Model") == "b"
    a = g.ask(model="smart", max_tokens=400, messages=[{"role": "user", "content": WORDS}])
    assert a.header("X-Sluice-Model") == "a"
    assert g.ask(model="smart", max_tokens=1).header("X-Sluice-Model") == "a"


# After a failure -----------------------------------------------------------------------------------


def test_the_next_target_is_chosen_by_the_fallback_strategy(up, gate):
    up.script(K1, error(500))
    g = gate(
        smart(
            {"tasks": []},
            {"cost": {"input": 2, "output": 2}},
            {"cost": {"input": 1, "output": 1}},
            strategy="task",
        ),
        oa={"fallback": ["ob"]},
    )
    a = g.ask(model="smart")
    assert (asked(up), a.header("X-Sluice-Attempts")) == ("ac", "2")
    assert [r.json()["model"] for r in up.requests] == ["a", "c"]
    line = [x for x in g.logs() if x.get("msg") == "request"][-1]
    assert (line["model"], line["channel"], line["routing"]) == ("c", "oc", "cost-first")
    assert [(t["channel"], t["model"], t["kind"]) for t in line["attempts"]] == [
        ("oa", "a", "server"),
        ("oc", "c", "ok"),
    ]


@pytest.mark.parametrize(
    "attempts,accounts,order",
    [(3, 2, "aab"), (2, 2, "ab"), (1, 2, "a"), (4, 1, "abcd"), (5, 2, "aabcd")],
)
def test_attempts_over_targets(up, gate, attempts, accounts, order):
    """As over channels: the first target leaves one; behind the targets comes the first one's chain."""
    up.default(error(500, None, "oops"))
    d = channel(up, "C")
    d["accounts"] = [{"id": "D1", "api_key": D1}]
    g = gate(
        smart({}, {}, {}, strategy="task"),
        accounts,
        {"fallback": ["oc", "od"]},
        more={"od": d},
        routing={"fallback": "task"},
        upstream={"max_attempts": attempts, "retry_backoff": "1ms"},
    )
    a = g.ask(model="smart")
    assert asked(up) == order and a.header("X-Sluice-Attempts") == str(len(order))
    assert (a.status, a.error["message"]) == (502, "oops")
    assert [r.json()["model"] for r in up.requests][-1] == (order[-1] if order[-1] != "d" else "a")


def test_the_first_target_leaves_one_attempt(up, gate):
    up.default(error(500))
    g = gate(smart({}, {}, strategy="task"), 2, upstream={"max_attempts": 2})
    assert g.ask(model="smart").status == 502 and asked(up) == "ab"


def test_the_callers_fault_is_nobody_elses(up, gate):
    up.script(K1, error(400, "bad_request"))
    assert gate(smart({}, {}, strategy="task")).ask(model="smart").status == 400
    assert asked(up) == "a"


def two_models(**vary):
    rows = [{"channel": "oa", "model": "a"}, {"channel": "oa", "model": "d"}]
    return {"smart": {"targets": rows, "strategy": "task", **vary}}


@pytest.mark.parametrize(
    "action,again",
    [
        (error(500), True),
        (error(404, "model_not_found", "no such model"), True),
        (error(401, "invalid_api_key"), False),
        (error(429), False),
    ],
)
def test_another_model_on_the_same_account(up, gate, action, again):
    """It is asked where the model may be to blame; an account that is is asked once (REQ-06)."""
    up.script(K1, action)
    g = gate(two_models(), cooldown={"auth_failed_after": 2}, pool={"all_cooling": "off"})
    a = g.ask(model="smart")
    assert [r.json()["model"] for r in up.requests] == (["a", "d"] if again else ["a"])
    assert (a.status == 200) == again


# Who is left out -----------------------------------------------------------------------------------


def rest_one(up, g):
    up.script(K1, *[error(500)] * 3)
    for _ in range(3):
        g.ask(model="smart")


REST = {"model_fail_after": 3, "model_cooldown": "400ms", "fallback": "task"}


def test_a_target_rests_and_is_tried_once(up, gate):
    """Exactly one of many requests at once over 8 processes tries it; its success brings it back."""
    g = gate(
        smart({}, {}, strategy="task"),
        oa={"pool": {"max_in_flight": 0}},
        ob={"pool": {"max_in_flight": 0}},
        workers=8,
        routing=REST,
    )
    rest_one(up, g)
    assert asked(up) == "ab" * 3
    seen = targets(g)
    assert (seen["a"]["state"], seen["a"]["out"]) == ("rests", "rests after failures")
    assert g.ask(model="smart").header("X-Sluice-Model") == "b"
    g.ctl("account", "clear", "--all")
    up.script(K1, slow(0.3))
    time.sleep(0.45)
    assert targets(g)["a"]["state"] == "trial"
    up.clear()
    answers = together(16, lambda i: g.ask(model="smart"))
    assert [a.status for a in answers] == [200] * 16
    assert up.count(K1) == 1 and up.count(B1) == 15
    assert targets(g)["a"]["state"] == "open"
    assert g.ask(model="smart").header("X-Sluice-Model") == "a"


def test_a_trial_that_fails_has_one_attempt(up, gate):
    g = gate(smart({}, {}, strategy="task"), 3, routing=REST, upstream={"max_attempts": 6})
    up.default(error(500), K1, K2, key(3))
    g.ask(model="smart")
    assert up.count(B1) == 1
    time.sleep(0.45)
    up.clear()
    assert g.ask(model="smart").header("X-Sluice-Model") == "b"
    assert (len(up.creds()), up.count(B1)) == (2, 1)
    assert targets(g)["a"]["state"] == "rests"


def test_the_only_target_rests(up, gate):
    g = gate(smart({}), routing={"model_fail_after": 3, "model_cooldown": "30s"})
    rest_one(up, g)
    a = g.ask(model="smart")
    assert (a.status, a.error["code"], up.count()) == (503, "model_resting", 3)
    assert 27 <= int(a.header("Retry-After")) <= 30
    said = json.loads(g.ctl("explain", "--model", "smart", "--json").stdout)["refusal"]
    assert said["code"] == "model_resting" and 25 <= said["retry_after_s"] <= 30
    assert g.ask(model="a").status == 200  # by its own name it is no target


def test_the_only_target_rests_and_has_a_fallback(up, gate):
    g = gate(smart({}), oa={"fallback": ["ob"]}, routing={"model_fail_after": 1})
    up.script(K1, error(500))
    assert g.ask(model="smart").status == 200
    assert g.ask(model="smart").header("X-Sluice-Channel") == "ob"
    assert up.creds() == [K1, B1, B1]


def test_channels_of_targets_are_told_apart_from_a_last_chance(gate):
    g = gate(smart({}, {}))
    text = g.ctl("explain", "--model", "smart").stdout
    assert text.count("breaker closed: can serve\n") == 2 and "at the end" not in text


def test_exhausted_and_open_targets_are_left_out(up, gate):
    g = gate(
        smart({}, {}, {}, strategy="task"),
        ob={"channel_breaker": {"triggers": ["consecutive_fail"], "consecutive_fail": 1}},
        routing={"fallback": "task", "model_fail_after": 99},
        allow=[r"channel \["],
    )
    up.script(K1, error(429, headers={"Retry-After": "60"}))
    up.script(B1, error(500))
    assert g.ask(model="smart").header("X-Sluice-Model") == "c"
    assert asked(up) == "abc"
    assert g.ask(model="smart").header("X-Sluice-Attempts") == "1"
    assert [targets(g)[x]["out"] for x in "abc"] == [
        "no account can be had now",
        "its channel's breaker is open",
        None,
    ]
    g.ctl("account", "disable", "oc/C1")
    a = g.ask(model="smart")
    assert (a.status, a.error["code"]) == (429, "pool_exhausted")
    assert 50 <= int(a.header("Retry-After")) <= 60


def test_a_full_target_is_no_reason_to_wait(up, gate):
    up.script(K1, slow(0.6))
    up.script(B1, slow(0.6))
    g = gate(
        smart({}, {}, strategy="task"),
        workers=4,
        pool={"max_in_flight": 1, "queue_size": 4, "queue_timeout": "3s"},
    )
    a = g.open(model="smart", stream=False)
    up.wait_for(1, K1)
    b = g.open(model="smart", stream=False)
    up.wait_for(1, B1)
    c = g.open(model="smart", stream=False)  # all are full now: it waits for the first
    answers = [x.finish() for x in (a, b, c)]
    assert [x.header("X-Sluice-Model") for x in answers] == ["a", "b", "a"]


def test_mixed(up, gate):
    """The task's target; where it cannot be had, by the fallback strategy."""
    g = gate(
        smart(
            {"tasks": ["chat"]},
            {"cost": {"input": 2, "output": 2}},
            {"cost": {"input": 1, "output": 1}},
            strategy="mixed",
        )
    )
    task = {"headers": [("X-Task-Type", "chat")]}
    assert g.ask(model="smart", **task).header("X-Sluice-Model") == "a"
    g.ctl("account", "disable", "oa/A1")
    assert g.ask(model="smart", **task).header("X-Sluice-Model") == "c"


# Windows -------------------------------------------------------------------------------------------

LONG = [{"role": "user", "content": WORDS}]


def windows(*sizes, **entry):
    return smart(*[{"context_window": n} if n else {} for n in sizes], strategy="task", **entry)


def test_a_target_that_is_too_small_is_left_out(up, gate):
    g = gate(windows(1000, 2000, 50000))
    assert g.ask(model="smart").header("X-Sluice-Model") == "a"
    assert g.ask(model="smart", messages=LONG).header("X-Sluice-Model") == "c"
    # what the answer may take counts
    assert g.ask(model="smart", max_tokens=995).header("X-Sluice-Model") == "b"


def test_an_unknown_window_fits(up, gate):
    g = gate(windows(1000, None))
    assert g.ask(model="smart", messages=LONG).header("X-Sluice-Model") == "b"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_no_window_is_large_enough(up, gate, path):
    g = gate(windows(1000, 2000))
    body = {"model": "smart", "max_tokens": 100, "messages": LONG}
    if path == "/v1/responses":
        body = {"model": "smart", "max_output_tokens": 100, "input": WORDS}
    a = g.send(body, path=path).finish()
    assert a.status == 400 and up.count() == 0
    text = a.json()["error"]["message"]
    n = next(int(w) for w in text.replace("(", " ").split() if w.isdigit() and 2500 < int(w) < 3010)
    if path == "/v1/messages":
        assert text.startswith("prompt is too long: ") and text.endswith(f": {n} + 100 > 2000")
    else:
        assert a.error["code"] == "context_length_exceeded"
        assert text.startswith("This model's maximum context length is 2000 tokens. However, ")
    assert a.header("X-Sluice-Attempts") == "0"
    line = [x for x in g.logs() if x.get("msg") == "request"][-1]
    assert line["outcome"] == "context_length_exceeded"


def test_a_large_target_that_rests_is_no_400(up, gate):
    g = gate(windows(1000, 50000), routing={"model_fail_after": 1})
    up.script(B1, error(500))
    g.ask(model="smart", messages=LONG)
    a = g.ask(model="smart", messages=LONG)
    assert (a.status, a.error["code"]) == (503, "model_resting")


def test_an_estimate_is_corrected(up, gate):
    """Upstreams say that it is twice as much: what seemed to fit does not any more."""
    usage = {"prompt_tokens": 6000, "completion_tokens": 1, "total_tokens": 6001}
    up.default(plain(chat_answer(usage=usage)), K1)
    g = gate(windows(3500, 50000))
    seen = "".join(g.ask(model="smart", messages=LONG).header("X-Sluice-Model") for _ in range(40))
    assert seen.startswith("a") and seen.endswith("b"), seen


def test_a_conversation_that_is_trimmed_stays_with_a_small_window(up, gate):
    """X-Context: only what is always kept must fit; sent whole it would be too large."""
    up.default(plain(chat_answer(usage=None)))
    g = gate(windows(1000, 50000), context={"enabled": True})
    head = [("X-Session-Id", "s"), ("X-Context", "append")]
    for _ in range(6):
        text = [{"role": "user", "content": "word " * 300}]
        a = g.ask(model="smart", messages=text, headers=head)
        assert a.header("X-Sluice-Model") == "a"
    assert a.header("X-Sluice-Trimmed") is not None
    assert g.ask(model="smart", messages=text * 20).header("X-Sluice-Model") == "b"


# APIs ----------------------------------------------------------------------------------------------


def test_targets_of_several_apis(up, gate):
    """A request is converted for the target that it goes to; what cannot be said there goes elsewhere."""
    up.default(plain(wires.answer("messages", "hey")), B1)
    g = gate(
        smart({}, {}, strategy="task"), ob={"provider": "openai-compatible", "wire": "messages"}
    )
    up.script(K1, error(500))
    a = g.ask(model="smart")
    assert (a.header("X-Sluice-Model"), a.json()["choices"][0]["message"]["content"]) == (
        "b",
        "hey",
    )
    assert [r.target.rsplit("/", 1)[-1] for r in up.requests] == ["completions", "messages"]


def test_what_one_api_cannot_say(up, gate):
    g = gate(smart({}, {}, strategy="task"), oa={"wire": "messages"})
    a = g.ask(model="smart", n=2)
    assert (a.status, a.header("X-Sluice-Model")) == (200, "b")


def test_other_endpoints_have_targets_of_their_wire(up, gate):
    g = gate(smart({}, {}, strategy="task"), oa={"wire": "messages"})
    body = {"model": "smart", "input": "text"}
    a = g.send(body, path="/v1/embeddings").finish()
    assert a.header("X-Sluice-Model") == "b"


# Explain -------------------------------------------------------------------------------------------


def test_explain(up, gate):
    boss = {"REMOTE_USER": "boss"}
    g = gate(
        smart({"context_window": 100}, {"cost": {"input": 1, "output": 2}}, {"weight": 3}),
        auth={"mode": "web-server", "admins": ["boss"]},
    )
    a = g.ask(model="smart", messages=LONG, headers=[("X-Sluice-Explain", "1")], vary=boss)
    doc = a.json()
    seen = {t["model"]: t for t in doc["targets"]}
    assert [seen[x]["out"] for x in "abc"] == ["its context window is too small", None, None]
    assert [seen[x]["share"] for x in "abc"] == [0, 0.25, 0.75]
    tokens = seen["b"]["prompt_tokens"]
    assert 2500 < tokens < 3500
    assert seen["b"]["cost"] == pytest.approx(tokens / 1000 + 0.5 * 2)
    assert (doc["routing"], doc["task"], doc["would"]["model"]) == ("weighted-random", None, "c")
    assert up.count() == 0
    a = g.ask(model="smart", headers=[("X-Sluice-Explain", "1"), ("X-Session-Id", "s")], vary=boss)
    model = g.ask(model="smart", headers=[("X-Session-Id", "s")], vary=boss).header(
        "X-Sluice-Model"
    )
    assert a.json()["would"]["model"] == model
    text = g.ctl("explain", "--model", "smart", "--tokens", "200").stdout
    assert "oa/a" in text and "its context window is too small" in text


def test_explain_refuses_as_a_request_is(up, gate):
    g = gate(windows(1000))
    doc = json.loads(g.ctl("explain", "--model", "smart", "--tokens", "2000", "--json").stdout)
    assert doc["refusal"]["code"] == "context_length_exceeded" and doc["channels"] == []
