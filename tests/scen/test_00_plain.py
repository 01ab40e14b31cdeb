"""Plain requests: what goes up, what comes back, and nothing else (SPEC 4.4, 5; HDR, JSON, CONV-15,
CONV-18).
"""

import re

import pytest

from lib.answers import chat_answer, error, ok, plain
from lib.pool import K1, K2
from lib.upstream import Upstream, wait_until

# Everything that a re-serialisation would change: spacing, order, number spelling, escapes, unknown fields, nulls.
ODD = (
    b'{ "z":1.0,\t"temperature":0.10, "seed":18446744073709551616,"big":1E5,"huge":1e400,"neg":-0,"a\\/b":"x\\/y",\r\n'
    b'"model" : "m1" ,"messages":[{"content":"\\u00e9\xc3\xa9 \xe2\x80\xa8 \\ud83d \\ude00x \\ud83d\\ude00 http://x/y",'
    b'"role":"user","":{"x_vendor":{"a":[1,2.50,null]}}}],"enable_thinking":false,"tools":null,"metadata":{} }'
)


def test_request_and_answer_are_byte_identical(up, gate):
    answer = (
        b'\n {"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"\\u00e9","x":1.10},'
        b'"finish_reason":"stop"}],\t"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9},'
        b'"vendor":{"n":1E5}}\n'
    )
    up.script(K1, plain(answer))
    a = gate().send(ODD).finish()
    assert (a.status, a.body) == (200, answer)
    assert up.last.body == ODD
    assert (up.last.method, up.last.target) == ("POST", "/v1/chat/completions")


def test_only_the_model_name_is_replaced(up, gate):
    g = gate(models={"m1": {"targets": [{"channel": "oa", "model": "vendor/m-2026"}]}})
    a = g.send(ODD).finish()
    assert a.status == 200
    assert up.last.body == ODD.replace(b'"model" : "m1"', b'"model" : "vendor/m-2026"')
    # On the same wire the answer's own model name is untouched, the header tells what was used.
    assert a.json()["model"] == "vendor/m-2026"
    assert a.header("X-Sluice-Model") == "vendor/m-2026"


def test_nested_model_keys_are_left_alone(up, gate):
    g = gate(models={"m1": {"targets": [{"channel": "oa", "model": "up"}]}})
    body = b'{"metadata":{"model":"m1"},"messages":[{"role":"user","content":"\\"model\\":\\"m1\\""}],"model":"m1"}'
    assert g.send(body).finish().status == 200
    assert up.last.body == body[:-5] + b'"up"}'


def test_request_headers_are_an_allow_list(up, gate):
    sent = {
        "Authorization": "Bearer client1",
        "X-Api-Key": "client2",
        "Api-Key": "client3",
        "X-Goog-Api-Key": "client4",
        "Proxy-Authorization": "Basic client5",
        "Cookie": "client6=1",
        "Connection": "X-Foo",
        "X-Foo": "client7",
        "TE": "trailers",
        "Upgrade": "h2c",
        "X-Forwarded-For": "client8",
        "X-Forwarded-Host": "client9",
        "Forwarded": "for=client10",
        "Referer": "http://client11/",
        "Proxy": "http://client12/",
        "User-Agent": "client13/1",
        "Accept-Encoding": "br, zstd, *;q=0",
        "X-Real-IP": "client14",
        "OpenAI-Organization": "client15",
        "Host": "client16",
        "OpenAI-Beta": "assistants=v2",
        "Idempotency-Key": "k-1",
    }
    assert gate().ask(headers=sent, vary={"query": "key=client17"}).status == 200
    r = up.last
    assert b"client" not in r.head
    assert r.all("Authorization") == [f"Bearer {K1}"]
    assert r.header("OpenAI-Beta") == "assistants=v2"
    assert r.header("Idempotency-Key") == "k-1"
    assert r.all("Host") == [f"127.0.0.1:{up.port}"]
    assert r.header("Accept-Encoding") in (None, "identity")
    assert r.all("Content-Type") == ["application/json"]
    assert r.all("Content-Length") == [str(len(r.body))]
    allowed = {
        "host",
        "authorization",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "openai-beta",
        "idempotency-key",
        "user-agent",
        "connection",
    }
    assert r.names() <= allowed, r.names() - allowed


