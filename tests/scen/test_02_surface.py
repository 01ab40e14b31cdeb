"""Paths, models, healthz, status, who may call (SPEC 4.1, 4.2, 17; HDR-15, HDR-16, HDR-17, SEC-04).
"""

import hashlib
import json
import time

import pytest

from lib.answers import error, slow
from lib.pool import K1, config, parse_time

CHAT = json.dumps({"model": "m1", "messages": [{"role": "user", "content": "x"}]}).encode()


@pytest.mark.parametrize(
    "variables",
    [
        {"SCRIPT_NAME": "/v1/chat/completions"},
        {"SCRIPT_NAME": "", "PATH_INFO": "/v1/chat/completions"},
        {
            "SCRIPT_NAME": "/llm",
            "PATH_INFO": "/v1/chat/completions",
            "REQUEST_URI": "/llm/v1/chat/completions",
        },
        {
            "SCRIPT_NAME": "/llm/v1",
            "PATH_INFO": "/chat/completions",
            "REQUEST_URI": "/llm/v1/chat/completions",
        },
        {"SCRIPT_NAME": "/llm/v1/chat/completions", "REQUEST_URI": "/llm/v1/chat/completions"},
        {
            "SCRIPT_NAME": "/s/sluice.fcgi",
            "PATH_INFO": "/v1/chat/completions",
            "REQUEST_URI": "/s/v1/chat/completions",
        },
        {
            "SCRIPT_NAME": "/s/c/sluice.fcgi",
            "PATH_INFO": "",
            "REQUEST_URI": "/s/c/v1/chat/completions?x=1",
        },
        {"SCRIPT_NAME": "/v1/v1/chat/completions"},
        {"SCRIPT_NAME": "/v1/chat/completions/"},
        {"SCRIPT_NAME": "//v1/chat/completions"},
        {"SCRIPT_NAME": "/v1//chat/completions"},
        {"SCRIPT_NAME": "/v1/chat/completions", "QUERY_STRING": "beta=true"},
    ],
)
def test_mounts_and_spellings(up, gate, variables):
    a = gate().send(CHAT, **variables).finish()
    assert a.status == 200, (variables, a.body)
    assert up.last.target == "/v1/chat/completions"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/response",
        "/v1/chat/completion",
        "/",
        "",
        "/v1",
        "/v1/",
        "/v1/chat",
        "/V1/chat/completions",
        "/v1/chat/completions/x",
        "/v2/chat/completions",
        "/v1/chat/completions%00",
        "/v1/../v1/chat",
        "/etc/passwd",
        "/v1/chat/completionsx",
        "/v1/files",
        "/v1/chat\\completions",
    ],
)
def test_unknown_paths(up, gate, path):
    """REQ-10"""
    g = gate()
    a = g.send(CHAT, path=path).finish()
    assert a.status == 404, (path, a.body)
    assert a.error["message"]
    assert a.header("Content-Type").startswith("application/json")
    assert up.count() == 0
    g.assert_clean()


@pytest.mark.parametrize(
    "method,path",
    [
        ("GET", "/v1/chat/completions"),
        ("DELETE", "/v1/chat/completions"),
        ("POST", "/v1/models"),
        ("PUT", "/v1/embeddings"),
        ("BREW", "/healthz"),
    ],
)
def test_wrong_methods(up, gate, method, path):
    a = gate().send(b"", method=method, path=path).finish()
    assert a.status in (404, 405)
    assert a.json()["error"]["message"]
    assert up.count() == 0


@pytest.mark.parametrize(
    "base,target",
    [
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api", "/api/chat/completions"),
        ("/api/v1", "/api/v1/chat/completions"),
        ("/v10", "/v10/chat/completions"),
        ("/paas/v4", "/paas/v4/chat/completions"),
    ],
)
def test_base_url_join(up, gate, base, target):
    """HDR-16; formats.md 0.5: the full prefix is configured, /v1 is never inserted."""
    assert gate(base_url=f"http://127.0.0.1:{up.port}{base}").send(CHAT).finish().status == 200
    assert up.last.target == target


