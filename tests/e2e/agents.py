"""agents - command-line agents through a loop of tools, by the gateway, on accounts of every API.

`make agents`; by hand. Claude Code speaks messages, Codex responses, opencode all three. @copilotkit/aimock
is the provider: it asks for the reading of a file, and says so when the file's word has come back. The
programs (1 GB) are put into BUILD/agents once. One line for each agent and API; the status tells
whether all arrived.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import packages
import stage as st
from lib import wires

FOLDER = os.path.join(st.BUILD, "agents")
PACKAGES = {
    "@anthropic-ai/claude-code": "2.1.197",
    "@openai/codex": "0.171.0",
    "opencode-ai": "1.18.33",
}
WORD, ARRIVED = "nightingale-4711", "the word arrived"
SECONDS = 90
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
}


def call(name, **arguments):
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    return {"toolCalls": [{"name": name, "arguments": arguments}], "usage": usage}


def fixtures(work):
    """What the provider says: first a call of the agent's own tool, then the word."""
    note = os.path.join(work, "note.txt")
    asked = {
        "claude reads": call("Read", file_path=note),
        "codex reads": call("exec_command", cmd=f"cat {note}"),
        "opencode reads": call("read", filePath=note),
    }
    rows = [{"match": {"toolResultContains": WORD}, "response": {"content": ARRIVED}}]
    rows += [{"match": {"userMessage": k}, "response": v} for k, v in asked.items()]
    return {"fixtures": rows + [{"match": {}, "response": {"content": "A title"}}]}


def claude(base, model, work):
    env = {f"ANTHROPIC_DEFAULT_{m}_MODEL": model for m in ("HAIKU", "SONNET", "OPUS")}
    env |= {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": st.TOKEN}
    return [
        "claude",
        "-p",
        "--model",
        model,
        "--allowedTools",
        "Read",
        "--output-format",
        "json",
    ], env


def codex(base, model, work):
    home = os.path.join(work, ".codex")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "config.toml"), "w") as f:
        f.write(
            f'model = "{model}"\nmodel_provider = "sluice"\n[model_providers.sluice]\nname = "sluice"\n'
            f'base_url = "{base}/v1"\nenv_key = "SLUICE_KEY"\nwire_api = "responses"\n'
            "request_max_retries = 1\nstream_max_retries = 1\n"
        )
    argv = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [*argv, "-"], {"CODEX_HOME": home, "SLUICE_KEY": st.TOKEN}


def opencode(package):
    def start(base, model, work):
        options = {"baseURL": base + "/v1", "apiKey": st.TOKEN}
        limit = {"context": 100000, "output": 4000}
        provider = {
            "npm": package,
            "name": "sluice",
            "options": options,
            "models": {model: {"name": model, "tool_call": True, "limit": limit}},
        }
        conf = {"autoupdate": False, "share": "disabled", "small_model": f"sluice/{model}"}
        conf["permission"] = {"read": "allow", "external_directory": "allow"}
        with open(os.path.join(work, "opencode.json"), "w") as f:
            json.dump({**conf, "provider": {"sluice": provider}}, f)
        return ["opencode", "run", "-m", f"sluice/{model}"], {}

    return start


AGENTS = {
    "claude (messages)": (claude, "claude reads"),
    "codex (responses)": (codex, "codex reads"),
    "opencode (chat)": (opencode("@ai-sdk/openai-compatible"), "opencode reads"),
    "opencode (messages)": (opencode("@ai-sdk/anthropic"), "opencode reads"),
    "opencode (responses)": (opencode("@ai-sdk/openai"), "opencode reads"),
}


def run(start, words, base, wire, work):
    """What it wrote, and its status."""
    argv, env = start(base, f"by-{wire}", work)
    argv[0] = os.path.join(FOLDER, "node_modules", ".bin", argv[0])
    try:
        done = subprocess.run(
            argv,
            cwd=work,
            env={"PATH": os.environ["PATH"], "HOME": work, **QUIET, **env},
            input=f"{words} note.txt\n",
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as e:
        return f"{e.stdout} {e.stderr}", None
    return done.stdout + done.stderr, done.returncode


def config(url):
    row = {"provider": "openai-compatible", "base_url": url, "pool": {"max_in_flight": 16}}
    account = [{"id": "mock", "api_key": "up-key-mock"}]
    names = {w: f"mock-{w}" for w in wires.WIRES}
    return {
        "channels": {n: {**row, "wire": w, "accounts": account} for w, n in names.items()},
        "models": {
            f"by-{w}": {"targets": [{"channel": n, "model": "m"}]} for w, n in names.items()
        },
    }


def try_all(s, only):
    failed = 0
    for name, (start, words) in AGENTS.items():
        for wire in wires.WIRES if only in name else []:
            work = tempfile.mkdtemp(prefix="sluice-agent-", dir=s.notes)
            shutil.copy(os.path.join(s.notes, "note.txt"), work)
            said, status = run(start, words, s.base, wire, work)
            good = status == 0 and ARRIVED in said
            print(f"{name:21} on {wire:10} {'the tool loop went round' if good else 'FAILED'}")
            if not good:
                print(f"  status {status}: {said[-1500:]}")
            failed += not good
            sys.stdout.flush()
    return failed


def main():
    packages.install()
    packages.install(PACKAGES, FOLDER, 900)
    notes, port = tempfile.mkdtemp(prefix="sluice-notes-"), st.free_port()
    with open(os.path.join(notes, "note.txt"), "w") as f:
        f.write(f"The word is {WORD}.\n")
    with open(os.path.join(notes, "aimock.json"), "w") as f:
        json.dump(fixtures(notes), f)
    mock = packages.aimock(port, os.path.join(notes, "aimock.json"))
    s = st.Stage("lighttpd-external", workers=8, config=config(f"http://127.0.0.1:{port}/v1"))
    s.notes = notes
    try:
        failed = try_all(s, sys.argv[1] if len(sys.argv) > 1 else "")
        if failed and os.environ.get("SLUICE_KEEP"):
            print(s.log)
    finally:
        s.stop()
        mock.terminate()
        mock.wait(10)
        shutil.rmtree(notes, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
