"""A model that thinks for 70 seconds: no time limit of any web server may be below ours."""

import threading

import pytest
import sites
import stage as st
from stage import answers, upstream

LONG = 70


@pytest.fixture(scope="module")
def waited():
    """All set-ups wait at the same time."""
    up = upstream.Upstream()
    up.default(answers.slow(LONG))
    stages, got, threads = {}, {}, []
    limits = {"upstream": {"first_byte_timeout": "120s"}}

    def ask(kind, stream):
        try:
            got[kind, stream] = (
                stages[kind]
                .open("/v1/chat/completions", st.question(stream=stream), timeout=LONG + 30)
                .finish()
            )
        except OSError as e:
            got[kind, stream] = e

    try:
        for kind in sites.able("silence"):
            stages[kind] = st.Stage(kind, up=up, config=limits)
            for stream in (False, True):
                threads.append(threading.Thread(target=ask, args=(kind, stream)))
                threads[-1].start()
        for t in threads:
            t.join(LONG + 40)
        yield got
    finally:
        for s in stages.values():
            s.stop()
        up.stop()


@pytest.mark.needs("silence")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("kind", st.KINDS)
def test_first_byte_after_70_seconds(waited, kind, stream):
    got = waited[kind, stream]
    assert got.status == 200 and b"hi" in got.body, got
    assert not stream or got.body.endswith(b"data: [DONE]\n\n"), got