def test_models(up, gate):
    g = gate(
        channel={"models": ["m1", "m2", "glm-*"]},
        models={"smart": {"targets": [{"channel": "oa", "model": "m1"}]}},
    )
    a = g.get("/v1/models")
    doc = a.json()
    assert a.status == 200 and doc["object"] == "list"
    assert sorted(m["id"] for m in doc["data"]) == ["m1", "m2", "smart"]
    for m in doc["data"]:
        assert (
            m["object"] == "model"
            and isinstance(m["created"], int)
            and isinstance(m["owned_by"], str)
        )
    assert up.count() == 0


def test_one_model(up, gate):
    g = gate(models={"ven/dor": {"targets": [{"channel": "oa", "model": "m1"}]}})
    assert g.get("/v1/models/ven/dor").json()["id"] == "ven/dor"
    a = g.get("/v1/models/ven/dor", REQUEST_URI="/v1/models/ven%2Fdor")
    assert a.json()["id"] == "ven/dor"
    a = g.get("/v1/models/nope")
    assert a.status == 404 and a.error["code"]
    assert up.count() == 0


def test_head_and_options(up, gate):
    """HDR-15"""
    g = gate(channel={"models": ["m1"]})
    a = g.get("/v1/models", method="HEAD")
    assert (a.status, a.body) == (200, b"")
    a = g.get("/healthz", method="HEAD")
    assert (a.status, a.body) == (200, b"")
    a = g.get("/nope", method="HEAD")
    assert (a.status, a.body) == (404, b"")
    a = g.get("/v1/chat/completions", method="OPTIONS", headers={"Origin": "http://x"})
    assert a.status in (204, 405)
    assert "access-control-allow-origin" not in a.names()  # not configured
    assert up.count() == 0


def test_healthz(up, gate):
    g = gate(account={"A1": {"realm": "cn"}, "A2": {"realm": "cn"}, "A3": {"realm": "global"}})
    a = g.get("/healthz")
    assert (a.status, a.header("X-Service")) == (200, "sluice")
    assert a.json() == {
        "service": "sluice",
        "healthy": 3,
        "total": 3,
        "realm_servable": {"cn": 2, "global": 1},
    }


def test_healthz_when_nobody_is_left(up, gate):
    up.default(error(429, headers={"Retry-After": "60"}))
    g = gate(accounts=2)
    assert g.ask().status == 429
    a = g.get("/healthz")
    assert a.status == 503
    doc = a.json()
    assert (doc["service"], doc["healthy"], doc["total"]) == ("sluice", 0, 2)


def test_healthz_full_accounts_cannot_be_picked(up, gate):
    up.default(slow(1))
    g = gate(accounts=1, workers=3, pool={"max_in_flight": 1})
    a = g.open(stream=False)
    up.wait_for(1)
    assert g.get("/healthz").status == 503
    assert a.finish().status == 200
    assert g.get("/healthz").status == 200


def test_healthz_needs_no_credential(up, gate):
    g = gate(auth={"mode": "web-server"})
    assert g.get("/healthz").status == 200


ACCOUNT_KEYS = {
    "id",
    "realm",
    "fingerprint",
    "state",
    "cool",
    "soft_streak",
    "fails",
    "consecutive_failures",
    "window",
    "breaker_until",
    "breaker_step",
    "disabled",
    "disabled_reason",
    "session_dead",
    "in_flight",
    "max_in_flight",
    "credits",
    "calls",
    "success",
    "errors",
    "rate_limited",
    "success_rate",
    "tokens",
    "latency_ms",
    "quota",
    "last_probe",
    "last_used",
    "last_error",
    "rate_limited_models",
}


