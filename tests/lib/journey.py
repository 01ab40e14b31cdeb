"""journey - a conversation that goes from host to host (hosts.py) while accounts fail, and its client, who sends
only what is new.

A plan is a list of turns: what is sent, and what is answered. Each request that any host gets is checked as that
host would, also one that it refuses then, and must hold all that was said.
"""

import dataclasses
import json

from . import answers, grammar, hosts, replies, strict, wires
from .fcgi import parse_sse
from .hosts import HOSTS, OTHER

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = "data:image/png;base64," + PNG
SYSTEM = "Be brief."
FILLER = "over the water and under the bridge to the island of the old man".split()
# Ids that some hosts of chat give, by the number of the call: each answer from 0, longer than others take, odd.
ODD = {0: "call_0", 3: "chatcmpl-tool-" + "0f" * 16, 4: "functions.look:0", 6: "call_0"}
MIXED = (5, 9)  # turns of a model that any host may serve
ATTEMPTS = {"limited": 2, "broken": 3, "dead": 2}  # of a request with that fault


@dataclasses.dataclass
class Turn:
    sent: list  # items; the number of a call stands for its id
    answer: list  # likewise
    # limited: 429 of the first account; broken: 500 of all of the channel; dead: nobody is at the first target;
    # cut: a stream breaks off; killed: a worker, before it
    fault: str = ""


def say(text):
    return ("user", text)


def call(n, **arguments):
    return ("call", n, "look", json.dumps(arguments, separators=(",", ":")))


PLAN = [
    Turn([say("I have a boat.")], [("assistant", "Good. What of it?")]),
    Turn(
        [say("Where is it?")],
        [("thought", "It may be in the harbour."), ("assistant", "I look."), call(0, at="harbour")],
        "limited",
    ),
    Turn([("result", 0, "not here", False)], [("thought", "Hm."), ("assistant", "Not there.")]),
    Turn(
        [say("What is in this picture?"), ("image", URL)],
        [("hidden", "bm8"), ("thought", "Two places."), ("assistant", "Wait."), call(1), call(2)],
    ),
    Turn(
        [("result", 2, "no light", True), ("result", 1, "a sail", False), say("And now?")],
        [("thought", "Again."), call(3, a=[1, {"b": "\u00fc\U0001f600"}])],
        "cut",
    ),
    Turn([("result", 3, "", False)], [("assistant", "A boat at sea. \u2028\U0001f600")], "killed"),
    Turn([say("Whose?")], [call(4, x='\\"\n')]),
    Turn([("result", 4, '{"owner": "me"}', False)], [("assistant", "Yours.")]),
    Turn([say("Is it far?")], [("thought", "Miles."), ("assistant", "Yes.")], "broken"),
    Turn([say("Fetch it.")], [("thought", "Both."), call(5, b=1), call(6, b=2)]),
    Turn(
        [("result", 5, "done", False), ("result", 6, "gone", True)],
        [("assistant", "Half of it.")],
        "dead",
    ),
    Turn([say("What did we do?")], [("thought", "All."), ("assistant", "We looked for it.")]),
]


def _longer(item, at):
    text = {"user": 1, "assistant": 1, "thought": 1, "result": 2}.get(item[0])
    if not text:
        return item
    words = " ".join(f"{word}{at}" for word in FILLER)
    return (*item[:text], f"{item[text]} {words}", *item[text + 1 :])


def longer(plan):
    """The same with texts of some fifty tokens."""
    return [
        Turn([_longer(i, n) for i in t.sent], [_longer(i, n) for i in t.answer], t.fault)
        for n, t in enumerate(plan)
    ]


def without_tools(plan):
    """The same, of those who cannot call."""
    out = []
    for t in plan:
        sent = [say("It says: " + i[2] + ".") if i[0] == "result" else i for i in t.sent]
        texts = [i[1] for i in sent if i[0] == "user"]
        sent = [say(" ".join(texts))] + [i for i in sent if i[0] == "image"]
        answer = [i for i in t.answer if i[0] != "call"]
        if not any(i[0] == "assistant" for i in answer):
            answer.append(("assistant", "I see."))
        out.append(Turn(sent, answer, t.fault))
    return out


