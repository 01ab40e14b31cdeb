"""Images and audio: bodies of any size and order, and answers of any type, pass as they are (issue of the
client formats; formats.md D.5, D.6).
"""

import json
import os
import re

import pytest

from lib.answers import close, error, hang, plain, stream
from lib.fcgi import parse_sse
from lib.pool import K1, K2, config
from lib.upstream import wait_until

FORMS = ["images/edits", "images/variations", "audio/transcriptions", "audio/translations"]
JSONS = ["images/generations", "audio/speech"]
TYPE = "multipart/form-data; charset=\"utf-8\"; boundary=----Web Kit'x"
BOUND = b"----Web Kit'x"
WAV = bytes(range(256)) * 40


def part(name, value, extra=b""):
    return (
        b"--" + BOUND + b'\r\nContent-Disposition: form-data; name="' + name + b'"' + extra + b"\r\n\r\n" + value + b"\r\n"
    )


def form(*parts, model=b"m1", file=WAV, first=False):
    fields = [
        part(b"file", file, b'; filename="a;\\"name=\\"model.wav"\r\nContent-Type: audio/wav'),
        *parts,
    ]
    if model is not None:
        fields.insert(0 if first else len(fields), part(b"model", model))
    return b"".join(fields) + b"--" + BOUND + b"--\r\n"


def post(g, body, path="audio/transcriptions", ctype=TYPE, **vary):
    return g.send(body, path="/v1/" + path, ctype=ctype, **vary).finish()


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("first", [True, False], ids=["model first", "model last"])
def test_form(up, gate, path, first):
    g = gate(accounts=1)
    up.default(plain(b'{"text": "hi",  "usage":{"type":"tokens","input_tokens":7,"output_tokens":3}}'))
    body = form(part(b"language", b"de"), first=first)
    a = post(g, body, path)
    assert a.status == 200, a.out
    assert a.body == b'{"text": "hi",  "usage":{"type":"tokens","input_tokens":7,"output_tokens":3}}'
    assert a.header("content-type") == "application/json"
    assert up.last.target == "/v1/" + path and up.last.body == body
    assert up.last.header("content-type") == TYPE
    assert int(up.last.header("content-length")) == len(body)
    assert up.last.cred == K1
    tokens = g.account()["tokens"]
    assert (tokens["prompt"], tokens["completion"]) == (7, 3)


@pytest.mark.parametrize("size", [100, 1 << 20, (1 << 20) - 300, 3_000_000, 20_000_000])
def test_large(up, gate, size):
    """In memory to 1 MiB, then in a file without a name; another account gets the same bytes."""
    g = gate(accounts=3)
    file = os.urandom(size)
    body = form(file=file)
    up.script(K1, error(500))
    up.script(K2, close())
    up.default(plain({"text": "hi"}))
    a = post(g, body)
    assert a.status == 200, a.out
    assert [r.body == body for r in up.requests] == [True] * 3
    left = [n for n in os.listdir(os.path.join(g.dir, "state")) if n.startswith("body")]
    assert left == []


def test_renamed(up, gate):
    """The name that the channel knows, and not a byte besides."""
    conf = config(up.url, accounts=2)
    conf["models"] = {"ears": {"targets": [{"channel": "oa", "model": "whisper-large-v3"}]}}
    g = gate(conf=conf)
    for first in (True, False):
        for file in (WAV, os.urandom(1_500_000)):
            up.script(K1, error(500))
            up.default(plain({"text": "hi"}))
            a = post(g, form(model=b"ears", file=file, first=first))
            assert a.status == 200
            want = form(model=b"whisper-large-v3", file=file, first=first)
            assert up.requests[-2].body == up.requests[-1].body == want
            assert int(up.last.header("content-length")) == len(want)
            assert a.header("x-sluice-model") == "whisper-large-v3"
            g.ctl("account", "revive", "--all")


BAD = {
    "no boundary": (form(), "multipart/form-data"),
    "an empty one": (form(), 'multipart/form-data; boundary=""'),
    "a long one": (form(), "multipart/form-data; boundary=" + "x" * 71),
    "another boundary": (form(), "multipart/form-data; boundary=other"),
    "an empty body": (b"", TYPE),
    "no model": (form(model=None), TYPE),
    "an empty model": (form(model=b""), TYPE),
    "model twice": (form(part(b"model", b"m2")), TYPE),
    "model as a file": (form(part(b"model", b"m1", b'; filename="x"'), model=None), TYPE),
    "a control character": (form(model=b"m\r\n1"), TYPE),
    "NUL": (form(model=b"m\0"), TYPE),
    "not UTF-8": (form(model=b"m\xff"), TYPE),
    "a huge model": (form(model=b"m" * 300), TYPE),
    "cut in a value": (form()[:-40], TYPE),
    "cut in headers": (form()[: form().rindex(b"form-data")], TYPE),
    "cut before the end": (form()[:-4], TYPE),
    "huge headers": (form(part(b"x", b"y", b"; a=b" * 20000)), TYPE),
    "like the boundary": (form(part(b"x", b"y\r\n--" + BOUND + b"z")), TYPE),
}


