"""POST /v1/run (SPEC 4.1, 4.3, 13): our own API, served by channels of any."""

import json
import re

import pytest

from lib import wires
from lib.answers import chunk, error, hang, ok, plain, stream
from lib.fcgi import parse_sse
from lib.pool import K1, key
from lib.wires import WIRES

ANSWER = ["success", "session_id", "content", "model_used", "account_id", "error"]
each = pytest.mark.parametrize("wire", WIRES)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])


def send(g, input="Hi", headers=(), user=None, **body):
    body = {"model": "m1", "input": input, **body}
    body = {k: v for k, v in body.items() if v is not None}
    vary = {"REMOTE_USER": user} if user else {}
    return g.send(body, path="/v1/run", headers=headers, **vary).finish()


def last(answer):
    """The last document of an answer, whichever way it came; of a stream its pieces must make the content."""
    if answer.header("content-type") != "text/event-stream":
        return answer.json()
    events = [json.loads(data) for _, data in parse_sse(answer.body)]
    assert all(list(e) == ["content"] for e in events[:-1]), events
    if events[-1]["success"]:
        assert "".join(e["content"] for e in events[:-1]) == events[-1]["content"]
    return events[-1]


def failed(answer, status, words=""):
    assert answer.status == status, answer.out
    body = last(answer)
    assert list(body) == ["success", "error"] and body["success"] is False, body
    assert body["error"].startswith("Request failed: ") and words in body["error"], body
    return body["error"]


# Answers -------------------------------------------------------------------------------------------


@each
@modes
def test_answer(up, gate, wire, streamed):
    """The channel is asked in its own API, the client gets ours."""
    up.default(wires.serve(wire, "hel\u00e9 \U0001f600lo"))
    g = gate(accounts=1, channel={"wire": wire}, models={"m1": target("up-m")})
    a = send(g, "What\u00e9?", session_id="s-1", stream=streamed or None)
    assert a.status == 200, a.out
    body = last(a)
    assert list(body) == ANSWER
    assert body == {
        "success": True,
        "session_id": "s-1",
        "content": "hel\u00e9 \U0001f600lo",
        "model_used": "up-m",
        "account_id": "A1",
        "error": None,
    }
    assert (a.header("x-sluice-account"), a.header("x-sluice-model")) == ("A1", "up-m")
    assert wires.said(wire, up.last.json()) == ("What\u00e9?", [])
    assert bool(up.last.json().get("stream")) == streamed
    assert g.account()["tokens"]["prompt"] == wires.FIGURES["prompt"]


def target(model):
    return {"targets": [{"channel": "oa", "model": model}]}


def test_stream_comes_piece_by_piece(up, gate):
    events = [chunk({"role": "assistant"}), chunk({"reasoning_content": "hm"})]
    events += [chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), "[DONE]"]
    up.script(K1, stream(events))
    a = send(gate(), stream=True, session_id="s")
    document = last(a)
    assert a.body == (
        b'data: {"content":"a"}\n\ndata: {"content":"b"}\n\ndata: '
        + json.dumps(document, separators=(",", ":")).encode()
        + b"\n\n"
    )
    assert document["content"] == "ab"


def test_a_plain_answer_serves_a_stream(up, gate):
    up.script(K1, plain(wires.answer("chat", "whole")))
    assert last(send(gate(), stream=True))["content"] == "whole"


def test_another_account_answers(up, gate):
    up.script(K1, error(500))
    body = last(send(gate()))
    assert (body["success"], body["account_id"]) == (True, "A2")


def test_input_of_parts(up, gate):
    url = "data:image/png;base64,iVBORw0KGgo="
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    assert last(send(gate(), parts))["success"]
    assert up.last.json()["messages"] == [{"role": "user", "content": parts}]


def test_what_is_not_known_is_named(up, gate):
    a = send(gate(), temperature=1, messages=[])
    assert (a.status, a.header("x-sluice-dropped")) == (200, "run.temperature,run.messages")
    assert up.last.json()["messages"] == [{"role": "user", "content": "Hi"}]
    assert "temperature" not in up.last.json()