# The client -----------------------------------------------------------------------------------------

THINK = {
    "chat": {"reasoning_effort": "low"},
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000},
    "responses": {"reasoning": {"effort": "low"}},
}


def _chat(items):
    out = []
    for kind, *rest in items:
        if kind == "result":
            out.append({"role": "tool", "tool_call_id": rest[0], "content": rest[1]})
        elif kind == "image":
            text = {"type": "text", "text": out[-1]["content"]}
            part = {"type": "image_url", "image_url": {"url": rest[0]}}
            out[-1] = {"role": "user", "content": [text, part]}
        else:
            out.append({"role": kind, "content": rest[0]})
    return {"messages": out}


def _block(kind, rest):
    if kind == "result":
        block = {"type": "tool_result", "tool_use_id": rest[0], "content": rest[1]}
        return {**block, "is_error": True} if rest[2] else block
    if kind == "image":
        source = {"type": "base64", "media_type": "image/png", "data": rest[0].split(",")[1]}
        return {"type": "image", "source": source}
    return {"type": "text", "text": rest[0]}


def _messages(items):
    system = [i[1] for i in items if i[0] == "system"]
    content = [_block(kind, rest) for kind, *rest in items if kind != "system"]
    if len(content) == 1 and content[0]["type"] == "text":
        content = content[0]["text"]
    body = {"max_tokens": 200, "messages": [{"role": "user", "content": content}]}
    return {**body, "system": system[0]} if system else body


def _responses(items):
    out, body = [], {}
    for kind, *rest in items:
        if kind == "result":
            item = {"type": "function_call_output", "call_id": rest[0], "output": rest[1]}
            out.append(item)
        elif kind == "image":
            text = {"type": "input_text", "text": out[-1]["content"]}
            part = {"type": "input_image", "image_url": rest[0]}
            out[-1] = {"role": "user", "content": [text, part]}
        elif kind == "system":
            body["instructions"] = rest[0]
        else:
            out.append({"role": kind, "content": rest[0]})
    return {**body, "input": out}


def _run(items):
    return {"input": _chat(items)["messages"][0]["content"]}


WRITE = {"chat": _chat, "messages": _messages, "responses": _responses, "run": _run}


def request(client, items, model, streamed, tools, think):
    body = {"model": model, **WRITE[client](items)}
    if tools:
        tool = wires.ask(client, tools=True)["tools"][0]
        tool.get("function", tool)["name"] = "look"
        body["tools"] = [tool]
    if think and client != "run":
        body.update(THINK[client])
    if streamed and client == "chat":
        body["stream_options"] = {"include_usage": True}
    return {**body, "stream": True} if streamed else body


def understood(client, answer, streamed):
    """(text, calls) of a whole answer."""
    if client == "run":
        parts = [json.loads(d) for _, d in parse_sse(answer.body)] if streamed else [answer.json()]
        assert parts[-1]["success"], parts[-1]
        return parts[-1]["content"], []
    if streamed:
        assert grammar.end(client, answer.body) == "whole"
        got = wires.gathered(client, answer.body)
    else:
        got = wires.meaning(client, answer.json())
    return got["text"], got["calls"]


def broke_off(client, answer):
    """Of a stream that was cut: it says so."""
    if answer.status != 200:
        return False
    if client == "run":
        return not json.loads(parse_sse(answer.body)[-1][1])["success"]
    return grammar.end(client, answer.body) == "error"


# The journey ----------------------------------------------------------------------------------------


def channel(up, host, n=2):
    accounts = [
        {"id": f"{host.name}{i}", "api_key": k, "priority": i} for i, k in enumerate(host.keys)
    ]
    return {
        "provider": host.provider,
        "wire": host.wire,
        "base_url": up.url,
        "accounts": accounts[:n],
        "channel_breaker": {"triggers": []},
    }


# Who serves in its place: one of another API.
NEXT = {"oa": "an", "an": "ds", "ds": "an2", "rs": "an"}


