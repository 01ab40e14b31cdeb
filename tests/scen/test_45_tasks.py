"""Tasks (SPEC 12): who says what kind of work it is, and which targets that leads to."""

import json

import pytest
from lib import wires
from lib.pool import K1
from test_41_channels import B1
from test_44_targets import C1, gate, smart  # noqa: F401

TASKS = {"code": "coder", "translation": ["small", "large"], "default": "large"}
MODELS = {
    name: {"targets": [{"channel": channel, "model": model}]}
    for name, channel, model in [
        ("coder", "oa", "a"),
        ("small", "ob", "b"),
        ("large", "oc", "c"),
    ]
}
ROUTING = {"tasks": TASKS, "default": "task"}


def ask(g, task=None, model="auto", headers=(), **body):
    if task:
        headers = [("X-Task-Type", task), *headers]
    return g.ask(model=model, headers=headers, **body)


def line(g):
    return [x for x in g.logs() if x.get("msg") == "request"][-1]


@pytest.mark.parametrize(
    "task,model",
    [
        ("code", "a"),
        ("Code-Generation", "a"),
        ("translation", "b"),  # the first of a list
        ("TRANSLATION", "b"),
        ("creative", "c"),  # without an entry
        ("never-heard-of", "c"),
    ],
)
def test_auto_by_the_header(up, gate, task, model):
    g = gate(MODELS, routing=ROUTING)
    a = ask(g, task)
    assert (a.status, a.header("X-Sluice-Model")) == (200, model)
    assert up.last.json()["model"] == model
    assert (line(g)["task"], line(g)["routing"], line(g)["wanted_model"]) == (task, "task", "auto")


@pytest.mark.parametrize("wire", ["chat", "messages", "responses"])
def test_auto_by_the_metadata(up, gate, wire):
    g = gate(MODELS, routing=ROUTING)
    a = wires.get(g, wire, model="auto", metadata={"task_type": "c\u006fde"})
    assert (a.status, a.header("X-Sluice-Model")) == (200, "a")
    a = wires.get(
        g,
        wire,
        model="auto",
        metadata={"task_type": "translation"},
        headers=[("X-Task-Type", "code")],
    )
    assert a.header("X-Sluice-Model") == "a"  # the header comes first
    a = wires.get(g, wire, model="auto", metadata={"task_type": ["code"]})
    assert a.header("X-Sluice-Model") != ""


def test_a_task_of_several_models(up, gate):
    """All their targets are candidates, of which the strategy chooses; then the fallback strategy."""
    g = gate(MODELS, routing={"tasks": TASKS})
    seen = {ask(g, "translation").header("X-Sluice-Model") for _ in range(24)}
    assert seen == {"b", "c"}
    g.ctl("account", "disable", "ob/B1")
    assert {ask(g, "translation").header("X-Sluice-Model") for _ in range(6)} == {"c"}


def test_auto_by_what_targets_list(up, gate):
    """Without routing.tasks: those that list the task, else those that list none."""
    models = smart({"tasks": ["code"]}, {"tasks": ["translation"]}, {})
    g = gate(models)
    for task, model in [("code", "a"), ("translate", "b"), ("creative", "c")]:
        assert ask(g, task).header("X-Sluice-Model") == model


def test_an_explicit_model_wins(up, gate):
    g = gate(MODELS, routing=ROUTING)
    assert ask(g, "code", model="large").header("X-Sluice-Model") == "c"
    assert ask(g, "code", model="unlisted").header("X-Sluice-Model") == "unlisted"


def test_tasks_leave_targets_out(up, gate):
    g = gate(smart({"tasks": ["translation"]}, {"tasks": ["coding"]}, {"tasks": ["creative"]}))
    for _ in range(4):
        assert ask(g, "code", model="smart").header("X-Sluice-Model") == "b"
    doc = json.loads(g.ctl("explain", "--model", "smart", "--task", "code", "--json").stdout)
    assert [t["out"] for t in doc["targets"]] == ["is for other tasks", None, "is for other tasks"]
    assert doc["task"] == "code"
    # but tasks are no reason to serve nobody
    assert ask(g, "simple", model="smart").status == 200


def test_auto_is_a_name_where_nobody_speaks_of_tasks(up, gate):
    g = gate({"large": {"targets": [{"channel": "oc", "model": "c"}]}})
    assert ask(g, "code").header("X-Sluice-Model") == "auto"
    g = gate({**MODELS, "auto": {"targets": [{"channel": "ob", "model": "mine"}]}}, routing=ROUTING)
    assert ask(g, "code").header("X-Sluice-Model") == "mine"


def test_nobody_for_the_task(up, gate):
    g = gate(smart({"tasks": ["code"]}))
    a = ask(g, "creative")
    assert (a.status, a.error["code"], up.count()) == (404, "model_not_found", 0)


def test_explain_by_task(up, gate):
    g = gate(MODELS, routing=ROUTING)
    doc = json.loads(g.ctl("explain", "--task", "code", "--json").stdout)
    assert (doc["model"], doc["task"], doc["would"]["model"]) == ("auto", "code", "a")
    assert "task code" in g.ctl("explain", "--task", "code").stdout


def test_a_hostile_task(up, gate):
    g = gate(MODELS, routing=ROUTING)
    for task in ("x" * 5000, "co\tde", '"', "\u00e4".encode().decode("latin-1")):
        assert ask(g, task).status == 200