def test_response_headers_are_an_allow_list(up, gate):
    up.script(
        K1,
        plain(
            chat_answer(),
            headers={
                "Set-Cookie": "s=1",
                "Server": "nginx",
                "Connection": "keep-alive",
                "openai-organization": "org-1",
                "anthropic-organization-id": "o",
                "x-ratelimit-remaining-requests": "1",
                "openai-processing-ms": "5",
                "x-request-id": "req_1",
                "Retry-After": "7",
                "CF-Ray": "x",
                "X-Should-Retry": "false",
                "Access-Control-Allow-Origin": "*",
            },
        ),
    )
    a = gate().ask()
    assert a.status == 200
    assert a.header("X-Upstream-Request-Id") == "req_1"
    assert a.header("Content-Type").startswith("application/json")
    allowed = {
        "status",
        "content-type",
        "content-length",
        "x-request-id",
        "x-upstream-request-id",
        "x-sluice-channel",
        "x-sluice-account",
        "x-sluice-attempts",
        "x-sluice-model",
        "cache-control",
        "x-accel-buffering",
        "vary",
        "x-content-type-options",
    }
    assert a.names() <= allowed, a.names() - allowed
    assert a.header("Content-Length") in (None, str(len(a.body)))


def test_our_own_headers(up, gate):
    g = gate()
    a = g.ask()
    assert a.header("X-Sluice-Channel") == "oa"
    assert a.header("X-Sluice-Account") == "A1"
    assert a.header("X-Sluice-Attempts") == "1"
    assert a.header("X-Sluice-Model") == "m1"
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", a.header("X-Request-Id"))
    assert g.ask().header("X-Request-Id") != a.header("X-Request-Id")