def sections(up, dead, window=None):
    """Of a configuration: channels, and models with targets."""
    rows = {h.name: channel(up, h) for h in hosts.ALL}
    for name, other in NEXT.items():
        rows[name]["fallback"] = [other]
    rows["dead"] = {**channel(up, OTHER, 1), "base_url": dead, "models": ["dead"]}

    def target(host):
        return {"channel": host.name, "model": host.model}

    models = {"mix": {"targets": [target(h) for h in HOSTS]}}
    models["sum"] = {"targets": [{"channel": "oa", "model": "sum"}]}
    for h in (*HOSTS, hosts.RESPONSES):
        first = {"channel": "dead", "model": "dead"}
        models[h.model] = {"targets": [target(h)]}
        models["by-dead-" + h.name] = {"targets": [first, target(h)], "strategy": "task"}
    for name, entry in models.items():
        entry.update(window if window and name != "sum" else {})
    return {"channels": rows, "models": models}


class Journey:
    """`send(body, path, headers)` gives an answer that is read to its end; `kill()` ends a worker.

    clients take turns; think: they ask for it; trims: the windows are small; folds: `send` makes one document of a
    stream, and an error of one that was cut.
    """

    def __init__(
        self, up, send, kill, clients=("chat",), session="s1", rotation=0, think=False, trims=False,
        folds=False,
        of=HOSTS,
    ):  # fmt: skip
        self.send, self.kill, self.clients, self.session = send, kill, clients, session
        self.rotation, self.think, self.trims, self.folds = rotation, think, trims, folds
        self.hosts = of
        self.said, self.ids, self.previous = [], {}, None
        self.faults = []  # of requests that hosts got
        self.served = []  # hosts
        self.trimmed = []  # messages that were left out of each turn
        up.default(self._act)

    # Hosts

    def _act(self, x):
        host = hosts.BY_KEY[x.request.cred]
        if x.request.json()["model"] == "sum":
            return answers.ok("They spoke of a boat.")(x)
        try:
            doc = hosts.check(host, x.request.body)
            self._compare(host, hosts.heard(host, doc))
        except Exception as e:
            self.faults.append(f"{self.where} on {host.name}: {type(e).__name__}: {e}")
            return answers.error(400, "invalid_request_error", str(e)[:200])(x)
        fault = self.fault
        if fault == "broken" and host is self.host:
            return answers.error(500)(x)
        self.fault = "" if fault in ("limited", "cut") else fault
        if fault == "limited":
            return answers.error(429)(x)
        self.served.append(host)
        self.made = self.answer(host, "include" in doc)
        streamed, size = bool(doc.get("stream")), len(x.request.body) // 4
        replies.answer(host, self.made, streamed, size, fault == "cut")(x)

    def _compare(self, host, got):
        want = hosts.due(host, self.said + self.sent)
        if self.trims:
            want = self._without_gone(host, got, want)
        assert hosts.numbered(got) == hosts.numbered(want), f"\n got {got}\nwant {want}"

    def _without_gone(self, host, got, want):
        """What leads and what is new stay; of the rest whole turns, in their order; texts may be shorter."""
        new = hosts.due(host, self.sent)
        at = 1 if want[0][0] == "system" else 0
        if got[at : at + 1] and got[at][0] == "system" and got[at][1].startswith("Summary"):
            del got[at]
        whole = [next((w for w in want if hosts.is_shortened(i, w)), i) for i in got]
        shorter = [w for w, i in zip(whole, got) if w is not i]
        got[:], kept, self.gone = whole, [], 0
        for turn in hosts.turns(want):
            stands = got[len(kept) : len(kept) + len(turn)]
            stays = turn[0] in new or sorted(map(repr, stands)) == sorted(map(repr, turn))
            kept += turn if stays else []
            self.gone += not stays or any(i in shorter for i in turn)
        return kept

    def id(self, host, n):
        """Of call n."""
        odd = ODD.get(n) if host.wire == "chat" and not self.trims else None
        return odd or f"{host.prefix}{n}"

    def answer(self, host, sealed):
        items = replies.spoken(host, self.turn.answer, sealed)
        self.given = {i[1]: self.id(host, i[1]) for i in items if i[0] == "call"}
        return [(i[0], self.given[i[1]], *i[2:]) if i[0] == "call" else i for i in items]

    # Client

    def way(self, n, turn):
        """Who asks, for a stream, whom; None: any."""
        host = None if n in MIXED else self.hosts[(n + self.rotation) % len(self.hosts)]
        client = self.clients[n % len(self.clients)]
        return client, (n + n // 3 + self.rotation) % 2 == 0, host

    def system(self, n):
        """Some clients say it again; another text takes its place."""
        return {0: SYSTEM, 3: SYSTEM, 7: "Be kind."}.get(n)

    def walk(self, plan, tools=True):
        for n, turn in enumerate(plan):
            self.step(n, turn, tools)
        return self

    def step(self, n, turn, tools):
        client, streamed, self.host = self.way(n, turn)
        streamed = streamed or turn.fault == "cut"
        model = self.host.model if self.host else "mix"
        if turn.fault == "dead":
            model = "by-dead-" + self.host.name
        self.where = f"turn {n + 1}, {client}, {'stream' if streamed else 'plain'}, {model}"
        self.turn, self.fault = turn, turn.fault
        if turn.fault == "killed":
            self.kill()
        lead = self._say(client, self.system(n))
        body = request(client, lead + self.sent, model, streamed, tools, self.think)
        a = self._ask(client, body)
        if turn.fault == "cut":
            assert a.status != 200 if self.folds else broke_off(client, a), (self.where, a.body)
            a = self._ask(client, body)
        assert a.status == 200, (self.where, a.status, a.body)
        self.look(a)
        self._take(client, a, streamed and not self.folds)

    def _say(self, client, text):
        """What is sent, and what leads it."""
        self.sent = []
        for i in self.turn.sent:
            if i[0] == "result":  # only clients of messages can say that a call failed
                i = (i[0], self.ids[i[1]], i[2], i[3] and client == "messages")
            self.sent.append(i)
        lead = [("system", text)] if text and client != "run" else []
        if lead:
            self.said = lead + [i for i in self.said if i[0] != "system"]
        # instructions are of one request each
        return self.said[:1] if client == "responses" else lead

    def look(self, a):
        attempts = a.header("x-sluice-attempts")
        assert int(attempts) == ATTEMPTS.get(self.turn.fault, 1), (self.where, attempts)
        if self.host and self.turn.fault != "broken":
            assert a.header("x-sluice-channel") == self.host.name, self.where
        if self.trims:
            told = a.header("x-sluice-trimmed")
            n, tokens = map(int, told.split(",")) if told else (0, 0)
            assert n == self.gone and (tokens > 0) == (n > 0), (self.where, told, self.gone)
            self.trimmed.append(n)

    def _ask(self, client, body):
        path, head = wires.PATHS.get(client, "/v1/run"), {}
        if client == "run":
            body = {**body, "session_id": self.session}
        elif client == "responses":
            body = {**body, **({"previous_response_id": self.previous} if self.previous else {})}
        else:
            head = {"X-Session-Id": self.session, "X-Context": "append"}
        a = self.send(body, path, head)
        assert not self.faults, "\n".join(self.faults)
        return a

    def _take(self, client, a, streamed):
        """What was answered is part of the conversation from here on."""
        text, calls = understood(client, a, streamed)
        assert text == "".join(i[1] for i in self.made if i[0] == "assistant"), self.where
        made = [i for i in self.made if i[0] == "call"]
        assert [(c[1], json.loads(c[2])) for c in calls] == [(c[2], json.loads(c[3])) for c in made]
        for (n, own), (told, *_) in zip(self.given.items(), calls):
            if strict.CALL_ID.match(own) and len(own) <= 40:
                assert told == own, self.where
            self.ids[n] = told
        told = {own: self.ids[n] for n, own in self.given.items()}
        self.said = self.said + self.sent
        self.said += [(i[0], told[i[1]], *i[2:]) if i[0] == "call" else i for i in self.made]
        if client == "responses":
            doc = json.loads(parse_sse(a.body)[-1][1])["response"] if streamed else a.json()
            self.previous = doc["id"]