def test_status_has_exactly_the_shape(up, gate):
    up.script(K1, error(429, headers={"Retry-After": "30"}))
    g = gate(account={"A1": {"realm": "cn"}, "A2": {"realm": "cn"}})
    assert g.ask().status == 200
    s = g.status()
    assert list(s) == [
        "service",
        "version",
        "now",
        "config",
        "totals",
        "realm_totals",
        "channels",
        "sessions",
    ]
    assert s["service"] == "sluice" and s["version"]
    assert abs(parse_time(s["now"]) - time.time()) < 5
    assert set(s["config"]) == {"generation", "loaded_at", "error"} and s["config"]["error"] is None
    assert s["totals"] == {
        "accounts": 3,
        "active": 2,
        "cooling": 1,
        "disabled": 0,
        "in_flight": 0,
        "waiting": 0,
    }
    assert s["realm_totals"]["cn"] == {"accounts": 2, "active": 1, "cooling": 1, "disabled": 0}
    assert set(s["sessions"]) == {"bound"}
    (c,) = s["channels"]
    assert set(c) == {"name", "provider", "fallback", "breaker", "accounts"}
    assert (c["name"], c["provider"], c["fallback"]) == ("oa", "openai-compatible", [])
    assert set(c["breaker"]) == {
        "state",
        "until",
        "trigger",
        "triggers",
        "probes_sent",
        "probes_ok",
    }
    assert (c["breaker"]["state"], c["breaker"]["until"], c["breaker"]["trigger"]) == (
        "closed",
        None,
        None,
    )
    assert sorted(c["breaker"]["triggers"]) == ["error_rate", "pool_exhausted"]
    a1, a2, a3 = c["accounts"]
    for a in (a1, a2, a3):
        assert set(a) == ACCOUNT_KEYS, set(a) ^ ACCOUNT_KEYS
        assert set(a["window"]) == {"calls", "failures"}
        assert set(a["tokens"]) == {"prompt", "completion", "cached", "reasoning"}
        assert set(a["latency_ms"]) == {"avg", "max", "total"}
    assert a1["fingerprint"] == hashlib.sha256(K1.encode()).hexdigest()[:16]
    assert set(a1["cool"]) - {"reset_at"} == {"kind", "until", "reason", "rule", "status"}
    assert (a1["state"], a1["cool"]["kind"], a1["cool"]["status"]) == ("cooling", "soft_rate", 429)
    assert (a1["calls"], a1["success"], a1["errors"], a1["rate_limited"], a1["success_rate"]) == (
        1,
        0,
        1,
        1,
        0,
    )
    assert (a1["last_error"]["kind"], a1["last_error"]["status"]) == ("soft_rate", 429)
    assert set(a1["last_error"]) == {"at", "kind", "status"}
    assert (a2["state"], a2["cool"], a2["last_error"]) == ("active", None, None)
    assert a2["max_in_flight"] == 3 and a2["credits"] is None and a2["quota"] is None
    assert a3["last_used"] is None and a3["calls"] == 0 and a3["success_rate"] in (None, 0, 1)


def test_status_over_http_equals_the_tool(up, gate):
    g = gate(auth={"mode": "web-server", "admins": ["root@x"]})
    a = g.get("/status", REMOTE_USER="root@x")
    assert a.status == 200
    mine, tool = a.json(), g.status()
    for s in (mine, tool):
        s.pop("now"), s["config"].pop("loaded_at")
    assert mine == tool


def test_admin_paths(up, gate):
    g = gate(auth={"mode": "web-server", "admins": ["boss"]})
    assert g.get("/status", REMOTE_USER="boss").status == 200
    assert g.get("/status", REMOTE_USER="alice").status == 403
    assert g.get("/status").status in (401, 403)
    assert g.get("/status", HTTP_REMOTE_USER="boss").status in (401, 403)
    g2 = gate(auth={"mode": "web-server", "admins": []})
    assert g2.get("/status", REMOTE_USER="boss").status == 403


def test_web_server_mode(up, gate):
    """SEC-04: only what the server set counts."""
    g = gate(auth={"mode": "web-server"})
    a = g.send(CHAT).finish()
    assert a.status == 401 and "REMOTE_USER" in a.error["message"]
    for name in ("HTTP_REMOTE_USER", "HTTP_X_REMOTE_USER", "HTTP_REDIRECT_REMOTE_USER"):
        assert g.send(CHAT, **{name: "admin"}).finish().status == 401
    assert g.send(CHAT, REMOTE_USER="").finish().status == 401
    for software in ("lighttpd/1.4", "nginx/1.22"):
        a = g.send(CHAT, SERVER_SOFTWARE=software).finish()
        assert a.status == 401 and software.partition("/")[0] in a.error["message"], a
    for name in ("a" * 256, "a\n", "j\udcfcrgen"):
        assert g.send(CHAT, REMOTE_USER=name).finish().status == 403
    assert up.count() == 0
    assert g.send(CHAT, REMOTE_USER="alice").finish().status == 200