@pytest.mark.parametrize("what", BAD)
def test_bad(up, gate, what):
    body, ctype = BAD[what]
    g = gate(accounts=1)
    a = post(g, body, ctype=ctype)
    assert a.status == 400, a.out
    assert a.json()["error"]["type"] == "invalid_request_error"
    if "model" in what:
        assert "'model'" in a.json()["error"]["message"]
    assert up.count() == 0


def test_nested(up, gate):
    """A multipart inside a part is a value like any other."""
    g = gate(accounts=1)
    up.default(plain({"text": "hi"}))
    inner = b'--in\r\nContent-Disposition: form-data; name="model"\r\n\r\nevil\r\n--in--'
    body = form(part(b"x", inner, b"\r\nContent-Type: multipart/mixed; boundary=in"))
    assert post(g, body).status == 200
    assert up.last.body == body


def test_too_large(up, gate):
    g = gate(accounts=1, server={"max_body": "2M"})
    assert post(g, form(file=b"x" * 2_200_000)).status == 413
    assert post(g, form(file=b"x" * 2_200_000), CONTENT_LENGTH=None).status == 413
    up.default(plain({"text": "hi"}))
    assert post(g, form(file=b"x" * 1_900_000)).status == 200
    assert up.count() == 1


def test_full_disk(up, gate):
    """A file size limit stands for it: the client hears of it, and small bodies go on."""
    g = gate(accounts=1)
    for pid in g.worker_pids():
        os.system(f"prlimit --pid {pid} --fsize=1500000")
    up.default(plain({"text": "hi"}))
    a = post(g, form(file=b"x" * 6_000_000))
    assert a.status == 503 and "disk" in a.json()["error"]["message"], a.out
    assert up.count() == 0
    assert post(g, form()).status == 200


def test_json_face(up, gate):
    """Newer hosts take JSON for edits."""
    g = gate(accounts=1)
    up.default(plain({"created": 1, "data": []}))
    body = b'{"model":"m1", "images":[{"image_url":"x"}],"n":1.0}'
    assert post(g, body, "images/edits", "application/json").status == 200
    assert up.last.body == body and up.last.header("content-type") == "application/json"
    assert post(g, b'{"n":1}', "images/edits", "application/json").status == 400


@pytest.mark.parametrize("path", JSONS)
def test_json(up, gate, path):
    conf = config(up.url, accounts=2)
    conf["models"] = {"brush": {"targets": [{"channel": "oa", "model": "gpt-image-1"}]}}
    g = gate(conf=conf)
    up.script(K1, error(500))
    answer = b'{"created":1,"data":[{"b64_json":"%s"}],"usage":{"input_tokens":5,"output_tokens":9}}' % (
        b"A" * 3_000_000
    )
    up.default(plain(answer))
    a = post(g, b'{"model": "brush","prompt":"x", "n":1}', path, "application/json")
    assert a.status == 200 and a.body == answer
    assert up.last.body == b'{"model": "gpt-image-1","prompt":"x", "n":1}'
    assert g.account("A2")["tokens"]["completion"] == 9


@pytest.mark.parametrize("ctype", ["audio/mpeg", "audio/wav", "text/plain; charset=utf-8", "text/vtt", None])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_any_type(up, gate, ctype, framing):
    """Sound and subtitles come as they are, with their type."""
    g = gate(accounts=1)
    data = b"WEBVTT\n\n" + WAV * 30
    up.default(plain(data, ctype=ctype, framing=framing))
    a = post(g, b'{"model":"m1","input":"x","voice":"y"}', "audio/speech", "application/json")
    assert a.status == 200 and a.body == data
    assert a.header("content-type") == (ctype or "application/octet-stream")
    if framing == "length":
        assert int(a.header("content-length")) == len(data)
    else:
        assert a.header("content-length") is None
    assert up.last.header("accept") == "*/*"
    assert g.account()["success"] == 1


def test_relayed_as_it_comes(up, gate):
    g = gate(accounts=1, upstream={"heartbeat": "100ms"})
    up.default(stream(b"ID3 first", ctype="audio/mpeg", then=[(0.8, b"second")]))
    o = g.send(b'{"model":"m1","input":"x"}', path="/v1/audio/speech").until(b"first", 3)
    assert b"second" not in o.out
    a = o.finish()
    assert a.body == b"ID3 firstsecond", "and no heartbeat in it"


