"""Counts of our own: exact by OpenAI's tables, in count_tokens, in the log and by sluicectl; and without
the tables (SPEC 13; formats.md G).
"""

import json
import os
import shutil
import subprocess

import pytest

from lib import cgi, pool
from lib.answers import error, ok
from lib.around import Site
from lib.pool import config
from lib.upstream import wait_until

PATH = "/v1/messages/count_tokens"
TABLES = os.path.join(os.path.dirname(pool.CTL), "sluice.tokens")
SYSTEM = "You are a helpful assistant."
TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {}}}


def counted(g, model, **more):
    body = {"model": model, "system": SYSTEM, "messages": [{"role": "user", "content": "Hello!"}]}
    a = g.send({**body, **more}, path=PATH).finish()
    assert a.status == 200, a.out
    return a.json()["input_tokens"], a.header("x-sluice-estimated")


def test_exactly(gate):
    """Text to a model of OpenAI's; what is around tools nobody has published."""
    g = gate(accounts=1, channel={"wire": "chat"})
    assert counted(g, "gpt-4o") == (19, None)
    assert counted(g, "openai/gpt-4") == (19, None)
    assert counted(g, "claude-sonnet-4-5")[1] == "1"
    assert counted(g, "glm-4.6") == (19, "1")
    assert counted(g, "gpt-4o", tools=[TOOL])[1] == "1"
    long = {"messages": [{"role": "user", "content": "a" * 100_000}]}
    assert counted(g, "gpt-4o", **long) == (12_500 + 4 + 6 + 4 + 3, None)


def test_in_the_log(up, gate):
    """Each conversation that was read, up to 256 KiB."""
    g = gate(accounts=1, workers=1, channel={"wire": "chat", "models": ["gpt-4o", "gpt-4"]})
    chat = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello world"}]}
    up.default(ok())
    g.send(chat).finish()
    g.send({**chat, "stream": True}).finish()
    g.send({**chat, "max_tokens": 9}, path="/v1/messages").finish()
    g.send({"model": "gpt-4o", "input": "hello world"}, path="/v1/responses").finish()
    g.send({**chat, "model": "none"}).finish()
    g.send({**chat, "messages": [{"role": "user", "content": "a b " * 70_000}]}).finish()
    g.send({"model": "gpt-4o", "input": "hello world"}, path="/v1/embeddings").finish()
    up.script(pool.K1, error(400, message="no"))
    g.send({**chat, "messages": [{"role": "user", "content": "1234567890"}]}).finish()
    g.send({**chat, "messages": [{"role": "user", "content": 7}]}).finish()
    counted(g, "gpt-4")
    lines = [line for line in g.logs() if line["msg"] == "request" and line["method"] == "POST"]
    assert [line["estimated_tokens"] for line in lines] == [9, 9, 9, 9, 9, 0, 0, 11, 0, 19]


def test_shared(gate):
    """Workers write nothing into the tables: memory has them once."""
    if os.geteuid() != 0:
        pytest.skip("only root sees what workers have mapped")
    g = gate(accounts=1, workers=2, channel={"wire": "chat"})
    for _ in range(40):
        counted(g, "gpt-4o")
    dirty = []
    for pid in g.worker_pids():
        with open(f"/proc/{pid}/smaps") as f:
            parts = f.read().split("sluice.tokens\n")[1:]
        dirty += [part.split("Private_Dirty:")[1].split()[0] for part in parts]
    assert dirty and set(dirty) == {"0"}


def test_cut_while_in_use(up):
    """A copy over the file in use, instead of beside it: what is missing is estimated, and nobody dies of it."""
    g = Site(config(up.url, accounts=1, channel={"wire": "chat"}), workers=1, allow=["tokens are estimated"])
    path = g.path_of("bin", "sluice.tokens")
    shutil.copy(TABLES, path)
    os.chmod(path, 0o644)
    try:
        g.start()
        pids = g.worker_pids()
        assert counted(g, "gpt-4o") == (19, None)
        with open(path, "r+b") as f:
            f.truncate(4096)
            new = {"messages": [{"role": "user", "content": "words that nobody has counted before"}]}
            n, estimated = counted(g, "gpt-4o", **new)
            assert estimated == "1" and 15 < n < 30
            shutil.copyfile(TABLES, path)
        assert counted(g, "gpt-4o", **new) == (n, "1") and g.worker_pids() == pids
        assert "was cut" in g.log_text()
        g.reload()
        wait_until(lambda: counted(g, "gpt-4o") == (19, None), 5, "others count exactly")
    finally:
        g.close()


def tokens(*argv, text="hello world", program=pool.CTL):
    return subprocess.run(
        [program, "tokens", *argv],
        input=text if isinstance(text, bytes) else text.encode(),
        capture_output=True,
        timeout=20,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )


def test_command(tmp_path):
    done = tokens("--model", "gpt-4o")
    assert done.stdout == b"2 tokens, exactly, by o200k_base\n", done
    doc = json.loads(tokens("--model", "gpt-4", "--json", "-", text="你好，世界").stdout)
    assert doc == {
        "model": "gpt-4",
        "tokens": 6,
        "exact": True,
        "encoding": "cl100k_base",
        "bytes": 15,
        "tables": os.path.abspath(TABLES),
    }
    file = tmp_path / "text"
    file.write_bytes(b"caf\xe9 <|endoftext|>")
    doc = json.loads(tokens("--json", "--model", "claude-sonnet-4-5", str(file)).stdout)
    assert (doc["exact"], doc["encoding"], doc["tokens"]) == (False, "o200k_base", 11)
    doc = json.loads(tokens("--json", "--model", "deepseek-chat").stdout)
    assert (doc["exact"], doc["encoding"], doc["tokens"]) == (False, None, 2)
    assert tokens("--model", "gpt-4o", text="").stdout.startswith(b"0 tokens, ")


@pytest.mark.parametrize(
    "argv,status",
    [
        (["x"], 2),
        (["--model"], 2),
        (["--model", "m", "a", "b"], 2),
        (["--model", "m", "--nonsense"], 2),
        (["--model", "m", "/nonexistent"], 1),
        (["--model", "m", "/"], 1),
    ],
)
def test_misused(argv, status):
    done = tokens(*argv)
    assert (done.returncode, done.stdout) == (status, b"") and done.stderr, done


@pytest.fixture
def alone(tmp_path):
    """A sluicectl whose tables are what the test puts beside it."""
    for folder in ("/usr/local/share/sluice", "/usr/share/sluice"):
        if os.path.exists(folder + "/sluice.tokens"):
            pytest.skip(f"{folder} has tables")
    shutil.copy(pool.CTL, tmp_path / "sluicectl")
    return tmp_path


def test_without_tables(alone):
    program = str(alone / "sluicectl")
    done = tokens("--model", "gpt-4o", program=program)
    assert done.stdout == b"2 tokens, estimated\n", done
    shutil.copy(TABLES, alone / "sluice.tokens")
    assert b"exactly" in tokens("--model", "gpt-4o", program=program).stdout
    os.chmod(alone / "sluice.tokens", 0o666)  # others may write it
    assert b"estimated" in tokens("--model", "gpt-4o", program=program).stdout
    os.chmod(alone / "sluice.tokens", 0o644)
    folder = alone / "bin"  # as installed
    folder.mkdir()
    (alone / "share" / "sluice").mkdir(parents=True)
    os.rename(alone / "sluicectl", folder / "sluicectl")
    os.rename(alone / "sluice.tokens", alone / "share" / "sluice" / "sluice.tokens")
    assert b"exactly" in tokens("--model", "gpt-4o", program=str(folder / "sluicectl")).stdout


def damage(path, how):
    with open(path, "r+b") as f:
        if how == "cut":
            f.truncate(5_000_000)
        elif how == "bit":
            f.seek(6_000_000)
            f.write(b"\xa5\x5a")
        else:
            f.write(b"PK\x03\x04")


@pytest.mark.parametrize(
    "how,why", [("cut", "it is cut"), ("bit", "damaged"), ("other", "no file of token ranks")]
)
def test_damaged(up, alone, gate, how, why):
    """Said by doctor, with what mends it; a gateway estimates, and its log says why."""
    shutil.copy(TABLES, alone / "sluice.tokens")
    damage(alone / "sluice.tokens", how)
    program = str(alone / "sluicectl")
    done = tokens("--model", "gpt-4o", program=program)
    assert done.returncode == 1 and why in done.stderr.decode(), done
    g = gate(conf=config(up.url))
    argv = [program, "-c", g.path, "doctor", "--json"]
    doc = json.loads(subprocess.run(argv, capture_output=True, env=g.env, timeout=20).stdout)
    row = doc["checks"][-1]
    assert (row["check"], row["result"]) == ("tokens", "problem") and why in row["text"], row
    assert "make tokenizer" in row["remedy"]["directive"]
    if how == "bit":  # who serves looks at the head alone
        return
    shutil.copy(pool.PROGRAM, alone / "sluice.fcgi")
    up.default(ok())
    g.allow.append("tokens are estimated")
    assert cgi.ask(g, vary={"program": str(alone / "sluice.fcgi")}).status == 200
    line = next(x for x in g.logs() if x["msg"].startswith("tokens are estimated"))
    assert why in line["why"] and line["level"] == "warn"


def test_doctor(up, alone, gate):
    g = gate(conf=config(up.url))
    row = json.loads(g.ctl("doctor", "--json").stdout)["checks"][-1]
    assert (row["check"], row["result"]) == ("tokens", "ok") and "exactly" in row["text"], row
    argv = [str(alone / "sluicectl"), "-c", g.path, "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, env=g.env, timeout=20)
    row = json.loads(done.stdout)["checks"][-1]
    assert done.returncode == 0 and row["result"] == "note", row
    assert "make tokenizer" in row["remedy"]["directive"]
    shutil.copy(TABLES, os.path.join(g.dir, "sluice.tokens"))  # beside state_dir
    row = json.loads(subprocess.run(argv, capture_output=True, env=g.env).stdout)["checks"][-1]
    assert row["result"] == "ok" and g.dir in row["text"], row