@pytest.mark.parametrize(
    "given,kept",
    [
        ("client-1.A_b", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("a b", False),
        ("a\u00e9", False),
        ("", False),
        ("a/b", False),
        ("a\r\nX-Evil: 1", False),
        ("<x>", False),
    ],
)
def test_request_id_is_kept_if_harmless(up, gate, given, kept):
    a = gate().ask(headers={"X-Request-Id": given})
    assert a.status == 200
    assert (a.header("X-Request-Id") == given) == kept
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", a.header("X-Request-Id"))
    assert "x-evil" not in a.names()


def test_headers_without_an_attempt(up, gate):
    a = gate().send(b"{").finish()
    assert a.status == 400
    assert a.header("X-Sluice-Attempts") == "0"
    assert a.header("X-Sluice-Account") in (None, "")
    assert a.header("X-Request-Id")


def test_headers_name_the_attempt_that_served(up, gate):
    """RET-15"""
    up.script(K1, error(500))
    a = gate().ask()
    assert (a.status, a.header("X-Sluice-Account"), a.header("X-Sluice-Attempts")) == (
        200,
        "A2",
        "2",
    )


@pytest.mark.parametrize(
    "path,body",
    [
        ("/v1/embeddings", b'{"model":"m1", "input":["a","b"],"encoding_format":"base64"}'),
        ("/v1/embeddings", b'{"input":[1,2,3] ,"model":"m1","x":1.0}'),
        ("/v1/completions", b'{"model":"m1","prompt":"once","max_tokens":5 }'),
        ("/v1/moderations", b'{"model":"m1","input":[{"type":"text","text":"x"}]}'),
    ],
)
def test_side_endpoints_pass_through(up, gate, path, body):
    a = gate().send(body, path=path).finish()
    assert a.status == 200, a.body
    assert (up.last.target, up.last.body) == (path, body)
    assert a.header("X-Sluice-Account") == "A1"


def test_embedding_floats_come_back_byte_identical(up, gate):
    """CONV-18"""
    floats = b",".join([b"-0.0", b"1e-7", b"0.30000000000000004"] * 512)
    answer = (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":['
        + floats
        + b']}],"model":"m1","usage":{"prompt_tokens":8,"total_tokens":8}}'
    )
    up.script(K1, plain(answer))
    g = gate()
    a = g.send(b'{"model":"m1","input":"x"}', path="/v1/embeddings").finish()
    assert (a.status, a.body) == (200, answer)
    assert g.account()["tokens"]["prompt"] == 8


def test_chunked_and_close_delimited_answers(up, gate):
    up.script(
        K1, plain(chat_answer("one"), framing="chunked"), plain(chat_answer("two"), framing="close")
    )
    g = gate()
    assert [g.ask().json()["choices"][0]["message"]["content"] for _ in range(2)] == ["one", "two"]


def test_compressed_answer_is_decoded(up, gate):
    """HDR-05"""
    up.script(K1, plain(chat_answer("zip"), packed=True))
    a = gate().ask()
    assert a.json()["choices"][0]["message"]["content"] == "zip"
    assert "content-encoding" not in a.names()
    assert a.header("Content-Length") in (None, str(len(a.body)))


def test_blank_lines_before_a_plain_answer(up, gate):
    """A non-stream DeepSeek reply may begin with blank lines (formats.md 0.1)."""
    body = (
        b"\n\n  \n"
        + b'{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'
    )
    up.script(K1, plain(body))
    a = gate().ask()
    assert (a.status, a.body) == (200, body)


def test_big_body_goes_without_expect(up, gate):
    """libcurl would wait 1 s for 100-continue above 1 MiB; OPS-09."""
    big = b'{"model":"m1","messages":[{"role":"user","content":"' + b"x" * 9_000_000 + b'"}]}'
    a = gate().send(big).finish()
    assert a.status == 200
    assert up.last.header("Expect") is None
    assert up.last.body == big
    assert a.took < 3


def test_idempotency_key_on_every_attempt(up, gate):
    """HDR-19"""
    up.script(K1, error(500))
    assert gate().ask(headers={"Idempotency-Key": "k1"}).status == 200
    assert [r.header("Idempotency-Key") for r in up.requests] == ["k1", "k1"]


def test_connection_is_reused(up, gate):
    g = gate(workers=1)
    for _ in range(5):
        assert g.ask().status == 200
    assert up.connections == 1


def test_proxy_variables_of_the_environment_are_ignored(up, gate):
    """HDR-09"""
    trap = "http://127.0.0.1:1"
    g = gate(
        env={
            "http_proxy": trap,
            "all_proxy": trap,
            "ALL_PROXY": trap,
            "HTTP_PROXY": trap,
            "https_proxy": trap,
        }
    )
    assert g.ask(vary={"HTTP_PROXY": trap}).status == 200


def test_client_chooses_nothing_of_the_upstream(up, gate):
    """SEC-02: fields of the body are the upstream's business, headers choose nothing."""
    g = gate()
    a = g.ask(
        api_base="http://127.0.0.1:1",
        base_url="http://127.0.0.1:1",
        api_key="x",
        headers={
            "X-OpenAI-Base-Url": "http://127.0.0.1:1",
            "X-Forwarded-Host": "evil",
            "Host": "evil",
        },
        vary={"REQUEST_URI": "http://127.0.0.1:1/v1/chat/completions"},
    )
    assert a.status == 200
    assert up.last.header("Host") == f"127.0.0.1:{up.port}"


def test_redirects_are_not_followed(up, gate):
    """An x-api-key would be sent on to another host."""
    trap = Upstream()
    try:
        up.script(K1, plain(b"", 302, {"Location": trap.url + "/chat/completions"}))
        a = gate().ask()
        assert (a.status, a.header("X-Sluice-Account")) == (200, "A2")
        assert trap.count() == 0 and trap.connections == 0
    finally:
        trap.stop()


def test_account_headers_and_api_key_scheme(up, gate):
    g = gate(account={"A1": {"headers": {"OpenAI-Organization": "org-9"}}})
    assert g.ask().status == 200
    assert up.last.header("OpenAI-Organization") == "org-9"


def test_success_is_counted(up, gate):
    g = gate()
    for _ in range(3):
        assert g.ask().status == 200
    a = g.account()
    assert (a["calls"], a["success"], a["errors"], a["in_flight"]) == (3, 3, 0, 0)
    assert a["success_rate"] == 1
    assert a["tokens"] == {"prompt": 21, "completion": 6, "cached": 0, "reasoning": 0}
    assert a["last_used"]
    assert g.account("A2")["calls"] == 0


def test_one_log_line_for_each_request(up, gate):
    g = gate()
    a = g.ask(headers={"X-Request-Id": "find-me"})
    assert a.status == 200
    mine = lambda: [x for x in g.logs() if "find-me" in x.values()]
    (line,) = wait_until(mine, 2, "a log line")
    assert "A1" in str(line) and "oa" in str(line) and "m1" in str(line)


def test_usage_of_a_retry_goes_to_the_account_that_used_it(up, gate):
    """USE-09"""
    up.script(K1, plain(b"<html>oops</html>", ctype="text/html"))
    up.script(K2, ok())
    g = gate()
    assert g.ask().status == 200
    accounts = g.accounts()
    assert accounts["A1"]["tokens"]["prompt"] == 0 and accounts["A1"]["errors"] == 1
    assert accounts["A2"]["tokens"]["prompt"] == 7


@pytest.mark.parametrize(
    "usage,want",
    [
        ({"prompt_tokens": "12", "completion_tokens": 3.0, "total_tokens": 15}, (12, 3)),
        ({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 999}, (5, 1)),
        (
            {
                "prompt_tokens": 50,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            (50, 4, 40, 3),
        ),
        (None, "estimate"),
        ({"prompt_tokens": -5, "completion_tokens": 2**63}, "no nonsense"),
        ({"prompt_tokens": 10**30, "completion_tokens": [1]}, "no nonsense"),
    ],
)
def test_odd_usage(up, gate, usage, want):
    """USE-07"""
    up.script(K1, plain(chat_answer("some words of an answer", usage=usage)))
    g = gate()
    assert g.ask().status == 200
    t = g.account()["tokens"]
    if want == "estimate":
        assert t["prompt"] > 0 and t["completion"] > 0
    elif want == "no nonsense":
        assert 0 <= t["prompt"] < 1000 and 0 <= t["completion"] < 1000
    else:
        assert (t["prompt"], t["completion"], t["cached"], t["reasoning"])[: len(want)] == want
