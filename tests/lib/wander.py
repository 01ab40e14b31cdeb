"""wander - journeys (journey.py) at random, the same for the same seed: what is said, who asks whom, what fails."""

import random

from .journey import URL, Journey, Turn, say

TEXTS = ["a", " x ", "\u00fc\U0001f600", "two\nlines", '\u2028 \\ "q"', "long " * 50, "Error: no"]
TEXTS += ["<system>", "{}"]
ARGUMENTS = ["{}", '{"a":1}', r'{"t":"\\ \" \n"}', '{"n":12345678901234567890}']
FAULTS = ["", "", "", "", "limited", "broken", "dead", "cut", "killed"]
# More than the first account rest, and nobody for long.
PATIENT = {"cooldown": {"soft_rate": "1ms"}, "breaker": {"threshold": 1000}}
PATIENT["routing"] = {"model_fail_after": 1000}


def _sent(dice, k, calls):
    dice.shuffle(calls)
    out = [("result", n, dice.choice([*TEXTS, ""]), dice.random() < 0.2) for n in calls]
    if not out or dice.random() < 0.3:
        out.append(say(f"{k} {dice.choice(TEXTS)}"))
        out += [("image", URL)] * (dice.random() < 0.2)
    return out


def _answer(dice, k, first):
    out = [("thought", f"t{k} {dice.choice(TEXTS)}") for _ in range(dice.choice([0, 0, 1, 2]))]
    out += [("hidden", f"h{k}")] * (dice.random() < 0.15)
    n = dice.choice([0, 0, 1, 2, 3])
    calls = [("call", first + i, "look", dice.choice(ARGUMENTS)) for i in range(n)]
    if not calls or dice.random() < 0.5:
        out.append(("assistant", f"a{k} {dice.choice(TEXTS)}"))
    return out + calls


def plan(dice, n=12):
    out, calls, first = [], [], 0
    for k in range(n):
        sent = _sent(dice, k, calls)
        answer = _answer(dice, k, first)
        calls = [i[1] for i in answer if i[0] == "call"]
        first += len(calls)
        out.append(Turn(sent, answer, dice.choice(FAULTS)))
    return out


class Wanderer(Journey):
    def __init__(self, seed, *given, **vary):
        super().__init__(*given, **vary)
        self.dice = random.Random(seed)

    def way(self, n, turn):
        self.think = self.dice.random() < 0.5
        self.style = self.dice.choice(["own", "odd", "long", "from 0"])
        host = self.dice.choice([None, *self.hosts])
        if turn.fault in ("dead", "broken") and not host:
            turn.fault = ""
        return self.dice.choice(self.clients), self.dice.random() < 0.5, host

    def system(self, n):
        return self.dice.choice([None, None, None, "Be brief.", "Be \U0001f600."])

    def id(self, host, n):
        first = min(i[1] for i in self.turn.answer if i[0] == "call")
        odd = {
            "odd": f"functions.look:{n}",
            "long": f"call_{n:038}",
            "from 0": f"call_{n - first}",
        }
        return (odd if host.wire == "chat" else {}).get(self.style) or f"{host.prefix}{n}"