def test_it_is_explained(up, gate):
    g = gate(auth={"mode": "web-server", "admins": ["u"]}, models={"m": target("up-m")})
    a = send(g, model=None, session_id="s", headers={"X-Sluice-Explain": "1"}, user="u")
    assert (a.status, a.json()["model"], up.count()) == (200, "m", 0), a.out


# Sessions ------------------------------------------------------------------------------------------


def test_a_session_is_made(up, gate):
    g = gate()
    made = [last(send(g))["session_id"] for _ in range(3)]
    assert len(set(made)) == 3 and all(re.fullmatch("run_[0-9a-f]{32}", s) for s in made)


def test_the_header_names_it_too(up, gate):
    g = gate()
    assert last(send(g, headers={"X-Session-Id": "h"}))["session_id"] == "h"
    assert last(send(g, session_id="b", headers={"X-Session-Id": "h"}))["session_id"] == "b"


def test_a_session_stays_with_its_account(up, gate):
    """Also when it goes on at another path under the same name."""
    g = gate(accounts=3, tiers=False, pool={"strategy": "round-robin"})
    first = [last(send(g, session_id="s"))["account_id"] for _ in range(3)]
    chat = g.ask(headers={"X-Session-Id": "s"}).header("x-sluice-account")
    assert first + [chat] == first[:1] * 4


def history(request):
    """What the upstream was asked, in chat's words."""
    return [(m["role"], m["content"]) for m in request.json()["messages"]]


@modes
def test_a_conversation_goes_on(up, gate, streamed):
    """The client sends only what is new; what failed is not part of it."""
    g = gate(accounts=1, allow=["."])
    up.script(K1, ok("one"), error(400, "invalid_request", "no"), ok("two"), ok("three"))
    session = last(send(g, "1", stream=streamed))["session_id"]
    failed(send(g, "lost", session_id=session, stream=streamed), 400)
    assert last(send(g, "2", session_id=session, stream=streamed))["content"] == "two"
    assert last(send(g, "3", session_id=session, stream=streamed))["session_id"] == session
    assert history(up.last) == [
        ("user", "1"),
        ("assistant", "one"),
        ("user", "2"),
        ("assistant", "two"),
        ("user", "3"),
    ]


def test_a_stream_that_broke_off_is_not_kept(up, gate):
    g = gate(accounts=1, allow=["."])
    up.script(K1, stream([chunk({"content": "a"})], end="rst"), ok("b"))
    failed(send(g, "1", session_id="s", stream=True), 200)
    assert last(send(g, "2", session_id="s"))["success"]
    assert history(up.last) == [("user", "2")]


@each
def test_it_goes_on_at_another_api(up, gate, wire):
    """Also where the conversation began with pictures."""
    url = "data:image/png;base64,iVBORw0KGgo="
    parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    other = {"provider": "openai-compatible", "wire": wire, "base_url": up.url}
    other["accounts"] = [{"id": "B1", "api_key": key(9)}]
    g = gate(accounts=1, channels={"other": {**other, "models": ["m2"]}}, channel={"models": ["m1"]})
    up.default(wires.serve(wire, "a dog"), key(9))
    assert last(send(g, parts, session_id="s"))["success"]
    body = last(send(g, "Sure?", session_id="s", model="m2"))
    assert (body["content"], body["account_id"]) == ("a dog", "B1")
    asked = json.dumps(up.last.json())
    assert all(word in asked for word in ["What?", "iVBORw0KGgo=", '"hi"', "Sure?"])


def test_sessions_of_others_are_foreign(up, gate):
    g = gate(auth={"mode": "web-server"})
    for user in ["ann", "bob"]:
        assert last(send(g, "of " + user, session_id="s", user=user))["session_id"] == "s"
        assert history(up.last) == [("user", "of " + user)]
    last(send(g, "more", session_id="s", user="ann"))
    assert history(up.last)[0] == ("user", "of ann") and len(history(up.last)) == 3


# Models --------------------------------------------------------------------------------------------


def test_no_model_is_the_first_of_models(up, gate):
    g = gate(models={"fast": target("f1"), "smart": target("s1")})
    assert last(send(g, model=None))["model_used"] == "f1"


