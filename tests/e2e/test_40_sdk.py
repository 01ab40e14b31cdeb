"""The openai SDK must make of an answer through the gateway what it makes of the provider's own."""

import base64
import glob
import os
import random
import struct

import packages
import pytest
import stage as st
from stage import Gate, answers, question, texts

STREAMS = os.path.join(st.ROOT, "tests", "data", "streams")
CHATS = sorted(
    os.path.relpath(p, STREAMS)
    for p in glob.glob(os.path.join(STREAMS, "*", "chat-*.resp.sse"))
    + glob.glob(os.path.join(STREAMS, "kimi", "*.resp.sse"))
)
SEEDS = (1, 2, 3)
BOTH = ("lighttpd-spawn", "apache-proxy")


@pytest.fixture(scope="module", params=BOTH)
def stage(request):
    """One of each web server: what differs between set-ups has its tests elsewhere."""
    s = st.Stage(request.param)
    yield s
    s.stop()


@pytest.fixture(scope="session")
def sdk():
    """Runs calls of the openai package."""
    packages.install()

    def run(base, key, *calls, **options):
        calls = [{"op": op, "params": params} for op, params in calls]
        given = {"base": base, "key": key, "options": options, "calls": calls}
        return packages.node("calls.cjs", given, 60)

    return run


def both(sdk, stage, cred, *calls):
    """What the SDK says directly at the provider, and through the gateway."""
    return sdk(stage.up.url, cred, *calls), sdk(stage.base + "/v1", st.TOKEN, *calls)


