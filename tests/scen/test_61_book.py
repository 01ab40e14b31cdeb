"""The machine goes down, or files of the store are damaged (SPEC 15): no disable, no end of credit
and no open breaker is lost.
"""

import os
import re
import time

from lib.answers import error
from lib.pool import K1
from lib.upstream import wait_until


def state(g, *names):
    return os.path.join(g.dir, "state", *names)


def new_boot(g):
    """As if the machine had been started anew."""
    with open(state(g, "epoch")) as f:
        text = f.read()
    with open(state(g, "epoch"), "w") as f:
        f.write(re.sub("boot .{8}", "boot 00000000", text))
    for name in ("gate", "book.lock"):
        os.unlink(state(g, name))


def power_cut(g):
    g.kill_all()
    new_boot(g)
    g.start()


def asides(g):
    return [n for n in os.listdir(state(g)) if n.startswith("live.unclean")]


def test_an_operators_word_outlives_a_power_cut(up, gate):
    g = gate(accounts=3, allow=["store"])
    g.ctl("account", "disable", "A2")
    power_cut(g)
    assert len(asides(g)) == 1
    assert [g.account(n)["state"] for n in ("A1", "A2", "A3")] == ["active", "disabled", "active"]
    assert any("made anew from 'book'" in line for line in g.log_lines())
    g.ctl("account", "enable", "A2")
    power_cut(g)
    assert g.account("A2")["state"] == "active"
    assert g.ask().status == 200


def test_other_words_of_an_operator(up, gate):
    g = gate(accounts=2, allow=["store"])
    time.sleep(1.5)  # the first save of all is over
    g.ctl("account", "credits", "A1", "12.5")
    g.ctl("channel", "triggers", "oa", "error_rate")
    g.ctl("degrade", "off")
    power_cut(g)
    assert g.account("A1")["credits"] == 12.5
    assert g.channel()["breaker"]["triggers"] == ["error_rate"]
    assert "off" in g.ctl("degrade").stdout


def test_the_end_of_credit_outlives_a_power_cut(up, gate):
    up.script(K1, error(402, "Insufficient Balance"))
    g = gate(accounts=2, allow=["store"])
    assert g.ask().status == 200
    before = g.account("A1")
    assert before["state"] == "cooling"
    time.sleep(0.3)  # it is saved once the client has its answer
    power_cut(g)
    after = g.account("A1")
    assert (after["state"], after["cool"]["until"]) == ("cooling", before["cool"]["until"])
    assert g.ask().status == 200
    assert up.count(K1) == 1


def test_a_clean_end_loses_nothing(up, gate):
    g = gate(accounts=1)
    for _ in range(5):
        assert g.ask().status == 200
    g.stop()
    new_boot(g)
    g.start()
    assert g.account("A1")["success"] == 5 and asides(g) == []


def test_counters_are_at_most_5_s_old(up, gate):
    g = gate(accounts=1, allow=["store"])
    for _ in range(3):
        assert g.ask().status == 200
    time.sleep(5.5)
    assert g.ask().status == 200
    power_cut(g)
    assert g.account("A1")["success"] >= 3


def test_a_damaged_live_is_made_anew(up, gate):
    g = gate(accounts=2, allow=["store"])
    g.ctl("account", "disable", "A2")
    for size in (0, 3 * 4096):
        g.kill_all()
        os.truncate(state(g, "live", "data.mdb"), size)
        g.start()
        assert g.account("A2")["state"] == "disabled"
        assert g.ask().status == 200
    assert len(asides(g)) == 1  # the newest is kept


def test_a_damaged_book_is_made_anew(up, gate):
    g = gate(accounts=2, allow=["store", "power cut"])
    g.ctl("account", "disable", "A2")
    g.kill_all()
    os.truncate(state(g, "book", "data.mdb"), 3 * 4096)
    g.start()
    wait_until(
        lambda: any(n.startswith("book.damaged") for n in os.listdir(state(g))), 8, "it was replaced"
    )
    power_cut(g)
    assert g.account("A2")["state"] == "disabled"


def test_both_damaged_is_refused(up, gate):
    g = gate(accounts=1, allow=["store"])
    g.ctl("account", "disable", "A1")
    g.kill_all()
    for folder in ("live", "book"):
        os.truncate(state(g, folder, "data.mdb"), 3 * 4096)
    g.start()
    assert g.ask().status == 503
    done = g.ctl("status", check=False)
    assert done.returncode != 0 and "neither 'live' nor 'book'" in done.stderr
    assert asides(g) == []
