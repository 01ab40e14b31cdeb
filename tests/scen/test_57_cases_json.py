"""The JSON cases in every pair of APIs, and USE-04, USE-08 and CONV-15 of converted answers."""

import json

import pytest

from lib import wires
from lib.answers import chat_chunks, plain, stream, usage_chunk
from lib.talk import ask_with, heard
from lib.trio import OTHERS, PAIRS, Trio
from lib.wires import ask

others = pytest.mark.parametrize("client,host", OTHERS)
pairs = pytest.mark.parametrize("client,host", PAIRS)
modes = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])


@pytest.fixture(scope="module")
def trio():
    t = Trio()
    yield t
    harmed = t.harmed()
    t.close()
    assert not harmed


# Usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["chat", "responses"])
@modes
def test_use_04_cached_tokens(trio, client, streamed):
    """USE-04: cached tokens are part of the prompt."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 5000, "output_tokens": 1}
    doc = {**wires.answer("messages"), "usage": usage}
    events = b"".join(wires.events("messages"))
    events = events.replace(
        b'"input_tokens":8,"cache_read_input_tokens":4',
        b'"input_tokens":3,"cache_read_input_tokens":5000',
    )
    events = events.replace(b'"output_tokens":5', b'"output_tokens":1')
    a = trio.get(
        client, "messages", ask(client, streamed), stream(events) if streamed else plain(doc)
    )
    got = trio.read(client, a, streamed)
    assert (got["prompt"], got["cached"], got["completion"]) == (5003, 5000, 1)


@pytest.mark.parametrize("client", ["messages", "responses"])
@modes
def test_figures_that_do_not_agree(trio, client, streamed):
    """Reasoning beside the completion, a total that is no sum: the client is told what is booked."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 99,
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    doc = {**wires.answer("chat"), "usage": usage}
    events = [*chat_chunks("Hi", done=False), usage_chunk(usage), "[DONE]"]
    a = trio.get(client, "chat", ask(client, streamed), stream(events) if streamed else plain(doc))
    got = trio.read(client, a, streamed)
    assert (got["prompt"], got["completion"]) == (10, 10)


def test_total_that_is_no_sum(trio):
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 99}
    doc = {**wires.answer("responses"), "usage": usage}
    got = trio.get("chat", "responses", ask("chat", False), plain(doc)).json()["usage"]
    assert [got[k + "_tokens"] for k in ("prompt", "completion", "total")] == [10, 3, 13]


@pairs
def test_use_08_stream_and_plain_are_booked_alike(trio, client, host):
    def tokens():
        rows = [c for c in trio.pool.status()["channels"] if c["name"] == host]
        return rows[0]["accounts"][0]["tokens"]

    found = [tokens()]
    for streamed in (False, True):
        trio.get(client, host, ask(client, streamed))
        found.append(tokens())
    steps = [
        {k: b[k] - a[k] for k in ("prompt", "completion", "cached")}
        for a, b in zip(found, found[1:])
    ]
    assert steps[0] == steps[1] == {"prompt": 12, "completion": 5, "cached": 4}


# JSON --------------------------------------------------------------------------------------------


@others
def test_json_02_texts(trio, client, host):
    """JSON-02: spellings of one text are one text; nothing is changed."""
    text = "a/b \u00e9 \u2028 \u2029 \x7f \U0001f600 <>&' \t\n\r\b\f"
    got = heard(host, trio.sent(client, host, ask(client, text=text)))
    assert got == [("user", text)]
    body = json.dumps({**ask(client, text="@"), "model": f"m-{host}"})
    body = body.replace('"@"', '"a\\/b \\u00e9\\u00E9\\u2028"').encode()
    assert trio.get(client, host, body).status == 200
    assert heard(host, trio.up.last.json()) == [("user", "a/b \u00e9\u00e9\u2028")]


@others
def test_json_04_lone_surrogates(trio, client, host):
    """JSON-04: U+FFFD when converted, wherever they stand; the pair stays."""
    for text in ("\ud83d", "\ude00x", "\ud83d\ude00"):
        want = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        items = [("system", text), ("user", text), ("call", "c", "f", json.dumps({"a": text}))]
        body = ask_with(client, *items, ("result", "c", text), tools=True)
        body = json.loads(json.dumps(body).replace('"integer"', json.dumps(text)))  # in the schema
        got = heard(host, trio.sent(client, host, body))
        assert want in got[0][1] and got[-1][2] == want
    a = trio.get(client, host, ask(client), wires.serve(host, "x\ud83dy"))
    assert a.status == 200
    a.json()
    a.body.decode()


@others
def test_json_nul(trio, client, host):
    """NUL is a character of a text like others."""
    got = heard(host, trio.sent(client, host, ask(client, text="a\0b")))
    assert got == [("user", "a\0b")]
    a = trio.get(client, host, ask(client), wires.serve(host, "a\0b"))
    assert trio.read(client, a)["text"] == "a\0b"


BAD_JSON = [
    b"{'a':1}",
    b'{"a":NaN}',
    b'{"a":1}{"b":2}',
    b'{"a":/**/1}',
    b'{"a":TRUE}',
    b'{"a":007}',
    b'{"a":1.}',
    b'{"a":"x\ny"}',
    b'{"a":"\xff\xfe"}',
    b"",
    b"[]",
    b'"x"',
    b"{",
]


@pairs
def test_json_07_what_is_not_json(trio, client, host):
    for bad in BAD_JSON:
        body = json.dumps({**ask(client), "model": f"m-{host}", "x": "@"}).encode()
        inner = bad[5:-1] if bad.startswith(b'{"a":') and bad.count(b"{") == 1 else None
        trio.refused(client, host, body.replace(b'"@"', inner) if inner else bad)


@others
def test_json_08_null_is_like_absent(trio, client, host):
    nulls = {"temperature": None, "tools": None, "tool_choice": None, "top_p": None, "stream": None}
    nulls |= {
        "metadata": {},
        "user": None,
        "x_vendor": None,
        "stop": None,
        "reasoning_effort": None,
    }
    a = trio.get(client, host, {**ask(client), **nulls})
    assert a.status == 200 and a.header("x-sluice-dropped") in (None, "metadata")
    doc = trio.up.last.json()
    assert doc == trio.sent(client, host, ask(client)) or "metadata" in doc


def test_conv_15_unknown_fields_stay(trio):
    """CONV-15: on the same API all of them, both directions."""
    for wire in wires.WIRES:
        body = ask_with(wire, ("user", "x"))
        body["input" if wire == "responses" else "messages"][0]["x_field"] = [1, 2.50, None]
        body |= {"enable_thinking": False, "x_vendor": {"a": [1, None]}}
        doc = {**wires.answer(wire), "x_field": {"a": None}}
        a = trio.get(wire, wire, body, plain(doc))
        assert a.json() == doc and trio.up.last.json() == {**body, "model": f"m-{wire}"}