def test_no_model_where_tasks_choose(up, gate):
    """task_type is the task; it may have any of its usual names."""
    g = gate(
        models={"fast": target("f1"), "smart": target("s1")},
        routing={"tasks": {"code": "smart", "default": "fast"}},
    )
    assert last(send(g, model=None, task_type="code-generation"))["model_used"] == "s1"
    assert last(send(g, model=None, task_type="translation"))["model_used"] == "f1"
    assert last(send(g, model="auto", task_type="code"))["model_used"] == "s1"
    assert last(send(g, model="fast", task_type="code"))["model_used"] == "f1"


def test_no_model_and_an_entry_of_that_name(up, gate):
    g = gate(models={"fast": target("f1"), "auto": target("a1")})
    assert last(send(g, model=None))["model_used"] == "a1"


def test_no_model_and_no_models(up, gate):
    failed(send(gate(), model=None), 400, "give one")
    assert up.count() == 0


# Errors --------------------------------------------------------------------------------------------

WRONG = [
    ("no input", {"input": None}, "'input' is missing"),
    ("empty input", {"input": ""}, "'input' must not be empty"),
    ("input of a number", {"input": 7}, "'input' must be a string"),
    ("unknown part", {"input": [{"type": "odd"}]}, "'input[0]'"),
    ("empty part", {"input": [{"type": "text", "text": ""}]}, "'input' is empty"),
    ("long session", {"session_id": "x" * 513}, "513 bytes"),
    ("session of a number", {"session_id": 7}, "'session_id'"),
    ("task of a number", {"task_type": 7}, "'task_type'"),
    ("model of a number", {"model": 7}, "'model'"),
    ("stream of a text", {"stream": "yes"}, "'stream'"),
]


def test_wrong_requests(up, gate):
    g = gate()
    for what, body, words in WRONG:
        assert failed(send(g, **body), 400, words), what
    assert up.count() == 0


def test_refusals_of_ours(up, gate):
    g = gate(auth={"mode": "web-server"}, server={"max_body": "1k"}, channel={"models": ["m1"]})
    failed(send(g), 401)
    failed(send(g, "x" * 2000, user="u"), 413)
    failed(send(g, model="other", user="u"), 404, "no channel serves")
    a = g.send(b"{", path="/v1/run", REMOTE_USER="u").finish()
    failed(a, 400, "not valid JSON")
    a = g.get("/v1/run", REMOTE_USER="u").finish()
    failed(a, 405)
    assert up.count() == 0


UPSTREAM = [
    ("request fault", error(400, "invalid_request", "bad things"), 400, "bad things"),
    ("rate", error(429, "rate_limit_exceeded", "slow down"), 429, ""),
    ("credit", error(402, "insufficient_quota", "pay"), 429, ""),
    ("key", error(401, "invalid_api_key", "bad key"), 503, ""),
    ("overload", error(503, None, "busy"), 503, ""),
    ("server", error(500, None, "oops"), 502, ""),
    ("nonsense", plain(b"<html>"), 502, ""),
]


@modes
@pytest.mark.parametrize("action,status,words", [u[1:] for u in UPSTREAM], ids=[u[0] for u in UPSTREAM])
def test_upstream_fails(up, gate, action, status, words, streamed):
    """Before any content a stream has a status like everything else."""
    up.default(action)
    a = send(gate(accounts=1, allow=["."]), stream=streamed or None)
    failed(a, status, words)
    assert a.header("content-type") == "application/json"
    if status == 429:
        assert int(a.header("retry-after")) >= 1


def test_no_answer_in_time(up, gate):
    up.default(hang())
    a = send(gate(accounts=1, allow=["."], upstream={"plain_timeout": "200ms", "max_attempts": 1}))
    failed(a, 504)


def test_a_stream_that_breaks_off(up, gate):
    events = [chunk({"content": "a"}), {"error": {"message": "Overloaded", "type": "overloaded_error"}}]
    up.script(K1, stream(events))
    a = send(gate(), stream=True)
    assert a.status == 200
    assert failed(a, 200, "Overloaded")
    assert b"[DONE]" not in a.body and b'"success":true' not in a.body