def test_plain_stream_tools(stage, sdk):
    tools = [
        {
            "type": "function",
            "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
        }
    ]
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
    }

    def answer(x):
        asked = x.request.json()
        if asked.get("tools") and not asked.get("stream"):
            body = answers.chat_answer(None, finish="tool_calls")
            body["choices"][0]["message"]["tool_calls"] = [call]
            return answers.plain(body)(x)
        if asked.get("tools"):
            first = {**call, "index": 0, "function": {"name": "weather", "arguments": ""}}
            parts = [
                {"index": 0, "function": {"arguments": a}} for a in ('{"ci', 'ty":"Os', 'lo"}')
            ]
            deltas = [answers.chunk({"tool_calls": [p]}) for p in [first] + parts]
            return answers.stream(
                answers.chat_chunks(finish=None, done=False)
                + deltas
                + [answers.chunk({}, "tool_calls"), "[DONE]"],
                how="events",
            )(x)
        return answers.ok("hello there")(x)

    stage.up.default(answer)
    direct, ours = both(
        sdk,
        stage,
        "up-key-1",
        ("chat", question()),
        ("stream", question()),
        ("helper", question()),
        ("chat", question(tools=tools)),
        ("stream", question(tools=tools)),
        ("helper", question(tools=tools)),
    )
    assert ours == direct
    assert ours[0]["ok"]["choices"][0]["message"]["content"] == "hello there"
    assert (
        ours[5]["ok"]["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        == '{"city":"Oslo"}'
    )


@pytest.mark.parametrize("kind", [k for k in st.KINDS if k not in BOTH])
def test_other_set_ups(kind, sdk):
    """The server of a set-up may change nothing that the SDK sees: one question each."""
    s = st.Stage(kind)
    try:
        s.up.default(answers.ok("hello there"))
        asked = [("chat", question()), ("stream", question()), ("helper", question())]
        direct, ours = both(sdk, s, "up-key-1", *asked)
        assert ours == direct and all("ok" in one for one in ours), ours
        test_no_credentials(s, sdk)
    finally:
        s.stop()


def test_usage_chunk_only_if_asked(stage, sdk):
    asked = {"stream_options": {"include_usage": True}}
    direct, ours = both(
        sdk, stage, "up-key-1", ("stream", question(**asked)), ("stream", question())
    )
    assert ours == direct
    assert ours[0]["ok"][-1]["usage"] == answers.USAGE and not any(
        c.get("usage") for c in ours[1]["ok"]
    )
    assert stage.up.last.json()["stream_options"] == {
        "include_usage": True
    }, "needed for our ledger"


def test_embeddings(stage, sdk):
    vector = [0.5, -0.25, 3.0, 1e-3]

    def answer(x):
        asked = x.request.json()
        data = vector
        if asked.get("encoding_format") == "base64":
            data = base64.b64encode(struct.pack("<4f", *vector)).decode()
        answers.plain(
            {
                "object": "list",
                "data": [{"object": "embedding", "index": 0, "embedding": data}],
                "model": "em",
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        )(x)

    stage.up.default(answer)
    direct, ours = both(
        sdk,
        stage,
        "up-key-1",
        ("embeddings", {"model": "em", "input": "a"}),
        ("embeddings", {"model": "em", "input": "a", "encoding_format": "float"}),
    )
    assert ours == direct and ours[1]["ok"]["data"][0]["embedding"] == vector
    assert [round(v, 6) for v in ours[0]["ok"]["data"][0]["embedding"]] == vector


def test_models(stage, sdk):
    (got,) = sdk(stage.base + "/v1", st.TOKEN, ("models", None))
    assert {"m1", "solo"} <= set(got["ok"]) and stage.up.count() == 0


@pytest.mark.parametrize(
    "status,name,ours_status",
    [
        (400, "BadRequestError", 400),
        (401, "InternalServerError", None),
        (404, "NotFoundError", 404),
        (429, "RateLimitError", 429),
        (500, "InternalServerError", 502),
    ],
)
def test_errors(stage, sdk, status, name, ours_status):
    """The client's faults keep their status; a bad key of ours is not the client's 401."""
    code = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}.get(status)
    stage.up.default(answers.error(status, code, f"upstream says {status}"), f"up-key-{status}")
    got = sdk(
        stage.base + "/v1",
        st.TOKEN,
        ("chat", question(model=f"e{status}")),
        ("stream", question(model=f"e{status}")),
    )
    for one in got[:1] if status in (401, 429) else got:
        assert one["error"]["name"] == name and one["error"]["message"], got
        assert ours_status in (None, one["error"]["status"]), got


def test_no_credentials(stage, sdk):
    asked = stage.up.count()
    (got,) = sdk(stage.base + "/v1", "sl-wrong-000000", ("chat", question()))
    assert got["error"]["name"] == "AuthenticationError" and stage.up.count() == asked, got


def test_error_in_a_running_stream(stage, sdk):
    """Cut without an end: the SDK must raise, not take the piece for the whole."""
    cut = answers.chat_chunks("some", finish=None, done=False)
    told = {"error": {"message": "upstream broke", "type": "server_error", "code": None}}
    for action in (
        answers.stream(cut),
        answers.stream(cut, end="fin"),
        answers.stream(cut, end="rst"),
        answers.stream(cut + [told]),
    ):
        stage.up.default(action)
        (got,) = sdk(stage.base + "/v1", st.TOKEN, ("stream", question()))
        assert "error" in got and got["error"]["message"], got


def test_leaving_a_stream(stage, sdk):
    gate = Gate(*texts(6)).let(3)
    stage.up.default(gate)
    assert sdk(stage.base + "/v1", st.TOKEN, ("cancel", question())) == [{"ok": 2}]
    assert gate.gone.wait(4), "the upstream transfer goes on"


@pytest.mark.parametrize("name", CHATS)
def test_recorded_chat_streams(stage, sdk, name):
    asked = question(model="solo", stream_options={"include_usage": True})
    replay(stage, sdk, name, "up-key-solo", ("stream", asked), ("helper", asked))


def replay(stage, sdk, name, cred, *calls):
    """Each call once directly and, cut at random places, once for each seed through the gateway."""
    with open(os.path.join(STREAMS, name), "rb") as f:
        body = f.read()
    stage.up.default(answers.stream(body), cred)
    direct = sdk(stage.up.url, cred, *calls)
    assert all("ok" in one for one in direct), direct
    cuts = [
        sorted(random.Random(f"{name} {seed}").sample(range(1, len(body)), 60)) for seed in SEEDS
    ]
    stage.up.script(
        cred, *[answers.stream(body, how=cut, gap=0.001) for cut in cuts for _ in calls]
    )
    ours = sdk(stage.base + "/v1", st.TOKEN, *list(calls) * len(cuts))
    for i, cut in enumerate(cuts):
        assert ours[i * len(calls) : (i + 1) * len(calls)] == direct, f"cut at {cut}"