def test_a_missing_v1_is_said(up, gate):
    for path in ("/chat/completions", "/llm/models"):
        a = gate().send(CHAT, path=path).finish()
        assert a.status == 404 and "/v1" in a.error["message"] and up.count() == 0, a


def test_user_variable_that_a_client_can_set_never_counts(up, gate):
    g = gate(auth={"mode": "web-server", "user_variables": ["SSL_CLIENT_S_DN", "REMOTE_USER"]})
    assert g.send(CHAT, SSL_CLIENT_S_DN="CN=x").finish().status == 200
    assert g.send(CHAT, HTTP_SSL_CLIENT_S_DN="CN=x").finish().status == 401


def test_default_mode_is_web_server(up, gate):
    conf = config(up.url)
    del conf["auth"]
    assert gate(conf=conf).send(CHAT).finish().status == 401
    assert up.count() == 0


def test_mount_prefix(up, gate):
    g = gate(server={"mount": "/gw"})
    assert g.send(CHAT, path="/gw/v1/chat/completions").finish().status == 200
    assert up.last.target == "/v1/chat/completions"
    assert g.get("/gw/healthz").status == 200


@pytest.mark.parametrize(
    "model", ["m-cheap ", "M-CHEAP", "\uff4d-cheap", "m-cheap\t", "m-chea", ""]
)
def test_names_are_compared_byte_for_byte(up, gate, model):
    """SEC-05"""
    g = gate(channel={"models": ["m-cheap"]})
    a = g.ask(model=model)
    assert a.status == 400 if model in ("", "m-cheap\t") else a.status == 404
    assert up.count() == 0
    assert g.ask(model="m-cheap").status == 200


def test_cors(up, gate):
    """HDR-15: only a true preflight, only when configured; errors carry the headers too."""
    g = gate(server={"cors_origins": ["https://app.test"]}, auth={"mode": "web-server"})
    ask = {"Origin": "https://app.test", "Access-Control-Request-Method": "POST"}
    a = g.get("/v1/chat/completions", method="OPTIONS", headers=ask)
    assert (a.status, a.body) == (204, b"")
    assert a.header("Access-Control-Allow-Origin") == "https://app.test"
    assert "POST" in a.header("Access-Control-Allow-Methods")
    a = g.get("/v1/chat/completions", method="OPTIONS")
    assert a.status in (204, 405) and "access-control-allow-methods" not in a.names()
    a = g.send(CHAT, headers={"Origin": "https://app.test"}).finish()
    assert (a.status, a.header("Access-Control-Allow-Origin")) == (401, "https://app.test")
    a = g.send(CHAT, headers={"Origin": "https://evil.test"}).finish()
    assert a.header("Access-Control-Allow-Origin") in (None, "https://app.test")
    assert up.count() == 0


def test_configuration_below_the_document_root(up, gate):
    """SPEC 3: refused at the first request, with a log line; nothing goes up."""
    g = gate(allow=["DOCUMENT_ROOT", "document root"])
    a = g.send(CHAT, DOCUMENT_ROOT=g.dir).finish()
    assert a.status == 503 and g.dir.encode() not in a.body
    assert up.count() == 0
    assert g.path in g.log_text() or "document root" in g.log_text().lower()


@pytest.mark.parametrize("path", ["/v1/models", "/healthz", "/nope", "/status"])
def test_every_answer_has_a_request_id(up, gate, path):
    assert gate().get(path, headers={"X-Request-Id": "r-1"}).header("X-Request-Id") == "r-1"


@pytest.mark.parametrize("model", ["m" * 256, "a\nb", "a\x00b"])
def test_a_model_that_cannot_be_kept(up, gate, model):
    a = gate().send({**json.loads(CHAT), "model": model}).finish()
    assert a.status == 400 and "model" in a.error["message"]
    assert up.count() == 0
    assert gate().send({**json.loads(CHAT), "model": "m" * 255}).finish().status == 200