def test_failover_before_the_first_byte(up, gate):
    g = gate(accounts=3)
    up.script(K1, plain(b"", 429, ctype="audio/mpeg"))
    up.script(K2, plain(b"<html>login</html>", ctype="text/html"))
    up.default(plain(WAV, ctype="audio/mpeg"))
    a = post(g, b'{"model":"m1","input":"x"}', "audio/speech", "application/json")
    assert a.status == 200 and a.body == WAV and a.header("x-sluice-attempts") == "3"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_cut(up, gate, framing):
    """What breaks off must not look whole: the request has no end."""
    g = gate(accounts=2)
    if framing == "length":
        act = plain(WAV, ctype="audio/mpeg", declared=len(WAV) + 9, end="fin")
    else:
        act = stream(WAV, ctype="audio/mpeg", end="fin")
    up.script(K1, act)
    o = g.send(b'{"model":"m1","input":"x"}', path="/v1/audio/speech")
    a = o.finish()
    assert a.body == WAV and a.end is None
    assert up.count() == 1
    assert g.account()["errors"] == 1
    assert post(g, b'{"model":"m1","input":"x"}', "audio/speech", "application/json").status == 200


def test_empty_text(up, gate):
    """Nothing was said."""
    g = gate(accounts=1)
    up.default(plain(b"", ctype="text/plain"))
    a = post(g, form(part(b"response_format", b"text")))
    assert a.status == 200 and a.body == b"" and a.header("content-type") == "text/plain"
    up.default(plain(b"", ctype="audio/mpeg"))
    assert post(g, form()).status == 502


EVENTS = {
    "audio/transcriptions": ["transcript.text.delta", "transcript.text.done"],
    "audio/speech": ["speech.audio.delta", "speech.audio.done"],
    "images/generations": ["image_generation.partial_image", "image_generation.completed"],
    "images/edits": ["image_edit.partial_image", "image_edit.completed"],
}


def ask_stream(path):
    if path in FORMS:
        return form(part(b"stream", b"true")), TYPE
    return b'{"model":"m1","input":"x","stream":true}', "application/json"


@pytest.mark.parametrize("path", EVENTS)
@pytest.mark.parametrize("how", ["whole", "bytes"])
def test_events(up, gate, path, how):
    g = gate(accounts=1)
    usage = {"type": "tokens", "input_tokens": 4, "output_tokens": 6}
    docs = [{"type": EVENTS[path][0], "delta": "x"}, {"type": EVENTS[path][1], "usage": usage}]
    sent = b"".join(
        b"event: %s\ndata: %s\n\n" % (d["type"].encode(), json.dumps(d).encode()) for d in docs
    )
    up.default(stream(sent, how))
    body, ctype = ask_stream(path)
    a = post(g, body, path, ctype)
    assert a.status == 200 and a.body == sent
    assert a.header("content-type") == "text/event-stream"
    assert up.last.body == body
    tokens = g.account()["tokens"]
    assert (tokens["prompt"], tokens["completion"]) == (4, 6)


@pytest.mark.parametrize("path", EVENTS)
def test_broken_events(up, gate, path):
    g = gate(accounts=2)
    sent = b'data: {"type":"%s","delta":"x"}\n\n' % EVENTS[path][0].encode()
    up.script(K1, stream(sent, end="fin"))
    body, ctype = ask_stream(path)
    a = post(g, body, path, ctype)
    assert a.body.startswith(sent)
    assert json.loads(parse_sse(a.body)[-1][1])["error"]["message"]
    assert up.count() == 1
    up.clear()
    up.script(K1, stream(b'data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}\n\n'))
    up.script(K2, stream(sent + b'data: {"type":"%s"}\n\n' % EVENTS[path][1].encode()))
    assert EVENTS[path][1].encode() in post(g, body, path, ctype).body
    assert up.creds() == [K1, K2]


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415, 501])
@pytest.mark.parametrize("path", FORMS + JSONS)
def test_fault_of_the_caller(up, gate, path, status):
    """No second account, no penalty, the host's own words."""
    g = gate(accounts=2)
    up.default(error(status, message="not here"))
    body, ctype = (form(), TYPE) if path in FORMS else (b'{"model":"m1"}', "application/json")
    a = post(g, body, path, ctype)
    assert a.status == status and a.json()["error"]["message"] == "not here"
    assert up.count() == 1
    g.assert_clean()


def test_only_channels_of_its_api(up, gate):
    g = gate(accounts=1, channel={"wire": "messages"})
    a = post(g, form())
    assert a.status == 404 and up.count() == 0


def test_gone_client(up, gate):
    g = gate(accounts=1)
    up.default(hang())
    o = g.send(form(file=b"x" * 2_000_000), path="/v1/audio/transcriptions", ctype=TYPE)
    up.wait_for(1)
    o.close()
    wait_until(lambda: g.in_flight() == 0, 5, "the lease is given back")


def test_no_keys(up, gate):
    g = gate(accounts=1)
    up.default(plain(f"the key is {K1}".encode(), ctype="text/plain"))
    a = post(g, form())
    assert K1.encode() not in a.body and b"[redacted]" in a.body
