"""The gateway checks client keys itself: Authorization must come through every web server."""

import pytest
import stage as st
from stage import bearer


@pytest.fixture(scope="module", params=st.KINDS)
def stage(request):
    s = st.Stage(request.param, config={"auth": {"mode": "keys", "keys_file": "clients.json"}})
    got = s.chat(headers=bearer(st.KEY))
    if got.status == 503 and b"not built into this version" in got.body:
        s.stop()
        pytest.skip("auth.mode keys is not built into this version")
    yield s
    s.stop()


@pytest.mark.parametrize(
    "headers", [bearer(st.KEY), {"X-Api-Key": st.KEY}], ids=["bearer", "x-api-key"]
)
def test_a_known_key_is_seen(stage, headers):
    assert stage.chat(headers=headers).status == 200


def test_a_key_only_the_web_server_knows_is_refused(stage):
    got = stage.chat(headers=bearer())
    assert got.status == 401 and got.json()["error"]["message"], got
    assert stage.up.count() == 0
